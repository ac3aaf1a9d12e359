//! A lease on a backend, waiting for a first verdict where none has one yet, and for room where none has any.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll};

use crate::message::Cause;
use crate::net::{Deadline, now};
use crate::target::{Ask, Lease, Pick, Queued, Target};

/// Picks a backend for `ask`. One that has been somewhere already does not wait.
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
        Pick::Full if !ask.tried.is_empty() => Err(Cause::QueueFull),
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
    deadline.set(target.config.timeouts.queue);
    let mut changed = Box::pin(target.state.changed());
    let outcome = poll_fn(|cx| {
        if let Poll::Ready(lease) = ticket.poll(cx) {
            return Poll::Ready(Ok(lease.begin(now())));
        }
        while changed.as_mut().poll(cx).is_ready() {
            changed = Box::pin(target.state.changed());
            target.serve(now());
            if let Poll::Ready(lease) = ticket.poll(cx) {
                return Poll::Ready(Ok(lease.begin(now())));
            }
            if let Some(cause) = target.gives_up(now()) {
                return Poll::Ready(Err(cause));
            }
        }
        if deadline.poll(cx).is_ready() {
            return Poll::Ready(Err(Cause::QueueTimeout));
        }
        gone(cx).map(|()| Err(Cause::ClientGone))
    })
    .await;
    deadline.clear();
    outcome
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::config::model::{self, BackendAddress, HealthCheck, Policy, Protocol, Timeouts};
    use crate::net::Ticker;
    use crate::target::{Dice, Registry, Tried, Verdict};

    /// A target whose backends wait for their first verdict, and requests for at most `patience`.
    fn unknown(backends: u16, patience: Duration) -> Arc<Target> {
        let backend = |number: u16| model::Backend {
            name: format!("b{number}"),
            address: BackendAddress::Host { host: "127.0.0.1".into(), port: 1000 + number },
            probe_path: None,
            tls: None,
            portion: model::Portion::default(),
        };
        let health =
            HealthCheck { interval: Duration::from_secs(60), timeout: patience, ..HealthCheck::default() };
        let target = model::Target {
            name: "web".into(),
            protocol: Protocol::Http,
            balance: Policy::default(),
            sticky: None,
            health: Some(health),
            timeouts: Timeouts::default(),
            resilience: model::Resilience::default(),
            upgrade: Vec::new(),
            backends: (0..backends).map(backend).collect(),
        };
        Registry::new().apply(&[target]).remove(0)
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
        let (tried, dice) = (Tried::new(), Dice::seeded(1));
        let pin = pin.map(|place| &target.backends[place]);
        let ask = Ask { pin, ..Ask::new(&tried, &dice, now()) };
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
}
