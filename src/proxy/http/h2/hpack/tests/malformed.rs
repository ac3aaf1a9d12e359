//! Blocks that break RFC 7541: the connection must end.

use super::*;

/// Decodes a block behind one that leaves `a: 1` in the table, which has 4096 bytes.
fn outcome(block: &[u8]) -> Result<Vec<Pair>, HpackError> {
    let mut decoder = HpackDecoder::new(4096);
    decode(&mut decoder, &kept(b"a", b"1"), MUCH).expect("a block");
    decode(&mut decoder, block, MUCH)
}

#[test]
fn what_breaks_the_coding_is_refused_each_for_its_reason() {
    let cases: &[(&str, &str)] = &[
        ("an index of 0", "80"),
        ("an index behind the table", "bf"),
        ("an index far behind the table", "ff ff 7f"),
        ("an index that is cut", "ff"),
        ("an index that is cut further behind", "ff 80"),
        ("an index beyond all bounds", "ff ff ff ff ff 7f"),
        ("an index of too many bytes", "ff 80 80 80 80 80 00"),
        ("the name of an index behind the table, kept", "7f 00 01 31"),
        ("the name of an index behind the table, not kept", "0f 30 01 31"),
        ("the name of an index behind the table, never kept", "1f 30 01 31"),
        ("a literal without a name", "40"),
        ("a name without its bytes", "40 01"),
        ("a name of which a byte is missing", "00 03 61 62"),
        ("a literal without a value", "00 01 61"),
        ("a value of which a byte is missing", "00 01 61 02 62"),
        ("a length beyond all bounds", "00 7f ff ff ff ff 7f"),
        ("a length of too many bytes", "00 7f 80 80 80 80 80 00"),
        ("a name with padding of zeros", "00 81 00 01 31"),
        ("a value with padding of zeros", "00 01 61 81 00"),
        ("a value with a byte of padding", "00 01 61 82 07 ff"),
        ("a value with the end in it", "00 01 61 84 ff ff ff ff"),
        ("a value that ends in a code", "00 01 61 81 fe"),
        ("three sizes", "20 20 20 82"),
        ("a size behind a line", "82 20"),
        ("a size behind a literal", "00 01 61 01 62 3f e1 1f"),
        ("a size above what was announced", "3f e2 1f"),
        ("a first size above what was announced", "3f e2 1f 20 82"),
        ("a size that is cut", "3f"),
        ("a size beyond all bounds", "3f ff ff ff ff 7f"),
    ];
    for (what, digits) in cases {
        assert_eq!(outcome(&bytes(digits)), Err(HpackError::Malformed), "{what}");
    }
}

#[test]
fn what_comes_close_to_that_is_fine() {
    let line = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
    let (get, a) = (line(":method", "GET"), line("a", "1"));
    let cases = [
        ("", vec![]),
        ("be", vec![a.clone()]),
        ("7e 01 32", vec![line("a", "2")]),
        ("0f 2f 01 32", vec![line("a", "2")]),
        ("20 82", vec![get.clone()]),
        ("20 3f e1 1f 82", vec![get.clone()]),
        ("3f e1 1f be", vec![a]),
        ("20", vec![]),
        ("00 01 61 81 07", vec![line("a", "0")]),
        ("00 01 61 80", vec![line("a", "")]),
    ];
    for (digits, lines) in cases {
        assert_eq!(outcome(&bytes(digits)), Ok(lines), "{digits}");
    }
}

#[test]
fn a_size_of_zero_empties_the_table_whatever_comes_behind() {
    for digits in ["20 be", "20 3f e1 1f be"] {
        assert_eq!(outcome(&bytes(digits)), Err(HpackError::Malformed), "{digits}");
    }
}

#[test]
fn a_size_stays_until_the_next_one() {
    let mut decoder = HpackDecoder::new(4096);
    // 34 bytes: room for one line with a name and a value of a byte each.
    decode(&mut decoder, &[&bytes("3f 03")[..], &kept(b"a", b"1")].concat(), MUCH).expect("a block");
    assert_eq!(decode(&mut decoder, &kept(b"b", b"2"), MUCH).map(|lines| lines.len()), Ok(1));
    assert_eq!(
        decoder.table().lines().map(|line| pair(&line)).collect::<Vec<_>>(),
        [(b"b".to_vec(), b"2".to_vec())]
    );
    assert_eq!(decoder.table().sizes(), (34, 34));
}

#[test]
fn a_decoder_of_a_small_table_takes_no_larger_one() {
    let mut decoder = HpackDecoder::new(100);
    assert_eq!(decode(&mut decoder, &bytes("3f 45"), MUCH), Ok(Vec::new()));
    assert_eq!(decode(&mut decoder, &bytes("3f 46"), MUCH), Err(HpackError::Malformed));
    assert_eq!(decode(&mut HpackDecoder::new(0), &bytes("20"), MUCH), Ok(Vec::new()));
    assert_eq!(decode(&mut HpackDecoder::new(0), &bytes("21"), MUCH), Err(HpackError::Malformed));
}

#[test]
fn every_cut_of_a_block_is_an_error_or_the_beginning_of_its_lines() {
    let block =
        [kept(b"name", b"value"), bytes("82 be 0f 09 86 a8 eb 10 64 9c bf"), literal(b"x", b"")].concat();
    let whole = decode(&mut HpackDecoder::new(4096), &block, MUCH).expect("a block");
    assert_eq!(whole.len(), 5);
    let mut clean = 0;
    for cut in 0..block.len() {
        match decode(&mut HpackDecoder::new(4096), &block[..cut], MUCH) {
            Ok(lines) => {
                assert!(whole.starts_with(&lines) && lines.len() < whole.len());
                clean += 1;
            }
            Err(error) => assert_eq!(error, HpackError::Malformed),
        }
    }
    assert_eq!(clean, 5, "between any two lines, and before the first one");
}
