//! What DNS says of the names in the config in force, put into force: a turn like one for a change by hand, in which the file as it was last read is
//! taken with other backends.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::running::{ConfigInForce, Occasion, RunningConfig};
use crate::config::{Loaded, WithFound};
use crate::discover::Discovery;
use crate::events;

/// Names change together, when who answers for them is back: for so long others are waited for.
const TOGETHER: Duration = Duration::from_millis(20);
/// Until it is tried again what could not be put into force.
const AGAIN: Duration = Duration::from_secs(1);

impl RunningConfig {
    /// The same with one that knows something of names already.
    #[must_use]
    pub fn with_discovery(mut self, discovery: Arc<Discovery>) -> RunningConfig {
        self.discovery = discovery;
        self
    }

    /// What is known of names.
    #[must_use]
    pub fn discovery(&self) -> &Discovery {
        &self.discovery
    }

    /// Has names asked for, and puts into force what comes of it, until the process drains. Called inside of the control runtime.
    pub async fn follow_names(&self) {
        let mut changes = self.discovery.changes();
        self.discovery.follow(&self.last.lock().await.force.file);
        // What was found meanwhile.
        changes.mark_changed();
        while changes.changed().await.is_ok() {
            sleep(TOGETHER).await;
            changes.mark_unchanged();
            while !self.take_found().await {
                sleep(AGAIN).await;
            }
        }
    }

    /// Puts into force what was found. Says whether nothing is left to be done.
    async fn take_found(&self) -> bool {
        if self.reloader.draining().is_cancelled() {
            return true;
        }
        let mut last = self.last.lock().await;
        let force = &mut last.force;
        let WithFound { loaded, left_out } = self.discovery.expand(&force.file);
        self.discovery
            .leave_out(left_out)
            .iter()
            .for_each(|one| events::address_left_out(&one.target, &one.name, one.why));
        if loaded.config == force.file.config {
            return true;
        }
        match self.take(loaded, force, Occasion::Found).await {
            Ok(_) => {
                self.show(force);
                true
            }
            Err(refusal) => {
                events::found_refused(&refusal.first());
                false
            }
        }
    }

    /// `file` with what is known of its names, after those were asked for that are new.
    pub(super) async fn with_found(&self, file: &Arc<Loaded>) -> Arc<Loaded> {
        self.discovery.meet(file).await;
        self.discovery.expand(file).loaded
    }

    /// From now on the names of the config in force are followed, and no others.
    pub(super) fn follow_these(&self, force: &ConfigInForce) {
        self.discovery.follow(&force.file);
    }
}
