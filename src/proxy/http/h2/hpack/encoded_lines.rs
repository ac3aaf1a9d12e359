//! Lines of answers that were encoded lately. Nearly all lines of an answer are those of the one before, and a block has no context: what a
//! line was once, it is again on any connection.
//!
//! Invariants. There are [`PLACES`] of at most [`MOST`] bytes each; a line has one place, and the latest one there stays.

use super::encode;
use crate::message::{Head, HeadLine};

/// Places for lines.
const PLACES: usize = 128;
/// Bytes of a line that is kept.
const MOST: usize = 128;
/// Bytes of one that is worth it, and long enough to be told by its ends.
const LEAST: usize = 12;
/// Bytes of a block that is kept. It is copied whole, whatever its length: that is a few instructions where another length is a call.
const BLOCK: usize = 96;

/// One worker's encoded lines.
#[derive(Debug, Default)]
pub struct EncodedLines {
    places: Vec<EncodedLine>,
}

#[derive(Clone, Debug)]
struct EncodedLine {
    /// As it stands in a head.
    line: Vec<u8>,
    /// The same in a block, and how many bytes of that it is.
    block: [u8; BLOCK],
    length: usize,
}

impl EncodedLines {
    /// Appends a line of `head`, as [`encode::line`] does.
    #[inline]
    pub fn append(&mut self, out: &mut Vec<u8>, head: &Head, line: &HeadLine) {
        let bytes = head.at(line.whole());
        if !self.append_known(out, bytes) {
            self.encode(out, head, line);
        }
    }

    #[inline(never)]
    fn encode(&mut self, out: &mut Vec<u8>, head: &Head, line: &HeadLine) {
        let start = out.len();
        encode::line(out, head, line);
        self.learn(head.at(line.whole()), out, start);
    }

    /// Appends what a line with its CRLF was encoded to before. False: that is not known.
    #[inline(always)]
    pub fn append_known(&self, out: &mut Vec<u8>, bytes: &[u8]) -> bool {
        let Some(known) = place(bytes).and_then(|place| self.places.get(place)) else { return false };
        let is_known = known.line == bytes;
        if is_known {
            let end = out.len() + known.length;
            out.extend_from_slice(&known.block);
            out.truncate(end);
        }
        is_known
    }

    /// Keeps what a line is encoded to: what stands in `out` behind `start`.
    #[inline(never)]
    pub fn learn(&mut self, bytes: &[u8], out: &[u8], start: usize) {
        let Some(place) = place(bytes) else { return };
        if self.places.is_empty() {
            let none = EncodedLine { line: Vec::new(), block: [0; BLOCK], length: 0 };
            self.places.resize(PLACES, none);
        }
        let (known, block) = (&mut self.places[place], &out[start..]);
        if let Some(kept) = known.block.get_mut(..block.len()) {
            kept.copy_from_slice(block);
            known.length = block.len();
            known.line.clear();
            known.line.extend_from_slice(bytes);
        }
    }
}

/// Where a line has its place; `None`: it is not kept.
#[inline]
fn place(line: &[u8]) -> Option<usize> {
    if !(LEAST..=MOST).contains(&line.len()) {
        return None;
    }
    // What stands before CRLF is where lines of one name differ.
    let (first, last) = (line.first_chunk::<8>()?, line[..line.len() - 2].last_chunk::<8>()?);
    let mixed = u64::from_le_bytes(*first).rotate_left(7) ^ u64::from_le_bytes(*last) ^ line.len() as u64;
    Some((mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_the_same_block_however_often_it_comes_and_whatever_came_between() {
        let mut lines = EncodedLines::default();
        for round in 0..3 {
            for number in 0..1000 {
                let mut head = Head::answer(200);
                let value = "v".repeat(number % 200) + &number.to_string();
                head.push(b"Some-Name", value.as_bytes());
                head.push(b"X", b"");
                head.push(b"content-type", b"text/html");
                let (mut direct, mut known) = (b"before".to_vec(), b"before".to_vec());
                for line in head.lines() {
                    encode::line(&mut direct, &head, line);
                    lines.append(&mut known, &head, line);
                }
                assert_eq!(known, direct, "round {round}, {value}");
            }
        }
        assert!(lines.places.iter().all(|one| one.line.len() <= MOST));
        assert!(lines.places.iter().filter(|one| !one.line.is_empty()).count() > PLACES / 2);
    }
}
