//! The config of a process that runs: read again when somebody asks, and put into force or refused as a whole.
//!
//! Invariants of a turn:
//!
//! 1. At most one config is read at a time.
//! 2. Who asks gets the outcome of a reading that began after it asked. All who asked before it began share it, so a thousand
//!    who ask at once cost one or two readings.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Mutex, watch};

use super::Reloader;
use super::difference::{Differing, difference};
use crate::config::model::WatchMode;
use crate::config::{Effective, Files, Loaded, Problems};
use crate::events;

/// Reads the config again from where the first one came.
pub type Loader = Arc<dyn Fn() -> anyhow::Result<Loaded> + Send + Sync>;

/// Why the config that was read is not in force. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The first problem in one line, with its place in front.
    pub first: String,
    /// How many more there are.
    pub more: usize,
    /// All of them, as `check` prints them.
    pub whole: String,
}

/// What came of it: the keys that differ, or why nothing has changed.
pub type Outcome = Result<Arc<[Differing]>, Refusal>;

/// The config in force, and the way to another one.
pub struct RunningConfig {
    reloader: Arc<Reloader>,
    loader: Loader,
    asked: AtomicU64,
    last: Mutex<LastTurn>,
    /// What to watch: the files of the config in force, and after a refused reading those that it named too, each as it was
    /// before that reading.
    files: watch::Sender<Files>,
}

struct LastTurn {
    /// How many had asked when it began.
    covers: u64,
    outcome: Outcome,
    force: InForce,
}

/// What the config in force was made of.
struct InForce {
    rows: Vec<Effective>,
    files: Files,
    watch: WatchMode,
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
    pub fn new(reloader: Arc<Reloader>, loader: Loader, loaded: &Loaded) -> RunningConfig {
        let (rows, files, watch) = (loaded.effective.clone(), loaded.files.clone(), loaded.config.watch);
        let force = InForce { rows, files, watch };
        let files = watch::Sender::new(force.watched(&force.files));
        let last = LastTurn { covers: 0, outcome: Ok(Arc::default()), force };
        RunningConfig { reloader, loader, asked: AtomicU64::new(0), last: Mutex::new(last), files }
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
    pub async fn reload(&self) -> Outcome {
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

    async fn turn(&self, force: &mut InForce) -> Outcome {
        let (read, files) = self.read(force.files.clone()).await;
        let applied = match read {
            Ok(loaded) => self.apply(loaded).await,
            Err(refusal) => Err(refusal),
        };
        match applied {
            Ok(loaded) => {
                let differing: Arc<[Differing]> = difference(&force.rows, &loaded.effective).into();
                events::reloaded(&differing.iter().map(ToString::to_string).collect::<Vec<_>>());
                loaded.warnings.iter().for_each(|warning| events::reload_warning(warning));
                let watch = loaded.config.watch;
                *force = InForce { rows: loaded.effective, files: loaded.files, watch };
                self.files.send_replace(force.watched(&force.files));
                Ok(differing)
            }
            Err(refusal) => {
                events::reload_refused(&refusal.first, refusal.more);
                self.files.send_replace(force.watched(&files));
                Err(refusal)
            }
        }
    }

    /// Reads the config. Beside it: what was read, or would have been, and those of the config in `force` that were not, each as
    /// it was before.
    async fn read(&self, force: Files) -> (Result<Loaded, Refusal>, Files) {
        let read = Arc::clone(&self.loader);
        // Files may be slow.
        let read = tokio::task::spawn_blocking(move || {
            let before = force.again();
            (read(), before)
        });
        let (read, before) = read.await.unwrap_or_else(|failed| (Err(failed.into()), Files::default()));
        let mut files = match &read {
            Ok(loaded) => loaded.files.clone(),
            Err(error) => {
                error.downcast_ref::<Problems>().map(|problems| problems.files().clone()).unwrap_or_default()
            }
        };
        files.add_all(&before);
        (read.map_err(|error| Refusal::unread(&error)), files)
    }

    async fn apply(&self, loaded: Loaded) -> Result<Loaded, Refusal> {
        match self.reloader.apply(&loaded.config).await {
            Ok(_) => Ok(loaded),
            Err(refused) => {
                let text = refused.to_string();
                let place =
                    refused.place(&loaded.effective).map_or(String::new(), |place| format!("{place}: "));
                let line = text.lines().map(str::trim).collect::<Vec<_>>().join("; ");
                Err(Refusal { first: format!("{place}{line}"), more: 0, whole: format!("{place}{text}") })
            }
        }
    }
}

impl Refusal {
    /// Of a config that is wrong, or can't be read.
    fn unread(error: &anyhow::Error) -> Refusal {
        let whole = format!("{error:#}");
        let Some(problems) = error.downcast_ref::<Problems>() else {
            return Refusal { first: whole.clone(), more: 0, whole };
        };
        let first = problems.list().first().map(ToString::to_string).unwrap_or_default();
        let first = first.lines().next().unwrap_or_default().to_owned();
        Refusal { first, more: problems.list().len().saturating_sub(1), whole }
    }
}
