//! From an accepted connection to a backend and back.
//!
//! `worker` hands accepted connections to `http` and `tcp`, which do not know each other. What they share is here: the
//! worker's own things, getting a lease (`lend`) and a connection (`dial`, `pool`), and the recording that turns what
//! happened into a Record on every way out.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::hash::RandomState;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio_util::task::TaskTracker;

use crate::access::jwt::VerifiedTokens;
use crate::cache::QueryRule;
use crate::cache::store::CacheStore;
use crate::message::{ListenerId, TargetId};
use crate::net::prompt::Promptness;
use crate::net::wall::wall_start;
use crate::net::{FreeList, Ticker, now};
use crate::proxy::http::cached::remembered::RecentAnswers;
use crate::proxy::http::cached::scratch::CacheScratch;
use crate::snapshot::{Listener, Snapshot};
use crate::targets::{BudgetShare, Chance};
use crate::telemetry::access_log::{Handle, Names, WallStart};
use crate::telemetry::cells::Cells;
use crate::telemetry::recorder::RecorderPen;
use crate::telemetry::statsd::TimingPen;
use crate::telemetry::traces::Tracer;
use crate::tick::Tick;
use crate::tls::Proofs;

pub mod blocked;
pub mod body_pace;
pub mod client_timer;
pub mod dial;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod head_buffers;
pub mod http;
mod kept;
pub mod lend;
pub mod passed_on;
pub mod pool;
pub mod presence;
pub mod recording;
pub mod request_queue;
pub mod tcp;
pub mod tolls;
pub mod tunnels;
pub mod udp;

use blocked::BlockedClients;
use head_buffers::HeadBuffers;
use http::after::After;
use http::h1::known_lines::KnownLines;
use http::h2::space::Http2Space;
use http::job_futures::JobFutures;
use http::mirror::copy::Mirrors;
use http::routing::recent::RecentRoutes;
use http::stream_tasks::{StreamJob, StreamTasks};
use http::upstream::sessions::BackendSessions;
use pool::Pool;
use request_queue::RequestQueue;
use tunnels::Tunnels;

/// A draining worker closes a connection that has been silent for this long.
pub const DRAIN_SILENCE: Duration = Duration::from_secs(1);
/// The same where another process serves by now, and nobody waits for the end of this one: whoever closes a connection may do so just when a request is on its way,
/// and the longer it is idle the less likely that is. At most a third of the time for all.
const LEFT_SILENCE: Duration = Duration::from_secs(10);

/// What belongs to one worker and is used by all of its connections.
pub struct WorkerCtx {
    /// The config in force, as this worker has it.
    snapshot: RefCell<Arc<Snapshot>>,
    /// Its listeners by number.
    listeners: RefCell<Vec<Option<Here>>>,
    /// How often another one came.
    turns: Cell<u32>,
    /// Relay buffers.
    pub buffers: FreeList,
    /// Heads as bytes, on their way out.
    pub outgoing: HeadBuffers,
    /// Header lines that its requests of HTTP/1 had lately.
    pub known_lines: RefCell<KnownLines>,
    /// Where requests are served.
    pub job_futures: JobFutures<Rc<dyn Any>, Option<After>>,
    /// Where streams are served.
    pub stream_tasks: StreamTasks<StreamJob>,
    /// What its connections of HTTP/2 share.
    pub http2: Rc<Http2Space>,
    /// The same of connections of HTTP/2 to backends.
    pub http2_backends: Rc<Http2Space>,
    /// Those.
    pub backend_sessions: BackendSessions,
    /// Connections whose bytes only pass through, and when those end whose backend leaves.
    pub tunnels: Tunnels,
    /// Routes that its requests were on lately.
    pub recent_routes: RecentRoutes,
    /// What is stored of answers.
    pub store: Arc<CacheStore>,
    /// Proofs that names are ours, which authorities may ask for.
    pub proofs: Arc<Proofs>,
    /// Answers that it has sent from there lately.
    pub recent_answers: RecentAnswers,
    /// Memory for looking there.
    pub cache_scratch: CacheScratch,
    /// Tokens of its requests whose signatures were good lately.
    pub verified_tokens: VerifiedTokens,
    /// Who is kept out at run time.
    pub blocked: BlockedClients,
    /// Where requests wait to be begun.
    pub request_queue: RequestQueue,
    /// Tokens for attempts beyond the first, in the making, by target.
    pub budget_shares: SharesByTarget,
    /// Copies of requests, for targets that get some.
    pub mirrors: Mirrors,
    /// Chance.
    pub chance: Chance,
    /// Whether its clients send at once.
    pub promptness: Promptness,
    /// Deadlines.
    pub ticker: Rc<Ticker>,
    /// Idle connections to backends.
    pub pool: Pool,
    /// Metric cells.
    pub cells: Arc<Cells>,
    /// The access log, if there is one.
    pub log: RefCell<Option<Handle>>,
    /// Its flight recorder, if it has one.
    pub recorder: RefCell<Option<RecorderPen>>,
    /// What it traces; `None`: nothing.
    tracer: RefCell<Option<Tracer>>,
    /// Whose times it hands in; `None`: nobody's.
    timings: RefCell<Option<TimingPen>>,
    /// Which of these two is there.
    watched: Cell<Watched>,
    /// Its place among the workers.
    number: usize,
    /// Chunks may be passed on as they came; off only to show that nothing depends on it.
    pub raw_relay: bool,
    /// What a drain waits for: connections, and bodies that are read for others.
    pub unfinished: TaskTracker,
    draining: Cell<bool>,
    /// After so long without a word a connection is closed while it drains.
    drain_silence: Cell<Duration>,
    date: RefCell<Date>,
}

