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
mod habits;
mod json_events;
mod logging;
mod man;
mod outlet;
mod output;
mod reloading;
mod schema;
mod serve;
mod simulate;
mod start_fault;

use std::io::{Read as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::{CommandFactory as _, Parser as _};

use crate::config::{self, Loaded, Problems};
use args::{Args, Command, Settings};

/// The command line makes no sense.
const WRONG_COMMAND_LINE: u8 = 2;
/// Connections were cut at shutdown.
const CUT: u8 = 3;

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
        Some(Command::Demo(options)) => demo::run(&options),
        Some(Command::Completions(options)) => completions::run(&options),
        Some(Command::Man(options)) => man::run(&options),
        Some(Command::Schema) => schema::run(),
        Some(Command::Simulate(options)) => simulate::run(&options),
        None => {
            let settings = args.settings.clone();
            let loader: reloading::Loader = Arc::new(move || reload(&settings));
            load(&args.settings)
                .and_then(|loaded| logging::during(&loaded.config, || serve::run(&loaded, loader)))
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

/// Loads the config that flags and file amount to.
fn load(settings: &Settings) -> anyhow::Result<Loaded> {
    let env = |name: &str| std::env::var(name).ok();
    let (flags, file) = (settings.flags(), file(settings));
    match file.as_deref() {
        Some(path) if path == Path::new("-") => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("can't read a config from standard input")?;
            Ok(config::load_text(&text, "standard input", Path::new(""), &flags, &env)?)
        }
        path => Ok(config::load(path, &flags, &env)?),
    }
}

/// The same once more while it serves.
fn reload(settings: &Settings) -> anyhow::Result<Loaded> {
    match file(settings).as_deref() {
        Some(path) if path == Path::new("-") => {
            anyhow::bail!("the config came from standard input, which can't be read again")
        }
        None => anyhow::bail!("there is no config file: all that is in force was said by flags"),
        Some(_) => load(settings),
    }
}

/// The file that was named, or one of the usual name where nothing else says what to do.
fn file(settings: &Settings) -> Option<PathBuf> {
    if let Some(named) = settings.file() {
        return Some(named.to_owned());
    }
    let usual = habits::USUAL.iter().map(PathBuf::from).find(|path| path.is_file());
    usual.filter(|_| !settings.has_backends())
}

fn complain(error: &anyhow::Error) {
    let _ = writeln!(std::io::stderr(), "{error:#}");
}
