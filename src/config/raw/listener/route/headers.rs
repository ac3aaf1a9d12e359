//! `headers`: what is changed of the header lines of requests and answers.

use super::matches::texts;
use super::texts::text;
use crate::config::error::{Wrong, quoted};
use crate::config::model::route::{HeaderEdit, HeaderEdits};
use crate::config::model::text::{Text, TextPiece, TextPlace};
use crate::config::origin::{Field, Written};
use crate::config::raw::kind::Shape;
use crate::config::raw::reader::Reader;
use crate::config::raw::vocabulary::words::is_token;
use crate::config::yaml::{Entry, Node, Typed};

/// `headers`.
#[derive(Debug, Default)]
pub(in crate::config) struct RawHeaders {
    pub(in crate::config) request: RawEdits,
    pub(in crate::config) response: RawEdits,
}

/// The edits of one direction, in the order in which they are made.
#[derive(Debug, Default)]
pub(in crate::config) struct RawEdits {
    pub(in crate::config) remove: Option<Written<Vec<String>>>,
    pub(in crate::config) set: Vec<(String, Written<Text>)>,
    pub(in crate::config) add: Vec<(String, Written<Text>)>,
}

impl RawHeaders {
    /// All of it, in order.
    pub(in crate::config) fn edits(&self) -> HeaderEdits {
        HeaderEdits { request: self.request.edits(), response: self.response.edits() }
    }
}

impl RawEdits {
    fn edits(&self) -> Vec<HeaderEdit> {
        let remove = self.remove.iter().flat_map(|names| names.value.iter().cloned().map(HeaderEdit::Remove));
        let set = self.set.iter().map(|(name, text)| HeaderEdit::Set(name.clone(), text.value.clone()));
        let add = self.add.iter().map(|(name, text)| HeaderEdit::Add(name.clone(), text.value.clone()));
        remove.chain(set).chain(add).collect()
    }
}

/// Whose lines are edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::config::raw) enum EditedHead {
    Request,
    Response,
    /// That of an answer of our own.
    Ours,
}

/// Walks `headers` with the keys that these shapes have: its own, and those of both directions. `groups`: of the `path_regex`.
pub(in crate::config::raw) fn walk(
    entry: &Entry,
    [whole, request, response]: [&Shape; 3],
    groups: Option<usize>,
    reader: &mut Reader<'_>,
) -> Field<RawHeaders> {
    let spot = reader.key_spot(entry);
    let Some(section) = reader.section("`headers`", &entry.node, whole) else { return Field::Faulty };
    let mut read = |key: &'static str, shape: &Shape, side: EditedHead| match section.find(key) {
        Some(entry) => edits(entry, shape, side, groups, reader),
        None => (!section.is_misspelt(key)).then(RawEdits::default),
    };
    let request = read("request", request, EditedHead::Request);
    let response = read("response", response, EditedHead::Response);
    match (request, response) {
        (Some(request), Some(response)) => Field::Given(Written::new(RawHeaders { request, response }, spot)),
        _ => Field::Faulty,
    }
}

fn edits(
    entry: &Entry,
    shape: &Shape,
    side: EditedHead,
    groups: Option<usize>,
    reader: &mut Reader<'_>,
) -> Option<RawEdits> {
    let section = reader.section(&format!("`{}`", entry.key), &entry.node, shape)?;
    let remove = match section.find("remove") {
        Some(entry) => removed(entry, side, reader).map(Some),
        None => Some(None),
    };
    let place = match side {
        EditedHead::Request => TextPlace::REQUEST,
        EditedHead::Response => TextPlace::ANSWER,
        EditedHead::Ours => TextPlace::OURS,
    };
    let place = place.with_groups(groups);
    let set = section.find("set").map_or(Some(Vec::new()), |entry| lines(entry, side, place, false, reader));
    let add = section.find("add").map_or(Some(Vec::new()), |entry| lines(entry, side, place, true, reader));
    let is_whole = !["remove", "set", "add"].iter().any(|key| section.is_misspelt(key));
    if !is_whole {
        return None;
    }
    Some(RawEdits { remove: remove?, set: set?, add: add? })
}

/// The headers of which all lines go.
fn removed(entry: &Entry, side: EditedHead, reader: &mut Reader<'_>) -> Option<Written<Vec<String>>> {
    let names = texts(Some(entry), "the name of a header such as `Cookie`", reader, |text| {
        header_name(text, side).map(|()| Name(text.to_owned()))
    })?;
    Some(Written::new(names.into_iter().map(|name| name.0).collect(), reader.key_spot(entry)))
}

/// The name of a header, in whatever case.
struct Name(String);

impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

