//! `name` and `state_dir`: what tells this process from others on the same machine.

use std::path::PathBuf;

use crate::config::error::{Wrong, quoted};
use crate::config::files::fence::PathUse;
use crate::config::model::AdminSocket;
use crate::config::origin::Written;
use crate::config::raw::reader::Reader;
use crate::config::yaml::Entry;

pub(super) const NAME_FORM: &str = "1 to 64 letters, digits, `.`, `_` and `-`, the first a letter or a digit";
const NAME_MAX: usize = 64;

/// As written.
#[derive(Debug, Default)]
pub(in crate::config) struct RawInstance {
    pub(in crate::config) name: Option<Written<String>>,
    pub(in crate::config) state_dir: Option<Written<PathBuf>>,
    pub(in crate::config) socket: Option<Written<AdminSocket>>,
}

/// Walks `name` and `state_dir`; the socket has been read.
pub(in crate::config::raw) fn walk(
    [called, folder]: [Option<&Entry>; 2],
    socket: Option<Written<AdminSocket>>,
    reader: &mut Reader<'_>,
) -> RawInstance {
    RawInstance {
        name: called.and_then(|entry| reader.word(entry, NAME_FORM, name)),
        state_dir: folder.and_then(|entry| state_dir(entry, reader)),
        socket,
    }
}

pub(super) fn name(text: &str) -> Result<String, Wrong> {
    let fits = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-');
    let begins = |character: char| character.is_ascii_alphanumeric();
    if text.len() <= NAME_MAX && text.starts_with(begins) && text.chars().all(fits) {
        return Ok(text.to_owned());
    }
    let wrong = Wrong::new(format!("is {}, which names no file", quoted(text)), NAME_FORM);
    let other: String = text.chars().map(|c| if fits(c) { c } else { '-' }).collect();
    let other = other.trim_start_matches(|c| !begins(c));
    let other = &other[..other.len().min(NAME_MAX)];
    Err(if other.is_empty() { wrong } else { wrong.instead(other) })
}

fn state_dir(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<PathBuf>> {
    const FORM: &str = "the path of a folder such as `/var/lib/evenkeel`";
    let read = reader.word(entry, FORM, |text| {
        if text.is_empty() { Err(Wrong::new("is empty", FORM)) } else { Ok(text.to_owned()) }
    })?;
    Some(Written::new(reader.path(&read.value, PathUse::State, &read.spot), read.spot))
}
