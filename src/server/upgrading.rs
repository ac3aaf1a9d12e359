//! Upgrades: everything that this process has is given to another one, and then it drains.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::DeserializeOwned;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, sleep_until};

use super::elders::SharedCounts;
use super::stored;
use crate::admin::upgrading::desk::{Draining, UpgradeAsk, UpgradeDesk, UpgradeProblem, UpgradeReport};
use crate::admin::{AdminDoor, AdminListener};
use crate::cluster::heir::NodeLegacy;
use crate::cluster::node::ClusterNode;
use crate::config::model::Bind;
use crate::discover::ToldNames;
use crate::events;
use crate::net::{now, supervisor};
use crate::proxy::udp::relay::LeftFlow;
use crate::reload::bound::{Bound, ListeningPlace};
use crate::reload::running::RunningConfig;
use crate::shutdown::Shutdown;
use crate::snapshot::{Snapshots, ToldRates};
use crate::store::local::LockedFolder;
use crate::targets::{ProbeWords, StandingWords};
use crate::upgrade::binary::TrustedBinary;
use crate::upgrade::candidate::{Leash, Start, TIME, wait_for_cut};
use crate::upgrade::steps::pass;
use crate::upgrade::words::{SocketRow, SocketUse, ToldAddress};
use crate::upgrade::{Candidate, Legacy, LegacySocket, UpgradeFault};

/// Processes that may drain at once, each for an upgrade of its own.
const ELDERS: usize = 3;
/// The part of the state that is the process's name.
pub const NAME: &str = "name";
/// What probes of backends amount to.
const HEALTH: &str = "health";
/// What traffic has found out of backends.
const STANDINGS: &str = "standings";
/// What is missing in buckets of rate limits.
const RATES: &str = "rates";
/// What it is in its cluster.
const NODE: &str = "node";
/// Keys that tokens are verified with.
const KEYS: &str = "token_keys";
/// Addresses of names.
const NAMES: &str = "names";
/// Keys of session tickets.
const TICKETS: &str = "tickets";
/// How long it may take until nobody keeps anything in the folder of state any more, and how often that is looked at.
const LET_GO: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(5);
/// How long the answer to who has asked may take.
const LAST_ANSWER: Duration = Duration::from_millis(300);

/// What only one process may have at a time, and what is told of it.
pub struct Possessions {
    /// The process's name.
    pub name: String,
    /// The admin socket.
    pub admin: Option<Arc<AdminListener>>,
    /// The admin API over TCP.
    pub door: Option<Arc<AdminDoor>>,
    /// Metrics over TCP.
    pub metrics: Option<Arc<AdminDoor>>,
    /// The folder of state, as long as somebody keeps something there: whoever drains must not keep a successor from it.
    pub folder: Weak<LockedFolder>,
    /// What it is in its cluster; `None`: it stands alone.
    pub node: Option<Arc<ClusterNode>>,
}

/// By which this process is upgraded.
pub struct Upgrades {
    running: Arc<RunningConfig>,
    shutdown: Shutdown,
    possessions: Possessions,
    start: Start,
    /// The how manieth of its row this process is.
    generation: u32,
    /// Why there can be no upgrade; `None`: there can.
    unable: Option<String>,
    counts: Arc<SharedCounts>,
    /// Who has it upgrades.
    turn: tokio::sync::Mutex<()>,
}

impl Upgrades {
    /// Of a process that is the `generation`th of its row, where `counts` are given on. `unable`: why there can be no upgrade, if so.
    #[must_use]
    pub fn new(
        running: Arc<RunningConfig>,
        shutdown: Shutdown,
        possessions: Possessions,
        generation: u32,
        counts: Arc<SharedCounts>,
        unable: Option<String>,
    ) -> Upgrades {
        let mut typed = std::env::args_os();
        let name = typed.next().unwrap_or_else(|| "evenkeel".into());
        let start = Start { name, arguments: typed.collect() };
        let turn = tokio::sync::Mutex::default();
        Upgrades { running, shutdown, possessions, start, generation, unable, counts, turn }
    }

    async fn carry_out(&self, ask: UpgradeAsk) -> Result<UpgradeReport, UpgradeFault> {
        let Ok(_turn) = self.turn.try_lock() else { return Err(UpgradeFault::UnderWay) };
        self.judge_end()?;
        let outcome = self.carry_out_in_turn(ask).await;
        if let Some(store) = self.counts.store().filter(|_| !self.shutdown.succeeded.is_cancelled()) {
            store.unwatch_purges();
        }
        outcome
    }

