//! The end towards clients: it takes requests.

use std::rc::Rc;
use std::time::Duration;

use crate::message::{Cause, Framing, Head};
use crate::tick::Tick;

use super::heads::{BYTES, fault_of};
use super::{Engine, EngineLimits, Outcome, Past, Phase, Role, TASKS};
use crate::proxy::http::h2::budget::{PeerBudget, Toll};
use crate::proxy::http::h2::code::ErrorCode;
use crate::proxy::http::h2::draft::{HeadFault, RequestDraft};
use crate::proxy::http::h2::flow::{ReceiveWindow, SendWindow};
use crate::proxy::http::h2::frame;
use crate::proxy::http::h2::hpack::HpackError;
use crate::proxy::http::h2::output::Output;
use crate::proxy::http::h2::priority::Priority;
use crate::proxy::http::h2::repeated::RepeatedLines;
use crate::proxy::http::h2::space::Http2Space;
use crate::proxy::http::h2::stream::{ArrivedRequest, Cut, Http2Stream};

/// A request that nobody is to serve: its stream is reset already.
pub struct Misshapen {
    /// As much as there is of it.
    pub request: Box<ArrivedRequest>,
    /// What is wrong with it.
    pub cause: Cause,
}

/// What a server has.
#[derive(Default)]
pub struct ToClient {
    /// What the last requests had in common.
    repeated: RepeatedLines,
    opened: Vec<u32>,
    misshapen: Vec<Misshapen>,
}

/// A stream that was open for so long was not opened to be reset.
const LATE: Duration = Duration::from_millis(50);

impl Engine<ToClient> {
    /// A server's, with SETTINGS in its output. `missing`: what its budget is short of from the beginning.
    #[must_use]
    pub fn server(limits: EngineLimits, space: &Rc<Http2Space>, now: Tick, missing: u32) -> Engine<ToClient> {
        space.enter();
        let mut out = Output::default();
        let head = u32::try_from(limits.head.size).unwrap_or(u32::MAX);
        frame::settings(
            out.end(space),
            &[
                (frame::MAX_CONCURRENT_STREAMS, limits.streams),
                (frame::INITIAL_WINDOW_SIZE, limits.window),
                (frame::MAX_HEADER_LIST_SIZE, head),
                (frame::ENABLE_CONNECT_PROTOCOL, 1),
                (frame::NO_RFC7540_PRIORITIES, 1),
            ],
        );
        Engine::new(ToClient::default(), limits, space, out, PeerBudget::new(now, missing))
    }

