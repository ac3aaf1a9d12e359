use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::to_client::ToClient;
use super::*;
use crate::message::Framing;
use crate::net::FreeList;
use crate::proxy::http::h2::engine::body::Inflow;
use crate::proxy::http::h2::frame::{self, FRAME_HEAD, FrameHead, PREFACE};
use crate::proxy::http::h2::hpack::{HpackDecoder, Pseudo, encode};

mod abuse;
mod ends;
mod random;
mod repeated;
mod rules;

const HEAD: HeadLimits = HeadLimits { size: 8192, lines: 64 };
const LIMITS: EngineLimits =
    EngineLimits { streams: 4, window: 100_000, window_max: 400_000, memory: 2_000_000, head: HEAD };

/// A frame that came out.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

/// An engine, and its peer's side in the test's hands.
struct Pair {
    engine: Engine<ToClient>,
    space: Rc<Http2Space>,
    buffers: FreeList,
    now: Tick,
    decoder: HpackDecoder,
}

/// Counts how often it was woken.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Bell>) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}

impl Pair {
    /// One of which nothing was said.
    fn fresh(limits: EngineLimits) -> Pair {
        let space = Rc::new(Http2Space::default());
        let now = Tick(1);
        let engine = Engine::server(limits, &space, now, 0);
        Pair { engine, space, buffers: FreeList::new(), now, decoder: HpackDecoder::new(4096) }
    }

    /// One on which both have said their SETTINGS, and answered them.
    fn greeted() -> Pair {
        Pair::greeted_by(LIMITS)
    }

    fn greeted_by(limits: EngineLimits) -> Pair {
        let mut pair = Pair::fresh(limits);
        let mut hello = PREFACE.to_vec();
        frame::settings(&mut hello, &[]);
        frame::settings_ack(&mut hello);
        pair.send(&hello);
        let said: Vec<_> = pair.read().iter().map(|frame| (frame.kind, frame.flags)).collect();
        assert_eq!(said, [(frame::SETTINGS, 0), (frame::SETTINGS, frame::ACK)]);
        assert!(!pair.engine.is_amidst() && !pair.engine.is_owed_an_answer());
        pair
    }

    /// The engine gets these bytes, which are whole frames.
    fn send(&mut self, bytes: &[u8]) {
        assert_eq!(self.engine.receive(bytes, self.now), bytes.len());
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut bytes = Vec::new();
        FrameHead { length: payload.len(), kind, flags, stream }.write(&mut bytes);
        bytes.extend_from_slice(payload);
        self.send(&bytes);
    }

    /// A request with these lines beside the usual ones.
    fn ask(&mut self, stream: u32, ends: bool, lines: &[(&str, &str)]) {
        let flags = frame::END_HEADERS | if ends { frame::END_STREAM } else { 0 };
        self.frame(frame::HEADERS, flags, stream, &block(lines));
    }

    /// The frames that are in the output, which is taken by the socket.
    fn read(&mut self) -> Vec<Frame> {
        let bytes = self.engine.output().to_vec();
        self.engine.written(bytes.len());
        self.engine.end_turn();
        frames(&bytes)
    }

    fn data(&mut self, stream: u32, ends: bool, content: &[u8]) {
        self.frame(frame::DATA, u8::from(ends), stream, content);
    }

    /// The code of the GOAWAY that came, if one did.
    fn ended_with(&mut self) -> Option<ErrorCode> {
        let frames = self.read();
        let goaway = frames.iter().rfind(|frame| frame.kind == frame::GOAWAY)?;
        Some(code_at(&goaway.payload[4..]))
    }

    /// Streams that were reset, with their codes.
    fn resets(&mut self) -> Vec<(u32, ErrorCode)> {
        let frames = self.read();
        let resets = frames.iter().filter(|frame| frame.kind == frame::RST_STREAM);
        resets.map(|frame| (frame.stream, code_at(&frame.payload))).collect()
    }

    /// A short answer, and the end of the stream's task.
    fn answer(&mut self, stream: u32) {
        let sent = self.engine.send_head(stream, true, |out| encode::status(out, 204));
        assert_eq!(sent, Ok(()));
        let now = self.now;
        self.engine.release(stream, || now);
    }

    /// All that lies here of a body.
    fn body(&mut self, stream: u32) -> Vec<u8> {
        let mut all = Vec::new();
        while let Poll::Ready(Ok(Inflow::Piece(piece))) =
            self.engine.poll_body(stream, &Context::from_waker(Waker::noop()), &self.buffers)
        {
            all.extend_from_slice(piece.data());
        }
        all
    }

