//! What every server takes, `generic/1` to `generic/4` of h2spec.

use super::case::{H2Case, bare, case};
use super::frames::{code, flag, kind, setting};
use super::peer::{WINDOW, priority};

/// In the highest bit of what a stream depends on: no other stream does beside it.
const EXCLUSIVE: u32 = 1 << 31;
const WORDS: [u8; 8] = *b"h2spec\0\0";
const ZEROES: [u8; 8] = [0; 8];

pub const CASES: &[H2Case] = &[
    bare("generic/1/1", "a client's preface", |peer| peer.preface().server_preface()),
    case("generic/2/1", "PRIORITY of an idle stream", |peer| {
        peer.priority(1, 0, 255).ping(flag::NONE, ZEROES).ping_ack(ZEROES)
    }),
    case("generic/2/2", "WINDOW_UPDATE of a half-closed (remote) stream", |peer| {
        // Without a window the answer does not end before it.
        peer.set(&[(setting::INITIAL_WINDOW_SIZE, 0)]).get(1).window(1, 1).some(kind::DATA)
    }),
    case("generic/2/3", "PRIORITY of a half-closed (remote) stream", |peer| {
        peer.set(&[(setting::INITIAL_WINDOW_SIZE, 0)]).get(1);
        peer.priority(1, 0, 255).window(1, 1).some(kind::DATA)
    }),
    case("generic/2/4", "RST_STREAM of a half-closed (remote) stream", |peer| {
        peer.get(1).reset(1, code::CANCEL).ping(flag::NONE, ZEROES).ping_ack(ZEROES)
    }),
    case("generic/2/5", "PRIORITY of a closed stream", |peer| {
        peer.get(1).stream_end()?;
        peer.priority(1, 0, 255).ping(flag::NONE, ZEROES).ping_ack(ZEROES)
    }),
    case("generic/3.1/1", "one DATA", |peer| {
        peer.begin(1, "POST").data(1, flag::END_STREAM, b"test").answer(1)
    }),
    case("generic/3.1/2", "two DATA", |peer| {
        peer.begin(1, "POST").data(1, flag::NONE, b"test").data(1, flag::END_STREAM, b"test").answer(1)
    }),
    case("generic/3.1/3", "DATA with padding", |peer| {
        let padded = b"\x05test\0\0\0\0\0";
        peer.begin(1, "POST").data(1, flag::END_STREAM | flag::PADDED, padded).answer(1)
    }),
    case("generic/3.2/1", "HEADERS", |peer| peer.get(1).answer(1)),
    case("generic/3.2/2", "HEADERS with padding", |peer| {
        let block = peer.request("GET", &[]);
        peer.headers(1, flag::WHOLE | flag::PADDED, &[&[8][..], &block, &ZEROES].concat()).answer(1)
    }),
    case("generic/3.2/3", "HEADERS with a priority", |peer| {
        let block = peer.request("GET", &[]);
        peer.headers(1, flag::WHOLE | flag::PRIORITY, &[priority(0, 255), block].concat()).answer(1)
    }),
    case("generic/3.3/1", "PRIORITY with weight 1", |peer| peer.priority(1, 0, 0).get(1).answer(1)),
    case("generic/3.3/2", "PRIORITY with weight 256", |peer| peer.priority(1, 0, 255).get(1).answer(1)),
    case("generic/3.3/3", "PRIORITY that depends on another stream", |peer| {
        peer.priority(3, 1, 0).get(1).answer(1)
    }),
    case("generic/3.3/4", "PRIORITY that depends exclusively", |peer| {
        peer.priority(1, EXCLUSIVE, 0).get(1).answer(1)
    }),
    case("generic/3.3/5", "PRIORITY of an idle stream, then HEADERS of a lower one", |peer| {
        peer.priority(3, 0, 255).get(1).answer(1)
    }),
    case("generic/3.4/1", "RST_STREAM", |peer| {
        peer.begin(1, "GET").reset(1, code::CANCEL).ping(flag::NONE, ZEROES).ping_ack(ZEROES)
    }),
    case("generic/3.5/1", "SETTINGS with each setting", |peer| {
        let pairs = [
            (setting::HEADER_TABLE_SIZE, 4096),
            (setting::ENABLE_PUSH, 1),
            (setting::MAX_CONCURRENT_STREAMS, 100),
            (setting::INITIAL_WINDOW_SIZE, WINDOW),
            (setting::MAX_FRAME_SIZE, 16_384),
            (setting::MAX_HEADER_LIST_SIZE, 100),
        ];
        peer.set(&pairs).settings_ack()
    }),
    case("generic/3.7/1", "PING", |peer| peer.ping(flag::NONE, WORDS).ping_ack(WORDS)),
    case("generic/3.8/1", "GOAWAY", |peer| {
        peer.go_away(code::NO_ERROR, b"h2spec").ping(flag::NONE, WORDS).ping_ack_or_end(WORDS)
    }),
    case("generic/3.9/1", "WINDOW_UPDATE of the connection", |peer| {
        peer.window(0, 1).ping(flag::NONE, ZEROES).ping_ack(ZEROES)
    }),
    case("generic/3.9/2", "WINDOW_UPDATE of a stream", |peer| peer.get(1).window(1, 1).answer(1)),
    case("generic/3.10/1", "one CONTINUATION", |peer| {
        let block = peer.request("GET", &[]);
        peer.headers(1, flag::END_STREAM, &block[..5]);
        peer.continuation(1, flag::END_HEADERS, &block[5..]).answer(1)
    }),
    case("generic/3.10/2", "two CONTINUATION", |peer| {
        let block = peer.request("GET", &[]);
        peer.headers(1, flag::END_STREAM, &block[..5]).continuation(1, flag::NONE, &block[5..10]);
        peer.continuation(1, flag::END_HEADERS, &block[10..]).answer(1)
    }),
    case("generic/4/1", "a GET", |peer| peer.get(1).answer(1)),
    case("generic/4/2", "a HEAD", |peer| {
        let block = peer.request("HEAD", &[]);
        peer.headers(1, flag::WHOLE, &block).answer(1)
    }),
    case("generic/4/3", "a POST", |peer| peer.begin(1, "POST").data(1, flag::END_STREAM, b"test").answer(1)),
    case("generic/4/4", "a POST with trailers", |peer| {
        let block = peer.request("POST", &[("trailer", "x-test")]);
        peer.headers(1, flag::END_HEADERS, &block).data(1, flag::NONE, b"test");
        let trailers = peer.block(&[("x-test", "ok")]);
        peer.headers(1, flag::WHOLE, &trailers).answer(1)
    }),
];
