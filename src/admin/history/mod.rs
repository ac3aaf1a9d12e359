//! What was counted of late, second by second: what a page shows of the time before it was opened.
//!
//! Memory is bounded: a row has [`SECONDS`] points of a second and [`TENS`] of ten, and what all rows may have together is
//! [`MEMORY`]. Where the backends of a config do not fit, none of them has a history, but their targets have.

mod book;
mod counted;
mod point;
mod routes;
mod series;

pub(super) use book::HistoryBook;
pub(super) use counted::{ALL, RowTally, Shot, TimesLately};
pub(super) use routes::history;

/// Points of a second that a row has: five minutes.
const SECONDS: usize = 300;
/// Points of ten seconds that a row has: an hour.
const TENS: usize = 360;
/// Bytes of all points and shots.
const MEMORY: usize = 32 * 1024 * 1024;
