//! The client's side of an HTTP/1 connection: its socket, what was read from it, its patience.
//!
//! Reading (the request's body, on its way to the backend) and writing (the answer) go on at the same time in
//! one task, through two owners; both borrow the socket for the length of one poll only.

use std::cell::{Cell, OnceCell, Ref, RefCell};
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::config::model::{ClientTimeouts, Limits, SendProxy};
use crate::message::proxy_header::ProxyHeader;
use crate::message::{Cause, Framing, Peer};
use crate::net::{Buffer, Deadline, Piece, Stream};
use crate::proxy::body_pace::BodyPace;
use crate::proxy::client_timer::{ClientTimer, ClientWait};
use crate::proxy::passed_on::{ClientFacts, Passing, PassingOn};
use crate::proxy::pool::Owner;
use crate::proxy::presence::{Presence, Waiting};
use crate::proxy::{Here, WorkerCtx};
use crate::snapshot::Listener;
use crate::tls::CertificateFacts;

use super::h1::decode::{BodyBroken, Decoder};
use super::h1::transmit::Out;
use super::mirror::tee::Tee;

/// An answer that comes within this time was not worth having the event loop watch the client, if it does not yet.
const UNWATCHED: Duration = Duration::from_millis(20);

/// What a TLS session says about the client; the same for all requests of a connection.
#[derive(Debug, Default)]
pub struct Secured {
    /// Header lines about its verified certificate; empty: it showed none.
    pub certificate: Box<[u8]>,
    /// Whom that is about; `None`: it showed none.
    pub facts: Option<CertificateFacts>,
    /// HTTP/2 was agreed on.
    pub is_http2: bool,
    /// What was agreed on (ALPN).
    pub agreed: Option<&'static str>,
    /// The host name that the client has asked for. Where HTTP/2 is spoken requests for other hosts may come, see
    /// [`Listener::is_misdirected`](crate::snapshot::Listener::is_misdirected). `None`: it has asked for none.
    pub sni: Option<Box<str>>,
}

/// One client connection. Thousands of them are idle: what a request needs beyond that is made for the request.
pub struct Client {
    stream: RefCell<Stream>,
    held: RefCell<Option<Buffer>>,
    /// The body of the current request; `None`: it has none.
    body: RefCell<Option<Box<Incoming>>>,
    /// Its number, once a connection to a backend carries its identity.
    pub owner: Cell<Option<Owner>>,
    /// Nothing was read of a request yet.
    pub is_new: Cell<bool>,
    /// Whether it is there.
    pub presence: Presence,
    /// The worker that serves it.
    pub ctx: Rc<WorkerCtx>,
    /// Who it is.
    pub peer: Peer,
    /// Where it came in, under the config that its latest request was begun with.
    here: RefCell<Here>,
    /// The worker's turn of configs in which that was looked up.
    turn: Cell<u32>,
    /// What its TLS session says; `None`: there is none.
    pub secured: Option<Rc<Secured>>,
    /// What a balancer in front has told of it (the PROXY protocol); empty: nothing.
    pub told: OnceCell<Rc<ProxyHeader>>,
    /// How connections to backends begin that are told of it; empty: none was yet.
    passing_on: OnceCell<Box<PassingOn>>,
    /// For what it is waited for: see [`Client::timer`].
    deadline: Deadline,
    wait: Cell<ClientWait>,
    /// For what the client takes.
    pub writing: Deadline,
    /// What the route of the current request says instead of the listener's `timeouts.idle`, in milliseconds; 0: nothing. Small,
    /// since idle connections hold it too.
    idle: Cell<u32>,
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(owner) = self.owner.get() {
            self.ctx.pool.release(&self.ctx.cells, owner);
        }
        if let Some(passing_on) = self.passing_on.get() {
            self.ctx.pool.release_passed(&self.ctx.cells, passing_on.owner);
            self.ctx.backend_sessions.release(passing_on.owner);
        }
    }
}

