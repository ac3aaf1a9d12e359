//! The way of a line from a worker to its destination.

use std::io::Write;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Condvar, Mutex};

use super::*;
use crate::config::model::{LogFormat, Share};
use crate::telemetry::cells::Readings;
use crate::tick::Tick;

const LONG: Duration = Duration::from_secs(20);

/// What a sink does and has seen.
#[derive(Default)]
struct Scene {
    written: Vec<u8>,
    /// Writes wait while this is set.
    stuck: bool,
    /// Answers of the next writes: bytes taken, or an error.
    answers: Vec<io::Result<usize>>,
    /// Writes that are waiting or were answered.
    writes: usize,
}

#[derive(Clone, Default)]
struct Sink(Arc<(Mutex<Scene>, Condvar)>);

impl Sink {
    fn change<T>(&self, change: impl FnOnce(&mut Scene) -> T) -> T {
        let result = change(&mut self.0.0.lock().expect("no panic"));
        self.0.1.notify_all();
        result
    }

    /// Waits until `reached`, at most [`LONG`].
    fn wait(&self, reached: impl Fn(&Scene) -> bool) {
        let scene = self.0.0.lock().expect("no panic");
        let (_scene, timeout) =
            self.0.1.wait_timeout_while(scene, LONG, |scene| !reached(scene)).expect("no panic");
        assert!(!timeout.timed_out(), "the sink never got there");
    }

    fn text(&self) -> String {
        self.change(|scene| String::from_utf8(scene.written.clone()).expect("UTF-8"))
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut scene = self.0.0.lock().expect("no panic");
        scene.writes += 1;
        self.0.1.notify_all();
        let mut scene = self.0.1.wait_while(scene, |scene| scene.stuck).expect("no panic");
        let count =
            if scene.answers.is_empty() { bytes.len() } else { scene.answers.remove(0)?.min(bytes.len()) };
        scene.written.extend_from_slice(&bytes[..count]);
        self.0.1.notify_all();
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn log_to(sink: &Sink) -> AccessLogWriter {
    log_counting(sink, &Arc::default())
}

/// The same with a count of what it can't write.
fn log_counting(sink: &Sink, lost: &Arc<AtomicU64>) -> AccessLogWriter {
    let form = Form::new(&LogFormat::Json, Share::ALL);
    AccessLogWriter::start_on(Box::new(sink.clone()), None, form, lost).expect("a thread")
}

/// Writes a record that can be told by its number.
fn write(handle: &mut Handle, number: u64) {
    let record = Record { bytes_in: number, done: Tick(1), ..Record::default() };
    handle.write(&record, (None, None, None), &Names::default(), WallStart(0));
}

/// The numbers of the records that were written, in order.
fn numbers(text: &str) -> Vec<u64> {
    let number = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).expect("whole lines only");
        value["bytes_in"].as_u64().expect("a number")
    };
    text.lines().map(number).collect()
}

/// Log events of the threads started inside, one line each.
fn events() -> (impl Drop, Receiver<String>) {
    struct Lines(SyncSender<String>);
    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.try_send(String::from_utf8_lossy(bytes).into_owned());
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (sender, receiver) = mpsc::sync_channel(100);
    let subscriber =
        tracing_subscriber::fmt().with_ansi(false).with_writer(move || Lines(sender.clone())).finish();
    (tracing::subscriber::set_default(subscriber), receiver)
}

#[test]
fn lines_come_in_order_and_close_writes_the_last() {
    let sink = Sink::default();
    let log = log_to(&sink);
    let mut handle = log.handle(Arc::default());
    for number in 0..5000 {
        write(&mut handle, number);
    }
    assert!(handle.buffer.len() < HAND_OVER_AT, "large buffers go without a tick");
    drop(handle);
    log.close(LONG).expect("closed");
    assert_eq!(numbers(&sink.text()), (0..5000).collect::<Vec<_>>());
}

