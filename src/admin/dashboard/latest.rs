//! What is seen when somebody looks.

use std::sync::Arc;

use super::frame::Frame;
use super::keeper::DashboardLook;
use super::rows;
use crate::admin::api::Api;

/// The frame of this second; `None`: no config is in force yet.
pub(super) async fn latest(api: &Arc<Api>) -> Option<Arc<Frame>> {
    let shared = Arc::clone(api);
    let look = move |before: Option<&_>| {
        let seen = shared.survey()?;
        let rows = rows::rows(&seen, before);
        Some(DashboardLook { unix_ms: seen.sources.unix_ms, rows, readings: seen.sources.readings })
    };
    api.frames.latest(look).await
}
