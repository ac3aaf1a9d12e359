//! A request that is forwarded: what its attempts have in common, and what each of them asks of it.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::config::model::{GrpcStatus, GrpcStatuses, HostHeader, SendProxy};
use crate::message::{ATTEMPTS, BackendId, Cause, Framing, Head, HeaderField, Record, grpc};
use crate::net::now;
use crate::proxy::WorkerCtx;
use crate::proxy::http::call::{Call, CallTerms, CallWay, Patience};
use crate::proxy::http::edge::Edge;
use crate::proxy::http::h1::edit::RequestEdits;
use crate::proxy::http::h1::write::{About, Host};
use crate::proxy::http::request_body::RequestBody;
use crate::proxy::http::request_body::replay::Replay;
use crate::proxy::passed_on::Passing;
use crate::proxy::pool::{Keep, Need};
use crate::snapshot::RequestRules;
use crate::targets::resilience::retry::FailedAttempt;
use crate::targets::{Ask, Backend, Lease, Pick, Target, Tried};
use crate::telemetry::traces::attempt_span;
use crate::tick::Tick;

use super::alarm::Alarm;
use super::outgoing::OutgoingHead;

/// A request that is forwarded, and what comes back.
pub struct Forwarding<'a, E> {
    /// The worker.
    pub ctx: &'a Rc<WorkerCtx>,
    /// Where it goes.
    pub target: &'a Target,
    /// What holds for it there.
    pub rules: &'a RequestRules,
    /// Whom it is for.
    pub edge: &'a mut E,
    /// Its head.
    pub head: &'a Head,
    /// Its body; attempts take it with [`Forwarding::body_again`].
    pub body: &'a RequestBody,
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
    /// What its route changes about its lines, for every attempt alike.
    pub edits: Option<RequestEdits<'a>>,
    /// The head that comes back.
    pub answer: &'a mut Head,
    /// What happens on the way.
    pub record: &'a mut Record,
    /// Since then nothing was waited for.
    pub ready: Tick,
    /// What attempts have in common.
    pub effort: Effort,
}

/// What the attempts of one request have in common.
#[derive(Default)]
pub struct Effort {
    /// Its attempts are no spans of their own.
    has_one_span: bool,
    /// It goes out once at most: on no connection that may turn out to be closed.
    pub is_once: bool,
    /// It is a call of gRPC, and its target speaks that.
    pub is_call: bool,
    /// Where it has been without success. Most never fail, so they don't carry it about.
    pub(super) been: Option<Box<Been>>,
    /// How long it may take, if that is limited.
    pub alarm: Option<Box<Alarm>>,
    /// Its body, if that has to be kept to be sent again.
    pub replay: Option<Rc<Replay>>,
}

impl Effort {
    /// That of a question of our own, which is one span in the trace of the request that it is about.
    #[must_use]
    pub fn of_question() -> Effort {
        Effort { has_one_span: true, ..Effort::default() }
    }
}

/// Where a request has been without success.
#[derive(Default)]
pub(super) struct Been {
    pub(super) tried: Tried,
    /// Retries that were charged.
    pub(super) charged: u8,
}

/// Nowhere yet.
pub(super) static NOWHERE: Tried = Tried::new();

impl<'a, E: Edge> Forwarding<'a, E> {
    /// Counts the request for the budgets, and prepares what its attempts need.
    #[inline]
    ///
    /// # Errors
    /// Its time is over before anything was done for it.
    pub(super) fn begin(&mut self) -> Result<(), Cause> {
        let target = self.target;
        let (retries, hedging) = (&self.rules.retries, &target.config.resilience.hedging);
        let repeats = retries.is_some() || hedging.is_some();
        if repeats {
            self.ctx.budget_shares.with(target.id, |shares| {
                if let Some(retries) = retries {
                    shares.retries.add(retries.budget, &target.state.retries);
                }
                if let Some(hedging) = hedging {
                    shares.hedges.add(hedging.budget, &target.state.hedges);
                }
            });
        }
        let mut due = Tick::NEVER;
        if target.config.upstream.is_grpc() {
            due = self.begin_call()?;
        }
        self.effort.alarm = Alarm::new(&self.rules.timeouts, &self.ctx.ticker, self.record.routed, due);
        // A stream that a backend has not begun is opened again, whatever it asks for.
        if let RequestBody::Client(client) = self.body
            && (repeats && self.is_idempotent() || self.effort.is_call)
        {
            self.effort.replay = Replay::new(client);
        }
        Ok(())
    }

