//! The states of streams: `http2/5.1` to `http2/5.1.2` of h2spec.

use super::case::{H2Case, case};
use super::frames::{code, flag, setting};

pub const CASES: &[H2Case] = &[
    case("http2/5.1/1", "idle: DATA", |peer| {
        peer.data(1, flag::END_STREAM, b"test").connection_error(&[code::PROTOCOL])
    }),
    case("http2/5.1/2", "idle: RST_STREAM", |peer| {
        peer.reset(1, code::CANCEL).connection_error(&[code::PROTOCOL])
    }),
    case("http2/5.1/3", "idle: WINDOW_UPDATE", |peer| {
        peer.window(1, 100).connection_error(&[code::PROTOCOL])
    }),
    case("http2/5.1/4", "idle: CONTINUATION", |peer| {
        let block = peer.request("GET", &[]);
        peer.continuation(1, flag::END_HEADERS, &block).connection_error(&[code::PROTOCOL])
    }),
    case("http2/5.1/5", "half closed (remote): DATA", |peer| {
        peer.get(1).data(1, flag::END_STREAM, b"test").stream_error(&[code::STREAM_CLOSED])
    }),
    case("http2/5.1/6", "half closed (remote): HEADERS", |peer| {
        peer.get(1).get(1).stream_error(&[code::STREAM_CLOSED])
    }),
    case("http2/5.1/7", "half closed (remote): CONTINUATION", |peer| {
        let block = peer.request("GET", &[]);
        peer.headers(1, flag::WHOLE, &block).continuation(1, flag::END_HEADERS, &block);
        peer.stream_error(&[code::STREAM_CLOSED, code::PROTOCOL])
    }),
    case("http2/5.1/8", "closed: DATA behind our RST_STREAM", |peer| {
        peer.begin(1, "GET").reset(1, code::CANCEL).data(1, flag::END_STREAM, b"test");
        peer.stream_error(&[code::STREAM_CLOSED])
    }),
    case("http2/5.1/9", "closed: HEADERS behind our RST_STREAM", |peer| {
        peer.begin(1, "GET").reset(1, code::CANCEL).get(1).stream_error(&[code::STREAM_CLOSED])
    }),
    case("http2/5.1/10", "closed: CONTINUATION behind our RST_STREAM", |peer| {
        peer.begin(1, "GET").reset(1, code::CANCEL);
        let line = peer.long_line();
        peer.continuation(1, flag::END_HEADERS, &line).stream_error(&[code::STREAM_CLOSED, code::PROTOCOL])
    }),
    case("http2/5.1/11", "closed: DATA", |peer| {
        peer.get(1).stream_end()?;
        peer.data(1, flag::END_STREAM, b"test").stream_error(&[code::STREAM_CLOSED])
    }),
    case("http2/5.1/12", "closed: HEADERS", |peer| {
        let block = peer.request("GET", &[]);
        peer.headers(1, flag::WHOLE, &block).stream_end()?;
        peer.headers(1, flag::WHOLE, &block).connection_error(&[code::STREAM_CLOSED])
    }),
    case("http2/5.1/13", "closed: CONTINUATION", |peer| {
        peer.get(1).stream_end()?;
        let line = peer.long_line();
        peer.continuation(1, flag::END_HEADERS, &line)
            .connection_error(&[code::STREAM_CLOSED, code::PROTOCOL])
    }),
    case("http2/5.1.1/1", "an even number", |peer| peer.get(2).connection_error(&[code::PROTOCOL])),
    case("http2/5.1.1/2", "a lower number than the one before", |peer| {
        peer.get(5).get(3).connection_error(&[code::PROTOCOL])
    }),
    case("http2/5.1.2/1", "a stream more than the server has set", |peer| {
        let most = peer.most_streams()?;
        // Without a window no answer ends.
        peer.set(&[(setting::INITIAL_WINDOW_SIZE, 0)]);
        let block = peer.request("GET", &[]);
        for at in 0..=most {
            peer.headers(2 * at + 1, flag::WHOLE, &block);
        }
        peer.stream_error(&[code::PROTOCOL, code::REFUSED_STREAM])
    }),
];
