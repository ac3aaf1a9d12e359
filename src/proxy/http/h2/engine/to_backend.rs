//! The end towards a backend: it opens streams, and takes answers.

use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::message::{Cause, Framing};
use crate::tick::Tick;

use super::{Engine, EngineLimits, Outcome, Past, Phase, Role, TASKS, broken};
use crate::proxy::http::h2::budget::{PeerBudget, Toll};
use crate::proxy::http::h2::code::ErrorCode;
use crate::proxy::http::h2::draft::answer::AnswerDraft;
use crate::proxy::http::h2::flow::{ReceiveWindow, SendWindow};
use crate::proxy::http::h2::frame::{self, PREFACE};
use crate::proxy::http::h2::hpack::EncodedLines;
use crate::proxy::http::h2::output::Output;
use crate::proxy::http::h2::priority::Priority;
use crate::proxy::http::h2::repeated_answers::RepeatedAnswers;
use crate::proxy::http::h2::space::Http2Space;
use crate::proxy::http::h2::stream::{ArrivedAnswer, Cut, Http2Stream};

/// 1xx heads of one answer; a backend that sends more is broken.
const INTERIMS: usize = 32;
/// What our own PINGs carry.
const STILL_THERE: [u8; 8] = *b"are you?";

/// What a client has.
pub struct ToBackend {
    /// Streams that the backend takes at the same time.
    streams: u32,
    /// A PING was not answered yet.
    is_pinged: bool,
    /// It takes extended CONNECT (RFC 8441).
    connects: bool,
    /// Answers that have come before.
    repeated: RepeatedAnswers,
}

/// What has come of an answer in front of its body.
#[derive(Default)]
pub struct ArrivingAnswer {
    /// The first head that was not taken.
    next: Option<Box<ArrivedAnswer>>,
    /// Those behind it.
    more: VecDeque<Box<ArrivedAnswer>>,
    /// The final one has come.
    is_final: bool,
    /// It is for HEAD.
    to_head: bool,
    /// A tunnel is to be made of its stream: what follows a good answer is no body (RFC 8441 §5).
    to_tunnel: bool,
}

impl Engine<ToBackend> {
    /// A client's, with its preface in its output.
    #[must_use]
    pub fn client(limits: EngineLimits, space: &Rc<Http2Space>, now: Tick) -> Engine<ToBackend> {
        space.enter();
        let mut out = Output::default();
        let head = u32::try_from(limits.head.size).unwrap_or(u32::MAX);
        out.end(space).extend_from_slice(PREFACE);
        frame::settings(
            out.end(space),
            &[
                (frame::ENABLE_PUSH, 0),
                (frame::INITIAL_WINDOW_SIZE, limits.window),
                (frame::MAX_HEADER_LIST_SIZE, head),
            ],
        );
        let repeated = RepeatedAnswers::default();
        let side = ToBackend { streams: u32::MAX, is_pinged: false, connects: false, repeated };
        Engine::new(side, limits, space, out, PeerBudget::new(now, 0))
    }

    /// Streams that may be opened before a task has let go of one. `busy`: those that are about to be.
    #[must_use]
    pub fn room(&self, busy: usize) -> usize {
        if self.over.is_some() || self.phase != Phase::Open {
            return 0;
        }
        // How many it takes it says first of all (RFC 9113 §6.5.2); until then one is enough to find out.
        let streams = if self.greeted { self.side.streams.min(self.limits.streams) } else { 1 };
        let most = TASKS.min(streams as usize);
        most.saturating_sub(busy + self.streams.len())
    }

    /// True when it has said that it makes tunnels of streams (RFC 8441 §3).
    #[must_use]
    pub fn is_connecting(&self) -> bool {
        self.side.connects
    }

