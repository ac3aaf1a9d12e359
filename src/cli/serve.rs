//! Serving until told to stop.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use super::exit_code::CUT;
use super::start_fault::located;
use crate::config::Loaded;
use crate::events;
use crate::lasting::again;
use crate::reload::running::{Loader, RunningConfig};
use crate::server::{Options, Server};
use crate::shutdown::Shutdown;
use crate::telemetry::access_log::Rotation;
use crate::watch::Watcher;

/// Serves a config until a signal ends it.
pub(super) fn run(loaded: &Loaded, loader: Loader) -> anyhow::Result<ExitCode> {
    wait(start(loaded, loader)?)
}

/// Starts a server that obeys signals from the moment that it is said to listen.
pub(super) fn start(loaded: &Loaded, loader: Loader) -> anyhow::Result<Server> {
    let config = &loaded.config;
    let server =
        Server::start(config, Options::default()).map_err(|error| located(error, &loaded.effective))?;
    if let Some(control) = server.control() {
        let _inside = control.enter();
        let (mut terms, mut ints) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let (shutdown, delay) = (server.shutdown(), config.shutdown_delay);
        control.spawn(again("SIGTERM and SIGINT", async move || {
            obey(&mut terms, &mut ints, &shutdown, delay).await;
        }));
        let mut hangups = signal(SignalKind::hangup())?;
        let running = Arc::new(RunningConfig::new(server.reloader(), loader, loaded));
        let watched = Arc::clone(&running);
        control.spawn(again("the watch over files", async move || {
            let mut watcher = Watcher::new(watched.files());
            while watcher.changed().await {
                // It has said what came of it.
                let _ = watched.reload().await;
            }
        }));
        control.spawn(again("SIGHUP", async move || {
            while hangups.recv().await.is_some() {
                // It has said what came of it.
                let _ = running.reload().await;
            }
        }));
        let (mut moves, log) = (signal(SignalKind::user_defined1())?, server.log_rotation());
        control.spawn(again("SIGUSR1", async move || rotate(&mut moves, log.as_ref()).await));
    }
    server.announce();
    Ok(server)
}

/// Waits for the end of `server` and says what was cut.
pub(super) fn wait(server: Server) -> anyhow::Result<ExitCode> {
    let ended = server.wait()?;
    events::stopped(ended.cut);
    Ok(if ended.cut == 0 { ExitCode::SUCCESS } else { ExitCode::from(CUT) })
}

/// Ends `shutdown` step by step, one for each signal. The first SIGTERM lets `delay` pass before its step; SIGINT comes from
/// somebody who waits at a terminal.
async fn obey(terms: &mut Signal, ints: &mut Signal, shutdown: &Shutdown, delay: Duration) {
    let mut due: Option<Instant> = None;
    loop {
        let name = tokio::select! {
            Some(()) = terms.recv() => "SIGTERM",
            Some(()) = ints.recv() => "SIGINT",
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                due = None;
                events::delay_over();
                shutdown.advance();
                continue;
            }
            else => return,
        };
        let is_draining = shutdown.drain.is_cancelled();
        if !is_draining && due.is_none() && name == "SIGTERM" && !delay.is_zero() {
            events::draining(name, delay);
            due = Some(Instant::now() + delay);
            continue;
        }
        due = None;
        if is_draining {
            events::cutting(name);
        } else {
            events::draining(name, Duration::ZERO);
        }
        shutdown.advance();
    }
}

/// Reopens the access log whenever somebody has moved its file away.
async fn rotate(signals: &mut Signal, log: Option<&Rotation>) {
    while signals.recv().await.is_some() {
        match log {
            Some(log) => log.reopen(),
            None => events::no_log_file(),
        }
    }
}
