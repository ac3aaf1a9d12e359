//! Serving until told to stop.

use std::process::ExitCode;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::CUT;
use super::start_fault::located;
use crate::config::model::Config;
use crate::config::{Effective, Loaded};
use crate::lasting::again;
use crate::server::{Options, Server};
use crate::shutdown::Shutdown;
use crate::telemetry::access_log::Rotation;

/// Serves a config until a signal ends it.
pub(super) fn run(loaded: &Loaded) -> anyhow::Result<ExitCode> {
    wait(start(&loaded.config, &loaded.effective)?)
}

/// Starts a server that obeys signals from the moment that it is said to listen.
pub(super) fn start(config: &Config, rows: &[Effective]) -> anyhow::Result<Server> {
    let server = Server::start(config, Options::default()).map_err(|error| located(error, rows))?;
    if let Some(control) = server.control() {
        let _inside = control.enter();
        for (kind, name) in [(SignalKind::terminate(), "SIGTERM"), (SignalKind::interrupt(), "SIGINT")] {
            let (mut signals, shutdown) = (signal(kind)?, server.shutdown());
            control.spawn(again(name, async move || obey(&mut signals, name, &shutdown).await));
        }
        let mut hangups = signal(SignalKind::hangup())?;
        control.spawn(again("SIGHUP", async move || {
            // Elsewhere this reloads; ending without a drain would be the worst answer to it.
            while hangups.recv().await.is_some() {
                tracing::warn!("SIGHUP: this version does not reload; the config in force stays");
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
    if ended.cut == 0 {
        tracing::info!("stopped; everything was finished");
        Ok(ExitCode::SUCCESS)
    } else {
        tracing::warn!(connections = ended.cut, "stopped; connections were cut");
        Ok(ExitCode::from(CUT))
    }
}

async fn obey(signals: &mut Signal, name: &'static str, shutdown: &Shutdown) {
    while signals.recv().await.is_some() {
        if shutdown.drain.is_cancelled() {
            tracing::warn!("{name} again: cutting what is left");
        } else {
            tracing::info!("{name}: draining; a second signal cuts");
        }
        shutdown.advance();
    }
}

/// Reopens the access log whenever somebody has moved its file away.
async fn rotate(signals: &mut Signal, log: Option<&Rotation>) {
    while signals.recv().await.is_some() {
        match log {
            Some(log) => log.reopen(),
            None => tracing::info!("SIGUSR1: there is no access log file to reopen"),
        }
    }
}
