use super::*;
use crate::message::Version;
use crate::proxy::http::h2::hpack::{HpackDecoder, encode};

type Lines<'a> = &'a [(&'a str, &'a str)];

const LIMITS: HeadLimits = HeadLimits { size: 512, lines: 8 };

/// What becomes of these lines; of names with a colon in front pseudo-header fields are made.
fn draft(lines: Lines<'_>, ended: bool) -> Result<(Head, Framing), HeadFault> {
    let mut block = Vec::new();
    for (name, value) in lines {
        encode::field(&mut block, name.as_bytes(), value.as_bytes());
    }
    let (mut head, mut space) = (Head::new(), DraftSpace::default());
    let mut draft = RequestDraft::new(&mut head, &mut space, LIMITS);
    HpackDecoder::new(4096).decode(&block, 64 * 1024, |line| draft.line(line)).expect("a good block");
    let framing = draft.finish(ended)?;
    Ok((head, framing))
}

fn text(head: &Head) -> String {
    String::from_utf8_lossy(head.at(head.start_and_lines())).into_owned()
}

/// The usual four, with other values, and what follows them.
fn with<'a>(changed: Lines<'a>, more: Lines<'a>) -> Vec<(&'a str, &'a str)> {
    let usual = [(":method", "GET"), (":scheme", "https"), (":path", "/a?b=c"), (":authority", "x:1")];
    let value = |name: &str, value: &'a str| {
        changed.iter().find(|(other, _)| *other == name).map_or(value, |(_, value)| *value)
    };
    usual
        .iter()
        .map(|&(name, usual)| (name, value(name, usual)))
        .filter(|(_, value)| *value != "-")
        .chain(more.iter().copied())
        .collect()
}

#[test]
fn a_request_is_written_as_http_1_1_writes_it() {
    let (head, framing) = draft(&with(&[], &[("accept", "*/*"), ("x", "")]), true).expect("a request");
    assert_eq!(text(&head), "GET /a?b=c HTTP/1.1\r\nhost: x:1\r\naccept: */*\r\nx: \r\n");
    assert_eq!((framing, head.version), (Framing::None, Version::Http2));
    assert_eq!((head.authority(), head.path()), (&b"x:1"[..], &b"/a?b=c"[..]));
}

#[test]
fn the_length_of_a_body_is_known_or_not_and_never_in_two_ways() {
    let of = |lines: Lines<'_>, ended| {
        draft(&with(&[(":method", "POST")], lines), ended).map(|(_, framing)| framing)
    };
    assert_eq!(of(&[], false), Ok(Framing::Chunked));
    assert_eq!(of(&[], true), Ok(Framing::None));
    assert_eq!(of(&[("content-length", "5")], false), Ok(Framing::Length(5)));
    assert_eq!(of(&[("content-length", "0")], false), Ok(Framing::Length(0)));
    assert_eq!(of(&[("content-length", "0")], true), Ok(Framing::None));
    let bad = Err(HeadFault::Malformed(Cause::BadLength));
    for lines in [
        &[("content-length", "5")][..],
        &[("content-length", "-1")],
        &[("content-length", "1, 1")],
        &[("content-length", "")],
        &[("content-length", "0"), ("content-length", "0")],
    ] {
        assert_eq!(of(lines, true), bad, "{lines:?}");
    }
    assert_eq!(of(&[("content-length", "5"), ("content-length", "5")], false), bad);
}

#[test]
fn crumbs_of_cookies_are_one_line_in_their_order() {
    let lines = [("cookie", "a=1"), ("x", "y"), ("cookie", "b=2"), ("cookie", "c=3")];
    let (head, _) = draft(&with(&[], &lines), true).expect("a request");
    assert!(text(&head).ends_with("x: y\r\ncookie: a=1; b=2; c=3\r\n"), "{}", text(&head));
    assert!(head.has(HeaderField::Cookie) && !head.repeats(HeaderField::Cookie));
}

