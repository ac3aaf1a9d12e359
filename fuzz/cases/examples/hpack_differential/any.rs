//! An encoder that does whatever RFC 7541 allows.

use std::collections::VecDeque;

use evenkeel::proxy::http::h2::hpack::encode;
use fuzz_cases::Numbers;

use super::lists::{Line, counted, pseudo_of};

/// An encoder that says lines in any of the ways there are.
pub(crate) struct AnyEncoder {
    /// The latest line first.
    table: VecDeque<Line>,
    most: usize,
}

impl AnyEncoder {
    pub(crate) fn new(most: usize) -> AnyEncoder {
        AnyEncoder { table: VecDeque::new(), most }
    }

    pub(crate) fn resize(&mut self, out: &mut Vec<u8>, most: usize) {
        integer(out, 0x20, 5, most);
        self.most = most;
        self.evict();
    }

    pub(crate) fn line(&mut self, out: &mut Vec<u8>, line: &Line, numbers: &mut Numbers) {
        let (name, value) = line;
        let is_pseudo = name.starts_with(b":");
        let places = |is_it: &dyn Fn(&Line) -> bool| -> Vec<usize> {
            self.table.iter().enumerate().filter(|(_, kept)| is_it(kept)).map(|(at, _)| 62 + at).collect()
        };
        let whole = places(&|kept| kept == line);
        if !whole.is_empty() && !numbers.one_in(8) {
            return integer(out, 0x80, 7, *numbers.one_of(&whole));
        }
        if is_pseudo && numbers.one_in(2) {
            return encode::pseudo(out, pseudo_of(name), value);
        }
        let mut named = places(&|kept| kept.0 == *name);
        // Where our encoder finds a name in the static table.
        let mut ours = Vec::new();
        match is_pseudo {
            true => encode::pseudo(&mut ours, pseudo_of(name), b"?"),
            false => encode::field(&mut ours, name, b"?"),
        }
        match ours[0] & 0x0f {
            0 => {}
            0x0f => named.push(0x0f + usize::from(ours[1])),
            small => named.push(usize::from(small)),
        }
        let (mark, bits) = *numbers.one_of(&[(0x40, 6), (0x40, 6), (0x40, 6), (0, 4), (0x10, 4)]);
        if named.is_empty() || numbers.one_in(4) {
            out.push(mark);
            string(out, name, numbers.one_in(2));
        } else {
            integer(out, mark, bits, *numbers.one_of(&named));
        }
        string(out, value, numbers.one_in(2));
        if mark == 0x40 {
            self.table.push_front(line.clone());
            self.evict();
        }
    }

    fn evict(&mut self) {
        let mut size: usize = self.table.iter().map(counted).sum();
        while size > self.most {
            size -= self.table.pop_back().as_ref().map_or(0, counted);
        }
    }
}

/// RFC 7541 §5.1.
fn integer(out: &mut Vec<u8>, mark: u8, bits: u32, value: usize) {
    let most = (1 << bits) - 1;
    if value < most {
        return out.push(mark | value as u8);
    }
    out.push(mark | most as u8);
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push(0x80 | rest as u8);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// RFC 7541 §5.2; in the Huffman code if that is wanted and no longer.
fn string(out: &mut Vec<u8>, bytes: &[u8], is_coded: bool) {
    if is_coded {
        let mut line = Vec::new();
        encode::field(&mut line, b"x", bytes);
        // Behind the mark and the name.
        return out.extend_from_slice(&line[3..]);
    }
    integer(out, 0, 7, bytes.len());
    out.extend_from_slice(bytes);
}
