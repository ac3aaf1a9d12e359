//! The text of a scrape, piece by piece.

use super::sources::ScrapeSources;
use super::walk::FamilyWalk;
use crate::telemetry::exposition::{Exposition, TextForm};

/// What is left of a scrape.
pub struct Scrape {
    families: FamilyWalk,
    out: Exposition,
    is_over: bool,
}

impl Scrape {
    /// All of these sources.
    #[must_use]
    pub fn new(sources: ScrapeSources, form: TextForm) -> Scrape {
        Scrape { families: FamilyWalk::new(sources), out: Exposition::new(form), is_over: false }
    }

    /// The next piece; `None`: that was all. It takes about as long as it is, which is a few thousand lines at most.
    pub fn piece(&mut self) -> Option<String> {
        if !self.is_over && !self.families.go_on(&mut self.out) {
            self.out.finish();
            self.is_over = true;
        }
        Some(self.out.take()).filter(|piece| !piece.is_empty())
    }
}
