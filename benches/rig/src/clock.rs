//! Time, for loads that last as long as they were told.

use std::thread;
use std::time::{Duration, Instant};

#[expect(clippy::disallowed_methods, reason = "no test pauses the time of a measurement")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Lets `seconds` go by while other threads, or nobody, are at work.
#[expect(clippy::disallowed_methods, reason = "the thread has nothing else to do")]
pub(crate) fn pause(seconds: f64) {
    thread::sleep(Duration::from_secs_f64(seconds));
}
