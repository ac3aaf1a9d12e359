//! Who probes a backend where several processes could, and what the others have found out. This process tells what it finds out, and is told what it
//! need not find out.
//!
//! Invariants:
//!
//! 1. Without orders every backend is probed. Orders are replaced as a whole.
//! 2. What is told of a backend is what its probes amount to here and now: once this process rests, it says nothing more of it.
//! 3. Who rests takes what the others have settled, unless failing requests make it look for itself: then its own view holds until its own
//!    probe is good again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::futures::Notified;
use tokio::sync::{Notify, watch};

use crate::targets::Backend;
use crate::targets::{ProbeWord, TargetState};

/// What this process does about one backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProbeDuty {
    /// It probes.
    #[default]
    Own,
    /// Somebody else does, and has found it failing: this process finds out too.
    Confirm,
    /// Somebody else does.
    Rest,
}

/// What a process is to do about one backend, and to think of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeOrder {
    /// What it does.
    pub duty: ProbeDuty,
    /// What the others have settled; `None`: nothing yet.
    pub word: Option<ProbeWord>,
}

/// The orders for all backends, by identity. Of others there is none: they are probed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeOrders(pub HashMap<Arc<str>, ProbeOrder>);

/// Where orders come from, and where it is told what was found.
#[derive(Debug, Default)]
pub struct ProbeDesk {
    orders: watch::Sender<Arc<ProbeOrders>>,
    is_shared: AtomicBool,
    found: Mutex<HashMap<Arc<str>, ProbeWord>>,
    told: Notify,
}

impl ProbeDesk {
    /// From now on what is found is kept for who asks.
    pub fn share(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    /// These are the orders.
    pub fn order(&self, orders: ProbeOrders) {
        self.orders.send_if_modified(|before| {
            let differs = **before != orders;
            if differs {
                *before = Arc::new(orders);
            }
            differs
        });
    }

    /// How many backends it was ordered to probe.
    #[must_use]
    pub fn own(&self) -> usize {
        self.orders.borrow().0.values().filter(|order| order.duty == ProbeDuty::Own).count()
    }

    /// What this process has found out by itself, by identity.
    #[must_use]
    pub fn found(&self) -> HashMap<Arc<str>, ProbeWord> {
        self.words().clone()
    }

    /// A future that resolves when something else is found out than before, from this call on.
    pub fn finding(&self) -> Notified<'_> {
        self.told.notified()
    }

    fn words(&self) -> MutexGuard<'_, HashMap<Arc<str>, ProbeWord>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the probes of a backend amount to is told, if it is something else.
    pub(super) fn tell(&self, state: &TargetState, backend: &Backend) {
        if !self.is_shared.load(Ordering::Relaxed) {
            return;
        }
        let Some(word) = state.probed(backend) else { return };
        let before = self.words().insert(Arc::clone(&backend.identity), word.clone());
        if before.is_none_or(|before| before.is_good != word.is_good) {
            self.told.notify_waiters();
        }
    }

    /// Nothing is told of it any more.
    pub(super) fn forget(&self, identity: &str) {
        self.words().remove(identity);
    }

    pub(super) fn line(&self, identity: &Arc<str>) -> OrderLine {
        OrderLine { orders: self.orders.subscribe(), identity: Arc::clone(identity) }
    }
}

/// What is ordered about one backend.
pub(super) struct OrderLine {
    orders: watch::Receiver<Arc<ProbeOrders>>,
    identity: Arc<str>,
}

impl OrderLine {
    /// What it is now.
    pub(super) fn now(&mut self) -> ProbeOrder {
        self.orders.borrow_and_update().0.get(&self.identity).cloned().unwrap_or_default()
    }

    /// Waits until something else is to be done than by `order`; who rests by it, also until something else is to be thought.
    pub(super) async fn other(&mut self, order: &ProbeOrder) {
        let is_same = |next: &ProbeOrder| match order.duty {
            ProbeDuty::Rest => next == order,
            ProbeDuty::Own | ProbeDuty::Confirm => next.duty == order.duty,
        };
        while is_same(&self.next().await) {}
    }

    async fn next(&mut self) -> ProbeOrder {
        if self.orders.changed().await.is_err() {
            // The process ends.
            std::future::pending::<()>().await;
        }
        self.now()
    }
}
