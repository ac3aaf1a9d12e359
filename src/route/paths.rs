//! Routes by host and path.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::config::model::RouteConfig;
use crate::config::model::route::{PathPattern, RouteMatch};

use super::expressions::Expressions;
use super::keys::{KeyTable, small};

/// A route among others of its path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listed {
    /// Its place among all routes.
    pub(super) place: u32,
    /// Which conditions must hold beside those on host and path, from 1; 0: none. Routes with the same ones have the same number.
    pub(super) conditions: u32,
}

/// Neighbours among the routes of a host, counted from its first.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    first: u32,
    count: u32,
}

/// What a route of a host says of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    Exact,
    Expression,
    Prefix,
    Any,
}

/// Routes by the number of their host and by path. Those of one path stand in the order in which they are asked.
///
/// Where many hosts have the same paths and conditions, as the customers of a platform do, they share all but the places of their
/// routes: what is near because one of them was just asked for is near for all.
#[derive(Debug, Default)]
pub(super) struct Paths {
    hosts: Box<[HostPaths]>,
    /// Places among all routes, those of one host side by side.
    places: Box<[u32]>,
    layouts: Vec<Layout>,
    /// Exact paths, and prefixes without a `/` at the end, of all layouts.
    table: KeyTable<Run>,
    /// Those of each route, the routes of one layout side by side.
    conditions: Vec<u32>,
    expressions: Vec<Expressions>,
}

/// Where what a host has is found.
#[derive(Clone, Copy, Debug, Default)]
struct HostPaths {
    layout: u32,
    /// Where its routes begin among the places.
    first: u32,
}

/// What of the paths of a host is not in the table, and what is.
#[derive(Clone, Copy, Debug, Default)]
struct Layout {
    /// Where its routes begin among the conditions.
    first: u32,
    /// How many segments the longest of its prefixes has.
    deepest: u16,
    has_exact: bool,
    /// Which of the lists of expressions is its own.
    expressions: u32,
    /// Of each of those expressions the route.
    by_expression: Run,
    /// Those with the prefix `/`.
    root: Run,
    any: Run,
}

/// Routes of hosts while they are put together.
#[derive(Debug, Default)]
pub(super) struct PathsAdded<'r> {
    by_host: BTreeMap<u32, BTreeMap<(Kind, &'r str), Vec<Listed>>>,
}

/// What hosts have to have in common to share a layout: kinds, texts, and conditions.
type LayoutKey<'r> = Vec<(Kind, &'r str, u32)>;

impl<'r> PathsAdded<'r> {
    /// Adds a route of this host, which comes behind all that are there.
    pub(super) fn add(&mut self, host: u32, matches: &'r RouteMatch, listed: Listed) {
        let (kind, text) = match &matches.path {
            PathPattern::Any => (Kind::Any, ""),
            PathPattern::Exact(path) => (Kind::Exact, path.as_str()),
            PathPattern::Prefix(prefix) => (Kind::Prefix, prefix.trim_end_matches('/')),
            PathPattern::Regex(_) => (Kind::Expression, ""),
        };
        self.by_host.entry(host).or_default().entry((kind, text)).or_default().push(listed);
    }

    /// All of them, once all are there. `hosts`: how many there are.
    #[must_use]
    pub(super) fn finish(mut self, routes: &'r [Arc<RouteConfig>], hosts: u32) -> Paths {
        let mut paths = Paths::default();
        let (mut places, mut keys) = (Vec::new(), Vec::new());
        let mut known: HashMap<LayoutKey<'r>, u32> = HashMap::new();
        let matches = |one: &Listed| &routes[one.place as usize].matches;
        let expression = |one: &Listed| match &matches(one).path {
            PathPattern::Regex(regex) => Some(regex),
            PathPattern::Any | PathPattern::Exact(_) | PathPattern::Prefix(_) => None,
        };
        let laid = (0..hosts).map(|host| {
            let mut by_path = self.by_host.remove(&host).unwrap_or_default();
            for ((kind, _), listed) in &mut by_path {
                // Expressions stay in the order of the file.
                if *kind != Kind::Expression {
                    listed.sort_by_key(|one| std::cmp::Reverse(matches(one).conditions()));
                }
            }
            let all = by_path.iter().flat_map(|(key, listed)| listed.iter().map(move |one| (key, one)));
            let first = small(places.len());
            places.extend(all.clone().map(|(_, one)| one.place));
            let key = all.clone().map(|((kind, text), one)| {
                (*kind, expression(one).map_or(*text, regex::bytes::Regex::as_str), one.conditions)
            });
            let next = small(paths.layouts.len());
            let layout = *known.entry(key.collect()).or_insert(next);
            if layout == next {
                let mut layout = Layout { first: small(paths.conditions.len()), ..Layout::default() };
                paths.conditions.extend(all.map(|(_, one)| one.conditions));
                let mut end = 0;
                for ((kind, text), listed) in &by_path {
                    let run = Run { first: end, count: small(listed.len()) };
                    end += run.count;
                    match kind {
                        Kind::Exact => {
                            layout.has_exact = true;
                            keys.push((owner(next, Kind::Exact), text.as_bytes(), run));
                        }
                        Kind::Expression => {
                            layout.by_expression = run;
                            layout.expressions = small(paths.expressions.len());
                            let regexes = listed.iter().filter_map(expression).cloned();
                            paths.expressions.push(Expressions::new(regexes.collect()));
                        }
                        Kind::Prefix if text.is_empty() => layout.root = run,
                        Kind::Prefix => {
                            let segments = memchr::memchr_iter(b'/', text.as_bytes()).count();
                            layout.deepest = layout.deepest.max(u16::try_from(segments).unwrap_or(u16::MAX));
                            keys.push((owner(next, Kind::Prefix), text.as_bytes(), run));
                        }
                        Kind::Any => layout.any = run,
                    }
                }
                paths.layouts.push(layout);
            }
            HostPaths { layout, first }
        });
        paths.hosts = laid.collect();
        paths.places = places.into();
        paths.table = KeyTable::new(keys.into_iter());
        paths
    }
}

