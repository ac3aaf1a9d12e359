//! Another config in place of the one in force, while it serves.
//!
//! validate → build → bind → swap → let go of the old: whatever fails before the swap changes nothing. Only one config is on
//! its way at a time. What does not differ stays the same object (`snapshot`), keeps its sockets (`addresses`) and its
//! probes (`probe`), so nobody who uses it notices.

pub mod addresses;
pub mod background;
pub mod begun;
pub mod blocking;
pub mod blocks;
pub mod bound;
pub mod by_hand;
pub mod difference;
pub mod digest;
pub mod fates;
pub mod fault;
mod found;
pub mod judge;
pub mod kept;
pub mod logs;
pub mod objects;
pub mod place;
pub mod plan;
pub mod planning;
pub mod running;
pub mod save;
pub mod together;
pub mod trial;

use std::collections::HashSet;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thiserror::Error;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::config::model::{AdminAccess, Config, ScaleConfig, StatsdConfig, TracingConfig, Webhook};
use crate::lasting::again;
use crate::message::ListenerId;
use crate::net::now;
use crate::probe::desk::ProbeDesk;
use crate::probe::{Probes, Resolver};
use crate::shutdown::Shutdown;
use crate::snapshot::{ConnectionLimits, FetchedKeys, Snapshots, WantedCertificates};
use crate::targets::{Backend, Departure};
use crate::telemetry::access_log::Rotation;
use crate::telemetry::cells::Cells;
use crate::telemetry::statsd::StatsdBoard;
use crate::telemetry::webhooks::WebhookBoard;
use crate::tick::Tick;
use crate::worker::{Before, Change, ChangeSender, SharedSocket, Turnover, WorkerNews};
use addresses::{Addresses, BoundAddress};
use background::in_background;
use bound::{Bound, ListeningPlace, Unbound};
use logs::{AccessLogs, OldLog};
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
    /// The access log can't be opened.
    #[error("{0}")]
    AccessLog(io::Error),
    /// There is no thread for it.
    #[error("can't begin: {0}")]
    System(io::Error),
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
    /// The how manieth config of this process is in force now, from 1.
    pub number: u64,
    /// Listeners that each worker was told of: new ones and those that are not what they were.
    pub told: usize,
    /// The most that going over has cost one worker's thread on a processor.
    pub longest_turn: Duration,
}

/// One worker, as far as it is told of other configs.
pub struct WorkerEnd {
    /// How it is told.
    pub changes: ChangeSender,
    /// What it counts in.
    pub cells: Arc<Cells>,
}

/// What is in force beside the snapshot.
pub struct Deployed {
    /// The config.
    pub config: Config,
    /// The addresses that are bound.
    pub places: Addresses,
    /// The access log.
    pub logs: AccessLogs,
    /// Those who serve it.
    pub workers: Vec<WorkerEnd>,
}

/// Puts one config in the place of another.
pub struct Reloader {
    /// One config after the other.
    pub snapshots: Snapshots,
    /// The connections of the process.
    pub limits: Arc<ConnectionLimits>,
    /// What each worker counts in.
    pub cells: Vec<Arc<Cells>>,
    /// How workers are told things; a turn that goes on keeps nobody from it.
    pub worker_ends: Vec<ChangeSender>,
    /// Who may come to the admin API over TCP; only reloads change it.
    pub admin: watch::Sender<Option<Arc<AdminAccess>>>,
    /// Who is told of events by HTTP; only reloads change it.
    pub webhooks: watch::Sender<Vec<Webhook>>,
    /// When targets are told to have too few backends, or more than they need; only reloads change it.
    pub scale: watch::Sender<ScaleConfig>,
    /// Where traces are sent; `None`: nowhere.
    pub tracing: watch::Sender<Option<TracingConfig>>,
    /// Who is sent numbers; only reloads change it.
    pub statsd: watch::Sender<Option<StatsdConfig>>,
    /// The keys of tokens that are fetched; only reloads change them.
    pub token_keys: watch::Sender<Arc<[FetchedKeys]>>,
    /// The certificates that are ordered; only reloads change them.
    pub certificates: watch::Sender<Arc<WantedCertificates>>,
    /// Who probes which backend, and what was found.
    pub probe_desk: Arc<ProbeDesk>,
    /// How it goes with them.
    pub webhook_board: WebhookBoard,
    /// How it goes with statsd.
    pub statsd_board: StatsdBoard,
    /// What `max_connections` is where nobody says.
    affordable: usize,
    shutdown: Shutdown,
    /// Who has it may put a config into force.
    turn: Arc<tokio::sync::Mutex<()>>,
    state: Mutex<State>,
}

