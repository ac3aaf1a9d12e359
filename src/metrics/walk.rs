//! All families one after the other, as far as somebody takes their samples at a time.

use super::families::all;
use super::family::{Family, PIECE};
use super::sources::ScrapeSources;
use crate::telemetry::exposition::SampleSink;

/// What is left of all families.
pub struct FamilyWalk {
    sources: ScrapeSources,
    families: Box<dyn Iterator<Item = &'static Family> + Send>,
    /// The family that is under way, and where to go on in it.
    open: Option<(&'static Family, usize)>,
}

impl FamilyWalk {
    /// All of these sources.
    #[must_use]
    pub fn new(sources: ScrapeSources) -> FamilyWalk {
        FamilyWalk { sources, families: Box::new(all()), open: None }
    }

    /// Has `out` take samples until a piece waits in it, which is a few thousand at most. False: that was all.
    pub fn go_on(&mut self, out: &mut dyn SampleSink) -> bool {
        while out.waiting() < PIECE {
            match self.open.take() {
                Some((family, from)) => {
                    let next = (family.write)(&self.sources, from, out);
                    self.open = next.map(|next| (family, next));
                }
                None => match self.families.next() {
                    Some(family) => {
                        out.begin(&family.head);
                        self.open = Some((family, 0));
                    }
                    None => return false,
                },
            }
        }
        true
    }
}
