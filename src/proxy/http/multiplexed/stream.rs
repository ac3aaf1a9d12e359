//! One stream: a request through the pipeline, in a task of its own.

use std::rc::Rc;

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
    let job = StreamJob { session: Rc::<Http2Session>::clone(session), id };
    ctx.request_queue.begin(job, start, &session.last_in_line, ctx.requests_inside());
}

/// Gives a stream whose turn has come a task.
fn start(job: StreamJob) {
    // It always is one: see the only caller.
    let Some(session) = job.session.downcast_ref::<Http2Session>() else { return };
    let ctx = Rc::clone(&session.client.ctx);
    ctx.stream_tasks.begin(job, serve);
}

/// Serves a stream to its end.
async fn serve(StreamJob { session, id }: StreamJob, papers: &mut StreamPapers) {
    // It always is one.
    let Ok(session) = session.downcast::<Http2Session>() else { return };
    let release = Release { session, id };
    let session = &release.session;
    let request = session.engine().take_request(id);
    // In one function with what follows: the future of another one would be moved to its place, and it is large.
    let Some((mut arrived, cut)) = request else { return };
    if let Some(cause) = cut {
        return bury(session, id, arrived, cause);
    }
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
    let (peer, told) = (&client.peer, client.told.get());
    let incoming = IncomingRequest { ctx, listener: &here, head, peer, told, started, head_read };
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
