//! What a decoder holds.

use super::super::integer;
use super::*;

#[test]
fn a_decoder_that_keeps_nothing_is_small() {
    assert!(HpackDecoder::new(4096).memory() < 150, "{}", HpackDecoder::new(4096).memory());
    let mut decoder = HpackDecoder::new(4096);
    decode(&mut decoder, &bytes("82 87 84 0f 0d 83 61 ec ff"), MUCH).expect("a block");
    assert!(decoder.memory() < 300, "{}", decoder.memory());
}

#[test]
fn a_large_literal_is_not_kept_for_ever() {
    let mut decoder = HpackDecoder::new(4096);
    let mut block = vec![0, 1, b'x'];
    integer::write(&mut block, 0, 7, 60_000);
    block.extend(vec![b'a'; 60_000]);
    assert_eq!(decode(&mut decoder, &block, MUCH).map(|lines| lines.len()), Ok(1));
    assert!(decoder.memory() < 300, "{}", decoder.memory());
    // Neither when the block was refused behind it.
    assert_eq!(decode(&mut decoder, &[&block[..], &[0x80]].concat(), MUCH), Err(HpackError::Malformed));
    assert!(decoder.memory() < 300, "{}", decoder.memory());
}

#[test]
fn a_table_holds_little_more_than_its_lines() {
    let mut decoder = HpackDecoder::new(4096);
    let mut block = Vec::new();
    for number in 0..8 {
        block.extend(kept(b"x-some-name", format!("some value {number}").as_bytes()));
    }
    decode(&mut decoder, &block, MUCH).expect("a block");
    assert_eq!(decoder.table().lines().count(), 8);
    assert!(decoder.memory() < 900, "{}", decoder.memory());
}

#[test]
fn a_table_is_bounded_by_what_it_counts_whatever_is_put_into_it() {
    for table in [0, 32, 33, 100, 256, 1000, 4096] {
        let mut decoder = HpackDecoder::new(table);
        let bound = size_of::<HpackDecoder>() + 2 * table + 64 + 2048;
        for round in 0..40 {
            // Many empty lines, then large ones, then lines of all lengths.
            for number in 0..300 {
                let length = [0, 120, number % 100][round % 3];
                decode(&mut decoder, &kept(b"", &vec![b'v'; length]), MUCH).expect("a block");
                assert!(decoder.memory() <= bound, "{} of {bound}", decoder.memory());
                let counted: usize = decoder.table().lines().map(|line| line.size()).sum();
                assert!(counted <= table && counted == decoder.table().sizes().0);
            }
        }
    }
}

#[test]
fn a_size_of_zero_gives_all_memory_back() {
    let mut decoder = HpackDecoder::new(4096);
    for number in 0..200 {
        decode(&mut decoder, &kept(b"name", format!("{number}").as_bytes()), MUCH).expect("a block");
    }
    let full = decoder.memory();
    decode(&mut decoder, &[0x20], MUCH).expect("a block");
    assert!(full > 2000 && decoder.memory() < 300, "{full}, {}", decoder.memory());
    // And the table serves again.
    decode(&mut decoder, &[&bytes("3f e1 1f")[..], &kept(b"a", b"b")].concat(), MUCH).expect("a block");
    assert_eq!(decode(&mut decoder, &[0xbe], MUCH), Ok(vec![(b"a".to_vec(), b"b".to_vec())]));
}

#[test]
fn a_line_larger_than_the_table_empties_it() {
    let mut decoder = HpackDecoder::new(100);
    decode(&mut decoder, &kept(b"a", b"b"), MUCH).expect("a block");
    assert_eq!(decode(&mut decoder, &kept(b"long", &[b'v'; 65]), MUCH).map(|lines| lines.len()), Ok(1));
    assert_eq!(decoder.table().sizes(), (0, 100));
    // One that just fits is the only one.
    decode(&mut decoder, &[kept(b"a", b"b"), kept(b"long", &[b'v'; 64])].concat(), MUCH).expect("a block");
    assert_eq!(decoder.table().sizes(), (100, 100));
    assert_eq!(decoder.table().lines().count(), 1);
}

#[test]
fn a_name_may_come_from_the_line_that_makes_way_for_it() {
    // Room for one line of 34 to 40 bytes.
    let mut decoder = HpackDecoder::new(40);
    decode(&mut decoder, &kept(b"name", b"1"), MUCH).expect("a block");
    let expected = vec![(b"name".to_vec(), b"2222".to_vec())];
    assert_eq!(decode(&mut decoder, &bytes("7e 04 32 32 32 32"), MUCH), Ok(expected.clone()));
    assert_eq!(decode(&mut decoder, &[0xbe], MUCH), Ok(expected));
}
