//! What is shared as it was last, on the disk of this node: what a process begins with that can't ask the store.

use std::path::{Path, PathBuf};

use crate::cluster::revision::RevisionRow;
use crate::events;
use crate::reload::background::background;
use crate::reload::kept::shared::SharedOverlay;
use crate::reload::trial::replacement::Replacement;

/// What lies there.
pub struct CachedRevision;

impl CachedRevision {
    /// What is kept at this place; `None`: nothing that can be read.
    #[must_use]
    pub fn read(place: &Path) -> Option<RevisionRow> {
        let text = std::fs::read(place).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// What was changed by hand, as it is kept beside it.
    #[must_use]
    pub fn read_overlay(place: &Path) -> Option<SharedOverlay> {
        SharedOverlay::read(&beside(place))
    }
}

/// Where what is changed by hand lies, beside the revision that lies at `place`.
pub(super) fn beside(place: &Path) -> PathBuf {
    place.with_extension("overlay")
}

/// Keeps a revision, in the place of the one before.
pub(super) async fn keep(place: PathBuf, row: RevisionRow) {
    let number = row.number;
    // It has texts for keys, so it can't fail.
    let kept = background(move || write(&place, &serde_json::to_vec(&row).unwrap_or_default()));
    if let Err(error) = kept.await.and_then(|kept| kept) {
        events::revision_unkept(number, &error.to_string());
    }
}

/// Keeps what is changed by hand, in the place of what was before.
///
/// # Errors
/// It is not kept.
pub(super) async fn keep_overlay(place: PathBuf, shared: SharedOverlay) -> std::io::Result<()> {
    background(move || write(&place, &shared.text())).await.and_then(|kept| kept)
}

fn write(place: &Path, text: &[u8]) -> std::io::Result<()> {
    Replacement::prepare_own(place, text).and_then(Replacement::swap)
}