    async fn carry_out_in_turn(&self, ask: UpgradeAsk) -> Result<UpgradeReport, UpgradeFault> {
        if let Some(why) = self.unable() {
            return Err(UpgradeFault::Unable(why));
        }
        self.judge_crowd(ask.force).await?;
        let binary = TrustedBinary::open(&ask.binary.unwrap_or_else(own_binary))?;
        // Nothing changes from here on: what is given is what there is.
        let pause = self.running.pause().await;
        if self.running.is_on_trial() {
            let why = "a config is on trial: `evenkeel confirm` it, or `evenkeel rollback`, and then upgrade";
            return Err(UpgradeFault::Unable(why.to_owned()));
        }
        events::upgrade_begun(&binary.path);
        let start = self.start.clone();
        let candidate = in_background(move || Candidate::start(&binary, &start)).await?;
        pass("old:started");
        let (leash, due, generation) = (candidate.leash(), candidate.due(), self.generation);
        let greeted = in_background(move || {
            let mut candidate = candidate;
            candidate.greet(generation).map(|()| candidate)
        });
        let candidate = self.unless_it_ends(greeted, &leash, due).await?;
        pass("old:greeted");
        let legacy = self.legacy().await?;
        let served = in_background(move || {
            let mut candidate = candidate;
            candidate.give(&legacy).map(|()| candidate)
        });
        let mut candidate = self.unless_it_ends(served, &leash, due).await?;
        pass("old:ready");
        self.judge_end()?;
        if let Some(gone) = candidate.is_gone() {
            return Err(gone);
        }
        // From here on there is no way back, and a signal that comes finds the other one in the place of this one.
        let first = || {
            self.running.reloader.leave_files();
            if let Some(node) = self.possessions.node.as_ref().filter(|_| candidate.is_node()) {
                node.leave_to_heir();
            }
        };
        if !self.shutdown.succeed(first) {
            return Err(UpgradeFault::Ending);
        }
        // Whoever waits for its turn can keep nothing any more: what it did the other one would not know.
        self.running.close_store_in(&pause).await;
        let report = self.be_over(&candidate, ask.force);
        drop(pause);
        pass("old:over");
        self.let_go(candidate).await;
        Ok(report)
    }

    /// The process is told to end.
    fn judge_end(&self) -> Result<(), UpgradeFault> {
        let ends = self.shutdown.leaving.is_cancelled() || self.shutdown.drain.is_cancelled();
        if ends { Err(UpgradeFault::Ending) } else { Ok(()) }
    }

    /// Waits for `work`, unless this process is told to end or the other one takes too long: then that one is ended at once, before anything is given up
    /// of what both have.
    async fn unless_it_ends(
        &self,
        work: impl Future<Output = Result<Candidate, UpgradeFault>>,
        leash: &Leash,
        due: Instant,
    ) -> Result<Candidate, UpgradeFault> {
        let mut work = pin!(work);
        let fault = tokio::select! {
            // What has come in time counts.
            biased;
            outcome = &mut work => return outcome,
            () = self.shutdown.leaving.cancelled() => UpgradeFault::Ending,
            () = self.shutdown.drain.cancelled() => UpgradeFault::Ending,
            () = sleep_until(due) => UpgradeFault::Late(TIME.as_secs()),
        };
        leash.cut();
        // It is ended by whoever waited for it.
        drop(work.await);
        Err(fault)
    }

    /// Why there can be no upgrade.
    fn unable(&self) -> Option<String> {
        // A container ends with it, and with the container whoever has taken over.
        let is_first = std::process::id() == 1;
        let of_container = || {
            "this is the first process of a container, which ends with it: start a container with the new image, \
             and end this one when that is ready (`shutdown_delay`, `/readyz`)"
        };
        let of_unit = || "systemd would end the new process together with this one: the unit needs `Type=notify` and `NotifyAccess=all`";
        let unit = supervisor::is_unit_that_is_not_told().then(of_unit);
        let why = is_first.then(of_container).or(unit).map(str::to_owned);
        self.unable.clone().or(why)
    }

    /// Whether no more than so many drain.
    async fn judge_crowd(&self, force: bool) -> Result<(), UpgradeFault> {
        Arc::clone(&self.counts).listen().await;
        let drains = self.counts.draining();
        if drains.len() < ELDERS || force {
            return Ok(());
        }
        Err(UpgradeFault::Crowd(drains.into_iter().map(|one| (one.process, one.seconds)).collect()))
    }

