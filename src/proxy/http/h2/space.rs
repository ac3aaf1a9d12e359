//! What the HTTP/2 connections of one worker share: memory that goes round, and the bound on how much of it clients may be promised.

use std::cell::{Cell, RefCell};

use super::debts::Debts;
use super::draft::DraftSpace;
use super::hpack::EncodedLines;
use super::stream::{ArrivedAnswer, ArrivedRequest};

/// Requests kept for the memory of the next ones.
const REQUESTS: usize = 1024;
/// Answers kept: more wait at the same time only while a worker has more to read than it gets to.
const ANSWERS: usize = 256;
/// Of each, those that are left when a crowd has gone.
const FEW: usize = 8;
/// Buffers of output kept for the next turn of some connection.
const OUTPUTS: usize = 32;
/// Bytes that a head or a buffer may keep.
const MOST_HEAD: usize = 8 * 1024;
const MOST_OUTPUT: usize = 128 * 1024;

/// The shared things of one worker.
///
/// What is counted is what all of its connections have together. How much that may be (`http2.memory`) each one knows from its own listener: where
/// two say something else, the connections of the smaller one stop first.
#[derive(Default)]
pub struct Http2Space {
    #[expect(clippy::vec_box, reason = "they go from here into a stream and back, and are large")]
    requests: RefCell<Vec<Box<ArrivedRequest>>>,
    #[expect(clippy::vec_box, reason = "the same of answers")]
    answers: RefCell<Vec<Box<ArrivedAnswer>>>,
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
}

/// Bytes that a connection may queue for its client where there is no more memory for that.
const LEAST_OUT: usize = 4 * 1024;

impl Http2Space {
    /// A request to be filled in; its head may be anything.
    #[must_use]
    pub fn take_request(&self) -> Box<ArrivedRequest> {
        self.requests.borrow_mut().pop().unwrap_or_default()
    }

    /// One that nobody needs any more.
    pub fn return_request(&self, request: Box<ArrivedRequest>) {
        let mut requests = self.requests.borrow_mut();
        if requests.len() < REQUESTS && request.head.capacity() <= MOST_HEAD {
            requests.push(request);
        }
    }

    /// An answer to be filled in; its head is empty.
    #[must_use]
    pub fn take_answer(&self) -> Box<ArrivedAnswer> {
        let mut answer = self.answers.borrow_mut().pop().unwrap_or_default();
        answer.head.clear();
        answer
    }

    /// One that nobody needs any more.
    pub fn return_answer(&self, answer: Box<ArrivedAnswer>) {
        let mut answers = self.answers.borrow_mut();
        if answers.len() < ANSWERS && answer.head.capacity() <= MOST_HEAD {
            answers.push(answer);
        }
    }

    /// Gives back what is kept for a crowd that has gone.
    pub fn trim(&self) {
        let (mut requests, mut outputs) = (self.requests.borrow_mut(), self.outputs.borrow_mut());
        requests.truncate(FEW);
        requests.shrink_to_fit();
        outputs.truncate(FEW);
        self.answers.borrow_mut().truncate(FEW);
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

    /// There is a connection more.
    pub fn enter(&self) {
        self.connections.set(self.connections.get() + 1);
    }

    /// There is one less.
    pub fn leave(&self) {
        self.connections.set(self.connections.get().saturating_sub(1));
    }

    /// So many bytes more wait for backends. False: that is more than half of `most`, and the connection, of which `own` bytes wait, has more than its
    /// share.
    #[must_use]
    pub fn hold(&self, bytes: usize, own: u32, most: u64) -> bool {
        let held = self.held.get() + bytes as u64;
        self.held.set(held);
        // Those that have less than their share may still come to it when the others have half.
        let half = most / 2;
        held <= half || u64::from(own) <= half / self.connections.get().max(1)
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

    /// How many bytes of bodies one connection may queue for its client: `usual` ones, while all have queued no more than a quarter of `most`.
    #[inline]
    #[must_use]
    pub fn room(&self, usual: usize, most: u64) -> usize {
        if self.queued.get() <= most / 4 { usual } else { LEAST_OUT }
    }

    /// True when nothing waits and nothing is promised.
    #[cfg(test)]
    pub(super) fn is_at_rest(&self) -> bool {
        [&self.granted, &self.held, &self.queued, &self.connections].iter().all(|count| count.get() == 0)
    }

    /// True when so much waits for clients that buffers are not to be larger than what they hold.
    #[inline]
    #[must_use]
    pub fn is_short(&self, most: u64) -> bool {
        self.queued.get() > most / 8
    }

    /// Asks for a window to grow by so many bytes. False: all would have grown by more than half of `most` then.
    #[must_use]
    pub fn grant(&self, bytes: u32, most: u64) -> bool {
        let granted = self.granted.get() + u64::from(bytes);
        let may = bytes > 0 && granted <= most / 2;
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
        space.enter();
        space.enter();
        assert!(space.hold(900, 900, 2000), "there is room");
        assert!(space.hold(200, 200, 2000), "a share is 500");
        assert!(!space.hold(1, 901, 2000), "this one has more");
        space.release(101);
        assert!(space.hold(0, 900, 2000));
    }

    #[test]
    fn queues_are_short_while_many_bytes_wait() {
        let space = Http2Space::default();
        space.queue(250);
        assert_eq!(space.room(9_000, 1000), 9_000);
        space.queue(1);
        assert_eq!(space.room(9_000, 1000), LEAST_OUT);
        space.unqueue(1);
        assert_eq!(space.room(9_000, 1000), 9_000);
    }

    #[test]
    fn windows_grow_as_long_as_there_is_room() {
        let space = Http2Space::default();
        assert!(
            space.grant(600, 2000)
                && !space.grant(401, 2000)
                && space.grant(400, 2000)
                && !space.grant(0, 2000)
        );
        space.return_grant(600);
        assert!(space.grant(600, 2000) && !space.is_at_rest() && !space.grant(1, 1200));
    }
}
