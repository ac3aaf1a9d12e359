//! How long an answer is fresh by `Cache-Control`, and how old it is.

use super::case::{Case, case, get, not_reused, reused};
use super::run::run;

#[test]
fn freshness() {
    run(&cases());
}

pub fn cases() -> Vec<Case> {
    let mut all = lifetimes();
    all.extend(shared());
    all.extend(ages());
    all
}

fn lifetimes() -> Vec<Case> {
    vec![
        not_reused("rfc9111_4_2_2_an_answer_that_says_nothing", &[]),
        reused("rfc9111_5_2_2_1_max_age", &["Cache-Control: max-age=3600"]),
        not_reused("rfc9111_5_2_2_1_max_age_0", &["Cache-Control: max-age=0"]),
        case("rfc9111_4_2_max_age_passes", [get().saying(&["Cache-Control: max-age=1"]), get().in_time()]),
        reused("rfc9111_1_2_2_max_age_2147483647", &["Cache-Control: max-age=2147483647"]),
        reused("rfc9111_1_2_2_max_age_2147483648", &["Cache-Control: max-age=2147483648"]),
        reused("rfc9111_1_2_2_max_age_2147483649", &["Cache-Control: max-age=2147483649"]),
        reused("rfc9111_1_2_2_max_age_99999999999", &["Cache-Control: max-age=99999999999"]),
        reused(
            "rfc9111_1_2_2_max_age_greater_than_any_number",
            &["Cache-Control: max-age=999999999999999999999999999999999"],
        ),
        reused(
            "rfc9111_5_3_max_age_goes_before_a_past_expires",
            &["Cache-Control: max-age=3600", "Expires: @-7200", "Date: @0"],
        ),
        reused(
            "rfc9111_5_3_max_age_goes_before_a_broken_expires",
            &["Cache-Control: max-age=3600", "Expires: 0", "Date: @0"],
        ),
        not_reused(
            "rfc9111_5_3_max_age_0_goes_before_a_future_expires",
            &["Expires: @3600", "Cache-Control: max-age=0", "Date: @0"],
        ),
        reused("rfc9111_5_2_3_max_age_beside_an_extension", &["Cache-Control: foobar, max-age=3600"]),
        reused(
            "rfc9111_5_2_3_max_age_beside_an_extension_with_a_value",
            &["Cache-Control: foo=bar, community=\"UCI, x\", max-age=3600"],
        ),
        reused("rfc9111_5_2_max_age_in_any_case", &["Cache-Control: MaX-aGe=3600"]),
        not_reused("rfc9111_5_2_2_1_max_age_below_zero", &["Cache-Control: max-age=-3600"]),
        reused(
            "rfc9110_5_3_max_age_on_a_line_of_its_own",
            &["Cache-Control: foobar", "Cache-Control: max-age=3600"],
        ),
        reused("rfc9110_5_6_1_2_empty_members_are_passed_over", &["Cache-Control: , ,max-age=3600,, "]),
    ]
}

