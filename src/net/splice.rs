//! Pipes that bytes go through without being looked at: socket, pipe, socket, all inside the kernel (splice(2)).
//!
//! Moving much at a time costs half of what reading and writing it does, moving little costs more: [`Run`] tells
//! when. A pipe is held only while bytes are in it and goes back to its worker's list when it is empty. Where there is
//! none (descriptors, the system's limits, too many held for those who do not read) bytes go through a buffer as
//! ever: nothing depends on pipes. Callers: the relay, and bodies of known length.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use rustix::process::{Resource, getrlimit};
use tokio::io::Interest;

use super::Stream;

/// Bytes that one pipe takes. A larger one moves hardly more per second, and holds more for who does not read.
pub const SIZE: usize = 256 * 1024;

/// Pipes of one worker, at most: each may hold [`SIZE`] bytes of the kernel's memory for somebody who does not read.
const MOST: u64 = 64;

/// One pipe for so many descriptors of the limit, in each worker.
const SHARE: u64 = 256;

/// After the system has refused a pipe so many are done without before it is asked again.
const RESPITE: u32 = 1000;

/// One worker's pipes.
#[derive(Clone)]
pub struct Pipes {
    free_pipes: Rc<FreePipes>,
}

struct FreePipes {
    most: usize,
    /// Held and idle.
    open: Cell<usize>,
    idle: RefCell<Vec<Ends>>,
    respite: Cell<u32>,
}

struct Ends {
    reader: OwnedFd,
    writer: OwnedFd,
}

impl Default for Pipes {
    /// As many as the descriptor limit in force allows for.
    fn default() -> Pipes {
        let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Pipes::new(usize::try_from((descriptors / SHARE).min(MOST)).unwrap_or(0))
    }
}

impl Pipes {
    /// At most `most` pipes, none of them open yet.
    #[must_use]
    pub fn new(most: usize) -> Pipes {
        let (open, respite) = (Cell::new(0), Cell::new(0));
        Pipes { free_pipes: Rc::new(FreePipes { most, open, idle: RefCell::default(), respite }) }
    }

    /// An empty pipe, if one is to be had.
    #[must_use]
    pub fn take(&self) -> Option<Pipe> {
        let idle = self.free_pipes.idle.borrow_mut().pop();
        let ends = match idle {
            Some(ends) => ends,
            None => self.open()?,
        };
        Some(Pipe { ends: Some(ends), held: 0, home: self.clone() })
    }

    fn open(&self) -> Option<Ends> {
        let free_pipes = &self.free_pipes;
        if free_pipes.open.get() >= free_pipes.most {
            return None;
        }
        if let Some(left) = free_pipes.respite.get().checked_sub(1) {
            free_pipes.respite.set(left);
            return None;
        }
        let Ok(ends) = Ends::open() else {
            free_pipes.respite.set(RESPITE);
            return None;
        };
        free_pipes.open.set(free_pipes.open.get() + 1);
        Some(ends)
    }

    /// True when [`Pipes::clear`] would close something.
    #[must_use]
    pub fn has_spare(&self) -> bool {
        !self.free_pipes.idle.borrow().is_empty()
    }

    /// Pipes held and idle, and the idle ones alone.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.free_pipes.open.get(), self.free_pipes.idle.borrow().len())
    }

    /// Closes the idle ones: their descriptors are needed elsewhere.
    pub fn clear(&self) {
        let idle = self.free_pipes.idle.take();
        self.free_pipes.open.set(self.free_pipes.open.get() - idle.len());
        self.free_pipes.respite.set(RESPITE);
    }
}

impl Ends {
    fn open() -> rustix::io::Result<Ends> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // A user with too many pages in pipes gets small ones, which are worth nothing, and may not make them larger.
        fcntl_setpipe_size(&writer, SIZE)?;
        Ok(Ends { reader, writer })
    }
}

/// A pipe that is held for the bytes in it. Dropped empty it goes back to its list; one that still holds bytes is
/// closed, so that they reach nobody else.
pub struct Pipe {
    /// There until it is dropped.
    ends: Option<Ends>,
    pub(super) held: usize,
    home: Pipes,
}

impl Pipe {
    /// True when every byte that went in has come out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Moves at most `most` bytes from a plain socket into the pipe, which must be empty: only then it is certainly the socket
    /// that has to be waited for. `Ok(0)` says that nothing can be moved and not why: at the end, but also in front of an
    /// urgent byte. A read tells.
    ///
    /// # Errors
    /// What the socket reports, or that the system does not do this: see [`is_unsupported`].
    pub fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        source: &Stream,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        let Some(ends) = self.ends.as_ref().filter(|_| self.held == 0) else {
            return Poll::Ready(Err(Errno::INVAL.into()));
        };
        let count = ready!(source.poll_io(cx, Interest::READABLE, |socket| {
            Ok(splice(socket, None, &ends.writer, None, most, SpliceFlags::NONBLOCK)?)
        }))?;
        self.held = count;
        Poll::Ready(Ok(count))
    }

    /// Moves bytes from the pipe, which must hold some, to a plain socket.
    ///
    /// # Errors
    /// What the socket reports.
    pub fn poll_drain(&mut self, cx: &mut Context<'_>, sink: &Stream) -> Poll<io::Result<usize>> {
        let (Some(ends), held) = (&self.ends, self.held) else {
            return Poll::Ready(Err(Errno::INVAL.into()));
        };
        // Never more than it holds: that would promise the socket more, which then waits for it.
        let count = ready!(sink.poll_io(cx, Interest::WRITABLE, |socket| {
            Ok(splice(&ends.reader, None, socket, None, held, SpliceFlags::NONBLOCK)?)
        }))?;
        self.held -= count.min(held);
        Poll::Ready(Ok(count))
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let free_pipes = &self.home.free_pipes;
        match self.ends.take() {
            Some(ends) if self.held == 0 => free_pipes.idle.borrow_mut().push(ends),
            _ => free_pipes.open.set(free_pipes.open.get() - 1),
        }
    }
}

