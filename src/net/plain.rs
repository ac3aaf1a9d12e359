//! A socket that the event loop knows, with the fewest questions to the event loop.
//!
//! What the runtime has to be asked for costs as much as the rest of a small read or write. So a write is tried without
//! asking, unless the last one found no room; and a task that is to be woken anyway is not put down a second time.
//!
//! A worker's event loop runs on the worker's own thread, between the polls of its tasks. So nothing that it learns can
//! come between a system call and what we tell it of that: a socket never leaves its thread.

use std::cell::Cell;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, BorrowedFd};
use std::ptr::NonNull;
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};
use tokio::task::coop::has_budget_remaining;

/// What the two kinds of socket of the runtime have in common.
pub trait Watched: AsFd {
    /// Calls `operate` if the runtime takes the socket for ready, and tells it when that was wrong.
    ///
    /// # Errors
    /// `WouldBlock` when it does not, or what `operate` says.
    fn attempt<T>(&self, interest: Interest, operate: impl FnOnce() -> io::Result<T>) -> io::Result<T>;

    /// Ready when the runtime takes the socket for readable.
    ///
    /// # Errors
    /// The runtime has ended.
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Ready when the runtime takes the socket for writable.
    ///
    /// # Errors
    /// The runtime has ended.
    fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

macro_rules! watched {
    ($($kind:ty),*) => { $(impl Watched for $kind {
        fn attempt<T>(&self, interest: Interest, operate: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
            self.try_io(interest, operate)
        }

        fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.poll_read_ready(cx)
        }

        fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.poll_write_ready(cx)
        }
    })* };
}

watched!(TcpStream, UnixStream);

/// Bytes that a read or write has moved, and how many it could have.
#[derive(Clone, Copy)]
pub struct Progress {
    /// Moved.
    pub count: usize,
    /// At most.
    pub most: usize,
}

impl Progress {
    /// Fewer than there was room for: the kernel has no more, or no more room. The next attempt waits for an event
    /// instead of finding that out by a system call. None at all are the end.
    fn is_short(self) -> bool {
        0 < self.count && self.count < self.most
    }
}

/// A task, by what all of its wakers have in common. Whoever holds one of its wakers keeps that from being another's; nobody
/// looks behind the pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TaskMark(NonNull<()>);

impl TaskMark {
    /// The task that is polled; `None`: its wakers have nothing in common by which it could be told from others.
    fn of(cx: &Context<'_>) -> Option<TaskMark> {
        NonNull::new(cx.waker().data().cast_mut()).map(TaskMark)
    }
}

/// Whom the event loop wakes once there is something to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    /// Nobody, or that is not known.
    Nobody,
    /// This task. The event loop holds one of its wakers, so no other task has the same mark meanwhile.
    Task(TaskMark),
}

/// What is known of the room for what is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    /// There may be some.
    Untried,
    /// The last write found too little, and the event loop will say when there is some.
    Full,
}

/// A socket without TLS that the event loop knows.
pub struct Plain<S> {
    socket: S,
    /// Whom the event loop wakes once there is something to read.
    reader: Cell<Reader>,
    room: Cell<Room>,
}

impl<S> From<S> for Plain<S> {
    fn from(socket: S) -> Plain<S> {
        Plain { socket, reader: Cell::new(Reader::Nobody), room: Cell::new(Room::Untried) }
    }
}

impl<S: AsFd> AsFd for Plain<S> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl<S: Watched> Plain<S> {
    /// The socket itself, for what is neither read, nor written, nor waited for.
    pub fn socket(&self) -> &S {
        &self.socket
    }

    /// The same, to end it.
    pub fn socket_mut(&mut self) -> &mut S {
        &mut self.socket
    }

    /// The socket, to be used in another way from now on.
    pub fn into_socket(self) -> S {
        self.socket
    }

