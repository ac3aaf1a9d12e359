//! What commands print when printing is their job: written whole, or reported as a failure.

use std::borrow::Cow;
use std::io::{self, ErrorKind, Write as _};

use anyhow::Context as _;

use crate::message::steers;

/// Writes `text` to standard output. It may have lines; whatever else in it could steer a terminal is escaped.
pub(super) fn print(text: &str) -> anyhow::Result<()> {
    put(text).map(drop)
}

/// The same. False: nobody reads it any more, so whoever goes on for ever has come to the end.
pub(super) fn put(text: &str) -> anyhow::Result<bool> {
    let mut out = io::stdout().lock();
    let written = out.write_all(shown_lines(text).as_bytes()).and_then(|()| out.flush());
    let is_read = written.is_ok();
    judge(written).map(|()| is_read)
}

/// A sentence as it is shown: what could steer a terminal, or begin a line of its own, is escaped.
pub(super) fn shown(text: &str) -> String {
    harmless(text, steers)
}

/// The same of lines, which may have tabs in them.
pub(super) fn shown_lines(text: &str) -> Cow<'_, str> {
    let is_harmful = |sign: char| steers(sign) && !matches!(sign, '\n' | '\t');
    if text.contains(is_harmful) { Cow::Owned(harmless(text, is_harmful)) } else { Cow::Borrowed(text) }
}

fn harmless(text: &str, is_harmful: impl Fn(char) -> bool) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut safe, sign| {
        if is_harmful(sign) {
            safe.extend(sign.escape_default());
        } else {
            safe.push(sign);
        }
        safe
    })
}

/// What came of writing to standard output. Whoever closed the pipe has read what they wanted; anything else, a
/// full disk for one, leaves half a file that must not pass for a whole one.
pub(super) fn judge(written: io::Result<()>) -> anyhow::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("can't write to standard output"),
    }
}
