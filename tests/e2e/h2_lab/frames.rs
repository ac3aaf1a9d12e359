//! Frames of HTTP/2 as they lie on the wire (RFC 9113 §4 and §6).

use std::fmt;

use super::fields;

/// The types of frames.
pub mod kind {
    pub const DATA: u8 = 0x0;
    pub const HEADERS: u8 = 0x1;
    pub const PRIORITY: u8 = 0x2;
    pub const RST_STREAM: u8 = 0x3;
    pub const SETTINGS: u8 = 0x4;
    pub const PUSH_PROMISE: u8 = 0x5;
    pub const PING: u8 = 0x6;
    pub const GOAWAY: u8 = 0x7;
    pub const WINDOW_UPDATE: u8 = 0x8;
    pub const CONTINUATION: u8 = 0x9;
}

/// The flags of frames.
pub mod flag {
    pub const NONE: u8 = 0x0;
    pub const ACK: u8 = 0x1;
    pub const END_STREAM: u8 = 0x1;
    pub const END_HEADERS: u8 = 0x4;
    pub const PADDED: u8 = 0x8;
    pub const PRIORITY: u8 = 0x20;
    /// A whole request without a body.
    pub const WHOLE: u8 = END_STREAM | END_HEADERS;
}

/// The error codes that the tests know.
pub mod code {
    pub const NO_ERROR: u32 = 0x0;
    pub const PROTOCOL: u32 = 0x1;
    pub const FLOW_CONTROL: u32 = 0x3;
    pub const STREAM_CLOSED: u32 = 0x5;
    pub const FRAME_SIZE: u32 = 0x6;
    pub const REFUSED_STREAM: u32 = 0x7;
    pub const CANCEL: u32 = 0x8;
    pub const COMPRESSION: u32 = 0x9;
}

/// The settings that the tests know.
pub mod setting {
    pub const HEADER_TABLE_SIZE: u16 = 0x1;
    pub const ENABLE_PUSH: u16 = 0x2;
    pub const MAX_CONCURRENT_STREAMS: u16 = 0x3;
    pub const INITIAL_WINDOW_SIZE: u16 = 0x4;
    pub const MAX_FRAME_SIZE: u16 = 0x5;
    pub const MAX_HEADER_LIST_SIZE: u16 = 0x6;
}

/// What a client says first.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The head of a frame.
const HEAD: usize = 9;

const KINDS: [&str; 10] = [
    "DATA",
    "HEADERS",
    "PRIORITY",
    "RST_STREAM",
    "SETTINGS",
    "PUSH_PROMISE",
    "PING",
    "GOAWAY",
    "WINDOW_UPDATE",
    "CONTINUATION",
];
const CODES: [&str; 14] = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
];

/// What a type of frame is called.
pub fn kind_name(kind: u8) -> String {
    KINDS.get(usize::from(kind)).map_or_else(|| format!("type {kind:#x}"), |name| (*name).to_owned())
}

/// What an error code is called.
pub fn code_name(code: u32) -> String {
    let name = usize::try_from(code).ok().and_then(|at| CODES.get(at));
    name.map_or_else(|| format!("error {code:#x}"), |name| (*name).to_owned())
}

