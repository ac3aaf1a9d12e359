//! An HTTP/1 client connection from accept to close.
//!
//! Between requests it holds neither buffers nor the state of an exchange: that lives in a future of its own,
//! taken when the first byte of a request is there (`job_futures`).

use std::any::Any;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::config::model::ListenerConfig;
use crate::message::{Cause, Framing, Head, Peer};
use crate::net::{Stream, now};
use crate::proxy::WorkerCtx;
use crate::proxy::client_timer::ClientWait;
use crate::proxy::head_buffers::MOST;
use crate::proxy::recording::Recording;
use crate::proxy::request_queue::{LastInLine, RequestTicket};

use super::after::After;
use super::answer_body::AnswerBody;
use super::client::Client;
use super::exchange::{IncomingRequest, Space, exchange};
use super::gate::Denial;
use super::h1::framing;
use super::h1::search::Search;
use super::h1::write::{self, Persistence};
use super::multiplexed;
use super::own;
use super::parting::{close, discard_body, discard_input, linger};
use super::request_body::RequestBody;
use super::request_body::client_body::ClientBody;
use super::routing::answers::{deny, refuse};
use super::wire::Wire;

/// Makes a connection whose exchange is cut in the middle end in a reset: an answer that is delimited by the
/// close, and a tunnel, would otherwise look complete (RFC 9112 §8).
struct ResetIfCut<'a> {
    client: &'a Client,
    served: bool,
}

impl Drop for ResetIfCut<'_> {
    fn drop(&mut self) {
        if !self.served {
            self.client.stream().reset_on_close();
        }
    }
}

/// How many requests a connection may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stay {
    /// As many as come.
    Open,
    /// No more than one, over HTTP/1.
    OneRequest,
}

/// Serves a connection to its end.
pub async fn serve(client: Rc<Client>, stay: Stay) {
    if client.secured.as_ref().is_some_and(|secured| secured.is_http2) {
        return Box::pin(multiplexed::connection::serve(client)).await;
    }
    let mut patience = client.timeouts().head;
    let mut looked_at = client.stream().is_fresh();
    if has_begun(&client) {
        // Its first request came with what a balancer in front has told, and waits for its turn like any other.
        let mut ticket = RequestTicket::default();
        poll_fn(|cx| pass(&client, cx, &mut ticket)).await;
    }
    loop {
        if !has_begun(&client) && !speaks_again(&client, patience).await {
            return;
        }
        if std::mem::take(&mut looked_at) {
            client.ctx.promptness.note(client.stream().is_fresh());
        }
        patience = client.timeouts().keep_alive;
        let mut exchange = ResetIfCut { client: &client, served: false };
        let after = client.ctx.job_futures.run(Rc::<Client>::clone(&client) as Rc<dyn Any>, serve_one).await;
        exchange.served = true;
        drop(exchange);
        match after {
            Some(After::KeepOpen) if stay == Stay::Open => {
                client.is_new.set(false);
                client.end_body();
            }
            Some(After::KeepOpen | After::Linger) => return linger(&client).await,
            Some(After::SpeaksHttp2) if stay == Stay::Open => {
                return Box::pin(multiplexed::connection::serve(client)).await;
            }
            Some(After::Close | After::SpeaksHttp2) => return close(&client).await,
            Some(After::Abort) => return client.stream().reset_on_close(),
            None => return,
        }
    }
}

/// Turns a connection away for which there is no room, which may not come in, or which speaks plainly where TLS is spoken. What it
/// is told has a status.
pub async fn turn_away(client: Rc<Client>, denial: Denial) {
    let ctx = &client.ctx;
    let head = Head::new();
    let mut record = client.peer.record();
    record.id = ctx.request_id();
    let mut recording = Recording::new(ctx, None, &mut record);
    let mut wire = Wire::new(&client, &head, true);
    deny(ctx, &mut wire, &mut recording, &head, None, denial).await;
    drop(recording);
    // Its request is still on the way: a plain close would meet it with a reset.
    discard_input(&client).await;
}

