//! The form of a journal: one line for each record, with a checksum in front.
//!
//! `0123456789abcdef {"...": ...}`: 16 hexadecimal digits of XXH3 over the record, a blank, the record, a line feed. A record has no
//! line feed in it. The first line is a record of its own that says which form this is.

use std::fmt::Write as _;

use xxhash_rust::xxh3::xxh3_64;

use super::{Kept, StoreRecord};

/// The first line of a journal.
pub const HEAD: &[u8] = br#"{"journal":1}"#;
/// How the first line of any form begins, and no other record.
const ANY_HEAD: &[u8] = br#"{"journal":"#;

/// Digits of the checksum, and the blank behind them.
const MARGIN: usize = 17;

/// What a journal is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JournalText {
    /// Of this form. `whole` bytes of it are lines; what follows is torn.
    Known {
        /// What is in it.
        kept: Kept,
        /// Bytes of whole lines.
        whole: usize,
    },
    /// Of a form that this version does not know.
    Foreign,
    /// Another journal begins in it, at this line counted from 1: somebody has put two files together. Which of the two counts nobody
    /// knows here.
    Doubled(usize),
}

/// One line.
#[must_use]
pub fn line(record: &[u8]) -> Vec<u8> {
    let mut head = String::with_capacity(MARGIN);
    let _ = write!(head, "{:016x} ", xxh3_64(record));
    let mut line = head.into_bytes();
    line.extend_from_slice(record);
    line.push(b'\n');
    line
}

/// A whole journal with these records.
#[must_use]
pub fn write(records: &[StoreRecord]) -> Vec<u8> {
    let heads = [HEAD].into_iter();
    heads.chain(records.iter().map(Vec::as_slice)).flat_map(line).collect()
}

/// Reads what is left of a journal. What does not end with a line feed is torn. A line that does, and whose checksum does not fit, is
/// damaged, wherever it is: of the last one, too, somebody may have been told that it is kept.
#[must_use]
pub fn read(bytes: &[u8]) -> JournalText {
    let mut lines: Vec<(usize, Option<&[u8]>)> = Vec::new();
    let mut at = 0;
    while let Some(length) = bytes[at..].iter().position(|byte| *byte == b'\n') {
        lines.push((at + length + 1, record(&bytes[at..at + length])));
        at += length + 1;
    }
    let whole = lines.last().map_or(0, |(end, _)| *end);
    let mut records: Vec<StoreRecord> = Vec::new();
    let mut damaged = 0;
    for (number, (_, record)) in lines.iter().enumerate() {
        match record {
            Some(head) if head.starts_with(ANY_HEAD) => {
                if number > 0 {
                    return JournalText::Doubled(number + 1);
                }
                if *head != HEAD {
                    return JournalText::Foreign;
                }
            }
            Some(record) => records.push(record.to_vec()),
            None => damaged += 1,
        }
    }
    JournalText::Known { kept: Kept { records, torn: bytes.len() - whole, damaged }, whole }
}

/// What a line says, if it is what was written.
fn record(line: &[u8]) -> Option<&[u8]> {
    let (sum, rest) = line.split_at_checked(MARGIN)?;
    let sum = std::str::from_utf8(sum).ok()?.strip_suffix(' ')?;
    let is_plain = sum.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    let sum = u64::from_str_radix(sum, 16).ok().filter(|_| is_plain)?;
    (sum == xxh3_64(rest)).then_some(rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kept(bytes: &[u8]) -> Kept {
        match read(bytes) {
            JournalText::Known { kept, .. } => kept,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let records: Vec<StoreRecord> = ["", "a", "{\"b\": 1}"].map(|text| text.as_bytes().to_vec()).into();
        assert_eq!(kept(&write(&records)), Kept { records, torn: 0, damaged: 0 });
        assert_eq!(kept(b""), Kept::default());
        assert_eq!(read(&line(br#"{"journal":2}"#)), JournalText::Foreign);
    }

    #[test]
    fn what_was_cut_anywhere_has_all_lines_before_the_cut() {
        let records: Vec<StoreRecord> = ["one", "two", "three"].map(|text| text.as_bytes().to_vec()).into();
        let whole = write(&records);
        let ends: Vec<usize> = (0..=3).map(|count| write(&records[..count]).len()).collect();
        for cut in 0..=whole.len() {
            let found = kept(&whole[..cut]);
            let count = ends.iter().rposition(|end| *end <= cut).unwrap_or(0);
            assert_eq!(found.records, records[..count], "cut at {cut}");
            let before = ends.iter().rev().find(|end| **end <= cut).copied().unwrap_or(0);
            assert_eq!((found.torn, found.damaged), (cut - before, 0), "cut at {cut}");
        }
    }

    #[test]
    fn a_line_that_is_not_what_was_written_is_left_out_and_counted() {
        let records: Vec<StoreRecord> = ["one", "two", "three"].map(|text| text.as_bytes().to_vec()).into();
        let mut bytes = write(&records);
        let at = bytes.windows(3).position(|part| part == b"two").expect("there");
        bytes[at] = b'x';
        let found = kept(&bytes);
        assert_eq!((found.records.len(), found.damaged, found.torn), (2, 1, 0));
        let at = bytes.windows(5).position(|part| part == b"three").expect("there");
        bytes[at] = b'x';
        let found = kept(&bytes);
        assert_eq!(
            (found.records.len(), found.damaged, found.torn),
            (1, 2, 0),
            "so is the last one, which has its end"
        );
    }

    #[test]
    fn a_second_first_line_is_found_wherever_it_is() {
        let whole = write(&[b"one".to_vec(), b"two".to_vec()]);
        assert_eq!(read(&[whole.clone(), whole.clone()].concat()), JournalText::Doubled(4));
        assert_eq!(read(&[line(HEAD), whole.clone()].concat()), JournalText::Doubled(2));
        assert_eq!(read(&[b"\n".to_vec(), whole.clone()].concat()), JournalText::Doubled(2));
        assert_eq!(read(&[whole.clone(), line(br#"{"journal":2}"#)].concat()), JournalText::Doubled(4));
        // One that is torn is nothing yet.
        let torn = [whole.clone(), line(HEAD)[..20].to_vec()].concat();
        assert_eq!((kept(&torn).records.len(), kept(&torn).torn), (2, 20));
    }

    proptest! {
        #[test]
        fn no_bytes_are_taken_for_a_record_that_nobody_wrote(bytes: Vec<u8>) {
            if let JournalText::Known { kept, whole } = read(&bytes) {
                prop_assert_eq!(kept.records.len(), 0);
                prop_assert_eq!(kept.torn + whole, bytes.len());
            }
        }
    }
}
