//! A body that is stored while it comes, and read by many at once, each at its own speed.
//!
//! Invariants, under the one lock:
//!
//! 1. `dropped` + the sealed chunks + the open one are all that has come, in its order. Sealed chunks never change and are shared with
//!    those who send them; only the open one grows, and what is read of it is copied.
//! 2. A reader's place is at least `dropped`: as long as the body is kept nothing is dropped, and once it has outgrown what is kept nobody
//!    joins any more, and a chunk goes only when all have read it.
//! 3. Once it has outgrown, the writer is at most [`WINDOW`] ahead of the slowest reader.
//! 4. It ends once: whole or broken. Whoever has read all of a broken one is told so, and never that it is whole.
//! 5. Every change wakes all who wait for one.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::message::Cause;

use super::body::{CHUNK, StoredBody};

/// Bytes that are held for slower readers of a body that is too large to be kept.
pub(super) const WINDOW: u64 = 1 << 20;

/// A body while it comes.
#[derive(Debug)]
pub struct Filling {
    state: Mutex<State>,
    /// Bytes that are kept at most.
    most: u64,
    expected: Option<u64>,
}

#[derive(Debug)]
struct State {
    dropped: u64,
    /// All but the last one of a whole body have `CHUNK` bytes.
    sealed: Vec<Arc<[u8]>>,
    open: Vec<u8>,
    length: u64,
    outgrown: bool,
    end: Option<Result<(), Cause>>,
    readers: Vec<Option<Place>>,
    writer: Option<Waker>,
}

/// Where a reader is.
#[derive(Debug)]
struct Place {
    at: u64,
    waker: Option<Waker>,
}

/// What a reader gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Bytes of a chunk that never changes.
    Shared(Arc<[u8]>, Range<usize>),
    /// So many bytes, which were copied.
    Copied(usize),
}

/// Who reads a body while it comes.
#[derive(Debug)]
pub struct FillingReader {
    filling: Arc<Filling>,
    slot: usize,
}

