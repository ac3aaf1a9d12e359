//! How many connections there are at once. When one more comes, another one makes room, in this order: one that is idle; one whose
//! request is still coming; one that takes an answer at its own pace, such as an event stream, which its client can begin again. In
//! each of the three it is the one that has been so for longest. One whose request is worked on stays, so whoever only holds
//! connections keeps nobody out, whatever he sends or leaves unread.
//!
//! Invariants of `Guests`:
//!
//! 1. A number stands for one guest, and numbers only grow. A guest is in `all` from its admission until its [`GuestPlace`] is
//!    dropped or it is asked to leave, whichever is first; so `all` never has more than `most`.
//! 2. A guest is `Answered` only while nothing is waited for from its client: its request is there whole, and no byte of
//!    the answer has to be taken before the next can be made.
//! 3. `since` changes with what a guest does and with nothing else: neither a byte more of a request nor the end of its head makes it
//!    younger.
//! 4. What a [`Working`] or an [`Arriving`] says counts only as long as its request is the latest of its connection.

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
    admitted: u64,
    all: BTreeMap<u64, Guest>,
}

#[derive(Debug)]
struct Guest {
    leaves: CancellationToken,
    doing: Doing,
    /// Numbers grow with time: when it began to do this.
    since: u64,
    /// How many requests it has begun.
    request: u64,
    /// How many were admitted before it.
    after: u64,
}

/// What a guest does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// It has sent nothing yet.
    Coming,
    /// It has its answer, and has sent nothing since.
    Idle,
    /// The head or the body of its request is coming.
    Sending,
    /// Its request is there and is worked on.
    Answered,
    /// It is given an answer in pieces, as it takes them.
    Streaming,
    /// It has to take the rest of an answer that is made.
    Taking,
}

/// One connection's place, until it is dropped.
#[derive(Debug)]
pub struct GuestPlace {
    list: Arc<GuestList>,
    number: u64,
    leaves: CancellationToken,
}

/// A request, from the end of its head until its answer has been made, or its stream has ended.
#[derive(Debug)]
pub struct Working(Asked);

/// While there is one, the body of its request is coming.
#[derive(Debug)]
pub struct Arriving(Asked);

/// One request of a guest.
#[derive(Clone, Debug)]
struct Asked {
    list: Arc<GuestList>,
    number: u64,
    request: u64,
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

    /// A place for one more; `None`: the requests of all who are there are worked on.
    #[must_use]
    pub fn admit(self: &Arc<Self>) -> Option<GuestPlace> {
        let mut guests = self.guests();
        if guests.all.len() >= self.most {
            // Who came just now has had no time to say anything. Were it idle, a crowd of half-sent requests would push out all who
            // come, one by one.
            let settled = guests.admitted.saturating_sub(self.most as u64 / 4);
            let ranks = guests.all.iter().filter_map(|(number, guest)| Some((guest.rank(settled)?, *number)));
            let (_, first) = ranks.min()?;
            if let Some(guest) = guests.all.remove(&first) {
                guest.leaves.cancel();
            }
        }
        let (number, after) = (guests.tick(), guests.admitted);
        guests.admitted += 1;
        let leaves = CancellationToken::new();
        let guest = Guest { leaves: leaves.clone(), doing: Doing::Coming, since: number, request: 0, after };
        guests.all.insert(number, guest);
        Some(GuestPlace { list: Arc::clone(self), number, leaves })
    }
}

impl Guests {
    fn tick(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Has a guest do what `next` says of what it does; `None`: it goes on.
    fn turn(&mut self, number: u64, next: impl FnOnce(&mut Guest) -> Option<Doing>) {
        let now = self.next + 1;
        let Some(guest) = self.all.get_mut(&number) else { return };
        if let Some(doing) = next(guest).filter(|doing| *doing != guest.doing) {
            (guest.doing, guest.since) = (doing, now);
            self.next = now;
        }
    }
}

impl Guest {
    /// Who makes room first has the least; `None`: it stays. `settled`: one that has sent nothing is idle if it is among this many who
    /// came first.
    fn rank(&self, settled: u64) -> Option<(u8, u64)> {
        let order = match self.doing {
            Doing::Idle => 0,
            Doing::Coming if self.after < settled => 0,
            Doing::Coming | Doing::Sending => 1,
            Doing::Streaming | Doing::Taking => 2,
            Doing::Answered => return None,
        };
        Some((order, self.since))
    }
}

impl GuestPlace {
    /// Ends when it is to leave.
    pub async fn left(&self) {
        self.leaves.cancelled().await;
    }

    /// It has sent some bytes.
    pub fn hears(&self) {
        self.list.guests().turn(self.number, |guest| {
            matches!(guest.doing, Doing::Coming | Doing::Idle).then_some(Doing::Sending)
        });
    }

    /// It has taken all that there was to send.
    pub fn has_taken(&self) {
        self.list.guests().turn(self.number, |guest| (guest.doing == Doing::Taking).then_some(Doing::Idle));
    }

    /// The head of a request is there.
    #[must_use]
    pub fn ask(&self) -> (Working, Arriving) {
        let mut request = 0;
        self.list.guests().turn(self.number, |guest| {
            guest.request += 1;
            request = guest.request;
            Some(Doing::Sending)
        });
        let asked = Asked { list: Arc::clone(&self.list), number: self.number, request };
        (Working(asked.clone()), Arriving(asked))
    }
}

impl Drop for GuestPlace {
    fn drop(&mut self) {
        self.list.guests().all.remove(&self.number);
    }
}

impl Asked {
    /// Has its guest do what `next` says, unless it has asked again.
    fn turn(&self, next: impl FnOnce(Doing) -> Option<Doing>) {
        self.list
            .guests()
            .turn(self.number, |guest| (guest.request == self.request).then(|| next(guest.doing)).flatten());
    }
}

impl Working {
    /// The answer is a stream.
    pub fn streams(&self) {
        self.0.turn(|_| Some(Doing::Streaming));
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.turn(|_| Some(Doing::Taking));
    }
}

impl Drop for Arriving {
    /// The request is there whole, or nobody wants what is left of it.
    fn drop(&mut self) {
        self.0.turn(|doing| (doing == Doing::Sending).then_some(Doing::Answered));
    }
}

#[cfg(test)]
mod tests;
