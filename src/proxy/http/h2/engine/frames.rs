//! What comes in, frame by frame.

use crate::tick::Tick;

use super::{Engine, FAREWELL, Http2Fault, Outcome, Phase, Role, broken};
use crate::proxy::http::h2::budget::Toll;
use crate::proxy::http::h2::code::ErrorCode;
use crate::proxy::http::h2::flow::Overrun;
use crate::proxy::http::h2::frame::{self, FRAME_HEAD, FRAME_SIZE, FrameHead, PREFACE};
use crate::proxy::http::h2::priority::Priority;
use crate::proxy::http::h2::stream::Cut;

/// A frame of a wrong size (RFC 9113 §4.2).
pub(super) fn missized(why: &'static str) -> Http2Fault {
    Http2Fault { code: ErrorCode::FRAME_SIZE_ERROR, why }
}

impl<R: Role> Engine<R> {
    /// Takes in what came. Gives how many bytes it has used: the rest is the beginning of a frame.
    pub fn receive(&mut self, input: &[u8], now: Tick) -> usize {
        let mut used = 0;
        while self.over.is_none() {
            match self.step(&input[used..], now) {
                Ok(0) => break,
                Ok(count) => used += count,
                Err(fault) => self.fail(fault),
            }
        }
        if self.over.is_some() { input.len() } else { used }
    }

    /// Takes in one frame, or a part of the preface; 0: there is not enough of it.
    fn step(&mut self, input: &[u8], now: Tick) -> Result<usize, Http2Fault> {
        if self.preface < PREFACE.len() {
            let expected = &PREFACE[self.preface..];
            let count = expected.len().min(input.len());
            if input[..count] != expected[..count] {
                return Err(broken("this is not how HTTP/2 begins"));
            }
            self.preface += count;
            return Ok(count);
        }
        let Some(head) = FrameHead::parse(input) else { return Ok(0) };
        if head.length > FRAME_SIZE {
            return Err(missized("a frame is larger than we take"));
        }
        let end = FRAME_HEAD + head.length;
        let Some(payload) = input.get(FRAME_HEAD..end) else { return Ok(0) };
        self.frame(head, payload, now)?;
        Ok(end)
    }

    fn frame(&mut self, head: FrameHead, payload: &[u8], now: Tick) -> Outcome {
        if let Some(block) = &self.block {
            if head.kind != frame::CONTINUATION || head.stream != block.stream {
                return Err(broken("a head is not complete"));
            }
            return self.continuation(head, payload, now);
        }
        if !self.greeted && (head.kind != frame::SETTINGS || head.has(frame::ACK)) {
            return Err(broken("SETTINGS come first"));
        }
        match head.kind {
            frame::DATA => self.data(head, payload, now),
            frame::HEADERS => self.headers(head, payload, now),
            frame::PRIORITY => {
                let depends = old_dependency(payload).ok_or(missized("PRIORITY has five bytes"))?;
                self.old_priority(head.stream, depends)?;
                self.charge(Toll::Priority, now)
            }
            frame::RST_STREAM => self.reset_by_peer(head, payload, now),
            frame::SETTINGS => self.settings(head, payload, now),
            frame::PUSH_PROMISE => Err(broken("nobody pushes here")),
            frame::PING => self.ping(head, payload, now),
            frame::GOAWAY if head.stream != 0 => Err(broken("GOAWAY is the connection's")),
            frame::GOAWAY if payload.len() < 8 => Err(missized("GOAWAY has eight bytes")),
            frame::GOAWAY => {
                let last = payload.first_chunk().map_or(0, |last| u32::from_be_bytes(*last));
                R::go_away(self, last & frame::LARGEST_WINDOW, now)
            }
            frame::WINDOW_UPDATE => self.window_update(head, payload, now),
            frame::CONTINUATION => Err(broken("CONTINUATION of nothing")),
            frame::PRIORITY_UPDATE => self.priority_update(head, payload, now),
            // RFC 9113 §5.5.
            _ => self.charge(Toll::Unknown, now),
        }
    }

