//! A message: what is told of one event, and its body. What it says is fixed when the event comes; how all backends are is
//! looked up for each attempt.

use serde::{Deserialize, Serialize};

use crate::config::model::WebhookEvent;
use crate::events::Event;

/// A text that is longer says no more.
const TEXT_MAX: usize = 2 * 1024;

/// What receivers are told of one event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WebhookMessage {
    /// The event's name outside of its process: no other message ever has it.
    pub(super) id: String,
    /// What happened.
    pub(super) event: String,
    /// To what: `web/b1` (a backend), `web` (a target), the owner of a certificate; `None`: the process.
    pub(super) object: Option<String>,
    /// Why.
    pub(super) reason: String,
    /// The same as a sentence of the log.
    pub(super) text: String,
    /// Since when the object is what it is, in milliseconds since 1970.
    pub(super) since_ms: u64,
    /// When the event was told, in milliseconds since 1970.
    pub(super) time_ms: u64,
    /// The name of the process.
    pub(super) node: String,
}

impl WebhookMessage {
    /// What is told of `event`, whose name outside is `id`.
    #[must_use]
    pub(super) fn of(
        kind: WebhookEvent,
        event: &Event,
        id: String,
        since_ms: u64,
        node: &str,
    ) -> WebhookMessage {
        let short = |text: &str| {
            let mut short = text.to_owned();
            if text.len() > TEXT_MAX {
                short.truncate(text.floor_char_boundary(TEXT_MAX));
                short.push('…');
            }
            short
        };
        let reason = event.facts.text("reason").unwrap_or(&event.text);
        WebhookMessage {
            id,
            event: kind.name().to_owned(),
            object: event.object(),
            reason: short(reason),
            text: short(&event.text),
            since_ms,
            time_ms: event.time,
            node: node.to_owned(),
        }
    }

    /// The body. `states`: how all backends are at `at_ms`, as JSON.
    #[must_use]
    pub(super) fn body(&self, states: &str, at_ms: u64) -> Vec<u8> {
        #[derive(Serialize)]
        struct Body<'a> {
            id: &'a str,
            event: &'a str,
            object: Option<&'a str>,
            reason: &'a str,
            text: &'a str,
            since: String,
            time: String,
            node: &'a str,
            backends_at: String,
        }
        let body = Body {
            id: &self.id,
            event: &self.event,
            object: self.object.as_deref(),
            reason: &self.reason,
            text: &self.text,
            since: stamp(self.since_ms),
            time: stamp(self.time_ms),
            node: &self.node,
            backends_at: stamp(at_ms),
        };
        // It has texts for keys, so it can't fail.
        let mut bytes = serde_json::to_vec(&body).unwrap_or_default();
        bytes.pop();
        bytes.extend_from_slice(b",\"backends\":");
        bytes.extend_from_slice(states.as_bytes());
        bytes.push(b'}');
        bytes
    }
}

/// RFC 3339, in UTC.
fn stamp(unix_ms: u64) -> String {
    // The last second that four digits of a year can say.
    let at = unix_ms.min(253_402_300_799_999);
    let at = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_millis(at);
    humantime::format_rfc3339_millis(at).to_string()
}

#[cfg(test)]
pub(super) fn example(id: u64, object: &str) -> WebhookMessage {
    WebhookMessage {
        id: format!("1-{id}"),
        event: "backend_down".to_owned(),
        object: Some(object.to_owned()),
        reason: "connection refused".to_owned(),
        text: format!("backend {object} is down: connection refused"),
        since_ms: 1_000,
        time_ms: 2_500,
        node: "edge-1".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_says_what_happened_and_how_all_backends_are() {
        let body = example(7, "web/b1").body(r#"{"web/b1":{"state":"down"}}"#, 3_000);
        let json: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
        let expected = serde_json::json!({
            "id": "1-7", "event": "backend_down", "object": "web/b1", "reason": "connection refused",
            "text": "backend web/b1 is down: connection refused", "node": "edge-1",
            "since": "1970-01-01T00:00:01.000Z", "time": "1970-01-01T00:00:02.500Z",
            "backends_at": "1970-01-01T00:00:03.000Z", "backends": {"web/b1": {"state": "down"}},
        });
        assert_eq!(json, expected);
        assert!(!stamp(u64::MAX).is_empty());
    }
}
