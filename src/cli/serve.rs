//! Serving until told to stop.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use tokio::runtime::Handle;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use super::exit_code::CUT;
use super::joining::{self, Beginning};
use super::start_fault::located;
use crate::acme::{KeptShelves, OrderDesk};
use crate::admin::{AboutProcess, AdminDoor, AdminListener, Api, Desk, TextLoader};
use crate::config::Loaded;
use crate::config::model::Config;
use crate::discover::Discovery;
use crate::events;
use crate::instance::{UsualFolders, Whereabouts};
use crate::lasting::again;
use crate::net::{now, supervisor};
use crate::reload::Reloader;
use crate::reload::begun::{Begun, now_ms};
use crate::reload::bound::Bound;
use crate::reload::running::{Loader, RunningConfig, TextsLoader, Tune};
use crate::reload::together::{SharedReading, Together};
use crate::reload::trial::replacement::clear_leftovers;
use crate::server::elders::SharedCounts;
use crate::server::left::{LeftSockets, clear_left, lock_of};
use crate::server::lent::lent_sockets;
use crate::server::upgrading::{KnownBefore, NAME, Possessions, Upgrades};
use crate::server::{Options, Server, StartError};
use crate::shutdown::Shutdown;
use crate::store::held::{HeldStore, JournalsFree};
use crate::store::local::{LockedFolder, Unlocked};
use crate::store::{LocalStore, Store};
use crate::tls::KeptCertificates;
use crate::upgrade::{Heir, HeirStart, Legacy};
use crate::watch::Watcher;
use crate::worker::SocketKind;

/// Where configs come from while it serves.
pub(super) struct ConfigSource {
    /// The file; `None`: there is none.
    pub(super) file: Option<PathBuf>,
    /// Why no other process could take this one's place; `None`: one could.
    pub(super) unable: Option<String>,
    /// Reads it again.
    pub(super) loader: Loader,
    /// Reads a text in its place.
    pub(super) text: TextLoader,
    /// Reads what nodes of a cluster share; `None`: there is no file that says what is this node's own.
    pub(super) shared: Option<SharedReading>,
    /// Reads the file as if other texts were in it; `None`: it can't be written.
    pub(super) texts: Option<TextsLoader>,
}

/// Has SIGHUP end the process no more, as it does by default: whoever reloads a service right after its start would end it. Until
/// somebody obeys the signal it says nothing, for the config is just being read.
pub(super) fn outlive_hangups() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    // Where it can't be done the start fails soon enough, and says why.
    if let Ok(runtime) = runtime {
        let _inside = runtime.enter();
        // What the system is told outlasts the runtime.
        let _ = signal(SignalKind::hangup());
    }
}

/// Serves a config until a signal ends it, in the place of another process if it was started for that.
pub(super) fn run(
    loaded: Loaded,
    source: ConfigSource,
    tune: Tune,
    succession: Option<HeirStart>,
) -> anyhow::Result<ExitCode> {
    let Some(succession) = succession else {
        let lent = lent_sockets()?;
        return wait(start(loaded, source, tune, Inheritance { lent, ..Inheritance::default() })?);
    };
    let (heir, legacy) = succession.inherit().context("can't take the place of the process that runs")?;
    let heir = Arc::new(heir);
    let inheritance = Inheritance { heir: Some(Arc::clone(&heir)), legacy, lent: Vec::new() };
    match start(loaded, source, tune, inheritance) {
        Ok(server) => {
            drop(heir);
            wait(server)
        }
        Err(error) => {
            let text = format!("{error:#}");
            // The usual hint is to end whoever has the address.
            let is_own = text.contains(&format!("process {}", heir.running()));
            let note = "\n  note: that is the process that is to be replaced: what an address is for changes by a restart only";
            heir.refuse(&if is_own { text + note } else { text });
            Err(error)
        }
    }
}

/// What there was before this process.
#[derive(Default)]
pub(super) struct Inheritance {
    /// By which the process before is spoken to; `None`: there is none.
    heir: Option<Arc<Heir>>,
    /// What it leaves.
    legacy: Legacy,
    /// What the supervisor has bound.
    lent: Vec<SocketKind>,
}

