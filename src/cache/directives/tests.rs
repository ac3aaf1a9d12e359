//! What is read of `Cache-Control` and of its targeted form.

use proptest::prelude::*;

use super::*;

fn answer(lines: &[(&str, &str)]) -> AnswerDirectives {
    let mut head = Head::answer(200);
    lines.iter().for_each(|(name, value)| head.push(name.as_bytes(), value.as_bytes()));
    AnswerDirectives::of(&head)
}

fn said(value: &str) -> AnswerDirectives {
    answer(&[("Cache-Control", value)])
}

fn asked(lines: &[&str]) -> RequestDirectives {
    let mut all = RequestDirectives::default();
    lines.iter().for_each(|line| all.take_line(line.as_bytes()));
    all
}

#[test]
fn rfc9111_1_2_2_delta_seconds() {
    for (text, seconds) in [
        ("0", Some(0)),
        ("003600", Some(3600)),
        ("2147483647", Some(2_147_483_647)),
        ("2147483648", Some(MOST_SECONDS)),
        ("4294967297", Some(MOST_SECONDS)),
        ("99999999999999999999999", Some(MOST_SECONDS)),
        ("", None),
        ("-1", None),
        ("1.0", None),
        ("1 ", None),
        ("1a", None),
        ("'1'", None),
        ("+1", None),
    ] {
        assert_eq!(delta_seconds(text.as_bytes()), seconds, "{text}");
    }
}

#[test]
fn rfc9111_5_2_values_are_tokens_or_quoted() {
    assert_eq!(said("max-age=3600").max_age, Some(3600));
    assert_eq!(said("MaX-aGe=3600").max_age, Some(3600));
    assert_eq!(said("max-age=\"3600\"").max_age, Some(3600));
    assert_eq!(said("foobar, foo=bar , max-age=3600,").max_age, Some(3600));
    assert_eq!(said("extension=\"max-age=3600\", max-age=1").max_age, Some(1));
    assert_eq!(said("max-age=1, extension=\"max-age=3600\"").max_age, Some(1));
    assert_eq!(said("extension=\"a\\\", max-age=3600, \", max-age=1").max_age, Some(1));
    let flags =
        said("PUBLIC, must-revalidate,proxy-revalidate, no-transform, immutable, must-understand, no-store");
    assert!(flags.public && flags.must_revalidate && flags.proxy_revalidate && flags.no_transform);
    assert!(flags.immutable && flags.must_understand && flags.no_store && !flags.no_cache && !flags.private);
    assert_eq!(said("").lifetime(), None);
}

#[test]
fn rfc9111_4_2_1_ages_that_are_none_are_stale() {
    for value in ["a3600", "3600a", "'3600'", "3600.0", "-3600", "", " 3600", "\"36", "\"3600\"x", "3600 x"] {
        assert_eq!(said(&format!("max-age={value}")).lifetime(), Some(0), "{value}");
    }
    assert_eq!(said("max-age =3600").lifetime(), Some(0));
    assert_eq!(said("max-age").lifetime(), Some(0));
    assert_eq!(said("max-age=3600, s-maxage=x").lifetime(), Some(0));
}

#[test]
fn rfc9111_4_2_1_the_first_of_several_counts() {
    assert_eq!(said("max-age=1800, max-age=1").max_age, Some(1800));
    assert_eq!(said("max-age=1, max-age=1800").max_age, Some(1));
    assert_eq!(said("max-age=x, max-age=1800").max_age, Some(0));
    let lines = [("Cache-Control", "max-age=1"), ("cache-control", "max-age=1800, no-store")];
    assert_eq!((answer(&lines).max_age, answer(&lines).no_store), (Some(1), true));
}

#[test]
fn rfc9111_4_2_1_prohibitions_count_however_they_are_written() {
    for value in [
        "no-store=1",
        "no-store=\"\"",
        "no-store =x",
        "no-store=",
        "x, No-StOrE",
        "a=\"b, no-store",
        "a=\\\", no-store",
    ] {
        assert!(said(value).no_store, "{value}");
    }
    for value in ["private=", "private=\"\"", "private =\"a\"", "private=\", \"", "private=\"a\" b"] {
        assert!(said(value).private, "{value}");
    }
    assert!(!said("public=, public =x, public=1").public);
    assert!(said("must-revalidate=1").must_revalidate && said("must-revalidate =\"x").must_revalidate);
    // RFC 8246 §2: arguments have no meaning.
    assert!(said("immutable=1").immutable && !said("immutable =1").immutable);
    assert!(!said("x=\"no-store\"").no_store);
    let open = said("max-age=60, x=\"y");
    assert_eq!((open.is_broken, open.lifetime()), (true, Some(0)));
}

