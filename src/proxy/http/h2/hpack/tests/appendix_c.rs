//! The examples of RFC 7541 Appendix C.

use super::super::{encode, integer};
use super::*;

/// An example: a block, what it stands for, and the table behind it, the latest line first.
struct Example {
    block: &'static str,
    lines: &'static [&'static str],
    table: &'static [&'static str],
    size: usize,
}

/// Decodes the blocks of one connection.
#[track_caller]
fn decodes(table: usize, examples: &[Example]) {
    let mut decoder = HpackDecoder::new(table);
    for (at, example) in examples.iter().enumerate() {
        let text = |(name, value): Pair| format!("{}: {}", name.escape_ascii(), value.escape_ascii());
        let lines = decode(&mut decoder, &bytes(example.block), MUCH).expect("an example");
        assert_eq!(lines.into_iter().map(text).collect::<Vec<_>>(), example.lines, "{at}");
        let table: Vec<_> = decoder.table().lines().map(|line| text(pair(&line))).collect();
        assert_eq!(
            (table, decoder.table().sizes().0),
            (example.table.iter().map(|&line| line.to_owned()).collect(), example.size),
            "{at}"
        );
    }
}

#[test]
fn integers_are_those_of_c_1() {
    for (digits, prefix, value) in [("0a", 5, 10), ("1f9a0a", 5, 1337), ("2a", 8, 42)] {
        let mut written = Vec::new();
        integer::write(&mut written, 0, prefix, value);
        assert_eq!(written, bytes(digits));
        let mut rest = &written[..];
        assert_eq!((integer::read(&mut rest, prefix), rest), (Ok(value), &[][..]));
    }
}

#[test]
fn single_lines_are_those_of_c_2() {
    let custom = &["custom-key: custom-header"];
    let indexed = "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572";
    decodes(4096, &[Example { block: indexed, lines: custom, table: custom, size: 55 }]);
    let without = Example {
        block: "040c 2f73 616d 706c 652f 7061 7468",
        lines: &[":path: /sample/path"],
        table: &[],
        size: 0,
    };
    let never = Example {
        block: "1008 7061 7373 776f 7264 0673 6563 7265 74",
        lines: &["password: secret"],
        table: &[],
        size: 0,
    };
    let by_index = Example { block: "82", lines: &[":method: GET"], table: &[], size: 0 };
    decodes(4096, &[without, never, by_index]);
}

/// The three requests of C.3 and C.4, which differ in their bytes alone.
fn requests(blocks: [&'static str; 3]) -> [Example; 3] {
    let [first, second, third] = blocks;
    let authority = ":authority: www.example.com";
    let (http, https) = (":scheme: http", ":scheme: https");
    let lines = [
        vec![":method: GET", http, ":path: /", authority],
        vec![":method: GET", http, ":path: /", authority, "cache-control: no-cache"],
        vec![":method: GET", https, ":path: /index.html", authority, "custom-key: custom-value"],
    ]
    .map(|lines| &*lines.leak());
    [
        Example { block: first, lines: lines[0], table: &[":authority: www.example.com"], size: 57 },
        Example {
            block: second,
            lines: lines[1],
            table: &["cache-control: no-cache", ":authority: www.example.com"],
            size: 110,
        },
        Example {
            block: third,
            lines: lines[2],
            table: &["custom-key: custom-value", "cache-control: no-cache", ":authority: www.example.com"],
            size: 164,
        },
    ]
}

#[test]
fn requests_without_huffman_are_those_of_c_3() {
    let blocks = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    decodes(4096, &requests(blocks));
}

#[test]
fn requests_with_huffman_are_those_of_c_4() {
    let blocks = [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ];
    decodes(4096, &requests(blocks));
}

const DATE: &str = "date: Mon, 21 Oct 2013 20:13:21 GMT";
const LATER: &str = "date: Mon, 21 Oct 2013 20:13:22 GMT";
const LOCATION: &str = "location: https://www.example.com";
const PRIVATE: &str = "cache-control: private";
const COOKIE: &str = "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";

/// The three answers of C.5 and C.6, with evictions from a table of 256 bytes.
fn answers(blocks: [&'static str; 3]) -> [Example; 3] {
    let [first, second, third] = blocks;
    [
        Example {
            block: first,
            lines: &[":status: 302", PRIVATE, DATE, LOCATION],
            table: &[LOCATION, DATE, PRIVATE, ":status: 302"],
            size: 222,
        },
        Example {
            block: second,
            lines: &[":status: 307", PRIVATE, DATE, LOCATION],
            table: &[":status: 307", LOCATION, DATE, PRIVATE],
            size: 222,
        },
        Example {
            block: third,
            lines: &[":status: 200", PRIVATE, LATER, LOCATION, "content-encoding: gzip", COOKIE],
            table: &[COOKIE, "content-encoding: gzip", LATER],
            size: 215,
        },
    ]
}

#[test]
fn answers_without_huffman_are_those_of_c_5() {
    let blocks = [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 \
         3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 \
         7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 \
         6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
    ];
    decodes(256, &answers(blocks));
}

#[test]
fn answers_with_huffman_are_those_of_c_6() {
    let blocks = [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad \
         1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 \
         e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    ];
    decodes(256, &answers(blocks));
}

#[test]
fn what_the_examples_write_without_a_table_is_what_we_write() {
    let mut out = Vec::new();
    encode::field(&mut out, b"custom-key", b"custom-value");
    assert_eq!(out, bytes("0088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf"));
    out.clear();
    encode::field(&mut out, b"Location", b"https://www.example.com");
    assert_eq!(out, bytes("0f1f 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3"));
}
