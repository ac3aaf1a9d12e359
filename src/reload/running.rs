//! The config of a process that runs: read again when somebody asks, and put into force or refused as a whole.
//!
//! Invariants of a turn:
//!
//! 1. At most one config is read at a time.
//! 2. A change by hand has a turn of its own: it finds the file as it was last read, and no reading goes on meanwhile.
//! 3. Who asks gets the outcome of a reading that began after it asked. All who asked before it began share it, so a thousand
//!    who ask at once cost one or two readings.
//! 4. While a config is on trial (`trial`), files are read under its text, and by nobody but the watch.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, SystemTime};

use tokio::sync::{Mutex, watch};

use super::background::background;
use super::begun::{Begun, ByHand, now_ms};
use super::blocks::Blocks;
use super::difference::difference;
use super::fault::Fault;
use super::kept::{KeptOverlay, OverlayState};
use super::objects::objects;
use super::plan::{Plan, PlanVerdict, PlannedEnd};
use super::together::sharing::Together;
use super::trial::view::{ConfigTrial, TrialView};
use super::{Refused, Reloaded, Reloader};
use crate::config::model::{EventFormat, LogLevel, WatchMode};
use crate::config::{Effective, Files, Instead, Loaded, Problems};
use crate::discover::Discovery;
use crate::events;
use crate::net::now;
use crate::net::supervisor::Reloading;
use crate::overlay::{Laid, OverlayEntry, lay, reconcile};

pub use super::begun::Loader;
pub use super::fault::Refusal;

/// Reads the config as if these texts were in its files.
pub type TextsLoader = Arc<dyn Fn(&Instead) -> anyhow::Result<Loaded> + Send + Sync>;

/// Has events logged from this level on, in this form.
pub type Tune = Arc<dyn Fn(LogLevel, EventFormat) + Send + Sync>;

/// What came of it: what has changed, or why nothing has.
pub type ReloadOutcome = Result<Arc<Plan>, Refusal>;

/// The config in force, and the way to another one.
pub struct RunningConfig {
    /// By which configs are put into force.
    pub reloader: Arc<Reloader>,
    /// Where the config lies; `None`: in no file, so that no other can take its place.
    pub(super) place: Option<PathBuf>,
    loader: Loader,
    /// `None`: there is no file that could be written.
    pub(super) texts: Option<TextsLoader>,
    tune: Tune,
    asked: AtomicU64,
    pub(super) last: Mutex<LastTurn>,
    /// What to watch: the files of the config in force, and after a refused reading those that it named too, each as it was
    /// before that reading.
    pub(super) files: watch::Sender<Files>,
    /// The config on trial, for who looks at it and for who ends it.
    pub(super) trial: watch::Sender<Option<Arc<TrialView>>>,
    /// What is changed by hand, for who looks at it: as it is after each turn.
    pub(super) by_hand: watch::Sender<Arc<ByHand>>,
    /// Who is kept out, which is no matter of any turn.
    pub(super) blocks: Arc<Blocks>,
    /// What is known of names whose addresses are backends.
    pub(super) discovery: Arc<Discovery>,
    /// The nodes that it shares its config with; `None`: it stands alone.
    pub(super) together: Option<Together>,
    /// Held by whoever blocks somebody, or lets in again, which waits for no turn; and, so that nobody does, while another process is given what there is.
    pub(super) blocking: tokio::sync::RwLock<()>,
}

/// What has become of the turns so far.
pub(super) struct LastTurn {
    /// How many had asked when it began.
    covers: u64,
    outcome: ReloadOutcome,
    pub(super) force: ConfigInForce,
}

/// What the config in force was made of.
pub(super) struct ConfigInForce {
    /// What the file says, with the backends that DNS names.
    pub(super) file: Arc<Loaded>,
    /// That with the overlay laid over it.
    pub(super) laid: Laid,
    /// The overlay. It is locked for no longer than a step takes, by who has the turn, or blocks somebody.
    pub(super) kept: Arc<KeptOverlay>,
    /// It is on trial, and this is how to get back.
    pub(super) trial: Option<ConfigTrial>,
}

/// What a config is put into force for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Occasion<'a> {
    /// It was read again.
    Reload,
    /// The same, right after what is in force was written to its place.
    Reread,
    /// Somebody has given it.
    Apply {
        /// Who.
        who: &'a str,
        /// For so long, unless it is confirmed.
        window: Option<Duration>,
    },
    /// Another one was on trial, and is taken back for this reason.
    Rollback(&'a str),
    /// DNS names other backends.
    Found,
    /// The nodes of the cluster have agreed on another one.
    Revision {
        /// Its number.
        number: u64,
        /// Who has proposed it.
        who: &'a str,
        /// On which node.
        node: &'a str,
    },
}

