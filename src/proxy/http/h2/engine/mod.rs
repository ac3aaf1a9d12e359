//! THE ENGINE: one HTTP/2 connection without its socket (RFC 9113).
//!
//! Bytes go in, bytes come out, and `now` is given. Whoever owns the socket calls [`Engine::receive`] with what came, writes
//! [`Engine::output`] once per turn, and serves the streams in [`Engine::take_opened`], each in a task of its own, through the calls in
//! `send` and `body`. A task that can't go on is woken when it can.
//!
//! Invariants. The table holds the streams that have a task, and no other. After `over` is set nothing is read any more, and every stream is cut. Nothing is queued without bound: heads and answers stop at [`OUT`]
//! bytes that the client has not taken, control frames with the reading at [`UNREAD`], bodies at their windows.

pub mod body;
mod ends;
mod frames;
mod heads;
mod send;
mod settings;
mod streams;
pub mod to_backend;
pub mod to_client;

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use crate::message::Cause;
use crate::tick::Tick;

use super::budget::{PeerBudget, Toll};
use super::code::ErrorCode;
use super::draft::HeadLimits;
use super::flow::{ReceiveWindow, SendWindow};
use super::frame::PREFACE;
use super::hpack::HpackDecoder;
use super::output::Output;
use super::space::Http2Space;
use super::stream::{Cut, Http2Stream, PartialHead};
use streams::Streams;

/// Bytes of heads and answers that may wait for the client.
pub const OUT: usize = 256 * 1024;
/// Nothing is read from a client that leaves so many bytes unread.
pub const UNREAD: usize = 512 * 1024;
/// Bytes that one stream may add in one turn.
pub const QUANTUM: usize = 64 * 1024;
/// Streams that may have a task, whatever the protocol counts.
pub const TASKS: usize = 256;
/// Window of a connection, and of our streams towards the peer, until something else is said (RFC 9113 §6.9.2).
const FIRST_WINDOW: u32 = 65_535;
/// Table of the decoder, as the protocol has it from the beginning.
const TABLE: usize = 4096;
/// Streams that were answered early and may still send; where there are more the oldest are reset.
const EARLY: usize = 64;
/// Bytes of theirs that are dropped before the client hears that it may send more.
const DROPPED: u32 = 32 * 1024;
/// How long they may: as long as a client of HTTP/1.1 that is told to go.
const EARLY_FOR: Duration = Duration::from_secs(2);
/// Streams that are remembered when they are over, so that what still comes for them is known for what it is.
const REMEMBERED: usize = 256;
/// What a PING carries that asks whether our first GOAWAY has arrived.
const FAREWELL: [u8; 8] = *b"farewell";

/// What a connection may do.
#[derive(Clone, Copy, Debug)]
pub struct EngineLimits {
    /// Streams at the same time, as it is told.
    pub streams: u32,
    /// Bytes that a stream's window begins with.
    pub window: u32,
    /// Bytes that it may grow to.
    pub window_max: u32,
    /// Twice the bytes that all connections of the worker together may grow their windows by and hold for backends, and four times what they may
    /// queue for clients.
    pub memory: u64,
    /// What a head may be.
    pub head: HeadLimits,
}

/// How far the end of a connection has come (RFC 9113 §6.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It serves.
    Open,
    /// It was said that it will end, and every stream that comes is served.
    Warned,
    /// Streams above this number are not served.
    Leaving(u32),
}

/// How a stream that is over has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Past {
    /// Both sides have said their last.
    Whole,
    /// The client has reset it.
    Theirs,
    /// We have: what is on its way for it means nothing.
    Ours,
    /// We have said our last before the client has, and bear with what it still says.
    Early,
}

/// A stream that was answered before its request was complete.
struct EarlyStream {
    id: u32,
    since: Tick,
    /// Bytes that were dropped and that the client does not know of yet.
    dropped: u32,
}

/// Why a connection can't go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2Fault {
    /// What the peer is told.
    pub code: ErrorCode,
    /// The same for a person.
    pub why: &'static str,
}

type Outcome = Result<(), Http2Fault>;

