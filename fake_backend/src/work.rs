//! For how long requests were worked on: of a fake with one slot, how busy it was.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Counts the time of requests, those that are under way included.
#[derive(Debug)]
pub(crate) struct WorkClock {
    begun: Instant,
    time: Mutex<WorkTime>,
}

/// Points in time are counted from the clock's beginning. The time of all requests is what is `done`, and for those under way as many times now, less their starts.
#[derive(Debug, Default)]
struct WorkTime {
    done: Duration,
    under_way: u32,
    starts: Duration,
}

/// A request that is worked on, until this is dropped.
pub(crate) struct Working<'a> {
    clock: &'a WorkClock,
    start: Duration,
}

impl WorkClock {
    pub(crate) fn new() -> WorkClock {
        WorkClock { begun: Instant::now(), time: Mutex::default() }
    }

    pub(crate) fn begin(&self) -> Working<'_> {
        let start = self.begun.elapsed();
        let mut time = self.time.lock().unwrap_or_else(PoisonError::into_inner);
        time.under_way += 1;
        time.starts += start;
        Working { clock: self, start }
    }

    /// The time of all requests, up to now.
    pub(crate) fn total(&self) -> Duration {
        let time = self.time.lock().unwrap_or_else(PoisonError::into_inner);
        time.done + (self.begun.elapsed() * time.under_way).saturating_sub(time.starts)
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        let took = self.clock.begun.elapsed().saturating_sub(self.start);
        let mut time = self.clock.time.lock().unwrap_or_else(PoisonError::into_inner);
        time.under_way -= 1;
        time.starts = time.starts.saturating_sub(self.start);
        time.done += took;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_is_under_way_counts_and_counts_once() {
        let (clock, ms) = (WorkClock::new(), Duration::from_millis);
        assert_eq!(clock.total(), ms(0));
        let (one, other) = (clock.begin(), clock.begin());
        tokio::time::advance(ms(3)).await;
        assert_eq!(clock.total(), ms(6));
        drop(one);
        tokio::time::advance(ms(4)).await;
        assert_eq!(clock.total(), ms(10));
        drop(other);
        tokio::time::advance(ms(5)).await;
        assert_eq!(clock.total(), ms(10), "nothing is under way any more");
    }
}
