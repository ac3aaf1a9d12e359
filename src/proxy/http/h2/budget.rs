//! What a client may make us do for nothing.
//!
//! Each connection has a budget. What costs us and brings the client nothing takes from it; answers that went out whole and time put
//! back. Who has used it up is told so (ENHANCE_YOUR_CALM) and closed. Clients that mean well never come near it.

use crate::tick::Tick;

/// What a connection begins with, and has at most, in units.
pub const FULL: u32 = 1000;
/// What comes back in a second.
pub const EACH_SECOND: u64 = 100;
/// Nanoseconds for one unit.
const UNIT: u64 = 1_000_000_000 / EACH_SECOND;
/// Units are counted by these parts.
const PARTS: u32 = 16;
/// Frames beside the answers that are free for each frame of DATA that the client has got, and how many such frames may add up.
const FREE_FRAMES: u32 = 4;
const MOST_FREE: u32 = 4096;

/// What something costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toll {
    /// A stream that was cut, by whichever side: rapid reset (CVE-2023-44487) and its mirror image, in which the client makes us reset
    /// (CVE-2025-8671).
    Reset,
    /// The same of a stream that had been open for a while: clients have deadlines, and people leave pages.
    LateReset,
    /// A call whose time was over before anything came of it: as [`Toll::LateReset`], but for that it is answered.
    Abandoned,
    /// A stream whose client no longer wants the rest of an answer that had begun: as often as not it has been served.
    Cancel,
    /// RST_STREAM for a stream that was reset before: some libraries answer with one each frame of DATA that was on its way.
    ResetAgain,
    /// SETTINGS: each shifts the windows of all streams and is answered (CVE-2019-9515).
    Settings,
    /// PING, which is answered (CVE-2019-9512).
    Ping,
    /// DATA without content that does not end its stream (CVE-2019-9518).
    EmptyData,
    /// DATA that is shorter than its frame is worth, behind such that nobody has taken yet.
    TinyData,
    /// PRIORITY and PRIORITY_UPDATE (CVE-2019-9513).
    Priority,
    /// WINDOW_UPDATE, if there are more than follow from what the client has got.
    Window,
    /// A stream beyond those that may be open, from a client that has not seen yet how many that are.
    Early,
    /// A frame of a kind that we don't know.
    Unknown,
}

impl Toll {
    /// In parts of units.
    #[must_use]
    pub const fn cost(self) -> u32 {
        match self {
            Toll::Abandoned => (ANSWER + 3) * PARTS,
            Toll::Reset | Toll::Settings => 10 * PARTS,
            Toll::EmptyData => 5 * PARTS,
            Toll::LateReset => 3 * PARTS,
            Toll::Ping => 2 * PARTS,
            Toll::Cancel | Toll::ResetAgain | Toll::Priority | Toll::Window | Toll::Early | Toll::Unknown => {
                PARTS
            }
            Toll::TinyData => 1,
        }
    }

    /// Whether clients send such frames because of what they get: for as long as that comes, they are free.
    const fn follows(self) -> bool {
        matches!(self, Toll::Ping | Toll::Window | Toll::ResetAgain)
    }
}

/// What an answer that went out whole puts back, in units.
const ANSWER: u32 = 20;
/// So many bytes of a body that a backend has taken put back a part.
const TAKEN: usize = 4 * 1024;
/// So many of them put back a part that a short piece has cost: a message of gRPC has five bytes, and each may have a frame of its own.
const SHORT: usize = 4;

/// The budget is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent;

/// What is left of a connection's budget.
#[derive(Clone, Copy, Debug)]
pub struct PeerBudget {
    /// In parts of units.
    left: u32,
    /// Until when time has put back.
    since: Tick,
    /// Frames that are free.
    free: u32,
    /// Parts that short pieces have cost and that have not been put back.
    tiny: u32,
}

impl PeerBudget {
    /// A full one, `missing` units short.
    #[must_use]
    pub fn new(now: Tick, missing: u32) -> PeerBudget {
        PeerBudget { left: FULL.saturating_sub(missing) * PARTS, since: now, free: 0, tiny: 0 }
    }

    /// Takes a toll.
    ///
    /// # Errors
    /// There is not that much left.
    pub fn charge(&mut self, toll: Toll, now: Tick) -> Result<(), Spent> {
        if toll.follows() && self.free > 0 {
            self.free -= 1;
            return Ok(());
        }
        let units = now.since(self.since).as_nanos() as u64 / UNIT;
        if units > 0 {
            self.since = Tick(self.since.0 + units * UNIT);
            self.put(u32::try_from(units).unwrap_or(FULL));
        }
        self.left = self.left.checked_sub(toll.cost()).ok_or(Spent)?;
        if toll == Toll::TinyData {
            self.tiny = self.tiny.saturating_add(toll.cost());
        }
        Ok(())
    }

    /// An answer went out whole.
    #[inline]
    pub fn answered(&mut self) {
        self.put(ANSWER);
    }

