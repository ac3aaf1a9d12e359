//! `evenkeel check`: what a config says, who said so, and whether it is valid.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::SystemTime;

use super::args::CheckOptions;
use super::{load, output};
use crate::config::{Effective, Loaded, Origin};
use crate::discover::Discovery;
use crate::net::now;

/// Prints the values of a right config; a wrong one is the error.
pub(super) fn run(options: &CheckOptions) -> anyhow::Result<ExitCode> {
    let loaded = load::config(&options.settings)?;
    let is_shown = |row: &&Effective| options.all || row.origin != Origin::Default;
    let rows: Vec<&Effective> = loaded.effective.iter().filter(is_shown).collect();
    let mut text = table(&rows);
    text += "\n";
    let time = SystemTime::now();
    let certificates = loaded.certificate_lines(time, options.all);
    if !certificates.is_empty() {
        text += &certificates.join("\n");
        text += "\n\n";
    }
    if options.resolve {
        text += &resolved(&loaded)?;
    }
    for warning in loaded.all_warnings(time) {
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

/// What DNS says about each name whose addresses are backends.
fn resolved(loaded: &Loaded) -> anyhow::Result<String> {
    let discovery = Discovery::new(now);
    discovery.meet_first(loaded.clone())?;
    let mut text = String::new();
    for name in discovery.view() {
        let (asked, kind) = (&name.question, name.question.kind.as_str());
        match (&name.ttl, &name.trouble) {
            (Some(ttl), _) => {
                let count = name.addresses.len();
                let addresses = if count == 1 { "address" } else { "addresses" };
                let _ = writeln!(
                    text,
                    "{kind} {asked}: {count} {addresses}, TTL {}",
                    humantime::format_duration(*ttl)
                );
                for known in &name.addresses {
                    let _ = writeln!(text, "  {}", known.address);
                }
                if name.beyond > 0 {
                    let _ = writeln!(text, "  and {} more than `resolver.addresses`", name.beyond);
                }
            }
            (None, Some((why, _))) => {
                let _ = writeln!(text, "warning: {kind} {asked}: {why}");
            }
            (None, None) => {
                let _ = writeln!(text, "warning: {kind} {asked}: no answer in time");
            }
        }
    }
    let text = if text.is_empty() { "no backends stand behind names of DNS\n".to_owned() } else { text };
    Ok(text + "\n")
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
