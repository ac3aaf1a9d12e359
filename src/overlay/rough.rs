//! Spans as people say them.

/// A span as people say it.
pub(super) fn rough(ms: u64) -> String {
    match ms.div_ceil(1000) {
        seconds @ 0..120 => format!("{seconds}s"),
        seconds @ 120..7_200 => format!("{}m", seconds / 60),
        seconds @ 7_200..172_800 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}