    fn room(&mut self, stream: u32, bell: &Arc<Bell>) -> Option<Result<usize, Cut>> {
        let waker = Waker::from(Arc::clone(bell));
        match self.engine.poll_room(stream, &Context::from_waker(&waker)) {
            Poll::Ready(room) => Some(room),
            Poll::Pending => None,
        }
    }
}

fn code_at(bytes: &[u8]) -> ErrorCode {
    ErrorCode(u32::from_be_bytes(bytes[..4].try_into().expect("four bytes")))
}

fn frames(mut bytes: &[u8]) -> Vec<Frame> {
    let mut frames = Vec::new();
    while let Some(head) = FrameHead::parse(bytes) {
        let payload = bytes[FRAME_HEAD..FRAME_HEAD + head.length].to_vec();
        frames.push(Frame { kind: head.kind, flags: head.flags, stream: head.stream, payload });
        bytes = &bytes[FRAME_HEAD + head.length..];
    }
    assert!(bytes.is_empty(), "half a frame is in the output");
    frames
}

/// The head of a request with these lines beside the usual ones.
fn block(lines: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    encode::pseudo(&mut block, Pseudo::Method, b"POST");
    encode::pseudo(&mut block, Pseudo::Scheme, b"http");
    encode::pseudo(&mut block, Pseudo::Path, b"/");
    encode::pseudo(&mut block, Pseudo::Authority, b"x");
    lines.iter().for_each(|(name, value)| encode::field(&mut block, name.as_bytes(), value.as_bytes()));
    block
}

#[test]
fn a_request_comes_in_and_its_answer_goes_out() {
    let mut pair = Pair::greeted();
    pair.ask(1, true, &[("a", "b")]);
    assert_eq!(pair.engine.take_opened(), [1]);
    let (request, _) = pair.engine.take_request(1).expect("a request");
    assert_eq!(request.framing, Ok(Framing::None));
    assert_eq!(request.head.at(request.head.start_and_lines()), b"POST / HTTP/1.1\r\nhost: x\r\na: b\r\n");
    assert!(pair.engine.take_request(1).is_none() && pair.engine.take_opened().is_empty());

    pair.engine.send_head(1, false, |out| encode::status(out, 200)).expect("it is open");
    pair.engine.send_data(1, b"hello", true);
    pair.engine.release(1, || Tick(1));
    let frames = pair.read();
    assert_eq!((frames[0].kind, frames[0].flags), (frame::HEADERS, frame::END_HEADERS));
    let mut lines = Vec::new();
    let decoded = pair.decoder.decode(&frames[0].payload, 1000, |line| lines.push(line.bytes.to_vec()));
    assert_eq!((decoded, lines), (Ok(()), vec![b":status: 200\r\n".to_vec()]));
    assert_eq!(
        frames[1..],
        [Frame { kind: frame::DATA, flags: frame::END_STREAM, stream: 1, payload: b"hello".to_vec() }]
    );
    assert_eq!(pair.engine.tasks(), 0);
}

#[test]
fn bytes_may_come_one_by_one() {
    let mut pair = Pair::fresh(LIMITS);
    let mut hello = PREFACE.to_vec();
    frame::settings(&mut hello, &[(frame::INITIAL_WINDOW_SIZE, 10)]);
    let request = block(&[]);
    let flags = frame::END_HEADERS | frame::END_STREAM;
    FrameHead { length: request.len(), kind: frame::HEADERS, flags, stream: 1 }.write(&mut hello);
    hello.extend_from_slice(&request);
    let mut held = Vec::new();
    for byte in hello {
        held.push(byte);
        let used = pair.engine.receive(&held, pair.now);
        held.drain(..used);
    }
    assert!(held.is_empty() && pair.engine.fault().is_none());
    assert_eq!(pair.engine.take_opened(), [1]);
}

#[test]
fn a_body_is_read_and_the_window_is_opened_again() {
    let mut pair = Pair::greeted();
    pair.ask(1, false, &[]);
    let content = vec![7; 16_000];
    for _ in 0..4 {
        pair.data(1, false, &content);
    }
    assert!(pair.read().iter().all(|frame| frame.stream == 0), "nothing was read");
    assert_eq!(pair.body(1).len(), 64_000);
    let opened = pair.read();
    assert!(opened.iter().all(|frame| frame.kind == frame::WINDOW_UPDATE), "{opened:?}");
    assert!(opened.iter().any(|frame| frame.stream == 1));
    assert!(!pair.engine.is_body_done(1));
    pair.frame(frame::HEADERS, 5, 1, &{
        let mut block = Vec::new();
        encode::field(&mut block, b"x", b"y");
        block
    });
    assert_eq!(pair.body(1), b"");
    assert!(pair.engine.is_body_done(1));
    assert_eq!(pair.engine.trailers(1), b"x: y\r\n");
}