/// In what the two ends of a connection differ; all else is the same for both.
///
/// One of the two ends: [`ToClient`](to_client::ToClient) or [`ToBackend`](to_backend::ToBackend).
pub trait Role: Sized {
    /// What comes on a stream in front of a body.
    type Arrived: Default;

    /// It opens the streams, and what comes are answers.
    const ASKS: bool;
    /// The peer has gone, or wants no more of a stream.
    const GONE: Cause;
    /// What a stream is reset with whose task lets go of it before its end.
    const ABANDONED: ErrorCode;
    /// A frame came that has no place there.
    const BAD_FRAME: Cause;
    /// A head is none.
    const BAD_HEAD: Cause;
    /// A body is not as long as its head says.
    const BAD_LENGTH: Cause;

    /// A head came whose stream is above all others. `times`: when it began, and when it was whole.
    ///
    /// # Errors
    /// It breaks the connection.
    fn open(engine: &mut Engine<Self>, id: u32, ends: bool, block: &[u8], times: (Tick, Tick)) -> Outcome;

    /// Whether the next head is no trailer section, and no body may come before it.
    fn is_head_due(arrived: &Self::Arrived) -> bool;

    /// Such a head came.
    ///
    /// # Errors
    /// See [`Role::open`].
    fn head(engine: &mut Engine<Self>, id: u32, ends: bool, block: &[u8], now: Tick) -> Outcome;

    /// The peer has reset a stream, which was opened at some time.
    ///
    /// # Errors
    /// See [`Role::open`].
    fn reset(engine: &mut Engine<Self>, id: u32, cut: Cut, now: Tick) -> Outcome;

    /// The peer ends the connection, and has done nothing for streams above `last`.
    ///
    /// # Errors
    /// See [`Role::open`].
    fn go_away(engine: &mut Engine<Self>, last: u32, now: Tick) -> Outcome;

    /// A PING was answered. True: it was one of ours.
    fn pong(engine: &mut Engine<Self>, payload: [u8; 8]) -> bool;

    /// The peer says something that is for one of the two alone.
    ///
    /// # Errors
    /// See [`Role::open`].
    fn setting(engine: &mut Engine<Self>, name: u16, value: u32) -> Outcome;
}

/// One connection.
pub struct Engine<R: Role> {
    /// What only one of the two ends has.
    side: R,
    limits: EngineLimits,
    space: Rc<Http2Space>,
    out: Output,
    /// Bytes of bodies that were appended and not written yet; no more than the worker counts for this connection.
    queued: usize,
    /// Bytes of the preface that came.
    preface: usize,
    /// The peer's first SETTINGS came.
    greeted: bool,
    /// SETTINGS of ours that the peer has not answered.
    unanswered: u32,
    decoder: HpackDecoder,
    /// The table of the peer's decoder was told to be empty.
    is_encoder_begun: bool,
    /// A head that comes in several frames.
    block: Option<Box<PartialHead>>,
    streams: Streams<Http2Stream<R::Arrived>>,
    past: VecDeque<(u32, Past)>,
    /// Streams that are [`Past::Early`]; they are not in `streams`, and not in `past` before they end.
    early: VecDeque<EarlyStream>,
    /// The largest number of a stream that was opened.
    last: u32,
    send_window: SendWindow,
    receive_window: ReceiveWindow,
    /// What the windows of new streams towards the peer begin with.
    peer_window: u32,
    /// Streams that wait for room in `out` or in the connection's window.
    waiting: Vec<u32>,
    turn: u32,
    /// How many parts of bodies were sent.
    shares: u32,
    budget: PeerBudget,
    /// A stream was cut since somebody asked.
    has_cut: bool,
    phase: Phase,
    /// It is over: this was said last.
    over: Option<Http2Fault>,
}

