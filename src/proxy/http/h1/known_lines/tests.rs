use proptest::prelude::*;

use super::super::search::Search;
use super::*;
use crate::message::{Cause, Fields, HeadLine, HeaderField};

const LIMIT: usize = 600;
const MOST: usize = 6;

/// All that is known of a head.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    /// Its method, target, path and authority, and all of it.
    parts: [Vec<u8>; 5],
    lines: Vec<HeadLine>,
    fields: Fields,
    repeated: Vec<HeaderField>,
    version: Version,
    authority: Span,
}

fn told(head: &Head) -> Told {
    let whole = head.at(Span::new(0, head.len()));
    Told {
        parts: [head.method(), head.target(), head.path(), head.authority(), whole].map(<[u8]>::to_vec),
        lines: head.lines().to_vec(),
        fields: head.fields(),
        repeated: head.lines().iter().map(|line| line.field).filter(|&field| head.repeats(field)).collect(),
        version: head.version,
        authority: head.authority_span(),
    }
}

/// Reads the same with what is known and without, which comes to the same.
fn read(known: &mut KnownLines, bytes: &[u8], most: usize) -> Result<Option<usize>, Cause> {
    let (mut head, mut plain) = (Head::new(), Head::new());
    // What was there before means nothing.
    head.push(b"Left", b"over");
    let found = Search::default().request_among(known, bytes, LIMIT, most, &mut head);
    assert_eq!(found, Search::default().request(bytes, LIMIT, most, &mut plain), "{}", bytes.escape_ascii());
    if matches!(found, Ok(Some(_))) {
        assert_eq!(told(&head), told(&plain), "{}", bytes.escape_ascii());
    }
    found
}

/// Whether the head is read without looking at its lines.
fn is_known(known: &mut KnownLines, bytes: &[u8]) -> bool {
    known.read(bytes, MOST, &mut Head::new())
}

const LINES: &str =
    "Host: a.example:8080\r\nUser-Agent: probe/1.0\r\nAccept: */*\r\nAccept: text/html\r\n\r\n";

fn request(line: &str) -> Vec<u8> {
    format!("{line}\r\n{LINES}").into_bytes()
}

#[test]
fn lines_that_come_twice_are_known_behind_any_path_and_on_any_connection() {
    let mut known = KnownLines::default();
    for number in 0..2 {
        let bytes = request(&format!("GET /{number} HTTP/1.1"));
        assert!(!is_known(&mut known, &bytes), "{number}");
        assert_eq!(read(&mut known, &bytes, MOST), Ok(Some(bytes.len())));
    }
    for line in ["GET /other/path?with=query HTTP/1.1", "DELETE / HTTP/1.1", "PURGE /x HTTP/1.1"] {
        assert!(is_known(&mut known, &request(line)), "{line}");
        assert_eq!(read(&mut known, &request(line), MOST), Ok(Some(request(line).len())));
    }
}

#[test]
fn behind_any_other_line_they_are_read_anew() {
    let mut known = KnownLines::default();
    for _ in 0..3 {
        read(&mut known, &request("GET / HTTP/1.1"), MOST).expect("well-formed");
    }
    for line in [
        "GET / HTTP/1.0",
        "GET http://b.example/ HTTP/1.1",
        "OPTIONS * HTTP/1.1",
        "CONNECT /x HTTP/1.1",
        "CONNECT b.example:443 HTTP/1.1",
        "GET /a b HTTP/1.1",
        "GET  / HTTP/1.1",
        " / HTTP/1.1",
        "GET / HTTP/1.1\r\nX: y",
        "GET / HTTP/1.1\r\nHost: b.example",
        "GET /a\tb HTTP/1.1",
        "GET / HTTP/1.1\r",
        "GET / HTTP/2.0",
        "\r\nGET / HTTP/1.1",
        "GET /x HTTP/1.1\r\nHost: b\r\n\r\nGET / HTTP/1.1",
    ] {
        assert!(!is_known(&mut known, &request(line)), "{line}");
        let _ = read(&mut known, &request(line), MOST);
    }
    assert!(!known.read(&request("GET / HTTP/1.1"), 3, &mut Head::new()), "it has four lines");
    assert_eq!(read(&mut known, &request("GET / HTTP/1.1"), 3), Err(Cause::TooManyHeaders));
    assert!(is_known(&mut known, &request("GET / HTTP/1.1")));
}

#[test]
fn what_is_refused_or_goes_on_is_not_kept() {
    let lines = "Host: a.example:8080\r\nUser-Agent: probe/1.0\r\nAccept: application/json\r\n\r\n";
    for text in [
        format!("GET / HTTP/1.1\r\nTransfer_Encoding: chunked\r\n{lines}"),
        format!("GET / HTTP/1.1\r\nHost: b\r\n{lines}"),
        format!("GET / HTTP/1.0\r\n{lines}"),
        format!("GET http://c/ HTTP/1.1\r\n{lines}"),
        format!("\r\nGET / HTTP/1.1\r\n{lines}"),
        format!("POST / HTTP/1.1\r\nContent-Length: 12\r\n{lines}hello world!"),
        format!("GET / HTTP/1.1\r\n{lines}GET /2 HTTP/1.1\r\n"),
        format!("GET / HTTP/1.1\r\nX: {}\r\n{lines}", "y".repeat(LIMIT)),
    ] {
        let mut known = KnownLines::default();
        for _ in 0..3 {
            let _ = read(&mut known, text.as_bytes(), MOST);
        }
        assert!(known.0.iter().all(|place| place.run.is_empty()), "{text}");
    }
}

proptest! {
    /// Lines of a few kinds behind request lines of a few kinds, over and over: so most of them are known, and nearly the same.
    #[test]
    fn with_what_is_known_every_head_means_what_it_means_without(
        heads in prop::collection::vec((0_usize..9, prop::collection::vec(0_usize..12, 0..7), 0_usize..4), 1..60)
    ) {
        const FIRST: [&str; 9] = [
            "GET / HTTP/1.1", "GET /longer/path HTTP/1.1", "POST /x?y HTTP/1.1", "GET / HTTP/1.0", "OPTIONS * HTTP/1.1",
            "GET http://b/ HTTP/1.1", "CONNECT /a HTTP/1.1", "GET / HTTP/1.1\r\nX: 1", "GET /\x01 HTTP/1.1",
        ];
        const LINES: [&str; 12] = [
            "Host: a\r\n", "Host: b\r\n", "host: a:80\r\n", "Accept: */*\r\n", "Connection: close\r\n", "Content-Length: 3\r\n",
            "Transfer_Encoding: chunked\r\n", "X-Long: 0123456789012345678901234567890123456789\r\n", "Cookie: a=1\r\n",
            "Cookie: a=2\r\n", "X:\t1 \r\n", "Bad Line\r\n",
        ];
        const BEHIND: [&str; 4] = ["", "", "", "abc"];
        let mut known = KnownLines::default();
        for (first, lines, behind) in heads {
            let lines: String = lines.iter().map(|&line| LINES[line]).collect();
            // A line at the end that is always the same, so that many have one place.
            let text = format!("{}\r\n{lines}Host: same.example\r\n\r\n{}", FIRST[first], BEHIND[behind]);
            let _ = read(&mut known, text.as_bytes(), MOST);
            let text = format!("{}\r\nHost: h\r\n{lines}Accept-Language: en, de\r\n\r\n{}", FIRST[first], BEHIND[behind]);
            for _ in 0..2 {
                let _ = read(&mut known, text.as_bytes(), MOST);
            }
        }
    }
}
