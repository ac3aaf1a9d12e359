//! The chunked coding (RFC 9112 §7.1), scanned where it lies.
//!
//! [`Chunks::scan`] walks over a piece of input and says which part of it is body. In *raw* mode the chunk
//! lines in between belong to it, so that a whole buffer of chunks goes on untouched; the last chunk never
//! does: the sender writes an end of its own, after the trailers were checked. A line is only looked at when
//! it is complete, so a size can't be misread across two reads.

use crate::message::HeaderField;

use super::classes::{is_control, is_token};

/// Longest chunk line, extensions included.
const LINE: usize = 1024;
/// Most bytes of a trailer section.
const TRAILERS: usize = 8 * 1024;
/// Most digits of a chunk size, zeros in front aside.
const DIGITS: usize = 15;
/// Digits that some senders write whatever the size: those of a word.
const WORD: usize = 16;

/// The message broke the chunked coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    /// At the start of a chunk line.
    #[default]
    Size,
    /// Inside a chunk; so many bytes are left.
    Data(u64),
    /// At the CRLF behind a chunk.
    DataEnd,
    /// At the start of a trailer line or of the empty line at the end.
    Trailers,
    /// Behind the end.
    Done,
}

/// What a scan found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Start of what may go on.
    pub start: usize,
    /// End of what may go on.
    pub end: usize,
    /// Bytes that are dealt with; those behind are needed again, with more behind them.
    pub consumed: usize,
}

/// Where we are in a chunked body.
#[derive(Debug, Default)]
pub struct Chunks {
    at: At,
    trailers: Vec<u8>,
    /// Bytes of content seen so far, without chunk lines.
    pub content: u64,
    /// Bytes of chunk lines that are more than a size of at most 16 digits: with extensions, or with more zeros. Without
    /// their CRLFs.
    pub extra: u64,
}

impl Chunks {
    /// True behind the end of the body.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.at == At::Done
    }

    /// The trailer lines, each with its CRLF; complete once the body is done.
    #[must_use]
    pub fn trailers(&self) -> &[u8] {
        &self.trailers
    }

    /// Scans `input` as far as it is complete. Unless `raw`, content is moved together in place, over the
    /// chunk lines that stood between.
    ///
    /// # Errors
    /// [`Malformed`]; nothing behind that point can be understood.
    pub fn scan(&mut self, input: &mut [u8], raw: bool) -> Result<Scanned, Malformed> {
        let mut found = Scanned::default();
        let mut any = raw;
        let mut pos = 0;
        loop {
            match self.at {
                At::Size => {
                    let (size, length) = match bare_size(&input[pos..]) {
                        Some(found) => found,
                        None => {
                            let Some(line) = complete_line(&input[pos..], LINE)? else { break };
                            self.extra += line.len() as u64;
                            (chunk_size(line)?, line.len() + 2)
                        }
                    };
                    if size == 0 {
                        // In raw mode the last chunk line stays behind: `found.end` does not move.
                        self.at = At::Trailers;
                    } else {
                        self.at = At::Data(size);
                        if raw {
                            found.end = pos + length;
                        }
                    }
                    pos += length;
                }
                At::Data(left) => {
                    let count = usize::try_from(left).unwrap_or(usize::MAX).min(input.len() - pos);
                    if count == 0 {
                        break;
                    }
                    if raw {
                        found.end = pos + count;
                    } else if any {
                        input.copy_within(pos..pos + count, found.end);
                        found.end += count;
                    } else {
                        (found.start, found.end, any) = (pos, pos + count, true);
                    }
                    pos += count;
                    self.content += count as u64;
                    let left = left - count as u64;
                    self.at = if left == 0 { At::DataEnd } else { At::Data(left) };
                }
                At::DataEnd => match input.get(pos..pos + 2) {
                    Some(b"\r\n") => {
                        pos += 2;
                        self.at = At::Size;
                        if raw {
                            found.end = pos;
                        }
                    }
                    Some(_) => return Err(Malformed),
                    None if input.get(pos).is_some_and(|&byte| byte != b'\r') => return Err(Malformed),
                    None => break,
                },
                At::Trailers => {
                    let Some(line) = complete_line(&input[pos..], TRAILERS)? else { break };
                    pos += line.len() + 2;
                    if line.is_empty() {
                        self.at = At::Done;
                        break;
                    }
                    check_trailer(line)?;
                    self.trailers.extend_from_slice(line);
                    self.trailers.extend_from_slice(b"\r\n");
                    if self.trailers.len() > TRAILERS {
                        return Err(Malformed);
                    }
                }
                At::Done => break,
            }
        }
        found.consumed = pos;
        Ok(found)
    }
}