/// A listener as one worker's connections hold it: of the two counts the inner one is shared by all workers, and only the
/// outer one changes with each request.
pub type Here = Rc<Arc<Listener>>;

/// Puts listeners at the places of their numbers.
fn place(listeners: &mut Vec<Option<Here>>, these: &[Arc<Listener>]) {
    for listener in these {
        let place = usize::from(listener.id.0);
        if listeners.len() <= place {
            listeners.resize_with(place + 1, || None);
        }
        listeners[place] = Some(Rc::new(Arc::clone(listener)));
    }
}

/// A worker's shares of the targets' budgets, by number. One that is gone keeps its own until another has the number.
#[derive(Debug, Default)]
pub struct SharesByTarget(RefCell<Vec<BudgetShares>>);

impl SharesByTarget {
    /// Calls `use_them` with those of a target.
    #[inline]
    pub fn with<T>(&self, id: TargetId, use_them: impl FnOnce(&BudgetShares) -> T) -> T {
        let place = usize::from(id.0);
        let mut all = self.0.borrow_mut();
        if all.len() <= place {
            all.resize_with(place + 1, BudgetShares::default);
        }
        use_them(&all[place])
    }

    /// Begins anew with a number that is somebody else's.
    fn renew(&self, id: TargetId) {
        if let Some(shares) = self.0.borrow_mut().get_mut(usize::from(id.0)) {
            *shares = BudgetShares::default();
        }
    }
}

/// A worker's share of a target's budgets.
#[derive(Debug, Default)]
pub struct BudgetShares {
    /// For retries.
    pub retries: BudgetShare,
    /// For competitors of slow attempts.
    pub hedges: BudgetShare,
}

/// In nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// The value of a Date field, and from when on it is an old one.
#[derive(Default)]
struct Date {
    until: Tick,
    text: String,
}

/// What is done with requests beside what is always done: asked of each one, so it lies at hand.
#[derive(Clone, Copy, Debug)]
struct Watched {
    is_traced: bool,
    is_timed: bool,
}

impl Watched {
    /// As this config has it.
    fn by(snapshot: &Snapshot) -> Watched {
        Watched { is_traced: snapshot.tracer.is_some(), is_timed: snapshot.timings.is_some() }
    }
}

impl WorkerCtx {
    /// The things of a new worker.
    #[must_use]
    pub fn new(
        snapshot: Arc<Snapshot>,
        pool: Pool,
        cells: Arc<Cells>,
        log: Option<Handle>,
        raw_relay: bool,
        number: usize,
    ) -> Rc<WorkerCtx> {
        let (ticker, store) = (Ticker::new(), Arc::clone(&snapshot.store));
        let proofs = Arc::clone(&snapshot.proofs);
        let mut listeners = Vec::new();
        place(&mut listeners, &snapshot.listeners);
        let recorder = RefCell::new(snapshot.recorders.get(number).cloned().map(RecorderPen::new));
        let tracer = RefCell::new(snapshot.tracer.clone());
        let timings = RefCell::new(snapshot.timings.clone());
        let watched = Cell::new(Watched::by(&snapshot));
        Rc::new(WorkerCtx {
            snapshot: RefCell::new(snapshot),
            listeners: RefCell::new(listeners),
            turns: Cell::new(0),
            budget_shares: SharesByTarget::default(),
            buffers: FreeList::new(),
            outgoing: HeadBuffers::default(),
            known_lines: RefCell::default(),
            job_futures: JobFutures::default(),
            stream_tasks: StreamTasks::default(),
            http2: Rc::default(),
            http2_backends: Rc::default(),
            backend_sessions: BackendSessions::default(),
            recent_routes: RecentRoutes::default(),
            store,
            proofs,
            recent_answers: RecentAnswers::default(),
            cache_scratch: CacheScratch::default(),
            verified_tokens: VerifiedTokens::new(RandomState::new()),
            tunnels: Tunnels::new(&ticker),
            blocked: BlockedClients::default(),
            request_queue: RequestQueue::default(),
            mirrors: Mirrors::default(),
            chance: Chance::new(),
            promptness: Promptness::default(),
            ticker,
            pool,
            cells,
            log: RefCell::new(log),
            recorder,
            tracer,
            timings,
            watched,
            number,
            raw_relay,
            unfinished: TaskTracker::new(),
            draining: Cell::new(false),
            drain_silence: Cell::new(DRAIN_SILENCE),
            date: RefCell::default(),
        })
    }

