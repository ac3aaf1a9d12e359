//! `compress`: which answers of a route are compressed, and how.

use crate::config::error::{Wrong, quoted};
use crate::config::model::cache::Coding;
use crate::config::origin::{Field, Written};
use crate::config::raw::bounds::SHORTEST_MAX;
use crate::config::raw::group::{items, there_already};
use crate::config::raw::kind::Shape;
use crate::config::raw::reader::{Reader, choose, found, is_off, is_on, subject};
use crate::config::yaml::{Entry, Typed};

/// `compress` when it is not `off`.
#[derive(Debug, Default)]
pub(in crate::config) struct RawCompress {
    /// The preferred one first, each with its level.
    pub(in crate::config) codings: Option<Written<Vec<(Coding, u32)>>>,
    pub(in crate::config) at_least: Option<Written<u64>>,
    pub(in crate::config) cookies: Option<Written<bool>>,
}

const FORM: &str = "`on`, `off`, or codings such as `[zstd, br, gzip]`";
const CODINGS_FORM: &str = "codings such as `[zstd, br, gzip]`, the preferred one first";

/// Walks `compress` with the keys that these shapes have: its own, and those of its `codings`. `None` inside: `off`.
pub(in crate::config::raw) fn walk(
    entry: &Entry,
    [whole, codings]: [&Shape; 2],
    reader: &mut Reader<'_>,
) -> Field<Option<RawCompress>> {
    let spot = reader.key_spot(entry);
    if is_off(&entry.node) {
        return Field::Given(Written::new(None, reader.spot(entry)));
    }
    if is_on(&entry.node) {
        return Field::Given(Written::new(Some(RawCompress::default()), spot));
    }
    if !matches!(entry.node.typed(), Typed::Map(_) | Typed::Null) {
        let read = listed(entry, FORM, reader);
        let compress = |codings| RawCompress { codings: Some(codings), ..RawCompress::default() };
        return Field::read(read.map(|codings| Written::new(Some(compress(codings)), spot)));
    }
    let Some(section) = reader.section(&subject(&entry.key), &entry.node, whole) else {
        return Field::Faulty;
    };
    let at_least = section.find("at_least");
    let compress = RawCompress {
        codings: section.find("codings").and_then(|entry| self::codings(entry, codings, reader)),
        at_least: at_least.and_then(|entry| reader.size(entry, 1..=SHORTEST_MAX, false)),
        cookies: section.find("cookies").and_then(|entry| reader.switch(entry)),
    };
    Field::Given(Written::new(Some(compress), spot))
}

/// Their names, or a mapping from them to levels.
fn codings(entry: &Entry, shape: &Shape, reader: &mut Reader<'_>) -> Option<Written<Vec<(Coding, u32)>>> {
    let Typed::Map(_) = entry.node.typed() else { return listed(entry, CODINGS_FORM, reader) };
    let section = reader.section(&subject(&entry.key), &entry.node, shape)?;
    if section.entries().is_empty() {
        let wrong =
            Wrong::new("is an empty mapping", "codings with their levels, such as `{zstd: 3, gzip: 6}`");
        reader.report.wrong(&reader.spot(entry), &subject(&entry.key), wrong);
        return None;
    }
    let mut all = Vec::with_capacity(section.entries().len());
    for entry in section.entries() {
        // An unknown one has been reported.
        let Some((_, coding)) = Coding::NAMED.iter().find(|(name, _)| *name == entry.key) else { continue };
        all.extend(reader.whole(entry, coding.levels()).map(|level| (*coding, level.value)));
    }
    (all.len() == section.entries().len()).then(|| Written::new(all, reader.key_spot(entry)))
}

/// One name or several.
fn listed(entry: &Entry, expected: &str, reader: &mut Reader<'_>) -> Option<Written<Vec<(Coding, u32)>>> {
    let items = items(entry, reader, expected)?;
    let mut all: Vec<(Coding, u32)> = Vec::with_capacity(items.len());
    for item in items {
        let read = match (item.typed(), item.text()) {
            (Typed::Text(_), Some(text)) => coding(text, expected),
            _ => Err(Wrong::new(found(item), expected)),
        };
        let (spot, wrong) = match read {
            Ok(coding) if all.iter().any(|(other, _)| *other == coding) => {
                (reader.spot_of_use(item), there_already(item, coding.token()))
            }
            Ok(coding) => {
                all.push((coding, coding.usual_level()));
                continue;
            }
            Err(wrong) if item.is_null() => (reader.spot(entry), wrong),
            Err(wrong) => (reader.spot_of(item), wrong),
        };
        reader.report.wrong(&spot, &subject(&entry.key), wrong);
    }
    (all.len() == items.len()).then(|| Written::new(all, reader.key_spot(entry)))
}

fn coding(text: &str, expected: &str) -> Result<Coding, Wrong> {
    choose(text, Coding::NAMED).map_err(|wrong| {
        let wrong = Wrong { expected: Some(expected.to_owned()), ..wrong };
        match text.to_lowercase().as_str() {
            "brotli" => wrong.instead("br"),
            "gz" | "x-gzip" => wrong.instead("gzip"),
            "zst" | "zstandard" => wrong.instead("zstd"),
            "deflate" => Wrong::new(format!("is {}, which clients read in two ways", quoted(text)), expected)
                .instead("gzip"),
            _ => wrong,
        }
    })
}
