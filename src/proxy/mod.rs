//! From an accepted connection to a backend and back.
//!
//! `worker` hands accepted connections to `http` and `tcp`, which do not know each other. What they share is here: the
//! worker's own things, getting a lease (`lend`) and a connection (`dial`, `pool`), and the recording that turns what
//! happened into a Record on every way out.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::net::prompt::Promptness;
use crate::net::wall::wall_start;
use crate::net::{FreeList, Ticker};
use crate::snapshot::Snapshot;
use crate::targets::{BudgetShare, Chance};
use crate::telemetry::access_log::{Handle, WallStart};
use crate::telemetry::cells::Cells;
use crate::tick::Tick;

pub mod client_timer;
pub mod dial;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod head_buffers;
pub mod http;
pub mod lend;
pub mod pool;
pub mod presence;
pub mod recording;
pub mod request_queue;
pub mod tcp;

use head_buffers::HeadBuffers;
use http::job_futures::JobFutures;
use pool::Pool;
use request_queue::RequestQueue;

/// What belongs to one worker and is used by all of its connections.
pub struct WorkerCtx {
    /// The config in force.
    pub snapshot: Arc<Snapshot>,
    /// Relay buffers.
    pub buffers: FreeList,
    /// Heads as bytes, on their way out.
    pub outgoing: HeadBuffers,
    /// Where requests are served.
    pub job_futures: JobFutures,
    /// Where requests wait to be begun.
    pub request_queue: RequestQueue,
    /// Tokens for attempts beyond the first, in the making, by [`TargetId`](crate::message::TargetId).
    pub budget_shares: Box<[BudgetShares]>,
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
    /// Chunks may be passed on as they came; off only to show that nothing depends on it.
    pub raw_relay: bool,
    draining: Cell<bool>,
    date: RefCell<Date>,
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

impl WorkerCtx {
    /// The things of a new worker.
    #[must_use]
    pub fn new(
        snapshot: Arc<Snapshot>,
        pool: Pool,
        cells: Arc<Cells>,
        log: Option<Handle>,
        raw_relay: bool,
    ) -> Rc<WorkerCtx> {
        let budget_shares = snapshot.targets.iter().map(|_| BudgetShares::default()).collect();
        Rc::new(WorkerCtx {
            snapshot,
            budget_shares,
            buffers: FreeList::new(),
            outgoing: HeadBuffers::default(),
            job_futures: JobFutures::default(),
            request_queue: RequestQueue::default(),
            chance: Chance::new(),
            promptness: Promptness::default(),
            ticker: Ticker::new(),
            pool,
            cells,
            log: RefCell::new(log),
            raw_relay,
            draining: Cell::new(false),
            date: RefCell::default(),
        })
    }

    /// Connections finish what they do and start nothing new.
    pub fn drain(&self) {
        self.draining.set(true);
        self.ticker.wake_all();
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
