//! The body of a request on a stream: a window's worth of it lies in the engine, and whoever reads it opens the window again.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::engine::body::Inflow;
use super::session::Http2Session;
use crate::message::{Cause, Framing};
use crate::net::{Deadline, FreeList, Piece};
use crate::proxy::body_pace::BodyPace;
use crate::proxy::http::mirror::tee::Tee;

/// The body of a request on a stream.
pub struct StreamUpload {
    session: Rc<Http2Session>,
    id: u32,
    framing: Framing,
    state: RefCell<UploadState>,
    /// Between its bytes; `None`: as the listener says.
    idle: Cell<Option<Duration>>,
    /// Whoever reads it knows how long it may take.
    unhurried: Cell<bool>,
    deadline: Deadline,
}

#[derive(Default)]
struct UploadState {
    pace: BodyPace,
    content: u64,
    /// Most bytes of it; `None`: any.
    limit: Option<u64>,
    taken: bool,
    tee: Option<Box<Tee>>,
}

impl StreamUpload {
    /// One of which nothing was read.
    #[must_use]
    pub fn new(session: &Rc<Http2Session>, id: u32, framing: Framing) -> Rc<StreamUpload> {
        let deadline = session.client.ctx.ticker.deadline();
        let (state, idle, unhurried) = (RefCell::default(), Cell::new(None), Cell::new(false));
        Rc::new(StreamUpload { session: Rc::clone(session), id, framing, state, idle, unhurried, deadline })
    }

    /// Another time between its bytes than its listener's.
    pub fn set_idle(&self, idle: Duration) {
        self.idle.set(Some(idle));
    }

    /// Neither its rate nor its silence ends it: whoever reads it sees to that.
    pub fn set_unhurried(&self) {
        self.unhurried.set(true);
    }

    /// How many bytes it may have; `None`: any.
    pub fn limit_body(&self, limit: Option<u64>) {
        self.state.borrow_mut().limit = limit;
    }

    /// Has it copied while it is read; nothing of it was.
    pub fn tee_body(&self, tee: Tee) {
        self.state.borrow_mut().tee = Some(Box::new(tee));
    }

    /// How its length is known.
    #[must_use]
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// True when it was taken whole.
    #[must_use]
    pub fn is_body_done(&self) -> bool {
        self.session.engine().is_body_done(self.id)
    }

    /// True once a piece of it was handed out.
    #[must_use]
    pub fn is_body_begun(&self) -> bool {
        self.state.borrow().taken
    }

    /// Bytes so far.
    #[must_use]
    pub fn content(&self) -> u64 {
        self.state.borrow().content
    }

    /// Trailer lines, each with its CRLF.
    #[must_use]
    pub fn trailers(&self) -> Vec<u8> {
        self.session.engine().trailers(self.id)
    }

    /// Where its pieces come from.
    #[must_use]
    pub fn buffers(&self) -> &FreeList {
        &self.session.client.ctx.buffers
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// [`Cause::BodyTimeout`], [`Cause::BodyTooLarge`], or why the stream was cut.
    pub fn poll_piece(&self, cx: &mut Context<'_>) -> Poll<Result<Option<Piece>, Cause>> {
        let state = &mut *self.state.borrow_mut();
        let polled = self.session.engine().poll_body(self.id, cx, self.buffers());
        let Poll::Ready(inflow) = polled else {
            if self.unhurried.get() {
                return Poll::Pending;
            }
            let rate = self.session.client.limits().body_rate;
            if let Some(earned) = state.pace.begin(state.content, rate) {
                let idle = self.idle.get().unwrap_or_else(|| self.session.client.timeouts().idle);
                self.deadline.set(idle.min(earned));
            }
            return self.deadline.poll(cx).map(|()| Err(Cause::BodyTimeout));
        };
        if state.pace.end() {
            self.deadline.clear();
        }
        let piece = match inflow? {
            Inflow::Piece(piece) => piece,
            Inflow::End => {
                if let Some(tee) = state.tee.take() {
                    tee.finish(&self.trailers());
                }
                return Poll::Ready(Ok(None));
            }
        };
        // A window may have been opened.
        self.session.stir();
        state.content += piece.len() as u64;
        state.taken = true;
        if state.limit.is_some_and(|limit| state.content > limit) {
            return Poll::Ready(Err(Cause::BodyTooLarge));
        }
        if let Some(mut tee) = state.tee.take()
            && tee.take(piece.data())
        {
            if self.is_body_done() {
                tee.finish(&self.trailers());
            } else {
                state.tee = Some(tee);
            }
        }
        Poll::Ready(Ok(Some(Piece::Buffer(piece))))
    }
}
