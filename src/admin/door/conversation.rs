//! Requests and answers on one connection.

use std::convert::Infallible;
use std::error::Error as _;
use std::io;
use std::pin::{Pin, pin};
use std::sync::OnceLock;
use std::task::{Context, Poll};
use std::time::Duration;

use hyper::Request;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::arrival::{ArrivingBody, GuestStream};
use super::guest_list::{GuestPlace, Working};
use super::patient::Patient;
use crate::admin::exchange::answers::{AdminAnswer, AdminBody, InPieces, StreamReader};
use crate::events;

/// For a request's head: from the accept on, or from the end of the answer before.
pub const HEAD_TIME: Duration = Duration::from_secs(10);
/// Bytes of a request's head.
const HEAD_MAX: usize = 16 * 1024;
/// Lines of a request's head.
const LINES_MAX: usize = 100;

/// Answers requests on `stream` with `respond` until it ends, `place` is wanted by another, or, behind the answer that is under
/// way, until `drains`. `keeps`: more than one.
pub async fn converse<S, F, A>(
    stream: S,
    place: &GuestPlace,
    keeps: bool,
    drains: &CancellationToken,
    respond: F,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Fn(Request<ArrivingBody<Incoming>>) -> A,
    A: Future<Output = AdminAnswer>,
{
    let reader = OnceLock::new();
    let answer = service_fn(|request: Request<Incoming>| {
        let (working, arriving) = place.ask();
        let (answer, reader) = (respond(request.map(|body| ArrivingBody::new(body, arriving))), &reader);
        async move {
            let mut answer = answer.await;
            if let Some(StreamReader(who)) = answer.extensions_mut().remove() {
                working.streams();
                reader.get_or_init(|| who);
            }
            if answer.extensions_mut().remove::<InPieces>().is_some() {
                // At the pace of who takes it.
                working.streams();
            }
            Ok::<_, Infallible>(answer.map(|body| HeldBody { body, _working: working }))
        }
    });
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_MAX)
        .max_headers(LINES_MAX)
        .keep_alive(keeps)
        .serve_connection(TokioIo::new(GuestStream::new(Patient::new(stream), place)), answer);
    let mut serving = pin!(serving);
    // Whoever goes away, is too slow or speaks no HTTP is not told more than hyper tells.
    tokio::select! {
        ended = serving.as_mut() => return part(ended, reader.get()),
        () = place.left() => return,
        () = drains.cancelled() => serving.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        ended = serving => part(ended, reader.get()),
        () = place.left() => {}
    }
}

/// Tells of a `reader` of a stream that took nothing for too long.
fn part(ended: Result<(), hyper::Error>, reader: Option<&String>) {
    let Err(error) = ended else { return };
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    if let Some(who) = reader
        && cause.is_some_and(|cause| cause.kind() == io::ErrorKind::TimedOut)
    {
        events::event_reader_dropped(who, "it took nothing for 30 seconds");
    }
}

/// An answer that is worked on, or streams, until all of it has been made.
struct HeldBody {
    body: AdminBody,
    _working: Working,
}

impl Body for HeldBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::time::sleep;
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::admin::door::guest_list::GuestList;
    use crate::admin::exchange::answers::{ok, stream};
    use crate::events::EventHistory;

    /// A body without an end.
    struct Endless;

    impl Body for Endless {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'x'; 1024])))))
        }
    }

    /// Has three clients send this, one after the other and without reading, and then a fourth come. Which of the three leaves?
    fn who_leaves(sent: [&str; 3]) -> Option<usize> {
        let respond = |mut request: Request<ArrivingBody<Incoming>>| async move {
            while let Some(Ok(_)) = request.body_mut().frame().await {}
            match request.uri().path() {
                "/long" => std::future::pending().await,
                "/large" => ok(&"x".repeat(10_000)),
                _ => ok(&1),
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let (list, drains) = (GuestList::new(3), CancellationToken::new());
            let places = [(); 3].map(|()| list.admit().expect("there is room"));
            let (ours, mut theirs): (Vec<_>, Vec<_>) = (0..3).map(|_| tokio::io::duplex(4096)).unzip();
            let mut ours = ours.into_iter();
            let [first, second, third] = places
                .each_ref()
                .map(|place| converse(ours.next().expect("one for each"), place, true, &drains, respond));
            let newcomer = async {
                // Time passes only when nothing else can happen.
                let settles = || sleep(Duration::from_millis(1));
                for (stream, bytes) in theirs.iter_mut().zip(sent) {
                    stream.write_all(bytes.as_bytes()).await.expect("there is room for it");
                    settles().await;
                }
                let _place = list.admit();
                settles().await;
            };
            tokio::select! {
                () = first => Some(0),
                () = second => Some(1),
                () = third => Some(2),
                () = newcomer => None,
            }
        })
    }

    #[test]
    fn what_passes_tells_who_is_idle_who_sends_and_whose_request_is_worked_on() {
        let head = "GET /healthz HTTP/1.1\r\nHos";
        let body = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhalf";
        let whole = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let long = "POST /long HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nwhole";
        let chunks =
            "POST /long HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
        let large = "GET /large HTTP/1.1\r\nHost: a\r\n\r\n";
        assert_eq!(who_leaves([head, body, whole]), Some(2), "it has its answer");
        assert_eq!(who_leaves([long, body, head]), Some(1), "it sends for longest");
        assert_eq!(who_leaves([head, body, long]), Some(0), "it sends for longest");
        assert_eq!(
            who_leaves([large, long, body]),
            Some(2),
            "it sends, the first has only to take its answer"
        );
        assert_eq!(who_leaves([long, large, chunks]), Some(1), "it takes nothing of its answer");
        assert_eq!(who_leaves([long, chunks, long]), None, "all are worked on");
    }

    #[test]
    fn a_reader_of_a_stream_who_takes_nothing_is_dropped_and_told() {
        let history = EventHistory::new();
        let subscriber = tracing_subscriber::registry().with(history.layer());
        let _told = tracing::subscriber::set_default(subscriber);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let place = GuestList::new(1).admit().expect("there is room");
            let (ours, mut theirs) = tokio::io::duplex(4096);
            let respond = |_| async {
                let mut answer = stream("text/event-stream", Endless);
                answer.extensions_mut().insert(StreamReader("token eyes".to_owned()));
                answer
            };
            let drains = CancellationToken::new();
            let reads = async {
                theirs.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.expect("taken");
                let mut some = [0; 32];
                theirs.read_exact(&mut some).await.expect("it has begun");
                assert!(some.starts_with(b"HTTP/1.1 200 OK\r\n"));
                std::future::pending::<()>().await;
            };
            tokio::select! {
                () = converse(ours, &place, true, &drains, respond) => {}
                () = reads => {}
            }
        });
        let told = history.after(0, 9).events;
        let expected =
            "an event stream was closed, token eyes does not keep up: it took nothing for 30 seconds";
        assert_eq!(told.iter().map(|event| event.text.as_str()).collect::<Vec<_>>(), [expected]);
    }
}
