//! `evenkeel check`: what a config says, who said so, and whether it is valid.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::SystemTime;

use super::args::CheckOptions;
use super::{load, output};
use crate::config::{Effective, Origin};

/// Prints the values of a right config; a wrong one is the error.
pub(super) fn run(options: &CheckOptions) -> anyhow::Result<ExitCode> {
    let loaded = load::config(&options.settings)?;
    let is_shown = |row: &&Effective| options.all || row.origin != Origin::Default;
    let rows: Vec<&Effective> = loaded.effective.iter().filter(is_shown).collect();
    let mut text = table(&rows);
    text += "\n";
    let now = SystemTime::now();
    let certificates = loaded.certificate_lines(now, options.all);
    if !certificates.is_empty() {
        text += &certificates.join("\n");
        text += "\n\n";
    }
    for warning in loaded.all_warnings(now) {
        let _ = writeln!(text, "warning: {warning}");
    }
    let hidden = loaded.effective.len() - rows.len();
    if hidden > 0 {
        let _ = writeln!(text, "{hidden} defaults are in force beside it; `--all` prints them");
    }
    text += "the config is valid\n";
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Path, value and origin in columns.
fn table(rows: &[&Effective]) -> String {
    let width = |text: fn(&Effective) -> &str| rows.iter().map(|row| text(row).len()).max().unwrap_or(0);
    let (path, value) = (width(|row| &row.path), width(|row| &row.value).min(40));
    let mut text = String::new();
    for row in rows {
        let _ = writeln!(text, "{:path$}  {:value$}  {}", row.path, row.value, row.origin);
    }
    text
}
