//! A config that somebody applies: it takes the place of the one in force at once, and that of its file when it is confirmed.
//!
//! Invariants of a trial:
//!
//! 1. There is one at a time. It is begun and ended by who has the turn.
//! 2. Until it is confirmed the file is as it was, so that a crash is a rollback. What the overlay loses by the text on trial is
//!    paused (`kept`), and so comes back with it.
//! 3. Whoever ends it names it by its number: a deadline that comes late ends no other.

pub mod ending;
pub mod replacement;
pub mod view;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::background::background;
use super::begun::{Loader, now_ms};
use super::fault::Refusal;
use super::judge::touched::touched;
use super::plan::Plan;
use super::running::{ConfigInForce, Occasion, ReloadOutcome, RunningConfig};
use crate::config::{FileRole, Files, Loaded};
use crate::events;
use replacement::Replacement;
pub(super) use view::ConfigTrial;
pub use view::TrialView;

/// The shortest and the longest time that a trial may last.
pub const WINDOWS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(24 * 3600));

/// What somebody gives.
#[derive(Clone)]
pub struct ApplyAsk {
    /// The text.
    pub text: Arc<str>,
    /// What reads it as if it lay in the place of the config.
    pub loader: Loader,
    /// By whom: `uid 0`.
    pub who: String,
    /// For how long it is on trial; `None`: it is confirmed at once.
    pub window: Option<Duration>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Applied {
    /// What has changed.
    pub plan: Plan,
    /// The trial, if there is one.
    pub trial: Option<Arc<TrialView>>,
}

/// A config that lies in its file now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmed {
    /// The file.
    pub file: PathBuf,
    /// Where the one before is kept; `None`: it says the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<PathBuf>,
}

/// Why nothing has changed.
#[derive(Clone, Debug)]
pub enum ApplyFault {
    /// It can't be now.
    Conflict(String),
    /// The config is not taken.
    Refused(Refusal),
    /// The file can't be replaced.
    Unwritten {
        /// In words.
        reason: String,
        /// The disk has no room, or this user may have no more of it.
        is_full: bool,
    },
}

impl RunningConfig {
    /// The config on trial.
    #[must_use]
    pub fn trial(&self) -> Option<Arc<TrialView>> {
        self.trial.borrow().clone()
    }

    /// Puts another config into force, on trial or for good, and logs it. Called inside of the control runtime.
    ///
    /// # Errors
    /// Nothing has changed.
    pub async fn apply_text(&self, ask: ApplyAsk) -> Result<Applied, ApplyFault> {
        if let Some(together) = &self.together {
            return self.apply_together(together, ask).await;
        }
        let mut last = self.last.lock().await;
        let outcome = self.apply_in_turn(&mut last.force, ask).await;
        self.show(&last.force);
        outcome
    }

    async fn apply_in_turn(&self, force: &mut ConfigInForce, ask: ApplyAsk) -> Result<Applied, ApplyFault> {
        let ApplyAsk { text, loader, who, window } = ask;
        if let Some(trial) = &force.trial {
            return Err(ApplyFault::Conflict(trial.view.busy()));
        }
        // Whoever can't be confirmed in the end had better not begin.
        let (place, replacement) = self.replacement(&text).await?;
        let mut written = Files::default();
        written.add(&place, FileRole::Config);
        let (read, _) = self.read(&loader, Files::default()).await;
        let mut loaded = read.map_err(ApplyFault::Refused)?;
        loaded.files.add_all(&written);
        let written = loaded.files.written();
        let before = Arc::clone(&force.file);
        let occasion = Occasion::Apply { who: &who, window };
        let plan = self.take(Arc::new(loaded), force, occasion).await.map_err(ApplyFault::Refused)?;
        self.files.send_replace(force.watched(&force.file.files));
        let Some(window) = window else {
            if let Err(fault) = self.settle_down(replacement, force, &who).await {
                let why = "its file can't be replaced";
                // It was in force a moment ago; whoever has taken an address of it meanwhile keeps that.
                self.take(before, force, Occasion::Rollback(why)).await.map_err(ApplyFault::Refused)?;
                self.files.send_replace(force.watched(&force.file.files));
                return Err(fault);
            }
            return Ok(Applied { plan, trial: None });
        };
        let number = self.reloader.snapshots.current().map_or(0, |snapshot| snapshot.number);
        let deadline = Instant::now() + window;
        let touched = touched(&plan);
        let view = Arc::new(TrialView { number, who, since_ms: now_ms(), window, touched, deadline });
        force.trial =
            Some(ConfigTrial { view: Arc::clone(&view), text, loader, before, written, is_told: false });
        self.trial.send_replace(Some(Arc::clone(&view)));
        Ok(Applied { plan, trial: Some(view) })
    }

    /// Writes `text` beside the config's file.
    async fn replacement(&self, text: &Arc<str>) -> Result<(PathBuf, Replacement), ApplyFault> {
        let Some(place) = self.place.clone() else {
            let why = "this process has no config file that another one could take the place of";
            return Err(ApplyFault::Conflict(why.to_owned()));
        };
        let (text, file) = (Arc::clone(text), place.clone());
        let prepared = background(move || Replacement::prepare(&file, text.as_bytes())).await;
        let replacement =
            prepared.and_then(|prepared| prepared).map_err(|error| unwritten(&place, &error))?;
        Ok((place, replacement))
    }