/// Starts a server that obeys signals from the moment that it is said to listen.
pub(super) fn start(
    loaded: Loaded,
    source: ConfigSource,
    tune: Tune,
    before: Inheritance,
) -> anyhow::Result<Server> {
    let ConfigSource { file, unable, loader, text, shared, texts } = source;
    let Inheritance { heir, mut legacy, lent } = before;
    let left = LeftSockets::of(std::mem::take(&mut legacy.sockets));
    let mut left = left.and_lent(lent, &loaded.config);
    let lent: Vec<Bound> = left.lent();
    let folders = UsualFolders::here();
    let name_before = legacy.state.get(NAME).map_or("", String::as_str);
    let place_before = legacy.folder.as_ref().map(|(path, _)| (name_before, path.as_path()));
    let whereabouts = Whereabouts::after(place_before, &loaded.config.instance, file.as_deref(), &folders);
    let state = state_folder(&whereabouts, lock_of(&mut legacy, whereabouts.state.path()))?;
    let is_fleeting = whereabouts.state.is_private();
    let is_alone = loaded.config.cluster.as_ref().is_some_and(|cluster| cluster.etcd.is_none());
    let alone =
        "a cluster of one keeps what it shares in a journal that two processes can't have: restart it";
    let unable = unable.or_else(|| is_alone.then(|| alone.to_owned()));
    let folder_kept = state.as_ref().map(Arc::downgrade).unwrap_or_default();
    loaded.files.written().paths().flat_map(clear_leftovers).for_each(|path| events::leftover_removed(&path));
    let (discovery, known) = (Arc::new(Discovery::new(now)), KnownBefore::of(&mut legacy));
    discovery.begin_with(known.names());
    let lasting = state.as_ref().ok().filter(|_| !is_fleeting);
    let (cluster, before) = (loaded.config.cluster.clone(), known.node());
    let cluster =
        cluster.map(|cluster| Arc::new(joining::node(&cluster, lasting, shared.is_some(), before.as_ref())));
    let reading = shared.filter(|_| cluster.is_some()).map(|reading| SharedReading {
        cache: lasting.map(|folder| folder.path().join(joining::cache(cluster.as_deref()))),
        ..reading
    });
    // What the process before may still write is not written before that one has let go of it.
    let are_free = JournalsFree::new(heir.is_none().into());
    let own = || -> Result<Box<dyn Store>, String> {
        let journal = LocalStore::new(state.as_ref().map_err(Clone::clone)?, LocalStore::OVERLAY);
        match heir {
            Some(_) => Ok(Box::new(HeldStore::new(journal, Arc::clone(&are_free)))),
            None => Ok(Box::new(journal)),
        }
    };
    let (begun, together) = match cluster.clone().zip(reading) {
        Some((node, reading)) => {
            let Beginning { loaded, revision, overlay } =
                joining::begin(&node, &reading, loaded, before.as_ref());
            let (kept, line) = joining::overlay(&node, overlay, own);
            let together = Together::new(node, reading, revision, line);
            (Begun::with(discovery.meet_first(loaded)?, kept), Some(together))
        }
        None => (Begun::read(discovery.meet_first(loaded)?, own()), None),
    };
    let force = Arc::clone(&begun.laid.loaded);
    let (config, rows) = (&force.config, &force.effective);
    let place = whereabouts.config.clone();
    let path = place.as_ref().map(|path| path.display().to_string());
    let about = AboutProcess { name: whereabouts.name.clone(), config: path };
    let of_node = cluster.as_ref().map(|node| node.view().node.to_string());
    let told_by = of_node.unwrap_or_else(|| whereabouts.name.clone());
    let admin = AdminListener::open(whereabouts, &folders, left.admin)
        .map_err(|error| located(error.into(), rows))?;
    let admin = admin.map(Arc::new);
    let door = match &config.admin {
        Some(access) => {
            let opened = AdminDoor::open(&access.binds, Desk::Admin, &mut left.door);
            Some(Arc::new(opened.map_err(|unbound| located(StartError::AdminDoor(unbound), rows))?))
        }
        None => None,
    };
    let metrics = match &*config.metrics.binds {
        [] => None,
        binds => {
            let opened = AdminDoor::open(binds, Desk::Metrics, &mut left.metrics);
            Some(Arc::new(opened.map_err(|unbound| located(StartError::MetricsDoor(unbound), rows))?))
        }
    };
    let (blocked, issued) = (begun.blocked(), kept(&state, config));
    let mut server = Server::start_with(config, Options::default(), &blocked, issued, left.listeners, &known)
        .map_err(|error| located(error, rows))?;
    let signals = match server.control() {
        Some(control) => Some(HeldSignals::take(control)?),
        None => None,
    };
    // Workers serve from here on. What only one process may do waits for the end of the other one.
    let generation = heir.as_ref().map_or(1, |heir| heir.origin.generation);
    let mut is_cut_short = false;
    if let Some(heir) = &heir {
        let is_node =
            cluster.as_ref().zip(before.as_ref()).is_some_and(|(node, before)| node.boot() == before.boot);
        let is_there = heir
            .succeed(is_node, now_ms(), &mut legacy)
            .context("the process that runs has given this one up")?;
        are_free.store(true, Ordering::Release);
        server.reloader().claim_files();
        if let Some(admin) = &admin {
            admin.claim();
        }
        clear_left(left.files, &server.reloader(), admin.as_deref().map(AdminListener::path));
        is_cut_short = !is_there;
        events::succeeded(&heir.origin.version, heir.running(), generation, is_cut_short);
    }
    begun.catch_up();
    if let Some((control, signals)) = server.control().cloned().zip(signals) {
        let _inside = control.enter();
        let HeldSignals { mut terms, mut ints, mut hangups, mut moves } = signals;
        let (shutdown, reloader) = (server.shutdown(), server.reloader());
        control.spawn(again("SIGTERM and SIGINT", async move || {
            obey(&mut terms, &mut ints, &shutdown, &reloader).await;
        }));
        let running = RunningConfig::new(server.reloader(), loader, tune, begun).with_files(texts);
        let running = running.with_discovery(discovery).together(together);
        let running = Arc::new(match place {
            Some(place) => running.lying_at(place),
            None => running,
        });
        let tried = Arc::clone(&running);
        control.spawn(again("the config on trial", async move || tried.keep_trial().await));
        let (timed, ending) = (Arc::clone(&running), Arc::clone(&running));
        control.spawn(again("changes by hand that are over", async move || timed.keep_time().await));
        let named = Arc::clone(&running);
        control.spawn(again("names that are backends", async move || named.follow_names().await));
        let drain = server.shutdown().drain.clone();
        control.spawn(async move {
            drain.cancelled().await;
            ending.close_store().await;
        });
        let desk = match state.as_ref() {
            Ok(_) if is_fleeting => {
                Err("there is no folder for what outlives the process: set `state_dir`".to_owned())
            }
            state => state.map_err(Clone::clone),
        };
        let desk = desk.and_then(|folder| {
            OrderDesk::open(folder.path(), Box::new(LocalStore::new(folder, LocalStore::ACME)))
        });
        server.order_certificates(desk, cluster.as_ref());
        if let Some(node) = &cluster {
            server.join(node);
            let sharing = Arc::clone(&running);
            control.spawn(again("the cluster's config", async move || sharing.follow_cluster().await));
            let probed = Arc::clone(&running);
            control.spawn(again("what nodes find of backends", async move || probed.follow_health().await));
            let naming = Arc::clone(&running);
            control.spawn(again("names that nodes share", async move || naming.share_names().await));
            let ticketing = Arc::clone(&running);
            control.spawn(again("ticket keys of all nodes", async move || ticketing.follow_tickets().await));
            let limiting = Arc::clone(&running);
            control.spawn(again("limits over all nodes", async move || limiting.follow_limits().await));
            let owning = Arc::clone(&running);
            control.spawn(again("backends that nodes share", async move || owning.follow_owners().await));
            let purged = Arc::clone(&running);
            control.spawn(again("purges of other nodes", async move || purged.follow_purges().await));
        }
        let has_rest = state.as_ref().is_ok_and(|folder| folder.has(LocalStore::WEBHOOKS));
        server.tell_webhooks(
            &told_by,
            cluster.as_ref(),
            move || store(&state, LocalStore::WEBHOOKS),
            has_rest,
        )?;
        let watched = Arc::clone(&running);
        control.spawn(again("the watch over files", async move || {
            let mut watcher = Watcher::new(watched.files());
            while watcher.changed().await {
                // It has said what came of it.
                let _ = watched.reload_changed().await;
            }
        }));
        let possessions = Possessions {
            name: about.name.clone(),
            admin: admin.clone(),
            door: door.clone(),
            metrics: metrics.clone(),
            folder: folder_kept,
            node: cluster.clone(),
        };
        let counts = Arc::new(SharedCounts::of(&mut legacy, is_cut_short));
        let upgrades = Upgrades::new(
            Arc::clone(&running),
            server.shutdown(),
            possessions,
            generation,
            Arc::clone(&counts),
            unable,
        );
        let api = Api::new(about, Arc::clone(&running), text).with_cluster(cluster);
        let api = Arc::new(api.with_upgrades(Arc::new(upgrades)).counting_in(counts.book()));
        server.count_together(counts, &api);
        server.send_statsd(Arc::clone(&api));
        if admin.is_some() || door.is_some() {
            server.count_rates(Arc::clone(&api));
        }
        if let Some(admin) = admin {
            server.serve_admin(admin, Arc::clone(&api));
        }
        if let Some(door) = metrics {
            server.serve_metrics(door, Arc::clone(&api));
        }
        if let Some(door) = door {
            server.serve_admin_over_tcp(door, api);
        }
        control.spawn(again("SIGHUP", async move || {
            while hangups.recv().await.is_some() {
                // It has said what came of it.
                let _ = running.reload().await;
            }
        }));
        let reloader = server.reloader();
        control.spawn(again("SIGUSR1", async move || rotate(&mut moves, &reloader).await));
    }
    server.announce();
    let bound = server.bound();
    let is_used = |address: &Bound| bound.iter().any(|(_, own)| own == address);
    lent.iter().filter(|address| !is_used(address)).for_each(|address| events::socket_unused(address));
    server.tell_supervisor();
    if let Err(error) = supervisor::tell_surely("READY=1\n") {
        events::supervisor_not_told(&error);
    }
    Ok(server)
}

