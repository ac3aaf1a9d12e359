//! `CDN-Cache-Control` (RFC 9213), `Cache-Status` (RFC 9211), and what goes through on the way (1xx).

use super::case::{Case, case, get, not_reused, reused};
use super::run::run;

#[test]
fn targeted() {
    run(&cases());
}

pub fn cases() -> Vec<Case> {
    let mut all = cdn();
    all.extend(cache_status());
    all.extend(interim());
    all
}

fn cdn() -> Vec<Case> {
    vec![
        reused("rfc9213_2_max_age", &["CDN-Cache-Control: max-age=3600"]),
        reused("rfc9213_2_max_age_2147483648", &["CDN-Cache-Control: max-age=2147483648"]),
        reused("rfc9213_2_max_age_99999999999", &["CDN-Cache-Control: max-age=99999999999"]),
        not_reused(
            "rfc9213_2_age_above_max_age",
            &["Date: @0", "CDN-Cache-Control: max-age=3600", "Age: 7200"],
        ),
        not_reused(
            "rfc9213_2_1_space_before_equals",
            &["Cache-Control: max-age=0", "CDN-Cache-Control: max-age =100"],
        ),
        not_reused(
            "rfc9213_2_1_space_after_equals",
            &["Cache-Control: max-age=0", "CDN-Cache-Control: max-age= 100"],
        ),
        not_reused("rfc9213_2_max_age_0", &["CDN-Cache-Control: max-age=0"]),
        reused("rfc9213_2_an_extension", &["CDN-Cache-Control: foobar, max-age=3600"]),
        reused("rfc9213_2_an_extension_with_a_value", &["CDN-Cache-Control: foo=(a b);x, max-age=3600;y=1"]),
        not_reused("rfc9213_2_1_names_are_in_small_letters", &["CDN-Cache-Control: MaX-aGe=3600"])
            .known("a key of a dictionary is in small letters (RFC 9651 §3.2), so this field is none"),
        reused(
            "rfc9213_2_2_a_past_expires",
            &["CDN-Cache-Control: max-age=3600", "Expires: @-10000", "Date: @0"],
        ),
        reused(
            "rfc9213_2_2_a_broken_expires",
            &["CDN-Cache-Control: max-age=3600", "Expires: 0", "Date: @0"],
        ),
        not_reused(
            "rfc9213_2_2_max_age_0_and_a_future_expires",
            &["CDN-Cache-Control: max-age=0", "Expires: @10000", "Date: @0"],
        ),
        reused(
            "rfc9213_2_2_longer_than_cache_control",
            &["Cache-Control: max-age=0", "CDN-Cache-Control: max-age=3600"],
        ),
        not_reused(
            "rfc9213_2_2_shorter_than_cache_control",
            &["Cache-Control: max-age=3600", "CDN-Cache-Control: max-age=0"],
        ),
        not_reused(
            "rfc9213_2_2_private",
            &["CDN-Cache-Control: private", "Cache-Control: max-age=10000", "Expires: @10000"],
        ),
        case(
            "rfc9213_2_2_no_cache",
            [
                get().saying(&["CDN-Cache-Control: no-cache", "Cache-Control: max-age=10000", "ETag: \"a\""]),
                get().validated(&["If-None-Match: \"a\""]),
            ],
        ),
        not_reused(
            "rfc9213_2_2_no_store",
            &["Cache-Control: max-age=10000", "CDN-Cache-Control: no-store", "Expires: @10000"],
        ),
        reused(
            "rfc9213_2_2_fresh_beside_no_store",
            &["Cache-Control: no-store", "CDN-Cache-Control: max-age=10000"],
        ),
        reused(
            "rfc9213_2_2_fresh_beside_private",
            &["Cache-Control: private", "CDN-Cache-Control: max-age=10000"],
        ),
        not_reused(
            "rfc9213_2_1_an_unknown_type_is_no_field",
            &["CDN-Cache-Control: max-age=10000, &&&&&", "Cache-Control: no-store"],
        ),
        not_reused(
            "rfc9213_2_1_a_wrong_type_is_no_directive",
            &["CDN-Cache-Control: max-age=\"10000\"", "Cache-Control: no-store"],
        ),
        reused(
            "rfc9213_2_1_a_field_that_is_none_leaves_it_to_cache_control",
            &["CDN-Cache-Control: no-store, &&&&&", "Cache-Control: max-age=3600"],
        ),
        reused(
            "rfc9213_2_2_an_empty_field_leaves_it_to_cache_control",
            &["CDN-Cache-Control:", "Cache-Control: max-age=3600"],
        ),
        case(
            "rfc9213_3_1_it_is_handed_on",
            [get()
                .saying(&["Cache-Control: max-age=10000", "CDN-Cache-Control: foo"])
                .has(&["CDN-Cache-Control: foo"])],
        ),
        case(
            "rfc9213_2_2_a_request_with_authorization",
            [
                get()
                    .asking(&["Authorization: FOO"])
                    .saying(&["Cache-Control: public", "CDN-Cache-Control: max-age=60"]),
                get(),
            ],
        ),
        reused(
            "rfc9213_2_2_another_targeted_field_is_none_of_ours",
            &["Cache-Control: max-age=3600", "Foo-Cache-Control: no-store"],
        ),
        not_reused("rfc9213_1_surrogate_control_is_none", &["Surrogate-Control: max-age=3600"])
            .known("an older field of some caches, which no RFC describes"),
    ]
}

