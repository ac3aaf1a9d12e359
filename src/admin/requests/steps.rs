//! What happened to a request, step by step, out of the times in its Record.

use super::report::StoryStep;
use crate::message::{Attempt, Blame, CacheNote, Cause, PickNote, Record, RecordKind};
use crate::telemetry::recorder::KeptRequest;
use crate::tick::Tick;

/// What takes less between two steps is no step of its own, in nanoseconds.
const NOTICED: u64 = 100_000;

/// When a request began: with its first byte, or else when its connection came.
pub(super) fn beginning(record: &Record) -> Tick {
    if record.started == Tick::ZERO { record.accepted } else { record.started }
}

/// The time from one point to another, in milliseconds with three digits behind the point; the other may be earlier.
pub(super) fn millis(from: Tick, to: Tick) -> f64 {
    let nanos = i128::from(to.0) - i128::from(from.0);
    #[expect(clippy::cast_precision_loss, reason = "microseconds of what took at most days")]
    let micros = (nanos / 1000) as f64;
    micros / 1000.0
}

/// All steps, in their order.
pub(super) fn steps(kept: &KeptRequest) -> Vec<StoryStep> {
    let mut steps = Steps { beginning: beginning(&kept.record), all: Vec::new() };
    let record = &kept.record;
    steps.connection(record);
    if record.head_read != Tick::ZERO {
        steps.span("head", record.started, record.head_read, String::new());
    }
    steps.route(kept);
    steps.before_backends(record);
    let attempts = record.kept_attempts();
    for (place, attempt) in attempts.iter().enumerate() {
        // Only the first and the last are kept of many.
        let is_last = place + 1 == attempts.len();
        let number = if is_last { usize::from(record.attempts_made) } else { place + 1 };
        let backend = kept.backends.get(place).map_or("", String::as_str);
        let mut text = format!("{number}: {backend}");
        match attempt.pick.in_flight() {
            0 => {}
            PickNote::MANY => text += &format!(", {} or more in flight", PickNote::MANY),
            many => text += &format!(", {many} in flight"),
        }
        if attempt.pick.is_trial() {
            text += ", had been left out";
        }
        let end = if attempt.end == Tick::ZERO { record.done } else { attempt.end };
        if attempt.outcome != Cause::Done {
            text += &format!(": {}", attempt.outcome);
        }
        steps.span("attempt", attempt.picked, end, text);
        match (attempt.reused, attempt.connected) {
            (true, _) => steps.moment("connect", attempt.picked, "there already".to_owned()),
            (false, at) => steps.connect(attempt, at, end),
        }
        if attempt.sent != Tick::ZERO {
            let text = if attempt.resent { "twice: that connection was closed" } else { "" };
            steps.span("send", attempt.connected, attempt.sent, text.to_owned());
        }
        match (attempt.sent, attempt.first_byte) {
            (Tick::ZERO, _) => {}
            (sent, Tick::ZERO) => steps.span("first byte", sent, end, "none came".to_owned()),
            (sent, first) => {
                steps.span("first byte", sent, first, String::new());
                let name = match record.kind {
                    RecordKind::Http => "body",
                    RecordKind::Upgrade | RecordKind::Tcp => "tunnel",
                    RecordKind::Udp => "flow",
                };
                steps.span(name, first, end, String::new());
            }
        }
    }
    steps.end(record);
    steps.all
}

struct Steps {
    beginning: Tick,
    all: Vec<StoryStep>,
}

impl Steps {
    fn moment(&mut self, step: &str, at: Tick, text: String) {
        let at_ms = millis(self.beginning, at);
        self.all.push(StoryStep { step: step.to_owned(), at_ms, took_ms: None, text });
    }

    fn span(&mut self, step: &str, from: Tick, to: Tick, text: String) {
        let (at_ms, took_ms) = (millis(self.beginning, from), Some(millis(from, to).max(0.0)));
        self.all.push(StoryStep { step: step.to_owned(), at_ms, took_ms, text });
    }

    /// TCP, and TLS where that stood. `connected`: zero where it came to nothing, until `end`.
    fn connect(&mut self, attempt: &Attempt, connected: Tick, end: Tick) {
        let (to, text) = if connected == Tick::ZERO { (end, "in vain") } else { (connected, "") };
        if attempt.stood == Tick::ZERO {
            return self.span("connect", attempt.picked, to, text.to_owned());
        }
        self.span("connect", attempt.picked, attempt.stood, String::new());
        self.span("backend tls", attempt.stood, to, text.to_owned());
    }

    fn connection(&mut self, record: &Record) {
        let client = record.client.map_or_else(|| "a unix socket".to_owned(), |client| client.to_string());
        self.moment("accept", record.accepted, format!("from {client}"));
        if let Some(tls) = record.tls {
            let resumed = if tls.resumed { ", resumed" } else { "" };
            self.span("tls", record.accepted, record.secured, format!("{}{resumed}", tls.version()));
        }
    }

