//! How the process is told to end: beforehand, politely, then not.

use std::sync::{Arc, Mutex, PoisonError};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What becomes of the process: the first of the two that happens is it, for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fate {
    #[default]
    Serves,
    Ends,
    Succeeded,
}

/// The signals; clones share them.
///
/// Invariant: whoever sees `drain` sees `succeeded` as it will stay. Either the process is told to end, and then no other one comes into its place; or another
/// one has, and then that was said before.
#[derive(Clone, Debug, Default)]
pub struct Shutdown {
    /// It serves as before, and will drain when `shutdown_delay` is over.
    pub leaving: CancellationToken,
    /// Accept nothing new, finish what is under way.
    pub drain: CancellationToken,
    /// Cut what is still under way.
    pub cut: CancellationToken,
    /// Another process has the sockets and serves: it is told before `drain`, and what is given up then is not closed for others.
    pub succeeded: CancellationToken,
    /// What is waited for, for a while, when all has ended.
    pub last: TaskTracker,
    fate: Arc<Mutex<Fate>>,
}

impl Shutdown {
    /// Nobody has asked for anything yet.
    #[must_use]
    pub fn new() -> Shutdown {
        Shutdown::default()
    }

    /// It is to drain when `shutdown_delay` is over.
    pub fn leave(&self) {
        self.begin_to_end();
        self.leaving.cancel();
    }

    /// The next step: drains at the first call, cuts at the second.
    pub fn advance(&self) {
        if self.drain.is_cancelled() {
            self.cut.cancel();
        } else {
            self.begin_to_end();
            self.drain.cancel();
        }
    }

    /// Another process is in the place of this one from now on, which is to drain then. `first`: what is to be so before anybody drains. False: it has been told to
    /// end before, and nothing is done.
    #[must_use]
    pub fn succeed(&self, first: impl FnOnce()) -> bool {
        let mut fate = self.fate.lock().unwrap_or_else(PoisonError::into_inner);
        if *fate != Fate::Serves {
            return false;
        }
        *fate = Fate::Succeeded;
        first();
        self.succeeded.cancel();
        true
    }

    fn begin_to_end(&self) {
        let mut fate = self.fate.lock().unwrap_or_else(PoisonError::into_inner);
        if *fate == Fate::Serves {
            *fate = Fate::Ends;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_ends_or_is_succeeded_and_whoever_drains_knows_which() {
        for turn in 0..200 {
            let shutdown = Shutdown::new();
            let (other, drained) = (shutdown.clone(), shutdown.clone());
            let (succeeded, seen) = std::thread::scope(|scope| {
                let ends = scope.spawn(move || if turn % 2 == 0 { other.leave() } else { other.advance() });
                let sees = scope.spawn(move || {
                    while !drained.drain.is_cancelled() {
                        std::hint::spin_loop();
                    }
                    drained.succeeded.is_cancelled()
                });
                let succeeded = shutdown.succeed(|| ());
                ends.join().expect("no panic");
                shutdown.drain.cancel();
                (succeeded, sees.join().expect("no panic"))
            });
            assert_eq!((succeeded, shutdown.succeeded.is_cancelled()), (seen, seen));
        }
    }
}
