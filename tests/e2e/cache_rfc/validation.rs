//! Asking again: what the origin is asked, and what becomes of what is stored.

use super::case::{Case, Step, case, get};
use super::run::run;

#[test]
fn validation() {
    run(&cases());
}

/// An answer that is stale when it comes.
fn stale(lines: &[&str]) -> Step {
    get().saying(&["Cache-Control: max-age=10", "Age: 20"]).saying(lines)
}

const TAG: &[&str] = &["If-None-Match: \"a\""];

pub fn cases() -> Vec<Case> {
    let mut all = asking();
    all.extend(updating());
    all.extend(lines());
    all.extend(heads());
    all
}

fn asking() -> Vec<Case> {
    vec![
        case("rfc9111_4_3_1_a_strong_tag", [stale(&["ETag: \"a\""]), get().validated(TAG)]),
        case(
            "rfc9111_4_3_1_a_weak_tag",
            [stale(&["ETag: W/\"a\""]), get().validated(&["If-None-Match: W/\"a\""])],
        ),
        case(
            "rfc9111_4_3_1_last_modified",
            [stale(&["Last-Modified: @-3000"]), get().validated(&["If-Modified-Since: @-3000"])],
        ),
        case(
            "rfc9111_4_3_1_both",
            [
                stale(&["ETag: \"a\"", "Last-Modified: @-3000"]),
                get().validated(&["If-None-Match: \"a\"", "If-Modified-Since: @-3000"]),
            ],
        ),
        case(
            "rfc9111_4_3_1_a_tag_without_quotes_as_it_is",
            [stale(&["ETag: abcdef"]), get().validated(&["If-None-Match: abcdef"])],
        )
        .known("some caches write the quotes that the origin has forgotten; it would not know its tag then"),
        case(
            "rfc9111_4_3_1_a_tag_with_bytes_above_ascii",
            [stale(&["ETag: \"abcdef\u{fc}\""]), get().validated(&["If-None-Match: \"abcdef\u{fc}\""])],
        ),
        case(
            "rfc9111_4_3_1_without_a_validator_it_is_asked_for_without_a_condition",
            [stale(&[]), get().origin_lacks(&["If-None-Match", "If-Modified-Since"])],
        ),
        case(
            "rfc9111_4_3_1_a_last_modified_that_is_no_date_as_it_is",
            [stale(&["Last-Modified: yesterday"]), get().validated(&["If-Modified-Since: yesterday"])],
        ),
        case(
            "rfc9111_4_3_1_lines_of_vary_go_with_it",
            [
                stale(&["ETag: \"a\"", "Vary: Abc"]).asking(&["Abc: 123"]),
                get().asking(&["Abc: 123"]).validated(&["If-None-Match: \"a\"", "Abc: 123"]),
            ],
        ),
        case(
            "rfc9111_4_3_1_a_tag_of_another_variant_is_not_sent",
            [
                stale(&["ETag: \"a\"", "Vary: Abc"]).asking(&["Abc: 123"]),
                get().asking(&["Abc: 456"]).origin_lacks(&["If-None-Match"]),
            ],
        )
        .known("§4.3.1 lets a cache send the tags of all variants"),
        case(
            "rfc9111_4_3_1_other_lines_of_the_client_go_with_it",
            [
                stale(&["ETag: \"a\""]),
                get().asking(&["Foo: 1", "Cookie: a=b"]).validated(&[
                    "If-None-Match: \"a\"",
                    "Foo: 1",
                    "Cookie: a=b",
                ]),
            ],
        ),
        case(
            "rfc9110_13_1_2_conditions_of_a_client_go_through_where_nothing_is_stored",
            [get().asking(&["If-None-Match: \"abcdef\""]).origin_has(&["If-None-Match: \"abcdef\""])],
        ),
        case(
            "rfc9110_13_1_2_they_go_through_as_they_are",
            [get().asking(&["If-None-Match: abcdef"]).origin_has(&["If-None-Match: abcdef"])],
        ),
        case(
            "rfc9110_13_1_3_dates_of_a_client_go_through_where_nothing_is_stored",
            [get().asking(&["If-Modified-Since: @-60"]).status(304).origin_has(&["If-Modified-Since: @-60"])],
        ),
        case(
            "rfc9111_4_3_2_a_304_for_a_client_is_not_stored",
            [
                get()
                    .asking(&["If-None-Match: \"a\""])
                    .status(304)
                    .saying(&["ETag: \"a\"", "Cache-Control: max-age=3600"]),
                get(),
            ],
        ),
    ]
}

