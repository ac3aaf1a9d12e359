//! The command line: what was typed becomes a subcommand, and its outcome an exit code (`exit_code`).

mod args;
mod check;
mod completions;
mod demo;
mod exit_code;
mod habits;
mod joining;
mod json_events;
mod load;
mod logging;
mod man;
mod outlet;
mod output;
mod running;
mod schema;
mod serve;
mod simulate;
mod start_fault;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use crate::config::Problems;
use crate::upgrade::HeirStart;
use crate::upgrade::words::VARIABLE;
use args::{Args, Command};
use exit_code::WRONG_COMMAND_LINE;

/// Runs the command that the process was started with.
#[must_use]
pub fn main() -> ExitCode {
    let parser = Args::command();
    let commands: Vec<&str> = parser.get_subcommands().map(clap::Command::get_name).collect();
    let typed = match habits::understood(std::env::args_os().collect(), &commands, &|path| path.exists()) {
        Ok(typed) => typed,
        Err(line) => {
            let _ = writeln!(std::io::stderr(), "{line}");
            return ExitCode::from(WRONG_COMMAND_LINE);
        }
    };
    let args = match Args::try_parse_from(typed) {
        Ok(args) => args,
        Err(said) => return explain(&said),
    };
    let outcome = match args.command {
        Some(Command::Check(options)) => check::run(&options),
        Some(Command::Plan(options)) => running::config::plan(&options),
        Some(Command::Reload(asking)) => running::config::reload(&asking),
        Some(Command::Apply(options)) => running::config::apply(&options),
        Some(Command::Confirm(asking)) => running::config::confirm(&asking),
        Some(Command::Rollback(asking)) => running::config::rollback(&asking),
        Some(Command::Healthcheck(options)) => running::healthcheck::run(&options),
        Some(Command::Upgrade(options)) => running::upgrade::run(&options),
        Some(Command::Explain(options)) => running::explain::run(&options),
        Some(Command::Drain(options)) => running::hand::drain(&options),
        Some(Command::Down(options)) => running::hand::down(&options),
        Some(Command::Ready(options)) => running::hand::ready(&options),
        Some(Command::Weight(options)) => running::hand::weight(&options),
        Some(Command::Add(options)) => running::hand::add(&options),
        Some(Command::Remove(options)) => running::hand::remove(&options),
        Some(Command::Block(options)) => running::block::block(&options),
        Some(Command::Unblock(options)) => running::block::unblock(&options),
        Some(Command::Purge(options)) => running::block::purge(&options),
        Some(Command::Cluster(command)) => running::cluster::run(&command),
        Some(Command::Diff(options)) => running::hand::diff(&options),
        Some(Command::Save(options)) => running::hand::save(&options),
        Some(Command::Log(options)) => running::log::run(&options),
        Some(Command::Why(options)) => running::why::run(&options),
        Some(Command::Names(process)) => running::names::run(&process),
        Some(Command::Status(options)) => running::status::run(&options),
        Some(Command::Top(options)) => running::top::run(&options),
        Some(Command::Demo(options)) => demo::run(&options),
        Some(Command::Completions(options)) => completions::run(&options),
        Some(Command::Man(options)) => man::run(&options),
        Some(Command::Schema) => schema::run(),
        Some(Command::Simulate(options)) => simulate::run(&options),
        None => {
            serve::outlive_hangups();
            let source = load::source(&args.settings);
            let said = std::env::var(VARIABLE).ok();
            HeirStart::here(said.as_deref()).map_err(Into::into).and_then(|succession| {
                let loaded = load::config(&args.settings).inspect_err(|error| {
                    if let Some(succession) = &succession {
                        succession.refuse(&format!("{error:#}"));
                    }
                })?;
                let config = loaded.config.clone();
                logging::during(&config, |tune| serve::run(loaded, source, tune, succession))
            })
        }
    };
    outcome.unwrap_or_else(|error| {
        complain(&error);
        match error.downcast_ref::<Problems>() {
            Some(problems) if problems.list().iter().all(|problem| problem.file.is_none()) => {
                ExitCode::from(WRONG_COMMAND_LINE)
            }
            _ => ExitCode::FAILURE,
        }
    })
}

/// Says what is wrong with the command line, or what `--help` and `--version` ask for: to clap both are errors.
fn explain(said: &clap::Error) -> ExitCode {
    let printed = said.print().and_then(|()| std::io::stdout().flush());
    if said.use_stderr() {
        return ExitCode::from(WRONG_COMMAND_LINE);
    }
    match output::judge(printed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

fn complain(error: &anyhow::Error) {
    let _ = writeln!(std::io::stderr(), "{}", output::shown_lines(&format!("{error:#}")));
}
