//! What HPACK's examples, another encoder, chance and bad will say.

use crate::message::HeaderField;

use super::line::{FieldLine, HpackError, LineKind};
use super::{HpackDecoder, judge};

mod appendix_c;
mod encoding;
mod limits;
mod malformed;
mod memory;
mod model;
mod names_and_values;
mod properties;
mod strings;
mod vectors;

/// More than any list of these tests counts.
const MUCH: usize = 1 << 20;

/// A line by its name and value.
type Pair = (Vec<u8>, Vec<u8>);

fn pair(line: &FieldLine<'_>) -> Pair {
    (line.name().to_vec(), line.value().to_vec())
}

/// The lines of a block, or why they are not all there.
fn decode(decoder: &mut HpackDecoder, block: &[u8], most: usize) -> Result<Vec<Pair>, HpackError> {
    let mut lines = Vec::new();
    decoder.decode(block, most, |line| {
        check(line);
        lines.push(pair(line));
    })?;
    Ok(lines)
}

/// The one line of a block, with its verdict.
#[track_caller]
fn only(decoder: &mut HpackDecoder, block: &[u8]) -> (Pair, LineKind, u8) {
    let mut lines = Vec::new();
    decoder.decode(block, MUCH, |line| lines.push((pair(line), line.kind, line.known))).expect("a block");
    assert_eq!(lines.len(), 1);
    lines.remove(0)
}

/// What holds of every line that is handed out, whichever way it came.
fn check(line: &FieldLine<'_>) {
    let shown = line.bytes.escape_ascii();
    let written = [line.name(), b": ", line.value(), b"\r\n"].concat();
    assert_eq!(line.bytes, written, "{shown}");
    assert_eq!(line.size(), line.name().len() + line.value().len() + 32, "{shown}");
    let (kind, known) = judge::name(line.name());
    let kind = if judge::is_value(line.value()) { kind } else { LineKind::Malformed };
    assert_eq!((line.kind, line.known), (kind, known), "{shown}");
}

/// A literal that is not kept, without the Huffman code.
fn literal(name: &[u8], value: &[u8]) -> Vec<u8> {
    [&[0, name.len() as u8][..], name, &[value.len() as u8], value].concat()
}

/// The same, kept in the table.
fn kept(name: &[u8], value: &[u8]) -> Vec<u8> {
    let mut block = literal(name, value);
    block[0] = 0x40;
    block
}

/// The bytes that hexadecimal digits stand for; blanks are skipped.
fn bytes(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(|byte| *byte != b' ').collect();
    let text = |two: &[u8]| String::from_utf8(two.to_vec()).expect("digits");
    digits.chunks(2).map(|two| u8::from_str_radix(&text(two), 16).expect("digits")).collect()
}

/// A field we have no number for.
const OTHER: LineKind = LineKind::Field(HeaderField::Other);