fn updating() -> Vec<Case> {
    vec![
        case(
            "rfc9111_4_3_3_a_304_makes_it_fresh",
            [
                stale(&["ETag: \"a\""]),
                get().validated(TAG).saying(&["ETag: \"a\"", "Cache-Control: max-age=3600"]),
                get().stored().has(&["Cache-Control: max-age=3600", "ETag: \"a\""]),
            ],
        ),
        case(
            "rfc9111_4_3_4_a_304_that_says_nothing_takes_its_age_away",
            [stale(&["ETag: \"a\""]), get().validated(TAG), get().stored()],
        ),
        case(
            "rfc9111_4_3_4_a_304_with_an_age",
            [
                stale(&["ETag: \"a\""]),
                get().validated(TAG).saying(&["Age: 30", "Cache-Control: max-age=3600"]),
                get().stored().least_age(30),
            ],
        ),
        case(
            "rfc9111_4_3_4_a_304_with_a_date",
            [
                stale(&["ETag: \"a\"", "Date: @-5000"]),
                get().validated(TAG).saying(&["Date: @-1"]).has(&["Date: @-1"]).lacks(&["Date: @-5000"]),
                get().stored().has(&["Date: @-1"]).lacks(&["Date: @-5000"]),
            ],
        ),
        case(
            "rfc9111_4_3_3_a_200_takes_its_place",
            [
                stale(&["ETag: \"a\"", "A: 1"]),
                get().saying(&["Cache-Control: max-age=3600", "ETag: \"b\""]).origin_has(TAG).lacks(&["A"]),
                get().stored_of(2).has(&["ETag: \"b\""]).lacks(&["A"]),
            ],
        ),
        case(
            "rfc9111_4_3_3_a_404_takes_its_place",
            [
                stale(&["ETag: \"a\""]),
                get().status(404).saying(&["Cache-Control: max-age=3600"]).origin_has(TAG),
                get().stored_of(2),
            ],
        ),
        case(
            "rfc9111_4_3_3_an_error_goes_to_the_client",
            [stale(&["ETag: \"a\""]), get().status(500).origin_has(TAG), get().validated(TAG)],
        ),
        case(
            "rfc9111_4_3_4_a_304_with_another_strong_tag_is_about_another_one",
            [
                stale(&["ETag: \"a\""]),
                get()
                    .validated(TAG)
                    .saying(&["ETag: \"b\""])
                    .gets(599)
                    .text("rfc9111_4_3_4_a_304_with_another_strong_tag_is_about_another_one says 2")
                    .twice(),
            ],
        ),
        case(
            "rfc9111_4_3_4_a_304_with_the_weak_form_of_its_tag",
            [
                stale(&["ETag: \"a\""]),
                get().validated(TAG).saying(&["ETag: W/\"a\"", "Cache-Control: max-age=3600"]),
                get().stored(),
            ],
        ),
        case(
            "rfc9111_4_3_4_a_304_with_its_last_modified",
            [
                stale(&["Last-Modified: @-3000"]),
                get()
                    .validated(&["If-Modified-Since: @-3000"])
                    .saying(&["Last-Modified: @-3000", "Cache-Control: max-age=3600"]),
                get().stored(),
            ],
        ),
        case(
            "rfc9111_4_3_4_a_304_that_says_no_store_takes_it_away",
            [
                stale(&["ETag: \"a\""]),
                get().validated(TAG).saying(&["ETag: \"a\"", "Cache-Control: no-store"]),
                get().origin_lacks(&["If-None-Match"]),
            ],
        ),
        case(
            "rfc9111_4_3_4_a_304_that_says_private_takes_it_away",
            [
                stale(&["ETag: \"a\""]),
                get().validated(TAG).saying(&["ETag: \"a\"", "Cache-Control: private, max-age=60"]),
                get().origin_lacks(&["If-None-Match"]),
            ],
        ),
    ]
}

