//! Conditions of clients, answered from what is stored (RFC 9110 §13, RFC 9111 §4.3.2).

use super::case::{Case, Step, case, get};
use super::run::run;

#[test]
fn conditions() {
    run(&cases());
}

fn fresh(lines: &[&str]) -> Step {
    get().saying(&["Cache-Control: max-age=100000", "Date: @0"]).saying(lines)
}

/// The first answer has the lines `said`; what asks with the lines `asking` gets this status from the cache.
fn answered(name: &str, said: &[&str], asking: &[&str], status: u16) -> Case {
    case(name, [fresh(said), get().asking(asking).stored().gets(status)])
}

pub fn cases() -> Vec<Case> {
    let mut all = tags();
    all.extend(dates());
    all.extend(others());
    all
}

fn tags() -> Vec<Case> {
    let list = |name: &str, tag: &str, list: &str, status: u16| {
        answered(name, &[&format!("ETag: {tag}")], &[&format!("If-None-Match: {list}")], status)
    };
    vec![
        list("rfc9110_13_1_2_a_strong_tag", "\"abcdef\"", "\"abcdef\"", 304),
        list("rfc9110_13_1_2_another_tag", "\"abcdef\"", "\"abcdeg\"", 200),
        list("rfc9110_13_1_2_a_weak_tag", "W/\"abcdef\"", "W/\"abcdef\"", 304),
        list("rfc9110_8_8_3_2_a_weak_one_for_a_strong_one", "\"abcdef\"", "W/\"abcdef\"", 304),
        list("rfc9110_8_8_3_2_a_strong_one_for_a_weak_one", "W/\"abcdef\"", "\"abcdef\"", 304),
        list("rfc9110_8_8_3_a_tag_in_another_case", "\"abcdef\"", "\"ABCDEF\"", 200),
        list("rfc9110_13_1_2_the_first_of_several", "\"abcdef\"", "\"abcdef\", \"1234\", \"5678\"", 304),
        list("rfc9110_13_1_2_the_second_of_several", "\"abcdef\"", "\"1234\", \"abcdef\", \"5678\"", 304),
        list("rfc9110_13_1_2_the_last_of_several", "\"abcdef\"", "\"1234\", \"5678\", \"abcdef\"", 304),
        list("rfc9110_13_1_2_none_of_several", "\"abcdef\"", "\"1234\", \"5678\"", 200),
        list("rfc9110_13_1_2_any", "\"abcdef\"", "*", 304),
        list("rfc9110_8_8_3_a_comma_in_a_tag", "\"a,b\"", "\"x\", \"a,b\"", 304),
        list("rfc9110_8_8_3_half_of_a_tag_with_a_comma", "\"a,b\"", "\"b\"", 200),
        list("rfc9110_8_8_3_bytes_above_ascii", "\"abcdef\u{fc}\"", "\"abcdef\u{fc}\"", 304),
        list("rfc9110_8_8_3_no_quotes_at_all", "abcdef", "abcdef", 304),
        list("rfc9110_8_8_3_no_quotes_in_the_request", "\"abcdef\"", "abcdef", 200),
        list("rfc9110_8_8_3_no_quotes_in_the_answer", "abcdef", "\"abcdef\"", 200),
        list("rfc9110_8_8_3_a_small_w", "w/\"abcdef\"", "w/\"abcdef\"", 304),
        list("rfc9110_8_8_3_a_small_w_is_not_weak", "\"abcdef\"", "w/\"abcdef\"", 200),
        list("rfc9110_8_8_3_a_backslash", "W\\\"abcdef\"", "W\\\"abcdef\"", 304),
        list("rfc9110_8_8_3_no_slash", "W\"abcdef\"", "W\"abcdef\"", 304),
        answered(
            "rfc9110_13_1_2_tags_on_several_lines",
            &["ETag: \"a\""],
            &["If-None-Match: \"x\"", "If-None-Match: \"a\""],
            304,
        ),
        answered("rfc9110_13_1_2_no_tag_is_stored", &[], &["If-None-Match: \"a\""], 200),
        answered("rfc9110_13_1_2_any_without_a_tag", &[], &["If-None-Match: *"], 304),
        case(
            "rfc9110_15_4_5_lines_of_a_304",
            [
                fresh(&[
                    "ETag: \"a\"",
                    "Vary: Foo",
                    "Content-Location: /x",
                    "Expires: @100000",
                    "Content-Type: text/plain",
                    "Last-Modified: @-60",
                    "B: 1",
                ]),
                get()
                    .asking(&["If-None-Match: \"a\""])
                    .stored()
                    .gets(304)
                    .has(&[
                        "ETag: \"a\"",
                        "Vary: Foo",
                        "Content-Location: /x",
                        "Expires: @100000",
                        "Cache-Control: max-age=100000",
                        "Date: @0",
                    ])
                    .lacks(&["Content-Type", "Content-Length", "Transfer-Encoding", "B", "Last-Modified"]),
            ],
        ),
        case(
            "rfc9110_13_1_2_head_with_a_tag",
            [
                fresh(&["ETag: \"a\""]),
                get().method("HEAD").asking(&["If-None-Match: \"a\""]).stored().gets(304),
            ],
        ),
        case(
            "rfc9111_4_3_2_a_stale_one_is_asked_for_first",
            [
                get().saying(&["Cache-Control: max-age=0", "ETag: \"a\""]),
                get().asking(&["If-None-Match: \"a\""]).validated(&["If-None-Match: \"a\""]).gets(304),
            ],
        ),
        case(
            "rfc9111_4_3_2_who_has_another_one_gets_what_is_stored",
            [
                get().saying(&["Cache-Control: max-age=0", "ETag: \"a\""]),
                get().asking(&["If-None-Match: \"old\""]).validated(&["If-None-Match: \"a\""]),
            ],
        ),
        case(
            "rfc9111_4_3_2_who_has_the_new_one_gets_it_from_the_origin_and_it_is_stored",
            [
                get().saying(&["Cache-Control: max-age=0", "ETag: \"a\""]),
                get()
                    .asking(&["If-None-Match: \"new\""])
                    .saying(&["Cache-Control: max-age=60", "ETag: \"new\""])
                    .origin_has(&["If-None-Match: \"a\""]),
                get().stored_of(2),
            ],
        ),
        case(
            "rfc9110_13_2_1_a_condition_is_not_asked_of_an_error",
            [
                get().status(404).saying(&["Cache-Control: max-age=60", "ETag: \"a\""]),
                get().asking(&["If-None-Match: \"a\""]).stored(),
            ],
        ),
    ]
}

