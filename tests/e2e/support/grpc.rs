//! Calls of gRPC, message by message, through the `h2` crate.

use std::future::poll_fn;

use h2::{Reason, RecvStream, SendStream};
use http::HeaderMap;
use hyper::body::Bytes;

use evenkeel::config::model::{Config, Http2, Protocol, UpstreamProtocol};
use evenkeel::proxy::http::h2::frame;

use super::h2::H2Client;
use super::h2_backend::{Asked, BackendLine, RawH2};
use super::{Keel, config, eventually};

/// What a call has ended with.
#[derive(Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its `grpc-status`; `None`: it said none.
    pub status: Option<u8>,
    /// Its `grpc-message`.
    pub message: String,
    /// Whole messages before.
    pub messages: Vec<Vec<u8>>,
    /// There was nothing but a head.
    pub trailers_only: bool,
}

/// A call that is under way.
pub struct GrpcCall {
    pub answer: h2::client::ResponseFuture,
    pub body: SendStream<Bytes>,
}

/// A message as it stands in a body.
pub fn framed(message: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0];
    bytes.extend_from_slice(&(message.len() as u32).to_be_bytes());
    bytes.extend_from_slice(message);
    bytes
}

/// The messages of a body; what is left of one that is not whole is not there.
pub fn messages(mut body: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Some((head, rest)) = body.split_first_chunk::<5>() {
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let Some((message, rest)) = rest.split_at_checked(length) else { break };
        all.push(message.to_vec());
        body = rest;
    }
    all
}

/// Begins a call with these lines beside those that every call has.
pub fn begin(client: &H2Client, method: &str, lines: &[(&str, &str)]) -> GrpcCall {
    let mut request = H2Client::request("POST", method).header("te", "trailers");
    if !lines.iter().any(|(name, _)| *name == "content-type") {
        request = request.header("content-type", "application/grpc");
    }
    for (name, value) in lines {
        request = request.header(*name, *value);
    }
    let call = client.begin(request.body(()).unwrap(), false);
    GrpcCall { answer: call.answer, body: call.body }
}

impl GrpcCall {
    /// Sends a message. `last`: there is no other.
    pub fn send(&mut self, client: &H2Client, message: &[u8], last: bool) {
        client.send(&mut self.body, &framed(message), last);
    }

    /// What it ends with, or with what its stream was reset.
    pub fn end(self, client: &H2Client) -> Result<Ended, Option<Reason>> {
        let (head, mut stream) = self.head(client)?;
        client.run(async {
            let mut body = Vec::new();
            while let Some(piece) = stream.data().await {
                let piece = piece.map_err(|error| error.reason())?;
                let _ = stream.flow_control().release_capacity(piece.len());
                body.extend_from_slice(&piece);
            }
            let trailers = stream.trailers().await.map_err(|error| error.reason())?;
            let trailers_only = head.contains_key("grpc-status");
            let lines = if trailers_only { head } else { trailers.unwrap_or_default() };
            Ok(ended(&lines, messages(&body), trailers_only))
        })
    }

    /// The head of its answer and what follows.
    pub fn head(self, client: &H2Client) -> Result<(HeaderMap, RecvStream), Option<Reason>> {
        client.run(async {
            let response = self.answer.await.map_err(|error| error.reason())?;
            assert_eq!(response.status(), 200, "{response:?}");
            let (parts, stream) = response.into_parts();
            Ok((parts.headers, stream))
        })
    }
}

/// The answer of a call once its head is here.
pub fn head_of(client: &H2Client, answer: h2::client::ResponseFuture) -> RecvStream {
    client.run(async { answer.await.unwrap().into_body() })
}

/// The next piece of a body; `None`: it is over.
pub fn piece(client: &H2Client, stream: &mut RecvStream) -> Option<Vec<u8>> {
    client.run(async {
        let piece = poll_fn(|cx| stream.poll_data(cx)).await?.unwrap();
        stream.flow_control().release_capacity(piece.len()).unwrap();
        Some(piece.to_vec())
    })
}

/// The end behind such pieces, or with what it was reset.
pub fn end_of(client: &H2Client, mut stream: RecvStream) -> Result<Ended, Option<Reason>> {
    client.run(async {
        let mut body = Vec::new();
        while let Some(piece) = stream.data().await {
            body.extend_from_slice(&piece.map_err(|error| error.reason())?);
        }
        let trailers = stream.trailers().await.map_err(|error| error.reason())?.unwrap_or_default();
        Ok(ended(&trailers, messages(&body), false))
    })
}

fn ended(lines: &HeaderMap, messages: Vec<Vec<u8>>, trailers_only: bool) -> Ended {
    let text = |name| lines.get(name).map(|value| value.to_str().unwrap().to_owned());
    Ended {
        status: text("grpc-status").map(|status| status.parse().unwrap()),
        message: text("grpc-message").unwrap_or_default(),
        messages,
        trailers_only,
    }
}

/// A whole call with one message each way.
pub fn unary(client: &H2Client, method: &str, lines: &[(&str, &str)], message: &[u8]) -> Ended {
    let mut call = begin(client, method, lines);
    call.send(client, message, true);
    call.end(client).unwrap()
}

/// In front of these backends, which speak gRPC.
pub fn keel(backends: &[&RawH2], change: impl FnOnce(&mut Config)) -> Keel {
    let addresses: Vec<_> = backends.iter().map(|backend| backend.address).collect();
    let mut config = config(Protocol::Http, &addresses);
    config.workers = 1;
    config.listeners[0].http2 = Some(Http2::default());
    config.targets[0].upstream = UpstreamProtocol::Grpc;
    change(&mut config);
    Keel::start(&config)
}

pub const HEAD: [(&str, &str); 1] = [("content-type", "application/grpc")];

/// A whole answer: one message, then this status.
pub fn answer(line: &mut BackendLine, stream: u32, message: &[u8], status: &str) {
    line.head(stream, false, 200, &HEAD);
    line.frame(frame::DATA, 0, stream, &framed(message));
    line.trailers(stream, &[("grpc-status", status), ("x-after", "it")]);
}

/// An answer without a message, in one head.
pub fn refuse(line: &mut BackendLine, stream: u32, status: &str, more: &[(&str, &str)]) {
    let lines: Vec<_> =
        HEAD.iter().copied().chain([("grpc-status", status)]).chain(more.iter().copied()).collect();
    line.head(stream, true, 200, &lines);
}

/// A backend that answers every call in this way.
pub fn service(answers: impl Fn(&mut BackendLine, &Asked) + Send + Sync + 'static) -> RawH2 {
    RawH2::start(move |_, line| {
        line.settings(&[]);
        while let Some(asked) = line.asked() {
            answers(line, &asked);
        }
    })
}

/// No lease is left at any backend.
pub fn is_left_alone(keel: &Keel) {
    eventually("no lease is left", || {
        keel.server.targets()[0].backends.iter().all(|backend| backend.in_flight() == 0)
    });
}