/// Which lines a 304 changes of what is stored, and of what its client gets.
fn lines() -> Vec<Case> {
    let mut all = vec![case(
        "rfc9111_3_2_a_line_that_a_304_omits",
        [
            stale(&["Last-Modified: @-86400", "Test-Header: A"]),
            get()
                .validated(&["If-Modified-Since: @-86400"])
                .saying(&["Last-Modified: @-86400", "Cache-Control: max-age=3600"])
                .has(&["Test-Header: A"]),
            get().stored().has(&["Test-Header: A"]),
        ],
    )];
    for (name, before, after) in [
        ("Test-Header", "A", "B"),
        ("X-Test-Header", "A", "B"),
        ("Content-Foo", "A", "B"),
        ("X-Content-Foo", "A", "B"),
        ("Cache-Control", "max-age=0", "max-age=3600"),
        ("Content-Location", "/foo", "/bar"),
        ("Content-MD5", "rL0Y20zC+Fzt72VPzMSk2A==", "N7UdGUp1E+RbVvZSTy1R8g=="),
        ("Content-Security-Policy", "default-src 'self'", "default-src 'self' cdn.example.com"),
        ("Content-Type", "text/plain", "text/plain;charset=utf-8"),
        ("Content-Language", "de", "en"),
        ("Clear-Site-Data", "cache", "cookies"),
        ("Expires", "Fri, 01 Jan 2038 01:01:01 GMT", "Mon, 11 Jan 2038 11:11:11 GMT"),
        ("Public-Key-Pins", "A", "B"),
        ("X-Frame-Options", "deny", "sameorigin"),
        ("X-XSS-Protection", "1", "1; mode=block"),
        ("Strict-Transport-Security", "max-age=1", "max-age=2"),
        ("Link", "</a>; rel=x", "</b>; rel=x"),
        ("Last-Modified", "Wed, 01 Jan 2020 00:00:00 GMT", "Thu, 02 Jan 2020 00:00:00 GMT"),
    ] {
        let (before, after) = (format!("{name}: {before}"), format!("{name}: {after}"));
        let control = if name == "Cache-Control" { "X: y" } else { "Cache-Control: max-age=3600" };
        let first = get().saying(&["ETag: \"a\"", "Cache-Control: max-age=0", &before]);
        all.push(case(
            format!("rfc9111_3_2_a_304_changes_{}", name.to_ascii_lowercase().replace('-', "_")),
            [
                first,
                get()
                    .validated(TAG)
                    .saying(&["ETag: \"a\"", &after, control])
                    .has(&[&after])
                    .lacks(&[&before]),
                get().stored().has(&[&after]).lacks(&[&before]),
            ],
        ));
    }
    // What says how the stored bytes are to be read is that of the stored bytes.
    for (name, before, after) in [
        ("Content-Encoding", "br", "gzip"),
        ("Content-Range", "bytes 0-1/2", "bytes 0-2/3"),
        ("Content-Length", "4", "10"),
    ] {
        let (before, after) = (format!("{name}: {before}"), format!("{name}: {after}"));
        all.push(case(
            format!("rfc9111_3_2_a_304_leaves_{}", name.to_ascii_lowercase().replace('-', "_")),
            [
                get().saying(&["ETag: \"a\"", "Cache-Control: max-age=0", &before]).body("text"),
                get()
                    .validated(TAG)
                    .saying(&["ETag: \"a\"", "Cache-Control: max-age=3600", &after])
                    .has(&[&before])
                    .lacks(&[&after]),
                get().stored().has(&[&before]).lacks(&[&after]),
            ],
        ));
    }
    all.extend([
        case(
            "rfc9111_3_2_all_lines_of_a_name_are_replaced",
            [
                stale(&["ETag: \"a\"", "Link: </1>", "Link: </2>", "B: 1"]),
                get().validated(TAG).saying(&["Link: </3>", "Cache-Control: max-age=60"]),
                get().stored().has(&["Link: </3>", "B: 1"]).lacks(&["Link: </1>", "Link: </2>"]),
            ],
        ),
        case(
            "rfc9111_3_2_lines_of_the_connection_of_a_304_are_not_stored",
            [
                stale(&["ETag: \"a\"", "A: 1"]),
                get().validated(TAG).saying(&["Connection: a", "A: 2", "Cache-Control: max-age=60"]),
                get().stored().has(&["A: 1"]).lacks(&["A: 2"]),
            ],
        ),
    ]);
    all
}

