//! What evenkeel is measured with. One file per subcommand; none of them knows evenkeel.

mod backend;
mod bulk;
mod certificate;
mod clients;
mod clock;
mod crowd;
mod datagrams;
mod drive;
mod echo;
mod idle;
mod message;
mod pingpong;
mod say;
#[cfg(test)]
mod secure;

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
    /// Send as many bytes as go through, in both directions
    Bulk(bulk::Options),
    /// Make a certificate and its key
    Certificate(certificate::Options),
    /// Send requests as users do, at random moments or each when its answer has come, and tell how long they took
    Clients(clients::Options),
    /// Do everything that users do at the same time, and tell what was lost
    Crowd(crowd::Options),
    /// Send datagrams back and forth, or pass them on
    Datagrams(datagrams::Options),
    /// Send exactly so many requests, over HTTP/1 or HTTP/2, always in the same order
    Drive(drive::Options),
    /// Hold connections that do nothing
    Idle(idle::Options),
    /// Send small messages back and forth
    Pingpong(pingpong::Options),
}

fn main() -> anyhow::Result<()> {
    match Rig::parse().command {
        Command::Backend(options) => backend::run(&options),
        Command::Bulk(options) => bulk::run(&options),
        Command::Certificate(options) => certificate::run(&options),
        Command::Clients(options) => clients::run(&options),
        Command::Crowd(options) => crowd::run(&options),
        Command::Datagrams(options) => datagrams::run(&options),
        Command::Drive(options) => drive::run(&options),
        Command::Idle(options) => idle::run(&options),
        Command::Pingpong(options) => pingpong::run(&options),
    }
}
