//! Which of a listener's routes a request belongs to: a decision without I/O.
//!
//! The order in which routes are asked is that of docs/routing.md: those with an `order`, the lowest first; then by host, by path, by the
//! number of their conditions, and in the order of the file. The first that takes the request has it. What is looked up goes by hash and
//! by segment, so the time of a lookup does not grow with the number of routes; a fuzz target finds the same the slow way.

mod asked;
pub mod condition;
mod edits;
mod expressions;
mod facts;
mod host;
mod keys;
pub mod nearer;
mod passages;
pub mod path_form;
mod paths;
mod readings;
pub mod render;
mod rewrite;
pub mod split;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::config::model::RouteConfig;
use crate::config::model::route::{PathPattern, RouteMatch};

pub use asked::Asked;
pub use edits::LineEdits;
pub use facts::{Groups, TextFacts};
pub use host::host_name;
use host::{HostKey, Hosts};
pub use passages::{HelloVerdict, Passages};
use path_form::PathFault;
use paths::Listed;
pub use rewrite::rewrite;

/// The number of the router that was made last.
static LAST: AtomicU64 = AtomicU64::new(0);

/// The routes of one listener, ready to be asked.
#[derive(Debug)]
pub struct Router {
    /// Never another one's in this process, and never 0.
    number: u64,
    routes: Vec<Arc<RouteConfig>>,
    /// Of each `order` those with it, the lowest first, and at the end those without.
    ranks: Vec<Hosts>,
    /// What has to hold beside host and path, each of it once: many hosts have the same, and what was just looked at is near.
    conditions: Vec<RouteMatch>,
    /// What a request is taken to ask for whose host no route names.
    default_host: Option<HostKey<'static>>,
}

impl Router {
    /// The router of those of these routes that have requests. `default_host`: what a request is taken to ask for whose host none of them names.
    #[must_use]
    pub fn new(routes: &[Arc<RouteConfig>], default_host: Option<&str>) -> Router {
        let mut ranks: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (place, route) in routes.iter().enumerate().filter(|(_, route)| !route.is_passthrough) {
            ranks.entry(route.order.map_or(u64::MAX, u64::from)).or_default().push(place);
        }
        let (conditions, of_each) = condition::shared(routes);
        Router {
            number: LAST.fetch_add(1, Ordering::Relaxed) + 1,
            ranks: ranks.values().map(|places| Hosts::new(routes, places, &of_each)).collect(),
            conditions,
            routes: routes.to_vec(),
            default_host: default_host.and_then(|host| Some(HostKey::of(host.as_bytes())?.kept())),
        }
    }

    /// What tells it from every other router of this process.
    #[must_use]
    #[inline]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The place of the route that a request belongs to; `None`: there is none.
    ///
    /// # Errors
    /// A backend may take its path for one of another route.
    pub fn find(&self, asked: &Asked<'_>) -> Result<Option<usize>, PathFault> {
        Ok(self.look(asked)?.place)
    }

    /// The same, and whether it would be the same for everything that has its host and path.
    ///
    /// # Errors
    /// A backend may take its path for one of another route.
    pub fn look(&self, asked: &Asked<'_>) -> Result<PlaceFound, PathFault> {
        let host = self.host(asked);
        let mut before = Some(PlacesAsked::NONE);
        let place = self.nearest(host.as_ref(), asked, &mut before);
        match place {
            Some(place) if !readings::is_plain(asked.path) => {
                let place = self.only(place, host.as_ref(), asked)?;
                Ok(PlaceFound { place, asked: None })
            }
            _ => Ok(PlaceFound { place, asked: before }),
        }
    }

    /// Whether the conditions of the route at this place hold, but for those on host and path.
    #[must_use]
    pub fn takes(&self, place: usize, asked: &Asked<'_>) -> bool {
        self.routes.get(place).is_some_and(|route| condition::holds(&route.matches, asked))
    }

    /// What is compared of its host.
    fn host<'a>(&'a self, asked: &Asked<'a>) -> Option<HostKey<'a>> {
        let host = HostKey::of(asked.head.authority());
        let is_named = |host: &HostKey<'_>| self.ranks.iter().any(|rank| rank.names(host));
        match &self.default_host {
            Some(default) => host.filter(is_named).or_else(|| Some(default.borrowed())),
            None => host,
        }
    }

    /// `before`: gets the routes whose conditions beside host and path are asked; becomes `None` if they are too many.
    fn nearest(
        &self,
        host: Option<&HostKey<'_>>,
        asked: &Asked<'_>,
        before: &mut Option<PlacesAsked>,
    ) -> Option<usize> {
        let mut takes = |listed: Listed| {
            // One without conditions is not even looked at.
            let Some(at) = listed.conditions.checked_sub(1) else { return true };
            *before = before.and_then(|before| before.and(listed.place));
            condition::holds(&self.conditions[at as usize], asked)
        };
        self.ranks.iter().find_map(|rank| rank.find(host, asked.path, &mut takes))
    }

    /// `place`, if the request is the same route's however a backend reads its path.
    #[cold]
    fn only(
        &self,
        place: usize,
        host: Option<&HostKey<'_>>,
        asked: &Asked<'_>,
    ) -> Result<Option<usize>, PathFault> {
        let spelled = match &self.routes[place].matches.path {
            // Whoever writes such a path means it.
            PathPattern::Exact(_) => Some(&[][..]),
            PathPattern::Prefix(prefix) if !readings::is_plain(prefix.as_bytes()) => {
                asked.path.get(prefix.len()..)
            }
            PathPattern::Prefix(_) | PathPattern::Regex(_) | PathPattern::Any => None,
        };
        let is_sure = match spelled {
            Some(rest) => readings::is_plain(rest),
            None => readings::each(asked.path, |path| {
                match self.nearest(host, &Asked { path, ..*asked }, &mut None) == Some(place) {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            })
            .is_continue(),
        };
        if is_sure { Ok(Some(place)) } else { Err(PathFault::Ambiguous) }
    }
}

/// What a router finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceFound {
    /// The place of the route; `None`: there is none.
    pub place: Option<usize>,
    /// Whose conditions were asked for it: whatever has the same host and path is the first one's whose conditions hold, and if none do it
    /// has this place as well. `None`: that can't be said.
    pub asked: Option<PlacesAsked>,
}

/// A few routes whose conditions were asked, in that order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlacesAsked {
    // A memory of recent routes has one of these for each.
    places: [u32; 4],
    count: u8,
}

impl PlacesAsked {
    /// None.
    pub const NONE: PlacesAsked = PlacesAsked { places: [0; 4], count: 0 };

    /// These; as many as there is room for.
    #[cfg(test)]
    #[must_use]
    pub fn of(places: &[usize]) -> PlacesAsked {
        places.iter().fold(PlacesAsked::NONE, |asked, &place| asked.and(keys::small(place)).unwrap_or(asked))
    }

    /// These and one more; `None`: there is no room for it.
    fn and(mut self, place: u32) -> Option<PlacesAsked> {
        *self.places.get_mut(usize::from(self.count))? = place;
        self.count += 1;
        Some(self)
    }

    /// Their places.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.places[..usize::from(self.count)].iter().map(|&place| place as usize)
    }

    /// Whether there are none.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests;
