//! A head may come in any pieces, and what was found in it must lie in it.

use evenkeel::message::{Cause, Head};
use evenkeel::proxy::http::h1::classes::{is_control, is_token};
use evenkeel::proxy::http::h1::framing;
use evenkeel::proxy::http::h1::known_lines::KnownLines;
use evenkeel::proxy::http::h1::parse;
use evenkeel::proxy::http::h1::search::Search;

use crate::ours::{HEAD_SIZE, HEADERS};

/// A small limit, so that inputs of a few hundred bytes meet it.
const SMALL: usize = 192;

/// Any bytes as a request's head.
pub fn request_head(bytes: &[u8]) {
    known_again(bytes);
    let Some(length) = find(bytes) else { return };
    for headers in [HEADERS, 3, 200] {
        let mut head = Head::new();
        let outcome = parse::request(&bytes[..length], headers, &mut head);
        read_again(&outcome, &mut head, |head| parse::request(&bytes[..length], headers, head));
        let Err(cause) = outcome else {
            assert!(head.lines().len() <= headers, "{} lines", head.lines().len());
            well_formed(&head, bytes, length);
            request_line(&head);
            let _ = framing::request(&head);
            continue;
        };
        // What a client is told is its own fault, never ours or a backend's.
        assert!((400..=505).contains(&cause.status()) && cause.status() != 500, "{cause:?}");
    }
}

/// Any bytes as the head of an answer.
pub fn response_head(bytes: &[u8]) {
    let Some(length) = find(bytes) else { return };
    let mut head = Head::new();
    let outcome = parse::answer(&bytes[..length], &mut head);
    read_again(&outcome, &mut head, |head| parse::answer(&bytes[..length], head));
    if let Err(cause) = outcome {
        assert_eq!(cause, Cause::BadAnswer);
        return;
    }
    well_formed(&head, bytes, length);
    assert!((100..=999).contains(&head.status), "status {}", head.status);
    assert!(head.method().is_empty() && head.target().is_empty());
    assert!(!head.reason().iter().any(|&byte| is_control(byte)), "{:?}", head.reason());
    for to_head in [false, true] {
        let _ = framing::answer(&head, to_head);
    }
}

/// The length of the head at the start of `bytes`. In whatever pieces it came, it is found or refused alike.
fn find(bytes: &[u8]) -> Option<usize> {
    // A long line is looked through again with each piece.
    let steps: &[usize] = if bytes.len() <= 4096 { &[1, 2, 3, 7, 64] } else { &[61, 1000] };
    for limit in [HEAD_SIZE, SMALL] {
        let at_once = Search::default().find(bytes, limit);
        for &step in steps {
            let mut search = Search::default();
            let mut found = Ok(None);
            let mut end = 0;
            while end < bytes.len() && found == Ok(None) {
                end = (end + step).min(bytes.len());
                found = search.find(&bytes[..end], limit);
            }
            // Of two faults in one head, which is named may depend on how far it has come.
            assert_eq!(found.ok(), at_once.ok(), "{limit} bytes at most, in steps of {step}");
        }
        if let Ok(Some(length)) = at_once {
            assert!(length <= limit && bytes[..length].ends_with(b"\r\n\r\n"), "length {length}");
        }
    }
    Search::default().find(bytes, HEAD_SIZE).ok().flatten()
}

/// A head that held something before reads like a new one.
fn read_again(first: &Result<(), Cause>, head: &mut Head, parse: impl Fn(&mut Head) -> Result<(), Cause>) {
    let mut used = Head::request("POST", "/used", "used");
    used.push(b"Connection", b"close");
    used.push(b"X-Forwarded-For", b"1");
    assert_eq!(parse(&mut used), *first);
    if first.is_ok() {
        assert_eq!(format!("{used:?}"), format!("{head:?}"));
    }
}

/// Whatever came before, a head means what it means alone: itself, and its lines behind another request line and with one more before them.
fn known_again(bytes: &[u8]) {
    let lines = bytes.windows(2).position(|end| end == b"\r\n").map_or(bytes, |end| &bytes[end + 2..]);
    let behind = |line: &[u8]| [line, lines].concat();
    let heads =
        [bytes.to_vec(), behind(b"GET /known HTTP/1.1\r\n"), behind(b"PUT /k HTTP/1.1\r\nX-One: more\r\n")];
    let mut known = KnownLines::default();
    for turn in 0..9 {
        // In this order each follows each, and itself.
        let head = &heads[[0, 0, 0, 1, 1, 1, 2, 0, 2][turn]];
        for (limit, headers) in [(HEAD_SIZE, HEADERS), (SMALL, 3)] {
            let (mut one, mut other) = (Head::request("POST", "/used", "used"), Head::new());
            let found = Search::default().request_among(&mut known, head, limit, headers, &mut one);
            assert_eq!(found, Search::default().request(head, limit, headers, &mut other), "turn {turn}");
            if matches!(found, Ok(Some(_))) {
                assert_eq!(format!("{one:?}"), format!("{other:?}"), "turn {turn}");
            }
        }
    }
}

/// The lines tile the bytes, and hold nothing that ends a line.
fn well_formed(head: &Head, bytes: &[u8], length: usize) {
    let mut text = Vec::new();
    for line in head.lines() {
        let (name, value) = head.pair(line);
        assert!(!name.is_empty() && name.iter().all(|&byte| is_token(byte)), "{name:?}");
        assert!(!value.iter().any(|&byte| is_control(byte)), "{value:?}");
        assert_eq!(value, value.trim_ascii(), "blanks are no part of a value");
        assert!(head.named(&String::from_utf8_lossy(name)).is_some());
        text.extend_from_slice(head.at(line.whole()));
    }
    text.extend_from_slice(b"\r\n");
    assert!(bytes[..length].ends_with(&text), "the lines are not those of the head");
}

/// Method, target, path and authority are what a request line may hold.
fn request_line(head: &Head) {
    let visible = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_graphic);
    assert!(!head.method().is_empty() && head.method().iter().all(|&byte| is_token(byte)));
    assert!(!head.target().is_empty() && visible(head.target()), "{:?}", head.target());
    assert!(visible(head.path()) && !head.path().contains(&b'#'), "{:?}", head.path());
    assert!(head.authority().is_empty() || parse::is_authority(head.authority()), "{:?}", head.authority());
    assert_eq!(head.status, 0);
}
