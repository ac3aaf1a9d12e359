//! Heads that are read, and heads that are refused.

use proptest::prelude::{Strategy, any, proptest};
use proptest::sample::select;

use super::super::search::Search;
use super::*;

mod oracle;

fn parse(text: &str) -> Result<Head, Cause> {
    let mut head = Head::new();
    let length = Search::default().find(text.as_bytes(), 32 * 1024)?.ok_or(Cause::HeadTimeout)?;
    request(&text.as_bytes()[..length], 100, &mut head)?;
    Ok(head)
}

fn refuse(text: &str) -> Cause {
    parse(text).expect_err(text)
}

#[test]
fn a_plain_request_is_indexed() {
    let head = parse("GET /a?b HTTP/1.1\r\nHost: x:80\r\nAccept:*/*  \r\nEmpty:\r\n\r\n").expect("valid");
    assert_eq!((head.method(), head.path(), head.authority()), (&b"GET"[..], &b"/a?b"[..], &b"x:80"[..]));
    assert_eq!((head.named("accept"), head.named("empty")), (Some(&b"*/*"[..]), Some(&b""[..])));
    assert_eq!(head.version, Version::Http11);
}

#[test]
fn line_ends_are_crlf_and_one_empty_line_may_lead() {
    for bad in [
        "GET / HTTP/1.1\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\n\r\n",
        "\nGET / HTTP/1.1\r\n\r\n",
        "\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\n\n",
        " GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
    ] {
        assert_eq!(refuse(bad), Cause::BadHead, "{bad:?}");
    }
    assert!(parse("\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n").is_ok());
}

#[test]
fn versions() {
    assert_eq!(refuse("GET / HTTP/2.0\r\nHost: x\r\n\r\n"), Cause::BadVersion);
    assert_eq!(refuse("GET / HTTP/1.2\r\nHost: x\r\n\r\n"), Cause::BadVersion);
    assert_eq!(refuse("GET / HTTP/01.1\r\nHost: x\r\n\r\n"), Cause::BadHead);
    assert_eq!(refuse("GET / http/1.1\r\nHost: x\r\n\r\n"), Cause::BadHead);
    assert_eq!(refuse("GET /\r\nHost: x\r\n\r\n"), Cause::BadHead);
    assert!(parse("GET / HTTP/1.0\r\n\r\n").is_ok());
}

#[test]
fn targets_have_four_forms() {
    for bad in [
        "GET  / HTTP/1.1",
        "GET /a b HTTP/1.1",
        "GET /#a HTTP/1.1",
        "GET /<a> HTTP/1.1",
        "GET /\"a HTTP/1.1",
        "GET a HTTP/1.1",
        "GET * HTTP/1.1",
        "G(T / HTTP/1.1",
        "GET /\u{e9} HTTP/1.1",
        "GET ftp://x/ HTTP/1.1",
    ] {
        assert_eq!(refuse(&format!("{bad}\r\nHost: x\r\n\r\n")), Cause::BadHead, "{bad:?}");
    }
    let head = parse("GET http://a:1/p?q HTTP/1.1\r\nHost: b\r\n\r\n").expect("absolute form");
    assert_eq!((head.authority(), head.path()), (&b"a:1"[..], &b"/p?q"[..]));
    assert_eq!(parse("GET http://a HTTP/1.1\r\nHost: b\r\n\r\n").expect("no path").path(), b"");
    assert_eq!(parse("OPTIONS * HTTP/1.1\r\nHost: b\r\n\r\n").expect("star").path(), b"*");
    assert_eq!(refuse("GET http://u@a/ HTTP/1.1\r\nHost: b\r\n\r\n"), Cause::BadHost);
}