    /// Streams that have come since the last call, to be served.
    #[must_use]
    pub fn take_opened(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.side.opened)
    }

    /// Gives the memory of what [`Engine::take_opened`] gave back.
    pub fn return_opened(&mut self, mut opened: Vec<u32>) {
        opened.clear();
        if self.side.opened.is_empty() && opened.capacity() <= TASKS {
            self.side.opened = opened;
        }
    }

    /// Requests that were malformed since the last call.
    #[must_use]
    pub fn take_misshapen(&mut self) -> Vec<Misshapen> {
        std::mem::take(&mut self.side.misshapen)
    }

    /// A stream's request was given so little time that nothing came of it.
    pub fn charge_abandoned(&mut self, now: Tick) {
        if let Err(fault) = self.charge(Toll::Abandoned, now) {
            self.fail(fault);
        }
    }

    /// True when a stream was cut since the last call: it may be one that has just come.
    #[must_use]
    pub fn take_cut(&mut self) -> bool {
        std::mem::take(&mut self.has_cut)
    }

    /// The request of a stream; once. With it, why the stream is over before anything was done for it.
    #[must_use]
    pub fn take_request(&mut self, id: u32) -> Option<(Box<ArrivedRequest>, Option<Cause>)> {
        let stream = self.streams.get_mut(id)?;
        Some((stream.arrived.take()?, stream.cut.map(|cut| cut.cause)))
    }

    /// A request.
    fn request(&mut self, id: u32, ends: bool, block: &[u8], (started, now): (Tick, Tick)) -> Outcome {
        self.last = id;
        let mut request = self.space.take_request();
        let framing = self.read(&mut request.head, ends, block).map_err(fault_of)?;
        if matches!(self.phase, Phase::Leaving(last) if id > last) {
            // It was told that this one is not served (RFC 9113 §6.8).
            self.space.return_request(request);
            return self.charge(Toll::Unknown, now);
        }
        (request.started, request.head_read) = (started, now);
        request.framing = match framing {
            Ok(framing) => Ok(framing),
            Err(HeadFault::Refused(cause)) => Err(cause),
            Err(HeadFault::Malformed(cause)) => {
                self.side.misshapen.push(Misshapen { request, cause });
                return self.refuse(id, ErrorCode::PROTOCOL_ERROR, cause, now);
            }
        };
        if self.is_full() {
            self.space.return_request(request);
            self.reset(id, ErrorCode::REFUSED_STREAM, Cause::Done);
            return self.charge(if self.unanswered > 0 { Toll::Early } else { Toll::Reset }, now);
        }
        let priority = Priority::of(&request.head);
        let receive = ReceiveWindow::new(self.limits.window);
        let mut stream = Http2Stream::new(receive, SendWindow::new(self.peer_window), priority, now);
        stream.ended = ends;
        if let Ok(Framing::Length(length)) = request.framing {
            stream.expected = Some(length);
        }
        stream.arrived = Some(request);
        self.streams.insert(id, stream);
        self.side.opened.push(id);
        Ok(())
    }

    /// Reads the block of a request into its head.
    fn read(
        &mut self,
        head: &mut Head,
        ends: bool,
        block: &[u8],
    ) -> Result<Result<Framing, HeadFault>, HpackError> {
        let mut scratch = self.space.draft.borrow_mut();
        let mut draft = RequestDraft::new(head, &mut scratch, self.limits.head);
        let mut reading = self.decoder.begin(block, BYTES)?;
        // Where its first line stands that is no pseudo-header field, and the table by which that is read.
        let (mut first, mut changes) = (reading, self.decoder.changes());
        while !draft.is_begun() {
            (first, changes) = (reading, self.decoder.changes());
            if let Some(lines) = self.side.repeated.find(&reading, changes)
                && draft.lines(lines)
            {
                self.side.repeated.found();
                self.decoder.end();
                return Ok(draft.finish(ends));
            }
            if !self.decoder.next(&mut reading, |line| draft.line(line))? {
                return Ok(draft.finish(ends));
            }
        }
        while self.decoder.next(&mut reading, |line| draft.line(line))? {}
        let is_repeatable = draft.is_repeatable() && changes == self.decoder.changes();
        let framing = draft.finish(ends);
        if is_repeatable && framing.is_ok() && self.side.repeated.is_wanted(first.rest()) {
            let counts = first.left() - reading.left();
            // The first line is the Host that its authority has become.
            self.side.repeated.keep(&first, (changes, counts), |lines| head.copy_run(1, lines));
        }
        Ok(framing)
    }

    /// True when no further stream may be opened: by the protocol's count, or because what was reset has not stopped yet.
    fn is_full(&self) -> bool {
        let most = self.limits.streams as usize;
        self.streams.len() >= most
            && (self.streams.len() >= TASKS
                || self.streams.values().filter(|stream| stream.is_open()).count() >= most)
    }
}

impl Role for ToClient {
    type Arrived = Option<Box<ArrivedRequest>>;

    const ASKS: bool = false;
    const GONE: Cause = Cause::ClientGone;
    const ABANDONED: ErrorCode = ErrorCode::INTERNAL_ERROR;
    const BAD_FRAME: Cause = Cause::BadFrame;
    const BAD_HEAD: Cause = Cause::BadHead;
    const BAD_LENGTH: Cause = Cause::BadLength;

    fn open(
        engine: &mut Engine<ToClient>,
        id: u32,
        ends: bool,
        block: &[u8],
        times: (Tick, Tick),
    ) -> Outcome {
        engine.request(id, ends, block, times)
    }

    fn is_head_due(_: &Option<Box<ArrivedRequest>>) -> bool {
        false
    }

    fn head(_: &mut Engine<ToClient>, _: u32, _: bool, _: &[u8], _: Tick) -> Outcome {
        Ok(())
    }

    fn reset(engine: &mut Engine<ToClient>, id: u32, cut: Cut, now: Tick) -> Outcome {
        let toll = match engine.streams.get(id) {
            Some(stream) if stream.cut.is_some() => Toll::ResetAgain,
            Some(stream) if stream.has_begun => Toll::Cancel,
            Some(stream) if now.since(stream.opened) >= LATE => Toll::LateReset,
            None if engine.past(id) == Some(Past::Theirs) => Toll::ResetAgain,
            Some(_) | None => Toll::Reset,
        };
        if engine.cut(id, cut) {
            return engine.charge(toll, now);
        }
        match engine.past(id) {
            // The two have met on their way, and ours was paid for.
            Some(Past::Ours) => engine.charge(Toll::Unknown, now),
            Some(Past::Early) => {
                engine.end_early(id, Past::Theirs);
                engine.charge(Toll::Cancel, now)
            }
            Some(Past::Whole | Past::Theirs) | None => engine.charge(toll, now),
        }
    }

    fn go_away(engine: &mut Engine<ToClient>, _: u32, now: Tick) -> Outcome {
        // It has nothing of ours to give back: we open no streams.
        engine.charge(Toll::Unknown, now)
    }

    fn pong(_: &mut Engine<ToClient>, _: [u8; 8]) -> bool {
        false
    }

    fn setting(_: &mut Engine<ToClient>, _: u16, _: u32) -> Outcome {
        Ok(())
    }
}
