//! A whole message as evenkeel reads it: the parts that a connection puts together, without one.

use evenkeel::message::{Cause, Framing, Head};
use evenkeel::proxy::http::h1::chunk::Chunks;
use evenkeel::proxy::http::h1::framing;
use evenkeel::proxy::http::h1::parse;
use evenkeel::proxy::http::h1::search::Search;

/// Most bytes of a head: what a buffer holds.
pub(crate) const HEAD_SIZE: usize = 64 * 1024;
/// Most lines of a request head: the default of `limits.headers`.
pub(crate) const HEADERS: usize = 100;
/// Lines that a head may have grown by when it goes on.
pub(crate) const ADDED: usize = 16;

/// Which side sends the message, and what is known about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// From a client.
    Request,
    /// From a backend; `to_head`: the request was a HEAD.
    Answer { to_head: bool },
}

/// What became of a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// It was there to its end.
    Whole(Whole),
    /// It goes on behind the input.
    Incomplete,
    /// It breaks its framing.
    Refused,
}

/// A body that was read to its end.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Whole {
    /// The content.
    pub(crate) content: Vec<u8>,
    /// What goes on when chunks go on as they came: without the last chunk.
    pub(crate) raw: Vec<u8>,
    /// Trailer lines, each with its CRLF.
    pub(crate) trailers: Vec<u8>,
    /// Where the next message begins.
    pub(crate) end: usize,
}

/// A head, its framing, and where the body begins. `None`: the head is not complete. `headers`: most lines of a
/// request.
pub(crate) fn head(
    bytes: &[u8],
    side: Side,
    headers: usize,
) -> Option<Result<(Head, Framing, usize), Cause>> {
    let length = match Search::default().find(bytes, HEAD_SIZE) {
        Ok(Some(length)) => length,
        Ok(None) => return None,
        Err(cause) => return Some(Err(cause)),
    };
    let mut head = Head::new();
    let framing = match side {
        Side::Request => {
            parse::request(&bytes[..length], headers, &mut head).and_then(|()| framing::request(&head))
        }
        Side::Answer { to_head } => {
            parse::answer(&bytes[..length], &mut head).and_then(|()| framing::answer(&head, to_head))
        }
    };
    Some(framing.map(|framing| (head, framing, length)))
}

/// The body that begins at `start`.
pub(crate) fn body(bytes: &[u8], start: usize, framing: Framing) -> Body {
    let rest = &bytes[start..];
    let plain = |length: usize| {
        let content = rest[..length].to_vec();
        Body::Whole(Whole { raw: content.clone(), content, trailers: Vec::new(), end: start + length })
    };
    match framing {
        Framing::None => plain(0),
        Framing::UntilClose => plain(rest.len()),
        Framing::Length(length) => match usize::try_from(length) {
            Ok(length) if length <= rest.len() => plain(length),
            Ok(_) | Err(_) => Body::Incomplete,
        },
        Framing::Chunked => {
            let scan = |raw| {
                let (mut chunks, mut bytes) = (Chunks::default(), rest.to_vec());
                let found = chunks.scan(&mut bytes, raw).ok()?;
                Some((bytes[found.start..found.end].to_vec(), chunks, found.consumed))
            };
            match (scan(false), scan(true)) {
                (Some((content, chunks, consumed)), Some((raw, raw_chunks, raw_consumed))) => {
                    assert_eq!((chunks.is_done(), consumed), (raw_chunks.is_done(), raw_consumed));
                    assert_eq!(chunks.trailers(), raw_chunks.trailers());
                    if !chunks.is_done() {
                        return Body::Incomplete;
                    }
                    let trailers = chunks.trailers().to_vec();
                    Body::Whole(Whole { content, raw, trailers, end: start + consumed })
                }
                (None, None) => Body::Refused,
                (plain, raw) => panic!("decoded: {:?}, raw: {:?}", plain.is_some(), raw.is_some()),
            }
        }
    }
}