/// Header lines as a mapping from names to values. A name may have several where `has_lists`.
pub(super) fn lines(
    entry: &Entry,
    side: EditedHead,
    place: TextPlace,
    has_lists: bool,
    reader: &mut Reader<'_>,
) -> Option<Vec<(String, Written<Text>)>> {
    let entries = match entry.node.typed() {
        Typed::Map(entries) if !entries.is_empty() => entries,
        _ => {
            reader.refuse(entry, "a mapping from names to values such as `{X-Env: prod}`");
            return None;
        }
    };
    let mut all: Vec<(String, Written<Text>)> = Vec::with_capacity(entries.len());
    let mut is_whole = true;
    for (index, one) in entries.iter().enumerate() {
        let subject = format!("an entry of `{}`", entry.key);
        let read = header_name(&one.key, side);
        let earlier = entries[..index].iter().any(|other| other.key.eq_ignore_ascii_case(&one.key));
        let read = match read {
            Ok(()) if earlier => Err(Wrong::bare(format!(
                "is {}, which is there already, in another spelling: upper and lower case are the same",
                quoted(&one.key)
            ))),
            read => read,
        };
        if let Err(wrong) = read {
            let spot = reader.key_spot(one);
            reader.report.wrong(&spot, &subject, wrong);
            is_whole = false;
            continue;
        }
        let nodes: &[Node] = match one.node.typed() {
            Typed::List(items) if has_lists && !items.is_empty() => items,
            _ => std::slice::from_ref(&one.node),
        };
        for node in nodes {
            match line(node, &one.key, place, reader) {
                Some(text) => all.push((one.key.clone(), text)),
                None => is_whole = false,
            }
        }
    }
    is_whole.then_some(all)
}

/// The value of a header.
fn line(node: &Node, name: &str, place: TextPlace, reader: &mut Reader<'_>) -> Option<Written<Text>> {
    let subject = quoted(name);
    let read = text(node, &subject, "a value; `remove` takes a header away", place, reader)?;
    let is_blank = |c: char| c == ' ';
    let pieces = read.value.pieces();
    let starts = matches!(pieces.first(), Some(TextPiece::Plain(plain)) if plain.starts_with(is_blank));
    let ends = matches!(pieces.last(), Some(TextPiece::Plain(plain)) if plain.ends_with(is_blank));
    if starts || ends {
        let side = if starts { "begins" } else { "ends" };
        let wrong = Wrong::new(format!("{side} with a blank, which nobody who reads it keeps"), "it without");
        reader.report.wrong(&read.spot, &subject, wrong);
        return None;
    }
    Some(read)
}

/// Whether a header of this name may be edited.
fn header_name(name: &str, side: EditedHead) -> Result<(), Wrong> {
    if !is_token(name) {
        let wrong = Wrong::new(
            format!("is {}, which is no name of a header", quoted(name)),
            "letters, digits and `-`",
        );
        return Err(if name.trim_end().ends_with(':') { wrong.note("without the colon") } else { wrong });
    }
    let plain = name.to_ascii_lowercase().replace('_', "-");
    let Some(why) = owned(&plain, side) else { return Ok(()) };
    let alias =
        if name.contains('_') { format!(", which many servers take for `{plain}`") } else { String::new() };
    Err(Wrong::bare(format!("is {}{alias}: no edit may touch it", quoted(name))).note(why))
}

/// Why nobody may edit this header, and what there is instead.
fn owned(name: &str, side: EditedHead) -> Option<&'static str> {
    let why = match name {
        "content-length" | "transfer-encoding" => "evenkeel says itself where a message ends",
        "connection" | "keep-alive" | "proxy-connection" | "te" | "trailer" | "http2-settings" => {
            "it is about one connection, and evenkeel has its own on both sides"
        }
        "upgrade" => "`upgrade` says to which protocols clients may upgrade",
        "proxy-authenticate" | "proxy-authorization" => "it is between a client and its own proxy",
        "via" => "evenkeel says by it that a message came through it (RFC 9110 §7.6.3)",
        "expect" if side == EditedHead::Request => "evenkeel itself tells clients to go on",
        "host" if side == EditedHead::Request => "`host` of the target says what backends get as Host",
        "forwarded" | "x-forwarded-for" | "x-forwarded-proto" | "x-forwarded-host"
            if side == EditedHead::Request =>
        {
            "`forwarded` of the listener says which headers tell backends about clients"
        }
        "x-real-ip" if side == EditedHead::Request => "`x_real_ip` of the listener says whether it is sent",
        "x-request-id" if side == EditedHead::Request => {
            "it is the number of the request, which logs have too"
        }
        "retry-attempt" if side == EditedHead::Request => "evenkeel counts attempts by it",
        "content-type" if side == EditedHead::Ours => "`content_type` beside `headers` is what says it",
        _ => return None,
    };
    Some(why)
}
