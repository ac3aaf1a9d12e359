//! What is shown of names whose addresses are backends.

use std::sync::Arc;
use std::time::Duration;

use crate::config::model::discovery::DnsQuestion;

/// How it stands with one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameView {
    /// What is asked for.
    pub question: DnsQuestion,
    /// Its addresses, with their ports where records say them.
    pub addresses: Vec<KnownView>,
    /// The TTL of the latest good answer, as it counts; `None`: there was none yet.
    pub ttl: Option<Duration>,
    /// When that came, in milliseconds since 1970.
    pub answered_ms: Option<u64>,
    /// Why there was no good answer since then, and since when, in milliseconds since 1970; `None`: there was none without.
    pub trouble: Option<(String, u64)>,
    /// Addresses of the latest answer for which there was no room.
    pub beyond: usize,
    /// The node that asks for it and tells this one; `None`: this one asks itself.
    pub asked_by: Option<Arc<str>>,
}

/// One address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownView {
    /// As text: with its port, if the record has one.
    pub address: String,
    /// For how long answers have lacked it; `None`: the latest has it.
    pub absent: Option<Duration>,
}
