//! Serving until told to stop.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

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
use crate::net::now;
use crate::reload::Reloader;
use crate::reload::begun::Begun;
use crate::reload::running::{Loader, RunningConfig, TextsLoader, Tune};
use crate::reload::together::{SharedReading, Together};
use crate::reload::trial::replacement::clear_leftovers;
use crate::server::{Options, Server, StartError};
use crate::shutdown::Shutdown;
use crate::store::local::{LockedFolder, Unlocked};
use crate::store::{LocalStore, Store};
use crate::tls::KeptCertificates;
use crate::watch::Watcher;

/// Where configs come from while it serves.
pub(super) struct ConfigSource {
    /// The file; `None`: there is none.
    pub(super) file: Option<PathBuf>,
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

/// Serves a config until a signal ends it.
pub(super) fn run(loaded: Loaded, source: ConfigSource, tune: Tune) -> anyhow::Result<ExitCode> {
    wait(start(loaded, source, tune)?)
}

/// Starts a server that obeys signals from the moment that it is said to listen.
pub(super) fn start(loaded: Loaded, source: ConfigSource, tune: Tune) -> anyhow::Result<Server> {
    let ConfigSource { file, loader, text, shared, texts } = source;
    let folders = UsualFolders::here();
    let whereabouts = Whereabouts::of(&loaded.config.instance, file.as_deref(), &folders);
    let state = state_folder(&whereabouts)?;
    let is_fleeting = whereabouts.state.is_private();
    loaded.files.written().paths().flat_map(clear_leftovers).for_each(|path| events::leftover_removed(&path));
    let discovery = Arc::new(Discovery::new(now));
    let lasting = state.as_ref().ok().filter(|_| !is_fleeting);
    let cluster = loaded.config.cluster.clone();
    let cluster = cluster.map(|cluster| Arc::new(joining::node(&cluster, lasting, shared.is_some())));
    let reading = shared.filter(|_| cluster.is_some()).map(|reading| SharedReading {
        cache: lasting.map(|folder| folder.path().join(joining::cache(cluster.as_deref()))),
        ..reading
    });
    let own = || store(&state, LocalStore::OVERLAY);
    let (begun, together) = match cluster.clone().zip(reading) {
        Some((node, reading)) => {
            let Beginning { loaded, revision, overlay } = joining::begin(&node, &reading, loaded);
            let (kept, line) = joining::overlay(&node, overlay, own);
            let together = Together::new(node, reading, revision, line);
            (Begun::with(discovery.meet_first(loaded)?, kept), Some(together))
        }
        None => (Begun::load(discovery.meet_first(loaded)?, own()), None),
    };
    let force = Arc::clone(&begun.laid.loaded);
    let (config, rows) = (&force.config, &force.effective);
    let place = whereabouts.config.clone();
    let path = place.as_ref().map(|path| path.display().to_string());
    let about = AboutProcess { name: whereabouts.name.clone(), config: path };
    let of_node = cluster.as_ref().map(|node| node.view().node.to_string());
    let told_by = of_node.unwrap_or_else(|| whereabouts.name.clone());
    let admin = AdminListener::open(whereabouts, &folders).map_err(|error| located(error.into(), rows))?;
    let door = match &config.admin {
        Some(access) => {
            let opened = AdminDoor::open(&access.binds, Desk::Admin);
            Some(opened.map_err(|unbound| located(StartError::AdminDoor(unbound), rows))?)
        }
        None => None,
    };
    let metrics = match &*config.metrics.binds {
        [] => None,
        binds => {
            let opened = AdminDoor::open(binds, Desk::Metrics);
            Some(opened.map_err(|unbound| located(StartError::MetricsDoor(unbound), rows))?)
        }
    };
    let mut server = Server::start_with(config, Options::default(), &begun.blocked(), kept(&state, config))
        .map_err(|error| located(error, rows))?;
    if let Some(control) = server.control().cloned() {
        let _inside = control.enter();
        let (mut terms, mut ints) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let (shutdown, reloader) = (server.shutdown(), server.reloader());
        control.spawn(again("SIGTERM and SIGINT", async move || {
            obey(&mut terms, &mut ints, &shutdown, &reloader).await;
        }));
        let mut hangups = signal(SignalKind::hangup())?;
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
        let api = Arc::new(Api::new(about, Arc::clone(&running), text).with_cluster(cluster));
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
        let (mut moves, reloader) = (signal(SignalKind::user_defined1())?, server.reloader());
        control.spawn(again("SIGUSR1", async move || rotate(&mut moves, &reloader).await));
    }
    server.announce();
    Ok(server)
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

/// Takes the folder.
///
/// # Errors
/// Another process has it.
fn state_folder(whereabouts: &Whereabouts) -> Result<StateFolder, Unlocked> {
    match LockedFolder::take(whereabouts.state.path(), &whereabouts.name) {
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
/// comes from somebody who waits at a terminal.
async fn obey(terms: &mut Signal, ints: &mut Signal, shutdown: &Shutdown, reloader: &Reloader) {
    let mut due: Option<Instant> = None;
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
            shutdown.leaving.cancel();
            due = Some(Instant::now() + delay);
            continue;
        }
        due = None;
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