fn heads() -> Vec<Case> {
    let head = || get().method("HEAD");
    let fresh = || get().saying(&["Cache-Control: max-age=3600", "ETag: \"a\"", "Last-Modified: @-60"]);
    vec![
        case(
            "rfc9110_9_3_2_head_is_answered_from_what_get_has_stored",
            [fresh(), head().stored().has(&["ETag: \"a\"", "Content-Length"])],
        ),
        case("rfc9111_4_3_5_head_is_written_through_where_it_is_stale", [stale(&[]), head()]),
        case(
            "rfc9110_9_3_2_an_answer_to_head_is_not_stored",
            [head().saying(&["Cache-Control: max-age=60"]), get()],
        ),
        case(
            "rfc9110_9_3_2_an_answer_to_head_is_not_stored_for_head",
            [head().saying(&["Cache-Control: max-age=60"]), head()],
        ),
        case(
            "rfc9111_4_3_5_a_200_makes_it_fresh",
            [
                get().saying(&["Cache-Control: max-age=0", "ETag: \"a\""]).body("text"),
                head().saying(&["Cache-Control: max-age=1000", "ETag: \"a\"", "Content-Length: 4"]),
                get().stored(),
            ],
        ),
        case(
            "rfc9111_4_3_5_a_200_changes_lines",
            [
                get().saying(&["Cache-Control: max-age=0", "A: 1", "ETag: \"a\""]).body("text"),
                head().saying(&["Cache-Control: max-age=1000", "A: 2", "ETag: \"a\"", "Content-Length: 4"]),
                get().stored().has(&["A: 2"]).lacks(&["A: 1"]),
            ],
        ),
        case(
            "rfc9111_4_3_5_a_200_leaves_lines_that_it_omits",
            [
                get().saying(&["Cache-Control: max-age=0", "A: 1", "ETag: \"a\""]).body("text"),
                head()
                    .saying(&["Cache-Control: max-age=1000", "ETag: \"a\"", "Content-Length: 4"])
                    .lacks(&["A"]),
                get().stored().has(&["A: 1"]),
            ],
        )
        .known("the client of HEAD gets what the origin says, not what is stored beside it"),
        case(
            "rfc9111_4_3_5_another_tag_makes_it_stale",
            [
                fresh(),
                head().asking(&["Cache-Control: no-cache"]).saying(&["ETag: \"b\"", "Last-Modified: @-60"]),
                get().validated(TAG),
            ],
        ),
        case(
            "rfc9111_4_3_5_another_length_makes_it_stale",
            [
                fresh(),
                head().asking(&["Cache-Control: no-cache"]).saying(&[
                    "ETag: \"a\"",
                    "Last-Modified: @-60",
                    "Content-Length: 5000",
                ]),
                get().validated(TAG),
            ],
        ),
        case(
            "rfc9111_4_3_5_a_410_changes_nothing",
            [
                get().saying(&["Cache-Control: max-age=0", "A: 1", "ETag: \"a\""]),
                head().status(410).saying(&["A: 2", "Cache-Control: max-age=1000"]),
                get().validated(TAG).has(&["A: 1"]),
            ],
        ),
    ]
}
