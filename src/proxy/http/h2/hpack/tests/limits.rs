//! Lists that count more than they may.

use super::super::huffman;
use super::*;

#[test]
fn a_list_may_count_its_limit_and_not_a_byte_more() {
    // 3 + 3 + 32 each.
    let line = literal(b"abc", b"xyz");
    let block = [&line[..], &line, &line].concat();
    assert_eq!(decode(&mut HpackDecoder::new(4096), &block, 114).map(|lines| lines.len()), Ok(3));
    let mut seen = 0;
    let outcome = HpackDecoder::new(4096).decode(&block, 113, |_| seen += 1);
    assert_eq!((outcome, seen), (Err(HpackError::TooLarge), 2));
}

#[test]
fn lines_by_index_count_as_if_they_were_written() {
    // `:method: GET` counts 7 + 3 + 32; a byte of a block is worth 42.
    let block = vec![0x82; 1000];
    let mut seen = 0;
    let outcome = HpackDecoder::new(4096).decode(&block, 42 * 10, |_| seen += 1);
    assert_eq!((outcome, seen), (Err(HpackError::TooLarge), 10));
    // The bomb: a line as large as the table, named again and again.
    let mut decoder = HpackDecoder::new(4096);
    let mut bomb = bytes("40 01 78 7f c8 1e");
    bomb.extend(vec![b'a'; 127 + 0x48 + 0x1e * 128]);
    decode(&mut decoder, &bomb, MUCH).expect("a block");
    assert_eq!(decoder.table().sizes().0, 32 + 1 + 4039);
    let mut total = 0;
    let outcome = decoder.decode(&vec![0xbe; 16_000], 65_536, |line| total += line.size());
    assert_eq!((outcome, total), (Err(HpackError::TooLarge), 16 * 4072));
}

#[test]
fn a_literal_that_is_too_long_is_refused_before_it_is_decoded() {
    let long = vec![b'a'; 5000];
    let mut coded = Vec::new();
    huffman::encode::<false>(&long, &mut coded);
    // Lengths of 5000 and of 3125.
    for (length, bytes_of_it) in [("7f 89 26", &long), ("ff b6 17", &coded)] {
        let value = [&bytes("00 01 61")[..], &bytes(length), bytes_of_it].concat();
        let name = [&bytes("00")[..], &bytes(length), bytes_of_it, b"\x01a"].concat();
        for block in [value, name] {
            let mut decoder = HpackDecoder::new(4096);
            assert_eq!(decode(&mut decoder, &block, 500), Err(HpackError::TooLarge));
            assert!(decoder.memory() < 1000, "{}", decoder.memory());
            assert_eq!(decode(&mut HpackDecoder::new(4096), &block, 5032), Err(HpackError::TooLarge));
            assert_eq!(decode(&mut HpackDecoder::new(4096), &block, 5033).map(|lines| lines.len()), Ok(1));
        }
    }
}

#[test]
fn a_name_by_index_counts_too() {
    // `strict-transport-security` has 25 bytes.
    let block = bytes("0f 29 01 31");
    assert_eq!(decode(&mut HpackDecoder::new(4096), &block, 58).map(|lines| lines.len()), Ok(1));
    for most in 0..58 {
        assert_eq!(decode(&mut HpackDecoder::new(4096), &block, most), Err(HpackError::TooLarge), "{most}");
    }
}

#[test]
fn a_limit_that_no_line_fits_lets_an_empty_list_pass() {
    assert_eq!(decode(&mut HpackDecoder::new(4096), &[], 0), Ok(Vec::new()));
    assert_eq!(decode(&mut HpackDecoder::new(4096), &bytes("20"), 0), Ok(Vec::new()));
    assert_eq!(decode(&mut HpackDecoder::new(4096), &literal(b"", b""), 31), Err(HpackError::TooLarge));
}
