//! Edits of a request's head as it stands on the wire: what a route says has the last word, also about lines of our own.

use crate::message::Head;
use crate::route::LineEdits;

/// The lines that go and come.
#[derive(Clone, Copy)]
pub struct RequestEdits<'a> {
    /// Which ones go.
    pub edits: &'a LineEdits,
    /// Those that come, each with its end, and the empty line that ends the head.
    pub lines: &'a [u8],
}

impl RequestEdits<'_> {
    /// Edits the head that is all of `out`. `head`: what it was made of.
    #[inline(never)]
    pub fn apply(&self, out: &mut Vec<u8>, head: &Head) {
        if self.edits.finds_lines(head) {
            self.remove_lines(out);
        }
        // The empty line comes behind them.
        out.truncate(out.len().saturating_sub(2));
        out.extend_from_slice(self.lines);
    }

    fn remove_lines(&self, out: &mut Vec<u8>) {
        let end_of_line = |out: &[u8], from: usize| {
            memchr::memchr(b'\n', &out[from..]).map_or(out.len(), |at| from + at + 1)
        };
        let mut end = end_of_line(out, 0);
        let mut at = end;
        while at < out.len() {
            let next = end_of_line(out, at);
            let name = memchr::memchr(b':', &out[at..next]).unwrap_or(0);
            if !self.edits.removes(&out[at..at + name]) {
                if end < at {
                    out.copy_within(at..next, end);
                }
                end += next - at;
            }
            at = next;
        }
        out.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::Text;
    use crate::config::model::route::HeaderEdit;

    #[test]
    fn lines_go_and_come_and_the_rest_stays_as_it_is() {
        let head = Head::request("GET", "/a:b", "h");
        let written = b"GET /a:b HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nVia: 1.1 evenkeel\r\nx_a: 2\r\nX-Forwarded-For: 1\r\n\r\n";
        for (edits, expected) in [
            (&[][..], "Host: h\r\nX-A: 1\r\nVia: 1.1 evenkeel\r\nx_a: 2\r\nX-Forwarded-For: 1\r\n"),
            (&["Via"], "Host: h\r\nX-A: 1\r\nx_a: 2\r\nX-Forwarded-For: 1\r\n"),
            (&["x-forwarded-for", "X-a", "via"], "Host: h\r\n"),
        ] {
            let edits: Vec<_> = edits.iter().map(|name| HeaderEdit::Remove((*name).to_owned())).collect();
            let edits = LineEdits::new(&edits);
            let mut out = written.to_vec();
            RequestEdits { edits: &edits, lines: b"N: v\r\n\r\n" }.apply(&mut out, &head);
            let expected = format!("GET /a:b HTTP/1.1\r\n{expected}N: v\r\n\r\n");
            assert_eq!(String::from_utf8_lossy(&out), expected);
        }
        assert!(LineEdits::new(&[HeaderEdit::Set("Host".into(), Text::plain("x"))]).is_empty());
    }
}
