//! What a connection has to say: bytes that were appended, of which the socket has taken the first ones.
//!
//! Invariants. What is behind `sent` is on its way, and is only appended to. Bytes in front of it are of no use. An output of which
//! all was written has no memory.

use super::space::Http2Space;
use crate::net::buffer::SKEW;

/// Bytes in front of which are thrown away while there are others behind them.
const SPENT: usize = 256 * 1024;

/// The output of one connection.
#[derive(Debug, Default)]
pub struct Output {
    bytes: Vec<u8>,
    sent: usize,
}

impl Output {
    /// What the socket has not taken.
    #[inline]
    #[must_use]
    pub fn data(&self) -> &[u8] {
        self.bytes.get(self.sent..).unwrap_or_default()
    }

    /// Its length in bytes.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// True when there is nothing to be said.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The buffer, to be appended to; what was appended before stays.
    #[inline]
    pub fn end(&mut self, space: &Http2Space) -> &mut Vec<u8> {
        if self.bytes.is_empty() {
            self.bytes = space.take_output();
            // TLS copies from here.
            self.bytes.resize(SKEW, 0);
            self.sent = SKEW;
        }
        &mut self.bytes
    }

    /// The socket has taken so many bytes.
    pub fn written(&mut self, count: usize, space: &Http2Space) {
        self.sent += count;
        if self.sent == self.bytes.len() {
            self.sent = 0;
            space.return_output(&mut self.bytes);
        } else if self.sent >= SPENT {
            self.drop_sent();
        }
    }

    /// Makes its memory as small as can be.
    pub fn shrink(&mut self) {
        if !self.is_empty() {
            self.drop_sent();
            self.bytes.shrink_to_fit();
        }
    }

    fn drop_sent(&mut self) {
        self.bytes.drain(SKEW..self.sent);
        self.sent = SKEW;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_appended_comes_out_in_order_however_it_is_taken() {
        let (space, mut output) = (Http2Space::default(), Output::default());
        let (mut said, mut heard) = (Vec::new(), Vec::new());
        for round in 0..200usize {
            let piece = vec![round as u8; round * 37 % 9000];
            output.end(&space).extend_from_slice(&piece);
            said.extend_from_slice(&piece);
            let count = (round * 7919 % 8000).min(output.len());
            heard.extend_from_slice(&output.data()[..count]);
            output.written(count, &space);
            if round % 50 == 0 {
                output.shrink();
            }
            assert_eq!(output.len(), said.len() - heard.len());
        }
        heard.extend_from_slice(output.data());
        output.written(output.len(), &space);
        assert!(heard == said && output.is_empty() && output.bytes.capacity() == 0);
    }

    #[test]
    fn what_is_sent_does_not_stay_in_memory() {
        let (space, mut output) = (Http2Space::default(), Output::default());
        for _ in 0..100 {
            output.end(&space).extend_from_slice(&[7; 100_000]);
            output.written(90_000, &space);
            output.end(&space).extend_from_slice(&[7; 90_000]);
            output.written(100_000, &space);
        }
        assert!(output.is_empty() && output.bytes.capacity() < 4 * SPENT);
        output.end(&space).extend_from_slice(&[7; 1000]);
        output.written(1, &space);
        output.shrink();
        assert!(output.data() == [7; 999] && output.bytes.capacity() < 2048);
    }
}
