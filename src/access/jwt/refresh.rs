//! When the keys behind a URL are fetched, and for how long old ones count: decisions about one set of keys.
//!
//! Its invariants: between the beginnings of two attempts are at least [`KeyRefresh::APART`], whatever tokens name; after a good attempt
//! the next comes [`KeyRefresh::EVERY`] later at the latest; keys count for [`KeyRefresh::KEPT`] from the beginning of the attempt that
//! brought them.

use std::time::Duration;

use crate::tick::Tick;

/// The state of the attempts to fetch one set of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRefresh {
    /// When the latest attempt began.
    latest: Option<Tick>,
    /// When the latest one began that brought keys.
    good: Option<Tick>,
    /// Something is missing since the latest attempt began: it brought nothing, or a token has named a key that nobody knows.
    is_wanted: bool,
}

impl KeyRefresh {
    /// Keys are fetched anew after this time.
    pub const EVERY: Duration = Duration::from_mins(5);
    /// Attempts are at least so far apart, also where tokens name keys that nobody knows: many such tokens cost one attempt.
    pub const APART: Duration = Duration::from_secs(5);
    /// Keys count for so long while no attempt brings others.
    pub const KEPT: Duration = Duration::from_hours(24);

    /// When the next attempt is due; [`Tick::ZERO`]: at once.
    #[must_use]
    pub fn due(&self) -> Tick {
        let apart = if self.is_wanted { KeyRefresh::APART } else { KeyRefresh::EVERY };
        self.latest.map_or(Tick::ZERO, |latest| latest.after(apart))
    }

    /// A token has named a key that nobody knows.
    pub fn want(&mut self) {
        self.is_wanted = true;
    }

    /// An attempt begins.
    pub fn begin(&mut self, now: Tick) {
        self.latest = Some(now);
        self.is_wanted = false;
    }

    /// The attempt has ended; `brought`: with keys.
    pub fn end(&mut self, brought: bool) {
        if brought {
            self.good = self.latest;
        } else {
            self.is_wanted = true;
        }
    }

    /// Until when the keys count that there are; [`Tick::ZERO`]: there are none.
    #[must_use]
    pub fn counts_until(&self) -> Tick {
        self.good.map_or(Tick::ZERO, |good| good.after(KeyRefresh::KEPT))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: u64) -> Tick {
        Tick::ZERO.after(Duration::from_secs(seconds))
    }

    #[test]
    fn keys_are_fetched_at_once_then_at_times_and_sooner_where_one_is_missing() {
        let mut refresh = KeyRefresh::default();
        assert_eq!((refresh.due(), refresh.counts_until()), (Tick::ZERO, Tick::ZERO));
        refresh.begin(at(100));
        refresh.end(true);
        assert_eq!((refresh.due(), refresh.counts_until()), (at(400), at(100 + 24 * 3600)));
        refresh.want();
        refresh.want();
        assert_eq!(refresh.due(), at(105));
        refresh.begin(at(130));
        refresh.end(false);
        assert_eq!(
            (refresh.due(), refresh.counts_until()),
            (at(135), at(100 + 24 * 3600)),
            "old ones count on"
        );
        refresh.begin(at(160));
        // Named while the attempt is under way: what it brings may have it, or not.
        refresh.want();
        refresh.end(true);
        assert_eq!((refresh.due(), refresh.counts_until()), (at(165), at(160 + 24 * 3600)));
    }

    proptest! {
        #[test]
        fn no_flood_of_names_brings_attempts_nearer(steps in prop::collection::vec((0u64..20, any::<bool>(), any::<bool>()), 1..200)) {
            let (mut refresh, mut now) = (KeyRefresh::default(), 1_000);
            let mut begun: Vec<u64> = Vec::new();
            for (wait, wants, brought) in steps {
                now += wait;
                if wants {
                    refresh.want();
                }
                if refresh.due() <= at(now) {
                    refresh.begin(at(now));
                    begun.push(now);
                    refresh.end(brought);
                }
                prop_assert!(refresh.due() <= at(now).after(KeyRefresh::EVERY));
            }
            prop_assert!(begun.windows(2).all(|pair| pair[1] - pair[0] >= KeyRefresh::APART.as_secs()));
        }
    }
}
