//! A request that is over as it is told.

use super::places::places;
use super::report::{NearbyEvent, RequestStory, RequestSummary, ShownLine, StoryAttempt};
use super::steps::{beginning, fault, millis, steps};
use super::verdict::verdict;
use crate::config::Effective;
use crate::events::{Event, EventHistory, EventKind};
use crate::message::{Cause, Record, RecordKind};
use crate::telemetry::recorder::KeptRequest;

/// How near an event has to be, in milliseconds.
const NEAR: u64 = 10_000;
/// Events that are told at most.
const MOST_EVENTS: usize = 50;

/// Milliseconds since 1970 at tick zero turned into those of a tick.
fn unix_ms(wall: u64, record: &Record) -> u64 {
    wall.saturating_add(beginning(record).0) / 1_000_000
}

/// It in short. `wall`: the wall clock at tick zero, in nanoseconds since 1970.
pub(super) fn summary(kept: &KeptRequest, wall: u64) -> RequestSummary {
    let record = &kept.record;
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let written = |bytes: &[u8]| some(&printable(bytes));
    RequestSummary {
        id: format!("{:032x}", record.id),
        time_ms: unix_ms(wall, record),
        kind: match record.kind {
            RecordKind::Http => "http",
            RecordKind::Upgrade => "upgrade",
            RecordKind::Tcp => "tcp",
            RecordKind::Udp => "udp",
        }
        .to_owned(),
        kept_for: kept.kept_for.token().to_owned(),
        client: record.client.map(|client| client.to_string()),
        listener: kept.listener.clone(),
        route: some(&kept.route),
        target: some(&kept.target),
        backend: kept.backends.last().cloned(),
        method: written(&kept.method),
        host: written(&kept.host),
        path: written(&kept.path),
        status: Some(record.status).filter(|&status| status != 0),
        cause: cause(record.cause),
        duration_ms: millis(beginning(record), record.done),
        attempts: record.attempts_made,
        trace_id: kept.trace.map(|trace| format!("{:032x}", trace.trace)),
    }
}

fn cause(cause: Cause) -> Option<String> {
    Some(cause).filter(|&cause| cause != Cause::Done).map(|cause| cause.token().to_owned())
}

/// What a client wrote as text: what is no UTF-8 is `\xNN`, as in the access log. Whoever prints it escapes what steers a terminal.
fn printable(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text += chunk.valid();
        chunk.invalid().iter().for_each(|byte| text += &format!("\\x{byte:02x}"));
    }
    text
}

/// All of it. `config`: the number of the config in force, and its rows.
pub(super) fn story(
    kept: &KeptRequest,
    wall: u64,
    config: (u64, &[Effective]),
    history: &EventHistory,
) -> RequestStory {
    let record = &kept.record;
    let (number, rows) = config;
    let attempts = record.kept_attempts().iter().zip(&kept.backends);
    let summary = summary(kept, wall);
    RequestStory {
        verdict: verdict(kept),
        fault: fault(record.cause).to_owned(),
        headers: kept
            .headers
            .iter()
            .map(|(name, value)| ShownLine { name: name.clone(), value: printable(value) })
            .collect(),
        bytes_in: record.bytes_in,
        bytes_out: record.bytes_out,
        steps: steps(kept),
        tries: attempts
            .map(|(attempt, backend)| StoryAttempt {
                backend: backend.clone(),
                cause: cause(attempt.outcome),
                reused: attempt.reused,
                resent: attempt.resent,
                in_flight: Some(attempt.pick.in_flight()).filter(|&many| many != 0),
                was_left_out: attempt.pick.is_trial(),
            })
            .collect(),
        config_number: kept.config,
        config_changed: kept.config != number,
        config: places(rows, kept),
        events: nearby(kept, &summary, history),
        summary,
    }
}

/// What was told around it of what it met.
fn nearby(kept: &KeptRequest, summary: &RequestSummary, history: &EventHistory) -> Vec<NearbyEvent> {
    let begin = summary.time_ms;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "no request lasts that long")]
    let end = begin.saturating_add(summary.duration_ms.max(0.0) as u64);
    let span = begin.saturating_sub(NEAR)..=end.saturating_add(NEAR);
    let all = history.after(0, usize::MAX).events;
    let near = all.iter().filter(|event| span.contains(&event.time) && concerns(event, kept));
    near.take(MOST_EVENTS)
        .map(|event| {
            #[expect(clippy::cast_precision_loss, reason = "within minutes")]
            let at_ms = (i128::from(event.time) - i128::from(begin)) as f64;
            NearbyEvent { at_ms, event: history.report(event) }
        })
        .collect()
}

/// Whether an event is about the target of a request, about a backend that it tried, or about the whole process.
fn concerns(event: &Event, kept: &KeptRequest) -> bool {
    let fact = |name| event.facts.text(name);
    match (fact("target"), fact("backend")) {
        (Some(target), None) => target == kept.target,
        (Some(target), Some(backend)) => {
            // Of a request that was tried nowhere, all of its target's backends are worth a look.
            target == kept.target
                && (kept.backends.is_empty() || kept.backends.iter().any(|tried| tried == backend))
        }
        (None, _) => matches!(
            event.kind,
            EventKind::Reload
                | EventKind::Applied
                | EventKind::Rollback
                | EventKind::ChangedByHand
                | EventKind::ByHandOver
                | EventKind::Blocked
                | EventKind::LetIn
                | EventKind::AcceptFailed
                | EventKind::Draining
                | EventKind::Cutting
                | EventKind::TaskPanicked
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_told_byte_by_byte() {
        assert_eq!(printable(b"/\xc3\xa9\xff\xfe\x1b"), "/é\\xff\\xfe\u{1b}");
    }
}
