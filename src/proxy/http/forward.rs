//! From a request to a backend's answer: one attempt after the other.
//!
//! Here a backend is chosen, and after a failure it is decided whether another one is tried: that a backend can't be
//! connected to costs the request nothing but time; what may have been worked on is repeated only if that is harmless, and
//! within the target's budget. What an attempt does is `attempt`'s business.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::message::{BackendId, Cause, Head, HeaderField, Record};
use crate::net::now;
use crate::proxy::WorkerCtx;
use crate::proxy::lend::lend;
use crate::proxy::pool::Keep;
use crate::targets::resilience::retry::{self, Case, FailedAttempt, Next};
use crate::targets::{Ask, Backend, Lease, Pick, Target, Tried};
use crate::tick::Tick;

use super::Body;
use super::alarm::Alarm;
use super::attempt::{Failure, attempt};
use super::call::Call;
use super::edge::Edge;
use super::h1::write::About;
use super::replay::Replay;

/// A request that is forwarded, and what comes back.
pub struct Forwarding<'a, E> {
    /// The worker.
    pub ctx: &'a Rc<WorkerCtx>,
    /// Where it goes.
    pub target: &'a Target,
    /// Whom it is for.
    pub edge: &'a mut E,
    /// Its head.
    pub head: &'a Head,
    /// Its body; attempts take it with [`Forwarding::body_again`].
    pub body: &'a Body,
    /// What its backend is chosen by where the target hashes; see [`Ask::key`].
    pub key: Option<u64>,
    /// The backend that its cookie names, or to which a connection is kept for its client.
    pub pin: Option<&'a Arc<Backend>>,
    /// For whom its connection is kept afterwards.
    pub keep: Keep,
    /// The protocol it may switch to.
    pub upgrade: Option<&'a [u8]>,
    /// What the backend is told about the client.
    pub about: About<'a>,
    /// The head that comes back.
    pub answer: &'a mut Head,
    /// What happens on the way.
    pub record: &'a mut Record,
    /// What attempts have in common.
    pub effort: Effort,
}

/// What the attempts of one request have in common.
#[derive(Default)]
pub struct Effort {
    /// Where it has been without success. Most never fail, so they don't carry it about.
    been: Option<Box<Been>>,
    /// How long it may take, if that is limited.
    pub alarm: Option<Box<Alarm>>,
    /// Its body, if that has to be kept to be sent again.
    pub replay: Option<Rc<Replay>>,
}

/// Where a request has been without success.
#[derive(Default)]
struct Been {
    tried: Tried,
    /// Retries that were charged.
    charged: u8,
}

/// Nowhere yet.
static NOWHERE: Tried = Tried::new();

impl<'a, E: Edge> Forwarding<'a, E> {
    /// Counts the request for the budgets, and prepares what its attempts need.
    #[inline]
    fn begin(&mut self) {
        let (target, config) = (self.target, &self.target.config);
        let resilience = &config.resilience;
        let mut repeats = false;
        if let Some(budget_shares) = self.ctx.budget_shares.get(usize::from(target.id.0)) {
            if let Some(retries) = &resilience.retries {
                budget_shares.retries.add(retries.budget, &target.state.retries);
                repeats = true;
            }
            if let Some(hedging) = &resilience.hedging {
                budget_shares.hedges.add(hedging.budget, &target.state.hedges);
                repeats = true;
            }
        }
        self.effort.alarm = Alarm::new(&config.timeouts, &self.ctx.ticker, self.record.routed);
        if repeats && !matches!(self.body, Body::Empty) && self.is_idempotent() {
            self.effort.replay = Replay::new(self.body);
        }
    }

    /// True when doing it twice is as good as once. A change of protocol is not.
    #[must_use]
    pub fn is_idempotent(&self) -> bool {
        self.upgrade.is_none() && self.head.is_idempotent()
    }

    /// The body for another attempt; `None`: it can't be sent again.
    #[must_use]
    #[inline]
    pub fn body_again(&self) -> Option<Body> {
        match &self.effort.replay {
            None => self.body.again(),
            Some(replay) => replay.again(),
        }
    }

    /// True when another proxy repeats it.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        given_retry(self.head) > 0
    }

    /// Ready when there is no use in going on: the client has left, or time is up.
    #[inline]
    pub fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<Cause> {
        if let Some(alarm) = &self.effort.alarm
            && let Poll::Ready(cause) = alarm.poll(cx)
        {
            return Poll::Ready(cause);
        }
        self.edge.poll_gone(cx).map(|()| Cause::ClientGone)
    }

    /// What a pick at `now` goes by.
    fn ask<'t>(&self, tried: &'t Tried, now: Tick) -> Ask<'t>
    where
        'a: 't,
    {
        Ask { tried, key: self.key, pin: self.pin, chance: &self.ctx.chance, now }
    }

    /// Where it has been.
    #[must_use]
    pub fn tried(&self) -> &Tried {
        self.effort.been.as_ref().map_or(&NOWHERE, |been| &been.tried)
    }

    /// Notes that it has been, or is, at this backend: no other attempt goes there.
    pub fn note_tried(&mut self, backend: BackendId) {
        self.effort.been.get_or_insert_default().tried.insert(backend);
    }

    /// The same of the backend of its latest attempt.
    pub fn note_latest(&mut self) {
        if let Some(attempt) = self.record.last_attempt() {
            let backend = attempt.backend;
            self.note_tried(backend);
        }
    }

    /// A backend where it has not been, if there is one at once: it has waited enough.
    #[must_use]
    pub fn elsewhere(&self) -> Option<Lease> {
        match self.target.pick(&self.ask(self.tried(), now())) {
            Pick::Lease(lease) => Some(lease),
            Pick::Unknown | Pick::Full | Pick::None(_) => None,
        }
    }

    /// Whether the answer that came is one for which another backend may be tried.
    #[inline]
    fn is_wanted_elsewhere(&self) -> bool {
        let status = self.answer.status;
        let retries = &self.target.config.resilience.retries;
        status >= 400
            && retries
                .as_ref()
                .is_some_and(|retries| retries.on_statuses.iter().any(|on| on.contains(&status)))
    }
}