    /// Reads once, with `read`, which is called only when the runtime takes the socket for readable. What is found at
    /// once does not count against the task's share of its turn.
    ///
    /// # Errors
    /// What `read` or the runtime reports.
    #[inline]
    pub fn poll_read(
        &self,
        cx: &mut Context<'_>,
        mut read: impl FnMut(BorrowedFd<'_>) -> rustix::io::Result<Progress>,
    ) -> Poll<io::Result<usize>> {
        loop {
            if !self.is_readable_now() {
                if self.will_wake(cx) {
                    return Poll::Pending;
                }
                ready!(self.poll_readable(cx))?;
            }
            // What has made the socket readable has taken the waker with it.
            self.reader.set(Reader::Nobody);
            match read(self.socket.as_fd()) {
                Ok(moved) => {
                    if moved.is_short() {
                        self.correct(Interest::READABLE);
                    }
                    return Poll::Ready(Ok(moved.count));
                }
                Err(Errno::AGAIN) => self.correct(Interest::READABLE),
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }

    /// As [`Plain::poll_read`], for a task that usually comes before the bytes do: it is put down by the same question
    /// that finds out that nothing is there. When something is, and it was not put down, that counts against its share.
    ///
    /// # Errors
    /// What `read` or the runtime reports.
    #[inline]
    pub fn poll_awaited(
        &self,
        cx: &mut Context<'_>,
        read: impl FnMut(BorrowedFd<'_>) -> rustix::io::Result<Progress>,
    ) -> Poll<io::Result<usize>> {
        if !self.will_wake(cx) {
            ready!(self.poll_readable(cx))?;
        }
        self.poll_read(cx, read)
    }

    /// True when the event loop wakes this task once there is something to read, or has.
    fn will_wake(&self, cx: &Context<'_>) -> bool {
        match self.reader.get() {
            Reader::Nobody => false,
            Reader::Task(mark) => TaskMark::of(cx) == Some(mark),
        }
    }

    /// Writes once, with `write`. Only when the last write found too little room is the runtime asked before.
    ///
    /// # Errors
    /// What `write` or the runtime reports.
    #[inline]
    pub fn poll_write(
        &self,
        cx: &mut Context<'_>,
        mut write: impl FnMut(BorrowedFd<'_>) -> rustix::io::Result<Progress>,
    ) -> Poll<io::Result<usize>> {
        loop {
            if self.room.get() == Room::Full {
                ready!(self.poll_room(cx))?;
            }
            match write(self.socket.as_fd()) {
                Ok(moved) => {
                    if moved.is_short() {
                        self.room.set(Room::Full);
                        self.correct(Interest::WRITABLE);
                    }
                    return Poll::Ready(Ok(moved.count));
                }
                Err(Errno::AGAIN) => {
                    self.room.set(Room::Full);
                    self.correct(Interest::WRITABLE);
                }
                Err(error) => return Poll::Ready(Err(error.into())),
            }
        }
    }

    /// Ready when there is room again.
    #[cold]
    fn poll_room(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.socket.attempt(Interest::WRITABLE, || Ok(())).is_err() {
            ready!(self.socket.poll_writable(cx))?;
        }
        self.room.set(Room::Untried);
        Poll::Ready(Ok(()))
    }

    /// Ready when the runtime takes the socket for readable. Counts against the task's share of its turn.
    ///
    /// # Errors
    /// The runtime has ended.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = self.socket.poll_readable(cx);
        // A task that has used up its share is told to wait without being put down.
        let waits = polled.is_pending() && has_budget_remaining();
        let task = TaskMark::of(cx).filter(|_| waits);
        self.reader.set(task.map_or(Reader::Nobody, Reader::Task));
        polled
    }

    /// True when the runtime takes the socket for readable.
    pub fn is_readable_now(&self) -> bool {
        // The only error there is holds no memory; finding that out at each request is what dropping it would cost.
        ManuallyDrop::new(self.socket.attempt(Interest::READABLE, || Ok(()))).is_ok()
    }

    /// Tells the runtime that what it took the socket for ready for would have to wait.
    fn correct(&self, interest: Interest) {
        // It says what it was told, an error that holds no memory.
        let _ = ManuallyDrop::new(
            self.socket.attempt(interest, || Err::<(), _>(io::ErrorKind::WouldBlock.into())),
        );
    }

    /// Calls `operate` whenever the runtime takes the socket for ready, until it does not say that it would have to
    /// wait.
    ///
    /// # Errors
    /// What `operate` or the runtime reports.
    pub fn poll_io<T>(
        &self,
        cx: &mut Context<'_>,
        interest: Interest,
        mut operate: impl FnMut(BorrowedFd<'_>) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        loop {
            ready!(if interest.is_readable() {
                self.poll_readable(cx)
            } else {
                self.socket.poll_writable(cx)
            })?;
            match self.socket.attempt(interest, || operate(self.socket.as_fd())) {
                // What the runtime took for ready was not; it knows now.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => return Poll::Ready(outcome),
            }
        }
    }
}

#[cfg(test)]
mod tests;
