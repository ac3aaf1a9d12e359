//! What stands in answers beside plans and problems.

use serde::{Deserialize, Serialize};

use crate::events::EventReport;
use crate::overlay::{BlockedReport, EntryReport};
use crate::reload::plan::Plan;

/// The longest time that a change may be made for, in seconds: a year.
pub const LASTS_MAX: u64 = 366 * 24 * 3600;

/// What a change by hand is answered with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeReport {
    /// What was changed: `web/b1`, `web`.
    pub objects: Vec<String>,
    /// What has changed in the process, as a reload says it.
    pub plan: Plan,
    /// What is changed of these objects by hand now.
    pub entries: Vec<EntryReport>,
}

/// Who asks, and what it may.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionReport {
    /// `uid 0`, `token NAME` or `anonymous`.
    pub who: String,
    /// `open` (next to nothing), `read`, `operate` or `configure`.
    pub scope: String,
    /// When the session of a browser ends; `None`: it has come with none.
    pub ends_ms: Option<u64>,
    /// There are tokens to log in with.
    pub tokens: bool,
}

/// What somebody is told who has blocked a network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockAnswer {
    /// The network, as it is blocked.
    #[serde(flatten)]
    pub report: BlockedReport,
    /// Connections that were cut.
    pub cut: usize,
}

/// What somebody is told who has purged something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PurgeReport {
    /// What of: `url https://a.example/`, `prefix …`, `tag …`, `all`.
    pub of: String,
    /// It is stale now; else it is gone.
    pub soft: bool,
    /// How many stored answers that were; `None`: they are not counted.
    pub objects: Option<usize>,
}

/// `GET /api/v1/access/blocked/entries`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockedList {
    /// All that is blocked, in the order in which it was.
    pub entries: Vec<BlockedReport>,
    /// Why nothing can be changed now; absent: it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// What an applied config is answered with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyReport {
    /// What has changed in the process, as a reload says it.
    pub plan: Plan,
    /// The trial that it is on; `None`: it lies in the file now.
    pub trial: Option<TrialReport>,
}

/// A config on trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialReport {
    /// Who has applied it.
    pub who: String,
    /// When, in milliseconds since 1970.
    pub since_ms: u64,
    /// How long it may last, in milliseconds.
    pub window_ms: u64,
    /// For how long it still may, in milliseconds.
    pub left_ms: u64,
}

/// Who answers: `GET /api/v1`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessFacts {
    /// The program's version.
    pub version: String,
    /// The process's name.
    pub name: String,
    /// Its number in the system.
    pub pid: u32,
    /// The absolute path of its config; `None`: it has none.
    pub config: Option<String>,
    /// All that can be asked.
    pub routes: Vec<RouteFacts>,
}

/// One thing that can be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteFacts {
    /// As it is sent.
    pub method: String,
    /// `{name}` stands for a segment of any kind, percent-encoded.
    pub path: String,
    /// Who may: `open` (everybody), or the scope that a token needs at least.
    pub scope: String,
    /// What it does.
    pub does: String,
}

/// `GET /api/v1/events`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventList {
    /// The oldest first.
    pub events: Vec<EventReport>,
    /// The name of the latest event of all: what comes `after` it is new. It ends in `-0` if there was none.
    pub latest: String,
    /// How many came behind `after` that are gone.
    pub missed: u64,
}

/// `GET /api/v1/config/digest`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// A hash over the running state: names, numbers, policies, limits, health and since when, breakers, addresses.
    pub digest: String,
}

/// `GET /healthz`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Liveness {
    /// Always true: a process that is not answers nothing.
    pub alive: bool,
}

/// `GET /readyz`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readiness {
    /// Whether it is to get traffic.
    pub ready: bool,
    /// Why not.
    pub reasons: Vec<String>,
}
