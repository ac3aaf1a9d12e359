//! Routes of one host, by path.

use std::collections::HashMap;
use std::sync::Arc;

use regex::bytes::{RegexSet, RegexSetBuilder};

use crate::config::model::RouteConfig;
use crate::config::model::route::PathPattern;

/// Bytes that the expressions of one host may take when they are tried together; more are tried one by one.
const TOGETHER: usize = 64 << 20;

/// Routes of one host, by path. Those of one path stand in the order in which they are asked.
#[derive(Debug, Default)]
pub(super) struct Paths {
    exact: HashMap<Box<[u8]>, Vec<usize>>,
    expressions: Vec<usize>,
    together: Option<RegexSet>,
    alone: Vec<regex::bytes::Regex>,
    root: Node,
    any: Vec<usize>,
}

/// A segment of prefixes: what lies below it, and whose prefix ends here.
#[derive(Debug, Default)]
struct Node {
    below: HashMap<Box<[u8]>, Node>,
    here: Vec<usize>,
}

impl Paths {
    /// Adds the route at `place`, which comes behind all that are there.
    pub(super) fn add(&mut self, path: &PathPattern, place: usize) {
        match path {
            PathPattern::Any => self.any.push(place),
            PathPattern::Exact(path) => self.exact.entry(path.as_bytes().into()).or_default().push(place),
            PathPattern::Prefix(prefix) => {
                let below = prefix.trim_end_matches('/').strip_prefix('/');
                let segments = below.into_iter().flat_map(|below| below.split('/'));
                let node = segments.fold(&mut self.root, |node, segment| {
                    node.below.entry(segment.as_bytes().into()).or_default()
                });
                node.here.push(place);
            }
            PathPattern::Regex(_) => self.expressions.push(place),
        }
    }

    /// Puts those of one path in order, once all are there.
    pub(super) fn finish(&mut self, routes: &[Arc<RouteConfig>]) {
        let sort = |places: &mut Vec<usize>| {
            places.sort_by_key(|&place| std::cmp::Reverse(routes[place].matches.conditions()));
        };
        self.exact.values_mut().for_each(sort);
        sort(&mut self.any);
        self.root.each(&sort);
        let regexes = self.expressions.iter().filter_map(|&place| match &routes[place].matches.path {
            PathPattern::Regex(regex) => Some(regex.clone()),
            _ => None,
        });
        self.alone = regexes.collect();
        if self.alone.len() > 1 {
            let texts = self.alone.iter().map(regex::bytes::Regex::as_str);
            self.together = RegexSetBuilder::new(texts).size_limit(TOGETHER).build().ok();
        }
    }

    /// The nearest route that `takes` the request.
    #[must_use]
    pub(super) fn find(&self, path: &[u8], takes: &mut dyn FnMut(usize) -> bool) -> Option<usize> {
        let first = |places: &[usize], takes: &mut dyn FnMut(usize) -> bool| {
            places.iter().copied().find(|&place| takes(place))
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
        match &self.together {
            // In the order of the file.
            Some(set) => {
                set.matches(path).into_iter().map(|at| self.expressions[at]).find(|&place| takes(place))
            }
            None => {
                let found = self.alone.iter().zip(&self.expressions);
                let mut found = found.filter(|(regex, _)| regex.is_match(path)).map(|(_, &place)| place);
                found.find(|&place| takes(place))
            }
        }
    }
}

impl Node {
    fn each(&mut self, sort: &impl Fn(&mut Vec<usize>)) {
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
        below.or_else(|| self.here.iter().copied().find(|&place| takes(place)))
    }
}
