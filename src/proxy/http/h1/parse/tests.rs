//! Heads that are read, and heads that are refused.

use super::*;

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
