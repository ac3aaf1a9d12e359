//! The host of a request, and routes by host.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::sync::Arc;

use crate::config::model::RouteConfig;

use super::keys::{KeyTable, small};
use super::paths::{Listed, Paths, PathsAdded};

/// The longest name that DNS knows (RFC 1035 §3.1); a longer one is nobody's.
const LONGEST: usize = 253;

/// A host and a port as routes compare them: in lower case, without a dot at the end, addresses and ports in their shortest form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostKey<'a> {
    /// The name, and behind it `:` and the port, if there is one: mostly just as it came.
    text: Cow<'a, [u8]>,
    /// Where the name ends.
    name: usize,
}

impl<'a> HostKey<'a> {
    /// That of an authority; `None`: it names no host, or one that is too long.
    #[must_use]
    pub(super) fn of(authority: &'a [u8]) -> Option<HostKey<'a>> {
        let is_kept = |byte: &&u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
        let name = authority.iter().take_while(is_kept).count();
        let is_port = match &authority[name..] {
            [] => true,
            [b':', b'1'..=b'9', more @ ..] => more.len() < 5 && more.iter().all(u8::is_ascii_digit),
            _ => false,
        };
        if is_port && (1..=LONGEST).contains(&name) && authority[name - 1] != b'.' {
            return Some(HostKey { text: Cow::Borrowed(authority), name });
        }
        HostKey::written(authority)
    }

    /// The same of one that may have to be written otherwise.
    fn written(authority: &[u8]) -> Option<HostKey<'a>> {
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
        let mut text = name.to_ascii_lowercase();
        // One with more digits than a port has is none that a route could name.
        let zeros = port.iter().skip(1).take_while(|&&digit| digit == b'0').count();
        let digits = port.get(1 + zeros..).unwrap_or_default();
        if (1..=5).contains(&digits.len()) {
            text.push(b':');
            text.extend_from_slice(digits);
        }
        Some(HostKey { text: Cow::Owned(text), name: name.len() })
    }

    /// The same, with a text of its own.
    #[must_use]
    pub(super) fn kept(self) -> HostKey<'static> {
        HostKey { text: Cow::Owned(self.text.into_owned()), name: self.name }
    }

    /// The same once more.
    #[must_use]
    pub(super) fn borrowed(&self) -> HostKey<'_> {
        HostKey { text: Cow::Borrowed(&self.text), name: self.name }
    }

    /// The name from here on with the port, then without; the one where there is no port.
    fn spellings(&self, start: usize) -> impl Iterator<Item = &[u8]> {
        let without = (self.name < self.text.len()).then(|| &self.text[start..self.name]);
        [&self.text[start..]].into_iter().chain(without)
    }

    /// Where the suffixes of the name begin, the longest first.
    fn suffixes(&self) -> impl Iterator<Item = usize> {
        memchr::memchr_iter(b'.', &self.text[..self.name]).map(|dot| dot + 1)
    }
}

/// The host of an authority as routes compare it: without a port, in lower case, without a dot at the end, addresses in their shortest
/// form. `None`: it names no host, or one that is too long.
#[must_use]
pub fn host_name(authority: &[u8]) -> Option<Cow<'_, [u8]>> {
    let HostKey { text, name } = HostKey::of(authority)?;
    Some(match text {
        Cow::Borrowed(text) => Cow::Borrowed(&text[..name]),
        Cow::Owned(mut text) => {
            text.truncate(name);
            Cow::Owned(text)
        }
    })
}

/// The shortest form of an address in brackets.
fn address(name: &[u8]) -> Option<String> {
    let inside = name.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let ip: Ipv6Addr = std::str::from_utf8(inside).ok()?.parse().ok()?;
    Some(format!("[{ip}]"))
}

/// Routes of one rank, by host.
#[derive(Debug)]
pub(super) struct Hosts {
    /// The numbers of those that are named, whole and from a label on.
    names: KeyTable<u32>,
    has_suffixes: bool,
    paths: Paths,
}

/// Who has whole names in the table, and who has those from a label on.
const WHOLE: u32 = 0;
const SUFFIX: u32 = 1;
/// The number of what is any host's.
const ANY: u32 = 0;