/// Gets an answer from one of a target's backends: its head is in `forwarding.answer`, the rest is to be had from the call. After
/// a 101 that is a tunnel.
///
/// # Errors
/// Why there is none.
pub async fn forward<E: Edge>(forwarding: &mut Forwarding<'_, E>) -> Result<Box<Call>, Cause> {
    forwarding.begin();
    // Nothing has been waited for since the target was chosen.
    let mut lease = match forwarding.target.pick(&forwarding.ask(&NOWHERE, forwarding.record.routed)) {
        Pick::Lease(lease) => lease,
        // Boxed: few requests wait, and the others must not pay for its size.
        Pick::Unknown | Pick::Full => Box::pin(wait(forwarding)).await?,
        Pick::None(cause) => return Err(cause),
    };
    loop {
        forwarding.record.attempt(lease.backend().id, lease.picked());
        if let Some(alarm) = &forwarding.effort.alarm {
            alarm.begin_attempt(lease.picked());
        }
        let failure = match attempt(forwarding, lease).await {
            Ok(call) if !forwarding.is_wanted_elsewhere() => return Ok(call),
            Ok(call) => Failure {
                cause: Cause::ErrorStatus,
                failed: FailedAttempt::Status(forwarding.answer.status),
                sent: true,
                answer: Some(call),
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
    let ask = forwarding.ask(&NOWHERE, now());
    until_over(forwarding, async |gone| lend(target, &ask, &deadline, gone).await).await
}

/// Does `work`, which ends with [`Cause::ClientGone`] when what it is given is ready, and tells why that was.
pub async fn until_over<E: Edge, T>(
    forwarding: &mut Forwarding<'_, E>,
    work: impl AsyncFnOnce(&mut dyn FnMut(&mut Context<'_>) -> Poll<()>) -> Result<T, Cause>,
) -> Result<T, Cause> {
    let over = Cell::new(Cause::ClientGone);
    let outcome = work(&mut |cx| forwarding.poll_over(cx).map(|cause| over.set(cause))).await;
    outcome.map_err(|cause| if cause == Cause::ClientGone { over.get() } else { cause })
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
        replayable: forwarding.body_again().is_some(),
        foreign: given > 0,
        made,
        charged: forwarding.effort.been.as_ref().map_or(0, |been| been.charged),
        left: forwarding.effort.alarm.as_ref().and_then(|alarm| alarm.left(now)),
    };
    let found = match retry::decide(forwarding.target.config.resilience.retries.as_ref(), &case) {
        Next::Stop => Ok(None),
        Next::AtOnce => match forwarding.elsewhere() {
            Some(lease) => Ok(Some(lease)),
            None => wait_elsewhere(forwarding).await,
        },
        Next::Charged(longest) => charge(forwarding, longest).await,
    };
    match (found, answer) {
        (Ok(Some(lease)), answer) => {
            if let Some(call) = answer {
                let now = crate::net::now();
                if let Some(attempt) = forwarding.record.last_attempt() {
                    (attempt.outcome, attempt.end) = (cause, now);
                }
                call.discard(now);
            }
            forwarding.about.retry = made.max(given);
            Ok(lease)
        }
        (_, Some(call)) => Err(Ok(call)),
        // The two may have come together.
        (Ok(None), None) if cause == Cause::AttemptTimeout && case.left == Some(Duration::ZERO) => {
            Err(Err(Cause::TotalTimeout))
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
    longest: Duration,
) -> Result<Option<Lease>, Cause> {
    let state = &forwarding.target.state;
    if !state.has_another(forwarding.tried()) || !state.retries.take(now()) {
        return Ok(None);
    }
    let length = retry::pause(longest, forwarding.ctx.chance.bits());
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

/// Which retry the request is of the proxy in front of us; 0: it is a first attempt.
fn given_retry(head: &Head) -> u8 {
    /// Digits that are read.
    const LONGEST: usize = 32;
    let number = |value: &[u8]| {
        let value = value.get(..LONGEST).unwrap_or(value);
        let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let number = std::str::from_utf8(value).ok().filter(|_| is_number)?;
        // One that is too long is large.
        Some(number.parse().unwrap_or(u8::MAX))
    };
    head.values(HeaderField::RetryAttempt).filter_map(number).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_of_another_proxy_is_known_by_its_number() {
        for (values, number) in [
            (&[][..], 0),
            (&["0"], 0),
            (&["1"], 1),
            (&["2", "7"], 7),
            (&["99999999999999999999"], 255),
            (&["-1"], 0),
            (&["+1"], 0),
            (&["x", ""], 0),
        ] {
            let mut head = Head::request("GET", "/", "x");
            values.iter().for_each(|value| head.push(b"retry-attempt", value.as_bytes()));
            assert_eq!(given_retry(&head), number, "{values:?}");
        }
    }
}
