//! Heads as they are written.

use std::sync::LazyLock;

use super::*;

static ABOUT: LazyLock<About<'static>> = LazyLock::new(|| About {
    kind: Forwarded::XForwarded,
    client: Some(client("192.0.2.7")),
    trusted: false,
    real_ip: None,
    scheme: "http",
    certificate: b"",
    id: 0xab,
    retry: 0,
    trace: None,
});

fn client(text: &str) -> &'static ClientAddress {
    Box::leak(Box::new(ClientAddress::new(text.parse().expect("an address"), 4711)))
}

fn written(text: &str, about: &About<'_>, upgrade: Option<&[u8]>) -> String {
    let mut head = Head::new();
    super::super::parse::request(text.as_bytes(), 100, &mut head).expect("valid");
    let framing = super::super::framing::request(&head).expect("valid");
    let mut out = Vec::new();
    request(&mut out, &head, framing, upgrade, about, None, Host::Pass { missing: "b:1" });
    String::from_utf8(out).expect("ascii")
}

const TAIL: &str = "Via: 1.1 evenkeel\r\nX-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: x\r\nX-Request-Id: 000000000000000000000000000000ab\r\n\r\n";

#[test]
fn untouched_lines_are_copied_as_they_are() {
    let out = written("GET /a HTTP/1.1\r\nHost:  x\r\naCCept: */* \r\n\r\n", &ABOUT, None);
    assert_eq!(out, format!("GET /a HTTP/1.1\r\nHost:  x\r\naCCept: */* \r\n{TAIL}"));
}

#[test]
fn what_is_copied_in_one_piece_is_what_is_copied_run_by_run() {
    let mut head = Head::new();
    for lines in ["Host: x\r\n", "A:b\r\nHost: x\r\nContent-Length: 1\r\nC: \r\n"] {
        super::super::parse::request(format!("GET /a HTTP/1.1\r\n{lines}\r\n").as_bytes(), 9, &mut head)
            .expect("valid");
        let mut out = Vec::new();
        copy_changed(&mut out, &head, &ABOUT, None);
        assert_eq!(out, head.at(head.start_and_lines()));
        super::super::parse::answer(format!("HTTP/1.1 200 OK\r\n{lines}\r\n").as_bytes(), &mut head)
            .expect("valid");
        out.clear();
        copy_changed_answer(&mut out, &head, Framing::None);
        assert_eq!(out, head.at(head.start_and_lines()));
    }
}

#[test]
fn the_common_end_says_what_the_merged_one_says() {
    for host in ["Host: x:80\r\n", ""] {
        let mut head = Head::new();
        super::super::parse::request(format!("GET / HTTP/1.0\r\n{host}\r\n").as_bytes(), 9, &mut head)
            .expect("valid");
        for scheme in ["http", "https"] {
            for client in [None, Some("192.0.2.7"), Some("::ffff:192.0.2.7"), Some("2001:db8::1")] {
                let client = client.map(self::client);
                let about = About { client, scheme, ..*ABOUT };
                let (mut common, mut merged) = (Vec::new(), Vec::new());
                add_common_about(&mut common, &head, &about, Some(5));
                add_about(&mut merged, &head, &about, Some(5));
                assert_eq!(common.escape_ascii().to_string(), merged.escape_ascii().to_string());
                assert!(common.ends_with(b"00ab\r\n\r\n"));
            }
        }
    }
}

#[test]
fn connection_fields_and_nominated_ones_stay_behind() {
    let out = written(
        "POST / HTTP/1.1\r\nConnection: x-a\r\nHost: x\r\nX-A: 1\r\nKeep: 1\r\nX-B: 2\r\nConnection: X-B, host, content-length, Via\r\n\
         Keep-Alive: 5\r\nProxy-Connection: a\r\nUpgrade: h2c\r\nHTTP2-Settings: a\r\nTE: gzip\r\nContent-Length: 3\r\n\r\n",
        &ABOUT,
        None,
    );
    assert_eq!(out, format!("POST / HTTP/1.1\r\nHost: x\r\nKeep: 1\r\nContent-Length: 3\r\n{TAIL}"));
}

#[test]
fn a_word_of_the_connection_nominates_a_field_of_that_name_too() {
    let text = "GET / HTTP/1.1\r\nHost: x\r\nClose: 1\r\nA: 2\r\nConnection: close\r\n\r\n";
    assert_eq!(written(text, &ABOUT, None), format!("GET / HTTP/1.1\r\nHost: x\r\nA: 2\r\n{TAIL}"));
}

