//! Telling others of events by HTTP: each event of which a receiver wants to know is a POST to it.
//!
//! The way of a message: the history of events (`crate::events`) → `service`, which makes messages and knows what was told last
//! (`last_told`) → `queue`, in which each object has a line → `delivery`, one attempt. What waits is on the disk too (`kept`, `journal`),
//! so that the next process sends on what this one did not. Nothing else waits for any of this.

mod backoff;
mod delivery;
mod journal;
mod kept;
mod last_told;
mod message;
mod queue;
mod receivers;
mod service;
mod signature;
mod states;
mod telling;
mod together;

use std::io;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use tokio_util::sync::CancellationToken;

use crate::events::{self, EventHistory};
use crate::lasting::again;
use crate::reload::Reloader;
use crate::store::Store;
use journal::WebhookJournal;
use kept::KeptMessages;
use service::WebhookService;
pub use together::SharedHooks;

/// Where messages are kept; `Err`: they can't be, and why.
pub type WebhookStore = Result<Box<dyn Store>, String>;

/// The thread that tells others, until it has ended.
#[derive(Debug)]
pub struct WebhookThread(Option<JoinHandle<()>>);

impl WebhookThread {
    /// Begins to tell those of the config in force, and of later ones, in the name of `node`. Without receivers, and with nothing left of
    /// the process before (`has_rest`), it waits for the first. `shared`: this is one of several nodes. `None`: nobody keeps
    /// events here.
    ///
    /// # Errors
    /// There is no thread for it.
    pub fn start(
        node: &str,
        reloader: &Arc<Reloader>,
        shared: Option<SharedHooks>,
        store: impl FnOnce() -> WebhookStore + Send + 'static,
        has_rest: bool,
        drain: &CancellationToken,
    ) -> io::Result<Option<WebhookThread>> {
        let Some(history) = EventHistory::here() else { return Ok(None) };
        let (node, reloader, drain) = (node.to_owned(), Arc::clone(reloader), drain.clone());
        let follow = events::here_as_there();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = Builder::new().name("evenkeel-hooks".to_owned()).spawn(move || {
            follow();
            runtime.block_on(async {
                let from = if has_rest || !reloader.webhooks.borrow().is_empty() {
                    0
                } else {
                    let mut config = reloader.webhooks.subscribe();
                    tokio::select! {
                        _ = config.wait_for(|webhooks| !webhooks.is_empty()) => {}
                        () = drain.cancelled() => return,
                    }
                    history.latest()
                };
                let kept = open(store());
                let mut service =
                    WebhookService::new(&node, &reloader, (&history, from), &drain, kept).with(shared);
                again("webhooks", async || service.run().await).await;
                service.end().await;
            });
            // A name may still be looked up.
            runtime.shutdown_background();
        })?;
        Ok(Some(WebhookThread(Some(thread))))
    }

    /// Waits until it has ended, which it does soon once the process drains.
    pub fn wait(mut self) {
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}

/// What the process before has left, and where to keep what comes. Tells what was found.
fn open(store: WebhookStore) -> (Option<WebhookJournal>, KeptMessages) {
    let opened = store.and_then(|mut store| {
        let found = store.load().map_err(|error| error.to_string())?;
        let (kept, unknown) = KeptMessages::replay(&found.records);
        if found.torn > 0 || found.damaged + unknown > 0 {
            events::webhooks_cut(found.torn, found.damaged + unknown);
        }
        let journal = WebhookJournal::start(store, kept.clone()).map_err(|error| error.to_string())?;
        Ok((Some(journal), kept))
    });
    opened.unwrap_or_else(|reason| {
        events::webhooks_unkept(&reason);
        (None, KeptMessages::default())
    })
}
