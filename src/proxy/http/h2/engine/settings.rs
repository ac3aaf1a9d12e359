//! What the peer asks for (RFC 9113 §6.5).

use crate::tick::Tick;

use super::frames::missized;
use super::{Engine, Http2Fault, Outcome, Role, broken};
use crate::proxy::http::h2::budget::Toll;
use crate::proxy::http::h2::code::ErrorCode;
use crate::proxy::http::h2::frame::{self, FRAME_SIZE, FrameHead, LARGEST_WINDOW};

impl<R: Role> Engine<R> {
    pub(super) fn settings(&mut self, head: FrameHead, payload: &[u8], now: Tick) -> Outcome {
        if head.stream != 0 {
            return Err(broken("SETTINGS are the connection's"));
        }
        if head.has(frame::ACK) {
            if !payload.is_empty() {
                return Err(missized("an answer to SETTINGS is empty"));
            }
            if self.unanswered > 0 {
                self.unanswered -= 1;
                return Ok(());
            }
            return self.charge(Toll::Unknown, now);
        }
        let (values, rest) = payload.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(missized("SETTINGS have six bytes each"));
        }
        for &[a, b, c, d, e, f] in values {
            self.setting(u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f]))?;
        }
        frame::settings_ack(self.out.end(&self.space));
        let is_first = !std::mem::replace(&mut self.greeted, true);
        if is_first {
            return Ok(());
        }
        // They shift the windows of all streams, which are looked for in all places.
        for _ in 0..=self.streams.places() / 16 {
            self.charge(Toll::Settings, now)?;
        }
        Ok(())
    }

    fn setting(&mut self, name: u16, value: u32) -> Outcome {
        match name {
            frame::ENABLE_PUSH if value > 1 => Err(broken("SETTINGS_ENABLE_PUSH is 0 or 1")),
            frame::INITIAL_WINDOW_SIZE => self.shift_windows(value),
            frame::MAX_FRAME_SIZE if !(FRAME_SIZE as u32..=0xff_ffff).contains(&value) => {
                Err(broken("SETTINGS_MAX_FRAME_SIZE is from 16384 to 16777215"))
            }
            frame::NO_RFC7540_PRIORITIES if value > 1 => {
                Err(broken("SETTINGS_NO_RFC7540_PRIORITIES is 0 or 1"))
            }
            // Our frames are never larger than anybody takes, our table is empty, we push nothing, and how long a head may be
            // is for backends to keep to.
            _ => R::setting(self, name, value),
        }
    }

    /// The windows of all streams towards the peer change by as much as the first size does (RFC 9113 §6.9.2).
    fn shift_windows(&mut self, size: u32) -> Outcome {
        let too_large = Http2Fault {
            code: ErrorCode::FLOW_CONTROL_ERROR,
            why: "SETTINGS_INITIAL_WINDOW_SIZE is too large",
        };
        if size > LARGEST_WINDOW {
            return Err(too_large);
        }
        let change = i64::from(size) - i64::from(self.peer_window);
        self.peer_window = size;
        if change == 0 || self.streams.is_empty() {
            return Ok(());
        }
        for stream in self.streams.values_mut() {
            stream.send.change(change).map_err(|_| too_large)?;
            if change > 0 {
                stream.wake();
            }
        }
        Ok(())
    }
}
