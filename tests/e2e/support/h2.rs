//! A client of HTTP/2 that is not ours: the `h2` crate, on a runtime and a thread of its own.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;

use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request, Response};
use hyper::body::Bytes;
use tokio::runtime::Runtime;

use fake_backend::pattern;

use super::PATIENCE;

/// A connection, and what drives it.
pub struct H2Client {
    runtime: Runtime,
    send: SendRequest<Bytes>,
}

/// A whole answer.
#[derive(Debug)]
pub struct H2Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    pub trailers: HeaderMap,
}

impl H2Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// A request on its way.
pub struct H2Call {
    pub answer: ResponseFuture,
    pub body: SendStream<Bytes>,
}

impl H2Client {
    /// A connection with prior knowledge.
    pub fn connect(address: SocketAddr) -> H2Client {
        H2Client::with_window(address, 1 << 20)
    }

    /// The same, which lets so many bytes come ahead of each reader.
    pub fn with_window(address: SocketAddr, window: u32) -> H2Client {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let send = runtime.block_on(async {
            let socket = tokio::net::TcpStream::connect(address).await.unwrap();
            let mut builder = h2::client::Builder::new();
            builder.initial_window_size(window).initial_connection_window_size(1 << 26);
            let (send, connection) = builder.handshake(socket).await.unwrap();
            tokio::spawn(async move {
                // Its end is seen by whoever asks.
                let _ = connection.await;
            });
            send
        });
        H2Client { runtime, send }
    }

    /// Does something with time limits.
    pub fn run<T>(&self, what: impl Future<Output = T>) -> T {
        self.runtime.block_on(async { tokio::time::timeout(PATIENCE, what).await }).expect("not in time")
    }

    /// Waits until the other side has said that it makes tunnels of streams.
    pub async fn connects(&self) {
        while !self.send.is_extended_connect_protocol_enabled() {
            tokio::task::yield_now().await;
        }
    }

    /// Begins a request. `ends`: it has no body.
    pub fn begin(&self, request: Request<()>, ends: bool) -> H2Call {
        self.run(async {
            let mut send = self.send.clone().ready().await.unwrap();
            let (answer, body) = send.send_request(request, ends).unwrap();
            H2Call { answer, body }
        })
    }

    /// The same, with the usual parts.
    pub fn request(method: &str, path: &str) -> http::request::Builder {
        Request::builder().method(method).uri(format!("http://a.example{path}"))
    }

    /// A whole exchange without a body in the request.
    /// A hundred requests at once, each for another length; every answer is whole.
    pub fn ask_a_hundred(&self) {
        let calls: Vec<_> = (0..100)
            .map(|number| {
                let request = H2Client::request("GET", &format!("/bytes/{}", number * 1000));
                self.begin(request.body(()).unwrap(), true)
            })
            .collect();
        for (number, call) in calls.into_iter().enumerate() {
            let answer = self.finish(call.answer).unwrap();
            assert_eq!((answer.status, answer.body), (200, pattern(number * 1000)), "{number}");
        }
    }

    /// Sends a body, whose length is said or not, and gets it back while it is sent: both have to be done at once.
    pub fn echo(&self, body: &[u8], says_length: bool) {
        let mut request = H2Client::request("POST", "/echo");
        if says_length {
            request = request.header("content-length", body.len());
        }
        let mut call = self.begin(request.body(()).unwrap(), false);
        let answer = std::thread::scope(|scope| {
            let answer = scope.spawn(move || self.finish(call.answer));
            self.send(&mut call.body, body, true);
            answer.join().unwrap().unwrap()
        });
        assert!(answer.body == body, "{says_length}: {} bytes", answer.body.len());
    }

    pub fn get(&self, path: &str) -> H2Answer {
        let call = self.begin(H2Client::request("GET", path).body(()).unwrap(), true);
        self.finish(call.answer).unwrap()
    }

    /// The whole answer, or with what its stream was reset.
    pub fn finish(&self, answer: ResponseFuture) -> Result<H2Answer, Option<Reason>> {
        self.run(async {
            let response = answer.await.map_err(|error| error.reason())?;
            whole(response).await.map_err(|error| error.reason())
        })
    }

    /// True when the connection comes to its end.
    pub fn is_over(&self) -> bool {
        self.run(async {
            loop {
                match self.send.clone().ready().await {
                    Ok(_) => tokio::task::yield_now().await,
                    Err(_) => return true,
                }
            }
        })
    }

    /// Sends a part of a body when its window allows.
    pub fn send(&self, body: &mut SendStream<Bytes>, bytes: &[u8], ends: bool) {
        self.run(async {
            let mut rest = bytes;
            while !rest.is_empty() {
                body.reserve_capacity(rest.len());
                let room = poll_fn(|cx| body.poll_capacity(cx)).await.unwrap().unwrap();
                let (now, later) = rest.split_at(room.min(rest.len()));
                body.send_data(Bytes::copy_from_slice(now), ends && later.is_empty()).unwrap();
                rest = later;
            }
            if bytes.is_empty() {
                body.send_data(Bytes::new(), ends).unwrap();
            }
        });
    }
}

async fn whole(response: Response<RecvStream>) -> Result<H2Answer, h2::Error> {
    let (parts, mut stream) = response.into_parts();
    let mut body = Vec::new();
    while let Some(piece) = stream.data().await {
        let piece = piece?;
        stream.flow_control().release_capacity(piece.len())?;
        body.extend_from_slice(&piece);
    }
    let trailers = stream.trailers().await?.unwrap_or_default();
    Ok(H2Answer { status: parts.status.as_u16(), headers: parts.headers, body, trailers })
}
