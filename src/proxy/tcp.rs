//! TCP targets: pick, connect (next backend on failure), relay, record.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use crate::message::{Cause, Kind, Record};
use crate::net::relay::{Early, End, Moved, Relay};
use crate::net::{Stream, now};
use crate::snapshot::Listener;
use crate::target::{Lease, Outcome, Target};

use super::WorkerCtx;
use super::dial::dial;
use super::ledger::Ledger;
use super::lend::lend;

/// Backends tried for one connection.
const ATTEMPTS: usize = 3;

/// Serves one accepted connection to its end.
pub async fn serve(ctx: Rc<WorkerCtx>, listener: &Listener, mut client: Stream, mut record: Record) {
    record.kind = Kind::Tcp;
    record.listener = listener.id;
    let mut ledger = Ledger::new(&ctx, None, record);
    let target = &ctx.snapshot.targets[listener.router.find()];
    ledger.record.target = Some(target.id);
    ledger.record.routed = now();
    let cause = match connect(&ctx, target, &mut ledger.record).await {
        Ok((lease, mut backend)) => {
            let deadline = ctx.ticker.deadline();
            let moved = Moved::default();
            let idle = target.config.timeouts.tunnel;
            let mut relay = Relay::new(Early::default(), &ctx.buffers, &deadline, idle, &moved);
            let end = poll_fn(|cx| relay.poll(cx, &mut client, &mut backend)).await;
            ledger.record.bytes_in = moved.up.get();
            ledger.record.bytes_out = moved.down.get();
            let (cause, outcome) = match end {
                End::Closed => (Cause::Done, Outcome::Success),
                End::Idle => (Cause::TunnelIdle, Outcome::Success),
                End::Client(_) => (Cause::ClientGone, Outcome::Neutral),
                End::Backend(_) => (Cause::AnswerCut, Outcome::Failed),
            };
            if matches!(end, End::Backend(_)) {
                client.reset_on_close();
            }
            if matches!(end, End::Client(_)) {
                backend.reset_on_close();
            }
            lease.finish(outcome, now());
            cause
        }
        Err(cause) => cause,
    };
    if let Some(attempt) = ledger.record.last_attempt() {
        attempt.end = now();
    }
    ledger.settle(cause);
}

async fn connect(ctx: &WorkerCtx, target: &Target, record: &mut Record) -> Result<(Lease, Stream), Cause> {
    let deadline = ctx.ticker.deadline();
    let mut tried = crate::target::Tried::new();
    let mut cause = Cause::NoBackend;
    for _ in 0..ATTEMPTS {
        let never_gone = |_: &mut std::task::Context<'_>| Poll::Pending;
        let Some(lease) = lend(target, &tried, &deadline, never_gone).await? else { break };
        let attempt = record.attempt(lease.backend().id, now());
        match dial(ctx, lease.backend(), target.config.timeouts.connect, &deadline, never_gone).await {
            Ok(stream) => {
                attempt.connected = now();
                return Ok((lease, stream));
            }
            Err(failure) => {
                (attempt.outcome, attempt.end) = (failure, now());
                cause = failure;
                tried.insert(lease.backend().id);
                let local = failure == Cause::LocalShortage;
                lease.finish(if local { Outcome::Neutral } else { Outcome::ConnectFailed }, now());
                if local {
                    break;
                }
            }
        }
    }
    Err(cause)
}
