//! Counts a request, or a connection, in the buckets of all its rate limits, and in the cells.

use crate::access::rate::{MOST, RateKey, take_all};
use crate::snapshot::{RateCheck, RateSet};
use crate::telemetry::cells::RateCells;
use crate::tick::Tick;

/// Who comes too soon.
#[derive(Clone, Copy, Debug)]
pub struct TooSoon<'a> {
    /// The first bucket that was empty.
    pub check: &'a RateCheck,
    /// Nanoseconds until it is not.
    pub wait: u64,
}

/// Takes one out of each bucket of `set`, or out of none. Those of a `dry_run` are asked when the others have let it pass.
///
/// # Errors
/// One of the buckets that count is empty.
#[inline]
pub fn take<'a>(
    set: &'a RateSet,
    key: impl Fn(&RateCheck) -> RateKey,
    now: Tick,
    cells: &RateCells,
) -> Result<(), TooSoon<'a>> {
    let checks = &*set.real;
    let taken = if let [only] = checks {
        take_all(|_| &only.state.buckets, &[key(only)], now)
    } else {
        let mut keys = [RateKey::new(0); MOST];
        for (place, check) in keys.iter_mut().zip(checks) {
            *place = key(check);
        }
        // More than there is room for is refused with the config.
        take_all(|place| &checks[place].state.buckets, &keys[..checks.len().min(MOST)], now)
    };
    if let Err(refusal) = taken {
        let check = &checks[refusal.place];
        cells.refuse(check.state.number());
        return Err(TooSoon { check, wait: refusal.wait });
    }
    for check in checks.iter().filter(|check| check.is_last) {
        cells.admit(check.state.number());
    }
    for check in &set.dry {
        match check.state.buckets.take(key(check), now) {
            Err(_) => cells.would_refuse(check.state.number()),
            Ok(()) if check.is_last => cells.admit(check.state.number()),
            Ok(()) => {}
        }
    }
    Ok(())
}
