//! Events to standard error, and panics among them.

use std::fmt;
use std::io::{self, IsTerminal as _, Write};
use std::os::fd::AsFd as _;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use tracing::Dispatch;
use tracing::field::Field;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{Writer, debug_fn};

use super::json_events::JsonEvents;
use super::outlet::{Confess, Outlet};
use super::start_fault;
use crate::config::model::{Config, EventFormat, LogLevel};
use crate::events;
use crate::telemetry::lines::Descriptor;

/// How long the last events may take to be written: a reader that reads needs next to nothing.
const LAST_EVENTS: Duration = Duration::from_secs(1);

/// Does `work` with events on standard error, the error that ends it among them, and waits a while for the last of them.
pub(super) fn during(
    config: &Config,
    work: impl FnOnce() -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    let logging = Logging::start(config.log_level, config.log_format)?;
    Ok(work().unwrap_or_else(|error| {
        match config.log_format {
            // Whoever collects events as JSON wants to know of the end as well.
            EventFormat::Json => start_fault::tell(&error),
            EventFormat::Text => logging.say(&format!("{error:#}\n")),
        }
        ExitCode::FAILURE
    }))
}

/// Events are written as long as this lives.
struct Logging(Option<Outlet>);

impl Logging {
    /// Starts logging from `level` on. A second start changes nothing.
    fn start(level: LogLevel, format: EventFormat) -> anyhow::Result<Logging> {
        let filter = match level {
            LogLevel::Error => LevelFilter::ERROR,
            LogLevel::Warn => LevelFilter::WARN,
            LogLevel::Info => LevelFilter::INFO,
            LogLevel::Debug => LevelFilter::DEBUG,
            LogLevel::Trace => LevelFilter::TRACE,
        };
        let stderr = Descriptor::of(io::stderr().as_fd()).context("can't log to standard error")?;
        let outlet = Outlet::start(Box::new(stderr), confession(format));
        let outlet = outlet.context("can't start the thread that writes events")?;
        // An embedder may have a subscriber of its own.
        let _ = tracing::dispatcher::set_global_default(subscriber(filter, format, outlet.intake().clone()));
        std::panic::set_hook(Box::new(|panic| events::task_panicked(panic)));
        Ok(Logging(Some(outlet)))
    }

    /// Writes a line that is no event, behind the events so far.
    fn say(&self, line: &str) {
        if let Some(outlet) = &self.0 {
            outlet.intake().offer(line.as_bytes());
        }
    }
}

impl Drop for Logging {
    fn drop(&mut self) {
        if let Some(outlet) = self.0.take() {
            outlet.close(LAST_EVENTS);
        }
    }
}

fn subscriber<W>(filter: LevelFilter, format: EventFormat, writer: W) -> Dispatch
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(filter)
        .with_writer(writer)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        // Those would go straight to standard error.
        .log_internal_errors(false);
    match format {
        EventFormat::Text => subscriber.fmt_fields(debug_fn(sentence)).into(),
        EventFormat::Json => subscriber.event_format(JsonEvents).into(),
    }
}

/// Writes what an event says and none of its fields: the sentence has them. What could steer a terminal, or begin a line of
/// its own, is escaped.
fn sentence(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    if field.name() != "message" {
        return Ok(());
    }
    format!("{value:?}").chars().try_for_each(|sign| {
        if sign.is_control() { write!(writer, "{}", sign.escape_default()) } else { writer.write_char(sign) }
    })
}

/// The event that says how many were lost, in the same form as all others but past the queue.
fn confession(format: EventFormat) -> Confess {
    let page = Page::default();
    let writer = page.clone();
    let apart = subscriber(LevelFilter::WARN, format, move || writer.clone());
    Box::new(move |lost| {
        tracing::dispatcher::with_default(&apart, || {
            events::events_lost(lost);
        });
        std::mem::take(&mut *page.0.lock().unwrap_or_else(PoisonError::into_inner))
    })
}

/// A line in memory.
#[derive(Clone, Default)]
struct Page(Arc<Mutex<Vec<u8>>>);

impl Write for Page {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
