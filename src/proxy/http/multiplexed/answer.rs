//! Heads on their way to an HTTP/2 client.
//!
//! The same lines go on as with HTTP/1.1 ([`crate::proxy::http::h1::write::answer`]), but for what frames a message there.

use crate::message::{Fields, Framing, Head, HeaderField};
use crate::proxy::http::h1::digits::push_number;
use crate::proxy::http::h1::nominated::Nominated;
use crate::proxy::http::h2::hpack::{EncodedLines, encode};

/// What never goes on: RFC 9113 §8.2.2.
const LEFT_OUT: Fields = Fields::HOP_BY_HOP.and(Fields::of(&[HeaderField::TransferEncoding]));

/// Appends an answer's head, or a 1xx one. `date`: written when a final answer has none. `lines`: those that were encoded lately.
pub(super) fn write(out: &mut Vec<u8>, head: &Head, framing: Framing, date: &[u8], lines: &mut EncodedLines) {
    encode::status(out, head.status);
    let mut left_out = LEFT_OUT;
    // RFC 9110 §8.6: neither may a 1xx or 204 carry.
    if head.status < 200 || head.status == 204 {
        left_out = left_out.and(Fields::of(&[HeaderField::ContentLength]));
    }
    if head.fields().meets(left_out.and(Fields::of(&[HeaderField::Connection]))) {
        let nominated = Nominated::by(head);
        for line in head.lines() {
            if !left_out.contains(line.field) && !nominated.holds(head, line) {
                lines.append(out, head, line);
            }
        }
    } else {
        // Often they are those of the answer before, all together.
        let run = head.line_bytes();
        if !lines.append_run(out, run) {
            let start = out.len();
            head.lines().iter().for_each(|line| lines.append(out, head, line));
            lines.learn_run(run, out, start);
        }
    }
    if let Framing::Length(length) = framing
        && !head.has(HeaderField::ContentLength)
    {
        let mut digits = Vec::with_capacity(20);
        push_number(&mut digits, length);
        encode::field(out, b"content-length", &digits);
    }
    if head.status >= 200 && !head.has(HeaderField::Date) {
        encode::field(out, b"date", date);
    }
}
