//! What is left of the entries when the file is read again, or time has passed.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::time::Duration;

use super::entry::{AddedBackend, EntryChange, EntryField, ObjectName, OverlayEntry};
use super::view::FileView;
use crate::config::Loaded;

/// How long entries of an object that is gone from the file are kept.
pub const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// What is left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reconciled {
    /// The entries that go on, in their order.
    pub entries: Vec<OverlayEntry>,
    /// Those that do not, and why.
    pub ended: Vec<(OverlayEntry, EntryEnd)>,
}

impl Reconciled {
    /// Those that have ended because of what the file says, and not by themselves: with another file they would go on.
    #[must_use]
    pub fn ended_by_file(&self) -> Vec<OverlayEntry> {
        let is_by_file = |end: &EntryEnd| match end {
            EntryEnd::FileChanged { .. }
            | EntryEnd::SaidByFile
            | EntryEnd::InFile
            | EntryEnd::OtherAddress => true,
            EntryEnd::Expired | EntryEnd::LongGone | EntryEnd::WithBackend => false,
        };
        let backends = self
            .ended
            .iter()
            .filter(|(entry, end)| entry.change.field() == EntryField::Added && is_by_file(end));
        let objects: HashSet<&ObjectName> = backends.map(|(entry, _)| &entry.object).collect();
        let ended = self.ended.iter().filter(|(entry, end)| {
            is_by_file(end) || *end == EntryEnd::WithBackend && objects.contains(&entry.object)
        });
        ended.map(|(entry, _)| entry.clone()).collect()
    }
}

/// Why an entry is no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryEnd {
    /// Its time is over.
    Expired,
    /// The file says something else than it did when the entry was made.
    FileChanged {
        /// What it says now.
        now: String,
    },
    /// The file says now what the entry says.
    SaidByFile,
    /// The file has the backend now.
    InFile,
    /// The name is back in the file, at another address.
    OtherAddress,
    /// The file has not had the object for [`KEPT`].
    LongGone,
    /// The backend had been added by hand and is no more.
    WithBackend,
}

impl fmt::Display for EntryEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EntryEnd::Expired => f.write_str("its time is over"),
            EntryEnd::FileChanged { now } => write!(f, "the file has changed, it says {now}"),
            EntryEnd::SaidByFile => f.write_str("the file says it now"),
            EntryEnd::InFile => f.write_str("the file has this backend now"),
            EntryEnd::OtherAddress => f.write_str("the name is back at another address"),
            EntryEnd::LongGone => f.write_str("the file has not had it for 7 days"),
            EntryEnd::WithBackend => f.write_str("the added backend is no more"),
        }
    }
}

/// What a backend that was added by hand says of a field.
pub(super) fn added_value(added: &AddedBackend, field: EntryField) -> Option<String> {
    match field {
        EntryField::State => Some("up".to_owned()),
        EntryField::Weight => Some(added.weight.unwrap_or(1).to_string()),
        EntryField::MaxInFlight | EntryField::Added | EntryField::Removed => None,
    }
}

