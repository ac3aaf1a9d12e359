//! Routes that were found lately: whoever asks for the same host and path again is not looked up again.
//!
//! Nothing is decided here. What a router says for a host and a path depends on nothing else but the conditions that it asks, always in the
//! same order ([`PlaceFound::asked`](crate::route::PlaceFound)); so they are kept and asked again. A router never changes, and its number is
//! never another one's. So an entry is true for as long as there is anybody who could ask for it, and needs no care when a config is
//! replaced.

use crate::route::PlacesAsked;

use super::recently_found::RecentlyFound;

/// Routes that one worker has found lately.
#[derive(Debug, Default)]
pub struct RecentRoutes(RecentlyFound<RecentPlace, 256>);

/// What was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecentPlace {
    /// The routes that come before it where their conditions hold, in their order.
    pub before: PlacesAsked,
    /// The place of the route; `None`: it was the last of those, and who comes behind it is not known.
    pub place: Option<usize>,
}

impl RecentRoutes {
    /// What the router of this number has found for this host and path, if that is still known.
    #[inline(always)]
    pub fn find(&self, router: u64, host: &[u8], path: &[u8]) -> Option<RecentPlace> {
        self.0.find(router, host, path, |found| *found)
    }

    /// Keeps what was found, and whose conditions were asked for it.
    pub fn note(&self, router: u64, at: (&[u8], &[u8]), before: PlacesAsked, found: usize) {
        let place = Some(found).filter(|found| before.iter().next_back() != Some(*found));
        self.0.note(router, at, |value| *value = RecentPlace { before, place });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