#[test]
fn a_tick_hands_over_a_small_buffer() {
    let sink = Sink::default();
    let log = log_to(&sink);
    let mut handle = log.handle(Arc::default());
    write(&mut handle, 1);
    handle.hand_over();
    sink.wait(|scene| scene.written.ends_with(b"\n"));
    assert_eq!(numbers(&sink.text()), [1]);
    handle.hand_over();
    assert_eq!(sink.change(|scene| scene.writes), 1, "nothing to hand over, nothing written");
}

#[test]
fn a_stuck_writer_costs_lines_and_not_time() {
    let (_guard, events) = events();
    let sink = Sink::default();
    sink.change(|scene| scene.stuck = true);
    let cells = Arc::new(Cells::default());
    let log = log_to(&sink);
    let mut handle = log.handle(Arc::clone(&cells));
    // The writer hangs in its first write before anything is lost, so no slot becomes free in between.
    write(&mut handle, 0);
    handle.hand_over();
    sink.wait(|scene| scene.writes == 1);
    let mut number = 1;
    while cells.access_dropped.value() < 10 {
        write(&mut handle, number);
        number += 1;
        assert!(number < 1_000_000, "nothing is ever dropped");
    }
    let kept = number - 10;
    // Whoever looks at the events learns of it while the writer still hangs, and not again and again.
    let second = |number: u64| Tick(number * 1_000_000_000);
    handle.tick(second(1));
    write(&mut handle, u64::MAX);
    handle.tick(second(10));
    let told: Vec<String> = events.try_iter().collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("records were dropped") && told[0].contains("dropped=10"), "{told:?}");
    handle.tick(second(11));
    let told: Vec<String> = events.try_iter().collect();
    assert!(told.len() == 1 && told[0].contains("dropped=1"), "{told:?}");
    handle.tick(second(99));
    assert!(handle.buffer.len() < KEEP_AT_MOST + 1024);
    sink.change(|scene| scene.stuck = false);
    // The queue empties; then the buffer that was kept goes.
    sink.wait(|scene| scene.writes >= 2);
    handle.hand_over();
    assert!(handle.buffer.is_empty(), "the second write was out of the queue");
    // With the third there is room for one more.
    sink.wait(|scene| scene.writes >= 3);
    write(&mut handle, number);
    drop(handle);
    log.close(LONG).expect("closed");
    let expected: Vec<u64> = (0..kept).chain([number]).collect();
    assert_eq!(numbers(&sink.text()), expected, "the eleven after a full buffer are gone, no others");
    assert_eq!(Readings::sum(&[cells]).access_dropped, 11);
    assert_eq!(events.try_iter().count(), 0, "everything was told");
}

#[test]
fn a_handle_that_can_hand_over_nothing_counts_its_lines_as_dropped() {
    let sink = Sink::default();
    let log = log_to(&sink);
    let cells = Arc::new(Cells::default());
    let mut handle = log.handle(Arc::clone(&cells));
    log.close(LONG).expect("closed");
    write(&mut handle, 0);
    write(&mut handle, 1);
    drop(handle);
    assert_eq!(cells.access_dropped.value(), 2);
    assert_eq!(sink.text(), "");
}

#[test]
fn close_does_not_wait_longer_than_asked() {
    let sink = Sink::default();
    sink.change(|scene| scene.stuck = true);
    let log = log_to(&sink);
    let mut handle = log.handle(Arc::default());
    write(&mut handle, 0);
    handle.hand_over();
    sink.wait(|scene| scene.writes == 1);
    let error = log.close(Duration::from_millis(20)).expect_err("stuck");
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    sink.change(|scene| scene.stuck = false);
    sink.wait(|scene| !scene.written.is_empty());
}

