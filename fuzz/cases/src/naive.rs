//! The order of routes word by word, as docs/routing.md has it: what the router is compared with.

use std::cmp::Reverse;
use std::net::Ipv6Addr;
use std::sync::Arc;

use evenkeel::config::model::RouteConfig;
use evenkeel::config::model::route::{HostPattern, PathPattern};
use evenkeel::route::Asked;

use crate::conditions;

/// The place of the route that a request with this path belongs to.
pub fn find(routes: &[Arc<RouteConfig>], default: Option<&str>, asked: &Asked<'_>) -> Option<usize> {
    let authority = String::from_utf8_lossy(asked.head.authority()).to_lowercase();
    let named =
        |host: &str| routes.iter().flat_map(|route| &route.matches.hosts).any(|one| near(one, host) > 0);
    let host = default.filter(|_| !named(&authority)).map_or(authority.clone(), str::to_owned);
    let mut all = Vec::new();
    for (place, route) in routes.iter().enumerate() {
        let hosts = &route.matches.hosts;
        let of_host = hosts.iter().map(|one| near(one, &host)).max().unwrap_or(1);
        if let (1.., Some(of_path)) = (of_host, path(&route.matches.path, asked.path, place))
            && conditions::hold(&route.matches, asked)
        {
            // A route for any host comes behind those that name one.
            let of_host = if hosts.is_empty() { 0 } else { of_host };
            let more = Reverse((of_host, of_path, route.matches.conditions()));
            all.push((route.order.map_or(u64::MAX, u64::from), more, place));
        }
    }
    all.into_iter().min().map(|(_, _, place)| place)
}

/// How near a pattern is to a host; 0: it is not of it.
fn near(pattern: &HostPattern, host: &str) -> usize {
    let bracket = host.rfind(']').unwrap_or(0);
    let colon = host.rfind(':').filter(|colon| *colon >= bracket).unwrap_or(host.len());
    let port = host.get(colon + 1..).and_then(|port| port.parse::<u16>().ok());
    let name = host[..colon].strip_suffix('.').unwrap_or(&host[..colon]);
    let address = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let address = address.and_then(|inside| inside.parse::<Ipv6Addr>().ok());
    let name = address.map_or(name.to_owned(), |ip| format!("[{ip}]"));
    let is_name = match pattern.is_suffix {
        true => name.strip_suffix(&pattern.name).is_some_and(|front| front.ends_with('.')),
        false => name == pattern.name,
    };
    if name.is_empty() || !is_name || pattern.port.is_some_and(|wanted| port != Some(wanted)) {
        return 0;
    }
    let with_port = usize::from(pattern.port.is_some());
    let base = if pattern.is_suffix { 2 * pattern.name.len() } else { 1_000_000 };
    base + with_port + 1
}

/// How near a pattern is to a path: exact, then expressions in their order, then prefixes by length, then any.
fn path(pattern: &PathPattern, path: &[u8], place: usize) -> Option<(u8, usize)> {
    match pattern {
        PathPattern::Any => Some((0, 0)),
        PathPattern::Exact(exact) => (exact.as_bytes() == path).then_some((3, 0)),
        PathPattern::Regex(regex) => regex.is_match(path).then_some((2, usize::MAX - place)),
        PathPattern::Prefix(prefix) => {
            let prefix = prefix.trim_end_matches('/').as_bytes();
            let rest = path.strip_prefix(prefix)?;
            let is_below = rest.first() == Some(&b'/') || rest.is_empty();
            (is_below || prefix.is_empty()).then_some((1, prefix.len()))
        }
    }
}
