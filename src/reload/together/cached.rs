//! The latest revision on the disk of this node: what a process begins with that can't ask the store.

use std::path::PathBuf;

use crate::cluster::revision::RevisionRow;
use crate::events;
use crate::reload::background::background;
use crate::reload::trial::replacement::Replacement;

/// What lies there.
pub struct CachedRevision;

impl CachedRevision {
    /// What is kept at this place; `None`: nothing that can be read.
    #[must_use]
    pub fn read(place: &std::path::Path) -> Option<RevisionRow> {
        let text = std::fs::read(place).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

/// Keeps it, in the place of the one before.
pub(super) async fn keep(place: PathBuf, row: RevisionRow) {
    let number = row.number;
    let kept = background(move || {
        // It has texts for keys, so it can't fail.
        let text = serde_json::to_vec(&row).unwrap_or_default();
        if !place.exists() {
            // A replacement takes over the rights of what was there: nobody else's business.
            std::os::unix::fs::OpenOptionsExt::mode(
                std::fs::OpenOptions::new().write(true).create(true),
                0o600,
            )
            .open(&place)?;
        }
        Replacement::prepare(&place, &text).and_then(Replacement::swap)
    });
    if let Err(error) = kept.await.and_then(|kept| kept) {
        events::revision_unkept(number, &error.to_string());
    }
}
