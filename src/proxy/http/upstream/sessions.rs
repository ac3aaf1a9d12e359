//! One worker's connections of HTTP/2 to backends.
//!
//! A request gets a place on the first connection that has one. Where none has, the next connection is made, one at a time, and everybody who
//! waits has a place on it, as far as the backend takes so many.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use crate::message::{BackendId, Cause};
use crate::proxy::pool::PassedOwner;
use crate::targets::Backend;
use crate::tick::Tick;

use super::session::{BackendSession, StreamPlace};
use super::waiting::PlaceSeekers;

/// Those of one worker.
#[derive(Default)]
pub struct BackendSessions {
    by_backend: RefCell<Vec<Option<Rc<BackendLines>>>>,
    /// Those that were told whose they are: of each client's connection, by backend. None of them is empty.
    passed: RefCell<HashMap<PassedOwner, LinesByBackend>>,
}

type LinesByBackend = Vec<(BackendId, Rc<BackendLines>)>;

/// Connections to one backend.
pub(super) struct BackendLines {
    /// Those that stand.
    pub(super) open: RefCell<Vec<Rc<BackendSession>>>,
    /// Those who wait for a place.
    pub(super) waiting: Rc<PlaceSeekers>,
    /// They were told of a client that is gone: none of them is kept.
    pub(super) is_ended: Rc<Cell<bool>>,
    /// The next connection is being made.
    pub(super) is_dialing: Cell<bool>,
    /// How often that has failed, and with what the last time. Whoever waits when it fails has failed with it.
    pub(super) failures: Cell<(u64, Cause)>,
    /// Since when the last connection that was made stood as TCP, where TLS followed.
    pub(super) stood: Cell<Tick>,
}

impl Default for BackendLines {
    fn default() -> BackendLines {
        BackendLines {
            open: RefCell::default(),
            waiting: Rc::default(),
            is_ended: Rc::default(),
            is_dialing: Cell::new(false),
            failures: Cell::new((0, Cause::Done)),
            stood: Cell::new(Tick::ZERO),
        }
    }
}

impl BackendLines {
    /// Lets go of connections that take no more.
    fn sweep(&self) {
        for session in &*self.open.borrow() {
            if session.is_leaving() {
                session.engine().leave();
                session.stir();
            }
        }
    }

    /// Asks the backend to expect nothing more on any of them.
    fn leave(&self) {
        for session in &*self.open.borrow() {
            session.engine().leave();
            session.stir();
        }
    }

    /// Nobody has to do with it any more. Who has been called and has not looked yet holds it too.
    fn is_over(self: &Rc<Self>) -> bool {
        self.open.borrow().is_empty() && !self.is_dialing.get() && Rc::strong_count(self) == 1
    }

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
    /// Those to one backend that were told of `owner`; `None`: of nobody.
    ///
    /// `is_live`: that client's connection still stands. Of one that has ended there are none that others could find.
    pub(super) fn of(
        &self,
        backend: &Backend,
        owner: Option<PassedOwner>,
        is_live: impl FnOnce(PassedOwner) -> bool,
    ) -> Rc<BackendLines> {
        if let Some(owner) = owner {
            if !is_live(owner) {
                return Rc::new(BackendLines {
                    is_ended: Rc::new(Cell::new(true)),
                    ..BackendLines::default()
                });
            }
            let mut passed = self.passed.borrow_mut();
            let all = passed.entry(owner).or_default();
            if let Some((_, lines)) = all.iter().find(|(id, _)| *id == backend.id) {
                return Rc::clone(lines);
            }
            let lines = Rc::default();
            all.push((backend.id, Rc::clone(&lines)));
            return lines;
        }
        let place = backend.id.0 as usize;
        let mut by_backend = self.by_backend.borrow_mut();
        if by_backend.len() <= place {
            by_backend.resize_with(place + 1, || None);
        }
        Rc::clone(by_backend[place].get_or_insert_default())
    }

    /// A place on a connection that stands and was told of `owner`; `None`: of nobody.
    #[must_use]
    pub fn place(&self, backend: &Backend, owner: Option<PassedOwner>) -> Option<StreamPlace> {
        if let Some(owner) = owner {
            let passed = self.passed.borrow();
            let (_, lines) = passed.get(&owner)?.iter().find(|(id, _)| *id == backend.id)?;
            return lines.place();
        }
        self.by_backend.borrow().get(backend.id.0 as usize)?.as_ref()?.place()
    }

    /// Closes what nobody uses and what belongs to a backend that has failed or gone. Every second.
    pub fn sweep(&self) {
        for place in &mut *self.by_backend.borrow_mut() {
            place.as_ref().inspect(|lines| lines.sweep());
            // A backend that is gone is not held on to.
            place.take_if(|lines| lines.is_over());
        }
        self.passed.borrow_mut().retain(|_, all| {
            all.retain(|(_, lines)| {
                lines.sweep();
                !lines.is_over()
            });
            !all.is_empty()
        });
    }

    /// Lets go of those that were told of `owner`, which has ended. What is under way on them goes on to its end, and so does a connection that
    /// is being made, if somebody still waits for it.
    pub fn release(&self, owner: PassedOwner) {
        let all = self.passed.borrow_mut().remove(&owner);
        for (_, lines) in all.into_iter().flatten() {
            lines.is_ended.set(true);
            lines.leave();
        }
    }

    /// Asks backends to close what was told of a client and serves nothing now: descriptors are short.
    pub fn leave_unused(&self) {
        for (_, lines) in self.passed.borrow().values().flatten() {
            let open = lines.open.borrow();
            open.iter().filter(|session| session.is_unused()).for_each(|session| {
                session.engine().leave();
                session.stir();
            });
        }
    }

    /// Asks all backends to expect nothing more: the worker ends.
    pub fn leave(&self) {
        self.by_backend.borrow().iter().flatten().for_each(|lines| lines.leave());
        self.passed.borrow().values().flatten().for_each(|(_, lines)| lines.leave());
    }
}