fn cache_status() -> Vec<Case> {
    let said = |value: &str| format!("Cache-Status: evenkeel; {value}");
    vec![
        case(
            "rfc9211_2_1_hit",
            [
                get()
                    .saying(&["Cache-Control: max-age=0", "ETag: \"a\""])
                    .has(&[&said("fwd=uri-miss; ttl=0; stored")]),
                get().asking(&["Cache-Control: max-stale"]).stored().has(&[&said("hit; ttl=0")]),
            ],
        ),
        case(
            "rfc9211_2_2_method",
            [get().method("POST").sending("x").has(&[&said("fwd=method; detail=method")])],
        ),
        case(
            "rfc9211_2_2_vary_miss",
            [
                get().saying(&["Cache-Control: max-age=3600", "Vary: Foo"]).asking(&["Foo: 1"]),
                get().asking(&["Foo: 2"]).has(&[&said("fwd=vary-miss; detail=says_nothing")]),
            ],
        ),
        case(
            "rfc9211_2_2_request",
            [
                get().saying(&["Cache-Control: max-age=3600"]),
                get().asking(&["Cache-Control: no-cache"]).has(&[&said("fwd=request; detail=says_nothing")]),
            ],
        ),
        case(
            "rfc9211_2_3_fwd_status",
            [
                get().saying(&["Cache-Control: max-age=0", "ETag: \"a\""]),
                get()
                    .validated(&["If-None-Match: \"a\""])
                    .saying(&["Cache-Control: max-age=0"])
                    .has(&[&said("fwd=stale; fwd-status=304; ttl=0; stored")]),
            ],
        ),
        case(
            "rfc9211_2_those_of_other_caches_stay_in_front",
            [get()
                .saying(&["Cache-Control: no-store", "Cache-Status: Other; hit"])
                .has(&["Cache-Status: Other; hit", &said("fwd=uri-miss; detail=no_store")])],
        ),
        case(
            "rfc9211_2_those_of_other_caches_are_not_stored",
            [
                get().saying(&["Cache-Control: max-age=3600", "Cache-Status: Other; hit"]),
                get().stored().lacks(&["Cache-Status: Other; hit"]),
            ],
        ),
    ]
}

fn interim() -> Vec<Case> {
    let passed = |name: &str, head: &str, lines: &[&str]| {
        case(
            name,
            [
                get().interim(head).saying(&["Cache-Control: max-age=100000", "Date: @0"]).has(lines),
                get().stored().lacks(lines),
            ],
        )
    };
    vec![
        passed(
            "rfc9110_15_2_a_102_goes_through",
            "HTTP/1.1 102 Processing\r\nX-Interim: 1\r\n\r\n",
            &["X-Interim: 1"],
        ),
        passed(
            "rfc9110_15_2_a_103_goes_through",
            "HTTP/1.1 103 Early Hints\r\nLink: </styles.css>; rel=preload; as=style\r\nX-My-Header: test\r\n\r\n",
            &["Link: </styles.css>; rel=preload; as=style", "X-My-Header: test"],
        ),
    ]
}