#[test]
fn host_and_authority_say_the_same_and_one_of_them_is_enough() {
    let (head, _) = draft(&with(&[], &[("host", "X:1")]), true).expect("the same host");
    assert_eq!(text(&head), "GET /a?b=c HTTP/1.1\r\nhost: x:1\r\n");
    let (head, _) = draft(&with(&[(":authority", "-")], &[("host", "y")]), true).expect("a host");
    assert_eq!((text(&head).as_str(), head.authority()), ("GET /a?b=c HTTP/1.1\r\nhost: y\r\n", &b"y"[..]));
    let bad = Err(HeadFault::Malformed(Cause::BadHost));
    for lines in [
        with(&[], &[("host", "y")]),
        with(&[], &[("host", "x")]),
        with(&[(":authority", "-")], &[]),
        with(&[(":authority", "-")], &[("host", "y"), ("host", "y")]),
        with(&[(":authority", "")], &[]),
        with(&[(":authority", "a@x")], &[]),
        with(&[(":authority", "x y")], &[]),
        with(&[(":authority", "x/y")], &[]),
        with(&[(":authority", "x:1,y")], &[]),
        with(&[(":authority", "-")], &[("host", "a@y")]),
    ] {
        assert_eq!(draft(&lines, true).map(|_| ()), bad, "{lines:?}");
    }
}

#[test]
fn what_would_be_another_request_with_http_1_1_is_malformed() {
    let repeated = |name| with(&[], &[]).into_iter().chain([(name, "x")]).collect::<Vec<_>>();
    let late = |name, value| {
        let usual = with(&[], &[]).into_iter().filter(|(other, _)| *other != name);
        usual.chain([("x", "y"), (name, value)]).collect::<Vec<_>>()
    };
    for lines in [
        with(&[(":path", "/a HTTP/1.1")], &[]),
        with(&[(":path", "/a b")], &[]),
        with(&[(":path", "/a#b")], &[]),
        with(&[(":path", "/a\tb")], &[]),
        with(&[(":path", "")], &[]),
        with(&[(":path", "a")], &[]),
        with(&[(":path", "*")], &[]),
        with(&[(":path", "http://y/")], &[]),
        with(&[(":path", "-")], &[]),
        with(&[(":method", "")], &[]),
        with(&[(":method", "-")], &[]),
        with(&[(":method", "GET /b")], &[]),
        with(&[(":method", "G(T")], &[]),
        with(&[(":scheme", "-")], &[]),
        with(&[(":scheme", "ftp")], &[]),
        with(&[(":method", "CONNECT")], &[]),
        repeated(":method"),
        repeated(":path"),
        repeated(":scheme"),
        repeated(":authority"),
        late(":path", "/"),
        late(":authority", "x:1"),
        with(&[], &[(":status", "200")]),
        with(&[], &[(":protocol", "websocket")]),
        with(&[], &[(":other", "x")]),
        with(&[], &[("connection", "close")]),
        with(&[], &[("keep-alive", "timeout=1")]),
        with(&[], &[("proxy-connection", "close")]),
        with(&[], &[("transfer-encoding", "chunked")]),
        with(&[], &[("upgrade", "websocket")]),
        with(&[], &[("te", "gzip")]),
        with(&[], &[("te", "trailers, gzip")]),
        with(&[], &[("content_length", "5")]),
        with(&[], &[("transfer_encoding", "chunked")]),
        with(&[], &[("x", "a\u{1}b")]),
        with(&[], &[("x", " a")]),
        with(&[], &[("x", "a\t")]),
        with(&[], &[("x y", "a")]),
        with(&[], &[("", "a")]),
    ] {
        assert_eq!(draft(&lines, true).map(|_| ()), Err(BAD), "{lines:?}");
    }
}

#[test]
fn connect_is_known_by_its_name_and_options_of_the_server_by_its_star() {
    let connect = [(":method", "CONNECT"), (":authority", "x:443")];
    let (head, _) = draft(&connect, false).expect("well-formed");
    assert_eq!((head.method(), head.authority()), (&b"CONNECT"[..], &b"x:443"[..]));
    let (head, _) = draft(&with(&[(":method", "OPTIONS"), (":path", "*")], &[]), true).expect("well-formed");
    assert_eq!(text(&head), "OPTIONS * HTTP/1.1\r\nhost: x:1\r\n");
}

#[test]
fn te_may_say_trailers() {
    let (head, _) = draft(&with(&[], &[("te", "trailers")]), true).expect("a request");
    assert!(head.lists(HeaderField::Te, b"trailers"));
}

