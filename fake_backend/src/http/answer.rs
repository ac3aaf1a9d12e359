//! Answers: status, headers, content and its framing, put into bytes. Planned by `path`, sent by `turn`.

use std::fmt::Write;
use std::time::Duration;

use crate::behaviour::Pace;

/// What an answer's body is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// So many bytes of the pattern, made while they are sent.
    Pattern(u64),
}

impl Content {
    pub(crate) fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Pattern(length) => *length,
        }
    }
}

/// How an answer's end is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// `Content-Length`.
    Length,
    /// Chunks, the last one perhaps with a trailer.
    Chunked {
        /// Ends with the trailer `X-Trailer: <id>`.
        trailer: bool,
    },
    /// The connection's end.
    UntilClose,
}

/// An answer before it is bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Sent before the head, as it is: `103 Early Hints`.
    pub(crate) before: Vec<u8>,
    /// Beside those every answer has; lines with their line ends.
    pub(crate) headers: String,
    pub(crate) content: Content,
    pub(crate) shape: Shape,
    /// Waited for before the answer, beside the behaviour's latency.
    pub(crate) delay: Duration,
    /// Instead of the behaviour's pace.
    pub(crate) pace: Option<Pace>,
}

impl Answer {
    /// An answer with this text.
    pub(crate) fn text(status: u16, text: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            before: Vec::new(),
            headers: String::new(),
            content: Content::Bytes(text.into()),
            shape: Shape::Length,
            delay: Duration::ZERO,
            pace: None,
        }
    }

    /// Whether the status alone forbids a body (RFC 9110 §6.4.1).
    pub(crate) fn is_bodiless(&self) -> bool {
        matches!(self.status, 100..=199 | 204 | 304)
    }

    /// The head up to and including the empty line. `ending` holds the lines about the connection.
    pub(crate) fn head(&self, id: &str, ending: &str) -> String {
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        if !self.is_bodiless() {
            head.push_str("Content-Type: text/plain\r\n");
            match self.shape {
                Shape::Length => {
                    // Writing to a String cannot fail.
                    let _ = write!(head, "Content-Length: {}\r\n", self.content.length());
                }
                Shape::Chunked { .. } => head.push_str("Transfer-Encoding: chunked\r\n"),
                Shape::UntilClose => {}
            }
        }
        let _ = write!(head, "X-Backend: {id}\r\n{}{ending}\r\n", self.headers);
        head
    }
}

/// The usual words behind a status.
pub(crate) fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        413 => "Content Too Large",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        418 => "I'm a teapot",
        421 => "Misdirected Request",
        425 => "Too Early",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        507 => "Insufficient Storage",
        _ => "Status",
    }
}
