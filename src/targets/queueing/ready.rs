//! Which places of a tier are ready, so that thousands that are not never turn a pick into a scan.
//!
//! A bit per place, a count per 1,024 places, and how many are missing altogether. Whoever holds the target's mutex
//! writes; picks read without it. All of it is relaxed: a place is a number and nothing stands behind it (the backends
//! come with the tier, which is never changed), so no other memory has to be seen along with a bit. A pick that reads
//! an older bit chooses as it would have a moment before, and the backend's own words are asked last anyway. Bits and
//! counts may disagree while a change is under way; readers put up with that by finding nothing.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Places of a word.
const WORD: usize = u64::BITS as usize;

/// Words that are counted together: two cache lines.
const GROUP: usize = 16;

/// Which of the places `0..len` are ready.
#[derive(Debug)]
pub(in crate::targets) struct Ready {
    words: Box<[AtomicU64]>,
    /// Ready places of each group.
    counts: Box<[AtomicU32]>,
    /// Places that are not ready.
    missing: AtomicU32,
    len: usize,
}

impl Ready {
    /// `len` places, all of them ready.
    #[must_use]
    pub(in crate::targets) fn new(len: usize) -> Ready {
        let places = |start: usize, most: usize| len.saturating_sub(start).min(most);
        let word = |nth: usize| match places(nth * WORD, WORD) {
            WORD => u64::MAX,
            rest => (1 << rest) - 1,
        };
        let count = |nth: usize| {
            u32::try_from(places(nth * WORD * GROUP, WORD * GROUP)).expect("no more places than a group has")
        };
        let words = len.div_ceil(WORD);
        Ready {
            words: (0..words).map(|nth| AtomicU64::new(word(nth))).collect(),
            counts: (0..words.div_ceil(GROUP)).map(|nth| AtomicU32::new(count(nth))).collect(),
            missing: AtomicU32::new(0),
            len,
        }
    }

