//! `cipher_suites` and `groups`: what sessions are made of, by name.

use crate::config::error::Wrong;
use crate::config::origin::Written;
use crate::config::raw::group::{items, there_already};
use crate::config::raw::reader::{Reader, choose, found, subject};
use crate::config::yaml::{Entry, Typed};

/// One of the names of `all`, or several; `aliases`: what other programs call them.
pub(super) fn named<T: Copy + PartialEq>(
    entry: &Entry,
    [all, aliases]: [&'static [(&'static str, T)]; 2],
    example: &str,
    reader: &mut Reader<'_>,
) -> Option<Written<Vec<T>>> {
    let items = items(entry, reader, example)?;
    let mut chosen = Vec::with_capacity(items.len());
    for item in items {
        let read = match (item.typed(), item.text()) {
            (Typed::Text(_), Some(text)) => {
                // Some of the names are in upper case.
                let mut known = all.iter().chain(aliases);
                let known = known.find(|(name, _)| name.eq_ignore_ascii_case(text));
                known.map_or_else(|| choose(text, all), |(_, value)| Ok(*value))
            }
            _ => Err(Wrong::new(found(item), example)),
        };
        match read {
            Ok(value) if chosen.contains(&value) => {
                let wrong = there_already(item, item.text().unwrap_or_default());
                reader.report.wrong(&reader.spot_of_use(item), &subject(&entry.key), wrong);
            }
            Ok(value) => chosen.push(value),
            Err(wrong) => {
                let spot = if item.is_null() { reader.spot(entry) } else { reader.spot_of(item) };
                reader.report.wrong(&spot, &subject(&entry.key), wrong);
            }
        }
    }
    (chosen.len() == items.len()).then(|| Written::new(chosen, reader.key_spot(entry)))
}
