//! The latest events, a row each: who has the one before needs only what is new.

use serde::Serialize;

use super::sources::put;
use crate::admin::dashboard::frame::Rows;
use crate::events::EventHistory;

/// As many events have rows.
const EVENTS: usize = 100;

#[derive(Serialize)]
struct EventRow<'e> {
    id: &'e str,
    time_ms: u64,
    level: &'e str,
    kind: &'e str,
    object: Option<&'e str>,
    text: &'e str,
}

/// Named so that they are in the order of their numbers.
pub(super) fn put_all(rows: &mut Rows, history: &EventHistory) {
    let before = history.latest().saturating_sub(EVENTS as u64);
    for event in history.after(before, EVENTS).events {
        let report = history.report(&event);
        let row = EventRow {
            id: &report.id,
            time_ms: report.time_ms,
            level: &report.level,
            kind: &report.kind,
            object: report.object.as_deref(),
            text: &report.text,
        };
        put(rows, format!("event/{:020}", event.id), &row);
    }
}
