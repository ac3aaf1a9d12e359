//! Frames as they stand on the wire (RFC 9113 §4 and §6): nine bytes, then a payload.

use super::code::ErrorCode;

/// What a client says first, in front of its first frame (RFC 9113 §3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes in front of every payload.
pub const FRAME_HEAD: usize = 9;

/// Largest payload that either side sends: nobody here asks for more (SETTINGS_MAX_FRAME_SIZE).
pub const FRAME_SIZE: usize = 16 * 1024;

/// Largest window that there may be (RFC 9113 §6.9.1).
pub const LARGEST_WINDOW: u32 = 0x7fff_ffff;

/// The bits of a stream's number; the one above is reserved and means nothing.
const STREAM: u32 = 0x7fff_ffff;

/// DATA.
pub const DATA: u8 = 0;
/// HEADERS.
pub const HEADERS: u8 = 1;
/// PRIORITY, which says nothing any more.
pub const PRIORITY: u8 = 2;
/// RST_STREAM.
pub const RST_STREAM: u8 = 3;
/// SETTINGS.
pub const SETTINGS: u8 = 4;
/// PUSH_PROMISE, which no client may send.
pub const PUSH_PROMISE: u8 = 5;
/// PING.
pub const PING: u8 = 6;
/// GOAWAY.
pub const GOAWAY: u8 = 7;
/// WINDOW_UPDATE.
pub const WINDOW_UPDATE: u8 = 8;
/// CONTINUATION.
pub const CONTINUATION: u8 = 9;
/// PRIORITY_UPDATE (RFC 9218 §7.1).
pub const PRIORITY_UPDATE: u8 = 16;

/// The last frame of a message.
pub const END_STREAM: u8 = 1;
/// Answers a SETTINGS or a PING.
pub const ACK: u8 = 1;
/// The last frame of a head.
pub const END_HEADERS: u8 = 4;
/// The payload begins with the length of what it ends with.
pub const PADDED: u8 = 8;
/// The payload begins with a priority of the old kind.
pub const WITH_PRIORITY: u8 = 32;

/// SETTINGS_HEADER_TABLE_SIZE.
pub const HEADER_TABLE_SIZE: u16 = 1;
/// SETTINGS_ENABLE_PUSH.
pub const ENABLE_PUSH: u16 = 2;
/// SETTINGS_MAX_CONCURRENT_STREAMS.
pub const MAX_CONCURRENT_STREAMS: u16 = 3;
/// SETTINGS_INITIAL_WINDOW_SIZE.
pub const INITIAL_WINDOW_SIZE: u16 = 4;
/// SETTINGS_MAX_FRAME_SIZE.
pub const MAX_FRAME_SIZE: u16 = 5;
/// SETTINGS_MAX_HEADER_LIST_SIZE.
pub const MAX_HEADER_LIST_SIZE: u16 = 6;
/// SETTINGS_ENABLE_CONNECT_PROTOCOL (RFC 8441 §3).
pub const ENABLE_CONNECT_PROTOCOL: u16 = 8;
/// SETTINGS_NO_RFC7540_PRIORITIES (RFC 9218 §2.1).
pub const NO_RFC7540_PRIORITIES: u16 = 9;

/// What stands in front of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    /// Bytes of the payload.
    pub length: usize,
    /// What it is.
    pub kind: u8,
    /// What is said about it.
    pub flags: u8,
    /// Whose it is; 0: the connection's.
    pub stream: u32,
}

impl FrameHead {
    /// The head that `bytes` begin with; `None`: more bytes are needed.
    #[inline]
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<FrameHead> {
        let &[a, b, c, kind, flags, s, t, u, v, ..] = bytes else { return None };
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        Some(FrameHead { length, kind, flags, stream: u32::from_be_bytes([s, t, u, v]) & STREAM })
    }

    /// Whether a flag is set.
    #[inline]
    #[must_use]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Appends it.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes());
    }

    /// Its bytes.
    #[must_use]
    pub fn bytes(&self) -> [u8; FRAME_HEAD] {
        // A payload has three bytes for its length, and ours have far fewer.
        let [_, a, b, c] = (self.length as u32).to_be_bytes();
        let [s, t, u, v] = self.stream.to_be_bytes();
        [a, b, c, self.kind, self.flags, s, t, u, v]
    }
}

/// Appends SETTINGS with these values.
pub fn settings(out: &mut Vec<u8>, values: &[(u16, u32)]) {
    FrameHead { length: values.len() * 6, kind: SETTINGS, flags: 0, stream: 0 }.write(out);
    for (name, value) in values {
        out.extend_from_slice(&name.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends the answer to SETTINGS.
pub fn settings_ack(out: &mut Vec<u8>) {
    FrameHead { length: 0, kind: SETTINGS, flags: ACK, stream: 0 }.write(out);
}

/// Appends PING, or the answer to one.
pub fn ping(out: &mut Vec<u8>, flags: u8, payload: [u8; 8]) {
    FrameHead { length: 8, kind: PING, flags, stream: 0 }.write(out);
    out.extend_from_slice(&payload);
}

/// Appends GOAWAY. `words`: what a person reads who looks for the reason.
pub fn goaway(out: &mut Vec<u8>, last: u32, code: ErrorCode, words: &str) {
    FrameHead { length: 8 + words.len(), kind: GOAWAY, flags: 0, stream: 0 }.write(out);
    out.extend_from_slice(&last.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
    out.extend_from_slice(words.as_bytes());
}

/// Appends RST_STREAM.
pub fn reset(out: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    FrameHead { length: 4, kind: RST_STREAM, flags: 0, stream }.write(out);
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// Appends WINDOW_UPDATE.
pub fn window_update(out: &mut Vec<u8>, stream: u32, more: u32) {
    FrameHead { length: 4, kind: WINDOW_UPDATE, flags: 0, stream }.write(out);
    out.extend_from_slice(&more.to_be_bytes());
}

/// A payload without its padding; `None`: there is more padding than payload.
#[inline]
#[must_use]
pub fn unpadded(head: FrameHead, payload: &[u8]) -> Option<&[u8]> {
    if !head.has(PADDED) {
        return Some(payload);
    }
    let (&padding, rest) = payload.split_first()?;
    rest.get(..rest.len().checked_sub(usize::from(padding))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_reads_back_and_the_reserved_bit_means_nothing() {
        let head = FrameHead { length: 0x01_02_03, kind: HEADERS, flags: 0x25, stream: 0x7abc_def1 };
        let mut bytes = Vec::new();
        head.write(&mut bytes);
        assert_eq!(FrameHead::parse(&bytes), Some(head));
        bytes[5] |= 0x80;
        assert_eq!(FrameHead::parse(&bytes), Some(head));
        assert_eq!(FrameHead::parse(&bytes[..8]), None);
        assert!(head.has(END_STREAM) && head.has(END_HEADERS) && !head.has(PADDED));
    }

    #[test]
    fn padding_is_taken_off_and_may_not_be_more_than_there_is() {
        let of = |flags| FrameHead { length: 0, kind: DATA, flags, stream: 1 };
        assert_eq!(unpadded(of(0), b"\x02abc"), Some(&b"\x02abc"[..]));
        assert_eq!(unpadded(of(PADDED), b"\x02abc"), Some(&b"a"[..]));
        assert_eq!(unpadded(of(PADDED), b"\x03abc"), Some(&b""[..]));
        assert_eq!(unpadded(of(PADDED), b"\x00"), Some(&b""[..]));
        assert_eq!(unpadded(of(PADDED), b"\x04abc"), None);
        assert_eq!(unpadded(of(PADDED), b""), None);
    }
}
