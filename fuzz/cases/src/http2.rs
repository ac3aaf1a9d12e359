//! HTTP/2: whatever frames come, what a backend gets is what its stream said, and nobody is kept waiting for what is there.

use std::collections::HashMap;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use evenkeel::message::{Framing, Head};
use evenkeel::net::FreeList;
use evenkeel::proxy::http::h2::code::ErrorCode;
use evenkeel::proxy::http::h2::draft::HeadLimits;
use evenkeel::proxy::http::h2::engine::body::Inflow;
use evenkeel::proxy::http::h2::engine::to_client::ToClient;
use evenkeel::proxy::http::h2::engine::{Engine, EngineLimits, OUT, TASKS, UNREAD};
use evenkeel::proxy::http::h2::frame::{self, FRAME_HEAD, FrameHead, PREFACE, unpadded};
use evenkeel::proxy::http::h2::hpack::encode;
use evenkeel::proxy::http::h2::space::Http2Space;
use evenkeel::tick::Tick;

use crate::ours::Whole;
use crate::shown::shown;
use crate::strict;
use crate::writer::{ABOUT, sent_request, with_body};

const LIMITS: EngineLimits = EngineLimits {
    streams: 8,
    window: 70_000,
    memory: 100_000,
    window_max: 200_000,
    head: HeadLimits { size: 4096, lines: 32 },
};

/// Names and values that heads are made of, good ones and others.
const NAMES: &[&str] = &[
    ":method",
    ":path",
    ":scheme",
    ":authority",
    "host",
    "content-length",
    "cookie",
    "te",
    "x",
    "transfer-encoding",
    "connection",
    "content_length",
    "x-forwarded-for",
    "expect",
    ":status",
    "X",
];
const VALUES: &[&str] = &[
    "GET",
    "POST",
    "/",
    "/a?b",
    "http",
    "a.example",
    "0",
    "5",
    "trailers",
    "",
    "a b",
    "*",
    "a.example:80",
    "chunked",
    "/ HTTP/1.1\r\nx: y",
    "100-continue",
];

/// A request, and what was read of its body.
#[derive(Default)]
struct Told {
    head: Option<(Head, Framing)>,
    read: Vec<u8>,
}

struct Play<'a> {
    rest: &'a [u8],
    engine: Engine<ToClient>,
    buffers: FreeList,
    now: Tick,
    streams: HashMap<u32, Told>,
    /// The content of all DATA, by their stream.
    sent: HashMap<u32, Vec<u8>>,
    next: u32,
}

/// Steps of a client, of the tasks of streams, and of the socket, each a byte and what follows it.
pub fn http2(bytes: &[u8]) {
    let space = Rc::new(Http2Space::default());
    let now = Tick(1);
    let engine = Engine::server(LIMITS, &space, now, 0);
    let (streams, sent) = (HashMap::new(), HashMap::new());
    let mut play = Play { rest: bytes, engine, buffers: FreeList::new(), now, streams, sent, next: 1 };
    let mut hello = PREFACE.to_vec();
    frame::settings(&mut hello, &[]);
    play.receive(&hello);
    while let Some(step) = play.byte() {
        play.step(step);
        play.serve_opened();
        assert!(play.engine.tasks() <= TASKS && play.engine.tasks() == play.streams.len());
        assert!(play.engine.output().len() <= UNREAD + 2 * OUT);
    }
    let ids: Vec<u32> = play.streams.keys().copied().collect();
    ids.into_iter().for_each(|id| play.release(id));
    assert_eq!(play.engine.tasks(), 0);
}

