//! Bodies of requests: by length or in chunks, decoded piece by piece as they arrive, never held whole.

use std::io;

use crate::wire::Wire;

/// The longest line of a chunk size or trailer.
const LONGEST_LINE: usize = 64 * 1024;
/// The longest trailer section.
const LONGEST_TRAILERS: usize = 256 * 1024;
/// Bytes read at a time.
const READ: usize = 64 * 1024;

/// Where a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// After so many bytes; 0 when there is no body.
    Length(u64),
    /// After the chunk of size 0 and the trailers.
    Chunked,
}

/// What comes next in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// So many bytes, the last ones.
    Rest(u64),
    /// The line with a chunk's size.
    Size,
    /// So many bytes of a chunk.
    Chunk(u64),
    /// The line end behind a chunk's data.
    ChunkEnd,
    /// Trailer lines, or the empty line that ends them.
    Trailers,
    Nothing,
}

/// A body on its way in.
#[derive(Debug)]
pub(crate) struct Body {
    next: Part,
    /// Bytes of data so far, framing not counted.
    pub(crate) received: u64,
    /// Trailer lines with their line ends.
    pub(crate) trailers: Vec<u8>,
}

impl Body {
    pub(crate) fn new(framing: Framing) -> Self {
        let next = match framing {
            Framing::Length(0) => Part::Nothing,
            Framing::Length(length) => Part::Rest(length),
            Framing::Chunked => Part::Size,
        };
        Self { next, received: 0, trailers: Vec::new() }
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.next == Part::Nothing
    }

    /// Waits for some more of the body and appends it to `data`, which may stay as it is at the end.
    /// A broken body is `InvalidData`, with the reason as the error's text.
    pub(crate) async fn read(&mut self, wire: &mut Wire, data: &mut Vec<u8>) -> io::Result<()> {
        let before = data.len();
        while !self.is_complete() && data.len() == before {
            let used = self.decode(wire.pending(), data)?;
            wire.consume(used);
            if !self.is_complete() && data.len() == before {
                wire.need(READ).await?;
            }
        }
        Ok(())
    }

    /// Decodes as much of `input` as it can and says how much that was.
    fn decode(&mut self, input: &[u8], data: &mut Vec<u8>) -> io::Result<usize> {
        let mut used = 0;
        loop {
            let rest = &input[used..];
            match self.next {
                Part::Nothing => return Ok(used),
                Part::Rest(left) | Part::Chunk(left) => {
                    let length = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
                    data.extend_from_slice(&rest[..length]);
                    used += length;
                    self.received += length as u64;
                    let left = left - length as u64;
                    let whole = matches!(self.next, Part::Rest(_));
                    self.next = match left {
                        0 if whole => Part::Nothing,
                        0 => Part::ChunkEnd,
                        _ if whole => Part::Rest(left),
                        _ => Part::Chunk(left),
                    };
                    if left > 0 {
                        return Ok(used);
                    }
                }
                Part::Size | Part::ChunkEnd | Part::Trailers => {
                    let Some(line) = line(rest)? else { return Ok(used) };
                    used += line.len() + 2;
                    self.take_line(line)?;
                }
            }
        }
    }

    fn take_line(&mut self, line: &[u8]) -> io::Result<()> {
        self.next = match self.next {
            Part::Size => match chunk_size(line)? {
                0 => Part::Trailers,
                size => Part::Chunk(size),
            },
            Part::ChunkEnd if line.is_empty() => Part::Size,
            Part::ChunkEnd => return Err(broken("a chunk is longer than its size")),
            Part::Trailers if line.is_empty() => Part::Nothing,
            Part::Trailers if self.trailers.len() + line.len() > LONGEST_TRAILERS => {
                return Err(broken("the trailers are too long"));
            }
            Part::Trailers => {
                self.trailers.extend_from_slice(line);
                self.trailers.extend_from_slice(b"\r\n");
                Part::Trailers
            }
            Part::Rest(_) | Part::Chunk(_) | Part::Nothing => self.next,
        };
        Ok(())
    }
}

/// The line at the start, without its line end, or `None` when it is not complete.
fn line(input: &[u8]) -> io::Result<Option<&[u8]>> {
    match input.iter().position(|&byte| byte == b'\n') {
        Some(0) => Err(broken("a line ends with LF alone")),
        Some(end) if input[end - 1] != b'\r' => Err(broken("a line ends with LF alone")),
        Some(end) => Ok(Some(&input[..end - 1])),
        None if input.len() > LONGEST_LINE => Err(broken("a line of the body's framing is too long")),
        None => Ok(None),
    }
}

/// The size in front of a chunk: at most 15 hexadecimal digits behind zeros, then nothing or an extension (RFC 9112 §7.1).
fn chunk_size(line: &[u8]) -> io::Result<u64> {
    let digits = line.split(|&byte| byte == b';').next().unwrap_or_default();
    let text = std::str::from_utf8(digits).unwrap_or_default();
    if text.is_empty()
        || text.trim_start_matches('0').len() > 15
        || !text.bytes().all(|byte| byte.is_ascii_hexdigit())
    {
        return Err(broken("a chunk size is no hexadecimal number"));
    }
    u64::from_str_radix(text, 16).map_err(|_| broken("a chunk size is no hexadecimal number"))
}

fn broken(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds the bytes in pieces and gives data, trailers, and how many bytes were left over.
    fn decode(bytes: &[u8], framing: Framing, piece: usize) -> Result<(Vec<u8>, Vec<u8>, usize), String> {
        let mut body = Body::new(framing);
        let (mut data, mut fed, mut used) = (Vec::new(), 0, 0);
        while !body.is_complete() && fed < bytes.len() {
            fed = (fed + piece).min(bytes.len());
            used += body.decode(&bytes[used..fed], &mut data).map_err(|error| error.to_string())?;
        }
        assert!(body.is_complete(), "{:?}", body.next);
        Ok((data, body.trailers, bytes.len() - used))
    }

    #[test]
    fn chunks_decode_alike_however_they_arrive() {
        let bytes = b"5\r\nhello\r\n6;x=\"y\"\r\n world\r\n0\r\nA: b\r\n\r\nGET";
        for piece in 1..=bytes.len() {
            let decoded = decode(bytes, Framing::Chunked, piece).expect("the body is right");
            assert_eq!((&decoded.0[..], &decoded.1[..]), (&b"hello world"[..], &b"A: b\r\n"[..]), "{piece}");
        }
        assert_eq!(decode(bytes, Framing::Chunked, bytes.len()).expect("it is right").2, 3);
    }

    #[test]
    fn a_length_leaves_the_rest() {
        assert_eq!(decode(b"helloGET", Framing::Length(5), 8), Ok((b"hello".to_vec(), Vec::new(), 3)));
    }

    #[test]
    fn broken_chunks_are_refused() {
        for bytes in [
            &b"5 \r\nhello"[..],
            b"0x5\r\n",
            b"-1\r\n",
            b"\r\n",
            b"5\nhello",
            b"2\r\nabc\r\n",
            b"1234567890abcdef\r\n",
        ] {
            assert!(
                decode(bytes, Framing::Chunked, bytes.len()).is_err(),
                "{:?}",
                bytes.escape_ascii().to_string()
            );
        }
    }
}
