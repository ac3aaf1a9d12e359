//! Relay buffers from a per-worker free list.
//!
//! A buffer is taken when a socket has become readable and goes back when it is empty, so an idle connection
//! owns none. 64 KiB: with 16 KiB a large body costs twice the CPU.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::ReadBuf;

use super::Stream;

/// Bytes of one buffer.
pub const SIZE: usize = 64 * 1024;

/// Buffers kept for the next taker; more than these go back to the allocator.
const KEPT: usize = 64;

/// One worker's spare buffers.
#[derive(Clone, Default)]
pub struct FreeList {
    spare: Rc<RefCell<Vec<Box<[u8]>>>>,
}

impl FreeList {
    /// An empty list.
    #[must_use]
    pub fn new() -> FreeList {
        FreeList::default()
    }

    /// An empty buffer.
    #[must_use]
    pub fn take(&self) -> Buffer {
        let spare = self.spare.borrow_mut().pop();
        let bytes = spare.unwrap_or_else(|| vec![0; SIZE].into_boxed_slice());
        Buffer { bytes, start: 0, end: 0, home: self.clone() }
    }

    /// A buffer that holds `content`, of at most [`SIZE`] bytes; more is cut off.
    #[must_use]
    pub fn filled(&self, content: &[u8]) -> Buffer {
        let mut buffer = self.take();
        let length = content.len().min(SIZE);
        buffer.bytes[..length].copy_from_slice(&content[..length]);
        buffer.end = length;
        buffer
    }
}

/// Up to [`SIZE`] bytes; goes back to its list when dropped.
pub struct Buffer {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
    home: FreeList,
}

impl Buffer {
    /// What it holds.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// The same, to change in place.
    pub fn data_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.end]
    }

    /// Bytes held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// True when it holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// True when nothing more can be read into it.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.start == 0 && self.end == self.bytes.len()
    }

    /// Drops the first `count` bytes.
    pub fn consume(&mut self, count: usize) {
        self.start = (self.start + count).min(self.end);
    }

    /// Keeps only the first `count` bytes.
    pub fn truncate(&mut self, count: usize) {
        self.end = self.end.min(self.start + count);
    }

    /// Moves everything after the first `count` bytes into a buffer of its own; `None` when nothing is there.
    pub fn split_off(&mut self, count: usize) -> Option<Buffer> {
        let rest = self.data().get(count..).filter(|rest| !rest.is_empty())?;
        let rest = self.home.filled(rest);
        self.truncate(count);
        Some(rest)
    }

    /// Reads once behind what it holds. `Ok(0)`: the peer has sent its last byte.
    ///
    /// # Errors
    /// What the socket reports.
    pub fn poll_fill(&mut self, cx: &mut Context<'_>, stream: &mut Stream) -> Poll<io::Result<usize>> {
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.bytes.len() && self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let mut space = ReadBuf::new(&mut self.bytes[self.end..]);
        ready!(stream.poll_read(cx, &mut space))?;
        let count = space.filled().len();
        self.end += count;
        Poll::Ready(Ok(count))
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut spare = self.home.spare.borrow_mut();
        if spare.len() < KEPT {
            spare.push(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_buffer_is_used_again_and_comes_back_empty() {
        let list = FreeList::new();
        let buffer = list.filled(b"hello");
        assert_eq!((buffer.data(), list.spare.borrow().len()), (&b"hello"[..], 0));
        drop(buffer);
        assert_eq!(list.spare.borrow().len(), 1);
        assert!(list.take().is_empty());
    }

    #[test]
    fn splitting_keeps_every_byte_once() {
        let list = FreeList::new();
        let mut buffer = list.filled(b"0123456789");
        buffer.consume(2);
        let rest = buffer.split_off(3).expect("five bytes remain");
        assert_eq!((buffer.data(), rest.data()), (&b"234"[..], &b"56789"[..]));
        assert!(buffer.split_off(3).is_none());
    }
}
