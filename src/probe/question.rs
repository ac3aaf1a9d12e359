//! What an HTTP probe asks, and what it makes of the answer.

use std::ops::RangeInclusive;
use std::sync::Arc;

use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use memchr::memmem::Finder;
use tokio::io::{AsyncRead, AsyncWrite};

use super::exchange::{self, ProbeWire};
use super::fault;
use super::finding::Finding;
use crate::targets::Verdict;

/// The most bytes of an answer's body that are looked at.
const BODY_SIZE: usize = 64 * 1024;
/// Signs of the text that a body lacks which are shown.
const SHOWN: usize = 40;

/// What an HTTP probe asks and which answers it takes for good.
pub(super) struct ProbeQuestion {
    /// Asked for with GET.
    pub(super) path: Arc<str>,
    /// The Host header.
    pub(super) host: String,
    /// What it is asked in.
    pub(super) wire: ProbeWire,
    /// Over TLS.
    pub(super) is_secure: bool,
    /// Good statuses.
    pub(super) expect: Vec<RangeInclusive<u16>>,
    /// What the body of a good answer contains; `None`: it is not read.
    pub(super) body: Option<String>,
}

impl ProbeQuestion {
    /// Asks on `stream` and judges the answer. Its body is read only where something is to be found in it.
    pub(super) async fn put<S>(&self, stream: S) -> Finding
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        match self.request() {
            Ok(request) => {
                exchange::ask(stream, self.wire, request, async |answer| self.judge(answer).await).await
            }
            Err(error) => Finding::bad(format!("the probe's path or host is invalid: {error}")),
        }
    }

    fn request(&self) -> http::Result<Request<Full<Bytes>>> {
        let request = match self.wire {
            ProbeWire::Http1 => {
                Request::get(&*self.path).header(header::HOST, &self.host).header(header::CONNECTION, "close")
            }
            ProbeWire::Http2 => {
                let scheme = if self.is_secure { "https" } else { "http" };
                Request::get(format!("{scheme}://{}{}", self.host, self.path))
            }
        };
        request.header(header::USER_AGENT, "evenkeel-probe").body(Full::default())
    }

    async fn judge(&self, answer: Response<Incoming>) -> Finding {
        match (self.judge_status(answer.status()), &self.body) {
            (Finding::Verdict(Verdict::Good), Some(wanted)) => judge_body(answer.into_body(), wanted).await,
            (finding, _) => finding,
        }
    }

    fn judge_status(&self, status: StatusCode) -> Finding {
        let status = status.as_u16();
        if self.expect.iter().any(|range| range.contains(&status)) {
            return Finding::Verdict(Verdict::Good);
        }
        let range = |range: &RangeInclusive<u16>| match (range.start(), range.end()) {
            (start, end) if start == end => start.to_string(),
            (start, end) => format!("{start}-{end}"),
        };
        let expected: Vec<String> = self.expect.iter().map(range).collect();
        Finding::bad(format!("status {status}, expected {}", expected.join(", ")))
    }
}

/// Reads `body` until `wanted` was found in it, no further than to its limit.
async fn judge_body(mut body: Incoming, wanted: &str) -> Finding {
    let finder = Finder::new(wanted);
    let mut read: Vec<u8> = Vec::new();
    let whole = loop {
        let data = match body.frame().await {
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            Some(Err(error)) => return fault::of_body(&error),
            None => break true,
        };
        // It may have begun at the end of what was there before.
        let looked_at = (read.len() + 1).saturating_sub(wanted.len());
        let room = BODY_SIZE - read.len();
        read.extend_from_slice(&data[..data.len().min(room)]);
        if finder.find(&read[looked_at.min(read.len())..]).is_some() {
            return Finding::Verdict(Verdict::Good);
        }
        if read.len() == BODY_SIZE {
            break false;
        }
    };
    let mut shown: String = wanted.chars().take(SHOWN).collect();
    if shown.len() < wanted.len() {
        shown.push('…');
    }
    Finding::bad(if whole {
        format!("the body lacks {shown:?}")
    } else {
        format!("the body's first 64 KiB lack {shown:?}")
    })
}

#[cfg(test)]
mod tests;
