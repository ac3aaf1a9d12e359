//! From decoded lines to the head of an answer (RFC 9113 §8.3.2).

use super::HeadLimits;
use crate::message::{Framing, Head, HeaderField};
use crate::proxy::http::h1::framing;
use crate::proxy::http::h2::hpack::{FieldLine, LineKind, Pseudo};

/// An answer's head in the making.
pub struct AnswerDraft<'a> {
    head: &'a mut Head,
    limits: HeadLimits,
    lines: usize,
    is_bad: bool,
}

impl<'a> AnswerDraft<'a> {
    /// Begins one in `head`, which is empty.
    #[must_use]
    pub fn new(head: &'a mut Head, limits: HeadLimits) -> AnswerDraft<'a> {
        AnswerDraft { head, limits, lines: 0, is_bad: false }
    }

    /// Takes the next line.
    pub fn line(&mut self, line: &FieldLine<'_>) {
        self.is_bad |= self.take(line).is_none();
    }

    fn take(&mut self, line: &FieldLine<'_>) -> Option<()> {
        match line.kind {
            LineKind::Pseudo(Pseudo::Status) if self.head.status == 0 => {
                let status = match *line.value() {
                    [a @ b'1'..=b'5', b @ b'0'..=b'9', c @ b'0'..=b'9'] => {
                        u16::from(a - b'0') * 100 + u16::from(b - b'0') * 10 + u16::from(c - b'0')
                    }
                    _ => return None,
                };
                // HTTP/2 has no 101 (§8.6).
                (status != 101).then(|| self.head.begin_answer(status))
            }
            // What frames a message or is about one connection has no place here (§8.2.2), and a line none in front of the status.
            LineKind::Field(
                HeaderField::Connection
                | HeaderField::KeepAlive
                | HeaderField::ProxyConnection
                | HeaderField::TransferEncoding
                | HeaderField::Upgrade,
            )
            | LineKind::Pseudo(_)
            | LineKind::Malformed => None,
            LineKind::Field(field) => {
                self.lines += 1;
                let fits = self.lines <= self.limits.lines
                    && self.head.len() + line.bytes.len() <= self.limits.size
                    && self.head.status != 0;
                fits.then(|| self.head.push_line(field, line.bytes, line.name))
            }
        }
    }

    /// Ends it: how its body's length is known; `None`: it is none. `ended`: there is no body. `to_head`: what was asked was HEAD.
    #[must_use]
    pub fn finish(self, ended: bool, to_head: bool) -> Option<Framing> {
        if self.is_bad || self.head.status == 0 || self.head.status < 200 && ended {
            return None;
        }
        match framing::answer(self.head, to_head).ok()? {
            Framing::UntilClose | Framing::Chunked if ended => Some(Framing::Length(0)),
            Framing::UntilClose => Some(Framing::Chunked),
            // A length that is not that of the body (§8.1.1).
            Framing::Length(1..) if ended => None,
            framing => Some(framing),
        }
    }
}
