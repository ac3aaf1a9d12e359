//! Room for a body that is coming.

use std::fmt::Debug;
use std::sync::Arc;

use crate::message::WhyNot;

use super::body::{self, StoredBody};
use super::held::{Held, Holdings};

/// Who has room: a shard of the store.
pub(super) trait Lender: Debug + Send + Sync {
    /// What it has given out.
    fn holdings(&self) -> &Arc<Holdings>;

    /// Room for so many bytes more; `None`: there is none.
    fn hold(&self, bytes: u64) -> Option<Held>;

    /// Whether a body is let in that weighs so much where `others` hold so much: see [`admission`](super::admission).
    fn lets_in(&self, weight: u64, others: u64, key: u64, is_wanted: bool) -> bool;
}

/// What a body that comes may take.
#[derive(Debug)]
pub struct BodyRoom {
    lender: Arc<dyn Lender>,
    held: Held,
    key: u64,
    /// Somebody else wants the same.
    is_wanted: bool,
}

impl BodyRoom {
    /// None yet. `key`: the hash of what it is for; `is_wanted`: whether it is known already that more than one want it.
    pub(super) fn new(lender: Arc<dyn Lender>, key: u64, is_wanted: bool) -> BodyRoom {
        BodyRoom { held: Held::new(lender.holdings(), 0), lender, key, is_wanted }
    }

    /// Makes it large enough for a body of so many bytes.
    ///
    /// # Errors
    /// Why that is not done.
    pub(super) fn reach(&mut self, length: u64) -> Result<(), WhyNot> {
        let BodyRoom { lender, held, key, is_wanted } = self;
        let weight = body::weight(length);
        let more = weight.saturating_sub(held.bytes());
        if more == 0 {
            return Ok(());
        }
        let others = lender.holdings().bytes().saturating_sub(held.bytes());
        if !lender.lets_in(weight, others, *key, *is_wanted) {
            return Err(WhyNot::WantedOnce);
        }
        held.join(lender.hold(more).ok_or(WhyNot::NoRoom)?);
        Ok(())
    }

    /// A whole body of these bytes, for which it was made.
    #[must_use]
    pub fn fill(self, bytes: &[u8]) -> StoredBody {
        StoredBody::whole(bytes, self.held)
    }

    /// Bytes of memory that it is for.
    pub(super) fn bytes(&self) -> u64 {
        self.held.bytes()
    }

    /// Makes it smaller.
    pub(super) fn shrink(&mut self, most: u64) {
        self.held.shrink(most);
    }

    /// Whose it is.
    pub(super) fn holdings(&self) -> &Holdings {
        self.lender.holdings()
    }

    /// What is held for the body, now that it is whole.
    pub(super) fn hand_over(&mut self) -> Held {
        std::mem::replace(&mut self.held, Held::new(self.lender.holdings(), 0))
    }
}
