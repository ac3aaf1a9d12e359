//! Bodies that come in, and the windows that bound them.

use std::task::{Context, Poll};

use crate::message::Cause;
use crate::net::{Buffer, FreeList};
use crate::tick::Tick;

use super::{Engine, Http2Fault, Outcome, Past, Role, broken};
use crate::proxy::http::h2::budget::Toll;
use crate::proxy::http::h2::code::ErrorCode;
use crate::proxy::http::h2::frame::{self, FrameHead, unpadded};
use crate::proxy::http::h2::stream::Http2Stream;

/// DATA shorter than this is hardly worth its frame.
const TINY: usize = 256;
/// Bytes of a body that are read at once.
const PIECE: usize = 64 * 1024;
/// The window of a connection to a backend, at most: more than all of its streams together may use.
const SHARED_WINDOW: u32 = 1 << 30;
/// Memory that a stream which holds nothing may keep for what comes.
const KEPT: usize = 16 * 1024;

/// What comes next of a body.
pub enum Inflow {
    /// Bytes.
    Piece(Buffer),
    /// Its end.
    End,
}

impl<R: Role> Engine<R> {
    pub(super) fn data(&mut self, head: FrameHead, payload: &[u8], now: Tick) -> Outcome {
        let id = head.stream;
        if id == 0 || self.is_idle(id) {
            return Err(broken("DATA on a stream that is not open"));
        }
        // A payload has at most 16 KiB.
        let whole = payload.len() as u32;
        let overrun =
            || Http2Fault { code: ErrorCode::FLOW_CONTROL_ERROR, why: "more DATA than the window allows" };
        self.receive_window.take(whole).map_err(|_| overrun())?;
        self.widen();
        let content = unpadded(head, payload).ok_or(broken("more padding than payload"))?;
        let ends = head.has(frame::END_STREAM);
        if content.is_empty() && !ends {
            self.charge(Toll::EmptyData, now)?;
        }
        let Some(stream) = self.streams.get_mut(id) else {
            self.give_connection(payload.len());
            return match self.past(id) {
                Some(Past::Early) if ends => {
                    self.end_early(id, Past::Whole);
                    Ok(())
                }
                Some(Past::Early) => {
                    self.drop_early(id, whole);
                    if content.len() >= TINY { Ok(()) } else { self.charge_tiny(now) }
                }
                // What was on its way.
                Some(Past::Ours) if content.len() >= TINY => Ok(()),
                Some(Past::Ours) => self.charge_tiny(now),
                Some(Past::Whole | Past::Theirs) | None => {
                    self.refuse(id, ErrorCode::STREAM_CLOSED, R::BAD_FRAME, now)
                }
            };
        };
        if let Some(cut) = stream.cut {
            self.give_connection(payload.len());
            if cut.theirs {
                return Err(Http2Fault {
                    code: ErrorCode::STREAM_CLOSED,
                    why: "DATA on a stream that was reset",
                });
            }
            return if content.len() >= TINY { Ok(()) } else { self.charge_tiny(now) };
        }
        let verdict = if R::is_head_due(&stream.arrived) {
            Err((ErrorCode::PROTOCOL_ERROR, R::BAD_FRAME))
        } else if stream.ended {
            Err((ErrorCode::STREAM_CLOSED, R::BAD_FRAME))
        } else if stream.receive.take(whole).is_err() {
            Err((ErrorCode::FLOW_CONTROL_ERROR, R::BAD_FRAME))
        } else {
            match stream.expected.map(|left| left.checked_sub(content.len() as u64)) {
                None => Ok(None),
                Some(Some(left)) if !ends || left == 0 => Ok(Some(left)),
                // The body is not as long as its length says (RFC 9113 §8.1.1).
                Some(_) => Err((ErrorCode::PROTOCOL_ERROR, R::BAD_LENGTH)),
            }
        };
        match verdict {
            Ok(left) => stream.expected = left,
            Err((code, cause)) => {
                self.give_connection(payload.len());
                return self.refuse(id, code, cause, now);
            }
        }
        let is_tiny = content.len() < TINY && !ends && !stream.held.is_empty();
        stream.held.extend(content);
        stream.ended = ends;
        stream.wake();
        // Nobody reads padding.
        self.give(id, payload.len() - content.len());
        if !self.space.hold(content.len(), self.receive_window.held(), self.limits.memory) {
            return self.refuse(id, ErrorCode::ENHANCE_YOUR_CALM, Cause::LocalShortage, now);
        }
        if is_tiny { self.charge_tiny(now) } else { Ok(()) }
    }

    /// DATA came that was hardly worth its frame. A backend may well have little to say at a time, and its windows bound what lies here.
    fn charge_tiny(&mut self, now: Tick) -> Outcome {
        if R::ASKS { Ok(()) } else { self.charge(Toll::TinyData, now) }
    }

    /// The trailer section has come, and with it the end of a body.
    pub(super) fn end_body(&mut self, id: u32, trailers: Vec<u8>, now: Tick) -> Outcome {
        let Some(stream) = self.streams.get_mut(id) else { return Ok(()) };
        if stream.expected.is_some_and(|left| left > 0) {
            return self.refuse(id, ErrorCode::PROTOCOL_ERROR, R::BAD_LENGTH, now);
        }
        stream.trailers = trailers;
        stream.ended = true;
        stream.wake();
        Ok(())
    }

