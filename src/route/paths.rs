//! Routes of one host, by path.

use std::sync::Arc;

use regex::bytes::{RegexSet, RegexSetBuilder};

use crate::config::model::RouteConfig;
use crate::config::model::route::{PathPattern, RouteMatch};

use super::keys::KeyMap;

/// Bytes that the expressions of one host may take when they are tried together; more are tried one by one.
const TOGETHER: usize = 64 << 20;

/// A route among others of its path.
#[derive(Clone, Copy, Debug)]
struct Listed {
    place: usize,
    /// Whether it must be asked if it takes a request: one without conditions is not even looked at.
    has_conditions: bool,
}

impl Listed {
    fn takes(self, takes: &mut dyn FnMut(usize) -> bool) -> bool {
        !self.has_conditions || takes(self.place)
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

/// Routes of one host, by path. Those of one path stand in the order in which they are asked.
#[derive(Debug, Default)]
pub(super) struct Paths {
    exact: KeyMap<Vec<Listed>>,
    /// Of each expression.
    starts: Vec<Start>,
    expressions: Vec<Listed>,
    together: Option<RegexSet>,
    alone: Vec<regex::bytes::Regex>,
    root: Node,
    any: Vec<Listed>,
}

/// A segment of prefixes: what lies below it, and whose prefix ends here.
#[derive(Debug, Default)]
struct Node {
    below: KeyMap<Node>,
    here: Vec<Listed>,
}

impl Paths {
    /// Adds the route at `place`, which comes behind all that are there.
    pub(super) fn add(&mut self, matches: &RouteMatch, place: usize) {
        let listed = Listed { place, has_conditions: matches.conditions() > 0 };
        match &matches.path {
            PathPattern::Any => self.any.push(listed),
            PathPattern::Exact(path) => self.exact.entry(path.as_bytes().into()).or_default().push(listed),
            PathPattern::Prefix(prefix) => {
                let below = prefix.trim_end_matches('/').strip_prefix('/');
                let segments = below.into_iter().flat_map(|below| below.split('/'));
                let node = segments.fold(&mut self.root, |node, segment| {
                    node.below.entry(segment.as_bytes().into()).or_default()
                });
                node.here.push(listed);
            }
            PathPattern::Regex(_) => self.expressions.push(listed),
        }
    }

    /// Puts those of one path in order, once all are there.
    pub(super) fn finish(&mut self, routes: &[Arc<RouteConfig>]) {
        let sort = |all: &mut Vec<Listed>| {
            all.sort_by_key(|listed| std::cmp::Reverse(routes[listed.place].matches.conditions()));
        };
        self.exact.values_mut().for_each(sort);
        sort(&mut self.any);
        self.root.each(&sort);
        let regexes = self.expressions.iter().filter_map(|listed| match &routes[listed.place].matches.path {
            PathPattern::Regex(regex) => Some(regex.clone()),
            _ => None,
        });
        self.alone = regexes.collect();
        self.starts = self.alone.iter().map(|regex| Start::of(regex.as_str())).collect();
        if self.alone.len() > 1 {
            let texts = self.alone.iter().map(regex::bytes::Regex::as_str);
            self.together = RegexSetBuilder::new(texts).size_limit(TOGETHER).build().ok();
        }
    }

    /// The nearest route that `takes` the request.
    #[must_use]
    pub(super) fn find(&self, path: &[u8], takes: &mut dyn FnMut(usize) -> bool) -> Option<usize> {
        let first = |all: &[Listed], takes: &mut dyn FnMut(usize) -> bool| {
            all.iter().find(|listed| listed.takes(takes)).map(|listed| listed.place)
        };
        if let Some(found) = self.exact.get(path).and_then(|places| first(places, takes)) {
            return Some(found);
        }
        if let Some(found) = self.expression(path, takes) {
            return Some(found);
        }
        let segments = path.strip_prefix(b"/");
        let by_prefix = match segments {
            Some(segments) => self.root.find(Some(segments), takes),
            None if path == b"*" => first(&self.root.here, takes),
            None => None,
        };
        by_prefix.or_else(|| first(&self.any, takes))
    }

    fn expression(&self, path: &[u8], takes: &mut dyn FnMut(usize) -> bool) -> Option<usize> {
        if !self.starts.iter().any(|start| start.begins(path)) {
            return None;
        }
        let found = match &self.together {
            // In the order of the file.
            Some(set) => {
                set.matches(path).into_iter().map(|at| self.expressions[at]).find(|one| one.takes(takes))
            }
            None => {
                let all = self.alone.iter().zip(&self.expressions).map(|(regex, one)| (regex, *one));
                let mut found = all.filter(|(regex, _)| regex.is_match(path));
                found.find(|(_, one)| one.takes(takes)).map(|(_, one)| one)
            }
        };
        found.map(|one| one.place)
    }
}

impl Node {
    fn each(&mut self, sort: &impl Fn(&mut Vec<Listed>)) {
        sort(&mut self.here);
        self.below.values_mut().for_each(|node| node.each(sort));
    }

    /// The route with the longest prefix that takes it; `rest`: what of the path comes below this node. Goes as deep as prefixes do,
    /// not as paths do.
    fn find(&self, rest: Option<&[u8]>, takes: &mut dyn FnMut(usize) -> bool) -> Option<usize> {
        let below = rest.filter(|_| !self.below.is_empty()).and_then(|rest| {
            let end = memchr::memchr(b'/', rest);
            let node = self.below.get(&rest[..end.unwrap_or(rest.len())])?;
            node.find(end.map(|end| &rest[end + 1..]), takes)
        });
        below.or_else(|| self.here.iter().find(|listed| listed.takes(takes)).map(|listed| listed.place))
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
