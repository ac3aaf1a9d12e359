//! Finding a head in what has come so far.

use crate::message::{Cause, Head};

use super::classes::is_token;
use super::known_lines::KnownLines;
use super::opening::{self, Opening};
use super::parse::{answer, answer_lines, request, request_lines};

/// Where the end of a head was looked for so far, so that a head that drips in is not scanned twice.
#[derive(Clone, Copy, Debug, Default)]
pub struct Search {
    /// The start of the line in which the search goes on.
    line: usize,
    /// There is no line end between this and the start of the line.
    seen: usize,
    /// Header lines so far.
    lines: usize,
}

impl Search {
    /// Looks for a request's head at the start of `bytes`, and indexes it into `head` once it is complete: its
    /// length. `None`: more bytes are needed.
    ///
    /// # Errors
    /// Those of [`Search::find`] and of [`request`], and the names of other protocols.
    pub fn request(
        &mut self,
        bytes: &[u8],
        limit: usize,
        headers: usize,
        head: &mut Head,
    ) -> Result<Option<usize>, Cause> {
        // Nearly every head comes in one piece, and is read without looking for its end before.
        let skipped = if bytes.starts_with(b"\r\n") { 2 } else { 0 };
        let whole = &bytes[skipped..bytes.len().min(limit.max(skipped))];
        if self.seen == 0 {
            match request_lines(whole, headers, head) {
                Ok((length, judged)) => return judged.map(|()| Some(skipped + length)),
                // Whatever follows; and so it is found when the head comes in pieces.
                Err(Cause::TooManyHeaders) => return Err(Cause::TooManyHeaders),
                Err(_) => {}
            }
        }
        // Not even an empty line and a request line fit in front of this.
        if self.line < 4 {
            match opening::judge(bytes) {
                Opening::Other(cause) => return Err(cause),
                Opening::Unclear => return Ok(None),
                Opening::Unknown => {}
            }
        }
        let Some(length) = self.find_within(bytes, limit, headers)? else { return Ok(None) };
        request(&bytes[..length], headers, head).map(|()| Some(length))
    }

    /// The same where requests with the same lines may have come lately.
    ///
    /// # Errors
    /// Those of [`Search::request`].
    #[inline]
    pub fn request_among(
        &mut self,
        known: &mut KnownLines,
        bytes: &[u8],
        limit: usize,
        headers: usize,
        head: &mut Head,
    ) -> Result<Option<usize>, Cause> {
        let is_first = self.seen == 0 && bytes.len() <= limit;
        if is_first && known.read(bytes, headers, head) {
            return Ok(Some(bytes.len()));
        }
        let found = self.request(bytes, limit, headers, head)?;
        if is_first && found == Some(bytes.len()) && head.len() == bytes.len() {
            known.note(bytes, head);
        }
        Ok(found)
    }

    /// The same for an answer's head.
    ///
    /// # Errors
    /// [`Cause::BadAnswer`].
    pub fn answer(&mut self, bytes: &[u8], limit: usize, head: &mut Head) -> Result<Option<usize>, Cause> {
        if self.seen == 0
            && let Ok((length, judged)) = answer_lines(&bytes[..bytes.len().min(limit)], head)
        {
            return judged.map(|()| Some(length)).map_err(|_| Cause::BadAnswer);
        }
        let Some(length) = self.find(bytes, limit).map_err(|_| Cause::BadAnswer)? else { return Ok(None) };
        answer(&bytes[..length], head).map(|()| Some(length))
    }

    /// The length of the head at the start of `bytes`, once it is complete. `None`: more bytes are needed.
    ///
    /// # Errors
    /// [`Cause::BadHead`] as soon as the first byte can't begin a head or a line does not end with CRLF;
    /// [`Cause::TargetTooLong`] and [`Cause::HeadTooLarge`] when `limit` bytes were not enough.
    pub fn find(&mut self, bytes: &[u8], limit: usize) -> Result<Option<usize>, Cause> {
        self.find_within(bytes, limit, usize::MAX)
    }

    /// The same, with [`Cause::TooManyHeaders`] as soon as there are more than `most` header lines.
    ///
    /// # Errors
    /// That, and those of [`Search::find`].
    pub(super) fn find_within(
        &mut self,
        bytes: &[u8],
        limit: usize,
        most: usize,
    ) -> Result<Option<usize>, Cause> {
        // A TLS ClientHello may hold no line end at all: its sender would wait for the head's deadline.
        if self.line == 0 && bytes.first().is_some_and(|&byte| byte != b'\r' && !is_token(byte)) {
            return Err(Cause::BadHead);
        }
        while let Some(found) = memchr::memchr(b'\n', &bytes[self.seen..]) {
            let feed = self.seen + found;
            if feed == self.line || bytes[feed - 1] != b'\r' {
                return Err(Cause::BadHead);
            }
            let empty = feed == self.line + 1;
            let first = self.line == 0;
            // Where an empty line comes first, the request line begins behind it.
            self.lines += usize::from(self.line > 2 && !empty);
            (self.line, self.seen) = (feed + 1, feed + 1);
            if feed >= limit {
                return Err(if first { Cause::TargetTooLong } else { Cause::HeadTooLarge });
            }
            if self.lines > most {
                return Err(Cause::TooManyHeaders);
            }
            // One empty line before a request line is tolerated (RFC 9112 §2.2); it is skipped by the parser.
            if empty && !first {
                return if self.line == 4 { Err(Cause::BadHead) } else { Ok(Some(self.line)) };
            }
        }
        self.seen = bytes.len();
        if bytes.len() >= limit {
            return Err(if self.line == 0 { Cause::TargetTooLong } else { Cause::HeadTooLarge });
        }
        Ok(None)
    }
}
