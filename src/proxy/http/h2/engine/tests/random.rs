//! Any frames, any tasks, any socket: what must hold does.

use proptest::prelude::*;

use super::*;

/// What happens next.
#[derive(Clone, Debug)]
enum Step {
    /// A request on the next stream.
    Ask {
        ends: bool,
        length: Option<u8>,
        skip: u8,
    },
    /// DATA on one of the streams that were opened.
    Data {
        stream: u8,
        ends: bool,
        length: u16,
        padding: u8,
    },
    Trailers {
        stream: u8,
    },
    Reset {
        stream: u8,
    },
    Window {
        stream: u8,
        more: u32,
    },
    Settings {
        window: u32,
    },
    Other {
        kind: u8,
        flags: u8,
        stream: u8,
        payload: Vec<u8>,
    },
    /// Bytes that are no frame, or one of anything.
    Garbage(Vec<u8>),
    /// A task does something with its stream.
    Head {
        stream: u8,
        ends: bool,
    },
    Send {
        stream: u8,
        most: u16,
        ends: bool,
    },
    Read {
        stream: u8,
    },
    Release {
        stream: u8,
    },
    Cut {
        stream: u8,
    },
    /// The socket takes some of the output.
    Write {
        most: u16,
    },
    Time {
        millis: u16,
    },
    Warn,
    Leave,
}

fn step() -> impl Strategy<Value = Step> {
    let stream = || 0..8u8;
    prop_oneof![
        6 => (any::<bool>(), proptest::option::of(any::<u8>()), 0..3u8)
            .prop_map(|(ends, length, skip)| Step::Ask { ends, length, skip }),
        6 => (stream(), any::<bool>(), 0..16_000u16, 0..4u8)
            .prop_map(|(stream, ends, length, padding)| Step::Data { stream, ends, length, padding }),
        1 => stream().prop_map(|stream| Step::Trailers { stream }),
        2 => stream().prop_map(|stream| Step::Reset { stream }),
        3 => (stream(), prop_oneof![0..100_000u32, any::<u32>()])
            .prop_map(|(stream, more)| Step::Window { stream, more }),
        1 => prop_oneof![0..200_000u32, any::<u32>()].prop_map(|window| Step::Settings { window }),
        2 => (0..18u8, any::<u8>(), stream(), proptest::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(kind, flags, stream, payload)| Step::Other { kind, flags, stream, payload }),
        1 => proptest::collection::vec(any::<u8>(), 0..40).prop_map(Step::Garbage),
        6 => (stream(), any::<bool>()).prop_map(|(stream, ends)| Step::Head { stream, ends }),
        8 => (stream(), any::<u16>(), any::<bool>())
            .prop_map(|(stream, most, ends)| Step::Send { stream, most, ends }),
        6 => stream().prop_map(|stream| Step::Read { stream }),
        4 => stream().prop_map(|stream| Step::Release { stream }),
        1 => stream().prop_map(|stream| Step::Cut { stream }),
        6 => any::<u16>().prop_map(|most| Step::Write { most }),
        2 => any::<u16>().prop_map(|millis| Step::Time { millis }),
        1 => Just(Step::Warn),
        1 => Just(Step::Leave),
    ]
}

/// A task of a stream, as the test plays it.
struct Task {
    id: u32,
    bell: Arc<Bell>,
    /// It was told to wait, for room or for a body, and was not woken since.
    waits: Option<Waits>,
    finished: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    Room,
    Body,
}

struct Play {
    pair: Pair,
    tasks: Vec<Task>,
    next: u32,
    sent: Vec<u8>,
}

impl Play {
    fn id(&self, stream: u8) -> u32 {
        self.tasks.get(usize::from(stream)).map_or(u32::from(stream) * 2 + 1, |task| task.id)
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut bytes = Vec::new();
        FrameHead { length: payload.len(), kind, flags, stream }.write(&mut bytes);
        bytes.extend_from_slice(payload);
        self.pair.send(&bytes);
    }