    /// Opens a stream with the head that `encode` writes. `ends`: the request has no body. `None`: the connection takes no more.
    pub fn ask(
        &mut self,
        ends: bool,
        to_head: bool,
        now: Tick,
        encode: impl FnOnce(&mut Vec<u8>, &mut EncodedLines),
    ) -> Option<u32> {
        if self.room(0) == 0 {
            return None;
        }
        let id = if self.last == 0 { 1 } else { self.last + 2 };
        self.last = id;
        let receive = ReceiveWindow::new(self.limits.window);
        let mut stream: Http2Stream<ArrivingAnswer> =
            Http2Stream::new(receive, SendWindow::new(self.peer_window), Priority::default(), now);
        stream.arrived.to_head = to_head;
        stream.finished = ends;
        stream.has_begun = true;
        self.streams.insert(id, stream);
        let space = Rc::clone(&self.space);
        self.append_head(id, ends, |out| encode(out, &mut space.encoded.borrow_mut()));
        if id >= frame::LARGEST_WINDOW - 2 {
            // There are no more numbers.
            self.leave();
        }
        Some(id)
    }

    /// A stream that was just opened asks for a tunnel.
    pub fn make_tunnel(&mut self, id: u32) {
        if let Some(stream) = self.streams.get_mut(id) {
            stream.arrived.to_tunnel = true;
        }
    }

    /// The next head of an answer, if it is here.
    #[must_use]
    pub fn take_answer(&mut self, id: u32) -> Option<Box<ArrivedAnswer>> {
        let arrived = &mut self.streams.get_mut(id)?.arrived;
        let answer = arrived.next.take()?;
        arrived.next = arrived.more.pop_front();
        Some(answer)
    }

    /// Gives the memory of one back.
    pub fn return_answer(&self, answer: Box<ArrivedAnswer>) {
        self.space.return_answer(answer);
    }

    /// Ready when there is one.
    ///
    /// # Errors
    /// The stream was cut: nothing more comes.
    pub fn poll_answer(&mut self, id: u32, cx: &Context<'_>) -> Poll<Result<(), Cut>> {
        let Some(stream) = self.streams.get_mut(id) else { return Poll::Pending };
        if stream.arrived.next.is_some() {
            return Poll::Ready(Ok(()));
        }
        if let Some(cut) = stream.cut {
            return Poll::Ready(Err(cut));
        }
        stream.wait(cx);
        Poll::Pending
    }

    /// How a stream was cut; `None`: it was not.
    #[must_use]
    pub fn cut_of(&self, id: u32) -> Option<Cut> {
        self.streams.get(id)?.cut
    }

    /// Appends what is left of an answer's body to `out`, if that is at most `most` bytes and all here, and no trailers follow. False: nothing was
    /// done.
    pub fn take_rest(&mut self, id: u32, out: &mut Vec<u8>, most: usize) -> bool {
        let Some(stream) = self.streams.get_mut(id) else { return false };
        let is_whole = stream.ended && stream.cut.is_none() && stream.trailers.is_empty();
        if !is_whole || stream.held.len() > most {
            return false;
        }
        let (front, back) = stream.held.as_slices();
        out.extend_from_slice(front);
        out.extend_from_slice(back);
        let count = stream.held.len();
        stream.held.clear();
        self.space.release(count);
        self.give_connection(count);
        self.budget.taken(count);
        true
    }

    /// True when the backend wants nothing more of a request: its answer is whole, or there will be none.
    #[must_use]
    pub fn is_stopped(&self, id: u32) -> bool {
        self.streams.get(id).is_none_or(|stream| stream.finished || stream.cut.is_some())
    }

    /// Asks the peer whether it is there.
    pub fn ask_after(&mut self) {
        if self.over.is_none() {
            self.side.is_pinged = true;
            frame::ping(self.out.end(&self.space), 0, STILL_THERE);
        }
    }

    /// True while it has not said so.
    #[must_use]
    pub fn is_pinged(&self) -> bool {
        self.side.is_pinged
    }