#[test]
fn windows_grow_while_everything_is_taken_and_are_given_back() {
    let mut pair = Pair::greeted();
    pair.ask(1, false, &[]);
    for _ in 0..200 {
        pair.data(1, false, &[7; 16_000]);
        pair.body(1);
        pair.read();
    }
    let stream = pair.engine.streams.get(1).expect("it is open");
    assert_eq!((stream.receive.size(), pair.engine.receive_window.size()), (400_000, 800_000));
    pair.frame(frame::RST_STREAM, 0, 1, &8u32.to_be_bytes());
    pair.engine.release(1, || Tick(1));
    drop(pair.engine);
    assert!(pair.space.grant(1_000_000, 2_000_000), "all of it is there again");
}

#[test]
fn windows_grow_too_where_bytes_come_in_bursts_and_are_taken_before_they_are_used_up() {
    let mut pair = Pair::greeted();
    pair.ask(1, false, &[]);
    for _ in 0..100 {
        // What is announced is announced while more lies here; the connection's window is never less than half open.
        (0..2).for_each(|_| pair.data(1, false, &[7; 15_000]));
        let first = pair.engine.poll_body(1, &Context::from_waker(Waker::noop()), &pair.buffers);
        assert!(matches!(first, Poll::Ready(Ok(Inflow::Piece(_)))));
        pair.data(1, false, &[7; 1_000]);
        pair.body(1);
        pair.read();
    }
    let stream = pair.engine.streams.get(1).expect("it is open");
    assert_eq!((stream.receive.size(), pair.engine.receive_window.size()), (400_000, 800_000));
}

#[test]
fn windows_do_not_grow_beyond_what_the_worker_has() {
    let mut pair = Pair::greeted_by(EngineLimits { memory: 64_000, ..LIMITS });
    pair.ask(1, false, &[]);
    for _ in 0..200 {
        pair.data(1, false, &[7; 16_000]);
        assert_eq!(pair.body(1).len(), 16_000);
        pair.read();
    }
    assert_eq!(pair.engine.receive_window.size(), 65_535, "and that bounds all of its streams");
}

#[test]
fn who_waits_for_room_is_woken_when_there_is_some() {
    let mut pair = Pair::greeted();
    pair.ask(1, true, &[]);
    let bell = Arc::new(Bell::default());
    let rung = |bell: &Bell| bell.0.swap(0, Ordering::AcqRel);
    pair.engine.send_head(1, false, |out| encode::status(out, 200)).expect("it is open");
    assert_eq!(pair.room(1, &bell), Some(Ok(65_535)), "the smaller of the windows");
    pair.engine.send_data(1, &[0; 65_535], false);
    assert_eq!(pair.room(1, &bell), None, "the window of the stream");
    pair.frame(frame::WINDOW_UPDATE, 0, 1, &100u32.to_be_bytes());
    assert_eq!((rung(&bell), pair.room(1, &bell)), (1, None), "that of the connection");
    pair.frame(frame::WINDOW_UPDATE, 0, 0, &1_000_000u32.to_be_bytes());
    assert_eq!((rung(&bell), pair.room(1, &bell)), (1, Some(Ok(1))), "what is left of its share of the turn");
    pair.engine.send_data(1, &[0; 1], false);
    assert_eq!(pair.room(1, &bell), None);
    pair.read();
    assert_eq!((rung(&bell), pair.room(1, &bell)), (1, Some(Ok(99))), "the next turn");
}

#[test]
fn those_that_wait_are_woken_in_the_order_of_their_urgency() {
    let mut pair = Pair::greeted();
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    struct Named(u32, Arc<std::sync::Mutex<Vec<u32>>>);
    impl Wake for Named {
        fn wake(self: Arc<Named>) {
            self.1.lock().expect("whole").push(self.0);
        }
    }
    pair.ask(1, true, &[("priority", "u=5")]);
    pair.ask(3, true, &[]);
    pair.ask(5, true, &[("priority", "u=0")]);
    pair.frame(frame::PRIORITY_UPDATE, 0, 0, b"\0\0\0\x03u=7");
    // The connection's window is used up.
    pair.engine.send_data(1, &[0; 65_535], false);
    for id in [3, 1, 5] {
        let waker = Waker::from(Arc::new(Named(id, Arc::clone(&order))));
        pair.frame(frame::WINDOW_UPDATE, 0, id, &100u32.to_be_bytes());
        assert!(pair.engine.poll_room(id, &Context::from_waker(&waker)).is_pending());
    }
    pair.frame(frame::WINDOW_UPDATE, 0, 0, &1000u32.to_be_bytes());
    assert_eq!(*order.lock().expect("whole"), [5, 1, 3]);
}

