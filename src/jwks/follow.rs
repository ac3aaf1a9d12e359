//! The keys behind a URL, from the first attempt to fetch them on.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::access::jwt::KeyRefresh;
use crate::config::model::jwt::{JwtAlgorithm, KeySet};
use crate::snapshot::KnownKeys;
use crate::tick::Tick;

/// Keeps `known` what a place says that is asked by `fetch`; it never ends. `clock`: what time it is; `tell`: hears of each attempt, what
/// it brought, or why nothing came of it.
pub(super) async fn follow<F>(
    known: Arc<KnownKeys>,
    algorithms: Vec<JwtAlgorithm>,
    clock: impl Fn() -> Tick,
    fetch: impl Fn() -> F,
    mut tell: impl FnMut(Result<&Arc<KeySet>, &str>),
) where
    F: Future<Output = Result<Vec<u8>, String>>,
{
    let mut refresh = KeyRefresh::default();
    loop {
        let wait = refresh.due().since(clock());
        if wait > Duration::ZERO {
            tokio::select! {
                () = sleep(wait) => {}
                () = known.missed() => refresh.want(),
            }
            continue;
        }
        refresh.begin(clock());
        let brought = fetch().await.and_then(|bytes| {
            let keys = KeySet::parse(&bytes, &algorithms).map(Arc::new);
            keys.map(|keys| (keys, bytes)).map_err(|fault| format!("its answer {fault}"))
        });
        refresh.end(brought.is_ok());
        let brought = brought.map(|(keys, bytes)| {
            known.put_fetched(Arc::clone(&keys), refresh.counts_until(), bytes.into());
            keys
        });
        tell(brought.as_ref().map_err(String::as_str));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use tokio::time::{Instant, advance};

    use super::*;

    const OLD: &[u8] = include_bytes!("../../fixtures/jwt/keys.json");
    const NEW: &[u8] = include_bytes!("../../fixtures/jwt/next_keys.json");

    fn set(bytes: &[u8]) -> Arc<KeySet> {
        Arc::new(KeySet::parse(bytes, &[JwtAlgorithm::Es256]).expect("a set of keys"))
    }

    /// Moves on to this second and lets all that is due then happen.
    async fn until(start: Instant, second: u64) {
        let at = start + Duration::from_secs(second);
        advance(at - Instant::now()).await;
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn keys_follow_what_the_place_says_and_outlast_its_death_for_a_day() {
        let start = Instant::now();
        let clock = || Tick(1).after(start.elapsed());
        let known = Arc::new(KnownKeys::default());
        let says: RefCell<Result<Vec<u8>, String>> = RefCell::new(Ok(OLD.to_vec()));
        let (attempts, faults) = (Cell::new(0), Cell::new(0));
        let fetch = || {
            attempts.set(attempts.get() + 1);
            let said = says.borrow().clone();
            async move { said }
        };
        let tell =
            |outcome: Result<&Arc<KeySet>, &str>| faults.set(faults.get() + u32::from(outcome.is_err()));
        let following = follow(Arc::clone(&known), vec![JwtAlgorithm::Es256], clock, fetch, tell);
        let looking = async {
            assert_eq!(known.at(clock()), None, "nothing is known before the first attempt");
            until(start, 0).await;
            assert_eq!((known.at(clock()), attempts.get()), (Some(set(OLD)), 1));
            // The keys change; a thousand tokens miss the new one.
            *says.borrow_mut() = Ok(NEW.to_vec());
            for _ in 0..1_000 {
                known.miss();
                tokio::task::yield_now().await;
            }
            assert_eq!(attempts.get(), 1, "not before its time");
            until(start, 31).await;
            assert_eq!((known.at(clock()), attempts.get()), (Some(set(NEW)), 2));
            until(start, 300).await;
            assert_eq!(attempts.get(), 2);
            until(start, 332).await;
            assert_eq!(attempts.get(), 3, "once in five minutes");
            // It dies, and says nonsense, and the old keys count on.
            *says.borrow_mut() = Ok(b"<html>".to_vec());
            until(start, 640).await;
            *says.borrow_mut() = Err("connection refused".to_owned());
            until(start, 24 * 3600).await;
            assert!(faults.get() >= 2 && known.at(clock()) == Some(set(NEW)));
            until(start, 24 * 3600 + 340).await;
            assert_eq!(known.at(clock()), None, "but not for longer than a day");
            *says.borrow_mut() = Ok(OLD.to_vec());
            until(start, 24 * 3600 + 400).await;
            assert_eq!(known.at(clock()), Some(set(OLD)));
        };
        tokio::select! {
            biased;
            () = looking => {}
            () = following => unreachable!("it never ends"),
        }
    }
}
