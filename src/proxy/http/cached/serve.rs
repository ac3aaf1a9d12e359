//! An answer out of the store.

use std::sync::Arc;

use crate::cache::store::{Object, ObjectBody};
use crate::cache::{
    CacheRequest, CacheStatus, Freshness, HttpSeconds, Served, answer_of, not_modified, partial,
    unsatisfiable,
};
use crate::message::Head;
use crate::net::FreeList;
use crate::proxy::http::answer_body::AnswerBody;
use crate::proxy::http::h1::digits::push_number;
use crate::tick::Tick;

use super::reading::StoredReading;

/// Who is served, and when.
pub(super) struct Serving<'s> {
    /// What it asks.
    pub request: &'s CacheRequest<'s>,
    /// What is said of where the answer comes from.
    pub status: CacheStatus,
    /// The moment.
    pub now: Tick,
    /// The same on the wall clock.
    pub date: HttpSeconds,
    /// Where buffers come from.
    pub buffers: &'s FreeList,
}

/// Writes the head of an answer, and gives its body. `None`: only the origin may judge what the client asks, or its body can't be read
/// from the beginning any more.
pub(super) fn serve(
    serving: &Serving<'_>,
    stored: &Head,
    freshness: &Freshness,
    object: &Arc<Object>,
    answer: &mut Head,
) -> Option<AnswerBody> {
    let Serving { request, status, now, date, buffers } = serving;
    let body = match &object.body {
        // Of what is still coming there are no parts, and whether its client has it already is seen by its head alone.
        ObjectBody::Filling(_) if request.is_conditional() => return None,
        ObjectBody::Filling(_) => {
            answer.copy_from(stored);
            AnswerBody::Stored(StoredReading::all(object, buffers)?)
        }
        ObjectBody::Whole(whole) => {
            let length = whole.length();
            let part = |first, end| AnswerBody::Stored(StoredReading::part(object, first, end, buffers));
            match answer_of(request, stored, length, *date) {
                Served::Whole => {
                    answer.copy_from(stored);
                    if has_no_body(stored.status) {
                        AnswerBody::Empty
                    } else if request.is_head {
                        push_length(answer, length);
                        AnswerBody::Stored(StoredReading::nothing(object, buffers))
                    } else {
                        part(0, length)
                    }
                }
                Served::NotModified => {
                    *answer = not_modified(stored);
                    AnswerBody::Empty
                }
                Served::Part { first, last } => {
                    *answer = partial(stored, (first, last), length);
                    part(first, last + 1)
                }
                Served::Unsatisfiable => {
                    *answer = unsatisfiable(stored, length);
                    push_length(answer, 0);
                    AnswerBody::Empty
                }
                Served::Past => return None,
            }
        }
    };
    answer.push_with(b"Age", |out| push_number(out, freshness.age_seconds(*now)));
    say(answer, status);
    Some(body)
}

/// Adds the line that says where an answer comes from (RFC 9211), behind those of caches that it has come through.
pub(super) fn say(answer: &mut Head, status: &CacheStatus) {
    answer.push_with(b"Cache-Status", |out| status.write(out));
}

fn has_no_body(status: u16) -> bool {
    matches!(status, 204 | 304)
}

/// Adds the line that says how long the body is.
pub(super) fn push_length(answer: &mut Head, length: u64) {
    let mut number = Vec::with_capacity(20);
    push_number(&mut number, length);
    answer.push(b"Content-Length", &number);
}
