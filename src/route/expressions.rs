//! Expressions of paths that are tried together.

use regex::bytes::{Regex, RegexSet, RegexSetBuilder};

/// Bytes that the expressions of one host may take when they are tried together; more are tried one by one.
const TOGETHER: usize = 64 << 20;

/// The expressions of a host, in the order in which they are asked. Hosts with the same ones share them, for what an expression has
/// learnt of its subjects (some kilobytes) is what makes it fast.
#[derive(Debug)]
pub(super) struct Expressions {
    /// Of each expression.
    starts: Vec<Start>,
    together: Option<RegexSet>,
    alone: Vec<Regex>,
}

impl Expressions {
    /// These.
    #[must_use]
    pub(super) fn new(alone: Vec<Regex>) -> Expressions {
        let together = (alone.len() > 1)
            .then(|| RegexSetBuilder::new(alone.iter().map(Regex::as_str)).size_limit(TOGETHER).build().ok());
        Expressions {
            starts: alone.iter().map(|regex| Start::of(regex.as_str())).collect(),
            together: together.flatten(),
            alone,
        }
    }

    /// The first of those that are like this path for which `takes` says so, by its number.
    pub(super) fn find(&self, path: &[u8], mut takes: impl FnMut(usize) -> bool) -> Option<usize> {
        if !self.starts.iter().any(|start| start.begins(path)) {
            return None;
        }
        match &self.together {
            Some(set) => set.matches(path).into_iter().find(|&at| takes(at)),
            None => (0..self.alone.len()).find(|&at| self.alone[at].is_match(path) && takes(at)),
        }
    }
}

/// Letters that a path begins with in which an expression finds anything; as many of them as fit.
#[derive(Clone, Copy, Debug, Default)]
struct Start {
    letters: [u8; 7],
    count: u8,
}

impl Start {
    fn of(expression: &str) -> Start {
        let mut start = Start::default();
        let Some(rest) = expression.strip_prefix('^').filter(|rest| !rest.contains('|')) else {
            return start;
        };
        let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_');
        let mut count = rest.bytes().take_while(is_letter).count();
        // What may come several times, or never, is no letter that must be there.
        if matches!(rest.as_bytes().get(count), Some(b'?' | b'*' | b'+' | b'{')) {
            count -= 1.min(count);
        }
        for (letter, byte) in start.letters.iter_mut().zip(rest.bytes().take(count)) {
            *letter = byte;
            start.count += 1;
        }
        start
    }

    fn begins(self, path: &[u8]) -> bool {
        path.starts_with(&self.letters[..usize::from(self.count)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_left_out_where_a_path_begins_otherwise() {
        for (expression, start) in [
            ("^/v[0-9]+/", "/v"),
            ("^/api/users/[0-9]", "/api/us"),
            ("^/ab?", "/a"),
            ("^/ab+", "/a"),
            ("^/ab*c", "/a"),
            ("^/ab{0}", "/a"),
            ("^/a|b", ""),
            ("(?i)^/a", ""),
            ("^(/a)", ""),
            ("/a", ""),
            ("^", ""),
            ("^?", ""),
        ] {
            let found = Start::of(expression);
            assert_eq!(found.letters[..usize::from(found.count)], *start.as_bytes(), "{expression}");
        }
    }
}
