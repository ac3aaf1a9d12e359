//! What becomes of a route's requests where they do not all go to one target: `split`, `redirect`, `respond`.

use std::path::PathBuf;

use super::headers::{EditedHead, lines};
use super::texts::{odd_part, start_of, text};
use crate::config::error::{Wrong, quoted};
use crate::config::files::fence::PathUse;
use crate::config::model::HashKey;
use crate::config::model::route::Redirect;
use crate::config::model::text::{Text, TextPiece, TextPlace, Variable};
use crate::config::origin::Written;
use crate::config::raw::balance::hash_key;
use crate::config::raw::bounds::SHARE_MAX;
use crate::config::raw::reader::Reader;
use crate::config::raw::shape;
use crate::config::raw::vocabulary::words::{is_token, name};
use crate::config::yaml::{Entry, Typed};

/// `split`.
#[derive(Debug)]
pub(in crate::config) struct RawSplit {
    /// Targets with their weights, in the order of the file.
    pub(in crate::config) targets: Vec<(Written<String>, Written<u32>)>,
    /// `None`: chance.
    pub(in crate::config) by: Option<Written<HashKey>>,
}

/// `respond`.
#[derive(Debug)]
pub(in crate::config) struct RawRespond {
    pub(in crate::config) status: Option<Written<u32>>,
    pub(in crate::config) body: Option<Written<String>>,
    pub(in crate::config) body_file: Option<Written<PathBuf>>,
    pub(in crate::config) content_type: Option<Written<String>>,
    pub(in crate::config) headers: Vec<(String, Written<Text>)>,
}

