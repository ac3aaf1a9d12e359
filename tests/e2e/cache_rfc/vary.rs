//! `Vary`: which of several stored answers is for a request (RFC 9111 §4.1, RFC 9110 §12.5.5).

use super::case::{Case, Step, case, get};
use super::run::run;

#[test]
fn vary() {
    run(&cases());
}

/// An answer that varies so, to a request with these lines.
fn varies(vary: &[&str], asking: &[&str]) -> Step {
    get()
        .asking(asking)
        .saying(&["Cache-Control: max-age=5000", "Last-Modified: @-3000", "Date: @0"])
        .saying(vary)
}

/// It is what a request with `then` gets as well, or not.
fn pair(name: &str, vary: &str, asking: &[&str], then: &[&str], is_reused: bool) -> Case {
    let second = varies(&[vary], then);
    case(
        name,
        [
            varies(&[vary], asking),
            if is_reused { second.stored() } else { second.origin_lacks(&["If-Modified-Since"]) },
        ],
    )
}

pub fn cases() -> Vec<Case> {
    let mut all = matching();
    all.extend(normal_forms());
    all.extend(stars());
    all
}

fn matching() -> Vec<Case> {
    let two = "Vary: Foo, Bar";
    let three = "Vary: Foo, Bar, Baz";
    let all_three = ["Foo: 1", "Bar: abc", "Baz: 789"];
    vec![
        pair("rfc9111_4_1_a_match", "Vary: Foo", &["Foo: 1"], &["Foo: 1"], true),
        pair("rfc9111_4_1_no_match", "Vary: Foo", &["Foo: 1"], &["Foo: 2"], false),
        pair("rfc9111_4_1_the_first_omits_it", "Vary: Foo", &[], &["Foo: 1"], false),
        pair("rfc9111_4_1_the_second_omits_it", "Vary: Foo", &["Foo: 1"], &[], false),
        pair("rfc9111_4_1_both_omit_it", "Vary: Foo", &[], &[], true),
        pair("rfc9111_4_1_empty_is_not_absent", "Vary: Foo", &["Foo:"], &[], false),
        pair("rfc9111_4_1_another_case_of_a_value", "Vary: Foo", &["Foo: a"], &["Foo: A"], false),
        pair("rfc9110_5_1_another_case_of_the_name", "vary: FOO", &["Foo: 1"], &["foo: 1"], true),
        pair("rfc9110_5_1_another_case_and_no_match", "vary: FOO", &["Foo: 1"], &["foo: 2"], false),
        pair(
            "rfc9111_4_1_a_line_that_vary_does_not_name",
            "Vary: Foo",
            &["Foo: 1", "Other: 2"],
            &["Foo: 1", "Other: 3"],
            true,
        ),
        pair("rfc9111_4_1_two_match", two, &["Foo: 1", "Bar: abc"], &["Bar: abc", "Foo: 1"], true),
        pair("rfc9111_4_1_two_do_not_match", two, &["Foo: 1", "Bar: abc"], &["Foo: 2", "Bar: abc"], false),
        pair(
            "rfc9111_4_1_the_second_of_two_does_not_match",
            two,
            &["Foo: 1", "Bar: abc"],
            &["Foo: 1", "Bar: abcd"],
            false,
        ),
        pair("rfc9111_4_1_two_are_omitted", two, &["Foo: 1", "Bar: abc"], &[], false),
        pair(
            "rfc9111_4_1_values_that_change_places",
            two,
            &["Foo: 1", "Bar: 2"],
            &["Foo: 2", "Bar: 1"],
            false,
        ),
        pair("rfc9111_4_1_three_match", three, &all_three, &all_three, true),
        pair("rfc9111_4_1_three_do_not_match", three, &all_three, &["Foo: 2", "Bar: abc", "Baz: 789"], false),
        pair(
            "rfc9111_4_1_three_in_another_order",
            three,
            &all_three,
            &["Foo: 1", "Baz: 789", "Bar: abcde"],
            false,
        ),
        pair(
            "rfc9111_4_1_three_of_which_one_is_omitted",
            three,
            &["Foo: 1", "Baz: 789"],
            &["Foo: 1", "Baz: 789"],
            true,
        ),
        case(
            "rfc9111_4_1_vary_on_several_lines",
            [
                varies(&["Vary: Foo", "Vary: Bar"], &["Foo: 1", "Bar: 1"]),
                varies(&["Vary: Foo", "Vary: Bar"], &["Foo: 1", "Bar: 2"]),
                get().asking(&["Foo: 1", "Bar: 1"]).stored(),
            ],
        ),
        case(
            "rfc9111_4_1_two_variants_are_kept",
            [
                varies(&["Vary: Foo"], &["Foo: 1"]),
                varies(&["Vary: Foo"], &["Foo: 2"]),
                get().asking(&["Foo: 1"]).stored(),
                get().asking(&["Foo: 2"]).stored_of(2),
            ],
        ),
        case(
            "rfc9111_4_1_of_those_that_fit_the_newest",
            [
                varies(&["Vary: Foo"], &["Foo: 1", "Bar: 1"]),
                varies(&["Vary: Bar"], &["Foo: 2", "Bar: 1"]),
                get().asking(&["Foo: 1", "Bar: 1"]).stored_of(2),
            ],
        ),
        case(
            "rfc9111_4_1_an_answer_without_vary_is_for_all",
            [
                varies(&["Vary: Foo"], &["Foo: 1"]),
                varies(&[], &["Foo: 2"]),
                get().asking(&["Foo: 3"]).stored_of(2),
            ],
        ),
        case(
            "rfc9111_4_1_a_304_for_one_variant_leaves_the_others",
            [
                varies(&["Vary: Foo", "ETag: \"1\""], &["Foo: 1"]),
                get().asking(&["Foo: 2"]).saying(&["Cache-Control: max-age=0", "Vary: Foo", "ETag: \"2\""]),
                get().asking(&["Foo: 2"]).validated_of(2, &["If-None-Match: \"2\""]).saying(&["A: 1"]),
                get().asking(&["Foo: 1"]).stored().lacks(&["A"]),
            ],
        ),
        case(
            "rfc9111_4_1_conditions_are_asked_of_the_variant",
            [
                varies(&["Vary: Foo", "ETag: \"1\""], &["Foo: 1"]),
                varies(&["Vary: Foo", "ETag: \"2\""], &["Foo: 2"]),
                get().asking(&["Foo: 1", "If-None-Match: \"2\""]).stored(),
                get().asking(&["Foo: 2", "If-None-Match: \"2\""]).stored_of(2).gets(304),
            ],
        ),
    ]
}

