//! How many connections there are at once. When one more comes, the one that has been idle for longest leaves: whoever holds
//! connections without asking anything keeps nobody out. Where nobody is idle the one leaves that reads a stream for longest, which its
//! client can begin again.
//!
//! Invariants of `Guests`: a number stands for one guest, and numbers only grow; a guest is in `all` from its admission until its
//! [`GuestPlace`] is dropped or it is asked to leave, whichever is first.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// All who are connected.
#[derive(Debug)]
pub struct GuestList {
    most: usize,
    guests: Mutex<Guests>,
}

#[derive(Debug, Default)]
struct Guests {
    next: u64,
    all: BTreeMap<u64, Guest>,
}

#[derive(Debug)]
struct Guest {
    leaves: CancellationToken,
    /// Requests of it that are being answered, but for a stream.
    working: usize,
    /// It reads a stream.
    is_streaming: bool,
    /// Numbers grow with time: since when it has asked nothing, or reads its stream.
    idle_since: u64,
}

/// One connection's place, until it is dropped.
#[derive(Debug)]
pub struct GuestPlace {
    list: Arc<GuestList>,
    number: u64,
    leaves: CancellationToken,
}

/// While there is one, its connection is not idle.
#[derive(Debug)]
pub struct Working {
    list: Arc<GuestList>,
    number: u64,
    is_stream: bool,
}

impl GuestList {
    /// Of `most` at once.
    #[must_use]
    pub fn new(most: usize) -> Arc<GuestList> {
        Arc::new(GuestList { most, guests: Mutex::default() })
    }

    fn guests(&self) -> MutexGuard<'_, Guests> {
        // Nothing that is done under it can panic half-way.
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for one more; `None`: all who are there are being answered, and none with a stream.
    #[must_use]
    pub fn admit(self: &Arc<Self>) -> Option<GuestPlace> {
        let mut guests = self.guests();
        if guests.all.len() >= self.most {
            let idle = guests.all.iter().filter(|(_, guest)| guest.working == 0);
            let (&longest, _) = idle.min_by_key(|(_, guest)| (guest.is_streaming, guest.idle_since))?;
            if let Some(guest) = guests.all.remove(&longest) {
                guest.leaves.cancel();
            }
        }
        let number = guests.tick();
        let leaves = CancellationToken::new();
        guests.all.insert(
            number,
            Guest { leaves: leaves.clone(), working: 0, is_streaming: false, idle_since: number },
        );
        Some(GuestPlace { list: Arc::clone(self), number, leaves })
    }
}

impl Guests {
    fn tick(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

impl GuestPlace {
    /// Ends when it is to leave.
    pub async fn left(&self) {
        self.leaves.cancelled().await;
    }

    /// Begins to answer a request of it.
    #[must_use]
    pub fn work(&self) -> Working {
        if let Some(guest) = self.list.guests().all.get_mut(&self.number) {
            guest.working += 1;
        }
        Working { list: Arc::clone(&self.list), number: self.number, is_stream: false }
    }
}

impl Drop for GuestPlace {
    fn drop(&mut self) {
        self.list.guests().all.remove(&self.number);
    }
}

impl Working {
    /// The answer is a stream: its reader makes room before anybody who is answered, and after those who are idle.
    pub fn streams(&mut self) {
        let mut guests = self.list.guests();
        let now = guests.tick();
        if let Some(guest) = guests.all.get_mut(&self.number).filter(|_| !self.is_stream) {
            guest.working = guest.working.saturating_sub(1);
            (guest.is_streaming, guest.idle_since) = (true, now);
        }
        self.is_stream = true;
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let mut guests = self.list.guests();
        let now = guests.tick();
        if let Some(guest) = guests.all.get_mut(&self.number) {
            if self.is_stream {
                guest.is_streaming = false;
            } else {
                guest.working = guest.working.saturating_sub(1);
            }
            guest.idle_since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_been_idle_for_longest_makes_room_and_nobody_who_is_answered_does() {
        let list = GuestList::new(3);
        let places: Vec<GuestPlace> = (0..3).map(|_| list.admit().expect("there is room")).collect();
        let has_left = |place: &GuestPlace| place.leaves.is_cancelled();
        let first = places[0].work();
        let fourth = list.admit().expect("the second is idle");
        assert_eq!(places.iter().map(has_left).collect::<Vec<_>>(), [false, true, false]);
        drop(first);
        let fifth = list.admit().expect("the third is idle for longer than the first");
        assert_eq!(places.iter().map(has_left).collect::<Vec<_>>(), [false, true, true]);
        let working = [places[0].work(), fourth.work(), fifth.work()];
        assert!(list.admit().is_none(), "all are being answered");
        drop(fourth);
        let sixth = list.admit().expect("one is gone");
        drop(working);
        drop((places, fifth, sixth));
        assert!(list.guests().all.is_empty());
    }

    #[test]
    fn streams_keep_nobody_out_and_make_room_after_those_who_are_idle() {
        let list = GuestList::new(3);
        let places: Vec<GuestPlace> = (0..3).map(|_| list.admit().expect("there is room")).collect();
        let has_left = |place: &GuestPlace| place.leaves.is_cancelled();
        let mut streams: Vec<Working> = places[..2].iter().map(GuestPlace::work).collect();
        streams.iter_mut().rev().for_each(Working::streams);
        let fourth = list.admit().expect("the third is idle");
        assert_eq!(places.iter().map(has_left).collect::<Vec<_>>(), [false, false, true]);
        let answered = fourth.work();
        let fifth = list.admit().expect("the second has had its stream for longest");
        assert_eq!(places.iter().map(has_left).collect::<Vec<_>>(), [false, true, true]);
        // Its stream has ended, so it is idle, but for less time than the fifth.
        drop(streams);
        let sixth = list.admit().expect("the fifth is idle");
        assert!(has_left(&fifth) && !has_left(&places[0]) && !has_left(&fourth));
        drop((answered, places, sixth));
    }
}
