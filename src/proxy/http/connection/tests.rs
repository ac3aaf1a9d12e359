use std::io::IoSlice;
use std::task::Context;

use super::*;
use crate::net::Ticker;
use crate::net::tls::fixture::{Far, once, pair, settle};
use crate::proxy::fixtures::context;
use crate::proxy::http::h1::transmit::Out;

/// A client under TLS whose socket takes nothing more, and the driver of its deadlines.
async fn full() -> (Rc<Ticker>, Rc<Client>, Far) {
    let (near, far) = pair().await;
    let ctx = context();
    let ticker = Rc::clone(&ctx.ticker);
    let client = Client::new(ctx, Stream::Tls(Box::new(near)), Peer::default(), None);
    let piece = [b'x'; 9000];
    let write = |cx: &mut Context<'_>| client.poll_write(cx, Out::Parts(&[IoSlice::new(&piece)]));
    while let Poll::Ready(written) = once(write).await {
        assert!(written.is_ok());
    }
    (ticker, client, far)
}

#[test]
fn an_idle_connection_is_small() {
    fn of_future<F>(_: fn(Rc<Client>) -> F) -> usize {
        size_of::<F>()
    }
    let (future, client) = (of_future(serve), size_of::<Client>());
    assert!(future <= 136 && client <= 304, "{future} bytes in its task, {client} beside it");
}

#[test]
fn a_desk_keeps_neither_a_head_nor_the_memory_of_a_large_one() {
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
