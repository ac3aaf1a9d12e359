//! Errors of the API: problem documents (RFC 9457).

use hyper::StatusCode;
use serde::{Deserialize, Serialize};

use crate::reload::fault::Fault;

/// What `Content-Type` says of one.
pub const MEDIA_TYPE: &str = "application/problem+json";

/// Why a request was not answered as it was meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemDocument {
    /// `about:blank` where the status says it all.
    #[serde(rename = "type")]
    pub kind: String,
    /// The same for each problem of its type.
    pub title: String,
    /// That of the answer.
    pub status: u16,
    /// What is wrong with this request.
    pub detail: String,
    /// Where in its body that is: a JSON pointer (RFC 6901).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<Box<str>>,
    /// What is wrong with the config that it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Fault>,
}

impl ProblemDocument {
    /// Of a request that is wrong in itself.
    #[must_use]
    pub fn plain(status: StatusCode, detail: impl Into<String>) -> ProblemDocument {
        ProblemDocument {
            kind: "about:blank".to_owned(),
            title: status.canonical_reason().unwrap_or("Error").to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            pointer: None,
            problems: Vec::new(),
        }
    }

    /// Of a value in a body that is not what it should be: `/weight: a whole number from 0 to 256`. 422.
    #[must_use]
    pub fn at(pointer: &str, expected: &str) -> ProblemDocument {
        ProblemDocument::placed(StatusCode::UNPROCESSABLE_ENTITY, pointer, expected)
    }

    /// Of a field that a body has twice. 400: nobody knows which one is meant.
    #[must_use]
    pub fn twice(pointer: &str) -> ProblemDocument {
        ProblemDocument::placed(StatusCode::BAD_REQUEST, pointer, "this field stands there twice")
    }

    fn placed(status: StatusCode, pointer: &str, said: &str) -> ProblemDocument {
        let place = if pointer.is_empty() { "the body" } else { pointer };
        let plain = ProblemDocument::plain(status, format!("{place}: {said}"));
        ProblemDocument { pointer: Some(pointer.into()), ..plain }
    }

    /// Of a config that is not taken. `is_conflict`: it is right, and this process can't go over to it now.
    #[must_use]
    pub fn refused(problems: Vec<Fault>, is_conflict: bool) -> ProblemDocument {
        let status = if is_conflict { StatusCode::CONFLICT } else { StatusCode::UNPROCESSABLE_ENTITY };
        let first = problems.first().map(Fault::first_line).unwrap_or_default();
        ProblemDocument {
            kind: "urn:evenkeel:problem:config-refused".to_owned(),
            title: "The config is refused, nothing has changed".to_owned(),
            status: status.as_u16(),
            detail: first.to_owned(),
            pointer: None,
            problems,
        }
    }

    /// Of what can't be kept on the disk: 507 where that is full, else 503.
    #[must_use]
    pub fn unkept(is_full: bool, detail: &str) -> ProblemDocument {
        let full = StatusCode::INSUFFICIENT_STORAGE;
        let status = if is_full { full } else { StatusCode::SERVICE_UNAVAILABLE };
        ProblemDocument {
            kind: "urn:evenkeel:problem:not-kept".to_owned(),
            ..ProblemDocument::plain(status, detail)
        }
    }

    /// Its status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}