/// While it is there nothing else is put into force.
pub struct TurnPause<'a>(
    pub(super) tokio::sync::MutexGuard<'a, LastTurn>,
    #[expect(dead_code, reason = "held")] tokio::sync::RwLockWriteGuard<'a, ()>,
);

impl ConfigInForce {
    /// Those of `files` that are to be watched.
    pub(super) fn watched(&self, files: &Files) -> Files {
        match self.file.config.watch {
            WatchMode::On => files.clone(),
            WatchMode::Files => files.named(),
            WatchMode::Off => Files::default(),
        }
    }

    /// To be let go of at once.
    pub(super) fn kept(&self) -> MutexGuard<'_, OverlayState> {
        self.kept.state()
    }

    pub(super) fn rows(&self) -> &[Effective] {
        &self.laid.loaded.effective
    }

    fn by_hand(&self) -> ByHand {
        let kept = self.kept();
        ByHand {
            file: Arc::clone(&self.file),
            entries: kept.entries().into(),
            aside: self.laid.aside.clone(),
            fault: kept.fault().map(str::to_owned),
        }
    }
}

impl RunningConfig {
    /// Waits until nothing is being put into force, and lets nothing be put into force for as long as what is given is there.
    pub async fn pause(&self) -> TurnPause<'_> {
        TurnPause(self.last.lock().await, self.blocking.write().await)
    }

    /// Whether a config is on trial.
    #[must_use]
    pub fn is_on_trial(&self) -> bool {
        self.trial.borrow().is_some()
    }

    /// Of a config that is in force.
    #[must_use]
    pub fn new(reloader: Arc<Reloader>, loader: Loader, tune: Tune, begun: Begun) -> RunningConfig {
        let Begun { file, laid, kept } = begun;
        let kept = Arc::new(kept);
        let blocks = Arc::new(Blocks::new(Arc::clone(&kept), reloader.worker_ends.clone()));
        let force = ConfigInForce { file, laid, kept, trial: None };
        let files = watch::Sender::new(force.watched(&force.file.files));
        let by_hand = watch::Sender::new(Arc::new(force.by_hand()));
        let last = LastTurn { covers: 0, outcome: Ok(Arc::default()), force };
        let (asked, last) = (AtomicU64::new(0), Mutex::new(last));
        let trial = watch::Sender::new(None);
        let (place, texts) = (None, None);
        let discovery = Arc::new(Discovery::new(now));
        RunningConfig {
            reloader,
            place,
            loader,
            texts,
            tune,
            asked,
            last,
            files,
            trial,
            by_hand,
            blocks,
            discovery,
            together: None,
            blocking: tokio::sync::RwLock::default(),
        }
    }

    /// The same where the config lies in this file, so that another one can take its place.
    #[must_use]
    pub fn lying_at(self, place: PathBuf) -> RunningConfig {
        RunningConfig { place: Some(place), ..self }
    }

    /// The same, of a config whose files may be written.
    #[must_use]
    pub fn with_files(self, texts: Option<TextsLoader>) -> RunningConfig {
        RunningConfig { texts, ..self }
    }

    /// The files to watch, again after each reading.
    #[must_use]
    pub fn files(&self) -> watch::Receiver<Files> {
        self.files.subscribe()
    }

    /// Another value after each turn that may have changed what is in force.
    pub(super) fn configs(&self) -> watch::Receiver<Arc<ByHand>> {
        self.by_hand.subscribe()
    }

    /// What is changed by hand.
    #[must_use]
    pub fn by_hand(&self) -> Arc<ByHand> {
        Arc::clone(&self.by_hand.borrow())
    }

    /// Reads the config again, puts it into force, and logs what came of it. Called inside of the control runtime.
    ///
    /// # Errors
    /// It is refused; nothing has changed.
    pub async fn reload(&self) -> ReloadOutcome {
        self.said_while(Box::pin(async {
            match &self.together {
                Some(together) => self.reload_together(together).await,
                None => self.reload_own().await,
            }
        }))
        .await
    }

    /// Has whoever supervises the process know that a config is being put into force.
    async fn said_while(&self, reload: impl Future<Output = ReloadOutcome>) -> ReloadOutcome {
        let reloading = Reloading::begin(now());
        let outcome = reload.await;
        let number = self.reloader.snapshots.current().map_or(0, |snapshot| snapshot.number);
        reloading.over(&match &outcome {
            Ok(_) => format!("config {number} is in force"),
            Err(refusal) => format!("config {number} stays in force: {}", refusal.first()),
        });
        outcome
    }

    /// The same of what is this node's own.
    pub(super) async fn reload_own(&self) -> ReloadOutcome {
        self.again(async |force| match &force.trial {
            None => self.turn(force, Occasion::Reload).await,
            Some(trial) => {
                let refusal = trial.view.refusal();
                events::reload_refused(&refusal.first(), 0);
                Err(refusal)
            }
        })
        .await
    }

    /// The same because a file has changed. While a config is on trial it is read under its text.
    ///
    /// # Errors
    /// It is refused; nothing has changed.
    pub async fn reload_changed(&self) -> ReloadOutcome {
        self.said_while(Box::pin(async {
            if let Some(together) = &self.together {
                return self.reload_together(together).await;
            }
            self.again(async |force| match force.trial.clone() {
                None => self.turn(force, Occasion::Reload).await,
                Some(trial) => self.turn_on_trial(force, &trial).await,
            })
            .await
        }))
        .await
    }

    async fn again(&self, turn: impl AsyncFnOnce(&mut ConfigInForce) -> ReloadOutcome) -> ReloadOutcome {
        let mine = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let mut last = self.last.lock().await;
        if last.covers >= mine {
            return last.outcome.clone();
        }
        last.covers = self.asked.load(Ordering::Relaxed);
        let outcome = turn(&mut last.force).await;
        self.show(&last.force);
        last.outcome.clone_from(&outcome);
        outcome
    }

    /// What a reload would do now, if it read the same as `read`; without one it reads the config again. Nothing changes. Called
    /// inside of the control runtime.
    pub async fn plan(&self, read: Option<Loader>) -> Plan {
        let last = self.last.lock().await;
        let own = self.together.as_ref().filter(|together| together.in_force().is_some());
        let own = own.map(Together::own_as_shared);
        let read = read.as_ref().or(own.as_ref()).unwrap_or(&self.loader);
        match self.read(read, Files::default()).await.0 {
            Ok(loaded) => {
                let loaded = self.discovery.expand(&Arc::new(loaded)).loaded;
                let reconciled = reconcile(last.force.kept().entries(), &loaded, now_ms());
                let laid = lay(&loaded, &reconciled.entries);
                let plan = self.reloader.plan(&laid.loaded, last.force.rows()).await;
                Plan { over: reconciled.ended.iter().map(PlannedEnd::from).collect(), ..plan }
            }
            Err(refusal) => Plan::refused(refusal.problems),
        }
    }

    pub(super) async fn turn(&self, force: &mut ConfigInForce, occasion: Occasion<'_>) -> ReloadOutcome {
        let shared = self.together.as_ref().and_then(Together::again);
        let loader = shared.as_ref().unwrap_or(&self.loader);
        let (read, files) = self.read(loader, force.file.files.clone()).await;
        let applied = match read {
            Ok(loaded) => self.take(Arc::new(loaded), force, occasion).await,
            Err(refusal) => Err(refusal),
        };
        self.told(applied, force, &files)
    }

    /// What came of a reading, told where nothing came of it; `files`: what was read, or would have been.
    pub(super) fn told(
        &self,
        applied: Result<Plan, Refusal>,
        force: &ConfigInForce,
        files: &Files,
    ) -> ReloadOutcome {
        match applied {
            Ok(plan) => {
                self.files.send_replace(force.watched(&force.file.files));
                Ok(Arc::new(plan))
            }
            Err(refusal) => {
                events::reload_refused(&refusal.first(), refusal.problems.len().saturating_sub(1));
                self.files.send_replace(force.watched(files));
                Err(refusal)
            }
        }
    }

    /// Puts `file` into force, with what is known of its names, and with what is left of the overlay laid over it.
    pub(super) async fn take(
        &self,
        file: Arc<Loaded>,
        force: &mut ConfigInForce,
        occasion: Occasion<'_>,
    ) -> Result<Plan, Refusal> {
        let file = match occasion {
            Occasion::Found => file,
            _ => self.with_found(&file).await,
        };
        let taken = self.take_with_found(file, force, occasion).await;
        self.follow_these(force);
        taken
    }

    async fn take_with_found(
        &self,
        file: Arc<Loaded>,
        force: &mut ConfigInForce,
        occasion: Occasion<'_>,
    ) -> Result<Plan, Refusal> {
        let is_on_trial = match occasion {
            Occasion::Reload | Occasion::Reread | Occasion::Found | Occasion::Revision { .. } => {
                force.trial.is_some()
            }
            // Also one without a time, until its file is replaced: what it ends is not lost if that fails, or a crash comes before.
            Occasion::Apply { .. } => true,
            Occasion::Rollback(_) => false,
        };
        let (reconciled, paused) = force.kept().read(&file, now_ms(), is_on_trial);
        let laid = lay(&file, &reconciled.entries);
        let (mut plan, reloaded) = self.apply(&laid, force.rows()).await?;
        plan.over = reconciled.ended.iter().map(PlannedEnd::from).collect();
        let config = &laid.loaded.config;
        // Who turns the volume down hears of that.
        (self.tune)(force.file.config.log_level.max(config.log_level), config.log_format);
        match occasion {
            Occasion::Reload => events::reloaded(&plan.lines()),
            Occasion::Reread if plan.verdict == PlanVerdict::Unchanged => {}
            Occasion::Reread => events::reloaded(&plan.lines()),
            Occasion::Apply { who, window } => events::applied(who, window, &plan.lines()),
            Occasion::Rollback(why) => events::rolled_back(why, &plan.lines()),
            Occasion::Found if plan.verdict == PlanVerdict::Unchanged => {}
            Occasion::Found => events::backends_found(&plan.lines()),
            Occasion::Revision { number, who, node } => {
                events::revision_in_force(number, who, node, &plan.lines());
            }
        }
        self.tell_swap(&reloaded);
        // Once is enough.
        let known = force.laid.loaded.all_warnings(SystemTime::now());
        let is_new = |warning: &&String| !known.contains(warning);
        plan.warnings.iter().filter(is_new).for_each(|warning| events::reload_warning(warning));
        (self.tune)(config.log_level, config.log_format);
        let newly = newly_aside(&force.laid, &laid, &reconciled.entries);
        newly.iter().for_each(|(entry, why)| events::overlay_aside(entry, why));
        (force.file, force.laid) = (file, laid);
        // A rollback brings back what only the text on trial has ended.
        force.kept().pause(&paused);
        self.settle(&reconciled.entries, force).await;
        Ok(plan)
    }

    pub(super) fn tell_swap(&self, reloaded: &Reloaded) {
        let Reloaded { number, told, longest_turn, .. } = reloaded;
        events::snapshot_swapped(*number, self.reloader.snapshots.alive(), *told, *longest_turn);
    }

    /// Tells those who look what is changed by hand now.
    pub(super) fn show(&self, force: &ConfigInForce) {
        self.by_hand.send_replace(Arc::new(force.by_hand()));
    }

    /// Reads a config. Beside it: what was read, or would have been, and those of the config in `force` that were not, each as
    /// it was before.
    pub(super) async fn read(&self, loader: &Loader, force: Files) -> (Result<Loaded, Refusal>, Files) {
        let read = Arc::clone(loader);
        // Files may be slow, and large.
        let known = force.clone();
        let read = background(move || {
            let before = force.again();
            (read(), before)
        });
        // Whoever watches the files has to go on, also where there was no thread to read them.
        let (read, before) = read.await.unwrap_or_else(|failed| (Err(failed.into()), known.again()));
        let mut files = match &read {
            Ok(loaded) => loaded.files.clone(),
            Err(error) => {
                error.downcast_ref::<Problems>().map(|problems| problems.files().clone()).unwrap_or_default()
            }
        };
        files.add_all(&before);
        let read = read.map_err(|error| Refusal { problems: Fault::unread(&error), is_conflict: false });
        (read, files)
    }

    /// Puts what is laid into force; `rows` are those of what is in force now.
    pub(super) async fn apply(&self, laid: &Laid, rows: &[Effective]) -> Result<(Plan, Reloaded), Refusal> {
        let loaded = &laid.loaded;
        let before = self.reloader.snapshots.current();
        let applied = self.reloader.apply(&loaded.config).await;
        let mut reloaded = applied.map_err(|refused| conflict(&refused, &loaded.effective))?;
        let (after, differing) = (self.reloader.snapshots.current(), difference(rows, &loaded.effective));
        let both = before.zip(after);
        let objects = both.map(|(before, after)| objects(&before, &after, &differing)).unwrap_or_default();
        let addresses = std::mem::take(&mut reloaded.addresses);
        let is_same = objects.is_empty() && addresses.is_empty();
        let verdict = if is_same { PlanVerdict::Unchanged } else { PlanVerdict::Taken };
        let warnings = loaded.all_warnings(SystemTime::now());
        let plan = Plan { verdict, objects, addresses, problems: Vec::new(), warnings, over: Vec::new() };
        Ok((plan, reloaded))
    }
}

/// Entries that have no effect with `after` and had one with `before`, with the reason.
fn newly_aside(before: &Laid, after: &Laid, entries: &[OverlayEntry]) -> Vec<(String, String)> {
    let is_new = |entry: &&OverlayEntry| !before.aside.contains_key(&entry.id);
    let told = |entry: &OverlayEntry| Some((entry.to_string(), after.aside.get(&entry.id)?.to_string()));
    entries.iter().filter(is_new).filter_map(told).collect()
}

/// Of a config that is right and can't be put into force now; `rows` are its own.
fn conflict(refused: &Refused, rows: &[Effective]) -> Refusal {
    Refusal { problems: vec![refused.fault(rows)], is_conflict: true }
}
