//! Answers of our own: those that a route gives itself, and what a client gets that is refused.

use crate::config::model::route::{Action, Redirect, Respond};
use crate::message::{Cause, Framing, Head, grpc, status};
use crate::proxy::WorkerCtx;
use crate::proxy::http::after::After;
use crate::proxy::http::answer_body::AnswerBody;
use crate::proxy::http::body::{FixedBody, Memory};
use crate::proxy::http::edge::Edge;
use crate::proxy::http::gate::Denial;
use crate::proxy::http::gate::authenticated::GivenAnswer;
use crate::proxy::http::own;
use crate::proxy::recording::Recording;
use crate::route::render;

use super::Routed;
use super::way::Way;

/// Refuses a request, on the way of its route if it has one.
pub async fn refuse<E: Edge>(
    ctx: &WorkerCtx,
    edge: &mut E,
    recording: &mut Recording<'_>,
    head: &Head,
    way: Option<&Way<'_>>,
    cause: Cause,
) -> After {
    deny(ctx, edge, recording, head, way, Denial::of(cause)).await
}

/// The same in the words of `denial`.
pub async fn deny<E: Edge>(
    ctx: &WorkerCtx,
    edge: &mut E,
    recording: &mut Recording<'_>,
    head: &Head,
    way: Option<&Way<'_>>,
    Denial { cause, status, lines }: Denial,
) -> After {
    recording.settle(cause);
    let Some(status) = status else { return After::Abort };
    if matches!(cause, Cause::ClientGone | Cause::ClientStalled) {
        return After::Abort;
    }
    if let Some(target) = recording.record.target {
        ctx.cells.refusals.refuse(target, cause);
    }
    if cause == Cause::GrpcTimeout {
        edge.charge_abandoned();
    }
    let to_head = head.method() == b"HEAD";
    let (mut answer, mut body) = if grpc::is_grpc(head) {
        let (answer, ended) = own::call_answer((cause, status), recording.record.id);
        recording.record.grpc = Some(ended);
        (answer, AnswerBody::Empty)
    } else {
        own::answer((cause, status), recording.record.id, to_head, &ctx.buffers)
    };
    for (name, value) in lines {
        answer.push(name.as_bytes(), value.as_bytes());
    }
    if let Some(way) = way {
        if way.route.cache.is_some() {
            // RFC 9211 §2: it is neither a hit nor forwarded.
            answer.push(b"Cache-Status", format!("evenkeel; detail={}", cause.token()).as_bytes());
        }
        way.edit_answer(&mut answer, "");
    }
    // After a client's mistake nothing that follows on its connection can be trusted; one that there is no room
    // for is closed whatever follows.
    send(edge, recording, &answer, &mut body, cause.ends_connection()).await.unwrap_or(After::Abort)
}

/// Sends an answer that we have made.
///
/// # Errors
/// Why it did not get to its end.
async fn send<E: Edge>(
    edge: &mut E,
    recording: &mut Recording<'_>,
    answer: &Head,
    body: &mut AnswerBody,
    last: bool,
) -> Result<After, Cause> {
    let length = if let Framing::Length(length) = body.framing() { length } else { 0 };
    let after = edge.answer(answer, body, last).await.map_err(|unsent| unsent.cause)?;
    recording.record.status = answer.status;
    recording.record.bytes_out = length;
    Ok(after)
}

/// Sends an answer that is what was wanted.
async fn give<E: Edge>(
    edge: &mut E,
    recording: &mut Recording<'_>,
    answer: &Head,
    body: &mut AnswerBody,
    last: bool,
) -> After {
    let (cause, after) = match send(edge, recording, answer, body, last).await {
        Ok(after) => (Cause::Done, after),
        Err(cause) => (cause, After::Abort),
    };
    recording.settle(cause);
    after
}

