//! Which lines of an answer are stored and sent again (RFC 9111 §3.1).

use super::case::{Case, case, get};
use super::run::run;

#[test]
fn stored_lines() {
    run(&cases());
}

pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    let name_of = |what: &str, name: &str| {
        format!("rfc9111_3_1_{what}_{}", name.to_ascii_lowercase().replace('-', "_"))
    };
    for (name, value) in [
        ("Test-Header", "a value"),
        ("X-Test-Header", "a value"),
        ("Content-Foo", "a value"),
        ("X-Content-Foo", "a value"),
        ("Cache-Control", "max-age=3600"),
        ("Content-Encoding", "a-value"),
        ("Content-Location", "/bar"),
        ("Content-MD5", "N7UdGUp1E+RbVvZSTy1R8g=="),
        ("Content-Range", "bytes 0-4/10"),
        ("Content-Security-Policy", "default-src 'self' cdn.example.com"),
        ("Content-Type", "text/plain;charset=utf-8"),
        ("Content-Language", "de"),
        ("Content-Disposition", "attachment; filename=example.txt"),
        ("Clear-Site-Data", "cookies"),
        ("ETag", "\"ghijkl\""),
        ("Expires", "Mon, 11 Jan 2038 11:11:11 GMT"),
        ("Last-Modified", "Wed, 01 Jan 2020 00:00:00 GMT"),
        ("Public-Key-Pins", "a value"),
        ("X-Frame-Options", "sameorigin"),
        ("X-XSS-Protection", "1; mode=block"),
        ("Strict-Transport-Security", "max-age=100"),
        ("WWW-Authenticate", "Basic realm=\"x\""),
        ("Link", "</style.css>; rel=preload"),
        ("Location", "/elsewhere"),
        ("Retry-After", "10"),
        ("Server", "origin/1"),
        ("Accept-Ranges", "bytes"),
        ("Digest", "x"),
        ("Access-Control-Allow-Origin", "*"),
    ] {
        let line = format!("{name}: {value}");
        let first = get().saying(&["Date: @0", &line]).has(&[&line]);
        let control = if name == "Cache-Control" { "X: y" } else { "Cache-Control: max-age=3600" };
        all.push(case(name_of("stored", name), [first.saying(&[control]), get().stored().has(&[&line])]));
    }
    for (name, value) in [
        ("Connection", "a-value"),
        ("Keep-Alive", "timeout=5"),
        ("Proxy-Authenticate", "Basic"),
        ("Proxy-Authentication-Info", "a value"),
        ("Proxy-Authorization", "a value"),
        ("Proxy-Connection", "keep-alive"),
        ("TE", "trailers"),
        ("Trailer", "X-Foo"),
        ("Upgrade", "a-value"),
        ("Set-Cookie", "a=b"),
        ("Set-Cookie2", "a=b"),
        ("Cache-Tag", "x, y"),
        ("Surrogate-Key", "x y"),
    ] {
        let line = format!("{name}: {value}");
        let saying = get().saying(&["Cache-Control: public, max-age=3600", &line]);
        all.push(case(name_of("not_stored", name), [saying, get().stored().lacks(&[&line])]));
    }
    all.extend([
        case(
            "rfc9111_3_1_not_stored_what_connection_names",
            [
                get().saying(&["Cache-Control: max-age=3600", "Connection: a, b", "A: 1", "B: 2", "C: 3"]),
                get().stored().has(&["C: 3"]).lacks(&["A", "B"]),
            ],
        ),
        case(
            "rfc9110_7_6_1_what_connection_names_does_not_go_through",
            [get().saying(&["Cache-Control: no-store", "Connection: a", "A: 1"]).lacks(&["A"])],
        ),
        case(
            "rfc9111_3_1_lines_of_one_name_in_their_order",
            [
                get().saying(&["Cache-Control: max-age=3600", "Link: </1>", "Link: </2>"]),
                get().stored().has(&["Link: </1>", "Link: </2>"]),
            ],
        ),
        case(
            "rfc9110_6_6_1_date_is_not_changed",
            [
                get().saying(&["Cache-Control: max-age=3600", "Date: @-30"]),
                get().stored().has(&["Date: @-30"]).least_age(30),
            ],
        ),
        case(
            "rfc9110_6_6_1_who_stores_an_answer_without_date_adds_one",
            [get().saying(&["Cache-Control: max-age=3600"]), get().stored().has(&["Date"])],
        ),
        case(
            "rfc9110_8_6_content_length_is_that_of_the_body",
            [
                get().saying(&["Cache-Control: max-age=3600"]).body("0123456789"),
                get().stored().has(&["Content-Length: 10"]),
            ],
        ),
        case(
            "rfc9112_6_3_what_comes_behind_the_body_is_no_part_of_it",
            [
                get()
                    .saying(&["Cache-Control: max-age=3600", "Content-Length: 10"])
                    .body("0123456789")
                    .surplus("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"),
                get().stored(),
                get().at("/other").saying(&["Cache-Control: no-store"]),
            ],
        ),
        case(
            "rfc9112_6_1_an_answer_whose_framing_is_unknown_is_none",
            [
                get()
                    .saying(&[
                        "Cache-Control: max-age=3600",
                        "Transfer-Encoding: Transfer-Encoding-store-value",
                    ])
                    .failed(502),
                get(),
            ],
        ),
        case(
            "rfc9112_4_a_reason_of_its_own_is_sent_again",
            [get().status(203).saying(&["Cache-Control: max-age=3600"]), get().status(203).stored()],
        ),
        case(
            "rfc9111_5_5_no_warning_is_made_up",
            [
                get().saying(&["Cache-Control: max-age=10, stale-while-revalidate=100", "Age: 20"]),
                get().stored_and_asked().lacks(&["Warning"]),
            ],
        ),
        case(
            "rfc9111_5_5_a_warning_of_the_origin_is_a_line_as_others_are",
            [
                get().saying(&["Cache-Control: max-age=3600", "Warning: 299 - \"x\""]),
                get().stored().has(&["Warning: 299 - \"x\""]),
            ],
        ),
    ]);
    all
}
