//! The composition root: binds, starts workers and probes, hands out addresses, waits for the end.

pub mod elders;
mod endings;
pub mod left;
pub mod lent;
mod membership;
mod refusals;
mod serving;
mod slow;
mod stored;
mod tasks;
pub mod upgrading;
mod warnings;
mod watchdog;

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use thiserror::Error;
use tokio::runtime::Runtime;

use crate::access::Networks;
use crate::admin::{AdminDoor, AdminListener, Unopened};
use crate::cache::store::CacheStore;
use crate::config::model::Config;
use crate::events;
use crate::lasting::again;
use crate::net::{now, socket};
use crate::reload::addresses::Addresses;
use crate::reload::addresses::left::LeftAddress;
use crate::reload::bound::{Bound, Unbound};
use crate::reload::logs::AccessLogs;
use crate::reload::{Deployed, Reloader, WorkerEnd};
use crate::shutdown::Shutdown;
use crate::snapshot::{ConnectionLimits, Snapshots};
use crate::statsd::StatsdEnd;
use crate::targets::Target;
use crate::telemetry::cells::{Cells, Readings};
use crate::tls::KeptCertificates;
use crate::traces::TraceTask;
use crate::webhook::WebhookThread;
use crate::worker::{self, Ended, WorkerPlan};
use elders::SharedCounts;
use membership::MembershipEnd;
use refusals::{LOOK, RefusalWatch};
use upgrading::KnownBefore;

/// Descriptors kept for everything that is not a client or its backend.
const HEADROOM: u64 = 200;

/// How long is waited for what is [`Shutdown::last`].
const LAST: Duration = Duration::from_secs(5);