/// The line at the start of `input` without its CRLF, once it is there.
fn complete_line(input: &[u8], longest: usize) -> Result<Option<&[u8]>, Malformed> {
    match memchr::memchr(b'\n', input) {
        Some(feed) if feed == 0 || input[feed - 1] != b'\r' || feed > longest => Err(Malformed),
        Some(feed) => Ok(Some(&input[..feed - 1])),
        None if input.len() > longest => Err(Malformed),
        None => Ok(None),
    }
}

/// The size, and the bytes of the line, of a chunk line that is whole and as almost all are: digits and the CRLF. Bodies
/// of many small chunks cost what this costs. `None`: look closer.
fn bare_size(input: &[u8]) -> Option<(u64, usize)> {
    let mut size = 0;
    for (at, &byte) in input.iter().take(WORD + 1).enumerate() {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            b'A'..=b'F' => byte - b'A' + 10,
            b'\r' if at > 0 && size >> (4 * DIGITS) == 0 && input.get(at + 1) == Some(&b'\n') => {
                return Some((size, at + 2));
            }
            _ => return None,
        };
        size = size << 4 | u64::from(digit);
    }
    None
}

/// The size in a chunk line: hex digits directly followed by the end or `;`. Extensions are dropped from
/// meaning, not from the bytes that go on, so they must be what everybody reads as extensions.
fn chunk_size(line: &[u8]) -> Result<u64, Malformed> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let zeros = line[..digits].iter().take_while(|&&byte| byte == b'0').count();
    if digits == 0 || digits - zeros > DIGITS {
        return Err(Malformed);
    }
    match line.get(digits) {
        None => {}
        Some(b';') if are_extensions(&line[digits..]) => {}
        Some(_) => return Err(Malformed),
    }
    let text = std::str::from_utf8(&line[..digits]).map_err(|_| Malformed)?;
    u64::from_str_radix(text, 16).map_err(|_| Malformed)
}

/// `*( BWS ";" BWS chunk-ext-name [ BWS "=" BWS chunk-ext-val ] )` (RFC 9112 §7.1.1).
fn are_extensions(mut rest: &[u8]) -> bool {
    while !rest.is_empty() {
        let Some(named) = skip_blanks(rest).strip_prefix(b";").map(skip_blanks) else { return false };
        let Some(behind) = skip_token(named) else { return false };
        rest = match skip_blanks(behind).strip_prefix(b"=").map(skip_blanks) {
            None => behind,
            Some(value) => {
                let end = if value.first() == Some(&b'"') { skip_quoted(value) } else { skip_token(value) };
                let Some(behind) = end else { return false };
                behind
            }
        };
    }
    true
}

fn skip_blanks(bytes: &[u8]) -> &[u8] {
    let count = bytes.iter().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
    &bytes[count..]
}

/// What stands behind the token that `bytes` begins with.
fn skip_token(bytes: &[u8]) -> Option<&[u8]> {
    let count = bytes.iter().take_while(|&&byte| is_token(byte)).count();
    (count > 0).then(|| &bytes[count..])
}

/// What stands behind the quoted string that `bytes` begins with (RFC 9110 §5.6.4).
fn skip_quoted(bytes: &[u8]) -> Option<&[u8]> {
    let mut escaped = false;
    for (at, &byte) in bytes.iter().enumerate().skip(1) {
        match byte {
            _ if is_control(byte) => return None,
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(&bytes[at + 1..]),
            _ => {}
        }
    }
    None
}

