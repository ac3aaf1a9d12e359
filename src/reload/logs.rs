//! The access log in force, and how another one takes its place.
//!
//! A writer belongs to a destination, the form of a line to a config: where only the form differs the writer stays, and lines of
//! both forms come in the order in which they were handed over. A writer that is not needed any more ends when all workers have
//! gone over to another one, on a thread of its own, since its destination may take its time.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::config::model::AccessLog;
use crate::events;
use crate::telemetry::access_log::{self, AccessLogWriter, Handle, LogRest, Rotation};
use crate::telemetry::cells::Cells;

/// How long a log may take to write its rest.
const LAST_LINES: Duration = Duration::from_secs(2);

/// The access log in force, if there is one.
#[derive(Debug, Default)]
pub struct AccessLogs {
    in_force: Option<(AccessLog, AccessLogWriter)>,
    /// Records that were handed over to any of them and could not be written.
    lost: Arc<AtomicU64>,
    /// Those before it that still write.
    ending: Vec<JoinHandle<()>>,
}

/// What another config makes of the access log. Dropping it changes nothing.
#[derive(Debug)]
pub enum NextLog {
    /// It stays as it is.
    Same,
    /// Lines look different, or others are left out.
    Form(AccessLog),
    /// It goes elsewhere, or nowhere.
    Other(Option<(AccessLog, AccessLogWriter)>),
}

impl NextLog {
    /// Whether workers go over to something else.
    #[must_use]
    pub fn differs(&self) -> bool {
        !matches!(self, NextLog::Same)
    }
}

/// A log that workers go away from.
#[derive(Debug)]
pub struct OldLog(AccessLogWriter);

impl OldLog {
    /// Takes what a worker could not hand over.
    pub fn take(&self, rest: LogRest) {
        self.0.take(rest);
    }
}

impl AccessLogs {
    /// Opens the first one.
    ///
    /// # Errors
    /// See [`AccessLogWriter::start`].
    pub fn start(settings: Option<&AccessLog>) -> io::Result<AccessLogs> {
        let mut logs = AccessLogs::default();
        let first = logs.prepare(settings)?;
        logs.commit(first);
        Ok(logs)
    }

    /// What `settings` would make of it: a destination that was not in use is opened.
    ///
    /// # Errors
    /// See [`AccessLogWriter::start`].
    pub fn prepare(&self, settings: Option<&AccessLog>) -> io::Result<NextLog> {
        Ok(match (self.in_force.as_ref().map(|(settings, _)| settings), settings) {
            (before, after) if before == after => NextLog::Same,
            (Some(before), Some(after)) if before.path == after.path => NextLog::Form(after.clone()),
            (_, Some(after)) => {
                NextLog::Other(Some((after.clone(), AccessLogWriter::start(after, &self.lost)?)))
            }
            (_, None) => NextLog::Other(None),
        })
    }

    /// Why `settings` could not be put into force, as far as that can be told without making a file.
    #[must_use]
    pub fn try_out(&self, settings: Option<&AccessLog>) -> Option<io::Error> {
        let before = self.in_force.as_ref().map(|(settings, _)| &settings.path);
        let next = settings.filter(|settings| before != Some(&settings.path))?;
        access_log::try_out(&next.path).err()
    }

    /// Puts `next` into force. Gives the one before, which is to [end](AccessLogs::end) once all workers have new handles.
    pub fn commit(&mut self, next: NextLog) -> Option<OldLog> {
        match next {
            NextLog::Same => None,
            NextLog::Form(settings) => {
                if let Some((before, writer)) = &mut self.in_force {
                    writer.reform(&settings);
                    *before = settings;
                }
                None
            }
            NextLog::Other(next) => std::mem::replace(&mut self.in_force, next).map(|(_, log)| OldLog(log)),
        }
    }

    /// A worker's end; `None`: there is no log.
    #[must_use]
    pub fn handle(&self, cells: &Arc<Cells>) -> Option<Handle> {
        self.in_force.as_ref().map(|(_, log)| log.handle(Arc::clone(cells)))
    }

    /// How to reopen its file; `None`: there is none.
    #[must_use]
    pub fn rotation(&self) -> Option<Rotation> {
        self.in_force.as_ref().and_then(|(_, log)| log.rotation())
    }

    /// Records that were handed over since the start and could not be written.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Lets `old` write its rest, on a thread of its own.
    pub fn end(&mut self, old: OldLog) {
        self.ending.retain(|ending| !ending.is_finished());
        let name = "access log before".to_owned();
        match thread::Builder::new().name(name).spawn(move || close(old.0)) {
            Ok(ending) => self.ending.push(ending),
            // It goes on by itself until nobody can hand over any more.
            Err(error) => events::access_log_failed("the log before is not waited for", &error),
        }
    }

    /// Writes everything that was handed over and ends.
    pub fn close(&mut self) {
        if let Some((_, log)) = self.in_force.take() {
            close(log);
        }
        for ending in self.ending.drain(..) {
            // A panic of it was an event.
            let _ = ending.join();
        }
    }
}

fn close(log: AccessLogWriter) {
    if let Err(error) = log.close(LAST_LINES) {
        events::access_log_failed("the last lines were not taken", &error);
    }
}
