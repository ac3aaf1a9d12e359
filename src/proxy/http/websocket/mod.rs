//! WebSockets as far as a proxy cares: a tunnel whose frames are followed, so that both sides can be told that it ends.
//!
//! At its moment a Close with the status 1001, "going away", goes out between two frames, to the client and, masked, to the
//! backend (RFC 6455 §5.5.1, §7.4.1). Their answers are waited for, and then the connections are closed. A tunnel of which nobody
//! knows where frames end is cut, as any other tunnel is.

use std::future::poll_fn;
use std::ops::DerefMut;
use std::task::Poll;
use std::time::Duration;

use crate::net::relay::parting::LastWords;
use crate::net::relay::{BytesMoved, Early, Relay};
use crate::net::{Deadline, FreeList, Stream, now};
use crate::proxy::tunnels::{Leaving, Tunnel, TunnelEnd};

pub mod frames;
pub mod handshake;

use frames::{FrameSender, Frames};

/// A frame that has begun may take this long to end.
const FRAME: Duration = Duration::from_secs(5);
/// The answers to a Close may take this long.
const HANDSHAKE: Duration = Duration::from_secs(1);

/// What is lent to a tunnel.
pub struct Lent<'a> {
    /// Where buffers come from.
    pub buffers: &'a FreeList,
    /// For what it waits.
    pub deadline: &'a Deadline,
    /// How long it may be silent.
    pub idle: Duration,
    /// What has passed.
    pub moved: &'a BytesMoved,
}

/// Relays frames until the tunnel ends, or is ended. `client` gives the client's stream; our own last words are masked with `mask`.
pub async fn relay<N: DerefMut<Target = Stream>>(
    tunnel: &Tunnel<'_>,
    client: impl Fn() -> N,
    backend: &mut Stream,
    early: Early,
    lent: Lent<'_>,
    mask: u32,
) -> TunnelEnd {
    let Lent { buffers, deadline, idle, moved } = lent;
    let frames = [FrameSender::Client, FrameSender::Backend].map(Frames::of);
    let mut relay = Relay::following(frames, early, buffers, deadline, idle, moved);
    let ended = poll_fn(|cx| {
        if let Poll::Ready(end) = relay.poll(cx, &mut client(), backend) {
            return Poll::Ready(Ok(end));
        }
        tunnel.poll_leave(cx).map(Err)
    });
    let Leaving { end, cause } = match ended.await {
        Ok(end) => return TunnelEnd::Relayed(end),
        Err(leaving) => leaving,
    };
    let key = mask.to_be_bytes();
    let mut parting = relay.part(LastWords::new(&close()), LastWords::new(&masked_close(key)));
    deadline.set_at(now().after(FRAME).min(end));
    let mut said = false;
    poll_fn(|cx| {
        if parting.poll(cx, &mut client(), backend).is_ready() {
            return Poll::Ready(());
        }
        if !said && parting.is_said() {
            said = true;
            deadline.set_at(now().after(HANDSHAKE).min(end));
        }
        deadline.poll(cx)
    })
    .await;
    let (client, backend) = parting.told();
    TunnelEnd::Left { cause, client, backend }
}

/// A Close with the status 1001.
fn close() -> [u8; 4] {
    [0x88, 2, 0x03, 0xe9]
}

/// The same, masked with `key` (§5.3).
fn masked_close(key: [u8; 4]) -> [u8; 8] {
    let [a, b, c, d] = key;
    [0x88, 0x82, a, b, c, d, 0x03 ^ a, 0xe9 ^ b]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::relay::Follow as _;

    #[test]
    fn our_own_last_words_are_frames_that_close() {
        for (sender, words) in [
            (FrameSender::Backend, close().to_vec()),
            (FrameSender::Client, masked_close([1, 2, 3, 0xff]).to_vec()),
        ] {
            let mut frames = Frames::of(sender);
            frames.see(&words);
            assert!(frames.is_over(), "{sender:?}");
        }
        assert_eq!(masked_close([0; 4])[6..], close()[2..]);
        assert_eq!(masked_close([0x03, 0xe9, 9, 9])[6..], [0, 0]);
    }
}
