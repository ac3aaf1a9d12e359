//! Routes that protect what others then let through: a request that one of them guards can reach a nearer one that does not, or fall
//! through to a wider one, because the guard asks for more than host and path.
//!
//! Only what is certain: what two expressions have in common nobody looks for. What is looked up goes by host and path, so that the
//! time grows with the number of routes, but for hosts below those of a guard.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::reach::{PathKey, RouteHost, hosts, key};
use crate::config::model::RouteConfig;
use crate::config::model::route::PathPattern;

/// A way around a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Gap {
    /// The route that protects.
    pub(super) guard: usize,
    /// The route that gets the request instead, and does not.
    pub(super) open: usize,
    /// That one is asked first; else it gets what the guard does not take.
    pub(super) is_first: bool,
}

/// The keys of a route that protect it. Whatever else does so later belongs here.
pub(super) fn protections(route: &RouteConfig) -> Vec<&'static str> {
    let all = [
        ("access", !route.access.is_empty()),
        ("auth", route.auth.is_some()),
        ("rate_limit", !route.rate_limits.is_empty()),
    ];
    all.into_iter().filter(|(_, is_there)| *is_there).map(|(key, _)| key).collect()
}

/// What `guard` has of them and `open` has not.
pub(super) fn missing(guard: &RouteConfig, open: &RouteConfig) -> Vec<&'static str> {
    let others = protections(open);
    protections(guard).into_iter().filter(|key| !others.contains(key)).collect()
}

/// The ways around the guards of a listener, each once.
pub(super) fn gaps(routes: &[RouteConfig]) -> BTreeSet<Gap> {
    let mut found = BTreeSet::new();
    if routes.iter().all(|route| protections(route).is_empty()) {
        return found;
    }
    let area = Areas::of(routes);
    for (place, route) in routes.iter().enumerate() {
        for host in hosts(route) {
            if !protections(route).is_empty() {
                area.around(place, host, &mut found);
            }
            area.inside(place, host, &mut found);
        }
    }
    found
}

/// The ways around guards by the route that is open. Those around `access` and `auth` come first, and routes that have any.
pub(super) fn by_open_route(gaps: &BTreeSet<Gap>, routes: &[RouteConfig]) -> Vec<Vec<Gap>> {
    // Who may come in matters more than how often.
    let is_lesser = |gap: &Gap| missing(&routes[gap.guard], &routes[gap.open]) == ["rate_limit"];
    let mut open: BTreeMap<usize, Vec<Gap>> = BTreeMap::new();
    for gap in gaps {
        open.entry(gap.open).or_default().push(*gap);
    }
    let mut open: Vec<Vec<Gap>> = open.into_values().collect();
    open.iter_mut().for_each(|gaps| gaps.sort_by_key(is_lesser));
    open.sort_by_key(|gaps| gaps.first().is_some_and(is_lesser));
    open
}

/// Routes by host and path.
struct Areas<'r> {
    routes: &'r [RouteConfig],
    all: HashMap<(RouteHost<'r>, PathKey<'r>), Vec<usize>>,
    by_path: HashMap<PathKey<'r>, Vec<(RouteHost<'r>, usize)>>,
}