/// The body of one request on its way in.
struct Incoming {
    framing: Framing,
    decoder: Decoder,
    pace: BodyPace,
    /// Its rate does not matter.
    unhurried: bool,
    /// Most bytes of it; `None`: any.
    limit: Option<u64>,
    /// A piece of it was handed out.
    taken: bool,
    /// It is copied.
    tee: Option<Box<Tee>>,
}

impl Incoming {
    /// Copies a piece that was taken.
    #[inline(never)]
    fn copy(&mut self, piece: Option<&Piece>) {
        let Some(mut tee) = self.tee.take() else { return };
        if !piece.is_none_or(|piece| tee.take(piece.data())) {
            return;
        }
        if self.decoder.is_done() {
            tee.finish(self.decoder.trailers());
        } else {
            self.tee = Some(tee);
        }
    }
}

impl Client {
    /// A connection that was just accepted, or has just shaken hands.
    #[must_use]
    pub fn new(
        ctx: Rc<WorkerCtx>,
        stream: Stream,
        peer: Peer,
        here: Here,
        secured: Option<Rc<Secured>>,
    ) -> Rc<Client> {
        let turn = Cell::new(ctx.turns());
        let (deadline, writing) = (ctx.ticker.deadline(), ctx.ticker.deadline());
        Rc::new(Client {
            stream: RefCell::new(stream),
            held: RefCell::new(None),
            body: RefCell::new(None),
            owner: Cell::new(None),
            is_new: Cell::new(true),
            presence: Presence::default(),
            ctx,
            peer,
            here: RefCell::new(here),
            turn,
            secured,
            told: OnceCell::new(),
            passing_on: OnceCell::new(),
            deadline,
            wait: Cell::default(),
            writing,
            idle: Cell::new(0),
        })
    }