/// A frame with whatever is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Frame {
    pub fn new(kind: u8, flags: u8, stream: u32, payload: impl Into<Vec<u8>>) -> Frame {
        Frame { kind, flags, stream, payload: payload.into() }
    }

    /// As it goes over the wire. The reserved bit is the highest one of `stream`.
    pub fn bytes(&self) -> Vec<u8> {
        let length = u32::try_from(self.payload.len()).unwrap().to_be_bytes();
        assert_eq!(length[0], 0, "a length has three octets");
        let stream = self.stream.to_be_bytes();
        [&length[1..], &[self.kind, self.flags], &stream, &self.payload].concat()
    }

    /// The first frame of these bytes, which is taken off them, if all of it is there.
    pub fn split(held: &mut Vec<u8>) -> Option<Frame> {
        let head = held.get(..HEAD)?;
        let length = usize::try_from(u32::from_be_bytes([0, head[0], head[1], head[2]])).unwrap();
        let stream = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
        let (kind, flags) = (head[3], head[4]);
        let payload = held.get(HEAD..HEAD + length)?.to_vec();
        held.drain(..HEAD + length);
        Some(Frame { kind, flags, stream, payload })
    }

    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag == flag
    }

    /// The last one of its stream.
    pub fn ends_stream(&self) -> bool {
        matches!(self.kind, kind::DATA | kind::HEADERS) && self.has(flag::END_STREAM)
    }

    /// The error code of a RST_STREAM or GOAWAY.
    pub fn code(&self) -> Option<u32> {
        let at = match self.kind {
            kind::RST_STREAM => 0,
            kind::GOAWAY => 4,
            _ => return None,
        };
        Some(u32::from_be_bytes(self.payload.get(at..at + 4)?.try_into().unwrap()))
    }

    /// The pairs of a SETTINGS.
    pub fn settings(&self) -> Vec<(u16, u32)> {
        let pair = |six: &[u8]| {
            (u16::from_be_bytes([six[0], six[1]]), u32::from_be_bytes([six[2], six[3], six[4], six[5]]))
        };
        self.payload.chunks_exact(6).map(pair).collect()
    }

    /// The part of a header block in a HEADERS.
    fn block(&self) -> Option<&[u8]> {
        let (pad, from) = if self.has(flag::PADDED) { (*self.payload.first()?, 1) } else { (0, 0) };
        let from = from + if self.has(flag::PRIORITY) { 5 } else { 0 };
        self.payload.get(from..self.payload.len().checked_sub(usize::from(pad))?)
    }

    /// The status in a HEADERS.
    pub fn status(&self) -> Option<u16> {
        fields::status(self.block().filter(|_| self.kind == kind::HEADERS)?)
    }
}

/// In a few words, for who reads what has failed.
impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", kind_name(self.kind))?;
        if self.stream != 0 {
            write!(f, " of stream {}", self.stream)?;
        }
        match self.kind {
            kind::DATA => write!(f, " with {} octets", self.payload.len())?,
            kind::HEADERS => write!(f, " with status {:?}", self.status())?,
            kind::SETTINGS | kind::PING if self.has(flag::ACK) => write!(f, " with ACK")?,
            _ => {}
        }
        if let Some(code) = self.code() {
            write!(f, " with {}", code_name(code))?;
        }
        // Some say there why.
        if let Some(words) =
            self.payload.get(8..).filter(|words| self.kind == kind::GOAWAY && !words.is_empty())
        {
            write!(f, " ({})", String::from_utf8_lossy(words))?;
        }
        if self.ends_stream() { write!(f, ", its last") } else { Ok(()) }
    }
}

#[test]
fn a_frame_is_read_as_it_was_written_and_only_when_all_of_it_is_there() {
    let frames = [
        Frame::new(kind::SETTINGS, flag::ACK, 0, []),
        Frame::new(kind::DATA, flag::END_STREAM, 3, vec![7; 300]),
        Frame::new(kind::GOAWAY, flag::NONE, 0, [0, 0, 0, 1, 0, 0, 0, 9, b'w', b'h', b'y']),
    ];
    let (mut held, mut read) = (Vec::new(), Vec::new());
    for byte in frames.iter().flat_map(Frame::bytes) {
        held.push(byte);
        read.extend(Frame::split(&mut held));
    }
    assert_eq!(read, frames);
    assert_eq!(read[2].to_string(), "GOAWAY with COMPRESSION_ERROR (why)");
    assert_eq!(read[1].to_string(), "DATA of stream 3 with 300 octets, its last");
}

#[test]
fn the_status_is_found_behind_padding_and_priority() {
    let payload = [2, 0, 0, 0, 0, 15, 0x8d, 0, 0];
    let frame = Frame::new(kind::HEADERS, flag::PADDED | flag::PRIORITY, 1, payload);
    assert_eq!(frame.status(), Some(404));
    assert_eq!(Frame::new(kind::HEADERS, flag::PADDED, 1, [9, 0x8d]).status(), None);
}
