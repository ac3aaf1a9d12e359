//! Answers that we write ourselves. They say what happened and which request it was, and nothing internal.

use crate::config::model::GrpcStatus;
use crate::message::{Cause, Framing, Head, grpc, status};
use crate::net::FreeList;

use super::answer_body::AnswerBody;
use super::body::Memory;
use super::h1::digits::{push_id, push_number};

/// What a client gets for `cause`, unless somebody has said otherwise.
#[must_use]
pub fn status_of(cause: Cause) -> u16 {
    match cause.status() {
        // Nobody reads a 499; if somebody does after all, the request was cut.
        499 => 408,
        other => other,
    }
}

/// The answer for a cause, with this status. `to_head`: the same head without the body (RFC 9110 §9.3.2).
#[must_use]
pub fn answer(
    (cause, code): (Cause, u16),
    id: u128,
    to_head: bool,
    buffers: &FreeList,
) -> (Head, AnswerBody) {
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
    if matches!(cause, Cause::QueueFull | Cause::QueueTimeout | Cause::TooManyFromClient | Cause::AuthBusy) {
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

/// The answer for a cause to a call of gRPC: nothing but a head, which says how the call ended (Trailers-Only). `code`: what others would
/// get.
#[must_use]
pub fn call_answer((cause, code): (Cause, u16), id: u128) -> (Head, GrpcStatus) {
    let status = GrpcStatus::of_cause(cause, code);
    let mut number = Vec::with_capacity(32);
    push_id(&mut number, id);
    let mut head = Head::answer(200);
    head.push(b"Content-Type", b"application/grpc");
    head.push(b"Grpc-Status", (status as u8).to_string().as_bytes());
    head.push(b"Grpc-Message", &grpc::message(cause, &number));
    // For clients of HTTP/1.1, of which there should be none.
    head.push(b"Content-Length", b"0");
    head.push(b"X-Request-Id", &number);
    head.push(b"Proxy-Status", format!("evenkeel; details={}", cause.token()).as_bytes());
    (head, status)
}

/// The end of a call that has begun to be answered.
#[must_use]
pub fn call_trailers((cause, code): (Cause, u16), id: u128) -> (Vec<u8>, GrpcStatus) {
    let status = GrpcStatus::of_cause(cause, code);
    let mut number = Vec::with_capacity(32);
    push_id(&mut number, id);
    (grpc::trailers(status, cause, &number), status)
}

/// An empty SETTINGS frame, which has to come first (RFC 9113 §3.4).
const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
/// The type of the frame that ends a connection (RFC 9113 §6.8).
const GOAWAY: u8 = 7;
/// What a client hears that is to come again with HTTP/1.1 (RFC 9113 §7).
const HTTP_1_1_REQUIRED: u32 = 13;

/// The answer to a client that speaks HTTP/2, as frames: it reads nothing else.
pub fn goaway(cause: Cause, id: u128, out: &mut Vec<u8>) {
    let mut words = cause.text().as_bytes().to_vec();
    words.extend_from_slice(b" cause: ");
    words.extend_from_slice(cause.token().as_bytes());
    words.extend_from_slice(b" request: ");
    push_id(&mut words, id);
    out.extend_from_slice(&SETTINGS);
    // The length has three bytes, and the words are short. No stream was looked at.
    let length = u32::try_from(8 + words.len()).unwrap_or_default().to_be_bytes();
    out.extend_from_slice(&length[1..]);
    out.extend_from_slice(&[GOAWAY, 0]);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&HTTP_1_1_REQUIRED.to_be_bytes());
    out.extend_from_slice(&words);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::http::body::BodySource as _;

    #[test]
    fn a_client_of_http_2_gets_settings_and_a_goaway_with_the_reason_in_words() {
        let mut out = Vec::new();
        goaway(Cause::Http2Preface, 0xfeed, &mut out);
        let (settings, rest) = out.split_at(9);
        assert_eq!(settings, [0, 0, 0, 4, 0, 0, 0, 0, 0]);
        let (head, payload) = rest.split_at(9);
        assert_eq!(usize::from(head[2]), payload.len());
        assert_eq!(head[3..], [7, 0, 0, 0, 0, 0], "GOAWAY, no flags, stream 0");
        assert_eq!(payload[..8], [0, 0, 0, 0, 0, 0, 0, 13], "last stream 0, HTTP_1_1_REQUIRED");
        let words = String::from_utf8_lossy(&payload[8..]);
        assert!(words.contains("Use HTTP/1.1.") && words.contains("http2_preface"), "{words}");
        assert!(words.ends_with("feed"), "{words}");
    }

    #[test]
    fn an_own_answer_names_cause_and_request_and_its_exact_length() {
        let buffers = FreeList::new();
        for &cause in Cause::ALL.iter().filter(|cause| cause.status() >= 400) {
            let (head, body) = answer((cause, status_of(cause)), 0xfeed, false, &buffers);
            let AnswerBody::Memory(memory) = body else { panic!("a body") };
            let text = String::from_utf8(memory.pieces[0].clone()).expect("text");
            assert!(text.contains(cause.token()) && text.contains("feed"), "{text}");
            assert_eq!(head.named("content-length"), Some(text.len().to_string().as_bytes()));
            assert!(!head.reason().is_empty(), "{cause} needs a reason phrase");
            let (bare, none) = answer((cause, status_of(cause)), 0xfeed, true, &buffers);
            assert_eq!(bare.named("content-length"), head.named("content-length"));
            assert!(none.is_done());
        }
    }
}
