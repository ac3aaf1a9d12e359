//! Requests of clients that are blocked at run time: asked first, before their route is looked for.

use crate::message::{Cause, Head};
use crate::proxy::WorkerCtx;
use crate::proxy::http::after::After;
use crate::proxy::http::edge::Edge;
use crate::proxy::http::hash_key::{Sender, nearest};
use crate::proxy::http::routing::answers::refuse;
use crate::proxy::recording::Recording;
use crate::snapshot::Listener;

/// Whether the client of a request is kept out. What a trusted proxy has sent for somebody is listed with that one's address until its
/// record is written, so that it can be cut; everybody else is found by the connection's own address.
#[inline(always)]
pub fn is_kept_out<'a>(
    ctx: &'a WorkerCtx,
    listener: &Listener,
    head: &Head,
    sender: &Sender,
    recording: &mut Recording<'a>,
) -> bool {
    // The proxy itself may be blocked as well.
    ctx.blocked.refusal(sender.peer).is_some()
        || sender.trusted && is_kept_out_behind(ctx, listener, head, sender, recording)
}

#[inline(never)]
fn is_kept_out_behind<'a>(
    ctx: &'a WorkerCtx,
    listener: &Listener,
    head: &Head,
    sender: &Sender,
    recording: &mut Recording<'a>,
) -> bool {
    let nearest = nearest(head, *sender, |address| listener.trusts(address));
    let client = nearest.client();
    let is_out = client.is_some_and(|client| ctx.blocked.refusal(Some(client)).is_some());
    if let (false, Some(address)) = (is_out, nearest.address) {
        // In the same turn of the event loop: an order to cut comes before the question, or finds it listed.
        recording.list(address, client);
    }
    is_out
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