    fn task<T>(&mut self, stream: u8, act: impl FnOnce(&mut Pair, &mut Task) -> T) -> Option<T> {
        let task = self.tasks.get_mut(usize::from(stream))?;
        Some(act(&mut self.pair, task))
    }

    fn play(&mut self, step: Step) {
        match step {
            Step::Ask { ends, length, skip } => {
                self.next += 2 * u32::from(skip);
                let text = length.map(|length| length.to_string());
                let lines: Vec<_> = text.iter().map(|length| ("content-length", length.as_str())).collect();
                let flags = frame::END_HEADERS | u8::from(ends);
                let block = block(&lines);
                self.frame(frame::HEADERS, flags, self.next, &block);
                self.next += 2;
            }
            Step::Data { stream, ends, length, padding } => {
                let mut payload = Vec::new();
                if padding > 0 {
                    payload.push(padding - 1);
                }
                payload.resize(payload.len() + usize::from(length), 7);
                let flags = u8::from(ends) | if padding > 0 { frame::PADDED } else { 0 };
                self.frame(frame::DATA, flags, self.id(stream), &payload);
            }
            Step::Trailers { stream } => {
                let mut block = Vec::new();
                encode::field(&mut block, b"x", b"y");
                self.frame(frame::HEADERS, 5, self.id(stream), &block);
            }
            Step::Reset { stream } => {
                self.frame(frame::RST_STREAM, 0, self.id(stream), &8u32.to_be_bytes());
            }
            Step::Window { stream, more } => {
                let id = if stream == 0 { 0 } else { self.id(stream) };
                self.frame(frame::WINDOW_UPDATE, 0, id, &more.to_be_bytes());
            }
            Step::Settings { window } => {
                let mut bytes = Vec::new();
                frame::settings(&mut bytes, &[(frame::INITIAL_WINDOW_SIZE, window)]);
                self.pair.send(&bytes);
            }
            Step::Other { kind, flags, stream, payload } => {
                self.frame(kind, flags, self.id(stream), &payload);
            }
            Step::Garbage(bytes) => {
                let used = self.pair.engine.receive(&bytes, self.pair.now);
                assert!(used <= bytes.len());
            }
            Step::Head { stream, ends } => {
                self.task(stream, |pair, task| {
                    if !task.finished
                        && pair.engine.send_head(task.id, ends, |out| encode::status(out, 200)).is_ok()
                    {
                        task.finished = ends;
                    }
                });
            }
            Step::Send { stream, most, ends } => {
                self.task(stream, |pair, task| {
                    if task.finished {
                        return;
                    }
                    match pair.room(task.id, &task.bell) {
                        None => task.waits = Some(Waits::Room),
                        Some(Err(_)) => {}
                        Some(Ok(room)) => {
                            assert!(room > 0);
                            let count = room.min(usize::from(most));
                            pair.engine.send_data(task.id, &vec![1; count], ends);
                            task.finished = ends;
                        }
                    }
                });
            }
            Step::Read { stream } => {
                self.task(stream, |pair, task| {
                    let waker = Waker::from(Arc::clone(&task.bell));
                    let cx = Context::from_waker(&waker);
                    let polled = pair.engine.poll_body(task.id, &cx, &pair.buffers);
                    if polled.is_pending() {
                        task.waits = Some(Waits::Body);
                    }
                });
            }
            Step::Release { stream } => {
                if usize::from(stream) < self.tasks.len() {
                    let task = self.tasks.remove(stream.into());
                    self.pair.engine.release(task.id, || Tick(1));
                }
            }
            Step::Cut { stream } => {
                self.task(stream, |pair, task| {
                    pair.engine.reset_unless_cut(task.id, ErrorCode::INTERNAL_ERROR, Cause::AnswerCut);
                });
            }
            Step::Write { most } => {
                let output = self.pair.engine.output();
                let count = output.len().min(most.into());
                self.sent.extend_from_slice(&output[..count]);
                self.pair.engine.written(count);
                self.pair.engine.end_turn();
            }
            Step::Time { millis } => {
                self.pair.now = self.pair.now.after(Duration::from_millis(millis.into()));
            }
            Step::Warn => self.pair.engine.warn(),
            Step::Leave => self.pair.engine.leave(),
        }
        for id in self.pair.engine.take_opened() {
            let (request, _) = self.pair.engine.take_request(id).expect("it was opened");
            self.pair.space.return_request(request);
            self.tasks.push(Task { id, bell: Arc::default(), waits: None, finished: false });
        }
        self.pair
            .engine
            .take_misshapen()
            .into_iter()
            .for_each(|one| self.pair.space.return_request(one.request));
        self.check();
    }

