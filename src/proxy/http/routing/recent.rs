//! Routes that were found lately: whoever asks for the same host and path again is not looked up again.
//!
//! Nothing is decided here. What a router says for a host and a path depends on nothing else unless conditions were asked, and then it is
//! not kept ([`Found::is_by_place_alone`](crate::route::PlaceFound)); a router never changes, and its number is never another one's. So an entry
//! is true for as long as there is anybody who could ask for it, and needs no care when a config is replaced.
//!
//! One worker has one of these, which is asked by nobody else. A client that makes up paths takes places away from others, which are then
//! looked up as if there were no such memory.

use std::cell::RefCell;

/// Places; one host and path has one of them.
const PLACES: usize = 256;
/// Bytes of host and path that are kept at most.
const LONGEST: usize = 256;

/// Routes that one worker has found lately.
#[derive(Debug)]
pub struct RecentRoutes(RefCell<Box<[Recent]>>);

/// A route by what it was found by. `router` is 0 where there is none.
#[derive(Clone, Debug, Default)]
struct Recent {
    router: u64,
    /// Bytes of the host.
    host: usize,
    /// The host, and the path behind it, as they were sent.
    key: Vec<u8>,
    place: usize,
}

impl Default for RecentRoutes {
    fn default() -> RecentRoutes {
        RecentRoutes(RefCell::new(vec![Recent::default(); PLACES].into()))
    }
}

impl RecentRoutes {
    /// The place of the route that the router of this number has found for this host and path, if that is still known.
    #[inline]
    pub fn find(&self, router: u64, host: &[u8], path: &[u8]) -> Option<usize> {
        let all = self.0.borrow();
        let recent = all.get(place(host, path))?;
        let is_it = recent.router == router
            && recent.host == host.len()
            && recent.key.len() == host.len() + path.len()
            && recent.key[..host.len()] == *host
            && recent.key[host.len()..] == *path;
        is_it.then_some(recent.place)
    }

    /// Keeps what was found.
    pub fn note(&self, router: u64, host: &[u8], path: &[u8], found: usize) {
        if host.len() + path.len() > LONGEST {
            return;
        }
        if let Some(recent) = self.0.borrow_mut().get_mut(place(host, path)) {
            recent.key.clear();
            recent.key.extend_from_slice(host);
            recent.key.extend_from_slice(path);
            (recent.router, recent.host, recent.place) = (router, host.len(), found);
        }
    }
}

/// Where host and path are kept: no more of them is looked at than the ends.
#[inline]
fn place(host: &[u8], path: &[u8]) -> usize {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let sum = (ends(path) ^ ends(host).rotate_left(21)).wrapping_mul(SPREAD);
    (sum >> 56) as usize % PLACES
}

/// The first and the last eight bytes, and the length.
#[inline]
fn ends(bytes: &[u8]) -> u64 {
    let length = bytes.len() as u64;
    match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (Some(first), Some(last)) => {
            u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(29) ^ length << 48
        }
        _ => bytes.iter().fold(length, |sum, &byte| sum << 8 | u64::from(byte)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_known_until_its_place_is_taken() {
        let recent = RecentRoutes::default();
        assert_eq!(recent.find(1, b"a", b"/"), None);
        recent.note(1, b"a", b"/", 7);
        assert_eq!(recent.find(1, b"a", b"/"), Some(7));
        for (router, host, path) in
            [(2, &b"a"[..], &b"/"[..]), (1, b"a/", b""), (1, b"b", b"/"), (1, b"a", b"/b")]
        {
            assert_eq!(recent.find(router, host, path), None, "{router} {host:?} {path:?}");
        }
        recent.note(2, b"a", b"/", 9);
        assert_eq!((recent.find(1, b"a", b"/"), recent.find(2, b"a", b"/")), (None, Some(9)));
        let long = vec![b'x'; LONGEST];
        recent.note(1, b"a", &long, 3);
        assert_eq!(recent.find(1, b"a", &long), None);
    }

    #[test]
    fn different_paths_are_told_apart_wherever_they_differ() {
        let recent = RecentRoutes::default();
        let paths: Vec<String> =
            (0..5_000).map(|number| format!("/api/orders/{number}/items/of/{}", number % 7)).collect();
        for (number, path) in paths.iter().enumerate() {
            recent.note(1, b"shop.example", path.as_bytes(), number);
            assert_eq!(recent.find(1, b"shop.example", path.as_bytes()), Some(number));
        }
        for (number, path) in paths.iter().enumerate() {
            let found = recent.find(1, b"shop.example", path.as_bytes());
            assert!(found.is_none_or(|found| found == number), "{path}: {found:?}");
        }
    }
}
