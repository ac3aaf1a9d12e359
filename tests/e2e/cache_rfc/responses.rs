//! What may be stored, and what an answer says of that.

use super::case::{Case, Step, case, get, not_reused, reused};
use super::run::run;

#[test]
fn responses() {
    run(&cases());
}

pub fn cases() -> Vec<Case> {
    let mut all = prohibitions();
    all.extend(revalidation());
    all.extend(authorization());
    all.extend(cookies());
    all
}

const TAG: &[&str] = &["If-None-Match: \"a\""];

fn prohibitions() -> Vec<Case> {
    vec![
        not_reused("rfc9111_5_2_2_7_private", &["Cache-Control: private, max-age=3600"]),
        not_reused("rfc9111_5_2_2_7_private_in_any_case", &["Cache-Control: PRIVATE, max-age=3600"]),
        not_reused(
            "rfc9111_5_2_2_7_private_beside_public",
            &["Cache-Control: public, private, max-age=3600"],
        ),
        case(
            "rfc9111_5_2_2_7_private_is_not_asked_for_by_its_tag",
            [
                get().saying(&["Cache-Control: private, max-age=3600", "ETag: \"a\""]),
                get().origin_lacks(&["If-None-Match"]),
            ],
        ),
        case(
            "rfc9111_5_2_2_7_private_lines_are_not_stored",
            [
                get().saying(&["Cache-Control: private=\"a\", max-age=3600", "A: 1", "B: 2"]).has(&["A: 1"]),
                get().stored().has(&["B: 2"]).lacks(&["A"]),
            ],
        ),
        not_reused("rfc9111_5_2_2_5_no_store", &["Cache-Control: no-store"]),
        not_reused("rfc9111_5_2_2_5_no_store_in_any_case", &["Cache-Control: No-StOrE"]),
        not_reused(
            "rfc9111_5_2_2_5_no_store_though_it_is_fresh",
            &["Cache-Control: max-age=10000, no-store", "Expires: @10000", "Date: @0"],
        ),
        not_reused(
            "rfc9111_5_2_2_5_no_store_on_another_line",
            &["Cache-Control: max-age=10000", "Cache-Control: no-store"],
        ),
        case(
            "rfc9111_5_2_2_5_what_was_not_stored_is_not_asked_for_by_its_tag",
            [
                get().saying(&["Cache-Control: no-store", "ETag: \"a\""]),
                get().origin_lacks(&["If-None-Match"]),
            ],
        ),
        case(
            "rfc9111_5_2_2_5_a_newer_one_that_is_not_stored_takes_the_older_one_away",
            [
                get().saying(&["Cache-Control: max-age=3600"]),
                get().asking(&["Cache-Control: no-cache"]).saying(&["Cache-Control: no-store"]),
                get(),
            ],
        ),
        case(
            "rfc9111_5_2_2_4_no_cache_though_it_is_fresh",
            [get().saying(&["Cache-Control: max-age=10000, no-cache", "Expires: @10000", "Date: @0"]), get()],
        ),
        not_reused("rfc9111_5_2_2_4_no_cache_in_any_case", &["Cache-Control: max-age=10000, No-CaChE"]),
        not_reused("rfc9111_5_2_2_4_no_cache_beside_s_maxage", &["Cache-Control: s-maxage=10000, no-cache"]),
        case(
            "rfc9111_5_2_2_4_no_cache_is_asked_for_again",
            [get().saying(&["Cache-Control: no-cache", "ETag: \"a\""]), get().validated(TAG)],
        ),
        case(
            "rfc9111_5_2_2_4_no_cache_is_asked_for_again_though_it_is_fresh",
            [
                get().saying(&[
                    "Cache-Control: max-age=10000, no-cache",
                    "Expires: @10000",
                    "Date: @0",
                    "ETag: \"a\"",
                ]),
                get().validated(TAG),
                get().validated(TAG),
            ],
        ),
        case(
            "rfc9111_5_2_2_4_no_cache_goes_before_max_stale",
            [
                get().saying(&["Cache-Control: no-cache", "ETag: \"a\""]),
                get().asking(&["Cache-Control: max-stale"]).validated(TAG),
            ],
        ),
        case(
            "rfc9111_5_2_2_4_a_line_that_no_cache_names_is_not_sent_again",
            [
                get()
                    .saying(&["Cache-Control: no-cache=\"a\"", "A: 1", "B: 2", "Cache-Control: max-age=3600"])
                    .has(&["A: 1"]),
                get().stored().has(&["B: 2"]).lacks(&["A"]),
            ],
        ),
        case(
            "rfc9111_5_2_2_4_lines_that_no_cache_names_are_not_sent_again",
            [
                get().saying(&[
                    "Cache-Control: no-cache=\"a, B\"",
                    "A: 1",
                    "B: 2",
                    "C: 3",
                    "Cache-Control: max-age=3600",
                ]),
                get().stored().has(&["C: 3"]).lacks(&["A", "B"]),
            ],
        ),
        case(
            "rfc9111_5_2_2_3_must_understand_of_a_status_that_is_understood",
            [get().saying(&["Cache-Control: must-understand, no-store, max-age=3600"]), get().stored()],
        ),
        case(
            "rfc9111_5_2_2_3_must_understand_of_a_status_that_is_not",
            [
                get().status(299).saying(&["Cache-Control: must-understand, no-store, max-age=3600"]),
                get().status(299),
            ],
        ),
        case(
            "rfc9111_5_2_2_3_must_understand_alone_of_a_status_that_is_not",
            [get().status(499).saying(&["Cache-Control: must-understand, max-age=3600"]), get().status(499)],
        ),
        reused("rfc9111_5_2_2_9_public", &["Cache-Control: public, max-age=3600"]),
        not_reused("rfc9111_5_2_2_9_public_alone_says_not_how_long", &["Cache-Control: public"]),
        case(
            "rfc9111_3_3_a_body_that_breaks_off_is_not_stored",
            [
                get().saying(&["Cache-Control: max-age=3600", "Content-Length: 10"]).body("01234").cuts(),
                get(),
            ],
        ),
        case(
            "rfc9111_3_3_chunks_that_break_off_are_not_stored",
            [
                get()
                    .saying(&["Cache-Control: max-age=3600", "Transfer-Encoding: chunked"])
                    .body("5\r\nhello\r\n")
                    .cuts(),
                get(),
            ],
        ),
        case(
            "rfc9111_3_a_body_in_chunks_is_stored",
            [
                get().saying(&["Cache-Control: max-age=3600"]).chunked(),
                get().stored().in_time().lacks(&["Transfer-Encoding: gzip"]),
            ],
        ),
        case(
            "rfc9111_3_an_empty_body_is_stored",
            [
                get().saying(&["Cache-Control: max-age=3600"]).body(""),
                get().stored().has(&["Content-Length: 0"]),
            ],
        ),
    ]
}

