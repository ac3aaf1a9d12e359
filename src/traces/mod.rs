//! Traces of requests that are over, sent to a collector as OTLP over HTTP.
//!
//! The way of a request: a worker hands it over when it is over (`telemetry::traces`) → `spans` makes spans of it → `batch` packs them →
//! `line`, in which batches wait → `service`, which sends one after the other. Workers wait for none of this.

mod batch;
mod line;
mod news;
mod service;
mod spans;

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::lasting::again;
use crate::reload::Reloader;
use service::TraceService;

/// How long the last batch has when the process ends.
const GRACE: Duration = Duration::from_secs(1);

/// What sends traces, until it is told to end.
#[derive(Debug)]
pub struct TraceTask {
    task: JoinHandle<()>,
    end: CancellationToken,
}

impl TraceTask {
    /// Begins to send those of the config in force, and of later ones, in the name of `node`. `None`: somebody else does.
    #[must_use]
    pub fn start(control: &Runtime, reloader: &Arc<Reloader>, node: Option<String>) -> Option<TraceTask> {
        let source = reloader.snapshots.observers().take_source()?;
        let end = CancellationToken::new();
        // Locked by nobody else: it outlives a panic.
        let service = Mutex::new(TraceService::new((reloader, node), source, end.clone()));
        let task = control.spawn(again("traces", async move || service.lock().await.run().await));
        Some(TraceTask { task, end })
    }

    /// Sends what is left, and waits for that, but not for long.
    pub fn finish(self, control: &Runtime) {
        self.end.cancel();
        let _ = control.block_on(async { timeout(GRACE, self.task).await });
    }
}
