//! Where a stream of TLS records stands: between two of them, or in the middle of one.

/// Counts bytes off records: each is five bytes that end in its length, and so many more (RFC 8446 §5.1).
#[derive(Debug, Default)]
pub(super) struct Records {
    /// Bytes of the header that have come.
    header: u8,
    /// The length, as far as it has come; behind the header what is missing of the record.
    left: u16,
}

impl Records {
    /// Takes note of what was read.
    pub(super) fn pass(&mut self, mut bytes: &[u8]) {
        while let Some((&byte, rest)) = bytes.split_first() {
            if self.header < 5 {
                self.left = if self.header < 3 { 0 } else { self.left << 8 | u16::from(byte) };
                self.header += 1;
                bytes = rest;
            } else {
                let taken = bytes.len().min(usize::from(self.left));
                self.left -= u16::try_from(taken).unwrap_or(self.left);
                bytes = &bytes[taken..];
            }
            if self.header == 5 && self.left == 0 {
                self.header = 0;
            }
        }
    }

    /// True when every record that has begun is complete.
    pub(super) fn is_between(&self) -> bool {
        self.header == 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_between_records_exactly_at_their_ends(
            lengths in proptest::collection::vec(0usize..400, 1..20),
            pieces in proptest::collection::vec(1usize..300, 1..40),
        ) {
            let (mut stream, mut ends) = (Vec::new(), vec![0]);
            for &length in &lengths {
                stream.extend_from_slice(&[23, 3, 3, (length >> 8) as u8, length as u8]);
                stream.extend(std::iter::repeat_n(0xff, length));
                ends.push(stream.len());
            }
            let (mut records, mut at) = (Records::default(), 0);
            for piece in pieces.iter().cycle() {
                prop_assert_eq!(records.is_between(), ends.contains(&at), "at {}", at);
                let end = stream.len().min(at + piece);
                records.pass(&stream[at..end]);
                if at == stream.len() {
                    break;
                }
                at = end;
            }
        }
    }
}
