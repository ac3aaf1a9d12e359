//! What others were taken down with.

use super::*;
use crate::proxy::http::h2::budget::Toll;

/// How often `flood` can be done before the connection is over; at most 20,000 times.
fn endured(mut flood: impl FnMut(&mut Pair, u32)) -> u32 {
    let mut pair = Pair::greeted_by(EngineLimits { streams: 128, ..LIMITS });
    pair.ask(1, false, &[]);
    for count in 0..20_000 {
        flood(&mut pair, count);
        assert!(pair.engine.tasks() <= TASKS && pair.engine.past.len() <= REMEMBERED);
        if pair.engine.fault().is_some() {
            assert_eq!(pair.ended_with(), Some(ErrorCode::ENHANCE_YOUR_CALM));
            return count + 1;
        }
        pair.read();
    }
    u32::MAX
}

#[test]
fn a_flood_of_anything_that_costs_us_ends_the_connection() {
    let full = 16_000;
    let reset = |pair: &mut Pair, id| pair.frame(frame::RST_STREAM, 0, id, &8u32.to_be_bytes());
    assert!(
        endured(|pair, count| {
            pair.ask(3 + 2 * count, true, &[]);
            reset(pair, 3 + 2 * count);
        }) <= full / Toll::Reset.cost() + 1,
        "rapid reset"
    );
    assert!(
        endured(|pair, count| {
            pair.ask(3 + 2 * count, true, &[]);
            pair.frame(frame::WINDOW_UPDATE, 0, 3 + 2 * count, &[0; 4]);
        }) <= full / Toll::Reset.cost() + 1,
        "we are made to reset"
    );
    assert!(
        endured(|pair, count| pair.ask(3 + 2 * count, true, &[("te", "x")])) <= full / Toll::Reset.cost() + 1,
        "malformed heads"
    );
    assert!(
        endured(|pair, count| pair.ask(3 + 2 * count, true, &[])) <= 128 + full / Toll::Reset.cost() + 1,
        "streams that nobody may open"
    );
    let costs = [
        (Toll::ResetAgain, frame::RST_STREAM, 0, 1, &[0, 0, 0, 8][..]),
        (Toll::Settings, frame::SETTINGS, 0, 0, b""),
        (Toll::Ping, frame::PING, 0, 0, b"12345678"),
        (Toll::Unknown, frame::PING, frame::ACK, 0, b"12345678"),
        (Toll::Unknown, frame::SETTINGS, frame::ACK, 0, b""),
        (Toll::EmptyData, frame::DATA, 0, 1, b""),
        (Toll::EmptyData, frame::DATA, frame::PADDED, 1, b"\x02ab"),
        (Toll::TinyData, frame::DATA, 0, 1, b"x"),
        (Toll::Priority, frame::PRIORITY, 0, 5, b"\0\0\0\x03\0"),
        (Toll::Priority, frame::PRIORITY_UPDATE, 0, 0, b"\0\0\0\x01u=1"),
        (Toll::Window, frame::WINDOW_UPDATE, 0, 1, b"\0\0\0\x01"),
        (Toll::Window, frame::WINDOW_UPDATE, 0, 0, b"\0\0\0\x01"),
        (Toll::Unknown, 0x42, 0, 1, b"what"),
        (Toll::Unknown, frame::GOAWAY, 0, 0, b"12345678"),
    ];
    for (toll, kind, flags, stream, payload) in costs {
        let count = endured(|pair, _| pair.frame(kind, flags, stream, payload));
        assert!(count <= full / toll.cost() + 2, "{toll:?}, kind {kind}: {count}");
    }
}

#[test]
fn a_head_in_many_pieces_or_without_an_end_ends_the_connection() {
    let mut pair = Pair::greeted();
    pair.frame(frame::HEADERS, 0, 1, &block(&[]));
    let pieces = (1..).find(|_| {
        pair.frame(frame::CONTINUATION, 0, 1, b"");
        pair.engine.fault().is_some()
    });
    assert_eq!((pieces, pair.ended_with()), (Some(16), Some(ErrorCode::ENHANCE_YOUR_CALM)));
    let mut pair = Pair::greeted();
    pair.frame(frame::HEADERS, 0, 1, &[0; 16_000]);
    (0..3).for_each(|_| pair.frame(frame::CONTINUATION, 0, 1, &[0; 16_000]));
    assert!(pair.engine.fault().is_none());
    pair.frame(frame::CONTINUATION, 0, 1, &[0; 16_000]);
    assert_eq!(pair.ended_with(), Some(ErrorCode::ENHANCE_YOUR_CALM), "64 KiB are enough");
    let mut pair = Pair::greeted();
    pair.frame(frame::HEADERS, 0, 1, &[]);
    pair.frame(frame::CONTINUATION, 4, 3, &[]);
    assert_eq!(pair.ended_with(), Some(ErrorCode::PROTOCOL_ERROR), "another stream's");
    let mut pair = Pair::greeted();
    pair.frame(frame::HEADERS, 0, 1, &[]);
    pair.frame(frame::PING, 0, 0, b"12345678");
    assert_eq!(pair.ended_with(), Some(ErrorCode::PROTOCOL_ERROR), "something between");
}

