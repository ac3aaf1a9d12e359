//! Answers that we write ourselves. They say what happened and which request it was, and nothing internal.

use crate::message::{Cause, Framing, Head, status};
use crate::net::FreeList;

use super::answer_body::AnswerBody;
use super::body::Memory;
use super::h1::digits::{push_id, push_number};

/// The answer for `cause`. `to_head`: the same head without the body (RFC 9110 §9.3.2).
#[must_use]
pub fn answer(cause: Cause, id: u128, to_head: bool, buffers: &FreeList) -> (Head, AnswerBody) {
    let code = match cause.status() {
        // Nobody reads a 499; if somebody does after all, the request was cut.
        499 => 408,
        other => other,
    };
    let mut number = Vec::with_capacity(32);
    push_id(&mut number, id);
    let mut text = Vec::with_capacity(160);
    push_number(&mut text, u64::from(code));
    text.push(b' ');
    text.extend_from_slice(status::reason(code).as_bytes());
    text.extend_from_slice(b"\n");
    text.extend_from_slice(cause.text().as_bytes());
    text.extend_from_slice(b"\ncause: ");
    text.extend_from_slice(cause.token().as_bytes());
    text.extend_from_slice(b"\nrequest: ");
    text.extend_from_slice(&number);
    text.push(b'\n');

    let mut head = Head::answer(code);
    head.push(b"Content-Type", b"text/plain; charset=utf-8");
    let mut length = Vec::with_capacity(8);
    push_number(&mut length, text.len() as u64);
    head.push(b"Content-Length", &length);
    head.push(b"Cache-Control", b"no-store");
    head.push(b"X-Request-Id", &number);
    // RFC 9209: who in the chain wrote this, and why.
    head.push(b"Proxy-Status", format!("evenkeel; details={}", cause.token()).as_bytes());
    if cause == Cause::ConnectMethod {
        head.push(b"Allow", b"GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    }
    if matches!(cause, Cause::QueueFull | Cause::QueueTimeout | Cause::TooManyFromClient) {
        // Where there is a queue a second changes a lot.
        head.push(b"Retry-After", b"1");
    }
    let body = if to_head {
        AnswerBody::Empty
    } else {
        AnswerBody::Memory(Box::new(Memory::whole(text, buffers.clone())))
    };
    debug_assert!(to_head || body.framing() != Framing::None);
    (head, body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::http::body::BodySource as _;

    #[test]
    fn an_own_answer_names_cause_and_request_and_its_exact_length() {
        let buffers = FreeList::new();
        for &cause in Cause::ALL.iter().filter(|cause| cause.status() >= 400) {
            let (head, body) = answer(cause, 0xfeed, false, &buffers);
            let AnswerBody::Memory(memory) = body else { panic!("a body") };
            let text = String::from_utf8(memory.pieces[0].clone()).expect("text");
            assert!(text.contains(cause.token()) && text.contains("feed"), "{text}");
            assert_eq!(head.named("content-length"), Some(text.len().to_string().as_bytes()));
            assert!(!head.reason().is_empty(), "{cause} needs a reason phrase");
            let (bare, none) = answer(cause, 0xfeed, true, &buffers);
            assert_eq!(bare.named("content-length"), head.named("content-length"));
            assert!(none.is_done());
        }
    }
}
