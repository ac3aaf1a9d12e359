//! What is known about a request when a backend is chosen for it.

use std::sync::Arc;

use crate::targets::{Backend, Chance, Tried};
use crate::tick::Tick;

/// What a pick goes by.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// Where the request has been: these are not picked.
    pub tried: &'a Tried,
    /// A hash of what the target's `hash_key` names; `None`: chance decides.
    pub key: Option<u64>,
    /// The backend that the client's cookie names; it comes before any algorithm.
    pub pin: Option<&'a Arc<Backend>>,
    /// Chance.
    pub chance: &'a Chance,
    /// The moment.
    pub now: Tick,
}

impl<'a> Ask<'a> {
    /// A request of which nothing is known but where it has been.
    #[must_use]
    pub fn new(tried: &'a Tried, chance: &'a Chance, now: Tick) -> Ask<'a> {
        Ask { tried, key: None, pin: None, chance, now }
    }

    /// The backend that it waits for alone when that is full. One that can't be used is not waited for (`panics`: for what
    /// outliers do is set aside), and who has been somewhere does not insist.
    pub(in crate::targets) fn waits_for(&self, panics: bool) -> Option<&'a Arc<Backend>> {
        self.pin.filter(|backend| self.tried.is_empty() && backend.serves_pins(panics))
    }
}
