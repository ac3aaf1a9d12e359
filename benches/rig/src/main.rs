//! What evenkeel is measured with. One file per subcommand; none of them knows evenkeel.

mod backend;
mod certificate;
mod drive;
mod message;

use clap::{Parser, Subcommand};

/// Backends and clients for measurements: they cost as little as possible and always do the same.
#[derive(Parser)]
#[command(version)]
struct Rig {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Answer every HTTP/1 request with the same bytes, as cheaply as one thread can
    Backend(backend::Options),
    /// Make a certificate and its key
    Certificate(certificate::Options),
    /// Send exactly so many HTTP/1 requests, always in the same order
    Drive(drive::Options),
}

fn main() -> anyhow::Result<()> {
    match Rig::parse().command {
        Command::Backend(options) => backend::run(&options),
        Command::Certificate(options) => certificate::run(&options),
        Command::Drive(options) => drive::run(&options),
    }
}
