//! The order of routes word by word, as docs/routing.md has it: what the router is compared with.

use std::sync::Arc;

use crate::config::model::RouteConfig;
use crate::config::model::route::{HostPattern, PathPattern};

use super::{Asked, condition};

/// The place of the route that a request belongs to.
pub(super) fn find(routes: &[Arc<RouteConfig>], default: Option<&str>, asked: &Asked<'_>) -> Option<usize> {
    let authority = String::from_utf8_lossy(asked.head.authority()).to_lowercase();
    let named =
        |host: &str| routes.iter().flat_map(|route| &route.matches.hosts).any(|one| near(one, host) > 0);
    let host = match default {
        Some(default) if !named(&authority) => default.to_owned(),
        _ => authority,
    };
    let mut all = Vec::new();
    for (place, route) in routes.iter().enumerate() {
        let of_path = path(&route.matches.path, asked.path, place);
        let hosts = &route.matches.hosts;
        let nearest = hosts.iter().map(|one| near(one, &host)).max();
        let of_host = if hosts.is_empty() { Some(0) } else { nearest.filter(|near| *near > 0) };
        if let (Some(of_host), Some(of_path)) = (of_host, of_path)
            && condition::holds(&route.matches, asked)
        {
            let order = route.order.map_or(u64::MAX, u64::from);
            let more = std::cmp::Reverse((of_host, of_path, route.matches.conditions()));
            all.push((order, more, place));
        }
    }
    all.into_iter().min().map(|(_, _, place)| place)
}

/// How near a pattern is to a host; 0: it is not of it.
fn near(pattern: &HostPattern, host: &str) -> usize {
    let bracket = host.rfind(']').unwrap_or(0);
    let (name, port) = match host.rfind(':').filter(|colon| *colon >= bracket) {
        Some(colon) => (&host[..colon], host[colon + 1..].parse().ok()),
        None => (host, None),
    };
    let name = name.strip_suffix('.').unwrap_or(name);
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
