//! Another service is asked whether a client may come in: a request of our own to a target, with what the client has sent but the body.
//!
//! It goes the way of any request to that target: health, connections, TLS, queue and retries are there. Only its answer goes elsewhere,
//! and nothing of it is counted as the client's request. Whatever goes wrong, nobody is let in.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::config::model::SendProxy;
use crate::config::model::{ForwardAuth, Forwarded};
use crate::message::{Blame, Cause, Head, HeaderField, Record, status, tokens};
use crate::net::now;
use crate::net::relay::BytesMoved;
use crate::proxy::WorkerCtx;
use crate::proxy::http::after::After;
use crate::proxy::http::answer_body::AnswerBody;
use crate::proxy::http::call::Call;
use crate::proxy::http::call::tunnel_far::TunnelFar;
use crate::proxy::http::client::Secured;
use crate::proxy::http::edge::{Edge, Unsent};
use crate::proxy::http::forward::forward;
use crate::proxy::http::forward::forwarding::{Effort, Forwarding};
use crate::proxy::http::h1::write::About;
use crate::proxy::http::hash_key::hash_key;
use crate::proxy::http::reply::Reply;
use crate::proxy::http::request_body::RequestBody;
use crate::proxy::passed_on::Passing;
use crate::proxy::pool::{Keep, Owner};
use crate::proxy::tunnels::{Tunnel, TunnelEnd};
use crate::snapshot::Destination;
use crate::tick::Tick;

use super::asking::Asking;
use super::authenticated::{AuthRefusal, Authenticated, GivenAnswer};
use super::denial::Denial;

/// Bytes of an answer's body that a client gets at most; a longer one is none.
const ANSWER_MAX: usize = 256 * 1024;

/// Asks whether the client may come in.
///
/// # Errors
/// It may not, or that can't be found out.
pub(super) async fn ask<E: Edge>(
    asking: &Asking<'_>,
    config: &ForwardAuth,
    Destination { target, rules, .. }: &Destination,
    edge: &mut E,
) -> Result<Authenticated, AuthRefusal> {
    let ctx = asking.ctx;
    let began = now();
    let head = question(asking, &config.path);
    let key = if target.config.balance.algorithm.is_hash() {
        hash_key(&rules.hash_key, &head, asking.sender, |address| asking.listener.trusts(address))
    } else {
        None
    };
    let mut record = Record { routed: began, listener: asking.listener.id, ..Record::default() };
    let mut answer = Head::new();
    let mut forwarding = Forwarding {
        ctx,
        target,
        rules,
        edge: &mut QuestionEdge(&mut *edge),
        head: &head,
        body: &RequestBody::Empty,
        key,
        pin: None,
        keep: Keep::Shared,
        upgrade: None,
        about: About { kind: Forwarded::XForwarded, retry: 0, trace: asking.trace(), ..asking.about },
        edits: None,
        answer: &mut answer,
        record: &mut record,
        ready: began,
        effort: Effort::of_question(),
    };
    let call = forward(&mut forwarding).await.map_err(failed)?;
    if (200..300).contains(&answer.status) {
        call.discard(now());
        return Ok(let_in(config, &answer));
    }
    if answer.status < 200 {
        // Nothing else was asked for.
        return Err(failed(Cause::BadAnswer));
    }
    let body = read(ctx, call, edge, began.after(config.timeout)).await.map_err(failed)?;
    Err(AuthRefusal::Answer(Box::new(given(&answer, body))))
}

/// What the service is asked: the client's lines without those that go with a body, and what the client asks for.
fn question(asking: &Asking<'_>, path: &str) -> Head {
    let asked = asking.head;
    let is_gone = |name: &[u8]| {
        let is = |other: &str| {
            name.len() == other.len()
                && name.iter().zip(other.bytes()).all(|(&byte, other)| {
                    let byte = if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
                    byte == other
                })
        };
        LEFT_OUT.iter().any(|other| is(other))
    };
    let authority = String::from_utf8_lossy(asked.authority());
    let mut head = Head::request("GET", path, &authority);
    for line in asked.lines() {
        let (name, value) = asked.pair(line);
        if line.field != HeaderField::Host && !is_gone(name) {
            head.push(name, value);
        }
    }
    head.push_ours(b"X-Forwarded-Method", asked.method());
    // Not as it was sent: whoever judges by it has to judge what the backend will get.
    head.push_ours(b"X-Forwarded-Uri", asking.uri);
    head
}

/// Fields of a body, of conditions and of what is asked, none of which are those of our question.
const LEFT_OUT: &[&str] = &[
    "content-length",
    "content-type",
    "content-encoding",
    "content-range",
    "transfer-encoding",
    "trailer",
    "expect",
    "range",
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
    "if-range",
    "x-forwarded-method",
    "x-forwarded-uri",
    "x-evenkeel-mirror",
];