    /// Finds out what its call is given: when it is over.
    #[inline(never)]
    fn begin_call(&mut self) -> Result<Tick, Cause> {
        let is_call = grpc::is_grpc(self.head);
        if !is_call && !grpc::is_web(self.head) {
            return Ok(Tick::NEVER);
        }
        // It may be silent for long in either direction, and how long is its own affair.
        self.edge.set_idle(self.rules.timeouts.tunnel);
        if let RequestBody::Client(body) = self.body {
            body.set_unhurried();
        }
        if !is_call {
            return Ok(Tick::NEVER);
        }
        self.effort.is_call = true;
        let due = self.due();
        self.edge.set_due(due);
        if due != Tick::NEVER && due <= now() { Err(Cause::GrpcTimeout) } else { Ok(due) }
    }

    /// True when doing it twice is as good as once. A change of protocol is not.
    #[must_use]
    pub fn is_idempotent(&self) -> bool {
        self.upgrade.is_none() && self.head.is_idempotent()
    }

    /// The body for another attempt; `None`: it can't be sent again.
    #[must_use]
    #[inline]
    pub fn body_again(&self) -> Option<RequestBody> {
        match &self.effort.replay {
            None => self.body.again(),
            Some(replay) => replay.again().map(RequestBody::Replayed),
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
        self.edge.poll_gone(cx)
    }

    /// What a pick at `now` goes by.
    pub(super) fn ask<'t>(&self, tried: &'t Tried, now: Tick) -> Ask<'t>
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

    /// Whether the answer that came is one for which another backend may be tried, and as what.
    #[inline]
    pub(super) fn unwanted(&self) -> Option<FailedAttempt> {
        if self.answer.status < 400 && !self.effort.is_call {
            return None;
        }
        let retries = self.rules.retries.as_ref()?;
        let status = self.answer.status;
        if status >= 400 {
            let is_asked = retries.on_statuses.iter().any(|on| on.contains(&status));
            return is_asked.then_some(FailedAttempt::Status(status));
        }
        let ended = GrpcStatus::of_head(self.answer).filter(|ended| retries.on_grpc.has(*ended));
        ended.map(FailedAttempt::Grpc)
    }
}

/// What a backend gets as Host where that is not what the client sent.
#[cold]
fn written_host<'a>(host: &'a HostHeader, backend: &'a Backend) -> Host<'a> {
    match host {
        HostHeader::Pass => Host::Pass { missing: &backend.name },
        HostHeader::Backend => Host::Write(&backend.authority),
        HostHeader::Name(name) => Host::Write(name),
    }
}