/// Ends a request that goes to no backend.
pub async fn answer_here<'a, E: Edge>(
    ctx: &WorkerCtx,
    edge: &mut E,
    recording: &mut Recording<'a>,
    head: &Head,
    routed: Routed<'a>,
) -> After {
    if let Some(route) = routed.route() {
        recording.on(route);
    }
    match routed {
        // Whoever calls has taken this way already.
        Routed::Forward(..) | Routed::Ask(_) => {
            refuse(ctx, edge, recording, head, None, Cause::Internal).await
        }
        Routed::Refuse(cause, way) => refuse(ctx, edge, recording, head, way.as_ref(), cause).await,
        Routed::Deny(denial, way) => deny(ctx, edge, recording, head, way.as_ref(), *denial).await,
        Routed::Relay(given, way) => {
            let GivenAnswer { head: mut answer, body } = *given;
            let to_head = head.method() == b"HEAD" || status::has_no_body(answer.status);
            let mut body = match to_head {
                true => AnswerBody::Empty,
                false => AnswerBody::Memory(Box::new(Memory::whole(body, ctx.buffers.clone()))),
            };
            recording.settle(Cause::AuthDenied);
            way.edit_answer(&mut answer, "");
            match send(edge, recording, &answer, &mut body, false).await {
                Ok(after) => after,
                Err(cause) => {
                    recording.settle(cause);
                    After::Abort
                }
            }
        }
        Routed::Prove(proof) => {
            let mut answer = Head::answer(200);
            answer.push(b"Content-Type", b"application/octet-stream");
            answer.push(b"Content-Length", proof.len().to_string().as_bytes());
            answer.push(b"Cache-Control", b"no-store");
            let mut body = match head.method() == b"HEAD" {
                true => AnswerBody::Empty,
                false => {
                    let text = proof.as_bytes().to_vec();
                    AnswerBody::Memory(Box::new(Memory::whole(text, ctx.buffers.clone())))
                }
            };
            // Who asks for one may be let in for nothing else.
            give(edge, recording, &answer, &mut body, true).await
        }
        Routed::Answer(way) => {
            let to_head = head.method() == b"HEAD";
            let (mut answer, mut body) = match &way.route.config.action {
                Action::Redirect(redirect) => redirected(ctx, &way, redirect, to_head),
                Action::Respond(respond) => {
                    let answer = responded(&way, respond);
                    let has_body = !to_head && !is_bodiless(respond.status) && !respond.body.is_empty();
                    let fixed = || AnswerBody::Fixed(Box::new(FixedBody::new(respond, &ctx.buffers)));
                    (answer, if has_body { fixed() } else { AnswerBody::Empty })
                }
                Action::Forward(_) | Action::Split(_) => {
                    return refuse(ctx, edge, recording, head, Some(&way), Cause::Internal).await;
                }
            };
            way.edit_answer(&mut answer, "");
            give(edge, recording, &answer, &mut body, false).await
        }
    }
}

/// Whether an answer with this status has no content (RFC 9110 §15.3.6 for the last one).
const fn is_bodiless(code: u16) -> bool {
    status::has_no_body(code) || code == 205
}

/// The head of a route's own answer. It is the same for HEAD (RFC 9110 §9.3.2).
fn responded(way: &Way<'_>, respond: &Respond) -> Head {
    let mut answer = Head::answer(respond.status);
    let length = if is_bodiless(respond.status) { 0 } else { respond.body.len() };
    if !status::has_no_body(respond.status) {
        answer.push(b"Content-Length", length.to_string().as_bytes());
    }
    if let Some(kind) = respond.content_type.as_deref().filter(|kind| render::is_field_value(kind.as_bytes()))
    {
        answer.push(b"Content-Type", kind.as_bytes());
    }
    way.fill(|facts| ((), way.route.own_lines.apply(&mut answer, facts)));
    answer
}

/// The answer that sends a client elsewhere, with a line about that for people.
fn redirected(ctx: &WorkerCtx, way: &Way<'_>, redirect: &Redirect, to_head: bool) -> (Head, AnswerBody) {
    let mut answer = Head::answer(redirect.status);
    let to = way.fill(|facts| {
        let to = render::location(&redirect.to, facts);
        let dropped = usize::from(to.is_empty());
        (to, dropped)
    });
    let mut text = Vec::with_capacity(to.len() + 40);
    text.extend_from_slice(format!("{} {}\n", redirect.status, status::reason(redirect.status)).as_bytes());
    if !to.is_empty() {
        answer.push(b"Location", &to);
        text.extend_from_slice(&to);
        text.push(b'\n');
    }
    answer.push(b"Content-Type", b"text/plain; charset=utf-8");
    answer.push(b"Content-Length", text.len().to_string().as_bytes());
    // A temporary one is meant for this request, and a permanent one that depends on who asks is nothing for others.
    let is_permanent = matches!(redirect.status, 301 | 308) && !to.is_empty();
    if !is_permanent || !way.route.is_same_for_all {
        answer.push(b"Cache-Control", b"no-store");
    }
    let body = Memory::whole(text, ctx.buffers.clone());
    (answer, if to_head { AnswerBody::Empty } else { AnswerBody::Memory(Box::new(body)) })
}
