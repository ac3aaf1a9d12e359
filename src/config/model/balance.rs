//! How a target chooses among its backends, in the accepted form.

use std::sync::Arc;
use std::time::Duration;

/// THE REGISTRY: one line per algorithm, with its name in a config file and its file in `targets::balance`. The macro
/// that is called with the table makes of it what it needs: here the enum and the names, there the calls.
macro_rules! algorithms {
    ($make:ident) => {
        $make! {
            /// Each backend in turn, exactly, over all workers; with weights in the smooth order.
            #[default]
            RoundRobin "round_robin" round_robin,
            /// The one with the fewest requests in flight for its weight.
            LeastConnections "least_connections" least_connections,
            /// The one with the fewest requests in flight or waiting, whatever its weight.
            LeastBusy "least_busy" least_busy,
            /// Any, as often as its weight says.
            Random "random" random,
            /// The less busy of two drawn at random.
            PowerOfTwo "power_of_two" power_of_two,
            /// The one of two drawn at random whose answer is expected sooner.
            PeakEwma "peak_ewma" peak_ewma,
            /// By a hash of the request on a ring of points, with a bound on each backend's load.
            RingHash "ring_hash" ring_hash,
            /// By a hash of the request in a table of even shares.
            Maglev "maglev" maglev,
            /// The first in the order of the file; the others stand by.
            First "first" first,
        }
    };
}
pub(crate) use algorithms;

macro_rules! make_enum {
    ($($(#[$note:meta])* $name:ident $text:literal $file:ident,)*) => {
        /// The balancing algorithms.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub enum Balance {
            $($(#[$note])* $name,)*
        }

        impl Balance {
            /// Every algorithm with the name it has in a config file.
            pub const ALL: &'static [(&'static str, Balance)] = &[$(($text, Balance::$name)),*];
        }
    };
}
algorithms!(make_enum);

impl Balance {
    /// Names that other load balancers have for them; they are taken as well.
    pub const ALIASES: &'static [(&'static str, Balance)] = &[
        ("weighted_round_robin", Balance::RoundRobin),
        ("roundrobin", Balance::RoundRobin),
        ("leastconn", Balance::LeastConnections),
        ("least_conn", Balance::LeastConnections),
        ("p2c", Balance::PowerOfTwo),
    ];

    /// Whether a hash of the request decides.
    #[must_use]
    pub const fn is_hash(self) -> bool {
        matches!(self, Balance::RingHash | Balance::Maglev)
    }
}

/// What of a request is hashed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HashKey {
    /// The client's address; the only one for TCP.
    #[default]
    ClientIp,
    /// The path without the query.
    Path,
    /// The whole query.
    Query,
    /// One parameter of the query.
    Parameter(String),
    /// The first header line of this name, in lower case.
    Header(String),
    /// The cookie of this name.
    Cookie(String),
}

impl HashKey {
    /// Every kind that has a name alone in a config file; the others have a name of their own to look for.
    pub const NAMED: &'static [(&'static str, HashKey)] =
        &[("client_ip", HashKey::ClientIp), ("path", HashKey::Path), ("query", HashKey::Query)];
}

/// How the nodes of a cluster share the backends of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OwnerMode {
    /// Each node balances over all of them, by what it knows.
    #[default]
    Shared,
    /// Each backend has a node that prefers it; the others take it when they believe it free, and their own are full or have had more than their part.
    Soft,
}

impl OwnerMode {
    /// As they are written.
    pub const ALL: &'static [(&'static str, OwnerMode)] =
        &[("shared", OwnerMode::Shared), ("soft", OwnerMode::Soft)];
}

/// How a target chooses among its backends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// By which algorithm.
    pub algorithm: Balance,
    /// What the hash algorithms hash. Where a request has no such thing it is the client's address.
    pub hash_key: HashKey,
    /// `ring_hash`: how much of the average load one backend may have, in percent, above 100; `None`: any.
    /// Default 125.
    pub bounded_load: Option<u32>,
    /// How long a backend that came back takes to get its full share; zero (the default): none.
    pub slow_start: Duration,
    /// Whether nodes of a cluster prefer backends of their own.
    pub owner: OwnerMode,
    /// Where this process runs: backends of the same zone are preferred. The top-level `zone`.
    pub zone: Option<Arc<str>>,
}

impl Default for Policy {
    fn default() -> Self {
        Policy {
            algorithm: Balance::default(),
            hash_key: HashKey::default(),
            bounded_load: Some(125),
            slow_start: Duration::ZERO,
            owner: OwnerMode::Shared,
            zone: None,
        }
    }
}

impl From<Balance> for Policy {
    fn from(algorithm: Balance) -> Self {
        Policy { algorithm, ..Policy::default() }
    }
}

/// How much one backend gets, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Portion {
    /// 0 to 256: how much beside its siblings; 0: only clients whose cookie names it. Default 1.
    pub weight: u16,
    /// Backends of a higher number get traffic only when all of a lower one are out. Default 0.
    pub priority: u8,
    /// Where it runs.
    pub zone: Option<Arc<str>>,
}

impl Portion {
    /// The priority of a `backup`: behind every number that can be written.
    pub const BACKUP: u8 = u8::MAX;
    /// The greatest weight.
    pub const WEIGHT_MAX: u16 = 256;
}

impl Default for Portion {
    fn default() -> Self {
        Portion { weight: 1, priority: 0, zone: None }
    }
}

/// What the operator wants of a backend. `Up` forces nothing: one that is sick stays down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BackendState {
    /// It may have requests. The default.
    #[default]
    Up,
    /// Only clients whose sticky cookie names it.
    Drain,
    /// No new request at all.
    Down,
}

impl BackendState {
    /// All with the names they have in a config file.
    pub const ALL: &'static [(&'static str, BackendState)] =
        &[("up", BackendState::Up), ("drain", BackendState::Drain), ("down", BackendState::Down)];

    /// The name in config files, events and status.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            BackendState::Up => "up",
            BackendState::Drain => "drain",
            BackendState::Down => "down",
        }
    }
}

/// A cookie that keeps a client on one backend.
#[derive(Clone, PartialEq, Eq)]
pub struct Sticky {
    /// Its name. Default `evenkeel`.
    pub cookie: String,
    /// The secret that values are made with; never shown.
    pub key: Arc<[u8]>,
    /// The key was made at the start because none is given: it lasts until the process ends.
    pub is_fleeting: bool,
}

impl std::fmt::Debug for Sticky {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sticky").field("cookie", &self.cookie).finish_non_exhaustive()
    }
}
