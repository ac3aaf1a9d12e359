//! The composition root: binds, starts workers and probes, hands out addresses, waits for the end.

mod bound;
mod refusals;

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, SystemTime};

use tokio::runtime::Runtime;

pub use bound::{Bound, StartError};

use crate::config::model::{Bind, Config};
use crate::events;
use crate::lasting::again;
use crate::net::holder;
use crate::net::{now, socket};
use crate::probe;
use crate::shutdown::Shutdown;
use crate::snapshot::Snapshot;
use crate::targets::{Registry, Target};
use crate::telemetry::access_log::{AccessLogWriter, Rotation};
use crate::telemetry::cells::{Cells, Readings};
use crate::tls::{ROTATION, Tickets};
use crate::worker::{self, ConnectionLimits, Ended, Socket, SocketKind, WorkerPlan};
use refusals::{LOOK, Refusals};

/// Descriptors kept for everything that is not a client or its backend.
const HEADROOM: u64 = 200;
/// How long the access log may take to write its rest.
const LAST_LINES: Duration = Duration::from_secs(2);

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
    bound: Vec<(String, Bound)>,
    snapshot: Arc<Snapshot>,
    cells: Vec<Arc<Cells>>,
    shutdown: Shutdown,
    ended: mpsc::Receiver<thread::Result<io::Result<Ended>>>,
    threads: Vec<thread::JoinHandle<()>>,
    control: Option<Runtime>,
    log: Option<AccessLogWriter>,
    limits: Arc<ConnectionLimits>,
    files: SocketFiles,
    refusals: Arc<Mutex<Refusals>>,
}

/// Unix sockets that were bound; their files are removed on drop, also when the start fails half-way.
#[derive(Default)]
struct SocketFiles(Vec<(PathBuf, FileIdentity)>);

/// Which file stands at a path: device, number, and the time it was made, since numbers are used again. A
/// change of owner or mode changes none of them.
type FileIdentity = (u64, u64, i64, i64);

fn identify(path: &Path) -> io::Result<FileIdentity> {
    let file = std::fs::symlink_metadata(path)?;
    Ok((file.dev(), file.ino(), file.mtime(), file.mtime_nsec()))
}

