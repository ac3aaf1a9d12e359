//! Statuses of answers, as several keys list them.

use std::ops::RangeInclusive;

use super::reader::{Reader, found};
use crate::config::error::Wrong;
use crate::config::origin::Written;
use crate::config::yaml::{Entry, Node, Typed};

/// A status, a range of them, or a list of both, all of them in `bounds`.
pub(super) fn statuses(
    entry: &Entry,
    reader: &mut Reader<'_>,
    bounds: RangeInclusive<u16>,
) -> Option<Written<Vec<RangeInclusive<u16>>>> {
    let examples = if bounds.contains(&200) { ("200", "200-399") } else { ("503", "502-504") };
    let expected = format!(
        "a status such as `{}`, a range such as `{}`, or a list of them ({} to {})",
        examples.0,
        examples.1,
        bounds.start(),
        bounds.end()
    );
    let Some(items) = items(entry) else {
        reader.refuse(entry, expected);
        return None;
    };
    let mut ranges = Vec::with_capacity(items.len());
    for item in items {
        match item.text().and_then(|text| range(text, &bounds)) {
            Some(range) => ranges.push(range),
            None => {
                let hint = item.text().and_then(|text| meant(text, &bounds));
                refuse(entry, item, items.len(), reader, &expected, hint);
            }
        }
    }
    (ranges.len() == items.len()).then(|| Written::new(ranges, reader.spot(entry)))
}

/// What a key has that takes one value or a list with at least one; `None` when it has neither.
pub(super) fn items(entry: &Entry) -> Option<&[Node]> {
    let items = match entry.node.typed() {
        Typed::List(items) => items,
        Typed::Integer(_) | Typed::Text(_) => std::slice::from_ref(&entry.node),
        Typed::Null | Typed::Bool(_) | Typed::Float(_) | Typed::Map(_) => &[],
    };
    (!items.is_empty()).then_some(items)
}

/// Reports an item that is none of what its key takes; `meant` is what to write instead.
pub(super) fn refuse(
    entry: &Entry,
    item: &Node,
    of: usize,
    reader: &mut Reader<'_>,
    expected: &str,
    meant: Option<String>,
) {
    let spot = reader.spot_of(item);
    let name = if of > 1 { format!("an entry of `{}`", entry.key) } else { format!("`{}`", entry.key) };
    let wrong = Wrong::new(found(item), expected);
    let wrong = match meant {
        Some(meant) => wrong.instead(meant),
        None => wrong,
    };
    reader.report.wrong(&spot, &name, wrong);
}

/// Reads `503` and `502-504`.
pub(super) fn range(text: &str, bounds: &RangeInclusive<u16>) -> Option<RangeInclusive<u16>> {
    let status = |text: &str| {
        let text = text.trim();
        text.parse::<u16>().ok().filter(|status| text.len() == 3 && bounds.contains(status))
    };
    match text.split_once('-') {
        Some((first, last)) => Some(status(first)?..=status(last)?).filter(|range| !range.is_empty()),
        None => status(text).map(|status| status..=status),
    }
}

/// What other load balancers' words for statuses are here: nginx's `http_503`, Envoy's `5xx` and `gateway-error`.
pub(super) fn meant(word: &str, bounds: &RangeInclusive<u16>) -> Option<String> {
    let word = word.to_lowercase().replace('_', "-");
    let statuses = match (word.strip_prefix("http-"), word.strip_suffix("xx")) {
        (Some(status), _) => status.to_owned(),
        (_, Some(class)) => format!("{class}00-{class}99"),
        _ if word == "gateway-error" => "502-504".to_owned(),
        _ => return None,
    };
    range(&statuses, bounds).map(|_| statuses)
}
