//! What the processes before this one have counted, and what this one leaves: so that nothing that only grows begins at zero again at an upgrade.

mod subjects;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::Instant;

pub(super) use subjects::Subjects;

use super::sources::ScrapeSources;
use super::walk::FamilyWalk;
use crate::telemetry::exposition::{CountTaker, CountsBefore, KeepsSeries, WithBefore};

#[derive(Debug, Default)]
struct State {
    before: Arc<CountsBefore>,
    given: Option<CountsBefore>,
    /// Whoever is being told of it has one of these.
    told: Arc<()>,
}

/// How long whoever is being told is waited for, before all is given, and how often that is looked at.
const PATIENCE: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(2);

/// Somebody is being told: counts are read while he is.
#[derive(Debug)]
pub struct BeingTold(#[expect(dead_code, reason = "held")] Arc<()>);

/// The counts of the processes before, and whether the next one has those of this one.
///
/// Invariants:
/// * what is written is what was counted before and here, so it never falls while a process is followed by another;
/// * once it is given no scrape is begun: what the next process says is never less than what was said here;
/// * what is counted after that, by whoever drains, is the rest, and is given once.
#[derive(Debug, Default)]
pub struct CountsBook(RwLock<State>);

impl CountsBook {
    /// So much was counted before.
    #[must_use]
    pub fn new(before: CountsBefore) -> CountsBook {
        CountsBook(RwLock::new(State { before: Arc::new(before), ..State::default() }))
    }

    /// Adds what a process before has counted since it was followed.
    pub fn add(&self, more: &CountsBefore) {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut state.before).add(more);
    }

    /// What a scrape is written from, with what was counted before; `None`: it is the next process that says so by now.
    pub fn taken<T>(&self, take: impl FnOnce() -> T) -> Option<(T, Arc<CountsBefore>, BeingTold)> {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let told = BeingTold(Arc::clone(&state.told));
        state.given.is_none().then(|| (take(), Arc::clone(&state.before), told))
    }

    /// Gives all that was counted so far, here and before.
    ///
    /// Whoever is just being told is waited for: what he reads of this process is read while it counts on. Blocks the thread.
    #[expect(clippy::disallowed_methods, reason = "it has a thread of its own")]
    pub fn give(&self, take: impl FnOnce() -> Option<ScrapeSources>) -> CountsBefore {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let due = Instant::now() + PATIENCE;
        while Arc::strong_count(&state.told) > 1 && Instant::now() < due {
            std::thread::sleep(LOOK);
        }
        let all = all(take(), &state.before);
        state.given = Some(all.clone());
        all
    }

    /// Gives what was counted since; `None`: nothing was given before.
    pub fn give_rest(&self, take: impl FnOnce() -> Option<ScrapeSources>) -> Option<CountsBefore> {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let given = state.given.take()?;
        let all = all(take(), &state.before);
        let rest = all.since(&given);
        state.given = Some(all);
        Some(rest)
    }
}

fn all(sources: Option<ScrapeSources>, before: &Arc<CountsBefore>) -> CountsBefore {
    let Some(sources) = sources else { return CountsBefore::clone(before) };
    let keeps = keeps(&sources);
    let mut taker = WithBefore::new(CountTaker::default(), Arc::clone(before), keeps);
    // Nothing waits there, so it is one walk.
    FamilyWalk::new(sources).go_on(&mut taker);
    taker.close();
    std::mem::take(taker.out()).counts()
}

/// Which series are told though they were not counted here.
pub(super) fn keeps(sources: &ScrapeSources) -> KeepsSeries {
    let subjects = Subjects::of(sources);
    Box::new(move |family, labels| subjects.have(family, labels))
}
