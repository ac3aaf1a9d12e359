//! Texts in which a `*` stands for anything.

use std::fmt;

/// A text in which each `*` stands for any characters, also for none; all others stand for themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wildcard(Box<str>);

impl Wildcard {
    /// That of a text as it is written.
    #[must_use]
    pub fn new(text: &str) -> Wildcard {
        Wildcard(text.into())
    }

    /// Whether it stands for the whole of `text`. What differs in case only is the same, where `any_case` says so, for ASCII letters.
    ///
    /// The time is at most that of one walk over `text` for each `*`.
    #[must_use]
    pub fn fits(&self, text: &str, any_case: bool) -> bool {
        let (pattern, text) = (self.0.as_bytes(), text.as_bytes());
        let is_same = |one: u8, other: u8| one == other || any_case && one.eq_ignore_ascii_case(&other);
        let (mut at, mut place) = (0, 0);
        // The latest star, and where what it stands for ends.
        let mut star = None;
        while let Some(&byte) = text.get(place) {
            match pattern.get(at) {
                Some(b'*') => {
                    star = Some((at, place));
                    at += 1;
                }
                Some(&wanted) if is_same(wanted, byte) => (at, place) = (at + 1, place + 1),
                _ => {
                    // The star takes one more. One before it need not: what lies between was found at its first place.
                    let Some((last, end)) = star else { return false };
                    star = Some((last, end + 1));
                    (at, place) = (last + 1, end + 1);
                }
            }
        }
        pattern.get(at..).unwrap_or_default().iter().all(|&rest| rest == b'*')
    }
}

/// As it is written.
impl fmt::Display for Wildcard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same by trying all ends of each star.
    fn naive(pattern: &[u8], text: &[u8]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some((b'*', rest)) => (0..=text.len()).any(|end| naive(rest, &text[end..])),
            Some((byte, rest)) => text.first() == Some(byte) && naive(rest, &text[1..]),
        }
    }

    #[test]
    fn a_star_stands_for_anything_and_the_rest_for_itself() {
        for (pattern, text, fits) in [
            ("*", "", true),
            ("*", "CN=robot", true),
            ("CN=robot", "CN=robot", true),
            ("CN=robot", "CN=robot2", false),
            ("CN=robot", "cn=robot", false),
            ("*CN=robot*", "O=x, CN=robot", true),
            ("*CN=robot", "CN=robot, O=x", false),
            ("a*b*c", "abbcbc", true),
            ("a*b*c", "acb", false),
            ("**", "x", true),
            ("a.c", "abc", false),
            ("?", "a", false),
            ("*ü*", "xüy", true),
        ] {
            assert_eq!(Wildcard::new(pattern).fits(text, false), fits, "{pattern} {text}");
        }
        assert!(Wildcard::new("*.Shop.example").fits("a.shop.EXAMPLE", true));
        assert!(!Wildcard::new("Ü").fits("ü", true), "letters beyond ASCII are themselves");
    }

    #[test]
    fn many_stars_take_no_longer_than_the_text() {
        let pattern = format!("{}b", "a*".repeat(2000));
        assert!(!Wildcard::new(&pattern).fits(&"a".repeat(20_000), false));
    }

    proptest! {
        #[test]
        fn it_finds_what_trying_everything_finds(pattern in "[ab*]{0,8}", text in "[ab]{0,10}") {
            let (slow, fast) = (naive(pattern.as_bytes(), text.as_bytes()), Wildcard::new(&pattern).fits(&text, false));
            prop_assert_eq!(fast, slow);
        }
    }
}