impl Drop for SocketFiles {
    fn drop(&mut self) {
        for (path, ours) in &self.0 {
            // While we drained a successor may have put its own there.
            if identify(path).is_ok_and(|found| found == *ours) {
                // Somebody may have removed it in between.
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

impl Server {
    /// Binds everything, then starts; any failure leaves nothing behind.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn start(config: &Config, options: Options) -> Result<Server, StartError> {
        let descriptors = socket::raise_descriptor_limit().unwrap_or(1024);
        let affordable =
            usize::try_from(descriptors.saturating_sub(HEADROOM) / 2).unwrap_or(usize::MAX).max(1);
        let limits = config.listeners.iter().map(|listener| &listener.limits);
        let limits = ConnectionLimits::new(config.max_connections.unwrap_or(affordable), limits);
        events::descriptor_budget(
            descriptors,
            limits.limit(),
            config.workers,
            config.max_connections.is_some(),
        );
        if limits.limit() > affordable {
            events::descriptors_short(affordable);
        }
        warn_of_small_backlog();
        warn_of_unverified_backends(config);
        warn_of_made_keys(config);
        warn_of_expiry(config);

        let registry = Registry::new();
        let tickets = Arc::new(Tickets::default());
        let snapshot = Arc::new(Snapshot::new(config, &registry, &tickets));
        let mut files = SocketFiles::default();
        let (bound, mut sockets) = bind(config, &mut files)?;
        let log = config
            .access_log
            .as_ref()
            .map(AccessLogWriter::start)
            .transpose()
            .map_err(StartError::AccessLog)?;
        let control = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("evenkeel-control")
            .enable_all()
            .build()?;
        let shutdown = Shutdown::new();
        let idle_total = Arc::new(AtomicU32::new(0));
        let (report, ended) = mpsc::channel();
        let mut server = Server {
            bound,
            snapshot: Arc::clone(&snapshot),
            cells: Vec::new(),
            shutdown: shutdown.clone(),
            ended,
            threads: Vec::new(),
            control: Some(control),
            log,
            limits: Arc::clone(&limits),
            files,
            refusals: Arc::default(),
        };
        server.start_probes();
        server.start_rotation(tickets);
        server.cells.extend(std::iter::repeat_with(Arc::default).take(config.workers));
        server.start_refusals();
        let ends = worker::link(&server.cells);
        for ((index, ends), cells) in ends.into_iter().enumerate().zip(server.cells.clone()) {
            let plan = WorkerPlan {
                snapshot: Arc::clone(&snapshot),
                sockets: sockets.pop().unwrap_or_default(),
                log: server.log.as_ref().map(|log| log.handle(Arc::clone(&cells))),
                cells,
                idle_total: Arc::clone(&idle_total),
                limits: Arc::clone(&limits),
                ends,
                shutdown: shutdown.clone(),
                patience: config.shutdown_timeout,
                raw_relay: options.raw_relay,
            };
            let report = report.clone();
            let thread = thread::Builder::new().name(format!("evenkeel-{index}")).spawn(move || {
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
        for (listener, address) in &self.bound {
            let socket = match address {
                Bound::Tcp(socket) => Some(*socket),
                Bound::Unix(_) => None,
            };
            events::listening(listener, address, socket);
        }
    }

    fn start_probes(&self) {
        let Some(control) = &self.control else { return };
        let _inside = control.enter();
        let mut probes = probe::start(&self.snapshot.targets, now, &self.shutdown.cut);
        control.spawn(async move { while probes.join_next().await.is_some() {} });
    }

    fn start_refusals(&self) {
        let Some(control) = &self.control else { return };
        let cells = self.cells.clone();
        let refusals = Arc::clone(&self.refusals);
        let look = async move || {
            let mut looks = tokio::time::interval(LOOK);
            loop {
                looks.tick().await;
                refusals.lock().unwrap_or_else(PoisonError::into_inner).look(&cells, now(), false);
            }
        };
        control.spawn(again("counting refusals", look));
    }

    fn start_rotation(&self, tickets: Arc<Tickets>) {
        let Some(control) = &self.control else { return };
        let rotate = async move || {
            let mut turns = tokio::time::interval(ROTATION);
            // The first turn is due at once.
            turns.tick().await;
            loop {
                turns.tick().await;
                tickets.rotate();
            }
        };
        control.spawn(again("replacing ticket keys", rotate));
    }

    /// Listener names with the addresses that were bound, in config order.
    #[must_use]
    pub fn bound(&self) -> &[(String, Bound)] {
        &self.bound
    }

    /// The targets in force, with their live state.
    #[must_use]
    pub fn targets(&self) -> &[Arc<Target>] {
        &self.snapshot.targets
    }

    /// What all workers have counted so far.
    #[must_use]
    pub fn readings(&self) -> Readings {
        let mut readings = Readings::sum(&self.cells);
        readings.access_dropped += self.log.as_ref().map_or(0, AccessLogWriter::unwritten);
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
        self.limits.taken()
    }

    /// The signals by which it ends; [`Shutdown::advance`] is the next step.
    #[must_use]
    pub fn shutdown(&self) -> Shutdown {
        self.shutdown.clone()
    }

    /// How to reopen the access log's file; `None`: there is no file.
    #[must_use]
    pub fn log_rotation(&self) -> Option<Rotation> {
        self.log.as_ref().and_then(AccessLogWriter::rotation)
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
        if let Some(control) = self.control.take() {
            control.shutdown_background();
            self.refusals.lock().unwrap_or_else(PoisonError::into_inner).look(&self.cells, now(), true);
        }
        if let Some(log) = self.log.take()
            && let Err(error) = log.close(LAST_LINES)
        {
            events::access_log_failed("the last lines were not taken", &error);
        }
        drop(std::mem::take(&mut self.files));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.finish();
    }
}

type Everything = (Vec<(String, Bound)>, Vec<Vec<Socket>>);

/// Binds every address once per worker.
fn bind(config: &Config, files: &mut SocketFiles) -> Result<Everything, StartError> {
    let mut bound = Vec::new();
    let mut sockets: Vec<Vec<Socket>> = std::iter::repeat_with(Vec::new).take(config.workers).collect();
    for (index, listener) in config.listeners.iter().enumerate() {
        for bind in &listener.binds {
            let (name, result) = match bind {
                Bind::Tcp(address) => (Bound::Tcp(*address), bind_tcp(*address, index, &mut sockets)),
                Bind::Unix(path) => {
                    (Bound::Unix(path.clone()), bind_unix(path.clone(), index, &mut sockets, files))
                }
            };
            match result {
                Ok(address) => bound.push((listener.name.clone(), address)),
                Err(error) => {
                    let holder = match &name {
                        Bound::Tcp(address) if error.kind() == io::ErrorKind::AddrInUse => {
                            holder::of(*address)
                        }
                        Bound::Tcp(_) | Bound::Unix(_) => None,
                    };
                    let listener = listener.name.clone();
                    return Err(StartError::Bind { listener, address: name, error, holder });
                }
            }
        }
    }
    Ok((bound, sockets))
}

fn bind_tcp(address: SocketAddr, listener: usize, sockets: &mut [Vec<Socket>]) -> io::Result<Bound> {
    let (_claim, address) = socket::claim(address)?;
    for of_worker in sockets {
        of_worker.push(Socket { listener, kind: SocketKind::Tcp(socket::listen(address)?) });
    }
    Ok(Bound::Tcp(address))
}

fn bind_unix(
    path: PathBuf,
    listener: usize,
    sockets: &mut [Vec<Socket>],
    files: &mut SocketFiles,
) -> io::Result<Bound> {
    let socket = socket::listen_unix(&path)?;
    files.0.push((path.clone(), identify(&path)?));
    for of_worker in sockets {
        of_worker.push(Socket { listener, kind: SocketKind::Unix(socket.try_clone()?) });
    }
    Ok(Bound::Unix(path))
}

fn warn_of_expiry(config: &Config) {
    let now = SystemTime::now();
    for (owner, identity) in config.expiring(now) {
        events::certificate_expires(owner, &identity.file, identity.days_left(now));
    }
}

fn warn_of_small_backlog() {
    let read = std::fs::read_to_string("/proc/sys/net/core/somaxconn");
    if let Some(most) = read.ok().and_then(|text| text.trim().parse::<i32>().ok())
        && most < socket::BACKLOG
    {
        events::backlog_capped(most, socket::BACKLOG);
    }
}

fn warn_of_unverified_backends(config: &Config) {
    for target in config.unverified() {
        events::upstream_unverified(target);
    }
}

fn warn_of_made_keys(config: &Config) {
    for target in config.fleeting() {
        events::sticky_key_made(target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            bound: Vec::new(),
            snapshot: Arc::clone(&crate::proxy::fixtures::context().snapshot),
            cells: Vec::new(),
            shutdown: shutdown.clone(),
            ended,
            threads: vec![failing, serving],
            control: None,
            log: None,
            limits: ConnectionLimits::new(1, []),
            files: SocketFiles::default(),
            refusals: Arc::default(),
        };
        let error = server.wait().expect_err("a worker has failed");
        assert_eq!(error.to_string(), "its ticker has panicked");
        assert!(shutdown.drain.is_cancelled());
    }
}
