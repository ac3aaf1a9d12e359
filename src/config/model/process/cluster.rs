//! `cluster`: which processes act as one, and where they keep what they share.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::hmac;

use crate::config::model::HttpUrl;
use crate::config::model::tls::{Authorities, Identity};

/// `cluster`.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterConfig {
    /// The same on all nodes: 1 to 64 letters, digits, `.`, `_` and `-`.
    pub name: String,
    /// What this node is called, as `name`; `None`: as its host.
    pub node: Option<String>,
    /// Who keeps what is shared; `None`: this process alone, in its folder of state.
    pub etcd: Option<EtcdConfig>,
    /// How long a node is believed to be there that says nothing, in whole seconds.
    pub lease: Duration,
    /// What secrets are sealed with before they are shared; `None`: none is.
    pub key: Option<Arc<ClusterKey>>,
}

impl ClusterConfig {
    /// Where nothing else is said.
    pub const LEASE: Duration = Duration::from_secs(10);
}

/// `cluster.etcd`.
#[derive(Clone, Debug, PartialEq)]
pub struct EtcdConfig {
    /// Its members, at least one. Their URLs have no path and no user.
    pub endpoints: Vec<HttpUrl>,
    /// Who may have issued their certificates; `None`: whom the system trusts.
    pub authorities: Option<Authorities>,
    /// What they are shown.
    pub identity: Option<Arc<Identity>>,
    /// What all names begin with: `/evenkeel/` and the name of the cluster. It begins with `/` and does not end so.
    pub prefix: String,
}

impl EtcdConfig {
    /// Where members answer.
    pub const PORT: u16 = 2379;
}

/// What secrets are sealed with.
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterKey(pub [u8; ClusterKey::LENGTH]);

impl ClusterKey {
    /// In bytes.
    pub const LENGTH: usize = 32;

    /// The key of sticky cookies where nobody gives one: the same on all nodes.
    #[must_use]
    pub fn sticky(&self) -> Arc<[u8]> {
        let made = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &self.0), b"evenkeel sticky cookies");
        made.as_ref().into()
    }
}

impl fmt::Debug for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterKey(…)")
    }
}