#[test]
fn exactly_one_valid_host() {
    for bad in [
        "",
        "Host: a\r\nHost: a\r\n",
        "Host:\r\n",
        "Host: a b\r\n",
        "Host: a/b\r\n",
        "Host: u@a\r\n",
        "Host: a:b\r\n",
        "Host: a:1:2\r\n",
        "Host: [::1\r\n",
        "Host: [x]\r\n",
        "Host: a,b:99999999\r\n",
    ] {
        assert_eq!(refuse(&format!("GET / HTTP/1.1\r\n{bad}\r\n")), Cause::BadHost, "{bad:?}");
    }
    assert!(parse("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n").is_ok());
}

#[test]
fn names_are_tokens_directly_before_the_colon() {
    for bad in ["A : b", ": b", "A", "A\0: b", "A: b\0c", "A: b\x7f", "Content-Length\u{a0}: 3", " A: b"] {
        assert_eq!(refuse(&format!("GET / HTTP/1.1\r\nHost: x\r\n{bad}\r\n\r\n")), Cause::BadHead, "{bad:?}");
    }
}

#[test]
fn limits_name_what_was_too_long() {
    let mut head = Head::new();
    let many = format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "A: b\r\n".repeat(100));
    assert_eq!(request(many.as_bytes(), 100, &mut head), Err(Cause::TooManyHeaders));
    assert_eq!(request(many.as_bytes(), 101, &mut head), Ok(()));
    let wide = format!("GET / HTTP/1.1\r\nHost: x\r\n{}\r\n", "A: b\r\n".repeat(300));
    assert_eq!(request(wide.as_bytes(), 301, &mut head), Ok(()));
    let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(2000));
    assert_eq!(Search::default().find(long.as_bytes(), 1024), Err(Cause::TargetTooLong));
    assert_eq!(Search::default().find(many.as_bytes(), 256), Err(Cause::HeadTooLarge));
}

#[test]
fn a_head_that_drips_in_is_found_where_a_whole_one_is() {
    let text = b"\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\nrest";
    let mut search = Search::default();
    let found = (0..text.len()).find_map(|end| search.find(&text[..end], 1024).expect("valid"));
    assert_eq!(found, Some(text.len() - 4));
}

#[test]
fn what_cannot_begin_a_head_is_refused_before_its_line_ends() {
    for begin in [&b"\x16\x03\x01"[..], b"\n", b" GET", b"\0"] {
        assert_eq!(Search::default().find(begin, 1024), Err(Cause::BadHead), "{begin:?}");
    }
    for begin in [&b""[..], b"\r", b"G"] {
        assert_eq!(Search::default().find(begin, 1024), Ok(None), "{begin:?}");
    }
}

#[test]
fn common_lines_and_others_are_limited_alike() {
    // A colon without a blank behind it makes a line an uncommon one; so does the end of what was read.
    for line in ["Accept: anything at all\r\n", "Accept:anything at all\r\n"] {
        for behind in ["\r\n", "\r\nmore than a block of another request"] {
            let text = format!("GET / HTTP/1.0\r\n{}{behind}", line.repeat(5));
            for most in 0..8 {
                let judged = Search::default().request(text.as_bytes(), 1024, most, &mut Head::new());
                let length = text.len() - behind.len() + 2;
                assert_eq!(judged, if most < 5 { Err(Cause::TooManyHeaders) } else { Ok(Some(length)) });
            }
        }
    }
}

