//! Events to standard error, and panics among them.

use std::fmt;
use std::io::{self, IsTerminal as _, Write};
use std::os::fd::AsFd as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use tracing::field::Field;
use tracing::{Dispatch, Event, Subscriber};
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::fmt::format::{Format, Writer, debug_fn};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, Layer, MakeWriter};
use tracing_subscriber::layer::Layer as _;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Registry, reload};

use super::json_events::JsonEvents;
use super::outlet::{Confess, Outlet};
use super::{output, start_fault};
use crate::config::model::{Config, EventFormat, LogLevel};
use crate::events::{self, EventHistory};
use crate::reload::running::Tune;
use crate::telemetry::lines::Descriptor;

/// How long the last events may take to be written: a reader that reads needs next to nothing.
const LAST_EVENTS: Duration = Duration::from_secs(1);

/// Does `work` with events on standard error, the error that ends it among them, and waits a while for the last of them. The
/// work may have others logged, in another form.
pub(super) fn during(
    config: &Config,
    work: impl FnOnce(Tune) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    let form = FormInForce::new(config.log_format);
    let (logging, tune) = Logging::start(config.log_level, &form)?;
    Ok(work(tune).unwrap_or_else(|error| {
        match form.get() {
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
    /// Starts logging from `level` on, and says how to change that. A second start changes nothing.
    fn start(level: LogLevel, form: &FormInForce) -> anyhow::Result<(Logging, Tune)> {
        let stderr = Descriptor::of(io::stderr().as_fd()).context("can't log to standard error")?;
        let history = EventHistory::new();
        let outlet = Outlet::start(Box::new(stderr), confession(form, &history));
        let outlet = outlet.context("can't start the thread that writes events")?;
        let (level, handle) = reload::Layer::new(filter(level));
        // An embedder may have a subscriber of its own.
        let all = subscriber(level, form, outlet.intake().clone(), &history);
        let _ = tracing::dispatcher::set_global_default(all);
        std::panic::set_hook(Box::new(|panic| events::task_panicked(panic)));
        let form = form.clone();
        let tune = move |level, format| {
            form.set(format);
            // An error: that subscriber is gone, and nobody logs.
            let _ = handle.reload(filter(level));
        };
        Ok((Logging(Some(outlet)), Arc::new(tune)))
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

/// The form that events have at this moment.
#[derive(Clone, Debug)]
struct FormInForce {
    is_json: Arc<AtomicBool>,
    text: Format,
}

impl FormInForce {
    fn new(format: EventFormat) -> FormInForce {
        let form = FormInForce { is_json: Arc::default(), text: Format::default().with_target(false) };
        form.set(format);
        form
    }

    fn set(&self, format: EventFormat) {
        self.is_json.store(format == EventFormat::Json, Ordering::Relaxed);
    }

    fn get(&self) -> EventFormat {
        if self.is_json.load(Ordering::Relaxed) { EventFormat::Json } else { EventFormat::Text }
    }
}

impl<S, N> FormatEvent<S, N> for FormInForce
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        match self.get() {
            EventFormat::Text => self.text.format_event(context, writer, event),
            EventFormat::Json => JsonEvents.format_event(context, writer, event),
        }
    }
}

fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

/// What other people's code tells of each odd answer of DNS would let whoever sends those fill logs; what it amounts to is an event of ours.
fn is_ours(metadata: &tracing::Metadata<'_>) -> bool {
    !metadata.target().starts_with("hickory") || *metadata.level() == tracing::Level::ERROR
}

/// Lines of what is at least of this level, and a history that has no less because there are fewer lines.
fn subscriber<W>(
    level: reload::Layer<LevelFilter, Registry>,
    form: &FormInForce,
    writer: W,
    history: &Arc<EventHistory>,
) -> Dispatch
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let lines = Layer::default()
        .with_writer(writer)
        .with_ansi(io::stderr().is_terminal())
        // Those would go straight to standard error.
        .log_internal_errors(false)
        .fmt_fields(debug_fn(sentence))
        .event_format(form.clone())
        .with_filter(level)
        .with_filter(filter_fn(is_ours));
    tracing_subscriber::registry().with(lines).with(history.layer()).into()
}

/// Writes what an event says and none of its fields: the sentence has them.
fn sentence(writer: &mut Writer<'_>, field: &Field, value: &dyn fmt::Debug) -> fmt::Result {
    if field.name() != "message" {
        return Ok(());
    }
    writer.write_str(&output::shown(&format!("{value:?}")))
}

/// The event that says how many were lost, in the same form as all others but past the queue.
fn confession(form: &FormInForce, history: &Arc<EventHistory>) -> Confess {
    let page = Page::default();
    let writer = page.clone();
    let (level, _) = reload::Layer::new(LevelFilter::WARN);
    let apart = subscriber(level, form, move || writer.clone(), history);
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