    /// The head of an answer that came whole.
    fn answer(&mut self, id: u32, ends: bool, block: &[u8], now: Tick) -> Outcome {
        let mut answer = self.space.take_answer();
        let to_head = self.streams.get(id).is_some_and(|stream| stream.arrived.to_head);
        let (changes, form) = (self.decoder.changes(), (ends, to_head));
        let framing = match self.side.repeated.find(block, changes, form, &mut answer.head) {
            Some(framing) => Some(framing),
            None => {
                let mut draft = AnswerDraft::new(&mut answer.head, self.limits.head);
                self.decode(block, |line| draft.line(line))?;
                let framing = draft.finish(ends, to_head);
                if let Some(framing) = framing
                    && changes == self.decoder.changes()
                {
                    self.side.repeated.note(block, changes, form, &answer.head, framing);
                }
                framing
            }
        };
        let Some(stream) = self.streams.get_mut(id) else { return Ok(()) };
        let arrived = &mut stream.arrived;
        let Some(framing) = framing else {
            return self.refuse(id, ErrorCode::PROTOCOL_ERROR, Cause::BadAnswer, now);
        };
        (answer.framing, answer.head_read) = (framing, now);
        let status = answer.head.status;
        let is_final = status >= 200;
        arrived.is_final = is_final;
        match &arrived.next {
            None => arrived.next = Some(answer),
            Some(_) => arrived.more.push_back(answer),
        }
        if arrived.more.len() >= INTERIMS {
            return self.refuse(id, ErrorCode::ENHANCE_YOUR_CALM, Cause::BadAnswer, now);
        }
        if is_final {
            stream.ended = ends;
            let is_tunnel = arrived.to_tunnel && (200..300).contains(&status);
            stream.expected = match framing {
                _ if is_tunnel => None,
                Framing::None => Some(0),
                Framing::Length(length) => Some(length),
                Framing::Chunked | Framing::UntilClose => None,
            };
        }
        stream.wake();
        Ok(())
    }
}

impl Role for ToBackend {
    type Arrived = ArrivingAnswer;

    const ASKS: bool = true;
    const GONE: Cause = Cause::BackendClosed;
    const ABANDONED: ErrorCode = ErrorCode::CANCEL;
    const BAD_FRAME: Cause = Cause::BadAnswer;
    const BAD_HEAD: Cause = Cause::BadAnswer;
    const BAD_LENGTH: Cause = Cause::BadAnswerBody;

    fn open(_: &mut Engine<ToBackend>, _: u32, _: bool, _: &[u8], _: (Tick, Tick)) -> Outcome {
        Err(broken("an answer to what was not asked"))
    }

    fn is_head_due(arrived: &ArrivingAnswer) -> bool {
        !arrived.is_final
    }

    fn head(engine: &mut Engine<ToBackend>, id: u32, ends: bool, block: &[u8], now: Tick) -> Outcome {
        engine.answer(id, ends, block, now)
    }

    fn reset(engine: &mut Engine<ToBackend>, id: u32, cut: Cut, now: Tick) -> Outcome {
        let Some(stream) = engine.streams.get_mut(id) else {
            // The two have met on their way: clients that give up are not to spend what the backend has.
            let is_ours = engine.past(id) == Some(Past::Ours);
            return if is_ours { Ok(()) } else { engine.charge(Toll::Unknown, now) };
        };
        if stream.ended {
            // It wants no more of the request: its answer is whole (RFC 9113 §8.1).
            stream.finished = true;
            stream.wake();
        } else {
            engine.cut(id, cut);
        }
        Ok(())
    }

    fn go_away(engine: &mut Engine<ToBackend>, last: u32, now: Tick) -> Outcome {
        engine.phase = Phase::Leaving(last);
        let above: Vec<u32> = engine.streams.ids().filter(|id| *id > last).collect();
        // It has done nothing for them (RFC 9113 §6.8).
        let cut = Cut { code: ErrorCode::REFUSED_STREAM, cause: Cause::BackendClosed, theirs: true };
        for id in above {
            engine.cut(id, cut);
        }
        engine.charge(Toll::Unknown, now)
    }

    fn pong(engine: &mut Engine<ToBackend>, payload: [u8; 8]) -> bool {
        payload == STILL_THERE && std::mem::take(&mut engine.side.is_pinged)
    }

    fn setting(engine: &mut Engine<ToBackend>, name: u16, value: u32) -> Outcome {
        match name {
            frame::MAX_CONCURRENT_STREAMS => engine.side.streams = value,
            frame::ENABLE_CONNECT_PROTOCOL => engine.side.connects = value == 1,
            // What we do not know is to be passed over (RFC 9113 §6.5.2).
            _ => {}
        }
        Ok(())
    }
}
