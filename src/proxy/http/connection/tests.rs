use std::io::IoSlice;
use std::pin::Pin;
use std::task::Context;

use tokio::net::UnixStream;

use super::*;
use crate::net::Ticker;
use crate::net::tls::fixture::{Far, once, pair, settle};
use crate::proxy::fixtures::{context, here};
use crate::proxy::http::h1::transmit::Out;
use crate::proxy::http::job_futures::RunningJob;

/// A client under TLS whose socket takes nothing more, and the driver of its deadlines.
async fn full() -> (Rc<Ticker>, Rc<Client>, Far) {
    let (near, far) = pair().await;
    let ctx = context();
    let ticker = Rc::clone(&ctx.ticker);
    let here = here(&ctx);
    let client = Client::new(ctx, Stream::Tls(Box::new(near)), Peer::default(), here, None);
    let piece = [b'x'; 9000];
    let write = |cx: &mut Context<'_>| client.poll_write(cx, Out::Parts(&[IoSlice::new(&piece)]));
    while let Poll::Ready(written) = once(write).await {
        assert!(written.is_ok());
    }
    (ticker, client, far)
}

#[test]
fn an_idle_connection_is_small() {
    fn of_future<F>(_: fn(Rc<Client>, Stay) -> F) -> usize {
        size_of::<F>()
    }
    let (future, client) = (of_future(serve), size_of::<Client>());
    // With its listener, which it holds whatever the config in force is, and when that was looked up.
    assert!(future <= 136 && client <= 336, "{future} bytes in its task, {client} beside it");
}

#[test]
fn a_job_future_keeps_neither_a_head_nor_the_memory_of_a_large_one() {
    let mut papers = Papers { head: Head::request("GET", "/", "test"), space: Space::default() };
    papers.space.answer.push(b"X-Large", &[b'x'; MOST]);
    papers.clear();
    // A request that is cut within its head must not be recorded as the one before.
    assert!(papers.head.method().is_empty() && papers.head.target().is_empty());
    let kept = (papers.head.capacity() > 0, papers.space.answer.capacity() > 0);
    assert_eq!(kept, (true, false));
}

/// Each of these ends: a bug here would be a wait for ever.
const PATIENCE: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_client_that_has_no_room_for_close_notify_is_not_waited_for_for_ever() {
    let (ticker, client, _far) = full().await;
    let waited = tokio::time::timeout(PATIENCE, async {
        tokio::select! { () = ticker.run() => {}, () = discard_input(&client) => {} }
    });
    assert!(waited.await.is_ok());
}

#[tokio::test]
async fn a_slow_reader_gets_close_notify_once_it_has_room() {
    let (ticker, client, mut far) = full().await;
    let reading = async {
        let mut all = 0;
        loop {
            let (came, end) = far.read();
            all += came.len();
            if end != Some(std::io::ErrorKind::WouldBlock) {
                return (all, end);
            }
            settle().await;
        }
    };
    let closing = async {
        linger(&client).await;
        drop(client);
        std::future::pending::<()>().await;
    };
    let waited = tokio::time::timeout(PATIENCE, async {
        tokio::select! {
            () = ticker.run() => None,
            () = closing => None,
            ended = reading => Some(ended),
        }
    });
    let (all, end) = waited.await.expect("in time").expect("the reader sees the end");
    assert_eq!((all % 9000, end), (0, None), "every byte, and then a clean end");
}

/// So many requests that are being served, and never end.
fn crowd(ctx: &Rc<WorkerCtx>, count: usize) -> Vec<RunningJob<'_, Rc<dyn Any>, Option<After>>> {
    let (near, _far) = UnixStream::pair().expect("a pair of sockets");
    let client = Client::new(Rc::clone(ctx), near.into(), Peer::default(), here(ctx), None);
    let never = async |_: Rc<dyn Any>, _: &mut Papers| std::future::pending().await;
    (0..count).map(|_| ctx.job_futures.run(Rc::<Client>::clone(&client), never)).collect()
}

