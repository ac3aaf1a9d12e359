//! Entries of any length in memory of fixed size: one thread writes, any number read, and nobody waits.
//!
//! An entry is its bytes, filled up to whole words, and behind them a word with their number; so a reader finds the latest entry at the
//! end, and from there the one before. Words are counted from the first that was ever written, and lie at their number modulo the
//! size. Invariants:
//!
//! 1. One thread writes. Before it touches a word it has raised `claimed` to the end of what it is about to write, so whatever is
//!    being overwritten lies further than the size behind `claimed`.
//! 2. `written` is raised when an entry is whole: what lies before it, and not too far behind `claimed`, is whole entries.
//! 3. A reader copies, and looks at `claimed` afterwards. A word that had been overwritten when it was copied was overwritten by an
//!    entry that had been claimed before (1): the two fences pair up, so the reader sees that claim, and throws its copy away.
//!
//! So a reader never keeps the writer from writing, and the writer never waits: a reader that is slow misses the oldest entries. Memory
//! is taken in pieces, when the first entry comes to lie there, and kept.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Words of one piece of memory: 16 KiB.
const PIECE: u64 = 2048;
/// Bytes of a piece.
pub(super) const PIECE_BYTES: u64 = PIECE * 8;
/// The longest entry, in bytes: several have room in the smallest ring.
pub(super) const ENTRY_MAX: usize = 6 * 1024;

/// Entries, the latest that there is room for.
#[derive(Debug)]
pub(super) struct EntryRing {
    pieces: Box<[OnceLock<Box<[AtomicU64]>>]>,
    /// The end of what is written or just being written.
    claimed: AtomicU64,
    /// The end of the latest whole entry.
    written: AtomicU64,
}

impl EntryRing {
    /// So many pieces, at least one.
    pub(super) fn new(pieces: u64) -> EntryRing {
        let pieces = (0..pieces.max(1)).map(|_| OnceLock::new()).collect();
        EntryRing { pieces, claimed: AtomicU64::new(0), written: AtomicU64::new(0) }
    }

    fn size(&self) -> u64 {
        self.pieces.len() as u64 * PIECE
    }

    /// Writes an entry over the oldest ones; one that is too long is left out. Only the owning worker calls this.
    pub(super) fn push(&self, bytes: &[u8]) {
        self.push_while(bytes, || ());
    }

    /// The same; `between` is called between any two steps.
    fn push_while(&self, bytes: &[u8], mut between: impl FnMut()) {
        if bytes.len() > ENTRY_MAX {
            return;
        }
        let (whole, rest) = bytes.as_chunks::<8>();
        let last = (!rest.is_empty()).then(|| {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            last
        });
        let start = self.written.load(Ordering::Relaxed);
        let end = start + whole.len() as u64 + u64::from(last.is_some()) + 1;
        self.claimed.store(end, Ordering::Relaxed);
        fence(Ordering::Release);
        between();
        let words = whole.iter().copied().chain(last).map(u64::from_le_bytes);
        for (at, word) in (start..).zip(words.chain([bytes.len() as u64])) {
            self.put(at, word);
            between();
        }
        self.written.store(end, Ordering::Release);
    }

    /// Calls `take` with each entry that is still there, the latest first, until it says that this is enough.
    pub(super) fn read(&self, take: impl FnMut(&[u8]) -> bool) {
        self.read_while(take, || ());
    }

    /// The same; `between` is called between any two steps.
    fn read_while(&self, mut take: impl FnMut(&[u8]) -> bool, mut between: impl FnMut()) {
        let mut end = self.written.load(Ordering::Acquire);
        let mut bytes = Vec::new();
        while let Some(at) = end.checked_sub(1) {
            between();
            let length = self.word(at);
            if !self.holds(at) {
                return;
            }
            // Whole entries lie here, so it is a length that was written.
            let Some(start) = at.checked_sub(length.div_ceil(8)) else { return };
            bytes.clear();
            for at in start..at {
                between();
                bytes.extend_from_slice(&self.word(at).to_le_bytes());
            }
            between();
            if !self.holds(start) {
                return;
            }
            bytes.truncate(usize::try_from(length).unwrap_or(usize::MAX));
            if !take(&bytes) {
                return;
            }
            end = start;
        }
    }

    /// Whether the word at `at`, which was just read, was what had been written there.
    fn holds(&self, at: u64) -> bool {
        fence(Ordering::Acquire);
        at + self.size() >= self.claimed.load(Ordering::Relaxed)
    }

    fn place(&self, at: u64) -> (usize, usize) {
        let at = at % self.size();
        // Both are below the number of words, which are in memory.
        ((at / PIECE) as usize, (at % PIECE) as usize)
    }

    fn put(&self, at: u64, word: u64) {
        let (piece, place) = self.place(at);
        let words = self.pieces[piece].get_or_init(|| (0..PIECE).map(|_| AtomicU64::new(0)).collect());
        words[place].store(word, Ordering::Relaxed);
    }

