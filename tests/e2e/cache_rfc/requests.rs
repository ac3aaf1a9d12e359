//! What a client may ask of the cache: `Cache-Control` of requests.

use super::case::{Case, Step, case, get};
use super::run::run;

#[test]
fn requests() {
    run(&cases());
}

fn fresh() -> Step {
    get().saying(&["Cache-Control: max-age=3600"])
}

pub fn cases() -> Vec<Case> {
    vec![
        case("rfc9111_5_2_1_1_max_age_0", [fresh(), get().asking(&["Cache-Control: max-age=0"])]),
        case(
            "rfc9111_5_2_1_1_max_age_below_the_age",
            [fresh().saying(&["Age: 1800"]), get().asking(&["Cache-Control: max-age=600"])],
        ),
        case(
            "rfc9111_5_2_1_1_max_age_above_the_age",
            [fresh().saying(&["Age: 1800"]), get().asking(&["Cache-Control: max-age=2000"]).stored()],
        ),
        case(
            "rfc9111_5_2_1_1_max_age_passes",
            [fresh(), get().asking(&["Cache-Control: max-age=1"]).in_time()],
        ),
        case(
            "rfc9111_5_2_1_1_max_age_greater_than_the_lifetime_makes_nothing_fresh",
            [
                get().saying(&["Cache-Control: max-age=100", "Age: 200", "ETag: \"a\""]),
                get().asking(&["Cache-Control: max-age=3600"]).validated(&["If-None-Match: \"a\""]),
            ],
        ),
        case("rfc9111_5_2_1_1_a_broken_max_age", [fresh(), get().asking(&["Cache-Control: max-age=x"])]),
        case(
            "rfc9111_5_2_1_1_in_any_case_and_in_quotes",
            [fresh(), get().asking(&["cache-control: MAX-AGE=\"0\""])],
        ),
        case(
            "rfc9111_5_2_1_2_max_stale",
            [
                get().saying(&["Cache-Control: max-age=1500", "Age: 2000", "ETag: \"a\""]),
                get().asking(&["Cache-Control: max-stale=1000"]).stored(),
            ],
        ),
        case(
            "rfc9111_5_2_1_2_max_stale_without_a_value",
            [
                get().saying(&["Cache-Control: max-age=1500", "Age: 200000", "ETag: \"a\""]),
                get().asking(&["Cache-Control: max-stale"]).stored(),
            ],
        ),
        case(
            "rfc9111_5_2_1_2_staler_than_max_stale",
            [
                get().saying(&["Cache-Control: max-age=1500", "Age: 2000", "ETag: \"a\""]),
                get().asking(&["Cache-Control: max-stale=100"]).validated(&["If-None-Match: \"a\""]),
            ],
        ),
        case(
            "rfc9111_5_2_1_2_a_broken_max_stale",
            [
                get().saying(&["Cache-Control: max-age=1500", "Age: 2000", "ETag: \"a\""]),
                get().asking(&["Cache-Control: max-stale=x"]).validated(&["If-None-Match: \"a\""]),
            ],
        ),
        case(
            "rfc9111_5_2_2_2_must_revalidate_goes_before_max_stale",
            [
                get().saying(&["Cache-Control: max-age=1500, must-revalidate", "Age: 2000", "ETag: \"a\""]),
                get().asking(&["Cache-Control: max-stale=1000"]).validated(&["If-None-Match: \"a\""]),
            ],
        ),
        // Nothing by which it could be asked for again: it is kept for who takes it stale only where the answer allows that.
        case(
            "rfc9111_5_2_1_2_max_stale_of_what_has_no_validator",
            [
                get().saying(&["Cache-Control: max-age=1500", "Age: 2000"]),
                get().asking(&["Cache-Control: max-stale=1000"]),
            ],
        )
        .known("an answer that is stale when it comes and can't be asked for again is not stored"),
        case(
            "rfc9111_5_2_1_3_min_fresh",
            [
                get().saying(&["Cache-Control: max-age=1500"]),
                get().asking(&["Cache-Control: min-fresh=2000"]),
            ],
        ),
        case(
            "rfc9111_5_2_1_3_min_fresh_of_an_aged_one",
            [
                get().saying(&["Cache-Control: max-age=1500", "Age: 1000"]),
                get().asking(&["Cache-Control: min-fresh=1000"]),
            ],
        ),
        case(
            "rfc9111_5_2_1_3_fresh_for_longer",
            [
                get().saying(&["Cache-Control: max-age=1500", "Age: 200"]),
                get().asking(&["Cache-Control: min-fresh=1000"]).stored(),
            ],
        ),
        case("rfc9111_5_2_1_4_no_cache", [fresh(), get().asking(&["Cache-Control: no-cache"])]),
        case(
            "rfc9111_5_2_1_4_no_cache_is_stored_for_others",
            [
                fresh(),
                get().asking(&["Cache-Control: no-cache"]).saying(&["Cache-Control: max-age=3600"]),
                get().stored_of(2),
            ],
        ),
        case(
            "rfc9111_5_2_1_4_no_cache_asks_by_last_modified",
            [
                fresh().saying(&["Last-Modified: @-10000", "Date: @0"]),
                get().asking(&["Cache-Control: no-cache"]).validated(&["If-Modified-Since: @-10000"]),
            ],
        ),
        case(
            "rfc9111_5_2_1_4_no_cache_asks_by_etag",
            [
                fresh().saying(&["ETag: abc"]),
                get().asking(&["Cache-Control: no-cache"]).validated(&["If-None-Match: abc"]),
            ],
        ),
        case(
            "rfc9111_5_2_1_4_no_cache_though_a_guess_holds",
            [
                get().saying(&["Last-Modified: @-86400"]),
                get().asking(&["Cache-Control: no-cache"]).validated(&["If-Modified-Since: @-86400"]),
            ],
        ),
        case(
            "rfc9111_5_2_1_5_no_store_is_not_stored",
            [get().asking(&["Cache-Control: no-store"]).saying(&["Cache-Control: max-age=3600"]), get()],
        ),
        case(
            "rfc9111_5_2_1_5_no_store_is_answered_from_what_is_stored",
            [fresh(), get().asking(&["Cache-Control: no-store"]).stored()],
        )
        .known("§5.2.1.5 forbids to store; that the origin has to be asked it doesn't say"),
        case(
            "rfc9111_5_2_1_6_no_transform_is_handed_on",
            [get().asking(&["Cache-Control: no-transform"]).origin_has(&["Cache-Control: no-transform"])],
        ),
        case(
            "rfc9111_5_2_1_7_only_if_cached_where_nothing_is",
            [get().asking(&["Cache-Control: only-if-cached"]).nobody(504)],
        ),
        case(
            "rfc9111_5_2_1_7_only_if_cached_where_it_is",
            [fresh(), get().asking(&["Cache-Control: only-if-cached"]).stored()],
        ),
        case(
            "rfc9111_5_2_1_7_only_if_cached_where_it_is_stale",
            [
                get().saying(&["Cache-Control: max-age=0", "ETag: \"a\""]),
                get().asking(&["Cache-Control: only-if-cached"]).nobody(504),
            ],
        ),
        case(
            "rfc9111_5_2_1_7_only_if_cached_where_it_is_for_others",
            [
                fresh().saying(&["Vary: Foo"]).asking(&["Foo: 1"]),
                get().asking(&["Foo: 2", "Cache-Control: only-if-cached"]).nobody(504),
            ],
        ),
        case(
            "rfc9111_5_2_1_7_only_if_cached_takes_a_stale_one_by_max_stale",
            [
                get().saying(&["Cache-Control: max-age=10", "Age: 20", "ETag: \"a\""]),
                get().asking(&["Cache-Control: only-if-cached, max-stale=3600"]).stored(),
            ],
        ),
        case(
            "rfc9111_5_2_3_an_extension_of_a_request",
            [fresh(), get().asking(&["Cache-Control: nothing-to-see-here"]).stored()],
        ),
        case(
            "rfc9111_5_2_directives_are_handed_on",
            [get()
                .asking(&["Cache-Control: max-age=5, foo=\"bar\""])
                .origin_has(&["Cache-Control: max-age=5, foo=\"bar\""])],
        ),
        case(
            "rfc9111_5_2_directives_of_answers_are_handed_on",
            [
                get()
                    .saying(&["Cache-Control: max-age=3600, foo=\"bar\"", "Pragma: x"])
                    .has(&["Cache-Control: max-age=3600, foo=\"bar\"", "Pragma: x"]),
                get().stored().has(&["Cache-Control: max-age=3600, foo=\"bar\"", "Pragma: x"]),
            ],
        ),
    ]
}
