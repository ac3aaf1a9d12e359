//! Strings in the Huffman code, and numbers.

use super::super::{codes, huffman, integer};
use super::*;

fn coded(text: &[u8]) -> Vec<u8> {
    let mut out = b"before".to_vec();
    huffman::encode::<false>(text, &mut out);
    assert_eq!(out.len() - 6, huffman::length::<false>(text), "{}", text.escape_ascii());
    out.split_off(6)
}

#[track_caller]
fn decoded(bytes: &[u8]) -> Result<Vec<u8>, HpackError> {
    let mut out = b"before".to_vec();
    huffman::decode(bytes, MUCH, &mut out)?;
    Ok(out.split_off(6))
}

#[test]
fn codes_are_those_of_the_standard() {
    // Some of each length, the first and the last among them, as RFC 7541 Appendix B has them.
    let some = [
        (b'0', 0x0, 5),
        (b't', 0x9, 5),
        (b' ', 0x14, 6),
        (b'u', 0x2d, 6),
        (b':', 0x5c, 7),
        (b'z', 0x7b, 7),
        (b'&', 0xf8, 8),
        (b'Z', 0xfd, 8),
        (b'!', 0x3f8, 10),
        (b'?', 0x3fc, 10),
        (b'\'', 0x7fa, 11),
        (b'|', 0x7fc, 11),
        (b'#', 0xffa, 12),
        (b'>', 0xffb, 12),
        (0, 0x1ff8, 13),
        (b'~', 0x1ffd, 13),
        (b'^', 0x3ffc, 14),
        (b'}', 0x3ffd, 14),
        (b'<', 0x7ffc, 15),
        (b'{', 0x7ffe, 15),
        (b'\\', 0x7fff0, 19),
        (208, 0x7fff2, 19),
        (128, 0xfffe6, 20),
        (153, 0x1fffdc, 21),
        (129, 0x3fffd2, 22),
        (1, 0x7fffd8, 23),
        (9, 0xffffea, 24),
        (199, 0x1ffffec, 25),
        (192, 0x3ffffe0, 26),
        (203, 0x7ffffde, 27),
        (2, 0xfffffe2, 28),
        (249, 0xffffffe, 28),
        (10, 0x3ffffffc, 30),
        (22, 0x3ffffffe, 30),
    ];
    for (symbol, bits, length) in some {
        let code = codes::CODES[usize::from(symbol)];
        assert_eq!((code.bits, code.length), (bits, length), "{symbol}");
    }
    let end = codes::CODES[256];
    assert_eq!((end.bits, end.length), (0x3fff_ffff, 30));
}

#[test]
fn every_symbol_comes_back_at_every_place_of_a_byte() {
    for symbol in 0..=u8::MAX {
        // Before it stand 0 to 7 codes of five bits: all places there are.
        for before in 0..8 {
            for behind in [&b""[..], b"0", b"~", &[10], &[255; 5]] {
                let text = [&vec![b'0'; before][..], &[symbol], behind].concat();
                assert_eq!(decoded(&coded(&text)), Ok(text));
            }
        }
        for other in 0..=u8::MAX {
            assert_eq!(decoded(&coded(&[symbol, other])), Ok(vec![symbol, other]));
        }
    }
}

#[test]
fn capitals_are_coded_as_small_letters_where_that_is_asked_for() {
    let all: Vec<u8> = (0..=u8::MAX).collect();
    let mut out = Vec::new();
    huffman::encode::<true>(&all, &mut out);
    assert_eq!(out, coded(&all.to_ascii_lowercase()));
    assert_eq!(huffman::length::<true>(&all), out.len());
}

#[test]
fn padding_is_ones_and_shorter_than_a_byte() {
    assert_eq!(decoded(&[]), Ok(Vec::new()));
    // `0` is five zeros, then three bits of padding.
    for last in 0..8 {
        let expected = match last {
            7 => Ok(b"0".to_vec()),
            _ => Err(HpackError::Malformed),
        };
        assert_eq!(decoded(&[last]), expected, "{last:03b}");
    }
    for text in [&b"0"[..], b"00000000", b"abc", b"~~"] {
        // A whole byte of padding is too much, however much there was before.
        let longer = [&coded(text)[..], &[0xff]].concat();
        assert_eq!(decoded(&longer), Err(HpackError::Malformed));
    }
    for length in 1..6 {
        assert_eq!(decoded(&vec![0xff; length]), Err(HpackError::Malformed), "{length} bytes of ones");
    }
}

#[test]
fn a_string_that_ends_inside_of_a_code_is_none() {
    for symbol in 0..=u8::MAX {
        let whole = coded(&[symbol]);
        for cut in 1..whole.len() {
            let part = decoded(&whole[..cut]);
            assert_eq!(part, Err(HpackError::Malformed), "{symbol} cut to {cut}");
        }
    }
}

#[test]
fn the_end_of_a_string_is_not_coded_in_it() {
    let end = 0x3fff_ffff_u64;
    for before in 0..7_u32 {
        // Zeros, which are `0`s, the end, and what is left of 8 bytes in zeros or in ones.
        let left = 64 - 5 * before - 30;
        for behind in [0, (1_u64 << left) - 1] {
            let word = (end << left | behind).to_be_bytes();
            assert_eq!(decoded(&word), Err(HpackError::Malformed));
            assert_eq!(decoded(&word[..(5 * before + 30).div_ceil(8) as usize]), Err(HpackError::Malformed));
        }
    }
}

#[test]
fn a_string_is_decoded_up_to_its_limit_and_no_further() {
    for text in [&b"0123456789"[..], b"~~~~~~~~~~", &[10; 10]] {
        let coded = coded(text);
        let mut out = Vec::new();
        assert_eq!((huffman::decode(&coded, 10, &mut out), &out[..]), (Ok(()), text));
        for most in 0..10 {
            assert_eq!(huffman::decode(&coded, most, &mut Vec::new()), Err(HpackError::TooLarge));
        }
    }
    // Nothing of it is decoded when its length says enough: it is full of mistakes.
    let mut out = Vec::new();
    assert_eq!(huffman::decode(&[0xff; 1000], 200, &mut out), Err(HpackError::TooLarge));
    assert_eq!(out.capacity(), 0);
}

#[test]
fn numbers_come_back_in_every_prefix() {
    for prefix in 1..=8 {
        for value in (0..600).chain([(1 << 14) - 1, 1 << 14, 1 << 20, (1 << 28) - 1, 1 << 28]) {
            let mut out = Vec::new();
            integer::write(&mut out, 0, prefix, value);
            let mut rest = &[&out[..], b"behind"].concat()[..];
            assert_eq!(integer::read(&mut rest, prefix), Ok(value));
            assert_eq!(rest, b"behind");
            for cut in 0..out.len() {
                assert_eq!(integer::read(&mut &out[..cut], prefix), Err(HpackError::Malformed));
            }
        }
    }
}

#[test]
fn numbers_have_their_bounds() {
    let read = |digits: &str| integer::read(&mut &bytes(digits)[..], 5);
    // In all five bytes, with zeros behind: still a number.
    assert_eq!(read("1f 80 80 80 80 00"), Ok(31));
    assert_eq!(read("1f e1 ff ff 7f"), Ok(1 << 28));
    for digits in ["1f e2 ff ff 7f", "1f 80 80 80 80 01", "1f ff ff ff ff 7f", "1f 80 80 80 80 80 00"] {
        assert_eq!(read(digits), Err(HpackError::Malformed), "{digits}");
    }
    let endless = [0xff; 40];
    assert_eq!(integer::read(&mut &endless[..], 7), Err(HpackError::Malformed));
}
