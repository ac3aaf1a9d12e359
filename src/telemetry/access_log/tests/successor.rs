//! Another log, or another form, while records come.

use super::*;
use crate::telemetry::access_log::writer::QUEUE;

/// A writer that takes nothing, with a full queue in front of it, and a handle that has the next numbers in its hands: from
/// 0 to the one that is given.
fn full(sink: &Sink) -> (AccessLogWriter, Option<Handle>, u64) {
    sink.change(|scene| scene.stuck = true);
    let log = log_to(sink);
    let mut handle = log.handle(Arc::default());
    let mut number = 0;
    let mut write_one = |handle: &mut Handle| {
        write(handle, number);
        handle.hand_over();
        number += 1;
    };
    write_one(&mut handle);
    sink.wait(|scene| scene.writes == 1);
    // One is being written, so many wait, and the last finds no room.
    for _ in 0..=QUEUE {
        write_one(&mut handle);
    }
    assert!(!handle.buffer.is_empty(), "the queue is full");
    (log, Some(handle), number)
}

#[test]
fn what_a_worker_holds_when_another_log_comes_goes_to_the_old_one_and_nothing_is_lost() {
    let (sink, next) = (Sink::default(), Sink::default());
    let (log, mut handle, count) = full(&sink);
    let next_log = log_to(&next);
    let rest = Handle::replace(&mut handle, Some(next_log.handle(Arc::default())));
    log.take(rest.expect("there was no room on the way"));
    write(handle.as_mut().expect("the new one"), count);
    sink.change(|scene| scene.stuck = false);
    log.close(LONG).expect("closed");
    drop(handle);
    next_log.close(LONG).expect("closed");
    assert_eq!(numbers(&sink.text()), (0..count).collect::<Vec<_>>());
    assert_eq!(numbers(&next.text()), [count]);
}

#[test]
fn a_log_that_is_turned_off_gets_its_last_lines() {
    let sink = Sink::default();
    let log = log_to(&sink);
    let mut handle = Some(log.handle(Arc::default()));
    write(handle.as_mut().expect("there"), 0);
    assert!(Handle::replace(&mut handle, None).is_none(), "there was room");
    assert!(handle.is_none() && Handle::replace(&mut handle, None).is_none());
    log.close(LONG).expect("closed");
    assert_eq!(numbers(&sink.text()), [0]);
}

#[test]
fn another_form_of_the_same_log_comes_behind_the_lines_so_far() {
    let sink = Sink::default();
    let (mut log, mut handle, count) = full(&sink);
    let common = model::AccessLog { path: LogPath::Stdout, format: LogFormat::Common, sample: Share::ALL };
    log.reform(&common);
    let rest = Handle::replace(&mut handle, Some(log.handle(Arc::default())));
    assert!(rest.is_none(), "the new handle has it");
    write(handle.as_mut().expect("there"), count);
    sink.change(|scene| scene.stuck = false);
    // Somebody has room again before it lets go.
    sink.wait(|scene| scene.writes > QUEUE);
    drop(handle);
    log.close(LONG).expect("closed");
    let text = sink.text();
    let (before, last) = text.trim_end().rsplit_once('\n').expect("lines");
    assert_eq!(numbers(before), (0..count).collect::<Vec<_>>());
    assert!(last.starts_with("- - - [01/Jan/1970"), "{last}");
}
