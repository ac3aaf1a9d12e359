//! Heads that come in: of requests, and behind their bodies.

use crate::tick::Tick;

use super::frames::{missized, old_dependency};
use super::{Engine, Http2Fault, Outcome, Past, Role, broken};
use crate::proxy::http::h2::budget::Toll;
use crate::proxy::http::h2::code::ErrorCode;
use crate::proxy::http::h2::draft::TrailersDraft;
use crate::proxy::http::h2::frame::{self, FrameHead, unpadded};
use crate::proxy::http::h2::hpack::{FieldLine, HpackError};
use crate::proxy::http::h2::stream::PartialHead;

/// Frames of one head at most, empty ones included (CVE-2024-27316 and its like).
const FRAMES: usize = 16;
/// Bytes of one head at most, compressed or not: what is over the limit of the config is answered, what is over this is not even read.
pub(super) const BYTES: usize = 64 * 1024;
/// The same of an answer's, of which what is over the limit ends one stream, and what is over this the connection of many.
const ANSWER_BYTES: usize = 256 * 1024;

impl<R: Role> Engine<R> {
    const MOST_BYTES: usize = if R::ASKS { ANSWER_BYTES } else { BYTES };

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
        if block.frames > FRAMES || block.bytes.len() + payload.len() > Self::MOST_BYTES {
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
            return R::open(self, id, ends, block, (started, now));
        }
        let Some(stream) = self.streams.get(id) else {
            return match self.past(id) {
                // What a backend has answered to a request that was given up on meanwhile, perhaps many requests ago.
                Some(Past::Ours) | None if R::ASKS => self.decode(block, |_| {}),
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
        if stream.cut.is_none() && R::is_head_due(&stream.arrived) {
            return R::head(self, id, ends, block, now);
        }
        let (was_cut, had_ended) = (stream.cut, stream.ended);
        let mut draft = TrailersDraft::default();
        self.decode(block, |line| draft.line(line))?;
        match was_cut {
            Some(cut) if cut.theirs => {
                return Err(Http2Fault {
                    code: ErrorCode::STREAM_CLOSED,
                    why: "HEADERS on a stream that was reset",
                });
            }
            Some(_) => return self.charge(Toll::Unknown, now),
            None if had_ended => return self.refuse(id, ErrorCode::STREAM_CLOSED, R::BAD_FRAME, now),
            None => {}
        }
        let Some(trailers) = draft.finish().filter(|_| ends) else {
            return self.refuse(id, ErrorCode::PROTOCOL_ERROR, R::BAD_HEAD, now);
        };
        self.end_body(id, trailers, now)
    }

    pub(super) fn decode(&mut self, block: &[u8], sink: impl FnMut(&FieldLine<'_>)) -> Outcome {
        self.decoder.decode(block, Self::MOST_BYTES, sink).map_err(fault_of)
    }
}

pub(super) fn fault_of(error: HpackError) -> Http2Fault {
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
