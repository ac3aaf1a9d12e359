//! The thread that writes, and the queue in front of it.
//!
//! Workers only ever try: to put a batch into the queue, to take an empty buffer back. Failures are logged
//! here when they begin and when they end, never once per line.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Batches that wait at most; with batches of mostly 32 KiB this is about 4 MiB, at worst 32 MiB.
pub(super) const QUEUE: usize = 128;
/// Empty buffers that are kept for reuse.
const SPARE: usize = 32;
/// Larger buffers are not kept: they grew while the writer was behind.
const SPARE_CAPACITY: usize = 64 * 1024;

/// Whole lines from one worker.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    /// Lines that the worker dropped before these.
    pub(super) lost: u64,
}

/// What both ends see.
#[derive(Debug, Default)]
struct Shared {
    spare: Mutex<Vec<Vec<u8>>>,
    stop: AtomicBool,
}

/// A worker's way in.
#[derive(Clone, Debug)]
pub(super) struct Intake {
    queue: SyncSender<Batch>,
    shared: Arc<Shared>,
}

impl Intake {
    /// Puts a batch into the queue, or gives it back when that is full or the writer has ended.
    pub(super) fn offer(&self, batch: Batch) -> Result<(), Batch> {
        self.queue.try_send(batch).map_err(|error| match error {
            mpsc::TrySendError::Full(batch) | mpsc::TrySendError::Disconnected(batch) => batch,
        })
    }

    /// A used buffer if one is at hand without waiting, else a new one of `capacity`.
    pub(super) fn empty_buffer(&self, capacity: usize) -> Vec<u8> {
        let spare = self.shared.spare.try_lock().ok().and_then(|mut spare| spare.pop());
        spare.unwrap_or_else(|| Vec::with_capacity(capacity))
    }
}

/// The owner's end: the thread and the way to end it.
#[derive(Debug)]
pub(super) struct Writer {
    intake: Intake,
    thread: JoinHandle<()>,
    /// Never carries anything; disconnects when the thread ends, however it ends.
    ended: Receiver<()>,
}

impl Writer {
    pub(super) fn start(sink: Box<dyn Write + Send>) -> io::Result<Writer> {
        let (queue, batches) = mpsc::sync_channel(QUEUE);
        let (alive, ended) = mpsc::sync_channel(0);
        let shared = Arc::new(Shared::default());
        let mut output = Output { sink, torn: false, failing: None, shared: Arc::clone(&shared) };
        // Events of this thread go where those of its starter go: that is how a test sees them.
        let events = tracing::dispatcher::get_default(tracing::Dispatch::clone);
        let thread = std::thread::Builder::new().name("access log".into()).spawn(move || {
            let _alive: SyncSender<()> = alive;
            tracing::dispatcher::with_default(&events, || output.run(&batches));
        })?;
        Ok(Writer { intake: Intake { queue, shared }, thread, ended })
    }

    pub(super) fn intake(&self) -> Intake {
        self.intake.clone()
    }

    pub(super) fn close(self, patience: Duration) -> io::Result<()> {
        self.intake.shared.stop.store(true, Ordering::Release);
        // Wakes a writer that sleeps. When the queue is full it is awake, and looks at `stop` when empty.
        let _ = self.intake.offer(Batch { bytes: Vec::new(), lost: 0 });
        match self.ended.recv_timeout(patience) {
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
    sink: Box<dyn Write + Send>,
    /// The last write broke off inside a line.
    torn: bool,
    /// Lines lost since writing began to fail; `None`: it works.
    failing: Option<u64>,
    shared: Arc<Shared>,
}

impl Output {
    fn run(&mut self, batches: &Receiver<Batch>) {
        while let Some(batch) = self.next(batches) {
            self.put(batch);
        }
        if let Err(error) = self.sink.flush() {
            tracing::error!(%error, "access log: flush failed");
        }
    }

    /// The next batch; `None` when it is time to end and nothing waits.
    fn next(&self, batches: &Receiver<Batch>) -> Option<Batch> {
        if let Ok(batch) = batches.try_recv() {
            return Some(batch);
        }
        if self.shared.stop.load(Ordering::Acquire) {
            // What was handed over before the stop is visible by now.
            return batches.try_recv().ok();
        }
        batches.recv().ok()
    }

    fn put(&mut self, Batch { mut bytes, lost }: Batch) {
        if lost > 0 {
            tracing::warn!(lost, "access log: the writer was behind, records were dropped");
        }
        match self.write(&bytes) {
            Ok(()) => {
                if let Some(lost) = self.failing.take() {
                    tracing::warn!(lost, "access log: writing works again");
                }
            }
            Err((error, rest)) => {
                let lines = count_lines(&bytes[rest..]);
                if self.failing.is_none() {
                    tracing::error!(%error, "access log: writing fails, records are lost");
                }
                self.failing = Some(self.failing.unwrap_or(0) + lines);
            }
        }
        bytes.clear();
        if bytes.capacity() > 0 && bytes.capacity() <= SPARE_CAPACITY {
            let mut spare = self.shared.spare.lock().unwrap_or_else(PoisonError::into_inner);
            if spare.len() < SPARE {
                spare.push(bytes);
            }
        }
    }

    /// Writes all of `bytes`; on failure tells where the unwritten rest begins.
    fn write(&mut self, bytes: &[u8]) -> Result<(), (io::Error, usize)> {
        if self.torn && !bytes.is_empty() {
            // Ends the torn line, so that the next one is whole.
            self.sink.write_all(b"\n").map_err(|error| (error, 0))?;
            self.torn = false;
        }
        let mut done = 0;
        while done < bytes.len() {
            let result = match self.sink.write(&bytes[done..]) {
                Ok(0) => Err(io::Error::from(io::ErrorKind::WriteZero)),
                Ok(count) => Ok(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
                Err(error) => Err(error),
            };
            match result {
                Ok(count) => done += count,
                Err(error) => {
                    self.torn |= done > 0 && bytes[done - 1] != b'\n';
                    return Err((error, done));
                }
            }
        }
        Ok(())
    }
}

/// Lines in `bytes`. Every record ends with the only line feed it has.
pub(super) fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().map(|&byte| u64::from(byte == b'\n')).sum()
}
