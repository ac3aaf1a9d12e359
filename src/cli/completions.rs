//! `evenkeel completions`: the command line as a shell's own script.

use std::process::ExitCode;

use clap::{Command, CommandFactory as _, Id};

use super::args::{Args, CompletionsOptions};
use super::output;

/// Prints the script for one shell.
pub(super) fn run(options: &CompletionsOptions) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    let mut command = visible(&Args::command());
    clap_complete::generate(options.shell, &mut command, "evenkeel", &mut script);
    output::print(&String::from_utf8(script)?)?;
    Ok(ExitCode::SUCCESS)
}

/// `command` without its hidden flags, which are there to be refused: the generators would propose them.
fn visible(command: &Command) -> Command {
    let is_shown = |id: &Id| !command.get_arguments().any(|arg| arg.get_id() == id && arg.is_hide_set());
    let mut same = Command::new(command.get_name().to_owned())
        .about(command.get_about().cloned().unwrap_or_default())
        .args(command.get_arguments().filter(|arg| !arg.is_hide_set()).cloned())
        .groups(command.get_groups().filter(|group| group.get_args().all(is_shown)).cloned())
        .subcommands(command.get_subcommands().map(visible));
    if let Some(version) = command.get_version() {
        same = same.version(version.to_owned());
    }
    same
}