#[test]
fn a_long_head_goes_out_in_several_frames() {
    let mut pair = Pair::greeted();
    pair.ask(1, true, &[]);
    let value = vec![b'\\'; 20_000];
    pair.engine
        .send_head(1, true, |out| {
            encode::status(out, 200);
            encode::field(out, b"x", &value);
        })
        .expect("it is open");
    let frames = pair.read();
    let shape: Vec<_> = frames.iter().map(|frame| (frame.kind, frame.flags)).collect();
    assert_eq!(shape, [(frame::HEADERS, frame::END_STREAM), (frame::CONTINUATION, frame::END_HEADERS)]);
    let whole: Vec<u8> = frames.into_iter().flat_map(|frame| frame.payload).collect();
    let mut length = 0;
    pair.decoder.decode(&whole, 100_000, |line| length = line.value().len()).expect("a good block");
    assert_eq!(length, value.len());
}

#[test]
fn an_end_comes_in_two_steps_and_loses_no_stream() {
    let mut pair = Pair::greeted();
    pair.ask(1, true, &[]);
    pair.engine.warn();
    pair.engine.warn();
    let frames = pair.read();
    let kinds: Vec<_> = frames.iter().map(|frame| frame.kind).collect();
    assert_eq!(kinds, [frame::GOAWAY, frame::PING]);
    assert_eq!(frames[0].payload, [0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    pair.ask(3, true, &[]);
    assert_eq!(pair.engine.take_opened(), [1, 3], "what is on its way is served");
    pair.frame(frame::PING, frame::ACK, 0, &frames[1].payload);
    assert_eq!(pair.read()[0].payload, [0, 0, 0, 3, 0, 0, 0, 0]);
    pair.ask(5, true, &[]);
    assert!(pair.engine.take_opened().is_empty() && pair.resets().is_empty(), "it was told");
    assert!(!pair.engine.is_finished());
    pair.answer(1);
    pair.answer(3);
    assert!(pair.engine.is_finished() && pair.engine.fault().is_none());
}

#[test]
fn streams_that_say_nothing_of_their_priority_take_turns() {
    let mut pair = Pair::greeted_by(EngineLimits { streams: 128, ..LIMITS });
    let bell = Arc::new(Bell::default());
    let ids = [1, 3, 5, 7, 9, 11];
    for id in ids {
        pair.ask(id, true, &[]);
        pair.frame(frame::WINDOW_UPDATE, 0, id, &100_000_000u32.to_be_bytes());
    }
    pair.frame(frame::WINDOW_UPDATE, 0, 0, &1_000_000_000u32.to_be_bytes());
    let mut sent = [0; 6];
    for _ in 0..60 {
        let mut order: Vec<u32> = pair.engine.waiting.clone();
        order.sort_by_key(|&id| {
            let stream = pair.engine.streams.get(id).expect("it is open");
            stream.priority.rank(stream.served, id)
        });
        pair.read();
        // Whoever was woken first asks first, and those that were not waiting behind them.
        order.extend(ids.iter().filter(|id| !order.contains(id)).copied().collect::<Vec<_>>());
        for id in order {
            while let Some(Ok(room)) = pair.room(id, &bell) {
                pair.engine.send_data(id, &vec![0; room], false);
                sent[(id / 2) as usize] += room;
            }
        }
    }
    let (least, most) = (sent.iter().min().expect("six"), sent.iter().max().expect("six"));
    assert!(*least > 0 && most - least <= 2 * QUANTUM, "{sent:?}");
}

#[test]
fn an_upload_that_nobody_takes_does_not_hold_up_another_one() {
    let mut pair = Pair::greeted();
    pair.ask(1, false, &[]);
    (0..6).for_each(|_| pair.data(1, false, &[0; 16_000]));
    pair.ask(3, false, &[]);
    for _ in 0..20 {
        pair.data(3, false, &[0; 16_000]);
        assert_eq!(pair.body(3).len(), 16_000);
    }
    assert!(pair.engine.fault().is_none());
}

#[test]
fn heads_wait_too_while_much_is_unread() {
    let mut pair = Pair::greeted_by(EngineLimits { streams: 128, ..LIMITS });
    let cx = Context::from_waker(Waker::noop());
    let long = vec![b'\\'; 10_000];
    let heads = (1..).step_by(2).take(100).take_while(|id| {
        pair.ask(*id, true, &[]);
        let encode = |out: &mut Vec<u8>| {
            encode::status(out, 200);
            encode::field(out, b"x", &long);
        };
        pair.engine.poll_head(*id, false, &cx, encode) == Poll::Ready(Ok(()))
    });
    assert_eq!(heads.count(), OUT / 10_000 + 1);
}