#[test]
fn a_small_block_that_stands_for_much_is_not_unpacked() {
    let mut pair = Pair::greeted();
    // One long line for the table, then it again and again.
    let mut bomb = vec![0x40, 1, b'x', 0x7f, 0x91, 0x1e];
    bomb.extend_from_slice(&[b'y'; 4000]);
    bomb.extend_from_slice(&[0x80 | 62; 12_000]);
    pair.frame(frame::HEADERS, 5, 1, &bomb);
    assert_eq!(pair.ended_with(), Some(ErrorCode::ENHANCE_YOUR_CALM));
}

#[test]
fn a_reset_frees_no_place_before_its_task_has_stopped() {
    let limits = EngineLimits { streams: 128, ..LIMITS };
    let mut pair = Pair::greeted_by(limits);
    let mut opened = 0;
    for id in (1..).step_by(2).take(1000) {
        pair.now = pair.now.after(Duration::from_secs(60));
        pair.ask(id, true, &[]);
        opened += pair.engine.take_opened().len();
        pair.frame(frame::RST_STREAM, 0, id, &8u32.to_be_bytes());
        pair.read();
    }
    assert_eq!((opened, pair.engine.tasks()), (TASKS, TASKS));
    assert!(pair.engine.fault().is_none());
}

#[test]
fn reading_stops_while_what_we_say_is_not_taken() {
    let mut pair = Pair::greeted();
    let mut count = 0;
    while pair.engine.is_reading() {
        pair.now = pair.now.after(Duration::from_secs(1));
        pair.frame(frame::PING, 0, 0, b"12345678");
        count += 1;
        assert!(count < 100_000, "{}", pair.engine.output().len());
    }
    assert!(pair.engine.output().len() < UNREAD + 100);
    pair.read();
    assert!(pair.engine.is_reading());
}

#[test]
fn uploads_that_are_refused_early_are_no_abuse() {
    let mut pair = Pair::greeted_by(EngineLimits { streams: 128, ..LIMITS });
    for id in (1..).step_by(2).take(3000) {
        pair.ask(id, false, &[]);
        pair.data(id, false, &[0; 16_000]);
        pair.answer(id);
        pair.data(id, true, &[0; 16_000]);
        pair.read();
        assert!(pair.engine.fault().is_none(), "stream {id}");
    }
}

#[test]
fn streams_that_had_been_open_for_a_while_may_all_be_given_up_at_once() {
    let mut pair = Pair::greeted_by(EngineLimits { streams: 128, ..LIMITS });
    let ids: Vec<u32> = (1..).step_by(2).take(128).collect();
    ids.iter().for_each(|id| pair.ask(*id, true, &[]));
    pair.now = pair.now.after(Duration::from_millis(60));
    ids.iter().for_each(|id| {
        pair.frame(frame::RST_STREAM, 0, *id, &8u32.to_be_bytes());
        pair.frame(frame::PING, 0, 0, b"12345678");
    });
    assert!(pair.engine.fault().is_none(), "a page was left");
}

#[test]
fn short_pieces_that_a_backend_takes_pay_for_no_reset() {
    let mut pair = Pair::greeted_by(EngineLimits { streams: 128, ..LIMITS });
    pair.ask(1, false, &[]);
    let endured = (3..).step_by(2).take(10_000).position(|id| {
        for _ in 0..20 {
            pair.data(1, false, b"x");
            pair.body(1);
        }
        pair.ask(id, true, &[]);
        pair.frame(frame::RST_STREAM, 0, id, &8u32.to_be_bytes());
        pair.engine.release(id, || Tick(1));
        pair.read();
        pair.engine.fault().is_some()
    });
    assert!(endured.is_some_and(|count| count <= 110), "{endured:?}");
}

#[test]
fn a_reset_for_each_frame_of_an_answer_that_was_on_its_way_is_no_abuse() {
    for is_released in [false, true] {
        let mut pair = Pair::greeted();
        let bell = Arc::new(Bell::default());
        pair.ask(1, true, &[]);
        pair.frame(frame::WINDOW_UPDATE, 0, 1, &100_000_000u32.to_be_bytes());
        pair.frame(frame::WINDOW_UPDATE, 0, 0, &1_000_000_000u32.to_be_bytes());
        pair.engine.send_head(1, false, |out| encode::status(out, 200)).expect("it is open");
        let mut frames = 0;
        while frames < 2000 {
            while let Some(Ok(room)) = pair.room(1, &bell) {
                pair.engine.send_data(1, &vec![0; room], false);
            }
            frames += pair.read().iter().filter(|frame| frame.kind == frame::DATA).count();
        }
        // Python's h2 does so.
        for count in 0..frames {
            pair.frame(frame::RST_STREAM, 0, 1, &8u32.to_be_bytes());
            if is_released && count == 0 {
                pair.engine.release(1, || Tick(1));
            }
        }
        assert!(pair.engine.fault().is_none(), "{frames} frames, released: {is_released}");
    }
}
