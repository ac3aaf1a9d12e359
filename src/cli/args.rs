//! What can be typed.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};

use crate::config::Flags;

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "evenkeel",
    version,
    about = "L4/L7 load balancer: one binary, one YAML file",
    after_help = "Examples:\n  evenkeel demo\n  evenkeel --backends http://127.0.0.1:8001,http://127.0.0.1:8002 --port 3030\n  \
                  evenkeel check --config evenkeel.yaml\n  evenkeel --config evenkeel.yaml\n\n\
                  SIGTERM or SIGINT drains and ends; a second one cuts what is left.\n\
                  Exit codes: 0 fine, 1 wrong config or failed start, 2 wrong command line, 3 connections were cut.",
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
    /// Check a config and print every value in force with its origin (default, file:line or flag)
    Check(Settings),
    /// Run on backends inside this process, to try things out
    Demo(DemoOptions),
}

/// Options of the demo.
#[derive(Debug, ClapArgs)]
pub(super) struct DemoOptions {
    /// Where HTTP listens; the next free port if it is taken
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    pub(super) http_port: u16,
    /// Where HTTPS is served, or the next free port
    #[arg(long, value_name = "PORT", default_value_t = 8443)]
    pub(super) https_port: u16,
    /// Where TCP listens; the next free port if it is taken
    #[arg(long, value_name = "PORT", default_value_t = 9090)]
    pub(super) tcp_port: u16,
}

/// Where the config comes from. Flags override the file.
#[derive(Debug, ClapArgs)]
pub(super) struct Settings {
    /// The YAML file
    #[arg(long, short, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Backends as URLs with commas between them
    #[arg(long, visible_alias = "servers", value_name = "URL,...", value_delimiter = ',')]
    backends: Vec<String>,
    /// Port of the only target's listener [default without a file: 3030]
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Address of listeners that are only a port [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS")]
    address: Option<String>,
    /// How a backend is chosen, for every target: round_robin
    #[arg(long, value_name = "NAME")]
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
    /// error, warn, info, debug or trace [default: info]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, default_missing_value = "true", value_parser = not_yet)]
    cache_enabled: Option<String>,
    #[arg(long, hide = true, value_parser = not_yet)]
    cache_timeout_in_seconds: Option<String>,
}

/// Flags of features that are not there are refused by name: ignoring them would promise what is not done.
fn not_yet(_: &str) -> Result<String, String> {
    Err("not supported yet: this version does not cache answers".to_owned())
}

impl Settings {
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
            workers: self.workers,
            log_level: self.log_level.clone(),
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
