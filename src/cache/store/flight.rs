//! Requests that are under way to a backend for the cache, and who waits for their answers.
//!
//! Of those who want the same thing one *leads*: it asks the backend. The others *follow* until its head is there. Invariants:
//!
//! 1. A flight has one lead at a time. When that fails before its head is there, one follower takes its place, and no other; when that fails
//!    too, all others are told why.
//! 2. A lead ends what it has begun, on every way out of it: a flight whose lead is gone is open, over, or vacant, and then all who follow
//!    have been woken. Who waits is woken by every change.
//! 3. A vacant flight stays listed, so that whoever comes leads on as well as whoever waits.
//! 4. Only what is listed may be kept: a purge takes flights off the list of their URL, under the lock under which an object is kept. So
//!    what was asked for before a purge is not found after it.
//! 5. Nobody holds a lock while waiting.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::message::Cause;

use super::object::Object;

/// A request that is under way, for all who want its answer.
#[derive(Debug)]
pub struct Flight {
    pub(super) key: Box<[u8]>,
    pub(super) purges: u64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    stage: Stage,
    /// Leads that have failed.
    failed: u8,
    waiting: Vec<Option<Waker>>,
}

#[derive(Clone, Debug)]
pub(super) enum Stage {
    /// Its lead asks.
    Asking,
    /// Its lead has failed.
    Vacant,
    /// The head of its answer is there, and others may have it.
    Open(Arc<Object>),
    /// Everybody has to ask alone.
    Alone,
    /// There is no answer.
    Failed(Cause),
}

/// What has become of a flight for one who followed.
#[derive(Debug)]
pub enum Landed {
    /// Its answer, if that is for this request.
    Object(Arc<Object>),
    /// This one leads now.
    Lead,
    /// Everybody has to ask alone.
    Alone,
    /// There is no answer.
    Failed(Cause),
}

/// Leads that may fail before nobody tries again.
const MOST_FAILED: u8 = 2;

impl Flight {
    pub(super) fn new(key: &[u8], purges: u64) -> Flight {
        let state = State { stage: Stage::Asking, failed: 0, waiting: Vec::new() };
        Flight { key: key.into(), purges, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn stage(&self) -> Stage {
        self.lock().stage.clone()
    }

    /// Moves on, and wakes all who wait.
    pub(super) fn set(&self, stage: Stage) {
        let waiting = {
            let mut state = self.lock();
            state.stage = stage;
            state.waiting.iter_mut().filter_map(Option::take).collect::<Vec<_>>()
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// The same, where others may follow.
    pub(super) fn open(&self, stage: Stage) {
        if !matches!(self.stage(), Stage::Alone) {
            self.set(stage);
        }
    }

    /// Its lead has failed before its head was there. Gives whether somebody waits who may lead on.
    pub(super) fn fail(&self, cause: Cause) -> bool {
        let may_go_on = {
            let mut state = self.lock();
            state.failed += 1;
            state.failed < MOST_FAILED && state.waiting.iter().any(Option::is_some)
        };
        self.set(if may_go_on { Stage::Vacant } else { Stage::Failed(cause) });
        may_go_on
    }

    /// Takes the place of a lead that has failed. False: there is none to be taken.
    pub(super) fn take_over(&self) -> bool {
        let mut state = self.lock();
        let is_vacant = matches!(state.stage, Stage::Vacant);
        if is_vacant {
            state.stage = Stage::Asking;
        }
        is_vacant
    }
}

/// Who follows a flight.
#[derive(Debug)]
pub struct FlightFollower {
    flight: Arc<Flight>,
    slot: Option<usize>,
}

impl FlightFollower {
    pub(super) fn new(flight: Arc<Flight>) -> FlightFollower {
        FlightFollower { flight, slot: None }
    }

    pub(super) fn flight(&self) -> &Arc<Flight> {
        &self.flight
    }

    /// Ready when something has become of it. Who leads then has to [take it over](super::CacheStore::lead_on).
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Landed> {
        let mut state = self.flight.lock();
        let landed = match &state.stage {
            Stage::Asking => {
                let waker = Some(cx.waker().clone());
                match self.slot.and_then(|slot| state.waiting.get_mut(slot)) {
                    Some(place) => *place = waker,
                    None => {
                        self.slot = Some(state.waiting.len());
                        state.waiting.push(waker);
                    }
                }
                return Poll::Pending;
            }
            Stage::Vacant => {
                state.stage = Stage::Asking;
                return Poll::Ready(Landed::Lead);
            }
            Stage::Open(object) => Landed::Object(Arc::clone(object)),
            Stage::Alone => Landed::Alone,
            Stage::Failed(cause) => Landed::Failed(*cause),
        };
        Poll::Ready(landed)
    }
}

impl Drop for FlightFollower {
    fn drop(&mut self) {
        let mut state = self.flight.lock();
        if let Some(place) = self.slot.and_then(|slot| state.waiting.get_mut(slot)) {
            *place = None;
        }
    }
}
