//! A stream as a stream of bytes: what a tunnel takes it for (RFC 8441).

use std::cell::RefMut;
use std::io;
use std::task::{Context, Poll, ready};

use super::engine::{Engine, Role};
use crate::net::Carried;

/// Who uses a stream.
pub trait OnStream {
    /// Which end of the connection we are.
    type Side: Role;

    /// Its number.
    fn id(&self) -> u32;

    /// The connection's state machine. Nothing that may come back here is called while it is borrowed.
    fn engine(&self) -> RefMut<'_, Engine<Self::Side>>;

    /// Something is to be written.
    fn stir(&self);
}

/// The bytes on somebody's stream, on which no body is expected any more. It ends with its owner: where either side has not said that it
/// was done, with a reset.
pub struct StreamBytes<T> {
    on: T,
    is_shut: bool,
}

impl<T: OnStream> StreamBytes<T> {
    /// Those on this one.
    pub fn new(on: T) -> StreamBytes<T> {
        StreamBytes { on, is_shut: false }
    }
}

fn cut<T>() -> io::Result<T> {
    Err(io::ErrorKind::ConnectionReset.into())
}

impl<T: OnStream> Carried for StreamBytes<T> {
    fn poll_read(&mut self, cx: &mut Context<'_>, space: &mut [u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_readable(cx));
        let read = self.on.engine().read_bytes(self.on.id(), space);
        // A window may have been opened.
        self.on.stir();
        Poll::Ready(read.or_else(|_| cut()))
    }

    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.on.engine().poll_readable(self.on.id(), cx)
    }

    fn is_readable(&self) -> bool {
        self.on.engine().is_readable(self.on.id())
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut engine = self.on.engine();
        if engine.is_finished_stream(self.on.id()) && !engine.is_cut(self.on.id()) {
            // The other side wants no more of it, and may still have something to say: it has ended, and has reset what was to come.
            return Poll::Ready(Ok(bytes.len()));
        }
        let Ok(room) = ready!(engine.poll_room(self.on.id(), cx)) else { return Poll::Ready(cut()) };
        let count = room.min(bytes.len());
        engine.send_data(self.on.id(), &bytes[..count], false);
        drop(engine);
        self.on.stir();
        Poll::Ready(Ok(count))
    }

    fn shutdown(&mut self) -> io::Result<()> {
        if !std::mem::replace(&mut self.is_shut, true) && !self.on.engine().is_finished_stream(self.on.id()) {
            self.on.engine().send_data(self.on.id(), &[], true);
            self.on.stir();
        }
        Ok(())
    }

    /// Its owner resets it.
    fn reset_on_close(&self) {}

    fn is_cut(&self) -> bool {
        self.on.engine().is_cut(self.on.id())
    }
}
