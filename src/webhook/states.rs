//! How all backends are, for the body of a message.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use crate::snapshot::Snapshot;
use crate::targets::Health;
use crate::tick::Tick;

/// What was looked up so short a time ago is not looked up again: in a burst most messages share it.
const FRESH: Duration = Duration::from_millis(100);

/// The latest look.
#[derive(Debug, Default)]
pub(super) struct BackendStates {
    latest: Option<(Tick, u64, Arc<str>)>,
}

impl BackendStates {
    /// An object of JSON, by `target/name`, and when that was, in milliseconds since 1970.
    pub(super) fn look(&mut self, snapshot: Option<&Snapshot>, now: Tick, unix_ms: u64) -> (Arc<str>, u64) {
        if let Some((at, at_ms, states)) = &self.latest
            && now.since(*at) < FRESH
        {
            return (Arc::clone(states), *at_ms);
        }
        let states: Arc<str> = snapshot.map_or_else(|| "{}".to_owned(), states).into();
        self.latest = Some((now, unix_ms, Arc::clone(&states)));
        (states, unix_ms)
    }

    /// Has the next look be a new one: something has changed.
    pub(super) fn forget(&mut self) {
        self.latest = None;
    }
}

fn states(snapshot: &Snapshot) -> String {
    let mut json = "{".to_owned();
    for backend in snapshot.targets.iter().flat_map(|target| &target.backends) {
        let text = |text: &str| serde_json::Value::from(text).to_string();
        let (name, host) = (text(&backend.identity), text(&backend.address.to_string()));
        let (health, _) = backend.state_since();
        let (state, alive) = (health.as_str(), health == Health::Up);
        let comma = if json.len() > 1 { "," } else { "" };
        let _ = write!(json, r#"{comma}{name}:{{"host":{host},"state":"{state}","alive":{alive}}}"#);
    }
    json.push('}');
    json
}
