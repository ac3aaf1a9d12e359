//! `Vary`: for which of the requests with one key an answer is (RFC 9111 §4.1).
//!
//! What is compared is the request as the backend gets it. Values are compared in a normal form that means the same: lines of one name
//! as one list, without white space around commas, and for `Accept-Encoding` and `Accept-Language` in small letters, by weight, and where
//! weights are equal by name. Fields that are no lists are compared as they stand, byte by byte; so is what is longer than anybody means,
//! since to put it in order would cost more than it is worth, and weights that are none.

use serde::{Deserialize, Serialize};

use crate::message::{Head, weighted};

use super::fields::{is, is_token, items, values};

/// For which requests an answer is: the names that its `Vary` lists and what its own request said in these fields. An answer without
/// `Vary` is for all of them.
///
/// Of several stored answers that [fit](Variant::fits) a request the one that came last is used (RFC 9111 §4.1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Variant {
    /// Names in small letters, sorted, each once, with a comma behind each.
    names: Box<[u8]>,
    /// What [`write_values`] makes of the request.
    values: Box<[u8]>,
}

/// Lines of requests that backends get otherwise than clients send them, or not at all, so that no head that is compared has them: what
/// varies by them is for one alone.
const OURS: &[&str] = &[
    "x-forwarded-for",
    "x-forwarded-client-cert",
    "x-real-ip",
    "forwarded",
    "x-request-id",
    "client-cert",
    "client-cert-chain",
    "retry-attempt",
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "te",
    "upgrade",
    "http2-settings",
];

impl Variant {
    /// That of an answer to this request, as it was sent to the backend. `None`: it is for nobody else (`*`, or by a line of ours).
    #[must_use]
    pub fn of(answer: &Head, sent: &Head) -> Option<Variant> {
        let mut names: Vec<Vec<u8>> =
            values(answer, "vary").flat_map(items).map(<[u8]>::to_ascii_lowercase).collect();
        if names.is_empty() {
            return Some(Variant::default());
        }
        // What is no name may mean anything.
        if names.iter().any(|name| name == b"*" || !name.iter().copied().all(is_token)) {
            return None;
        }
        if names.iter().any(|name| OURS.iter().any(|ours| name == ours.as_bytes())) {
            return None;
        }
        names.sort_unstable();
        names.dedup();
        let mut list = Vec::new();
        for name in names {
            list.extend_from_slice(&name);
            list.push(b',');
        }
        let mut values = Vec::new();
        write_values(&list, sent, &mut values);
        Some(Variant { names: list.into(), values: values.into() })
    }

    /// Whether it is for all requests.
    #[must_use]
    #[inline]
    pub fn is_for_all(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether a request, as it would be sent to the backend, is one of those. `scratch` is overwritten.
    #[must_use]
    pub fn fits(&self, sent: &Head, scratch: &mut Vec<u8>) -> bool {
        if self.names.is_empty() {
            return true;
        }
        scratch.clear();
        write_values(&self.names, sent, scratch);
        **scratch == *self.values
    }

    /// Whether another answer takes the place of this one: both are for the same requests.
    #[must_use]
    pub fn replaces(&self, other: &Variant) -> bool {
        self == other
    }

    /// Bytes of memory behind it.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.names.len() + self.values.len()
    }
}

/// Bytes of all lines of a field together that are put into their normal form. A browser's `Accept` has half of that.
const MOST_BYTES: usize = 256;

/// A field that is absent is another one than an empty one, and what stands as it came ends with this, so that it is never a normal form.
/// No value has these bytes.
const PRESENT: u8 = 1;
const END: u8 = 0;

/// What a request says in these fields, each in its normal form, so that equal bytes mean equal values.
fn write_values(names: &[u8], sent: &Head, out: &mut Vec<u8>) {
    for name in names.split(|byte| *byte == b',').filter(|name| !name.is_empty()) {
        let lines = || {
            let same =
                move |line: &&crate::message::HeadLine| sent.at(line.name()).eq_ignore_ascii_case(name);
            sent.lines().iter().filter(same).map(|line| sent.at(line.value()))
        };
        if lines().next().is_some() {
            out.push(PRESENT);
            let is_long = || lines().map(<[u8]>::len).sum::<usize>() > MOST_BYTES;
            if is_single(name) || is_long() || !write_normal(name, lines, out) {
                write_as_it_stands(lines(), out);
            }
        }
        out.push(END);
    }
}

/// A list in its normal form. `false`: nothing was written, because it has none.
fn write_normal<'h, I: Iterator<Item = &'h [u8]>>(
    name: &[u8],
    lines: impl Fn() -> I,
    out: &mut Vec<u8>,
) -> bool {
    let are_codings = is(name, "accept-encoding");
    if are_codings || is(name, "accept-language") {
        return write_preferences(lines(), are_codings, out);
    }
    write_list(lines(), out);
    true
}

