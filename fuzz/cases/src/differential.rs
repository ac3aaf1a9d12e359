//! What evenkeel accepts, the strict reader reads in the same way: as it came, and as it goes on.

use evenkeel::message::{Framing, Head, Version};
use evenkeel::proxy::http::h1::write::Persistence;

use crate::ours::{self, Body, HEADERS, Side, Whole};
use crate::shown::{fields, shown};
use crate::strict::{self, Length};
use crate::writer::{ABOUT, HOST, sent_answer, sent_request, with_body};

/// Messages on one connection that are looked at.
const MESSAGES: usize = 16;

/// Messages one behind the other. The first byte says whose: a client's (`0`), those of a backend (`1`), those of
/// a backend that was asked with HEAD (`2`).
pub fn differential(bytes: &[u8]) {
    let Some((&choice, mut bytes)) = bytes.split_first() else { return };
    let side = match choice % 3 {
        0 => Side::Request,
        1 => Side::Answer { to_head: false },
        _ => Side::Answer { to_head: true },
    };
    for _ in 0..MESSAGES {
        match message(bytes, side) {
            Some(end) if end < bytes.len() => bytes = &bytes[end..],
            Some(_) | None => return,
        }
    }
}

/// Compares the readings of one message, and tells where the next begins if there is one.
fn message(bytes: &[u8], side: Side) -> Option<usize> {
    let (head, framing, start) = match ours::head(bytes, side, HEADERS) {
        Some(Ok(read)) => read,
        // Stricter is allowed, more patient is not.
        Some(Err(_)) => return None,
        None => {
            let complete = match side {
                Side::Request => strict::request(bytes, 0).is_ok(),
                Side::Answer { to_head } => strict::answer(bytes, 0, to_head).is_ok(),
            };
            assert!(!complete, "we wait for the end of a head that is complete");
            return None;
        }
    };
    let length = match side {
        // Answered 405 whatever it says, and the connection is closed.
        Side::Request if head.method() == b"CONNECT" => return None,
        Side::Request => {
            let theirs =
                strict::request(bytes, 0).unwrap_or_else(|stop| panic!("{stop:?}: {}", shown(bytes)));
            assert_eq!(shown(head.method()), shown(&theirs.method));
            assert_eq!(shown(head.target()), shown(&theirs.target));
            assert_eq!(shown(head.path()), shown(&theirs.path));
            assert_eq!(shown(head.authority()), shown(&theirs.authority));
            assert_eq!((minor(&head), fields(&head), start), (theirs.minor, theirs.fields, theirs.end));
            theirs.length
        }
        Side::Answer { to_head } => {
            let theirs =
                strict::answer(bytes, 0, to_head).unwrap_or_else(|stop| panic!("{stop:?}: {}", shown(bytes)));
            assert_eq!((head.status, shown(head.reason())), (theirs.status, shown(&theirs.reason)));
            assert_eq!((minor(&head), fields(&head), start), (theirs.minor, theirs.fields, theirs.end));
            theirs.length
        }
    };
    assert_eq!(as_length(framing), length);
    let theirs = strict::body(bytes, start, length);
    let body = match ours::body(bytes, start, framing) {
        Body::Whole(body) => body,
        Body::Refused => return None,
        Body::Incomplete => {
            assert!(theirs.is_err(), "we wait for the end of a body that is complete");
            return None;
        }
    };
    let theirs = theirs.unwrap_or_else(|stop| panic!("{stop:?}: {}", shown(&bytes[start..])));
    assert_eq!(shown(&body.content), shown(&theirs.content));
    assert_eq!(body.end, theirs.end, "where the next message begins");
    match side {
        Side::Request => forwarded_request(&head, framing, &body, &theirs),
        Side::Answer { to_head } => forwarded_answer(&head, framing, &body, &theirs, to_head),
    }
    // Behind a 101 there is no HTTP.
    (head.status != 101).then_some(body.end)
}

/// What a backend gets is the same request, and exactly one.
fn forwarded_request(head: &Head, framing: Framing, body: &Whole, expected: &strict::Body) {
    for raw in [false, true] {
        let out = with_body(sent_request(head, framing, None, &ABOUT), framing, body, raw);
        let sent = strict::request(&out, 0).unwrap_or_else(|stop| panic!("{stop:?}: {}", shown(&out)));
        assert_eq!(shown(head.method()), shown(&sent.method));
        let path = match head.path() {
            b"" if head.method() == b"OPTIONS" => "*".to_owned(),
            path @ ([b'/', ..] | b"*") => shown(path),
            path => format!("/{}", shown(path)),
        };
        assert_eq!(path, shown(&sent.target));
        let authority = if head.authority().is_empty() { HOST.as_bytes() } else { head.authority() };
        assert_eq!(shown(authority), shown(&sent.authority));
        assert_eq!((as_length(framing), sent.minor), (sent.length, 1));
        same_body(&out, sent.end, sent.length, expected);
    }
}

/// What a client gets is the same answer, and exactly one.
fn forwarded_answer(head: &Head, framing: Framing, body: &Whole, expected: &strict::Body, to_head: bool) {
    // An HTTP/1.0 client gets no chunks, and no trailers either.
    let plain = if framing == Framing::Chunked { Framing::UntilClose } else { framing };
    for (framing, raw) in [(framing, false), (framing, true), (plain, false)] {
        let persistence = match framing {
            Framing::UntilClose => Persistence::Close,
            Framing::None | Framing::Length(_) | Framing::Chunked if head.status == 101 => {
                Persistence::Upgrade
            }
            Framing::None | Framing::Length(_) | Framing::Chunked => Persistence::Implied,
        };
        let out = with_body(sent_answer(head, framing, persistence), framing, body, raw);
        let sent =
            strict::answer(&out, 0, to_head).unwrap_or_else(|stop| panic!("{stop:?}: {}", shown(&out)));
        assert_eq!((head.status, 1), (sent.status, sent.minor));
        assert!(head.reason().is_empty() || head.reason() == sent.reason);
        assert_eq!(as_length(framing), sent.length);
        let trailers = if framing == Framing::Chunked { expected.trailers.clone() } else { Vec::new() };
        same_body(&out, sent.end, sent.length, &strict::Body { trailers, ..expected.clone() });
    }
}

fn same_body(out: &[u8], start: usize, length: Length, expected: &strict::Body) {
    let sent = strict::body(out, start, length).unwrap_or_else(|stop| panic!("{stop:?}: {}", shown(out)));
    assert_eq!(shown(&sent.content), shown(&expected.content));
    assert_eq!(sent.trailers, expected.trailers);
    assert_eq!(sent.end, out.len(), "one message and not a byte more: {}", shown(out));
}

fn as_length(framing: Framing) -> Length {
    match framing {
        Framing::None => Length::None,
        Framing::Length(length) => Length::Exact(length),
        Framing::Chunked => Length::Chunked,
        Framing::UntilClose => Length::UntilClose,
    }
}

fn minor(head: &Head) -> u8 {
    u8::from(head.version == Version::Http11)
}
