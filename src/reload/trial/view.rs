//! What is known of a trial that goes on.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::config::{Files, Loaded};
use crate::reload::begun::Loader;
use crate::reload::fault::Refusal;
use crate::reload::judge::touched::Touched;

/// What is seen of a trial.
#[derive(Debug)]
pub struct TrialView {
    /// The how manieth of the process.
    pub number: u64,
    /// Who began it.
    pub who: String,
    /// When, in milliseconds since 1970.
    pub since_ms: u64,
    /// How long it may last.
    pub window: Duration,
    /// What it touches.
    pub touched: Touched,
    /// When it ends.
    pub deadline: Instant,
}

impl TrialView {
    /// Why nothing else is put into force meanwhile.
    pub(in crate::reload) fn refusal(&self) -> Refusal {
        Refusal::now(self.busy())
    }

    pub(super) fn busy(&self) -> String {
        let left = self.deadline.saturating_duration_since(Instant::now()).as_secs();
        let who = &self.who;
        format!(
            "a config is on trial for {left}s more (applied by {who}): `evenkeel confirm` or `evenkeel rollback` ends that"
        )
    }
}

/// The way back, and on.
#[derive(Clone)]
pub(in crate::reload) struct ConfigTrial {
    pub(in crate::reload) view: Arc<TrialView>,
    pub(super) text: Arc<str>,
    pub(super) loader: Loader,
    /// What was in force before.
    pub(super) before: Arc<Loaded>,
    /// The files in which the config is written, each as it was when this one was applied.
    pub(super) written: Files,
    /// Somebody was told that it can't be taken back.
    pub(super) is_told: bool,
}
