//! Lines of a head by their names: most of what a cache asks for has no number in [`HeaderField`](crate::message::HeaderField).

use crate::message::{Head, HeadLine};

/// Whether `name` spells `known`, in any case. Nearly all are told by their length.
#[inline]
pub(super) fn is(name: &[u8], known: &str) -> bool {
    name.len() == known.len() && name.eq_ignore_ascii_case(known.as_bytes())
}

/// The values of all lines with this name, in order.
pub(super) fn values<'h>(head: &'h Head, name: &str) -> impl Iterator<Item = &'h [u8]> {
    head.lines().iter().filter(move |line| is(head.at(line.name()), name)).map(|line| head.at(line.value()))
}

/// The value of the only line with this name; `None`: there is none, or there are several.
pub(super) fn single<'h>(head: &'h Head, name: &str) -> Option<&'h [u8]> {
    let mut all = values(head, name);
    let first = all.next()?;
    all.next().is_none().then_some(first)
}

/// Whether there is a line with this name.
pub(super) fn has(head: &Head, name: &str) -> bool {
    values(head, name).next().is_some()
}

/// A copy of an answer's head with the lines that `keeps` says; its reason stays as it was written.
pub(super) fn copy(head: &Head, status: u16, keeps: impl Fn(&HeadLine) -> bool) -> Head {
    if head.status != status {
        let mut other = Head::answer(status);
        head.lines().iter().filter(|line| keeps(line)).for_each(|line| {
            let (name, value) = head.pair(line);
            other.push(name, value);
        });
        return other;
    }
    let reason = head.reason();
    let mut start = Vec::with_capacity(head.len());
    start.extend_from_slice(format!("HTTP/1.1 {status} ").as_bytes());
    let at = start.len();
    start.extend_from_slice(reason);
    start.extend_from_slice(b"\r\n");
    let mut other = Head::new();
    other.load(&start);
    other.status = status;
    other.set_reason(crate::message::Span::new(at, at + reason.len()));
    for line in head.lines().iter().filter(|line| keeps(line)) {
        let (name, value) = head.pair(line);
        other.push(name, value);
    }
    other
}

/// The items of a comma-separated list; commas inside of quoted strings separate nothing. Without white space around them and
/// without empty ones.
pub(super) fn items(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = value;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let end = item_end(rest);
            let item = rest[..end].trim_ascii();
            rest = rest.get(end + 1..).unwrap_or_default();
            if !item.is_empty() {
                return Some(item);
            }
        }
        None
    })
}

/// Where the first item of a list ends. A quote that is never closed quotes nothing.
fn item_end(list: &[u8]) -> usize {
    let mut at = 0;
    while let Some(&byte) = list.get(at) {
        match byte {
            b',' => break,
            b'"' => at = quote_end(list, at).unwrap_or(at) + 1,
            _ => at += 1,
        }
    }
    at.min(list.len())
}

/// Where the quoted string ends that begins at `at` (RFC 9110 §5.6.4): the place of its last quote.
pub(super) fn quote_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// A byte of a token (RFC 9110 §5.6.2).
pub(super) const fn is_token(byte: u8) -> bool {
    matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~')
        || byte.is_ascii_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc9110_5_6_1_lists_know_quotes() {
        let all = |text: &'static str| -> Vec<&[u8]> { items(text.as_bytes()).collect() };
        assert_eq!(all(" a ,, b=\"x,y\" ,c"), [&b"a"[..], b"b=\"x,y\"", b"c"]);
        assert_eq!(all("\"a\\\",b\",c"), [&b"\"a\\\",b\""[..], b"c"]);
        assert_eq!(all("\"a,b"), [&b"\"a"[..], b"b"], "never closed");
        assert!(all(" , ,").is_empty() && all("").is_empty());
    }

    #[test]
    fn a_copy_keeps_a_reason_of_its_own() {
        let mut head = Head::new();
        head.load(b"HTTP/1.0 299 What ever\r\n");
        head.status = 299;
        head.set_reason(crate::message::Span::new(13, 22));
        head.push(b"A", b"1");
        head.push(b"B", b"2");
        let other = copy(&head, 299, |line| head.at(line.name()) == b"B");
        assert_eq!(other.at(other.start_and_lines()), b"HTTP/1.1 299 What ever\r\nB: 2\r\n");
        assert_eq!(other.reason(), b"What ever");
        let other = copy(&head, 304, |_| true);
        assert_eq!(other.at(other.start_and_lines()), b"HTTP/1.1 304 Not Modified\r\nA: 1\r\nB: 2\r\n");
    }

    #[test]
    fn rfc9110_5_5_a_line_that_is_there_twice_is_none() {
        let mut head = Head::answer(200);
        head.push(b"ETag", b"1");
        assert_eq!(single(&head, "etag"), Some(&b"1"[..]));
        head.push(b"etag", b"2");
        assert_eq!(single(&head, "etag"), None);
        assert!(has(&head, "etag") && !has(&head, "etags"));
    }
}