impl Filling {
    /// An empty one. `most`: bytes that are kept at most; `expected`: how many will come, if that is known.
    #[must_use]
    pub fn new(most: u64, expected: Option<u64>) -> Arc<Filling> {
        let room = expected.map_or(0, |length| usize::try_from(length).unwrap_or(CHUNK).min(CHUNK));
        let state = State {
            dropped: 0,
            sealed: Vec::new(),
            open: Vec::with_capacity(room),
            length: 0,
            outgrown: false,
            end: None,
            readers: Vec::new(),
            writer: None,
        };
        Arc::new(Filling { state: Mutex::new(state), most, expected })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads it from the beginning. `None`: it has outgrown what is kept, or is broken.
    #[must_use]
    pub fn reader(self: &Arc<Filling>) -> Option<FillingReader> {
        let mut state = self.lock();
        if state.outgrown || matches!(state.end, Some(Err(_))) {
            return None;
        }
        let place = Some(Place { at: 0, waker: None });
        let slot = match state.readers.iter().position(Option::is_none) {
            Some(free) => {
                state.readers[free] = place;
                free
            }
            None => {
                state.readers.push(place);
                state.readers.len() - 1
            }
        };
        Some(FillingReader { filling: Arc::clone(self), slot })
    }

    /// Adds what has come.
    pub fn append(&self, mut bytes: &[u8]) {
        let mut state = self.lock();
        state.length += bytes.len() as u64;
        while !bytes.is_empty() {
            let room = CHUNK - state.open.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            state.open.extend_from_slice(now);
            bytes = later;
            if state.open.len() == CHUNK {
                state.seal();
            }
        }
        if state.length > self.most {
            state.outgrown = true;
            state.drop_read();
        }
        state.wake_readers();
    }

    /// Ready when more may be added, and then whether anybody reads it.
    pub fn poll_room(&self, cx: &mut Context<'_>) -> Poll<bool> {
        let mut state = self.lock();
        let mut places = state.readers.iter().flatten().map(|place| place.at);
        let slowest = places.next().map(|first| places.fold(first, u64::min));
        let is_full = state.outgrown && slowest.is_some_and(|slowest| state.length - slowest >= WINDOW);
        if is_full {
            state.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(slowest.is_some())
    }

    /// How many bytes will come, if that is known.
    #[must_use]
    pub fn expected(&self) -> Option<u64> {
        self.expected
    }

    /// Whether it is too large to be kept.
    #[must_use]
    pub fn has_outgrown(&self) -> bool {
        self.lock().outgrown
    }

    /// Whether nobody reads it now. Whoever is told so is woken when the next reader leaves.
    pub fn is_deserted(&self, cx: &mut Context<'_>) -> bool {
        let mut state = self.lock();
        state.writer = Some(cx.waker().clone());
        state.readers.iter().all(Option::is_none)
    }

    /// All that has come, if it is kept.
    #[must_use]
    pub fn body(&self) -> Option<StoredBody> {
        let mut state = self.lock();
        if !state.open.is_empty() {
            state.seal();
        }
        (!state.outgrown && !matches!(state.end, Some(Err(_)))).then(|| StoredBody::of(state.sealed.clone()))
    }

    /// All of it has come. Whoever reads it to its end may rely on it that it was kept before.
    pub fn finish(&self) {
        let mut state = self.lock();
        state.end.get_or_insert(Ok(()));
        state.wake_readers();
    }

    /// It has broken off, and nothing more comes.
    pub fn break_off(&self, cause: Cause) {
        let mut state = self.lock();
        state.end.get_or_insert(Err(cause));
        state.wake_readers();
    }
}

impl State {
    fn seal(&mut self) {
        self.sealed.push(Arc::from(self.open.as_slice()));
        self.open.clear();
    }

    /// Gives up chunks that all have read.
    fn drop_read(&mut self) {
        let slowest = self.readers.iter().flatten().map(|place| place.at).min().unwrap_or(u64::MAX);
        let mut gone = 0;
        while let Some(chunk) = self.sealed.get(gone) {
            let end = self.dropped + chunk.len() as u64;
            if end > slowest {
                break;
            }
            self.dropped = end;
            gone += 1;
        }
        self.sealed.drain(..gone);
    }

    fn wake_readers(&mut self) {
        let waiting = self.readers.iter_mut().flatten().filter_map(|place| place.waker.take());
        waiting.for_each(Waker::wake);
    }

    fn wake_writer(&mut self) {
        if let Some(waker) = self.writer.take() {
            waker.wake();
        }
    }
}

impl FillingReader {
    /// The next part; `None` at the end. `copy` takes bytes that have to be copied, and says how many it took.
    ///
    /// # Errors
    /// Why it broke off.
    pub fn poll_part(
        &mut self,
        cx: &mut Context<'_>,
        copy: &mut dyn FnMut(&[u8]) -> usize,
    ) -> Poll<Result<Option<Part>, Cause>> {
        let mut state = self.filling.lock();
        let state = &mut *state;
        let Some(place) = state.readers.get_mut(self.slot).and_then(Option::as_mut) else {
            return Poll::Ready(Ok(None));
        };
        let within = usize::try_from(place.at - state.dropped).unwrap_or(usize::MAX);
        if let Some(chunk) = state.sealed.get(within / CHUNK).filter(|chunk| within % CHUNK < chunk.len()) {
            let range = within % CHUNK..chunk.len();
            place.at += range.len() as u64;
            let part = Part::Shared(Arc::clone(chunk), range);
            if state.outgrown {
                state.drop_read();
                state.wake_writer();
            }
            return Poll::Ready(Ok(Some(part)));
        }
        let open = within.saturating_sub(state.sealed.len() * CHUNK);
        let rest = state.open.get(open..).unwrap_or_default();
        if !rest.is_empty() {
            let count = copy(rest).min(rest.len());
            place.at += count as u64;
            if state.outgrown {
                state.wake_writer();
            }
            return Poll::Ready(Ok(Some(Part::Copied(count))));
        }
        match state.end {
            Some(Ok(())) => Poll::Ready(Ok(None)),
            Some(Err(cause)) => Poll::Ready(Err(cause)),
            None => {
                place.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Whether all has come and was read.
    #[must_use]
    pub fn is_done(&self) -> bool {
        let state = self.filling.lock();
        let at = state.readers.get(self.slot).and_then(Option::as_ref).map(|place| place.at);
        state.end == Some(Ok(())) && at == Some(state.length)
    }
}

impl Drop for FillingReader {
    fn drop(&mut self) {
        let mut state = self.filling.lock();
        if let Some(place) = state.readers.get_mut(self.slot) {
            *place = None;
        }
        if state.outgrown {
            state.drop_read();
        }
        state.wake_writer();
    }
}