#[test]
fn a_line_is_read_alike_however_long_its_parts_are_and_whatever_is_behind_it() {
    for name in 1..19 {
        for value in 0..36 {
            for (before, after) in
                [(" ", ""), ("", ""), ("  ", ""), (" \t", ""), (" ", " "), (" ", "\t "), (" ", "\0")]
            {
                let line = format!("{}:{before}{}{after}\r\n", "n".repeat(name), "v".repeat(value));
                for behind in ["", "Connection: close\r\nAccept: the rest of a head\r\n"] {
                    let text = format!("GET / HTTP/1.1\r\nHost: x\r\n{line}{behind}\r\n");
                    let (mut ours, mut theirs) = (Head::new(), Head::new());
                    let judged = request(text.as_bytes(), 9, &mut ours);
                    assert_eq!(judged, oracle::request(text.as_bytes(), 9, &mut theirs), "{text:?}");
                    if judged.is_ok() {
                        assert_eq!(
                            (ours.lines(), ours.fields()),
                            (theirs.lines(), theirs.fields()),
                            "{text:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn answers_may_have_more_lines_than_fit_on_the_stack_but_not_any_number() {
    let mut head = Head::new();
    let with = |count: usize| format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(count));
    assert_eq!(answer(with(300).as_bytes(), &mut head), Ok(()));
    assert_eq!(head.lines().len(), 300);
    assert_eq!(answer(with(600).as_bytes(), &mut head), Err(Cause::BadAnswer));
}

#[test]
fn answers_are_as_strict() {
    let mut head = Head::new();
    assert_eq!(answer(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n", &mut head), Ok(()));
    assert_eq!((head.status, head.reason()), (200, &b"OK"[..]));
    assert_eq!(answer(b"HTTP/1.0 404\r\n\r\n", &mut head), Ok(()));
    assert_eq!((head.status, head.reason(), head.version), (404, &b""[..], Version::Http10));
    for bad in [
        &b"HTTP/1.1 099 No\r\n\r\n"[..],
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/2.0 200 OK\r\n\r\n",
        b"ICY 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\0\r\n\r\n",
        b"\r\nHTTP/1.1 200 OK\r\n\r\n",
    ] {
        assert_eq!(answer(bad, &mut head), Err(Cause::BadAnswer), "{:?}", String::from_utf8_lossy(bad));
    }
}

#[test]
fn what_was_looked_at_is_not_looked_at_again() {
    let mut search = Search::default();
    let mut line = format!("GET /{}", "a".repeat(5000)).into_bytes();
    let mut head = Head::new();
    assert_eq!(search.request(&line, 64 * 1024, 100, &mut head), Ok(None));
    // Whoever looked again would see the end of a line.
    line[100..104].copy_from_slice(b"\r\n\r\n");
    for _ in 0..3 {
        line.extend_from_slice(&[b'a'; 100]);
        assert_eq!(search.find(&line, 64 * 1024), Ok(None));
        assert_eq!(search.request(&line, 64 * 1024, 100, &mut head), Ok(None));
    }
}

#[test]
fn a_head_in_one_piece_is_read_up_to_its_end_and_within_its_limit() {
    let text = b"\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\nPOST / HTTP/1.1\r\n";
    let length = text.len() - "POST / HTTP/1.1\r\n".len();
    let read = |limit| Search::default().request(text, limit, 100, &mut Head::new());
    assert_eq!(read(1024), Ok(Some(length)));
    assert_eq!(read(length), Ok(Some(length)));
    assert_eq!(read(length - 1), Err(Cause::HeadTooLarge));
    assert_eq!(read(1), Err(Cause::TargetTooLong));
    assert_eq!(read(0), Err(Cause::TargetTooLong));
    let text = b"HTTP/1.1 200 OK\r\n\r\nbody";
    let read = |limit| Search::default().answer(text, limit, &mut Head::new());
    assert_eq!((read(1024), read(19), read(18)), (Ok(Some(19)), Ok(Some(19)), Err(Cause::BadAnswer)));
}

#[test]
fn a_complete_head_ends_where_it_was_said_to_end() {
    let mut head = Head::new();
    assert_eq!(request(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n!", 100, &mut head), Err(Cause::BadHead));
    assert_eq!(answer(b"HTTP/1.1 200 OK\r\n\r\n!", &mut head), Err(Cause::BadAnswer));
}

#[test]
fn causes_come_in_the_order_lines_target_aliases_host() {
    for (text, cause) in [
        ("CONNECT / HTTP/1.1\r\nA : b\r\n\r\n", Cause::BadHead),
        ("CONNECT / HTTP/1.1\r\nContent_Length: 1\r\n\r\n", Cause::ConnectMethod),
        ("GET / HTTP/1.1\r\nContent_Length: 1\r\n\r\n", Cause::BadHead),
        ("GET http:/// HTTP/1.1\r\n\r\n", Cause::BadHost),
    ] {
        assert_eq!(refuse(text), cause, "{text:?}");
    }
}

const REQUESTS: &[&str] = &[
    "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "\r\nPOST /a?b HTTP/1.0\r\nHost:x:80\r\nContent-Length: 3\r\nX_Forwarded_For: 1\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: [::1]:80 \r\nConnection: \tclose, x\r\nX-1!: \t \r\nE:\r\n\r\n",
    "GET http://a%20b:1/p?q HTTP/1.1\r\nHost: b\r\nUser-Agent: Mozilla/5.0 (\u{e9})\r\nTE:trailers\r\n\r\n",
    "CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nProxy-Authorization: b  c\r\nX-Forwarded-Client-Cert: d\r\n\r\n",
];

const ANSWERS: &[&str] = &[
    "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\n",
    "HTTP/1.0 404\r\nServer: a\r\n\r\n",
    "HTTP/1.1 299 \r\nTransfer-Encoding:chunked \r\nKeep-Alive: timeout=5\r\n\r\n",
];

/// What is put in the place of so many bytes, somewhere.
type Change = (usize, usize, &'static [u8]);

/// One of the texts, changed in a few places so that it may still be a head, with something behind it.
fn changed(texts: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    const PIECES: &[&[u8]] = &[
        b"",
        b"",
        b" ",
        b"\t",
        b"\r\n",
        b"\r",
        b"\n",
        b":",
        b"\0",
        b"\x7f",
        b"\x80",
        b"\xff",
        b"a",
        b"Z",
        b"-",
        b"_",
        b"#",
        b"\"",
        b"<",
        b"/",
        b"?",
        b"@",
        b"[",
        b"]",
        b"%",
        b"%41",
        b"0",
        b"1",
        b"2",
        b"9",
        b",",
        b"HTTP/1.1",
        b"HTTP/2.0",
        b"A: b\r\n",
        b"Host: y\r\n",
        b"Host",
        b"A: b\r\nC: d\r\nE: f\r\n",
        b"content_length: 1\r\n",
        b" \r\n b",
    ];
    const BEHIND: &[&[u8]] = &[b"", b"x", b"GET / HTTP/1.1\r\n\r\n"];
    let change = (any::<usize>(), 0..3usize, select(PIECES));
    let changes = proptest::collection::vec(change, 0..4);
    (select(texts), changes, select(BEHIND)).prop_map(|(text, changes, behind)| {
        let mut bytes = text.as_bytes().to_vec();
        for (at, count, piece) in changes as Vec<Change> {
            let at = at % (bytes.len() + 1);
            let end = (at + count).min(bytes.len());
            bytes.splice(at..end, piece.iter().copied());
        }
        bytes.extend_from_slice(behind);
        bytes
    })
}

/// The outcome of two readers of one head.
fn same(ours: Result<(), Cause>, theirs: Result<(), Cause>, heads: (&Head, &Head)) {
    match (ours, theirs) {
        // We stop at a target that holds what none may; httparse may find more behind it.
        (Err(Cause::BadHead), Err(Cause::BadVersion | Cause::TooManyHeaders)) => {}
        _ => assert_eq!(ours, theirs),
    }
    if ours.is_ok() {
        assert_eq!(format!("{:?}", heads.0), format!("{:?}", heads.1));
    }
}

/// Reads `bytes` as they grow by `step`.
fn in_pieces<T>(
    bytes: &[u8],
    step: usize,
    mut read: impl FnMut(&[u8]) -> Result<Option<T>, Cause>,
) -> Option<T> {
    let mut ends = (step..bytes.len()).step_by(step).chain([bytes.len()]);
    ends.find_map(|end| read(&bytes[..end]).map_or(Some(None), |found| found.map(Some))).flatten()
}

proptest! {
    #![proptest_config(proptest::test_runner::Config::with_cases(4000))]

    #[test]
    fn requests_are_read_as_another_reader_reads_them(bytes in changed(REQUESTS), limit in 20usize..400) {
        let (mut ours, mut theirs) = (Head::new(), Head::new());
        let found = Search::default().find_within(&bytes, limit, 6);
        let expected = match found {
            Ok(Some(length)) => {
                let judged = request(&bytes[..length], 6, &mut ours);
                same(judged, oracle::request(&bytes[..length], 6, &mut theirs), (&ours, &theirs));
                judged.map(|()| Some(length))
            }
            other => other,
        };
        let mut head = Head::request("POST", "/used", "used");
        assert_eq!(Search::default().request(&bytes, limit, 6, &mut head), expected);
        if expected.is_ok_and(|found| found.is_some()) {
            assert_eq!(format!("{head:?}"), format!("{ours:?}"));
        }
        for step in [1, 7, 50] {
            let mut search = Search::default();
            let read = |part: &[u8]| search.request(part, limit, 6, &mut head);
            assert_eq!(in_pieces(&bytes, step, read), expected.ok().flatten(), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn answers_are_read_as_another_reader_reads_them(bytes in changed(ANSWERS), limit in 20usize..400) {
        let (mut ours, mut theirs) = (Head::new(), Head::new());
        let expected = match Search::default().find(&bytes, limit) {
            Ok(Some(length)) => {
                let judged = answer(&bytes[..length], &mut ours);
                same(judged, oracle::answer(&bytes[..length], &mut theirs), (&ours, &theirs));
                judged.map(|()| Some(length))
            }
            other => other.map_err(|_| Cause::BadAnswer),
        };
        let mut head = Head::request("POST", "/used", "used");
        assert_eq!(Search::default().answer(&bytes, limit, &mut head), expected);
        for step in [1, 7, 50] {
            let mut search = Search::default();
            let read = |part: &[u8]| search.answer(part, limit, &mut head);
            assert_eq!(in_pieces(&bytes, step, read), expected.ok().flatten(), "{}", bytes.escape_ascii());
        }
    }
}

/// Each of them is looked through several times, and what Connection names is compared with every line.
#[test]
fn lists_that_nobody_needs_are_refused() {
    let of = |lines: &str| {
        let mut head = Head::new();
        let answered = answer(format!("HTTP/1.1 200 OK\r\n{lines}\r\n").as_bytes(), &mut head);
        let asked = request(format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n").as_bytes(), 100, &mut head);
        assert_eq!(asked.is_ok(), answered.is_ok(), "{lines}");
        asked
    };
    for (item, most) in [("a,", 32), (",", 32), (" ,", 32), ("Upgrade, ", 32)] {
        assert_eq!(
            of(&format!("Connection: {}\r\n", &item.repeat(most).trim_end_matches([',', ' ']))),
            Ok(())
        );
        assert_eq!(
            of(&format!("Connection: {}b\r\n", item.repeat(most))),
            Err(Cause::HeadTooLarge),
            "{item}"
        );
    }
    assert_eq!(of(&"Connection: a\r\n".repeat(32)), Ok(()));
    assert_eq!(of(&"Connection: a\r\n".repeat(33)), Err(Cause::HeadTooLarge));
    for name in ["Connection", "Keep-Alive", "TE", "Transfer-Encoding", "Upgrade"] {
        assert_eq!(of(&format!("{name}: {}\r\n", "a".repeat(1024))), Ok(()), "{name}");
        assert_eq!(of(&format!("{name}: {}\r\n", "a".repeat(1025))), Err(Cause::HeadTooLarge), "{name}");
    }
    assert_eq!(of(&format!("Cookie: {}\r\n", "a,".repeat(5000))), Ok(()));
}

#[test]
fn a_host_is_no_longer_than_any_name() {
    for (length, good) in [(1024, true), (1025, false)] {
        assert_eq!(is_authority(&b"a".repeat(length)), good, "{length}");
    }
}
