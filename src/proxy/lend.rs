//! A lease on a backend, waiting for a first verdict where none has one yet, and for room where none has any.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::message::Cause;
use crate::net::{Deadline, now};
use crate::targets::{Ask, Lease, Pick, Queued, Target};

/// Picks a backend for `ask`. One that has been somewhere already does not wait for a verdict; for room it does, so whoever does
/// not want that picks by itself.
///
/// # Errors
/// [`Cause::NoVerdict`] when no backend was judged in time, [`Cause::ClientGone`] when `gone` was ready first, or why no
/// backend can be given.
pub async fn lend(
    target: &Target,
    ask: &Ask<'_>,
    deadline: &Deadline,
    gone: impl FnMut(&mut Context<'_>) -> Poll<()>,
) -> Result<Lease, Cause> {
    match target.pick(ask) {
        Pick::Lease(lease) => Ok(lease),
        Pick::None(cause) => Err(cause),
        // Whoever has been somewhere already has waited enough.
        Pick::Unknown if !ask.tried.is_empty() => Err(Cause::NoBackend),
        Pick::Full => Box::pin(queue(target, ask, deadline, gone)).await,
        // Boxed: few requests wait, and the others must not pay for its size.
        Pick::Unknown => Box::pin(wait(target, ask, deadline, gone)).await,
    }
}

/// Waits until one of a target's backends, or the one that the client's cookie names, has its first verdict, then picks.
async fn wait(
    target: &Target,
    ask: &Ask<'_>,
    deadline: &Deadline,
    mut gone: impl FnMut(&mut Context<'_>) -> Poll<()>,
) -> Result<Lease, Cause> {
    deadline.set(target.patience());
    let outcome = loop {
        // Listening starts before the pick, so that a change between the two is not missed.
        let mut changed = pin!(target.state.changed());
        match target.pick(&Ask { now: now(), ..*ask }) {
            Pick::Lease(lease) => break Ok(lease),
            Pick::None(cause) => break Err(cause),
            Pick::Full => break Box::pin(queue(target, ask, deadline, &mut gone)).await,
            Pick::Unknown => {}
        }
        let waited = poll_fn(|cx| {
            if changed.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
            if deadline.poll(cx).is_ready() {
                return Poll::Ready(Err(Cause::NoVerdict));
            }
            gone(cx).map(|()| Err(Cause::ClientGone))
        })
        .await;
        match waited {
            Ok(()) => {}
            // The one backend that it waited for has no verdict; others may have one.
            Err(Cause::NoVerdict) if ask.pin.is_some() => {
                break match target.pick(&Ask { pin: None, now: now(), ..*ask }) {
                    Pick::Lease(lease) => Ok(lease),
                    Pick::None(cause) => Err(cause),
                    Pick::Full => Box::pin(queue(target, &Ask { pin: None, ..*ask }, deadline, gone)).await,
                    Pick::Unknown => Err(Cause::NoVerdict),
                };
            }
            Err(cause) => break Err(cause),
        }
    };
    deadline.clear();
    outcome
}

/// How soon somebody who waits looks again whether it can be found out if a backend is back.
const SOON: Duration = Duration::from_millis(50);

/// Waits in the target's queue until a backend has room.
async fn queue(
    target: &Target,
    ask: &Ask<'_>,
    deadline: &Deadline,
    mut gone: impl FnMut(&mut Context<'_>) -> Poll<()>,
) -> Result<Lease, Cause> {
    let mut ticket = match target.enqueue(&Ask { now: now(), ..*ask }) {
        Queued::Lease(lease) => return Ok(lease),
        Queued::Refused(cause) => return Err(cause),
        Queued::Ticket(ticket) => ticket,
    };
    let end = now().after(target.config.timeouts.queue);
    // Until its time is over, or that of somebody who is left out. One that could not be found out about yet is no hurry.
    let sleep = || deadline.set(end.min(target.due().max(now().after(SOON))).since(now()));
    let mut changed = Box::pin(target.state.changed());
    // Those who wait may have been told already, and just not left yet.
    if let Some(cause) = target.gives_up(ask) {
        return Err(cause);
    }
    sleep();
    let outcome = poll_fn(|cx| {
        loop {
            if let Poll::Ready(lease) = ticket.poll(cx) {
                return Poll::Ready(Ok(lease.begin(now())));
            }
            if changed.as_mut().poll(cx).is_ready() {
                changed = Box::pin(target.state.changed());
                if let Some(cause) = target.gives_up(ask) {
                    return Poll::Ready(Err(cause));
                }
            } else if deadline.poll(cx).is_pending() {
                return gone(cx).map(|()| Err(Cause::ClientGone));
            } else if now() >= end {
                return Poll::Ready(Err(Cause::QueueTimeout));
            }
            target.serve(now());
            sleep();
        }
    })
    .await;
    deadline.clear();
    outcome
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::model::{self, BackendAddress, HealthCheck, Policy, Protocol, Timeouts};
    use crate::net::Ticker;
    use crate::targets::{Chance, Outcome, Registry, Tried, Verdict};

    /// A target whose backends wait for their first verdict, and requests for at most `patience`.
    fn unknown(backends: u16, patience: Duration) -> Arc<Target> {
        let health =
            HealthCheck { interval: Duration::from_secs(60), timeout: patience, ..HealthCheck::default() };
        Registry::new().apply(&[config(backends, Some(health))]).remove(0)
    }

    /// A target whose backends are all up.
    pub(in crate::proxy) fn unprobed(backends: u16) -> Arc<Target> {
        Registry::new().apply(&[config(backends, None)]).remove(0)
    }

    /// A lease of any of its backends.
    pub(in crate::proxy) fn lease(target: &Target) -> Lease {
        let (tried, chance) = (Tried::new(), Chance::seeded(1));
        match target.pick(&Ask::new(&tried, &chance, now())) {
            Pick::Lease(lease) => lease,
            _ => panic!("they are all up"),
        }
    }

    fn config(backends: u16, health: Option<HealthCheck>) -> model::TargetConfig {
        let backend = |number: u16| model::BackendConfig {
            name: format!("b{number}"),
            address: BackendAddress::Host { host: "127.0.0.1".into(), port: 1000 + number },
            probe_path: None,
            tls: None,
            portion: model::Portion::default(),
            state: model::BackendState::Up,
            state_by: None,
            dialing: Default::default(),
            found: None,
        };
        model::TargetConfig {
            send_proxy: None,
            name: "web".into(),
            protocol: Protocol::Http,
            host: model::HostHeader::Pass,
            balance: Policy::default(),
            sticky: None,
            health,
            timeouts: Timeouts::default(),
            drain_timeout: model::TargetConfig::DRAIN_TIMEOUT,
            resilience: model::Resilience::default(),
            upgrade: Vec::new(),
            upstream: model::UpstreamProtocol::Http,
            backends: (0..backends).map(backend).collect(),
            sources: Vec::new(),
        }
    }

    /// Two backends that have one request each at once and a breaker that one failure opens; the first is there for those only
    /// whose cookie names it.
    fn limited() -> Arc<Target> {
        let mut config = config(2, None);
        config.timeouts.queue = Duration::from_secs(20);
        let breaker = Some(model::resilience::BreakerConfig { failures: 1, ..Default::default() });
        config.resilience =
            model::Resilience { max_in_flight: Some(1), breaker, outlier: None, ..config.resilience };
        config.backends[0].portion.weight = 0;
        Registry::new().apply(&[config]).remove(0)
    }

    /// A lease for somebody whose cookie names the `pin`-th backend.
    fn lease_of(target: &Target, pin: usize) -> Lease {
        let (tried, chance) = (Tried::new(), Chance::seeded(1));
        match target.pick(&Ask { pin: Some(&target.backends[pin]), ..Ask::new(&tried, &chance, now()) }) {
            Pick::Lease(lease) => lease,
            other => panic!("no lease but {other:?}"),
        }
    }

    /// Lends while `meanwhile` runs.
    async fn lend_while(
        target: &Target,
        gone: impl FnMut(&mut Context<'_>) -> Poll<()>,
        meanwhile: impl Future<Output = ()>,
    ) -> Result<Lease, Cause> {
        lend_pinned(target, None, gone, meanwhile).await
    }

    /// The same for a client whose cookie names the `pin`-th backend.
    async fn lend_pinned(
        target: &Target,
        pin: Option<usize>,
        gone: impl FnMut(&mut Context<'_>) -> Poll<()>,
        meanwhile: impl Future<Output = ()>,
    ) -> Result<Lease, Cause> {
        let ticker = Ticker::new();
        let deadline = ticker.deadline();
        let (tried, chance) = (Tried::new(), Chance::seeded(1));
        let pin = pin.map(|place| &target.backends[place]);
        let ask = Ask { pin, ..Ask::new(&tried, &chance, now()) };
        let lending = async { tokio::join!(lend(target, &ask, &deadline, gone), meanwhile).0 };
        tokio::select! {
            outcome = lending => outcome,
            () = ticker.run() => Err(Cause::Internal),
        }
    }

    fn stays(_: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }

    #[tokio::test]
    async fn a_request_waits_for_the_first_verdict_of_any_backend() {
        let target = unknown(2, Duration::from_secs(60));
        let report = async {
            tokio::task::yield_now().await;
            target.state.report(&target.backends[0], Verdict::Bad("no".into()), now());
            tokio::task::yield_now().await;
            target.state.report(&target.backends[1], Verdict::Good, now());
        };
        let lease = lend_while(&target, stays, report).await.expect("a lease");
        assert_eq!(&*lease.backend().name, "b1");
    }

    #[tokio::test]
    async fn when_all_first_verdicts_are_bad_there_is_no_backend() {
        let target = unknown(1, Duration::from_secs(60));
        let report = async {
            tokio::task::yield_now().await;
            target.state.report(&target.backends[0], Verdict::Bad("no".into()), now());
        };
        let outcome = lend_while(&target, stays, report).await;
        assert_eq!(outcome.expect_err("there is none"), Cause::NoBackend);
    }

    #[tokio::test]
    async fn without_any_verdict_the_wait_ends_with_the_probe_timeout() {
        let target = unknown(2, Duration::from_millis(30));
        let outcome = lend_while(&target, stays, async {}).await;
        assert_eq!(outcome.expect_err("nobody was judged"), Cause::NoVerdict);
    }

    #[tokio::test]
    async fn a_pinned_request_waits_for_its_own_backend() {
        let target = unknown(3, Duration::from_secs(60));
        target.state.report(&target.backends[0], Verdict::Good, now());
        let report = async {
            tokio::task::yield_now().await;
            target.state.report(&target.backends[2], Verdict::Good, now());
            tokio::task::yield_now().await;
            target.state.report(&target.backends[1], Verdict::Good, now());
        };
        let lease = lend_pinned(&target, Some(1), stays, report).await.expect("a lease");
        assert_eq!(&*lease.backend().name, "b1");
    }

    #[tokio::test]
    async fn a_pinned_request_goes_elsewhere_when_its_backend_is_bad_or_not_judged_in_time() {
        let target = unknown(2, Duration::from_secs(60));
        let report = async {
            tokio::task::yield_now().await;
            target.state.report(&target.backends[0], Verdict::Good, now());
            target.state.report(&target.backends[1], Verdict::Bad("no".into()), now());
        };
        let lease = lend_pinned(&target, Some(1), stays, report).await.expect("a lease");
        assert_eq!(&*lease.backend().name, "b0");

        let target = unknown(2, Duration::from_millis(30));
        target.state.report(&target.backends[0], Verdict::Good, now());
        let lease = lend_pinned(&target, Some(1), stays, async {}).await.expect("a lease");
        assert_eq!(&*lease.backend().name, "b0");

        let target = unknown(2, Duration::from_millis(30));
        let outcome = lend_pinned(&target, Some(1), stays, async {}).await;
        assert_eq!(outcome.expect_err("nobody was judged"), Cause::NoVerdict);
    }

    #[tokio::test]
    async fn a_client_that_leaves_ends_the_wait() {
        let target = unknown(1, Duration::from_secs(60));
        let outcome = lend_while(&target, |_| Poll::Ready(()), async {}).await;
        assert_eq!(outcome.expect_err("nobody waits"), Cause::ClientGone);
    }

    #[tokio::test]
    async fn who_comes_when_nobody_is_left_does_not_wait_behind_those_who_are_about_to_leave() {
        let target = limited();
        let held = lease_of(&target, 1);
        let (tried, chance) = (Tried::new(), Chance::seeded(1));
        // It is told at once that there is nobody any more, but has not looked yet.
        let waiting = target.enqueue(&Ask::new(&tried, &chance, now()));
        assert!(matches!(waiting, Queued::Ticket(_)));
        held.finish(Outcome::Failed, now());
        let outcome = lend_while(&target, stays, async {}).await;
        assert_eq!(outcome.expect_err("nobody is left"), Cause::BreakerOpen);
    }

    #[tokio::test]
    async fn who_waits_for_its_own_backend_does_not_give_up_for_want_of_the_others() {
        let target = limited();
        let [held, other] = [0, 1].map(|nth| lease_of(&target, nth));
        let meanwhile = async {
            tokio::task::yield_now().await;
            other.finish(Outcome::Failed, now());
            tokio::task::yield_now().await;
            held.finish(Outcome::Success, now());
        };
        let lease = lend_pinned(&target, Some(0), stays, meanwhile).await.expect("a lease");
        assert_eq!(&*lease.backend().name, "b0");
    }
}
