//! Frames of the connection: `http2/6.5` to `http2/6.9.2` of h2spec.

use super::case::{H2Case, case};
use super::frames::{code, flag, kind, setting};

/// The widest window.
const WIDEST: u32 = (1 << 31) - 1;
const WORDS: [u8; 8] = *b"h2spec\0\0";
const ZEROES: [u8; 8] = [0; 8];

pub const CASES: &[H2Case] = &[
    case("http2/6.5/1", "SETTINGS with ACK and a payload", |peer| {
        peer.frame(kind::SETTINGS, flag::ACK, 0, &[0]).connection_error(&[code::FRAME_SIZE])
    }),
    case("http2/6.5/2", "SETTINGS of a stream", |peer| {
        peer.frame(kind::SETTINGS, flag::NONE, 1, b"\0\x03\0\0\0\x64").connection_error(&[code::PROTOCOL])
    }),
    case("http2/6.5/3", "SETTINGS with 3 octets", |peer| {
        peer.frame(kind::SETTINGS, flag::NONE, 0, b"\0\x03\0");
        peer.stream_error(&[code::PROTOCOL, code::FRAME_SIZE])
    }),
    case("http2/6.5.2/1", "SETTINGS_ENABLE_PUSH of 2", |peer| {
        peer.set(&[(setting::ENABLE_PUSH, 2)]).connection_error(&[code::PROTOCOL])
    }),
    case("http2/6.5.2/2", "SETTINGS_INITIAL_WINDOW_SIZE of 2^31", |peer| {
        peer.set(&[(setting::INITIAL_WINDOW_SIZE, WIDEST + 1)]).connection_error(&[code::FLOW_CONTROL])
    }),
    case("http2/6.5.2/3", "SETTINGS_MAX_FRAME_SIZE of 2^14 - 1", |peer| {
        peer.set(&[(setting::MAX_FRAME_SIZE, 16_383)]).connection_error(&[code::PROTOCOL])
    }),
    case("http2/6.5.2/4", "SETTINGS_MAX_FRAME_SIZE of 2^24", |peer| {
        peer.set(&[(setting::MAX_FRAME_SIZE, 16_777_216)]).connection_error(&[code::PROTOCOL])
    }),
    case("http2/6.5.2/5", "an unknown setting", |peer| {
        peer.set(&[(0xff, 1)]).ping(flag::NONE, ZEROES).ping_ack(ZEROES)
    }),
    case("http2/6.5.3/1", "the same setting twice", |peer| {
        peer.needs_body(1)?;
        let name = setting::INITIAL_WINDOW_SIZE;
        peer.set(&[(name, 100), (name, 1)]).settings_ack()?;
        peer.get(1).one_octet()
    }),
    case("http2/6.5.3/2", "SETTINGS are acknowledged", |peer| {
        peer.set(&[(setting::ENABLE_PUSH, 0)]).settings_ack()
    }),
    case("http2/6.7/1", "PING", |peer| peer.ping(flag::NONE, WORDS).ping_ack(WORDS)),
    case("http2/6.7/2", "PING with ACK is not answered", |peer| {
        peer.ping(flag::ACK, *b"invalid\0").ping(flag::NONE, WORDS).ping_ack(WORDS)
    }),
    case("http2/6.7/3", "PING of a stream", |peer| {
        peer.frame(kind::PING, flag::NONE, 1, &ZEROES).connection_error(&[code::PROTOCOL])
    }),
    case("http2/6.7/4", "PING with 6 octets", |peer| {
        peer.frame(kind::PING, flag::NONE, 0, &ZEROES[..6]).connection_error(&[code::FRAME_SIZE])
    }),
    case("http2/6.8/1", "GOAWAY of a stream", |peer| {
        peer.frame(kind::GOAWAY, flag::NONE, 1, &ZEROES).connection_error(&[code::PROTOCOL])
    }),
    case("http2/6.9/1", "WINDOW_UPDATE of 0 on the connection", |peer| {
        peer.window(0, 0).connection_error(&[code::PROTOCOL])
    }),
    case("http2/6.9/2", "WINDOW_UPDATE of 0 on a stream", |peer| {
        peer.begin(1, "GET").window(1, 0).stream_error(&[code::PROTOCOL])
    }),
    case("http2/6.9/3", "WINDOW_UPDATE with 3 octets", |peer| {
        peer.frame(kind::WINDOW_UPDATE, flag::NONE, 0, b"\0\0\x01").connection_error(&[code::FRAME_SIZE])
    }),
    case("http2/6.9.1/1", "DATA fits into a window of 1", |peer| {
        peer.needs_body(1)?;
        peer.set(&[(setting::INITIAL_WINDOW_SIZE, 1)]).settings_ack()?;
        peer.get(1).one_octet()
    }),
    case("http2/6.9.1/2", "the connection's window beyond 2^31 - 1", |peer| {
        peer.window(0, WIDEST).window(0, WIDEST).code(kind::GOAWAY, code::FLOW_CONTROL)
    }),
    case("http2/6.9.1/3", "a stream's window beyond 2^31 - 1", |peer| {
        peer.begin(1, "GET").window(1, WIDEST).window(1, WIDEST).code(kind::RST_STREAM, code::FLOW_CONTROL)
    }),
    case("http2/6.9.2/1", "SETTINGS_INITIAL_WINDOW_SIZE changes the windows of open streams", |peer| {
        peer.needs_body(1)?;
        peer.set(&[(setting::INITIAL_WINDOW_SIZE, 0)]).settings_ack()?;
        peer.get(1).set(&[(setting::INITIAL_WINDOW_SIZE, 1)]).one_octet()
    }),
    case("http2/6.9.2/2", "SETTINGS_INITIAL_WINDOW_SIZE makes a window negative", |peer| {
        peer.needs_body(5)?;
        peer.set(&[(setting::INITIAL_WINDOW_SIZE, 3)]).settings_ack()?;
        peer.get(1).some(kind::DATA)?;
        peer.set(&[(setting::INITIAL_WINDOW_SIZE, 2)]).settings_ack()?;
        peer.window(1, 2).one_octet()
    }),
    case("http2/6.9.2/3", "SETTINGS_INITIAL_WINDOW_SIZE beyond 2^31 - 1", |peer| {
        peer.set(&[(setting::INITIAL_WINDOW_SIZE, WIDEST + 1)]).connection_error(&[code::FLOW_CONTROL])
    }),
];
