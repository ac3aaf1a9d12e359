//! The head of a request or an answer: one buffer of HTTP/1.1 lines and an index over it.
//!
//! The buffer always holds valid lines (`name: value\r\n`), whoever made it: a parser, a decoder of another
//! protocol, or ourselves. Writing HTTP/1.1 is then a copy of runs, and no map of headers is ever built.
//! Offsets are `u32`: a head is at most 64 KiB.

use super::{Fields, HeaderField};

mod build;
mod edit;

pub use build::LineRun;

/// A range of bytes inside a [`Head`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The span from `start` to `end`; a head is bounded far below 4 GiB.
    #[must_use]
    pub fn new(start: usize, end: usize) -> Span {
        debug_assert!(start <= u32::MAX as usize && end <= u32::MAX as usize);
        Span { start: start as u32, end: end as u32 }
    }

    fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// One header line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadLine {
    start: u32,
    name_end: u32,
    value: Span,
    end: u32,
    /// What it is, if we know it.
    pub field: HeaderField,
}

impl HeadLine {
    /// The line that begins with `name` and ends, CRLF included, before `end`.
    #[inline]
    #[must_use]
    pub fn new(field: HeaderField, name: Span, value: Span, end: usize) -> HeadLine {
        HeadLine { start: name.start, name_end: name.end, value, end: Span::new(0, end).end, field }
    }

    /// The whole line including CRLF.
    #[must_use]
    pub fn whole(&self) -> Span {
        Span { start: self.start, end: self.end }
    }

    /// One past the last byte of the line.
    #[must_use]
    pub fn end(&self) -> usize {
        self.end as usize
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> Span {
        Span { start: self.start, end: self.name_end }
    }

    /// The value without white space around it.
    #[must_use]
    pub fn value(&self) -> Span {
        self.value
    }
}

/// The versions in which messages come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0: no chunked coding, no 1xx, closes unless asked not to.
    Http10,
    /// HTTP/1.1.
    #[default]
    Http11,
    /// HTTP/2. What frames a message there stands in no line.
    Http2,
}

/// A request head or an answer's head.
#[derive(Debug, Default)]
pub struct Head {
    bytes: Vec<u8>,
    lines: Vec<HeadLine>,
    /// Version of the message as it came.
    pub version: Version,
    /// Status of an answer, 100-999; 0 in a request.
    pub status: u16,
    method: Span,
    target: Span,
    path: Span,
    authority: Span,
    reason: Span,
    /// Which fields there are: most questions are about one that is absent.
    present: Fields,
    /// Which of them are there more than once.
    repeated: Fields,
}

/// Lines that a head has room for from the beginning, and by how many the room grows at least.
const ROOM: usize = 16;

impl Head {
    /// An empty head; [`Head::clear`] makes a used one empty again and keeps its memory.
    #[must_use]
    pub fn new() -> Head {
        Head::default()
    }

    /// A request head from parts. `authority` becomes Host. The parts must be valid already.
    #[must_use]
    pub fn request(method: &str, target: &str, authority: &str) -> Head {
        let mut head = Head::new();
        head.bytes.extend_from_slice(format!("{method} {target} HTTP/1.1\r\n").as_bytes());
        head.method = Span::new(0, method.len());
        head.target = Span::new(method.len() + 1, method.len() + 1 + target.len());
        head.path = head.target;
        head.push(b"host", authority.as_bytes());
        head.authority = head.line(HeaderField::Host).map_or(Span::default(), |line| line.value());
        head
    }

