//! Names that one of several nodes asks for, and tells the others of.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::watch;

use super::{Discovery, NameEntry};
use crate::config::model::discovery::DnsQuestion;
use crate::discover::shared::{NameFinding, NameOrder};

impl Discovery {
    /// Has other nodes ask for the names in force that these orders say, and takes over what all know of them. A name without an order is this node's own. Called
    /// inside of the control runtime.
    pub fn order(&self, orders: &HashMap<DnsQuestion, NameOrder>) {
        let now = (self.inner.clock)();
        let mut names = self.inner.names();
        let mut differs = false;
        for (question, entry) in names.all.iter_mut().filter(|(_, entry)| entry.is_followed()) {
            let order = orders.get(question);
            match order.and_then(|order| order.by.as_ref()) {
                Some(by) => {
                    entry.task = None;
                    entry.by = Some(Arc::clone(by));
                }
                None if entry.by.take().is_some() => self.inner.begin(entry, question),
                None => {}
            }
            let Some(told) = order.and_then(|order| order.told.as_ref()) else { continue };
            // What others have known is better than nothing, and no better than an answer.
            if entry.by.is_some() || entry.known.is_unknown() {
                differs |= entry.known.adopt(question, told, now);
            }
        }
        if differs {
            self.inner.changes.send_modify(|number| *number += 1);
        }
    }

    /// What the names in force have come to here.
    #[must_use]
    pub fn findings(&self) -> Vec<NameFinding> {
        let names = self.inner.names();
        let followed = names.all.iter().filter(|(_, entry)| entry.is_followed());
        followed.map(|(question, entry)| entry.known.finding(question)).collect()
    }

    /// A number that grows with everything that [`Self::findings`] would tell.
    #[must_use]
    pub fn found(&self) -> watch::Receiver<u64> {
        self.inner.found.subscribe()
    }
}

impl NameEntry {
    /// Whether a config in force has it.
    pub(super) fn is_followed(&self) -> bool {
        self.task.is_some() || self.by.is_some()
    }
}
