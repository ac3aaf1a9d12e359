//! What can be typed. The texts behind the options are blocks, each a line that ends with a colon and what is
//! indented below it: the man pages make sections of them.

pub(super) mod cluster;
pub(super) mod demo;
pub(super) mod explain;
pub(super) mod hand;
pub(super) mod log;
pub(super) mod running;
pub(super) mod simulate;
pub(super) mod status;
pub(super) mod top;
pub(super) mod why;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::builder::{BoolishValueParser, PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Args as ClapArgs, Parser, Subcommand, ValueHint};
use clap_complete::Shell;

use crate::config::Flags;
use crate::config::model::{Balance, EventFormat, LogLevel};
use demo::DemoOptions;
use running::{ApplyOptions, AskOptions, HealthcheckOptions, PlanOptions, ProcessOptions, UpgradeOptions};
use simulate::SimulateOptions;
use status::StatusOptions;

const EXAMPLES: &str = "Examples:
  evenkeel demo
  evenkeel --backends http://127.0.0.1:8001,http://127.0.0.1:8002 --port 3030
  evenkeel check evenkeel.yaml
  evenkeel evenkeel.yaml

Without a file and without backends it takes ./evenkeel.yaml, if there is one. `-` is standard input.

Signals:
  SIGTERM, SIGINT  drain and end; a second one cuts what is left
  SIGHUP           read the config again
  SIGUSR1          open the file of the access log anew, after a rotation

Exit status:
  0  all went well; after a shutdown: nothing was cut
  1  a wrong config, a failed start, or output that could not be written
  2  a wrong command line: an unknown word or flag, or a wrong value
  3  connections were cut at the shutdown";

const CHECK_EXAMPLES: &str = "Examples:
  evenkeel check evenkeel.yaml
  evenkeel check evenkeel.yaml --all
  evenkeel check evenkeel.yaml --workers 4
  evenkeel check --backends http://127.0.0.1:8001 --port 3030

The smallest file:
  targets:
    web:
      protocol: http
      listener: 8080
      backends:
        - {host: 127.0.0.1, port: 8001}

Exit status:
  0  the config is valid (warnings do not change this)
  1  it is not, and every problem was shown; or the output could not be written
  2  a wrong command line: an unknown word or flag, or a wrong value";

const COMPLETIONS_EXAMPLES: &str = "Examples:
  evenkeel completions bash > ~/.local/share/bash-completion/completions/evenkeel
  evenkeel completions zsh > ~/.zfunc/_evenkeel
  evenkeel completions fish > ~/.config/fish/completions/evenkeel.fish
  evenkeel completions elvish >> ~/.config/elvish/rc.elv
  evenkeel completions powershell >> $PROFILE";

const MAN_EXAMPLES: &str = "Examples:
  evenkeel man | man -l -
  evenkeel man --dir ~/.local/share/man/man1";

const SCHEMA_EXAMPLES: &str = "Examples:
  evenkeel schema > evenkeel.schema.json

In a config file:
  # yaml-language-server: $schema=evenkeel.schema.json";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "evenkeel",
    version,
    about = "L4/L7 load balancer: one binary, one YAML file",
    after_help = EXAMPLES,
    args_conflicts_with_subcommands = true
)]
pub(super) struct Args {
    /// What to do; without one: serve.
    #[command(subcommand)]
    pub(super) command: Option<Command>,
    /// For serving.
    #[command(flatten)]
    pub(super) settings: Settings,
}