    /// An answer's head from its status.
    #[must_use]
    pub fn answer(status: u16) -> Head {
        let mut head = Head::new();
        head.bytes.extend_from_slice(format!("HTTP/1.1 {status} ").as_bytes());
        let start = head.bytes.len();
        head.bytes.extend_from_slice(super::status::reason(status).as_bytes());
        head.reason = Span::new(start, head.bytes.len());
        head.bytes.extend_from_slice(b"\r\n");
        head.status = status;
        head
    }

    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        let (mut bytes, mut lines) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.lines));
        bytes.clear();
        lines.clear();
        *self = Head { bytes, lines, ..Head::default() };
    }

    /// Bytes of memory that it holds, used or not.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.bytes.capacity() + self.lines.capacity() * size_of::<HeadLine>()
    }

    /// Takes over the bytes of a whole head; the caller then indexes them with the other functions.
    pub fn load(&mut self, bytes: &[u8]) {
        self.clear();
        self.fill(bytes);
    }

    /// Takes over the bytes of a whole head that was indexed already, in a cleared head.
    #[inline]
    pub fn fill(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Notes where a request line's parts are.
    pub fn set_request_line(&mut self, method: Span, target: Span, path: Span, authority: Span) {
        (self.method, self.target, self.path, self.authority) = (method, target, path, authority);
    }

    /// Notes where a status line's reason is.
    pub fn set_reason(&mut self, reason: Span) {
        self.reason = reason;
    }

    /// A copy of a request's head with another path, and query if `path` has one.
    #[must_use]
    pub fn with_path(&self, path: &[u8]) -> Head {
        self.with(self.method(), path)
    }

    /// A copy of a request's head that asks for the same with GET.
    #[must_use]
    pub fn as_get(&self) -> Head {
        self.with(b"GET", self.path())
    }

    fn with(&self, method: &[u8], path: &[u8]) -> Head {
        let mut head = Head { version: self.version, ..Head::default() };
        head.bytes.reserve(self.bytes.len() + path.len());
        head.bytes.extend_from_slice(method);
        head.bytes.push(b' ');
        let start = head.bytes.len();
        head.bytes.extend_from_slice(path);
        let target = Span::new(start, head.bytes.len());
        head.bytes.extend_from_slice(if self.version == Version::Http10 {
            b" HTTP/1.0\r\n"
        } else {
            b" HTTP/1.1\r\n"
        });
        // An absolute target is not kept, so what it said stands in Host, which it overrides (RFC 9112 §3.2.2).
        let replaced = self.authority_of_target().map(<[u8]>::to_vec);
        head.set_request_line(Span::new(0, method.len()), target, target, Span::default());
        let mut is_written = false;
        for line in &self.lines {
            let (name, value) = self.pair(line);
            match &replaced {
                Some(_) if line.field == HeaderField::Host && is_written => {}
                Some(authority) if line.field == HeaderField::Host => {
                    is_written = true;
                    head.push_as(line.field, name, authority);
                }
                _ => head.push_as(line.field, name, value),
            }
        }
        if let Some(authority) = replaced.filter(|_| !is_written) {
            head.push(b"Host", &authority);
        }
        head.authority = head.line(HeaderField::Host).map_or(Span::default(), |line| line.value());
        head
    }

    /// The authority, if the target carries one.
    fn authority_of_target(&self) -> Option<&[u8]> {
        let inside = self.authority.start >= self.target.start && self.authority.end <= self.target.end;
        (inside && self.authority != Span::default()).then(|| self.authority())
    }

    /// Notes a line that stands in the loaded bytes.
    #[inline(always)]
    pub fn index(&mut self, line: HeadLine) {
        let field = Fields::of(&[line.field]);
        self.repeated = self.repeated.and(self.present.both(field));
        self.present = self.present.and(field);
        if self.lines.len() == self.lines.capacity() {
            self.lines.reserve(ROOM);
        }
        self.lines.push(line);
    }

    /// Appends a line. Name and value must be valid: a token, and a value without CTL.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        self.push_as(HeaderField::classify(name), name, value);
    }

    /// The same with a line that was classified already: a parser knows more of it than its name says.
    fn push_as(&mut self, field: HeaderField, name: &[u8], value: &[u8]) {
        // A loaded head ends with an empty line; nothing reads it, so appending after the last line is enough.
        let start = self.lines.last().map_or(self.start_line(), HeadLine::whole).end as usize;
        self.bytes.truncate(start);
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(b": ");
        self.bytes.extend_from_slice(value);
        self.bytes.extend_from_slice(b"\r\n");
        let value_start = start + name.len() + 2;
        self.index(HeadLine::new(
            field,
            Span::new(start, start + name.len()),
            Span::new(value_start, value_start + value.len()),
            self.bytes.len(),
        ));
    }

    /// The request line or status line of an HTTP/1.1 message, CRLF included.
    #[must_use]
    pub fn start_line(&self) -> Span {
        let end = match self.status {
            0 => self.target.end as usize + " HTTP/1.1\r\n".len(),
            _ => self.reason.end as usize + "\r\n".len(),
        };
        Span::new(0, end.min(self.bytes.len()))
    }

    /// The first line and all header lines, without the empty line behind them.
    #[must_use]
    pub fn start_and_lines(&self) -> Span {
        Span { start: 0, end: self.lines.last().map_or_else(|| self.start_line().end, |line| line.end) }
    }

    /// Notes the authority that Host names, when the target did not carry one.
    pub fn set_authority(&mut self, host: Span) {
        if self.authority == Span::default() {
            self.authority = host;
        }
    }

    /// The bytes of a span.
    #[must_use]
    pub fn at(&self, span: Span) -> &[u8] {
        self.bytes.get(span.range()).unwrap_or_default()
    }

    /// The method, as written (methods are case-sensitive).
    #[must_use]
    pub fn method(&self) -> &[u8] {
        self.at(self.method)
    }

    /// The request target as written.
    #[must_use]
    pub fn target(&self) -> &[u8] {
        self.at(self.target)
    }

    /// Path and query, from whichever form the target had; `*` for `OPTIONS *`.
    #[must_use]
    pub fn path(&self) -> &[u8] {
        self.at(self.path)
    }

    /// The authority: of an absolute target, else of Host.
    #[must_use]
    pub fn authority(&self) -> &[u8] {
        self.at(self.authority)
    }

    /// The reason phrase of an answer.
    #[must_use]
    pub fn reason(&self) -> &[u8] {
        self.at(self.reason)
    }

    /// Bytes of the whole head.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "an empty head has lines to ask for")]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Every header line, in order.
    #[must_use]
    pub fn lines(&self) -> &[HeadLine] {
        &self.lines
    }

    /// Whether there is a line whose name has this length and is one that `is` knows. Nearly all lines are told by the length.
    #[inline]
    #[must_use]
    pub fn has_name(&self, length: u32, is: impl Fn(&[u8]) -> bool) -> bool {
        for line in &self.lines {
            if line.name_end.wrapping_sub(line.start) == length && is(self.at(line.name())) {
                return true;
            }
        }
        false
    }

    /// Name and value of a line.
    #[must_use]
    pub fn pair(&self, line: &HeadLine) -> (&[u8], &[u8]) {
        (self.at(line.name()), self.at(line.value()))
    }

    /// The fields there are.
    #[must_use]
    pub fn fields(&self) -> Fields {
        self.present
    }

    /// True when a line has this field.
    #[must_use]
    pub fn has(&self, field: HeaderField) -> bool {
        self.present.contains(field)
    }

    /// True when more than one line has this field.
    #[must_use]
    pub fn repeats(&self, field: HeaderField) -> bool {
        self.repeated.contains(field)
    }

    /// The first line with this field.
    #[inline]
    #[must_use]
    pub fn line(&self, field: HeaderField) -> Option<HeadLine> {
        // Most questions are about a field that is absent.
        if self.has(field) { self.lines.iter().find(|line| line.field == field).copied() } else { None }
    }

    /// The lines with this field.
    fn of(&self, field: HeaderField) -> impl Iterator<Item = &HeadLine> {
        let lines = if self.has(field) { &*self.lines } else { &[] };
        lines.iter().filter(move |line| line.field == field)
    }

    /// The value of the first line with this field.
    #[inline]
    #[must_use]
    pub fn value(&self, field: HeaderField) -> Option<&[u8]> {
        self.line(field).map(|line| self.at(line.value))
    }

    /// The values of all lines with this field.
    pub fn values(&self, field: HeaderField) -> impl Iterator<Item = &[u8]> {
        self.of(field).map(|line| self.at(line.value()))
    }

    /// The value of the first line named `name`, in any case.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&[u8]> {
        let is_named = |line: &&HeadLine| {
            line.name_end - line.start == name.len() as u32
                && self.at(line.name()).eq_ignore_ascii_case(name.as_bytes())
        };
        Some(self.at(self.lines.iter().find(is_named)?.value()))
    }

    /// True when a field of one connection only is present.
    #[must_use]
    pub fn has_hop_by_hop(&self) -> bool {
        self.present.meets(Fields::HOP_BY_HOP)
    }

    /// True when a field about the client is present.
    #[must_use]
    pub fn has_about_client(&self) -> bool {
        self.present.meets(Fields::ABOUT_CLIENT)
    }

    /// True for methods defined as idempotent (RFC 9110 §9.2.2): they may be repeated.
    #[must_use]
    pub fn is_idempotent(&self) -> bool {
        matches!(self.method(), b"GET" | b"HEAD" | b"PUT" | b"DELETE" | b"OPTIONS" | b"TRACE")
    }

    /// Whether `token` stands in a comma-separated list of any line with this field, in any case.
    #[must_use]
    pub fn lists(&self, field: HeaderField, token: &[u8]) -> bool {
        self.values(field).flat_map(tokens).any(|item| item.eq_ignore_ascii_case(token))
    }
}