/// Why a server does not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// An address can't be bound.
    #[error(transparent)]
    Bind(#[from] Unbound),
    /// The access log can't be opened.
    #[error("{0}")]
    AccessLog(io::Error),
    /// The admin socket that is asked for can't be bound.
    #[error(transparent)]
    Admin(#[from] Unopened),
    /// The address that is asked for the admin API can't be bound.
    #[error("{0}")]
    AdminDoor(Unbound),
    /// The address that is asked for metrics can't be bound.
    #[error("{0}")]
    MetricsDoor(Unbound),
    /// A runtime or thread can't be started.
    #[error("can't start: {0}")]
    System(#[from] io::Error),
}

/// What tests and measurements may change; users may not.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Chunks may be passed on as they came.
    pub raw_relay: bool,
}

impl Default for Options {
    /// As shipped, unless the variable `EVENKEEL_RAW_RELAY` is `off`.
    fn default() -> Self {
        Options { raw_relay: std::env::var_os("EVENKEEL_RAW_RELAY").is_none_or(|value| value != "off") }
    }
}

/// A running server. Dropping it cuts everything.
pub struct Server {
    reloader: Arc<Reloader>,
    cells: Vec<Arc<Cells>>,
    shutdown: Shutdown,
    ended: mpsc::Receiver<thread::Result<io::Result<Ended>>>,
    threads: Vec<thread::JoinHandle<()>>,
    control: Option<Runtime>,
    refusals: Arc<Mutex<RefusalWatch>>,
    admin: Option<Arc<AdminListener>>,
    door: Option<Arc<AdminDoor>>,
    metrics: Option<Arc<AdminDoor>>,
    webhooks: Option<WebhookThread>,
    traces: Option<TraceTask>,
    statsd: Option<StatsdEnd>,
    membership: Option<MembershipEnd>,
    counts: Option<Arc<SharedCounts>>,
}

impl Server {
    /// Binds everything, then starts; any failure leaves nothing behind.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(config: &Config, options: Options) -> Result<Server, StartError> {
        Server::start_with(config, options, &Arc::default(), None, Vec::new(), &KnownBefore::default())
    }

    /// The same where these networks are blocked from the first connection on, `kept` knows what was issued before of what is ordered, and the process before has
    /// `left` these addresses bound and has `known` what holds at once.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start_with(
        config: &Config,
        options: Options,
        blocked: &Arc<Networks>,
        kept: Option<Box<dyn KeptCertificates>>,
        left: Vec<LeftAddress>,
        known: &KnownBefore,
    ) -> Result<Server, StartError> {
        let descriptors = socket::raise_descriptor_limit().unwrap_or(1024);
        let affordable =
            usize::try_from(descriptors.saturating_sub(HEADROOM) / 2).unwrap_or(usize::MAX).max(1);
        let limits = ConnectionLimits::new(config.max_connections.unwrap_or(affordable));
        events::descriptor_budget(
            descriptors,
            limits.limit(),
            config.workers,
            config.max_connections.is_some(),
        );
        if limits.limit() > affordable {
            events::descriptors_short(affordable);
        }
        warnings::tell(config);
        endings::warn(config);

        let snapshots = Snapshots::new().with_rates(&known.rates());
        if let Some(kept) = kept {
            snapshots.live_certificates().read_from(kept);
        }
        let draft = snapshots.prepare(config);
        let mut addresses = Addresses::with_left(left);
        let mut rebinding = addresses.rebind(draft.snapshot(), config.workers)?;
        let mut sockets = std::mem::take(&mut rebinding.sockets);
        let (snapshot, _) = snapshots.commit(draft);
        addresses.settle(rebinding, &snapshot);
        known.take_over(&snapshots);
        let logs = AccessLogs::start(config.access_log.as_ref()).map_err(StartError::AccessLog)?;
        let control = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("evenkeel-control")
            .on_thread_start(events::here_as_there())
            .enable_all()
            .build()?;
        let shutdown = Shutdown::new();
        let idle_total = Arc::new(AtomicU32::new(0));
        let (report, ended) = mpsc::channel();
        let cells: Vec<Arc<Cells>> = std::iter::repeat_with(Arc::default).take(config.workers).collect();
        let (mut workers, mut each) = (Vec::new(), Vec::new());
        for (index, (ends, cells)) in worker::link(&cells).into_iter().zip(&cells).enumerate() {
            let (sender, changes) = worker::changes();
            workers.push(WorkerEnd { changes: sender, cells: Arc::clone(cells) });
            each.push((index, ends, changes, Arc::clone(cells), logs.handle(cells)));
        }
        let in_force = Deployed { config: config.clone(), places: addresses, logs, workers };
        let reloader = Reloader::new(snapshots, Arc::clone(&limits), affordable, shutdown.clone(), in_force);
        let mut server = Server {
            reloader: Arc::new(reloader),
            cells,
            shutdown: shutdown.clone(),
            ended,
            threads: Vec::new(),
            control: Some(control),
            refusals: Arc::default(),
            admin: None,
            door: None,
            metrics: None,
            webhooks: None,
            traces: None,
            statsd: None,
            membership: None,
            counts: None,
        };
        if let Some(control) = &server.control {
            tasks::start(control, &server.reloader, shutdown.succeeded.clone());
            slow::mark(control, &server.reloader);
            endings::watch(control, &server.reloader);
            server.traces = TraceTask::start(control, &server.reloader, config.instance.name.clone());
        }
        server.start_refusals();
        for (index, ends, changes, cells, log) in each {
            let plan = WorkerPlan {
                snapshot: Arc::clone(&snapshot),
                blocked: Arc::clone(blocked),
                sockets: sockets.pop().unwrap_or_default(),
                log,
                cells,
                idle_total: Arc::clone(&idle_total),
                limits: Arc::clone(&limits),
                ends,
                changes,
                shutdown: shutdown.clone(),
                patience: config.shutdown_timeout,
                raw_relay: options.raw_relay,
                number: index,
            };
            let (report, follow) = (report.clone(), events::here_as_there());
            let thread = thread::Builder::new().name(format!("evenkeel-{index}")).spawn(move || {
                follow();
                let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| worker::run(plan)));
                // Nobody listens any more once the server was dropped.
                let _ = report.send(outcome);
            })?;
            server.threads.push(thread);
        }
        Ok(server)
    }

    /// Logs a line for each address that is bound.
    pub fn announce(&self) {
        for (listener, address) in &self.bound() {
            let socket = match address {
                Bound::Tcp(socket) => Some(*socket),
                // What `events` tells of it is for those who connect.
                Bound::Udp(_) | Bound::Unix(_) => None,
            };
            events::listening(listener, address, socket);
        }
    }

    fn start_refusals(&self) {
        let Some(control) = &self.control else { return };
        let cells = self.cells.clone();
        let (refusals, reloader) = (Arc::clone(&self.refusals), Arc::clone(&self.reloader));
        let look = async move || {
            let mut looks = tokio::time::interval(LOOK);
            loop {
                looks.tick().await;
                look_at_refusals(&refusals, &reloader, &cells, false);
            }
        };
        control.spawn(again("counting refusals", look));
    }

    /// Where the admin API is given over TCP.
    #[must_use]
    pub fn admin_addresses(&self) -> &[SocketAddr] {
        self.door.as_ref().map_or(&[], |door| door.addresses())
    }

    /// Listener names with the addresses that were bound, in config order.
    #[must_use]
    pub fn bound(&self) -> Vec<(String, Bound)> {
        self.reloader.bound()
    }

    /// By what another config is put into the place of the one in force.
    #[must_use]
    pub fn reloader(&self) -> Arc<Reloader> {
        Arc::clone(&self.reloader)
    }

    /// The targets in force, with their live state.
    #[must_use]
    pub fn targets(&self) -> Vec<Arc<Target>> {
        self.reloader.snapshots.current().map(|snapshot| snapshot.targets.clone()).unwrap_or_default()
    }

    /// What is stored of answers; `None`: nothing is in force.
    #[must_use]
    pub fn cache_store(&self) -> Option<Arc<CacheStore>> {
        self.reloader.snapshots.current().map(|snapshot| Arc::clone(&snapshot.store))
    }

    /// What all workers have counted so far.
    #[must_use]
    pub fn readings(&self) -> Readings {
        let mut readings = Readings::sum(&self.cells);
        readings.access_dropped += self.reloader.records_lost();
        readings
    }

    /// What each worker has counted so far.
    #[must_use]
    pub fn readings_by_worker(&self) -> Vec<Readings> {
        self.cells.iter().map(|cells| Readings::sum(std::slice::from_ref(cells))).collect()
    }

    /// Client connections open now.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.reloader.limits.taken()
    }

    /// The signals by which it ends; [`Shutdown::advance`] is the next step.
    #[must_use]
    pub fn shutdown(&self) -> Shutdown {
        self.shutdown.clone()
    }

    /// The runtime for everything that is not a request.
    #[must_use]
    pub fn control(&self) -> Option<&tokio::runtime::Handle> {
        self.control.as_ref().map(Runtime::handle)
    }

    /// Waits until every worker has ended, and says what was cut. A worker that fails ends the others.
    ///
    /// # Errors
    /// A worker failed or panicked.
    pub fn wait(mut self) -> io::Result<Ended> {
        let mut total = Ended::default();
        let mut failure = None;
        for _ in 0..self.threads.len() {
            match self.ended.recv() {
                Ok(Ok(Ok(ended))) => total.cut += ended.cut,
                Ok(Ok(Err(error))) => failure = Some(error),
                Ok(Err(_)) | Err(_) => failure = Some(io::Error::other("a worker thread panicked")),
            }
            if failure.is_some() {
                self.shutdown.drain.cancel();
                self.shutdown.cut.cancel();
            }
        }
        self.finish();
        failure.map_or(Ok(total), Err)
    }

    fn finish(&mut self) {
        self.shutdown.drain.cancel();
        self.shutdown.cut.cancel();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        if let Some(statsd) = self.statsd.take() {
            statsd.finish();
        }
        if let Some(membership) = self.membership.take() {
            membership.finish();
        }
        if let Some(admin) = self.admin.take() {
            admin.close();
        }
        for door in self.door.take().into_iter().chain(self.metrics.take()) {
            door.close();
        }
        if let Some(webhooks) = self.webhooks.take() {
            webhooks.wait();
        }
        if let Some(control) = self.control.take() {
            self.shutdown.last.close();
            let last = self.shutdown.last.wait();
            // Whoever is stuck is not waited for.
            let _ = control.block_on(async { tokio::time::timeout(LAST, last).await });
            // Whoever has come into the place of this process has been told of all before.
            if let Some(counts) = self.counts.take() {
                counts.give_rest();
            }
            if let Some(traces) = self.traces.take() {
                traces.finish(&control);
            }
            control.shutdown_background();
            look_at_refusals(&self.refusals, &self.reloader, &self.cells, true);
        }
        self.reloader.close();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Tells what was refused, if that is due; at the `end` all that is left.
fn look_at_refusals(watch: &Mutex<RefusalWatch>, reloader: &Reloader, cells: &[Arc<Cells>], end: bool) {
    let Some(snapshot) = reloader.snapshots.current() else { return };
    watch.lock().unwrap_or_else(PoisonError::into_inner).look(cells, &snapshot.names, now(), end);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle_reloader(shutdown: &Shutdown) -> Reloader {
        let (snapshots, limits) = (Snapshots::new(), ConnectionLimits::new(1));
        let in_force = Deployed {
            config: crate::proxy::fixtures::config(),
            places: Addresses::default(),
            logs: AccessLogs::default(),
            workers: Vec::new(),
        };
        Reloader::new(snapshots, limits, 1, shutdown.clone(), in_force)
    }

    #[test]
    fn a_worker_that_fails_ends_the_others_and_is_the_outcome() {
        let (report, ended) = mpsc::channel();
        let (shutdown, other) = (Shutdown::new(), report.clone());
        let cut = shutdown.cut.clone();
        let failing = thread::spawn(move || {
            let _ = report.send(Ok(Err(io::Error::other("its ticker has panicked"))));
        });
        let serving = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
            runtime.block_on(cut.cancelled());
            let _ = other.send(Ok(Ok(Ended { cut: 0 })));
        });
        let server = Server {
            reloader: Arc::new(idle_reloader(&shutdown)),
            cells: Vec::new(),
            shutdown: shutdown.clone(),
            ended,
            threads: vec![failing, serving],
            control: None,
            refusals: Arc::default(),
            admin: None,
            door: None,
            metrics: None,
            webhooks: None,
            traces: None,
            statsd: None,
            membership: None,
            counts: None,
        };
        let error = server.wait().expect_err("a worker has failed");
        assert_eq!(error.to_string(), "its ticker has panicked");
        assert!(shutdown.drain.is_cancelled());
    }
}
