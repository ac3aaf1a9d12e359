//! What goes out on streams: heads, bodies, trailers.

use std::task::{Context, Poll};

use super::{Engine, OUT, QUANTUM, Role};
use crate::proxy::http::h2::frame::{self, FRAME_HEAD, FRAME_SIZE, FrameHead};
use crate::proxy::http::h2::hpack::encode;
use crate::proxy::http::h2::stream::Cut;

impl<R: Role> Engine<R> {
    /// Appends a head that `encode` writes. `ends`: nothing follows it.
    ///
    /// # Errors
    /// The stream was cut.
    pub fn send_head(&mut self, id: u32, ends: bool, encode: impl FnOnce(&mut Vec<u8>)) -> Result<(), Cut> {
        let Some(stream) = self.streams.get_mut(id) else { return Ok(()) };
        if let Some(cut) = stream.cut {
            return Err(cut);
        }
        stream.finished = ends;
        stream.has_begun = true;
        self.append_head(id, ends, encode);
        Ok(())
    }

    /// The same of the head of an answer, which waits while much is unread.
    ///
    /// # Errors
    /// The stream was cut.
    pub fn poll_head(
        &mut self,
        id: u32,
        ends: bool,
        cx: &Context<'_>,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Poll<Result<(), Cut>> {
        let has_room = self.out.len() < self.space.room(OUT, self.limits.memory);
        let Some(stream) = self.streams.get_mut(id) else { return Poll::Ready(Ok(())) };
        if let Some(cut) = stream.cut {
            return Poll::Ready(Err(cut));
        }
        if !has_room {
            stream.wait(cx);
            if !self.waiting.contains(&id) {
                self.waiting.push(id);
            }
            return Poll::Pending;
        }
        stream.finished = ends;
        stream.has_begun = true;
        self.append_head(id, ends, encode);
        Poll::Ready(Ok(()))
    }

    pub(super) fn append_head(&mut self, id: u32, ends: bool, encode: impl FnOnce(&mut Vec<u8>)) {
        let out = self.out.end(&self.space);
        let start = out.len();
        out.extend_from_slice(&[0; FRAME_HEAD]);
        if !std::mem::replace(&mut self.is_encoder_begun, true) {
            encode::table_size_zero(out);
        }
        encode(out);
        let length = out.len() - start - FRAME_HEAD;
        self.queued += length;
        self.space.queue(length);
        let flags = if ends { frame::END_STREAM } else { 0 };
        if length > FRAME_SIZE {
            return split(out, start, id, flags);
        }
        let flags = flags | frame::END_HEADERS;
        let head = FrameHead { length, kind: frame::HEADERS, flags, stream: id };
        out[start..start + FRAME_HEAD].copy_from_slice(&head.bytes());
    }

    /// Appends the whole of a body that `append` appends, at most `most` bytes, and ends the stream. False: there is no room for that many,
    /// or `append` has appended nothing and said so.
    pub fn send_rest(&mut self, id: u32, most: usize, append: impl FnOnce(&mut Vec<u8>) -> bool) -> bool {
        let shared = self
            .send_window
            .room()
            .min(self.space.room(OUT, self.limits.memory).saturating_sub(self.out.len()));
        let Some(stream) = self.streams.get_mut(id).filter(|stream| stream.cut.is_none()) else {
            return false;
        };
        if shared.min(stream.send.room()) < most {
            return false;
        }
        let out = self.out.end(&self.space);
        let start = out.len();
        out.extend_from_slice(&[0; FRAME_HEAD]);
        if !append(out) {
            out.truncate(start);
            return false;
        }
        let length = out.len() - start - FRAME_HEAD;
        let head = FrameHead { length, kind: frame::DATA, flags: frame::END_STREAM, stream: id };
        out[start..start + FRAME_HEAD].copy_from_slice(&head.bytes());
        stream.finished = true;
        stream.send.take(length);
        self.note_data(length);
        true
    }

    /// So many bytes of a body are in the output.
    fn note_data(&mut self, length: usize) {
        self.send_window.take(length);
        self.queued += length;
        self.space.queue(length);
        self.budget.given(length / FRAME_SIZE + 1);
    }

    /// How many bytes of a body may be sent now, at least one.
    ///
    /// # Errors
    /// The stream was cut.
    pub fn poll_room(&mut self, id: u32, cx: &Context<'_>) -> Poll<Result<usize, Cut>> {
        let backlog = self.out.len();
        let most = self.space.room(OUT, self.limits.memory);
        let Some(stream) = self.streams.get_mut(id) else { return Poll::Pending };
        if let Some(cut) = stream.cut {
            return Poll::Ready(Err(cut));
        }
        if stream.turn.0 != self.turn {
            stream.turn = (self.turn, 0);
        }
        let quantum = QUANTUM - stream.turn.1.min(QUANTUM);
        let shared = self.send_window.room().min(most.saturating_sub(backlog)).min(quantum);
        let own = stream.send.room();
        if shared.min(own) > 0 {
            return Poll::Ready(Ok(shared.min(own)));
        }
        stream.wait(cx);
        if own > 0 && !self.waiting.contains(&id) {
            self.waiting.push(id);
        }
        Poll::Pending
    }

    /// True when we have sent its last frame.
    #[must_use]
    pub fn is_finished_stream(&self, id: u32) -> bool {
        self.streams.get(id).is_none_or(|stream| stream.finished)
    }

    /// True when it is its client that a stream waits for, and not its turn: a window is used up.
    #[must_use]
    pub fn is_client_slow(&self, id: u32) -> bool {
        self.send_window.room() == 0 || self.streams.get(id).is_some_and(|stream| stream.send.room() == 0)
    }

    /// Appends a part of a body, of which [`Engine::poll_room`] has said that it may be sent. `ends`: it is the last one.
    pub fn send_data(&mut self, id: u32, mut bytes: &[u8], ends: bool) {
        let Some(stream) = self.streams.get_mut(id).filter(|stream| stream.cut.is_none()) else { return };
        stream.finished = ends;
        stream.send.take(bytes.len());
        stream.turn.1 += bytes.len();
        self.shares = self.shares.wrapping_add(1);
        stream.served = self.shares;
        self.note_data(bytes.len());
        let out = self.out.end(&self.space);
        out.reserve(bytes.len() + FRAME_HEAD * (bytes.len() / FRAME_SIZE + 1));
        loop {
            let (part, rest) = bytes.split_at(bytes.len().min(FRAME_SIZE));
            let flags = if ends && rest.is_empty() { frame::END_STREAM } else { 0 };
            FrameHead { length: part.len(), kind: frame::DATA, flags, stream: id }.write(out);
            out.extend_from_slice(part);
            if rest.is_empty() {
                return;
            }
            bytes = rest;
        }
    }
}

/// Makes several frames of the head that stands behind `start`.
#[cold]
fn split(out: &mut Vec<u8>, start: usize, id: u32, flags: u8) {
    let block = out.split_off(start + FRAME_HEAD);
    out.truncate(start);
    let last = block.len().div_ceil(FRAME_SIZE) - 1;
    for (place, part) in block.chunks(FRAME_SIZE).enumerate() {
        let (kind, mut flags) = if place == 0 { (frame::HEADERS, flags) } else { (frame::CONTINUATION, 0) };
        if place == last {
            flags |= frame::END_HEADERS;
        }
        FrameHead { length: part.len(), kind, flags, stream: id }.write(out);
        out.extend_from_slice(part);
    }
}
