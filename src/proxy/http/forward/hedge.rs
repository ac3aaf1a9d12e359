//! A competitor for a slow attempt: the first head of an answer wins, the other connection is closed.
//!
//! The attempt loop owns head and body of the request; both attempts borrow them. The competitor makes its connection and its
//! call beside the first attempt, in the same task.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::message::{BackendId, Cause, Head};
use crate::net::now;
use crate::proxy::dial::dial;
use crate::proxy::pool::Keep;
use crate::targets::{Lease, Outcome};
use crate::tick::Tick;

use super::failure::{fail, unconnected};
use super::forwarding::Forwarding;
use crate::proxy::http::call::{Call, CallWay, Silence};
use crate::proxy::http::edge::Edge;
use crate::proxy::http::request_body::RequestBody;
use crate::proxy::http::upstream::opening;

/// The first attempt's call, which may be replaced by the competitor's.
pub struct Raced<'a> {
    /// The call whose head comes; in the end the winner's.
    pub call: &'a mut Box<Call>,
    /// Whether it is on a pooled connection.
    pub reused: &'a mut bool,
}

/// How far a competitor has come.
enum Stage {
    /// Without a connection.
    Dialing(Lease, Pin<Box<dyn Future<Output = Result<CallWay, Cause>>>>),
    /// With one.
    Calling(Box<Call>),
    /// It has ended.
    Over,
}

/// A competitor.
struct Rival {
    backend: BackendId,
    stage: Stage,
    generation: u32,
    reused: bool,
    picked: Tick,
    stood: Rc<Cell<Tick>>,
    connected: Tick,
    answer: Head,
}

/// What happens in a race.
enum Event {
    /// The first attempt has its head, or fails.
    First(Result<(), Silence>),
    /// The competitor has its head.
    Rival(Box<Call>),
    /// It has failed.
    RivalFailed(Cause),
    /// Nobody waits any more.
    Over(Cause),
}

impl<E: Edge> Forwarding<'_, E> {
    /// How long the first attempt has before it gets a competitor; `None`: it gets none.
    #[must_use]
    pub fn patience(&self, call: &Call) -> Option<Duration> {
        let hedging = self.target.config.resilience.hedging.as_ref()?;
        let first = self.record.attempts_made == 1 && call.first_byte == Tick::ZERO;
        // An identity is known on one connection: elsewhere the answer would only be sooner that there is none.
        let private = self.keep != Keep::Shared;
        if !first || private || !self.is_idempotent() || self.is_foreign() {
            return None;
        }
        let now = now();
        let usual = self.target.state.pace.percentile(hedging.percentile, now)?;
        Some(usual.saturating_sub(now.since(call.picked())))
    }

    /// Whether all of its body can be sent again at once. Of one that was too long to be kept nothing can.
    fn is_body_whole(&self) -> bool {
        match &self.effort.replay {
            Some(replay) => replay.is_whole(),
            None => matches!(self.body, RequestBody::Empty | RequestBody::Memory(_)),
        }
    }
}

/// Awaits the head of an answer on the first attempt's connection, and after `wait` from a competitor as well.
///
/// # Errors
/// See [`Call::poll_head`]; the competitor's failures are not among them, as long as the first attempt goes on.
pub async fn race<E: Edge>(
    forwarding: &mut Forwarding<'_, E>,
    raced: Raced<'_>,
    to_head: bool,
    wait: Duration,
) -> Result<(), Silence> {
    let Raced { call, reused } = raced;
    {
        // The worker's own deadlines are too coarse for it.
        let mut slow = pin!(tokio::time::sleep(wait));
        let early = poll_fn(|cx| match call.poll_head(cx, forwarding.answer, to_head) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending if slow.as_mut().poll(cx).is_ready() => Poll::Ready(None),
            Poll::Pending => forwarding.poll_over(cx).map(|cause| Some(Err(call.silence(cause)))),
        });
        if let Some(outcome) = early.await {
            return outcome;
        }
    }
    let mut rival = Rival::begin(forwarding);
    let mut failed = None;
    loop {
        let event = poll_fn(|cx| {
            if failed.is_none()
                && let Poll::Ready(outcome) = call.poll_head(cx, forwarding.answer, to_head)
            {
                return Poll::Ready(Event::First(outcome));
            }
            if let Some(rival) = &mut rival
                && let Poll::Ready(event) = rival.poll(forwarding, cx, to_head)
            {
                return Poll::Ready(event);
            }
            forwarding.poll_over(cx).map(Event::Over)
        });
        match (event.await, rival.take()) {
            (Event::First(Err(silence)), Some(still)) => {
                // The competitor is what is left.
                failed = Some(silence);
                rival = Some(still);
            }
            (Event::First(outcome), still) => {
                if let Some(still) = still {
                    still.lose(forwarding, Cause::Overtaken);
                }
                return outcome;
            }
            (Event::Rival(winner), Some(won)) => {
                let loser = std::mem::replace(call, winner);
                let (sent, first_byte) = (loser.sent, loser.first_byte);
                let cause = match failed {
                    Some(silence) => fail(loser, &silence, *reused).cause,
                    None => {
                        loser.abandon(Outcome::Neutral, now());
                        Cause::Overtaken
                    }
                };
                if let Some(attempt) = forwarding.record.last_attempt() {
                    (attempt.outcome, attempt.end) = (cause, now());
                    (attempt.sent, attempt.first_byte) = (sent, first_byte);
                }
                won.enter(forwarding);
                (*forwarding.answer, *reused) = (won.answer, won.reused);
                return Ok(());
            }
            (Event::RivalFailed(cause), Some(lost)) => {
                lost.note(forwarding, cause);
                if let Some(silence) = failed {
                    return Err(silence);
                }
            }
            (Event::Over(cause), still) => {
                if let Some(still) = still {
                    // It was not the competitor that took too long.
                    let late = cause == Cause::AttemptTimeout;
                    still.lose(forwarding, if late { Cause::Overtaken } else { cause });
                }
                return Err(call.silence(cause));
            }
            // Events of a competitor come from one.
            (Event::Rival(_) | Event::RivalFailed(_), None) => {}
        }
    }
}

