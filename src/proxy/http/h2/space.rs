//! What the HTTP/2 connections of one worker share: memory that goes round, and the bound on how much of it clients may be promised.

use std::cell::{Cell, RefCell};

use crate::message::Head;

use super::debts::Debts;
use super::draft::DraftSpace;
use super::hpack::EncodedLines;

/// Heads kept for the next request.
const HEADS: usize = 1024;
/// Buffers of output kept for the next turn of some connection.
const OUTPUTS: usize = 32;
/// Bytes that a head or a buffer may keep.
const MOST_HEAD: usize = 8 * 1024;
const MOST_OUTPUT: usize = 128 * 1024;

/// The shared things of one worker.
#[derive(Default)]
pub struct Http2Space {
    heads: RefCell<Vec<Head>>,
    outputs: RefCell<Vec<Vec<u8>>>,
    /// Lines that were encoded lately.
    pub encoded: RefCell<EncodedLines>,
    /// Memory for heads that are being read.
    pub draft: RefCell<DraftSpace>,
    /// What clients owe that come again.
    pub debts: RefCell<Debts>,
    /// Bytes that windows have grown by, of all connections.
    granted: Cell<u64>,
    /// Bytes that wait for backends.
    held: Cell<u64>,
    /// Bytes that wait for clients.
    queued: Cell<u64>,
    /// Connections.
    connections: Cell<u64>,
    /// Bytes that each of the first two may come to, and twice what the third may (`http2.memory`).
    most: Cell<u64>,
}

/// Bytes that a connection may queue for its client where there is no more memory for that.
const LEAST_OUT: usize = 4 * 1024;

impl Http2Space {
    /// An empty head.
    #[must_use]
    pub fn take_head(&self) -> Head {
        self.heads.borrow_mut().pop().unwrap_or_default()
    }

    /// A head that nobody needs any more.
    pub fn return_head(&self, head: Head) {
        let mut heads = self.heads.borrow_mut();
        if heads.len() < HEADS && head.capacity() <= MOST_HEAD {
            heads.push(head);
        }
    }

    /// An empty buffer for output.
    #[must_use]
    pub fn take_output(&self) -> Vec<u8> {
        self.outputs.borrow_mut().pop().unwrap_or_default()
    }

    /// Empties a buffer, and takes its memory for the next one, if it is not too much.
    pub fn return_output(&self, buffer: &mut Vec<u8>) {
        let mut buffer = std::mem::take(buffer);
        let mut outputs = self.outputs.borrow_mut();
        if outputs.len() < OUTPUTS && buffer.capacity() <= MOST_OUTPUT {
            buffer.clear();
            outputs.push(buffer);
        }
    }

    /// How much memory there is for what waits.
    pub fn set_most(&self, most: u64) {
        self.most.set(most);
    }

    /// There is a connection more.
    pub fn enter(&self) {
        self.connections.set(self.connections.get() + 1);
    }

    /// There is one less.
    pub fn leave(&self) {
        self.connections.set(self.connections.get().saturating_sub(1));
    }

    /// So many bytes more wait for backends. False: that is more than there is memory for, and the connection, of which `own` bytes wait, has
    /// more than its share.
    #[must_use]
    pub fn hold(&self, bytes: usize, own: u32) -> bool {
        let held = self.held.get() + bytes as u64;
        self.held.set(held);
        held <= self.most.get() || u64::from(own) <= self.most.get() / self.connections.get().max(1)
    }

    /// So many of them no longer wait.
    pub fn release(&self, bytes: usize) {
        self.held.set(self.held.get().saturating_sub(bytes as u64));
    }

    /// So many bytes more wait for clients.
    #[inline]
    pub fn queue(&self, bytes: usize) {
        self.queued.set(self.queued.get() + bytes as u64);
    }

    /// So many of them no longer wait.
    #[inline]
    pub fn unqueue(&self, bytes: usize) {
        self.queued.set(self.queued.get().saturating_sub(bytes as u64));
    }

    /// How many bytes of bodies one connection may queue for its client, of `usual` ones.
    #[inline]
    #[must_use]
    pub fn room(&self, usual: usize) -> usize {
        if self.queued.get() <= self.most.get() / 2 { usual } else { LEAST_OUT }
    }

    /// True when nothing waits and nothing is promised.
    #[cfg(test)]
    pub(super) fn is_at_rest(&self) -> bool {
        [&self.granted, &self.held, &self.queued, &self.connections].iter().all(|count| count.get() == 0)
    }

    /// Asks for a window to grow by so many bytes. False: there is no room for that.
    #[must_use]
    pub fn grant(&self, bytes: u32) -> bool {
        let granted = self.granted.get() + u64::from(bytes);
        let may = bytes > 0 && granted <= self.most.get();
        if may {
            self.granted.set(granted);
        }
        may
    }

    /// A window that had grown by so many bytes is no more.
    pub fn return_grant(&self, bytes: u32) {
        self.granted.set(self.granted.get().saturating_sub(bytes.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_more_than_its_share_is_told_when_memory_runs_out() {
        let space = Http2Space::default();
        space.set_most(1000);
        space.enter();
        space.enter();
        assert!(space.hold(900, 900), "there is room");
        assert!(space.hold(200, 200), "a share is 500");
        assert!(!space.hold(1, 901), "this one has more");
        space.release(101);
        assert!(space.hold(0, 900));
    }

    #[test]
    fn queues_are_short_while_many_bytes_wait() {
        let space = Http2Space::default();
        space.set_most(1000);
        space.queue(500);
        assert_eq!(space.room(9_000), 9_000);
        space.queue(1);
        assert_eq!(space.room(9_000), LEAST_OUT);
        space.unqueue(1);
        assert_eq!(space.room(9_000), 9_000);
    }

    #[test]
    fn windows_grow_as_long_as_there_is_room() {
        let space = Http2Space::default();
        space.set_most(1000);
        assert!(space.grant(600) && !space.grant(401) && space.grant(400) && !space.grant(0));
        space.return_grant(600);
        assert!(space.grant(600) && !space.is_at_rest());
    }
}
