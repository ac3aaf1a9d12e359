//! The host of a request, and routes by host.

use std::collections::HashMap;
use std::sync::Arc;

use crate::config::model::RouteConfig;

use super::paths::Paths;

/// The longest name that DNS knows (RFC 1035 §3.1); a longer one is nobody's.
const LONGEST: usize = 253;

/// A host and a port as routes compare them: in lower case, without a dot at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostKey {
    bytes: [u8; LONGEST + 6],
    /// Where the name ends; behind it `:` and the port, if there is one.
    name: usize,
    end: usize,
}

impl HostKey {
    /// That of an authority; `None`: it names no host, or one that is too long.
    #[must_use]
    pub(super) fn of(authority: &[u8]) -> Option<HostKey> {
        // The colons of an address in brackets are no ports.
        let bracket = memchr::memrchr(b']', authority).unwrap_or(0);
        let colon = memchr::memrchr(b':', authority).filter(|&colon| colon >= bracket);
        let (name, port) = authority.split_at(colon.unwrap_or(authority.len()));
        let name = name.strip_suffix(b".").unwrap_or(name);
        let port = if port.len() < 2 { &[][..] } else { port };
        if name.is_empty() || name.len() > LONGEST || port.len() > 6 {
            return None;
        }
        let mut bytes = [0; LONGEST + 6];
        bytes[..name.len()].copy_from_slice(name);
        bytes[..name.len()].make_ascii_lowercase();
        let end = name.len() + port.len();
        bytes[name.len()..end].copy_from_slice(port);
        Some(HostKey { bytes, name: name.len(), end })
    }

    /// The name from here on with the port, then without.
    fn spellings(&self, start: usize) -> [&[u8]; 2] {
        [&self.bytes[start..self.end], &self.bytes[start..self.name]]
    }

    /// Where the suffixes of the name begin, the longest first.
    fn suffixes(&self) -> impl Iterator<Item = usize> {
        memchr::memchr_iter(b'.', &self.bytes[..self.name]).map(|dot| dot + 1)
    }
}

/// Routes of one rank, by host.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    exact: HashMap<Box<[u8]>, Paths>,
    suffixes: HashMap<Box<[u8]>, Paths>,
    any: Paths,
}

impl Hosts {
    /// Those of `routes` that stand at `places`.
    #[must_use]
    pub(super) fn new(routes: &[Arc<RouteConfig>], places: &[usize]) -> Hosts {
        let mut hosts = Hosts::default();
        for &place in places {
            let matches = &routes[place].matches;
            if matches.hosts.is_empty() {
                hosts.any.add(&matches.path, place);
            }
            for pattern in &matches.hosts {
                let port = pattern.port.map_or_else(String::new, |port| format!(":{port}"));
                let key = format!("{}{port}", pattern.name).into_bytes().into_boxed_slice();
                let by_name = if pattern.is_suffix { &mut hosts.suffixes } else { &mut hosts.exact };
                by_name.entry(key).or_default().add(&matches.path, place);
            }
        }
        let all = hosts.exact.values_mut().chain(hosts.suffixes.values_mut()).chain([&mut hosts.any]);
        all.for_each(|paths| paths.finish(routes));
        hosts
    }

    /// Whether any route names this host.
    #[must_use]
    pub(super) fn names(&self, host: &HostKey) -> bool {
        self.near(host).next().is_some()
    }

    /// The routes of a host, the nearest first, but for those of any.
    fn near<'h>(&'h self, host: &'h HostKey) -> impl Iterator<Item = &'h Paths> {
        let exact = host.spellings(0).into_iter().filter_map(|key| self.exact.get(key));
        let starts = host.suffixes().filter(|_| !self.suffixes.is_empty());
        let suffixes = starts.flat_map(|start| host.spellings(start));
        exact.chain(suffixes.filter_map(|key| self.suffixes.get(key)))
    }

    /// The nearest route that `takes` the request.
    #[must_use]
    pub(super) fn find(
        &self,
        host: Option<&HostKey>,
        path: &[u8],
        takes: &mut dyn FnMut(usize) -> bool,
    ) -> Option<usize> {
        let near = host.into_iter().flat_map(|host| self.near(host));
        near.chain([&self.any]).find_map(|paths| paths.find(path, takes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_compared_in_one_spelling() {
        let told = |authority: &str| {
            let key = HostKey::of(authority.as_bytes())?;
            Some(key.spellings(0).map(|text| String::from_utf8_lossy(text).into_owned()))
        };
        let both = |with: &str, without: &str| Some([with.to_owned(), without.to_owned()]);
        assert_eq!(told("Shop.Example.:8080"), both("shop.example:8080", "shop.example"));
        assert_eq!(told("shop.example:"), both("shop.example", "shop.example"));
        assert_eq!(told("[2001:DB8::1]"), both("[2001:db8::1]", "[2001:db8::1]"));
        assert_eq!(told("[::1]:80"), both("[::1]:80", "[::1]"));
        for none in ["", ".", ":80", &"a".repeat(254), "a:1234567"] {
            assert_eq!(told(none), None, "{none}");
        }
    }
}
