//! HPACK as far as a test needs it: header blocks for requests, in one way only and without Huffman, and the status of an
//! answer.

use std::collections::VecDeque;

/// What of the static table requests use (RFC 7541 Appendix A).
const STATIC: &[(u8, &str, &str)] = &[
    (1, ":authority", ""),
    (2, ":method", "GET"),
    (3, ":method", "POST"),
    (4, ":path", "/"),
    (6, ":scheme", "http"),
    (7, ":scheme", "https"),
    (8, ":status", "200"),
    (28, "content-length", ""),
];
/// The first entry behind the static table.
const FIRST: usize = 62;
/// The statuses of the static table, from index 8 on.
const STATUSES: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
/// What an entry costs beside its octets (RFC 7541 §4.1).
const ENTRY: usize = 32;

/// One header line.
pub type Field<'a> = (&'a str, &'a str);

/// Writes header blocks. What the tables don't have is a literal that goes into the dynamic table if it fits, so the other
/// side loses its way on a connection if it drops a block.
pub struct Coder {
    kept: VecDeque<(String, String)>,
    room: usize,
    /// The size of the table has changed: the next block says so first.
    is_resized: bool,
}

impl Coder {
    pub fn new() -> Coder {
        Coder { kept: VecDeque::new(), room: 4096, is_resized: false }
    }

    /// Has so much of the dynamic table, from the next block on.
    pub fn resize(&mut self, room: usize) {
        (self.room, self.is_resized) = (room, true);
        self.evict();
    }

    pub fn block(&mut self, fields: &[Field<'_>]) -> Vec<u8> {
        let mut out = Vec::new();
        if std::mem::take(&mut self.is_resized) {
            integer(&mut out, 0x20, 5, self.room);
        }
        for &(name, value) in fields {
            self.field(&mut out, name, value);
        }
        out
    }

    fn field(&mut self, out: &mut Vec<u8>, name: &str, value: &str) {
        if let Some((index, ..)) = STATIC.iter().find(|(_, n, v)| (*n, *v) == (name, value)) {
            return integer(out, 0x80, 7, usize::from(*index));
        }
        if let Some(at) = self.kept.iter().position(|(n, v)| (n.as_str(), v.as_str()) == (name, value)) {
            return integer(out, 0x80, 7, FIRST + at);
        }
        let is_kept = name.len() + value.len() + ENTRY <= self.room;
        let (mark, bits) = if is_kept { (0x40, 6) } else { (0x00, 4) };
        let named = STATIC.iter().find(|(_, n, _)| *n == name).map_or(0, |(index, ..)| usize::from(*index));
        integer(out, mark, bits, named);
        if named == 0 {
            string(out, name);
        }
        string(out, value);
        if is_kept {
            self.kept.push_front((name.to_owned(), value.to_owned()));
            self.evict();
        }
    }

    fn evict(&mut self) {
        let size = |kept: &VecDeque<(String, String)>| -> usize {
            kept.iter().map(|(name, value)| name.len() + value.len() + ENTRY).sum()
        };
        while size(&self.kept) > self.room {
            self.kept.pop_back();
        }
    }
}

/// An integer with a prefix of so many bits, below the bits of `mark` (RFC 7541 §5.1).
pub fn integer(out: &mut Vec<u8>, mark: u8, bits: u32, value: usize) {
    let most = (1usize << bits) - 1;
    if value < most {
        return out.push(mark | u8::try_from(value).unwrap());
    }
    out.push(mark | u8::try_from(most).unwrap());
    let mut rest = value - most;
    while rest >= 0x80 {
        out.push(0x80 | u8::try_from(rest & 0x7f).unwrap());
        rest >>= 7;
    }
    out.push(u8::try_from(rest).unwrap());
}

/// A string that is not Huffman-coded (RFC 7541 §5.2).
fn string(out: &mut Vec<u8>, text: &str) {
    integer(out, 0x00, 7, text.len());
    out.extend_from_slice(text.as_bytes());
}

/// The status of a header block that begins with it, as RFC 9113 §8.3.2 has it: an entry of the static table, or a literal
/// with the name of one.
pub fn status(block: &[u8]) -> Option<u16> {
    let mut from = 0;
    // Sizes of the dynamic table may come before it.
    while block.get(from)? & 0xe0 == 0x20 {
        let mut is_longer = block[from] == 0x3f;
        while is_longer {
            from += 1;
            is_longer = block.get(from)? & 0x80 != 0;
        }
        from += 1;
    }
    match block[from..] {
        [first @ 0x88..=0x8e, ..] => Some(STATUSES[usize::from(first - 0x88)]),
        [0x48..=0x4e | 0x08..=0x0e | 0x18..=0x1e, length, ref value @ ..] => {
            let value = value.get(..usize::from(length & 0x7f))?;
            let digits = if length & 0x80 == 0 { value.to_vec() } else { huffman_digits(value)? };
            std::str::from_utf8(&digits).ok()?.parse().ok()
        }
        _ => None,
    }
}

/// Three digits in the code of RFC 7541 Appendix B: 5 bits each for 0, 1 and 2, 6 for the others.
fn huffman_digits(coded: &[u8]) -> Option<Vec<u8>> {
    let bits: Vec<u8> = coded.iter().flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1)).collect();
    let (mut digits, mut at) = (Vec::new(), 0);
    let mut take = |count: usize| {
        let taken = bits.get(at..at + count)?;
        at += count;
        Some(taken.iter().fold(0u8, |sum, bit| sum << 1 | bit))
    };
    while digits.len() < 3 {
        digits.push(match take(5)? {
            short @ 0..=2 => b'0' + short,
            long @ 0b01100..=0b01111 => {
                b'2' + (long << 1 | take(1)?).checked_sub(0b01_1000).filter(|at| *at > 0)?
            }
            _ => return None,
        });
    }
    Some(digits)
}