impl Hosts {
    /// Those of `routes` that stand at `places`; `conditions`: of each route which ones it has beside host and path, where any are asked.
    #[must_use]
    pub(super) fn new(routes: &[Arc<RouteConfig>], places: &[usize], conditions: &[u32]) -> Hosts {
        let mut numbers: BTreeMap<(u32, String), u32> = BTreeMap::new();
        let mut added = PathsAdded::default();
        for &place in places {
            let matches = &routes[place].matches;
            let listed =
                Listed { place: small(place), conditions: conditions.get(place).copied().unwrap_or(0) };
            if matches.hosts.is_empty() {
                added.add(ANY, matches, listed);
            }
            for pattern in &matches.hosts {
                let port = pattern.port.map_or_else(String::new, |port| format!(":{port}"));
                let owner = if pattern.is_suffix { SUFFIX } else { WHOLE };
                let next = small(numbers.len() + 1);
                let number = *numbers.entry((owner, format!("{}{port}", pattern.name))).or_insert(next);
                added.add(number, matches, listed);
            }
        }
        let names = numbers.iter().map(|((owner, name), number)| (*owner, name.as_bytes(), *number));
        Hosts {
            names: KeyTable::new(names),
            has_suffixes: numbers.keys().any(|(owner, _)| *owner == SUFFIX),
            paths: added.finish(routes, small(numbers.len() + 1)),
        }
    }

    /// Whether any route names this host.
    #[must_use]
    pub(super) fn names(&self, host: &HostKey<'_>) -> bool {
        self.near(host).next().is_some()
    }

    /// The numbers of what names a host, the nearest first.
    fn near<'h>(&'h self, host: &'h HostKey<'_>) -> impl Iterator<Item = u32> {
        let get = |owner: u32| move |name: &[u8]| self.names.get(owner, name);
        let exact = host.spellings(0).filter_map(get(WHOLE));
        let starts = host.suffixes().filter(|_| self.has_suffixes);
        exact.chain(starts.flat_map(|start| host.spellings(start)).filter_map(get(SUFFIX)))
    }

    /// The nearest route that `takes` the request, by its place.
    #[must_use]
    pub(super) fn find(
        &self,
        host: Option<&HostKey<'_>>,
        path: &[u8],
        takes: &mut dyn FnMut(Listed) -> bool,
    ) -> Option<usize> {
        let near = host.into_iter().flat_map(|host| self.near(host));
        near.chain([ANY]).find_map(|host| self.paths.find(host, path, takes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_its_one_spelling_is_left_as_it_came() {
        for plain in ["shop.example", "shop.example:8080", "a:1", "10.0.0.1:65535", "a-b", &"a".repeat(253)] {
            let key = HostKey::of(plain.as_bytes()).expect("a host");
            assert!(matches!(key.text, Cow::Borrowed(_)), "{plain}");
            assert_eq!(Some(&key), HostKey::written(plain.as_bytes()).as_ref(), "{plain}");
        }
    }

    #[test]
    fn a_host_is_compared_in_one_spelling() {
        let told = |authority: &str| {
            let key = HostKey::of(authority.as_bytes())?;
            Some(key.spellings(0).map(|text| String::from_utf8_lossy(text).into_owned()).collect::<Vec<_>>())
        };
        let both = |with: &str, without: &str| Some(vec![with.to_owned(), without.to_owned()]);
        let one = |name: &str| Some(vec![name.to_owned()]);
        assert_eq!(told("Shop.Example.:8080"), both("shop.example:8080", "shop.example"));
        assert_eq!(told("shop.example"), one("shop.example"));
        assert_eq!(told("shop.example:"), one("shop.example"));
        assert_eq!(told("[2001:DB8::1]"), one("[2001:db8::1]"));
        assert_eq!(told("[::1]:80"), both("[::1]:80", "[::1]"));
        assert_eq!(told("[2001:0DB8:0:0:0:0:0:1]:0443"), both("[2001:db8::1]:443", "[2001:db8::1]"));
        assert_eq!(told("a:000080"), both("a:80", "a"));
        for odd in ["a:", "a:0", "a:1234567"] {
            assert_eq!(told(odd), one("a"), "{odd}");
        }
        for none in ["", ".", ":80", &"a".repeat(254)] {
            assert_eq!(told(none), None, "{none}");
        }
    }

    #[test]
    fn the_name_of_a_host_is_without_its_port() {
        let told = |authority: &str| {
            let name = host_name(authority.as_bytes())?;
            Some(String::from_utf8_lossy(&name).into_owned())
        };
        for spelled in ["shop.example", "shop.example:8080", "Shop.Example.:8080", "SHOP.example."] {
            assert_eq!(told(spelled).as_deref(), Some("shop.example"), "{spelled}");
        }
        assert_eq!(told("[2001:DB8:0::1]:443").as_deref(), Some("[2001:db8::1]"));
        assert_eq!(told("10.0.0.1:80").as_deref(), Some("10.0.0.1"));
        assert_eq!(told(":80"), None);
    }
}
