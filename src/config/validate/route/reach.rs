//! Routes that no request ever comes to, since an earlier one takes everything that they could get.
//!
//! Only what is certain: what two expressions have in common nobody looks for, nor whether several routes together take all. What is
//! looked up goes by hash, so that the time grows with the number of routes and not with that of their pairs.

use std::collections::HashMap;

use crate::config::model::RouteConfig;
use crate::config::model::route::{HostPattern, PathPattern};

/// One host of a route; `None`: any host.
pub(super) type RouteHost<'r> = Option<(&'r str, bool, Option<u16>)>;

/// A path that routes can have in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum PathKey<'r> {
    Any,
    Exact(&'r str),
    Prefix(&'r str),
    Regex(&'r str),
}

/// Where routes stand that take whatever comes to a host and a path.
#[derive(Default)]
struct Takers<'r> {
    /// Of those with `order`: the lowest one, and which route that is.
    ordered: HashMap<(RouteHost<'r>, PathKey<'r>), (u32, usize)>,
    /// Of those of one rank and with the same conditions: the first.
    first: HashMap<(Option<u32>, RouteHost<'r>, PathKey<'r>, &'r str), usize>,
}

/// The places of routes that never have a request, each with the place of a route that has it instead. `conditions`: what each asks
/// for beside host and path, in one line; empty: nothing.
pub(super) fn unreachable(routes: &[RouteConfig], conditions: &[String]) -> Vec<(usize, usize)> {
    let mut takers = Takers::default();
    for (place, (route, conditions)) in routes.iter().zip(conditions).enumerate() {
        let path = key(&route.matches.path);
        for host in hosts(route) {
            takers.first.entry((route.order, host, path, conditions.as_str())).or_insert(place);
            if let (Some(order), true) = (route.order, conditions.is_empty()) {
                let lowest = takers.ordered.entry((host, path)).or_insert((order, place));
                *lowest = (*lowest).min((order, place));
            }
        }
    }
    let found = routes.iter().zip(conditions).enumerate().filter_map(|(place, (route, conditions))| {
        let mut others = hosts(route).map(|host| takers.before(place, route, host, conditions));
        let first = others.next()??;
        others.all(|other| other.is_some()).then_some((place, first))
    });
    found.collect()
}

/// Its hosts.
pub(super) fn hosts<'r>(route: &'r RouteConfig) -> impl Iterator<Item = RouteHost<'r>> {
    let hosts = &route.matches.hosts;
    let any = hosts.is_empty().then_some(None);
    let of = |host: &'r HostPattern| Some((host.name.as_str(), host.is_suffix, host.port));
    any.into_iter().chain(hosts.iter().map(of))
}

/// The path of a route as what is compared.
pub(super) fn key(path: &PathPattern) -> PathKey<'_> {
    match path {
        PathPattern::Any => PathKey::Any,
        PathPattern::Exact(path) => PathKey::Exact(path),
        PathPattern::Prefix(path) => PathKey::Prefix(path),
        PathPattern::Regex(regex) => PathKey::Regex(regex.as_str()),
    }
}

impl<'r> Takers<'r> {
    /// A route that takes all that this one could get by one of its hosts.
    fn before(
        &self,
        place: usize,
        route: &'r RouteConfig,
        host: RouteHost<'r>,
        conditions: &'r str,
    ) -> Option<usize> {
        self.by_order(route, host).or_else(|| {
            let path = key(&route.matches.path);
            let like = |conditions| {
                let first = self.first.get(&(route.order, host, path, conditions)).copied();
                first.filter(|first| *first < place)
            };
            // Of one path those with more conditions go first, but of expressions those that stand first.
            let is_plain = matches!(path, PathKey::Regex(_));
            like(conditions).or_else(|| is_plain.then(|| like("")).flatten())
        })
    }

