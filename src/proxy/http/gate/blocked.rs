//! Requests of clients that are blocked at run time: asked first, before their route is looked for.

use crate::message::{Cause, Head};
use crate::proxy::WorkerCtx;
use crate::proxy::blocked::ProxiedRequest;
use crate::proxy::http::after::After;
use crate::proxy::http::edge::Edge;
use crate::proxy::http::hash_key::{Sender, client};
use crate::proxy::http::routing::answers::refuse;
use crate::proxy::recording::Recording;
use crate::snapshot::Listener;

/// Lets a request in. What a trusted proxy has sent for somebody is listed with that one's address until this is dropped, so that it can be
/// cut; everybody else is found by the connection's own address.
///
/// # Errors
/// Its client is blocked.
#[inline(always)]
pub fn enter<'a>(
    ctx: &'a WorkerCtx,
    listener: &Listener,
    head: &Head,
    sender: Sender,
) -> Result<Option<ProxiedRequest<'a>>, Cause> {
    if sender.trusted { enter_for_another(ctx, listener, head, sender) } else { enter_alone(ctx, sender) }
}

#[inline(always)]
fn enter_alone<'a>(ctx: &WorkerCtx, sender: Sender) -> Result<Option<ProxiedRequest<'a>>, Cause> {
    ctx.blocked.refusal(sender.peer).map_or(Ok(None), Err)
}

#[inline(never)]
fn enter_for_another<'a>(
    ctx: &'a WorkerCtx,
    listener: &Listener,
    head: &Head,
    sender: Sender,
) -> Result<Option<ProxiedRequest<'a>>, Cause> {
    // The proxy itself may be blocked as well.
    enter_alone(ctx, sender)?;
    let Some(client) = client(head, sender, |address| listener.trusts(address)) else { return Ok(None) };
    match ctx.blocked.refusal(Some(client)) {
        Some(cause) => Err(cause),
        // In the same turn of the event loop: an order to cut comes before the question, or finds it listed.
        None => Ok(ctx.blocked.list(client)),
    }
}

/// Refuses the request of a client that is blocked. The connection of a trusted proxy goes on: it has other clients.
pub async fn keep_out<E: Edge>(
    ctx: &WorkerCtx,
    edge: &mut E,
    recording: &mut Recording<'_>,
    head: &Head,
    is_proxied: bool,
) -> After {
    match refuse(ctx, edge, recording, head, None, Cause::Blocked).await {
        After::KeepOpen if !is_proxied => After::Linger,
        after => after,
    }
}
