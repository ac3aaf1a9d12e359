//! What rows are made from, and how they are written.

use serde::Serialize;

use crate::admin::api::Api;
use crate::admin::dashboard::frame::Rows;
use crate::admin::history::Shot;
use crate::admin::status_routes::StatusSurvey;

/// All that rows are made from.
pub(in crate::admin::dashboard) struct RowSources<'s> {
    pub(in crate::admin::dashboard) api: &'s Api,
    pub(in crate::admin::dashboard) seen: &'s StatusSurvey,
    /// What was counted by now.
    pub(in crate::admin::dashboard) now: &'s Shot,
    /// What was some seconds ago.
    pub(in crate::admin::dashboard) earlier: Option<&'s Shot>,
}

pub(super) fn put(rows: &mut Rows, name: String, row: &impl Serialize) {
    // None of our types fails: they have texts for keys.
    rows.insert(name, serde_json::to_string(row).unwrap_or_default());
}
