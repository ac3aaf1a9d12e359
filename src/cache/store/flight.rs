//! Requests that are under way to a backend for the cache, and who waits for their answers.
//!
//! Of those who want the same thing one *leads*: it asks the backend. The others *follow* until its head is there. Invariants:
//!
//! 1. A flight has one lead at a time. When that fails before its head is there, one follower takes its place, and no other; when that fails
//!    too, or the backend has got the request twice already, all others are told why.
//! 2. A lead ends what it has begun, on every way out of it: a flight whose lead is gone is open, over, or vacant, and then all who follow
//!    have been woken. Who waits is woken by every change.
//! 3. A vacant flight stays listed as long as somebody follows it, so that whoever comes leads on as well as whoever waits. The last who
//!    leaves a vacant one declares it failed and takes it off the list.
//! 4. Only what is listed may be kept: a purge takes flights off the list of their URL, under the lock under which an object is kept. So
//!    what was asked for before a purge is not found after it.
//! 5. Nobody holds a lock while waiting.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::message::Cause;

use super::hashed::Hashed;
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
    /// Times that the request went out without an answer.
    failed: u8,
    followers: usize,
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

/// Shards of what is under way.
const SHARDS: usize = 64;

/// What is under way, by the hash of its URL.
pub(super) type UnderWay = HashMap<u128, Vec<Arc<Flight>>, Hashed>;

/// All that is under way.
#[derive(Debug)]
pub(super) struct Flights(Box<[Mutex<UnderWay>]>);

impl Default for Flights {
    fn default() -> Flights {
        Flights((0..SHARDS).map(|_| Mutex::default()).collect())
    }
}

impl Flights {
    /// Those of the URLs that share a lock with this one.
    pub(super) fn shard(&self, place: u128) -> MutexGuard<'_, UnderWay> {
        self.0[place as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a flight off the list. False: it was not on it.
    pub(super) fn unlist(&self, place: u128, flight: &Arc<Flight>) -> bool {
        unlist(&mut self.shard(place), place, flight)
    }

    /// How many URLs have some.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        (0..SHARDS as u128).map(|place| self.shard(place).len()).sum()
    }
}

/// The same under the lock.
pub(super) fn unlist(shard: &mut UnderWay, place: u128, flight: &Arc<Flight>) -> bool {
    let Some(listed) = shard.get_mut(&place) else { return false };
    let before = listed.len();
    listed.retain(|other| !Arc::ptr_eq(other, flight));
    let was_there = listed.len() < before;
    if listed.is_empty() {
        shard.remove(&place);
    }
    was_there
}

/// Times that it may go out before nobody tries again.
const MOST_FAILED: u8 = 2;

impl Flight {
    pub(super) fn new(key: &[u8], purges: u64) -> Flight {
        let state = State { stage: Stage::Asking, failed: 0, followers: 0, waiting: Vec::new() };
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

    /// Its lead has failed before its head was there, though the request went out so many times. Gives whether somebody waits who may lead
    /// on.
    pub(super) fn fail(&self, cause: Cause, sends: u8) -> bool {
        let may_go_on = {
            let mut state = self.lock();
            state.failed = state.failed.saturating_add(sends.max(1));
            state.failed < MOST_FAILED && state.followers > 0
        };
        self.set(if may_go_on { Stage::Vacant } else { Stage::Failed(cause) });
        may_go_on
    }

    /// Whether a lead has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.lock().failed > 0
    }

    /// Whether somebody follows it.
    pub(super) fn is_followed(&self) -> bool {
        self.lock().followers > 0
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
    flights: Arc<Flights>,
    flight: Arc<Flight>,
    place: u128,
    slot: Option<usize>,
}

impl FlightFollower {
    pub(super) fn new(flights: &Arc<Flights>, flight: &Arc<Flight>, place: u128) -> FlightFollower {
        flight.lock().followers += 1;
        FlightFollower { flights: Arc::clone(flights), flight: Arc::clone(flight), place, slot: None }
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
        let is_deserted = {
            let mut state = self.flight.lock();
            if let Some(place) = self.slot.and_then(|slot| state.waiting.get_mut(slot)) {
                *place = None;
            }
            state.followers -= 1;
            let is_deserted = state.followers == 0 && matches!(state.stage, Stage::Vacant);
            if is_deserted {
                state.stage = Stage::Failed(Cause::ClientGone);
            }
            is_deserted
        };
        if is_deserted {
            self.flights.unlist(self.place, &self.flight);
        }
    }
}