    /// One with a lower `order`: then neither host nor path need be near.
    fn by_order(&self, route: &'r RouteConfig, host: RouteHost<'r>) -> Option<usize> {
        if self.ordered.is_empty() {
            return None;
        }
        let mut paths = vec![PathKey::Any, key(&route.matches.path)];
        if let PathPattern::Exact(path) | PathPattern::Prefix(path) = &route.matches.path {
            paths.push(PathKey::Prefix("/"));
            let ends = path.match_indices('/').map(|(end, _)| end).filter(|end| *end > 0);
            paths.extend(ends.map(|end| PathKey::Prefix(&path[..end])));
            paths.push(PathKey::Prefix(path));
        }
        let is_before = |order: u32| route.order.is_none_or(|own| order < own);
        let mut hosts = vec![None];
        if let Some((name, is_suffix, port)) = host {
            let dots = name.match_indices('.').map(|(dot, _)| (&name[dot + 1..], true));
            for (name, is_suffix) in [(name, is_suffix)].into_iter().chain(dots) {
                hosts.push(Some((name, is_suffix, None)));
                hosts.extend(port.map(|port| Some((name, is_suffix, Some(port)))));
            }
        }
        hosts.into_iter().find_map(|host| {
            let takers = paths.iter().filter_map(|path| self.ordered.get(&(host, *path)));
            takers.filter(|(order, _)| is_before(*order)).min().map(|(_, place)| *place)
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::super::written::conditions;
    use super::*;
    use crate::config::model::route::RouteMatch;

    fn route(order: Option<u32>, hosts: &[&str], path: &str, method: &str) -> RouteConfig {
        let host = |text: &&str| {
            let (rest, is_suffix) = text.strip_prefix("*.").map_or((*text, false), |rest| (rest, true));
            let (name, port) =
                rest.split_once(':').map_or((rest, None), |(name, port)| (name, port.parse().ok()));
            HostPattern { name: name.to_owned(), is_suffix, port }
        };
        let path = match path.split_at(path.len().min(1)) {
            ("", _) => PathPattern::Any,
            ("=", path) => PathPattern::Exact(path.to_owned()),
            ("~", regex) => PathPattern::Regex(regex::bytes::Regex::new(regex).unwrap()),
            _ => PathPattern::Prefix(path.to_owned()),
        };
        let methods = if method.is_empty() { Vec::new() } else { vec![method.to_owned()] };
        let hosts = hosts.iter().map(host).collect();
        let matches = RouteMatch { hosts, path, methods, ..RouteMatch::default() };
        RouteConfig { order, matches, ..RouteConfig::catch_all("web") }
    }

    fn found(routes: &[RouteConfig]) -> Vec<(usize, usize)> {
        let conditions: Vec<String> = routes.iter().map(|route| conditions(&route.matches)).collect();
        unreachable(routes, &conditions)
    }

    #[test]
    fn a_lower_order_takes_all_that_its_host_and_path_cover() {
        for (first, second) in [
            (route(Some(1), &[], "", ""), route(None, &[], "", "")),
            (route(Some(1), &[], "", ""), route(Some(2), &["a"], "=/x", "GET")),
            (route(Some(1), &[], "/", ""), route(None, &["a"], "/x", "")),
            (route(Some(1), &[], "/x", ""), route(None, &["a"], "/x/y", "")),
            (route(Some(1), &[], "/x", ""), route(None, &["a"], "=/x/", "")),
            (route(Some(1), &["a"], "", ""), route(None, &["a:80"], "~^/x", "")),
            (route(Some(1), &["*.a.b"], "", ""), route(None, &["x.a.b", "*.y.a.b"], "", "")),
            (route(Some(1), &["*.a.b"], "", ""), route(None, &["*.a.b"], "", "")),
        ] {
            assert_eq!(found(&[second.clone(), first.clone()]), [(0, 1)], "{first:?} {second:?}");
            assert_eq!(found(&[first, second]), [(1, 0)]);
        }
        for (first, second) in [
            (route(Some(2), &[], "", ""), route(Some(1), &[], "/x", "")),
            (route(Some(1), &[], "", "GET"), route(None, &[], "", "GET")),
            (route(Some(1), &[], "/x", ""), route(None, &[], "/xy", "")),
            (route(Some(1), &[], "/x/y", ""), route(None, &[], "/x", "")),
            (route(Some(1), &[], "=/x", ""), route(None, &[], "/x", "")),
            (route(Some(1), &[], "/", ""), route(None, &[], "", "")),
            (route(Some(1), &["a:80"], "", ""), route(None, &["a"], "", "")),
            (route(Some(1), &["*.a"], "", ""), route(None, &["a"], "", "")),
            (route(Some(1), &["a"], "", ""), route(None, &["a", "b"], "", "")),
            (route(Some(1), &["b.a"], "", ""), route(None, &["*.b.a"], "", "")),
        ] {
            assert_eq!(found(&[first.clone(), second.clone()]), [], "{first:?} {second:?}");
        }
    }

    #[test]
    fn of_one_rank_only_the_same_host_and_path_take_all() {
        let pairs = [
            (route(None, &["a", "b"], "/x", ""), route(None, &["b"], "/x", "")),
            (route(None, &["a", "b"], "/x", "GET"), route(None, &["b"], "/x", "GET")),
            (route(None, &["a"], "~^/x", ""), route(None, &["a"], "~^/x", "GET")),
        ];
        for (first, second) in pairs {
            assert_eq!(found(&[first.clone(), second.clone()]), [(1, 0)], "{first:?} {second:?}");
        }
        let three =
            [route(None, &["a"], "", ""), route(None, &["b"], "", ""), route(None, &["a", "b"], "", "")];
        assert_eq!(found(&three), [(2, 0)]);
        for (first, second) in [
            // A longer prefix, a nearer host, and more conditions go first, wherever they stand.
            (route(None, &[], "", ""), route(None, &[], "/x", "")),
            (route(None, &[], "", ""), route(None, &["a"], "", "")),
            (route(None, &[], "/x", ""), route(None, &[], "/x", "GET")),
            (route(None, &[], "/x", "GET"), route(None, &[], "/x", "")),
            (route(None, &["b"], "/x", ""), route(None, &["a", "b"], "/x", "")),
            (route(None, &["a"], "~^/x", "GET"), route(None, &["a"], "~^/x", "")),
        ] {
            assert_eq!(found(&[first.clone(), second.clone()]), [], "{first:?} {second:?}");
        }
    }
}
