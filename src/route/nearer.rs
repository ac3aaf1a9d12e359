//! Why a request is not that of a nearer route: for people who ask, not for requests.
//!
//! Nothing is compared a second time here: of each route a router of its own is made, and that one is asked.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::config::model::RouteConfig;
use crate::config::model::route::{HostPattern, PathPattern};

use super::condition::{self, RouteCondition};
use super::host::{HostKey, Hosts};
use super::{Asked, Router};

/// A route that would have a request, if it took it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nearer<'r> {
    /// Its place among all.
    pub place: usize,
    /// The first of its conditions that does not hold.
    pub unmet: RouteCondition<'r>,
    /// No other one fails.
    pub is_only: bool,
}

impl Router {
    /// The routes that go before the one at `found` and don't take the request, the nearest first; where none has it, all.
    #[must_use]
    pub fn nearer(&self, asked: &Asked<'_>, found: Option<usize>) -> Vec<Nearer<'_>> {
        let host = self.host(asked);
        let bar = found.map(|found| self.rank(found, host.as_ref()));
        let mut all: Vec<(Rank, Nearer<'_>)> = Vec::new();
        for (place, route) in self.routes.iter().enumerate().filter(|(_, route)| !route.is_passthrough) {
            let rank = self.rank(place, host.as_ref());
            if bar.as_ref().is_some_and(|bar| rank >= *bar) {
                continue;
            }
            let alone = Hosts::new(&self.routes, &[place], &[]);
            let of_host =
                route.matches.hosts.is_empty() || host.as_ref().is_some_and(|host| alone.names(host));
            let of_path =
                Hosts::new(&[anywhere(route)], &[0], &[]).find(None, asked.path, &mut |_| true).is_some();
            let rest = condition::unmet(&route.matches, asked);
            let failed = [
                (!of_host).then_some(RouteCondition::Host),
                (!of_path).then_some(RouteCondition::Path),
                rest,
            ];
            let mut failed = failed.into_iter().flatten();
            if let Some(unmet) = failed.next() {
                all.push((rank, Nearer { place, unmet, is_only: failed.next().is_none() }));
            } else {
                debug_assert!(false, "{} goes before and would have been found", route.name);
            }
        }
        all.sort_by_key(|(rank, _)| *rank);
        all.into_iter().map(|(_, nearer)| nearer).collect()
    }

    /// Where a route comes among others for a request for `host`, as if it took it: the least has it.
    fn rank(&self, place: usize, host: Option<&HostKey>) -> Rank {
        let RouteConfig { order, matches, .. } = &*self.routes[place];
        let fits = |pattern: &&HostPattern| {
            let mut one = RouteConfig::catch_all("");
            one.matches.hosts = vec![(*pattern).clone()];
            host.is_some_and(|host| Hosts::new(&[Arc::new(one)], &[0], &[]).names(host))
        };
        let nearest = |pattern: &HostPattern| {
            let base = if pattern.is_suffix { 2 * pattern.name.len() } else { usize::MAX / 2 };
            base + usize::from(pattern.port.is_some()) + 1
        };
        let of_host = matches.hosts.iter().filter(fits).map(nearest).max();
        let of_host = of_host.or_else(|| matches.hosts.iter().map(nearest).max()).unwrap_or_default();
        let conditions = matches.conditions();
        let of_path = match &matches.path {
            PathPattern::Any => (0, 0, conditions),
            PathPattern::Prefix(prefix) => {
                let segments = prefix.split('/').filter(|segment| !segment.is_empty()).count();
                (1, segments, conditions)
            }
            // Those are asked in their order alone.
            PathPattern::Regex(_) => (2, 0, 0),
            PathPattern::Exact(_) => (3, 0, conditions),
        };
        (order.map_or(u64::MAX, u64::from), Reverse((of_host, of_path)), place)
    }
}

type Rank = (u64, Reverse<(usize, (u8, usize, usize))>, usize);

/// The route as one for any host.
fn anywhere(route: &RouteConfig) -> Arc<RouteConfig> {
    let mut route = route.clone();
    route.matches.hosts.clear();
    Arc::new(route)
}