#[test]
fn a_failing_destination_is_told_once_and_tears_no_later_line() {
    let (_guard, events) = events();
    let sink = Sink::default();
    sink.change(|scene| {
        let full = || Err(io::Error::from(io::ErrorKind::StorageFull));
        let again = Err(io::Error::from(io::ErrorKind::Interrupted));
        scene.answers = vec![Ok(5), again, full(), full(), full()];
    });
    let lost = Arc::<AtomicU64>::default();
    let log = log_counting(&sink, &lost);
    let mut handle = log.handle(Arc::default());
    // Five bytes of 0 are taken; 1 and 2 fail at the line feed that is to end the torn line.
    for (number, writes) in [(0, 3), (1, 4), (2, 5)] {
        write(&mut handle, number);
        handle.hand_over();
        sink.wait(|scene| scene.writes == writes);
    }
    write(&mut handle, 3);
    handle.hand_over();
    sink.wait(|scene| scene.written.len() > 6);
    drop(handle);
    assert_eq!(lost.load(std::sync::atomic::Ordering::Relaxed), 3);
    log.close(LONG).expect("closed");
    let text = sink.text();
    let (torn, whole) = text.split_once('\n').expect("two lines");
    assert_eq!((torn, numbers(whole)), ("{\"tim", vec![3]));
    let told: Vec<String> = events.try_iter().collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert!(told[0].contains("writing fails"), "{told:?}");
    assert!(told[1].contains("works again"), "{told:?}");
    assert!(told[2].contains("records were dropped") && told[2].contains("dropped=3"), "{told:?}");
}

/// A log on sinks that are opened one after the other; an error is what opening gives.
fn rotating(sinks: Vec<io::Result<Sink>>) -> AccessLogWriter {
    let sinks = Mutex::new(sinks.into_iter());
    let open = move || -> io::Result<crate::telemetry::lines::Sink> {
        Ok(Box::new(sinks.lock().expect("no panic").next().expect("asked once per sink")?))
    };
    let first = open().expect("the first");
    let form = Form::new(&LogFormat::Json, Share::ALL);
    AccessLogWriter::start_on(first, Some(Box::new(open)), form, &Arc::default()).expect("a thread")
}

#[test]
fn what_was_handed_over_before_a_reopening_goes_to_the_old_file_and_nothing_is_lost() {
    let (_guard, events) = events();
    let (old, new) = (Sink::default(), Sink::default());
    old.change(|scene| scene.stuck = true);
    let log = rotating(vec![Ok(old.clone()), Ok(new.clone())]);
    let mut handle = log.handle(Arc::default());
    // The writer hangs in the first; the others wait in the queue.
    for number in 0..3 {
        write(&mut handle, number);
        handle.hand_over();
    }
    old.wait(|scene| scene.writes == 1);
    log.rotation().expect("it can be reopened").reopen();
    old.change(|scene| scene.stuck = false);
    assert!(events.recv_timeout(LONG).expect("told").contains("reopened"));
    for number in 3..6 {
        write(&mut handle, number);
    }
    drop(handle);
    log.close(LONG).expect("closed");
    assert_eq!((numbers(&old.text()), numbers(&new.text())), (vec![0, 1, 2], vec![3, 4, 5]));
}

#[test]
fn a_sleeping_writer_reopens_at_once_and_again_and_again() {
    let (_guard, events) = events();
    let sinks: Vec<Sink> = (0..4).map(|_| Sink::default()).collect();
    let log = rotating(sinks.iter().cloned().map(Ok).collect());
    let rotation = log.rotation().expect("it can be reopened");
    let mut handle = log.handle(Arc::default());
    for number in 0..3 {
        write(&mut handle, number);
        handle.hand_over();
        rotation.reopen();
        assert!(events.recv_timeout(LONG).expect("told").contains("reopened"));
    }
    log.close(LONG).expect("closed");
    let written: Vec<_> = sinks.iter().map(|sink| numbers(&sink.text())).collect();
    assert_eq!(written, [vec![0], vec![1], vec![2], vec![]]);
}

#[test]
fn a_failed_reopening_keeps_the_old_file_and_says_why() {
    let (_guard, events) = events();
    let (old, new) = (Sink::default(), Sink::default());
    let refused = Err(io::Error::other("access log x.log: no"));
    let log = rotating(vec![Ok(old.clone()), refused, Ok(new.clone())]);
    let rotation = log.rotation().expect("it can be reopened");
    let mut handle = log.handle(Arc::default());
    rotation.reopen();
    let told = events.recv_timeout(LONG).expect("told");
    assert!(
        told.contains("ERROR") && told.contains("old file stays") && told.contains("x.log: no"),
        "{told}"
    );
    write(&mut handle, 0);
    handle.hand_over();
    old.wait(|scene| scene.written.ends_with(b"\n"));
    rotation.reopen();
    assert!(events.recv_timeout(LONG).expect("told").contains("reopened"));
    write(&mut handle, 1);
    drop(handle);
    log.close(LONG).expect("closed");
    assert_eq!((numbers(&old.text()), numbers(&new.text())), (vec![0], vec![1]));
}

