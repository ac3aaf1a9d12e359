//! One line per Record, to stdout or a file, without ever making a worker wait.
//!
//! A worker formats into its own buffer ([`Handle`]). When that is large enough, or at a tick, it is handed
//! over a bounded queue to the one writer thread, which does the system calls. When the writer falls
//! behind, lines are kept for a while, then dropped and counted. [`AccessLogWriter`] is the owner's end: `server`
//! starts it before the workers and closes it after them. [`Rotation`] is for whoever obeys signals.

mod batch;
mod digits;
mod escape;
mod facts;
mod form;
mod json;
mod loss;
mod names;
mod sample;
mod stamp;
mod value;
mod writer;

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use self::batch::Batch;
use self::facts::Facts;
use self::form::Form;
use self::stamp::Stamps;
use self::writer::{LogIntake, Open, Writer};
use super::cells::Cells;
use super::lines::{Descriptor, Sink, count_lines};
use crate::config::model::{self, LogPath};
use crate::message::{Head, Record};
use crate::tick::Tick;

pub use digits::id_digits;
pub use facts::SeldomSaid;
pub use names::{Names, RouteName};
pub use stamp::WallStart;

/// A buffer that holds this much is handed over without waiting for the tick.
const HAND_OVER_AT: usize = 32 * 1024;
/// A worker keeps at most about this much (plus one line) while the writer is behind; then it drops lines.
const KEEP_AT_MOST: usize = 256 * 1024;

/// The owner's end of the access log.
#[derive(Debug)]
pub struct AccessLogWriter {
    form: Arc<Form>,
    writer: Writer,
    /// The destination has a path that can be opened again.
    rotates: bool,
}

/// Lines of a worker that has gone over to another log, for which there was no room on the way.
#[derive(Debug)]
pub struct LogRest(Batch);

/// A way to say that the file was moved away. Clones say the same.
#[derive(Clone, Debug)]
pub struct Rotation(LogIntake);

impl Rotation {
    /// Makes the writer open its path again, soon: what was handed over before goes to the old file, what comes
    /// later to the new one. When that fails the old file stays in use. The outcome is logged. Never blocks.
    pub fn reopen(&self) {
        self.0.reopen();
    }
}

impl AccessLogWriter {
    /// Opens the destination and starts the writer thread. A file is appended to; a new one gets mode 0640
    /// (less the umask), because addresses and paths of clients are personal. A named pipe needs no reader yet.
    ///
    /// Records that can't be written are added to `lost`, which other writers may share.
    ///
    /// # Errors
    /// The destination can't be opened (the message names it) or the thread can't be started.
    pub fn start(settings: &model::AccessLog, lost: &Arc<AtomicU64>) -> io::Result<AccessLogWriter> {
        let form = Form::new(&settings.format, settings.sample);
        match &settings.path {
            LogPath::Stdout => {
                AccessLogWriter::start_on(Box::new(Descriptor::of(io::stdout().as_fd())?), None, form, lost)
            }
            LogPath::File(path) => {
                let sink = open(path)?;
                let path = path.clone();
                AccessLogWriter::start_on(sink, Some(Box::new(move || open(&path))), form, lost)
            }
        }
    }

    /// Starts the writer thread on any sink. Each write gets whole lines; there is no buffer behind it.
    fn start_on(
        sink: Sink,
        open: Option<Open>,
        form: Form,
        lost: &Arc<AtomicU64>,
    ) -> io::Result<AccessLogWriter> {
        let rotates = open.is_some();
        Ok(AccessLogWriter { form: Arc::new(form), writer: Writer::start(sink, open, lost)?, rotates })
    }

    /// A worker's end. Records it has to drop are counted in that worker's `cells`.
    #[must_use]
    pub fn handle(&self, cells: Arc<Cells>) -> Handle {
        Handle {
            form: Arc::clone(&self.form),
            intake: self.writer.intake(),
            cells,
            buffer: Batch::default(),
            stamps: Stamps::default(),
        }
    }

    /// Gives handles that are made from now on the form that `settings` ask for; the destination stays.
    pub fn reform(&mut self, settings: &model::AccessLog) {
        self.form = Arc::new(Form::new(&settings.format, settings.sample));
    }

