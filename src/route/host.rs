//! The host of a request, and routes by host.

use std::net::Ipv6Addr;
use std::sync::Arc;

use crate::config::model::RouteConfig;

use super::keys::KeyMap;
use super::paths::Paths;

/// The longest name that DNS knows (RFC 1035 §3.1); a longer one is nobody's.
const LONGEST: usize = 253;

/// A host and a port as routes compare them: in lower case, without a dot at the end, addresses and ports in their shortest form.
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
        let shortest = address(name);
        let name = shortest.as_ref().map_or(name, String::as_bytes);
        if name.is_empty() || name.len() > LONGEST {
            return None;
        }
        let mut bytes = [0; LONGEST + 6];
        bytes[..name.len()].copy_from_slice(name);
        bytes[..name.len()].make_ascii_lowercase();
        let mut end = name.len();
        // One with more digits than a port has is none that a route could name.
        let zeros = port.iter().skip(1).take_while(|&&digit| digit == b'0').count();
        let digits = port.get(1 + zeros..).unwrap_or_default();
        if (1..=5).contains(&digits.len()) {
            bytes[end] = b':';
            bytes[end + 1..=end + digits.len()].copy_from_slice(digits);
            end += 1 + digits.len();
        }
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

/// The shortest form of an address in brackets.
fn address(name: &[u8]) -> Option<String> {
    let inside = name.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let ip: Ipv6Addr = std::str::from_utf8(inside).ok()?.parse().ok()?;
    Some(format!("[{ip}]"))
}

/// Routes of one rank, by host.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    exact: KeyMap<Paths>,
    suffixes: KeyMap<Paths>,
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
                hosts.any.add(matches, place);
            }
            for pattern in &matches.hosts {
                let port = pattern.port.map_or_else(String::new, |port| format!(":{port}"));
                let key = format!("{}{port}", pattern.name).into_bytes().into_boxed_slice();
                let by_name = if pattern.is_suffix { &mut hosts.suffixes } else { &mut hosts.exact };
                by_name.entry(key).or_default().add(matches, place);
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
        assert_eq!(told("[2001:0DB8:0:0:0:0:0:1]:0443"), both("[2001:db8::1]:443", "[2001:db8::1]"));
        assert_eq!(told("a:000080"), both("a:80", "a"));
        for odd in ["a:", "a:0", "a:1234567"] {
            assert_eq!(told(odd), both("a", "a"), "{odd}");
        }
        for none in ["", ".", ":80", &"a".repeat(254)] {
            assert_eq!(told(none), None, "{none}");
        }
    }
}