fn revalidation() -> Vec<Case> {
    let stale = |directive: &str| -> Step {
        get().saying(&[&format!("Cache-Control: max-age=10, {directive}"), "Age: 20", "ETag: \"a\""])
    };
    vec![
        reused(
            "rfc9111_5_2_2_2_must_revalidate_is_fresh",
            &["Cache-Control: max-age=10000, must-revalidate"],
        ),
        case("rfc9111_5_2_2_2_must_revalidate_is_stale", [stale("must-revalidate"), get().validated(TAG)]),
        case(
            "rfc9111_5_2_2_2_must_revalidate_passes",
            [
                get().saying(&["Cache-Control: max-age=1, must-revalidate", "ETag: \"a\""]),
                get().validated(TAG).in_time(),
            ],
        ),
        case(
            "rfc9111_5_2_2_2_must_revalidate_and_a_dead_origin",
            [stale("must-revalidate, stale-if-error=600"), get().dies().failed(502)],
        ),
        case(
            "rfc9111_5_2_2_2_must_revalidate_and_an_error",
            [stale("must-revalidate, stale-if-error=600"), get().status(503)],
        ),
        case(
            "rfc9111_5_2_2_2_must_revalidate_goes_before_stale_while_revalidate",
            [stale("must-revalidate, stale-while-revalidate=600"), get().validated(TAG)],
        ),
        reused(
            "rfc9111_5_2_2_8_proxy_revalidate_is_fresh",
            &["Cache-Control: max-age=10000, proxy-revalidate"],
        ),
        case("rfc9111_5_2_2_8_proxy_revalidate_is_stale", [stale("proxy-revalidate"), get().validated(TAG)]),
        case(
            "rfc9111_5_2_2_8_proxy_revalidate_and_a_dead_origin",
            [stale("proxy-revalidate, stale-if-error=600"), get().dies().failed(502)],
        ),
        case(
            "rfc9111_5_2_2_8_proxy_revalidate_goes_before_max_stale",
            [stale("proxy-revalidate"), get().asking(&["Cache-Control: max-stale"]).validated(TAG)],
        ),
        case(
            "rfc9111_5_2_2_4_no_cache_and_a_dead_origin",
            [
                get().saying(&["Cache-Control: no-cache, stale-if-error=600", "ETag: \"a\""]),
                get().dies().failed(502),
            ],
        ),
    ]
}

