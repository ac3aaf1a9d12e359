//! Heads that come in: of requests, and behind their bodies.

use crate::message::{Cause, Framing, Head};
use crate::tick::Tick;

use super::frames::{missized, old_dependency};
use super::{Engine, Http2Fault, Misshapen, Outcome, Past, Phase, TASKS, broken};
use crate::proxy::http::h2::budget::Toll;
use crate::proxy::http::h2::code::ErrorCode;
use crate::proxy::http::h2::draft::{HeadFault, RequestDraft, TrailersDraft};
use crate::proxy::http::h2::flow::{ReceiveWindow, SendWindow};
use crate::proxy::http::h2::frame::{self, FrameHead, unpadded};
use crate::proxy::http::h2::hpack::{FieldLine, HpackError};
use crate::proxy::http::h2::priority::Priority;
use crate::proxy::http::h2::stream::{Http2Stream, PartialHead};

/// Frames of one head at most, empty ones included (CVE-2024-27316 and its like).
const FRAMES: usize = 16;
/// Bytes of one head at most, compressed or not: what is over the limit of the config is answered, what is over this is not even read.
const BYTES: usize = 64 * 1024;

impl Engine {
    pub(super) fn headers(&mut self, head: FrameHead, payload: &[u8], now: Tick) -> Outcome {
        if head.stream.is_multiple_of(2) {
            return Err(broken("a client's streams have odd numbers"));
        }
        let mut block = unpadded(head, payload).ok_or(broken("more padding than payload"))?;
        if head.has(frame::WITH_PRIORITY) {
            let (priority, rest) =
                block.split_at_checked(5).ok_or(missized("HEADERS end in their priority"))?;
            self.old_priority(head.stream, old_dependency(priority).unwrap_or_default())?;
            block = rest;
        }
        let ends = head.has(frame::END_STREAM);
        if head.has(frame::END_HEADERS) {
            return self.head(head.stream, ends, block, now, now);
        }
        let (bytes, stream) = (block.to_vec(), head.stream);
        self.block = Some(Box::new(PartialHead { stream, ends, bytes, frames: 1, started: now }));
        Ok(())
    }

    pub(super) fn continuation(&mut self, head: FrameHead, payload: &[u8], now: Tick) -> Outcome {
        let Some(mut block) = self.block.take() else { return Ok(()) };
        block.frames += 1;
        if block.frames > FRAMES || block.bytes.len() + payload.len() > BYTES {
            return Err(too_much("a head in too many pieces"));
        }
        block.bytes.extend_from_slice(payload);
        if head.has(frame::END_HEADERS) {
            return self.head(block.stream, block.ends, &block.bytes, block.started, now);
        }
        self.block = Some(block);
        Ok(())
    }

    /// A whole head. It is decoded whatever becomes of it: the tables of both sides must stay the same.
    fn head(&mut self, id: u32, ends: bool, block: &[u8], started: Tick, now: Tick) -> Outcome {
        if id > self.last {
            return self.request(id, ends, block, (started, now));
        }
        let Some(stream) = self.streams.get(&id) else {
            return match self.past(id) {
                Some(Past::Early) => {
                    self.decode(block, |_| {})?;
                    if ends {
                        self.end_early(id, Past::Whole);
                    }
                    self.charge(Toll::Unknown, now)
                }
                // Trailers that were on their way when we reset it.
                Some(Past::Ours) => self.decode(block, |_| {}).and_then(|()| self.charge(Toll::Unknown, now)),
                Some(Past::Whole | Past::Theirs) => Err(Http2Fault {
                    code: ErrorCode::STREAM_CLOSED,
                    why: "HEADERS on a stream that is over",
                }),
                None => Err(broken("the number of a stream is smaller than the last one's")),
            };
        };
        let (was_cut, had_ended) = (stream.cut, stream.ended);
        let mut draft = TrailersDraft::default();
        self.decode(block, |line| draft.line(line))?;
        match was_cut {
            Some(cut) if cut.cause == Cause::ClientGone => {
                return Err(Http2Fault {
                    code: ErrorCode::STREAM_CLOSED,
                    why: "HEADERS on a stream that was reset",
                });
            }
            Some(_) => return self.charge(Toll::Unknown, now),
            None if had_ended => return self.refuse(id, ErrorCode::STREAM_CLOSED, Cause::BadFrame, now),
            None => {}
        }
        let Some(trailers) = draft.finish().filter(|_| ends) else {
            return self.refuse(id, ErrorCode::PROTOCOL_ERROR, Cause::BadHead, now);
        };
        self.end_body(id, trailers, now)
    }