#[test]
fn rfc9111_5_2_2_4_and_7_fields_that_are_named() {
    let mut head = Head::answer(200);
    head.push(b"Cache-Control", b"no-cache=\"a, B\", private=c, max-age=5, x=\"d\"");
    let said = AnswerDirectives::of(&head);
    assert!(said.names_fields && !said.no_cache && !said.private);
    for (field, is) in [("A", true), ("b", true), ("c", true), ("d", false), ("max-age", false)] {
        assert_eq!(names_field(&head, field.as_bytes()), is, "{field}");
    }
    assert!(self::said("no-cache=\"a\", no-cache").no_cache);
}

#[test]
fn rfc9111_4_2_1_s_maxage_goes_first() {
    assert_eq!(said("max-age=3600, s-maxage=1").lifetime(), Some(1));
    assert_eq!(said("s-maxage=3600, max-age=1").lifetime(), Some(3600));
    let both = said("max-age=0, stale-while-revalidate=30, stale-if-error=x");
    assert_eq!((both.stale_while_revalidate, both.stale_if_error), (Some(30), Some(0)));
}

#[test]
fn rfc9213_2_2_a_valid_targeted_field_speaks_alone() {
    let both = |targeted, plain| answer(&[("Cache-Control", plain), ("CDN-Cache-Control", targeted)]);
    assert_eq!(both("max-age=3600", "max-age=1").lifetime(), Some(3600));
    assert_eq!(both("max-age=1", "max-age=3600").lifetime(), Some(1));
    assert!(!both("max-age=1", "no-store").no_store);
    assert!(both("no-store", "max-age=10").no_store);
    assert!(both("private", "max-age=10").private);
    assert!(both("no-cache", "max-age=10").no_cache);
    assert!(both("no-cache=\"a\"", "max-age=10").names_fields);
    assert_eq!(both("foobar, max-age=3600", "").lifetime(), Some(3600));
    assert_eq!(both("max-age=99999999999", "").lifetime(), Some(MOST_SECONDS));
    assert_eq!(both("max-age=1, max-age=2", "").lifetime(), Some(2), "RFC 9651 §3.2");
    assert!(!both("no-store=?0, max-age=1", "").no_store);
}

#[test]
fn rfc9213_2_1_an_invalid_targeted_field_is_not_there() {
    for targeted in [
        "max-age=10000, &&&&&",
        "max-age=\"10000\"",
        "max-age =100",
        "max-age= 100",
        "MaX-aGe=3600",
        "",
        "max-age=1.5",
        "no-store=1",
    ] {
        let said = answer(&[("Cache-Control", "max-age=7"), ("CDN-Cache-Control", targeted)]);
        assert_eq!((said.is_targeted, said.lifetime()), (false, Some(7)), "{targeted}");
    }
}

#[test]
fn rfc9111_5_2_1_requests() {
    let all = asked(&[
        "max-age=5, min-fresh=\"6\"",
        "MAX-STALE=7, no-cache, no-store",
        "only-if-cached, stale-if-error=8",
    ]);
    assert_eq!(
        (all.max_age, all.min_fresh, all.max_stale, all.stale_if_error),
        (Some(5), Some(6), Some(7), Some(8))
    );
    assert!(all.no_cache && all.no_store && all.only_if_cached && !all.no_transform);
    assert_eq!(asked(&["max-stale"]).max_stale, Some(MOST_SECONDS));
    // Whatever is broken asks for more than it did.
    let broken = asked(&["max-age=x, max-stale=x, min-fresh=x, stale-if-error"]);
    assert_eq!((broken.max_age, broken.max_stale), (Some(0), Some(0)));
    assert_eq!((broken.min_fresh, broken.stale_if_error), (Some(MOST_SECONDS), Some(0)));
    assert_eq!(asked(&["max-stale=", "max-stale"]).max_stale, Some(0));
}

proptest! {
    /// What stands in front and behind never makes a prohibition go away, if it is a list item of its own.
    #[test]
    fn nothing_hides_a_prohibition(front in "[ !#-~]{0,20}", behind in "[ -~]{0,20}") {
        let value = format!("{front},no-store,{behind}");
        prop_assert!(said(&value).no_store, "{}", value);
    }

    #[test]
    fn no_bytes_panic(value in proptest::collection::vec(any::<u8>(), 0..60)) {
        let mut head = Head::answer(200);
        head.push(b"Cache-Control", &value);
        head.push(b"CDN-Cache-Control", &value);
        prop_assert!(AnswerDirectives::of(&head).lifetime().is_none_or(|seconds| seconds <= MOST_SECONDS));
        prop_assert!(!names_field(&head, b"not, a name"));
        prop_assert!(asked(&[&String::from_utf8_lossy(&value)]).max_age.is_none_or(|seconds| seconds <= MOST_SECONDS));
    }
}
