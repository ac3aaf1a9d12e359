//! What the processes before this one have counted, and what this one leaves: so that nothing that only grows begins at zero again at an upgrade.

mod subjects;

use std::sync::{Arc, PoisonError, RwLock};

pub(super) use subjects::Subjects;

use super::sources::ScrapeSources;
use super::walk::FamilyWalk;
use crate::telemetry::exposition::{CountTaker, CountsBefore, KeepsSeries, WithBefore};

#[derive(Debug, Default)]
struct State {
    before: Arc<CountsBefore>,
    given: Option<CountsBefore>,
}

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
        CountsBook(RwLock::new(State { before: Arc::new(before), given: None }))
    }

    /// Adds what a process before has counted since it was followed.
    pub fn add(&self, more: &CountsBefore) {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut state.before).add(more);
    }

    /// What a scrape is written from, with what was counted before; `None`: it is the next process that says so by now.
    pub fn taken<T>(&self, take: impl FnOnce() -> T) -> Option<(T, Arc<CountsBefore>)> {
        let state = self.0.read().unwrap_or_else(PoisonError::into_inner);
        state.given.is_none().then(|| (take(), Arc::clone(&state.before)))
    }

    /// Gives all that was counted so far, here and before.
    pub fn give(&self, take: impl FnOnce() -> Option<ScrapeSources>) -> CountsBefore {
        let mut state = self.0.write().unwrap_or_else(PoisonError::into_inner);
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
