//! A lease on a backend, waiting for a first verdict where none has one yet.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll};

use crate::message::Cause;
use crate::net::{Deadline, now};
use crate::target::{Lease, Pick, Target, Tried};

/// Picks a backend that is not in `tried`. `None`: there is none.
///
/// # Errors
/// [`Cause::NoVerdict`] when no backend was judged in time, [`Cause::ClientGone`] when `gone` was ready first.
pub async fn lend(
    target: &Target,
    tried: &Tried,
    deadline: &Deadline,
    mut gone: impl FnMut(&mut Context<'_>) -> Poll<()>,
) -> Result<Option<Lease>, Cause> {
    match target.pick(tried, now()) {
        Pick::Lease(lease) => return Ok(Some(lease)),
        Pick::None => return Ok(None),
        // Whoever has been somewhere already has waited enough.
        Pick::Unknown if !tried.is_empty() => return Ok(None),
        Pick::Unknown => {}
    }
    deadline.set(target.patience());
    let outcome = loop {
        // Listening starts before the pick, so that a change between the two is not missed.
        let mut changed = pin!(target.state.changed());
        match target.pick(tried, now()) {
            Pick::Lease(lease) => break Ok(Some(lease)),
            Pick::None => break Ok(None),
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
        if let Err(cause) = waited {
            break Err(cause);
        }
    };
    deadline.clear();
    outcome
}
