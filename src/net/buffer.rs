//! Relay buffers from a per-worker free list.
//!
//! A buffer is taken when a socket has become readable and goes back when it is empty, so an idle connection
//! owns none. 72 KiB: with 16 KiB a large body costs twice the CPU, and what is 64 KiB in a cache or a file should come with
//! its head or its chunk lines in one read. But whoever stops reading keeps a buffer for as long as it likes, so a worker
//! that has many out hands out small ones: thousands of slow clients must not cost 72 KiB each.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use tokio::io::ReadBuf;

use super::Stream;
use super::plain::Progress;
use super::splice::Pipes;
use super::stream::receive;

/// Bytes of one buffer, at most.
pub const SIZE: usize = 72 * 1024;

/// Bytes in front of what a buffer holds, in memory that begins with a page. Behind a copy whose source and target stand at nearly the same
/// place of their pages, reads wait for writes that they take for writes of the same memory: so 64 KiB took 20 µs and not 1 (AMD Zen 4; Intel
/// calls it 4K aliasing). What TLS copies to begins 5 bytes behind a page's begin.
pub const SKEW: usize = 512;

/// Bytes of a buffer that is taken while [`MANY`] are out. It grows to [`SIZE`] when that is not enough for one unit: a head, a
/// chunk line.
const SMALL: usize = 4 * 1024;

/// So many buffers of one worker are handed out large.
const MANY: usize = 128;

/// Buffers kept for the next taker; more than these go back to the allocator.
const KEPT: usize = 64;

/// One worker's kept buffers, and its pipes.
#[derive(Clone, Default)]
pub struct FreeList {
    free: Rc<FreeBuffers>,
}

#[derive(Default)]
struct FreeBuffers {
    large: RefCell<Vec<Box<[u8]>>>,
    small: RefCell<Vec<Box<[u8]>>>,
    /// Buffers that somebody holds.
    out: Cell<usize>,
    pipes: Pipes,
}

impl FreeList {
    /// An empty list.
    #[must_use]
    pub fn new() -> FreeList {
        FreeList::default()
    }

    /// An empty list with these pipes.
    #[must_use]
    pub fn with_pipes(pipes: Pipes) -> FreeList {
        FreeList { free: Rc::new(FreeBuffers { pipes, ..FreeBuffers::default() }) }
    }

    /// For long runs of bytes between plain sockets.
    #[must_use]
    pub fn pipes(&self) -> &Pipes {
        &self.free.pipes
    }

    /// Reads once behind what is in `held`. Where that is nothing a buffer is taken when there is something to read, and
    /// goes back if that was not so. For what is waited for once per request: what a task was woken for does not count against
    /// its share of its turn. `Ok(0)`: the peer has sent its last byte.
    ///
    /// # Errors
    /// What the socket reports.
    pub fn poll_fill(
        &self,
        held: &mut Option<Buffer>,
        cx: &mut Context<'_>,
        stream: &mut Stream,
    ) -> Poll<io::Result<usize>> {
        let polled = match stream {
            Stream::Tcp(socket) => socket.poll_awaited(cx, |socket| self.buffer(held).receive(socket)),
            Stream::Unix(socket) => socket.poll_awaited(cx, |socket| self.buffer(held).receive(socket)),
            Stream::Fresh(_) | Stream::Tls(_) | Stream::Carried(_) => {
                if held.is_none() {
                    ready!(stream.poll_readable(cx))?;
                }
                self.buffer(held).poll_fill(cx, stream)
            }
        };
        if held.as_ref().is_some_and(Buffer::is_empty) {
            *held = None;
        }
        polled
    }

    fn buffer<'a>(&self, held: &'a mut Option<Buffer>) -> &'a mut Buffer {
        held.get_or_insert_with(|| self.take())
    }

    /// An empty buffer.
    #[must_use]
    pub fn take(&self) -> Buffer {
        self.of(self.size())
    }

    /// Bytes of a buffer that is taken now.
    #[inline]
    #[must_use]
    pub fn size(&self) -> usize {
        if self.free.out.get() < MANY { SIZE } else { SMALL }
    }

    /// An empty buffer of this size, one of the two.
    fn of(&self, size: usize) -> Buffer {
        let list = if size == SIZE { &self.free.large } else { &self.free.small };
        let kept = list.borrow_mut().pop();
        let bytes = kept.unwrap_or_else(|| vec![0; SKEW + size].into_boxed_slice());
        self.free.out.set(self.free.out.get() + 1);
        Buffer { bytes, start: SKEW, end: SKEW, home: self.clone() }
    }

    /// A buffer that holds `content`, of at most [`SIZE`] bytes; more is cut off.
    #[must_use]
    pub fn filled(&self, content: &[u8]) -> Buffer {
        let mut buffer = if content.len() > SMALL { self.of(SIZE) } else { self.take() };
        let length = content.len().min(SIZE);
        buffer.end = SKEW + length;
        buffer.bytes[SKEW..SKEW + length].copy_from_slice(&content[..length]);
        buffer
    }
}