/// What is left of `entries` when `file` is what the file says at `now_ms`, in milliseconds since 1970.
#[must_use]
pub fn reconcile(entries: &[OverlayEntry], file: &Loaded, now_ms: u64) -> Reconciled {
    let view = FileView::of(file, entries, &[]);
    // What time has ended was over before this reading, and what was there with it.
    let is_overdue_backend =
        |entry: &&OverlayEntry| entry.change.field() == EntryField::Added && overdue(entry, now_ms).is_some();
    let overdue_backends: HashSet<&ObjectName> =
        entries.iter().filter(is_overdue_backend).map(|entry| &entry.object).collect();
    let mut fates: HashMap<u64, Result<OverlayEntry, EntryEnd>> = HashMap::new();
    // First the backends that were added: the other entries depend on whether they are there.
    for entry in entries.iter().filter(|entry| entry.change.field() == EntryField::Added) {
        fates.insert(entry.id, added(entry, &view, now_ms));
    }
    let mut there: HashMap<&ObjectName, (&AddedBackend, &OverlayEntry)> = HashMap::new();
    let mut ended: HashSet<&ObjectName> = HashSet::new();
    for entry in entries {
        let EntryChange::Added(backend) = &entry.change else { continue };
        match fates.get(&entry.id) {
            Some(Ok(kept)) if kept.gone_since_ms.is_none() => {
                there.insert(&entry.object, (backend, entry));
            }
            Some(Err(_)) => {
                ended.insert(&entry.object);
            }
            Some(Ok(_)) | None => {}
        }
    }
    for entry in entries.iter().filter(|entry| entry.change.field() != EntryField::Added) {
        let fate = if let Some(end) = overdue(entry, now_ms) {
            Err(end)
        } else if overdue_backends.contains(&entry.object) {
            Err(EntryEnd::WithBackend)
        } else if let Some((backend, base)) = there.get(&entry.object) {
            let value = added_value(backend, entry.change.field());
            field(entry, base.address.clone(), value.unwrap_or_default())
        } else if view.has(&entry.object) {
            let address = view.backend(&entry.object).map(|backend| backend.address.identity());
            field(entry, address, view.value(&entry.object, entry.change.field()).unwrap_or_default())
        } else if ended.contains(&entry.object) {
            Err(EntryEnd::WithBackend)
        } else {
            Ok(gone(entry, now_ms))
        };
        fates.insert(entry.id, fate);
    }
    let mut reconciled = Reconciled::default();
    for entry in entries {
        match fates.remove(&entry.id) {
            Some(Ok(kept)) => reconciled.entries.push(kept),
            Some(Err(end)) => reconciled.ended.push((entry.clone(), end)),
            None => {}
        }
    }
    reconciled
}

/// When the next entry ends by itself, in milliseconds since 1970.
#[must_use]
pub fn next_end(entries: &[OverlayEntry]) -> Option<u64> {
    let forgotten = |entry: &OverlayEntry| Some(entry.gone_since_ms?.saturating_add(kept_ms()));
    entries.iter().flat_map(|entry| [entry.expires_ms, forgotten(entry)]).flatten().min()
}

fn kept_ms() -> u64 {
    u64::try_from(KEPT.as_millis()).unwrap_or(u64::MAX)
}

/// What the file says does not matter any more.
fn overdue(entry: &OverlayEntry, now_ms: u64) -> Option<EntryEnd> {
    let is_past = |end: u64| end <= now_ms;
    if entry.expires_ms.is_some_and(is_past) {
        Some(EntryEnd::Expired)
    } else if entry.gone_since_ms.is_some_and(|since| is_past(since.saturating_add(kept_ms()))) {
        Some(EntryEnd::LongGone)
    } else {
        None
    }
}

/// A backend that was added by hand.
fn added(entry: &OverlayEntry, view: &FileView<'_>, now_ms: u64) -> Result<OverlayEntry, EntryEnd> {
    if let Some(end) = overdue(entry, now_ms) {
        return Err(end);
    }
    let Some(target) = view.target(&entry.object.target) else { return Ok(gone(entry, now_ms)) };
    let is_at = |address: &String| target.name_at(address).is_some();
    if view.has(&entry.object) || entry.address.as_ref().is_some_and(is_at) {
        return Err(EntryEnd::InFile);
    }
    Ok(OverlayEntry { gone_since_ms: None, ..entry.clone() })
}

/// An object that is there, at `address`, with `value` below the entry.
fn field(entry: &OverlayEntry, address: Option<String>, value: String) -> Result<OverlayEntry, EntryEnd> {
    if entry.gone_since_ms.is_some() && entry.address != address {
        return Err(EntryEnd::OtherAddress);
    }
    if entry.file_value.as_ref() != Some(&value) {
        if entry.change.value().as_ref() == Some(&value) {
            return Err(EntryEnd::SaidByFile);
        }
        return Err(EntryEnd::FileChanged { now: value });
    }
    Ok(OverlayEntry { gone_since_ms: None, address, ..entry.clone() })
}

/// An object that is not there.
fn gone(entry: &OverlayEntry, now_ms: u64) -> OverlayEntry {
    OverlayEntry { gone_since_ms: entry.gone_since_ms.or(Some(now_ms)), ..entry.clone() }
}