impl Rival {
    /// A competitor, if there is a token and another backend for it.
    fn begin<E: Edge>(forwarding: &mut Forwarding<'_, E>) -> Option<Rival> {
        let state = &forwarding.target.state;
        forwarding.note_latest();
        if !forwarding.is_body_whole() || !state.has_another(forwarding.tried()) || !state.hedges.take(now())
        {
            return None;
        }
        let Some(lease) = forwarding.elsewhere() else {
            state.hedges.put();
            return None;
        };
        let backend = Arc::clone(lease.backend());
        forwarding.note_tried(backend.id);
        let generation = backend.generation();
        let pooled = forwarding.reuse(&lease);
        let reused = pooled.is_some();
        let (id, picked) = (backend.id, lease.picked());
        let (ctx, timeouts) = (Rc::clone(forwarding.ctx), forwarding.rules.timeouts);
        let stood = Rc::new(Cell::new(Tick::ZERO));
        let beside = Rc::clone(&stood);
        let passing = if reused { None } else { forwarding.passing() };
        let is_http2 = forwarding.target.config.upstream.is_http2();
        let dialing = Box::pin(async move {
            match pooled {
                Some(way) => Ok(way),
                None if is_http2 => {
                    let place =
                        opening::place(&ctx, (&backend, passing.as_ref()), &timeouts, &beside, |_| {
                            Poll::Pending
                        });
                    place.await.map(CallWay::Place)
                }
                None => {
                    let deadline = ctx.ticker.deadline();
                    let how = (&deadline, passing.as_ref().map(|passing| &*passing.header));
                    let dialed = dial(&ctx, &backend, &timeouts, how, &beside, |_| Poll::Pending);
                    dialed.await.map(CallWay::Connection)
                }
            }
        });
        let stage = Stage::Dialing(lease, dialing);
        let (connected, answer) = (picked, Head::new());
        Some(Rival { backend: id, stage, generation, reused, picked, stood, connected, answer })
    }

    fn poll<E: Edge>(
        &mut self,
        forwarding: &Forwarding<'_, E>,
        cx: &mut Context<'_>,
        to_head: bool,
    ) -> Poll<Event> {
        if let Stage::Dialing(_, dialing) = &mut self.stage {
            let Poll::Ready(dialed) = dialing.as_mut().poll(cx) else { return Poll::Pending };
            let Stage::Dialing(lease, _) = std::mem::replace(&mut self.stage, Stage::Over) else {
                return Poll::Pending;
            };
            match (dialed, forwarding.body_again()) {
                (Ok(way), Some(body)) => {
                    if !self.reused {
                        self.connected = now();
                        self.reused = !way.is_fresh();
                    }
                    if !self.reused {
                        lease.note_connected();
                    }
                    self.stage = Stage::Calling(forwarding.start(lease, self.generation, way, body));
                }
                (Ok(_), None) => return Poll::Ready(Event::RivalFailed(Cause::Overtaken)),
                (Err(cause), _) => return Poll::Ready(Event::RivalFailed(unconnected(lease, cause).cause)),
            }
        }
        let Stage::Calling(call) = &mut self.stage else { return Poll::Pending };
        let Poll::Ready(outcome) = call.poll_head(cx, &mut self.answer, to_head) else {
            return Poll::Pending;
        };
        let Stage::Calling(call) = std::mem::replace(&mut self.stage, Stage::Over) else {
            return Poll::Pending;
        };
        Poll::Ready(match outcome {
            Ok(()) => Event::Rival(call),
            Err(silence) => Event::RivalFailed(fail(call, &silence, self.reused).cause),
        })
    }

    /// Puts it into the Record, as the last attempt.
    fn enter<E: Edge>(&self, forwarding: &mut Forwarding<'_, E>) {
        let attempt = forwarding.record.attempt(self.backend, self.picked);
        (attempt.reused, attempt.connected) = (self.reused, self.connected);
        attempt.stood = self.stood.get();
    }

    /// Puts it into the Record as one that has ended for this cause. The first attempt stays the last one.
    fn note<E: Edge>(&self, forwarding: &mut Forwarding<'_, E>, cause: Cause) {
        self.enter(forwarding);
        if let Some(attempt) = forwarding.record.last_attempt() {
            (attempt.outcome, attempt.end) = (cause, now());
        }
        forwarding.record.swap_last();
    }

    /// Ends it: it was not needed.
    fn lose<E: Edge>(mut self, forwarding: &mut Forwarding<'_, E>, cause: Cause) {
        self.note(forwarding, cause);
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Dialing(lease, _) => lease.finish(Outcome::Neutral, now()),
            Stage::Calling(call) => call.abandon(Outcome::Neutral, now()),
            Stage::Over => {}
        }
    }
}