/// The signals that a process obeys that serves. What comes before it can obey waits.
struct HeldSignals {
    terms: Signal,
    ints: Signal,
    hangups: Signal,
    moves: Signal,
}

impl HeldSignals {
    fn take(control: &Handle) -> io::Result<HeldSignals> {
        let _inside = control.enter();
        Ok(HeldSignals {
            terms: signal(SignalKind::terminate())?,
            ints: signal(SignalKind::interrupt())?,
            hangups: signal(SignalKind::hangup())?,
            moves: signal(SignalKind::user_defined1())?,
        })
    }
}

/// The folder of what outlives the process, until nobody keeps anything there any more; inside `Err`: it can't be had, and why.
type StateFolder = Result<Arc<LockedFolder>, String>;

/// What was issued before of certificates that a config orders.
fn kept(folder: &StateFolder, config: &Config) -> Option<Box<dyn KeptCertificates>> {
    Some(Box::new(KeptShelves::of(folder.as_ref().ok()?.path(), &config.acme)))
}

/// Where something is kept: in the journal of this name.
fn store(folder: &StateFolder, journal: &'static str) -> Result<Box<dyn Store>, String> {
    match folder {
        Ok(folder) => Ok(Box::new(LocalStore::new(folder, journal))),
        Err(reason) => Err(reason.clone()),
    }
}

