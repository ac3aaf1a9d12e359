//! Labels, escaped.

use std::borrow::Cow;

/// The labels that several samples have, as they are written. One that is used again keeps its memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Labels(String);

impl Labels {
    /// None at all.
    #[must_use]
    pub fn none() -> Labels {
        Labels::default()
    }

    /// These.
    #[must_use]
    pub fn of(pairs: &[(&str, &str)]) -> Labels {
        let mut labels = Labels::default();
        labels.set(pairs);
        labels
    }

    /// As they are [written](Labels::text).
    pub(super) fn written(text: String) -> Labels {
        Labels(text)
    }

    /// These in place of those before.
    pub fn set(&mut self, pairs: &[(&str, &str)]) {
        self.0.clear();
        pairs.iter().for_each(|pair| self.add(*pair));
    }

    /// One more.
    pub fn add(&mut self, (name, value): (&str, &str)) {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        put(name, value, &mut self.0);
    }

    /// Each name with its value, in their order.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
        let mut rest = &*self.0;
        std::iter::from_fn(move || {
            let (name, behind) = rest.split_once("=\"")?;
            let end = closing_quote(behind)?;
            rest = behind[end + 1..].strip_prefix(',').unwrap_or_default();
            Some((name, unescaped(&behind[..end])))
        })
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }
}

/// Where a value ends: at the first quote that is not escaped.
fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        ends
    })
}

fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return text.into();
    }
    let (mut plain, mut characters) = (String::with_capacity(text.len()), text.chars());
    while let Some(character) = characters.next() {
        plain.push(match character {
            '\\' => match characters.next() {
                Some('n') => '\n',
                other => other.unwrap_or('\\'),
            },
            other => other,
        });
    }
    plain.into()
}

/// Writes `name="value"`.
pub(super) fn put(name: &str, value: &str, to: &mut String) {
    to.push_str(name);
    to.push_str("=\"");
    escape(value, to);
    to.push('"');
}

/// Writes what stands between quotes, or behind `# HELP`. In the latter `\"` is the same as `"` for who reads OpenMetrics, and no
/// text of ours has one.
pub(super) fn escape(text: &str, to: &mut String) {
    let mut rest = text;
    while let Some(at) = rest.find(['\\', '"', '\n']) {
        to.push_str(&rest[..at]);
        to.push_str(match rest.as_bytes()[at] {
            b'\\' => "\\\\",
            b'"' => "\\\"",
            _ => "\\n",
        });
        rest = &rest[at + 1..];
    }
    to.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_comes_out() {
        let pairs = [("a", "plain"), ("b", ""), ("c", "\\\"\n,x=\"y\\"), ("d", "\\n"), ("e", "é")];
        let labels = Labels::of(&pairs);
        let read: Vec<_> = labels.pairs().map(|(name, value)| (name, value.into_owned())).collect();
        assert_eq!(read, pairs.map(|(name, value)| (name, value.to_owned())));
        assert_eq!(Labels::none().pairs().count(), 0);
    }
}