#[test]
fn what_is_too_much_is_told_and_what_is_malformed_counts_more() {
    let of = |lines: &[(&str, &str)]| draft(&with(&[], lines), true).map(|_| ());
    let long = "v".repeat(500);
    assert_eq!(of(&[("x", &long)]), Err(HeadFault::Refused(Cause::HeadTooLarge)));
    assert_eq!(of(&[("cookie", &long)]), Err(HeadFault::Refused(Cause::HeadTooLarge)));
    let many = [("x", "y"); 9];
    assert_eq!(of(&many[..8]), Ok(()));
    assert_eq!(of(&many), Err(HeadFault::Refused(Cause::TooManyHeaders)));
    assert_eq!(of(&[("cookie", "a"); 9]), Err(HeadFault::Refused(Cause::TooManyHeaders)), "crumbs are lines");
    let path = format!("/{long}{long}");
    let path = [(":path", path.as_str())];
    assert_eq!(draft(&with(&path, &[]), true).map(|_| ()), Err(HeadFault::Refused(Cause::TargetTooLong)));
    assert_eq!(of(&[("x", &long), ("upgrade", "x")]), Err(BAD));
}

#[test]
fn a_trailer_section_holds_nothing_that_frames_or_routes() {
    let of = |lines: Lines<'_>| {
        let mut block = Vec::new();
        lines.iter().for_each(|(name, value)| encode::field(&mut block, name.as_bytes(), value.as_bytes()));
        let mut draft = TrailersDraft::default();
        HpackDecoder::new(4096).decode(&block, 64 * 1024, |line| draft.line(line)).expect("a good block");
        draft.finish().map(|lines| String::from_utf8_lossy(&lines).into_owned())
    };
    assert_eq!(of(&[("grpc-status", "0"), ("x", "y")]).as_deref(), Some("grpc-status: 0\r\nx: y\r\n"));
    assert_eq!(of(&[]).as_deref(), Some(""));
    for name in [
        ":path",
        "host",
        "content-length",
        "content_length",
        "transfer-encoding",
        "connection",
        "te",
        "x-forwarded-for",
        "x_forwarded_for",
        "a b",
    ] {
        assert_eq!(of(&[("x", "y"), (name, "1")]), None, "{name}");
    }
    let long = "v".repeat(5000);
    assert_eq!(of(&[("x", &long), ("y", &long)]), None, "so long a section");
}

/// RFC 8441 §4.
#[test]
fn a_websocket_is_asked_for_as_http_1_1_does_it_and_only_whole() {
    let connect = [(":method", "CONNECT")];
    let with_protocol = |protocol: &'static str, more: Lines<'static>| {
        let mut lines = with(&connect, &[]);
        lines.push((":protocol", protocol));
        lines.extend_from_slice(more);
        lines
    };
    let more = &[("sec-websocket-version", "13"), ("sec-websocket-key", "theirs"), ("cookie", "a=b")];
    for ended in [false, true] {
        let (head, framing) = draft(&with_protocol("websocket", more), ended).expect("a request");
        let expected = "GET /a?b=c HTTP/1.1\r\nhost: x:1\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\ncookie: a=b\r\n";
        assert_eq!((text(&head).as_str(), framing), (expected, Framing::None));
        assert!(head.has(HeaderField::Upgrade));
    }
    let refused = draft(&with_protocol("connect-udp", &[]), false).map(|_| ());
    assert_eq!(refused, Err(HeadFault::Refused(Cause::ConnectMethod)));
    let malformed = |lines: Lines<'_>| {
        let outcome = draft(lines, false).map(|(head, _)| text(&head));
        assert!(matches!(outcome, Err(HeadFault::Malformed(_))), "{lines:?}: {outcome:?}");
    };
    // Another method, a part that is missing, one that is there twice, and what it must not have.
    malformed(&[with(&[], &[]), vec![(":protocol", "websocket")]].concat());
    for missing in [":scheme", ":path", ":authority"] {
        let lines = with_protocol("websocket", &[]);
        let lines: Vec<_> = lines.into_iter().filter(|(name, _)| *name != missing).collect();
        malformed(&lines);
    }
    malformed(&[with_protocol("websocket", &[]), vec![(":protocol", "websocket")]].concat());
    malformed(&[with(&connect, &[("a", "b")]), vec![(":protocol", "websocket")]].concat());
    for line in [
        ("upgrade", "websocket"),
        ("connection", "upgrade"),
        ("content-length", "5"),
        ("content-length", "0"),
    ] {
        malformed(&[with_protocol("websocket", &[]), vec![line]].concat());
    }
    malformed(
        &[with(&[(":method", "CONNECT"), (":path", "*")], &[]), vec![(":protocol", "websocket")]].concat(),
    );
}
