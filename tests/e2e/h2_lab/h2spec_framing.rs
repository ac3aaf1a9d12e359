//! The preface, frames and errors: `http2/3.5` to `http2/4.3`, `http2/5.3.1` to `http2/5.5` and `http2/7` of h2spec.

use super::case::{H2Case, bare, case};
use super::frames::{code, flag, kind};
use super::peer::{Peer, priority};

/// A type that nobody knows.
const UNKNOWN: u8 = 0x16;
const WORDS: [u8; 8] = *b"h2spec\0\0";
const ZEROES: [u8; 8] = [0; 8];

/// A head whose block is not at its end, without the end of its stream.
fn half(peer: &mut Peer) -> &mut Peer {
    let block = peer.request("GET", &[]);
    peer.headers(1, flag::NONE, &block)
}

/// The end of that block.
fn rest(peer: &mut Peer) -> &mut Peer {
    let line = peer.long_line();
    peer.continuation(1, flag::END_HEADERS, &line)
}

pub const CASES: &[H2Case] = &[
    bare("http2/3.5/1", "a client's preface", |peer| peer.preface().server_preface()),
    bare("http2/3.5/2", "another preface", |peer| peer.say(b"INVALID CONNECTION PREFACE\r\n\r\n").end()),
    case("http2/4.1/1", "an unknown type", |peer| {
        peer.frame(UNKNOWN, flag::NONE, 0, &ZEROES).ping(flag::NONE, ZEROES).ping_ack(ZEROES)
    }),
    case("http2/4.1/2", "unknown flags", |peer| peer.ping(0x16, ZEROES).some(kind::PING)),
    case("http2/4.1/3", "the reserved bit", |peer| {
        peer.frame(kind::PING, 0x16, 1 << 31, &ZEROES).some(kind::PING)
    }),
    case("http2/4.2/1", "DATA with 2^14 octets", |peer| {
        let longest = vec![b'x'; peer.longest()];
        peer.begin(1, "POST").data(1, flag::END_STREAM, &longest).answer(1)
    }),
    case("http2/4.2/2", "DATA that is longer than SETTINGS_MAX_FRAME_SIZE", |peer| {
        let longer = vec![b'x'; peer.too_long()?];
        peer.begin(1, "POST").data(1, flag::END_STREAM, &longer).stream_error(&[code::FRAME_SIZE])
    }),
    case("http2/4.2/3", "HEADERS that are longer than SETTINGS_MAX_FRAME_SIZE", |peer| {
        let line = "x".repeat(peer.too_long()? / 4);
        let names = ["x-dummy0", "x-dummy1", "x-dummy2", "x-dummy3", "x-dummy4"];
        let block = peer.request("GET", &names.map(|name| (name, line.as_str())));
        peer.headers(1, flag::WHOLE, &block).connection_error(&[code::FRAME_SIZE])
    }),
    case("http2/4.3/1", "a block that ends within a literal", |peer| {
        peer.headers(1, flag::WHOLE, &[0x40]).connection_error(&[code::COMPRESSION])
    }),
    case("http2/4.3/2", "PRIORITY within a block", |peer| {
        half(peer).priority(1, 0, 255);
        rest(peer).connection_error(&[code::PROTOCOL])
    }),
    case("http2/4.3/3", "HEADERS of another stream within a block", |peer| {
        half(peer).get(3);
        rest(peer).connection_error(&[code::PROTOCOL])
    }),
    case("http2/5.3.1/1", "HEADERS of a stream that depends on itself", |peer| {
        let block = peer.request("GET", &[]);
        peer.headers(1, flag::WHOLE | flag::PRIORITY, &[priority(1, 255), block].concat());
        peer.stream_error(&[code::PROTOCOL])
    }),
    case("http2/5.3.1/2", "PRIORITY of a stream that depends on itself", |peer| {
        peer.priority(1, 1, 255).stream_error(&[code::PROTOCOL])
    }),
    case("http2/5.4.1/1", "a wrong PING ends the connection", |peer| {
        peer.frame(kind::PING, flag::NONE, 3, &ZEROES).end()
    }),
    // h2spec runs it with `--strict` only.
    case("http2/5.4.1/2", "a wrong PING is answered by GOAWAY", |peer| {
        peer.frame(kind::PING, flag::NONE, 3, &ZEROES).some(kind::GOAWAY)
    }),
    case("http2/5.5/1", "an extension's frame", |peer| {
        peer.frame(UNKNOWN, flag::NONE, 0, &ZEROES).ping(flag::NONE, ZEROES).ping_ack(ZEROES)
    }),
    case("http2/5.5/2", "an extension's frame within a block", |peer| {
        let block = peer.request("GET", &[]);
        peer.headers(1, flag::END_STREAM, &block).frame(UNKNOWN, flag::NONE, 0, &ZEROES);
        peer.connection_error(&[code::PROTOCOL])
    }),
    case("http2/7/1", "GOAWAY with an unknown code", |peer| {
        peer.go_away(0xff, b"").ping(flag::NONE, WORDS).ping_ack_or_end(WORDS)
    }),
    case("http2/7/2", "RST_STREAM with an unknown code", |peer| {
        peer.begin(1, "POST").reset(1, 0xff).ping(flag::NONE, ZEROES).ping_ack(ZEROES)
    }),
];
