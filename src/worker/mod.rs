//! One thread with its own runtime, its own listening sockets, pools, buffers and cells.
//!
//! Workers share nothing on the way of a request but the backends' live state. `server` starts them; they end
//! when told to drain and nothing is left, when the time for that is up, or when told to cut.

mod admission;
mod change;
mod connection;
mod connection_slot;
mod datagrams;
mod handover;
mod listen;
mod newcomer;
mod passage;
mod sender;
mod spare_memory;

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use tokio::runtime::{Builder, LocalOptions};

use crate::access::Networks;
use crate::events;
use crate::lasting::Vital;
use crate::message::Cause;
use crate::net::now;
use crate::net::wall::renew_wall;
use crate::proxy::WorkerCtx;
use crate::proxy::pool::Pool;
use crate::shutdown::Shutdown;
use crate::snapshot::{ConnectionLimits, Snapshot};
use crate::targets::Departure;
use crate::telemetry::access_log;
use crate::telemetry::cells::Cells;

use admission::Admitter;
use change::Accepting;
use spare_memory::SpareMemory;

pub use change::{Before, BlockOrder, Change, ChangeSender, Changes, Turnover, WorkerNews, changes};
pub use handover::{Ends, link};
pub use listen::{SharedSocket, Socket, SocketId, SocketKind};

/// How often pools are swept.
const SWEEP: Duration = Duration::from_secs(1);
/// How long before the end of a shutdown those are told that can be told.
const FAREWELL: Duration = Duration::from_secs(2);
/// How often access records are handed to the writer.
const FLUSH: Duration = Duration::from_millis(250);

/// Everything a worker is started with.
pub struct WorkerPlan {
    /// The config in force.
    pub snapshot: Arc<Snapshot>,
    /// Networks that are blocked from its first connection on.
    pub blocked: Arc<Networks>,
    /// Its listening sockets.
    pub sockets: Vec<Socket>,
    /// Its metric cells.
    pub cells: Arc<Cells>,
    /// Its end of the access log.
    pub log: Option<access_log::Handle>,
    /// The process's counter of idle upstream connections.
    pub idle_total: Arc<AtomicU32>,
    /// The limits of client connections, and what counts against them.
    pub limits: Arc<ConnectionLimits>,
    /// By which it gives connections to other workers, and they to it.
    pub ends: Ends,
    /// How it is told of another config.
    pub changes: Changes,
    /// How it is told to end.
    pub shutdown: Shutdown,
    /// How long draining may take.
    pub patience: Duration,
    /// See [`WorkerCtx::raw_relay`].
    pub raw_relay: bool,
    /// Its place among the workers.
    pub number: usize,
}

/// How a worker ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Requests, tunnels and TCP connections that were cut. Each has a record with cause `shutdown`; a
    /// connection on which nothing was under way is closed without being counted.
    pub cut: u64,
}

/// Runs a worker on the calling thread until it ends.
///
/// # Errors
/// The runtime or a listening socket can't be set up, or a task has ended without which the worker is of no use.
pub fn run(plan: WorkerPlan) -> io::Result<Ended> {
    let WorkerPlan { snapshot, sockets, cells, log, idle_total, limits, ends, changes, .. } = plan;
    let (shutdown, patience, raw_relay) = (plan.shutdown, plan.patience, plan.raw_relay);
    let (blocked, number) = (plan.blocked, plan.number);
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
    let outcome = runtime.block_on(async {
        let ctx = WorkerCtx::new(snapshot, Pool::new(idle_total), Arc::clone(&cells), log, raw_relay, number);
        ctx.blocked.replace(blocked);
        serve(&ctx, sockets, limits, ends, changes, &shutdown, patience).await
    });
    // Drops every task that is left; each leaves its record as cut. The last one to go lets go of the access
    // log, which hands over its lines.
    drop(runtime);
    outcome.map(|before| Ended { cut: cells.ended_with(Cause::Shutdown) - before })
}

