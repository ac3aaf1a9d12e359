//! Frames of a stream: `http2/6.1` to `http2/6.4` and `http2/6.10` of h2spec.

use super::case::{H2Case, case};
use super::frames::{code, flag, kind};

pub const CASES: &[H2Case] = &[
    case("http2/6.1/1", "DATA of the connection", |peer| {
        peer.data(0, flag::END_STREAM, b"test").connection_error(&[code::PROTOCOL])
    }),
    case("http2/6.1/2", "DATA of a stream that the client has ended", |peer| {
        let block = peer.request("POST", &[]);
        peer.headers(1, flag::WHOLE, &block).data(1, flag::END_STREAM, b"test");
        peer.stream_error(&[code::STREAM_CLOSED])
    }),
    case("http2/6.1/3", "DATA with more padding than it has room", |peer| {
        let block = peer.request("POST", &[("content-length", "4")]);
        peer.headers(1, flag::END_HEADERS, &block);
        peer.data(1, flag::END_STREAM | flag::PADDED, b"\x06Test").connection_error(&[code::PROTOCOL])
    }),
    case("http2/6.2/1", "HEADERS without END_HEADERS, then PRIORITY", |peer| {
        let block = peer.request("GET", &[]);
        peer.headers(1, flag::NONE, &block).priority(1, 0, 255);
        let line = peer.long_line();
        peer.continuation(1, flag::END_HEADERS, &line).connection_error(&[code::PROTOCOL])
    }),
    case("http2/6.2/2", "HEADERS without END_HEADERS, then those of another stream", |peer| {
        let block = peer.request("GET", &[]);
        peer.headers(1, flag::NONE, &block).get(3);
        let line = peer.long_line();
        peer.continuation(1, flag::END_HEADERS, &line).connection_error(&[code::PROTOCOL])
    }),
    case("http2/6.2/3", "HEADERS of the connection", |peer| peer.get(0).connection_error(&[code::PROTOCOL])),
    case("http2/6.2/4", "HEADERS with more padding than they have room", |peer| {
        let block = peer.request("GET", &[]);
        let pad = u8::try_from(block.len() + 2).unwrap();
        peer.headers(1, flag::WHOLE | flag::PADDED, &[&[pad][..], &block].concat());
        peer.stream_error(&[code::PROTOCOL])
    }),
    case("http2/6.3/1", "PRIORITY of the connection", |peer| {
        peer.priority(0, 0, 255).connection_error(&[code::PROTOCOL])
    }),
    case("http2/6.3/2", "PRIORITY with 4 octets", |peer| {
        peer.get(1).frame(kind::PRIORITY, flag::NONE, 1, b"\x80\0\0\x01").stream_error(&[code::FRAME_SIZE])
    }),
    case("http2/6.4/1", "RST_STREAM of the connection", |peer| {
        peer.reset(0, code::CANCEL).connection_error(&[code::PROTOCOL])
    }),
    case("http2/6.4/2", "RST_STREAM of an idle stream", |peer| {
        peer.reset(1, code::CANCEL).connection_error(&[code::PROTOCOL])
    }),
    case("http2/6.4/3", "RST_STREAM with 3 octets", |peer| {
        peer.get(1).frame(kind::RST_STREAM, flag::NONE, 1, &[0; 3]).stream_error(&[code::FRAME_SIZE])
    }),
    case("http2/6.10/1", "two CONTINUATION behind HEADERS", |peer| {
        let block = peer.request("GET", &[]);
        peer.headers(1, flag::END_STREAM, &block);
        let (one, two) = (peer.long_line(), peer.long_line());
        peer.continuation(1, flag::NONE, &one).continuation(1, flag::END_HEADERS, &two).answer(1)
    }),
    case("http2/6.10/2", "CONTINUATION without END_HEADERS, then DATA", |peer| {
        let block = peer.request("POST", &[]);
        peer.headers(1, flag::NONE, &block);
        let line = peer.long_line();
        peer.continuation(1, flag::NONE, &line).data(1, flag::END_STREAM, b"test");
        peer.connection_error(&[code::PROTOCOL])
    }),
    case("http2/6.10/3", "CONTINUATION of the connection", |peer| {
        let block = peer.request("GET", &[]);
        peer.headers(1, flag::END_STREAM, &block);
        let line = peer.long_line();
        peer.continuation(0, flag::END_HEADERS, &line).connection_error(&[code::PROTOCOL])
    }),
    case("http2/6.10/4", "CONTINUATION behind HEADERS with END_HEADERS", |peer| {
        peer.get(1);
        let line = peer.long_line();
        peer.continuation(1, flag::END_HEADERS, &line).connection_error(&[code::PROTOCOL])
    }),
    case("http2/6.10/5", "CONTINUATION behind one with END_HEADERS", |peer| {
        let block = peer.request("GET", &[]);
        peer.headers(1, flag::END_STREAM, &block);
        let (one, two) = (peer.long_line(), peer.long_line());
        peer.continuation(1, flag::END_HEADERS, &one).continuation(1, flag::END_HEADERS, &two);
        peer.connection_error(&[code::PROTOCOL])
    }),
    case("http2/6.10/6", "CONTINUATION behind DATA", |peer| {
        let block = peer.request("POST", &[]);
        peer.headers(1, flag::NONE, &block).data(1, flag::END_STREAM, b"test");
        let (one, two) = (peer.long_line(), peer.long_line());
        peer.continuation(1, flag::NONE, &one).continuation(0, flag::END_HEADERS, &two);
        peer.connection_error(&[code::PROTOCOL])
    }),
];
