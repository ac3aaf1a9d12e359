//! Routes that were found lately: whoever asks for the same host and path again is not looked up again.
//!
//! Nothing is decided here. What a router says for a host and a path depends on nothing else but the conditions that it asks, always in the
//! same order ([`PlaceFound::asked`](crate::route::PlaceFound)); so they are kept and asked again. A router never changes, and its number is
//! never another one's. So an entry is true for as long as there is anybody who could ask for it, and needs no care when a config is
//! replaced.
//!
//! One worker has one of these, which is asked by nobody else. A client that makes up paths takes places away from others, which are then
//! looked up as if there were no such memory.

use std::cell::RefCell;

use crate::route::PlacesAsked;

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
    host: Ends,
    path: Ends,
    found: RecentPlace,
    /// The host, and the path behind it, as they were sent.
    key: Vec<u8>,
}

/// What was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecentPlace {
    /// The routes that come before it where their conditions hold, in their order.
    pub before: PlacesAsked,
    /// The place of the route; `None`: it was the last of those, and who comes behind it is not known.
    pub place: Option<usize>,
}

impl Default for RecentRoutes {
    fn default() -> RecentRoutes {
        RecentRoutes(RefCell::new(vec![Recent::default(); PLACES].into()))
    }
}

impl RecentRoutes {
    /// What the router of this number has found for this host and path, if that is still known.
    #[inline(always)]
    pub fn find(&self, router: u64, host: &[u8], path: &[u8]) -> Option<RecentPlace> {
        let all = self.0.borrow();
        let ends = (Ends::of(host), Ends::of(path));
        let recent = all.get(place(ends))?;
        let is_it = recent.router == router
            && (recent.host, recent.path) == ends
            && (ends.0.is_whole() && ends.1.is_whole() || recent.has_key(host, path));
        is_it.then_some(recent.found)
    }

    /// Keeps what was found, and whose conditions were asked for it.
    pub fn note(&self, router: u64, (host, path): (&[u8], &[u8]), before: PlacesAsked, found: usize) {
        if host.len() + path.len() > LONGEST {
            return;
        }
        let ends = (Ends::of(host), Ends::of(path));
        if let Some(recent) = self.0.borrow_mut().get_mut(place(ends)) {
            recent.key.clear();
            recent.key.extend_from_slice(host);
            recent.key.extend_from_slice(path);
            (recent.router, recent.host, recent.path) = (router, ends.0, ends.1);
            let place = Some(found).filter(|found| before.iter().next_back() != Some(*found));
            recent.found = RecentPlace { before, place };
        }
    }
}

impl Recent {
    #[inline(never)]
    fn has_key(&self, host: &[u8], path: &[u8]) -> bool {
        // Their lengths have been compared.
        self.key.strip_prefix(host) == Some(path)
    }
}

/// Where host and path are kept: no more of them is looked at than the ends.
#[inline]
fn place((host, path): (Ends, Ends)) -> usize {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let sum = (path.mixed() ^ host.mixed().rotate_left(21)).wrapping_mul(SPREAD);
    (sum >> 56) as usize % PLACES
}

/// The first and the last eight bytes of a text, and its length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ends {
    first: u64,
    last: u64,
    length: usize,
}

impl Ends {
    #[inline]
    fn of(bytes: &[u8]) -> Ends {
        let length = bytes.len();
        match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
            (Some(first), Some(last)) => {
                Ends { first: u64::from_le_bytes(*first), last: u64::from_le_bytes(*last), length }
            }
            // All of it.
            _ => {
                Ends { first: bytes.iter().fold(0, |all, &byte| all << 8 | u64::from(byte)), last: 0, length }
            }
        }
    }

    /// Whether another text with the same ends is the same text.
    #[inline]
    fn is_whole(&self) -> bool {
        self.length <= 16
    }

    #[inline]
    fn mixed(&self) -> u64 {
        self.first ^ self.last.rotate_left(29) ^ (self.length as u64) << 48
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: PlacesAsked = PlacesAsked::NONE;

    fn found(recent: &RecentRoutes, router: u64, host: &[u8], path: &[u8]) -> Option<usize> {
        let found = recent.find(router, host, path)?;
        assert!(found.before.is_empty());
        found.place
    }

    #[test]
    fn what_was_found_is_known_until_its_place_is_taken() {
        let recent = RecentRoutes::default();
        assert_eq!(found(&recent, 1, b"a", b"/"), None);
        recent.note(1, (b"a", b"/"), NONE, 7);
        assert_eq!(found(&recent, 1, b"a", b"/"), Some(7));
        for (router, host, path) in
            [(2, &b"a"[..], &b"/"[..]), (1, b"a/", b""), (1, b"b", b"/"), (1, b"a", b"/b")]
        {
            assert_eq!(found(&recent, router, host, path), None, "{router} {host:?} {path:?}");
        }
        recent.note(2, (b"a", b"/"), NONE, 9);
        assert_eq!((found(&recent, 1, b"a", b"/"), found(&recent, 2, b"a", b"/")), (None, Some(9)));
        let long = vec![b'x'; LONGEST];
        recent.note(1, (b"a", &long), NONE, 3);
        assert_eq!(found(&recent, 1, b"a", &long), None);
    }

    #[test]
    fn different_paths_are_told_apart_wherever_they_differ() {
        let recent = RecentRoutes::default();
        let paths: Vec<String> =
            (0..5_000).map(|number| format!("/api/orders/{number}/items/of/{}", number % 7)).collect();
        for (number, path) in paths.iter().enumerate() {
            recent.note(1, (b"shop.example", path.as_bytes()), NONE, number);
            assert_eq!(found(&recent, 1, b"shop.example", path.as_bytes()), Some(number));
        }
        for (number, path) in paths.iter().enumerate() {
            let found = found(&recent, 1, b"shop.example", path.as_bytes());
            assert!(found.is_none_or(|found| found == number), "{path}: {found:?}");
        }
    }

    #[test]
    fn one_byte_of_difference_is_seen_at_every_length_and_place() {
        for length in 1..40 {
            let path: Vec<u8> = (0..length).map(|at| b'a' + at % 26).collect();
            let recent = RecentRoutes::default();
            recent.note(1, (&path, &path), NONE, 1);
            assert_eq!(found(&recent, 1, &path, &path), Some(1));
            for at in 0..path.len() {
                let mut other = path.clone();
                other[at] = 0;
                assert_eq!(
                    (found(&recent, 1, &path, &other), found(&recent, 1, &other, &path)),
                    (None, None)
                );
            }
            assert_eq!(found(&recent, 1, &path, &path[1..]), None);
        }
    }

    #[test]
    fn whose_conditions_come_before_is_known_and_who_comes_behind_the_last_of_them_is_not() {
        let recent = RecentRoutes::default();
        let before = PlacesAsked::of(&[4, 2]);
        for (found, place) in [(7, Some(7)), (4, Some(4)), (2, None)] {
            recent.note(1, (b"a", b"/"), before, found);
            assert_eq!(recent.find(1, b"a", b"/"), Some(RecentPlace { before, place }));
        }
    }
}