#[test]
fn what_a_client_says_about_itself_is_replaced_in_every_spelling() {
    let text = "GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 1\r\nX_Forwarded_Proto: 2\r\nForwarded: for=3\r\nX-Real-IP: 4\r\nx-request_id: 5\r\n\
                X-Request-Id: 6\r\nX-Forwarded-Host: 7\r\nConnection: X-Forwarded-For\r\n\r\n";
    assert_eq!(written(text, &ABOUT, None), format!("GET / HTTP/1.1\r\nHost: x\r\n{TAIL}"));
}

#[test]
fn a_trusted_peer_is_believed_and_joined() {
    let text = "GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: 2.2.2.2\r\nX-Forwarded-Proto: https\r\nX-Request-Id: q\r\n\r\n";
    let out = written(text, &About { trusted: true, ..*ABOUT }, None);
    assert!(out.contains("X-Forwarded-For: 1.1.1.1, 2.2.2.2, 192.0.2.7\r\n"), "{out}");
    assert!(out.contains("X-Forwarded-Proto: https\r\n") && !out.contains("Proto: http\r\n"), "{out}");
    assert_eq!(out.matches("X-Request-Id").count(), 1, "{out}");
}

#[test]
fn rfc_7239_quotes_v6() {
    let client = Some(client("2001:db8::1"));
    let out = written(
        "GET / HTTP/1.1\r\nHost: x:8\r\n\r\n",
        &About { kind: Forwarded::Rfc7239, client, ..*ABOUT },
        None,
    );
    assert!(out.contains("\r\nForwarded: for=\"[2001:db8::1]\";proto=http;host=\"x:8\"\r\n"), "{out}");
    assert!(!out.contains("X-Forwarded"), "{out}");
}

#[test]
fn an_absolute_target_becomes_host() {
    let out = written("GET http://a?q HTTP/1.1\r\nHost: b\r\n\r\n", &ABOUT, None);
    assert!(out.starts_with("GET /?q HTTP/1.1\r\nHost: a\r\nVia"), "{out}");
    let out = written("GET / HTTP/1.0\r\n\r\n", &ABOUT, None);
    assert!(out.starts_with("GET / HTTP/1.1\r\nHost: b:1\r\nVia: 1.0"), "{out}");
}

#[test]
fn upgrades_and_trailers_are_asked_for_anew() {
    let text = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, TE\r\nUpgrade: websocket, h2c\r\nTE: trailers, gzip\r\n\r\n";
    assert!(
        written(text, &ABOUT, Some(b"websocket"))
            .contains("x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nVia")
    );
    assert!(written(text, &ABOUT, None).contains("x\r\nTE: trailers\r\nConnection: TE\r\nVia"));
}

#[test]
fn answers_get_date_framing_and_persistence() {
    let mut head = Head::answer(200);
    head.push(b"Transfer-Encoding", b"chunked");
    head.push(b"Connection", b"X-Hop");
    head.push(b"X-Hop", b"1");
    head.push(b"X-End", b"2");
    let mut out = Vec::new();
    answer(&mut out, &head, Framing::UntilClose, Persistence::Close, b"D");
    assert_eq!(out, b"HTTP/1.1 200 OK\r\nX-End: 2\r\nConnection: close\r\nDate: D\r\n\r\n");
    out.clear();
    answer(&mut out, &Head::answer(299), Framing::Length(7), Persistence::Implied, b"D");
    assert_eq!(out, b"HTTP/1.1 299 \r\nContent-Length: 7\r\nDate: D\r\n\r\n");
}

#[test]
fn a_retry_says_so_in_place_of_what_came() {
    let text = "GET /a HTTP/1.1\r\nHost: x\r\nRetry-Attempt: 0\r\nA: b\r\n\r\n";
    let out = written(text, &About { retry: 2, ..*ABOUT }, None);
    assert_eq!(out, format!("GET /a HTTP/1.1\r\nHost: x\r\nA: b\r\nRetry-Attempt: 2\r\n{TAIL}"));
    let out = written(text, &ABOUT, None);
    assert_eq!(out, format!("GET /a HTTP/1.1\r\nHost: x\r\nRetry-Attempt: 0\r\nA: b\r\n{TAIL}"));
}