/// A trailer line is a header line, and none that is barred.
fn check_trailer(line: &[u8]) -> Result<(), Malformed> {
    let colon = memchr::memchr(b':', line).ok_or(Malformed)?;
    let (name, value) = line.split_at(colon);
    if name.is_empty()
        || !name.iter().all(|&byte| is_token(byte))
        || value.iter().any(|&byte| is_control(byte))
    {
        return Err(Malformed);
    }
    if is_barred_trailer(HeaderField::classify(name), name) { Err(Malformed) } else { Ok(()) }
}

/// Whether a field, of which `field` is known by its `name`, has no place behind a body: it would change framing, routing or what
/// we say about the client (RFC 9110 §6.5.1).
#[must_use]
pub fn is_barred_trailer(field: HeaderField, name: &[u8]) -> bool {
    let field = match field {
        HeaderField::Other => HeaderField::classify_alias(name),
        known => known,
    };
    let framing = matches!(
        field,
        HeaderField::ContentLength
            | HeaderField::TransferEncoding
            | HeaderField::Host
            | HeaderField::Trailer
            | HeaderField::Expect
    );
    framing || field.is_hop_by_hop() || field.is_about_client()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(text: &str, raw: bool) -> Result<(String, Chunks, usize), Malformed> {
        let mut bytes = text.as_bytes().to_vec();
        let mut chunks = Chunks::default();
        let found = chunks.scan(&mut bytes, raw)?;
        Ok((String::from_utf8_lossy(&bytes[found.start..found.end]).into_owned(), chunks, found.consumed))
    }

    const TWO: &str = "3\r\nabc\r\nA;x=\"y\"\r\n0123456789\r\n0\r\nT: v\r\n\r\nGET";

    #[test]
    fn content_is_moved_together_and_the_end_is_found() {
        let (content, chunks, consumed) = decode(TWO, false).expect("valid");
        assert_eq!((content.as_str(), consumed), ("abc0123456789", TWO.len() - 3));
        assert_eq!((chunks.is_done(), chunks.trailers(), chunks.content), (true, &b"T: v\r\n"[..], 13));
    }

    #[test]
    fn raw_keeps_chunk_lines_but_not_the_last() {
        let (content, chunks, consumed) = decode(TWO, true).expect("valid");
        assert_eq!((content.as_str(), consumed), ("3\r\nabc\r\nA;x=\"y\"\r\n0123456789\r\n", TWO.len() - 3));
        assert!(chunks.is_done());
    }

    #[test]
    fn any_split_gives_the_same() {
        for raw in [false, true] {
            let (expected, ..) = decode(TWO, raw).expect("valid");
            for step in 1..TWO.len() {
                let (mut chunks, mut held, mut out) = (Chunks::default(), Vec::new(), Vec::new());
                for piece in TWO.as_bytes().chunks(step) {
                    held.extend_from_slice(piece);
                    let found = chunks.scan(&mut held, raw).expect("valid");
                    out.extend_from_slice(&held[found.start..found.end]);
                    held.drain(..found.consumed);
                }
                assert_eq!(String::from_utf8_lossy(&out), expected, "step {step}, raw {raw}");
                assert!(chunks.is_done() && held == b"GET", "step {step}");
            }
        }
    }

    #[test]
    fn a_bare_size_is_what_the_closer_look_finds() {
        for line in [
            "0",
            "5",
            "fF0",
            "00000000000001A",
            "0000000000000001",
            "fffffffffffffff",
            "1000000000000000",
            "",
            "5;a",
            "5 ",
            "g",
        ] {
            let text = format!("{line}\r\nabc");
            let closer = chunk_size(line.as_bytes()).ok().filter(|_| !line.contains(';'));
            assert_eq!(bare_size(text.as_bytes()), closer.map(|size| (size, line.len() + 2)), "{line}");
            for cut in 0..line.len() + 2 {
                assert_eq!(bare_size(&text.as_bytes()[..cut]), None, "{line} cut at {cut}");
            }
        }
    }

    /// RFC 9112 §7.1: `chunk-size = 1*HEXDIG`. Some senders write `%016x`.
    #[test]
    fn of_a_size_its_value_counts_and_not_its_zeros() {
        for zeros in [1, 11, 14, 15, 16, 300, 1000] {
            let zeros = "0".repeat(zeros);
            let text = format!("{zeros}5\r\nabcde\r\n{zeros}\r\n\r\n");
            for raw in [false, true] {
                let (_, chunks, consumed) = decode(&text, raw).expect("the grammar");
                assert!(chunks.is_done() && chunks.content == 5 && consumed == text.len(), "{zeros}");
            }
        }
        assert!(decode(&format!("{}fffffffffffffff\r\nx", "0".repeat(300)), false).is_ok());
        assert!(decode(&format!("{}1000000000000000\r\nx", "0".repeat(300)), false).is_err(), "2^60");
        assert!(decode(&format!("{}5\r\nabcde", "0".repeat(1030)), false).is_err(), "the line is too long");
    }

    #[test]
    fn what_chunk_lines_hold_beside_a_size_is_counted() {
        for (text, extra) in [
            ("5\r\nabcde\r\n0\r\n\r\n", 0),
            ("0000000000000005\r\nabcde\r\n0000000000000000\r\n\r\n", 0),
            ("00000000000000005\r\nabcde\r\n0\r\n\r\n", 17),
            ("5;a=b\r\nabcde\r\n0;c\r\nT: v\r\n\r\n", 5 + 3),
        ] {
            for raw in [false, true] {
                let (_, chunks, _) = decode(text, raw).expect("valid");
                assert_eq!((chunks.content, chunks.extra), (5, extra), "{text}");
            }
        }
    }

    #[test]
    fn extensions_are_names_with_values_perhaps() {
        for good in [";a", ";a=b", "; a = \"b;\\\"=\" ;c", ";\ta=\"\";b=\"\t\u{e4}\""] {
            let text = format!("5{good}\r\nabcde\r\n0{good}\r\n\r\n");
            let (content, chunks, _) = decode(&text, false).expect(good);
            assert!(content == "abcde" && chunks.is_done(), "{good}");
        }
    }

    #[test]
    fn what_is_refused() {
        for bad in [
            "5 \r\nabcde\r\n",
            " 5\r\nabcde\r\n",
            "+5\r\nabcde\r\n",
            "0x5\r\nabcde\r\n",
            "\r\n",
            ";a\r\n",
            "5\nabcde\r\n",
            "5;a\nb\r\nabcde\r\n",
            "5;a\0\r\nabcde\r\n",
            "5;\r\nabcde\r\n",
            "5;a?b\r\nabcde\r\n",
            "5;a=\r\nabcde\r\n",
            "5;a=\"b\r\nabcde\r\n",
            "5;a=\"b\\\"\r\nabcde\r\n",
            "5;a=\"b\"c\r\nabcde\r\n",
            "5;a \r\nabcde\r\n",
            "3\r\nabcd\r\n",
            "3\r\nabc\n",
            "3\r\nabcX",
            "1234567890123456\r\n",
            "01000000000000000\r\n",
            "5;\rx\r\nabcde",
            "0\r\nContent-Length: 5\r\n\r\n",
            "0\r\nX_Forwarded_For: 5\r\n\r\n",
            "0\r\nHost: a\r\n\r\n",
            "0\r\nA : b\r\n\r\n",
            "0\r\n: b\r\n\r\n",
            "0\r\nA: b\n\r\n",
            "0\r\nno colon\r\n\r\n",
            "0\r\nA: b\r\n fold\r\n\r\n",
        ] {
            assert!(matches!(decode(bad, false), Err(Malformed)), "{bad:?}");
            assert!(matches!(decode(bad, true), Err(Malformed)), "{bad:?} raw");
        }
        let long = format!("5;{}\r\nabcde\r\n", "a".repeat(2000));
        assert!(decode(&long, false).is_err());
        assert!(decode(&"1".repeat(2000), false).is_err());
        assert!(decode(&format!("0\r\n{}\r\n", "A: b\r\n".repeat(3000)), false).is_err());
    }
}
