//! Changing the header lines of a head that is there already.

use super::{Fields, Head, HeadLine, HeaderField, Span};

impl Head {
    /// Becomes the same as `other`, in the memory that it has.
    pub fn copy_from(&mut self, other: &Head) {
        let (mut bytes, mut lines) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.lines));
        bytes.clear();
        bytes.extend_from_slice(&other.bytes);
        lines.clear();
        lines.extend_from_slice(&other.lines);
        *self = Head { bytes, lines, ..*other };
    }

    /// A copy of a request's head without the lines whose name is one of those.
    #[must_use]
    pub fn without(&self, is_gone: impl Fn(&[u8]) -> bool) -> Head {
        let start = self.start_line();
        let mut head = Head {
            bytes: self.at(start).to_vec(),
            version: self.version,
            method: self.method,
            target: self.target,
            path: self.path,
            ..Head::default()
        };
        for line in &self.lines {
            let (name, value) = self.pair(line);
            if !is_gone(name) {
                head.push_as(line.field, name, value);
            }
        }
        head.authority = match self.authority_of_target() {
            Some(_) => self.authority,
            None => head.line(HeaderField::Host).map_or(Span::default(), |line| line.value()),
        };
        head
    }

    /// Takes away all lines of an answer whose name is one of those.
    pub fn remove(&mut self, is_gone: impl Fn(&[u8]) -> bool) {
        debug_assert!(self.status != 0, "parts of a request's head stand in its lines");
        let mut end = self.start_line().end as usize;
        let mut kept = 0;
        (self.present, self.repeated) = (Fields::default(), Fields::default());
        for place in 0..self.lines.len() {
            let line = self.lines[place];
            if is_gone(self.at(line.name())) {
                continue;
            }
            let whole = line.whole().range();
            let back = (whole.start - end) as u32;
            if back > 0 {
                self.bytes.copy_within(whole.clone(), end);
            }
            end += whole.len();
            self.lines[kept] = line.moved(back.wrapping_neg());
            kept += 1;
            let field = Fields::of(&[line.field]);
            self.repeated = self.repeated.and(self.present.both(field));
            self.present = self.present.and(field);
        }
        self.lines.truncate(kept);
        self.bytes.truncate(end);
    }

    /// Appends a line of our own that stays whatever Connection lines say. Name and value must be valid: a token, and a value
    /// without CTL.
    pub fn push_ours(&mut self, name: &[u8], value: &[u8]) {
        self.push_as(Head::ours(name), name, value);
    }

    /// The same with a line that is written already: a name of so many bytes, `: `, the value, CRLF. `field`: what [`Head::ours`] says.
    pub fn push_written(&mut self, field: HeaderField, line: &[u8], name: usize) {
        let start = self.start_and_lines().end as usize;
        self.bytes.truncate(start);
        self.bytes.extend_from_slice(line);
        let end = self.bytes.len();
        let (name, value) = (Span::new(start, start + name), Span::new(start + name + 2, end - 2));
        self.index(HeadLine::new(field, name, value, end));
    }

    /// Appends a line of a field that we have no number for, whose value `write` writes. Name and value must be valid.
    pub fn push_with(&mut self, name: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.start_and_lines().end as usize;
        self.bytes.truncate(start);
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(b": ");
        let value = self.bytes.len();
        write(&mut self.bytes);
        let end = self.bytes.len();
        self.bytes.extend_from_slice(b"\r\n");
        let (name, value) = (Span::new(start, start + name.len()), Span::new(value, end));
        self.index(HeadLine::new(HeaderField::Other, name, value, end + 2));
    }

    /// What a line of this name counts as that we write ourselves.
    #[must_use]
    pub fn ours(name: &[u8]) -> HeaderField {
        // An answer that has one gets none of the clock's.
        if name.eq_ignore_ascii_case(b"date") { HeaderField::Date } else { HeaderField::Ours }
    }
}

impl Span {
    /// The same, `by` bytes further on; it wraps, so that it goes to the front too.
    #[inline]
    #[must_use]
    pub fn moved(self, by: u32) -> Span {
        Span { start: self.start.wrapping_add(by), end: self.end.wrapping_add(by) }
    }
}

impl HeadLine {
    /// The same line, `by` bytes further on; it wraps, so that it goes to the front too.
    #[inline]
    pub(super) fn moved(&self, by: u32) -> HeadLine {
        let to = |place: u32| place.wrapping_add(by);
        let value = self.value.moved(by);
        HeadLine { start: to(self.start), name_end: to(self.name_end), value, end: to(self.end), ..*self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_without_some_lines_is_the_same_otherwise() {
        let mut head = Head::request("POST", "/a?b=c", "h:1");
        head.push(b"X-User", b"1");
        head.push(b"Connection", b"close");
        head.push(b"x_user", b"2");
        let other = head.without(|name| name.len() == 6);
        assert_eq!(
            (other.method(), other.path(), other.authority()),
            (&b"POST"[..], &b"/a?b=c"[..], &b"h:1"[..])
        );
        assert_eq!(
            other.at(other.start_and_lines()),
            b"POST /a?b=c HTTP/1.1\r\nhost: h:1\r\nConnection: close\r\n"
        );
        assert!(other.has_hop_by_hop() && !other.repeats(HeaderField::Other));
        let whole = head.without(|_| false);
        assert_eq!(whole.at(whole.start_and_lines()), head.at(head.start_and_lines()));
    }
}
