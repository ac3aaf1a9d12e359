//! `access_lists`, and `access` of listeners and routes: who may come in by address.

use std::collections::HashSet;
use std::path::PathBuf;

use ipnet::IpNet;

use super::given::given;
use super::named::{self, RuleKind};
use crate::config::edit::Fix;
use crate::config::error::{Wrong, quoted};
use crate::config::files::fence::PathUse;
use crate::config::origin::{Field, Spot, Written};
use crate::config::raw::address;
use crate::config::raw::group::{items, there_already};
use crate::config::raw::kind::Shape;
use crate::config::raw::reader::{Reader, Section, found, subject};
use crate::config::raw::shape;
use crate::config::raw::vocabulary::words::name;
use crate::config::yaml::{Entry, Node, Typed};

/// The lists at the top level.
pub(in crate::config) const ACCESS_LISTS: RuleKind = RuleKind {
    key: "access_lists",
    one: "access list",
    form: "`access_lists: {offices: {allow: [10.0.0.0/8]}}`",
};

const STATUS_FORM: &str = "a status from 400 to 599, or `drop`";
const NETWORKS_FORM: &str = "an address or a network, or a list of them";
const LIST_FORM: &str =
    "`allow: 10.0.0.0/8`, `deny: 192.0.2.7`, or a file of them (`allow_file`, `deny_file`)";
const FILE_FORM: &str = "a file with an address or a network in each line";
const ACCESS_FORM: &str =
    "the name of one of `access_lists`, `{allow: […]}` or `{deny: […]}`, or a list of those";

/// A list as written.
#[derive(Debug)]
pub(in crate::config) struct RawAccessList {
    /// Where it stands.
    pub(in crate::config) spot: Spot,
    pub(in crate::config) allow: Option<Written<Vec<IpNet>>>,
    pub(in crate::config) deny: Option<Written<Vec<IpNet>>>,
    pub(in crate::config) allow_file: Option<Written<PathBuf>>,
    pub(in crate::config) deny_file: Option<Written<PathBuf>>,
    /// A value of `None`: `drop`.
    pub(in crate::config) status: Option<Written<Option<u16>>>,
}

/// One of those that `access` has.
#[derive(Debug)]
pub(in crate::config) enum RawAccess {
    /// The list of this name.
    Named(Written<String>),
    /// This one.
    Inline(Box<RawAccessList>),
}

/// Walks what stands behind a name in `access_lists`.
pub(in crate::config::raw) fn list(entry: &Entry, reader: &mut Reader<'_>) -> Option<RawAccessList> {
    let spot = reader.key_spot(entry);
    let title = format!("the access list {}", quoted(&entry.key));
    let section = reader.section(&title, &entry.node, &shape::ACCESS_LIST)?;
    of_section(&section, spot, (&title, "remove it where everybody may come in"), reader)
}

/// Walks `access`.
pub(in crate::config::raw) fn walk(
    entry: &Entry,
    shape: &Shape,
    reader: &mut Reader<'_>,
) -> Field<Vec<RawAccess>> {
    let spot = reader.key_spot(entry);
    let read = named::uses(entry, ACCESS_FORM, reader, list_name, RawAccess::Named, |item, reader| {
        inline(entry, item, shape, reader).map(|list| RawAccess::Inline(Box::new(list)))
    });
    Field::read(read.map(|all| Written::new(all, spot)))
}

/// The name of a list; an address is none.
fn list_name(text: &str) -> Result<String, Wrong> {
    if address::network(text).is_err() {
        return name(text);
    }
    let wrong = Wrong::new(format!("is {}, which is no name of a list", quoted(text)), ACCESS_FORM);
    Err(wrong.note(format!("write `{{deny: {text}}}` or `{{allow: {text}}}`")))
}

