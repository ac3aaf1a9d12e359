//! What is told of a request that is over.

use serde::{Deserialize, Serialize};

use crate::events::EventReport;
use crate::reload::plan::PlannedPlace;

/// `GET /api/v1/requests`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestList {
    /// The latest first.
    pub requests: Vec<RequestSummary>,
    /// There are more that fit.
    pub more: bool,
}

/// A request in short.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestSummary {
    /// Its id, as its client, its backend and the access log have it.
    pub id: String,
    /// When it began, in milliseconds since 1970.
    pub time_ms: u64,
    /// `http`, `upgrade` or `tcp`.
    pub kind: String,
    /// Why it was kept: `failed`, `retried`, `slow`, `refused` or `sampled`.
    pub kept_for: String,
    /// Who asked: address and port; `None`: nobody with an address.
    pub client: Option<String>,
    /// Where it came in.
    pub listener: String,
    /// Its route; `None`: it had none, or its listener has one only.
    pub route: Option<String>,
    /// Where it was routed; `None`: nowhere.
    pub target: Option<String>,
    /// The backend of its last attempt; `None`: it made none.
    pub backend: Option<String>,
    /// Its method; `None`: nothing was read of it.
    pub method: Option<String>,
    /// Its host.
    pub host: Option<String>,
    /// Its path and the names in its query; what their values were nobody knows any more.
    pub path: Option<String>,
    /// What its client was told; `None`: nothing.
    pub status: Option<u16>,
    /// Why it ended; `None`: it went well.
    pub cause: Option<String>,
    /// How long it took.
    pub duration_ms: f64,
    /// How often a backend was tried.
    pub attempts: u8,
    /// The trace that it belongs to, as 32 hex digits; `None`: nothing was traced.
    #[serde(default)]
    pub trace_id: Option<String>,
}

/// `GET /api/v1/requests/ID`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestStory {
    /// The same in short.
    #[serde(flatten)]
    pub summary: RequestSummary,
    /// Why it ended as it did, in a sentence or two.
    pub verdict: String,
    /// Whose fault that is: `client`, `backend`, `evenkeel` (its limits, its config, its machine) or `nobody`.
    pub fault: String,
    /// Header lines that may be shown.
    pub headers: Vec<ShownLine>,
    /// Body bytes from the client.
    pub bytes_in: u64,
    /// Body bytes to the client.
    pub bytes_out: u64,
    /// What happened, in its order.
    pub steps: Vec<StoryStep>,
    /// The attempts that are kept: the first ones and the last.
    pub tries: Vec<StoryAttempt>,
    /// The how manieth config of the process was in force.
    pub config_number: u64,
    /// Another one is in force now, so places may be others.
    pub config_changed: bool,
    /// What of the config has decided, with its places.
    pub config: Vec<DecidingKey>,
    /// What was told of its target and its backends within ten seconds before and after, and of configs.
    pub events: Vec<NearbyEvent>,
}

/// A header line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownLine {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// A step on the way of a request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StoryStep {
    /// `accept`, `tls`, `head`, `route`, `access`, `cache`, `queue`, `attempt`, `connect`, `send`, `first byte`, `body`, `end`.
    pub step: String,
    /// When it began, counted from the request's first byte: what came before it is negative.
    pub at_ms: f64,
    /// How long it took; `None`: it is a moment.
    pub took_ms: Option<f64>,
    /// What is known of it.
    pub text: String,
}

/// One try on one backend.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StoryAttempt {
    /// The backend.
    pub backend: String,
    /// Why it failed; `None`: its answer was taken.
    pub cause: Option<String>,
    /// It went out on a connection that was there.
    pub reused: bool,
    /// It went out once more, as that connection was closed.
    pub resent: bool,
    /// Requests that the backend had, with this one, when it was chosen; 127 is that or more. `None`: that is not known.
    pub in_flight: Option<u8>,
    /// The backend had been left out, and this one was to find out whether it is back.
    pub was_left_out: bool,
}

/// Something that the config says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecidingKey {
    /// Its path, such as `targets.web.timeouts.connect`.
    pub key: String,
    /// What it says.
    pub value: String,
    /// Where.
    pub place: PlannedPlace,
}

/// An event near a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NearbyEvent {
    /// When, counted from the request's first byte: what was before it is negative.
    pub at_ms: f64,
    /// What was told.
    #[serde(flatten)]
    pub event: EventReport,
}
