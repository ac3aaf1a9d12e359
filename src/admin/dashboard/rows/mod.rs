//! The rows of the dashboard: the process, what is the matter, what requests go through, and what is inside of evenkeel.
//!
//! Counts are since the process began: whoever reads two frames knows what came between them, exactly. Times are of the latest ten to
//! twenty seconds. What says how long ago something was is left out: it would be another row each second.

mod events;
mod inside;
mod traffic;

use serde::Serialize;

use super::frame::Rows;
use super::verdict::troubles;
use crate::admin::api::Api;
use crate::admin::history::Shot;
use crate::admin::status_routes::StatusSurvey;

/// All that rows are made from.
pub(super) struct RowSources<'s> {
    pub(super) api: &'s Api,
    pub(super) seen: &'s StatusSurvey,
    /// What was counted by now.
    pub(super) now: &'s Shot,
    /// What was some seconds ago.
    pub(super) earlier: Option<&'s Shot>,
}

/// All rows.
pub(super) fn rows(from: &RowSources<'_>) -> Rows {
    let mut rows = Rows::new();
    put(&mut rows, "troubles".to_owned(), &troubles(&from.seen.report, &from.seen.not_ready));
    traffic::put_all(&mut rows, from);
    inside::put_all(&mut rows, from);
    events::put_all(&mut rows, &from.api.events);
    rows
}

fn put(rows: &mut Rows, name: String, row: &impl Serialize) {
    // None of our types fails: they have texts for keys.
    rows.insert(name, serde_json::to_string(row).unwrap_or_default());
}