/// The same for a connection that there is not even time for: one read, one write, closed. What the client had
/// sent by now does not reset the answer away.
pub fn dismiss(ctx: &Rc<WorkerCtx>, stream: &Stream, peer: &Peer, denial: &Denial) {
    let mut record = peer.record();
    record.id = ctx.request_id();
    let mut recording = Recording::new(ctx, None, &mut record);
    recording.settle(denial.cause);
    // Closed without a word.
    let Some(status) = denial.status else { return };
    let told = (denial.cause, status);
    let (head, body) = own::answer(told, recording.record.id, false, &ctx.buffers);
    let mut out = Vec::with_capacity(512);
    ctx.with_date(|date| write::answer(&mut out, &head, body.framing(), Persistence::Close, date));
    if let AnswerBody::Memory(memory) = body {
        memory.pieces.iter().for_each(|piece| out.extend_from_slice(piece));
    }
    if stream.dismiss(&out) {
        recording.record.status = head.status;
    }
}

/// Waits for the first byte of a request. False: the connection is to be closed instead.
async fn speaks_again(client: &Client, patience: Duration) -> bool {
    client.timer().begin(ClientWait::Request, patience);
    let mut draining = false;
    let mut ticket = RequestTicket::default();
    poll_fn(|cx| {
        // A read and not a look: the runtime takes a new socket for readable until a read has shown otherwise.
        if may_begin(client, cx, &mut ticket)
            && let Poll::Ready(outcome) = client.poll_fill(cx)
        {
            return Poll::Ready(outcome.is_ok_and(|count| count > 0));
        }
        if client.is_leaving() && !draining {
            draining = true;
            client.timer().begin(ClientWait::Request, client.ctx.drain_silence().min(patience));
        }
        // What the kernel has and the event loop has not seen yet came before our close: it is a request.
        client.timer().poll(ClientWait::Request, cx).map(|()| !client.stream().is_silent())
    })
    .await
}

/// Whether a request, if there is one, is to be begun now.
fn may_begin(client: &Client, cx: &mut Context<'_>, ticket: &mut RequestTicket) -> bool {
    let (request_queue, inside) = (&client.ctx.request_queue, client.ctx.requests_inside());
    request_queue.is_open(inside)
        || client.stream().poll_readable(cx).is_ready() && pass(client, cx, ticket).is_ready()
}

/// Ready when its turn has come.
fn pass(client: &Client, cx: &Context<'_>, ticket: &mut RequestTicket) -> Poll<()> {
    let inside = || client.ctx.requests_inside();
    client.ctx.request_queue.poll_pass(cx, ticket, &LastInLine::default(), inside)
}

/// Memory of one request that serves the next one. Its request's head is empty between.
#[derive(Default)]
struct Papers {
    head: Head,
    space: Space,
}

impl Papers {
    /// Forgets what a request has left; a single large head must not cost for ever.
    fn clear(&mut self) {
        for head in [&mut self.head, &mut self.space.answer] {
            if head.capacity() > MOST {
                *head = Head::default();
            } else {
                head.clear();
            }
        }
    }
}

