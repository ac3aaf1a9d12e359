//! An address that a connection can be opened to.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

/// An address that a connection can be opened to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// TCP over v4 or v6.
    Tcp(SocketAddr),
    /// A unix stream socket.
    Unix(Arc<Path>),
}

impl Endpoint {
    /// The same address at another port; `None`: a path has no ports.
    #[must_use]
    pub fn at(&self, port: u16) -> Option<Endpoint> {
        match self {
            Endpoint::Tcp(address) => Some(Endpoint::Tcp((address.ip(), port).into())),
            Endpoint::Unix(_) => None,
        }
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Endpoint::Tcp(address) => address.fmt(f),
            Endpoint::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