fn write_as_it_stands<'h>(lines: impl Iterator<Item = &'h [u8]>, out: &mut Vec<u8>) {
    for line in lines {
        out.extend_from_slice(line);
        out.push(PRESENT);
    }
}

/// Fields whose values are no lists, or in which white space could mean something.
fn is_single(name: &[u8]) -> bool {
    match name.len() {
        4 => is(name, "host") || is(name, "from"),
        6 => is(name, "cookie") || is(name, "origin"),
        7 => is(name, "referer"),
        10 => is(name, "user-agent"),
        13 => is(name, "authorization"),
        19 => is(name, "proxy-authorization"),
        _ => false,
    }
}

/// The items of all lines, each with a comma behind it.
fn write_list<'h>(lines: impl Iterator<Item = &'h [u8]>, out: &mut Vec<u8>) {
    for item in lines.flat_map(items) {
        out.extend_from_slice(item);
        out.push(b',');
    }
}

/// More items than anybody means are compared as they stand.
const MOST_PREFERENCES: usize = 24;

/// Items with weights (RFC 9110 §12.4.2), the heaviest first and those of one weight by name. `false`: nothing was written, because
/// they are too many, or one has parameters beside its weight or a weight that is none.
fn write_preferences<'h>(
    lines: impl Iterator<Item = &'h [u8]>,
    are_codings: bool,
    out: &mut Vec<u8>,
) -> bool {
    let mut found = [(0u16, &b""[..]); MOST_PREFERENCES];
    let mut count = 0;
    for item in lines.flat_map(items) {
        let Some((name, weight)) = weighted(item) else { return false };
        let Some(place) = found.get_mut(count) else { return false };
        // RFC 9110 §8.4.1.3.
        let name = if are_codings && is(name, "x-gzip") { b"gzip" } else { name };
        *place = (1000 - weight, name);
        count += 1;
    }
    let found = &mut found[..count];
    let small = |name: &'h [u8]| name.iter().map(u8::to_ascii_lowercase);
    found.sort_unstable_by(|(one, name), (other, other_name)| {
        one.cmp(other).then_with(|| small(name).cmp(small(other_name)))
    });
    let mut before: Option<(u16, &[u8])> = None;
    for &(rank, name) in &*found {
        if before.is_some_and(|(other, before)| other == rank && before.eq_ignore_ascii_case(name)) {
            continue;
        }
        before = Some((rank, name));
        out.extend(small(name));
        if rank != 0 {
            let weight = 1000 - rank;
            out.push(b';');
            out.extend([weight / 100, weight / 10 % 10, weight % 10].map(|digit| b'0' + digit as u8));
        }
        out.push(b',');
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Lines<'a> = &'a [(&'a str, &'a str)];

    fn head(mut head: Head, lines: Lines<'_>) -> Head {
        lines.iter().for_each(|(name, value)| head.push(name.as_bytes(), value.as_bytes()));
        head
    }

    fn request(lines: Lines<'_>) -> Head {
        head(Head::request("GET", "/", "a.example"), lines)
    }

    fn fits(vary: &str, one: Lines<'_>, other: Lines<'_>) -> bool {
        let answer = head(Head::answer(200), &[("Vary", vary)]);
        let variant = Variant::of(&answer, &request(one)).unwrap();
        variant.fits(&request(other), &mut vec![9])
    }

    #[test]
    fn rfc9111_4_1_star_fits_nobody() {
        for lines in [
            &[("Vary", "*")][..],
            &[("Vary", "*, *")],
            &[("Vary", ", *")],
            &[("Vary", ""), ("Vary", "*")],
            &[("Vary", "*, Foo")],
            &[("Vary", "Foo, *")],
            &[("Vary", "Foo"), ("vary", "*")],
            &[("Vary", "Foo Bar")],
            &[("Vary", "Foo; Bar")],
            &[("Vary", "\"Foo\"")],
        ] {
            assert_eq!(Variant::of(&head(Head::answer(200), lines), &request(&[])), None, "{lines:?}");
        }
    }

    #[test]
    fn what_varies_by_a_line_of_ours_fits_nobody() {
        for name in ["X-Forwarded-For", "x-forwarded-client-cert", "Foo, Client-Cert", "TE"] {
            assert_eq!(
                Variant::of(&head(Head::answer(200), &[("Vary", name)]), &request(&[])),
                None,
                "{name}"
            );
        }
    }

    #[test]
    fn rfc9111_4_1_all_selecting_fields_match() {
        assert!(fits("", &[("Foo", "1")], &[]));
        assert!(fits("Foo", &[("Foo", "1")], &[("fOO", "1"), ("Other", "x")]));
        assert!(!fits("Foo", &[("Foo", "1")], &[("Foo", "2")]));
        assert!(!fits("Foo", &[("Foo", "1")], &[]) && !fits("Foo", &[], &[("Foo", "1")]));
        assert!(!fits("Foo", &[("Foo", "")], &[]), "empty is not absent");
        assert!(fits("Foo, Bar", &[("Foo", "1"), ("Bar", "a")], &[("Bar", "a"), ("Foo", "1")]));
        assert!(!fits("Foo, Bar", &[("Foo", "1"), ("Bar", "a")], &[("Foo", "1")]));
        assert!(fits("Foo, Bar, Baz", &[("Foo", "1"), ("Baz", "7")], &[("Foo", "1"), ("Baz", "7")]));
        assert!(!fits("Foo, Bar", &[("Foo", "1")], &[("Bar", "1")]));
    }

    #[test]
    fn rfc9111_4_1_lists_are_combined_and_white_space_goes() {
        assert!(fits("Foo", &[("Foo", "1, 2")], &[("Foo", "1"), ("Foo", "2")]));
        assert!(fits("Foo", &[("Foo", "1,2")], &[("Foo", " 1, 2 ")]));
        assert!(!fits("Foo", &[("Foo", "1,2")], &[("Foo", "2,1")]));
        assert!(!fits("Foo", &[("Foo", "\"a, b\"")], &[("Foo", "\"a,b\"")]));
        // A cookie is no list.
        assert!(!fits("Cookie", &[("Cookie", "a=1, b=2")], &[("Cookie", "a=1,b=2")]));
        assert!(!fits("Cookie", &[("Cookie", "a"), ("Cookie", "b")], &[("Cookie", "a,b")]));
        assert!(!fits("User-Agent", &[("User-Agent", "A  b")], &[("User-Agent", "A b")]));
    }

    #[test]
    fn rfc9110_12_5_3_encodings_are_compared_by_what_they_mean() {
        let same =
            |one, other| fits("Accept-Encoding", &[("Accept-Encoding", one)], &[("accept-encoding", other)]);
        for (one, other) in [
            ("gzip, br", "br,gzip"),
            ("gzip;q=1.0, br", "BR, GZIP"),
            ("gzip ; q=0.50", "gzip;Q=0.5"),
            ("x-gzip", "gzip"),
            ("gzip, gzip", "gzip"),
            ("*;q=0", "*;q=0.000"),
        ] {
            assert!(same(one, other), "{one} / {other}");
        }
        for (one, other) in [
            ("gzip", "br"),
            ("gzip;q=0", "gzip"),
            ("gzip;q=0.5, br", "gzip, br;q=0.5"),
            ("", "gzip"),
            ("gzip;q=0.5", "gzip;q=0.4"),
        ] {
            assert!(!same(one, other), "{one} / {other}");
        }
        // What is broken or too much is compared as it stands.
        assert!(same("gzip;q=2", "gzip;q=2") && !same("gzip;q=2", "gzip;q=3") && !same("gzip;q=2", "gzip"));
        let many = "a,".repeat(1000);
        assert!(same(&many, &many) && !same(&many, "a"));
    }

    #[test]
    fn a_value_that_is_no_weight_is_not_the_normal_form_of_another_one() {
        // How `gzip;q=0.5` is written.
        assert!(!fits(
            "Accept-Encoding",
            &[("Accept-Encoding", "gzip;500")],
            &[("Accept-Encoding", "gzip;q=0.5")]
        ));
    }

    #[test]
    fn a_bomb_of_items_is_not_put_in_order() {
        for (name, other) in [("Accept-Encoding", "gzip"), ("Accept-Language", "de"), ("Foo", "x")] {
            let one = |commas: usize| format!("{}{other}", ",".repeat(commas));
            let same = |commas: usize| fits(name, &[(name, &one(commas))], &[(name, other)]);
            let most = MOST_BYTES - other.len();
            assert!(same(most) && !same(most + 1), "{name}");
            let half = ",".repeat(MOST_BYTES / 2);
            let lines = [(name, half.as_str()), (name, &half), (name, other)];
            assert!(!fits(name, &lines, &[(name, other)]), "{name}: in several lines");
            assert!(fits(name, &lines, &lines), "{name}");
        }
    }

    #[test]
    fn rfc9110_12_5_4_languages_are_compared_by_what_they_mean() {
        let same =
            |one, other| fits("Accept-Language", &[("Accept-Language", one)], &[("Accept-Language", other)]);
        assert!(same("en, de", "de, en") && same("en, de", "eN, De") && same("en, de", " en ,   de"));
        assert!(!same("en, de;q=0.5", "de, en;q=0.5") && !same("en", "en-GB"));
    }

    proptest! {
        /// Values of different fields never run into one another.
        #[test]
        fn requests_that_differ_do_not_fit(a in "[a-c, ]{0,4}", b in "[a-c, ]{0,4}", c in "[a-c, ]{0,4}", d in "[a-c, ]{0,4}") {
            let plain = |text: &str| text.split(',').map(str::trim).filter(|item| !item.is_empty()).collect::<Vec<_>>().join(",");
            let expected = plain(&a) == plain(&c) && plain(&b) == plain(&d);
            prop_assert_eq!(fits("A, B", &[("A", &a), ("B", &b)], &[("A", &c), ("B", &d)]), expected);
        }
    }
}
