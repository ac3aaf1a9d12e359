//! How streams end, and the connection.

use std::task::{Context, Poll};
use std::time::Duration;

use crate::message::Cause;
use crate::tick::Tick;

use super::{
    DROPPED, EARLY, EARLY_FOR, EarlyStream, Engine, FAREWELL, Http2Fault, Outcome, Past, Phase, REMEMBERED,
    Role,
};
use crate::proxy::http::h2::budget::Toll;
use crate::proxy::http::h2::code::ErrorCode;
use crate::proxy::http::h2::frame;
use crate::proxy::http::h2::stream::{Cut, Http2Stream};

impl<R: Role> Engine<R> {
    /// Says that it will end. Streams that are on their way are served: the first of the two steps (RFC 9113 §6.8).
    pub fn warn(&mut self) {
        if self.phase == Phase::Open && self.over.is_none() {
            self.phase = Phase::Warned;
            frame::goaway(self.out.end(&self.space), frame::LARGEST_WINDOW, ErrorCode::NO_ERROR, "");
            // Its answer tells that whatever comes behind was sent in full knowledge.
            frame::ping(self.out.end(&self.space), 0, FAREWELL);
        }
    }

    /// True as long as it was not said that it will end.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.phase == Phase::Open && self.over.is_none()
    }

    /// True between the two steps.
    #[must_use]
    pub fn is_warned(&self) -> bool {
        self.phase == Phase::Warned
    }

    /// Says which stream is the last that is served.
    pub fn leave(&mut self) {
        if !matches!(self.phase, Phase::Leaving(_)) && self.over.is_none() {
            self.phase = Phase::Leaving(self.last);
            let last = self.last_served();
            frame::goaway(self.out.end(&self.space), last, ErrorCode::NO_ERROR, "");
        }
    }

    /// The last stream of the peer's that is served.
    fn last_served(&self) -> u32 {
        if R::ASKS { 0 } else { self.last }
    }

    /// Ends it for a fault of the peer. Every stream is cut, and is to be told so by [`Engine::wake_cut`].
    pub fn fail(&mut self, fault: Http2Fault) {
        if self.over.is_none() {
            let last = self.last_served();
            frame::goaway(self.out.end(&self.space), last, fault.code, fault.why);
            self.close(fault);
        }
    }

    /// Ends it without a word, since the peer is gone. Else like [`Engine::fail`].
    pub fn close(&mut self, fault: Http2Fault) {
        if self.over.is_some() {
            return;
        }
        self.over = Some(fault);
        for stream in self.streams.values_mut() {
            if R::ASKS && stream.ended {
                // Its answer is here, whole.
                stream.finished = true;
                continue;
            }
            stream.cut.get_or_insert(Cut { code: fault.code, cause: R::GONE, theirs: true });
        }
    }

    /// Wakes some streams of a connection that has ended, `most` of them at once: each has a connection to a backend to close, and when a crowd
    /// goes others are to have their turn in between. True: there are more.
    #[must_use]
    pub fn wake_cut(&mut self, most: usize) -> bool {
        if self.over.is_none() {
            return false;
        }
        let mut asleep = self.streams.values_mut().filter(|stream| stream.is_asleep());
        asleep.by_ref().take(most).for_each(Http2Stream::wake);
        asleep.next().is_some()
    }

    /// Cuts a stream for what the client has done wrong on it.
    pub(super) fn refuse(&mut self, id: u32, code: ErrorCode, cause: Cause, now: Tick) -> Outcome {
        self.reset(id, code, cause);
        // A backend is not asked for fewer things because some of its answers are bad.
        if R::ASKS { Ok(()) } else { self.charge(Toll::Reset, now) }
    }

    /// Cuts a stream, and says so.
    pub fn reset(&mut self, id: u32, code: ErrorCode, cause: Cause) {
        if self.over.is_none() {
            frame::reset(self.out.end(&self.space), id, code);
        }
        if !self.cut(id, Cut { code, cause, theirs: false }) {
            self.remember(id, Past::Ours);
        }
    }

    /// The same of one that is not cut and has not ended.
    pub fn reset_unless_cut(&mut self, id: u32, code: ErrorCode, cause: Cause) {
        if self.streams.get(id).is_some_and(|stream| stream.cut.is_none() && !stream.finished) {
            self.reset(id, code, cause);
        }
    }

    /// Cuts a stream that has a task. False: there is none.
    pub(super) fn cut(&mut self, id: u32, cut: Cut) -> bool {
        let Some(stream) = self.streams.get_mut(id) else { return false };
        self.has_cut = true;
        stream.cut.get_or_insert(cut);
        let held = std::mem::take(&mut stream.held).len();
        stream.wake();
        self.space.release(held);
        self.give_connection(held);
        true
    }

    /// True when a stream is over.
    #[must_use]
    pub fn is_cut(&self, id: u32) -> bool {
        self.streams.get(id).is_some_and(|stream| stream.cut.is_some())
    }

    /// Ready, with how, when a stream was cut.
    #[inline]
    pub fn poll_cut(&mut self, id: u32, cx: &Context<'_>) -> Poll<Cut> {
        let over = self.over;
        let gone =
            || Cut { code: over.map_or(ErrorCode::CANCEL, |over| over.code), cause: R::GONE, theirs: true };
        let Some(stream) = self.streams.get_mut(id) else { return Poll::Ready(gone()) };
        if let Some(cut) = stream.cut {
            return Poll::Ready(cut);
        }
        stream.wait(cx);
        Poll::Pending
    }

    /// The task of a stream has ended. What it has not finished is cut. `now` is asked for where that matters.
    pub fn release(&mut self, id: u32, now: impl FnOnce() -> Tick) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        if stream.cut.is_none() && !(stream.finished && (stream.ended || !R::ASKS)) {
            // What is said or heard on it ends in the middle of nowhere.
            let code = R::ABANDONED;
            if self.over.is_none() {
                frame::reset(self.out.end(&self.space), id, code);
            }
            stream.cut = Some(Cut { code, cause: Cause::Done, theirs: false });
        }
        let (cut, ended, held) = (stream.cut, stream.ended, stream.held.len());
        self.streams.remove(id);
        self.space.release(held);
        let is_theirs = cut.is_some_and(|cut| cut.theirs);
        let past = match cut {
            None => Past::Whole,
            Some(_) if is_theirs => Past::Theirs,
            Some(_) => Past::Ours,
        };
        self.give_connection(held);
        if cut.is_none() {
            self.budget.answered();
        }
        if ended || past != Past::Whole {
            return self.remember(id, past);
        }
        if self.early.len() >= EARLY {
            self.reset_oldest();
        }
        self.early.push_back(EarlyStream { id, since: now(), dropped: 0 });
    }

    /// Resets the streams that were answered early and have had the time to end by themselves: the rest of their requests is of no use
    /// (RFC 9113 §8.1). Until then what they send is dropped, as clients may throw an answer away that is followed by a reset. When the next one is
    /// due, if there is one.
    pub fn reset_early(&mut self, now: Tick) -> Option<Duration> {
        while let Some(stream) = self.early.front() {
            match EARLY_FOR.checked_sub(now.since(stream.since)) {
                Some(left) if !left.is_zero() => return Some(left),
                _ => self.reset_oldest(),
            }
        }
        None
    }

    fn reset_oldest(&mut self) {
        if let Some(stream) = self.early.pop_front() {
            self.reset(stream.id, ErrorCode::NO_ERROR, Cause::Done);
        }
    }

    /// So many bytes of a stream that was answered early are dropped. Its client may send as many more: some of them read no answer before all is
    /// sent.
    pub(super) fn drop_early(&mut self, id: u32, bytes: u32) {
        let Some(stream) = self.early.iter_mut().find(|stream| stream.id == id) else { return };
        stream.dropped += bytes;
        if stream.dropped >= DROPPED {
            frame::window_update(self.out.end(&self.space), id, std::mem::take(&mut stream.dropped));
        }
    }

    /// A stream that was answered early has ended by itself, like this.
    pub(super) fn end_early(&mut self, id: u32, past: Past) {
        self.early.retain(|stream| stream.id != id);
        self.remember(id, past);
    }

    /// True while some stream was answered early.
    #[must_use]
    pub fn is_early(&self) -> bool {
        !self.early.is_empty()
    }

    fn remember(&mut self, id: u32, past: Past) {
        if self.past.len() == REMEMBERED {
            self.past.pop_front();
        }
        self.past.push_back((id, past));
    }

    /// How a stream that has no task has ended; `None`: it was never opened, or that is long ago.
    pub(super) fn past(&self, id: u32) -> Option<Past> {
        if self.early.iter().any(|stream| stream.id == id) {
            return Some(Past::Early);
        }
        self.past.iter().rev().find(|(other, _)| *other == id).map(|(_, past)| *past)
    }
}
