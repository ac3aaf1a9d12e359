//! A request that counts in several buckets: it passes when there is one in each, and who is refused takes from none.

use super::buckets::RateBuckets;
use super::key::RateKey;
use crate::tick::Tick;

/// Buckets that one request can count in.
pub const MOST: usize = 16;

/// A request that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateRefusal {
    /// The place of the bucket that was empty: the first such one.
    pub place: usize,
    /// Nanoseconds until there is a request in it.
    pub wait: u64,
}

/// Takes one request out of each bucket, or out of none. `buckets`: those of the key at this place.
///
/// All are looked at first. Where somebody else takes the last request of one between the look and the taking, what was taken of the
/// others is put back: for that moment they are emptier by one than they had to be.
///
/// # Errors
/// One of them is empty.
#[inline]
pub fn take_all<'a>(
    buckets: impl Fn(usize) -> &'a RateBuckets,
    keys: &[RateKey],
    now: Tick,
) -> Result<(), RateRefusal> {
    if let [only] = keys {
        return buckets(0).take(*only, now).map_err(|wait| RateRefusal { place: 0, wait });
    }
    for (place, key) in keys.iter().enumerate() {
        buckets(place).pass(*key, now).map_err(|wait| RateRefusal { place, wait })?;
    }
    for (place, key) in keys.iter().enumerate() {
        if let Err(wait) = buckets(place).take(*key, now) {
            for (taken, key) in keys[..place].iter().enumerate() {
                buckets(taken).give_back(*key);
            }
            return Err(RateRefusal { place, wait });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::pace::Pace;
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn who_is_refused_takes_from_none() {
        let [few, many] = [2, 100].map(|burst| RateBuckets::new(Pace { interval: SECOND, burst }, 64));
        let (key, now) = ([RateKey::new(7), RateKey::new(9)], Tick(1_000 * SECOND));
        for order in [[&few, &many], [&many, &few]] {
            let at = if std::ptr::eq(order[0], &raw const few) { 0 } else { 1 };
            let later = Tick(now.0 + 10_000 * SECOND * at as u64);
            let keys = if at == 0 { key } else { [key[1], key[0]] };
            for _ in 0..2 {
                take_all(|place| order[place], &keys, later).expect("both have some");
            }
            for _ in 0..500 {
                let refused = take_all(|place| order[place], &keys, later);
                assert_eq!(refused, Err(RateRefusal { place: at, wait: SECOND }));
            }
            assert_eq!(many.look(key[1], later).left, 98);
        }
    }
}