fn normal_forms() -> Vec<Case> {
    let language = "Vary: Accept-Language";
    let coding = "Vary: Accept-Encoding";
    vec![
        pair("rfc9111_4_1_white_space_of_a_list", "Vary: Foo", &["Foo: 1,2"], &["Foo:  1, 2 "], true),
        pair("rfc9111_4_1_a_list_on_several_lines", "Vary: Foo", &["Foo: 1, 2"], &["Foo: 1", "Foo: 2"], true),
        pair("rfc9111_4_1_a_list_in_another_order", "Vary: Foo", &["Foo: 1, 2"], &["Foo: 2, 1"], false),
        pair(
            "rfc9110_12_5_4_languages_in_any_order",
            language,
            &["Accept-Language: en, de"],
            &["Accept-Language: de, en"],
            true,
        ),
        pair(
            "rfc9110_12_5_4_languages_in_any_case",
            language,
            &["Accept-Language: en, de"],
            &["Accept-Language: eN, De"],
            true,
        ),
        pair(
            "rfc9110_12_5_4_languages_with_any_space",
            language,
            &["Accept-Language: en, de"],
            &["Accept-Language:  en ,   de"],
            true,
        ),
        pair(
            "rfc9110_12_5_4_languages_by_their_weights",
            language,
            &["Accept-Language: en;q=0.8, de"],
            &["Accept-Language: de;q=1.0,en;q=0.800"],
            true,
        ),
        pair(
            "rfc9110_12_5_4_other_weights",
            language,
            &["Accept-Language: en;q=0.8, de"],
            &["Accept-Language: de;q=0.8, en"],
            false,
        ),
        case(
            "rfc9110_12_5_4_a_language_is_not_chosen_for_the_client",
            [
                varies(&[language, "Content-Language: de"], &["Accept-Language: en, de"]),
                get().asking(&["Accept-Language: fr;q=0.5, de;q=1.0"]),
            ],
        )
        .known("what the origin would choose by these weights is the origin's business"),
        pair(
            "rfc9110_12_5_3_codings_in_any_order",
            coding,
            &["Accept-Encoding: gzip, br"],
            &["Accept-Encoding: br,GZIP"],
            true,
        ),
        pair(
            "rfc9110_8_4_1_3_x_gzip_is_gzip",
            coding,
            &["Accept-Encoding: x-gzip"],
            &["Accept-Encoding: gzip"],
            true,
        ),
        pair(
            "rfc9110_12_5_3_another_coding",
            coding,
            &["Accept-Encoding: gzip"],
            &["Accept-Encoding: br"],
            false,
        ),
        pair("rfc9110_12_5_3_no_line_is_not_an_empty_one", coding, &["Accept-Encoding:"], &[], false),
        pair(
            "rfc9110_10_1_5_white_space_in_what_is_no_list",
            "Vary: User-Agent",
            &["User-Agent: a, b"],
            &["User-Agent: a,b"],
            false,
        ),
    ]
}

fn stars() -> Vec<Case> {
    let star = |name: &str, vary: &[&str]| {
        let asking = ["Foo: 1", "Baz: 789"];
        case(name, [varies(vary, &asking), varies(vary, &asking)])
    };
    vec![
        star("rfc9111_4_1_a_star", &["Vary: *"]),
        star("rfc9111_4_1_two_stars", &["Vary: *, *"]),
        star("rfc9111_4_1_two_stars_on_lines", &["Vary: *", "Vary: *"]),
        star("rfc9111_4_1_nothing_and_a_star", &["Vary: , *"]),
        star("rfc9111_4_1_an_empty_line_and_a_star", &["Vary:", "Vary: *"]),
        star("rfc9111_4_1_a_star_and_a_name", &["Vary: *, Foo"]),
        star("rfc9111_4_1_a_name_and_a_star", &["Vary: Foo, *"]),
        star("rfc9111_4_1_a_name_and_a_star_on_lines", &["Vary: Foo", "Vary: *"]),
        star("rfc9111_4_1_what_is_no_name", &["Vary: Foo Bar"]),
        case(
            "rfc9111_4_1_an_empty_vary_is_none",
            [varies(&["Vary:"], &["Foo: 1"]), get().asking(&["Foo: 2"]).stored()],
        ),
    ]
}