/// What an answer says of whom it lets in.
fn let_in(config: &ForwardAuth, answer: &Head) -> Authenticated {
    let mut lines = Vec::new();
    for name in &config.copy_headers {
        for line in answer.lines() {
            let (own, value) = answer.pair(line);
            if own.eq_ignore_ascii_case(name.as_bytes()) {
                lines.push((name.clone(), value.to_vec()));
            }
        }
    }
    let first = config.copy_headers.first();
    let named = lines.iter().find(|(name, value)| Some(name) == first && !value.is_empty());
    Authenticated {
        user: named.map(|(_, value)| String::from_utf8_lossy(value).into_owned()),
        cookies: cookies(answer).map(<[u8]>::to_vec).collect(),
        lines,
    }
}

fn cookies(answer: &Head) -> impl Iterator<Item = &[u8]> {
    let all = answer.lines().iter().map(|line| answer.pair(line));
    all.filter(|(name, _)| name.eq_ignore_ascii_case(b"set-cookie")).map(|(_, value)| value)
}

/// An answer as the client gets it: what is of one connection, or says how long it was, stays behind.
fn given(answer: &Head, body: Vec<u8>) -> GivenAnswer {
    let mut head = Head::answer(answer.status);
    let nominated: Vec<&[u8]> = answer.values(HeaderField::Connection).flat_map(tokens).collect();
    for line in answer.lines() {
        let (name, value) = answer.pair(line);
        let is_framing = matches!(
            line.field,
            HeaderField::ContentLength | HeaderField::TransferEncoding | HeaderField::Trailer
        );
        let is_nominated = nominated.iter().any(|other| other.eq_ignore_ascii_case(name));
        if !is_framing && !is_nominated && !line.field.is_hop_by_hop() {
            head.push(name, value);
        }
    }
    if !status::has_no_body(answer.status) {
        head.push(b"Content-Length", body.len().to_string().as_bytes());
    }
    GivenAnswer { head, body }
}

/// Reads the body of an answer.
async fn read<E: Edge>(
    ctx: &Rc<WorkerCtx>,
    call: Box<Call>,
    edge: &mut E,
    end: Tick,
) -> Result<Vec<u8>, Cause> {
    let mut reply = Reply::new(call);
    reply.set_pipes(false);
    let over = ctx.ticker.deadline();
    over.set(end.since(now()).max(Duration::from_millis(1)));
    let mut body = Vec::new();
    loop {
        let piece = poll_fn(|cx| {
            if let Poll::Ready(piece) = reply.poll_piece(cx) {
                return Poll::Ready(piece);
            }
            if over.poll(cx).is_ready() {
                return Poll::Ready(Err(Cause::TotalTimeout));
            }
            edge.poll_gone(cx).map(Err)
        });
        match piece.await? {
            None => return Ok(body),
            Some(piece) if body.len() + piece.len() <= ANSWER_MAX => body.extend_from_slice(piece.data()),
            Some(_) => return Err(Cause::BadAnswerBody),
        }
    }
}

/// Why it can't be found out who a client is, as the client is told: what happened to our question is nobody's business.
fn failed(cause: Cause) -> AuthRefusal {
    let told = match cause {
        Cause::ClientGone | Cause::ClientStalled | Cause::Shutdown | Cause::Internal => cause,
        Cause::TotalTimeout
        | Cause::AttemptTimeout
        | Cause::FirstByteTimeout
        | Cause::ConnectTimeout
        | Cause::AnswerStalled
        | Cause::QueueTimeout => Cause::AuthTimeout,
        Cause::BadAnswer | Cause::BadAnswerBody | Cause::BadUpgrade | Cause::AnswerCut => Cause::AuthAnswer,
        _ => Cause::AuthUnavailable,
    };
    debug_assert!(told.blame() != Blame::Backend);
    AuthRefusal::Denial(Denial::new(told, Vec::new()))
}

/// The client's side of our own question: it is there or it has left, and it gets nothing of what comes.
struct QuestionEdge<'e, E>(&'e mut E);

impl<E: Edge> Edge for QuestionEdge<'_, E> {
    fn secured(&self) -> Option<Rc<Secured>> {
        None
    }

    fn owner(&self) -> Option<&Cell<Option<Owner>>> {
        None
    }

    fn passing(&self, version: SendProxy) -> Passing {
        self.0.passing(version)
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<Cause> {
        self.0.poll_gone(cx)
    }

    fn set_idle(&self, _: Duration) {}

    async fn interim(&mut self, _: &Head) -> Result<(), Cause> {
        Ok(())
    }

    async fn answer(&mut self, _: &Head, _: &mut AnswerBody, _: bool) -> Result<After, Unsent> {
        Err(Unsent { cause: Cause::Internal, started: false })
    }

    async fn tunnel(
        &mut self,
        _: &Head,
        _: &mut TunnelFar,
        _: Duration,
        _: &BytesMoved,
        _: &Tunnel<'_>,
    ) -> TunnelEnd {
        TunnelEnd::Left { cause: Cause::Internal, client: false, backend: false }
    }
}
