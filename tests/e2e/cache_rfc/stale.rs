//! What is sent though it is stale (RFC 9111 §4.2.4, RFC 5861), what never changes (RFC 8246).

use super::case::{Case, Step, case, get};
use super::run::run;

#[test]
fn stale() {
    run(&cases());
}

/// An answer that is stale when it comes, with this beside its lifetime.
fn said(directive: &str) -> Step {
    get().saying(&[&format!("Cache-Control: max-age=10{directive}"), "Age: 20", "ETag: \"a\""])
}

const TAG: &[&str] = &["If-None-Match: \"a\""];

pub fn cases() -> Vec<Case> {
    let mut all = vec![
        case("rfc9111_4_2_4_a_dead_origin_is_not_stood_in_for", [said(""), get().dies().failed(502)])
            .known("§4.2.4 lets a cache send a stale answer where the origin is dead; here somebody must have said so"),
        case("rfc9111_4_2_4_an_error_is_not_stood_in_for", [said(""), get().status(503).origin_has(TAG)])
            .known("§4.2.4 lets a cache send a stale answer instead of an error; here somebody must have said so"),
        case(
            "rfc9111_4_2_4_stale_is_not_sent_where_the_origin_answers",
            [said(", stale-if-error=60"), get().validated(TAG)],
        ),
        case(
            "rfc5861_4_a_dead_origin",
            [said(", stale-if-error=60"), get().dies().instead().has(&["ETag: \"a\""]).least_age(20)],
        ),
        case(
            "rfc5861_4_of_what_has_no_validator",
            [
                get().saying(&["Cache-Control: max-age=10, stale-if-error=60", "Age: 20"]),
                get().dies().instead(),
            ],
        ),
        case("rfc5861_4_the_window_has_passed", [said(", stale-if-error=5"), get().dies().failed(502)]),
        case("rfc5861_4_a_window_of_0", [said(", stale-if-error=0"), get().status(503)]),
        case("rfc5861_4_a_broken_window", [said(", stale-if-error=x"), get().status(503)]),
        case(
            "rfc5861_4_it_comes_back",
            [said(", stale-if-error=60"), get().status(503).instead(), get().validated(TAG)],
        ),
        case(
            "rfc5861_4_a_request_asks_for_it",
            [said(""), get().asking(&["Cache-Control: stale-if-error=60"]).status(503).instead()],
        ),
        case(
            "rfc5861_4_a_request_asks_for_less",
            [said(", stale-if-error=60"), get().asking(&["Cache-Control: stale-if-error=1"]).status(503)],
        ),
        case(
            "rfc5861_4_no_cache_of_a_client_and_a_dead_origin",
            [
                get().saying(&["Cache-Control: max-age=3600, stale-if-error=60", "ETag: \"a\""]),
                get().asking(&["Cache-Control: no-cache"]).dies().instead(),
            ],
        ),
        case(
            "rfc5861_4_a_condition_is_answered_from_what_stands_in",
            [
                said(", stale-if-error=60"),
                get().asking(TAG).status(503).instead().gets(304).text("").has(&["ETag: \"a\""]),
            ],
        ),
        case(
            "rfc5861_3_it_is_sent_and_asked_for_meanwhile",
            [said(", stale-while-revalidate=3600"), get().stored_and_asked().origin_has(TAG).least_age(20)],
        ),
        case(
            "rfc5861_3_what_comes_meanwhile_is_next",
            [
                said(", stale-while-revalidate=3600"),
                get().saying(&["Cache-Control: max-age=3600", "ETag: \"b\""]).stored_and_asked(),
                get().stored_of(2).has(&["ETag: \"b\""]).in_time(),
            ],
        ),
        case(
            "rfc5861_3_of_what_has_no_validator",
            [
                get().saying(&["Cache-Control: max-age=10, stale-while-revalidate=3600", "Age: 20"]),
                get().stored_and_asked().origin_lacks(&["If-None-Match"]),
            ],
        ),
        case(
            "rfc5861_3_the_window_has_passed",
            [said(", stale-while-revalidate=5"), get().validated(TAG)],
        ),
        case("rfc5861_3_a_window_of_0", [said(", stale-while-revalidate=0"), get().validated(TAG)]),
        case("rfc5861_3_a_broken_window", [said(", stale-while-revalidate=x"), get().validated(TAG)]),
        case(
            "rfc5861_3_what_is_fresh_is_not_asked_for",
            [get().saying(&["Cache-Control: max-age=3600, stale-while-revalidate=3600"]), get().stored()],
        ),
        case(
            "rfc5861_3_head_is_answered_too",
            [
                said(", stale-while-revalidate=3600"),
                get()
                    .method("HEAD")
                    .saying(&["Cache-Control: max-age=3600", "ETag: \"b\""])
                    .stored_and_asked()
                    .method_of_origin("GET"),
                get().stored_of(2).in_time(),
            ],
        ),
        // By what the client asks the origin could say that *it* has the new one, or give it a part.
        case(
            "rfc5861_3_conditions_of_the_client_are_not_asked_meanwhile",
            [
                get().saying(&["Cache-Control: max-age=10, stale-while-revalidate=3600", "Age: 20"]),
                get()
                    .asking(&["If-None-Match: \"new\"", "If-Modified-Since: @-1000"])
                    .saying(&["Cache-Control: max-age=3600"])
                    .stored_and_asked()
                    .origin_lacks(&["If-None-Match", "If-Modified-Since"]),
                get().stored_of(2).in_time(),
            ],
        ),
        case(
            "rfc5861_3_a_range_of_the_client_is_not_asked_meanwhile",
            [
                get().saying(&["Cache-Control: max-age=10, stale-while-revalidate=3600", "Age: 20"]),
                get()
                    .asking(&["Range: bytes=0-3"])
                    .saying(&["Cache-Control: max-age=3600"])
                    .stored_and_asked()
                    .gets(206)
                    .text("rfc5")
                    .origin_lacks(&["Range"]),
                get().stored_of(2).in_time(),
            ],
        ),
        case(
            "rfc5861_3_a_clients_no_cache_is_asked_for_first",
            [
                said(", stale-while-revalidate=3600"),
                get().asking(&["Cache-Control: no-cache"]).validated(TAG),
            ],
        ),
        case(
            "rfc8246_2_a_reload_is_answered_from_what_is_stored",
            [
                get().saying(&["Cache-Control: max-age=10000, immutable", "ETag: \"a\""]),
                get().asking(&["Cache-Control: max-age=0"]).stored(),
            ],
        ),
        case(
            "rfc8246_2_no_cache_is_none",
            [
                get().saying(&["Cache-Control: max-age=10000, immutable", "ETag: \"a\""]),
                get().asking(&["Cache-Control: no-cache"]).validated(TAG),
            ],
        ),
        case("rfc8246_2_a_stale_one_is_asked_for", [said(", immutable"), get().validated(TAG)]),
        case(
            "rfc8246_2_alone_it_says_not_how_long",
            [get().saying(&["Cache-Control: immutable"]), get()],
        ),
    ];
    for status in [500, 502, 503, 504] {
        all.push(case(
            format!("rfc5861_4_a_{status}"),
            [said(", stale-if-error=60"), get().status(status).instead()],
        ));
    }
    for status in [400, 403, 404, 429, 501, 505, 599] {
        all.push(case(
            format!("rfc5861_4_a_{status}_is_no_error_of_the_origin"),
            [said(", stale-if-error=60"), get().status(status).origin_has(TAG)],
        ));
    }
    all
}
