//! Space for records on their way, one for all sessions of a thread: what is done with it is done in one go, so a session
//! that waits owns none of it.

use std::cell::Cell;

/// Bytes of a handshake message that is held until it is whole, at most: what the peer may make us keep.
pub(super) const MOST_HELD: usize = 64 * 1024;

/// What is read at once, at most.
pub(super) const MOST_READ: usize = 64 * 1024;

/// The space of one thread.
pub(super) struct Scratch {
    /// Records as they were read, behind what was held of them.
    pub(super) incoming: Box<[u8]>,
    /// Records to be sent.
    pub(super) outgoing: Outgoing,
    /// Content that is gathered for one record.
    pub(super) gathered: Vec<u8>,
}

/// Bytes that are written by slices and never cleared, because clearing costs as much as filling.
#[derive(Default)]
pub(super) struct Outgoing {
    bytes: Vec<u8>,
    end: usize,
}

impl Outgoing {
    /// What it holds.
    pub(super) fn data(&self) -> &[u8] {
        &self.bytes[..self.end]
    }

    pub(super) fn clear(&mut self) {
        self.end = 0;
    }

    /// What can be written behind what it holds: at least so many bytes, and usually more.
    pub(super) fn room(&mut self, least: usize) -> &mut [u8] {
        if self.bytes.len() < self.end + least {
            self.bytes.resize(self.end + least, 0);
        }
        &mut self.bytes[self.end..]
    }

    /// Takes note of what was written.
    pub(super) fn written(&mut self, count: usize) {
        self.end = (self.end + count).min(self.bytes.len());
    }
}

thread_local! {
    static SPACE: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// Lends the thread's space, or another one when it is lent already.
pub(super) fn with<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
    // A session may be dropped when its thread has no space any more.
    let kept = SPACE.try_with(Cell::take).ok().flatten();
    let mut scratch = kept.unwrap_or_else(|| {
        Box::new(Scratch {
            incoming: vec![0; MOST_HELD + MOST_READ].into_boxed_slice(),
            outgoing: Outgoing::default(),
            gathered: Vec::new(),
        })
    });
    let outcome = work(&mut scratch);
    scratch.outgoing.clear();
    let _ = SPACE.try_with(|space| space.set(Some(scratch)));
    outcome
}