impl Play<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(first)
    }

    fn choice(&mut self) -> u8 {
        self.byte().unwrap_or_default()
    }

    fn taken(&mut self, count: usize) -> Vec<u8> {
        let (taken, rest) = self.rest.split_at(count.min(self.rest.len()));
        self.rest = rest;
        taken.to_vec()
    }

    /// A stream that is open, or a number that may be anybody's.
    fn stream(&mut self) -> u32 {
        let choice = self.choice();
        let mut ids: Vec<u32> = self.streams.keys().copied().collect();
        ids.sort_unstable();
        ids.get(usize::from(choice) % 8).copied().unwrap_or(u32::from(choice))
    }

    /// Whatever step they are of, bytes may be DATA.
    fn receive(&mut self, bytes: &[u8]) {
        assert!(self.engine.receive(bytes, self.now) <= bytes.len());
        let mut rest = bytes;
        while let Some(head) = FrameHead::parse(rest)
            && let Some(payload) = rest.get(FRAME_HEAD..FRAME_HEAD + head.length)
        {
            if let Some(content) = unpadded(head, payload).filter(|_| head.kind == frame::DATA) {
                self.sent.entry(head.stream).or_default().extend_from_slice(content);
            }
            rest = &rest[FRAME_HEAD + head.length..];
        }
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut bytes = Vec::new();
        FrameHead { length: payload.len(), kind, flags, stream }.write(&mut bytes);
        bytes.extend_from_slice(payload);
        self.receive(&bytes);
    }

    /// A block of lines out of the two lists.
    fn block(&mut self, usual: bool) -> Vec<u8> {
        let mut block = Vec::new();
        let line = |block: &mut Vec<u8>, name: u8, value: u8| {
            let of = |list: &[&'static str], number: u8| list[usize::from(number) % list.len()];
            encode::field(block, of(NAMES, name).as_bytes(), of(VALUES, value).as_bytes());
        };
        if usual {
            [(0, 1), (2, 4), (1, 3), (3, 5)]
                .into_iter()
                .for_each(|(name, value)| line(&mut block, name, value));
        }
        for _ in 0..self.choice() % 8 {
            let both = (self.choice(), self.choice());
            line(&mut block, both.0, both.1);
        }
        block
    }

    fn step(&mut self, step: u8) {
        match step % 16 {
            0..3 => {
                let flags = self.choice();
                let block = self.block(step & 0x80 == 0);
                let ends = flags & 1;
                if flags & 2 == 0 {
                    self.frame(frame::HEADERS, frame::END_HEADERS | ends, self.next, &block);
                } else {
                    let (one, two) = block.split_at(block.len() / 2);
                    self.frame(frame::HEADERS, ends, self.next, one);
                    self.frame(frame::CONTINUATION, frame::END_HEADERS, self.next, two);
                }
                self.next += 2 + u32::from(flags & 4);
            }
            3..6 => {
                let (id, flags) = (self.stream(), self.choice());
                let count = usize::from(self.choice()) * if flags & 0x40 == 0 { 1 } else { 64 };
                let content = vec![self.choice(); count];
                let mut payload = Vec::new();
                if flags & frame::PADDED != 0 {
                    payload.push(2);
                }
                payload.extend_from_slice(&content);
                if flags & frame::PADDED != 0 {
                    payload.extend_from_slice(&[0, 0]);
                }
                self.frame(frame::DATA, flags & (frame::PADDED | 1), id, &payload);
            }
            6 => {
                let id = self.stream();
                let block = self.block(false);
                self.frame(frame::HEADERS, frame::END_HEADERS | frame::END_STREAM, id, &block);
            }
            7 => {
                let id = self.stream();
                self.frame(frame::RST_STREAM, 0, id, &[0, 0, 0, 8]);
            }
            8 => {
                let (kind, flags, stream) = (self.choice() % 18, self.choice(), self.stream());
                let count = usize::from(self.choice() % 24);
                let payload = self.taken(count);
                self.frame(kind, flags, stream, &payload);
            }
            9 => {
                let count = usize::from(self.choice() % 40);
                let bytes = self.taken(count);
                self.receive(&bytes);
            }
            10 | 11 => {
                let id = self.stream();
                self.read(id);
            }
            12 => {
                let id = self.stream();
                let ends = self.choice() & 1 == 1;
                if self.streams.contains_key(&id) {
                    let _ = self.engine.send_head(id, ends, |out| encode::status(out, 200));
                }
            }
            13 => {
                let (id, count) = (self.stream(), usize::from(self.choice()) * 300);
                let cx = Context::from_waker(Waker::noop());
                if self.streams.contains_key(&id)
                    && let Poll::Ready(Ok(room)) = self.engine.poll_room(id, &cx)
                {
                    self.engine.send_data(id, &vec![1; count.min(room)], false);
                }
            }
            14 => {
                let id = self.stream();
                self.release(id);
            }
            _ => {
                let count = usize::from(self.choice()) * 100;
                let count = count.min(self.engine.output().len());
                self.engine.written(count);
                self.engine.end_turn();
                self.now = self.now.after(Duration::from_millis(u64::from(self.choice())));
            }
        }
    }

    fn serve_opened(&mut self) {
        for id in self.engine.take_opened() {
            let Some((request, _)) = self.engine.take_request(id) else { panic!("stream {id} was opened") };
            let head = request.framing.ok().map(|framing| (request.head, framing));
            assert!(self.streams.insert(id, Told { head, ..Told::default() }).is_none(), "{id} comes twice");
        }
        for one in self.engine.take_misshapen() {
            assert!(one.cause.status() >= 400);
        }
    }

    /// Takes what there is of a body; at its end the request is whole, and somebody else reads it.
    fn read(&mut self, id: u32) {
        let cx = Context::from_waker(Waker::noop());
        let Some(told) = self.streams.get_mut(&id) else { return };
        loop {
            match self.engine.poll_body(id, &cx, &self.buffers) {
                Poll::Ready(Ok(Inflow::Piece(piece))) => told.read.extend_from_slice(piece.data()),
                Poll::Ready(Ok(Inflow::End)) => break,
                Poll::Ready(Err(_)) | Poll::Pending => return,
            }
        }
        let Some((head, framing)) = &told.head else { return };
        let sent = self.sent.get(&id).map_or(&[][..], Vec::as_slice);
        assert_eq!(told.read.len(), sent.len(), "all that was sent is read");
        assert!(told.read == sent);
        if head.method() == b"CONNECT" {
            return;
        }
        let trailers = self.engine.trailers(id);
        let body = Whole { content: told.read.clone(), raw: Vec::new(), trailers, end: 0 };
        let sent = with_body(sent_request(head, *framing, None, &ABOUT), *framing, &body, false);
        let request = strict::request(&sent, 0).unwrap_or_else(|stop| panic!("{stop:?}: {}", shown(&sent)));
        let after = strict::body(&sent, request.end, request.length)
            .unwrap_or_else(|stop| panic!("{stop:?}: {}", shown(&sent)));
        assert_eq!((after.end, &after.content), (sent.len(), &told.read), "{}", shown(&sent));
        assert_eq!((request.method, request.path), (head.method().to_vec(), head.path().to_vec()));
        assert_eq!(request.authority, head.authority());
    }

    fn release(&mut self, id: u32) {
        if self.streams.remove(&id).is_some() {
            if id.is_multiple_of(3) {
                self.engine.send_data(id, &[], true);
            } else if id.is_multiple_of(5) {
                self.engine.reset(id, ErrorCode::CANCEL, evenkeel::message::Cause::AnswerCut);
            }
            self.engine.release(id, || Tick(1));
        }
    }
}
