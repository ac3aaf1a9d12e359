//! Dictionaries of structured fields (RFC 9651 §3.2), as far as a field of directives needs them.
//!
//! All of the grammar is checked, so that a field that is none is told from one that says something unknown; but only the kinds of
//! values that directives have are handed on.

/// The value of one member, its parameters left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SfValue<'f> {
    /// An integer of at most 15 digits.
    Integer(i64),
    /// `?0` or `?1`, or a key without a value.
    Boolean(bool),
    /// A string as it stands between its quotes, with its escapes.
    Text(&'f [u8]),
    /// Anything else that is valid.
    Other,
}

/// Hands the members of one line to `take`, in order. `None`: it is no dictionary, or `take` has said so. A line without members is
/// one of none.
pub(super) fn dictionary<'f>(
    line: &'f [u8],
    mut take: impl FnMut(&'f [u8], SfValue<'f>) -> Option<()>,
) -> Option<()> {
    let mut reader = Reader { rest: line.trim_ascii() };
    if reader.rest.is_empty() {
        return Some(());
    }
    loop {
        let key = reader.key()?;
        let member = if reader.eat(b'=') { reader.member()? } else { SfValue::Boolean(true) };
        reader.parameters()?;
        take(key, member)?;
        reader.skip(|byte| matches!(byte, b' ' | b'\t'));
        if reader.rest.is_empty() {
            return Some(());
        }
        if !reader.eat(b',') {
            return None;
        }
        reader.skip(|byte| matches!(byte, b' ' | b'\t'));
        // A comma at the end fails with the key.
    }
}

struct Reader<'f> {
    rest: &'f [u8],
}

impl<'f> Reader<'f> {
    fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let is = self.peek() == Some(byte);
        if is {
            self.rest = &self.rest[1..];
        }
        is
    }

    /// The bytes in front that `is` takes.
    fn skip(&mut self, is: impl Fn(u8) -> bool) -> &'f [u8] {
        let end = self.rest.iter().position(|byte| !is(*byte)).unwrap_or(self.rest.len());
        let (front, rest) = self.rest.split_at(end);
        self.rest = rest;
        front
    }

    fn key(&mut self) -> Option<&'f [u8]> {
        let first = self.peek()?;
        if !(first.is_ascii_lowercase() || first == b'*') {
            return None;
        }
        Some(self.skip(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-' | b'.' | b'*')
        }))
    }

    fn parameters(&mut self) -> Option<()> {
        while self.eat(b';') {
            self.skip(|byte| byte == b' ');
            self.key()?;
            if self.eat(b'=') {
                self.bare()?;
            }
        }
        Some(())
    }

    /// An item or an inner list.
    fn member(&mut self) -> Option<SfValue<'f>> {
        if !self.eat(b'(') {
            return self.bare();
        }
        loop {
            self.skip(|byte| byte == b' ');
            if self.eat(b')') {
                return Some(SfValue::Other);
            }
            self.bare()?;
            self.parameters()?;
            if !matches!(self.peek()?, b' ' | b')') {
                return None;
            }
        }
    }

    fn bare(&mut self) -> Option<SfValue<'f>> {
        match self.peek()? {
            b'-' | b'0'..=b'9' => self.number(),
            b'"' => self.text(),
            b'?' => {
                self.eat(b'?');
                match self.peek()? {
                    digit @ (b'0' | b'1') => {
                        self.eat(digit);
                        Some(SfValue::Boolean(digit == b'1'))
                    }
                    _ => None,
                }
            }
            b':' => {
                self.eat(b':');
                self.skip(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
                self.eat(b':').then_some(SfValue::Other)
            }
            b'@' => {
                self.eat(b'@');
                matches!(self.number()?, SfValue::Integer(_)).then_some(SfValue::Other)
            }
            b'%' => {
                self.eat(b'%');
                self.text().map(|_| SfValue::Other)
            }
            first if first.is_ascii_alphabetic() || first == b'*' => {
                self.skip(|byte| super::fields::is_token(byte) || matches!(byte, b':' | b'/'));
                Some(SfValue::Other)
            }
            _ => None,
        }
    }

    fn number(&mut self) -> Option<SfValue<'f>> {
        let sign = if self.eat(b'-') { -1 } else { 1 };
        let digits = self.skip(|byte| byte.is_ascii_digit());
        if digits.is_empty() || digits.len() > 15 {
            return None;
        }
        if self.eat(b'.') {
            let fraction = self.skip(|byte| byte.is_ascii_digit()).len();
            return (digits.len() <= 12 && (1..=3).contains(&fraction)).then_some(SfValue::Other);
        }
        let number = digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
        Some(SfValue::Integer(sign * number))
    }

    fn text(&mut self) -> Option<SfValue<'f>> {
        let mut at = 1;
        loop {
            match self.rest.get(at)? {
                b'"' => break,
                b'\\' if matches!(self.rest.get(at + 1)?, b'"' | b'\\') => at += 2,
                b'\\' => return None,
                b' '..=b'~' => at += 1,
                _ => return None,
            }
        }
        let text = &self.rest[1..at];
        self.rest = &self.rest[at + 1..];
        Some(SfValue::Text(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<Vec<(String, String)>> {
        let mut all = Vec::new();
        dictionary(line.as_bytes(), |key, member| {
            all.push((key.escape_ascii().to_string(), format!("{member:?}")));
            Some(())
        })?;
        Some(all)
    }

    #[test]
    fn rfc9651_3_2_members_are_read() {
        let read = read(
            "a, b=?0 ,\tc=12;x;y=\"z\", d=-3, e=\"q,\\\"\", f=tok/en, g=(1 \"a\");p, h=:YQ==:, i=1.5, *k=@1",
        )
        .unwrap();
        let of: Vec<_> = read.iter().map(|(_, member)| member.as_str()).collect();
        assert_eq!(of[..4], ["Boolean(true)", "Boolean(false)", "Integer(12)", "Integer(-3)"]);
        assert!(of[4].starts_with("Text(") && of[5..].iter().all(|one| *one == "Other"), "{of:?}");
    }

    #[test]
    fn rfc9651_4_2_what_breaks_the_grammar_is_no_dictionary() {
        for line in [
            "a,",
            ",a",
            "a b",
            "A=1",
            "max-age =1",
            "max-age= 1",
            "a=",
            "a=1234567890123456",
            "a=1.",
            "a=1.2345",
            "a=\"x",
            "a=\"\\x\"",
            "a=?2",
            "a=(1",
            "a=(1,2)",
            "a, &&&&&",
            "a=:x",
            "a=\"\u{fc}\"",
            "a;B",
            "a=-",
            "a=@x",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
        assert_eq!(read(" "), Some(Vec::new()));
    }
}