    /// A backend has taken so many bytes of a body: that puts back what short pieces of it have cost, and little beside.
    #[inline]
    pub fn taken(&mut self, bytes: usize) {
        let tiny = self.tiny.min(PARTS.max(u32::try_from(bytes / SHORT).unwrap_or(u32::MAX)));
        self.tiny -= tiny;
        let more = u32::try_from(bytes / TAKEN).unwrap_or(PARTS);
        self.left = self.left.saturating_add(tiny + more).min(FULL * PARTS);
    }

    /// The client gets so many frames of DATA.
    #[inline]
    pub fn given(&mut self, frames: usize) {
        let more = u32::try_from(frames).unwrap_or(MOST_FREE).saturating_mul(FREE_FRAMES);
        self.free = self.free.saturating_add(more).min(MOST_FREE);
    }

    #[inline]
    fn put(&mut self, units: u32) {
        self.left = self.left.saturating_add(units.min(FULL) * PARTS).min(FULL * PARTS);
    }

    /// How many units it is short of a full one.
    #[must_use]
    pub fn missing(&self) -> u32 {
        FULL - self.left / PARTS
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_hundred_resets_at_once_are_too_many_and_time_puts_back() {
        let start = Tick(1);
        let mut budget = PeerBudget::new(start, 0);
        let resets = (0..).take_while(|_| budget.charge(Toll::Reset, start).is_ok()).count();
        assert_eq!(resets, 100);
        assert_eq!(budget.charge(Toll::Reset, start.after(Duration::from_millis(99))), Err(Spent));
        assert_eq!(budget.charge(Toll::Reset, start.after(Duration::from_millis(200))), Ok(()));
        let late = start.after(Duration::from_secs(3600));
        assert_eq!(
            (0..).take_while(|_| budget.charge(Toll::Reset, late).is_ok()).count(),
            100,
            "no more than full"
        );
    }

    #[test]
    fn answers_pay_for_resets() {
        let now = Tick(1);
        let mut budget = PeerBudget::new(now, 0);
        for _ in 0..10_000 {
            budget.charge(Toll::Reset, now).expect("every other request is served");
            budget.answered();
        }
        assert_eq!(budget.missing(), 0);
        assert_eq!(PeerBudget::new(now, 5000).charge(Toll::Unknown, now), Err(Spent));
    }

    #[test]
    fn what_follows_from_what_a_client_gets_is_free() {
        let now = Tick(1);
        let mut budget = PeerBudget::new(now, 0);
        for _ in 0..100_000 {
            budget.given(1);
            (0..FREE_FRAMES).for_each(|_| budget.charge(Toll::Window, now).expect("one for each frame"));
        }
        assert_eq!(budget.missing(), 0);
        budget.given(usize::MAX);
        let count = (0..).take_while(|_| budget.charge(Toll::Window, now).is_ok()).count();
        assert_eq!(count as u32, MOST_FREE + FULL, "but not without end");
    }

    #[test]
    fn short_pieces_that_are_taken_cost_nothing() {
        let now = Tick(1);
        let mut budget = PeerBudget::new(now, 0);
        for _ in 0..100_000 {
            (0..PARTS).for_each(|_| budget.charge(Toll::TinyData, now).expect("they are taken"));
            budget.taken(PARTS as usize);
        }
        assert_eq!(budget.missing(), 0);
        assert_eq!((0..).take_while(|_| budget.charge(Toll::TinyData, now).is_ok()).count(), 16_000);
        (0..1000).for_each(|_| budget.taken(1));
        assert_eq!(budget.missing(), 0);
        (0..100).for_each(|_| budget.charge(Toll::Reset, now).expect("a full budget"));
        (0..1000).for_each(|_| budget.taken(1));
        assert_eq!(budget.missing(), FULL, "short pieces pay for nothing but themselves");
    }

    /// A worker reads many frames before a backend takes what was in them, and then that takes all at once.
    #[test]
    fn a_stream_of_short_messages_is_no_flood() {
        let now = Tick(1);
        let mut budget = PeerBudget::new(now, 0);
        for size in [5, 30, 250] {
            for _ in 0..1000 {
                (0..1000).for_each(|_| budget.charge(Toll::TinyData, now).expect("they are taken"));
                budget.taken(1000 * size);
            }
            assert_eq!(budget.missing(), 0, "{size}");
        }
        let ends = (0..).take_while(|_| {
            let fits = (0..1000).all(|_| budget.charge(Toll::TinyData, now).is_ok());
            budget.taken(1000);
            fits
        });
        assert!(ends.count() < 30, "pieces of one byte are one");
    }

    #[test]
    fn calls_that_are_given_no_time_are_not_paid_for() {
        let now = Tick(1);
        let mut budget = PeerBudget::new(now, 0);
        let calls = (0..).take_while(|_| {
            let fits = budget.charge(Toll::Abandoned, now).is_ok();
            budget.answered();
            fits
        });
        assert!(calls.count() < 340);
    }
}