#[test]
fn a_line_that_was_torn_in_the_old_file_is_not_ended_in_the_new_one() {
    let (_guard, events) = events();
    let (old, new) = (Sink::default(), Sink::default());
    old.change(|scene| scene.answers = vec![Ok(5), Err(io::Error::from(io::ErrorKind::StorageFull))]);
    let log = rotating(vec![Ok(old.clone()), Ok(new.clone())]);
    let mut handle = log.handle(Arc::default());
    write(&mut handle, 0);
    handle.hand_over();
    assert!(events.recv_timeout(LONG).expect("told").contains("writing fails"));
    log.rotation().expect("it can be reopened").reopen();
    assert!(events.recv_timeout(LONG).expect("told").contains("reopened"));
    write(&mut handle, 1);
    drop(handle);
    log.close(LONG).expect("closed");
    assert!(new.text().starts_with('{'), "{}", new.text());
    assert_eq!((old.text().as_str(), numbers(&new.text())), ("{\"tim", vec![1]));
}

#[test]
fn what_is_no_file_can_not_be_reopened() {
    let log = log_to(&Sink::default());
    assert!(log.rotation().is_none());
    log.close(LONG).expect("closed");
}

#[test]
fn buffers_come_back() {
    let sink = Sink::default();
    let log = log_to(&sink);
    let mut handle = log.handle(Arc::default());
    assert_eq!(handle.buffer.room(), 0, "an idle worker owns no buffer");
    write(&mut handle, 0);
    let first = handle.buffer.lines().as_ptr();
    handle.hand_over();
    assert_eq!(handle.buffer.room(), 0);
    // The buffer is back before the thread ends.
    log.close(LONG).expect("closed");
    write(&mut handle, 1);
    assert_eq!(handle.buffer.lines().as_ptr(), first);
}

#[test]
fn a_file_is_appended_to_and_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("access.log");
    let settings =
        model::AccessLog { path: LogPath::File(path.clone()), format: LogFormat::Json, sample: Share::ALL };
    for number in 0..2 {
        let log = AccessLogWriter::start(&settings, &Arc::default()).expect("opened");
        write(&mut log.handle(Arc::default()), number);
        log.close(LONG).expect("closed");
    }
    assert_eq!(numbers(&std::fs::read_to_string(&path).expect("there")), [0, 1]);
    let mode = std::fs::metadata(&path).expect("there").permissions().mode();
    assert_eq!(mode & 0o137, 0, "{mode:o}");
}

#[test]
fn a_file_that_cannot_be_opened_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("no/such/folder.log");
    let settings =
        model::AccessLog { path: LogPath::File(path), format: LogFormat::Text, sample: Share::ALL };
    let error = AccessLogWriter::start(&settings, &Arc::default()).expect_err("no folder");
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert!(error.to_string().contains("no/such/folder.log"), "{error}");
}

#[test]
fn workers_write_side_by_side_without_mixing_lines() {
    let sink = Sink::default();
    let log = log_to(&sink);
    let threads: Vec<_> = (0..4_u64)
        .map(|worker| {
            let mut handle = log.handle(Arc::default());
            std::thread::spawn(move || {
                (0..2000).for_each(|number| write(&mut handle, worker * 10_000 + number))
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no panic");
    }
    log.close(LONG).expect("closed");
    let written = numbers(&sink.text());
    for worker in 0..4 {
        let own: Vec<u64> = written.iter().copied().filter(|number| number / 10_000 == worker).collect();
        let expected: Vec<u64> = (0..2000).map(|number| worker * 10_000 + number).collect();
        assert_eq!(own, expected, "worker {worker}");
    }
}

mod successor;
