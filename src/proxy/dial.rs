//! Opening a connection to a backend: to the first of its addresses that accepts under one deadline, then TLS under another.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::WorkerCtx;
use crate::config::model::Timeouts;
use crate::events;
use crate::message::Cause;
use crate::net::tls::TlsBroken;
use crate::net::{Deadline, Stream, Tls, connect, now};
use crate::targets::{Backend, Endpoint};
use crate::tick::Tick;
use crate::tls::{TlsFault, Upstream, backend_words};

/// Opens a connection to `backend`, and says `greeting` on it before anything else. `gone` is polled beside; when it is ready nobody needs the connection. Where TLS follows, `stood` is
/// set to the time from which the TCP connection stood.
///
/// # Errors
/// [`Cause::ConnectFailed`], [`Cause::ConnectTimeout`], [`Cause::LocalShortage`], [`Cause::NoLocalPort`], [`Cause::ClientGone`], or one of
/// the causes of a failed TLS handshake.
pub async fn dial(
    ctx: &WorkerCtx,
    backend: &Backend,
    patience: &Timeouts,
    (deadline, greeting): (&Deadline, Option<&[u8]>),
    stood: &Cell<Tick>,
    gone: impl FnMut(&mut Context<'_>) -> Poll<()>,
) -> Result<Stream, Cause> {
    let attempt = async {
        match try_all(backend).await {
            // Idle connections and idle pipes hold descriptors that are needed more urgently now.
            Err(Cause::LocalShortage) if !ctx.pool.is_empty() || ctx.buffers.pipes().has_spare() => {
                ctx.spare_descriptors();
                try_all(backend).await
            }
            other => other,
        }
    };
    let attempt = greet(attempt, greeting);
    finish(ctx, backend, patience, (deadline, stood), gone, attempt).await
}

/// Says `greeting` on a connection as soon as it stands.
async fn greet(
    connecting: impl Future<Output = Result<Stream, Cause>>,
    greeting: Option<&[u8]>,
) -> Result<Stream, Cause> {
    let mut stream = connecting.await?;
    let mut rest = greeting.unwrap_or_default();
    while !rest.is_empty() {
        match poll_fn(|cx| stream.poll_write(cx, rest)).await {
            Ok(count @ 1..) => rest = &rest[count..],
            Ok(0) | Err(_) => return Err(Cause::ConnectFailed),
        }
    }
    Ok(stream)
}

/// The same for what nobody waits for: where descriptors are short it takes them from nobody.
///
/// # Errors
/// See [`dial`].
pub async fn dial_if_there_is_room(
    ctx: &WorkerCtx,
    backend: &Backend,
    patience: &Timeouts,
    (deadline, greeting): (&Deadline, Option<&[u8]>),
    gone: impl FnMut(&mut Context<'_>) -> Poll<()>,
) -> Result<Stream, Cause> {
    let stood = Cell::new(Tick::ZERO);
    finish(ctx, backend, patience, (deadline, &stood), gone, greet(try_all(backend), greeting)).await
}

/// Waits for a connection that is being made, and shakes hands.
#[inline(always)]
async fn finish(
    ctx: &WorkerCtx,
    backend: &Backend,
    patience: &Timeouts,
    (deadline, stood): (&Deadline, &Cell<Tick>),
    mut gone: impl FnMut(&mut Context<'_>) -> Poll<()>,
    attempt: impl Future<Output = Result<Stream, Cause>>,
) -> Result<Stream, Cause> {
    deadline.set(patience.connect);
    let connected = within(deadline, Cause::ConnectTimeout, &mut gone, attempt).await;
    let outcome = match (connected, &backend.tls) {
        (Ok(stream), Some(tls)) => {
            stood.set(now());
            deadline.set(patience.tls);
            let work = Box::pin(secure(tls, stream, backend));
            let secured = within(deadline, Cause::UpstreamTlsTimeout, gone, work).await;
            if matches!(secured, Err(Cause::UpstreamTlsTimeout)) {
                complain(
                    backend,
                    tls,
                    &format!("no handshake in {}", humantime::format_duration(patience.tls)),
                );
            }
            secured
        }
        (connected, _) => connected,
    };
    deadline.clear();
    if outcome.is_ok() {
        ctx.cells.pool.opened.increment();
    }
    outcome
}

async fn try_all(backend: &Backend) -> Result<Stream, Cause> {
    let endpoints = backend.endpoints();
    match &*endpoints {
        [only] => connect_to(backend, only).await,
        several => {
            let mut cause = Cause::ConnectFailed;
            let attempts = several.iter().map(|endpoint| connect_to(backend, endpoint));
            let first = connect::first_of(attempts, |failure| cause = graver(cause, failure));
            Box::pin(first).await.ok_or(cause)
        }
    }
}

async fn connect_to(backend: &Backend, endpoint: &Endpoint) -> Result<Stream, Cause> {
    let outcome = match endpoint {
        Endpoint::Tcp(address) => connect::tcp(*address, &backend.dialing).await.map(Stream::from),
        Endpoint::Unix(path) => connect::unix(path).await,
    };
    outcome.map_err(|error| {
        events::connect_failed(&backend.identity, endpoint, &error);
        failure(&error)
    })
}

/// Whose fault it is that there is no connection.
fn failure(error: &io::Error) -> Cause {
    match error {
        _ if connect::is_of_destination(error) => Cause::NoLocalPort,
        _ if connect::is_shortage(error) => Cause::LocalShortage,
        _ => Cause::ConnectFailed,
    }
}

/// What two addresses of a backend that failed say together: it is blamed only if both are its own fault, since one that we
/// could not ask may have been fine.
fn graver(one: Cause, other: Cause) -> Cause {
    match (one, other) {
        (Cause::LocalShortage, _) | (_, Cause::LocalShortage) => Cause::LocalShortage,
        (Cause::NoLocalPort, _) | (_, Cause::NoLocalPort) => Cause::NoLocalPort,
        _ => other,
    }
}

/// Shakes hands with a backend and makes sure that it is the right one.
async fn secure(tls: &Upstream, stream: Stream, backend: &Backend) -> Result<Stream, Cause> {
    let session = Tls::client(stream, Arc::clone(&tls.config), tls.name.clone());
    let mut session = match session {
        Ok(session) => Box::new(session),
        Err(error) => return Err(wrong(backend, tls, &error, false)),
    };
    match poll_fn(|cx| session.poll_handshake(cx)).await {
        Ok(()) if tls.needs_http2() && !session.is_http2() => {
            complain(backend, tls, "it does not take HTTP/2, which `upstream_protocol: h2` needs (ALPN)");
            Err(Cause::UpstreamTls)
        }
        Ok(()) => Ok(Stream::Tls(session)),
        Err(TlsBroken::Protocol(error)) => Err(wrong(backend, tls, &error, session.version().is_some())),
        Err(TlsBroken::Closed(error)) if connect::is_shortage(&error) => Err(failure(&error)),
        Err(TlsBroken::Closed(error)) => {
            let reason = match error.kind() {
                io::ErrorKind::UnexpectedEof => "it closed the connection in the handshake".to_owned(),
                // The system's text is the best that is left.
                _ => format!("the connection broke in the handshake: {error}"),
            };
            complain(backend, tls, &reason);
            Err(Cause::UpstreamTls)
        }
    }
}

/// The cause if `error`, met where a backend's first byte was awaited, says that it has refused the handshake. In TLS
/// 1.3 our side is done with it before the backend has looked at our certificate (RFC 8446 §4.4.2.4).
#[must_use]
pub fn refusal(backend: &Backend, error: &io::Error) -> Option<Cause> {
    let tls = backend.tls.as_ref()?;
    let error = error.get_ref()?.downcast_ref::<rustls::Error>()?;
    matches!(error, rustls::Error::AlertReceived(_)).then(|| wrong(backend, tls, error, true))
}

/// Notes that a backend has accepted us: its first byte came on a fresh connection.
pub fn accepted(backend: &Backend) {
    if let Some(tls) = &backend.tls {
        tls.complaint.settle();
    }
}

fn wrong(backend: &Backend, tls: &Upstream, error: &rustls::Error, hello: bool) -> Cause {
    complain(backend, tls, &backend_words(error, hello));
    match TlsFault::of(error, hello) {
        TlsFault::Name => Cause::UpstreamTlsName,
        TlsFault::Expired => Cause::UpstreamTlsExpired,
        TlsFault::Issuer => Cause::UpstreamTlsIssuer,
        TlsFault::Refused => Cause::UpstreamTlsRefused,
        TlsFault::NotTls => Cause::UpstreamNotTls,
        TlsFault::Other => Cause::UpstreamTls,
    }
}

/// Tells the operator now and then, and whoever debugs each time.
fn complain(backend: &Backend, tls: &Upstream, reason: &str) {
    if tls.complaint.is_due(now()) {
        events::upstream_tls_failed(&backend.identity, reason);
    } else {
        events::upstream_tls_failed_again(&backend.identity, reason);
    }
}

/// Runs `work` until it is done, its time is up, or nobody wants it any more.
async fn within<T>(
    deadline: &Deadline,
    late: Cause,
    mut gone: impl FnMut(&mut Context<'_>) -> Poll<()>,
    work: impl Future<Output = Result<T, Cause>>,
) -> Result<T, Cause> {
    let mut work = pin!(work);
    poll_fn(|cx| {
        if let Poll::Ready(outcome) = work.as_mut().poll(cx) {
            return Poll::Ready(outcome);
        }
        if deadline.poll(cx).is_ready() {
            return Poll::Ready(Err(late));
        }
        gone(cx).map(|()| Err(Cause::ClientGone))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_is_blamed_only_if_none_of_its_addresses_failed_for_want_of_something_of_ours() {
        use Cause::{ConnectFailed, LocalShortage, NoLocalPort};
        for (one, other, both) in [
            (ConnectFailed, ConnectFailed, ConnectFailed),
            (ConnectFailed, NoLocalPort, NoLocalPort),
            (ConnectFailed, LocalShortage, LocalShortage),
            (NoLocalPort, LocalShortage, LocalShortage),
        ] {
            assert_eq!((graver(one, other), graver(other, one)), (both, both), "{one} {other}");
        }
    }
}
