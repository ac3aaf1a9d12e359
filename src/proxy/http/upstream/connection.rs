//! A connection to a backend from its preface to its close: the one task that reads and writes its socket.
//!
//! In each turn it reads what there is, hands the frames to the engine, and writes the one output buffer once, for all requests that have
//! appended to it since.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::config::model::{Http2, Timeouts};
use crate::message::Cause;
use crate::net::{Buffer, Deadline, Stream};
use crate::proxy::WorkerCtx;
use crate::proxy::dial;
use crate::proxy::http::h2::code::ErrorCode;
use crate::proxy::http::h2::draft::HeadLimits;
use crate::proxy::http::h2::engine::to_backend::ToBackend;
use crate::proxy::http::h2::engine::{Engine, EngineLimits, Http2Fault, TASKS};
use crate::targets::Backend;
use crate::tick::Tick;

use super::session::BackendSession;

/// Reads of one turn: others have theirs too.
const READS: usize = 4;
/// How long a connection is kept that nobody uses.
const IDLE: Duration = Duration::from_secs(90);
/// The same of one that was told of a client that is gone.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long it may be silent until it is asked whether it is there.
const SILENCE: Duration = Duration::from_secs(30);
/// The same while a request waits for it that was asked after already: a backend that has nothing to say for long may take it amiss to be asked
/// more often than every five minutes (gRPC's servers do).
const LONG_SILENCE: Duration = Duration::from_secs(330);
/// How long it may take to say so.
const REPLY: Duration = Duration::from_secs(10);
/// Bytes of the answer to a PING.
const PONG: usize = 17;
/// Bytes of an answer that may wait for its client, at most. A stream begins with a quarter, and has more once its client has taken as much as
/// comes.
const WINDOW_MAX: u32 = 1024 * 1024;
/// What a worker may have of them in all: streams are bounded by their windows, and their number by requests.
const NO_BOUND: u64 = u64::MAX / 8;
/// Bytes of an answer's head, at most, and its lines: as with HTTP/1.1.
const HEAD: HeadLimits = HeadLimits { size: 64 * 1024, lines: 1024 };

/// The backend is gone.
const GONE: Http2Fault = Http2Fault { code: ErrorCode::CANCEL, why: "the connection has ended" };

/// It does not say that it is there.
const DEAD: Http2Fault = Http2Fault { code: ErrorCode::CANCEL, why: "a PING was not answered" };

/// Opens a connection.
///
/// # Errors
/// See [`dial::dial`].
pub(super) async fn dial(
    ctx: &WorkerCtx,
    (backend, greeting): (&Backend, Option<&[u8]>),
    patience: &Timeouts,
    stood: &Cell<Tick>,
) -> Result<Stream, Cause> {
    let deadline = ctx.ticker.deadline();
    dial::dial(ctx, backend, patience, (&deadline, greeting), stood, |_| Poll::Pending).await
}

/// What speaks on it.
pub(super) fn engine(ctx: &WorkerCtx, now: Tick) -> Engine<ToBackend> {
    let limits = EngineLimits {
        streams: TASKS as u32,
        window: Http2::WINDOW,
        window_max: WINDOW_MAX,
        memory: NO_BOUND,
        head: HEAD,
    };
    Engine::client(limits, &ctx.http2_backends, now)
}

/// Ends the streams of a connection whose task ends before them.
struct CutStreams<'a>(&'a BackendSession);

impl Drop for CutStreams<'_> {
    fn drop(&mut self) {
        self.0.engine().close(GONE);
        let _ = self.0.engine().wake_cut(usize::MAX);
        self.0.call_ungreeted();
    }
}

/// Serves a connection to its end. `is_ended`: it is kept for nobody.
pub(super) async fn serve(
    ctx: &WorkerCtx,
    session: &BackendSession,
    stream: Stream,
    is_ended: Rc<Cell<bool>>,
) {
    let _cut = CutStreams(session);
    let mut line = Line::new(ctx, stream, is_ended);
    poll_fn(|cx| line.poll(ctx, session, cx)).await;
}

/// The socket.
struct Line {
    stream: Stream,
    is_ended: Rc<Cell<bool>>,
    held: Option<Buffer>,
    idle: Deadline,
    silence: Deadline,
    /// It has said nothing since it was asked whether it is there, but that it is.
    is_asked_after: bool,
    /// It has said how many streams it takes.
    is_greeted: bool,
}

