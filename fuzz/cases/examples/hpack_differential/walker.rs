//! What there is in blocks, so that it is known what was compared.

use std::collections::VecDeque;

use super::Tally;
use super::lists::{Line, counted};

/// Follows what blocks do to a table, to tell what was compared.
pub(crate) struct Walker {
    sizes: VecDeque<usize>,
    most: usize,
}

impl Walker {
    pub(crate) fn new() -> Walker {
        Walker { sizes: VecDeque::new(), most: 4096 }
    }

    pub(crate) fn walk(&mut self, block: &[u8], lines: &[Line], tally: &mut Tally) {
        tally.lists += 1;
        tally.lines += lines.len();
        let (mut rest, mut lines) = (block, lines.iter());
        while let [first, ..] = *rest {
            let (bits, is_kept) = match first {
                0x80.. => (7, false),
                0x40..=0x7f => (6, true),
                0x20..=0x3f => {
                    self.most = read_integer(&mut rest, 5);
                    tally.updates += 1;
                    self.evict(tally);
                    continue;
                }
                0..=0x1f => (4, false),
            };
            let index = read_integer(&mut rest, bits);
            tally.recalled += usize::from(index > 61);
            if bits < 7 {
                for _ in usize::from(index > 0)..2 {
                    let length = read_integer(&mut rest, 7);
                    rest = &rest[length..];
                }
            }
            let line = lines.next().expect("a line for each representation");
            if is_kept {
                self.sizes.push_front(counted(line));
                self.evict(tally);
            }
        }
    }

    fn evict(&mut self, tally: &mut Tally) {
        while self.sizes.iter().sum::<usize>() > self.most {
            self.sizes.pop_back();
            tally.evicted += 1;
        }
    }
}

fn read_integer(rest: &mut &[u8], bits: u32) -> usize {
    let mut next = || {
        let (&first, behind) = rest.split_first().expect("an integer");
        *rest = behind;
        usize::from(first)
    };
    let most = (1 << bits) - 1;
    let mut value = next() & most;
    if value == most {
        for shift in (0..).step_by(7) {
            let byte = next();
            value += (byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
    }
    value
}
