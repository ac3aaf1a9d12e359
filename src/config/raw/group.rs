//! Values that are lists or mappings.

use super::kind::Shape;
use super::reader::{Reader, Section, found, is_off, subject};
use super::vocabulary::words::is_token;
use crate::config::edit::Fix;
use crate::config::error::{Wrong, quoted};
use crate::config::origin::Written;
use crate::config::yaml::{Entry, Node, Typed};

/// The items of a list; an empty value is an empty list.
pub(super) fn list<'n>(entry: &'n Entry, reader: &mut Reader<'_>, expected: &str) -> Option<&'n [Node]> {
    match entry.node.typed() {
        Typed::List(items) => Some(items),
        Typed::Null => Some(&[]),
        Typed::Bool(_) | Typed::Integer(_) | Typed::Float(_) | Typed::Text(_) | Typed::Map(_) => {
            reader.refuse(entry, expected);
            None
        }
    }
}

/// The items of a key that takes one or several, at least one.
pub(super) fn items<'n>(entry: &'n Entry, reader: &mut Reader<'_>, expected: &str) -> Option<&'n [Node]> {
    match entry.node.typed() {
        Typed::List([]) => {
            let message = format!("{} is an empty list", subject(&entry.key));
            reader.report.at(entry.key_place, message).expected(expected);
            None
        }
        Typed::List(items) => Some(items),
        _ => Some(std::slice::from_ref(&entry.node)),
    }
}

/// What is wrong with the second of two equal items, which reads `text`.
pub(super) fn there_already(item: &Node, text: &str) -> Wrong {
    Wrong::bare(format!("is {}, which is there already", quoted(text)))
        .hint_by("remove it", Fix::RemoveItem(item.used_at()))
}

/// The mapping behind a key that also takes `off`: a value of `None`. `hint` is for whoever wrote neither.
pub(super) fn section_or_off<'n>(
    entry: &'n Entry,
    reader: &mut Reader<'_>,
    shape: &Shape,
    expected: &str,
    hint: Option<(String, Fix)>,
) -> Option<Written<Option<Section<'n>>>> {
    if is_off(&entry.node) {
        return Some(Written::new(None, reader.spot(entry)));
    }
    if !matches!(entry.node.typed(), Typed::Map(_) | Typed::Null) {
        let (spot, wrong) = (reader.spot(entry), Wrong::new(found(&entry.node), expected));
        let wrong = match hint {
            Some((words, fix)) => wrong.hint_by(words, fix),
            None => wrong,
        };
        reader.report.wrong(&spot, &subject(&entry.key), wrong);
        return None;
    }
    let section = reader.section(&subject(&entry.key), &entry.node, shape)?;
    Some(Written::new(Some(section), reader.key_spot(entry)))
}

/// Protocols that clients may upgrade to.
pub(super) fn upgrade(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Vec<String>>> {
    if is_off(&entry.node) {
        return Some(Written::new(Vec::new(), reader.spot(entry)));
    }
    let items = list(entry, reader, "`off` or a list of protocols such as `[websocket]`")?;
    let mut protocols = Vec::with_capacity(items.len());
    for item in items {
        let text = item.text().unwrap_or_default().to_ascii_lowercase();
        // RFC 9110 §7.8: a protocol name is a token, perhaps with a version after a slash.
        let wrong = if !text.split('/').all(is_token) || text.matches('/').count() > 1 {
            Wrong::new(found(item), "the name of a protocol such as `websocket`")
        } else if text == "h2c" {
            Wrong::bare("is `h2c`, which is not supported: such a request is served over HTTP/1.1")
        } else if protocols.contains(&text) {
            let spot = reader.spot_of_use(item);
            reader.report.wrong(&spot, "an entry of `upgrade`", there_already(item, &text));
            continue;
        } else {
            protocols.push(text);
            continue;
        };
        let spot = reader.spot_of(item);
        reader.report.wrong(&spot, "an entry of `upgrade`", wrong);
    }
    Some(Written::new(protocols, reader.spot(entry)))
}
