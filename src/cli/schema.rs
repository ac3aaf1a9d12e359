//! `evenkeel schema`: the JSON Schema of a config file, for editors.

use std::process::ExitCode;

use super::output;
use crate::config;

/// Prints it.
pub(super) fn run() -> anyhow::Result<ExitCode> {
    output::print(&format!("{:#}\n", config::schema()))?;
    Ok(ExitCode::SUCCESS)
}
