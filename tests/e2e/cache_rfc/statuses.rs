//! Statuses and methods: what may be stored of them where the answer says for how long (RFC 9111 §3, RFC 9110 §9, §15).

use super::case::{Case, case, get};
use super::run::run;

#[test]
fn statuses() {
    run(&cases());
}

pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for status in [
        200, 201, 202, 203, 204, 299, 300, 301, 302, 303, 307, 308, 400, 401, 402, 403, 404, 405, 410, 414,
        418, 421, 422, 425, 429, 451, 499, 500, 501, 502, 503, 504, 508, 599,
    ] {
        let said =
            |lines: &[&str]| get().status(status).saying(&["Location: /elsewhere", "A: 1"]).saying(lines);
        let fresh =
            said(&["Cache-Control: max-age=100000", "Expires: @100000", "Last-Modified: @0", "Date: @0"]);
        all.push(case(
            format!("rfc9111_3_a_fresh_{status}"),
            [fresh, get().status(status).stored().has(&["A: 1", "Location: /elsewhere"])],
        ));
        let stale = said(&["Expires: @-5000", "Date: @0"]);
        all.push(case(format!("rfc9111_4_2_a_stale_{status}"), [stale, get().status(status)]));
    }
    for status in [206, 412, 416, 417, 431] {
        let said = || get().status(status).saying(&["Cache-Control: max-age=100000"]);
        all.push(case(format!("rfc9111_3_never_a_{status}"), [said(), said()]));
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "M-SEARCH", "QUERY", "FOO"] {
        let name = method.to_ascii_lowercase().replace('-', "_");
        let asking = || get().method(method).sending("abc").saying(&["Cache-Control: max-age=3600"]);
        all.push(case(
            format!("rfc9110_9_2_3_an_answer_to_{name}_is_not_stored"),
            [asking(), asking(), get()],
        ));
        all.push(case(
            format!("rfc9111_4_{name}_is_written_through"),
            [get().saying(&["Cache-Control: max-age=3600"]), asking()],
        ));
    }
    all.extend([
        case(
            "rfc9110_9_3_3_post_with_its_own_content_location",
            [
                get()
                    .method("POST")
                    .sending("12345")
                    .saying(&["Expires: @2592000", "Date: @0"])
                    .saying(&["Content-Location: /rfc9110_9_3_3_post_with_its_own_content_location"]),
                get(),
            ],
        )
        .known("§9.3.3 lets a cache store it for GET; hardly any origin means that"),
        case(
            "rfc9110_9_3_1_get_with_a_body_goes_past",
            [
                get().saying(&["Cache-Control: max-age=3600"]),
                get().sending("abc").saying(&["Cache-Control: max-age=3600"]),
                get().stored(),
            ],
        ),
        case(
            "rfc9110_9_3_1_get_with_a_body_is_not_stored",
            [get().sending("abc").saying(&["Cache-Control: max-age=3600"]), get()],
        ),
        case(
            "rfc9110_9_1_methods_are_told_by_their_case",
            [get().method("get").saying(&["Cache-Control: max-age=3600"]), get()],
        ),
        case(
            "rfc9111_4_2_4_a_newer_status_takes_the_place_of_an_older_one",
            [
                get().saying(&["Cache-Control: max-age=0", "ETag: \"a\""]),
                get().status(410).saying(&["Cache-Control: max-age=3600"]),
                get().stored_of(2),
            ],
        ),
    ]);
    all
}
