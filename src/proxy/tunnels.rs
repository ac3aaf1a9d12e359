//! The tunnels of one worker, and when each of those has to end whose backend or listener leaves.
//!
//! A tunnel has a deadline that nobody sets until then; so it costs nothing while it relays. When somebody leaves, the
//! worker gives each of their tunnels its moment, spread evenly over the window, and wakes nobody: the deadline does. The invariants
//! stand with [`Departure`].

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use slab::Slab;

use crate::message::{BackendId, Cause, ListenerId};
use crate::net::relay::RelayEnd;
use crate::net::{Deadline, Ticker, now};
use crate::targets::{Backend, Chance, Departure};
use crate::tick::Tick;

/// What passes through a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunnelKind {
    /// Nobody knows.
    Bytes,
    /// Frames, between which it can be told to both sides that it ends.
    WebSocket,
}

/// How a tunnel ended.
#[derive(Debug)]
pub enum TunnelEnd {
    /// By itself, or by silence.
    Relayed(RelayEnd),
    /// It was told to end.
    Left {
        /// Why.
        cause: Cause,
        /// The client knows that this was the end.
        client: bool,
        /// And the backend.
        backend: bool,
    },
}

/// A tunnel's time is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaving {
    /// By then it has to be over.
    pub end: Tick,
    /// Why.
    pub cause: Cause,
}

/// What one reason to end comes to.
#[derive(Clone, Copy, Debug)]
struct Farewell {
    moment: Tick,
    leaving: Leaving,
}

/// The tunnels of one worker.
pub struct Tunnels {
    ticker: Rc<Ticker>,
    chance: Chance,
    listed: RefCell<Slab<Listed>>,
    /// Listeners that are gone, while they have connections.
    closing: RefCell<HashMap<ListenerId, Departure>>,
    /// That of the worker.
    ending: Cell<Option<Departure>>,
}

struct Listed {
    backend: BackendId,
    listener: ListenerId,
    kind: TunnelKind,
    end: Rc<End>,
}

/// When a tunnel has to end, for either reason.
struct End {
    due: Deadline,
    /// Its backend's.
    backend: Cell<Option<Farewell>>,
    /// That of where it came in.
    front: Cell<Option<Farewell>>,
}

impl End {
    /// The reason that comes first.
    fn first(&self) -> Option<Farewell> {
        let reasons = [self.backend.get(), self.front.get()];
        reasons.into_iter().flatten().min_by_key(|farewell| farewell.moment)
    }

    fn set(&self) {
        self.due.set_at(self.first().map_or(Tick::NEVER, |farewell| farewell.moment));
    }
}

/// A tunnel that is listed; it is not any more when this is dropped.
pub struct Tunnel<'a> {
    tunnels: &'a Tunnels,
    key: usize,
    end: Rc<End>,
    /// What passes through it.
    pub kind: TunnelKind,
}

impl Tunnel<'_> {
    /// Ready when it has to end.
    pub fn poll_leave(&self, cx: &mut Context<'_>) -> Poll<Leaving> {
        loop {
            std::task::ready!(self.end.due.poll(cx));
            if let Some(farewell) = self.end.first() {
                return Poll::Ready(farewell.leaving);
            }
            // Nobody leaves after all.
            self.end.set();
        }
    }
}

impl Drop for Tunnel<'_> {
    fn drop(&mut self) {
        self.tunnels.listed.borrow_mut().try_remove(self.key);
    }
}

impl Tunnels {
    /// None, of a worker with this clock.
    #[must_use]
    pub fn new(ticker: &Rc<Ticker>) -> Tunnels {
        Tunnels {
            ticker: Rc::clone(ticker),
            chance: Chance::new(),
            listed: RefCell::default(),
            closing: RefCell::default(),
            ending: Cell::new(None),
        }
    }