fn shared() -> Vec<Case> {
    vec![
        reused("rfc9111_5_2_2_10_s_maxage", &["Cache-Control: s-maxage=3600"]),
        not_reused("rfc9111_5_2_2_10_s_maxage_0", &["Cache-Control: s-maxage=0"]),
        not_reused(
            "rfc9111_5_2_2_10_s_maxage_goes_before_a_longer_max_age",
            &["Cache-Control: max-age=3600, s-maxage=0"],
        ),
        not_reused(
            "rfc9111_5_2_2_10_s_maxage_goes_before_a_longer_max_age_behind_it",
            &["Cache-Control: s-maxage=0, max-age=3600"],
        ),
        not_reused(
            "rfc9111_5_2_2_10_s_maxage_goes_before_a_longer_max_age_on_another_line",
            &["Cache-Control: max-age=3600", "Cache-Control: s-maxage=0"],
        ),
        reused(
            "rfc9111_5_2_2_10_s_maxage_goes_before_a_shorter_max_age",
            &["Cache-Control: max-age=0, s-maxage=3600"],
        ),
        reused(
            "rfc9111_5_2_2_10_s_maxage_goes_before_max_age_0_and_a_past_expires",
            &["Expires: @-10", "Cache-Control: max-age=0, s-maxage=3600"],
        ),
        reused(
            "rfc9111_5_2_2_10_s_maxage_goes_before_expires",
            &["Expires: @-10", "Cache-Control: s-maxage=3600"],
        ),
        not_reused(
            "rfc9111_5_2_2_10_s_maxage_that_has_passed",
            &["Cache-Control: s-maxage=10, max-age=3600", "Age: 20"],
        ),
        // It means proxy-revalidate as well: a dead origin is not stood in for.
        case(
            "rfc9111_5_2_2_10_s_maxage_is_not_sent_stale",
            [
                get().saying(&["Cache-Control: s-maxage=10, stale-if-error=600", "Age: 20", "ETag: \"a\""]),
                get().dies().failed(502).origin_has(&["If-None-Match: \"a\""]),
            ],
        ),
    ]
}

fn ages() -> Vec<Case> {
    vec![
        not_reused(
            "rfc9111_4_2_3_age_above_max_age",
            &["Date: @0", "Cache-Control: max-age=3600", "Age: 7200"],
        ),
        // Fresh is what is younger than its lifetime (§4.2).
        not_reused(
            "rfc9111_4_2_age_that_is_max_age",
            &["Date: @0", "Cache-Control: max-age=3600", "Age: 3600"],
        ),
        reused("rfc9111_4_2_3_age_below_max_age", &["Cache-Control: max-age=3600", "Age: 3000"]),
        not_reused("rfc9111_4_2_3_apparent_age", &["Date: @-7200", "Cache-Control: max-age=3600"]),
        not_reused(
            "rfc9111_4_2_3_the_greater_of_age_and_apparent_age",
            &["Date: @-7200", "Cache-Control: max-age=3600", "Age: 10"],
        ),
        reused(
            "rfc9111_4_2_3_a_date_in_the_future_makes_nothing_younger",
            &["Date: @7200", "Cache-Control: max-age=3600", "Age: 10"],
        ),
        not_reused(
            "rfc9111_4_2_3_a_date_in_the_future_hides_no_age",
            &["Date: @7200", "Cache-Control: max-age=3600", "Age: 3600"],
        ),
        case(
            "rfc9111_5_1_age_is_made_up",
            [
                get().saying(&["Cache-Control: max-age=3600", "Date: @0"]).lacks(&["Age"]),
                get().stored().least_age(0),
            ],
        ),
        case(
            "rfc9111_5_1_age_counts_on",
            [get().saying(&["Cache-Control: max-age=3600"]), get().stored().least_age(1).in_time()],
        ),
        case(
            "rfc9111_5_1_age_counts_on_from_what_it_was",
            [
                get().saying(&["Cache-Control: max-age=600", "Age: 30"]),
                get().stored().least_age(30).lacks(&["Age: 0"]),
            ],
        ),
        case(
            "rfc9111_5_1_age_counts_on_from_what_it_was_by_expires",
            [get().saying(&["Expires: @600", "Date: @0", "Age: 30"]), get().stored().least_age(30)],
        ),
        case(
            "rfc9111_4_2_3_age_counts_from_the_date",
            [get().saying(&["Date: @-60", "Cache-Control: max-age=600"]), get().stored().least_age(60)],
        ),
        case(
            "rfc9111_5_1_age_greater_than_there_can_be",
            [
                get().saying(&["Cache-Control: max-age=3600", "Age: 99999999999", "ETag: \"a\""]),
                get().validated(&["If-None-Match: \"a\""]),
            ],
        ),
        // An answer that is on its way through is as old as it says.
        case(
            "rfc9111_5_1_age_of_others_goes_through",
            [get().saying(&["Cache-Control: no-store", "Age: 30"]).has(&["Age: 30"])],
        ),
    ]
}
