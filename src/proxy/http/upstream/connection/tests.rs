use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;

use super::*;
use crate::net::now;
use crate::proxy::fixtures::context;
use crate::proxy::http::h2::frame::{self, FRAME_HEAD, FrameHead, PREFACE};
use crate::proxy::http::upstream::waiting::PlaceSeekers;
use crate::proxy::lend::tests::unprobed;

/// A connection, and the backend's end of it.
struct Wire {
    ctx: Rc<WorkerCtx>,
    session: Rc<BackendSession>,
    line: Line,
    far: UnixStream,
    held: Vec<u8>,
    start: Tick,
}

impl Wire {
    async fn new() -> Wire {
        let ctx = context();
        let (near, far) = UnixStream::pair().expect("a pair of sockets");
        near.set_nonblocking(true).and_then(|()| far.set_nonblocking(true)).expect("an option");
        let near = tokio::net::UnixStream::from_std(near).expect("a runtime");
        let backend = Arc::clone(&unprobed(1).backends[0]);
        let start = now();
        let session = BackendSession::new(backend, 0, engine(&ctx, start), Rc::new(PlaceSeekers::default()));
        let line = Line::new(&ctx, near.into(), Rc::default());
        let mut wire = Wire { ctx, session, line, far, held: Vec::new(), start };
        assert!(wire.turn().await.is_pending());
        let mut settings = Vec::new();
        frame::settings(&mut settings, &[]);
        wire.say(&settings).await;
        wire.told();
        wire
    }

    /// One turn.
    async fn turn(&mut self) -> Poll<()> {
        let Wire { ctx, session, line, .. } = self;
        poll_fn(|cx| Poll::Ready(line.poll(ctx, session, cx))).await
    }

    /// The backend says this, and is heard.
    async fn say(&mut self, bytes: &[u8]) {
        assert_eq!(self.far.write(bytes).expect("room"), bytes.len());
        poll_fn(|cx| self.line.stream.poll_readable(cx)).await.expect("bytes");
        assert!(self.turn().await.is_pending());
    }

    /// So many seconds after the beginning.
    async fn after(&mut self, seconds: u64) -> Poll<()> {
        self.ctx.ticker.tick(self.start.after(Duration::from_secs(seconds)));
        let ended = self.turn().await;
        // What was appended is written in the next turn.
        if ended.is_ready() { ended } else { self.turn().await }
    }

    /// The kinds of the frames that the backend has got since the last call.
    fn told(&mut self) -> Vec<(u8, u8)> {
        let mut bytes = vec![0; 65536];
        if let Ok(count) = self.far.read(&mut bytes) {
            self.held.extend_from_slice(&bytes[..count]);
        }
        let mut rest = self.held.strip_prefix(PREFACE).unwrap_or(&self.held);
        let mut told = Vec::new();
        while let Some(head) = FrameHead::parse(rest) {
            told.push((head.kind, head.flags));
            rest = &rest[FRAME_HEAD + head.length..];
        }
        self.held.clear();
        told
    }

    /// Answers a PING.
    async fn pong(&mut self) {
        let mut bytes = Vec::new();
        frame::ping(&mut bytes, frame::ACK, *b"are you?");
        self.say(&bytes).await;
    }
}

const PING: (u8, u8) = (frame::PING, 0);

#[tokio::test]
async fn a_silent_connection_is_asked_after_and_one_that_does_not_answer_is_over() {
    let mut wire = Wire::new().await;
    let mut place = wire.session.place().expect("a place");
    assert!(place.open(true, false, now(), |out, _| out.push(0x82)));
    assert!(wire.turn().await.is_pending());
    assert_eq!(wire.told(), [(frame::HEADERS, 5)]);
    assert!(wire.after(29).await.is_pending());
    assert!(wire.told().is_empty());
    assert!(wire.after(31).await.is_pending());
    assert_eq!(wire.told(), [PING]);
    assert!(wire.after(40).await.is_pending());
    assert!(wire.session.engine().fault().is_none());
    assert!(wire.after(43).await.is_ready(), "it is over");
    let cut = wire.session.engine().cut_of(place.id()).expect("its streams are cut");
    assert_eq!(cut.cause, Cause::BackendClosed);
}

#[tokio::test]
async fn one_that_has_nothing_to_say_for_long_is_not_asked_all_the_time() {
    let mut wire = Wire::new().await;
    let mut place = wire.session.place().expect("a place");
    assert!(place.open(true, false, now(), |out, _| out.push(0x82)));
    assert!(wire.turn().await.is_pending());
    wire.told();
    assert!(wire.after(31).await.is_pending());
    assert_eq!(wire.told(), [PING]);
    wire.pong().await;
    assert!(wire.after(300).await.is_pending());
    assert!(wire.told().is_empty());
    assert!(wire.after(363).await.is_pending());
    assert_eq!(wire.told(), [PING]);
    wire.pong().await;
    // Once it has said something else it may be asked again.
    let mut bytes = Vec::new();
    frame::window_update(&mut bytes, 0, 1);
    wire.say(&bytes).await;
    assert!(wire.after(395).await.is_pending());
    assert_eq!(wire.told(), [PING]);
}

#[tokio::test]
async fn a_connection_that_nobody_uses_is_closed_in_the_end_and_says_so() {
    let mut wire = Wire::new().await;
    assert!(wire.after(89).await.is_pending());
    wire.told();
    wire.pong().await;
    assert!(wire.after(91).await.is_ready());
    assert!(wire.told().contains(&(frame::GOAWAY, 0)));
    assert!(wire.session.place().is_none());
}
