//! What an answer looks like.

use std::convert::Infallible;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Bytes};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;

use super::problem_document::{MEDIA_TYPE, ProblemDocument};

/// A body, whole or one that is made while it is sent.
pub type AdminBody = UnsyncBoxBody<Bytes, Infallible>;

/// Who reads an answer that is made while it is sent: stands in the extensions of one that goes on for as long as it is read.
#[derive(Clone, Debug)]
pub struct StreamReader(pub String);

/// Stands in the extensions of an answer that is made while it is sent, and has an end.
#[derive(Clone, Copy, Debug)]
pub struct InPieces;

/// An answer.
pub type AdminAnswer = Response<AdminBody>;

/// 200 with `of` as JSON.
#[must_use]
pub fn ok(of: &impl Serialize) -> AdminAnswer {
    json(StatusCode::OK, of)
}

/// `of` as JSON.
#[must_use]
pub fn json(status: StatusCode, of: &impl Serialize) -> AdminAnswer {
    typed(status, "application/json", of)
}

/// 200 with a text that is JSON.
#[must_use]
pub fn raw_json(text: Bytes) -> AdminAnswer {
    answer(StatusCode::OK, "application/json", Full::from(text).boxed_unsync())
}

/// A problem.
#[must_use]
pub fn problem(of: &ProblemDocument) -> AdminAnswer {
    typed(of.status(), MEDIA_TYPE, of)
}

/// 200 with a body that is made while it is sent, such as the events of `text/event-stream`.
#[must_use]
pub fn stream<B>(media_type: &'static str, body: B) -> AdminAnswer
where
    B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    answer(StatusCode::OK, media_type, body.boxed_unsync())
}

fn typed(status: StatusCode, media_type: &'static str, of: &impl Serialize) -> AdminAnswer {
    // None of our types fails: they have texts for keys.
    let mut text = serde_json::to_vec(of).unwrap_or_default();
    text.push(b'\n');
    answer(status, media_type, Full::from(text).boxed_unsync())
}

fn answer(status: StatusCode, media_type: &'static str, body: AdminBody) -> AdminAnswer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let fixed: [(HeaderName, &'static str); 2] = [(CONTENT_TYPE, media_type), (CACHE_CONTROL, "no-store")];
    for (name, value) in fixed {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}
