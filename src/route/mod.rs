//! Which of a listener's routes a request belongs to: a decision without I/O.
//!
//! The order in which routes are asked is that of docs/routing.md: those with an `order`, the lowest first; then by host, by path, by the
//! number of their conditions, and in the order of the file. The first that takes the request has it. What is looked up goes by hash and
//! by segment, so the time of a lookup does not grow with the number of routes; `naive`, in the tests, finds the same the slow way.

pub mod access;
mod asked;
pub mod condition;
mod edits;
mod facts;
mod host;
#[cfg(test)]
mod naive;
pub mod nearer;
pub mod path_form;
mod paths;
pub mod render;
mod rewrite;
pub mod split;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::model::RouteConfig;

pub use asked::Asked;
pub use edits::LineEdits;
pub use facts::{Groups, TextFacts};
use host::{HostKey, Hosts};
pub use rewrite::rewrite;

/// The routes of one listener, ready to be asked.
#[derive(Debug)]
pub struct Router {
    routes: Vec<Arc<RouteConfig>>,
    /// Of each `order` those with it, the lowest first, and at the end those without.
    ranks: Vec<Hosts>,
    /// What a request is taken to ask for whose host no route names.
    default_host: Option<HostKey>,
}

impl Router {
    /// The router of these routes. `default_host`: what a request is taken to ask for whose host none of them names.
    #[must_use]
    pub fn new(routes: &[Arc<RouteConfig>], default_host: Option<&str>) -> Router {
        let mut ranks: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (place, route) in routes.iter().enumerate() {
            ranks.entry(route.order.map_or(u64::MAX, u64::from)).or_default().push(place);
        }
        Router {
            ranks: ranks.values().map(|places| Hosts::new(routes, places)).collect(),
            routes: routes.to_vec(),
            default_host: default_host.and_then(|host| HostKey::of(host.as_bytes())),
        }
    }

    /// The place of the route that a request belongs to; `None`: there is none.
    #[must_use]
    pub fn find(&self, asked: &Asked<'_>) -> Option<usize> {
        let host = self.host(asked);
        let mut takes = |place: usize| condition::holds(&self.routes[place].matches, asked);
        self.ranks.iter().find_map(|rank| rank.find(host.as_ref(), asked.path, &mut takes))
    }

    /// The host that a request is for.
    #[inline]
    fn host(&self, asked: &Asked<'_>) -> Option<HostKey> {
        let host = HostKey::of(asked.head.authority());
        let is_named = |host: &HostKey| self.ranks.iter().any(|rank| rank.names(host));
        match &self.default_host {
            Some(default) => host.filter(is_named).or_else(|| Some(default.clone())),
            None => host,
        }
    }
}

#[cfg(test)]
mod tests;