impl Line {
    fn new(ctx: &WorkerCtx, stream: Stream, is_ended: Rc<Cell<bool>>) -> Line {
        let (idle, silence) = (ctx.ticker.deadline(), ctx.ticker.deadline());
        Line { stream, is_ended, held: None, idle, silence, is_asked_after: false, is_greeted: false }
    }

    /// One turn. Ready when it is over.
    fn poll(&mut self, ctx: &WorkerCtx, session: &BackendSession, cx: &mut Context<'_>) -> Poll<()> {
        session.bell.look(cx);
        self.read(ctx, session, cx);
        if self.write(session, cx).is_err() {
            return Poll::Ready(());
        }
        let mut engine = session.engine();
        engine.end_turn();
        let is_told = engine.output().is_empty();
        if matches!(engine.fault(), Some(GONE | DEAD))
            || is_told && (engine.fault().is_some() || engine.is_finished())
        {
            return Poll::Ready(());
        }
        // A turn may have let go of streams, or heard that the backend takes more.
        let has_sleepers = engine.wake_cut(usize::MAX);
        let is_over = engine.fault().is_some() || !engine.is_open() && engine.tasks() == 0;
        drop(engine);
        debug_assert!(!has_sleepers);
        if !self.is_greeted && session.engine().is_greeted() {
            self.is_greeted = true;
            session.call_first();
            session.call_ungreeted();
        }
        session.call_waiting();
        if session.is_unused() {
            // Whoever it was made for may not have taken its place yet.
            self.idle.set_if_clear(if self.is_ended.get() { FAREWELL } else { IDLE });
        } else {
            self.idle.clear();
        }
        let is_idle = self.idle.poll(cx).is_ready();
        if is_idle {
            self.idle.set(IDLE);
            session.engine().leave();
        }
        let is_silent = self.poll_silence(session, cx).is_ready();
        if is_silent && is_over {
            // It does not even take our last word.
            return Poll::Ready(());
        }
        if is_silent || is_idle {
            // There is something new to be said.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Ready when it was silent for too long: it was asked whether it is there, or has not answered that.
    fn poll_silence(&mut self, session: &BackendSession, cx: &mut Context<'_>) -> Poll<()> {
        let is_pinged = session.engine().is_pinged();
        let patience = match (is_pinged, self.is_asked_after && !session.is_unused()) {
            (true, _) => REPLY,
            (false, true) => LONG_SILENCE,
            (false, false) => SILENCE,
        };
        self.silence.set_if_clear(patience);
        if self.silence.poll(cx).is_pending() {
            return Poll::Pending;
        }
        self.silence.clear();
        if is_pinged {
            session.engine().close(DEAD);
            let _ = session.engine().wake_cut(usize::MAX);
        } else {
            session.engine().ask_after();
            self.is_asked_after = true;
        }
        Poll::Ready(())
    }

    /// Reads what there is.
    fn read(&mut self, ctx: &WorkerCtx, session: &BackendSession, cx: &mut Context<'_>) {
        let Line { stream, held, silence, is_asked_after, .. } = self;
        for count in 1.. {
            if !session.engine().is_reading() {
                return;
            }
            match ctx.buffers.poll_fill(held, cx, stream) {
                Poll::Ready(Ok(1..)) => {
                    silence.clear();
                    if let Some(buffer) = held {
                        let was_pinged = session.engine().is_pinged();
                        let used = session.engine().receive(buffer.data(), crate::net::now());
                        *is_asked_after &= was_pinged && used == PONG && !session.engine().is_pinged();
                        buffer.consume(used);
                        if buffer.is_empty() {
                            *held = None;
                        }
                    }
                }
                Poll::Ready(Ok(0) | Err(_)) => return session.engine().close(GONE),
                Poll::Pending => return,
            }
            if count == READS {
                cx.waker().wake_by_ref();
                return;
            }
        }
    }

    /// Writes what there is to say, as far as it goes.
    fn write(&mut self, session: &BackendSession, cx: &mut Context<'_>) -> Result<(), ()> {
        loop {
            let mut engine = session.engine();
            if engine.output().is_empty() {
                return Ok(());
            }
            match self.stream.poll_write(cx, engine.output()) {
                Poll::Ready(Ok(count @ 1..)) => engine.written(count),
                Poll::Ready(Ok(0) | Err(_)) => return Err(()),
                Poll::Pending => return Ok(()),
            }
        }
    }
}

#[cfg(test)]
mod tests;
