//! The config of a process that runs: read again when somebody asks, and put into force or refused as a whole.
//!
//! Invariants of a turn:
//!
//! 1. At most one config is read at a time.
//! 2. Who asks gets the outcome of a reading that began after it asked. All who asked before it began share it, so a thousand
//!    who ask at once cost one or two readings.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use tokio::sync::{Mutex, watch};

use super::background::background;
use super::difference::difference;
use super::fault::Fault;
use super::objects::objects;
use super::plan::{Plan, PlanVerdict};
use super::{Refused, Reloaded, Reloader};
use crate::config::model::{EventFormat, LogLevel, WatchMode};
use crate::config::{Effective, Files, Loaded, Problems};
use crate::events;

/// Reads the config again from where the first one came.
pub type Loader = Arc<dyn Fn() -> anyhow::Result<Loaded> + Send + Sync>;

/// Has events logged from this level on, in this form.
pub type Tune = Arc<dyn Fn(LogLevel, EventFormat) + Send + Sync>;

/// Why the config that was read is not in force. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// All that is wrong, never empty.
    pub problems: Vec<Fault>,
    /// The config is right, and can't be put into force in this process at this moment.
    pub is_conflict: bool,
}

/// What came of it: what has changed, or why nothing has.
pub type ReloadOutcome = Result<Arc<Plan>, Refusal>;

/// The config in force, and the way to another one.
pub struct RunningConfig {
    /// By which configs are put into force.
    pub reloader: Arc<Reloader>,
    loader: Loader,
    tune: Tune,
    asked: AtomicU64,
    last: Mutex<LastTurn>,
    /// What to watch: the files of the config in force, and after a refused reading those that it named too, each as it was
    /// before that reading.
    files: watch::Sender<Files>,
}

struct LastTurn {
    /// How many had asked when it began.
    covers: u64,
    outcome: ReloadOutcome,
    force: InForce,
}

/// What the config in force was made of.
struct InForce {
    rows: Vec<Effective>,
    files: Files,
    watch: WatchMode,
    /// Events are logged from this one on.
    level: LogLevel,
    /// What `check` warns of.
    warnings: Vec<String>,
}

impl InForce {
    /// Those of `files` that are to be watched.
    fn watched(&self, files: &Files) -> Files {
        match self.watch {
            WatchMode::On => files.clone(),
            WatchMode::Files => files.named(),
            WatchMode::Off => Files::default(),
        }
    }
}

impl RunningConfig {
    /// Of a config that is in force.
    #[must_use]
    pub fn new(reloader: Arc<Reloader>, loader: Loader, tune: Tune, loaded: &Loaded) -> RunningConfig {
        let (rows, files, watch) = (loaded.effective.clone(), loaded.files.clone(), loaded.config.watch);
        let warnings = loaded.all_warnings(SystemTime::now());
        let force = InForce { rows, files, watch, level: loaded.config.log_level, warnings };
        let files = watch::Sender::new(force.watched(&force.files));
        let last = LastTurn { covers: 0, outcome: Ok(Arc::default()), force };
        RunningConfig { reloader, loader, tune, asked: AtomicU64::new(0), last: Mutex::new(last), files }
    }

    /// The files to watch, again after each reading.
    #[must_use]
    pub fn files(&self) -> watch::Receiver<Files> {
        self.files.subscribe()
    }

    /// Reads the config again, puts it into force, and logs what came of it. Called inside of the control runtime.
    ///
    /// # Errors
    /// It is refused; nothing has changed.
    pub async fn reload(&self) -> ReloadOutcome {
        let mine = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let mut last = self.last.lock().await;
        if last.covers >= mine {
            return last.outcome.clone();
        }
        last.covers = self.asked.load(Ordering::Relaxed);
        let outcome = self.turn(&mut last.force).await;
        last.outcome.clone_from(&outcome);
        outcome
    }

