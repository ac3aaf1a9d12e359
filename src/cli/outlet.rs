//! The way of events to standard error: a bounded queue, and one thread that writes.
//!
//! Whoever logs only tries to put an event into the queue. One that finds no room, or that could not be written, is
//! counted, and a line says how many they were as soon as lines are taken again. So a reader that does not read, a full disk
//! or a closed pipe cost events and nothing else: no worker and no signal waits for them.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

use crate::events;
use crate::telemetry::lines::{Lines, Sink};

/// Events that wait at most.
const EVENTS: usize = 4096;
/// Bytes that wait at most.
const BYTES: usize = 1024 * 1024;
/// Where the queue is never empty losses are told after so many events: what waited when the first was lost is out by then.
const TELL_AFTER: usize = 2 * EVENTS;

/// Words the line that says how many events were lost.
pub(super) type Confess = Box<dyn Fn(u64) -> Vec<u8> + Send>;

/// What both ends see.
#[derive(Debug, Default)]
struct Shared {
    /// Bytes in the queue: added before an event is offered, taken off when it was refused or taken out. So it is never less
    /// than what is there, and at most [`BYTES`] are.
    waiting: AtomicUsize,
    /// Events that were lost and not yet told. Whoever tells takes all of it, and puts it back if that fails.
    lost: AtomicU64,
    stop: AtomicBool,
}

impl Shared {
    /// Counts an event that is lost: at once for whoever looks at counts, and until it is told.
    fn lose(&self) {
        self.lost.fetch_add(1, Ordering::AcqRel);
        events::event_lost();
    }
}

/// A way in. Never blocks and never fails.
#[derive(Clone, Debug)]
pub(super) struct EventIntake {
    queue: SyncSender<Vec<u8>>,
    shared: Arc<Shared>,
}

impl EventIntake {
    /// Puts one event into the queue, or counts it as lost.
    pub(super) fn offer(&self, event: &[u8]) {
        let before = self.shared.waiting.fetch_add(event.len(), Ordering::AcqRel);
        let fits = before.saturating_add(event.len()) <= BYTES;
        if !fits || self.queue.try_send(event.to_vec()).is_err() {
            self.shared.waiting.fetch_sub(event.len(), Ordering::AcqRel);
            self.shared.lose();
        }
    }
}

/// An event comes as one write.
impl Write for &EventIntake {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        self.offer(event);
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for EventIntake {
    type Writer = &'a EventIntake;

    fn make_writer(&'a self) -> &'a EventIntake {
        self
    }
}

/// The owner's end: the thread and the way to end it.
#[derive(Debug)]
pub(super) struct Outlet {
    intake: EventIntake,
    thread: JoinHandle<()>,
    /// Never carries anything; disconnects when the thread ends, however it ends.
    ended: Receiver<()>,
}

impl Outlet {
    /// Starts the thread.
    pub(super) fn start(sink: Sink, confess: Confess) -> io::Result<Outlet> {
        let (queue, events) = mpsc::sync_channel(EVENTS);
        let (alive, ended) = mpsc::sync_channel(0);
        let shared = Arc::new(Shared::default());
        let lines = Lines::new(sink);
        let mut mouth = Mouth { lines, confess, failing: false, written: 0, shared: Arc::clone(&shared) };
        let thread = std::thread::Builder::new().name("events".into()).spawn(move || {
            let _alive: SyncSender<()> = alive;
            mouth.run(&events);
        })?;
        Ok(Outlet { intake: EventIntake { queue, shared }, thread, ended })
    }

    pub(super) fn intake(&self) -> &EventIntake {
        &self.intake
    }

    /// Waits until all events are written, at most `patience`; then the thread is left behind with what it has.
    pub(super) fn close(self, patience: Duration) {
        self.intake.shared.stop.store(true, Ordering::Release);
        // Wakes a writer that sleeps. One with a full queue looks at `stop` when it is empty.
        let _ = self.intake.queue.try_send(Vec::new());
        if self.ended.recv_timeout(patience) == Err(mpsc::RecvTimeoutError::Disconnected) {
            // A panic of it was an event that nobody wrote.
            let _ = self.thread.join();
        }
    }
}

/// The writer thread's state.
struct Mouth {
    lines: Lines,
    confess: Confess,
    /// The last write failed.
    failing: bool,
    /// Events that were written since it was last looked whether there is a loss to tell.
    written: usize,
    shared: Arc<Shared>,
}

impl Mouth {
    fn run(&mut self, events: &Receiver<Vec<u8>>) {
        while let Some(event) = self.next(events) {
            self.shared.waiting.fetch_sub(event.len(), Ordering::AcqRel);
            self.put(&event);
        }
    }

    /// The next event; `None` when it is time to end and nothing waits.
    fn next(&mut self, events: &Receiver<Vec<u8>>) -> Option<Vec<u8>> {
        if let Ok(event) = events.try_recv() {
            return Some(event);
        }
        if !self.failing {
            self.tell();
        }
        if self.shared.stop.load(Ordering::Acquire) {
            // What was offered before the stop is visible by now.
            return events.try_recv().ok();
        }
        events.recv().ok()
    }

    fn put(&mut self, event: &[u8]) {
        // After a failure the count of what was lost goes first, and tells whether more is worth a try.
        if event.is_empty() || (self.failing && !self.tell()) {
            if !event.is_empty() {
                self.shared.lose();
            }
            return;
        }
        self.failing = self.lines.write(event).is_err();
        if self.failing {
            self.shared.lose();
            return;
        }
        self.written += 1;
        if self.written == TELL_AFTER {
            self.tell();
        }
    }

    /// Writes how many events were lost, if any were. False: that failed, and is still to be told.
    fn tell(&mut self) -> bool {
        self.written = 0;
        let lost = self.shared.lost.swap(0, Ordering::AcqRel);
        if lost == 0 {
            return true;
        }
        self.failing = self.lines.write(&(self.confess)(lost)).is_err();
        if self.failing {
            self.shared.lost.fetch_add(lost, Ordering::AcqRel);
        }
        !self.failing
    }
}

#[cfg(test)]
mod tests;
