//! Another config in place of the one in force, while it serves.
//!
//! validate → build → bind → swap → let go of the old: whatever fails before the swap changes nothing. Only one config is on
//! its way at a time. What does not differ stays the same object (`snapshot`), keeps its sockets (`addresses`) and its
//! probes (`probe`), so nobody who uses it notices.

pub mod addresses;
pub mod bound;
pub mod difference;
pub mod digest;
pub mod fault;
pub mod objects;
pub mod place;
pub mod plan;
pub mod planning;
pub mod running;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thiserror::Error;
use tokio::sync::oneshot;

use crate::config::model::Config;
use crate::net::now;
use crate::probe::{Probes, Resolver};
use crate::shutdown::Shutdown;
use crate::snapshot::{ConnectionLimits, Snapshot, Snapshots};
use crate::tick::Tick;
use crate::worker::{Change, ChangeSender};
use addresses::{Addresses, BoundAddress};
use bound::{Bound, Unbound};
use plan::PlannedAddress;

/// Why another config is not taken. Nothing has changed.
#[derive(Debug, Error)]
pub enum Refused {
    /// It changes what can't change in a process that runs.
    #[error("`{key}` differs from what is in force; this needs a restart")]
    Restart {
        /// The key.
        key: &'static str,
    },
    /// An address can't be bound.
    #[error(transparent)]
    Bind(#[from] Unbound),
    /// The process is about to end.
    #[error("this process is about to end")]
    Ending,
}

/// What another config came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Objects that are there for the first time: listeners, targets, backends.
    pub added: usize,
    /// Backends that are gone.
    pub removed: usize,
    /// What has become of addresses; a port that the system chose is still 0.
    pub addresses: Vec<PlannedAddress>,
}

/// Puts one config in the place of another.
pub struct Reloader {
    /// One config after the other.
    pub snapshots: Snapshots,
    /// The connections of the process.
    pub limits: Arc<ConnectionLimits>,
    /// What `max_connections` is where nobody says.
    affordable: usize,
    shutdown: Shutdown,
    /// Who has it may put a config into force.
    turn: tokio::sync::Mutex<()>,
    state: Mutex<State>,
}

/// What is in force beside the snapshot.
struct State {
    config: Config,
    places: Addresses,
    workers: Vec<ChangeSender>,
    probes: Option<Probes<fn() -> Tick>>,
}

impl Reloader {
    /// The way of `config`, which is in force, to others. `workers` have it and listen on `places`.
    #[must_use]
    pub fn new(
        snapshots: Snapshots,
        limits: Arc<ConnectionLimits>,
        affordable: usize,
        shutdown: Shutdown,
        (config, places, workers): (Config, Addresses, Vec<ChangeSender>),
    ) -> Reloader {
        let state = Mutex::new(State { config, places, workers, probes: None });
        Reloader { snapshots, limits, affordable, shutdown, turn: tokio::sync::Mutex::default(), state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that is done under it can panic half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to probe the targets in force. Called inside of the control runtime.
    pub fn probe(&self) {
        let mut probes: Probes<fn() -> Tick> = Probes::new(Resolver::System, now, &self.shutdown.cut);
        if let Some(snapshot) = self.snapshots.current() {
            probes.follow(&snapshot.targets);
        }
        self.state().probes = Some(probes);
    }

    /// Listener names with the addresses that are bound, in config order.
    #[must_use]
    pub fn bound(&self) -> Vec<(String, Bound)> {
        let state = self.state();
        state.places.all().iter().map(|place| (place.listener.clone(), place.address.clone())).collect()
    }

    /// Ends the probes and removes the files of unix sockets.
    pub fn close(&self) {
        let mut state = self.state();
        state.probes = None;
        state.places = Addresses::default();
    }

    /// Puts `config` into force. What is under way goes on under the config that it was begun with. Called inside of the
    /// control runtime.
    ///
    /// # Errors
    /// See [`Refused`]; nothing has changed.
    pub async fn apply(&self, config: &Config) -> Result<Reloaded, Refused> {
        let _turn = self.turn.lock().await;
        if self.shutdown.drain.is_cancelled() {
            return Err(Refused::Ending);
        }
        let (snapshot, reloaded, answers, closed) = self.swap(config)?;
        for answer in answers {
            let _: Option<Arc<Snapshot>> = answer.await.ok();
        }
        if let Some(probes) = &mut self.state().probes {
            probes.follow(&snapshot.targets);
        }
        // The files of unix sockets go with this; who is queued behind one is accepted all the same.
        drop(closed);
        Ok(reloaded)
    }

    fn swap(&self, config: &Config) -> Result<Swapped, Refused> {
        let mut state = self.state();
        if let Some(&key) = restarts(&state.config, config).first() {
            return Err(Refused::Restart { key });
        }
        let draft = self.snapshots.prepare(config);
        let mut rebinding =
            state.places.rebind(draft.snapshot(), state.workers.len()).map_err(Refused::Bind)?;
        // From here on nothing fails.
        let addresses = state.places.changes(&state.places.compare(draft.snapshot()));
        let sockets = std::mem::take(&mut rebinding.sockets);
        let (snapshot, gone) = self.snapshots.commit(draft);
        self.limits.set(config.max_connections.unwrap_or(self.affordable));
        let (orders, closed) = state.places.settle(rebinding, &snapshot);
        let removed = gone.backends.len();
        let departing: Arc<[_]> = gone.backends.into();
        let mut answers = Vec::new();
        for (worker, sockets) in state.workers.iter().zip(sockets) {
            let (done, answer) = oneshot::channel();
            let (snapshot, places) = (Arc::clone(&snapshot), orders.clone());
            let (departing, patience) = (Arc::clone(&departing), config.shutdown_timeout);
            let change = Change { snapshot, sockets, places, departing, patience, done };
            // A worker that has ended ends the process.
            if worker.send(change).is_ok() {
                answers.push(answer);
            }
        }
        state.config = config.clone();
        let given = &snapshot.given;
        let added = given.listeners.len() + given.targets.len() + given.backends.len();
        Ok((snapshot, Reloaded { added, removed, addresses }, answers, closed))
    }
}

/// The config in force, what it came to, who tells the one before, and the addresses that were given up.
type Swapped = (Arc<Snapshot>, Reloaded, Vec<oneshot::Receiver<Arc<Snapshot>>>, Vec<BoundAddress>);

/// Keys that differ and can't without a restart.
fn restarts(before: &Config, after: &Config) -> Vec<&'static str> {
    let stays = [
        ("name", before.instance.name == after.instance.name),
        ("state_dir", before.instance.state_dir == after.instance.state_dir),
        ("admin.socket", before.instance.socket == after.instance.socket),
        ("workers", before.workers == after.workers),
        ("access_log", before.access_log == after.access_log),
        ("logging", before.log_level == after.log_level),
        ("log_format", before.log_format == after.log_format),
        ("shutdown_delay", before.shutdown_delay == after.shutdown_delay),
    ];
    stays.into_iter().filter(|(_, stays)| !stays).map(|(key, _)| key).collect()
}
