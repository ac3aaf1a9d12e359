//! HPACK: whatever a peer says, little is held, and what is handed out may stand in a message of HTTP/1.1.

use evenkeel::message::{Fields, Head, HeaderField};
use evenkeel::proxy::http::h1::parse;
use evenkeel::proxy::http::h2::hpack::{FieldLine, HpackDecoder, HpackError, LineKind, encode};

use crate::strict;

/// What tables may count, in bytes.
const TABLES: [usize; 4] = [4096, 0, 70, 300];
/// What lists may count, in bytes.
const LISTS: [usize; 4] = [65_536, 0, 100, 1000];
/// Beside its table: itself, and what it keeps for building lines.
const BESIDE: usize = 2048 + 300;
/// Lists that we read item by item, so that a head may not have many: that is no matter of HPACK.
const BOUNDED: Fields = Fields::of(&[
    HeaderField::Connection,
    HeaderField::KeepAlive,
    HeaderField::Te,
    HeaderField::TransferEncoding,
    HeaderField::Upgrade,
]);

/// What one block came to: its lines, and what they count together.
#[derive(Default)]
struct Read {
    lines: Vec<(Vec<u8>, usize, LineKind)>,
    size: usize,
}

/// Blocks for one decoder, each behind a byte that is its length. The first byte chooses limits.
pub fn hpack(bytes: &[u8]) {
    let Some((&choice, mut rest)) = bytes.split_first() else { return };
    let table = TABLES[usize::from(choice & 3)];
    let most = LISTS[usize::from(choice >> 2 & 3)];
    let mut decoder = HpackDecoder::new(table);
    while let Some((&length, behind)) = rest.split_first() {
        let (block, next) = behind.split_at(usize::from(length).min(behind.len()));
        rest = next;
        let (read, outcome) = decode(&mut decoder, block, most);
        assert!(read.size <= most, "{} of {most}", read.size);
        assert!(decoder.memory() <= 2 * table + BESIDE, "{} for {table}", decoder.memory());
        if outcome.is_ok() {
            write_again(&read, most);
        }
        // A connection ends here; a decoder goes on with whatever comes.
    }
}

/// Decodes a block and checks its lines.
fn decode(decoder: &mut HpackDecoder, block: &[u8], most: usize) -> (Read, Result<(), HpackError>) {
    let mut read = Read::default();
    let outcome = decoder.decode(block, most, |line| {
        assert_eq!(line.bytes, [line.name(), b": ", line.value(), b"\r\n"].concat());
        read.size += line.name().len() + line.value().len() + 32;
        read.lines.push((line.bytes.to_vec(), line.name, line.kind));
        well_formed(line);
    });
    (read, outcome)
}

/// A line that is not malformed is one of HTTP/1.1, and says the same there.
fn well_formed(line: &FieldLine<'_>) {
    let shown = line.bytes.escape_ascii();
    let named = |name: &[u8]| [b"HTTP/1.1 200 OK\r\n", name, &line.bytes[line.name..], b"\r\n"].concat();
    let name = match line.kind {
        LineKind::Malformed => return,
        LineKind::Pseudo(_) => line.name().strip_prefix(b":").expect("a pseudo-header field"),
        LineKind::Field(_) => line.name(),
    };
    assert!(!name.iter().any(u8::is_ascii_uppercase), "{shown}");
    // Under another name, so that the second reader does not ask how long the body is.
    let other = [b"x", name].concat();
    let answer = strict::answer(&named(&other), 0, false).unwrap_or_else(|stop| panic!("{shown}: {stop:?}"));
    assert_eq!(answer.fields, [(other, line.value().to_vec())], "{shown}");
    let LineKind::Field(field) = line.kind else { return };
    if !BOUNDED.contains(field) {
        let mut head = Head::new();
        parse::answer(&named(name), &mut head).unwrap_or_else(|cause| panic!("{shown}: {cause:?}"));
        let [found] = head.lines() else { panic!("{shown}: {} lines", head.lines().len()) };
        assert_eq!((head.pair(found), found.field), ((name, line.value()), field), "{shown}");
    }
}

/// Lines that we write are read as the same ones.
fn write_again(read: &Read, most: usize) {
    let mut block = Vec::new();
    let lines: Vec<_> = read.lines.iter().filter(|(_, _, kind)| *kind != LineKind::Malformed).collect();
    for (bytes, name, kind) in &lines {
        let value = &bytes[name + 2..bytes.len() - 2];
        match kind {
            LineKind::Pseudo(pseudo) => encode::pseudo(&mut block, *pseudo, value),
            LineKind::Field(_) | LineKind::Malformed => {
                encode::field(&mut block, &bytes[..*name].to_ascii_uppercase(), value);
            }
        }
    }
    // They need no table.
    let (again, outcome) = decode(&mut HpackDecoder::new(0), &block, most);
    assert_eq!(outcome, Ok(()));
    assert_eq!(again.lines.iter().collect::<Vec<_>>(), lines);
}
