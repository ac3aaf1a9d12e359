//! What is said about the state of things: listeners, targets, backends. Times are milliseconds since 1970, ages and spans
//! milliseconds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::access::{AccessListReport, RateLimitReport};
use crate::admin::wire::TrialReport;

/// `GET /api/v1/status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusReport {
    /// Who answers.
    pub process: ProcessReport,
    /// Client connections.
    pub connections: ConnectionReport,
    /// Connections to backends.
    pub upstream: UpstreamReport,
    /// How often requests have ended with each cause, without `done`.
    pub causes: BTreeMap<String, u64>,
    /// In config order.
    pub listeners: Vec<ListenerReport>,
    /// In config order.
    pub targets: Vec<TargetReport>,
    /// What is stored of answers, and what that was good for.
    #[serde(default)]
    pub cache: CacheReport,
    /// Who is told of events by HTTP, in config order.
    #[serde(default)]
    pub webhooks: Vec<WebhookReport>,
    /// What rate limits have let through and refused, by name.
    #[serde(default)]
    pub rate_limits: Vec<RateLimitReport>,
    /// Whom access lists have not let in, by name.
    #[serde(default)]
    pub access_lists: Vec<AccessListReport>,
}

/// What is stored of answers, and what that was good for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheReport {
    /// Bytes that are stored, their overhead included.
    pub bytes: u64,
    /// As many may be.
    pub memory: u64,
    /// Bodies that were compressed to be kept so, each once in each coding.
    #[serde(default)]
    pub compressed: u64,
    /// Requests of routes with a cache, by what it has done for them: `hit`, `stale`, `revalidated`, `collapsed`, `miss`, `uncacheable`.
    pub requests: BTreeMap<String, u64>,
    /// Why the last of these were so.
    pub reasons: BTreeMap<String, u64>,
}

/// Somebody who is told of events by HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookReport {
    /// Scheme and host of its URL.
    pub url: String,
    /// What it is told.
    pub events: Vec<String>,
    /// Messages that wait for it.
    pub waiting: usize,
    /// Messages that it has taken.
    pub delivered: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Messages that are not sent any more.
    pub dropped: u64,
    /// Why the latest attempt that failed did; `None`: none has.
    pub last_error: Option<String>,
    /// When that was.
    pub last_error_ms: Option<u64>,
}

/// Who answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessReport {
    /// The program's version.
    pub version: String,
    /// The process's name.
    pub name: String,
    /// Its number in the system.
    pub pid: u32,
    /// The absolute path of its config; `None`: it has none.
    pub config: Option<String>,
    /// The how manieth config of this process is in force, from 1.
    pub config_number: u64,
    /// Worker threads.
    pub workers: usize,
    /// When it began to serve.
    pub started_ms: u64,
    /// How long ago that is.
    pub uptime_ms: u64,
    /// Networks that are kept out at run time.
    #[serde(default)]
    pub blocked: usize,
    /// The trial that the config in force is on; `None`: it is on none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<TrialReport>,
}

/// Client connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionReport {
    /// Open now.
    pub open: usize,
    /// As many may be open at once.
    pub limit: usize,
    /// Accepted, refused ones included.
    pub accepted: u64,
    /// Turned away because of one of the limits.
    pub refused: u64,
}

/// Connections to backends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpstreamReport {
    /// Connections opened.
    pub opened: u64,
    /// Requests sent on an idle connection.
    pub reused: u64,
    /// Attempts after the first of a request.
    pub retries: u64,
}

/// What has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficReport {
    /// Requests, tunnels and TCP connections.
    pub requests: u64,
    /// By the first digit of the status, such as `2xx`; `none`: there was none, as with TCP.
    pub by_class: BTreeMap<String, u64>,
    /// Body bytes from clients.
    pub bytes_in: u64,
    /// Body bytes to clients.
    pub bytes_out: u64,
}

/// Per second, over the latest seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateReport {
    /// Requests; of a backend: attempts.
    pub requests: f64,
    /// Answers from 500 on; of a backend: attempts that ended in its fault.
    pub errors: f64,
    /// Over how long this was counted.
    pub over_ms: u64,
}

