//! What a change of protocol has made of a request: bytes both ways, whatever carries them on either side.

use std::future::poll_fn;
use std::ops::DerefMut;
use std::task::Poll;

use crate::net::Stream;
use crate::net::relay::{Early, Relay};
use crate::proxy::tunnels::{Tunnel, TunnelEnd, TunnelKind};

use super::call::tunnel_far::TunnelFar;
use super::websocket::{self, Lent};

/// Relays between the client, of which `near` gives the stream, and the backend until the tunnel ends, or has to. `early`: what has come of
/// either before. `mask`: chance, with which what we say ourselves is masked.
pub async fn relay<N: DerefMut<Target = Stream>>(
    tunnel: &Tunnel<'_>,
    near: impl Fn() -> N,
    backend: &mut TunnelFar,
    early: Early,
    lent: Lent<'_>,
    mask: u32,
) -> TunnelEnd {
    let early = Early { client: early.client, backend: backend.early.take() };
    if tunnel.kind == TunnelKind::WebSocket {
        return websocket::relay(tunnel, near, &mut backend.stream, early, lent, mask).await;
    }
    let Lent { buffers, deadline, idle, moved } = lent;
    let mut relay = Relay::new(early, buffers, deadline, idle, moved);
    poll_fn(|cx| match relay.poll(cx, &mut near(), &mut backend.stream) {
        Poll::Ready(end) => Poll::Ready(TunnelEnd::Relayed(end)),
        Poll::Pending => tunnel.poll_leave(cx).map(|leaving| TunnelEnd::Left {
            cause: leaving.cause,
            client: false,
            backend: false,
        }),
    })
    .await
}