    /// All that is given.
    async fn legacy(&self) -> io::Result<Legacy> {
        let Possessions { admin, door, metrics, folder, .. } = &self.possessions;
        let mut sockets = Vec::new();
        for (place, socket) in self.running.reloader.sockets().await? {
            let ListeningPlace { listener, bind, address } = place;
            let (written, address) = (written(bind), told(address));
            let lent = socket.is_lent;
            let row = SocketRow { used: SocketUse::Listener, listener, written, address, lent };
            let flows = socket.flows.into_iter().map(LeftFlow::into_parts).collect();
            sockets.push(LegacySocket { row, descriptor: socket.descriptor, flows });
        }
        if let Some(admin) = admin
            && let Some(socket) = admin.copy()?
        {
            let address = ToldAddress::Unix(admin.path().to_owned());
            sockets.push(own_socket(SocketUse::AdminSocket, address.clone(), address, socket.into()));
        }
        for (used, door) in [(SocketUse::Admin, door), (SocketUse::Metrics, metrics)] {
            for (written, address, socket) in
                door.as_ref().map(|door| door.copies()).transpose()?.unwrap_or_default()
            {
                let (written, address) = (ToldAddress::Tcp(written), ToldAddress::Tcp(address));
                sockets.push(own_socket(used, written, address, socket.into()));
            }
        }
        let folder = match folder.upgrade() {
            Some(folder) => Some((folder.path().to_owned(), folder.copy_of_lock()?)),
            None => None,
        };
        let state = self.state()?;
        let store = self.counts.store().cloned();
        let stored = spawn_blocking(move || store.map(|store| stored::write_down(&store)));
        // Without it everything is asked for anew.
        let stored = stored.await.ok().flatten().and_then(Result::ok).flatten();
        Ok(Legacy { sockets, folder, elders: self.counts.elders()?, state, stored })
    }

    /// What is known.
    fn state(&self) -> io::Result<BTreeMap<String, String>> {
        let snapshots = &self.running.reloader.snapshots;
        let (mut probed, mut standings, now) = (ProbeWords::default(), StandingWords::default(), now());
        let snapshot = snapshots.current();
        for target in snapshot.iter().flat_map(|snapshot| &snapshot.targets) {
            target.tell_probes(&mut probed);
            target.tell_standings(&mut standings, now);
        }
        let keys = snapshot.as_ref().map(|snapshot| snapshot.token_keys.tell(now)).unwrap_or_default();
        let names = ToldNames::of(self.running.discovery().findings());
        let rates = snapshot.as_ref().map(|snapshot| snapshot.rates.tell(now)).unwrap_or_default();
        Ok(BTreeMap::from([
            (NAME.to_owned(), self.possessions.name.clone()),
            (HEALTH.to_owned(), serde_json::to_string(&probed)?),
            (STANDINGS.to_owned(), serde_json::to_string(&standings)?),
            (RATES.to_owned(), serde_json::to_string(&rates)?),
            (
                NODE.to_owned(),
                serde_json::to_string(&self.possessions.node.as_ref().map(|node| node.legacy()))?,
            ),
            (KEYS.to_owned(), serde_json::to_string(&keys)?),
            (NAMES.to_owned(), serde_json::to_string(&names)?),
            (TICKETS.to_owned(), BASE64.encode(snapshots.tickets().export())),
        ]))
    }

    /// The other one serves: this one drains.
    fn be_over(&self, candidate: &Candidate, force: bool) -> UpgradeReport {
        let report = UpgradeReport {
            version: candidate.version().to_owned(),
            process: candidate.process(),
            generation: self.generation.saturating_add(1),
            draining: {
                let mut all = self.counts.draining();
                if force && all.len() >= ELDERS {
                    self.counts.cut_oldest();
                }
                all.push(Draining { process: std::process::id(), seconds: 0 });
                all
            },
        };
        events::upgraded(&report.version, report.process);
        if let Err(error) = supervisor::tell_surely(&format!("MAINPID={}\n", report.process)) {
            events::supervisor_not_told(&error);
        }
        if let Some(admin) = &self.possessions.admin {
            admin.leave();
        }
        self.shutdown.drain.cancel();
        report
    }

    /// Tells the other one that it is alone, as soon as nobody here keeps anything any more in the folder that both have.
    async fn let_go(&self, candidate: Candidate) {
        let due = Instant::now() + LET_GO;
        while self.possessions.folder.strong_count() > 0 && Instant::now() < due {
            sleep(LOOK).await;
        }
        let counts = Arc::clone(&self.counts);
        let over = spawn_blocking(move || counts.give_all(candidate));
        // It does not panic; if it did the other one would find this one gone, and go on.
        let Ok(socket) = over.await else { return };
        tokio::spawn(Arc::clone(&self.counts).keep_telling_purges());
        let cut = self.shutdown.cut.clone();
        let waits = thread::Builder::new().name("evenkeel-heir".to_owned());
        // Without it nobody can end this process sooner than its own time.
        let _ = waits.spawn(move || {
            if wait_for_cut(&socket) {
                events::cut_for_upgrade();
                cut.cancel();
            }
        });
    }
}