/// A list that stands where it holds.
fn inline(entry: &Entry, item: &Node, shape: &Shape, reader: &mut Reader<'_>) -> Option<RawAccessList> {
    let title = subject(&entry.key);
    if !matches!(item.typed(), Typed::Map(_)) {
        let wrong = Wrong::new(found(item), ACCESS_FORM);
        let wrong = match item.typed() {
            // No level can open what another one has closed.
            Typed::Bool(false) => wrong.hint_by("remove it", Fix::Remove(entry.key_place)),
            _ => wrong,
        };
        reader.report.wrong(&reader.spot_of(item), &title, wrong);
        return None;
    }
    let is_alone = std::ptr::eq(item, &entry.node);
    let spot = if is_alone { reader.key_spot(entry) } else { reader.spot_of(item) };
    let section = reader.section(&title, item, shape)?;
    of_section(&section, spot, (&title, "remove `access` where everybody may come in"), reader)
}

/// `cure`: what to do with a list that says nothing.
fn of_section(
    section: &Section<'_>,
    spot: Spot,
    (title, cure): (&str, &str),
    reader: &mut Reader<'_>,
) -> Option<RawAccessList> {
    let keys = ["allow", "deny", "allow_file", "deny_file"];
    let [allow, deny, allow_file, deny_file] = keys.map(|key| section.find(key));
    let is_empty = [allow, deny, allow_file, deny_file].iter().all(Option::is_none);
    let is_misspelt = keys.iter().any(|key| section.is_misspelt(key));
    let allow = given(allow, reader, networks);
    let deny = given(deny, reader, networks);
    let allow_file = given(allow_file, reader, file);
    let deny_file = given(deny_file, reader, file);
    let status = given(section.find("status"), reader, |entry, reader| {
        reader.parsed_with_numbers(entry, STATUS_FORM, status)
    });
    if is_empty && !is_misspelt {
        let message = format!("{title} has neither `allow` nor `deny`: it would let everybody in");
        reader.report.spot(&spot, message).expected(LIST_FORM).note(cure);
    }
    if is_misspelt || is_empty {
        return None;
    }
    Some(RawAccessList {
        spot,
        allow: allow?,
        deny: deny?,
        allow_file: allow_file?,
        deny_file: deny_file?,
        status: status?,
    })
}

fn file(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<PathBuf>> {
    let written = reader.parsed(entry, FILE_FORM, |text| {
        if text.is_empty() { Err(Wrong::new("is empty", FILE_FORM)) } else { Ok(text.to_owned()) }
    })?;
    let path = reader.read_path(&written.value, PathUse::Networks, &written.spot);
    Some(Written::new(path, written.spot))
}

/// Networks, each once.
fn networks(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Vec<IpNet>>> {
    let items = items(entry, reader, NETWORKS_FORM)?;
    let (mut all, mut known) = (Vec::with_capacity(items.len()), HashSet::new());
    for item in items {
        let read = match (item.typed(), item.text()) {
            (Typed::Text(_) | Typed::Integer(_) | Typed::Float(_), Some(text)) => {
                address::network(text).map(|network| (network, text))
            }
            _ => Err(Wrong::new(found(item), NETWORKS_FORM)),
        };
        match read {
            Ok((network, text)) if !known.insert(network) => {
                let spot = reader.spot_of_use(item);
                reader.report.wrong(&spot, &subject(&entry.key), there_already(item, text));
            }
            Ok((network, _)) => all.push(network),
            Err(wrong) => reader.report.wrong(&reader.spot_of(item), &subject(&entry.key), wrong),
        }
    }
    (all.len() == items.len()).then(|| Written::new(all, reader.spot(entry)))
}

/// What those get who are not let in.
fn status(text: &str) -> Result<Option<u16>, Wrong> {
    if text.eq_ignore_ascii_case("drop") {
        return Ok(None);
    }
    let status = text.parse().ok().filter(|status| (400..=599).contains(status));
    status.map(Some).ok_or_else(|| Wrong::new(format!("is {}", quoted(text)), STATUS_FORM))
}
