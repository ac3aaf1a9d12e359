//! `auth`: who clients are, by name at the top level, and what listeners and routes say of it.

use std::path::PathBuf;
use std::time::Duration;

use super::given::{given, required};
use super::jwt::{RawJwtAuth, jwt};
use super::named::RuleKind;
use super::told::told;
use crate::config::error::{Wrong, quoted};
use crate::config::files::fence::PathUse;
use crate::config::origin::{Field, Written};
use crate::config::raw::bounds::{HOUR, MILLISECOND};
use crate::config::raw::group::{items, there_already};
use crate::config::raw::health::probe_path;
use crate::config::raw::reader::{Reader, found, is_off};
use crate::config::raw::shape;
use crate::config::raw::vocabulary::words::name;
use crate::config::yaml::{Entry, Typed};

/// The rules at the top level.
pub(in crate::config) const AUTH: RuleKind = RuleKind {
    key: "auth",
    one: "auth rule",
    form: "`auth: {staff: {basic: {users_file: users.htpasswd}}}`",
};

/// How clients may show who they are.
const WAYS: &[&str] = &["basic", "jwt", "forward"];
const WAYS_FORM: &str =
    "`basic: {users_file: users.htpasswd}`, `jwt: {jwks_file: keys.json}` or `forward: {target: sso}`";
const USES_FORM: &str = "the name of one of `auth`, or `off`";
const FILE_FORM: &str = "a file as `htpasswd -B` writes it";
const REALM_FORM: &str = "1 to 128 characters of ASCII, without quotes and backslashes";
const COPY_FORM: &str = "the name of a header such as `X-User`, or a list of them";

/// A rule as written.
#[derive(Debug)]
pub(in crate::config) enum RawAuth {
    /// `basic`.
    Basic(RawBasicAuth),
    /// `forward`.
    Forward(RawForwardAuth),
    /// `jwt`.
    Jwt(Box<RawJwtAuth>),
}

/// `basic`.
#[derive(Debug)]
pub(in crate::config) struct RawBasicAuth {
    pub(in crate::config) users_file: Written<PathBuf>,
    pub(in crate::config) realm: Option<Written<String>>,
}

/// `forward`.
#[derive(Debug)]
pub(in crate::config) struct RawForwardAuth {
    pub(in crate::config) target: Written<String>,
    pub(in crate::config) path: Option<Written<String>>,
    pub(in crate::config) copy_headers: Option<Written<Vec<String>>>,
    pub(in crate::config) timeout: Option<Written<Duration>>,
}

/// Walks what stands behind a name in `auth`.
pub(in crate::config::raw) fn rule(entry: &Entry, reader: &mut Reader<'_>) -> Option<RawAuth> {
    let title = format!("the auth rule {}", quoted(&entry.key));
    let section = reader.section(&title, &entry.node, &shape::AUTH)?;
    let all: Vec<&Entry> = WAYS.iter().filter_map(|key| section.find(key)).collect();
    match all[..] {
        [one] if one.key == "basic" => basic(one, reader).map(RawAuth::Basic),
        [one] if one.key == "jwt" => jwt(one, reader).map(|jwt| RawAuth::Jwt(Box::new(jwt))),
        [one] => forward(one, reader).map(RawAuth::Forward),
        [] => {
            if !WAYS.iter().any(|key| section.is_misspelt(key)) {
                let problem = reader.report.spot(
                    &reader.key_spot(entry),
                    format!("{title} says nothing of how clients show who they are"),
                );
                problem.expected(WAYS_FORM);
            }
            None
        }
        [first, second, ..] => {
            let message = format!("`{}` and `{}` exclude each other", first.key, second.key);
            let problem = reader.report.at(second.key_place.max(first.key_place), message);
            problem.note("keep one of them; a route has one way in");
            None
        }
    }
}

/// Walks `auth` of a listener or a route; `None` inside: `off`.
pub(in crate::config::raw) fn uses(entry: &Entry, reader: &mut Reader<'_>) -> Field<Option<String>> {
    if is_off(&entry.node) {
        return Field::Given(Written::new(None, reader.spot(entry)));
    }
    let read = reader.word(entry, USES_FORM, name);
    Field::read(read.map(|read| Written::new(Some(read.value), read.spot)))
}

fn basic(entry: &Entry, reader: &mut Reader<'_>) -> Option<RawBasicAuth> {
    let section = reader.section("`basic`", &entry.node, &shape::BASIC)?;
    let realm = given(section.find("realm"), reader, |entry, reader| reader.word(entry, REALM_FORM, realm));
    let file = required(&section, entry, "users_file", "`users_file: users.htpasswd`", reader)?;
    let file = reader.word(file, FILE_FORM, |text| {
        if text.is_empty() { Err(Wrong::new("is empty", FILE_FORM)) } else { Ok(text.to_owned()) }
    })?;
    let path = reader.read_path(&file.value, PathUse::Users, &file.spot);
    Some(RawBasicAuth { users_file: Written::new(path, file.spot), realm: realm? })
}

fn forward(entry: &Entry, reader: &mut Reader<'_>) -> Option<RawForwardAuth> {
    let section = reader.section("`forward`", &entry.node, &shape::FORWARD)?;
    let path = given(section.find("path"), reader, |entry, reader| {
        reader.parsed(entry, "a path such as `/verify`", probe_path)
    });
    let copy_headers = given(section.find("copy_headers"), reader, headers);
    let timeout =
        given(section.find("timeout"), reader, |entry, reader| reader.duration(entry, MILLISECOND..=HOUR));
    let target = required(&section, entry, "target", "`target: sso`, with the name of a target", reader)?;
    let target = reader.word(target, "the name of a target", name)?;
    Some(RawForwardAuth { target, path: path?, copy_headers: copy_headers?, timeout: timeout? })
}

fn realm(text: &str) -> Result<String, Wrong> {
    let is_plain = |c: char| matches!(c, ' '..='~') && !matches!(c, '"' | '\\');
    if (1..=128).contains(&text.len()) && text.chars().all(is_plain) {
        return Ok(text.to_owned());
    }
    Err(Wrong::new(format!("is {}", quoted(text)), REALM_FORM))
}

/// Names of lines by which a backend is told who a client is.
fn headers(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Vec<String>>> {
    const ITEM: &str = "an entry of `copy_headers`";
    let items = items(entry, reader, COPY_FORM)?;
    let mut names: Vec<String> = Vec::with_capacity(items.len());
    for item in items {
        let read = match (item.typed(), item.text()) {
            (Typed::Text(_), Some(text)) => told(text),
            _ => Err(Wrong::new(found(item), COPY_FORM)),
        };
        match read {
            Ok(name) if names.iter().any(|other| other.eq_ignore_ascii_case(&name)) => {
                let spot = reader.spot_of_use(item);
                reader.report.wrong(&spot, ITEM, there_already(item, &name));
            }
            Ok(name) => names.push(name),
            Err(wrong) => reader.report.wrong(&reader.spot_of(item), ITEM, wrong),
        }
    }
    (names.len() == items.len()).then(|| Written::new(names, reader.spot(entry)))
}
