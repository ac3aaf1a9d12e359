//! Events to standard error, and panics among them.

use std::io::IsTerminal as _;

use tracing_subscriber::filter::LevelFilter;

use crate::config::model::LogLevel;

/// Starts logging at `level`. A second call changes nothing.
pub(super) fn start(level: LogLevel) {
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
    let _ = subscriber.try_init();
    std::panic::set_hook(Box::new(|panic| {
        tracing::error!(%panic, "a task panicked; its connection is closed");
    }));
}
