//! What is seen when somebody looks.

use std::sync::Arc;

use super::frame::{Frame, FrameTime};
use super::keeper::DashboardLook;
use super::rows::{RowSources, rows};
use crate::admin::api::Api;
use crate::admin::history::Shot;
use crate::tick::nanos;

/// The frame of this second; `None`: no config is in force yet.
pub(super) async fn latest(api: &Arc<Api>) -> Option<Arc<Frame>> {
    let shared = Arc::clone(api);
    let look = move || {
        let seen = shared.survey()?;
        let sources = &seen.sources;
        let at = sources.now;
        let now = Shot::take(&sources.snapshot, &shared.running.reloader.cells, at);
        let earlier = shared.history.earlier(at);
        let time = FrameTime {
            at,
            unix_ms: sources.wall.ms(at),
            up_ms: nanos(at.since(shared.rates.begun())) / 1_000_000,
        };
        let from = RowSources { api: &shared, seen: &seen, now: &now, earlier: earlier.as_deref() };
        Some(DashboardLook { time, rows: rows(&from) })
    };
    api.frames.latest(look).await
}
