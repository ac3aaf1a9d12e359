//! One line per Record, to stdout or a file, without ever making a worker wait.
//!
//! A worker formats into its own buffer ([`Handle`]). When that is large enough, or at a tick, it is handed
//! over a bounded queue to the one writer thread, which does the system calls. When the writer falls
//! behind, lines are kept for a while, then dropped and counted. [`AccessLog`] is the owner's end: `server`
//! starts it before the workers and closes it after them.

mod digits;
mod escape;
mod facts;
mod form;
mod names;
mod sample;
mod stamp;
mod value;
mod writer;

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use self::facts::Facts;
use self::form::Form;
use self::stamp::Stamps;
use self::writer::{Batch, Intake, Writer};
use super::cells::Cells;
use crate::config::model::{self, LogPath};
use crate::message::{Head, Record};

pub use names::Names;
pub use stamp::WallStart;

/// A buffer that holds this much is handed over without waiting for the tick.
const HAND_OVER_AT: usize = 32 * 1024;
/// A worker keeps at most about this much (plus one line) while the writer is behind; then it drops lines.
const KEEP_AT_MOST: usize = 256 * 1024;

/// The owner's end of the access log.
#[derive(Debug)]
pub struct AccessLog {
    form: Arc<Form>,
    writer: Writer,
}

impl AccessLog {
    /// Opens the destination and starts the writer thread. A file is appended to; a new one gets mode 0640
    /// (less the umask), because addresses and paths of clients are personal.
    ///
    /// # Errors
    /// The destination can't be opened (the message names it) or the thread can't be started.
    pub fn start(settings: &model::AccessLog) -> io::Result<AccessLog> {
        let sink: Box<dyn Write + Send> = match &settings.path {
            // Not `io::stdout()` itself: its lock and its line buffer are of no use here.
            LogPath::Stdout => Box::new(std::fs::File::from(io::stdout().as_fd().try_clone_to_owned()?)),
            LogPath::File(path) => Box::new(open(path)?),
        };
        AccessLog::start_on(sink, Form::new(&settings.format, settings.sample))
    }

    /// Starts the writer thread on any sink. Each write gets whole lines; there is no buffer behind it.
    fn start_on(sink: Box<dyn Write + Send>, form: Form) -> io::Result<AccessLog> {
        Ok(AccessLog { form: Arc::new(form), writer: Writer::start(sink)? })
    }

    /// A worker's end. Records it has to drop are counted in that worker's `cells`.
    #[must_use]
    pub fn handle(&self, cells: Arc<Cells>) -> Handle {
        Handle {
            form: Arc::clone(&self.form),
            intake: self.writer.intake(),
            cells,
            buffer: Vec::new(),
            stamps: Stamps::default(),
            lost: 0,
        }
    }

    /// Writes everything that was handed over and ends the thread. Handles should be gone by then: what
    /// they hand over later is dropped. Blocks for up to `patience`; not for a worker or an async task.
    ///
    /// # Errors
    /// `TimedOut`: the destination takes no bytes; the thread is left behind with what it still has.
    pub fn close(self, patience: Duration) -> io::Result<()> {
        self.writer.close(patience)
    }
}

fn open(path: &Path) -> io::Result<std::fs::File> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o640)
        .open(path)
        .map_err(|error| io::Error::new(error.kind(), format!("access log {}: {error}", path.display())))
}

/// One worker's end of the access log. Dropping it hands over what it holds.
#[derive(Debug)]
pub struct Handle {
    form: Arc<Form>,
    intake: Intake,
    cells: Arc<Cells>,
    buffer: Vec<u8>,
    stamps: Stamps,
    /// Lines dropped since the last successful hand-over.
    lost: u64,
}

impl Handle {
    /// Appends the line of a finished `record`, unless sampling leaves it out; `head`: what the client asked,
    /// ignored for TCP. Never blocks; hands the buffer over when it is large.
    pub fn write(&mut self, record: &Record, head: Option<&Head>, names: &Names, start: WallStart) {
        let Some(share) = self.form.share_of(record) else { return };
        if self.buffer.len() >= HAND_OVER_AT {
            self.flush();
            if self.buffer.len() >= KEEP_AT_MOST {
                self.count_lost(1);
                return;
            }
        }
        if self.buffer.capacity() == 0 {
            self.buffer = self.intake.empty_buffer(HAND_OVER_AT);
        }
        let facts = Facts::new(record, head, names, share);
        self.form.write(&mut self.buffer, &facts, (&mut self.stamps, start));
        if self.buffer.len() >= HAND_OVER_AT {
            self.flush();
        }
    }

    /// Hands over what there is; the worker calls this every 250 ms or so and at its end. When the queue is
    /// full the lines stay here for the next call.
    pub fn flush(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        let batch = Batch { bytes: std::mem::take(&mut self.buffer), lost: std::mem::take(&mut self.lost) };
        if let Err(back) = self.intake.offer(batch) {
            self.buffer = back.bytes;
            self.lost = back.lost;
        }
    }

    fn count_lost(&mut self, lines: u64) {
        self.lost += lines;
        self.cells.access_dropped.add(lines);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.flush();
        // Whatever is still here has no further chance.
        self.count_lost(writer::count_lines(&self.buffer));
    }
}

#[cfg(test)]
mod tests;