/// Walks `split`.
pub(super) fn split(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<RawSplit>> {
    const FORM: &str = "a mapping from targets to weights such as `{stable: 95, canary: 5}`";
    let spot = reader.key_spot(entry);
    let section = reader.section("`split`", &entry.node, &shape::SPLIT)?;
    let by = optional(section.find("by").map(|entry| hash_key(entry, &shape::SPLIT_BY, reader)));
    let Some(targets) = section.find("targets") else {
        if !section.is_misspelt("targets") {
            reader.report.spot(&spot, "`split` has no `targets`").expected(FORM);
        }
        return None;
    };
    let entries = match targets.node.typed() {
        Typed::Map(entries) if !entries.is_empty() => entries,
        _ => {
            reader.refuse(targets, FORM);
            return None;
        }
    };
    let mut sides = Vec::with_capacity(entries.len());
    for one in entries {
        let at = reader.key_spot(one);
        if let Err(wrong) = name(&one.key) {
            reader.report.wrong(&at, "the name of a target", wrong);
            continue;
        }
        if let Some(weight) = weight(one, reader) {
            sides.push((Written::new(one.key.clone(), at), weight));
        }
    }
    if sides.len() < entries.len() || section.is_misspelt("by") {
        return None;
    }
    if sides.iter().all(|(_, weight)| weight.value == 0) {
        let problem = reader.report.spot(&spot, "all targets of `split` have the weight 0");
        problem.expected("at least one with a weight from 1");
        return None;
    }
    Some(Written::new(RawSplit { targets: sides, by: by? }, spot))
}

/// A weight, which is not a share of a hundred.
fn weight(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<u32>> {
    let percent = entry.node.text().and_then(|text| text.trim().strip_suffix('%'));
    if let (Typed::Text(_), Some(number)) = (entry.node.typed(), percent)
        && number.parse::<u32>().is_ok_and(|number| number <= SHARE_MAX)
    {
        let wrong = Wrong::new(
            "is a percentage, and weights are numbers",
            format!("a whole number from 0 to {SHARE_MAX}"),
        );
        reader.report.wrong(&reader.spot(entry), &quoted(&entry.key), wrong.instead(number.to_owned()));
        return None;
    }
    reader.whole(entry, 0..=SHARE_MAX)
}

/// Walks `redirect`. `groups`: of the `path_regex` of its route.
pub(super) fn redirect(
    entry: &Entry,
    groups: Option<usize>,
    reader: &mut Reader<'_>,
) -> Option<(Written<Redirect>, Option<Written<u32>>)> {
    let spot = reader.key_spot(entry);
    if let (Typed::Text(_), Some(to)) = (entry.node.typed(), entry.node.text()) {
        let wrong = Wrong::new(format!("is the text {}", quoted(to)), "a mapping with `to` and `status`");
        let wrong = wrong.note(format!("write `redirect: {{to: \"{to}\"}}`"));
        reader.report.wrong(&reader.spot(entry), "`redirect`", wrong);
        return None;
    }
    let section = reader.section("`redirect`", &entry.node, &shape::REDIRECT)?;
    let status = optional(section.find("status").map(|entry| redirect_status(entry, reader)));
    let Some(to) = section.find("to") else {
        if !section.is_misspelt("to") {
            let problem = reader.report.spot(&spot, "`redirect` does not say where `to`");
            problem.expected(TO_FORM);
        }
        return None;
    };
    let read = text(&to.node, "`to`", TO_FORM, TextPlace::OURS.with_groups(groups), reader)?;
    if let Err(wrong) = location(&read.value) {
        reader.report.wrong(&read.spot, "`to`", wrong);
        return None;
    }
    if section.is_misspelt("status") {
        return None;
    }
    let status = status?;
    let code = status.as_ref().and_then(|status| u16::try_from(status.value).ok());
    let redirect = Redirect { to: read.value, status: code.unwrap_or(308) };
    Some((Written::new(redirect, read.spot), status))
}

const TO_FORM: &str = "a URL such as `https://{hostname}{path}`, or a path such as `/new`";

fn redirect_status(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<u32>> {
    let read = reader.whole(entry, 301..=308)?;
    if matches!(read.value, 301..=303 | 307 | 308) {
        return Some(read);
    }
    let wrong =
        Wrong::new(format!("is {}, which sends nobody elsewhere", read.value), "301, 302, 303, 307 or 308");
    reader.report.wrong(&read.spot, "`status`", wrong);
    None
}

/// Whether a text leads to one place, whatever is filled in: what a client says must not choose the host.
fn location(text: &Text) -> Result<(), Wrong> {
    let start = start_of(text);
    let is_scheme = matches!(
        text.pieces(),
        [TextPiece::Value(Variable::Scheme), TextPiece::Plain(rest), ..] if rest.starts_with("://")
    );
    let has_scheme = start.split_once("://").is_some_and(|(scheme, _)| {
        let lower = scheme.to_ascii_lowercase();
        lower == "http" || lower == "https"
    });
    if !(is_scheme || has_scheme || start.starts_with('/')) {
        let wrong =
            Wrong::new(format!("is {}, which is neither a URL nor a path", quoted(text.source())), TO_FORM);
        return Err(match text.pieces().first() {
            Some(TextPiece::Value(Variable::Host | Variable::Hostname)) => {
                wrong.note("the host stands behind `https://` or `{scheme}://`")
            }
            Some(TextPiece::Value(Variable::Path | Variable::PathOnly)) => wrong.note(
                "a path alone may begin with `//` and name another host; write `{scheme}://{host}{path}`",
            ),
            _ => wrong,
        });
    }
    if start.starts_with("//") {
        return Err(Wrong::new("begins with `//`, which is a host without a scheme", TO_FORM));
    }
    match odd_part(text, |c| !c.is_ascii_graphic() || matches!(c, '\\' | '"' | '<' | '>' | '`')) {
        Some(odd) => Err(Wrong::new(
            format!("has {}, which no URL has as it is", quoted(&odd.to_string())),
            "such characters as escapes: `%20` is a blank",
        )),
        None => Ok(()),
    }
}

/// Walks `respond`. `groups`: of the `path_regex` of its route.
pub(super) fn respond(
    entry: &Entry,
    groups: Option<usize>,
    reader: &mut Reader<'_>,
) -> Option<Written<RawRespond>> {
    const BODY_FORM: &str = "the text of the answer";
    const FILE_FORM: &str = "the path of a file";
    let spot = reader.key_spot(entry);
    let section = reader.section("`respond`", &entry.node, &shape::RESPOND)?;
    let filled = |text: &str, form: &str| {
        if text.is_empty() { Err(Wrong::new("is empty", form)) } else { Ok(text.to_owned()) }
    };
    let status = optional(section.find("status").map(|entry| reader.whole(entry, 200..=599)));
    let (inline, file) = (section.find("body"), section.find("body_file"));
    let body = optional(inline.map(|entry| reader.word(entry, BODY_FORM, |text| filled(text, BODY_FORM))));
    let named = optional(file.map(|entry| {
        let read = reader.word(entry, FILE_FORM, |text| filled(text, FILE_FORM))?;
        Some(Written::new(reader.read_path(&read.value, PathUse::Body, &read.spot), read.spot))
    }));
    let content_type = section.find("content_type");
    let content_type = optional(content_type.map(|entry| reader.word(entry, TYPE_FORM, media_type)));
    let headers = match section.find("headers") {
        Some(entry) => lines(entry, EditedHead::Ours, TextPlace::OURS.with_groups(groups), true, reader),
        None => Some(Vec::new()),
    };
    if let (Some(body), Some(file)) = (inline, file) {
        let place = body.key_place.max(file.key_place);
        reader.report.at(place, "`body` and `body_file` exclude each other").note("keep one of them");
        return None;
    }
    let keys = ["status", "body", "body_file", "content_type", "headers"];
    if keys.iter().any(|key| section.is_misspelt(key)) {
        return None;
    }
    let respond = RawRespond {
        status: status?,
        body: body?,
        body_file: named?,
        content_type: content_type?,
        headers: headers?,
    };
    Some(Written::new(respond, spot))
}

/// Nothing where a key is not there; nothing at all where its value was refused.
fn optional<T>(read: Option<Option<T>>) -> Option<Option<T>> {
    match read {
        None => Some(None),
        Some(Some(value)) => Some(Some(value)),
        Some(None) => None,
    }
}

const TYPE_FORM: &str = "a type such as `text/html` or `application/json; charset=utf-8`";

fn media_type(text: &str) -> Result<String, Wrong> {
    let essence = text.split(';').next().unwrap_or_default().trim();
    let is_type = essence.split_once('/').is_some_and(|(kind, rest)| is_token(kind) && is_token(rest));
    let fits =
        text.len() <= 200 && text.trim() == text && text.bytes().all(|b| b == b' ' || b.is_ascii_graphic());
    if is_type && fits {
        Ok(text.to_owned())
    } else {
        Err(Wrong::new(format!("is {}, which is no type of a body", quoted(text)), TYPE_FORM))
    }
}