/// True when `error` says that this cannot be spliced, and nothing about the connection.
#[must_use]
pub fn is_unsupported(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    [Errno::INVAL, Errno::NOSYS, Errno::PERM, Errno::OPNOTSUPP]
        .iter()
        .any(|errno| code == Some(errno.raw_os_error()))
}

/// Reads that must have filled their buffers, one after the other, before a direction splices.
const LONG: u8 = 4;
/// Less than this at a time, in bytes, is cheaper to read and write.
pub const SHORT: usize = 16 * 1024;

/// How much came at a time lately in one direction, and so which way is the cheaper one.
#[derive(Debug, Default)]
pub struct Run {
    filled: u8,
}

impl Run {
    /// Much is known to come: the first read is enough to tell that it comes fast.
    #[must_use]
    pub fn announced() -> Run {
        Run { filled: LONG - 1 }
    }

    /// True when what comes next is worth a pipe.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.filled >= LONG
    }

    /// A read has filled its buffer, or has not.
    pub fn read(&mut self, filled: bool) {
        self.filled = if filled { self.filled.saturating_add(1) } else { 0 };
    }

    /// So many bytes came through a pipe.
    pub fn spliced(&mut self, count: usize) {
        if count < SHORT {
            self.end();
        }
    }

    /// Begins anew with reads.
    pub fn end(&mut self) {
        self.filled = 0;
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::UnixStream;

    use super::*;

    async fn fill(pipe: &mut Pipe, source: &Stream, most: usize) -> usize {
        std::future::poll_fn(|cx| pipe.poll_fill(cx, source, most)).await.expect("moves")
    }

    #[tokio::test]
    async fn no_more_than_asked_for_goes_in_and_all_of_it_comes_out() {
        let pipes = Pipes::new(1);
        let mut pipe = pipes.take().expect("a pipe");
        let (source, mut source_end) = UnixStream::pair().expect("a pair of sockets");
        let (sink, mut sink_end) = UnixStream::pair().expect("a pair of sockets");
        let (source, sink) = (Stream::from(source), Stream::from(sink));
        source_end.write_all(b"0123456789").await.expect("writes");
        assert_eq!(fill(&mut pipe, &source, 6).await, 6);
        assert!(!pipe.is_empty());
        let refused = std::future::poll_fn(|cx| pipe.poll_fill(cx, &source, 6)).await;
        assert!(refused.is_err_and(|error| is_unsupported(&error)), "it is not empty");
        let count = std::future::poll_fn(|cx| pipe.poll_drain(cx, &sink)).await.expect("moves");
        assert!(count == 6 && pipe.is_empty());
        let mut got = [0; 6];
        sink_end.read_exact(&mut got).await.expect("reads");
        assert_eq!(&got, b"012345");
        assert_eq!(fill(&mut pipe, &source, 6).await, 4);
    }

    #[test]
    fn there_are_no_more_than_allowed_and_an_empty_one_is_used_again() {
        let pipes = Pipes::new(2);
        let (one, two) = (pipes.take(), pipes.take());
        assert!(one.is_some() && two.is_some() && pipes.take().is_none());
        drop(one);
        assert_eq!(pipes.counts(), (2, 1));
        assert!(pipes.take().is_some());
        pipes.clear();
        assert_eq!(pipes.counts(), (1, 0));
        assert!(pipes.take().is_none(), "descriptors are short");
        drop(two);
        assert!(pipes.take().is_some(), "what is open already may be used");
        assert!(Pipes::new(0).take().is_none());
    }

    #[tokio::test]
    async fn a_pipe_that_holds_bytes_is_closed() {
        let pipes = Pipes::new(1);
        let mut pipe = pipes.take().expect("a pipe");
        let (source, mut source_end) = UnixStream::pair().expect("a pair of sockets");
        source_end.write_all(b"somebody's").await.expect("writes");
        fill(&mut pipe, &Stream::from(source), SIZE).await;
        drop(pipe);
        assert_eq!(pipes.counts(), (0, 0));
    }

    #[test]
    fn a_run_begins_with_full_reads_and_ends_with_little() {
        let mut run = Run::default();
        let mut long = |filled: &[bool]| {
            filled.iter().for_each(|&filled| run.read(filled));
            run.is_long()
        };
        assert!(!long(&[true, true, true]));
        assert!(!long(&[false, true, true, true]));
        assert!(long(&[true]));
        run.spliced(SHORT);
        assert!(run.is_long());
        run.spliced(SHORT - 1);
        assert!(!run.is_long());
    }
}