/// A client that waits for its turn to send a request, and its far end.
struct Waiting {
    client: Rc<Client>,
    far: UnixStream,
    turn: Pin<Box<dyn Future<Output = bool>>>,
}

impl Waiting {
    /// One that has not sent a byte, and of which that is known.
    async fn idle(ctx: &Rc<WorkerCtx>) -> Waiting {
        let (near, far) = UnixStream::pair().expect("a pair of sockets");
        let client = Client::new(Rc::clone(ctx), near.into(), Peer::default(), here(ctx), None);
        assert!(once(|cx| client.poll_fill(cx)).await.is_pending());
        let own = Rc::clone(&client);
        Waiting { client, far, turn: Box::pin(async move { speaks_again(&own, PATIENCE).await }) }
    }

    /// One of which bytes lie in its socket.
    async fn with_bytes(ctx: &Rc<WorkerCtx>) -> Waiting {
        let waiting = Waiting::idle(ctx).await;
        waiting.far.try_write(b"GET / HTTP/1.1\r\n").expect("room");
        poll_fn(|cx| waiting.client.stream().poll_readable(cx)).await.expect("bytes");
        waiting
    }

    /// Whether it may begin now; if so its bytes were read.
    async fn begins(&mut self) -> bool {
        let turn = once(|cx| self.turn.as_mut().poll(cx)).await;
        assert_eq!(turn.is_ready(), self.client.has_held());
        turn.is_ready()
    }
}

/// As many as begin in one round of the request queue.
const ROUND: usize = 64;

#[tokio::test]
async fn while_many_are_served_who_comes_next_waits_unread_for_the_next_round() {
    let ctx = context();
    let _crowd = crowd(&ctx, 128);
    let mut begun = 0;
    for _ in 0..ROUND {
        begun += usize::from(Waiting::with_bytes(&ctx).await.begins().await);
    }
    assert_eq!(begun, ROUND);
    let mut late = Waiting::with_bytes(&ctx).await;
    assert!(!late.begins().await, "it was begun beyond its round");
    let mut rounds = Box::pin(ctx.request_queue.let_in());
    assert!(once(|cx| rounds.as_mut().poll(cx)).await.is_pending());
    assert!(late.begins().await);
}

#[tokio::test]
async fn clients_that_say_nothing_take_no_place_in_the_request_queue() {
    let ctx = context();
    let _crowd = crowd(&ctx, 128);
    let mut silent = Vec::new();
    for _ in 0..2 * ROUND {
        silent.push(Waiting::idle(&ctx).await);
    }
    for client in &mut silent {
        assert!(!client.begins().await);
    }
    // All of the round is left for who has something to say.
    for number in 0..ROUND {
        assert!(Waiting::with_bytes(&ctx).await.begins().await, "{number}");
    }
}

#[tokio::test]
async fn a_request_that_came_with_what_a_balancer_has_told_waits_for_its_turn_too() {
    let ctx = context();
    let _crowd = crowd(&ctx, 128);
    for _ in 0..ROUND {
        assert!(Waiting::with_bytes(&ctx).await.begins().await);
    }
    let late = Waiting::with_bytes(&ctx).await;
    assert!(matches!(once(|cx| late.client.poll_fill(cx)).await, Poll::Ready(Ok(1..))));
    assert!(late.client.has_held());
    let mut serving = Box::pin(serve(Rc::clone(&late.client), Stay::Open));
    assert!(once(|cx| serving.as_mut().poll(cx)).await.is_pending());
    assert_eq!(ctx.requests_inside(), 128, "it was begun beyond its round");
    let mut rounds = Box::pin(ctx.request_queue.let_in());
    assert!(once(|cx| rounds.as_mut().poll(cx)).await.is_pending());
    assert!(once(|cx| serving.as_mut().poll(cx)).await.is_pending());
    assert_eq!(ctx.requests_inside(), 129);
}