    /// What comes next of the body of a stream.
    ///
    /// # Errors
    /// Why nothing more comes of it.
    pub fn poll_body(
        &mut self,
        id: u32,
        cx: &Context<'_>,
        buffers: &FreeList,
    ) -> Poll<Result<Inflow, Cause>> {
        let Some(stream) = self.streams.get_mut(id) else { return Poll::Ready(Err(R::GONE)) };
        if let Some(cut) = stream.cut {
            return Poll::Ready(Err(cut.cause));
        }
        if stream.held.is_empty() {
            if stream.ended {
                return Poll::Ready(Ok(Inflow::End));
            }
            stream.wait(cx);
            return Poll::Pending;
        }
        let (front, _) = stream.held.as_slices();
        let piece = buffers.filled(&front[..front.len().min(buffers.size().min(PIECE))]);
        self.take(id, piece.len());
        Poll::Ready(Ok(Inflow::Piece(piece)))
    }

    /// Ready when [`Engine::read_bytes`] would find something: bytes, the end, or that the stream was cut.
    pub fn poll_readable(&mut self, id: u32, cx: &Context<'_>) -> Poll<()> {
        let Some(stream) = self.streams.get_mut(id) else { return Poll::Ready(()) };
        if stream.cut.is_some() || stream.ended || !stream.held.is_empty() {
            return Poll::Ready(());
        }
        stream.wait(cx);
        Poll::Pending
    }

    /// The same without being woken.
    #[must_use]
    pub fn is_readable(&self, id: u32) -> bool {
        let is = |stream: &Http2Stream<R::Arrived>| {
            stream.cut.is_some() || stream.ended || !stream.held.is_empty()
        };
        self.streams.get(id).is_none_or(is)
    }

    /// Reads what is here of the body of a stream: how many bytes; 0: there is nothing, or no more.
    ///
    /// # Errors
    /// Why nothing more comes of it.
    pub fn read_bytes(&mut self, id: u32, space: &mut [u8]) -> Result<usize, Cause> {
        let Some(stream) = self.streams.get_mut(id) else { return Err(R::GONE) };
        if let Some(cut) = stream.cut {
            return Err(cut.cause);
        }
        let (front, _) = stream.held.as_slices();
        let count = front.len().min(space.len());
        space[..count].copy_from_slice(&front[..count]);
        self.take(id, count);
        Ok(count)
    }

    /// The first bytes that lie here of a stream were taken.
    fn take(&mut self, id: u32, count: usize) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        stream.held.drain(..count);
        self.space.release(count);
        stream.drained |= stream.held.is_empty();
        if stream.held.is_empty() && stream.held.capacity() > KEPT {
            stream.held = std::collections::VecDeque::new();
        }
        self.give(id, count);
        self.budget.taken(count);
    }

    /// True when the body of a stream has come whole and nothing of it is left.
    #[must_use]
    pub fn is_body_done(&self, id: u32) -> bool {
        self.streams.get(id).is_none_or(|stream| stream.ended && stream.held.is_empty())
    }

    /// The trailer lines of a stream's body, when that has come whole and nothing of it is left; `None`: it has not, or it was cut.
    #[must_use]
    pub fn end_of(&self, id: u32) -> Option<Vec<u8>> {
        let Some(stream) = self.streams.get(id) else { return Some(Vec::new()) };
        let is_done = stream.cut.is_none() && stream.ended && stream.held.is_empty();
        is_done.then(|| stream.trailers.clone())
    }

    /// The trailer lines of a stream's body.
    #[must_use]
    pub fn trailers(&self, id: u32) -> Vec<u8> {
        self.streams.get(id).map_or_else(Vec::new, |stream| stream.trailers.clone())
    }

    /// So many bytes of a stream's body are no longer here.
    fn give(&mut self, id: u32, count: usize) {
        if let Some(stream) = self.streams.get_mut(id)
            && !stream.ended
            && stream.cut.is_none()
        {
            let window = &mut stream.receive;
            if let Some(mut more) = window.give(count as u32) {
                // Half of it was used, and all that had come was taken at some time since the last announcement: it may be what the client waits
                // for. What it allows is bounded by the connection's window, which is counted.
                if std::mem::take(&mut stream.drained) {
                    more += window.grow(window.size().saturating_mul(2).min(self.limits.window_max));
                }
                frame::window_update(self.out.end(&self.space), id, more);
            }
        }
        self.give_connection(count);
    }

    /// So many bytes that came on the connection are no longer here.
    pub(super) fn give_connection(&mut self, count: usize) {
        // Nothing that lies here has more bytes than a window.
        if let Some(more) = self.receive_window.give(count as u32)
            && self.over.is_none()
        {
            let grown = self.grow().unwrap_or_default();
            frame::window_update(self.out.end(&self.space), 0, more + grown);
        }
    }

    /// Makes the connection's window larger: half of it was used. By how much it opens then.
    fn grow(&mut self) -> Option<u32> {
        let window = &mut self.receive_window;
        let size = window.size();
        // Answers of one connection go to many clients, so those who take nothing are to hold up nobody else: their streams' own windows bound them.
        let most = if R::ASKS { SHARED_WINDOW } else { self.limits.window_max.saturating_mul(2) };
        let larger = size.saturating_mul(2).min(most);
        (larger > size && self.space.grant(larger - size, self.limits.memory)).then(|| window.grow(larger))
    }

    /// Opens the connection's window wider before it is used up, whoever uses it: it must not be one stream whose backend takes nothing
    /// that keeps all others waiting. That stream's own window does not grow.
    fn widen(&mut self) {
        let window = &self.receive_window;
        if window.left() < window.size() / 2
            && let Some(more) = self.grow()
        {
            frame::window_update(self.out.end(&self.space), 0, more);
        }
    }
}