#[test]
fn a_block_is_written_as_in_the_rfc() {
    let fields = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")];
    let mut coder = Coder::new();
    let first = coder.block(&fields);
    assert_eq!(first, [&[0x82, 0x86, 0x84, 0x41, 0x0f][..], b"www.example.com"].concat());
    assert_eq!(coder.block(&fields), [0x82, 0x86, 0x84, 0xbe]);
    let custom = [("custom-key", "custom-value")];
    assert_eq!(coder.block(&custom), [&b"\x40\x0acustom-key\x0c"[..], b"custom-value"].concat());
    assert_eq!(coder.block(&[fields[3], custom[0]]), [0xbf, 0xbe]);
    coder.resize(60);
    assert_eq!(coder.block(&custom), [0x3f, 29, 0xbe], "the younger one still fits");
    coder.resize(32);
    assert_eq!(coder.block(&custom)[..3], [0x3f, 1, 0x00], "nothing fits");
}

#[test]
fn an_integer_is_written_as_in_the_rfc() {
    let written = |bits, value| {
        let mut out = Vec::new();
        integer(&mut out, 0, bits, value);
        out
    };
    assert_eq!(written(5, 10), [10]);
    assert_eq!(written(5, 1337), [31, 154, 10]);
    assert_eq!(written(8, 42), [42]);
    assert_eq!(written(5, 31), [31, 0]);
}

#[test]
fn a_status_is_read_in_whichever_way_it_is_written() {
    assert_eq!(status(&[0x88]), Some(200));
    assert_eq!(status(&[0x20, 0x3f, 0xe1, 0x1f, 0x8e]), Some(500));
    assert_eq!(status(b"\x48\x03302"), Some(302));
    assert_eq!(status(b"\x08\x03421more"), Some(421));
    assert_eq!(status(b"\x48\x82\x64\x02"), Some(302), "RFC 7541 C.6.1");
    assert_eq!(status(b"\x48\x83\x64\x0e\xff"), Some(307), "RFC 7541 C.6.2");
    assert_eq!(status(b"\x48\x83\x1c\xff\xff"), None, "no digits");
    assert_eq!(status(b"\x48\x03"), None);
    assert_eq!(status(b""), None);
}
