//! One stream: what both sides have said on it, and what waits to be read.
//!
//! Invariants. A stream is in the engine's table from its head until its task has let go of it, however it ended before: so
//! what is in the table is what makes work here, and a reset frees no place before that work has stopped. `held` is what the two receive
//! windows count as held for this stream. After `reset` nothing is written for it and nothing of it is kept.

use std::collections::VecDeque;
use std::task::{Context, Waker};

use crate::message::{Cause, Framing, Head};
use crate::tick::Tick;

use super::code::ErrorCode;
use super::flow::{ReceiveWindow, SendWindow};
use super::priority::Priority;

/// How a stream was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// With this code.
    pub code: ErrorCode,
    /// Why, for whoever serves it.
    pub cause: Cause,
    /// By the peer: it knows that nothing more is to come.
    pub theirs: bool,
}

/// A request whose head is complete, for whoever serves it.
pub struct ArrivedRequest {
    /// Its head.
    pub head: Head,
    /// How the length of its body is known; or what the client is told instead of an answer.
    pub framing: Result<Framing, Cause>,
    /// When its first frame came.
    pub started: Tick,
    /// When its head was complete.
    pub head_read: Tick,
}

impl Default for ArrivedRequest {
    /// One to be filled in.
    fn default() -> ArrivedRequest {
        let head = Head::new();
        ArrivedRequest { head, framing: Ok(Framing::None), started: Tick::ZERO, head_read: Tick::ZERO }
    }
}

/// The head of an answer.
pub struct ArrivedAnswer {
    /// As HTTP/1.1 would have it.
    pub head: Head,
    /// How the length of its body is known.
    pub framing: Framing,
    /// When its head was complete.
    pub head_read: Tick,
}

impl Default for ArrivedAnswer {
    /// One to be filled in.
    fn default() -> ArrivedAnswer {
        ArrivedAnswer { head: Head::new(), framing: Framing::None, head_read: Tick::ZERO }
    }
}

/// A head of which the end has not come.
pub struct PartialHead {
    /// Its stream.
    pub stream: u32,
    /// Nothing follows it.
    pub ends: bool,
    /// What came of it.
    pub bytes: Vec<u8>,
    /// In so many frames.
    pub frames: usize,
    /// Since when.
    pub started: Tick,
}

/// A stream with a task. `A`: what comes on it before a body.
pub struct Http2Stream<A> {
    /// What its task has not taken yet.
    pub arrived: A,
    /// What came of the body and was not read.
    pub held: VecDeque<u8>,
    /// All of that was read at some time since the client was last allowed more.
    pub drained: bool,
    /// Trailer lines, each with its CRLF.
    pub trailers: Vec<u8>,
    /// When its head was complete.
    pub opened: Tick,
    /// Nothing more comes.
    pub ended: bool,
    /// Bytes that are still to come by what Content-Length says.
    pub expected: Option<u64>,
    /// What the client may send.
    pub receive: ReceiveWindow,
    /// What we may send.
    pub send: SendWindow,
    /// The head of its answer, or a part of that, was sent.
    pub has_begun: bool,
    /// We have sent our last frame.
    pub finished: bool,
    /// It was cut, by either side.
    pub cut: Option<Cut>,
    /// Its place among those that have something to send.
    pub priority: Priority,
    /// The turn in which it last asked for room, and how much it has sent in that.
    pub turn: (u32, usize),
    /// Which of all parts of bodies was its last one.
    pub served: u32,
    /// Who serves it, when that waits for something.
    waker: Option<Waker>,
}

impl<A: Default> Http2Stream<A> {
    /// One on which nothing was sent or received yet but its head.
    #[must_use]
    pub fn new(receive: ReceiveWindow, send: SendWindow, priority: Priority, opened: Tick) -> Http2Stream<A> {
        Http2Stream {
            arrived: A::default(),
            held: VecDeque::new(),
            drained: false,
            trailers: Vec::new(),
            opened,
            ended: false,
            expected: None,
            receive,
            send,
            has_begun: false,
            finished: false,
            cut: None,
            priority,
            turn: (0, 0),
            served: 0,
            waker: None,
        }
    }

    /// Remembers whom to wake.
    #[inline]
    pub fn wait(&mut self, cx: &Context<'_>) {
        if !self.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            self.waker = Some(cx.waker().clone());
        }
    }

    /// Wakes who serves it, if that waits.
    #[inline]
    pub fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// True while somebody waits for something to happen to it.
    #[must_use]
    pub fn is_asleep(&self) -> bool {
        self.waker.is_some()
    }

    /// True while the protocol counts it as open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.cut.is_none() && !(self.ended && self.finished)
    }
}