impl<'r> Areas<'r> {
    fn of(routes: &'r [RouteConfig]) -> Areas<'r> {
        let (mut all, mut by_path): (HashMap<_, Vec<_>>, HashMap<_, Vec<_>>) = Default::default();
        for (place, route) in routes.iter().enumerate() {
            let path = key(&route.matches.path);
            for host in hosts(route) {
                all.entry((host, path)).or_default().push(place);
                by_path.entry(path).or_default().push((host, place));
            }
        }
        Areas { routes, all, by_path }
    }

    /// Routes for all that a guard is for, and for all of its paths on some of its hosts.
    fn around(&self, guard: usize, host: RouteHost<'r>, found: &mut BTreeSet<Gap>) {
        let route = &self.routes[guard];
        let paths = wider_paths(&route.matches.path);
        let own = rank(route, host, guard);
        let mut wider: Vec<_> = Vec::new();
        for (host, path) in
            wider_hosts(host).into_iter().flat_map(|host| paths.iter().map(move |path| (host, *path)))
        {
            for place in self.all.get(&(host, path)).into_iter().flatten().filter(|place| **place != guard) {
                wider.push((rank(&self.routes[*place], host, *place), *place));
            }
        }
        wider.sort_unstable();
        for (rank, place) in wider {
            let is_first = rank < own;
            // What does not ask for more than host and path leaves nothing to those behind it.
            if !is_first && !has_conditions(route) {
                break;
            }
            self.note(Gap { guard, open: place, is_first }, found);
            if !is_first && !has_conditions(&self.routes[place]) {
                break;
            }
        }
        if host.is_none_or(|(_, is_suffix, _)| is_suffix) {
            let same = paths.iter().filter_map(|path| self.by_path.get(path)).flatten();
            for (inner, place) in same.filter(|(inner, _)| is_inside(*inner, host)) {
                let is_first = rank(&self.routes[*place], *inner, *place) < own;
                if is_first {
                    self.note(Gap { guard, open: *place, is_first }, found);
                }
            }
        }
    }

    /// Guards around a route: for all of its hosts, and for more paths.
    fn inside(&self, open: usize, host: RouteHost<'r>, found: &mut BTreeSet<Gap>) {
        let route = &self.routes[open];
        let paths = wider_paths(&route.matches.path);
        for around in wider_hosts(host) {
            for path in paths.iter().filter(|path| **path != key(&route.matches.path)) {
                for guard in self.all.get(&(around, *path)).into_iter().flatten().copied() {
                    let is_first = rank(route, host, open) < rank(&self.routes[guard], around, guard);
                    if is_first || has_conditions(&self.routes[guard]) {
                        self.note(Gap { guard, open, is_first }, found);
                    }
                }
            }
        }
    }

    fn note(&self, gap: Gap, found: &mut BTreeSet<Gap>) {
        if !missing(&self.routes[gap.guard], &self.routes[gap.open]).is_empty() {
            found.insert(gap);
        }
    }
}

/// Whether some of the requests for its host and path are not its own.
fn has_conditions(route: &RouteConfig) -> bool {
    route.matches.conditions() > 0
}

/// Where a route comes among others that could have the same request: the smallest is asked first (see docs/routing.md).
fn rank(route: &RouteConfig, host: RouteHost<'_>, place: usize) -> impl Ord + use<> {
    let order = route.order.map_or(u64::MAX, u64::from);
    let host = match host {
        Some((name, false, port)) => (0, usize::MAX - name.len(), port.is_none()),
        Some((name, true, port)) => (1, usize::MAX - name.len(), port.is_none()),
        None => (2, 0, false),
    };
    let path = match &route.matches.path {
        PathPattern::Exact(_) => (0, 0),
        PathPattern::Regex(_) => (1, place),
        PathPattern::Prefix(path) => (2, usize::MAX - path.len()),
        PathPattern::Any => (2, usize::MAX),
    };
    (order, host, path, usize::MAX - route.matches.conditions(), place)
}

/// The paths of routes that are for all that this one is for, itself included.
fn wider_paths(path: &PathPattern) -> Vec<PathKey<'_>> {
    let mut paths = vec![PathKey::Any, PathKey::Prefix("/"), key(path)];
    if let PathPattern::Exact(path) | PathPattern::Prefix(path) = path {
        let ends = path.match_indices('/').map(|(end, _)| end).filter(|end| *end > 0);
        paths.extend(ends.map(|end| PathKey::Prefix(&path[..end])));
        paths.push(PathKey::Prefix(path));
    }
    paths.sort_unstable();
    paths.dedup();
    paths
}

/// The hosts of routes that are for all that this one is for, itself included.
fn wider_hosts(host: RouteHost<'_>) -> Vec<RouteHost<'_>> {
    let mut hosts = vec![None, host];
    if let Some((name, is_suffix, port)) = host {
        let dots = name.match_indices('.').map(|(dot, _)| (&name[dot + 1..], true));
        for (name, is_suffix) in [(name, is_suffix)].into_iter().chain(dots) {
            hosts.push(Some((name, is_suffix, None)));
            hosts.push(Some((name, is_suffix, port)));
        }
    }
    hosts.sort_unstable();
    hosts.dedup();
    hosts
}

/// Whether a host is one of those that another stands for, and not that one itself.
fn is_inside(inner: RouteHost<'_>, outer: RouteHost<'_>) -> bool {
    match (inner, outer) {
        (Some(_), None) => true,
        (Some((name, is_suffix, port)), Some((of, true, outer_port))) => {
            let is_below = name.strip_suffix(of).is_some_and(|rest| rest.ends_with('.'));
            let is_same = name == of && is_suffix && outer_port.is_none() && port.is_some();
            (is_below || is_same) && outer_port.is_none_or(|outer| port == Some(outer))
        }
        _ => false,
    }
}
