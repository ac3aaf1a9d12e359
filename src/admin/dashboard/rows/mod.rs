//! The rows of the dashboard: the process, what is the matter, the nodes of its cluster, what requests go through, and what is inside of evenkeel.
//!
//! Counts are since the process began: whoever reads two frames knows what came between them, exactly. Times are of the latest ten to
//! twenty seconds. What says how long ago something was is left out: it would be another row each second.

mod events;
mod inside;
mod sources;
mod together;
mod traffic;

use self::sources::put;
use super::frame::Rows;
use super::verdict::troubles;

pub(super) use self::sources::RowSources;

/// All rows.
pub(super) fn rows(from: &RowSources<'_>) -> Rows {
    let mut rows = Rows::new();
    let now_ms = from.seen.sources.wall.ms(from.seen.sources.now);
    let apart = together::trouble(from);
    put(&mut rows, "troubles".to_owned(), &troubles(&from.seen.report, &from.seen.not_ready, apart, now_ms));
    together::put_all(&mut rows, from);
    traffic::put_all(&mut rows, from);
    inside::put_all(&mut rows, from);
    events::put_all(&mut rows, &from.api.events);
    rows
}
