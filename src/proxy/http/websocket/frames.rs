//! Where the frames of a WebSocket begin and end (RFC 6455 §5.2), in one direction.
//!
//! Only heads are looked at: what a frame is about, whether it is a part of a message, and what extensions make of its payload does
//! not matter here. A Close may stand between any two frames, also between the fragments of a message (§5.4).

use crate::net::relay::Follow;

/// A frame's head is at most so long: two bytes, a length of 64 bits, a masking key.
const HEAD: usize = 14;
const CLOSE: u8 = 8;
/// Control frames have this bit in their opcode.
const CONTROL: u8 = 8;
/// The most that the payload of a control frame has, in bytes.
const CONTROL_MOST: u64 = 125;

/// Who sends the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameSender {
    /// It masks what it sends (§5.1).
    Client,
    /// It never does.
    Backend,
}

/// The frames of one direction.
#[derive(Clone, Copy, Debug)]
pub struct Frames {
    sender: FrameSender,
    state: State,
    /// What there is of a head.
    head: [u8; HEAD],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// So many bytes of a head are there; 0: a frame has ended.
    Head(u8),
    /// So many bytes are left of a payload. `closes`: of a Close.
    Payload { left: u64, closes: bool },
    /// A Close is over. Nothing follows it (§5.5.1).
    Closed,
    /// It was no frame.
    Lost,
}

impl Frames {
    /// From the first byte behind the 101 on.
    #[must_use]
    pub fn of(sender: FrameSender) -> Frames {
        Frames { sender, state: State::Head(0), head: [0; HEAD] }
    }

    /// Takes in a part of one head or one payload, and says how long it was.
    #[inline]
    fn step(&mut self, bytes: &[u8]) -> usize {
        match self.state {
            State::Payload { left, closes } => {
                let count = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                self.go_on(left - count as u64, closes);
                count
            }
            State::Head(have) => {
                let (have, mut count) = (usize::from(have), needed(bytes));
                if have == 0 && count <= bytes.len() {
                    self.begin(&bytes[..count]);
                    return count;
                }
                count = 0;
                while have + count < needed(&self.head[..have + count]) && count < bytes.len() {
                    self.head[have + count] = bytes[count];
                    count += 1;
                }
                let head = self.head;
                let head = &head[..have + count];
                if head.len() < needed(head) {
                    self.state = State::Head(head.len() as u8);
                } else {
                    self.begin(head);
                }
                count
            }
            State::Closed | State::Lost => bytes.len(),
        }
    }

    /// A head is whole.
    #[inline]
    fn begin(&mut self, head: &[u8]) {
        match read(head, self.sender) {
            Some((left, closes)) => self.go_on(left, closes),
            None => self.state = State::Lost,
        }
    }

    #[inline]
    fn go_on(&mut self, left: u64, closes: bool) {
        self.state = match (left, closes) {
            (0, true) => State::Closed,
            (0, false) => State::Head(0),
            _ => State::Payload { left, closes },
        };
    }
}

/// How long a head is, as far as what there is of it tells.
#[inline]
fn needed(head: &[u8]) -> usize {
    let Some(second) = head.get(1) else { return 2 };
    let length = match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    2 + length + if second & 0x80 == 0 { 0 } else { 4 }
}

/// The length of the payload, and whether the frame is a Close. `None`: no frame has such a head.
#[inline]
fn read(head: &[u8], sender: FrameSender) -> Option<(u64, bool)> {
    let (&[first, second], rest) = head.split_first_chunk()?;
    let is_masked = second & 0x80 != 0;
    let length = match second & 0x7f {
        126 => u64::from(u16::from_be_bytes(*rest.first_chunk()?)),
        127 => u64::from_be_bytes(*rest.first_chunk()?),
        short => u64::from(short),
    };
    // The shortest form that holds it (§5.2).
    let is_short = match second & 0x7f {
        126 => length > CONTROL_MOST,
        127 => length > u64::from(u16::MAX) && length >> 63 == 0,
        _ => true,
    };
    let is_control = first & CONTROL != 0;
    // Not in fragments (§5.5).
    let is_whole = first & 0x80 != 0;
    let is_good = is_masked == (sender == FrameSender::Client)
        && is_short
        && (!is_control || is_whole && length <= CONTROL_MOST);
    is_good.then_some((length, first & 0x0f == CLOSE))
}

impl Follow for Frames {
    #[inline]
    fn see(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let count = self.step(bytes);
            bytes = &bytes[count..];
        }
    }

    fn skip(&mut self, count: usize) {
        if let State::Payload { left, closes } = self.state {
            self.go_on(left.saturating_sub(count as u64), closes);
        }
    }

    #[inline]
    fn unseen(&self) -> usize {
        match self.state {
            State::Payload { left, .. } => usize::try_from(left).unwrap_or(usize::MAX),
            State::Head(_) => 0,
            State::Closed | State::Lost => usize::MAX,
        }
    }

    fn gap(&self, bytes: &[u8]) -> Option<usize> {
        let (mut ahead, mut at) = (*self, 0);
        while ahead.state != State::Head(0) {
            if at == bytes.len() || matches!(ahead.state, State::Closed | State::Lost) {
                return None;
            }
            at += ahead.step(&bytes[at..]);
        }
        Some(at)
    }

    fn is_over(&self) -> bool {
        self.state == State::Closed
    }

    fn is_lost(&self) -> bool {
        self.state == State::Lost
    }
}

#[cfg(test)]
mod tests;
