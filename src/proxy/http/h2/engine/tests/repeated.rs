//! What was said before is taken for what it says now, and for nothing else.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;

const PATHS: &[&str] = &["/", "/a", "/a/b?c", "/no blank", ""];
const AUTHORITIES: &[Option<&str>] = &[Some("x"), Some("x:1"), Some("y"), Some("no authority"), None];
const LINES: &[(&str, &str)] = &[
    ("user-agent", "a"),
    ("user-agent", "b"),
    ("accept", "*/*"),
    ("x-long", "0123456789012345678901234567890123456789"),
    ("cookie", "a=1"),
    ("cookie", "b=2"),
    ("content-length", "0"),
    ("content-length", "1"),
    ("te", "trailers"),
    ("te", "gzip"),
    ("host", "x"),
    ("host", "y"),
    ("via", "1.1 b"),
    ("priority", "u=1"),
    ("connection", "close"),
    ("X", "capitals"),
];

/// A request: places in the lists above, a way to write each line, and a size for the table before it.
#[derive(Clone, Debug)]
struct Asked {
    path: usize,
    authority: usize,
    lines: Vec<(usize, u8)>,
    size: Option<usize>,
}

/// The peer's encoder, with a table of its own.
struct PeerEncoder {
    table: VecDeque<(&'static str, &'static str)>,
    most: usize,
}

impl PeerEncoder {
    fn evict(&mut self) {
        while self.table.iter().map(|(name, value)| name.len() + value.len() + 32).sum::<usize>() > self.most
        {
            self.table.pop_back();
        }
    }

    fn block(&mut self, asked: &Asked) -> Vec<u8> {
        let mut block = Vec::new();
        if let Some(size) = asked.size {
            // Less than 31 + 128.
            block.extend_from_slice(&[0x3f, (size - 31) as u8]);
            self.most = size;
            self.evict();
        }
        encode::pseudo(&mut block, Pseudo::Method, b"GET");
        encode::pseudo(&mut block, Pseudo::Scheme, b"http");
        encode::pseudo(&mut block, Pseudo::Path, PATHS[asked.path].as_bytes());
        if let Some(authority) = AUTHORITIES[asked.authority] {
            encode::pseudo(&mut block, Pseudo::Authority, authority.as_bytes());
        }
        for &(line, way) in &asked.lines {
            let (name, value) = LINES[line];
            let known = self.table.iter().position(|one| *one == (name, value));
            match (way, known) {
                (0..=3, Some(age)) => block.push(0x80 | (62 + age as u8)),
                (0..=2, None) => {
                    literal(&mut block, 0x40, name, value);
                    self.table.push_front((name, value));
                    self.evict();
                }
                _ => literal(&mut block, 0, name, value),
            }
        }
        block
    }
}

fn literal(block: &mut Vec<u8>, first: u8, name: &str, value: &str) {
    block.extend_from_slice(&[first, name.len() as u8]);
    block.extend_from_slice(name.as_bytes());
    block.push(value.len() as u8);
    block.extend_from_slice(value.as_bytes());
}

/// What was made of a request.
fn outcome(pair: &mut Pair, id: u32, block: &[u8]) -> String {
    pair.frame(frame::HEADERS, frame::END_HEADERS | frame::END_STREAM, id, block);
    let opened = pair.engine.take_opened();
    let misshapen = pair.engine.take_misshapen();
    let said = pair.read();
    let Some((request, _)) = pair.engine.take_request(id) else {
        let causes: Vec<_> = misshapen.iter().map(|one| one.cause).collect();
        return format!("{opened:?} {causes:?} {said:?}");
    };
    let head = &request.head;
    let lines: Vec<_> = head.lines().iter().map(|line| (line.field, head.pair(line))).collect();
    let text = format!(
        "{opened:?} {said:?} {:?} {:?} {lines:?} {:?} {:?} {:?}",
        head.at(head.start_and_lines()).escape_ascii().to_string(),
        request.framing,
        head.fields(),
        head.authority().escape_ascii().to_string(),
        pair.engine.streams.get(id).expect("it is open").priority,
    );
    pair.answer(id);
    text
}

fn asked() -> impl Strategy<Value = Asked> {
    let lines = prop::collection::vec((0..LINES.len(), 0..6u8), 0..5);
    let size = prop_oneof![20 => Just(None), 1 => (31usize..150).prop_map(Some)];
    let (path, authority) =
        (prop_oneof![9 => 0..3usize, 1 => 0..5usize], prop_oneof![9 => 0..3usize, 1 => 0..5usize]);
    (path, authority, lines, size).prop_map(|(path, authority, lines, size)| Asked {
        path,
        authority,
        lines,
        size,
    })
}

proptest! {
    #[test]
    fn a_request_is_the_same_whatever_was_kept_of_those_before(
        kinds in prop::collection::vec(asked(), 1..4),
        order in prop::collection::vec((0..4usize, 0..3usize), 1..40),
        size in 200usize..2000,
    ) {
        let limits = EngineLimits { head: HeadLimits { size, lines: 4 }, ..LIMITS };
        let (mut keeping, mut forgetting) = (Pair::greeted_by(limits), Pair::greeted_by(limits));
        let mut encoder = PeerEncoder { table: VecDeque::new(), most: 4096 };
        for (count, (kind, path)) in order.into_iter().enumerate() {
            // Neighbours differ in their path alone.
            let asked = Asked { path, ..kinds[kind % kinds.len()].clone() };
            let block = encoder.block(&asked);
            let id = 2 * count as u32 + 1;
            forgetting.engine.side = ToClient::default();
            let kept = outcome(&mut keeping, id, &block);
            prop_assert_eq!(kept, outcome(&mut forgetting, id, &block), "{:?}", asked);
        }
    }
}

#[test]
fn lines_that_were_kept_do_not_pass_a_limit() {
    let mut pair = Pair::greeted_by(EngineLimits { head: HeadLimits { size: 80, lines: 4 }, ..LIMITS });
    let mut ask = |id: u32, path: &str| {
        let mut block = Vec::new();
        encode::pseudo(&mut block, Pseudo::Method, b"GET");
        encode::pseudo(&mut block, Pseudo::Scheme, b"http");
        encode::pseudo(&mut block, Pseudo::Path, path.as_bytes());
        encode::pseudo(&mut block, Pseudo::Authority, b"x");
        encode::field(&mut block, b"user-agent", b"0123456789");
        pair.frame(frame::HEADERS, frame::END_HEADERS | frame::END_STREAM, id, &block);
        let (request, _) = pair.engine.take_request(id).expect("a request");
        pair.answer(id);
        request.framing
    };
    for id in [1, 3, 5] {
        assert_eq!(ask(id, "/"), Ok(Framing::None));
    }
    assert_eq!(ask(7, &"/".repeat(40)), Err(Cause::HeadTooLarge));
    assert_eq!(ask(9, "/"), Ok(Framing::None));
}
