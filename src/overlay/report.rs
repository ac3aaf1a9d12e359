//! The overlay as it is shown: each entry beside what the file says, and where.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::blocked::BlockedReport;
use super::entry::{EntryField, OverlayEntry};
use super::lay::Aside;
use super::reconcile::KEPT;
use super::rough::rough;
use super::view::FileView;
use crate::config::{Loaded, Origin, backend_numbers};

/// `GET /api/v1/overlay`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverlayReport {
    /// All entries, in the order in which they were made.
    pub entries: Vec<EntryReport>,
    /// Networks that are kept out, in the order in which they were blocked.
    #[serde(default)]
    pub blocked: Vec<BlockedReport>,
    /// Why nothing can be changed by hand now; absent: it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// An entry, and what the file says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryReport {
    /// The entry as it is kept.
    #[serde(flatten)]
    pub entry: OverlayEntry,
    /// What the file says of the field; absent: it does not have the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_says: Option<String>,
    /// Where: `evenkeel.yaml:12`, `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Why it has no effect; absent: it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aside: Option<String>,
    /// Milliseconds until it is over by itself; absent: it stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_in_ms: Option<u64>,
}

/// Shows `entries` over `file` at `now_ms`.
#[must_use]
pub fn report(
    file: &Loaded,
    entries: &[OverlayEntry],
    aside: &BTreeMap<u64, Aside>,
    now_ms: u64,
) -> Vec<EntryReport> {
    let view = FileView::of(file, entries, &[]);
    let kept_ms = u64::try_from(KEPT.as_millis()).unwrap_or(u64::MAX);
    let shown = |entry: &OverlayEntry| {
        let forgotten = entry.gone_since_ms.map(|since| since.saturating_add(kept_ms));
        let end = [entry.expires_ms, forgotten].into_iter().flatten().min();
        EntryReport {
            entry: entry.clone(),
            file_says: view.value(&entry.object, entry.change.field()),
            place: place(file, entry),
            aside: aside.get(&entry.id).map(ToString::to_string),
            ends_in_ms: end.map(|end| end.saturating_sub(now_ms)),
        }
    };
    entries.iter().map(shown).collect()
}

/// Who has written the field, or the backend.
fn place(file: &Loaded, entry: &OverlayEntry) -> Option<String> {
    let object = &entry.object;
    let target = file.config.targets.iter().find(|target| target.name == object.target)?;
    let key = match entry.change.field() {
        EntryField::State => "state",
        EntryField::Weight => "weight",
        EntryField::Removed => "address",
        EntryField::MaxInFlight => "max_in_flight",
        EntryField::Added => return None,
    };
    let path = match &object.backend {
        None => format!("targets.{}.{key}", object.target),
        Some(name) => {
            let number = backend_numbers(&file.effective, &target.name).get(&**name).copied()?;
            format!("targets.{}.backends[{number}].{key}", object.target)
        }
    };
    let row = file.effective.iter().find(|row| row.path == path)?;
    Some(row.origin.to_string())
}

/// One line in the words of a plan: `~ web/b1 weight: 1 -> 5 (file.yaml:3; by hand, uid 0, 2026-11-23T09:12:01Z)`.
impl fmt::Display for EntryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OverlayEntry { object, change, author, at_ms, .. } = &self.entry;
        let field = change.field();
        let says = self.file_says.as_deref().unwrap_or("not in the file");
        let value = change.value().unwrap_or_default();
        match field {
            EntryField::Added => write!(f, "+ {object}: {value}")?,
            EntryField::Removed => write!(f, "- {object}: {says}")?,
            EntryField::State | EntryField::Weight | EntryField::MaxInFlight => {
                write!(f, "~ {object} {}: {says} -> {value}", field.as_str())?;
            }
        }
        f.write_str(" (")?;
        if let Some(place) = &self.place {
            write!(f, "{place}; ")?;
        }
        write!(f, "{})", Origin::Hand { who: author.to_string().into(), at_ms: *at_ms })?;
        if let Some(aside) = &self.aside {
            write!(f, ", without effect: {aside}")?;
        }
        if let Some(end) = self.ends_in_ms {
            write!(f, ", over in {}", rough(end))?;
        }
        Ok(())
    }
}
