//! What is read of lines that are broken, doubled or written in unusual ways.
//!
//! RFC 9111 §4.2.1: where they contradict one another, the first one counts or the answer is stale; here what forbids counts always, the
//! first age counts, and one that is none is zero.

use super::case::{Case, case, get, not_reused, reused};
use super::run::run;

#[test]
fn parsing() {
    run(&cases());
}

pub fn cases() -> Vec<Case> {
    let mut all = cache_control();
    all.extend(ages());
    all.extend(expires());
    all
}

fn cache_control() -> Vec<Case> {
    vec![
        reused("rfc9111_4_2_1_the_first_max_age_counts", &["Cache-Control: max-age=1800, max-age=0"]),
        reused(
            "rfc9111_4_2_1_the_first_max_age_counts_on_lines",
            &["Cache-Control: max-age=1800", "Cache-Control: max-age=0"],
        ),
        not_reused("rfc9111_4_2_1_the_first_max_age_is_stale", &["Cache-Control: max-age=0, max-age=1800"]),
        not_reused(
            "rfc9111_4_2_1_the_first_max_age_is_stale_on_lines",
            &["Cache-Control: max-age=0", "Cache-Control: max-age=1800"],
        ),
        not_reused(
            "rfc9110_5_6_4_max_age_in_quotes_is_none",
            &["Cache-Control: extension=\"max-age=3600\", max-age=0"],
        ),
        not_reused(
            "rfc9110_5_6_4_max_age_in_quotes_is_none_behind_one",
            &["Cache-Control: max-age=0, extension=\"max-age=3600\""],
        ),
        not_reused(
            "rfc9110_5_6_4_max_age_in_quotes_behind_an_escape_is_none",
            &["Cache-Control: extension=\"\\\", max-age=3600\", max-age=0"],
        ),
        not_reused("rfc9110_5_6_4_only_in_quotes", &["Cache-Control: extension=\"x, max-age=3600\""]),
        reused("rfc9111_5_2_a_quoted_max_age", &["Cache-Control: max-age=\"3600\""]),
        not_reused("rfc9111_5_2_space_before_equals", &["Cache-Control: max-age =3600"]),
        not_reused("rfc9111_5_2_space_after_equals", &["Cache-Control: max-age= 3600"]),
        reused("rfc9111_1_2_2_leading_zeros", &["Cache-Control: max-age=003600"]),
        not_reused("rfc9111_5_2_single_quotes", &["Cache-Control: max-age='3600'"]),
        not_reused("rfc9111_1_2_2_a_decimal_zero", &["Cache-Control: max-age=3600.0"]),
        not_reused("rfc9111_1_2_2_a_decimal_five", &["Cache-Control: max-age=3600.5"]),
        not_reused("rfc9111_4_2_1_a_letter_before", &["Cache-Control: max-age=a3600"]),
        not_reused("rfc9111_4_2_1_a_letter_behind", &["Cache-Control: max-age=3600a"]),
        not_reused("rfc9111_4_2_1_max_age_without_a_value", &["Cache-Control: max-age"]),
        not_reused("rfc9111_4_2_1_max_age_with_an_empty_value", &["Cache-Control: max-age="]),
        not_reused("rfc9111_4_2_1_max_age_with_empty_quotes", &["Cache-Control: max-age=\"\""]),
        not_reused("rfc9110_5_6_4_a_quote_that_never_ends", &["Cache-Control: x=\"y, max-age=3600"]),
        not_reused(
            "rfc9110_5_6_4_an_open_quote_hides_no_no_store",
            &["Cache-Control: max-age=3600, x=\"y, no-store"],
        ),
        not_reused(
            "rfc9111_4_2_1_a_broken_max_age_is_not_expires",
            &["Cache-Control: max-age=x", "Expires: @3600"],
        ),
        not_reused("rfc9111_4_2_1_no_store_with_a_value", &["Cache-Control: no-store=1, max-age=3600"]),
        not_reused(
            "rfc9111_4_2_1_no_cache_with_an_empty_value",
            &["Cache-Control: no-cache=\"\", max-age=3600"],
        ),
        not_reused("rfc9111_5_2_2_7_private_with_a_space", &["Cache-Control: private , max-age=3600"]),
        not_reused("rfc9111_5_2_a_semicolon_is_no_comma", &["Cache-Control: max-age=3600; x"]),
        reused(
            "rfc9111_5_2_a_name_that_only_begins_so",
            &["Cache-Control: no-storex, privates, max-age=3600"],
        ),
        not_reused("rfc9111_5_2_a_name_that_only_ends_so", &["Cache-Control: x-max-age=3600"]),
    ]
}