    fn route(&mut self, kept: &KeptRequest) {
        let record = &kept.record;
        if record.routed == Tick::ZERO {
            return;
        }
        let text = match (kept.route.as_str(), kept.target.as_str()) {
            ("", "") => format!("listener {}", kept.listener),
            (route, "") => format!("listener {}, {route}", kept.listener),
            ("", target) => format!("listener {} -> target {target}", kept.listener),
            (route, target) => format!("listener {}, {route} -> target {target}", kept.listener),
        };
        self.moment("route", record.routed, text);
    }

    /// What is between the route and the first backend.
    fn before_backends(&mut self, record: &Record) {
        if record.asked != Tick::ZERO {
            let (to, text) = match record.told {
                Tick::ZERO => (record.done, "did not answer"),
                told => (told, "another service was asked for its client"),
            };
            self.span("forward auth", record.asked, to, text.to_owned());
        }
        let picked = record.kept_attempts().first().map(|attempt| attempt.picked);
        let until = if record.waited == Tick::ZERO { picked.unwrap_or(record.done) } else { record.waited };
        let took = until.0.saturating_sub(record.routed.0);
        let is_noticed = record.routed != Tick::ZERO && took >= NOTICED;
        if let Some(note) = record.cache {
            let why = note.reason().map_or(String::new(), |why| format!(": {}", why.token()));
            let text = format!("{}{why}", CacheNote::token(note));
            if is_noticed {
                self.span("cache", record.routed, until, text);
            } else {
                self.moment("cache", until, text);
            }
        } else if is_noticed {
            self.span("access", record.routed, until, "what was asked before a backend was".to_owned());
        }
        if record.waited != Tick::ZERO {
            let text = if picked.is_some() { "until a backend had room" } else { "in vain" };
            self.span("queue", record.waited, picked.unwrap_or(record.done), text.to_owned());
        }
    }

    fn end(&mut self, record: &Record) {
        let mut parts = Vec::new();
        match record.status {
            0 => parts.push("no answer".to_owned()),
            status => parts.push(status.to_string()),
        }
        if let Some(ended) = record.grpc {
            parts.push(format!("grpc-status {} {}", ended as u8, ended.name()));
        }
        if record.cause != Cause::Done {
            parts.push(record.cause.token().to_owned());
        }
        if record.bytes_in > 0 {
            parts.push(format!("{} bytes in", record.bytes_in));
        }
        parts.push(format!("{} bytes out", record.bytes_out));
        self.moment("end", record.done, parts.join(", "));
    }
}

/// Whose fault a cause is, as a word.
pub(super) const fn fault(cause: Cause) -> &'static str {
    match cause.blame() {
        Blame::Nobody => "nobody",
        Blame::Client => "client",
        Blame::Local => "evenkeel",
        Blame::Backend => "backend",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::BackendId;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_request_that_was_tried_twice_has_all_its_steps_in_their_order() {
        let mut record = Record {
            accepted: Tick(MS),
            started: Tick(11 * MS),
            head_read: Tick(12 * MS),
            routed: Tick(12 * MS),
            waited: Tick(12 * MS),
            done: Tick(61 * MS),
            status: 200,
            bytes_out: 5,
            ..Record::default()
        };
        let first = record.attempt(BackendId(0), Tick(22 * MS));
        *first = Attempt { outcome: Cause::ConnectFailed, end: Tick(23 * MS), ..*first };
        first.pick = PickNote::new(2, true);
        let second = record.attempt(BackendId(1), Tick(23 * MS));
        (second.connected, second.sent) = (Tick(24 * MS), Tick(24 * MS));
        (second.first_byte, second.end) = (Tick(50 * MS), Tick(61 * MS));
        let kept = KeptRequest {
            record,
            backends: vec!["a".into(), "b".into()],
            listener: "public".into(),
            route: "shop".into(),
            target: "web".into(),
            ..KeptRequest::default()
        };
        let told: Vec<String> = steps(&kept)
            .into_iter()
            .map(|step| format!("{} {} {:?} {}", step.step, step.at_ms, step.took_ms, step.text))
            .collect();
        assert_eq!(
            told,
            [
                "accept -10 None from a unix socket",
                "head 0 Some(1.0) ",
                "route 1 None listener public, shop -> target web",
                "queue 1 Some(10.0) until a backend had room",
                "attempt 11 Some(1.0) 1: a, 2 in flight, had been left out: connect_failed",
                "connect 11 Some(1.0) in vain",
                "attempt 12 Some(38.0) 2: b",
                "connect 12 Some(1.0) ",
                "send 13 Some(0.0) ",
                "first byte 13 Some(26.0) ",
                "body 39 Some(11.0) ",
                "end 50 None 200, 5 bytes out",
            ]
        );
    }
}
