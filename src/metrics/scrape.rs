//! The text of a scrape, piece by piece.

use std::sync::Arc;

use super::before::keeps;
use super::sources::ScrapeSources;
use super::walk::FamilyWalk;
use crate::telemetry::exposition::{CountsBefore, Exposition, TextForm, WithBefore};

/// What is left of a scrape.
pub struct Scrape {
    families: FamilyWalk,
    out: WithBefore<Exposition>,
    is_over: bool,
}

impl Scrape {
    /// All of these sources, with what was counted `before`.
    #[must_use]
    pub fn new(sources: ScrapeSources, before: Arc<CountsBefore>, form: TextForm) -> Scrape {
        let out = WithBefore::new(Exposition::new(form), before, keeps(&sources));
        Scrape { families: FamilyWalk::new(sources), out, is_over: false }
    }

    /// The next piece; `None`: that was all. It takes about as long as it is, which is a few thousand lines at most.
    pub fn piece(&mut self) -> Option<String> {
        if !self.is_over && !self.families.go_on(&mut self.out) {
            self.out.close();
            self.out.out().finish();
            self.is_over = true;
        }
        Some(self.out.out().take()).filter(|piece| !piece.is_empty())
    }
}
