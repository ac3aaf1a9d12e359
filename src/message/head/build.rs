//! Building a head from parts that another protocol has brought.

use super::{Fields, Head, HeadLine, HeaderField, Span, Version};
use crate::message::status;

/// Lines of one head, to be appended to others as they are.
#[derive(Clone, Debug, Default)]
pub struct LineRun {
    bytes: Vec<u8>,
    /// Where they are in `bytes`.
    lines: Vec<HeadLine>,
    present: Fields,
    repeated: Fields,
}

impl LineRun {
    /// Bytes that it adds to a head.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True when it adds no line.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// How many lines it adds.
    #[must_use]
    pub fn count(&self) -> usize {
        self.lines.len()
    }

    /// Its lines as they stand one behind the other, each with its CRLF.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Head {
    /// Copies the lines behind the first `skipped` ones, of a built head or of one as it came, into `run`.
    pub fn copy_run(&self, skipped: usize, run: &mut LineRun) {
        let lines = self.lines.get(skipped..).unwrap_or_default();
        let whole = match lines {
            [first, .., last] => Span { start: first.start, end: last.end },
            [line] => line.whole(),
            [] => Span::default(),
        };
        let start = whole.start;
        run.bytes.clear();
        // Without the empty line that a head which was read ends with: others are appended to.
        run.bytes.extend_from_slice(self.at(whole));
        run.lines.clear();
        (run.present, run.repeated) = (Fields::default(), Fields::default());
        for line in lines {
            let field = Fields::of(&[line.field]);
            run.repeated = run.repeated.and(run.present.both(field));
            run.present = run.present.and(field);
            run.lines.push(line.moved(start.wrapping_neg()));
        }
    }

    /// Appends those lines to a built head.
    #[inline]
    pub fn push_run(&mut self, run: &LineRun) {
        let by = self.bytes.len() as u32;
        self.bytes.extend_from_slice(&run.bytes);
        self.repeated = self.repeated.and(run.repeated).and(self.present.both(run.present));
        self.present = self.present.and(run.present);
        self.lines.extend(run.lines.iter().map(|line| line.moved(by)));
    }

    /// Notes those lines, which stand in the loaded bytes from `at` on, in a head that has none yet.
    #[inline]
    pub fn index_run(&mut self, run: &LineRun, at: usize) {
        debug_assert!(self.lines.is_empty() && self.bytes[at..].starts_with(&run.bytes));
        (self.present, self.repeated) = (run.present, run.repeated);
        self.lines.extend(run.lines.iter().map(|line| line.moved(at as u32)));
    }

    /// Where the authority stands: see [`Head::authority`].
    #[must_use]
    pub fn authority_span(&self) -> Span {
        self.authority
    }

    /// Begins the head of a request that came with HTTP/2, which is empty yet, in the form in which HTTP/1.1 writes it. The parts must be
    /// valid: a token, a path or `*` (nothing for CONNECT), which neither hold a blank.
    pub fn begin_request(&mut self, method: &[u8], path: &[u8]) {
        debug_assert!(self.bytes.is_empty() && self.lines.is_empty(), "it is cleared");
        self.version = Version::Http2;
        self.bytes.extend_from_slice(method);
        self.bytes.push(b' ');
        let start = self.bytes.len();
        self.bytes.extend_from_slice(path);
        let target = Span::new(start, self.bytes.len());
        self.bytes.extend_from_slice(b" HTTP/1.1\r\n");
        self.set_request_line(Span::new(0, method.len()), target, target, Span::default());
    }

    /// The same of an answer that came with HTTP/2.
    pub fn begin_answer(&mut self, number: u16) {
        debug_assert!(self.bytes.is_empty() && self.lines.is_empty() && number < 1000, "it is cleared");
        let digit = |unit: u16| b'0' + (number / unit % 10) as u8;
        self.bytes.extend_from_slice(b"HTTP/1.1 ");
        self.bytes.extend_from_slice(&[digit(100), digit(10), digit(1), b' ']);
        let start = self.bytes.len();
        self.bytes.extend_from_slice(status::reason(number).as_bytes());
        (self.status, self.version) = (number, Version::Http2);
        self.set_reason(Span::new(start, self.bytes.len()));
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Appends the Host of a request that has none yet: `host: `, an authority and CRLF.
    pub fn push_host(&mut self, line: &[u8]) {
        self.push_line(HeaderField::Host, line, b"host".len());
        if let Some(line) = self.lines.last() {
            self.authority = line.value();
        }
    }

    /// All lines with their CRLFs, as they stand one behind the other.
    #[inline]
    #[must_use]
    pub fn line_bytes(&self) -> &[u8] {
        let whole = self.start_and_lines();
        self.at(Span { start: self.start_line().end, ..whole })
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
    fn a_run_is_in_another_head_what_its_lines_were() {
        let build = |path: &[u8], lines: &[(HeaderField, &[u8], usize)]| {
            let mut head = Head::new();
            head.begin_request(b"GET", path);
            head.push_host(b"host: x:1\r\n");
            lines.iter().for_each(|&(field, line, name)| head.push_line(field, line, name));
            head
        };
        let lines: [(_, &[u8], _); 4] = [
            (HeaderField::Other, b"empty: \r\n", 5),
            (HeaderField::UserAgent, b"user-agent: a\r\n", 10),
            (HeaderField::Via, b"via: b\r\n", 3),
            (HeaderField::Via, b"via: c\r\n", 3),
        ];
        let mut run = LineRun::default();
        for split in 0..=lines.len() {
            build(b"/other/path", &lines).copy_run(1 + split, &mut run);
            assert_eq!(run.is_empty(), split == lines.len());
            let mut head = build(b"/", &lines[..split]);
            head.push_run(&run);
            let whole = build(b"/", &lines);
            assert_eq!(head.at(head.start_and_lines()), whole.at(whole.start_and_lines()));
            assert_eq!(head.lines(), whole.lines(), "{split}");
            assert_eq!((head.fields(), head.repeated), (whole.fields(), whole.repeated), "{split}");
        }
    }

    #[test]
    fn a_built_request_is_written_as_http_1_1_writes_it() {
        let mut head = Head::new();
        head.push(b"left", b"over");
        head.clear();
        head.begin_request(b"GET", b"/a?b");
        head.push_host(b"host: x:1\r\n");
        head.push_line(HeaderField::Other, b"empty: \r\n", 5);
        assert_eq!(head.at(head.start_and_lines()), b"GET /a?b HTTP/1.1\r\nhost: x:1\r\nempty: \r\n");
        assert_eq!((head.method(), head.path(), head.target()), (&b"GET"[..], &b"/a?b"[..], &b"/a?b"[..]));
        assert_eq!((head.value(HeaderField::Host), head.named("empty")), (Some(&b"x:1"[..]), Some(&b""[..])));
        assert_eq!((head.version, head.authority()), (Version::Http2, &b"x:1"[..]));
    }
}