fn dates() -> Vec<Case> {
    vec![
        answered(
            "rfc9110_13_1_3_the_same_date",
            &["Last-Modified: @-3000"],
            &["If-Modified-Since: @-3000"],
            304,
        ),
        answered(
            "rfc9110_13_1_3_a_later_date",
            &["Last-Modified: @-3000"],
            &["If-Modified-Since: @-2000"],
            304,
        ),
        answered(
            "rfc9110_13_1_3_an_earlier_date",
            &["Last-Modified: @-3000"],
            &["If-Modified-Since: @-4000"],
            200,
        ),
        answered(
            "rfc9110_13_1_3_no_date",
            &["Last-Modified: @-3000"],
            &["If-Modified-Since: yesterday"],
            200,
        ),
        answered("rfc9111_4_3_2_date_where_there_is_no_last_modified", &[], &["If-Modified-Since: @0"], 304),
        answered("rfc9111_4_3_2_date_is_later", &[], &["If-Modified-Since: @-3000"], 200),
        answered(
            "rfc9110_5_6_7_an_rfc850_date",
            &["Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"],
            &["If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT"],
            304,
        ),
        answered(
            "rfc9110_5_6_7_an_asctime_date",
            &["Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"],
            &["If-Modified-Since: Sun Nov  6 08:49:37 1994"],
            304,
        ),
        answered(
            "rfc9110_13_2_2_a_tag_goes_before_a_date",
            &["Last-Modified: @-5000", "ETag: \"abcdef\""],
            &["If-None-Match: \"abcdef\"", "If-Modified-Since: @-9000"],
            304,
        ),
        answered(
            "rfc9110_13_2_2_a_tag_that_is_not_there_goes_before_a_date",
            &["Last-Modified: @-5000", "ETag: \"abcdef\""],
            &["If-None-Match: \"x\"", "If-Modified-Since: @-1"],
            200,
        ),
        case(
            "rfc9111_4_3_2_a_stale_one_by_its_date",
            [
                get().saying(&["Cache-Control: max-age=0", "Last-Modified: @-3000"]),
                get()
                    .asking(&["If-Modified-Since: @-3000"])
                    .validated(&["If-Modified-Since: @-3000"])
                    .gets(304),
            ],
        ),
        case(
            "rfc9110_15_4_5_a_304_by_its_date_has_last_modified",
            [
                fresh(&["Last-Modified: @-3000"]),
                get()
                    .asking(&["If-Modified-Since: @-3000"])
                    .stored()
                    .gets(304)
                    .has(&["Last-Modified: @-3000"]),
            ],
        ),
    ]
}

/// Conditions that only the origin may say no to.
fn others() -> Vec<Case> {
    vec![
        answered("rfc9110_13_1_1_if_match_that_holds", &["ETag: \"a\""], &["If-Match: \"a\""], 200),
        case(
            "rfc9110_13_1_1_if_match_that_does_not_hold_is_the_origins",
            [
                fresh(&["ETag: \"a\""]),
                get().asking(&["If-Match: \"b\""]).status(412).origin_has(&["If-Match: \"b\""]),
                get().stored(),
            ],
        ),
        case(
            "rfc9110_13_1_1_if_match_by_the_strong_comparison",
            [fresh(&["ETag: W/\"a\""]), get().asking(&["If-Match: W/\"a\""]).status(412)],
        ),
        answered(
            "rfc9110_13_1_4_if_unmodified_since_that_holds",
            &["Last-Modified: @-3000"],
            &["If-Unmodified-Since: @-2000"],
            200,
        ),
        case(
            "rfc9110_13_1_4_if_unmodified_since_that_does_not_hold_is_the_origins",
            [
                fresh(&["Last-Modified: @-3000"]),
                get().asking(&["If-Unmodified-Since: @-4000"]).status(412),
                get().stored(),
            ],
        ),
        case(
            "rfc9110_15_5_13_a_412_is_nobody_elses",
            [get().asking(&["If-Match: \"b\""]).status(412).saying(&["Cache-Control: max-age=60"]), get()],
        ),
    ]
}