    /// A priority of the old kind says nothing any more, but for this (RFC 9113 §5.3.2, RFC 7540 §5.3.1).
    pub(super) fn old_priority(&self, stream: u32, depends: u32) -> Outcome {
        match stream {
            0 => Err(broken("PRIORITY is a stream's")),
            id if id == depends => Err(broken("a stream depends on itself")),
            _ => Ok(()),
        }
    }

    fn ping(&mut self, head: FrameHead, payload: &[u8], now: Tick) -> Outcome {
        if head.stream != 0 {
            return Err(broken("PING is the connection's"));
        }
        let payload: [u8; 8] = payload.try_into().map_err(|_| missized("PING has eight bytes"))?;
        if !head.has(frame::ACK) {
            frame::ping(self.out.end(&self.space), frame::ACK, payload);
            return self.charge(Toll::Ping, now);
        }
        if payload == FAREWELL && self.phase == Phase::Warned {
            self.leave();
            return Ok(());
        }
        if R::pong(self, payload) {
            return Ok(());
        }
        self.charge(Toll::Unknown, now)
    }

    fn reset_by_peer(&mut self, head: FrameHead, payload: &[u8], now: Tick) -> Outcome {
        let code: [u8; 4] = payload.try_into().map_err(|_| missized("RST_STREAM has four bytes"))?;
        if head.stream == 0 || self.is_idle(head.stream) {
            return Err(broken("there is no stream to reset"));
        }
        let cut = Cut { code: ErrorCode(u32::from_be_bytes(code)), cause: R::GONE, theirs: true };
        R::reset(self, head.stream, cut, now)
    }

    fn window_update(&mut self, head: FrameHead, payload: &[u8], now: Tick) -> Outcome {
        let more: [u8; 4] = payload.try_into().map_err(|_| missized("WINDOW_UPDATE has four bytes"))?;
        let more = u32::from_be_bytes(more) & frame::LARGEST_WINDOW;
        if head.stream == 0 {
            if more == 0 {
                return Err(broken("a window grows by nothing"));
            }
            let was_closed = self.send_window.room() == 0;
            let overrun = |_: Overrun| Http2Fault {
                code: ErrorCode::FLOW_CONTROL_ERROR,
                why: "the window is too large",
            };
            self.send_window.change(more.into()).map_err(overrun)?;
            if was_closed && self.out.len() < super::OUT {
                self.wake_waiting();
            }
            return self.charge(Toll::Window, now);
        }
        if self.is_idle(head.stream) {
            return Err(broken("there is no stream of that number"));
        }
        let Some(stream) = self.streams.get_mut(head.stream).filter(|stream| stream.cut.is_none()) else {
            return self.charge(Toll::Window, now);
        };
        if more == 0 {
            return self.refuse(head.stream, ErrorCode::PROTOCOL_ERROR, R::BAD_FRAME, now);
        }
        if stream.send.change(more.into()).is_err() {
            return self.refuse(head.stream, ErrorCode::FLOW_CONTROL_ERROR, R::BAD_FRAME, now);
        }
        stream.wake();
        self.charge(Toll::Window, now)
    }

    fn priority_update(&mut self, head: FrameHead, payload: &[u8], now: Tick) -> Outcome {
        if head.stream != 0 {
            return Err(broken("PRIORITY_UPDATE is the connection's"));
        }
        let (id, value) = payload.split_first_chunk().ok_or(missized("PRIORITY_UPDATE names a stream"))?;
        let id = u32::from_be_bytes(*id) & frame::LARGEST_WINDOW;
        if id == 0 {
            return Err(broken("PRIORITY_UPDATE names a stream"));
        }
        // One that is not there yet is not waited for: its head says the same (RFC 9218 §7).
        if let Some(stream) = self.streams.get_mut(id) {
            stream.priority = Priority::parse(value);
        }
        self.charge(Toll::Priority, now)
    }

    /// True for the number of a stream that was not opened yet (RFC 9113 §5.1.1), or can't be.
    pub(super) fn is_idle(&self, id: u32) -> bool {
        id > self.last || id.is_multiple_of(2)
    }
}

/// What a priority of the old kind depends on; `None`: it is none.
pub(super) fn old_dependency(payload: &[u8]) -> Option<u32> {
    let &[a, b, c, d, _] = payload else { return None };
    Some(u32::from_be_bytes([a, b, c, d]) & frame::LARGEST_WINDOW)
}
