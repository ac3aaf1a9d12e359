//! The first backend in the order of the file that may be used; the others stand by. For services of which only one
//! instance may work at a time. Which one that is changes only when it goes down or comes back.

use super::algorithm::{Algorithm, Draw};
use crate::targets::picking::candidates::Lineup;

/// Nothing is computed: the order of a tier is that of the file.
#[derive(Debug)]
pub(super) struct First;

impl Algorithm for First {
    const DRAWS: usize = 1;

    fn new(_: &Lineup<'_>) -> Self {
        First
    }

    fn draw(&self, draw: &Draw<'_>) -> Option<usize> {
        let ready = &draw.tier.watch.ready;
        // Few can have been tried or be cold; behind those any will do.
        let after = |&place: &usize| ready.next(place + 1).filter(|&next| next > place);
        std::iter::successors(ready.next(0), after).take(8).find(|&place| draw.may(place))
    }
}
