//! An encoder that uses all that RFC 7541 has, and says it in as many ways as there are. It keeps its table as the standard tells it.

use std::collections::VecDeque;

use super::super::{huffman, integer, statics};
use super::Pair;

/// How a line is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// By its index if it has one, else kept (RFC 7541 §6.1).
    Indexed,
    /// As a literal that is kept (§6.2.1).
    Kept,
    /// As a literal that is not kept (§6.2.2).
    Plain,
    /// As a literal that never is (§6.2.3).
    Never,
}

/// How a line is written, in all its parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// The line.
    pub(super) form: Form,
    /// Its name goes by index where it has one.
    pub(super) by_name: bool,
    /// Of several indices the last is taken.
    pub(super) last: bool,
    /// Whether name and value are in the Huffman code.
    pub(super) coded: [bool; 2],
}

/// One side of a connection.
pub(super) struct ModelEncoder {
    /// The latest line first.
    pub(super) table: VecDeque<Pair>,
    /// What the table may count.
    pub(super) most: usize,
}

impl ModelEncoder {
    pub(super) fn new(most: usize) -> ModelEncoder {
        ModelEncoder { table: VecDeque::new(), most }
    }

    /// What the table counts.
    pub(super) fn size(&self) -> usize {
        self.table.iter().map(|(name, value)| name.len() + value.len() + 32).sum()
    }

    /// Changes the size of the table.
    pub(super) fn resize(&mut self, out: &mut Vec<u8>, most: usize) {
        integer::write(out, 0x20, 5, most);
        self.most = most;
        self.evict();
    }

    /// Writes a line.
    pub(super) fn line(&mut self, out: &mut Vec<u8>, (name, value): &Pair, manner: Manner) {
        let all = || {
            let fixed = statics::LINES.iter().map(|line| (line.name(), line.value()));
            fixed.chain(self.table.iter().map(|(name, value)| (&name[..], &value[..]))).enumerate()
        };
        let pick = |found: Vec<usize>| if manner.last { found.last() } else { found.first() }.copied();
        let whole = pick(all().filter(|(_, line)| *line == (name, value)).map(|(at, _)| at + 1).collect());
        let named = pick(all().filter(|(_, line)| line.0 == name).map(|(at, _)| at + 1).collect());
        let (first, prefix, is_kept) = match (manner.form, whole) {
            (Form::Indexed, Some(index)) => return integer::write(out, 0x80, 7, index),
            (Form::Indexed, None) | (Form::Kept, _) => (0x40, 6, true),
            (Form::Plain, _) => (0, 4, false),
            (Form::Never, _) => (0x10, 4, false),
        };
        match named.filter(|_| manner.by_name) {
            Some(index) => integer::write(out, first, prefix, index),
            None => {
                out.push(first);
                string(out, name, manner.coded[0]);
            }
        }
        string(out, value, manner.coded[1]);
        if is_kept {
            self.table.push_front((name.clone(), value.clone()));
            self.evict();
        }
    }

    fn evict(&mut self) {
        while self.size() > self.most {
            self.table.pop_back();
        }
    }
}

fn string(out: &mut Vec<u8>, bytes: &[u8], is_coded: bool) {
    if is_coded {
        integer::write(out, 0x80, 7, huffman::length::<false>(bytes));
        huffman::encode::<false>(bytes, out);
    } else {
        integer::write(out, 0, 7, bytes.len());
        out.extend_from_slice(bytes);
    }
}
