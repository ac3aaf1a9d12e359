//! Keys that must be there, and keys that may be absent.

use crate::config::origin::Written;
use crate::config::raw::reader::{Reader, Section};
use crate::config::yaml::Entry;

/// The entry of a key that must be there.
pub(super) fn required<'n>(
    section: &Section<'n>,
    whole: &Entry,
    key: &'static str,
    form: &str,
    reader: &mut Reader<'_>,
) -> Option<&'n Entry> {
    let found = section.find(key);
    if found.is_none() && !section.is_misspelt(key) {
        let message = format!("`{}` has no `{key}`", whole.key);
        reader.report.spot(&reader.key_spot(whole), message).expected(form);
    }
    found
}

/// What a key says that may be absent; `None` outside: its fault has been reported.
pub(super) fn given<T>(
    entry: Option<&Entry>,
    reader: &mut Reader<'_>,
    read: impl FnOnce(&Entry, &mut Reader<'_>) -> Option<Written<T>>,
) -> Option<Option<Written<T>>> {
    match entry {
        Some(entry) => read(entry, reader).map(Some),
        None => Some(None),
    }
}