    /// What it is waited for, and until when.
    #[must_use]
    #[inline]
    pub fn timer(&self) -> ClientTimer<'_> {
        ClientTimer::new(&self.deadline, &self.wait)
    }

    /// Where it comes in, under the config in force. A request takes this once and sees one config to its end.
    #[must_use]
    #[inline]
    pub fn take_here(&self) -> Here {
        let turn = self.ctx.turns();
        if self.turn.replace(turn) != turn
            && let Some(newest) = self.ctx.here(self.peer.listener)
        {
            self.here.replace(newest);
        }
        Rc::clone(&self.here.borrow())
    }

    /// Whether it stands from before a reload by which its connection would be passed through undecrypted.
    #[must_use]
    #[inline(always)]
    pub fn belongs_elsewhere(&self, here: &Listener) -> bool {
        here.passages().is_some()
            && self
                .secured
                .as_deref()
                .is_some_and(|secured| here.would_pass_through(secured.sni.as_deref(), secured.agreed))
    }

    /// How a connection to a backend begins that is told of it.
    #[must_use]
    #[cold]
    pub fn passing(&self, version: SendProxy) -> Passing {
        let ctx = &self.ctx;
        let passing_on = self
            .passing_on
            .get_or_init(|| Box::new(PassingOn::new(ctx.pool.new_passed_owner(), ctx.request_id())));
        let secured = self.secured.as_deref();
        let certificate = secured.and_then(|secured| secured.facts.as_ref());
        let facts = ClientFacts {
            peer: &self.peer,
            told: self.told.get().map(|told| &**told),
            stream: &self.stream.borrow(),
            sni: secured.and_then(|secured| secured.sni.as_deref()),
            alpn: secured.and_then(|secured| secured.agreed),
            certificate: certificate.map(|facts| &*facts.common_name),
        };
        passing_on.passing(version, &facts)
    }

    /// Whether it is to end as soon as nothing is under way.
    #[must_use]
    #[inline]
    pub fn is_leaving(&self) -> bool {
        self.ctx.is_leaving(self.peer.listener)
    }

    /// What a request may cost.
    #[must_use]
    pub fn limits(&self) -> Ref<'_, Limits> {
        Ref::map(self.here.borrow(), |here| &here.config.limits)
    }

    /// How long it may take.
    #[must_use]
    pub fn timeouts(&self) -> Ref<'_, ClientTimeouts> {
        Ref::map(self.here.borrow(), |here| &here.config.client_timeouts)
    }

    /// Between bytes of a body, in either direction.
    #[must_use]
    pub fn idle(&self) -> Duration {
        match self.idle.get() {
            0 => self.timeouts().idle,
            millis => Duration::from_millis(millis.into()),
        }
    }

    /// Another time between bytes of the current request's bodies; `None`: the listener's.
    pub fn set_idle(&self, idle: Option<Duration>) {
        let millis = idle.map_or(0, |idle| idle.as_millis());
        self.idle.set(u32::try_from(millis).unwrap_or(u32::MAX));
    }

    /// Starts the body of the next request, if that has one.
    pub fn start_body(&self, framing: Framing) {
        let decoder = Decoder::new(framing);
        let incoming = Incoming {
            framing,
            decoder,
            pace: BodyPace::default(),
            unhurried: false,
            limit: None,
            taken: false,
            tee: None,
        };
        *self.body.borrow_mut() = Some(Box::new(incoming));
    }

    /// How many bytes the current body may have; `None`: any.
    pub fn limit_body(&self, limit: Option<u64>) {
        if let Some(body) = self.body.borrow_mut().as_mut() {
            body.limit = limit;
        }
    }

    /// No rate is asked for of the current body.
    pub fn set_unhurried(&self) {
        if let Some(body) = self.body.borrow_mut().as_mut() {
            body.unhurried = true;
        }
    }

    /// Has the current body, of which nothing was read, copied while it is read.
    pub fn tee_body(&self, tee: Tee) {
        if let Some(body) = self.body.borrow_mut().as_mut() {
            body.tee = Some(Box::new(tee));
        }
    }

    /// Forgets the body of the last request.
    pub fn end_body(&self) {
        *self.body.borrow_mut() = None;
    }

    /// The framing of the current request's body.
    #[must_use]
    pub fn framing(&self) -> Framing {
        self.body.borrow().as_ref().map_or(Framing::None, |body| body.framing)
    }

    /// True when the current body was taken whole.
    #[must_use]
    pub fn is_body_done(&self) -> bool {
        self.body.borrow().as_ref().is_none_or(|body| body.decoder.is_done())
    }

    /// True once a piece of the current body was handed out. It may be framing alone, without content.
    #[must_use]
    pub fn is_body_begun(&self) -> bool {
        self.body.borrow().as_ref().is_some_and(|body| body.taken)
    }

    /// See [`Decoder::set_raw`].
    #[must_use]
    pub fn set_raw(&self) -> bool {
        self.body.borrow_mut().as_mut().is_some_and(|body| {
            let takes_raw = body.tee.as_ref().is_none_or(|tee| tee.takes_raw());
            let is_raw = takes_raw && body.decoder.set_raw();
            if let Some(tee) = &mut body.tee {
                tee.set_raw(is_raw);
            }
            is_raw
        })
    }

    /// See [`Decoder::set_pipes`].
    pub fn set_pipes(&self, allowed: bool) {
        if let Some(body) = self.body.borrow_mut().as_mut() {
            // What is copied must be seen.
            body.decoder.set_pipes(allowed && body.tee.is_none());
        }
    }

    /// Bytes of content of the current body so far.
    #[must_use]
    pub fn content(&self) -> u64 {
        self.body.borrow().as_ref().map_or(0, |body| body.decoder.content())
    }

    /// The current body's trailer lines.
    #[must_use]
    pub fn trailers(&self) -> Vec<u8> {
        self.body.borrow().as_ref().map_or_else(Vec::new, |body| body.decoder.trailers().to_vec())
    }

    /// True when bytes of the next request are here already.
    #[must_use]
    pub fn has_held(&self) -> bool {
        self.held.borrow().is_some()
    }

    /// Looks at what was read and not yet used.
    pub fn with_held<T>(&self, look: impl FnOnce(&mut Option<Buffer>) -> T) -> T {
        look(&mut self.held.borrow_mut())
    }

    /// The socket, for the length of one poll.
    #[must_use]
    pub fn stream(&self) -> std::cell::RefMut<'_, Stream> {
        self.stream.borrow_mut()
    }

    /// Reads once behind what is held. `Ok(0)`: the client has sent its last byte.
    ///
    /// # Errors
    /// What the socket reports.
    pub fn poll_fill(&self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.ctx.buffers.poll_fill(&mut self.held.borrow_mut(), cx, &mut self.stream.borrow_mut())
    }

    /// Writes once.
    ///
    /// # Errors
    /// What the socket reports.
    pub fn poll_write(&self, cx: &mut Context<'_>, out: Out<'_, '_>) -> Poll<io::Result<usize>> {
        out.poll_write(cx, &mut self.stream.borrow_mut())
    }

    /// The next piece of the request's body.
    ///
    /// # Errors
    /// [`Cause::BodyTimeout`], [`Cause::BodyTooLarge`], [`Cause::BadChunk`], [`Cause::ClientGone`].
    pub fn poll_piece(&self, cx: &mut Context<'_>) -> Poll<Result<Option<Piece>, Cause>> {
        let mut body = self.body.borrow_mut();
        let Some(body) = body.as_deref_mut() else { return Poll::Ready(Ok(None)) };
        let mut held = self.held.borrow_mut();
        let mut stream = self.stream.borrow_mut();
        let polled = body.decoder.poll(cx, &mut stream, &mut held, &self.ctx.buffers);
        drop((held, stream));
        match polled {
            Poll::Ready(outcome) => {
                self.arrived(&mut body.pace);
                let piece = outcome.map_err(|broken| match broken {
                    BodyBroken::Malformed => Cause::BadChunk,
                    BodyBroken::Cut => Cause::ClientGone,
                })?;
                if body.limit.is_some_and(|limit| body.decoder.weight() > limit) {
                    return Poll::Ready(Err(Cause::BodyTooLarge));
                }
                body.taken |= piece.is_some();
                if body.tee.is_some() {
                    body.copy(piece.as_ref());
                }
                Poll::Ready(Ok(piece))
            }
            Poll::Pending => {
                self.awaited(body);
                self.timer().poll(ClientWait::Body, cx).map(|()| Err(Cause::BodyTimeout))
            }
        }
    }

    /// Only time that we spend waiting for the client counts against it: a backend that takes the body slowly
    /// is not the client's fault.
    fn awaited(&self, body: &mut Incoming) {
        let rate = if body.unhurried { 0 } else { self.limits().body_rate };
        if let Some(earned) = body.pace.begin(body.decoder.content(), rate) {
            self.timer().begin(ClientWait::Body, self.idle().min(earned));
        }
    }

    fn arrived(&self, pace: &mut BodyPace) {
        if pace.end() {
            self.timer().end();
        }
    }

    /// Ready when the client has left while we wait for a backend. Bytes that come meanwhile are the next
    /// request; they are kept.
    pub fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        // While a body is read, its reader sees the end.
        if !self.is_body_done() {
            return Poll::Pending;
        }
        if self.stream.borrow().is_fresh() {
            self.timer().begin_if_idle(ClientWait::QuickAnswer, UNWATCHED);
            ready!(self.timer().poll(ClientWait::QuickAnswer, cx));
            self.timer().end();
            if self.stream.borrow_mut().register().is_err() {
                return Poll::Ready(());
            }
        }
        let waiting = Waiting {
            stream: &mut self.stream.borrow_mut(),
            held: &mut self.held.borrow_mut(),
            buffers: &self.ctx.buffers,
            timer: self.timer().lend(ClientWait::Presence),
            half_closed: self.timeouts().half_closed,
        };
        self.presence.poll_gone(cx, waiting)
    }
}
