//! How streams end.

use super::*;

#[test]
fn what_a_task_has_not_finished_is_cut_when_it_lets_go() {
    let mut pair = Pair::greeted();
    pair.ask(1, true, &[]);
    pair.engine.send_head(1, false, |out| encode::status(out, 200)).expect("it is open");
    pair.engine.release(1, || Tick(1));
    assert_eq!(pair.resets(), [(1, ErrorCode::INTERNAL_ERROR)]);
    pair.ask(3, false, &[]);
    pair.answer(3);
    assert!(pair.resets().is_empty(), "it may end by itself");
}

#[test]
fn who_was_answered_early_may_end_by_itself_and_is_reset_where_it_does_not() {
    let mut pair = Pair::greeted();
    for id in [1, 3, 5, 7] {
        pair.ask(id, false, &[]);
        pair.answer(id);
    }
    let updates = [10_000, 10_000, 16_000].map(|count| {
        pair.data(1, false, &vec![0; count]);
        pair.read().iter().filter(|frame| (frame.kind, frame.stream) == (frame::WINDOW_UPDATE, 1)).count()
    });
    assert_eq!(updates, [0, 0, 1], "all of it may be sent");
    pair.data(1, true, b"on its way");
    pair.frame(frame::RST_STREAM, 0, 3, &8u32.to_be_bytes());
    pair.frame(frame::HEADERS, frame::END_HEADERS | frame::END_STREAM, 5, &[]);
    assert!(pair.engine.fault().is_none() && pair.resets().is_empty());
    assert_eq!(pair.engine.reset_early(pair.now), Some(EARLY_FOR), "one is left");
    let later = pair.now.after(EARLY_FOR - Duration::from_millis(1));
    assert_eq!(pair.engine.reset_early(later), Some(Duration::from_millis(1)));
    assert!(pair.resets().is_empty() && pair.engine.is_early());
    assert_eq!(pair.engine.reset_early(pair.now.after(EARLY_FOR)), None);
    assert_eq!(pair.resets(), [(7, ErrorCode::NO_ERROR)], "the rest of the request is of no use");
    pair.data(7, true, b"on its way");
    assert!(pair.engine.fault().is_none() && pair.resets().is_empty() && !pair.engine.is_early());
    // What was over stays over.
    pair.data(1, true, b"more");
    assert_eq!(pair.resets(), [(1, ErrorCode::STREAM_CLOSED)]);
}

#[test]
fn no_more_than_a_few_streams_are_borne_with() {
    let mut pair = Pair::greeted_by(EngineLimits { streams: 128, ..LIMITS });
    let count = EARLY + 10;
    for id in (1..).step_by(2).take(count) {
        pair.ask(id, false, &[]);
        pair.answer(id);
    }
    let reset: Vec<u32> = pair.resets().into_iter().map(|(id, _)| id).collect();
    assert_eq!(reset, (1..).step_by(2).take(10).collect::<Vec<u32>>(), "the oldest");
    assert_eq!(pair.engine.early.len(), EARLY);
}

#[test]
fn the_end_of_the_connection_cuts_every_stream_and_wakes_its_task() {
    let mut pair = Pair::greeted();
    let ids = [1, 3, 5, 7];
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    for id in ids {
        pair.ask(id, false, &[]);
        assert!(pair.engine.poll_cut(id, &Context::from_waker(&waker)).is_pending());
    }
    assert!(!pair.engine.wake_cut(4), "none is cut");
    assert_eq!(bell.0.load(Ordering::Acquire), 0);
    pair.frame(frame::PUSH_PROMISE, 0, 1, &[]);
    for (woken, more) in [(2, true), (4, false), (4, false)] {
        assert_eq!(pair.engine.wake_cut(2), more);
        assert_eq!(bell.0.load(Ordering::Acquire), woken, "some after the others");
    }
    for id in ids {
        assert!(matches!(pair.engine.poll_cut(id, &Context::from_waker(&waker)), Poll::Ready(_)));
    }
    assert_eq!(pair.ended_with(), Some(ErrorCode::PROTOCOL_ERROR));
    for id in ids {
        pair.engine.release(id, || Tick(1));
    }
    assert!(pair.read().is_empty(), "nothing follows the last word");
}