/// A listener.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListenerReport {
    /// Its name.
    pub name: String,
    /// `listening`.
    pub state: String,
    /// Why.
    pub reason: String,
    /// Since when.
    pub since_ms: u64,
    /// How long ago that is.
    pub age_ms: u64,
    /// `http`, `https`, `tcp`, or `tls` for TCP behind TLS.
    pub protocol: String,
    /// Where it is bound.
    pub addresses: Vec<String>,
    /// Where its requests go.
    pub targets: Vec<String>,
    /// Connections open now.
    pub connections: usize,
    /// As many may be open; `None`: any, within the process's limit.
    pub connections_limit: Option<usize>,
    /// As many may be open of one client; `None`: any.
    pub connections_per_client: Option<u32>,
    /// What has ended.
    pub traffic: TrafficReport,
    /// `None`: it was not there long enough.
    pub rate: Option<RateReport>,
    /// What it shows to clients.
    pub certificates: Vec<CertificateReport>,
}

/// A certificate of ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateReport {
    /// The names in it.
    pub names: Vec<String>,
    /// Where it was read.
    pub file: String,
    /// When it begins.
    pub begins_ms: i64,
    /// When it ends.
    pub expires_ms: i64,
    /// Days until then, rounded down; negative when it has ended.
    pub days_left: i64,
    /// The kind of its key: `ECDSA P-256`.
    pub key: String,
    /// Who each certificate of its chain is for, its own first.
    pub chain: Vec<String>,
    /// Until when an answer of its authority is shown with it; `None`: there is none.
    pub stapled_until_ms: Option<i64>,
    /// Clients see it that ask for a name which no certificate has, or for none.
    pub is_default: bool,
    /// How it goes with its orders; `None`: it is not ordered.
    pub order: Option<OrderReport>,
}

/// A certificate that is ordered from an authority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderReport {
    /// `issued`, or `self_signed` until an authority has issued the first.
    pub state: String,
    /// How it is shown whose the names are: `http-01`, `tls-alpn-01` or `dns-01`.
    pub challenge: String,
    /// An order is under way.
    pub is_busy: bool,
    /// When the next is due; `None`: not known yet, or it is not this node that orders.
    pub next_ms: Option<u64>,
    /// The node that orders it; `None`: this one, or none as long as this one is detached.
    #[serde(default)]
    pub by: Option<String>,
    /// Attempts in a row that have failed.
    pub failures: u32,
    /// Why the latest has.
    pub last_error: Option<String>,
}

/// `GET /api/v1/targets/T`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetReport {
    /// Its name.
    pub name: String,
    /// `unknown` (no verdict yet), `up`, `backups` (no others are left) or `down`.
    pub state: String,
    /// Why.
    pub reason: String,
    /// Since when.
    pub since_ms: u64,
    /// How long ago that is.
    pub age_ms: u64,
    /// `http` or `tcp`.
    pub protocol: String,
    /// How a backend is chosen.
    pub balance: String,
    /// How many backends get requests of new clients.
    pub left: usize,
    /// How many there are with a weight.
    pub of: usize,
    /// Requests at its backends now.
    pub active: u64,
    /// Requests in its queue now.
    pub waiting: usize,
    /// As many requests one backend may have now; `None`: any.
    pub max_in_flight: Option<u32>,
    /// `out`: it needs more backends; `in`: it would do with fewer; `None`: neither, or `scale` asks for neither.
    pub scale: Option<String>,
    /// So few backends are left that outliers get requests again.
    pub panics: bool,
    /// Backends of the config before that stand in, because none of the present ones may be picked yet.
    pub stand_ins: usize,
    /// What has ended.
    pub traffic: TrafficReport,
    /// `None`: it was not there long enough.
    pub rate: Option<RateReport>,
    /// From a request to the first byte of the answer, since the start; `None`: nothing was counted.
    pub first_byte: Option<LatencyReport>,
    /// Copies of requests that it got, which are in none of the counts before; `None`: it got none.
    #[serde(default)]
    pub copies: Option<CopyReport>,
    /// Names whose addresses are backends, in config order.
    #[serde(default)]
    pub names: Vec<NameReport>,
    /// In config order.
    pub backends: Vec<BackendReport>,
}

