//! The health of a server, or of one of its services, by `grpc.health.v1`
//! (<https://github.com/grpc/grpc/blob/master/doc/health-checking.md>).

use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use tokio::io::{AsyncRead, AsyncWrite};

use super::exchange::{self, ProbeWire};
use super::fault;
use super::finding::Finding;
use crate::config::model::GrpcStatus;
use crate::targets::Verdict;

const METHOD: &str = "/grpc.health.v1.Health/Check";
/// The most bytes of an answer's body that are looked at: a good one has seven.
const BODY_SIZE: usize = 4 * 1024;
/// Field 1, of variable length.
const SERVICE: u8 = 0x0a;
/// Field 1, a number.
const STATUS: u8 = 0x08;
const SERVING: u64 = 1;

/// The call that a probe makes.
pub(super) struct HealthCall {
    /// Whose health; empty: that of the whole server.
    pub(super) service: String,
    /// What it is asked as.
    pub(super) host: String,
    /// Over TLS.
    pub(super) is_secure: bool,
}

impl HealthCall {
    /// Asks on `stream` and judges the answer.
    pub(super) async fn put<S>(&self, stream: S) -> Finding
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        match self.request() {
            Ok(request) => exchange::ask(stream, ProbeWire::Http2, request, judge).await,
            Err(error) => Finding::bad(format!("the probe's host is invalid: {error}")),
        }
    }

    fn request(&self) -> http::Result<Request<Full<Bytes>>> {
        let scheme = if self.is_secure { "https" } else { "http" };
        Request::post(format!("{scheme}://{}{METHOD}", self.host))
            .header(header::CONTENT_TYPE, "application/grpc")
            .header(header::TE, "trailers")
            .header(header::USER_AGENT, "evenkeel-probe")
            .body(Full::new(message(&self.service).into()))
    }
}

/// A `HealthCheckRequest` as it stands in a body. `service` has at most 127 bytes.
fn message(service: &str) -> Vec<u8> {
    let mut inner = Vec::new();
    if !service.is_empty() {
        // Its length has one byte.
        inner.extend_from_slice(&[SERVICE, service.len() as u8 & 0x7f]);
        inner.extend_from_slice(service.as_bytes());
    }
    let mut framed = vec![0, 0, 0, 0, inner.len() as u8];
    framed.extend_from_slice(&inner);
    framed
}

async fn judge(answer: Response<Incoming>) -> Finding {
    let (head, mut body) = answer.into_parts();
    if head.status != StatusCode::OK {
        return Finding::bad(format!("status {}, expected an answer of gRPC", head.status.as_u16()));
    }
    if let Some(ended) = ended(&head.headers) {
        return bad_end(ended);
    }
    let (mut read, mut trailers) = (Vec::new(), HeaderMap::new());
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) if frame.is_data() => read.extend_from_slice(&frame.into_data().unwrap_or_default()),
            Ok(frame) => trailers = frame.into_trailers().unwrap_or_default(),
            Err(error) => return fault::of_body(&error),
        }
        if read.len() > BODY_SIZE {
            return Finding::bad("the answer is longer than any about health");
        }
    }
    match ended(&trailers) {
        Some(GrpcStatus::Ok) => judge_message(&read),
        Some(other) => bad_end(other),
        None => Finding::bad("it answered without a grpc-status"),
    }
}

fn ended(lines: &HeaderMap) -> Option<GrpcStatus> {
    lines.get("grpc-status").map(|value| GrpcStatus::of_value(value.as_bytes()))
}

/// A call that did not go well, or says nothing.
fn bad_end(ended: GrpcStatus) -> Finding {
    let more = match ended {
        GrpcStatus::Ok => ", and said nothing",
        GrpcStatus::Unimplemented => ": it has no grpc.health.v1",
        GrpcStatus::NotFound => ": it knows no such service",
        _ => "",
    };
    Finding::bad(format!("grpc-status {} ({}){more}", ended as u8, ended.name()))
}

