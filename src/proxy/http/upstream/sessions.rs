//! One worker's connections of HTTP/2 to backends.
//!
//! A request gets a place on the first connection that has one. Where none has, the next connection is made, one at a time, and everybody who
//! waits has a place on it, as far as the backend takes so many.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::message::Cause;
use crate::targets::Backend;
use crate::tick::Tick;

use super::session::{BackendSession, StreamPlace};
use super::waiting::PlaceSeekers;

/// Those of one worker.
#[derive(Default)]
pub struct BackendSessions {
    by_backend: RefCell<Vec<Option<Rc<BackendLines>>>>,
}

/// Connections to one backend.
pub(super) struct BackendLines {
    /// Those that stand.
    pub(super) open: RefCell<Vec<Rc<BackendSession>>>,
    /// Those who wait for a place.
    pub(super) waiting: Rc<PlaceSeekers>,
    /// The next connection is being made.
    pub(super) is_dialing: Cell<bool>,
    /// How often that has failed, and with what the last time. Whoever waits when it fails has failed with it.
    pub(super) failures: Cell<(u64, Cause)>,
    /// Since when the last connection that was made stood as TCP, where TLS followed.
    pub(super) stood: Cell<Tick>,
}

impl BackendLines {
    /// A place on one of them.
    pub(super) fn place(&self) -> Option<StreamPlace> {
        self.open.borrow().iter().find_map(BackendSession::place)
    }

    /// True when another connection would have places. One that has not said yet how many streams its backend takes is waited for, and a backend that takes
    /// none on a connection on which there are none takes none on the next.
    pub(super) fn wants_another(&self) -> bool {
        let is_full = |session: &Rc<BackendSession>| session.engine().is_greeted() && !session.is_unused();
        !self.is_dialing.get()
            && self.open.borrow().iter().all(|session| session.is_leaving() || is_full(session))
    }

    /// No connection could be made.
    pub(super) fn failed(&self, cause: Cause) {
        self.failures.set((self.failures.get().0 + 1, cause));
    }
}

impl BackendSessions {
    /// Those to one backend.
    pub(super) fn of(&self, backend: &Backend) -> Rc<BackendLines> {
        let place = backend.id.0 as usize;
        let mut by_backend = self.by_backend.borrow_mut();
        if by_backend.len() <= place {
            by_backend.resize_with(place + 1, || None);
        }
        let lines = by_backend[place].get_or_insert_with(|| {
            Rc::new(BackendLines {
                open: RefCell::default(),
                waiting: Rc::default(),
                is_dialing: Cell::new(false),
                failures: Cell::new((0, Cause::Done)),
                stood: Cell::new(Tick::ZERO),
            })
        });
        Rc::clone(lines)
    }

    /// A place on a connection that stands.
    #[must_use]
    pub fn place(&self, backend: &Backend) -> Option<StreamPlace> {
        self.by_backend.borrow().get(backend.id.0 as usize)?.as_ref()?.place()
    }

    /// Closes what nobody uses and what belongs to a backend that has failed or gone. Every second.
    pub fn sweep(&self) {
        for place in &mut *self.by_backend.borrow_mut() {
            let Some(lines) = place else { continue };
            for session in &*lines.open.borrow() {
                if session.is_leaving() {
                    session.engine().leave();
                    session.stir();
                }
            }
            // Who has been called and has not looked yet holds it too.
            if lines.open.borrow().is_empty() && !lines.is_dialing.get() && Rc::strong_count(lines) == 1 {
                // A backend that is gone is not held on to.
                *place = None;
            }
        }
    }

    /// Asks all backends to expect nothing more: the worker ends.
    pub fn leave(&self) {
        for lines in self.by_backend.borrow().iter().flatten() {
            for session in &*lines.open.borrow() {
                session.engine().leave();
                session.stir();
            }
        }
    }
}
