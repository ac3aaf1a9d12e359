//! The rows of the stream, as far as they are shown. What is missing has a default, and what is not known is kept for whoever opens
//! the row: another version of evenkeel may tell more or less.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::track::RowCounts;

/// The process.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ProcessSeen {
    pub(super) version: String,
    pub(super) name: String,
    pub(super) pid: u32,
    /// A number of this process that no other one has.
    born: u32,
    pub(super) config_number: u64,
    pub(super) started_ms: u64,
    pub(super) connections: OpenSeen,
}

impl ProcessSeen {
    /// What tells it from another one: in a container each has the same number.
    pub(super) fn identity(&self) -> (u32, u32) {
        (self.pid, self.born)
    }
}

/// Connections of clients.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OpenSeen {
    pub(super) open: u64,
}

/// Something that is not as it is in good times; the worst comes first.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TroubleSeen {
    /// `down`, `hurt` or `note`.
    pub(super) weight: String,
    /// 0: that is not known.
    pub(super) since_ms: u64,
    pub(super) text: String,
}

/// A listener.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ListenerSeen {
    pub(super) protocol: String,
    pub(super) addresses: Vec<String>,
    pub(super) targets: Vec<String>,
    pub(super) connections: u64,
    requests: u64,
    errors: u64,
}

/// A target.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TargetSeen {
    pub(super) state: String,
    pub(super) reason: String,
    pub(super) since_ms: u64,
    pub(super) protocol: String,
    pub(super) balance: String,
    pub(super) left: u64,
    pub(super) of: u64,
    pub(super) active: u64,
    pub(super) waiting: u64,
    pub(super) requests: u64,
    pub(super) errors: u64,
    pub(super) times: Option<TimesSeen>,
    #[serde(flatten)]
    pub(super) more: Map<String, Value>,
}

/// A backend.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BackendSeen {
    pub(super) state: String,
    pub(super) source: String,
    pub(super) reason: String,
    pub(super) since_ms: u64,
    pub(super) address: String,
    pub(super) zone: Option<String>,
    pub(super) weight: u64,
    pub(super) share: f64,
    pub(super) priority: u64,
    pub(super) active: u64,
    pub(super) requests: u64,
    pub(super) errors: u64,
    pub(super) times: Option<TimesSeen>,
    #[serde(flatten)]
    pub(super) more: Map<String, Value>,
}

/// Until the first byte of answers, in milliseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct TimesSeen {
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
}

/// A row with counts in it.
pub(super) trait CountedRow {
    fn counts(&self) -> RowCounts;
}

macro_rules! counted {
    ($($row:ty),*) => {
        $(impl CountedRow for $row {
            fn counts(&self) -> RowCounts {
                RowCounts { requests: self.requests, errors: self.errors }
            }
        })*
    };
}

counted!(ListenerSeen, TargetSeen, BackendSeen);
