//! What can be asked of the driver.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

#[derive(Args)]
pub(crate) struct Options {
    /// Where to connect to
    #[arg(value_name = "ADDRESS:PORT")]
    pub(super) to: SocketAddr,
    /// Connections at a time; each has at most one request under way, unless --streams says more
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) connections: u32,
    /// Requests in all
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub(super) requests: u64,
    /// Speak HTTP/2, and have so many requests under way on each connection. With TLS the server is asked for it by ALPN,
    /// otherwise it is known to speak it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 20), conflicts_with_all = ["close", "upload"])]
    pub(super) streams: Option<u64>,
    /// A new connection for each request
    #[arg(long)]
    pub(super) close: bool,
    /// Speak TLS 1.3 and trust the certificates in this PEM file
    #[arg(long, value_name = "FILE")]
    pub(super) tls: Option<PathBuf>,
    /// With --close and --tls: resume the session of the connection before. Each connection's first is a full
    /// handshake
    #[arg(long, requires = "tls")]
    pub(super) resume: bool,
    /// The host that is asked for, and named in the TLS handshake
    #[arg(long, value_name = "NAME", default_value = "localhost")]
    pub(super) host: String,
    /// Bytes of content that every answer must have
    #[arg(long, value_name = "BYTES", default_value_t = 12)]
    pub(super) body: u64,
    /// Send so much content with each request
    #[arg(long, value_name = "BYTES")]
    pub(super) upload: Option<usize>,
}