    /// Puts what is in force into the place of the file, and reads it from there.
    async fn settle_down(
        &self,
        replacement: Replacement,
        force: &mut ConfigInForce,
        who: &str,
    ) -> Result<Confirmed, ApplyFault> {
        let Some(file) = self.place.clone() else { return Err(ApplyFault::Conflict(String::new())) };
        let done = background(move || replacement.commit()).await.and_then(|done| done);
        let before = done.map_err(|error| unwritten(&file, &error))?;
        events::confirmed(who, &file, before.as_deref());
        force.trial = None;
        self.trial.send_replace(None);
        force.kept().pause(&[]);
        // From now on its lines are those of the file, and it is watched again. What differs has been written since.
        let _ = self.turn(force, Occasion::Reread).await;
        Ok(Confirmed { file, before })
    }

    /// Has the config on trial take the place of its file.
    ///
    /// # Errors
    /// There is none, or the file is another one than before, or can't be replaced. The trial goes on.
    pub async fn confirm(&self, who: &str) -> Result<Confirmed, ApplyFault> {
        let mut last = self.last.lock().await;
        let force = &mut last.force;
        let Some(ConfigTrial { view, text, written, .. }) = force.trial.clone() else {
            return Err(no_trial());
        };
        if view.deadline <= Instant::now() {
            let why = "its time is over: it is taken back as soon as that can be done";
            return Err(ApplyFault::Conflict(why.to_owned()));
        }
        let known = written.clone();
        let now = background(move || known.again()).await.unwrap_or_default();
        if let Some(file) = written.first_that_differs(&now) {
            return Err(ApplyFault::Conflict(format!(
                "{file} has changed since the config was applied, and would be lost: `evenkeel rollback` takes the trial back"
            )));
        }
        let (_, replacement) = self.replacement(&text).await?;
        let outcome = self.settle_down(replacement, force, who).await;
        self.show(&last.force);
        outcome
    }

    /// Takes the config on trial back.
    ///
    /// # Errors
    /// There is none, or the one before can't be put into force now. The trial goes on.
    pub async fn rollback(&self, who: &str) -> Result<Plan, ApplyFault> {
        self.roll_back(None, &format!("as {who} asked for")).await
    }

    /// Takes the trial of this number back; `None`: whichever there is.
    pub(super) async fn roll_back(&self, number: Option<u64>, why: &str) -> Result<Plan, ApplyFault> {
        let mut last = self.last.lock().await;
        let force = &mut last.force;
        let is_meant = |trial: &&ConfigTrial| number.is_none_or(|number| trial.view.number == number);
        let Some(ConfigTrial { before, .. }) = force.trial.as_ref().filter(is_meant).cloned() else {
            return Err(no_trial());
        };
        let outcome = self.take(before, force, Occasion::Rollback(why)).await;
        match outcome {
            Ok(plan) => {
                force.trial = None;
                self.trial.send_replace(None);
                // What has changed of its files meanwhile is read now.
                self.files.send_replace(force.watched(&force.file.files));
                self.show(&last.force);
                Ok(plan)
            }
            Err(refusal) => {
                // Who has asked hears of it, and is not asked again.
                let untold = force.trial.as_mut().filter(|trial| number.is_some() && !trial.is_told);
                if let Some(trial) = untold {
                    trial.is_told = true;
                    events::rollback_failed(why, &refusal.first());
                }
                Err(ApplyFault::Refused(refusal))
            }
        }
    }

    /// A file has changed while a config is on trial: those that keys name are read under its text, and those in which the config is
    /// written are not.
    pub(super) async fn turn_on_trial(
        &self,
        force: &mut ConfigInForce,
        trial: &ConfigTrial,
    ) -> ReloadOutcome {
        let seen = self.files.borrow().clone();
        let known = trial.written.clone();
        let written = background(move || known.again()).await.unwrap_or_else(|_| trial.written.clone());
        let edited = trial.written.first_that_differs(&written);
        if let Some(file) = edited.as_ref().filter(|_| seen.written().first_that_differs(&written).is_some())
        {
            events::edit_on_trial(file);
        }
        let (read, mut files) = self.read(&trial.loader, force.file.files.clone()).await;
        files.add_all(&written);
        let is_included =
            trial.written.clone().without(self.place.as_deref()).first_that_differs(&written).is_some();
        if is_included || seen.named().first_that_differs(&files.named()).is_none() {
            // Included files would be a part of it.
            self.files.send_replace(force.watched(&files));
            return Err(trial.view.refusal());
        }
        let applied = match read {
            Ok(loaded) => {
                self.take(Arc::new(Loaded { files: files.clone(), ..loaded }), force, Occasion::Reload).await
            }
            Err(refusal) => Err(refusal),
        };
        self.told(applied, force, &files)
    }
}

fn no_trial() -> ApplyFault {
    ApplyFault::Conflict("no config is on trial".to_owned())
}

fn unwritten(file: &std::path::Path, error: &io::Error) -> ApplyFault {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let is_full = matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge);
    ApplyFault::Unwritten { reason: format!("{} can't be replaced: {error}", file.display()), is_full }
}
