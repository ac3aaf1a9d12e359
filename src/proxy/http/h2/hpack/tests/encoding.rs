//! What we write.

use super::super::encode::{field, line, pseudo, request_id, status, table_size_zero};
use super::super::line::Pseudo;
use super::super::{huffman, statics};
use super::*;
use crate::message::Head;

fn block(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

/// The one line that a block stands for.
#[track_caller]
fn read(block: &[u8]) -> Pair {
    let mut decoder = HpackDecoder::new(4096);
    let line = only(&mut decoder, block).0;
    assert_eq!(decoder.table().sizes().0, 0, "nobody keeps it");
    line
}

#[test]
fn every_status_is_written_and_the_common_ones_in_a_byte() {
    for (code, byte) in
        [(200, 0x88), (204, 0x89), (206, 0x8a), (304, 0x8b), (400, 0x8c), (404, 0x8d), (500, 0x8e)]
    {
        assert_eq!(block(|out| status(out, code)), [byte]);
    }
    for code in 100..1000 {
        let written = block(|out| status(out, code));
        assert!(written.len() <= 5, "{code}");
        assert_eq!(read(&written), (b":status".to_vec(), code.to_string().into_bytes()));
    }
}

#[test]
fn pseudo_fields_go_by_index_where_they_have_one() {
    for (kind, value, byte) in [
        (Pseudo::Method, "GET", 0x82),
        (Pseudo::Method, "POST", 0x83),
        (Pseudo::Path, "/", 0x84),
        (Pseudo::Path, "/index.html", 0x85),
        (Pseudo::Scheme, "http", 0x86),
        (Pseudo::Scheme, "https", 0x87),
    ] {
        assert_eq!(block(|out| pseudo(out, kind, value.as_bytes())), [byte], "{value}");
    }
    for (kind, name) in [
        (Pseudo::Method, ":method"),
        (Pseudo::Path, ":path"),
        (Pseudo::Scheme, ":scheme"),
        (Pseudo::Status, ":status"),
        (Pseudo::Authority, ":authority"),
        (Pseudo::Protocol, ":protocol"),
    ] {
        for value in ["", "/x", "CONNECT", "websocket", "example.com:8443", "418"] {
            let written = block(|out| pseudo(out, kind, value.as_bytes()));
            assert_eq!(read(&written), (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
            // A byte for the name, but for the one that has no index, and one for the length.
            assert!(kind == Pseudo::Protocol || written.len() <= 2 + value.len(), "{name} {value}");
        }
    }
}

#[test]
fn the_number_of_a_request_is_the_line_that_anybody_would_write_for_it() {
    let id = *b"0123456789abcdef0123456789ABCDEF";
    let written = block(|out| request_id(out, &id));
    assert_eq!(read(&written), (b"x-request-id".to_vec(), id.to_vec()));
    let name = block(|out| field(out, b"X-Request-Id", b""));
    assert_eq!(written[..name.len() - 1], name[..name.len() - 1], "the name is coded as any other");
}

#[test]
fn the_size_of_the_table_is_said_in_a_byte() {
    let mut decoder = HpackDecoder::new(4096);
    let written = block(table_size_zero);
    assert_eq!(written, [0x20]);
    assert_eq!(decode(&mut decoder, &written, MUCH), Ok(Vec::new()));
    assert_eq!(decoder.table().sizes(), (0, 0));
}

#[test]
fn names_of_the_static_table_go_by_index_in_any_case() {
    for known in statics::LINES.iter().filter(|line| !line.name().starts_with(b":")) {
        for name in [known.name().to_vec(), known.name().to_ascii_uppercase()] {
            let written = block(|out| field(out, &name, b"~"));
            assert!(written.len() <= 4, "{}", name.escape_ascii());
            assert_eq!(read(&written), (known.name().to_vec(), b"~".to_vec()));
        }
    }
    assert_eq!(block(|out| field(out, b"Accept-Encoding", b"gzip, deflate")), [0x90]);
    // Lines of the table without a value go as literals: nearly none is empty.
    assert_eq!(block(|out| field(out, b"vary", b"")), bytes("0f 2c 00"));
}

#[test]
fn names_go_out_in_small_letters_and_values_as_they_are() {
    for (name, value) in [("X-Evenkeel", "A b C"), ("ETAG_", "\"AbC\""), ("|X|", "X"), ("Server", "EvenKeel")]
    {
        let written = block(|out| field(out, name.as_bytes(), value.as_bytes()));
        assert_eq!(read(&written), (name.to_lowercase().into_bytes(), value.as_bytes().to_vec()));
    }
}

#[test]
fn secrets_are_never_indexed_and_nothing_else_is() {
    for name in ["Authorization", "cookie", "Proxy-Authorization", "set-cookie"] {
        assert_eq!(block(|out| field(out, name.as_bytes(), b"x"))[0] & 0xf0, 0x10, "{name}");
    }
    let others = ["x-own", "proxy-authenticate", "date", "cookies", "content-type"];
    for name in others
        .into_iter()
        .chain(statics::LINES.iter().filter_map(|line| std::str::from_utf8(line.name()).ok()))
    {
        if !["authorization", "cookie", "proxy-authorization", "set-cookie"].contains(&name) {
            assert_eq!(block(|out| field(out, name.as_bytes(), b"x"))[0] & 0xf0, 0, "{name}");
        }
    }
}

#[test]
fn the_huffman_code_is_used_where_it_is_shorter() {
    for value in
        [&b"text/html"[..], b"~", b"", b"&&", b"Mon, 21 Oct 2013 20:13:21 GMT", &[0xff; 9], b"a~", b"<>"]
    {
        let written = block(|out| field(out, b"age", value));
        let shorter = huffman::length::<false>(value) < value.len();
        assert_eq!(written[2] & 0x80 != 0, shorter, "{}", value.escape_ascii());
        assert_eq!(written.len(), 3 + value.len().min(huffman::length::<false>(value)));
    }
    // A name is measured by its small letters, which are shorter.
    let written = block(|out| field(out, b"XZXZXZXZ", b""));
    assert_eq!(written[..2], [0, 0x80 | huffman::length::<true>(b"xzxzxzxz") as u8]);
}

#[test]
fn lines_of_an_answer_go_out_in_their_order() {
    let mut head = Head::answer(200);
    let lines = [
        ("Server", "nginx"),
        ("Date", "Tue, 02 Jan 2024 03:04:05 GMT"),
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Length", "1234"),
        ("X-Served-By", "b1"),
        ("Set-Cookie", "a=b; Path=/"),
        ("Empty", ""),
    ];
    for (name, value) in lines {
        head.push(name.as_bytes(), value.as_bytes());
    }
    let mut out = Vec::new();
    for item in head.lines() {
        line(&mut out, &head, item);
    }
    let expected = lines.map(|(name, value)| (name.to_lowercase().into_bytes(), value.as_bytes().to_vec()));
    assert_eq!(decode(&mut HpackDecoder::new(4096), &out, MUCH), Ok(expected.to_vec()));
}
