//! The wall clock, as what it is ahead of ours.
//!
//! A date is a [`Tick`] plus one number, so nothing on the way of a request reads a second clock. But somebody may set the wall
//! clock, NTP corrects it, and ours stands still while the machine sleeps: the number is found anew each minute.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::now;
use crate::tick::{Tick, nanos};

/// How old a reading may get.
const EVERY: Duration = Duration::from_secs(60);

static WALL: Wall = Wall { start: AtomicU64::new(0), due: AtomicU64::new(0) };

/// The wall clock at tick zero, in nanoseconds since 1970, by what the two clocks said when they were last read: add a
/// [`Tick`] to get a date. A clock before 1970 counts as 1970.
#[must_use]
pub fn wall_start() -> u64 {
    match WALL.start.load(Ordering::Relaxed) {
        0 => first(),
        start => start,
    }
}

#[cold]
fn first() -> u64 {
    WALL.renew(now(), SystemTime::now)
}

/// The wall clock, in seconds since 1970.
#[must_use]
pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Reads the wall clock again if the last reading is a minute old. Somebody must call this now and then.
pub fn renew_wall(now: Tick) {
    WALL.renew(now, SystemTime::now);
}

/// Both words may be written by several threads at once: each then writes what it has just read, which differs by no more than
/// the time between the two readings.
struct Wall {
    /// The wall clock at tick zero; 0: never read.
    start: AtomicU64,
    /// When it is read again, as a tick.
    due: AtomicU64,
}

impl Wall {
    /// The wall clock at tick zero, by `wall` if it is time for that.
    fn renew(&self, now: Tick, wall: impl FnOnce() -> SystemTime) -> u64 {
        if now < Tick(self.due.load(Ordering::Relaxed)) {
            return self.start.load(Ordering::Relaxed);
        }
        self.due.store(now.after(EVERY).0, Ordering::Relaxed);
        let since_1970 = wall().duration_since(SystemTime::UNIX_EPOCH).map_or(0, nanos);
        let start = since_1970.saturating_sub(now.0);
        self.start.store(start, Ordering::Relaxed);
        start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn date(seconds: u32) -> SystemTime {
        SystemTime::UNIX_EPOCH + SECOND * seconds
    }

    #[test]
    fn a_clock_that_was_set_is_followed_within_a_minute() {
        let wall = Wall { start: AtomicU64::new(0), due: AtomicU64::new(0) };
        let at = |seconds| Tick::ZERO.after(SECOND * seconds);
        let dated =
            |seconds, read: u32| Duration::from_nanos(wall.renew(at(seconds), || date(read)) + at(seconds).0);
        assert_eq!(dated(10, 1_000), 1_000 * SECOND);
        // Set back by ten minutes; for the rest of the minute nobody looks.
        assert_eq!(dated(69, 459), 1_059 * SECOND);
        assert_eq!(dated(70, 460), 460 * SECOND);
        assert_eq!(dated(71, 99), 461 * SECOND, "and again for a minute");
        // The machine slept for a day, and our clock with it.
        assert_eq!(dated(130, 86_920), 86_920 * SECOND);
        assert_eq!(wall.renew(at(1_000), || SystemTime::UNIX_EPOCH - SECOND), 0, "before 1970");
    }

    #[test]
    fn a_tick_is_a_date() {
        let seen = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, nanos);
        assert!(seen.abs_diff(wall_start() + now().0) < 86_400_000_000_000);
        renew_wall(now());
        assert!(seen.abs_diff(wall_start() + now().0) < 86_400_000_000_000);
    }
}