struct State {
    deployed: Deployed,
    probes: Option<Probes<fn() -> Tick>>,
    /// The process ends: nothing is put into force any more.
    is_closed: bool,
}

impl Reloader {
    /// The way of what is in force to other configs.
    #[must_use]
    pub fn new(
        snapshots: Snapshots,
        limits: Arc<ConnectionLimits>,
        affordable: usize,
        shutdown: Shutdown,
        deployed: Deployed,
    ) -> Reloader {
        let cells = deployed.workers.iter().map(|worker| Arc::clone(&worker.cells)).collect();
        let worker_ends = deployed.workers.iter().map(|worker| worker.changes.clone()).collect();
        let admin = watch::Sender::new(deployed.config.admin.clone());
        let webhooks = watch::Sender::new(deployed.config.webhooks.clone());
        let scale = watch::Sender::new(deployed.config.scale.clone());
        let tracing = watch::Sender::new(deployed.config.tracing.clone());
        let statsd = watch::Sender::new(deployed.config.metrics.statsd.clone());
        let token_keys = snapshots.current().map(|current| current.token_keys.all()).unwrap_or_default();
        let certificates = WantedCertificates::of(snapshots.current().as_deref(), &deployed.config);
        let state = Mutex::new(State { deployed, probes: None, is_closed: false });
        Reloader {
            snapshots,
            limits,
            cells,
            worker_ends,
            admin,
            webhooks,
            scale,
            tracing,
            statsd,
            token_keys: watch::Sender::new(token_keys),
            certificates: watch::Sender::new(Arc::new(certificates)),
            probe_desk: Arc::default(),
            webhook_board: WebhookBoard::default(),
            statsd_board: StatsdBoard::default(),
            affordable,
            shutdown,
            turn: Arc::default(),
            state,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that is done under it can panic half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Traces by another config, and lets as many through at once as it allows: workers that sample by it have not heard of it yet.
    pub fn trace_by(&self, tracing: Option<TracingConfig>) {
        self.tracing.send_modify(|in_force| {
            *in_force = tracing;
            self.snapshots.observers().traces.refill(in_force.as_ref());
        });
    }

    /// Begins to probe the targets in force. Called inside of the control runtime.
    pub fn probe(&self) {
        let (departures, mut departed) = mpsc::unbounded_channel::<Vec<Arc<Backend>>>();
        // They end with the process, or as soon as another one probes in its place.
        let (ends, succeeded) = (self.shutdown.cut.child_token(), self.shutdown.succeeded.clone());
        let ending = ends.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = succeeded.cancelled() => ending.cancel(),
                () = ending.cancelled() => {}
            }
        });
        let mut probes: Probes<fn() -> Tick> =
            Probes::new(Resolver::System, now, departures, Arc::clone(&self.probe_desk), &ends);
        let workers: Vec<ChangeSender> =
            self.state().deployed.workers.iter().map(|worker| worker.changes.clone()).collect();
        // Ends with the probes.
        tokio::spawn(again("telling workers who leaves", async move || {
            while let Some(gone) = departed.recv().await {
                let gone: Arc<[_]> = gone.into();
                for worker in &workers {
                    // A worker that has ended ends the process.
                    let _ = worker.send(WorkerNews::Departing(Arc::clone(&gone)));
                }
            }
        }));
        if let Some(snapshot) = self.snapshots.current() {
            probes.follow(&snapshot.targets);
        }
        self.state().probes = Some(probes);
    }

    /// Listener names with the addresses that are bound, in config order.
    #[must_use]
    pub fn bound(&self) -> Vec<(String, Bound)> {
        let state = self.state();
        let places = state.deployed.places.all().iter();
        places.map(|place| (place.listener.clone(), place.address.clone())).collect()
    }

    /// Another descriptor of each socket that clients come to, worker by worker, with what it is.
    ///
    /// # Errors
    /// What the system reports; a worker has ended.
    pub async fn sockets(&self) -> io::Result<Vec<(ListeningPlace, SharedSocket)>> {
        let mut all = Vec::new();
        for worker in &self.worker_ends {
            let (tell, told) = oneshot::channel();
            let gone = || io::Error::other("a worker has ended");
            worker.send(WorkerNews::Sockets(tell)).map_err(|_| gone())?;
            for socket in told.await.map_err(|_| gone())?? {
                all.extend(self.state().deployed.places.place(socket.id).map(|place| (place, socket)));
            }
        }
        Ok(all)
    }

    /// The files of unix sockets that the process before has left are this one's own from now on.
    pub fn claim_files(&self) {
        self.state().deployed.places.claim_files();
    }

    /// Leaves the files of unix sockets where they are: another process has these.
    pub fn leave_files(&self) {
        self.state().deployed.places.leave_files();
    }

    /// How to reopen the file of the access log in force; `None`: there is none.
    #[must_use]
    pub fn log_rotation(&self) -> Option<Rotation> {
        self.state().deployed.logs.rotation()
    }

    /// Records that were handed over to an access log and could not be written.
    #[must_use]
    pub fn records_lost(&self) -> u64 {
        self.state().deployed.logs.lost()
    }

    /// Whether the process has been told to end.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.shutdown.leaving.is_cancelled() || self.shutdown.drain.is_cancelled()
    }

    /// Cancelled when the process drains.
    #[must_use]
    pub fn draining(&self) -> CancellationToken {
        self.shutdown.drain.clone()
    }

    /// How long it goes on serving after SIGTERM before it drains.
    #[must_use]
    pub fn shutdown_delay(&self) -> Duration {
        self.state().deployed.config.shutdown_delay
    }

    /// Ends the probes, removes the files of unix sockets and writes the rest of the access log, which may take a while.
    pub fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.probes = None;
        state.deployed.places = Addresses::default();
        state.deployed.logs.close();
    }

    /// Has the tunnels of backends that leave end within `window` from now, unless they end sooner anyway.
    pub fn hasten(&self, backends: Vec<Arc<Backend>>, window: Duration) {
        let departure = Departure { since: now(), window };
        let leaving: Arc<[_]> = backends.into_iter().filter(|backend| backend.hasten(departure)).collect();
        if leaving.is_empty() {
            return;
        }
        for worker in &self.state().deployed.workers {
            // A worker that has ended ends the process.
            let _ = worker.changes.send(WorkerNews::Departing(Arc::clone(&leaving)));
        }
    }

    /// Puts `config` into force. What is under way goes on under the config that it was begun with. Called inside of the
    /// control runtime; whoever no longer waits for the end does not keep it from coming.
    ///
    /// # Errors
    /// See [`Refused`]; nothing has changed.
    pub async fn apply(self: &Arc<Self>, config: &Config) -> Result<Reloaded, Refused> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let (this, config, control) = (Arc::clone(self), config.clone(), Handle::current());
        let (tell, told) = oneshot::channel();
        in_background(move || {
            let _turn = turn;
            let outcome = this.swap(&config, &control).map(|swapped| this.finish(swapped));
            // Whoever asked may have gone.
            let _ = tell.send(outcome);
        })
        .map_err(Refused::System)?;
        told.await.unwrap_or_else(|_| Err(Refused::System(io::Error::other("it panicked"))))
    }

    fn swap(&self, config: &Config, control: &Handle) -> Result<Swapped, Refused> {
        let mut state = self.state();
        let state = &mut *state;
        if state.is_closed || self.shutdown.drain.is_cancelled() {
            return Err(Refused::Ending);
        }
        let deployed = &mut state.deployed;
        if let Some(&key) = restarts(&deployed.config, config).first() {
            return Err(Refused::Restart { key });
        }
        let draft = self.snapshots.prepare(config);
        let mut rebinding = deployed.places.rebind(draft.snapshot(), deployed.workers.len())?;
        // As late as it can be: a file that was made would stay.
        let next_log = deployed.logs.prepare(config.access_log.as_ref()).map_err(Refused::AccessLog)?;
        rebinding.listen()?;
        // From here on nothing fails.
        let addresses = deployed.places.changes(&deployed.places.compare(draft.snapshot()));
        let sockets = std::mem::take(&mut rebinding.sockets);
        let before = self.snapshots.current();
        let (snapshot, gone) = self.snapshots.commit(draft);
        self.limits.set(config.max_connections.unwrap_or(self.affordable));
        let (listeners, listeners_gone) = snapshot.turnover(before.as_deref());
        let touched: HashSet<ListenerId> = listeners.iter().map(|listener| listener.id).collect();
        let (mut orders, closed) = deployed.places.settle(rebinding, &snapshot);
        orders.retain(|(_, listener)| touched.contains(listener));
        let orders = orders.into_iter().map(|(id, listener)| (id, Some(listener)));
        let orders = orders.chain(closed.iter().map(|place| (place.id, None))).collect();
        let turnover = Arc::new(Turnover { listeners, gone: listeners_gone, orders });
        let removed = gone.backends.len() + gone.stand_ins;
        let departing: Arc<[_]> = [gone.backends, gone.returned].concat().into();
        let log_differs = next_log.differs();
        let old_log = deployed.logs.commit(next_log);
        if deployed.config.tracing != config.tracing {
            self.trace_by(config.tracing.clone());
        }
        let mut answers = Vec::new();
        for (worker, sockets) in deployed.workers.iter().zip(sockets) {
            let (done, answer) = oneshot::channel();
            let change = Change {
                snapshot: Arc::clone(&snapshot),
                turnover: Arc::clone(&turnover),
                sockets,
                departing: Arc::clone(&departing),
                log: log_differs.then(|| deployed.logs.handle(&worker.cells)),
                patience: config.shutdown_timeout,
                done,
            };
            // A worker that has ended ends the process.
            if worker.changes.send(WorkerNews::Change(Box::new(change))).is_ok() {
                answers.push(answer);
            }
        }
        if deployed.config.admin != config.admin {
            self.admin.send_replace(config.admin.clone());
        }
        if deployed.config.webhooks != config.webhooks {
            self.webhooks.send_replace(config.webhooks.clone());
        }
        if deployed.config.scale != config.scale {
            self.scale.send_replace(config.scale.clone());
        }
        if deployed.config.metrics.statsd != config.metrics.statsd {
            self.statsd.send_replace(config.metrics.statsd.clone());
        }
        self.token_keys.send_replace(snapshot.token_keys.all());
        self.certificates.send_replace(Arc::new(WantedCertificates::of(Some(&snapshot), config)));
        deployed.config = config.clone();
        if let Some(probes) = &mut state.probes {
            let _inside = control.enter();
            probes.follow(&snapshot.targets);
        }
        let given = &snapshot.given;
        let added = given.listeners.len() + given.targets.len() + given.backends.len();
        let reloaded = Reloaded {
            added,
            removed,
            addresses,
            number: snapshot.number,
            told: turnover.listeners.len(),
            longest_turn: Duration::ZERO,
        };
        Ok(Swapped { reloaded, answers, old_log, closed })
    }

    /// Waits until all workers have gone over, and lets go of what was in force before.
    fn finish(&self, swapped: Swapped) -> Reloaded {
        let Swapped { mut reloaded, answers, old_log, closed } = swapped;
        let answers = answers.into_iter().filter_map(|answer| answer.blocking_recv().ok());
        let answers: Vec<Before> = answers.collect();
        for Before { log_rest, spent, .. } in answers {
            reloaded.longest_turn = reloaded.longest_turn.max(spent);
            if let (Some(log), Some(rest)) = (&old_log, log_rest) {
                log.take(rest);
            }
        }
        // The files of unix sockets go with this; who is queued behind one is accepted all the same.
        drop(closed);
        if let Some(log) = old_log {
            self.state().deployed.logs.end(log);
        }
        reloaded
    }
}

