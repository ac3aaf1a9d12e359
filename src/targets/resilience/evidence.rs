//! What live traffic tells whoever probes a backend: that it answers well, or that something is wrong.
//!
//! Good answers cost a request nothing here, they are read off the attempt counts. Trouble is rare, and one load tells whether it was
//! reported already.

use std::sync::atomic::Ordering;

use crate::targets::Backend;
use crate::targets::resilience::attempt_counts::{Reading, latency};
use crate::targets::state::health::schedule::Evidence;

/// A moment in the traffic of a backend.
#[derive(Clone, Copy, Debug)]
pub struct Mark(Reading);

impl Backend {
    /// Notes that live traffic met a fault of the backend's: whoever probes it should look.
    #[cold]
    pub fn note_trouble(&self) {
        let trouble = self.trouble();
        if !trouble.is_noted.load(Ordering::Relaxed) {
            trouble.is_noted.store(true, Ordering::Relaxed);
            trouble.noted.notify_one();
        }
    }

    /// Resolves when there is trouble that no [`Backend::mark`] has left behind. For one task: whoever probes the backend.
    pub async fn troubled(&self) {
        let trouble = self.trouble();
        while !trouble.is_noted.load(Ordering::Relaxed) {
            trouble.noted.notified().await;
        }
    }

    /// This moment in its traffic; what was noted of trouble before is forgotten.
    #[must_use]
    pub fn mark(&self) -> Mark {
        self.trouble().is_noted.store(false, Ordering::Relaxed);
        Mark(self.attempt_counts().read())
    }

    /// What its traffic came to since `mark`.
    #[must_use]
    pub fn evidence(&self, mark: Mark) -> Evidence {
        let counts = self.attempt_counts().read().since(mark.0);
        Evidence {
            attempts: counts.attempts,
            errors: counts.errors,
            latency: counts.doublings().map(latency),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use crate::targets::fixtures::{target, unprobed};
    use crate::targets::{Ask, Chance, Heard, Lease, Outcome, Pick, Tried};
    use crate::tick::Tick;

    #[tokio::test(start_paused = true)]
    async fn whatever_is_the_backends_fault_is_trouble_and_nothing_else_is() {
        let target = target(&unprobed(1));
        let backend = &target.backends[0];
        let lease = || -> Lease {
            match target.pick(&Ask::new(&Tried::new(), &Chance::seeded(1), Tick(1))) {
                Pick::Lease(lease) => lease,
                other => panic!("{other:?}"),
            }
        };
        let error = Heard { fault: true, error: true, ..Heard::GOOD };
        for (heard, outcome, is_trouble) in [
            (None, Outcome::ConnectFailed, true),
            (None, Outcome::Failed, true),
            (Some(Heard::GOOD), Outcome::Failed, true),
            (Some(error), Outcome::Success, true),
            (Some(Heard::GOOD), Outcome::Success, false),
            (None, Outcome::Neutral, false),
            (Some(Heard { fault: true, ..Heard::GOOD }), Outcome::Success, false),
        ] {
            let mark = backend.mark();
            let lease = lease();
            if let Some(heard) = heard {
                lease.note_answer(heard, Tick(1_000_000));
            }
            lease.finish(outcome, Tick(2_000_000));
            let troubled = timeout(Duration::from_secs(1), backend.troubled()).await.is_ok();
            assert_eq!(troubled, is_trouble, "{heard:?} {outcome:?}");
            let evidence = backend.evidence(mark);
            assert_eq!(
                evidence.is_good(Duration::from_secs(1)),
                heard.is_some() && !is_trouble,
                "{heard:?} {outcome:?}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn trouble_is_kept_until_somebody_looks_and_then_forgotten() {
        let target = target(&unprobed(1));
        let backend = &target.backends[0];
        let troubled = || async { timeout(Duration::from_secs(1), backend.troubled()).await.is_ok() };
        backend.note_trouble();
        backend.note_trouble();
        assert!(troubled().await && troubled().await);
        let _ = backend.mark();
        assert!(!troubled().await, "nor is the second call left over");
        let waiting = async { backend.troubled().await };
        let noting = async { backend.note_trouble() };
        timeout(Duration::from_secs(1), async { tokio::join!(waiting, noting) }).await.expect("woken");
    }
}
