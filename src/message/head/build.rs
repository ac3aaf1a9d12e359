//! Building a head from parts that another protocol has brought.

use super::{Head, HeadLine, HeaderField, Span, Version};

impl Head {
    /// Begins the head of a request that came with HTTP/2, in the form in which HTTP/1.1 writes it. The parts must be valid: a
    /// token, a path or `*` (nothing for CONNECT), which neither hold a blank.
    pub fn begin_request(&mut self, method: &[u8], path: &[u8]) {
        self.clear();
        self.version = Version::Http2;
        self.bytes.extend_from_slice(method);
        self.bytes.push(b' ');
        let start = self.bytes.len();
        self.bytes.extend_from_slice(path);
        let target = Span::new(start, self.bytes.len());
        self.bytes.extend_from_slice(b" HTTP/1.1\r\n");
        self.set_request_line(Span::new(0, method.len()), target, target, Span::default());
    }

    /// Appends the Host of a request that has none yet. It must be an authority.
    pub fn push_host(&mut self, authority: &[u8]) {
        self.push_as(HeaderField::Host, b"host", authority);
        if let Some(line) = self.lines.last() {
            self.authority = line.value();
        }
    }

    /// Appends a whole line, `name: value` and its CRLF, whose name has `name` bytes. It must be valid.
    #[inline]
    pub fn push_line(&mut self, field: HeaderField, line: &[u8], name: usize) {
        let start = self.lines.last().map_or(self.start_line(), HeadLine::whole).end as usize;
        debug_assert_eq!(start, self.bytes.len(), "only a built head is appended to like this");
        self.bytes.extend_from_slice(line);
        let end = self.bytes.len();
        let value = Span::new(start + name + 2, end - 2);
        self.index(HeadLine::new(field, Span::new(start, start + name), value, end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_built_request_is_written_as_http_1_1_writes_it() {
        let mut head = Head::new();
        head.push(b"left", b"over");
        head.begin_request(b"GET", b"/a?b");
        head.push_host(b"x:1");
        head.push_line(HeaderField::Other, b"empty: \r\n", 5);
        assert_eq!(head.at(head.start_and_lines()), b"GET /a?b HTTP/1.1\r\nhost: x:1\r\nempty: \r\n");
        assert_eq!((head.method(), head.path(), head.target()), (&b"GET"[..], &b"/a?b"[..], &b"/a?b"[..]));
        assert_eq!((head.value(HeaderField::Host), head.named("empty")), (Some(&b"x:1"[..]), Some(&b""[..])));
        assert_eq!((head.version, head.authority()), (Version::Http2, &b"x:1"[..]));
    }
}