    /// What holds at any time.
    fn check(&mut self) {
        let Play { pair, tasks, .. } = self;
        while pair.engine.wake_cut(1) {}
        let engine = &pair.engine;
        assert_eq!(engine.tasks(), tasks.len(), "the table holds what has a task");
        assert!(engine.tasks() <= TASKS);
        let held: usize = engine.streams.values().map(|stream| stream.held.len()).sum();
        assert!(held <= engine.receive_window.held() as usize, "what lies here is within the window");
        if engine.over.is_none() {
            assert_eq!(held, engine.receive_window.held() as usize, "and everything else was given back");
        }
        for stream in engine.streams.values().filter(|stream| stream.cut.is_none() && !stream.ended) {
            assert_eq!(stream.held.len(), stream.receive.held() as usize);
        }
        assert!(engine.output().len() <= UNREAD + 2 * OUT && engine.queued <= engine.output().len());
        assert!(engine.past.len() <= REMEMBERED);
        for task in tasks.iter_mut() {
            if task.bell.0.swap(0, Ordering::AcqRel) > 0 {
                task.waits = None;
            }
            let stream = engine.streams.get(task.id).expect("it has a task");
            let Some(waits) = task.waits else { continue };
            // Nobody waits for what is there.
            assert!(stream.cut.is_none(), "a stream that was cut wakes its task");
            if waits == Waits::Body {
                assert!(stream.held.is_empty() && !stream.ended, "a body that is there wakes its reader");
            } else {
                let is_shut = engine.send_window.room() == 0 || stream.send.room() == 0;
                let is_turn_over = stream.turn.0 == engine.turn && stream.turn.1 >= QUANTUM;
                // Room in the output is told at the end of a turn.
                let is_late = !is_shut && !is_turn_over && engine.output().len() < OUT;
                assert!(!is_late || engine.waiting.contains(&task.id), "room wakes who waits for it");
            }
        }
    }
}

/// So many cases, or as many as `PROPTEST_CASES` asks for if those are more.
fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    ProptestConfig { cases: usual.cases.max(400), ..usual }
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn whatever_comes_the_engine_stays_within_its_bounds(steps in proptest::collection::vec(step(), 1..120)) {
        let mut play = Play { pair: Pair::greeted(), tasks: Vec::new(), next: 1, sent: Vec::new() };
        for step in steps {
            play.play(step);
        }
        let rest = play.pair.engine.output().to_vec();
        play.sent.extend_from_slice(&rest);
        // Whatever was said is whole frames.
        let said = frames(&play.sent);
        let over = said.iter().position(|frame| frame.kind == frame::GOAWAY && code_at(&frame.payload[4..]) != ErrorCode::NO_ERROR);
        prop_assert!(over.is_none_or(|place| place + 1 == said.len()), "nothing follows the last word");
        for task in std::mem::take(&mut play.tasks) {
            play.pair.engine.release(task.id, || Tick(1));
        }
        let space = Rc::clone(&play.pair.space);
        drop(play);
        prop_assert!(space.is_at_rest(), "all that was counted was given back");
    }
}