/// Takes the folder, with the `lock` that the process before has on it.
///
/// # Errors
/// Another process has it.
fn state_folder(whereabouts: &Whereabouts, lock: Option<OwnedFd>) -> Result<StateFolder, Unlocked> {
    let (folder, name) = (whereabouts.state.path(), &whereabouts.name);
    let taken = match lock {
        Some(lock) => LockedFolder::share(folder, name, lock),
        None => LockedFolder::take(folder, name),
    };
    match taken {
        Ok(folder) => Ok(Ok(Arc::new(folder))),
        Err(held @ Unlocked::Held { .. }) => Err(held),
        Err(unwritable @ Unlocked::Unwritable { .. }) => Ok(Err(unwritable.to_string())),
    }
}

/// Waits for the end of `server` and says what was cut.
pub(super) fn wait(server: Server) -> anyhow::Result<ExitCode> {
    let ended = server.wait()?;
    events::stopped(ended.cut);
    Ok(if ended.cut == 0 { ExitCode::SUCCESS } else { ExitCode::from(CUT) })
}

/// Ends `shutdown` step by step, one for each signal. The first SIGTERM lets `shutdown_delay` pass before its step; SIGINT
/// comes from somebody who waits at a terminal. Where another process has taken its place, it drains before the first of them.
async fn obey(terms: &mut Signal, ints: &mut Signal, shutdown: &Shutdown, reloader: &Reloader) {
    let (mut due, mut is_told): (Option<Instant>, bool) = (None, false);
    loop {
        let name = tokio::select! {
            Some(()) = terms.recv() => "SIGTERM",
            Some(()) = ints.recv() => "SIGINT",
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                due = None;
                events::delay_over();
                shutdown.advance();
                continue;
            }
            else => return,
        };
        let (is_draining, delay) = (shutdown.drain.is_cancelled(), reloader.shutdown_delay());
        if !is_draining && due.is_none() && name == "SIGTERM" && !delay.is_zero() {
            events::draining(name, delay);
            shutdown.leave();
            due = Some(Instant::now() + delay);
            continue;
        }
        due = None;
        let is_first = !std::mem::replace(&mut is_told, true);
        if is_draining && is_first && shutdown.succeeded.is_cancelled() {
            // It drains for its successor. A supervisor that stops the service tells both, once.
            events::draining(name, Duration::ZERO);
            continue;
        }
        if is_draining {
            events::cutting(name);
        } else {
            events::draining(name, Duration::ZERO);
        }
        shutdown.advance();
    }
}

/// Reopens the access log whenever somebody has moved its file away.
async fn rotate(signals: &mut Signal, reloader: &Reloader) {
    while signals.recv().await.is_some() {
        match reloader.log_rotation() {
            Some(log) => log.reopen(),
            None => events::no_log_file(),
        }
    }
}