/// The items of a comma-separated list, without white space around them and without empty ones.
pub fn tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|item| !item.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_built_head_reads_back() {
        let mut head = Head::request("GET", "/a?b=c", "h:1");
        head.push(b"Connection", b"x, Close ,,y");
        assert_eq!(
            (head.method(), head.path(), head.authority()),
            (&b"GET"[..], &b"/a?b=c"[..], &b"h:1"[..])
        );
        assert!(head.lists(HeaderField::Connection, b"close") && head.lists(HeaderField::Connection, b"Y"));
        assert!(!head.lists(HeaderField::Connection, b"clos"));
        assert!(head.has_hop_by_hop() && !head.has_about_client());
        assert_eq!(head.named("HOST"), Some(&b"h:1"[..]));
        assert!(
            head.has(HeaderField::Host) && !head.repeats(HeaderField::Host) && !head.has(HeaderField::Te)
        );
        head.push(b"Host", b"h:2");
        assert!(head.repeats(HeaderField::Host) && head.values(HeaderField::Host).eq([&b"h:1"[..], b"h:2"]));
        assert_eq!(head.at(head.start_line()), b"GET /a?b=c HTTP/1.1\r\n");
        head.clear();
        assert!(head.lines().is_empty() && head.method().is_empty() && !head.has_hop_by_hop());
    }

    #[test]
    fn a_copy_with_another_path_is_the_same_otherwise() {
        let mut head = Head::request("POST", "/a?b=c", "h:1");
        head.push(b"X-a", b"1");
        head.push(b"X-A", b"");
        let other = head.with_path(b"/other?d");
        assert_eq!(
            (other.method(), other.path(), other.target()),
            (&b"POST"[..], &b"/other?d"[..], &b"/other?d"[..])
        );
        assert_eq!(other.at(other.start_line()), b"POST /other?d HTTP/1.1\r\n");
        assert_eq!(other.authority(), b"h:1");
        let lines = |head: &Head| -> Vec<_> {
            head.lines().iter().map(|line| head.pair(line)).map(|(n, v)| (n.to_vec(), v.to_vec())).collect()
        };
        assert_eq!(lines(&other), lines(&head));
        let get = other.as_get();
        assert_eq!(get.at(get.start_line()), b"GET /other?d HTTP/1.1\r\n");
        assert_eq!((get.method(), get.authority(), lines(&get)), (&b"GET"[..], &b"h:1"[..], lines(&head)));
    }

    #[test]
    fn an_answer_carries_its_reason() {
        let head = Head::answer(404);
        assert_eq!((head.status, head.reason()), (404, &b"Not Found"[..]));
        assert_eq!(head.at(head.start_line()), b"HTTP/1.1 404 Not Found\r\n");
    }
}
