//! Purges that are remembered for another process, which has what was stored before them.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::purges::{PurgeKind, PurgeOf};

/// So many are remembered; with more, one of everything takes their place.
const MOST: usize = 4_096;

/// A purge, as it is told.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToldPurge {
    of: ToldPurgeOf,
    is_soft: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
enum ToldPurgeOf {
    All,
    Url(Box<[u8]>),
    Prefix(Box<[u8]>),
    Tag(Box<[u8]>),
}

/// What a purge is about, be it a single URL or more.
pub(super) enum PurgeOfAny {
    /// This URL.
    Url(Box<[u8]>),
    /// More than one.
    More(PurgeOf),
}

impl ToldPurge {
    fn new(of: PurgeOfAny, kind: PurgeKind) -> ToldPurge {
        let of = match of {
            PurgeOfAny::Url(url) => ToldPurgeOf::Url(url),
            PurgeOfAny::More(PurgeOf::All) => ToldPurgeOf::All,
            PurgeOfAny::More(PurgeOf::Tag(tag)) => ToldPurgeOf::Tag(tag),
            PurgeOfAny::More(PurgeOf::Prefix(prefix)) => ToldPurgeOf::Prefix(prefix),
        };
        ToldPurge { of, is_soft: kind == PurgeKind::Soft }
    }

    pub(super) fn into_parts(self) -> (PurgeOfAny, PurgeKind) {
        let of = match self.of {
            ToldPurgeOf::Url(url) => PurgeOfAny::Url(url),
            ToldPurgeOf::All => PurgeOfAny::More(PurgeOf::All),
            ToldPurgeOf::Tag(tag) => PurgeOfAny::More(PurgeOf::Tag(tag)),
            ToldPurgeOf::Prefix(prefix) => PurgeOfAny::More(PurgeOf::Prefix(prefix)),
        };
        (of, if self.is_soft { PurgeKind::Soft } else { PurgeKind::Hard })
    }
}

/// Those that were seen, as long as somebody wants to know. Where nobody does a purge pays for one look.
#[derive(Debug, Default)]
pub(super) struct WatchedPurges {
    is_on: AtomicBool,
    seen: Mutex<Option<HashSet<ToldPurge>>>,
}

impl WatchedPurges {
    fn seen(&self) -> MutexGuard<'_, Option<HashSet<ToldPurge>>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(&self) {
        *self.seen() = Some(HashSet::new());
        self.is_on.store(true, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    pub(super) fn end(&self) {
        self.is_on.store(false, Ordering::Release);
        *self.seen() = None;
    }

    /// Those since the last time, in no order: none takes back another one.
    pub(super) fn take(&self) -> Vec<ToldPurge> {
        self.seen().as_mut().map(std::mem::take).unwrap_or_default().into_iter().collect()
    }

    /// Remembers one that has been done, if somebody wants to know: whoever has begun before finds it done, or finds it here.
    #[inline]
    pub(super) fn note(&self, kind: PurgeKind, of: impl FnOnce() -> PurgeOfAny) {
        // With the one where watching begins: either this sees that it has, or what was done is seen there.
        fence(Ordering::SeqCst);
        if self.is_on.load(Ordering::Acquire) {
            self.note_now(ToldPurge::new(of(), kind));
        }
    }

    #[cold]
    #[inline(never)]
    fn note_now(&self, told: ToldPurge) {
        if let Some(seen) = self.seen().as_mut() {
            if seen.len() >= MOST {
                *seen = HashSet::from([ToldPurge { of: ToldPurgeOf::All, is_soft: false }]);
            }
            seen.insert(told);
        }
    }
}
