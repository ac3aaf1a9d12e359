//! HPACK beside another one's: the `h2` crate encodes what we decode, decodes what we encode, and decodes what we decode when an encoder
//! does whatever RFC 7541 allows. Tables overflow and change their sizes meanwhile.
//!
//! `cargo run --release -p fuzz_cases --example hpack_differential -- 1000000` compares so many lists. A second number is the seed.

mod any;
mod lists;
mod theirs;
mod walker;

use std::io::Write as _;

use evenkeel::message::Head;
use evenkeel::proxy::http::h2::hpack::{EncodedLines, HpackDecoder, LineKind, encode};
use fuzz_cases::Numbers;

use any::AnyEncoder;
use lists::{Line, List, Start, pseudo_of};
use theirs::Theirs;
use walker::Walker;

/// What tables may count, in bytes.
const SIZES: &[usize] = &[4096, 0, 31, 60, 100, 150, 300, 1000, 2000, 4095, 9000];
/// Most that a list counts here.
const MUCH: usize = 1 << 20;

/// What was compared.
#[derive(Debug, Default)]
struct Tally {
    lists: usize,
    lines: usize,
    /// Changes of a table's size.
    updates: usize,
    /// Lines, or names of lines, that were taken out of the dynamic table.
    recalled: usize,
    evicted: usize,
    continued: usize,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default| arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(default);
    let tally = compare(number(0, 10_000), number(1, 1) as u64);
    _ = writeln!(std::io::stdout(), "none differed: {tally:?}");
}

/// Compares so many lists, on connections of some of them each.
fn compare(lists: usize, seed: u64) -> Tally {
    let (mut numbers, mut tally, mut known) = (Numbers::new(seed), Tally::default(), EncodedLines::default());
    while tally.lists < lists {
        match numbers.next(4) {
            0 | 1 => theirs_is_read(&mut numbers, &mut tally),
            2 => ours_is_read(&mut numbers, &mut tally, &mut known),
            _ => any_is_read(&mut numbers, &mut tally),
        }
    }
    tally
}

/// They encode, we decode.
fn theirs_is_read(numbers: &mut Numbers, tally: &mut Tally) {
    let mut theirs = Theirs::new();
    let mut decoder = HpackDecoder::new(4096);
    let mut walker = Walker::new();
    for _ in 0..=numbers.next(60) {
        if numbers.one_in(6) {
            for _ in 0..=numbers.next(3) {
                theirs.0.set_send_header_table_size(*numbers.one_of(SIZES));
            }
        }
        let list = List::any(numbers);
        let block = theirs.encode(&list, tally);
        // They send lines of one name together.
        let map = list.fields();
        let fields = map.iter().map(|(name, value)| (name.as_str().into(), value.as_bytes().to_vec()));
        let lines: Vec<Line> = list.pseudo_lines().into_iter().chain(fields).collect();
        assert_eq!(decoded(&mut decoder, &block), lines, "{}", block.escape_ascii());
        walker.walk(&block, &lines, tally);
    }
}

/// We encode, as for answers and as for requests; they decode.
fn ours_is_read(numbers: &mut Numbers, tally: &mut Tally, known: &mut EncodedLines) {
    let mut theirs = Theirs::new();
    for number in 0..=numbers.next(60) {
        let list = List::any(numbers);
        let mut block = Vec::new();
        if number == 0 {
            encode::table_size_zero(&mut block);
            tally.updates += 1;
        }
        let cased = |name: &[u8], is_upper| if is_upper { name.to_ascii_uppercase() } else { name.to_vec() };
        if let Start::Answer(status) = list.start {
            let mut head = Head::answer(status.as_u16());
            for (name, value) in &list.lines {
                head.push(&cased(name, numbers.one_in(2)), value);
            }
            encode::status(&mut block, status.as_u16());
            head.lines().iter().for_each(|line| known.append(&mut block, &head, line));
        } else {
            for (name, value) in list.pseudo_lines() {
                encode::pseudo(&mut block, pseudo_of(&name), &value);
            }
            for (name, value) in &list.lines {
                encode::field(&mut block, &cased(name, numbers.one_in(2)), value);
            }
        }
        theirs.decode(&block, &list, numbers, tally);
        tally.lists += 1;
        tally.lines += list.lines.len();
    }
}

/// An encoder that does anything is understood by both.
fn any_is_read(numbers: &mut Numbers, tally: &mut Tally) {
    let limit = *numbers.one_of(&[4096, 4096, 300, 0, 10_000]);
    let (mut theirs, mut decoder) = (Theirs::new(), HpackDecoder::new(limit));
    theirs.0.set_recv_header_table_size(limit);
    let (mut encoder, mut walker) = (AnyEncoder::new(limit), Walker::new());
    for number in 0..=numbers.next(60) {
        let list = List::any(numbers);
        let mut block = Vec::new();
        if number == 0 || numbers.one_in(6) {
            // At first the two limits are not the same.
            for _ in 0..=numbers.next(2) {
                encoder.resize(&mut block, (*numbers.one_of(SIZES)).min(limit));
            }
        }
        let lines = [list.pseudo_lines(), list.lines.clone()].concat();
        for line in &lines {
            encoder.line(&mut block, line, numbers);
        }
        assert_eq!(decoded(&mut decoder, &block), lines, "{}", block.escape_ascii());
        assert!(decoder.memory() <= 2 * limit + 2048 + 300, "{} for {limit}", decoder.memory());
        theirs.decode(&block, &list, numbers, tally);
        walker.walk(&block, &lines, tally);
    }
}

/// What our decoder makes of a block.
fn decoded(decoder: &mut HpackDecoder, block: &[u8]) -> Vec<Line> {
    let mut lines = Vec::new();
    let outcome = decoder.decode(block, MUCH, |line| {
        assert_ne!(line.kind, LineKind::Malformed, "{}", line.bytes.escape_ascii());
        lines.push((line.name().to_vec(), line.value().to_vec()));
    });
    assert_eq!(outcome, Ok(()), "{}", block.escape_ascii());
    lines
}

#[test]
fn lists_are_the_same_on_both_sides_whoever_encodes() {
    let tally = compare(4_000, 1);
    assert!(tally.lists >= 4_000 && tally.lines > 20_000, "{tally:?}");
    assert!(tally.recalled > 4_000 && tally.evicted > 4_000, "{tally:?}");
    assert!(tally.updates > 500 && tally.continued > 500, "{tally:?}");
}
