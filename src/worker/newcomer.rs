//! A connection of which it is not known yet what it is: what was heard of it, and what its first bytes are worth.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::ReadBuf;

use crate::config::model::{Protocol, SendProxy};
use crate::message::proxy_header::ProxyHeader;
use crate::message::{Cause, ListenerId, Peer};
use crate::net::{Buffer, Deadline, Stream, now};
use crate::proxy::http::client::{Client, Secured};
use crate::proxy::http::connection::turn_away;
use crate::proxy::http::gate::Denial;
use crate::proxy::http::h1::opening::{self, Opening};
use crate::proxy::passed_on::ClientFacts;
use crate::proxy::{Here, WorkerCtx};

/// The first byte of every TLS connection: a handshake record (RFC 8446 §5.1).
pub(super) const HANDSHAKE: u8 = 22;
/// A handshake that has begun when the worker drains may take this long.
pub(super) const DRAIN_HANDSHAKE: Duration = Duration::from_secs(3);
/// What a client may still send after it was told why there is no session.
const LINGER_BYTES: usize = 64 * 1024;
/// For how long.
const LINGER: Duration = Duration::from_secs(2);

/// A connection whose client has said nothing yet, or nothing that was used.
pub(super) struct Newcomer {
    pub(super) ctx: Rc<WorkerCtx>,
    pub(super) stream: Stream,
    pub(super) peer: Peer,
    pub(super) here: Here,
    /// What was read of it.
    pub(super) held: Option<Buffer>,
    /// What a balancer in front has told of it.
    pub(super) told: Option<Rc<ProxyHeader>>,
}

impl Newcomer {
    /// One of which nothing was read.
    pub(super) fn new(ctx: &Rc<WorkerCtx>, stream: Stream, peer: Peer, here: Here) -> Newcomer {
        Newcomer { ctx: Rc::clone(ctx), stream, peer, here, held: None, told: None }
    }

    /// What the connection to its backend begins with, so that this knows whose it is.
    pub(super) fn greeting(
        &self,
        version: SendProxy,
        secured: Option<&Secured>,
        sni: Option<&str>,
    ) -> Rc<[u8]> {
        let certificate = secured.and_then(|secured| secured.facts.as_ref());
        let facts = ClientFacts {
            peer: &self.peer,
            told: self.told.as_deref(),
            stream: &self.stream,
            sni,
            alpn: secured.and_then(|secured| secured.agreed),
            certificate: certificate.map(|facts| &*facts.common_name),
        };
        facts.header(version, self.ctx.request_id())
    }

    /// One that speaks HTTP.
    pub(super) fn into_client(self, secured: Option<Rc<Secured>>) -> Rc<Client> {
        let Newcomer { ctx, stream, peer, here, held, told } = self;
        let client = Client::new(ctx, stream, peer, here, secured);
        client.with_held(|place| *place = held);
        if let Some(told) = told {
            // It has none yet.
            let _ = client.told.set(told);
        }
        client
    }
}

/// Answers whoever speaks another protocol than TLS, as far as that has an answer. What is left is whoever does not.
pub(super) async fn turn_away_others(newcomer: Newcomer) -> Option<Newcomer> {
    let hello = newcomer.held.as_ref().map_or(&[][..], |held| held.data());
    let Some(cause) = other_protocol(newcomer.here.config.protocol, hello) else { return Some(newcomer) };
    let Newcomer { ctx, stream, peer, here, .. } = newcomer;
    let client = Client::new(ctx, stream, Peer { greeted: now(), ..peer }, here, None);
    turn_away(client, Denial::of(cause)).await;
    None
}

/// What somebody is told who begins like this where HTTP over TLS is spoken; `None`: nothing, or it may be TLS.
pub(super) fn other_protocol(protocol: Protocol, hello: &[u8]) -> Option<Cause> {
    let first = *hello.first()?;
    if protocol != Protocol::Http {
        None
    } else if opening::judge(hello) == Opening::Other(Cause::ProxyProtocol) {
        Some(Cause::ProxyProtocol)
    } else {
        (first != HANDSHAKE && first.is_ascii_graphic()).then_some(Cause::PlainHttp)
    }
}

/// Waits until `poll` is ready. `None`: `deadline` came first, which is `hurry` from when the worker drains.
pub(super) async fn in_time<T>(
    ctx: &WorkerCtx,
    listener: ListenerId,
    deadline: &Deadline,
    hurry: Duration,
    mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Option<T> {
    let mut hurried = false;
    poll_fn(|cx| match poll(cx) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => {
            if ctx.is_leaving(listener) && !hurried {
                hurried = true;
                deadline.set(hurry);
            }
            deadline.poll(cx).map(|()| None)
        }
    })
    .await
}

/// Reads for a while what a client still sends.
pub(super) async fn linger(
    deadline: &Deadline,
    mut read: impl FnMut(&mut Context<'_>, &mut ReadBuf<'_>) -> Poll<std::io::Result<()>>,
) {
    let mut room = LINGER_BYTES;
    deadline.set(LINGER);
    poll_fn(|cx| {
        loop {
            let mut space = [0u8; 2048];
            let mut space = ReadBuf::new(&mut space);
            match read(cx, &mut space) {
                Poll::Ready(Ok(())) if !space.filled().is_empty() && space.filled().len() <= room => {
                    room -= space.filled().len();
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => {
                    ready!(deadline.poll(cx));
                    return Poll::Ready(());
                }
            }
        }
    })
    .await;
}