impl<R: Role> Engine<R> {
    /// One on which nothing was said, but for what is in `out`.
    fn new(
        side: R,
        limits: EngineLimits,
        space: &Rc<Http2Space>,
        out: Output,
        budget: PeerBudget,
    ) -> Engine<R> {
        Engine {
            side,
            limits,
            space: Rc::clone(space),
            out,
            queued: 0,
            preface: if R::ASKS { PREFACE.len() } else { 0 },
            greeted: false,
            unanswered: 1,
            decoder: HpackDecoder::new(TABLE),
            is_encoder_begun: false,
            block: None,
            streams: Streams::default(),
            past: VecDeque::new(),
            early: VecDeque::new(),
            last: 0,
            send_window: SendWindow::new(FIRST_WINDOW),
            receive_window: ReceiveWindow::new(FIRST_WINDOW),
            peer_window: FIRST_WINDOW,
            waiting: Vec::new(),
            turn: 1,
            shares: 0,
            budget,
            has_cut: false,
            phase: Phase::Open,
            over: None,
        }
    }

    /// Bytes for the socket. After a write that did not take all of them they begin with the rest.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.out.data()
    }

    /// The socket has taken so many of them.
    pub fn written(&mut self, count: usize) {
        let queued = self.queued.min(count);
        self.queued -= queued;
        self.space.unqueue(queued);
        self.out.written(count, &self.space);
    }

    /// Ends a turn: what was appended is with the socket as far as that goes. Wakes who waits for room, if there is some.
    pub fn end_turn(&mut self) {
        self.turn = self.turn.wrapping_add(1);
        if self.queued > 0 && self.space.is_short(self.limits.memory) {
            // What is counted is bytes: they must not lie in twice the memory.
            self.out.shrink();
        }
        if !self.waiting.is_empty() && self.out.len() < self.space.room(OUT, self.limits.memory) {
            self.wake_waiting();
        }
    }

    fn wake_waiting(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        let streams = &mut self.streams;
        waiting.sort_unstable_by_key(|id| {
            streams.get(*id).map(|stream| stream.priority.rank(stream.served, *id))
        });
        for id in waiting.drain(..) {
            if let Some(stream) = streams.get_mut(id) {
                stream.wake();
            }
        }
        if waiting.capacity() <= TASKS {
            self.waiting = waiting;
        }
    }

    /// True while more may be read.
    #[must_use]
    pub fn is_reading(&self) -> bool {
        self.over.is_none() && self.out.len() < UNREAD
    }

    /// True while the beginning of something has come and not its end: the preface with SETTINGS and the answer to ours, or a head in several
    /// frames.
    #[must_use]
    pub fn is_amidst(&self) -> bool {
        !self.greeted || self.block.is_some() || self.is_owed_an_answer()
    }

    /// True when the peer has said its preface and SETTINGS.
    #[must_use]
    pub fn is_greeted(&self) -> bool {
        self.greeted
    }

    /// True while the peer owes an answer to SETTINGS.
    #[must_use]
    pub fn is_owed_an_answer(&self) -> bool {
        self.unanswered > 0
    }

    /// Streams that have a task.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.streams.len()
    }

    /// Why it is over; `None`: it is not.
    #[must_use]
    pub fn fault(&self) -> Option<Http2Fault> {
        self.over
    }

    /// How much its budget is short of a full one.
    #[must_use]
    pub fn owes(&self) -> u32 {
        self.budget.missing()
    }

    /// True when it has said that it ends, and everything that it has to serve was served.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Leaving(_)) && self.streams.is_empty()
    }

    fn charge(&mut self, toll: Toll, now: Tick) -> Outcome {
        let why = "too much work for too little";
        self.budget.charge(toll, now).map_err(|_| Http2Fault { code: ErrorCode::ENHANCE_YOUR_CALM, why })
    }
}

impl<R: Role> Drop for Engine<R> {
    fn drop(&mut self) {
        self.space.return_grant(self.receive_window.size().saturating_sub(FIRST_WINDOW));
        self.space.release(self.streams.values().map(|stream| stream.held.len()).sum());
        self.space.unqueue(self.queued);
        self.space.leave();
    }
}

/// That a peer breaks the protocol.
fn broken(why: &'static str) -> Http2Fault {
    Http2Fault { code: ErrorCode::PROTOCOL_ERROR, why }
}

#[cfg(test)]
mod tests;
