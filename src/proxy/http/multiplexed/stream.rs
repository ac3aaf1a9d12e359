//! One stream: a request through the pipeline, in a task of its own.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Waker;

use super::edge::StreamEdge;
use super::tunnel;
use crate::message::{Cause, Framing, Head};
use crate::net::now;
use crate::proxy::head_buffers::MOST;
use crate::proxy::http::after::After;
use crate::proxy::http::client::Client;
use crate::proxy::http::exchange::{IncomingRequest, Space, exchange};
use crate::proxy::http::h2::code::ErrorCode;
use crate::proxy::http::h2::session::Http2Session;
use crate::proxy::http::h2::stream::ArrivedRequest;
use crate::proxy::http::h2::upload::StreamUpload;
use crate::proxy::http::request_body::RequestBody;
use crate::proxy::http::request_body::client_body::ClientBody;
use crate::proxy::http::routing::answers::refuse;
use crate::proxy::http::stream_tasks::StreamJob;
use crate::proxy::recording::Recording;
use crate::proxy::request_queue::RequestTicket;

/// Lets go of a stream on every way out of its task.
struct Release {
    session: Rc<Http2Session>,
    id: u32,
}

impl Drop for Release {
    fn drop(&mut self) {
        self.session.engine().release(self.id, now);
        self.session.stir();
    }
}

/// Memory of one request that serves the next one.
#[derive(Default)]
struct StreamPapers {
    head: Head,
    space: Space,
}

/// Lets go of a stream that was reset before anybody has looked at it: nothing is picked, dialled or asked for it (CVE-2023-44487).
#[cold]
fn bury(session: &Http2Session, id: u32, request: Box<ArrivedRequest>, cause: Cause) {
    session.engine().release(id, now);
    record_unserved(&session.client, request, cause);
}

/// Leaves a record of a request that nobody serves.
pub(super) fn record_unserved(client: &Client, request: Box<ArrivedRequest>, cause: Cause) {
    let mut record = client.peer.record();
    record.id = client.ctx.request_id();
    record.started = request.started;
    Recording::new(&client.ctx, Some(&request.head), &mut record).settle(cause);
    client.ctx.http2.return_request(request);
}

/// Has a stream served. `has_cut`: one of those that have come is over already.
pub(super) fn begin(session: &Rc<Http2Session>, id: u32, has_cut: bool) {
    if has_cut && session.engine().is_cut(id) {
        let request = session.engine().take_request(id);
        if let Some((request, Some(cause))) = request {
            return bury(session, id, request, cause);
        }
    }
    let ctx = &session.client.ctx;
    let make = |waiting: Option<&Waker>| {
        // It is counted itself.
        let inside = ctx.requests_inside().saturating_sub(1);
        // What it has to wait for is its turn: it need not run to find that out.
        let ticket = waiting.map_or(RequestTicket::New, |waker| {
            ctx.request_queue.enter(waker, &session.last_in_line, inside)
        });
        StreamJob { session: Rc::<Http2Session>::clone(session), id, ticket }
    };
    ctx.stream_tasks.begin(make, serve);
}

/// Serves a stream to its end.
async fn serve(StreamJob { session, id, mut ticket }: StreamJob, papers: &mut StreamPapers) {
    // It always is one: see the only caller.
    let Ok(session) = session.downcast::<Http2Session>() else { return };
    let release = Release { session, id };
    let session = &release.session;
    let ctx = &session.client.ctx;
    // It is counted itself.
    let inside = || ctx.requests_inside().saturating_sub(1);
    poll_fn(|cx| ctx.request_queue.poll_pass(cx, &mut ticket, &session.last_in_line, inside)).await;
    let request = session.engine().take_request(id);
    match request {
        Some((request, None)) => exchange_one(session, id, request, papers).await,
        Some((request, Some(cause))) => bury(session, id, request, cause),
        None => {}
    }
}

async fn exchange_one(
    session: &Rc<Http2Session>,
    id: u32,
    mut arrived: Box<ArrivedRequest>,
    papers: &mut StreamPapers,
) {
    let StreamPapers { head, space } = papers;
    let client = &session.client;
    let ctx = &client.ctx;
    std::mem::swap(head, &mut arrived.head);
    let ArrivedRequest { framing, started, head_read, .. } = *arrived;
    let accept = tunnel::complete(head, &ctx.chance);
    ctx.http2.return_request(arrived);
    let here = client.take_here();
    if !here.told.is_empty() && here.told.finds_lines(head) {
        // Whoever sends them would be believed.
        *head = head.without(|name| here.told.removes(name));
    }
    let incoming = IncomingRequest { ctx, listener: &here, head, peer: &client.peer, started, head_read };
    let sni = client.secured.as_ref().map(|secured| secured.sni.as_deref());
    let framing = match sni {
        Some(sni) if here.is_misdirected(sni, head.authority()) => Err(Cause::MisdirectedRequest),
        _ => framing,
    };
    let after = match framing {
        Ok(Framing::None) => {
            let mut edge = StreamEdge::new(session, id, None);
            edge.expect_tunnel(accept);
            exchange(&incoming, &mut edge, &RequestBody::Empty, space).await
        }
        Ok(framing) => {
            let upload = StreamUpload::new(session, id, framing);
            let mut edge = StreamEdge::new(session, id, Some(Rc::clone(&upload)));
            let body = RequestBody::Client(ClientBody::Stream(upload));
            exchange(&incoming, &mut edge, &body, space).await
        }
        Err(cause) => {
            let mut edge = StreamEdge::new(session, id, None);
            let mut recording = incoming.recording(&mut space.record);
            recording.record.id = ctx.request_id();
            Box::pin(refuse(ctx, &mut edge, &mut recording, head, None, cause)).await
        }
    };
    if after == After::Abort {
        // An answer that was cut must not look complete.
        session.engine().reset_unless_cut(id, ErrorCode::INTERNAL_ERROR, Cause::AnswerCut);
    }
    for head in [&mut *head, &mut space.answer] {
        if head.capacity() > MOST {
            *head = Head::default();
        }
    }
    // The other one is cleared by whoever begins it next.
    space.answer.clear();
}
