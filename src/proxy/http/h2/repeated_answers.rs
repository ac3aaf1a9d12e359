//! What the answers of a connection have in common: many are the same from their first byte to their last, as long as the date is.
//!
//! Invariants. `head` and `framing` are what `block`, read as a whole while the decoder's table had been changed `changes` times, says for a request with
//! or without HEAD that does or does not end with it (`form`); reading it changes the table no more and has no fault. A table that has been changed as
//! often is the same table, and the limits of heads are the same for the whole connection: so whoever comes upon the same bytes in the same form
//! may take the same head. A block is kept when it comes for the second time, so what is never the same costs no copy.

use crate::message::{Framing, Head};

/// Bytes of a block that is kept.
const MOST: usize = 512;
/// Answers that are kept; each has one place.
const PLACES: usize = 8;

/// Answers that have come before.
#[derive(Default)]
pub struct RepeatedAnswers {
    /// None until the first one comes.
    places: Vec<AnswerPlace>,
}

#[derive(Default)]
struct AnswerPlace {
    /// That of the block that came last.
    tag: u64,
    /// Empty: nothing is kept.
    block: Vec<u8>,
    changes: u64,
    form: (bool, bool),
    head: Head,
    framing: Option<Framing>,
}

impl RepeatedAnswers {
    /// Makes `head`, which is empty, what this block says, if it is one that is kept. `form`: it ends its stream, and it is for HEAD.
    #[inline]
    pub fn find(&self, block: &[u8], changes: u64, form: (bool, bool), head: &mut Head) -> Option<Framing> {
        let place = self.places.get(tag(block) as usize % PLACES)?;
        if place.changes != changes || place.form != form || place.block != block {
            return None;
        }
        let framing = place.framing?;
        head.copy_from(&place.head);
        Some(framing)
    }

    /// Notes what a block has said that changed nothing in the table.
    #[inline(never)]
    pub fn note(&mut self, block: &[u8], changes: u64, form: (bool, bool), head: &Head, framing: Framing) {
        if block.len() > MOST {
            return;
        }
        if self.places.is_empty() {
            self.places.resize_with(PLACES, AnswerPlace::default);
        }
        let tag = tag(block);
        let place = &mut self.places[tag as usize % PLACES];
        if std::mem::replace(&mut place.tag, tag) != tag {
            return;
        }
        place.block.clear();
        place.block.extend_from_slice(block);
        place.head.copy_from(head);
        (place.changes, place.form, place.framing) = (changes, form, Some(framing));
    }
}

/// Tells most blocks apart. All of their bytes are compared where that matters.
#[inline]
fn tag(block: &[u8]) -> u64 {
    let word = |bytes: Option<&[u8; 8]>| bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes));
    // Numbers and dates differ in their last bytes, lengths at the beginning.
    let mixed = word(block.first_chunk()).rotate_left(7)
        ^ word(block.last_chunk())
        ^ word(block.get(block.len() / 2..).and_then(<[u8]>::first_chunk)).rotate_left(23)
        ^ block.len() as u64;
    mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(number: usize) -> Head {
        let mut head = Head::answer(200);
        head.push(b"x-number", number.to_string().as_bytes());
        head
    }

    #[test]
    fn what_comes_a_second_time_is_known_the_third_time_in_its_form_alone() {
        let mut answers = RepeatedAnswers::default();
        let (block, form) = (b"block number one".to_vec(), (false, false));
        let find = |answers: &RepeatedAnswers, block: &[u8], changes, form| {
            let mut found = Head::new();
            let framing = answers.find(block, changes, form, &mut found)?;
            Some((framing, found.named("x-number").map(<[u8]>::to_vec)))
        };
        for known in [false, false, true] {
            let expected = known.then(|| (Framing::Length(3), Some(b"1".to_vec())));
            assert_eq!(find(&answers, &block, 5, form), expected);
            answers.note(&block, 5, form, &head(1), Framing::Length(3));
        }
        for (changes, form) in [(6, form), (5, (true, false)), (5, (false, true))] {
            assert_eq!(find(&answers, &block, changes, form), None, "{changes} {form:?}");
        }
        assert_eq!(find(&answers, b"block number two", 5, form), None);
        // What was changed in the middle is another one, whatever it is told by.
        let mut other = vec![b'x'; 200];
        (0..2).for_each(|_| answers.note(&other, 0, form, &head(2), Framing::Chunked));
        assert!(find(&answers, &other, 0, form).is_some());
        other[30] = b'y';
        assert_eq!(find(&answers, &other, 0, form), None);
    }

    #[test]
    fn whatever_comes_it_is_never_another_answer() {
        let mut answers = RepeatedAnswers::default();
        let mut hits = 0;
        for round in 0..20 {
            for number in 0..200 {
                // Many share a place, and some are told by the same.
                let mut block = vec![b'.'; 100];
                block[10 + number % 30] = b'a' + (number / 30) as u8;
                let (form, changes) = ((number % 2 == 0, number % 3 == 0), (round / 5) as u64);
                // Nobody else's, whatever came before; and its own once it came twice.
                for _ in 0..3 {
                    let mut found = Head::new();
                    if let Some(framing) = answers.find(&block, changes, form, &mut found) {
                        hits += 1;
                        assert_eq!(framing, Framing::Length(number as u64));
                        assert_eq!(found.named("x-number"), Some(number.to_string().as_bytes()));
                    } else {
                        answers.note(&block, changes, form, &head(number), Framing::Length(number as u64));
                    }
                }
            }
        }
        assert!(hits >= 20 * 200, "{hits}");
        assert!(
            answers.places.len() == PLACES && answers.places.iter().all(|place| place.block.len() <= MOST)
        );
    }
}