/// What became of copies of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CopyReport {
    /// Requests that were to be copied. Those that are in neither of the others are being copied.
    pub chosen: u64,
    /// Copies that were answered, in whichever way.
    pub answered: u64,
    /// The others, by why they were not.
    pub by_cause: BTreeMap<String, u64>,
}

/// How long something took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyReport {
    /// Milliseconds that half of them do not exceed.
    pub p50_ms: f64,
    /// The same of 99 %.
    pub p99_ms: f64,
}

/// `GET /api/v1/targets/T/backends/B`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackendReport {
    /// The name of its target.
    pub target: String,
    /// Its name in there.
    pub name: String,
    /// Where it is, as written.
    pub address: String,
    /// It is spoken to over TLS.
    pub tls: bool,
    /// `unknown` (no verdict yet), `up`, `draining` or `down`.
    pub state: String,
    /// The input that decided: `operator`, `name`, `probe`, `agent`, `breaker` or `outlier`.
    pub source: String,
    /// What that one says.
    pub reason: String,
    /// Since when.
    pub since_ms: u64,
    /// How long ago that is.
    pub age_ms: u64,
    /// All inputs of its state.
    pub inputs: Vec<InputReport>,
    /// The configured weight.
    pub weight: u16,
    /// Percent of it that its agent grants.
    pub agent_share: u32,
    /// Percent of the requests of new clients that it gets by its weight now.
    pub share: f64,
    /// It gets traffic only when all of a lower number are out; 255: a backup.
    pub priority: u8,
    /// Where it runs.
    pub zone: Option<String>,
    /// Requests there now.
    pub active: u32,
    /// Requests that other nodes of the cluster have there, where they share it (`owner: soft`).
    #[serde(default)]
    pub elsewhere: u32,
    /// Whether this node prefers it; `None`: nodes do not share backends so.
    #[serde(default)]
    pub is_own: Option<bool>,
    /// Idle connections to it.
    pub idle_connections: u32,
    /// What has ended with it.
    pub traffic: TrafficReport,
    /// Attempts.
    pub attempts: u64,
    /// Those of them that ended in its fault.
    pub failures: u64,
    /// `None`: it was not there long enough.
    pub rate: Option<RateReport>,
    /// From the request sent to the first byte of its answer, a quarter too much at most; `None`: there was none.
    #[serde(default)]
    pub first_byte: Option<LatencyReport>,
    /// `None`: there was none.
    pub last_probe: Option<ProbeReport>,
}

/// What one input of a backend's state says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputReport {
    /// `operator`, `name`, `probe`, `agent`, `breaker` or `outlier`.
    pub source: String,
    /// Its word.
    pub says: String,
    /// Why; may be empty.
    pub reason: String,
    /// Since when.
    pub since_ms: u64,
    /// How long ago that is.
    pub age_ms: u64,
}

/// The latest probe of a backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// When it ended.
    pub at_ms: u64,
    /// How long ago that is.
    pub age_ms: u64,
    /// `good` or `bad`.
    pub result: String,
    /// What was wrong; `None`: nothing.
    pub reason: Option<String>,
    /// How long it took.
    pub took_ms: f64,
}

/// A name whose addresses are backends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameReport {
    /// As it is written.
    pub name: String,
    /// The key that it is written under: `dns` or `srv`.
    pub asked_as: String,
    /// Those that are known, with their ports where records say them.
    pub addresses: Vec<String>,
    /// Those of them that the latest good answer lacks.
    pub lacked: Vec<String>,
    /// How many more that answer had than there may be.
    pub left_out: usize,
    /// The TTL of that answer, within its bounds; `None`: there was none yet.
    pub ttl_ms: Option<u64>,
    /// When it came.
    pub answered_ms: Option<u64>,
    /// How long ago that is.
    pub answered_age_ms: Option<u64>,
    /// Why there was none since; `None`: there was no other.
    pub trouble: Option<NameTroubleReport>,
    /// The node of the cluster that asks for it and tells this one; `None`: this one asks itself.
    #[serde(default)]
    pub asked_by: Option<String>,
}

/// Why there is no good answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameTroubleReport {
    /// In words.
    pub reason: String,
    /// Since when there is none.
    pub since_ms: u64,
    /// How long ago that is.
    pub age_ms: u64,
}
