//! What an HTTP probe asks, and what it makes of the answer.

use std::ops::RangeInclusive;
use std::pin::pin;
use std::sync::Arc;

use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use memchr::memmem::Finder;
use tokio::io::{AsyncRead, AsyncWrite};

use super::fault;
use super::finding::Finding;
use crate::targets::Verdict;

/// The most bytes of an answer's head. hyper allows no less than 8 KiB.
const HEAD_SIZE: usize = 16 * 1024;
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
    /// Good statuses.
    pub(super) expect: Vec<RangeInclusive<u16>>,
    /// What the body of a good answer contains; `None`: it is not read.
    pub(super) body: Option<String>,
}

impl ProbeQuestion {
    /// Asks on `stream` and judges the answer. Its body is read only where something is to be found in it.
    pub(super) async fn put<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S) -> Finding {
        let request = match self.request() {
            Ok(request) => request,
            Err(error) => return Finding::bad(format!("the probe's path or host is invalid: {error}")),
        };
        let opened = http1::Builder::new().max_buf_size(HEAD_SIZE).handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = match opened {
            Ok(opened) => opened,
            Err(error) => return fault::of_http(&error),
        };
        let mut asking = pin!(async move {
            let answer = sender.send_request(request).await?;
            Ok(self.judge(answer).await)
        });
        let mut connection = pin!(connection);
        let answer: Result<Finding, hyper::Error> = tokio::select! {
            biased;
            answer = &mut asking => answer,
            // It can end in the very step that delivers the answer. If it ended without one, its own
            // error tells more than the request's, which was merely dropped.
            ended = &mut connection => match asking.await {
                Ok(answer) => Ok(answer),
                Err(dropped) => Err(ended.err().unwrap_or(dropped)),
            },
        };
        answer.unwrap_or_else(|error| fault::of_http(&error))
    }

    fn request(&self) -> http::Result<Request<Empty<Bytes>>> {
        Request::get(&*self.path)
            .header(header::HOST, &self.host)
            .header(header::USER_AGENT, "evenkeel-probe")
            .header(header::CONNECTION, "close")
            .body(Empty::new())
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