    fn decode(&mut self, block: &[u8], sink: impl FnMut(&FieldLine<'_>)) -> Outcome {
        self.decoder.decode(block, BYTES, sink).map_err(fault_of)
    }

    /// A request.
    fn request(&mut self, id: u32, ends: bool, block: &[u8], (started, now): (Tick, Tick)) -> Outcome {
        self.last = id;
        let mut request = self.space.take_request();
        let framing = self.read(&mut request.head, ends, block).map_err(fault_of)?;
        if matches!(self.phase, Phase::Leaving(last) if id > last) {
            // It was told that this one is not served (RFC 9113 §6.8).
            self.space.return_request(request);
            return self.charge(Toll::Unknown, now);
        }
        (request.started, request.head_read) = (started, now);
        request.framing = match framing {
            Ok(framing) => Ok(framing),
            Err(HeadFault::Refused(cause)) => Err(cause),
            Err(HeadFault::Malformed(cause)) => {
                self.misshapen.push(Misshapen { request, cause });
                return self.refuse(id, ErrorCode::PROTOCOL_ERROR, cause, now);
            }
        };
        if self.is_full() {
            self.space.return_request(request);
            self.reset(id, ErrorCode::REFUSED_STREAM, Cause::Done);
            return self.charge(if self.unanswered > 0 { Toll::Early } else { Toll::Reset }, now);
        }
        let priority = Priority::of(&request.head);
        let receive = ReceiveWindow::new(self.limits.window);
        let mut stream = Http2Stream::new(receive, SendWindow::new(self.peer_window), priority, now);
        stream.ended = ends;
        if let Ok(Framing::Length(length)) = request.framing {
            stream.expected = Some(length);
        }
        stream.arrived = Some(request);
        self.streams.insert(id, stream);
        self.opened.push(id);
        Ok(())
    }

    /// Reads the block of a request into its head.
    fn read(
        &mut self,
        head: &mut Head,
        ends: bool,
        block: &[u8],
    ) -> Result<Result<Framing, HeadFault>, HpackError> {
        let mut scratch = self.space.draft.borrow_mut();
        let mut draft = RequestDraft::new(head, &mut scratch, self.limits.head);
        let mut reading = self.decoder.begin(block, BYTES)?;
        // Where its first line stands that is no pseudo-header field, and the table by which that is read.
        let (mut first, mut changes) = (reading, self.decoder.changes());
        while !draft.is_begun() {
            (first, changes) = (reading, self.decoder.changes());
            if let Some(lines) = self.repeated.find(&reading, changes)
                && draft.lines(lines)
            {
                self.repeated.found();
                self.decoder.end();
                return Ok(draft.finish(ends));
            }
            if !self.decoder.next(&mut reading, |line| draft.line(line))? {
                return Ok(draft.finish(ends));
            }
        }
        while self.decoder.next(&mut reading, |line| draft.line(line))? {}
        let is_repeatable = draft.is_repeatable() && changes == self.decoder.changes();
        let framing = draft.finish(ends);
        if is_repeatable && framing.is_ok() && self.repeated.is_wanted(first.rest()) {
            let counts = first.left() - reading.left();
            // The first line is the Host that its authority has become.
            self.repeated.keep(&first, (changes, counts), |lines| head.copy_run(1, lines));
        }
        Ok(framing)
    }

    /// True when no further stream may be opened: by the protocol's count, or because what was reset has not stopped yet.
    fn is_full(&self) -> bool {
        let most = self.limits.streams as usize;
        self.streams.len() >= most
            && (self.streams.len() >= TASKS
                || self.streams.values().filter(|stream| stream.is_open()).count() >= most)
    }
}

fn fault_of(error: HpackError) -> Http2Fault {
    match error {
        HpackError::Malformed => {
            Http2Fault { code: ErrorCode::COMPRESSION_ERROR, why: "a head can't be decompressed" }
        }
        HpackError::TooLarge => too_much("a head is too large"),
    }
}

fn too_much(why: &'static str) -> Http2Fault {
    Http2Fault { code: ErrorCode::ENHANCE_YOUR_CALM, why }
}