impl UpgradeDesk for Upgrades {
    fn upgrade(
        &self,
        ask: UpgradeAsk,
    ) -> Pin<Box<dyn Future<Output = Result<UpgradeReport, UpgradeProblem>> + Send + '_>> {
        Box::pin(async move {
            // However little there is to drain, the other process is told or ended, and whoever has asked has its answer.
            let last = self.shutdown.last.token();
            let outcome = self.carry_out(ask).await;
            tokio::spawn(async move {
                sleep(LAST_ANSWER).await;
                drop(last);
            });
            outcome.map_err(|fault| {
                events::upgrade_failed(&fault.to_string());
                let is_unable = matches!(fault, UpgradeFault::Binary { .. } | UpgradeFault::Legacy(_));
                UpgradeProblem { is_conflict: !is_unable, detail: format!("nothing has changed: {fault}") }
            })
        })
    }
}

async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, UpgradeFault> + Send + 'static,
) -> Result<T, UpgradeFault> {
    spawn_blocking(work).await.unwrap_or_else(|failed| Err(io::Error::other(failed).into()))
}

/// Where the binary of this process is, or was: what was replaced has another file there.
fn own_binary() -> PathBuf {
    let path = std::env::current_exe().unwrap_or_else(|_| "/proc/self/exe".into());
    match path.to_str().and_then(|path| path.strip_suffix(" (deleted)")) {
        Some(before) => before.into(),
        None => path,
    }
}

fn own_socket(
    used: SocketUse,
    written: ToldAddress,
    address: ToldAddress,
    descriptor: OwnedFd,
) -> LegacySocket {
    let row = SocketRow { used, listener: String::new(), written, address, lent: false };
    LegacySocket { row, descriptor, flows: Vec::new() }
}

fn written(bind: Bind) -> ToldAddress {
    match bind {
        Bind::Tcp(address) => ToldAddress::Tcp(address),
        Bind::Udp(address) => ToldAddress::Udp(address),
        Bind::Unix(path) => ToldAddress::Unix(path),
    }
}

fn told(bound: Bound) -> ToldAddress {
    match bound {
        Bound::Tcp(address) => ToldAddress::Tcp(address),
        Bound::Udp(address) => ToldAddress::Udp(address),
        Bound::Unix(path) => ToldAddress::Unix(path),
    }
}

/// What the process before knows, for one that begins in its place.
#[derive(Debug, Default)]
pub struct KnownBefore(BTreeMap<String, String>, Mutex<Option<OwnedFd>>);

impl KnownBefore {
    /// Out of all that it leaves.
    #[must_use]
    pub fn of(legacy: &mut Legacy) -> KnownBefore {
        KnownBefore(legacy.state.clone(), Mutex::new(legacy.stored.take()))
    }

    /// A part of it. What nobody understands is found out anew.
    fn part<T: DeserializeOwned + Default>(&self, name: &str) -> T {
        self.0.get(name).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// What the process before was in its cluster.
    #[must_use]
    pub fn node(&self) -> Option<NodeLegacy> {
        self.part(NODE)
    }

    /// What DNS has said.
    #[must_use]
    pub fn names(&self) -> ToldNames {
        self.part(NAMES)
    }

    /// How far buckets of rate limits are empty.
    #[must_use]
    pub fn rates(&self) -> ToldRates {
        self.part(RATES)
    }

    /// Takes over the rest where `snapshots` are, before anybody is served.
    pub fn take_over(&self, snapshots: &Snapshots) {
        if let Some(keys) = self.0.get(TICKETS).and_then(|text| BASE64.decode(text).ok()) {
            snapshots.tickets().take_over(&keys);
        }
        let (probed, standings): (ProbeWords, StandingWords) = (self.part(HEALTH), self.part(STANDINGS));
        let (snapshot, now) = (snapshots.current(), now());
        for target in snapshot.iter().flat_map(|snapshot| &snapshot.targets) {
            target.take_over(&probed, now);
            target.take_over_standings(&standings, now);
        }
        if let Some(snapshot) = snapshot {
            snapshot.rates.take_over(&self.rates(), now);
            snapshot.token_keys.take_over(&self.part(KEYS), now);
            let stored = self.1.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(stored) = stored {
                stored::take_over(&snapshot.store, stored);
            }
        }
    }
}