    /// Lets go of what is kept for a crowd that has gone.
    pub fn trim(&self) {
        self.stream_tasks.trim();
        self.http2.trim();
        self.http2_backends.trim();
    }

    /// Calls `use_them` with what the access log calls things.
    #[inline]
    pub fn with_names<T>(&self, use_them: impl FnOnce(&Names) -> T) -> T {
        use_them(&self.snapshot.borrow().names)
    }

    /// The rules about queries that routes of the config in force have for their caches.
    pub fn with_cache_queries<T>(&self, use_them: impl FnOnce(&[QueryRule]) -> T) -> T {
        use_them(&self.snapshot.borrow().cache_queries)
    }

    /// A listener under the config in force; `None`: it has none of that number.
    #[must_use]
    pub fn here(&self, id: ListenerId) -> Option<Here> {
        self.listeners.borrow().get(usize::from(id.0)).cloned().flatten()
    }

    /// Whether connections of a listener are to finish what they do and start nothing new: the worker drains, or the listener
    /// is gone. Its number is nobody else's as long as one of its connections is there.
    #[must_use]
    pub fn is_leaving(&self, listener: ListenerId) -> bool {
        self.draining.get() || self.turns.get() > 0 && self.here(listener).is_none()
    }

    /// How often another config came: as long as this stays the same, so does everything that was looked up in it.
    #[must_use]
    #[inline]
    pub fn turns(&self) -> u32 {
        self.turns.get()
    }

    /// Makes whoever asks for the config in force panic.
    #[cfg(test)]
    pub(crate) fn break_view(&self) {
        let _kept = std::mem::ManuallyDrop::new(self.listeners.borrow_mut());
    }

    /// Goes over to another config, of which `these` listeners are new or not what they were, and `gone` are no longer there.
    /// What is under way sees nothing of it. Gives the config before, so that it ends where its end costs nobody time.
    pub fn adopt(
        &self,
        snapshot: Arc<Snapshot>,
        these: &[Arc<Listener>],
        gone: &[Arc<Listener>],
    ) -> Arc<Snapshot> {
        for &id in &snapshot.given.targets {
            self.budget_shares.renew(id);
        }
        self.cells.rates.renew(&snapshot.given.rate_limits);
        self.cells.renew(snapshot.number, &snapshot.given.counted());
        self.cells.ends.begin(now());
        self.turns.set(self.turns.get().wrapping_add(1));
        self.recorder.replace(snapshot.recorders.get(self.number).cloned().map(RecorderPen::new));
        self.tracer.replace(snapshot.tracer.clone());
        self.timings.replace(snapshot.timings.clone());
        self.watched.set(Watched::by(&snapshot));
        let mut listeners = self.listeners.borrow_mut();
        for listener in gone {
            if let Some(place) = listeners.get_mut(usize::from(listener.id.0)) {
                *place = None;
            }
        }
        place(&mut listeners, these);
        self.snapshot.replace(snapshot)
    }

    /// Connections finish what they do and start nothing new, within `patience`. `is_left`: another process serves by now, and nobody waits for the end of this one.
    pub fn drain(&self, is_left: bool, patience: Duration) {
        if is_left {
            self.drain_silence.set(LEFT_SILENCE.min(patience / 3).max(DRAIN_SILENCE));
        }
        self.draining.set(true);
        self.ticker.wake_all();
    }

    /// Lets go of idle connections to backends and idle pipes, which hold descriptors that are needed more urgently.
    pub fn spare_descriptors(&self) {
        self.pool.clear(&self.cells);
        self.buffers.pipes().clear();
        self.backend_sessions.leave_unused();
    }

    /// Requests that are being served.
    #[must_use]
    #[inline]
    pub fn requests_inside(&self) -> usize {
        self.job_futures.busy() + self.stream_tasks.busy()
    }

    /// How long a connection is silent before it is closed while the worker drains.
    #[must_use]
    pub fn drain_silence(&self) -> Duration {
        self.drain_silence.get()
    }

    /// True once the worker drains.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining.get()
    }

    /// A number for a request; unique in practice, of no meaning.
    #[must_use]
    pub fn request_id(&self) -> u128 {
        u128::from(self.chance.bits()) << 64 | u128::from(self.chance.bits())
    }

    /// Calls `use_it` with the value of a Date field for now. The text is made once per second.
    pub fn with_date<T>(&self, use_it: impl FnOnce(&[u8]) -> T) -> T {
        let now = self.ticker.reading();
        let mut date = self.date.borrow_mut();
        if now >= date.until {
            let wall = wall_start().saturating_add(now.0);
            date.until = now.after(Duration::from_nanos(SECOND - wall % SECOND));
            let whole = Duration::from_secs(wall / SECOND);
            date.text = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + whole);
        }
        use_it(date.text.as_bytes())
    }

    /// The wall clock at tick zero, for the access log.
    #[must_use]
    pub fn wall(&self) -> WallStart {
        WallStart(wall_start())
    }
}
