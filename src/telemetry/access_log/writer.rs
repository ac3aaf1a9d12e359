//! The thread that writes, and the queue in front of it.
//!
//! Workers only ever try: to put a batch into the queue, to take an empty buffer back. Failures are logged
//! here when they begin and when they end, never once per line. A file is opened anew when somebody asks for it:
//! that is how a log is rotated.
//!
//! A writer belongs to a destination. When another config brings another one, workers hand over what they hold and leave what
//! finds no room in the queue with the owner, who gives it to the writer to be written last.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::batch::Batch;
use super::loss::Loss;
use crate::events;
use crate::telemetry::lines::{Lines, Sink, count_lines};

/// Batches that wait at most; with batches of mostly 32 KiB this is about 4 MiB, at worst 32 MiB.
pub(super) const QUEUE: usize = 128;
/// Empty batches that are kept for reuse.
const SPARE: usize = 32;
/// Larger ones are not kept: they grew while the writer was behind.
const SPARE_ROOM: usize = 64 * 1024;

/// Opens the destination once more.
pub(super) type Open = Box<dyn Fn() -> io::Result<Sink> + Send>;

/// What both ends see.
#[derive(Debug, Default)]
struct Shared {
    spare: Mutex<Vec<Batch>>,
    /// What found no room in the queue when its worker went over to another log: written behind the queue.
    rests: Mutex<Vec<Batch>>,
    stop: AtomicBool,
    reopen: AtomicBool,
    loss: Loss,
}

/// A worker's way in.
#[derive(Clone, Debug)]
pub(super) struct LogIntake {
    queue: SyncSender<Batch>,
    shared: Arc<Shared>,
}

impl LogIntake {
    /// Puts a batch into the queue, or gives it back when that is full or the writer has ended.
    pub(super) fn offer(&self, batch: Batch) -> Result<(), Batch> {
        self.queue.try_send(batch).map_err(|error| match error {
            mpsc::TrySendError::Full(batch) | mpsc::TrySendError::Disconnected(batch) => batch,
        })
    }

    /// Whether both lead to the same writer.
    pub(super) fn is_same(&self, other: &LogIntake) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Has this written at the end, behind what is in the queue.
    pub(super) fn leave(&self, rest: Batch) {
        self.shared.rests.lock().unwrap_or_else(PoisonError::into_inner).push(rest);
    }

    /// What never arrived.
    pub(super) fn loss(&self) -> &Loss {
        &self.shared.loss
    }

    /// Asks the writer to open its destination anew behind what was handed over by now.
    pub(super) fn reopen(&self) {
        self.shared.reopen.store(true, Ordering::Release);
        self.wake();
    }

    /// Wakes a writer that sleeps. When the queue is full it is awake.
    fn wake(&self) {
        let _ = self.offer(Batch::default());
    }

    /// A used batch if one is at hand without waiting, else a new one.
    pub(super) fn empty_batch(&self) -> Batch {
        let spare = self.shared.spare.try_lock().ok().and_then(|mut spare| spare.pop());
        spare.unwrap_or_else(Batch::with_room)
    }
}

/// The owner's end: the thread and the way to end it.
#[derive(Debug)]
pub(super) struct Writer {
    intake: LogIntake,
    thread: JoinHandle<()>,
    /// Never carries anything; disconnects when the thread ends, however it ends.
    ended: Receiver<()>,
}

impl Writer {
    /// Starts the thread on `sink`; `open` makes the next one when somebody asks for it. Lines that can't be written are
    /// added to `lost`.
    pub(super) fn start(sink: Sink, open: Option<Open>, lost: &Arc<AtomicU64>) -> io::Result<Writer> {
        let (queue, batches) = mpsc::sync_channel(QUEUE);
        let (alive, ended) = mpsc::sync_channel(0);
        let shared = Arc::new(Shared { loss: Loss::new(lost), ..Shared::default() });
        let lines = Lines::new(sink);
        let mut output = Output { lines, open, failing: false, shared: Arc::clone(&shared) };
        let follow = events::here_as_there();
        let thread = std::thread::Builder::new().name("access log".into()).spawn(move || {
            let _alive: SyncSender<()> = alive;
            follow();
            output.run(&batches);
        })?;
        Ok(Writer { intake: LogIntake { queue, shared }, thread, ended })
    }

    pub(super) fn intake(&self) -> LogIntake {
        self.intake.clone()
    }

    pub(super) fn close(self, patience: Duration) -> io::Result<()> {
        self.intake.shared.stop.store(true, Ordering::Release);
        // A writer with a full queue looks at `stop` when it is empty.
        self.intake.wake();
        let ended = self.ended.recv_timeout(patience);
        self.intake.loss().tell_rest();
        match ended {
            Err(RecvTimeoutError::Timeout) => {
                Err(io::Error::new(io::ErrorKind::TimedOut, "the access log's destination takes no bytes"))
            }
            Ok(()) | Err(RecvTimeoutError::Disconnected) => {
                self.thread.join().map_err(|_| io::Error::other("the access log's writer panicked"))
            }
        }
    }
}

/// The writer thread's state.
struct Output {
    lines: Lines,
    open: Option<Open>,
    /// The last write failed, and that was logged.
    failing: bool,
    shared: Arc<Shared>,
}

impl Output {
    fn run(&mut self, batches: &Receiver<Batch>) {
        while let Some(batch) = self.next(batches) {
            self.put(batch);
            if self.shared.reopen.swap(false, Ordering::AcqRel) {
                // What was handed over before still belongs to the old file; more than that may be there by now.
                batches.try_iter().take(QUEUE).for_each(|batch| self.put(batch));
                self.reopen();
            }
        }
        if let Err(error) = self.lines.flush() {
            events::access_log_failed("flush failed", &error);
        }
    }

    /// The next batch; `None` when it is time to end and nothing waits.
    fn next(&self, batches: &Receiver<Batch>) -> Option<Batch> {
        if let Ok(batch) = batches.try_recv() {
            return Some(batch);
        }
        if self.shared.stop.load(Ordering::Acquire) {
            // What was handed over before the stop is visible by now.
            return batches.try_recv().ok().or_else(|| self.take_rest());
        }
        batches.recv().ok()
    }

    fn take_rest(&self) -> Option<Batch> {
        self.shared.rests.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn put(&mut self, mut batch: Batch) {
        match self.lines.write(batch.lines()) {
            Ok(()) if batch.is_empty() => {}
            Ok(()) => {
                if std::mem::take(&mut self.failing) {
                    events::access_log_works();
                }
            }
            Err((error, rest)) => {
                if !std::mem::replace(&mut self.failing, true) {
                    events::access_log_failed("writing fails, records are lost", &error);
                }
                self.shared.loss.add_in_writer(count_lines(&batch.lines()[rest..]));
            }
        }
        batch.clear();
        if batch.room() > 0 && batch.room() <= SPARE_ROOM {
            let mut spare = self.shared.spare.lock().unwrap_or_else(PoisonError::into_inner);
            if spare.len() < SPARE {
                spare.push(batch);
            }
        }
    }

    /// Goes on in a newly opened destination, or in the old one if that fails.
    fn reopen(&mut self) {
        let Some(open) = &self.open else { return };
        match open() {
            Ok(sink) => {
                if let Err(error) = std::mem::replace(&mut self.lines, Lines::new(sink)).flush() {
                    events::access_log_failed("flush of the old file failed", &error);
                }
                events::access_log_reopened();
            }
            Err(error) => {
                events::access_log_failed("can't be reopened, the old file stays in use", &error);
            }
        }
    }
}
