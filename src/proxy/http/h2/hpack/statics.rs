//! The static table (RFC 7541 Appendix A), as whole lines.

use crate::message::HeaderField;

use super::line::LineKind::{Field, Pseudo as Pseudos};
use super::line::{FieldLine, Pseudo};

macro_rules! lines {
    ($($name:literal $value:literal $kind:expr;)*) => {
        /// Names alone, in the order of their indices.
        const NAMES: &[&str] = &[$($name,)*];

        /// The lines; that of index 1 comes first.
        pub(super) static LINES: [FieldLine<'static>; NAMES.len()] = {
            let mut lines = [$(FieldLine {
                bytes: concat!($name, ": ", $value, "\r\n").as_bytes(),
                name: $name.len(),
                kind: $kind,
                known: 0,
            },)*];
            let mut at = 0;
            while at < lines.len() {
                lines[at].known = first(NAMES[at].as_bytes());
                at += 1;
            }
            lines
        };
    };
}

lines! {
    ":authority" "" Pseudos(Pseudo::Authority);
    ":method" "GET" Pseudos(Pseudo::Method);
    ":method" "POST" Pseudos(Pseudo::Method);
    ":path" "/" Pseudos(Pseudo::Path);
    ":path" "/index.html" Pseudos(Pseudo::Path);
    ":scheme" "http" Pseudos(Pseudo::Scheme);
    ":scheme" "https" Pseudos(Pseudo::Scheme);
    ":status" "200" Pseudos(Pseudo::Status);
    ":status" "204" Pseudos(Pseudo::Status);
    ":status" "206" Pseudos(Pseudo::Status);
    ":status" "304" Pseudos(Pseudo::Status);
    ":status" "400" Pseudos(Pseudo::Status);
    ":status" "404" Pseudos(Pseudo::Status);
    ":status" "500" Pseudos(Pseudo::Status);
    "accept-charset" "" Field(HeaderField::Other);
    "accept-encoding" "gzip, deflate" Field(HeaderField::Other);
    "accept-language" "" Field(HeaderField::Other);
    "accept-ranges" "" Field(HeaderField::Other);
    "accept" "" Field(HeaderField::Other);
    "access-control-allow-origin" "" Field(HeaderField::Other);
    "age" "" Field(HeaderField::Other);
    "allow" "" Field(HeaderField::Other);
    "authorization" "" Field(HeaderField::Authorization);
    "cache-control" "" Field(HeaderField::CacheControl);
    "content-disposition" "" Field(HeaderField::Other);
    "content-encoding" "" Field(HeaderField::Other);
    "content-language" "" Field(HeaderField::Other);
    "content-length" "" Field(HeaderField::ContentLength);
    "content-location" "" Field(HeaderField::Other);
    "content-range" "" Field(HeaderField::Other);
    "content-type" "" Field(HeaderField::Other);
    "cookie" "" Field(HeaderField::Cookie);
    "date" "" Field(HeaderField::Date);
    "etag" "" Field(HeaderField::Other);
    "expect" "" Field(HeaderField::Expect);
    "expires" "" Field(HeaderField::Other);
    "from" "" Field(HeaderField::Other);
    "host" "" Field(HeaderField::Host);
    "if-match" "" Field(HeaderField::IfMatch);
    "if-modified-since" "" Field(HeaderField::IfModifiedSince);
    "if-none-match" "" Field(HeaderField::IfNoneMatch);
    "if-range" "" Field(HeaderField::IfRange);
    "if-unmodified-since" "" Field(HeaderField::IfUnmodifiedSince);
    "last-modified" "" Field(HeaderField::Other);
    "link" "" Field(HeaderField::Other);
    "location" "" Field(HeaderField::Other);
    "max-forwards" "" Field(HeaderField::Other);
    "proxy-authenticate" "" Field(HeaderField::ProxyAuthenticate);
    "proxy-authorization" "" Field(HeaderField::ProxyAuthorization);
    "range" "" Field(HeaderField::Range);
    "referer" "" Field(HeaderField::Referer);
    "refresh" "" Field(HeaderField::Other);
    "retry-after" "" Field(HeaderField::Other);
    "server" "" Field(HeaderField::Other);
    "set-cookie" "" Field(HeaderField::Other);
    "strict-transport-security" "" Field(HeaderField::Other);
    "transfer-encoding" "" Field(HeaderField::TransferEncoding);
    "user-agent" "" Field(HeaderField::UserAgent);
    "vary" "" Field(HeaderField::Other);
    "via" "" Field(HeaderField::Via);
    "www-authenticate" "" Field(HeaderField::WwwAuthenticate);
}

