//! What those who share one connection to a backend have in common: the task of the connection, and the requests on it.
//!
//! Invariants. A place that was given is counted in `given` until it is a stream or is dropped, so the streams and the places together never
//! pass what the backend takes. A stream is released exactly once, when its [`StreamPlace`] is dropped. Whoever waits for a place is in
//! `waiting`, and is called when a place is free again.

use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::net::now;
use crate::proxy::http::h2::engine::Engine;
use crate::proxy::http::h2::engine::to_backend::ToBackend;
use crate::proxy::http::h2::hpack::EncodedLines;
use crate::proxy::http::h2::stream_bytes::OnStream;
use crate::proxy::http::h2::writer_bell::WriterBell;
use crate::targets::Backend;
use crate::tick::Tick;

use super::waiting::PlaceSeekers;

/// A connection and its engine.
///
/// The engine is borrowed for the length of one call, and nobody is called from inside of one: wakers only put tasks into a queue.
pub struct BackendSession {
    /// Where it leads.
    pub backend: Arc<Backend>,
    /// The backend's from before it was made.
    pub generation: u32,
    engine: RefCell<Engine<ToBackend>>,
    /// Wakes who writes what streams append.
    pub bell: WriterBell,
    /// Places that are no streams yet.
    given: Cell<usize>,
    /// Who has to know what the backend takes.
    ungreeted: RefCell<Vec<Waker>>,
    /// It has served a request.
    is_used: Cell<bool>,
    /// Those who wait for a place on any connection to the backend.
    waiting: Rc<PlaceSeekers>,
}

impl BackendSession {
    /// A connection on which nothing was said.
    #[must_use]
    pub fn new(
        backend: Arc<Backend>,
        generation: u32,
        engine: Engine<ToBackend>,
        waiting: Rc<PlaceSeekers>,
    ) -> Rc<BackendSession> {
        Rc::new(BackendSession {
            backend,
            generation,
            engine: RefCell::new(engine),
            bell: WriterBell::default(),
            given: Cell::new(0),
            ungreeted: RefCell::default(),
            is_used: Cell::new(false),
            waiting,
        })
    }

    /// The engine, for one call.
    #[must_use]
    #[inline]
    pub fn engine(&self) -> RefMut<'_, Engine<ToBackend>> {
        self.engine.borrow_mut()
    }

    /// See [`WriterBell::stir`].
    #[inline]
    pub fn stir(&self) {
        self.bell.stir();
    }

    /// Ready when the backend has said what it takes, or the connection is over.
    pub fn poll_greeted(&self, cx: &Context<'_>) -> Poll<()> {
        let engine = self.engine();
        if engine.is_greeted() || engine.fault().is_some() {
            return Poll::Ready(());
        }
        let mut ungreeted = self.ungreeted.borrow_mut();
        if !ungreeted.iter().any(|waiting| waiting.will_wake(cx.waker())) {
            ungreeted.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// The backend has said what it takes, or won't any more.
    pub fn call_ungreeted(&self) {
        self.ungreeted.borrow_mut().drain(..).for_each(Waker::wake);
    }

    /// A place for one request; `None`: the backend takes no more on this connection.
    #[must_use]
    pub fn place(self: &Rc<Self>) -> Option<StreamPlace> {
        let given = self.given.get();
        if self.is_leaving() || self.engine().room(given) == 0 {
            return None;
        }
        self.given.set(given + 1);
        Some(StreamPlace { session: Rc::clone(self), id: 0, is_first: !self.is_used.replace(true) })
    }

    /// True when it takes no more requests: either side has said so, or its backend has failed, moved or gone since it was made.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.backend.generation() != self.generation || !self.engine().is_open()
    }

    /// True while nobody uses it or is about to.
    #[must_use]
    pub fn is_unused(&self) -> bool {
        self.given.get() == 0 && self.engine().tasks() == 0
    }

    /// How many more requests may have a place.
    fn room(&self) -> usize {
        self.engine().room(self.given.get())
    }

    /// True once somebody has had a place.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.is_used.get()
    }

    /// Calls as many of those who wait as there are places.
    pub fn call_waiting(&self) {
        if !self.waiting.is_empty() {
            self.waiting.call(self.room());
        }
    }

    /// The same when it is known how many there are: and one more, who sees to it that another connection is made if this one is not enough.
    pub fn call_first(&self) {
        self.waiting.call(self.room() + 1);
    }
}

/// The place of one request on a connection.
pub struct StreamPlace {
    session: Rc<BackendSession>,
    /// Its stream; 0: it is not opened.
    id: u32,
    is_first: bool,
}

impl StreamPlace {
    /// The connection.
    #[must_use]
    pub fn session(&self) -> &Rc<BackendSession> {
        &self.session
    }

    /// Its stream; 0: it is not opened.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// It is the first one on its connection.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.is_first
    }

    /// Opens its stream now, as [`Engine::ask`] does. False: the connection takes no more.
    pub fn open(
        &mut self,
        ends: bool,
        to_head: bool,
        now: Tick,
        encode: impl FnOnce(&mut Vec<u8>, &mut EncodedLines),
    ) -> bool {
        if self.id == 0
            && let Some(id) = self.session.engine().ask(ends, to_head, now, encode)
        {
            self.id = id;
            self.session.given.set(self.session.given.get() - 1);
            self.session.stir();
        }
        self.id != 0
    }
}

impl OnStream for StreamPlace {
    type Side = ToBackend;

    fn id(&self) -> u32 {
        self.id
    }

    fn engine(&self) -> RefMut<'_, Engine<ToBackend>> {
        self.session.engine()
    }

    fn stir(&self) {
        self.session.stir();
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        if self.id == 0 {
            self.session.given.set(self.session.given.get() - 1);
        } else {
            self.session.engine().release(self.id, now);
        }
        self.session.stir();
        self.session.call_waiting();
    }
}
