//! `evenkeel man`: the command line as manual pages.

use std::path::Path;
use std::process::ExitCode;
use std::{fs, io};

use anyhow::Context as _;
use clap::{Command, CommandFactory as _};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::args::{Args, ManOptions};
use super::output;

/// Prints evenkeel(1), or writes it and a page for each command.
pub(super) fn run(options: &ManOptions) -> anyhow::Result<ExitCode> {
    let command = command();
    match &options.dir {
        None => output::print(&main_page(&command))?,
        Some(folder) => write_pages(&command, folder)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes the apostrophes below straight in every roff.
const PREAMBLE: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";

/// The whole command line, with the full names of its commands filled in.
fn command() -> Command {
    let usage = "evenkeel [OPTIONS] [FILE]\nevenkeel <COMMAND>";
    let mut command = Args::command().disable_help_subcommand(true).override_usage(usage);
    command.build();
    command
}

/// The commands that people type.
fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|inner| !inner.is_hide_set())
}

fn write_pages(command: &Command, folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("can't make the folder {}", folder.display()))?;
    let own = |inner: &Command| (format!("{}.1", display_name(inner)), page_of(inner));
    let mut pages = vec![(format!("{}.1", display_name(command)), main_page(command))];
    pages.extend(shown(command).map(own));
    for (name, page) in pages {
        let path = folder.join(name);
        fs::write(&path, page).with_context(|| format!("can't write {}", path.display()))?;
    }
    Ok(())
}

/// The page that stands alone: everything about every command.
fn main_page(command: &Command) -> String {
    let mut page = top(command);
    page += ".SH COMMANDS\n";
    for inner in shown(command) {
        let mut about = Roff::new();
        about.control("SS", [bin_name(inner)]);
        about.text([roman(inner.get_about().map(ToString::to_string).unwrap_or_default())]);
        page += &about.to_roff();
        let options = part(inner, Man::render_options_section);
        page += options.strip_prefix(".SH OPTIONS\n").unwrap_or(&options);
    }
    page += &sections(command);
    page
}

/// The page of one command.
fn page_of(command: &Command) -> String {
    let mut page = top(command);
    page += &sections(command);
    page += &Roff::new().control("SH", ["SEE ALSO"]).text([roman("evenkeel(1)")]).to_roff();
    page
}

/// What every page begins with.
fn top(command: &Command) -> String {
    let name = display_name(command).to_uppercase();
    let mut page = PREAMBLE.to_owned();
    // Without a date, so that the same program always gives the same page.
    page += &format!(".TH \"{name}\" 1 \"\" \"evenkeel {}\" \"User Commands\"\n", env!("CARGO_PKG_VERSION"));
    page += &part(command, Man::render_name_section);
    page += &part(command, Man::render_synopsis_section);
    page += &part(command, Man::render_description_section);
    page += &part(command, Man::render_options_section);
    page
}

/// One section as text, without the preamble that each of them brings.
fn part(command: &Command, render: fn(&Man, &mut dyn io::Write) -> io::Result<()>) -> String {
    let mut bytes = Vec::new();
    render(&Man::new(command.clone()), &mut bytes).expect("a vector takes every byte");
    String::from_utf8_lossy(&bytes).replace(PREAMBLE, "")
}

/// The blocks behind the options in `--help` as sections: examples, signals, exit status.
fn sections(command: &Command) -> String {
    let mut roff = Roff::new();
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    for block in text.split("\n\n") {
        let (title, lines) = block.split_once(":\n").unwrap_or(("NOTES", block));
        roff.control("SH", [title.to_uppercase().as_str()]);
        roff.control("nf", []);
        for line in lines.lines() {
            roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
        }
        roff.control("fi", []);
    }
    roff.to_roff()
}

/// `evenkeel-check`.
fn display_name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

/// `evenkeel check`.
fn bin_name(command: &Command) -> &str {
    command.get_bin_name().unwrap_or_else(|| command.get_name())
}
