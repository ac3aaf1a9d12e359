//! What was purged, as numbers: an object that was asked for before a purge that is about it is not used after it.
//!
//! A purge costs the same however much it is about: it gets the next number, and a note of what it is about. An object is compared with
//! the notes once after each purge, when somebody wants it. Invariants:
//!
//! 1. Numbers only grow, and a note is there before its number is told: whoever sees a number sees the note.
//! 2. What is forgotten for want of room is replaced by a note about more: a purge may become one of more than was asked, never of less.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

/// Tags that are noted; with more, a note about all objects with tags takes their place.
const MOST_TAGS: usize = 10_000;
/// Prefixes that are noted; with more, a note about what two of them have in common takes their place.
const MOST_PREFIXES: usize = 256;

/// What becomes of what is purged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurgeKind {
    /// It is gone.
    Hard,
    /// It is stale.
    Soft,
}

/// What a purge is about, beside a single URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeOf {
    /// All objects.
    All,
    /// Those with this tag.
    Tag(Box<[u8]>),
    /// Those whose URL, as [`url_key`](crate::cache::url_key) writes it, begins so.
    Prefix(Box<[u8]>),
}

/// The numbers of the latest purges, one for each kind; 0: none.
#[derive(Clone, Copy, Debug, Default)]
struct Latest {
    hard: u64,
    soft: u64,
}

impl Latest {
    fn note(&mut self, kind: PurgeKind, number: u64) {
        match kind {
            PurgeKind::Hard => self.hard = number,
            PurgeKind::Soft => self.soft = number,
        }
    }

    fn and(self, other: Latest) -> Latest {
        Latest { hard: self.hard.max(other.hard), soft: self.soft.max(other.soft) }
    }
}

/// What was purged so far.
#[derive(Debug, Default)]
pub(super) struct Purges {
    latest: AtomicU64,
    notes: RwLock<Notes>,
}

#[derive(Debug, Default)]
struct Notes {
    all: Latest,
    tagged: Latest,
    tags: HashMap<Box<[u8]>, Latest>,
    prefixes: Vec<(Box<[u8]>, Latest)>,
}

impl Purges {
    /// The number of the latest one.
    #[inline]
    pub(super) fn latest(&self) -> u64 {
        self.latest.load(Ordering::Acquire)
    }

    /// Notes one.
    pub(super) fn note(&self, of: PurgeOf, kind: PurgeKind) {
        let mut notes = self.notes.write().unwrap_or_else(PoisonError::into_inner);
        let number = self.latest.load(Ordering::Relaxed) + 1;
        notes.note(of, kind, number);
        self.latest.store(number, Ordering::Release);
    }

    /// What has become of an object that was asked for when there had been `purges`.
    pub(super) fn verdict(&self, purges: u64, url: &[u8], tags: &[Box<[u8]>]) -> Option<PurgeKind> {
        let notes = self.notes.read().unwrap_or_else(PoisonError::into_inner);
        let mut latest = notes.all;
        if !tags.is_empty() {
            latest = latest.and(notes.tagged);
            for tag in tags {
                latest = latest.and(notes.tags.get(tag).copied().unwrap_or_default());
            }
        }
        for (prefix, of) in &notes.prefixes {
            if url.starts_with(prefix) {
                latest = latest.and(*of);
            }
        }
        match latest {
            Latest { hard, .. } if hard > purges => Some(PurgeKind::Hard),
            Latest { soft, .. } if soft > purges => Some(PurgeKind::Soft),
            _ => None,
        }
    }
}

impl Notes {
    fn note(&mut self, of: PurgeOf, kind: PurgeKind, number: u64) {
        match of {
            PurgeOf::All => self.all.note(kind, number),
            PurgeOf::Tag(tag) => {
                if self.tags.len() >= MOST_TAGS && !self.tags.contains_key(&tag) {
                    let forgotten = self.tags.drain().fold(Latest::default(), |all, (_, one)| all.and(one));
                    self.tagged = self.tagged.and(forgotten);
                }
                self.tags.entry(tag).or_default().note(kind, number);
            }
            PurgeOf::Prefix(prefix) => {
                let mut latest = Latest::default();
                latest.note(kind, number);
                if kind == PurgeKind::Hard {
                    // This one says more than those of what lies below.
                    self.prefixes.retain(|(other, _)| !other.starts_with(&prefix));
                }
                match self.prefixes.iter_mut().find(|(other, _)| *other == prefix) {
                    Some((_, before)) => *before = before.and(latest),
                    None => self.prefixes.push((prefix, latest)),
                }
                if self.prefixes.len() > MOST_PREFIXES {
                    let (one, of_one) = self.prefixes.remove(0);
                    let (other, of_other) = self.prefixes.remove(0);
                    let same = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
                    self.prefixes.insert(0, (one[..same].into(), of_one.and(of_other)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of() -> impl Strategy<Value = PurgeOf> {
        prop_oneof![
            1 => Just(PurgeOf::All),
            4 => (0u8..6).prop_map(|tag| PurgeOf::Tag([b't', tag].into())),
            4 => "[ab]{0,4}".prop_map(|prefix| PurgeOf::Prefix(prefix.into_bytes().into())),
        ]
    }

    proptest! {
        /// Against a list of all purges that there were.
        #[test]
        fn an_object_is_purged_by_what_came_after_its_question(
            purges in prop::collection::vec((of(), any::<bool>()), 0..30),
            url in "[ab]{0,5}", tag in 0u8..6, has_tag: bool, asked in 0u64..30,
        ) {
            let all = Purges::default();
            let tags: Vec<Box<[u8]>> = if has_tag { vec![[b't', tag].into()] } else { Vec::new() };
            let (mut hard, mut soft) = (false, false);
            for ((of, is_soft), number) in purges.into_iter().zip(1u64..) {
                let is_it = match &of {
                    PurgeOf::All => true,
                    PurgeOf::Tag(tag) => tags.contains(tag),
                    PurgeOf::Prefix(prefix) => url.as_bytes().starts_with(prefix),
                };
                if is_it && number > asked {
                    if is_soft { soft = true } else { hard = true }
                }
                all.note(of, if is_soft { PurgeKind::Soft } else { PurgeKind::Hard });
            }
            let expected = if hard { Some(PurgeKind::Hard) } else { soft.then_some(PurgeKind::Soft) };
            prop_assert_eq!(all.verdict(asked, url.as_bytes(), &tags), expected);
        }
    }

    #[test]
    fn notes_are_bounded_and_forget_no_purge() {
        let purges = Purges::default();
        for number in 0..MOST_TAGS + 5 {
            purges.note(PurgeOf::Tag(number.to_string().into_bytes().into()), PurgeKind::Hard);
        }
        for number in 0..MOST_PREFIXES + 5 {
            purges.note(PurgeOf::Prefix(format!("sa\0/{number}/").into_bytes().into()), PurgeKind::Hard);
        }
        let notes = purges.notes.read().expect("whole");
        assert!(notes.tags.len() <= MOST_TAGS && notes.prefixes.len() <= MOST_PREFIXES);
        drop(notes);
        let tag = |number: usize| vec![number.to_string().into_bytes().into_boxed_slice()];
        assert_eq!(purges.verdict(0, b"x", &tag(3)), Some(PurgeKind::Hard));
        assert_eq!(purges.verdict(0, b"sa\0/0/x", &[]), Some(PurgeKind::Hard));
        assert_eq!(purges.verdict(0, b"sb\0/", &[]), None);
    }
}