    /// Takes what a worker could not hand over: it is written last.
    pub fn take(&self, rest: LogRest) {
        self.writer.intake().leave(rest.0);
    }

    /// How to reopen the file; `None`: the destination is no file.
    #[must_use]
    pub fn rotation(&self) -> Option<Rotation> {
        self.rotates.then(|| Rotation(self.writer.intake()))
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

/// Opens a destination that is there and lets it go.
///
/// # Errors
/// See [`AccessLogWriter::start`]; a file that is still to be made is none.
pub fn try_out(path: &LogPath) -> io::Result<()> {
    match path {
        LogPath::File(path) if path.exists() => open(path).map(drop),
        LogPath::File(_) | LogPath::Stdout => Ok(()),
    }
}

fn open(path: &Path) -> io::Result<Sink> {
    // A pipe is opened for both directions: it waits for no reader then, and a reader may come and go.
    let is_pipe = std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo());
    let file = OpenOptions::new().append(true).read(is_pipe).create(true).mode(0o640).open(path);
    match file {
        Ok(file) => Ok(Box::new(file)),
        Err(error) => Err(io::Error::new(error.kind(), format!("access log {}: {error}", path.display()))),
    }
}

/// One worker's end of the access log. Dropping it hands over what it holds.
#[derive(Debug)]
pub struct Handle {
    form: Arc<Form>,
    intake: LogIntake,
    cells: Arc<Cells>,
    buffer: Batch,
    stamps: Stamps,
}

impl Handle {
    /// Appends the line of a finished `record`, unless sampling leaves it out; `head`: what the client asked,
    /// ignored for TCP; `route`: the name of its route, where there are several; `said`: what is
    /// told of few. Never blocks; hands the buffer over when it is large.
    pub fn write(
        &mut self,
        record: &Record,
        (head, route, said): (Option<&Head>, Option<&RouteName>, Option<&SeldomSaid>),
        names: &Names,
        start: WallStart,
    ) {
        let Some(share) = self.form.share_of(record) else { return };
        if self.buffer.len() >= HAND_OVER_AT {
            self.hand_over();
            if self.buffer.len() >= KEEP_AT_MOST {
                self.count_lost(1);
                return;
            }
        }
        if self.buffer.room() == 0 {
            self.buffer = self.intake.empty_batch();
        }
        let facts = Facts::new(record, head, names, share).on(route).with(said);
        let mut clock = (&mut self.stamps, start);
        self.buffer.append(|room| self.form.write(room, &facts, &mut clock));
        if self.buffer.len() >= HAND_OVER_AT {
            self.hand_over();
        }
    }

    /// Hands over what there is and logs now and then what was lost; the worker calls this every 250 ms or so. When
    /// the queue is full the lines stay here for the next call.
    pub fn tick(&mut self, now: Tick) {
        self.hand_over();
        self.intake.loss().tell(now);
    }

    /// Puts `next` in the place of `current`; where both lead to the same destination it goes on with the lines that
    /// `current` holds. Gives those that found no room on their way elsewhere: the owner of that log takes them.
    #[must_use]
    pub fn replace(current: &mut Option<Handle>, next: Option<Handle>) -> Option<LogRest> {
        let before = std::mem::replace(current, next);
        let mut before = before?;
        before.hand_over();
        let rest = std::mem::take(&mut before.buffer);
        match current {
            _ if rest.is_empty() => None,
            Some(next) if next.intake.is_same(&before.intake) => {
                next.buffer = rest;
                None
            }
            Some(_) | None => Some(LogRest(rest)),
        }
    }

    fn hand_over(&mut self) {
        if self.buffer.is_empty() {
            return;
        }
        if let Err(back) = self.intake.offer(std::mem::take(&mut self.buffer)) {
            self.buffer = back;
        }
    }

    fn count_lost(&self, lines: u64) {
        self.intake.loss().add(lines);
        self.cells.access_dropped.add(lines);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.hand_over();
        // Whatever is still here has no further chance.
        self.count_lost(count_lines(self.buffer.lines()));
    }
}

#[cfg(test)]
mod tests;
