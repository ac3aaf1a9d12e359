//! From a request to a backend's answer: one attempt after the other.
//!
//! Here a backend is chosen, and after a failure it is decided whether another one is tried: that a backend can't be
//! connected to costs the request nothing but time; what may have been worked on is repeated only if that is harmless, and
//! within the target's budget. What an attempt does is `attempt`'s business.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use crate::message::{Cause, PickNote, grpc};
use crate::net::now;
use crate::proxy::lend::lend;
use crate::targets::resilience::retry::{self, Case, Next};
use crate::targets::{Lease, Pick};

pub mod alarm;
pub mod attempt;
pub mod failure;
pub mod forwarding;
pub mod hedge;
pub mod outgoing;

use attempt::attempt;
use failure::Failure;
use forwarding::{Forwarding, NOWHERE, given_retry, until_over};

use super::call::Call;
use super::edge::Edge;

/// Gets an answer from one of a target's backends: its head is in `forwarding.answer`, the rest is to be had from the call. After
/// a 101 that is a tunnel.
///
/// # Errors
/// Why there is none.
pub async fn forward<E: Edge>(forwarding: &mut Forwarding<'_, E>) -> Result<Box<Call>, Cause> {
    forwarding.begin()?;
    let mut lease = match forwarding.target.pick(&forwarding.ask(&NOWHERE, forwarding.ready)) {
        Pick::Lease(lease) => lease,
        // Boxed: few requests wait, and the others must not pay for its size.
        Pick::Unknown | Pick::Full => Box::pin(wait(forwarding)).await?,
        Pick::None(cause) => return Err(cause),
    };
    loop {
        let pick = PickNote::new(lease.backend().taken(), lease.is_trial());
        forwarding.record.attempt(lease.backend().id, lease.picked()).pick = pick;
        if let Some(alarm) = &forwarding.effort.alarm {
            alarm.begin_attempt(lease.picked());
        }
        let failure = match attempt(forwarding, lease).await {
            Ok(call) => match forwarding.unwanted() {
                None => {
                    if let Some(replay) = &forwarding.effort.replay {
                        replay.settle();
                    }
                    return Ok(call);
                }
                Some(failed) => Failure { cause: Cause::ErrorStatus, failed, sent: true, answer: Some(call) },
            },
            Err(failure) => failure,
        };
        // Boxed as well.
        lease = match Box::pin(again(forwarding, failure)).await {
            Ok(next) => next,
            Err(outcome) => return outcome,
        };
    }
}

/// Waits for a backend: for its first verdict, or until it has room.
async fn wait<E: Edge>(forwarding: &mut Forwarding<'_, E>) -> Result<Lease, Cause> {
    let target = forwarding.target;
    let deadline = forwarding.ctx.ticker.deadline();
    let now = now();
    forwarding.record.waited = now;
    let ask = forwarding.ask(&NOWHERE, now);
    until_over(forwarding, async |gone| lend(target, &ask, &deadline, gone).await).await
}

/// What comes after a failed attempt: a lease for another one, or the outcome. An answer that is not wanted is given up only
/// when there is a backend that may give another one: else it is what the client gets.
async fn again<E: Edge>(
    forwarding: &mut Forwarding<'_, E>,
    failure: Failure,
) -> Result<Lease, Result<Box<Call>, Cause>> {
    let Failure { cause, failed, sent, answer } = failure;
    forwarding.note_latest();
    let now = now();
    if answer.is_none()
        && let Some(attempt) = forwarding.record.last_attempt()
    {
        (attempt.outcome, attempt.end) = (cause, now);
    }
    let given = given_retry(forwarding.head);
    let made = forwarding.record.attempts_made;
    let case = Case {
        failed,
        sent,
        idempotent: forwarding.is_idempotent(),
        is_call: forwarding.effort.is_call,
        pushback: if answer.is_some() { grpc::pushback_of(forwarding.answer) } else { None },
        replayable: forwarding.body_again().is_some(),
        foreign: given > 0,
        made,
        charged: forwarding.effort.been.as_ref().map_or(0, |been| been.charged),
        left: forwarding.effort.alarm.as_ref().and_then(|alarm| alarm.left(now)),
    };
    let found = match retry::decide(forwarding.rules.retries.as_ref(), &case) {
        Next::Stop => Ok(None),
        Next::AtOnce => match forwarding.elsewhere() {
            Some(lease) => Ok(Some(lease)),
            None => wait_elsewhere(forwarding).await,
        },
        Next::Charged(longest) => {
            let length = retry::pause(longest, forwarding.ctx.chance.bits());
            charge(forwarding, length).await
        }
        Next::ChargedAfter(length) => charge(forwarding, length).await,
    };
    match (found, answer) {
        (Ok(Some(lease)), answer) => {
            if let Some(call) = answer {
                // Its answer was kept until there was somebody who may give another one.
                if let Some(attempt) = forwarding.record.last_attempt() {
                    (attempt.outcome, attempt.end) = (cause, lease.picked());
                }
                call.discard(crate::net::now());
            }
            forwarding.about.retry = made.max(given);
            Ok(lease)
        }
        (_, Some(call)) => Err(Ok(call)),
        // The two may have come together.
        (Ok(None), None) if cause == Cause::AttemptTimeout && case.left == Some(Duration::ZERO) => {
            Err(Err(forwarding.effort.alarm.as_ref().map_or(Cause::TotalTimeout, |alarm| alarm.over())))
        }
        (Ok(None), None) => Err(Err(cause)),
        (Err(over), None) => Err(Err(over)),
    }
}

/// Waits, with a request of which nothing was sent, for a backend where it has not been, if those have no room; `None`: there is
/// none, or not in time, and why the attempt failed says more.
///
/// # Errors
/// The client has left, or time is up.
async fn wait_elsewhere<E: Edge>(forwarding: &mut Forwarding<'_, E>) -> Result<Option<Lease>, Cause> {
    if let Some(alarm) = &forwarding.effort.alarm {
        alarm.begin_wait();
    }
    let target = forwarding.target;
    let deadline = forwarding.ctx.ticker.deadline();
    let tried = *forwarding.tried();
    let ask = forwarding.ask(&tried, now());
    let lent = until_over(forwarding, async |gone| match lend(target, &ask, &deadline, gone).await {
        Err(Cause::ClientGone) => Err(Cause::ClientGone),
        lent => Ok(lent.ok()),
    });
    lent.await
}

/// Takes a token and pauses, then looks for another backend; `None`: there is no token, or nobody else.
///
/// # Errors
/// The client has left, or time is up.
async fn charge<E: Edge>(
    forwarding: &mut Forwarding<'_, E>,
    length: Duration,
) -> Result<Option<Lease>, Cause> {
    let state = &forwarding.target.state;
    if !state.has_another(forwarding.tried()) || !state.retries.take(now()) {
        return Ok(None);
    }
    let lease = pause(forwarding, length).await.map(|()| forwarding.elsewhere());
    if let Ok(Some(_)) = &lease {
        forwarding.effort.been.get_or_insert_default().charged += 1;
    } else {
        state.retries.put();
    }
    lease
}

async fn pause<E: Edge>(forwarding: &mut Forwarding<'_, E>, length: Duration) -> Result<(), Cause> {
    if let Some(alarm) = &forwarding.effort.alarm {
        alarm.begin_wait();
    }
    // The worker's own deadlines are too coarse for it.
    let mut end = pin!(tokio::time::sleep(length));
    poll_fn(|cx| {
        if end.as_mut().poll(cx).is_ready() { Poll::Ready(Ok(())) } else { forwarding.poll_over(cx).map(Err) }
    })
    .await
}