fn authorization() -> Vec<Case> {
    let with = |name: &str, lines: &[&str], is_reused: bool| {
        let first = get().asking(&["Authorization: FOO"]).saying(lines).origin_has(&["Authorization: FOO"]);
        case(name, [first, if is_reused { get().stored() } else { get() }])
    };
    vec![
        with("rfc9111_3_5_expires", &["Expires: @2592000", "Date: @0"], false),
        with("rfc9111_3_5_max_age", &["Cache-Control: max-age=3600"], false),
        with("rfc9111_3_5_a_guess", &["Last-Modified: @-86400"], false),
        with("rfc9111_3_5_public", &["Cache-Control: max-age=3600, public", "Date: @0"], true),
        with(
            "rfc9111_3_5_must_revalidate",
            &["Cache-Control: max-age=3600, must-revalidate", "Date: @0"],
            true,
        ),
        with("rfc9111_3_5_s_maxage", &["Cache-Control: s-maxage=3600", "Date: @0"], true),
        with(
            "rfc9111_3_5_proxy_revalidate_is_none",
            &["Cache-Control: max-age=3600, proxy-revalidate"],
            false,
        ),
        with("rfc9111_3_5_private", &["Cache-Control: max-age=3600, private, must-revalidate"], false),
        case(
            "rfc9111_3_5_what_is_stored_is_for_those_with_authorization_too",
            [get().saying(&["Cache-Control: max-age=3600"]), get().asking(&["Authorization: FOO"]).stored()],
        ),
    ]
}

fn cookies() -> Vec<Case> {
    vec![
        case(
            "rfc9111_7_3_set_cookie_is_for_one_alone",
            [
                get().saying(&["Cache-Control: max-age=3600", "Set-Cookie: a=b"]).has(&["Set-Cookie: a=b"]),
                get(),
            ],
        )
        .known("RFC 9111 lets a cache store it; then one client has the cookie of another"),
        case(
            "rfc9111_7_3_set_cookie_of_what_is_public_is_not_sent_again",
            [
                get()
                    .saying(&["Cache-Control: max-age=3600, public", "Set-Cookie: a=b"])
                    .has(&["Set-Cookie: a=b"]),
                get().stored().lacks(&["Set-Cookie"]),
            ],
        )
        .known("RFC 9111 lets a cache send it again; then one client has the cookie of another"),
        case(
            "rfc9111_7_3_set_cookie_that_no_cache_names",
            [
                get().saying(&["Cache-Control: max-age=3600, no-cache=\"set-cookie\"", "Set-Cookie: a=b"]),
                get().stored().lacks(&["Set-Cookie"]),
            ],
        ),
        case(
            "rfc9111_4_a_cookie_of_a_request_is_no_part_of_the_key",
            [get().saying(&["Cache-Control: max-age=3600"]), get().asking(&["Cookie: a=b"]).stored()],
        ),
        case(
            "rfc9111_4_1_vary_by_cookie",
            [
                get().asking(&["Cookie: a=b"]).saying(&["Cache-Control: max-age=3600", "Vary: Cookie"]),
                get().asking(&["Cookie: a=c"]).saying(&["Cache-Control: max-age=3600", "Vary: Cookie"]),
                get().asking(&["Cookie: a=b"]).stored(),
                get().saying(&["Cache-Control: max-age=3600", "Vary: Cookie"]),
            ],
        ),
    ]
}
