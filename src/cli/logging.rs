//! Events to standard error, and panics among them.

use std::io::IsTerminal as _;

use tracing_subscriber::filter::LevelFilter;

use super::json_events::JsonEvents;
use crate::config::model::{EventFormat, LogLevel};

/// Starts logging from `level` on. A second call changes nothing.
pub(super) fn start(level: LogLevel, format: EventFormat) {
    let filter = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    // An embedder may have a subscriber of its own.
    let _ = match format {
        EventFormat::Text => subscriber.try_init(),
        EventFormat::Json => subscriber.event_format(JsonEvents).try_init(),
    };
    std::panic::set_hook(Box::new(|panic| {
        tracing::error!(%panic, "a task panicked; its connection is closed");
    }));
}
