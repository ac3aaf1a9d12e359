//! TCP targets: pick, connect (next backend on failure), relay, record.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use crate::message::{Cause, Kind, Peer, Record};
use crate::net::relay::{Early, End, Moved, Relay};
use crate::net::{Stream, now};
use crate::target::{Ask, Heard, Lease, Outcome, Target, hash_address};

use super::WorkerCtx;
use super::dial::{self, dial};
use super::ledger::Ledger;
use super::lend::lend;

/// The two connections of a relay. One that is cut in the middle must not look as if it had ended.
struct Ends {
    client: Stream,
    backend: Stream,
    ended: bool,
}

impl Drop for Ends {
    fn drop(&mut self) {
        if !self.ended {
            self.client.reset_on_close();
            self.backend.reset_on_close();
        }
    }
}

/// Serves one accepted connection to its end.
pub async fn serve(ctx: Rc<WorkerCtx>, client: Stream, peer: Peer) {
    let listener = &ctx.snapshot.listeners[usize::from(peer.listener.0)];
    let moved = Moved::default();
    let mut record = Record { kind: Kind::Tcp, ..peer.record() };
    let mut ledger = Ledger::new(&ctx, None, &mut record);
    ledger.count(&moved);
    let target = &ctx.snapshot.targets[listener.router.find()];
    ledger.record.target = Some(target.id);
    ledger.record.routed = now();
    let cause = match connect(&ctx, target, ledger.record).await {
        Ok((lease, backend)) => {
            let mut ends = Ends { client, backend, ended: false };
            let deadline = ctx.ticker.deadline();
            let idle = target.config.timeouts.tunnel;
            let mut relay = Relay::new(Early::default(), &ctx.buffers, &deadline, idle, &moved);
            let end = poll_fn(|cx| relay.poll(cx, &mut ends.client, &mut ends.backend)).await;
            ends.ended = matches!(end, End::Closed | End::Idle);
            let silent = moved.down.get() == 0;
            if !silent {
                dial::accepted(lease.backend());
            }
            let (cause, outcome) = match end {
                End::Closed => (Cause::Done, Outcome::Success),
                End::Idle => (Cause::TunnelIdle, Outcome::Success),
                End::Client(_) => (Cause::ClientGone, Outcome::Neutral),
                End::Backend(error) => {
                    // Behind its first byte an alert says nothing about the handshake.
                    let refusal = if silent { dial::refusal(lease.backend(), &error) } else { None };
                    match refusal {
                        Some(cause) => (cause, Outcome::ConnectFailed),
                        None => (Cause::AnswerCut, Outcome::Failed),
                    }
                }
            };
            if let Some(attempt) = ledger.record.last_attempt() {
                attempt.outcome = cause;
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
    let is_hash = target.config.balance.algorithm.is_hash();
    let key = record.client.filter(|_| is_hash).map(|client| hash_address(client.ip));
    // Not a byte was sent before a connection stands, so nothing is charged.
    let retries = target.config.resilience.retries.as_ref().filter(|retries| retries.on_connect);
    for _ in 0..retries.map_or(1, |retries| retries.attempts) {
        let never_gone = |_: &mut std::task::Context<'_>| Poll::Pending;
        let ask = Ask { key, ..Ask::new(&tried, &ctx.dice, now()) };
        let lease = match lend(target, &ask, &deadline, never_gone).await {
            Ok(lease) => lease,
            // Why the backends that were tried failed says more.
            Err(_) if !tried.is_empty() => break,
            Err(cause) => return Err(cause),
        };
        let attempt = record.attempt(lease.backend().id, lease.picked());
        match dial(ctx, lease.backend(), &target.config.timeouts, &deadline, never_gone).await {
            Ok(stream) => {
                attempt.connected = now();
                lease.note_connected();
                lease.note_answer(Heard::GOOD, attempt.connected);
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