/// Serves until told to end. Gives how many had been cut by then: those of listeners that were gone long before.
async fn serve(
    ctx: &Rc<WorkerCtx>,
    sockets: Vec<Socket>,
    limits: Arc<ConnectionLimits>,
    ends: Ends,
    mut changes: Changes,
    shutdown: &Shutdown,
    mut patience: Duration,
) -> io::Result<u64> {
    let tracker = ctx.unfinished.clone();
    // These never end.
    let mut lasting = Vital::default();
    let ticker = Rc::clone(&ctx.ticker);
    lasting.spawn("ticker", async move { ticker.run().await });
    lasting.spawn("housekeeping", housekeep(Rc::clone(ctx)));
    let gate = Rc::clone(ctx);
    lasting.spawn("request queue", async move { gate.request_queue.let_in().await });
    // And these when the worker drains.
    let mut accepting = Vital::default();
    let admitter = Admitter::new(Rc::clone(ctx), Arc::clone(&limits), tracker.clone());
    let Ends { neighbours, mut mailbox } = ends;
    let mut loops = Accepting::new(ctx, (&admitter, &limits), neighbours);
    for socket in sockets {
        loops.begin(socket, &mut accepting)?;
    }
    let drain = shutdown.drain.clone();
    accepting.spawn("mailbox", async move {
        while let Some(handed) = mailbox.next().await {
            if let Err(error) = admitter.admit(handed.connection) {
                events::handed_over_in_vain(&error);
            }
        }
        // Others may have seen the drain before, and a single worker has nobody who hands over.
        drain.cancelled().await;
    });

    loop {
        let change = tokio::select! {
            // With the drain the mailbox may end at once.
            biased;
            () = shutdown.drain.cancelled() => break,
            error = lasting.ended() => return Err(error),
            error = accepting.ended() => return Err(error),
            change = changes.next() => change,
        };
        match change {
            WorkerNews::Change(change) => {
                patience = change.patience;
                loops.change(*change, &mut accepting)?;
            }
            WorkerNews::Departing(backends) => ctx.tunnels.look(&backends),
            WorkerNews::Blocked(order) => loops.block(order),
            WorkerNews::Sockets(wanted) => {
                // Whoever asked may have gone.
                let _ = wanted.send(loops.sockets());
            }
        }
    }
    let before = ctx.cells.ended_with(Cause::Shutdown);
    // Whoever still says something is not to wait for an answer.
    drop(changes);
    loops.leave_lent();
    if shutdown.succeeded.is_cancelled() {
        loops.leave();
    }
    // From here on only accept loops hold the neighbours, and the others' mailboxes end when those have.
    drop(loops);
    ctx.drain(shutdown.succeeded.is_cancelled(), patience);
    let farewell = FAREWELL.min(patience / 4);
    if !farewell.is_zero() {
        ctx.tunnels.end_all(Departure { since: now().after(patience - farewell), window: farewell });
    }
    let finish = async {
        accepting.finish().await?;
        tracker.close();
        tracker.wait().await;
        Ok(())
    };
    let outcome = tokio::select! {
        done = finish => done,
        error = lasting.ended() => Err(error),
        () = tokio::time::sleep(patience) => Ok(()),
        () = shutdown.cut.cancelled() => Ok(()),
    };
    ctx.pool.clear(&ctx.cells);
    ctx.backend_sessions.leave();
    // Their tasks say so in their next turn.
    for _ in 0..2 {
        tokio::task::yield_now().await;
    }
    outcome.map(|()| before)
}

/// The variable that names a file: while it is there, workers stand still. Only builds with debug assertions look at it.
const STUCK: &str = "EVENKEEL_STUCK_WHILE";

/// Where a test wants to see what becomes of a worker that is stuck.
#[expect(clippy::disallowed_methods, reason = "to block the worker is what it is for")]
fn stand_still() {
    if cfg!(debug_assertions)
        && let Some(file) = std::env::var_os(STUCK)
    {
        while std::path::Path::new(&file).exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

async fn housekeep(ctx: Rc<WorkerCtx>) {
    let (mut turn, mut memory) = (0u32, SpareMemory::default());
    loop {
        let due = now().after(FLUSH);
        tokio::time::sleep(FLUSH).await;
        stand_still();
        ctx.cells.lateness.record(now().0.saturating_sub(due.0));
        renew_wall(now());
        if let Some(log) = ctx.log.borrow_mut().as_mut() {
            log.tick(now());
        }
        let open = usize::try_from(ctx.cells.connections.open.value()).unwrap_or(0);
        if memory.look(open + ctx.requests_inside()) {
            ctx.trim();
            // Tasks that are to end do so in their next turn: before that nothing is free.
            for _ in 0..2 {
                tokio::task::yield_now().await;
            }
            spare_memory::give_back();
        }
        turn = turn.wrapping_add(1);
        if u128::from(turn) % (SWEEP.as_millis() / FLUSH.as_millis()) == 0 {
            ctx.pool.sweep(&ctx.cells, now());
            ctx.backend_sessions.sweep();
        }
    }
}

#[cfg(test)]
mod tests;
