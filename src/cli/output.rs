//! What commands print when printing is their job: written whole, or reported as a failure.

use std::io::{self, ErrorKind, Write as _};

use anyhow::Context as _;

/// Writes `text` to standard output.
pub(super) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    judge(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// What came of writing to standard output. Whoever closed the pipe has read what they wanted; anything else, a
/// full disk for one, leaves half a file that must not pass for a whole one.
pub(super) fn judge(written: io::Result<()>) -> anyhow::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("can't write to standard output"),
    }
}