/// Up to [`SIZE`] bytes behind the first [`SKEW`]; goes back to its list when dropped.
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
        self.start == SKEW && self.end == SKEW + SIZE
    }

    /// True when the last read used all the space there was: more may have been left behind.
    #[must_use]
    pub fn is_filled(&self) -> bool {
        self.end == self.bytes.len()
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
        let mut space = ReadBuf::new(self.room());
        ready!(stream.poll_read(cx, &mut space))?;
        let count = space.filled().len();
        self.end += count;
        Poll::Ready(Ok(count))
    }

    /// The same from a socket that is taken for readable.
    fn receive(&mut self, socket: BorrowedFd<'_>) -> rustix::io::Result<Progress> {
        let moved = receive(socket, self.room())?;
        self.end += moved.count;
        Ok(moved)
    }

    /// The space behind what it holds.
    #[inline]
    fn room(&mut self) -> &mut [u8] {
        if self.is_empty() {
            (self.start, self.end) = (SKEW, SKEW);
        } else if self.end == self.bytes.len() {
            self.make_room();
        }
        &mut self.bytes[self.end..]
    }

    /// For what it holds and what comes: one unit that has to be seen whole.
    fn make_room(&mut self) {
        if self.start > SKEW {
            self.bytes.copy_within(self.start..self.end, SKEW);
            (self.start, self.end) = (SKEW, SKEW + self.end - self.start);
        } else if self.end < SKEW + SIZE {
            let mut grown = self.home.of(SIZE);
            grown.bytes[..self.end].copy_from_slice(&self.bytes);
            grown.end = self.end;
            *self = grown;
        }
    }
}

impl Drop for Buffer {
    #[inline]
    fn drop(&mut self) {
        let free = &self.home.free;
        free.out.set(free.out.get() - 1);
        let list = if self.bytes.len() == SKEW + SIZE { &free.large } else { &free.small };
        let mut kept = list.borrow_mut();
        if kept.len() < KEPT {
            kept.push(std::mem::take(&mut self.bytes));
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
        let kept = || list.free.large.borrow().len();
        assert_eq!((buffer.data(), kept()), (&b"hello"[..], 0));
        drop(buffer);
        assert_eq!(kept(), 1);
        assert!(list.take().is_empty());
    }

    #[tokio::test]
    async fn a_worker_that_has_many_out_hands_out_small_ones_that_grow_when_they_must() {
        let list = FreeList::new();
        let mut out: Vec<_> = (0..MANY).map(|_| list.take()).collect();
        assert!(out.iter().all(|buffer| buffer.bytes.len() == SKEW + SIZE));
        let mut small = list.take();
        let filled = list.filled(&[b'x'; SMALL + 1]);
        assert_eq!((small.bytes.len(), filled.len()), (SKEW + SMALL, SMALL + 1));
        drop(filled);

        let (near, mut far) = tokio::net::UnixStream::pair().expect("a pair of sockets");
        let sent: Vec<u8> = (0..SIZE).map(|at| (at % 251) as u8).collect();
        let expected = sent.clone();
        let writer = tokio::spawn(async move { tokio::io::AsyncWriteExt::write_all(&mut far, &sent).await });
        let mut near = Stream::from(near);
        while !small.is_full() {
            let count = std::future::poll_fn(|cx| small.poll_fill(cx, &mut near)).await.expect("reads");
            assert!(count > 0, "what is not full takes more");
        }
        assert!(small.data() == expected && small.bytes.len() == SKEW + SIZE);
        writer.await.expect("no panic").expect("writes");

        drop(small);
        out.clear();
        assert_eq!(list.free.out.get(), 0, "all came back");
        assert_eq!(list.take().bytes.len(), SKEW + SIZE);
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
