//! Lines of answers that were encoded lately. Nearly all lines of an answer are those of the one before, and a block has no context: what a
//! line was once, it is again on any connection.
//!
//! Invariants. There are [`PLACES`] of at most [`MOST`] bytes each; a line has one place, and the latest one there stays. Of runs of lines there are
//! [`RUNS`] of at most [`MOST_RUN`] bytes; `block` is what `lines`, and nothing else, were encoded to.

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

/// Places for runs of lines, and bytes of one that is kept.
const RUNS: usize = 8;
const MOST_RUN: usize = 1024;

/// One worker's encoded lines.
#[derive(Debug, Default)]
pub struct EncodedLines {
    places: Vec<EncodedLine>,
    /// Lines that come one behind the other in one head after another: those of requests of one client.
    runs: Vec<EncodedRun>,
}

#[derive(Clone, Debug, Default)]
struct EncodedRun {
    /// That of the run that came last.
    tag: u64,
    lines: Vec<u8>,
    block: Vec<u8>,
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

    /// Appends what these lines, with all that is made of them, were encoded to before. False: that is not known.
    #[inline]
    pub fn append_run(&self, out: &mut Vec<u8>, lines: &[u8]) -> bool {
        let Some(run) = self.runs.get(tag(lines) as usize % RUNS) else { return false };
        let is_known = !lines.is_empty() && run.lines == lines;
        if is_known {
            out.extend_from_slice(&run.block);
        }
        is_known
    }

    /// Keeps what they are encoded to when they come for the second time: what stands in `out` behind `start`.
    #[inline(never)]
    pub fn learn_run(&mut self, lines: &[u8], out: &[u8], start: usize) {
        if lines.len() > MOST_RUN {
            return;
        }
        if self.runs.is_empty() {
            self.runs.resize_with(RUNS, EncodedRun::default);
        }
        let tag = tag(lines);
        let run = &mut self.runs[tag as usize % RUNS];
        if std::mem::replace(&mut run.tag, tag) != tag {
            return;
        }
        run.lines.clear();
        run.lines.extend_from_slice(lines);
        run.block.clear();
        run.block.extend_from_slice(&out[start..]);
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

/// Tells most runs apart: clients' addresses stand at the end of theirs. All of their bytes are compared where that matters.
#[inline]
fn tag(lines: &[u8]) -> u64 {
    let word = |bytes: Option<&[u8; 8]>| bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let mixed = word(lines.first_chunk()).rotate_left(7)
        ^ word(lines.last_chunk())
        ^ word(lines.get(lines.len() / 2..).and_then(<[u8]>::first_chunk)).rotate_left(23)
        ^ lines.len() as u64;
    mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
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
    fn a_run_of_lines_is_known_from_the_second_time_on_and_is_never_another_one() {
        let mut lines = EncodedLines::default();
        let mut hits = 0;
        for _ in 0..5 {
            for number in 0..40_u8 {
                let mut run = vec![b'-'; 120];
                run[40 + usize::from(number % 10)] = number;
                let block = [run[40], number];
                let mut out = b"before".to_vec();
                if lines.append_run(&mut out, &run) {
                    hits += 1;
                    assert_eq!(out[6..], block);
                } else {
                    out.extend_from_slice(&block);
                    (0..2).for_each(|_| lines.learn_run(&run, &out, 6));
                }
            }
        }
        assert!(lines.runs.len() == RUNS && !lines.append_run(&mut Vec::new(), b""));
        let mut out = Vec::new();
        (0..20).for_each(|_| hits += usize::from(lines.append_run(&mut out, &[b'-'; 120])));
        assert!(hits < 200, "{hits}");
    }

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