    /// What a reload would do now, if it read the same as `read`; without one it reads the config again. Nothing changes. Called
    /// inside of the control runtime.
    pub async fn plan(&self, read: Option<Loader>) -> Plan {
        let last = self.last.lock().await;
        let read = read.as_ref().unwrap_or(&self.loader);
        match self.read(read, Files::default()).await.0 {
            Ok(loaded) => self.reloader.plan(&loaded, &last.force.rows).await,
            Err(refusal) => Plan::refused(refusal.problems),
        }
    }

    async fn turn(&self, force: &mut InForce) -> ReloadOutcome {
        let (read, files) = self.read(&self.loader, force.files.clone()).await;
        let applied = match read {
            Ok(loaded) => self.apply(loaded, &force.rows).await,
            Err(refusal) => Err(refusal),
        };
        match applied {
            Ok((loaded, plan, reloaded)) => {
                let (level, format) = (loaded.config.log_level, loaded.config.log_format);
                // Who turns the volume down hears of that.
                (self.tune)(force.level.max(level), format);
                let Reloaded { number, told, longest_turn, .. } = reloaded;
                events::reloaded(&plan.lines());
                events::snapshot_swapped(number, self.reloader.snapshots.alive(), told, longest_turn);
                // Once is enough.
                let is_new = |warning: &&String| !force.warnings.contains(warning);
                plan.warnings.iter().filter(is_new).for_each(|warning| events::reload_warning(warning));
                let watch = loaded.config.watch;
                (self.tune)(level, format);
                let warnings = plan.warnings.clone();
                *force = InForce { rows: loaded.effective, files: loaded.files, watch, level, warnings };
                self.files.send_replace(force.watched(&force.files));
                Ok(Arc::new(plan))
            }
            Err(refusal) => {
                events::reload_refused(&refusal.first(), refusal.problems.len().saturating_sub(1));
                self.files.send_replace(force.watched(&files));
                Err(refusal)
            }
        }
    }

    /// Reads a config. Beside it: what was read, or would have been, and those of the config in `force` that were not, each as
    /// it was before.
    async fn read(&self, loader: &Loader, force: Files) -> (Result<Loaded, Refusal>, Files) {
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

    async fn apply(&self, loaded: Loaded, rows: &[Effective]) -> Result<(Loaded, Plan, Reloaded), Refusal> {
        let before = self.reloader.snapshots.current();
        let applied = self.reloader.apply(&loaded.config).await;
        let mut reloaded = applied.map_err(|refused| Refusal::conflict(&refused, &loaded.effective))?;
        let (after, differing) = (self.reloader.snapshots.current(), difference(rows, &loaded.effective));
        let both = before.zip(after);
        let objects = both.map(|(before, after)| objects(&before, &after, &differing)).unwrap_or_default();
        let addresses = std::mem::take(&mut reloaded.addresses);
        let is_same = objects.is_empty() && addresses.is_empty();
        let verdict = if is_same { PlanVerdict::Unchanged } else { PlanVerdict::Taken };
        let warnings = loaded.all_warnings(SystemTime::now());
        let plan = Plan { verdict, objects, addresses, problems: Vec::new(), warnings };
        Ok((loaded, plan, reloaded))
    }
}

impl Refusal {
    fn conflict(refused: &Refused, rows: &[Effective]) -> Refusal {
        Refusal { problems: vec![refused.fault(rows)], is_conflict: true }
    }

    /// Of a reload that did not come to its end, which is a bug.
    #[must_use]
    pub fn failed(error: &dyn std::error::Error) -> Refusal {
        let text = format!("the reload failed: {error}");
        Refusal {
            problems: vec![Fault { message: text.clone(), text, ..Fault::default() }],
            is_conflict: true,
        }
    }

    /// The first problem in one line, with its place in front.
    #[must_use]
    pub fn first(&self) -> String {
        let Some(first) = self.problems.first() else { return String::new() };
        if self.is_conflict {
            return first.text.lines().map(str::trim).collect::<Vec<_>>().join("; ");
        }
        first.first_line().to_owned()
    }
}
