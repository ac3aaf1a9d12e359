//! Parts (RFC 9110 §14, RFC 9111 §3.3, §3.4): from whole objects only.

use super::case::{Case, Step, case, get};
use super::run::run;

#[test]
fn ranges() {
    run(&cases());
}

fn whole(lines: &[&str]) -> Step {
    get().saying(&["Cache-Control: max-age=3600"]).saying(lines).body("0123456789A")
}

const ALL: &str = "0123456789A";

/// What a range of a stored object is answered with.
fn part(name: &str, range: &str, status: u16, text: &str) -> Case {
    case(name, [whole(&[]), get().asking(&[&format!("Range: {range}")]).stored().gets(status).text(text)])
}

/// The same with `If-Range`.
fn if_range(name: &str, said: &[&str], condition: &str, is_part: bool) -> Case {
    let asking = ["Range: bytes=0-1", condition];
    let (status, text) = if is_part { (206, "01") } else { (200, ALL) };
    case(name, [whole(said), get().asking(&asking).stored().gets(status).text(text)])
}

pub fn cases() -> Vec<Case> {
    let mut all = vec![
        part("rfc9110_14_1_2_from_to", "bytes=0-1", 206, "01"),
        part("rfc9110_14_1_2_from", "bytes=1-", 206, "123456789A"),
        part("rfc9110_14_1_2_the_end", "bytes=-1", 206, "A"),
        part("rfc9110_14_1_2_an_end_longer_than_there_is", "bytes=-100", 206, ALL),
        part("rfc9110_14_1_2_to_behind_the_end", "bytes=9-100", 206, "9A"),
        part("rfc9110_14_1_the_unit_in_any_case", "BYTES=0-1", 206, "01"),
        part("rfc9110_14_1_another_unit", "lines=0-1", 200, ALL),
        part("rfc9110_14_1_1_backwards", "bytes=5-2", 200, ALL),
        part("rfc9110_14_1_1_no_range_at_all", "bytes=a-b", 200, ALL),
        part("rfc9110_15_5_17_behind_the_end", "bytes=11-", 416, ""),
        part("rfc9110_15_5_17_the_last_0_bytes", "bytes=-0", 416, ""),
        case(
            "rfc9110_14_2_several_are_answered_with_all",
            [whole(&[]), get().asking(&["Range: bytes=0-0,2-2"]).stored()],
        )
        .known("§14.2 leaves it to the server; no multipart answers are made"),
        case(
            "rfc9110_14_4_lines_of_a_206",
            [
                whole(&["ETag: \"a\"", "Expires: @60", "Content-Type: text/plain", "A: 1", "Date: @0"]),
                get().asking(&["Range: bytes=1-2"]).stored().gets(206).text("12").has(&[
                    "Content-Range: bytes 1-2/11",
                    "Content-Length: 2",
                    "ETag: \"a\"",
                    "Expires: @60",
                    "Content-Type: text/plain",
                    "Cache-Control: max-age=3600",
                    "A: 1",
                    "Date: @0",
                ]),
            ],
        ),
        case(
            "rfc9110_15_5_17_lines_of_a_416",
            [
                whole(&[]),
                get().asking(&["Range: bytes=20-30"]).stored().gets(416).has(&["Content-Range: bytes */11"]),
            ],
        ),
        case(
            "rfc9110_14_2_head_has_no_parts",
            [
                whole(&[]),
                get().method("HEAD").asking(&["Range: bytes=0-1"]).stored().has(&["Content-Length: 11"]),
            ],
        ),
        case(
            "rfc9110_14_2_an_error_has_no_parts",
            [
                get().status(404).saying(&["Cache-Control: max-age=3600"]).body(ALL),
                get().asking(&["Range: bytes=0-1"]).stored(),
            ],
        ),
        case(
            "rfc9110_13_2_2_a_condition_goes_before_a_range",
            [
                whole(&["ETag: \"a\""]),
                get().asking(&["If-None-Match: \"a\"", "Range: bytes=0-1"]).stored().gets(304),
            ],
        ),
        case(
            "rfc9111_3_3_a_206_is_not_stored_as_a_200",
            [
                get()
                    .asking(&["Range: bytes=0-1"])
                    .status(206)
                    .saying(&["Cache-Control: max-age=3600", "Content-Range: bytes 0-1/11"])
                    .body("01")
                    .origin_has(&["Range: bytes=0-1"]),
                get().origin_lacks(&["Range"]),
            ],
        ),
        case(
            "rfc9111_3_3_a_206_is_not_stored_for_the_same_range",
            [
                get()
                    .asking(&["Range: bytes=-5"])
                    .status(206)
                    .saying(&["Cache-Control: max-age=3600", "Content-Range: bytes 5-9/10"])
                    .body("56789"),
                get().asking(&["Range: bytes=-5"]).status(206).body("56789"),
            ],
        )
        .known("parts are not stored, so a part is never answered from one, nor completed"),
        case(
            "rfc9111_3_3_a_206_changes_nothing_of_what_is_stored",
            [
                get().saying(&["Cache-Control: max-age=0", "ETag: \"a\""]).body(ALL),
                get()
                    .asking(&["Range: bytes=0-1"])
                    .validated(&["If-None-Match: \"a\""])
                    .origin_lacks(&["Range"])
                    .gets(206)
                    .text("01"),
                get().validated(&["If-None-Match: \"a\""]),
            ],
        ),
        case(
            "rfc9110_14_2_who_ignores_range_is_stored_whole",
            [
                get().asking(&["Range: bytes=0-1"]).saying(&["Cache-Control: max-age=3600"]).body(ALL),
                get().stored(),
            ],
        ),
        case(
            "rfc9110_15_5_17_a_416_is_nobody_elses",
            [get().asking(&["Range: bytes=99-"]).status(416).saying(&["Cache-Control: max-age=3600"]), get()],
        ),
        case(
            "rfc9111_3_4_lines_of_what_is_stored_are_those_of_a_part",
            [
                whole(&["A: 1"]),
                get().asking(&["Range: bytes=0-1"]).stored().gets(206).text("01").has(&["A: 1"]),
            ],
        ),
    ];
    all.extend([
        if_range("rfc9110_13_1_5_its_tag", &["ETag: \"a\""], "If-Range: \"a\"", true),
        if_range("rfc9110_13_1_5_another_tag", &["ETag: \"a\""], "If-Range: \"b\"", false),
        if_range("rfc9110_13_1_5_a_weak_tag", &["ETag: W/\"a\""], "If-Range: W/\"a\"", false),
        if_range("rfc9110_13_1_5_no_tag_is_stored", &[], "If-Range: \"a\"", false),
        if_range("rfc9110_13_1_5_its_date", &["Last-Modified: @-3000", "Date: @0"], "If-Range: @-3000", true),
        if_range(
            "rfc9110_13_1_5_a_later_date",
            &["Last-Modified: @-3000", "Date: @0"],
            "If-Range: @-2000",
            false,
        ),
        if_range(
            "rfc9110_13_1_5_an_earlier_date",
            &["Last-Modified: @-3000", "Date: @0"],
            "If-Range: @-4000",
            false,
        ),
        if_range(
            "rfc9110_13_1_5_a_date_that_is_a_weak_validator",
            &["Last-Modified: @0", "Date: @0"],
            "If-Range: @0",
            false,
        ),
    ]);
    all
}
