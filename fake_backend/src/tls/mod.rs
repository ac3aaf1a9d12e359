//! TLS in front of a fake: certificates, options, and the handshake, done well or badly. Above it nothing
//! changes: `http` and `tcp` read and write clear bytes. `door` calls [`meet`] for each connection.

mod authority;
mod facts;
mod handshake;
mod options;

use std::sync::Arc;

use rustls::ServerConfig;

pub use authority::{Authority, Issued, Leaf};
pub use facts::{Handshake, TlsFacts};
pub(crate) use handshake::{Met, meet};
pub use options::{TlsOptions, TlsVersion};

/// What the connections of one fake share; tickets stay good for as long as it lives.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) config: Arc<ServerConfig>,
    /// The certificate to trust, when it was made here.
    pub(crate) ca_pem: Option<String>,
}
