//! Lines for whoever has started this.

use std::io::Write as _;

use anyhow::Result;

/// Writes a line that is read at once.
pub(crate) fn say(line: &str) -> Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")?;
    output.flush()?;
    Ok(())
}
