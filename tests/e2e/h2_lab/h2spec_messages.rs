//! Requests that are malformed: `http2/8.1` to `http2/8.2` of h2spec.

use super::case::{H2Case, case};
use super::expect::Outcome;
use super::fields::Field;
use super::frames::{code, flag, kind};
use super::peer::Peer;

/// A GET with these lines behind the pseudo-header fields is malformed.
fn with(peer: &mut Peer, lines: &[Field<'_>]) -> Outcome {
    let block = peer.request("GET", lines);
    peer.headers(1, flag::WHOLE, &block).stream_error(&[code::PROTOCOL])
}

/// A GET whose pseudo-header fields become these lines is malformed: those of method, scheme, path and authority.
fn only(peer: &mut Peer, change: impl for<'a> Fn([Field<'a>; 4]) -> Vec<Field<'a>>) -> Outcome {
    let authority = peer.authority();
    let fields = change(peer.pseudo("GET", &authority));
    let block = peer.block(&fields);
    peer.headers(1, flag::WHOLE, &block).stream_error(&[code::PROTOCOL])
}

/// A POST with a body of so many DATA, of four octets each, that says that it has one.
fn too_long(peer: &mut Peer, pieces: usize) -> Outcome {
    let block = peer.request("POST", &[("content-length", "1")]);
    peer.headers(1, flag::END_HEADERS, &block);
    for at in 1..=pieces {
        peer.data(1, if at == pieces { flag::END_STREAM } else { flag::NONE }, b"test");
    }
    peer.stream_error(&[code::PROTOCOL])
}

/// A POST whose second HEADERS have this line and do not end the stream.
fn second_head(peer: &mut Peer, line: Field<'_>) -> Outcome {
    peer.begin(1, "POST").data(1, flag::NONE, b"test");
    let block = peer.block(&[line]);
    peer.headers(1, flag::END_HEADERS, &block).stream_error(&[code::PROTOCOL])
}

pub const CASES: &[H2Case] = &[
    case("http2/8.1/1", "trailers without END_STREAM", |peer| second_head(peer, ("x-test", "ok"))),
    case("http2/8.1.2/1", "a name in upper case", |peer| with(peer, &[("X-TEST", "ok")])),
    case("http2/8.1.2.1/1", "an unknown pseudo-header field", |peer| with(peer, &[(":test", "ok")])),
    case("http2/8.1.2.1/2", "a pseudo-header field of answers", |peer| with(peer, &[(":status", "200")])),
    case("http2/8.1.2.1/3", "a pseudo-header field in trailers", |peer| {
        second_head(peer, (":method", "POST"))
    }),
    case("http2/8.1.2.1/4", "a pseudo-header field behind another line", |peer| {
        only(peer, |fields| [&[("x-test", "ok")][..], &fields].concat())
    }),
    case("http2/8.1.2.2/1", "a line about the connection", |peer| {
        with(peer, &[("connection", "keep-alive")])
    }),
    case("http2/8.1.2.2/2", "te with more than trailers", |peer| {
        with(peer, &[("trailers", "test"), ("te", "trailers, deflate")])
    }),
    case("http2/8.1.2.3/1", "an empty :path", |peer| {
        only(peer, |[method, scheme, _, authority]| vec![method, scheme, (":path", ""), authority])
    }),
    // The original leaves out `:scheme` too.
    case("http2/8.1.2.3/2", "no :method", |peer| only(peer, |[_, _, path, authority]| vec![path, authority])),
    case("http2/8.1.2.3/3", "no :scheme", |peer| {
        only(peer, |[method, _, path, authority]| vec![method, path, authority])
    }),
    case("http2/8.1.2.3/4", "no :path", |peer| {
        only(peer, |[method, scheme, _, authority]| vec![method, scheme, authority])
    }),
    case("http2/8.1.2.3/5", ":method twice", |peer| only(peer, |fields| [&fields, &fields[..1]].concat())),
    case("http2/8.1.2.3/6", ":scheme twice", |peer| only(peer, |fields| [&fields, &fields[1..2]].concat())),
    case("http2/8.1.2.3/7", ":path twice", |peer| only(peer, |fields| [&fields, &fields[2..3]].concat())),
    case("http2/8.1.2.6/1", "content-length below the length of DATA", |peer| too_long(peer, 1)),
    case("http2/8.1.2.6/2", "content-length below the length of two DATA", |peer| too_long(peer, 2)),
    case("http2/8.2/1", "PUSH_PROMISE", |peer| {
        let block = peer.request("GET", &[]);
        let payload = [&3u32.to_be_bytes()[..], &block].concat();
        peer.frame(kind::PUSH_PROMISE, flag::END_HEADERS, 1, &payload).connection_error(&[code::PROTOCOL])
    }),
];
