//! Storing what a backend answers, whoever asked for it.

use std::rc::Rc;
use std::sync::Arc;

use crate::cache::store::{BodyRoom, Filling, FlightLead, Object, ObjectBody, StoredBody};
use crate::cache::{Arrival, AskedBy, CacheKey, Storable, may_store};
use crate::config::model::cache::CachePolicy;
use crate::message::{Framing, Head, WhyNot};
use crate::proxy::WorkerCtx;
use crate::proxy::http::answer_body::AnswerBody;
use crate::proxy::http::call::Call;
use crate::proxy::http::reply::Reply;

use super::fill::{Fill, fill};
use super::reading::StoredReading;

/// Bodies up to this size that came with their head are stored at once.
const AT_ONCE: usize = 64 * 1024;

/// How long the body of an answer is, if that is known.
pub(super) fn length(call: &Call) -> Option<u64> {
    match call.framing() {
        Framing::Length(length) => Some(length),
        Framing::None => Some(0),
        Framing::Chunked | Framing::UntilClose => None,
    }
}

/// Whether an answer is stored, if there is `room` for it.
pub(super) fn may_keep(
    asked: &AskedBy<'_>,
    answer: &Head,
    policy: &CachePolicy,
    arrival: &Arrival,
    room: impl FnOnce() -> Result<BodyRoom, WhyNot>,
) -> Result<(Storable, BodyRoom), WhyNot> {
    may_store(asked, answer, policy, arrival).and_then(|storable| Ok((storable, room()?)))
}

/// An answer that is stored.
pub(super) struct Keeping<'k> {
    /// Under which key.
    pub key: &'k CacheKey,
    /// All of it but its body.
    pub storable: Storable,
    /// What its body may take.
    pub room: BodyRoom,
    /// Who has asked for it.
    pub lead: FlightLead,
    /// It is read to its end though nobody reads it.
    pub to_the_end: bool,
}

/// Stores an answer: at once if its body is here, else as it comes. Gives its body for the one who asked.
pub(super) fn keep(ctx: &Rc<WorkerCtx>, call: Box<Call>, keeping: Keeping<'_>) -> AnswerBody {
    let Keeping { key, storable, room, mut lead, to_the_end } = keeping;
    let purges = lead.purges();
    let object = |body| Arc::new(Object::new(key.clone(), Arc::new(storable), body, purges));
    let expected = length(&call);
    let mut reply = Reply::new(call);
    if expected == Some(0) {
        lead.keep(object(ObjectBody::Whole(StoredBody::default())));
        return AnswerBody::Reply(reply);
    }
    let mut here = Vec::new();
    let is_short = expected.is_some_and(|length| length <= AT_ONCE as u64);
    if is_short && reply.append_rest(&mut here, AT_ONCE) {
        let object = object(ObjectBody::Whole(room.fill(&here)));
        lead.keep(Arc::clone(&object));
        let reading = StoredReading::part(&object, 0, here.len() as u64, &ctx.buffers);
        return AnswerBody::Stored(reading);
    }
    let filling = Filling::new(room, ctx.store.most(), expected);
    let Some(reading) = StoredReading::coming(&filling, &ctx.buffers) else {
        return AnswerBody::Reply(reply);
    };
    let object = object(ObjectBody::Filling(Arc::clone(&filling)));
    lead.open(&object);
    let (source, of) = (AnswerBody::Reply(reply), Rc::clone(ctx));
    let fill = fill(Fill { ctx: of, source, filling, lead: Some(lead), object, to_the_end });
    // A worker that drains waits for it as long as anybody reads it, on whichever worker.
    ctx.unfinished.spawn_local(fill);
    AnswerBody::Stored(reading)
}
