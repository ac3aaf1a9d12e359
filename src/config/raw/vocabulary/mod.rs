//! Words: those that are values, those of other programs, those to come, and slips of any of them.

pub(super) mod foreign;
pub(super) mod http_url;
pub(super) mod later;
pub(super) mod nearest;
pub(super) mod spoken;
pub(super) mod words;
