//! What commands print when printing is their job: written whole, or reported as a failure.

use std::io::{self, ErrorKind, Write as _};

use anyhow::Context as _;

/// Writes `text` to standard output.
pub(super) fn print(text: &str) -> anyhow::Result<()> {
    put(text).map(drop)
}

/// The same. False: nobody reads it any more, so whoever goes on for ever has come to the end.
pub(super) fn put(text: &str) -> anyhow::Result<bool> {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    let is_read = written.is_ok();
    judge(written).map(|()| is_read)
}

/// A sentence as it is shown: what could steer a terminal, or begin a line of its own, is escaped.
pub(super) fn shown(text: &str) -> String {
    let sign =
        |sign: char| if sign.is_control() { sign.escape_default().collect() } else { String::from(sign) };
    text.chars().map(sign).collect()
}

/// What came of writing to standard output. Whoever closed the pipe has read what they wanted; anything else, a
/// full disk for one, leaves half a file that must not pass for a whole one.
pub(super) fn judge(written: io::Result<()>) -> anyhow::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("can't write to standard output"),
    }
}