impl<E: Edge> Forwarding<'_, E> {
    /// Whether the attempt that is being made is surely told as a span: of those in the middle of many nobody knows any more, so their
    /// backends get the request's.
    fn has_span_of_its_own(&self) -> bool {
        !self.effort.has_one_span && usize::from(self.record.attempts_made) < ATTEMPTS
    }

    /// The request on a connection to a backend.
    #[must_use]
    pub fn start(&self, lease: Lease, generation: u32, way: CallWay, body: RequestBody) -> Box<Call> {
        let mut out = self.ctx.outgoing.take();
        let backend = lease.backend();
        let host = match &self.target.config.host {
            HostHeader::Pass => Host::Pass { missing: &backend.name },
            host => written_host(host, backend),
        };
        let about = &self.about;
        let span = match &about.trace {
            Some(trace) if self.has_span_of_its_own() => Some(attempt_span(trace.span, lease.picked())),
            _ => None,
        };
        let (head, upgrade, edits) = (self.head, self.upgrade, self.edits.as_ref());
        OutgoingHead { head, framing: body.framing(), upgrade, about, span, host, edits }.write(&mut out);
        let timeouts = &self.rules.timeouts;
        let patience = Patience { first_byte: timeouts.first_byte, idle: timeouts.idle };
        let mut call = Call::new(self.ctx, lease, generation, way, out, body, patience);
        call.keep = self.keep;
        if let Some(version) = self.target.config.send_proxy {
            call.keep = self.keep_passed(version);
        }
        if self.target.config.upstream.is_http2() {
            self.fit_to_http2(&mut call);
        }
        call
    }

    /// How its connections begin, where backends are told whose they are.
    #[must_use]
    pub fn passing(&self) -> Option<Passing> {
        self.target.config.send_proxy.map(|version| self.edge.passing(version))
    }

    /// For whom a connection is kept that was told whose it is.
    #[cold]
    fn keep_passed(&self, version: SendProxy) -> Keep {
        match (self.keep, self.edge.passing(version).owner) {
            (Keep::Shared, Some(owner)) => Keep::PassedOn(owner),
            (keep, _) => keep,
        }
    }

    /// A connection that was told of the client, for what `lease` is about.
    #[cold]
    fn reuse_passed(&self, lease: &Lease, version: SendProxy) -> Option<CallWay> {
        let (pool, cells) = (&self.ctx.pool, &self.ctx.cells);
        let stream = match self.edge.passing(version).owner {
            Some(owner) => pool.take_passed(cells, (owner, lease.backend()), self.need(), lease.picked()),
            None => pool.take(cells, lease.backend(), self.need(), lease.picked()),
        };
        stream.map(CallWay::Connection)
    }

    /// Tells a call what holds for it on a stream beside what holds everywhere.
    #[inline(never)]
    fn fit_to_http2(&self, call: &mut Call) {
        if self.upgrade.is_some() {
            call.expect_tunnel();
        }
        let is_call = self.effort.is_call;
        if !self.target.config.upstream.is_grpc() || !is_call && !grpc::is_web(self.head) {
            return;
        }
        let breaker = self.target.config.resilience.breaker.as_ref();
        let counts = |status: GrpcStatus| {
            breaker.is_some_and(|breaker| breaker.statuses.iter().any(|on| on.contains(&status.http())))
        };
        let terms = CallTerms::new(self.due(), GrpcStatuses::of(counts), is_call);
        call.set_terms(terms, self.rules.timeouts.tunnel);
    }

    /// When it is over by its own word.
    pub(super) fn due(&self) -> Tick {
        let given = if self.effort.is_call { grpc::timeout_of(self.head) } else { None };
        given.map_or(Tick::NEVER, |given| self.record.head_read.after(given))
    }

    /// What the request needs of a pooled connection.
    #[inline(always)]
    #[must_use]
    pub fn need(&self) -> Need {
        let no_body = matches!(self.body.framing(), Framing::None | Framing::Length(0));
        if no_body && self.is_idempotent() { Need::Repeatable } else { Need::Once }
    }

    /// A place on a connection that stands. What carries an identity goes on none that others use.
    #[inline(never)]
    fn reuse_place(&self, lease: &Lease) -> Option<CallWay> {
        let is_shared = self.keep == Keep::Shared;
        let owner = self.passing().and_then(|passing| passing.owner);
        let place = is_shared.then(|| self.ctx.backend_sessions.place(lease.backend(), owner)).flatten()?;
        self.ctx.cells.pool.reused.increment();
        Some(CallWay::Place(place))
    }

    /// A connection that has served before, for what `lease` is about: the one that is kept for the client, else any. The
    /// client's own is closed if it does not fit. Of one that many use it is a place.
    #[inline(always)]
    pub fn reuse(&mut self, lease: &Lease) -> Option<CallWay> {
        if self.target.config.upstream.is_http2() {
            return self.reuse_place(lease);
        }
        let (pool, cells) = (&self.ctx.pool, &self.ctx.cells);
        let owner = self.edge.owner().and_then(Cell::get);
        if lease.is_trial() {
            // It finds out whether a backend can be connected to; an old connection says nothing about that.
            owner.inspect(|owner| pool.release(cells, *owner));
            return None;
        }
        if let Some(owner) = owner
            && let Some(stream) = pool.take_private(cells, owner, lease.backend(), lease.picked())
        {
            self.keep = Keep::Private(owner);
            return Some(CallWay::Connection(stream));
        }
        if let Some(version) = self.target.config.send_proxy {
            return self.reuse_passed(lease, version);
        }
        pool.take(cells, lease.backend(), self.need(), lease.picked()).map(CallWay::Connection)
    }
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

/// Which retry the request is of the proxy in front of us; 0: it is a first attempt.
pub(super) fn given_retry(head: &Head) -> u8 {
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