/// Who has the exact paths or the prefixes of a layout in the table.
fn owner(layout: u32, kind: Kind) -> u32 {
    layout << 1 | u32::from(kind == Kind::Exact)
}

/// The routes of one host.
struct OfHost<'a> {
    of: &'a Layout,
    number: u32,
    conditions: &'a [u32],
    places: &'a [u32],
}

impl OfHost<'_> {
    /// The route at this place among those of the host.
    #[inline]
    fn listed(&self, at: u32) -> Option<Listed> {
        let at = at as usize;
        Some(Listed { place: *self.places.get(at)?, conditions: *self.conditions.get(at)? })
    }

    /// The first of a run that `takes` the request.
    #[inline]
    fn first(&self, run: Run, takes: &mut dyn FnMut(Listed) -> bool) -> Option<usize> {
        let mut all = (run.first..run.first + run.count).filter_map(|at| self.listed(at));
        all.find(|listed| takes(*listed)).map(|listed| listed.place as usize)
    }
}

impl Paths {
    /// The nearest route of this host that `takes` the request, by its place.
    #[must_use]
    pub(super) fn find(
        &self,
        host: u32,
        path: &[u8],
        takes: &mut dyn FnMut(Listed) -> bool,
    ) -> Option<usize> {
        let &HostPaths { layout: number, first } = self.hosts.get(host as usize)?;
        let of = self.layouts.get(number as usize)?;
        let conditions = self.conditions.get(of.first as usize..)?;
        let host = OfHost { of, number, conditions, places: self.places.get(first as usize..)? };
        if of.has_exact
            && let Some(run) = self.table.get(owner(number, Kind::Exact), path)
            && let Some(found) = host.first(run, takes)
        {
            return Some(found);
        }
        if let Some(found) = self.by_expression(&host, path, takes) {
            return Some(found);
        }
        let by_prefix = match path {
            [b'/', ..] => self.by_prefix(&host, path, takes),
            b"*" => host.first(of.root, takes),
            _ => None,
        };
        by_prefix.or_else(|| host.first(of.any, takes))
    }

    fn by_expression(
        &self,
        host: &OfHost<'_>,
        path: &[u8],
        takes: &mut dyn FnMut(Listed) -> bool,
    ) -> Option<usize> {
        let run = host.of.by_expression;
        if run.count == 0 {
            return None;
        }
        let listed = |at: usize| host.listed(run.first + small(at));
        let expressions = self.expressions.get(host.of.expressions as usize)?;
        let at = expressions.find(path, |at| listed(at).is_some_and(&mut *takes))?;
        listed(at).map(|listed| listed.place as usize)
    }

    /// The route with the longest prefix that takes it. Looks for as many as prefixes have segments, not as paths do.
    fn by_prefix(
        &self,
        host: &OfHost<'_>,
        path: &[u8],
        takes: &mut dyn FnMut(Listed) -> bool,
    ) -> Option<usize> {
        let mut end = match usize::from(host.of.deepest).checked_sub(1) {
            Some(last) => memchr::memchr_iter(b'/', &path[1..]).nth(last).map_or(path.len(), |at| at + 1),
            None => 0,
        };
        while end > 0 {
            let run = self.table.get(owner(host.number, Kind::Prefix), &path[..end]);
            if let Some(found) = run.and_then(|run| host.first(run, takes)) {
                return Some(found);
            }
            end = memchr::memrchr(b'/', &path[..end]).unwrap_or(0);
        }
        host.first(host.of.root, takes)
    }
}
