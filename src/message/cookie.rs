//! Cookies that a request brings (RFC 6265 §5.4, as written by a user agent).

use memchr::memmem;

use super::{Head, HeaderField};

/// Cookies of one name that are looked at; a user agent sends one for each path and domain that fits.
const MOST: usize = 16;

/// The value of the first cookie called `name`, as it stands; see [`cookies`].
#[must_use]
pub fn cookie<'a>(head: &'a Head, name: &str) -> Option<&'a [u8]> {
    first(head, name, 1).pop()
}

/// The values of the first 16 cookies called `name`, as they stand: quotes around one are part of it (RFC 6265 §4.1.1).
///
/// Names are case-sensitive. A user agent puts the cookie of the longest path first (RFC 6265 §5.4); pairs may be
/// spread over several lines, as HTTP/2 does (RFC 9113 §8.2.3). A pair without `=` has no name.
#[must_use]
pub fn cookies<'a>(head: &'a Head, name: &str) -> Vec<&'a [u8]> {
    first(head, name, MOST)
}

fn first<'a>(head: &'a Head, name: &str, most: usize) -> Vec<&'a [u8]> {
    // Pairs are many and may be as short as a byte: only what reads like the name is looked at.
    let (finder, mut found) = (memmem::Finder::new(name), Vec::new());
    for line in head.values(HeaderField::Cookie) {
        let pairs = finder.find_iter(line);
        let values = pairs.filter_map(|at| value(&line[..at], &line[at + name.len()..]));
        found.extend(values.take(most - found.len()));
        if found.len() == most {
            break;
        }
    }
    found
}

/// The value of the pair that has its name between `before` and `behind`, if that is all of a name.
fn value<'a>(before: &[u8], behind: &'a [u8]) -> Option<&'a [u8]> {
    let is_first = matches!(before.trim_ascii_end().last(), None | Some(b';'));
    let value = behind.trim_ascii_start().strip_prefix(b"=").filter(|_| is_first)?;
    let end = memchr::memchr(b';', value).unwrap_or(value.len());
    Some(value[..end].trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(lines: &[(&str, &str)]) -> Head {
        let mut head = Head::request("GET", "/", "h");
        for (name, value) in lines {
            head.push(name.as_bytes(), value.as_bytes());
        }
        head
    }

    #[test]
    fn a_cookie_is_found_by_its_whole_name() {
        let head = head(&[("Accept", "a=1; sid=no"), ("COOKIE", "sidx=1; xsid=2; Sid=3; sid=4; sid=5")]);
        assert_eq!(cookie(&head, "sid"), Some(&b"4"[..]));
        assert_eq!(cookies(&head, "sid"), [&b"4"[..], b"5"]);
        assert_eq!(cookie(&head, "Sid"), Some(&b"3"[..]));
        assert_eq!(cookie(&head, "si"), None);
        assert_eq!(cookie(&head, "a"), None, "other fields are no cookies");
    }

    #[test]
    fn every_line_is_looked_at_in_order() {
        let head = head(&[("cookie", "a=1"), ("x-cookie", "b=0"), ("cookie", "b=2; a=3"), ("Cookie", "b=4")]);
        assert_eq!((cookie(&head, "a"), cookie(&head, "b")), (Some(&b"1"[..]), Some(&b"2"[..])));
        assert_eq!(cookies(&head, "b"), [&b"2"[..], b"4"]);
    }

    #[test]
    fn odd_pairs_hide_no_others() {
        let text = "=nameless; lonely;;\tspaced\t= x y ;empty=; quoted=\"q\"; sum=a=b==; last=z";
        let head = head(&[("Cookie", text)]);
        for (name, value) in [
            ("spaced", Some("x y")),
            ("empty", Some("")),
            ("quoted", Some("\"q\"")),
            ("sum", Some("a=b==")),
            ("last", Some("z")),
            ("lonely", None),
        ] {
            assert_eq!(cookie(&head, name), value.map(str::as_bytes), "{name}");
        }
    }

    #[test]
    fn no_cookie_is_no_cookie() {
        assert_eq!(cookie(&head(&[]), "sid"), None);
        assert_eq!(cookie(&head(&[("Cookie", "")]), "sid"), None);
    }
}
