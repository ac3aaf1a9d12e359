//! Tasks that last as long as their thread or the process, and what becomes of it when one of them ends all the same.
//!
//! A worker whose ticker or accept loop is gone looks alive and serves nobody, so a worker ends with the first [`Vital`] task
//! that does. What control does for ever, in parts that do not depend on each other, is begun [`again`].

use std::fmt;
use std::future::{pending, poll_fn};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::events;

/// From a panic to the next try: what panics each time must neither spin nor flood the log.
const PAUSE: Duration = Duration::from_secs(1);

/// The panic hook has told the rest.
struct Panicked;

/// Does `work`, and stops a panic in it.
async fn caught<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut work = pin!(work);
    poll_fn(|cx| {
        // It is never polled again after a panic, and nobody else sees its state.
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx)));
        polled.map_or(Poll::Ready(Err(Panicked)), |polled| polled.map(Ok))
    })
    .await
}

/// Does `work`, and does it again after each panic, which is logged as one of `what`. Returns when it does.
pub async fn again(what: impl fmt::Display, mut work: impl AsyncFnMut()) {
    while caught(work()).await.is_err() {
        events::begun_again(&what);
        sleep(PAUSE).await;
    }
}

/// How a vital task has ended.
struct End {
    name: &'static str,
    panicked: bool,
    /// It was told to.
    wanted: bool,
}

impl End {
    fn into_error(self) -> io::Error {
        let how = if self.panicked { "has panicked" } else { "has ended" };
        io::Error::other(format!("a worker can't go on: its {} {how}", self.name))
    }
}

/// Tasks of one thread without which it is of no use. They end with this.
#[derive(Default)]
pub struct Vital(JoinSet<End>);

impl Vital {
    /// Spawns a task on this thread's runtime.
    pub fn spawn(&mut self, name: &'static str, work: impl Future<Output = ()> + 'static) {
        self.spawn_until(name, async move {
            work.await;
            false
        });
    }

    /// The same for one that may be told to end: what it gives is whether it was.
    pub fn spawn_until(&mut self, name: &'static str, work: impl Future<Output = bool> + 'static) {
        self.0.spawn_local(async move {
            let ended = caught(work).await;
            End { name, panicked: ended.is_err(), wanted: matches!(ended, Ok(true)) }
        });
    }

    /// Waits until one of them has ended that was not told to: an error that says which. For ever if there are none.
    pub async fn ended(&mut self) -> io::Error {
        loop {
            match self.0.join_next().await {
                Some(Ok(end)) if end.wanted => {}
                Some(Ok(end)) => return end.into_error(),
                // Nobody aborts one, and a panic stays inside.
                Some(Err(error)) => return io::Error::other(error),
                None => return pending().await,
            }
        }
    }

    /// Waits until all of them have ended, now that they may.
    ///
    /// # Errors
    /// One has panicked.
    pub async fn finish(&mut self) -> io::Result<()> {
        while let Some(ended) = self.0.join_next().await {
            let end = ended?;
            if end.panicked {
                return Err(end.into_error());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_panics_is_begun_again_after_a_pause_until_it_returns() {
        let begun = AtomicU32::new(0);
        let started = tokio::time::Instant::now();
        again("a test", async || {
            tokio::task::yield_now().await;
            assert!(begun.fetch_add(1, Ordering::Relaxed) == 3, "three times");
        })
        .await;
        assert_eq!((begun.into_inner(), started.elapsed()), (4, 3 * PAUSE));
    }

    #[test]
    fn the_first_end_is_told_by_name_and_a_panic_by_that_word() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build_local(tokio::runtime::LocalOptions::default());
        runtime.expect("a runtime").block_on(async {
            let mut vital = Vital::default();
            vital.spawn("heart", pending());
            vital.spawn("lung", async { panic!("out of breath") });
            assert_eq!(vital.ended().await.to_string(), "a worker can't go on: its lung has panicked");
            vital.spawn_until("appendix", async { true });
            vital.spawn("liver", async {});
            assert_eq!(vital.ended().await.to_string(), "a worker can't go on: its liver has ended");
            let mut vital = Vital::default();
            vital.spawn("liver", async {});
            assert!(vital.finish().await.is_ok());
            vital.spawn("lung", async { panic!("out of breath") });
            assert!(vital.finish().await.is_err());
        });
    }
}