/// What to do other than serve.
#[derive(Debug, Subcommand)]
#[allow(clippy::large_enum_variant, reason = "made once per process")]
pub(super) enum Command {
    /// Check a config: print its values and warnings, and whether it is valid; starts nothing
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckOptions),
    /// Tell what a reload would do to the process that runs, without doing it
    #[command(after_help = running::PLAN_EXAMPLES)]
    Plan(PlanOptions),
    /// Have the process that runs read its config again, and tell what has changed
    #[command(after_help = running::RELOAD_EXAMPLES)]
    Reload(AskOptions),
    /// Put another config into force, on trial if asked, and into the place of the process's file
    #[command(after_help = running::APPLY_EXAMPLES)]
    Apply(ApplyOptions),
    /// Have the config on trial stay: it takes the place of the process's file
    #[command(after_help = running::CONFIRM_EXAMPLES)]
    Confirm(AskOptions),
    /// Take the config on trial back
    #[command(after_help = running::ROLLBACK_EXAMPLES)]
    Rollback(AskOptions),
    /// Put another binary in the place of the process that runs, which loses no connection and drains
    #[command(after_help = running::UPGRADE_EXAMPLES)]
    Upgrade(UpgradeOptions),
    /// Say whether the process that runs is to get traffic: for the HEALTHCHECK of a container
    #[command(after_help = running::HEALTHCHECK_EXAMPLES)]
    Healthcheck(HealthcheckOptions),
    /// Show the state of all listeners, targets and backends of the process that runs, or of one target or backend
    #[command(after_help = status::EXAMPLES)]
    Status(StatusOptions),
    /// Watch all targets and backends at the terminal, second by second, and drain or weigh what is marked
    #[command(after_help = top::EXAMPLES)]
    Top(top::TopOptions),
    /// Say what would become of a request, and why: nothing is sent
    #[command(after_help = explain::EXAMPLES)]
    Explain(explain::ExplainOptions),
    /// Take a backend out of rotation: it keeps the clients whose cookie names it, and what is under way
    #[command(after_help = hand::DRAIN_EXAMPLES)]
    Drain(hand::DrainOptions),
    /// Take a backend out: it gets no new request
    #[command(after_help = hand::DOWN_EXAMPLES)]
    Down(hand::StateOptions),
    /// Take back what `drain` or `down` have set
    #[command(after_help = hand::READY_EXAMPLES)]
    Ready(hand::ReadyOptions),
    /// Set the weight of a backend
    #[command(after_help = hand::WEIGHT_EXAMPLES)]
    Weight(hand::WeightOptions),
    /// Add a backend to a target
    #[command(after_help = hand::ADD_EXAMPLES)]
    Add(hand::AddOptions),
    /// Remove a backend from its target; what is under way finishes
    #[command(after_help = hand::REMOVE_EXAMPLES)]
    Remove(hand::RemoveOptions),
    /// Keep an address or a network out: new connections and requests are refused, what is under way is cut
    #[command(after_help = hand::BLOCK_EXAMPLES)]
    Block(hand::BlockOptions),
    /// Let a network in again that was blocked
    #[command(after_help = hand::UNBLOCK_EXAMPLES)]
    Unblock(hand::UnblockOptions),
    /// Take answers out of the cache, or declare them stale
    #[command(after_help = hand::PURGE_EXAMPLES)]
    Purge(hand::PurgeOptions),
    /// Tell of the nodes that act as one, and drain one
    #[command(subcommand, after_help = cluster::EXAMPLES)]
    Cluster(cluster::ClusterCommand),
    /// Tell what is changed by hand, beside what the file says
    #[command(after_help = hand::DIFF_EXAMPLES)]
    Diff(hand::DiffOptions),
    /// Write what is changed by hand into the config file; comments, order and all other lines stay
    #[command(after_help = hand::SAVE_EXAMPLES)]
    Save(hand::SaveOptions),
    /// Print the latest events of the process that runs, and follow those to come
    #[command(after_help = log::EXAMPLES)]
    Log(log::LogOptions),
    /// Say why a request that is over ended as it did, or list those that failed, were tried again or were slow
    #[command(after_help = why::EXAMPLES)]
    Why(why::WhyOptions),
    /// Print the names of all targets and backends of the process that runs, for completions
    #[command(hide = true)]
    Names(ProcessOptions),
    /// Run on backends inside this process, to try things out
    #[command(after_help = demo::EXAMPLES)]
    Demo(DemoOptions),
    /// Print completions for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsOptions),
    /// Print the manual page, or write one for each command
    #[command(after_help = MAN_EXAMPLES)]
    Man(ManOptions),
    /// Print the JSON Schema of a config file, for editors
    #[command(after_help = SCHEMA_EXAMPLES)]
    Schema,
    /// Tell what each balancing algorithm would do to a workload, without a network
    #[command(after_help = simulate::EXAMPLES)]
    Simulate(SimulateOptions),
}

/// Options of `check`.
#[derive(Debug, ClapArgs)]
pub(super) struct CheckOptions {
    /// What to check.
    #[command(flatten)]
    pub(super) settings: Settings,
    /// Print defaults too: every value in force, with its origin (default, file:line or flag)
    #[arg(long)]
    pub(super) all: bool,
    /// Ask DNS for the names whose addresses are backends, and print what it says
    #[arg(long)]
    pub(super) resolve: bool,
}

