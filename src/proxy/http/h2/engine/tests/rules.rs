//! Who breaks RFC 9113 is told so with the code that it names.

use super::*;

fn connection_error(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Option<ErrorCode> {
    let mut pair = Pair::greeted();
    pair.ask(1, false, &[]);
    pair.frame(kind, flags, stream, payload);
    pair.ended_with()
}

#[test]
fn faults_of_the_connection() {
    let (protocol, size) = (Some(ErrorCode::PROTOCOL_ERROR), Some(ErrorCode::FRAME_SIZE_ERROR));
    let flow = Some(ErrorCode::FLOW_CONTROL_ERROR);
    /// Kind, flags, stream, payload, and what becomes of the connection.
    type Case = (u8, u8, u32, &'static [u8], Option<ErrorCode>);
    let cases: &[Case] = &[
        (frame::DATA, 0, 0, b"x", protocol),
        (frame::DATA, 0, 3, b"x", protocol),
        (frame::DATA, 0, 2, b"x", protocol),
        (frame::DATA, frame::PADDED, 1, b"\x05x", protocol),
        (frame::HEADERS, 4, 0, b"", protocol),
        (frame::HEADERS, 4, 2, b"", protocol),
        (frame::HEADERS, 4 | frame::PADDED, 3, b"\x05x", protocol),
        (frame::HEADERS, 4 | frame::WITH_PRIORITY, 3, b"\0\0\0\0", size),
        (frame::HEADERS, 4 | frame::WITH_PRIORITY, 3, b"\0\0\0\x03\0", protocol),
        (frame::HEADERS, 4, 3, b"\x80", Some(ErrorCode::COMPRESSION_ERROR)),
        (frame::PRIORITY, 0, 0, b"\0\0\0\x03\0", protocol),
        (frame::PRIORITY, 0, 3, b"\0\0\0\x03\0", protocol),
        (frame::PRIORITY, 0, 3, b"\0\0\0\x03", size),
        (frame::RST_STREAM, 0, 0, b"\0\0\0\0", protocol),
        (frame::RST_STREAM, 0, 3, b"\0\0\0\0", protocol),
        (frame::RST_STREAM, 0, 1, b"\0\0\0", size),
        (frame::SETTINGS, 0, 1, b"", protocol),
        (frame::SETTINGS, frame::ACK, 0, b"\0\x02\0\0\0\0", size),
        (frame::SETTINGS, 0, 0, b"\0\x02\0", size),
        (frame::SETTINGS, 0, 0, b"\0\x02\0\0\0\x02", protocol),
        (frame::SETTINGS, 0, 0, b"\0\x04\x80\0\0\0", flow),
        (frame::SETTINGS, 0, 0, b"\0\x05\0\0\x3f\xff", protocol),
        (frame::SETTINGS, 0, 0, b"\0\x05\x01\0\0\0", protocol),
        (frame::PUSH_PROMISE, 4, 1, b"\0\0\0\x02", protocol),
        (frame::PING, 0, 1, b"12345678", protocol),
        (frame::PING, 0, 0, b"1234567", size),
        (frame::GOAWAY, 0, 1, b"12345678", protocol),
        (frame::GOAWAY, 0, 0, b"1234567", size),
        (frame::WINDOW_UPDATE, 0, 0, b"\0\0\0\0", protocol),
        (frame::WINDOW_UPDATE, 0, 3, b"\0\0\0\x01", protocol),
        (frame::WINDOW_UPDATE, 0, 0, b"\0\0\x01", size),
        (frame::WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff", flow),
        (frame::CONTINUATION, 4, 1, b"", protocol),
        (frame::PRIORITY_UPDATE, 0, 1, b"\0\0\0\x01u=1", protocol),
        (frame::PRIORITY_UPDATE, 0, 0, b"\0\0\0", size),
        (frame::PRIORITY_UPDATE, 0, 0, b"\0\0\0\0u=1", protocol),
        // And these are none.
        (frame::SETTINGS, 0, 0, b"\x12\x34\0\0\0\x02", None),
        (0x42, 0xff, 1, b"what is this", None),
        (frame::PING, 0, 0, b"12345678", None),
        (frame::PRIORITY, 0, 9, b"\x80\0\0\x03\0", None),
        (frame::PRIORITY_UPDATE, 0, 0, b"\0\0\0\x09u=1", None),
        (frame::GOAWAY, 0, 0, b"12345678 bye", None),
    ];
    for &(kind, flags, stream, payload, expected) in cases {
        assert_eq!(
            connection_error(kind, flags, stream, payload),
            expected,
            "kind {kind}, flags {flags}, stream {stream}, {}",
            payload.escape_ascii()
        );
    }
}

#[test]
fn a_frame_that_is_too_large_is_not_waited_for() {
    let mut pair = Pair::greeted();
    let mut bytes = Vec::new();
    FrameHead { length: 16_385, kind: frame::DATA, flags: 0, stream: 1 }.write(&mut bytes);
    pair.send(&bytes);
    assert_eq!(pair.ended_with(), Some(ErrorCode::FRAME_SIZE_ERROR));
}

#[test]
fn faults_of_a_stream_end_that_stream_alone() {
    let post = |lines: &[(&str, &str)]| {
        let mut pair = Pair::greeted();
        pair.ask(1, false, lines);
        pair
    };
    let mut pair = post(&[("content-length", "5")]);
    pair.data(1, true, b"1234");
    assert_eq!(pair.resets(), [(1, ErrorCode::PROTOCOL_ERROR)], "fewer bytes than were said");
    let mut pair = post(&[("content-length", "5")]);
    pair.data(1, false, b"123456");
    assert_eq!(pair.resets(), [(1, ErrorCode::PROTOCOL_ERROR)], "more bytes than were said");
    let mut pair = post(&[("content-length", "5")]);
    pair.frame(frame::HEADERS, 5, 1, b"");
    assert_eq!(pair.resets(), [(1, ErrorCode::PROTOCOL_ERROR)], "trailers in place of the body");
    let mut pair = post(&[]);
    pair.frame(frame::HEADERS, 4, 1, b"");
    assert_eq!(pair.resets(), [(1, ErrorCode::PROTOCOL_ERROR)], "trailers that do not end it");
    let mut pair = post(&[]);
    pair.data(1, true, b"");
    pair.data(1, false, b"x");
    assert_eq!(pair.resets(), [(1, ErrorCode::STREAM_CLOSED)], "DATA behind the end");
    let mut pair = post(&[]);
    pair.frame(frame::WINDOW_UPDATE, 0, 1, b"\0\0\0\0");
    assert_eq!(pair.resets(), [(1, ErrorCode::PROTOCOL_ERROR)], "a window that grows by nothing");
    let mut pair = post(&[]);
    pair.frame(frame::WINDOW_UPDATE, 0, 1, b"\x7f\xff\xff\xff");
    assert_eq!(pair.resets(), [(1, ErrorCode::FLOW_CONTROL_ERROR)], "a window that is too large");
    assert!(pair.engine.fault().is_none());
    pair.ask(3, true, &[]);
    assert_eq!(pair.engine.take_opened(), [1, 3], "the others go on");
}

#[test]
fn nobody_sends_more_than_the_windows_allow() {
    let mut pair = Pair::greeted_by(EngineLimits { window: 20_000, ..LIMITS });
    pair.ask(1, false, &[]);
    pair.data(1, false, &[0; 16_000]);
    pair.data(1, false, &[0; 4_001]);
    assert_eq!(pair.resets(), [(1, ErrorCode::FLOW_CONTROL_ERROR)], "of the stream");
    // No more than what everybody begins with.
    let mut pair = Pair::greeted_by(EngineLimits { window_max: 32_767, ..LIMITS });
    pair.ask(1, false, &[]);
    for _ in 0..4 {
        pair.data(1, false, &[0; 16_000]);
    }
    pair.data(1, false, &[0; 1_536]);
    assert_eq!(pair.ended_with(), Some(ErrorCode::FLOW_CONTROL_ERROR), "of the connection");
}

#[test]
fn numbers_of_streams_only_grow() {
    let mut pair = Pair::greeted();
    pair.ask(5, true, &[]);
    pair.ask(3, true, &[]);
    assert_eq!(pair.ended_with(), Some(ErrorCode::PROTOCOL_ERROR));
    let mut pair = Pair::greeted();
    pair.ask(1, true, &[]);
    pair.answer(1);
    pair.ask(1, true, &[]);
    assert_eq!(pair.ended_with(), Some(ErrorCode::STREAM_CLOSED), "it was open once");
}

#[test]
fn a_stream_too_many_is_refused_and_may_come_again() {
    let mut pair = Pair::greeted();
    for stream in [1, 3, 5, 7, 9] {
        pair.ask(stream, true, &[]);
    }
    assert_eq!(pair.engine.take_opened(), [1, 3, 5, 7]);
    assert_eq!(pair.resets(), [(9, ErrorCode::REFUSED_STREAM)]);
    pair.answer(3);
    pair.ask(11, true, &[]);
    assert_eq!(pair.engine.take_opened(), [11]);
}

#[test]
fn a_malformed_request_is_reset_and_told_to_whoever_writes_records() {
    let mut pair = Pair::greeted();
    pair.ask(1, true, &[("connection", "close")]);
    assert_eq!(pair.resets(), [(1, ErrorCode::PROTOCOL_ERROR)]);
    assert!(pair.engine.take_opened().is_empty());
    let told = pair.engine.take_misshapen();
    assert_eq!(told.iter().map(|one| one.cause).collect::<Vec<_>>(), [Cause::BadHead]);
    assert_eq!(told[0].request.head.method(), b"POST");
}

#[test]
fn one_that_is_too_large_is_there_to_be_answered() {
    let mut pair = Pair::greeted();
    pair.ask(1, true, &[("x", &"y".repeat(9000))]);
    assert_eq!(pair.engine.take_opened(), [1]);
    assert_eq!(pair.engine.take_request(1).map(|(one, _)| one.framing), Some(Err(Cause::HeadTooLarge)));
}

#[test]
fn the_first_thing_is_the_preface_and_then_settings() {
    let mut pair = Pair::fresh(LIMITS);
    pair.send(b"GET / HTTP/1.1\r\n");
    assert_eq!(pair.ended_with(), Some(ErrorCode::PROTOCOL_ERROR));
    let mut pair = Pair::fresh(LIMITS);
    pair.send(PREFACE);
    assert!(pair.engine.is_amidst() && pair.engine.fault().is_none());
    pair.frame(frame::PING, 0, 0, b"12345678");
    assert_eq!(pair.ended_with(), Some(ErrorCode::PROTOCOL_ERROR));
    let mut pair = Pair::fresh(LIMITS);
    pair.send(PREFACE);
    pair.frame(frame::SETTINGS, frame::ACK, 0, b"");
    assert_eq!(pair.ended_with(), Some(ErrorCode::PROTOCOL_ERROR), "an answer to nothing");
}

/// SETTINGS make as much work as there are places for streams, many of which may be free.
#[test]
fn settings_cost_what_it_takes_to_go_through_all_places() {
    let mut pair = Pair::greeted_by(EngineLimits { streams: 200, ..LIMITS });
    let ids: Vec<u32> = (1..400).step_by(2).collect();
    ids.iter().for_each(|&id| pair.ask(id, true, &[]));
    ids[1..].iter().for_each(|&id| pair.answer(id));
    let cost = |pair: &mut Pair| {
        let before = pair.engine.owes();
        pair.frame(frame::SETTINGS, 0, 0, b"\0\x04\0\0\0\x0a");
        pair.engine.owes() - before
    };
    let with_many = cost(&mut pair);
    pair.answer(ids[0]);
    let with_none = cost(&mut pair);
    assert!(with_many >= 10 * with_none && with_none > 0, "{with_many} and {with_none}");
}

#[test]
fn windows_shift_with_the_settings_and_may_fall_below_zero() {
    let mut pair = Pair::greeted();
    let bell = Arc::new(Bell::default());
    pair.ask(1, true, &[]);
    pair.engine.send_data(1, &[0; 60_000], false);
    pair.frame(frame::SETTINGS, 0, 0, b"\0\x04\0\0\0\x0a");
    assert_eq!(pair.room(1, &bell), None);
    pair.frame(frame::WINDOW_UPDATE, 0, 1, &59_990u32.to_be_bytes());
    assert_eq!(pair.room(1, &bell), None, "it stood at -59,990");
    pair.frame(frame::SETTINGS, 0, 0, b"\0\x04\0\0\0\x0b");
    assert_eq!(pair.room(1, &bell), Some(Ok(1)));
    pair.ask(3, true, &[]);
    assert_eq!(pair.room(3, &bell), Some(Ok(11)));
}
