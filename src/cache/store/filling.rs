//! A body that is stored while it comes, and read by many at once, each at its own speed.
//!
//! Invariants, under the one lock:
//!
//! 1. `dropped` + the sealed chunks + the open one are all that has come, in its order. Sealed chunks never change and are shared with
//!    those who send them; only the open one grows, and what is read of it is copied.
//! 2. A reader's place is at least `dropped`: as long as the body is kept nothing is dropped, and once it has outgrown what is kept, or the
//!    room that there is, nobody joins any more, and a chunk goes only when all have read it.
//! 3. Once it has outgrown, the writer is at most `window` ahead of the slowest reader, and a piece: what it had room for, from a chunk to
//!    [`WINDOW`].
//! 4. Its room is made before its bytes are there. What is whole takes it along.
//! 5. It ends once: whole or broken. Whoever has read all of a broken one is told so, and never that it is whole.
//! 6. Every change wakes all who wait for one.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::chunk::Chunk;
use crate::message::{Cause, WhyNot};

use super::body::StoredBody;
use super::held::CHUNK;
use super::room::BodyRoom;
use super::weight;

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
    room: BodyRoom,
    dropped: u64,
    /// All but the last one of a whole body have `CHUNK` bytes.
    sealed: Vec<Chunk>,
    /// Nobody else has it; so many of its bytes have come.
    open: Option<(Chunk, usize)>,
    length: u64,
    outgrown: Option<WhyNot>,
    window: u64,
    /// All of it, once it was handed out: its bytes are held there.
    whole: Option<StoredBody>,
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
#[derive(Clone, Debug)]
pub enum Part {
    /// Bytes of a chunk that never changes.
    Shared(Chunk, Range<usize>),
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
    /// An empty one. `room`: for `expected`, if that is known; `most`: bytes that are kept at most; `expected`: how many will come.
    #[must_use]
    pub fn new(room: BodyRoom, most: u64, expected: Option<u64>) -> Arc<Filling> {
        let state = State {
            room,
            dropped: 0,
            sealed: Vec::new(),
            open: None,
            length: 0,
            outgrown: None,
            window: WINDOW,
            whole: None,
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
        if state.outgrown.is_some() || matches!(state.end, Some(Err(_))) {
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

    /// Adds what has come; nothing beyond what was expected.
    pub fn append(&self, bytes: &[u8]) {
        let mut state = self.lock();
        let left = self.expected.map_or(u64::MAX, |expected| expected.saturating_sub(state.length));
        let bytes = &bytes[..bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
        if state.outgrown.is_none()
            && let Err(why) = self.make_room(&mut state, bytes.len() as u64)
        {
            state.outgrown = Some(why);
            state.window = state.room.bytes().clamp(CHUNK as u64, WINDOW);
        }
        state.append(bytes, self.expected);
        if state.outgrown.is_some() {
            state.drop_read();
        }
        state.wake_readers();
    }

    /// Makes room for so many bytes more.
    fn make_room(&self, state: &mut State, more: u64) -> Result<(), WhyNot> {
        let length = state.length + more;
        if length > self.most {
            return Err(WhyNot::TooLarge);
        }
        // What may have no end yet gets whole chunks.
        state.room.reach(if self.expected.is_some() { length } else { length.next_multiple_of(CHUNK as u64) })
    }

    /// Ready when more may be added, and then whether anybody reads it.
    pub fn poll_room(&self, cx: &mut Context<'_>) -> Poll<bool> {
        let mut state = self.lock();
        let mut places = state.readers.iter().flatten().map(|place| place.at);
        let slowest = places.next().map(|first| places.fold(first, u64::min));
        let is_full =
            state.outgrown.is_some() && slowest.is_some_and(|slowest| state.length - slowest >= state.window);
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

    /// Why it is not kept; `None`: it is.
    #[must_use]
    pub fn outgrown(&self) -> Option<WhyNot> {
        self.lock().outgrown
    }

    /// Whether nothing comes of it any more: it broke off, or it has ended and was too large to be kept.
    pub(super) fn is_spent(&self) -> bool {
        let state = self.lock();
        state.end.is_some_and(|end| end.is_err() || state.outgrown.is_some())
    }

    /// Whether nobody reads it now. Whoever is told so is woken when the next reader leaves.
    pub fn is_deserted(&self, cx: &mut Context<'_>) -> bool {
        let mut state = self.lock();
        state.writer = Some(cx.waker().clone());
        state.readers.iter().all(Option::is_none)
    }

    /// All that has come, if it is kept. Nothing more may come then.
    #[must_use]
    pub fn body(&self) -> Option<StoredBody> {
        let mut state = self.lock();
        if state.outgrown.is_some() || matches!(state.end, Some(Err(_))) {
            return None;
        }
        if state.whole.is_none() {
            state.seal();
            let held = state.room.hand_over();
            state.whole = Some(StoredBody::new(state.sealed.clone(), held));
        }
        state.whole.clone()
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
    fn append(&mut self, mut bytes: &[u8], expected: Option<u64>) {
        while !bytes.is_empty() {
            let (mut chunk, filled) = self.open.take().unwrap_or_else(|| (self.chunk(expected), 0));
            let (now, later) = bytes.split_at((chunk.len() - filled).min(bytes.len()));
            let room = chunk.get_mut().expect("nobody has an open chunk beside it");
            room[filled..filled + now.len()].copy_from_slice(now);
            bytes = later;
            self.length += now.len() as u64;
            self.open = Some((chunk, filled + now.len()));
            if self.open_bytes().len() == CHUNK {
                self.seal();
            }
        }
    }

    /// A new chunk, as long as what is expected of the rest.
    fn chunk(&self, expected: Option<u64>) -> Chunk {
        let rest = expected.map_or(0, |expected| expected.saturating_sub(self.length));
        match usize::try_from(rest) {
            Ok(rest @ 1..CHUNK) => Chunk::zeroed(rest),
            _ => self.room.holdings().chunk(),
        }
    }

    /// What has come of the open chunk.
    fn open_bytes(&self) -> &[u8] {
        self.open.as_ref().and_then(|(chunk, filled)| chunk.get(..*filled)).unwrap_or_default()
    }

    fn seal(&mut self) {
        let Some((chunk, filled)) = self.open.take() else { return };
        if filled == chunk.len() {
            self.sealed.push(chunk);
        } else {
            self.sealed.push(Chunk::of(&chunk[..filled]));
            self.room.holdings().take_back(chunk);
        }
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
        for chunk in self.sealed.drain(..gone) {
            self.room.holdings().take_back(chunk);
        }
        let left = (self.sealed.len() as u64 + 1) * weight::chunk(CHUNK as u64);
        self.room.shrink(left.max(self.window));
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

impl Drop for State {
    fn drop(&mut self) {
        let open = self.open.take().map(|(chunk, _)| chunk);
        for chunk in self.sealed.drain(..).chain(open) {
            self.room.holdings().take_back(chunk);
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
            let part = Part::Shared(chunk.clone(), range);
            if state.outgrown.is_some() {
                state.drop_read();
                state.wake_writer();
            }
            return Poll::Ready(Ok(Some(part)));
        }
        let open = within.saturating_sub(state.sealed.len() * CHUNK);
        let rest =
            state.open.as_ref().and_then(|(chunk, filled)| chunk.get(open..*filled)).unwrap_or_default();
        if !rest.is_empty() {
            let count = copy(rest).min(rest.len());
            place.at += count as u64;
            if state.outgrown.is_some() {
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
        if state.outgrown.is_some() {
            state.drop_read();
        }
        state.wake_writer();
    }
}