/// What becomes of this request where Host is written.
fn addressed(text: &str, about: &About<'_>, host: &str) -> String {
    let mut head = Head::new();
    super::super::parse::request(text.as_bytes(), 100, &mut head).expect("valid");
    let framing = super::super::framing::request(&head).expect("valid");
    let mut out = Vec::new();
    request(&mut out, &head, framing, None, about, None, Host::Write(host));
    String::from_utf8(out).expect("ascii")
}

#[test]
fn a_host_of_our_own_takes_the_place_of_the_clients_and_is_told_beside() {
    for text in [
        "GET /a HTTP/1.1\r\nHost: x\r\nA: b\r\n\r\n",
        "GET /a HTTP/1.1\r\nA: b\r\nHost: x\r\n\r\n",
        "GET http://x/a HTTP/1.1\r\nHost: y\r\nA: b\r\n\r\n",
    ] {
        let out = addressed(text, &ABOUT, "app.internal");
        assert_eq!(out, format!("GET /a HTTP/1.1\r\nHost: app.internal\r\nA: b\r\n{TAIL}"));
    }
}

#[test]
fn x_real_ip_is_ours_unless_a_trusted_peer_has_told_it() {
    let text = "GET / HTTP/1.1\r\nHost: x\r\nX-Real-IP: 6.6.6.6\r\n\r\n";
    let real_ip = Some(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 9)));
    let lines = |about: &About<'_>| -> Vec<String> {
        let out = written(text, about, None);
        out.lines().filter_map(|line| Some(line.strip_prefix("X-Real-IP: ")?.to_owned())).collect()
    };
    assert_eq!(lines(&ABOUT), [""; 0], "a stranger's is not passed on");
    assert_eq!(lines(&About { real_ip, ..*ABOUT }), ["192.0.2.9"]);
    assert_eq!(lines(&About { real_ip, trusted: true, ..*ABOUT }), ["6.6.6.6"]);
    assert_eq!(lines(&About { trusted: true, ..*ABOUT }), ["6.6.6.6"]);
    let bare = written(
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        &About { real_ip, kind: Forwarded::Off, ..*ABOUT },
        None,
    );
    assert!(bare.contains("X-Real-IP: 192.0.2.9\r\n") && !bare.contains("X-Forwarded"), "{bare}");
}

#[test]
fn a_backend_is_told_the_trace_and_nothing_else_about_it() {
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let lines = format!("Host: x\r\nTraceparent: {parent}\r\nA: b\r\nTracestate: v=1\r\n");
    let with = |trace| written(&format!("GET / HTTP/1.1\r\n{lines}\r\n"), &About { trace, ..*ABOUT }, None);
    assert_eq!(with(None), format!("GET / HTTP/1.1\r\n{lines}{TAIL}"), "where nothing is traced");
    let trace = TraceContext { trace: 0xab, parent: 3, span: 0xcd, flags: 3 };
    let own = "traceparent: 00-000000000000000000000000000000ab-00000000000000cd-03\r\n";
    let said = "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n";
    // It stands before the request's number.
    let tail = TAIL.replace("X-Request-Id", &format!("{own}X-Request-Id"));
    assert_eq!(with(Some(trace)), format!("{said}Tracestate: v=1\r\n{tail}"));
    // What vendors say of a trace that nobody has begun means nothing.
    assert_eq!(with(Some(TraceContext { parent: 0, ..trace })), format!("{said}{tail}"));
    // Of a trace that has another number than the request, both are told; a trusted peer's own number goes on as it came.
    let other = with(Some(TraceContext { trace: 0xef, ..trace }));
    assert_eq!(other, format!("{said}Tracestate: v=1\r\n{}", tail.replace("00ab-", "00ef-")));
    let trusted = About { trace: Some(trace), trusted: true, ..*ABOUT };
    let numbered = written("GET / HTTP/1.1\r\nHost: x\r\nX-Request-Id: mine\r\n\r\n", &trusted, None);
    assert!(
        numbered.ends_with(&format!("\r\n{own}\r\n")) && numbered.contains("X-Request-Id: mine\r\n"),
        "{numbered}"
    );
    let plain = written("GET / HTTP/1.1\r\nHost: x\r\n\r\n", &About { trace: Some(trace), ..*ABOUT }, None);
    assert_eq!(plain, format!("GET / HTTP/1.1\r\nHost: x\r\n{tail}"));
}