/// Reads one request and serves it. `None`: the connection ended, and there is nobody to tell.
async fn serve_one(client: Rc<dyn Any>, papers: &mut Papers) -> Option<After> {
    // It always is one: see the only caller.
    let client = &client.downcast::<Client>().ok()?;
    let Papers { head, space } = papers;
    let started = now();
    let here = client.take_here();
    let read = read_head(client, &here.config, head).await?;
    if let Err(cause) = read.outcome
        && is_http2(client, &here.config, cause)
    {
        // Nothing of it was used.
        return Some(After::SpeaksHttp2);
    }
    let head_read = if read.waited { now() } else { started };
    let framing = read.outcome.and_then(|()| framing::request(head));
    let framing = framing.and_then(|framing| match client.belongs_elsewhere(&here) {
        false => Ok(framing),
        true => Err(Cause::MisdirectedRequest),
    });
    if !here.told.is_empty() && here.told.finds_lines(head) {
        // Whoever sends them would be believed.
        *head = head.without(|name| here.told.removes(name));
    }
    let ctx = &client.ctx;
    let (peer, told) = (&client.peer, client.told.get());
    let incoming = IncomingRequest { ctx, listener: &here, head, peer, told, started, head_read };
    let mut wire = Wire::new(client, head, framing.is_err());
    let after = match framing {
        Ok(framing) => {
            let body = if framing == Framing::None {
                RequestBody::Empty
            } else {
                client.start_body(framing);
                RequestBody::Client(ClientBody::Socket(Rc::clone(client)))
            };
            exchange(&incoming, &mut wire, &body, space).await
        }
        Err(cause) => {
            // Where this request ends nobody knows: whatever else comes belongs to it, until the client closes.
            client.start_body(Framing::UntilClose);
            let mut recording = incoming.recording(&mut space.record);
            recording.record.id = ctx.request_id();
            if cause == Cause::Http2Preface {
                recording.settle(cause);
                match Box::pin(wire.send_away(cause, recording.record.id)).await {
                    Ok(()) => {
                        recording.record.status = cause.status();
                        After::Linger
                    }
                    Err(_) => After::Abort,
                }
            } else {
                Box::pin(refuse(ctx, &mut wire, &mut recording, head, None, cause)).await
            }
        }
    };
    papers.clear();
    client.set_idle(None);
    client.timer().end();
    if after == After::KeepOpen && !client.is_body_done() && !discard_body(client).await {
        return Some(After::Linger);
    }
    // A client that has finished sending still gets the answers to all that it sent.
    let last = client.presence.has_ended() && !client.has_held();
    Some(if after == After::KeepOpen && last { After::Linger } else { after })
}

/// Whether what a connection has begun with, and what is no request for this cause, is for HTTP/2 to judge: its preface, and whatever
/// does not even say HTTP.
#[cold]
fn is_http2(client: &Client, config: &ListenerConfig, cause: Cause) -> bool {
    let may = client.is_new.get() && client.secured.is_none() && config.http2.is_some();
    let is_other = || {
        let says_http = |line: &[u8]| memchr::memmem::find(line, b"HTTP/").is_some();
        client.with_held(|held| {
            let line = held.as_ref().and_then(|buffer| buffer.data().split(|&byte| byte == b'\n').next());
            line.is_some_and(|line| !says_http(line))
        })
    };
    may && (cause == Cause::Http2Preface || cause == Cause::BadHead && is_other())
}

/// How reading a head ended.
struct HeadRead {
    outcome: Result<(), Cause>,
    /// It did not come at once.
    waited: bool,
}

/// Reads a whole head. `None`: the client closed, or was silent, without a byte of one.
async fn read_head(client: &Client, config: &ListenerConfig, head: &mut Head) -> Option<HeadRead> {
    let mut search = Search::default();
    let mut waited = false;
    let outcome = loop {
        let (size, headers) = (config.limits.head_size, config.limits.headers);
        let found = client.with_held(|held| {
            let Some(buffer) = held else { return Ok(None) };
            let known = &mut *client.ctx.known_lines.borrow_mut();
            let found = search.request_among(known, buffer.data(), size, headers, head);
            if let Ok(Some(length)) = found {
                buffer.consume(length);
                if buffer.is_empty() {
                    *held = None;
                }
            }
            found
        });
        match found {
            Err(cause) => break Some(Err(cause)),
            Ok(Some(_)) => break Some(Ok(())),
            Ok(None) => {}
        }
        if !waited {
            waited = true;
            client.timer().begin(ClientWait::Head, config.client_timeouts.head);
        }
        let filled = poll_fn(|cx| {
            if let Poll::Ready(outcome) = client.poll_fill(cx) {
                return Poll::Ready(Some(outcome));
            }
            client.timer().poll(ClientWait::Head, cx).map(|()| None)
        })
        .await;
        match filled {
            Some(Ok(count)) if count > 0 => {}
            Some(Ok(_)) if has_begun(client) => break Some(Err(Cause::ClientGone)),
            None if has_begun(client) => break Some(Err(Cause::HeadTimeout)),
            Some(Ok(_) | Err(_)) | None => break None,
        }
    };
    client.timer().end();
    outcome.map(|outcome| HeadRead { outcome, waited })
}

/// Whether a request has begun: an empty line alone, as some clients send behind a body, is none.
fn has_begun(client: &Client) -> bool {
    client.with_held(|held| held.as_ref().is_some_and(|buffer| buffer.data() != b"\r\n"))
}

#[cfg(test)]
mod tests;
