//! What the store refuses while it answers: a full disk, or rights that are missing. Its watch and its leases go on then, so that nothing else tells of it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::store::shared::{Committed, StoreFault};
use crate::tick::Tick;

/// For so long it has to take everything before it counts as one that does: it may take some rows and refuse others.
const CALM: Duration = Duration::from_secs(10);

/// Why the store takes no changes, as far as its answers say.
///
/// Invariant: each reason is told once when it begins, and its end once: when something was taken after nothing was refused for [`CALM`].
#[derive(Debug, Default)]
pub(super) struct StoreRefusals(Mutex<Option<StoreRefusal>>);

#[derive(Debug)]
struct StoreRefusal {
    why: String,
    /// When it was refused last.
    at: Tick,
}

/// What is to be told.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RefusalNews {
    /// It takes nothing any more, for this reason.
    Refuses(String),
    /// It does again.
    Works,
}

impl StoreRefusals {
    /// Notes what became of a change that was to be put there.
    pub(super) fn note(&self, outcome: &Result<Committed, StoreFault>, now: Tick) -> Option<RefusalNews> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match outcome {
            Err(fault @ (StoreFault::Refused(_) | StoreFault::Full(_))) => {
                let why = fault.to_string();
                let is_new = known.as_ref().is_none_or(|known| known.why != why);
                *known = Some(StoreRefusal { why: why.clone(), at: now });
                is_new.then_some(RefusalNews::Refuses(why))
            }
            Ok(Committed::Done(_)) => {
                known.take_if(|known| now.since(known.at) >= CALM).map(|_| RefusalNews::Works)
            }
            Ok(Committed::Conflict) | Err(_) => None,
        }
    }

    /// Why it takes no changes; `None`: it does, as far as is known.
    pub(super) fn why(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|known| known.why.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_refuses_is_told_once_and_once_when_it_does_not_any_more() {
        let refusals = StoreRefusals::default();
        let at = |seconds: u64| Tick(seconds * 1_000_000_000 + 1);
        let (done, full) = (Ok(Committed::Done(7)), Err(StoreFault::Full("no space".to_owned())));
        let (other, unheard) = (
            Err(StoreFault::Refused("no rights".to_owned())),
            Err(StoreFault::Unreachable("nobody".to_owned())),
        );
        assert_eq!(refusals.note(&done, at(0)), None);
        assert_eq!(refusals.note(&unheard, at(1)), None);
        assert!(
            matches!(refusals.note(&full, at(2)), Some(RefusalNews::Refuses(why)) if why.contains("no space"))
        );
        // Each second, and some of it is taken.
        for second in 3..60 {
            assert_eq!(refusals.note(&full, at(second)), None);
            assert_eq!(refusals.note(&done, at(second)), None);
        }
        assert!(matches!(refusals.note(&other, at(60)), Some(RefusalNews::Refuses(_))), "another reason");
        assert!(refusals.why().is_some_and(|why| why.contains("no rights")));
        assert_eq!(refusals.note(&done, at(69)), None);
        assert_eq!(refusals.note(&Ok(Committed::Conflict), at(80)), None);
        assert_eq!(refusals.note(&done, at(81)), Some(RefusalNews::Works));
        assert_eq!((refusals.note(&done, at(82)), refusals.why()), (None, None));
    }
}
