//! Numbers for statsd: each interval what has been counted since, from control. No worker waits for any of it, or knows of it.
//!
//! `service` reads what a scrape would be made of, and sends what is new in it
//! (`telemetry::statsd`). What has not arrived is told the next time: counts are lost only with the process.

mod round;
mod service;
mod socket;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::lasting::again;
use crate::reload::Reloader;
use service::StatsdService;

pub use service::ScrapeSource;

/// How long the end of the process waits for the last numbers.
const GRACE: Duration = Duration::from_secs(1);

/// Numbers are sent until this is told that there will be no more.
#[derive(Debug)]
pub struct StatsdEnd {
    last: CancellationToken,
    /// Closed once all is sent.
    over: Receiver<()>,
}

impl StatsdEnd {
    /// Has the last numbers sent, now that nothing is counted any more, and waits for that, though not for long.
    pub fn finish(self) {
        self.last.cancel();
        // Nothing ever comes.
        let _ = self.over.recv_timeout(GRACE);
    }
}

/// Begins to send numbers by the config in force, and by later ones.
pub fn start(control: &Handle, reloader: &Arc<Reloader>, source: ScrapeSource) -> StatsdEnd {
    let (reloader, last) = (Arc::clone(reloader), CancellationToken::new());
    let (alive, over) = channel::<()>();
    let told = last.clone();
    let was_begun = AtomicBool::new(false);
    control.spawn(again("sending numbers to statsd", async move || {
        // Dropped with this, once it is over for good.
        let _alive = &alive;
        // What was told before a panic is not known any more.
        let counts_from_zero = !was_begun.swap(true, Ordering::Relaxed);
        StatsdService::new(&reloader, &source, counts_from_zero).run(told.clone()).await;
    }));
    StatsdEnd { last, over }
}
