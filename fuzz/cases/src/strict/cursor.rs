//! A place in the input, and the few steps that the grammar is made of.

use super::Stop;

/// Where the reader is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    /// Bytes read so far.
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], at: usize) -> Cursor<'a> {
        Cursor { bytes, at }
    }

    /// The next byte, which stays where it is.
    pub(super) fn peek(&self) -> Result<u8, Stop> {
        self.bytes.get(self.at).copied().ok_or(Stop::Incomplete)
    }

    /// Whether the next byte is this one; then it is taken.
    pub(super) fn takes(&mut self, byte: u8) -> Result<bool, Stop> {
        let found = self.peek()? == byte;
        self.at += usize::from(found);
        Ok(found)
    }

    /// Exactly these bytes.
    pub(super) fn literal(&mut self, expected: &[u8], rule: &'static str) -> Result<(), Stop> {
        for &byte in expected {
            if !self.takes(byte)? {
                return Err(Stop::Refused(rule));
            }
        }
        Ok(())
    }

    /// RFC 9110 §5.5 and RFC 9112 §2.2: CRLF, and no other end of a line.
    pub(super) fn crlf(&mut self) -> Result<(), Stop> {
        self.literal(b"\r\n", "CRLF")
    }

    /// All bytes up to the first that `allowed` refuses; there must be one behind them.
    pub(super) fn run(&mut self, allowed: impl Fn(u8) -> bool) -> Result<&'a [u8], Stop> {
        let start = self.at;
        while allowed(self.peek()?) {
            self.at += 1;
        }
        Ok(&self.bytes[start..self.at])
    }

    /// The same, and at least one.
    pub(super) fn some(
        &mut self,
        allowed: impl Fn(u8) -> bool,
        rule: &'static str,
    ) -> Result<&'a [u8], Stop> {
        let run = self.run(allowed)?;
        if run.is_empty() { Err(Stop::Refused(rule)) } else { Ok(run) }
    }

    /// So many bytes, whatever they are.
    pub(super) fn bytes(&mut self, count: u64) -> Result<&'a [u8], Stop> {
        let left = &self.bytes[self.at..];
        let count = usize::try_from(count).ok().filter(|&count| count <= left.len());
        let taken = &left[..count.ok_or(Stop::Incomplete)?];
        self.at += taken.len();
        Ok(taken)
    }

    /// Everything that is left.
    pub(super) fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        self.at = self.bytes.len();
        rest
    }
}
