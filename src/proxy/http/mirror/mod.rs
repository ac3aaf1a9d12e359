//! Copies of requests for another target, whose answers nobody awaits.
//!
//! A copy is made where a route has a `mirror`: of a request without a body at once, of one with a body when the last byte of
//! that was read for its own backend. From then on it is a task of its own that nobody waits for. Whatever there is no room for
//! is dropped, and counted; how much room there is says [`room`].

pub mod copy;
pub mod room;
pub mod send;
pub mod tee;

use std::rc::Rc;
use std::sync::Arc;

use tokio::task::spawn_local;

use crate::config::model::Share;
use crate::message::{Cause, Framing, Head, HeaderField};
use crate::net::now;
use crate::proxy::WorkerCtx;
use crate::proxy::http::h1::edit::RequestEdits;
use crate::proxy::http::h1::write::About;
use crate::proxy::http::identity;
use crate::proxy::http::request_body::RequestBody;
use crate::proxy::passed_on::Passing;
use crate::targets::Target;

use copy::{Made, MirrorCopy};
use room::{Entered, Load};
use send::carry;
use tee::{MOST, Tee, Teed, TeedBody};

/// A request that may be copied.
pub struct Original<'a> {
    /// The worker that serves it.
    pub ctx: &'a Rc<WorkerCtx>,
    /// Who gets the copy.
    pub target: &'a Arc<Target>,
    /// The listener and the route by which it does.
    pub names: [&'a str; 2],
    /// The head, as the request's own backend gets it.
    pub head: &'a Head,
    /// What the route changes about its lines.
    pub edits: Option<RequestEdits<'a>>,
    /// The body.
    pub body: &'a RequestBody,
    /// What backends are told about the client.
    pub about: About<'a>,
    /// What the copy's backend is chosen by where its target hashes.
    pub key: Option<u64>,
    /// How the connection to it begins, where backends are told whose they are.
    pub passing: Option<Passing>,
}

/// Whether chance wants a request copied.
#[must_use]
pub fn is_wanted(ctx: &WorkerCtx, share: Share) -> bool {
    share == Share::ALL || ctx.chance.below(Share::ALL.millionths() as usize) < share.millionths() as usize
}

/// Whether a request is a copy itself: those are not copied again, so none goes round in circles.
#[must_use]
pub fn is_copy(head: &Head) -> bool {
    head.has(HeaderField::XEvenkeelMirror)
}

/// Has a request copied.
pub fn copy(original: &Original<'_>) {
    let &Original { ctx, target, body, .. } = original;
    let (cells, id) = (&ctx.cells.copies, target.id);
    cells.choose(id);
    let framing = body.framing();
    if matches!(framing, Framing::Length(length) if length > MOST as u64) {
        return cells.end(id, Cause::MirrorTooLong);
    }
    if ctx.mirrors.lanes.is_full(id) {
        return cells.end(id, Cause::MirrorFull);
    }
    let made = Made {
        target,
        names: original.names,
        head: original.head,
        edits: original.edits,
        framing,
        about: &original.about,
        key: original.key,
        keep: identity::keep(original.head, &ctx.pool, None),
        passing: original.passing.clone(),
        now: now(),
    };
    let Some(mut copy) = MirrorCopy::new(&made, ctx.outgoing.take(), ctx.mirrors.room.load()) else {
        return cells.end(id, Cause::MirrorFull);
    };
    match body {
        RequestBody::Client(client) if !client.is_done() => {
            let (ctx, load) = (Rc::clone(ctx), copy.load());
            let needs_content = copy.target.config.upstream.is_http2();
            let tee = Tee::new(load, move |end, load| match end {
                Teed::Whole(body) => begin_with(&ctx, copy, &body, load),
                Teed::TooLong => ctx.cells.copies.end(id, Cause::MirrorTooLong),
                Teed::NoRoom => ctx.cells.copies.end(id, Cause::MirrorFull),
                Teed::Cut => ctx.cells.copies.end(id, Cause::MirrorUnfinished),
            });
            client.tee(tee.of_content(needs_content));
        }
        RequestBody::Memory(memory) => {
            let mut load = copy.load();
            let bytes: Vec<u8> = memory.pieces.iter().flatten().copied().collect();
            if bytes.len() > MOST {
                return cells.end(id, Cause::MirrorTooLong);
            }
            if !load.grow(bytes.len() + memory.trailers.len()) {
                return cells.end(id, Cause::MirrorFull);
            }
            copy.add_body(&TeedBody { bytes, is_raw: false, trailers: memory.trailers.clone() }, load);
            begin(ctx, copy);
        }
        RequestBody::Empty | RequestBody::Client(_) | RequestBody::Replayed(_) => begin(ctx, copy),
    }
}

fn begin_with(ctx: &Rc<WorkerCtx>, mut copy: Box<MirrorCopy>, body: &TeedBody, load: Load) {
    copy.add_body(body, load);
    begin(ctx, copy);
}

/// Sends a copy that is whole, now or after others.
fn begin(ctx: &Rc<WorkerCtx>, copy: Box<MirrorCopy>) {
    let target = copy.target.id;
    match ctx.mirrors.lanes.enter(target, copy) {
        Entered::Begin(copy) => drop(spawn_local(carry(Rc::clone(ctx), copy))),
        Entered::Wait => {}
        Entered::Full(_) => ctx.cells.copies.end(target, Cause::MirrorFull),
    }
}
