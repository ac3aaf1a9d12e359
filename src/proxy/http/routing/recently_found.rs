//! What was found lately for a host and a path, so that whoever asks for the same again need not be looked up again.
//!
//! One worker has such a table, and nobody else asks it. A client that makes up paths takes places away from others, which are then looked up
//! as if there were no such memory.

use std::cell::RefCell;

/// Bytes of host and path that are kept at most.
const LONGEST: usize = 256;

/// What was found lately, by the number of the router and by host and path as they were sent. `PLACES` places; one host and path has one of
/// them. It takes no memory before something is noted.
#[derive(Debug)]
pub struct RecentlyFound<V, const PLACES: usize>(RefCell<Vec<Found<V>>>);

/// What was found, by what it was found. `router` is 0 where there is nothing.
#[derive(Debug, Default)]
struct Found<V> {
    router: u64,
    host: Ends,
    path: Ends,
    value: V,
    /// A number of who was last told whether it is wanted here.
    asked: u64,
    /// The host, and the path behind it, as they were sent.
    key: Vec<u8>,
}

impl<V, const PLACES: usize> Default for RecentlyFound<V, PLACES> {
    fn default() -> Self {
        RecentlyFound(RefCell::default())
    }
}

impl<V: Default, const PLACES: usize> RecentlyFound<V, PLACES> {
    /// What `get` makes of what was found with the router of this number for this host and path, if that is still known.
    #[inline(always)]
    pub fn find<R>(&self, router: u64, host: &[u8], path: &[u8], get: impl FnOnce(&V) -> R) -> Option<R> {
        let all = self.0.borrow();
        let ends = (Ends::of(host), Ends::of(path));
        let found = all.get(place(ends) % PLACES)?;
        let is_it = found.router == router
            && (found.host, found.path) == ends
            && (ends.0.is_whole() && ends.1.is_whole() || found.has_key(host, path));
        is_it.then(|| get(&found.value))
    }

    /// Whether it is worth to note what is found for this host and path: it has the place where it would be kept, or was the last to ask for
    /// that, so that one who comes once takes nothing from anybody.
    pub fn is_wanted(&self, router: u64, host: &[u8], path: &[u8]) -> bool {
        let mut all = self.0.borrow_mut();
        if all.is_empty() {
            all.resize_with(PLACES, Found::default);
        }
        let ends = (Ends::of(host), Ends::of(path));
        let Some(found) = all.get_mut(place(ends) % PLACES) else { return false };
        let asks = (ends.0.mixed().rotate_left(21) ^ ends.1.mixed()).wrapping_add(router);
        let has_asked = std::mem::replace(&mut found.asked, asks) == asks;
        has_asked || found.router == router && (found.host, found.path) == ends
    }

    /// Keeps what was found, in the place of what was there: `set` changes that.
    pub fn note(&self, router: u64, (host, path): (&[u8], &[u8]), set: impl FnOnce(&mut V)) {
        if host.len() + path.len() > LONGEST {
            return;
        }
        let mut all = self.0.borrow_mut();
        if all.is_empty() {
            all.resize_with(PLACES, Found::default);
        }
        let ends = (Ends::of(host), Ends::of(path));
        if let Some(found) = all.get_mut(place(ends) % PLACES) {
            found.key.clear();
            found.key.extend_from_slice(host);
            found.key.extend_from_slice(path);
            (found.router, found.host, found.path) = (router, ends.0, ends.1);
            set(&mut found.value);
        }
    }
}

impl<V> Found<V> {
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
    (sum >> 48) as usize
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

    type Table = RecentlyFound<usize, 256>;

    fn found(recent: &Table, router: u64, host: &[u8], path: &[u8]) -> Option<usize> {
        recent.find(router, host, path, |found| *found)
    }

    fn note(recent: &Table, router: u64, at: (&[u8], &[u8]), found: usize) {
        recent.note(router, at, |value| *value = found);
    }

    #[test]
    fn what_was_found_is_known_until_its_place_is_taken() {
        let recent = Table::default();
        assert_eq!(found(&recent, 1, b"a", b"/"), None);
        note(&recent, 1, (b"a", b"/"), 7);
        assert_eq!(found(&recent, 1, b"a", b"/"), Some(7));
        for (router, host, path) in
            [(2, &b"a"[..], &b"/"[..]), (1, b"a/", b""), (1, b"b", b"/"), (1, b"a", b"/b")]
        {
            assert_eq!(found(&recent, router, host, path), None, "{router} {host:?} {path:?}");
        }
        note(&recent, 2, (b"a", b"/"), 9);
        assert_eq!((found(&recent, 1, b"a", b"/"), found(&recent, 2, b"a", b"/")), (None, Some(9)));
        let long = vec![b'x'; LONGEST];
        note(&recent, 1, (b"a", &long), 3);
        assert_eq!(found(&recent, 1, b"a", &long), None);
    }

    #[test]
    fn who_comes_once_is_not_wanted() {
        let recent = Table::default();
        let is_wanted = |path: &[u8]| recent.is_wanted(1, b"a", path);
        assert!(!is_wanted(b"/") && is_wanted(b"/"));
        note(&recent, 1, (b"a", b"/"), 7);
        let same_place = place((Ends::of(b"a"), Ends::of(b"/"))) % 256;
        let other = (0..).map(|number| format!("/{number}"));
        let other =
            other.filter(|path| place((Ends::of(b"a"), Ends::of(path.as_bytes()))) % 256 == same_place);
        for path in other.take(3) {
            assert!(!is_wanted(path.as_bytes()), "{path}");
        }
        assert!(is_wanted(b"/"), "it has the place");
    }

    #[test]
    fn different_paths_are_told_apart_wherever_they_differ() {
        let recent = Table::default();
        let paths: Vec<String> =
            (0..5_000).map(|number| format!("/api/orders/{number}/items/of/{}", number % 7)).collect();
        for (number, path) in paths.iter().enumerate() {
            note(&recent, 1, (b"shop.example", path.as_bytes()), number);
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
            let recent = Table::default();
            note(&recent, 1, (&path, &path), 1);
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
}
