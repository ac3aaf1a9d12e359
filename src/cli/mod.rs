//! The command line: what was typed becomes a subcommand, and its outcome an exit code.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | all went well; after a shutdown: nothing was cut |
//! | 1 | a wrong config, or the server could not start or failed, or output could not be written |
//! | 2 | a wrong command line |
//! | 3 | after a shutdown: connections were cut |

mod args;
mod check;
mod completions;
mod demo;
mod json_events;
mod logging;
mod man;
mod outlet;
mod output;
mod schema;
mod serve;
mod simulate;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser as _;

use crate::config::{self, Loaded};
use args::{Args, Command, Settings};

/// The command line makes no sense.
const WRONG_COMMAND_LINE: u8 = 2;
/// Connections were cut at shutdown.
const CUT: u8 = 3;

/// Runs the command that the process was started with.
#[must_use]
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(said) => return explain(&said),
    };
    let outcome = match args.command {
        Some(Command::Check(settings)) => check::run(&settings),
        Some(Command::Demo(options)) => demo::run(&options),
        Some(Command::Completions(options)) => completions::run(&options),
        Some(Command::Man(options)) => man::run(&options),
        Some(Command::Schema) => schema::run(),
        Some(Command::Simulate(options)) => simulate::run(&options),
        None => load(&args.settings)
            .and_then(|loaded| logging::during(&loaded.config, || serve::run(&loaded.config))),
    };
    outcome.unwrap_or_else(|error| {
        complain(&error);
        ExitCode::FAILURE
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

/// Loads the config that flags and file amount to.
fn load(settings: &Settings) -> anyhow::Result<Loaded> {
    let env = |name: &str| std::env::var(name).ok();
    Ok(config::load(settings.config.as_deref(), &settings.flags(), &env)?)
}

fn complain(error: &anyhow::Error) {
    let _ = writeln!(std::io::stderr(), "{error:#}");
}
