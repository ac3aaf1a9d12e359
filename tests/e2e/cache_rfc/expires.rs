//! `Expires`, guesses, and `Pragma`.

use super::case::{Case, case, get, not_reused, reused};
use super::run::run;

#[test]
fn expires() {
    run(&cases());
}

pub fn cases() -> Vec<Case> {
    let mut all = dates();
    all.extend(guesses());
    all.extend(pragma());
    all
}

fn dates() -> Vec<Case> {
    vec![
        reused("rfc9111_5_3_expires_in_the_future", &["Expires: @2592000", "Date: @0"]),
        not_reused("rfc9111_5_3_expires_in_the_past", &["Expires: @-2592000", "Date: @0"]),
        not_reused("rfc9111_5_3_expires_now", &["Expires: @0", "Date: @0"]),
        not_reused("rfc9111_4_2_1_expires_before_date", &["Expires: @300", "Date: @400"]),
        not_reused("rfc9111_5_3_expires_0", &["Expires: 0", "Date: @0"]),
        reused("rfc9111_5_3_expires_counts_though_date_is_broken", &["Date: foo", "Expires: @600"]),
        reused("rfc9111_5_3_expires_counts_without_date", &["Expires: @600"]),
        not_reused("rfc9111_4_2_3_age_and_a_slow_date", &["Date: @-10", "Expires: @10", "Age: 25"]),
        not_reused("rfc9111_4_2_3_age_and_a_fast_date", &["Date: @10", "Expires: @20", "Age: 15"]),
        // By its own clock it is fresh for 100 seconds; ours is 1000 ahead.
        not_reused("rfc9111_4_2_3_expires_of_a_slow_clock", &["Date: @-1000", "Expires: @-900"]),
        reused("rfc9111_4_2_1_expires_of_a_fast_clock", &["Date: @1000", "Expires: @1100"]),
        // The first of several counts.
        reused("rfc9111_4_2_1_the_first_expires_counts", &["Expires: @600", "Expires: @-600", "Date: @0"]),
        not_reused(
            "rfc9111_4_2_1_the_first_expires_is_stale",
            &["Expires: @-600", "Expires: @600", "Date: @0"],
        ),
        case(
            "rfc9111_5_3_expires_is_sent_as_it_was",
            [
                get().saying(&["Expires: @2592000", "Date: @0"]),
                get().stored().has(&["Expires: @2592000", "Date: @0"]),
            ],
        ),
        case(
            "rfc9111_4_2_expires_passes",
            [
                get().saying(&["Expires: @1", "Date: @0", "ETag: \"a\""]),
                get().validated(&["If-None-Match: \"a\""]).in_time(),
            ],
        ),
    ]
}

fn guesses() -> Vec<Case> {
    let day = ["Last-Modified: @-86400", "Date: @0"];
    let mut all = Vec::new();
    for (status, is_reused) in [
        (200, true),
        (201, false),
        (202, false),
        (203, true),
        (204, true),
        (299, false),
        (300, true),
        (301, true),
        (302, false),
        (303, false),
        (307, false),
        (308, true),
        (400, false),
        (401, false),
        (403, false),
        (404, true),
        (405, true),
        (410, true),
        (414, true),
        (418, false),
        (429, false),
        (500, false),
        (501, true),
        (502, false),
        (503, false),
        (504, false),
        (599, false),
    ] {
        let first = get().status(status).saying(&day);
        let second = get().status(status);
        let second = if is_reused { second.stored() } else { second };
        all.push(case(format!("rfc9111_4_2_2_a_guess_for_{status}"), [first, second]));
    }
    for seconds in [50, 100, 300, 600, 1200, 1800, 3600, 43_200, 2_592_000] {
        all.push(reused(
            &format!("rfc9111_4_2_2_a_guess_from_{seconds}_seconds"),
            &[&format!("Last-Modified: @-{seconds}"), "Date: @0"],
        ));
    }
    all.extend([
        case(
            "rfc9111_4_2_2_a_guess_for_599_that_is_public",
            [get().status(599).saying(&day).saying(&["Cache-Control: public"]), get().status(599).stored()],
        ),
        // A tenth of it, and not more.
        case(
            "rfc9111_4_2_2_a_guess_is_a_tenth",
            [
                get().saying(&["Last-Modified: @-1000", "Date: @0", "Age: 101"]),
                get().validated(&["If-Modified-Since: @-1000"]),
            ],
        ),
        reused("rfc9111_4_2_2_less_than_a_tenth", &["Last-Modified: @-1000", "Date: @0", "Age: 50"]),
        not_reused("rfc9111_4_2_2_modified_in_the_future", &["Last-Modified: @1000", "Date: @0"]),
        not_reused("rfc9111_4_2_2_last_modified_is_no_date", &["Last-Modified: yesterday", "Date: @0"]),
        case(
            "rfc9111_4_2_2_no_guess_where_something_is_said",
            [
                get().saying(&day).saying(&["Cache-Control: max-age=0"]),
                get().validated(&["If-Modified-Since: @-86400"]),
            ],
        ),
        case(
            "rfc9111_4_2_2_no_guess_where_expires_is_broken",
            [get().saying(&day).saying(&["Expires: 0"]), get().validated(&["If-Modified-Since: @-86400"])],
        ),
        reused(
            "rfc9111_4_2_2_a_guess_for_an_attachment",
            &["Last-Modified: @-100000", "Date: @0", "Content-Disposition: attachment; filename=example.txt"],
        ),
        reused("rfc9111_4_2_2_a_guess_with_an_extension", &["Last-Modified: @-86400", "Cache-Control: foo"]),
        case(
            "rfc9111_4_2_2_no_guess_for_a_request_with_a_cookie",
            [get().asking(&["Cookie: a=b"]).saying(&day), get().asking(&["Cookie: a=b"])],
        ),
    ]);
    all
}

fn pragma() -> Vec<Case> {
    let asked = |name: &str, line: &str| {
        case(name, [get().saying(&["Cache-Control: max-age=3600"]), get().asking(&[line]).stored()])
    };
    vec![
        case(
            "rfc9111_5_4_pragma_no_cache_is_no_cache",
            [get().saying(&["Cache-Control: max-age=3600"]), get().asking(&["Pragma: no-cache"])],
        ),
        case(
            "rfc9111_5_4_pragma_is_not_heard_beside_cache_control",
            [
                get().saying(&["Cache-Control: max-age=3600"]),
                get().asking(&["Pragma: no-cache", "Cache-Control: foo"]).stored(),
            ],
        ),
        asked("rfc9111_5_4_pragma_extension", "Pragma: unrecognised-extension"),
        reused(
            "rfc9111_5_4_pragma_means_nothing_in_an_answer",
            &["Cache-Control: max-age=3600", "Pragma: no-cache"],
        ),
        reused(
            "rfc9111_5_4_pragma_extension_in_an_answer",
            &["Cache-Control: max-age=3600", "Pragma: unrecognised-extension"],
        ),
        case(
            "rfc9111_5_4_pragma_keeps_from_guesses",
            [
                get().saying(&["Last-Modified: @-10000", "Pragma: no-cache"]),
                get().validated(&["If-Modified-Since: @-10000"]),
            ],
        ),
    ]
}
