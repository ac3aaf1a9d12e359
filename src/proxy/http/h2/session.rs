//! What the tasks of one connection share: the task of the connection itself, and one for each stream.

use std::cell::{RefCell, RefMut};
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::engine::Engine;
use super::engine::to_client::ToClient;
use super::writer_bell::WriterBell;
use crate::proxy::http::client::Client;
use crate::proxy::request_queue::LastInLine;

/// Bytes that are worth a write of their own.
const MUCH: usize = 64 * 1024;

/// A connection and its engine.
///
/// The engine is borrowed for the length of one call, and nobody is called from inside of one: wakers only put tasks into a queue.
pub struct Http2Session {
    /// The connection.
    pub client: Rc<Client>,
    /// Its last stream that waits to be begun.
    pub last_in_line: LastInLine,
    engine: RefCell<Engine<ToClient>>,
    /// Wakes who writes what streams append.
    pub bell: WriterBell,
}

impl Http2Session {
    /// A connection of which nothing was read.
    #[must_use]
    pub fn new(client: Rc<Client>, engine: Engine<ToClient>) -> Rc<Http2Session> {
        Rc::new(Http2Session {
            client,
            last_in_line: LastInLine::default(),
            engine: RefCell::new(engine),
            bell: WriterBell::default(),
        })
    }

    /// The engine, for one call.
    #[must_use]
    #[inline]
    pub fn engine(&self) -> RefMut<'_, Engine<ToClient>> {
        self.engine.borrow_mut()
    }

    /// Writes what the engine has to say, as far as it goes.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn write(&self, cx: &mut Context<'_>) -> io::Result<()> {
        let (client, mut engine) = (&self.client, self.engine());
        while !engine.output().is_empty() {
            match client.stream().poll_write(cx, engine.output()) {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(count)) => {
                    engine.written(count);
                    client.writing.clear();
                }
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => break,
            }
        }
        Ok(())
    }

    /// Writes at once if that is much: what lies until all streams have had their turn has left the caches by then. Whoever calls it has also called
    /// [`Http2Session::stir`]: the connection's task waits for the socket, and sees its errors.
    pub fn write_much(&self) {
        if self.engine().output().len() >= MUCH {
            let _ = self.write(&mut Context::from_waker(Waker::noop()));
        }
    }

    /// See [`WriterBell::stir`].
    #[inline]
    pub fn stir(&self) {
        self.bell.stir();
    }
}