/// The first index of a name.
const fn first(name: &[u8]) -> u8 {
    let mut at = 0;
    while !are_equal(NAMES[at].as_bytes(), name) {
        at += 1;
    }
    at as u8 + 1
}

const fn are_equal(one: &[u8], other: &[u8]) -> bool {
    let (mut at, mut equal) = (0, one.len() == other.len());
    while equal && at < one.len() {
        equal = one[at] == other[at];
        at += 1;
    }
    equal
}

/// The place of a name in [`PLACES`], in any case: by its length and by the letters at its ends.
const fn place(length: usize, first: u8, last: u8) -> u8 {
    let (first, last) = ((first | 0x20).wrapping_mul(10), (last | 0x20).wrapping_mul(4));
    (length as u8).wrapping_add(first).wrapping_add(last)
}

/// The first index of the one name that has this place; 0: none has.
static PLACES: [u8; 256] = {
    let mut places = [0; 256];
    let mut at = 0;
    while at < NAMES.len() {
        let name = NAMES[at].as_bytes();
        let found = &mut places[place(name.len(), name[0], name[name.len() - 1]) as usize];
        let index = first(name);
        assert!(*found == 0 || *found == index, "no two names have the same place");
        *found = index;
        at += 1;
    }
    places
};

/// The first index that a name has, written in any case; 0: it has none. Of a name that is no token a control byte may be taken for
/// a hyphen or a colon.
#[inline]
pub(super) fn find(name: &[u8]) -> u8 {
    let (Some(&front), Some(&back)) = (name.first(), name.last()) else { return 0 };
    let index = PLACES[usize::from(place(name.len(), front, back))];
    match get(usize::from(index)) {
        Some(line) if is_spelled(name, line.name()) => index,
        Some(_) | None => 0,
    }
}

/// Whether `name` is `small`, which has small letters, hyphens and colons alone: bytes that have the bit which makes letters small.
#[inline]
fn is_spelled(name: &[u8], small: &[u8]) -> bool {
    let lowered = |word: [u8; 8]| u64::from_le_bytes(word) | u64::from_le_bytes([0x20; 8]);
    let is_same = |one: &[u8; 8], other: &[u8; 8]| lowered(*one) == u64::from_le_bytes(*other);
    if name.len() != small.len() {
        return false;
    }
    match (name.last_chunk(), small.last_chunk()) {
        (Some(end), Some(small_end)) => {
            let words = name.as_chunks().0.iter().zip(small.as_chunks().0);
            is_same(end, small_end) && words.into_iter().all(|(one, other)| is_same(one, other))
        }
        _ => name.iter().zip(small).all(|(one, other)| one | 0x20 == *other),
    }
}

/// The line of an index.
#[inline]
pub(super) fn get(index: usize) -> Option<&'static FieldLine<'static>> {
    LINES.get(index.wrapping_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_found_in_any_case_and_judged_as_a_literal_is() {
        for (at, line) in LINES.iter().enumerate() {
            let name = line.name();
            assert!(usize::from(find(name)) <= at + 1 && find(name) == line.known);
            assert_eq!(find(&name.to_ascii_uppercase()), line.known);
            assert_eq!(get(usize::from(line.known)).map(FieldLine::name), Some(name));
            match line.kind {
                Pseudos(_) => assert!(name.starts_with(b":")),
                kind => assert_eq!(kind, Field(HeaderField::classify(name)), "{}", name.escape_ascii()),
            }
            for bit in 0..name.len() * 8 {
                let mut other = name.to_vec();
                other[bit / 8] ^= 1 << (bit % 8);
                let is_small = other.eq_ignore_ascii_case(name) || other[bit / 8] < b' ';
                assert!(find(&other) == 0 || is_small, "{}", other.escape_ascii());
            }
            for cut in 0..name.len() {
                let shorter = &name[..cut];
                let is_name = NAMES.iter().any(|name| name.as_bytes() == shorter);
                assert_eq!(find(shorter) != 0, is_name, "{}", shorter.escape_ascii());
            }
        }
        assert_eq!((get(0), get(62)), (None, None));
    }
}