    fn word(&self, at: u64) -> u64 {
        let (piece, place) = self.place(at);
        self.pieces[piece].get().map_or(0, |words| words[place].load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::sync::atomic::AtomicBool;

    use proptest::prelude::*;

    use super::*;

    /// An entry that shows whether it is whole: its number, again and again.
    fn entry(number: u64, length: usize) -> Vec<u8> {
        let mut bytes = number.to_le_bytes().repeat(length.div_ceil(8).max(1));
        bytes.truncate(length.max(8));
        bytes
    }

    fn number(bytes: &[u8]) -> u64 {
        let first: [u8; 8] = bytes[..8].try_into().unwrap();
        let number = u64::from_le_bytes(first);
        assert_eq!(bytes, entry(number, bytes.len()), "a torn entry");
        number
    }

    fn numbers(ring: &EntryRing) -> Vec<u64> {
        let mut numbers = Vec::new();
        ring.read(|bytes| {
            numbers.push(number(bytes));
            true
        });
        numbers
    }

    #[test]
    fn the_latest_entries_are_there_and_the_oldest_make_way() {
        let ring = EntryRing::new(1);
        assert!(numbers(&ring).is_empty());
        for number in 0..3 {
            ring.push(&entry(number, 9));
        }
        assert_eq!(numbers(&ring), [2, 1, 0]);
        for number in 3..1000 {
            ring.push(&entry(number, 100));
        }
        // Each takes 13 words and one for its length.
        let kept = numbers(&ring);
        assert_eq!((kept[0], kept.len() as u64), (999, PIECE / 14));
        ring.push(&vec![0; ENTRY_MAX + 1]);
        ring.push(&[]);
        let mut lengths = Vec::new();
        ring.read(|bytes| {
            lengths.push(bytes.len());
            lengths.len() < 2
        });
        assert_eq!(lengths, [0, 100], "what is too long is left out, and what is enough is enough");
    }

    proptest! {
        /// Whatever is written between any two steps of a reader, and whatever is read between any two steps of the writer: entries
        /// are whole, in their order, and the latest that was whole at the beginning is there unless it was overwritten.
        #[test]
        fn a_reader_gets_whole_entries_in_their_order_whatever_happens_between_its_steps(
            lengths in prop::collection::vec(8..ENTRY_MAX, 4..12),
            meanwhile in prop::collection::vec((0..1500u32, 8..ENTRY_MAX), 0..12),
            nested in 0..900u32,
        ) {
            let ring = EntryRing::new(1);
            let next = Cell::new(0);
            let push = |length: usize| {
                let number = next.replace(next.get() + 1);
                let step = Cell::new(0);
                let whole = next.get() - 1;
                ring.push_while(&entry(number, length), || {
                    if step.replace(step.get() + 1) == nested {
                        let seen = numbers(&ring);
                        assert!(seen.iter().all(|&one| one < whole), "it is not whole yet");
                        assert!(seen.windows(2).all(|pair| pair[0] == pair[1] + 1), "{seen:?}");
                    }
                });
            };
            lengths.iter().for_each(|&length| push(length));
            let (before, meanwhile) = (next.get(), RefCell::new(meanwhile));
            let (step, overwritten) = (Cell::new(0), Cell::new(false));
            let mut seen = Vec::new();
            ring.read_while(
                |bytes| {
                    seen.push(number(bytes));
                    true
                },
                || {
                    step.set(step.get() + 1);
                    let due = meanwhile.borrow_mut().pop_if(|(at, _)| *at < step.get());
                    if let Some((_, length)) = due {
                        push(length);
                        overwritten.set(true);
                    }
                },
            );
            prop_assert!(seen.windows(2).all(|pair| pair[0] == pair[1] + 1), "{:?}", seen);
            prop_assert!(seen.first().is_none_or(|&first| first == before - 1));
            prop_assert!(!seen.is_empty() || overwritten.get());
        }
    }

    #[test]
    fn readers_on_other_threads_never_see_half_an_entry() {
        let (ring, is_over) = (EntryRing::new(2), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut latest = 0;
                    while !is_over.load(Ordering::Relaxed) {
                        let seen = numbers(&ring);
                        assert!(seen.windows(2).all(|pair| pair[0] == pair[1] + 1), "{seen:?}");
                        let newest = seen.first().copied().unwrap_or(latest);
                        assert!(
                            newest >= latest,
                            "what was there once is not forgotten for what came before it"
                        );
                        latest = newest;
                    }
                });
            }
            for number in 0..20_000 {
                ring.push(&entry(number, 8 + (number as usize * 37) % 900));
            }
            is_over.store(true, Ordering::Relaxed);
        });
        assert_eq!(numbers(&ring)[0], 19_999);
    }
}