fn judge_message(framed: &[u8]) -> Finding {
    let status = framed.split_first_chunk::<5>().and_then(|(head, message)| {
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        // Of a compressed one, which nobody has asked for, it can't be told.
        (head[0] == 0 && length as usize == message.len()).then(|| status(message)).flatten()
    });
    match status {
        Some(SERVING) => Finding::Verdict(Verdict::Good),
        Some(0) => Finding::bad("it says UNKNOWN"),
        Some(2) => Finding::bad("it says NOT_SERVING"),
        Some(3) => Finding::bad("it says SERVICE_UNKNOWN"),
        Some(other) => Finding::bad(format!("it says {other}")),
        None => Finding::bad("its answer is not that of grpc.health.v1"),
    }
}

/// The status in a `HealthCheckResponse`; `None`: it is none. Fields that we do not know are passed over, as everybody does.
fn status(mut message: &[u8]) -> Option<u64> {
    let mut found = 0;
    while !message.is_empty() {
        let key = number(&mut message)?;
        let value = match key & 7 {
            0 => number(&mut message)?,
            1 => fixed(&mut message, 8)?,
            2 => {
                let length = usize::try_from(number(&mut message)?).ok()?;
                fixed(&mut message, length)?
            }
            5 => fixed(&mut message, 4)?,
            _ => return None,
        };
        if key == u64::from(STATUS) {
            found = value;
        }
    }
    Some(found)
}

fn fixed(message: &mut &[u8], length: usize) -> Option<u64> {
    *message = message.split_at_checked(length)?.1;
    Some(0)
}

/// A number in groups of seven bits, the lowest first.
fn number(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for place in 0..10 {
        let (byte, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(byte & 0x7f).checked_shl(7 * place).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(message: &[u8]) -> Vec<u8> {
        [&[0, 0, 0, 0, message.len() as u8], message].concat()
    }

    #[test]
    fn what_is_asked_is_what_the_protocol_says() {
        assert_eq!(message(""), [0, 0, 0, 0, 0]);
        assert_eq!(message("a.B"), [0, 0, 0, 0, 5, 0x0a, 3, b'a', b'.', b'B']);
        assert_eq!(message(&"x".repeat(127)).len(), 5 + 2 + 127);
        let call = HealthCall { service: String::new(), host: "app:1".into(), is_secure: true };
        let request = call.request().expect("a request");
        assert_eq!(request.uri(), "https://app:1/grpc.health.v1.Health/Check");
    }

    #[test]
    fn serving_is_good_and_nothing_else() {
        let good = Finding::Verdict(Verdict::Good);
        assert_eq!(judge_message(&framed(&[0x08, 1])), good);
        // With fields of a later version before and behind.
        let later = [0x12, 2, 7, 7, 0x08, 1, 0x1d, 0, 0, 0, 0, 0x21, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(judge_message(&framed(&later)), good);
        for (message, words) in [
            (&[][..], "it says UNKNOWN"),
            (&[0x08, 2], "it says NOT_SERVING"),
            (&[0x08, 3], "it says SERVICE_UNKNOWN"),
            (&[0x08, 0x81, 0x01], "it says 129"),
            (&[0x08], "its answer is not that of grpc.health.v1"),
            (&[0x0b, 1], "its answer is not that of grpc.health.v1"),
            (&[0x12, 9, 1], "its answer is not that of grpc.health.v1"),
            (&[0xff; 11], "its answer is not that of grpc.health.v1"),
        ] {
            assert_eq!(judge_message(&framed(message)), Finding::bad(words), "{message:?}");
        }
        for broken in [&b""[..], b"0", &[1, 0, 0, 0, 2, 8, 1], &[0, 0, 0, 0, 3, 8, 1]] {
            let words = "its answer is not that of grpc.health.v1";
            assert_eq!(judge_message(broken), Finding::bad(words), "{broken:?}");
        }
    }
}