fn ages() -> Vec<Case> {
    let age = |name: &str, is_reused: bool, ages: &[&str]| {
        let mut lines = vec!["Date: @0", "Cache-Control: max-age=3600"];
        lines.extend(ages);
        if is_reused { reused(name, &lines) } else { not_reused(name, &lines) }
    };
    vec![
        age("rfc9111_5_1_age_is_no_number", true, &["Age: abc"]),
        age("rfc9111_5_1_age_is_below_zero", true, &["Age: -7200"]),
        age("rfc9111_5_1_age_is_a_decimal", true, &["Age: 7200.0"]),
        age("rfc9111_5_1_age_with_a_letter", true, &["Age: 7200s"]),
        age("rfc9111_5_1_the_first_age_counts", false, &["Age: 7200,0"]),
        age("rfc9111_5_1_the_first_age_counts_on_lines", false, &["Age: 7200", "Age: 0"]),
        age("rfc9111_5_1_the_first_age_counts_though_it_is_0", true, &["Age: 0,7200"]),
        age("rfc9111_5_1_the_first_age_counts_though_it_is_0_on_lines", true, &["Age: 0", "Age: 7200"]),
        age("rfc9111_5_1_age_0_twice", true, &["Age: 0, 0"]),
        age("rfc9111_5_1_age_0_twice_on_lines", true, &["Age: 0", "Age: 0"]),
        age("rfc9111_5_1_an_old_age_twice", false, &["Age: 7200, 7200"]),
        age("rfc9111_5_1_an_old_age_twice_on_lines", false, &["Age: 7200", "Age: 7200"]),
        case(
            "rfc9111_5_1_of_several_ages_one_is_left",
            [
                get().saying(&["Cache-Control: max-age=3600", "Age: 5", "Age: 0"]),
                get().stored().least_age(5).lacks(&["Age: 0"]),
            ],
        ),
    ]
}

fn expires() -> Vec<Case> {
    let date = |name: &str, is_reused: bool, date: &str| {
        let line = format!("Expires: {date}");
        let lines = [line.as_str(), "Date: @0"];
        if is_reused { reused(name, &lines) } else { not_reused(name, &lines) }
    };
    vec![
        date("rfc9110_5_6_7_imf_fixdate", true, "Thu, 18 Aug 2050 02:01:18 GMT"),
        date("rfc9111_4_2_the_day_in_any_case", true, "THU, 18 Aug 2050 02:01:18 GMT"),
        date("rfc9111_4_2_the_month_in_any_case", true, "Thu, 18 AUG 2050 02:01:18 GMT"),
        date("rfc9111_4_2_the_zone_in_any_case", true, "Thu, 18 Aug 2050 02:01:18 gMT"),
        date("rfc9110_5_6_7_rfc850_date", true, "Thursday, 18-Aug-50 02:01:18 GMT"),
        date("rfc9110_5_6_7_asctime_date", true, "Thu Aug 18 02:01:18 2050"),
        date("rfc9110_5_6_7_two_digits_of_the_last_century", false, "Sunday, 06-Nov-94 08:49:37 GMT"),
        date("rfc9111_5_3_utc_is_no_zone", false, "Thu, 18 Aug 2050 02:01:18 UTC"),
        date("rfc9111_5_3_an_offset_is_no_zone", false, "Thu, 18 Aug 2050 02:01:18 +0000"),
        date("rfc9111_5_3_no_zone", false, "Thu, 18 Aug 2050 02:01:18"),
        date("rfc9111_5_3_a_short_day_and_two_digits", false, "Thu, 18 Aug 50 02:01:18 GMT"),
        date("rfc9111_5_3_no_comma", false, "Thu 18 Aug 2050 02:01:18 GMT"),
        date("rfc9111_5_3_several_spaces", false, "Thu, 18  Aug  2050 02:01:18 GMT"),
        date("rfc9111_5_3_dashes", false, "Thu, 18-Aug-2050 02:01:18 GMT"),
        date("rfc9111_5_3_periods", false, "Thu, 18 Aug 2050 02.01.18 GMT"),
        date("rfc9111_5_3_one_digit_of_the_hour", false, "Thu, 18 Aug 2050 2:01:18 GMT"),
        date("rfc9111_5_3_an_hour_that_there_is_not", false, "Thu, 18 Aug 2050 25:01:18 GMT"),
        date("rfc9111_5_3_a_day_that_there_is_not", false, "Thu, 31 Feb 2050 02:01:18 GMT"),
        date("rfc9111_5_3_a_number", false, "2050"),
        date("rfc9111_5_3_nothing", false, ""),
        date("rfc9111_5_3_minus_one", false, "-1"),
    ]
}
