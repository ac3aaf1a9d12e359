//! Which connections are passed through undecrypted, by what their clients ask for under TLS: a decision without I/O.
//!
//! The nearest name has it, as with requests: the name itself, then the longest `*.name`, then routes for any host. At one name those that
//! pass through are asked first: those with more conditions before others, then in the order of the file. Where none of them takes
//! the connection and a route for requests has the same name it is decrypted here; otherwise the next name is asked.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use crate::config::model::RouteConfig;
use crate::config::model::route::RouteMatch;

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelloVerdict {
    /// It is decrypted here.
    Here,
    /// The route at this place passes it on.
    Through(usize),
    /// No route is for it, and nothing is decrypted here.
    Nowhere,
}

/// The names of a listener some of whose connections are passed through.
#[derive(Debug)]
pub struct Passages {
    /// By the name itself.
    whole: HashMap<Box<str>, Claims>,
    /// By the name behind a star and a dot.
    below: HashMap<Box<str>, Claims>,
    any: Claims,
    /// Whether anything is decrypted here.
    decrypts: bool,
    routes: Vec<Arc<RouteConfig>>,
}

/// Who wants the connections for one name.
#[derive(Debug, Default)]
struct Claims {
    /// The places of routes that pass them on, in the order in which they are asked.
    through: Vec<usize>,
    /// A route for requests has it.
    is_here: bool,
}

impl Passages {
    /// Those of these routes; `None`: none of them passes connections through.
    #[must_use]
    pub fn new(routes: &[Arc<RouteConfig>]) -> Option<Passages> {
        if !routes.iter().any(|route| route.is_passthrough) {
            return None;
        }
        let decrypts = routes.iter().any(|route| !route.is_passthrough);
        let mut passages = Passages {
            whole: HashMap::new(),
            below: HashMap::new(),
            any: Claims::default(),
            decrypts,
            routes: routes.to_vec(),
        };
        let mut places: Vec<usize> = (0..routes.len()).collect();
        places.sort_by_key(|&place| Reverse(routes[place].matches.conditions()));
        for place in places {
            let route = &routes[place];
            let claim = |claims: &mut Claims| match route.is_passthrough {
                true => claims.through.push(place),
                false => claims.is_here = true,
            };
            if route.matches.hosts.is_empty() {
                claim(&mut passages.any);
            }
            for pattern in &route.matches.hosts {
                let names = if pattern.is_suffix { &mut passages.below } else { &mut passages.whole };
                claim(names.entry(pattern.name.as_str().into()).or_default());
            }
        }
        Some(passages)
    }

    /// What becomes of a connection of `client` (`None`: on a unix socket) that asks for `name` (in lower case, without a dot at the
    /// end; `None`: for no name) and offers these protocols.
    #[must_use]
    pub fn find(&self, name: Option<&str>, protocols: &[Box<[u8]>], client: Option<IpAddr>) -> HelloVerdict {
        let offers = |wanted: &str| protocols.iter().any(|protocol| **protocol == *wanted.as_bytes());
        let client = client.map(|client| client.to_canonical());
        let takes = |place: &&usize| {
            let RouteMatch { alpn, clients, .. } = &self.routes[**place].matches;
            let is_of = |client: IpAddr| clients.iter().any(|network| network.contains(&client));
            (alpn.is_empty() || alpn.iter().any(|wanted| offers(wanted)))
                && (clients.is_empty() || client.is_some_and(is_of))
        };
        for claims in self.near(name) {
            if let Some(place) = claims.through.iter().find(takes) {
                return HelloVerdict::Through(*place);
            }
            if claims.is_here {
                return HelloVerdict::Here;
            }
        }
        if self.decrypts { HelloVerdict::Here } else { HelloVerdict::Nowhere }
    }

    /// Whether a connection for `name` over which HTTP/2 is spoken might be passed through. `None`: for no name, as where one is for an
    /// address.
    #[must_use]
    pub fn takes_http2(&self, name: Option<&str>) -> bool {
        let may = |place: &usize| {
            let RouteMatch { alpn, clients, .. } = &self.routes[*place].matches;
            // Whoever comes for no name can't come back for one.
            (name.is_some() || clients.is_empty())
                && (alpn.is_empty() || alpn.iter().any(|wanted| wanted == "h2"))
        };
        for claims in self.near(name) {
            if claims.through.iter().any(may) {
                return true;
            }
            if claims.is_here {
                return false;
            }
        }
        false
    }

    /// Whether every connection for `name` is passed through whose client offers this protocol; `None`: one of which nothing is known.
    #[must_use]
    pub fn surely_takes(&self, name: Option<&str>, protocol: Option<&str>) -> bool {
        let takes = |place: &usize| {
            let RouteMatch { alpn, clients, .. } = &self.routes[*place].matches;
            let is_offered = protocol.is_some_and(|protocol| alpn.iter().any(|wanted| wanted == protocol));
            clients.is_empty() && (alpn.is_empty() || is_offered)
        };
        for claims in self.near(name) {
            if claims.through.iter().any(takes) {
                return true;
            }
            if claims.is_here {
                return false;
            }
        }
        false
    }

    /// Who wants connections for this name, the nearest first.
    fn near<'p>(&'p self, name: Option<&'p str>) -> impl Iterator<Item = &'p Claims> {
        let whole = name.and_then(|name| self.whole.get(name));
        let behind =
            name.into_iter().flat_map(|name| name.match_indices('.').map(|(dot, _)| &name[dot + 1..]));
        let below = behind.filter_map(|name| self.below.get(name));
        whole.into_iter().chain(below).chain(std::iter::once(&self.any))
    }
}

#[cfg(test)]
mod tests;