    /// Notes whether `place` is ready. For the holder of the target's mutex: what several would find out and write at
    /// once could end up in another order. (The counts would agree with the bits nevertheless.)
    pub(in crate::targets) fn set(&self, place: usize, ready: bool) {
        if place >= self.len {
            return;
        }
        let (word, bit) = (&self.words[place / WORD], 1 << (place % WORD));
        let count = &self.counts[place / WORD / GROUP];
        if ready {
            if word.fetch_or(bit, Ordering::Relaxed) & bit == 0 {
                count.fetch_add(1, Ordering::Relaxed);
                self.missing.fetch_sub(1, Ordering::Relaxed);
            }
        } else if word.fetch_and(!bit, Ordering::Relaxed) & bit != 0 {
            count.fetch_sub(1, Ordering::Relaxed);
            self.missing.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether all places are ready: the usual case, and one load.
    #[must_use]
    pub(in crate::targets) fn is_full(&self) -> bool {
        self.missing.load(Ordering::Relaxed) == 0
    }

    /// How many places are ready.
    #[must_use]
    pub(in crate::targets) fn count(&self) -> usize {
        self.len.saturating_sub(self.missing.load(Ordering::Relaxed) as usize)
    }

    /// Whether `place` is ready; one that is not there never is.
    #[must_use]
    pub(in crate::targets) fn contains(&self, place: usize) -> bool {
        self.words
            .get(place / WORD)
            .is_some_and(|word| word.load(Ordering::Relaxed) >> (place % WORD) & 1 == 1)
    }

    /// The `nth` ready place, counted from 0. `None`: there are not that many, or it changed under way.
    #[must_use]
    pub(in crate::targets) fn select(&self, nth: usize) -> Option<usize> {
        let mut left = u32::try_from(nth).ok()?;
        let mut group = 0;
        for count in &self.counts {
            let count = count.load(Ordering::Relaxed);
            if left < count {
                break;
            }
            left -= count;
            group += 1;
        }
        let start = group * GROUP;
        for (at, word) in self.words.iter().enumerate().skip(start).take(GROUP) {
            let mut word = word.load(Ordering::Relaxed);
            let count = word.count_ones();
            if left < count {
                (0..left).for_each(|_| word &= word - 1);
                return Some(at * WORD + word.trailing_zeros() as usize);
            }
            left -= count;
        }
        None
    }

    /// The first ready place at or after `place`, going round. `None`: there is none, or it changed under way.
    #[must_use]
    pub(in crate::targets) fn next(&self, place: usize) -> Option<usize> {
        let place = if place < self.len { place } else { 0 };
        let (word, group) = (place / WORD, place / WORD / GROUP);
        let here = self.words.get(word)?.load(Ordering::Relaxed) & (u64::MAX << (place % WORD));
        if here != 0 {
            return Some(word * WORD + here.trailing_zeros() as usize);
        }
        let rest = self.first_of(word + 1, (group + 1) * GROUP);
        rest.or_else(|| {
            let others = (group + 1..self.counts.len()).chain(0..=group);
            others
                .filter(|&group| self.counts[group].load(Ordering::Relaxed) > 0)
                .find_map(|group| self.first_of(group * GROUP, (group + 1) * GROUP))
        })
    }

    /// The first ready place of the words `start..end`, as far as there are so many.
    fn first_of(&self, start: usize, end: usize) -> Option<usize> {
        (start..end.min(self.words.len())).find_map(|at| {
            let word = self.words[at].load(Ordering::Relaxed);
            (word != 0).then(|| at * WORD + word.trailing_zeros() as usize)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use proptest::prelude::*;

    use super::*;

    /// What is said of every place, read off a list.
    fn agrees(ready: &Ready, model: &[bool]) -> Result<(), TestCaseError> {
        let places: Vec<usize> = (0..model.len()).filter(|&place| model[place]).collect();
        prop_assert_eq!(ready.count(), places.len());
        prop_assert_eq!(ready.is_full(), places.len() == model.len());
        for nth in 0..places.len() + 2 {
            prop_assert_eq!(ready.select(nth), places.get(nth).copied());
        }
        for place in 0..model.len() + 70 {
            prop_assert_eq!(ready.contains(place), model.get(place) == Some(&true));
            // Past the end is the beginning.
            let after = if place < model.len() { places.partition_point(|&other| other < place) } else { 0 };
            prop_assert_eq!(ready.next(place), places.get(after).or(places.first()).copied());
        }
        Ok(())
    }

    #[test]
    fn places_around_the_ends_of_words_and_groups() {
        for len in [0, 1, 63, 64, 65, 1023, 1024, 1025, 2048, 10_000] {
            let ready = Ready::new(len);
            let mut model = vec![true; len];
            agrees(&ready, &model).expect("all are ready");
            for place in [0, 1, 62, 63, 64, 1022, 1023, 1024, 1025, 2047, 9_999, 10_000, usize::MAX] {
                ready.set(place, false);
                ready.set(place, false);
                if let Some(mark) = model.get_mut(place) {
                    *mark = false;
                }
            }
            agrees(&ready, &model).expect("some are not");
        }
    }

    #[test]
    fn one_of_ten_thousand_is_found_from_everywhere() {
        let ready = Ready::new(10_000);
        (0..10_000).for_each(|place| ready.set(place, false));
        assert_eq!((ready.next(5), ready.select(0), ready.count()), (None, None, 0));
        for only in [0, 5_000, 9_999] {
            ready.set(only, true);
            assert!((0..10_000).all(|place| ready.next(place) == Some(only)));
            assert_eq!((ready.select(0), ready.select(1)), (Some(only), None));
            ready.set(only, false);
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_list(
            len in 1_usize..3000,
            changes in prop::collection::vec((any::<prop::sample::Index>(), 1_usize..1200, any::<bool>()), 0..12),
        ) {
            let ready = Ready::new(len);
            let mut model = vec![true; len];
            for (index, length, is_ready) in changes {
                let start = index.index(len);
                for (place, mark) in model.iter_mut().enumerate().skip(start).take(length) {
                    ready.set(place, is_ready);
                    *mark = is_ready;
                }
            }
            agrees(&ready, &model)?;
        }
    }

    #[test]
    fn readers_beside_a_writer_stay_in_range_and_among_those_that_are_ready() {
        const LEN: usize = 2500;
        let ready = Ready::new(LEN);
        // The multiples of three are never ready, those that follow them always are; the rest comes and goes.
        (0..LEN).step_by(3).for_each(|place| ready.set(place, false));
        let done = AtomicBool::new(false);
        let read = |seed: usize| {
            let mut found = 0;
            let mut at = seed;
            loop {
                at = (at + 7919) % LEN;
                for place in [ready.next(at), ready.select(at % ready.count())].into_iter().flatten() {
                    assert!(place < LEN && place % 3 != 0, "{place}");
                    found += 1;
                }
                assert!((LEN / 3..=LEN - LEN / 3).contains(&ready.count()), "{}", ready.count());
                assert!(!ready.is_full());
                if done.load(Ordering::Relaxed) {
                    return found;
                }
            }
        };
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..3).map(|seed| scope.spawn(move || read(seed))).collect();
            for round in 0..200 {
                (2..LEN).step_by(3).for_each(|place| ready.set(place, round % 2 == 1));
            }
            done.store(true, Ordering::Relaxed);
            assert!(readers.into_iter().all(|reader| reader.join().expect("no panic") > 0));
        });
        let model: Vec<bool> = (0..LEN).map(|place| place % 3 != 0).collect();
        agrees(&ready, &model).expect("nothing changes any more");
    }
}
