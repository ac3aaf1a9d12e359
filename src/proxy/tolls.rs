//! Counts a request, or a connection, in the buckets of all its rate limits, and in the cells.

use std::net::IpAddr;

use crate::access::rate::{MOST, RateKey, take_all};
use crate::net::now;
use crate::snapshot::{RateCheck, RateChecks, RateSet};
use crate::telemetry::cells::RateCells;
use crate::tick::Tick;

use super::WorkerCtx;

/// Whether a connection, or a flow, comes too soon after others by these limits. It is counted there.
pub fn is_too_soon(ctx: &WorkerCtx, client: Option<IpAddr>, rates: &RateChecks) -> bool {
    if rates.is_empty() {
        return false;
    }
    // Nothing is known of it but where it comes from.
    let key =
        |check: &RateCheck| check.fixed.unwrap_or_else(|| check.state.secret.of_address(check.kind, client));
    take(&rates.of_anybody, key, now(), &ctx.cells.rates).is_err()
}

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
