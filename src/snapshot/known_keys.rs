//! The keys of one auth rule as those see them who verify tokens. One task puts others in their place; nobody waits for it.
//!
//! Its invariants: what is read is a whole set, never a mixture of two; a set counts until the time that it was put there with, and
//! afterwards there is none. Whoever misses a key says so and goes on: what was said while nobody listened is heard by the next who does.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use tokio::sync::Notify;

use crate::config::model::jwt::KeySet;
use crate::tick::Tick;

/// Keys that are shared by all workers, and change while they are read.
#[derive(Debug, Default)]
pub struct KnownKeys {
    held: ArcSwapOption<Held>,
    missed: Notify,
}

#[derive(Debug)]
struct Held {
    keys: Arc<KeySet>,
    until: Tick,
    /// As they were fetched; empty: they were not.
    text: Box<[u8]>,
}

impl KnownKeys {
    /// The keys that count at `now`; `None`: there are none, or none any more.
    #[must_use]
    pub fn at(&self, now: Tick) -> Option<Arc<KeySet>> {
        self.held.load().as_ref().filter(|held| now < held.until).map(|held| Arc::clone(&held.keys))
    }

    /// Puts these in place of all others. They count until `until`.
    pub fn put(&self, keys: Arc<KeySet>, until: Tick) {
        self.put_fetched(keys, until, Box::default());
    }

    /// The same of keys that were fetched so.
    pub fn put_fetched(&self, keys: Arc<KeySet>, until: Tick, text: Box<[u8]>) {
        self.held.store(Some(Arc::new(Held { keys, until, text })));
    }

    /// As they were fetched that count at `now`, and until when they do.
    #[must_use]
    pub fn fetched(&self, now: Tick) -> Option<(Box<[u8]>, Tick)> {
        let held = self.held.load_full().filter(|held| now < held.until && !held.text.is_empty())?;
        Some((held.text.clone(), held.until))
    }

    /// A token has named a key that is not there.
    pub fn miss(&self) {
        self.missed.notify_one();
    }

    /// Waits until somebody has missed a key since this was asked last.
    pub async fn missed(&self) {
        self.missed.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::jwt::JwtAlgorithm;

    fn keys(text: &[u8]) -> Arc<KeySet> {
        Arc::new(KeySet::parse(text, &[JwtAlgorithm::Es256]).expect("a set of keys"))
    }

    #[test]
    fn keys_count_until_their_time_is_over_or_others_are_there() {
        let known = KnownKeys::default();
        assert_eq!(known.at(Tick::ZERO), None);
        let (old, new) = (
            keys(include_bytes!("../../fixtures/jwt/keys.json")),
            keys(include_bytes!("../../fixtures/jwt/next_keys.json")),
        );
        known.put(Arc::clone(&old), Tick(10));
        assert_eq!((known.at(Tick(9)), known.at(Tick(10))), (Some(Arc::clone(&old)), None));
        known.put(Arc::clone(&new), Tick::NEVER);
        assert_eq!(known.at(Tick(10)), Some(new));
    }

    /// Readers see the one set or the other, whenever they look.
    #[test]
    fn whoever_reads_while_keys_change_sees_a_whole_set() {
        let known = KnownKeys::default();
        let sets = [
            keys(include_bytes!("../../fixtures/jwt/keys.json")),
            keys(include_bytes!("../../fixtures/jwt/next_keys.json")),
        ];
        known.put(Arc::clone(&sets[0]), Tick::NEVER);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..2_000 {
                        let seen = known.at(Tick::ZERO).expect("one of them");
                        assert!(sets.contains(&seen));
                    }
                });
            }
            for turn in 0..2_000 {
                known.put(Arc::clone(&sets[turn % 2]), Tick::NEVER);
            }
        });
    }
}
