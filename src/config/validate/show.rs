//! Values in the form that they have in a file.

use std::ops::RangeInclusive;

/// The name that a value has in a file.
pub(super) fn name_of<T: PartialEq>(table: &[(&'static str, T)], value: T) -> &'static str {
    table.iter().find(|(_, other)| *other == value).map_or("?", |(name, _)| name)
}

/// Statuses as they would be written.
pub(super) fn show_statuses(ranges: &[RangeInclusive<u16>]) -> String {
    let shown: Vec<String> = ranges
        .iter()
        .map(|range| {
            if range.start() == range.end() {
                range.start().to_string()
            } else {
                format!("{}-{}", range.start(), range.end())
            }
        })
        .collect();
    match shown.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}