/// Options of `completions`.
#[derive(Debug, ClapArgs)]
pub(super) struct CompletionsOptions {
    /// The shell to complete in
    #[arg(value_name = "SHELL")]
    pub(super) shell: Shell,
}

/// Options of `man`.
#[derive(Debug, ClapArgs)]
pub(super) struct ManOptions {
    /// Write evenkeel.1 and a page for each command into this folder; it is made if it is not there
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(super) dir: Option<PathBuf>,
}

/// Where the config comes from. Flags override the file.
#[derive(Clone, Debug, ClapArgs)]
pub(super) struct Settings {
    /// The YAML file; `-` is standard input [default: ./evenkeel.yaml, unless `--backends` is given]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "config")]
    file: Option<PathBuf>,
    /// The same as FILE
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,
    /// Backends as URLs with commas between them; an error with several targets
    #[arg(long, visible_alias = "servers", value_name = "URL,...", value_delimiter = ',')]
    backends: Vec<String>,
    /// Port of the only target's listener; an error with several targets [default without a file: 3030]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Address of listeners that are only a port [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    address: Option<String>,
    /// How a backend is chosen, for every target; also by the names of HAProxy and nginx, such as `leastconn`
    /// [default: round_robin]
    #[arg(long, value_name = "NAME", value_parser = Proposed(|| names(Balance::ALL)))]
    algorithm: Option<String>,
    /// What health checks of HTTP targets ask for [default: a TCP connect]
    #[arg(long, value_name = "PATH")]
    health_path: Option<String>,
    /// Seconds between health checks [default: 2]
    #[arg(long, value_name = "SECONDS")]
    health_check_frequency_in_seconds: Option<u64>,
    /// Failed health checks in a row that take a backend out [default: 3]
    #[arg(long, value_name = "COUNT")]
    health_check_max_retries: Option<u32>,
    /// Worker threads [default: one per core]
    #[arg(long, value_name = "COUNT")]
    workers: Option<usize>,
    /// The lowest level of events that is logged [default: info]
    #[arg(long, value_name = "LEVEL", value_parser = Proposed(|| names(LogLevel::ALL)))]
    log_level: Option<String>,
    /// How events look [default: text]
    #[arg(long, value_name = "FORMAT", value_parser = Proposed(|| names(EventFormat::ALL)))]
    log_format: Option<String>,
    /// Answer from what is stored, on the listeners of targets [default: false]
    #[arg(
        long,
        value_name = "true|false",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        value_parser = BoolishValueParser::new()
    )]
    cache_enabled: Option<bool>,
    /// Seconds for which answers are stored that say nothing about it, with `--cache-enabled` [default: 10]
    #[arg(long, value_name = "SECONDS")]
    cache_timeout_in_seconds: Option<u64>,
}

fn names<T>(table: &[(&'static str, T)]) -> Vec<&'static str> {
    table.iter().map(|(name, _)| *name).collect()
}

/// Names that help and completions propose. Any other word passes too: `config` refuses it, together with every
/// other problem there is.
#[derive(Clone)]
struct Proposed(fn() -> Vec<&'static str>);

impl TypedValueParser for Proposed {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter().map(PossibleValue::new)))
    }
}

impl Settings {
    /// The file that was named.
    pub(super) fn file(&self) -> Option<&Path> {
        self.config.as_deref().or(self.file.as_deref())
    }

    /// Whether backends were named, so that no file is needed.
    pub(super) fn has_backends(&self) -> bool {
        !self.backends.is_empty()
    }

    /// The same as `config` wants it.
    pub(super) fn flags(&self) -> Flags {
        Flags {
            backends: self.backends.clone(),
            port: self.port,
            address: self.address.clone(),
            algorithm: self.algorithm.clone(),
            health_path: self.health_path.clone(),
            health_interval: self.health_check_frequency_in_seconds,
            health_fall: self.health_check_max_retries,
            cache_enabled: self.cache_enabled,
            cache_ttl: self.cache_timeout_in_seconds,
            workers: self.workers,
            log_level: self.log_level.clone(),
            log_format: self.log_format.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definitions_agree_with_each_other() {
        <Args as clap::CommandFactory>::command().debug_assert();
    }
}
