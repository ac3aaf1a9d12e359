//! Lines to blocks, without a dynamic table: what stands in the static table goes by its index, all else as a literal that nobody
//! keeps, in the Huffman code where that is shorter.
//!
//! A block is the concatenation of what these functions append. Whether its lines may go to the peer, and in which order, the caller
//! knows: nothing is checked.

use crate::message::{Head, HeadLine};

use super::line::Pseudo;
use super::{huffman, integer, statics};

/// A literal that is not indexed (RFC 7541 §6.2.2).
const UNINDEXED: u8 = 0x00;
/// A literal that nobody on its way may index (RFC 7541 §6.2.3).
const NEVER_INDEXED: u8 = 0x10;
/// Bits of the index of a literal's name.
const NAME_BITS: u32 = 4;
/// The one line of the static table, beside pseudo-header fields, that has a value.
const ACCEPT_ENCODING: u8 = 16;
/// Names whose values are secrets (RFC 7541 §7.1.3), a bit for each index: authorization, cookie, proxy-authorization,
/// set-cookie.
const SECRETS: u64 = 1 << 23 | 1 << 32 | 1 << 49 | 1 << 55;

/// Appends a change of the table's size to 0 (RFC 7541 §6.3). With it begins the first block of a connection, once: the
/// peer's decoder then needs no table.
pub fn table_size_zero(out: &mut Vec<u8>) {
    out.push(0x20);
}

/// Appends `:status`. `status`: 100 to 999.
#[inline]
pub fn status(out: &mut Vec<u8>, status: u16) {
    // Those that the static table has.
    let index = match status {
        200 => 8,
        204 => 9,
        206 => 10,
        304 => 11,
        400 => 12,
        404 => 13,
        500 => 14,
        _ => return rare_status(out, status),
    };
    indexed(out, index);
}

fn rare_status(out: &mut Vec<u8>, status: u16) {
    let digit = |unit: u16| b'0' + (status / unit % 10) as u8;
    pseudo(out, Pseudo::Status, &[digit(100), digit(10), digit(1)]);
}

/// Appends a line of `head`, whichever letters its name is written in.
#[inline]
pub fn line(out: &mut Vec<u8>, head: &Head, line: &HeadLine) {
    let (name, value) = head.pair(line);
    field(out, name, value);
}

/// Appends a line of our own. `name` may be in any case, and goes out in small letters (RFC 9113 §8.2).
pub fn field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    let known = statics::find(name);
    if known == ACCEPT_ENCODING && has_value(known, value) {
        return indexed(out, known);
    }
    let first = if SECRETS >> known & 1 == 1 { NEVER_INDEXED } else { UNINDEXED };
    integer::write(out, first, NAME_BITS, usize::from(known));
    if known == 0 {
        string::<true>(out, name);
    }
    string::<false>(out, value);
}

/// Bytes of a request's number.
pub const REQUEST_ID: usize = 32;

/// Appends `x-request-id`. Its value is never the same twice and hardly gets shorter: it goes as it is.
#[inline]
pub fn request_id(out: &mut Vec<u8>, id: &[u8; REQUEST_ID]) {
    /// A literal with a name of its own, that name in the Huffman code, and the length of the value.
    const NAME: [u8; 12] = *b"\x00\x89\xf2\xb5\x85\xed\x69\x50\x95\x8d\x27\x20";
    out.extend_from_slice(&NAME);
    out.extend_from_slice(id);
}

/// Appends a trailer section: lines with their CRLFs.
pub fn trailers(out: &mut Vec<u8>, lines: &[u8]) {
    let mut rest = lines;
    while let Some(end) = memchr::memchr(b'\n', rest) {
        let line = rest[..end].trim_ascii_end();
        if let Some(colon) = memchr::memchr(b':', line) {
            field(out, &line[..colon], line[colon + 1..].trim_ascii());
        }
        rest = &rest[end + 1..];
    }
}

/// Appends a pseudo-header field. They stand before all other lines of a block (RFC 9113 §8.3).
///
/// A value that the static table does not have goes as it is: it comes once, and to encode and decode it costs more than its bytes do.
pub fn pseudo(out: &mut Vec<u8>, pseudo: Pseudo, value: &[u8]) {
    let (name, whole) = match (pseudo, value) {
        (Pseudo::Authority, _) => (1, 0),
        (Pseudo::Method, b"GET") => (2, 2),
        (Pseudo::Method, b"POST") => (2, 3),
        (Pseudo::Method, _) => (2, 0),
        (Pseudo::Path, b"/") => (4, 4),
        (Pseudo::Path, b"/index.html") => (4, 5),
        (Pseudo::Path, _) => (4, 0),
        (Pseudo::Scheme, b"http") => (6, 6),
        (Pseudo::Scheme, b"https") => (6, 7),
        (Pseudo::Scheme, _) => (6, 0),
        // Those that have an index are written by it: see `status`.
        (Pseudo::Status, _) => (8, 0),
        (Pseudo::Protocol, _) => {
            out.push(UNINDEXED);
            string::<false>(out, b":protocol");
            return plain(out, value);
        }
    };
    if whole > 0 {
        return indexed(out, whole);
    }
    integer::write(out, UNINDEXED, NAME_BITS, name);
    plain(out, value);
}

fn has_value(index: u8, value: &[u8]) -> bool {
    statics::get(usize::from(index)).is_some_and(|line| line.value() == value)
}

/// RFC 7541 §6.1. All indices of the static table fit.
#[inline]
fn indexed(out: &mut Vec<u8>, index: u8) {
    out.push(0x80 | index);
}

/// A string as it is.
fn plain(out: &mut Vec<u8>, bytes: &[u8]) {
    integer::write(out, 0, 7, bytes.len());
    out.extend_from_slice(bytes);
}

/// A string (RFC 7541 §5.2), or where `LOWER` its small letters.
fn string<const LOWER: bool>(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = huffman::length::<LOWER>(bytes);
    if length < bytes.len() {
        integer::write(out, 0x80, 7, length);
        huffman::encode::<LOWER>(bytes, out);
    } else {
        integer::write(out, 0, 7, bytes.len());
        if LOWER {
            out.extend(bytes.iter().map(u8::to_ascii_lowercase));
        } else {
            out.extend_from_slice(bytes);
        }
    }
}