/// What is left to be done when another config is in force.
struct Swapped {
    reloaded: Reloaded,
    /// Each worker's.
    answers: Vec<oneshot::Receiver<Before>>,
    old_log: Option<OldLog>,
    /// Addresses that were given up.
    closed: Vec<BoundAddress>,
}

type Differs = fn(&Config, &Config) -> bool;

/// The keys that only a restart can change.
pub const NEED_RESTART: [(&str, Differs); 7] = [
    ("name", |before, after| before.instance.name != after.instance.name),
    ("state_dir", |before, after| before.instance.state_dir != after.instance.state_dir),
    ("admin.socket", |before, after| before.instance.socket != after.instance.socket),
    ("admin.listener", |before, after| listens(before) != listens(after)),
    ("metrics.listener", |before, after| before.metrics.binds != after.metrics.binds),
    ("workers", |before, after| before.workers != after.workers),
    ("cluster", |before, after| before.cluster != after.cluster),
];

/// Where the admin API listens.
fn listens(config: &Config) -> &[SocketAddr] {
    config.admin.as_deref().map_or(&[], |admin| &admin.binds)
}

/// Those of them that differ.
fn restarts(before: &Config, after: &Config) -> Vec<&'static str> {
    NEED_RESTART.iter().filter(|(_, differs)| differs(before, after)).map(|(key, _)| *key).collect()
}
