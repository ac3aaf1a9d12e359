//! What the tasks of one connection share: the task of the connection itself, and one for each stream.

use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;
use std::task::{Context, Waker};

use super::engine::Engine;
use crate::proxy::http::client::Client;

/// A connection and its engine.
///
/// The engine is borrowed for the length of one call, and nobody is called from inside of one: wakers only put tasks into a queue.
pub struct Http2Session {
    /// The connection.
    pub client: Rc<Client>,
    engine: RefCell<Engine>,
    /// Who writes what streams append.
    writer: RefCell<Option<Waker>>,
    /// It was woken and has not looked yet.
    is_stirred: Cell<bool>,
}

impl Http2Session {
    /// A connection of which nothing was read.
    #[must_use]
    pub fn new(client: Rc<Client>, engine: Engine) -> Rc<Http2Session> {
        let (writer, is_stirred) = (RefCell::default(), Cell::new(false));
        Rc::new(Http2Session { client, engine: RefCell::new(engine), writer, is_stirred })
    }

    /// The engine, for one call.
    #[must_use]
    #[inline]
    pub fn engine(&self) -> RefMut<'_, Engine> {
        self.engine.borrow_mut()
    }

    /// The connection's task looks, and is to be woken by [`Http2Session::stir`] from now on.
    pub fn look(&self, cx: &Context<'_>) {
        self.is_stirred.set(false);
        let mut writer = self.writer.borrow_mut();
        if !writer.as_ref().is_some_and(|writer| writer.will_wake(cx.waker())) {
            *writer = Some(cx.waker().clone());
        }
    }

    /// Something was appended to the output: it is written when the connection's task has its turn. Costs one wake-up for all that
    /// streams append until then.
    #[inline]
    pub fn stir(&self) {
        if !self.is_stirred.replace(true)
            && let Some(writer) = &*self.writer.borrow()
        {
            writer.wake_by_ref();
        }
    }
}
