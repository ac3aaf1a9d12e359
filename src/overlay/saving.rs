//! Which entries can be written into the file, as what, and which stay entries.

use std::collections::BTreeMap;
use std::fmt;

use super::entry::{AddedBackend, EntryChange, EntryField, ObjectName, OverlayEntry};
use super::lay::{Aside, Laid};
use crate::config::model::Config;
use crate::config::{Wanted, WantedChange, WantedValue};

/// What becomes of the entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Saving {
    /// What the file is to say.
    pub wanted: Vec<Wanted>,
    /// Entries that are over then, in their order.
    pub saved: Vec<OverlayEntry>,
    /// Those that are not, and why.
    pub left: Vec<(OverlayEntry, LeftReason)>,
}

/// Why an entry is not saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftReason {
    /// It ends by itself.
    Ends,
    /// It has no effect.
    Aside(Aside),
    /// The backend that it is about was added for a time.
    WithBackend,
    /// The backend that it is about was found, and is in no file.
    Found,
}

impl fmt::Display for LeftReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeftReason::Ends => f.write_str("it ends by itself"),
            LeftReason::Aside(aside) => write!(f, "it has no effect: {aside}"),
            LeftReason::WithBackend => f.write_str("its backend was added for a time"),
            LeftReason::Found => f.write_str("its backend is an address of a name, which no file lists"),
        }
    }
}

/// What to save of `entries`, of which `laid` was made.
#[must_use]
pub fn saving(laid: &Laid, entries: &[OverlayEntry]) -> Saving {
    let mut saving = Saving::default();
    for entry in entries {
        match reason(entry, entries, laid) {
            Some(reason) => saving.left.push((entry.clone(), reason)),
            None => saving.saved.push(entry.clone()),
        }
    }
    // What is said of an added backend is a part of it.
    let mut added: BTreeMap<&ObjectName, Vec<(&'static str, WantedValue)>> = BTreeMap::new();
    for entry in &saving.saved {
        if let EntryChange::Added(backend) = &entry.change {
            added.insert(&entry.object, keys(&laid.loaded.config, &entry.object, backend));
        }
    }
    for entry in &saving.saved {
        if let (Some(keys), Some((key, value))) = (added.get_mut(&entry.object), field(&entry.change)) {
            keys.retain(|(other, _)| *other != key);
            keys.push((key, value));
        }
    }
    let wanted = saving.saved.iter().filter_map(|entry| {
        let backend = entry.object.backend.clone();
        let change = match (&entry.change, added.get(&entry.object)) {
            (EntryChange::Added(_), Some(keys)) => WantedChange::Add(keys.clone()),
            (EntryChange::Removed, _) => WantedChange::Remove(backend?),
            (EntryChange::MaxInFlight(_), _) => {
                WantedChange::InFlight(WantedValue::Plain(entry.change.value()?))
            }
            (EntryChange::State(_) | EntryChange::Weight(_), None) => {
                let (key, value) = field(&entry.change)?;
                WantedChange::Field { backend: backend?, key, value }
            }
            _ => return None,
        };
        Some(Wanted { target: entry.object.target.clone(), change })
    });
    saving.wanted = wanted.collect();
    saving
}

fn reason(entry: &OverlayEntry, all: &[OverlayEntry], laid: &Laid) -> Option<LeftReason> {
    if let Some(aside) = laid.aside.get(&entry.id) {
        return Some(LeftReason::Aside(aside.clone()));
    }
    if entry.expires_ms.is_some() {
        return Some(LeftReason::Ends);
    }
    let target = laid.loaded.config.targets.iter().find(|target| target.name == entry.object.target);
    let is_found = |name: &String| {
        let named = target.and_then(|target| target.backends.iter().find(|backend| backend.name == *name));
        // One that is removed by hand is not there any more, and its name says it: a written one has no `/`.
        named.map_or(name.contains('/') && !name.starts_with("unix:"), |backend| backend.found.is_some())
    };
    if entry.object.backend.as_ref().is_some_and(is_found) {
        return Some(LeftReason::Found);
    }
    let is_base = |other: &&OverlayEntry| {
        other.object == entry.object
            && other.change.field() == EntryField::Added
            && other.gone_since_ms.is_none()
    };
    let base = all.iter().find(is_base).filter(|base| base.id != entry.id);
    base.filter(|base| base.expires_ms.is_some()).map(|_| LeftReason::WithBackend)
}

/// A key of a backend.
fn field(change: &EntryChange) -> Option<(&'static str, WantedValue)> {
    match change {
        EntryChange::State(state) => Some(("state", WantedValue::Text(state.as_str().to_owned()))),
        EntryChange::Weight(weight) => Some(("weight", WantedValue::Plain(weight.to_string()))),
        EntryChange::MaxInFlight(_) | EntryChange::Added(_) | EntryChange::Removed => None,
    }
}

/// An added backend as a file has it.
fn keys(config: &Config, object: &ObjectName, added: &AddedBackend) -> Vec<(&'static str, WantedValue)> {
    let AddedBackend { url, weight, priority, backup, zone, health_path } = added;
    let text = |text: &str| WantedValue::Text(text.to_owned());
    let number = |number: &u32| WantedValue::Plain(number.to_string());
    let mut target = config.targets.iter().filter(|target| target.name == object.target);
    let mut backends = target.by_ref().flat_map(|target| &target.backends);
    let own = backends.find(|backend| Some(&backend.name) == object.backend.as_ref());
    // A name that it would have anyway goes without saying.
    let name = own.filter(|backend| backend.name != backend.address.to_string());
    let keys = [
        Some(("url", text(url))),
        name.map(|backend| ("name", text(&backend.name))),
        weight.as_ref().map(|weight| ("weight", number(weight))),
        priority.as_ref().map(|priority| ("priority", number(priority))),
        backup.map(|backup| ("backup", WantedValue::Plain(backup.to_string()))),
        zone.as_deref().map(|zone| ("zone", text(zone))),
        health_path.as_deref().map(|path| ("health_path", text(path))),
    ];
    keys.into_iter().flatten().collect()
}

/// Whether two configs are the same but for who has said what.
#[must_use]
pub fn is_same(one: &Config, other: &Config) -> bool {
    let unsigned = |config: &Config| {
        let mut config = config.clone();
        let backends = config.targets.iter_mut().flat_map(|target| &mut target.backends);
        backends.for_each(|backend| backend.state_by = None);
        // No file lists those that were found.
        config
            .targets
            .iter_mut()
            .for_each(|target| target.backends.retain(|backend| backend.found.is_none()));
        config
    };
    unsigned(one) == unsigned(other)
}

#[cfg(test)]
mod tests;