    /// Lists a tunnel to `backend` that came in on `listener`.
    #[must_use]
    pub fn begin(&self, backend: &Backend, listener: ListenerId, kind: TunnelKind) -> Tunnel<'_> {
        let end =
            Rc::new(End { due: self.ticker.deadline(), backend: Cell::new(None), front: Cell::new(None) });
        let listed = Listed { backend: backend.id, listener, kind, end: Rc::clone(&end) };
        let key = self.listed.borrow_mut().insert(listed);
        // Listed first: see the invariants of a departure.
        let late = |departure: Departure, cause| {
            let moment = departure.late(now(), self.phase());
            Farewell { moment, leaving: Leaving { end: departure.end(), cause } }
        };
        let departure = backend.departure();
        end.backend.set(departure.map(|departure| late(departure, Cause::Drained)));
        let closing = self.closing.borrow().get(&listener).copied();
        let ending = self.ending.get().filter(|_| kind == TunnelKind::WebSocket);
        let fronts = [closing.map(|it| late(it, Cause::Drained)), ending.map(|it| late(it, Cause::Shutdown))];
        end.front.set(fronts.into_iter().flatten().min_by_key(|farewell| farewell.moment));
        if end.first().is_some() {
            end.set();
        }
        Tunnel { tunnels: self, key, end, kind }
    }

    /// Looks at whether these backends leave, and lets the tunnels to them end in time, or go on after all. Called whenever the
    /// word of one has changed.
    pub fn look(&self, backends: &[Arc<Backend>]) {
        if backends.is_empty() {
            return;
        }
        let words: HashMap<BackendId, Option<Departure>> =
            backends.iter().map(|backend| (backend.id, backend.departure())).collect();
        let listed = self.listed.borrow();
        // Those that leave together are spread together.
        let mut leaving: HashMap<Departure, Vec<&Listed>> = HashMap::new();
        for (_, one) in listed.iter() {
            match words.get(&one.backend) {
                None => {}
                Some(Some(departure)) => leaving.entry(*departure).or_default().push(one),
                Some(None) => {
                    one.end.backend.set(None);
                    one.end.set();
                }
            }
        }
        let now = now();
        for (departure, those) in leaving {
            // Who looks once more must not end all whose moments were before.
            self.spread(departure.rest(now), &those, Cause::Drained, |end| &end.backend);
        }
    }

    /// Lets the tunnels that came in on `listener` end, which is gone.
    pub fn close(&self, listener: ListenerId, departure: Departure) {
        self.closing.borrow_mut().insert(listener, departure);
        let listed = self.listed.borrow();
        let those: Vec<_> =
            listed.iter().filter(|(_, one)| one.listener == listener).map(|(_, one)| one).collect();
        self.spread(departure, &those, Cause::Drained, |end| &end.front);
    }

    /// Nothing of `listener` is left.
    pub fn forget(&self, listener: ListenerId) {
        self.closing.borrow_mut().remove(&listener);
    }

    /// Lets all tunnels end that can be told so: whatever is left afterwards is cut with the worker.
    pub fn end_all(&self, departure: Departure) {
        self.ending.set(Some(departure));
        let listed = self.listed.borrow();
        let is_told = |one: &&Listed| one.kind == TunnelKind::WebSocket && one.end.front.get().is_none();
        let those: Vec<_> = listed.iter().map(|(_, one)| one).filter(is_told).collect();
        self.spread(departure, &those, Cause::Shutdown, |end| &end.front);
    }

    fn spread(
        &self,
        departure: Departure,
        those: &[&Listed],
        cause: Cause,
        of: impl Fn(&End) -> &Cell<Option<Farewell>>,
    ) {
        let phase = self.phase();
        let leaving = Leaving { end: departure.end(), cause };
        for (number, one) in those.iter().enumerate() {
            let moment = departure.moment(number, those.len(), phase);
            of(&one.end).set(Some(Farewell { moment, leaving }));
            one.end.set();
        }
    }

    fn phase(&self) -> u32 {
        self.chance.bits() as u32
    }
}

#[cfg(test)]
mod tests;
