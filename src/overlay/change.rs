//! What somebody wants changed by hand → the entries after it, or why not.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::entry::{AddedBackend, Author, EntryChange, EntryField, LaterFields, ObjectName, OverlayEntry};
use super::lay::{Aside, Laid, lay};
use super::reconcile::added_value;
use super::view::FileView;
use crate::config::{AdditionFault, Loaded};

/// One thing that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// A field is to have this value: a state, a weight, `max_in_flight`.
    Set(ObjectName, EntryChange),
    /// A field is to be what the file says.
    Clear(ObjectName, EntryField),
    /// There is to be one more backend in this target; without a name it has that of its address.
    Add {
        /// The target's name.
        target: String,
        /// The backend's name.
        name: Option<String>,
        /// The backend.
        backend: AddedBackend,
    },
    /// There is to be one less.
    Remove(ObjectName),
}

/// What is wanted at once: all of it is done, or nothing.
#[derive(Clone, Debug)]
pub struct WishList {
    /// One after the other.
    pub wishes: Vec<Wish>,
    /// By whom.
    pub author: Author,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// Until when, in milliseconds since 1970; `None`: until somebody says otherwise.
    pub expires_ms: Option<u64>,
}

/// The overlay after a change.
#[derive(Clone, Debug)]
pub struct Changed {
    /// All of it.
    pub entries: Vec<OverlayEntry>,
    /// What is left of those that are paused.
    pub paused: Vec<OverlayEntry>,
    /// The id that the next entry gets.
    pub next_id: u64,
    /// The config with it.
    pub laid: Laid,
    /// What was added, removed or set, in the order of the wishes.
    pub objects: Vec<ObjectName>,
}

/// Why nothing is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Declined {
    /// There is no such object.
    Missing(String),
    /// What was asked for is wrong by itself, each fault with its key.
    Unfit(Vec<AdditionFault>),
    /// It is there already.
    Duplicate(String),
    /// It would leave what can't serve.
    Conflict(String),
}

impl fmt::Display for Declined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Declined::Missing(why) | Declined::Duplicate(why) | Declined::Conflict(why) => f.write_str(why),
            Declined::Unfit(faults) => {
                f.write_str(faults.first().map_or("it does not fit", |fault| fault.problem.message.as_str()))
            }
        }
    }
}

/// What comes of `ask`, where `entries` lie over `file`, those in `aside` without effect, and the next id is `next_id`. `paused` would
/// be there again with another file: what is said now holds then too, in the place of what they say.
///
/// # Errors
/// See [`Declined`].
pub fn change(
    file: &Arc<Loaded>,
    entries: &[OverlayEntry],
    paused: &[OverlayEntry],
    aside: &BTreeMap<u64, Aside>,
    next_id: u64,
    ask: &WishList,
) -> Result<Changed, Declined> {
    let (entries, paused) = (entries.to_vec(), paused.to_vec());
    let mut draft = Draft { file, entries, paused, next_id, ask, objects: Vec::new() };
    for wish in &ask.wishes {
        draft.take(wish)?;
    }
    let Draft { entries, paused, next_id, objects, .. } = draft;
    let laid = lay(file, &entries);
    // An entry that would be set aside, be it this one or another, is refused while somebody is there to hear why.
    let set_aside = laid.aside.iter().find(|(id, why)| **why != Aside::Gone && !aside.contains_key(id));
    match set_aside {
        None => Ok(Changed { entries, paused, next_id, laid, objects }),
        Some((_, Aside::Unfit(faults))) => Err(unfit(faults)),
        Some((_, why)) => {
            let asked = objects.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            Err(Declined::Conflict(format!("{asked}: {why}")))
        }
    }
}

fn unfit(faults: &[AdditionFault]) -> Declined {
    match faults.iter().find(|fault| fault.is_duplicate) {
        Some(fault) => {
            let note = fault.problem.note.as_ref().map_or_else(String::new, |note| format!(": {note}"));
            Declined::Duplicate(format!("{}{note}", fault.problem.message))
        }
        None => Declined::Unfit(faults.to_vec()),
    }
}

/// The entries in the making.
struct Draft<'a> {
    file: &'a Arc<Loaded>,
    entries: Vec<OverlayEntry>,
    paused: Vec<OverlayEntry>,
    next_id: u64,
    ask: &'a WishList,
    objects: Vec<ObjectName>,
}

impl Draft<'_> {
    fn take(&mut self, wish: &Wish) -> Result<(), Declined> {
        match wish {
            Wish::Set(object, change) => self.set(object, change),
            Wish::Clear(object, field) => {
                let is_meant = |entry: &OverlayEntry| entry.change.field() == *field;
                // Also of an object that the file does not have any more.
                if !self.entries.iter().any(|entry| entry.object == *object && is_meant(entry)) {
                    self.base(object)?;
                }
                self.drop_of(object, is_meant);
                self.objects.push(object.clone());
                Ok(())
            }
            Wish::Add { target, name, backend } => self.add(target, name.as_deref(), backend),
            Wish::Remove(object) => self.remove(object),
        }
    }

    fn set(&mut self, object: &ObjectName, change: &EntryChange) -> Result<(), Declined> {
        let (address, value) = self.value(object, change.field())?;
        self.drop_of(object, |entry| entry.change.field() == change.field());
        // What says what the file says is no change by hand.
        if change.value().as_ref() != Some(&value) {
            self.put(object.clone(), change.clone(), Some(value), address);
        }
        self.objects.push(object.clone());
        Ok(())
    }

    fn add(&mut self, target: &str, name: Option<&str>, added: &AddedBackend) -> Result<(), Declined> {
        let view = FileView::of(self.file, &[], &[target]);
        let of_file = view.target(target).ok_or_else(|| self.no_target(target))?;
        // As it would be alone in the file, to learn where it is; what is beside it is looked at by `lay`.
        let rules = of_file.rules();
        let addition = super::lay::addition(name, added, &self.ask.author, self.ask.at_ms);
        let new = rules.add(&addition, 0, &[], &[]).map_err(|faults| unfit(&faults))?.backend;
        let identity = new.address.identity();
        let object = ObjectName::backend(target, &new.name);
        if let Some(first) = of_file.name_at(&identity) {
            let hidden = ObjectName::backend(target, first);
            if self.is_removed(&hidden) {
                return self.restore(&hidden, name, added);
            }
        } else if of_file.backends().iter().any(|backend| backend.name == new.name)
            && self.is_removed(&object)
        {
            return Err(Declined::Duplicate(format!(
                "the file has a backend {object} at another address, which was removed by hand"
            )));
        }
        // What is left of one of this name or at this address is not for the new one, and would not have it there.
        let is_former = |entry: &OverlayEntry| {
            let is_at = entry.object.target == target && entry.address.as_ref() == Some(&identity);
            entry.object == object || is_at
        };
        self.entries.retain(|entry| entry.gone_since_ms.is_none() || !is_former(entry));
        self.paused.retain(|entry| !is_former(entry));
        let id = self.next_id;
        self.put(object.clone(), EntryChange::Added(added.clone()), None, Some(identity));
        self.objects.push(object);
        // At once, and not only in the end: a later wish may take away what stands against it.
        match lay(self.file, &self.entries).aside.remove(&id) {
            Some(Aside::Unfit(faults)) => Err(unfit(&faults)),
            _ => Ok(()),
        }
    }

    /// A backend of the file that was removed by hand is back.
    fn restore(
        &mut self,
        object: &ObjectName,
        name: Option<&str>,
        added: &AddedBackend,
    ) -> Result<(), Declined> {
        let is_bare = *added == AddedBackend { url: added.url.clone(), ..AddedBackend::default() };
        let has_time = self.ask.expires_ms.is_some();
        if !is_bare || has_time || name.is_some_and(|name| object.backend.as_deref() != Some(name)) {
            return Err(Declined::Duplicate(format!(
                "the file has this backend as {object}, removed by hand: to add the URL alone brings it back"
            )));
        }
        self.drop_of(object, |_| true);
        self.objects.push(object.clone());
        Ok(())
    }

    fn remove(&mut self, object: &ObjectName) -> Result<(), Declined> {
        // What is left of one that the file does not have any more can be removed too.
        if !self.entries.iter().any(|entry| entry.object == *object && entry.gone_since_ms.is_some()) {
            self.base(object)?;
        }
        let view = FileView::of(self.file, &[], &[&object.target]);
        let of_file = view.value(object, EntryField::Removed);
        let address = view.backend(object).map(|backend| backend.address.identity());
        self.drop_of(object, |_| true);
        if let Some(whole) = of_file {
            self.put(object.clone(), EntryChange::Removed, Some(whole), address);
        }
        self.objects.push(object.clone());
        Ok(())
    }

    /// Where an object is and what lies below an entry of this field.
    fn value(&self, object: &ObjectName, field: EntryField) -> Result<(Option<String>, String), Declined> {
        self.base(object)?;
        if let Some(entry) = self.added(object) {
            let EntryChange::Added(added) = &entry.change else { return Err(self.missing(object)) };
            return Ok((entry.address.clone(), added_value(added, field).unwrap_or_default()));
        }
        let view = FileView::of(self.file, &[], &[&object.target]);
        let address = view.backend(object).map(|backend| backend.address.identity());
        view.value(object, field).map(|value| (address, value)).ok_or_else(|| self.missing(object))
    }

    /// The object is there, in the file or by hand.
    fn base(&self, object: &ObjectName) -> Result<(), Declined> {
        let view = FileView::of(self.file, &[], &[&object.target]);
        if view.target(&object.target).is_none() {
            return Err(self.no_target(&object.target));
        }
        let removed = self.entries.iter().find(|entry| entry.object == *object && is_live_removal(entry));
        if let Some(removed) = removed {
            return Err(Declined::Missing(format!(
                "{object} was removed by hand, by {}; to add it again brings it back",
                removed.author
            )));
        }
        if view.has(object) || self.added(object).is_some() { Ok(()) } else { Err(self.missing(object)) }
    }

    fn added(&self, object: &ObjectName) -> Option<&OverlayEntry> {
        let is_it = |entry: &&OverlayEntry| {
            entry.object == *object
                && entry.gone_since_ms.is_none()
                && entry.change.field() == EntryField::Added
        };
        self.entries.iter().find(is_it)
    }

    fn is_removed(&self, object: &ObjectName) -> bool {
        self.entries.iter().any(|entry| entry.object == *object && is_live_removal(entry))
    }

    fn put(
        &mut self,
        object: ObjectName,
        change: EntryChange,
        file_value: Option<String>,
        address: Option<String>,
    ) {
        let WishList { author, at_ms, expires_ms, .. } = self.ask;
        self.entries.push(OverlayEntry {
            id: self.next_id,
            object,
            change,
            file_value,
            address,
            author: author.clone(),
            at_ms: *at_ms,
            expires_ms: *expires_ms,
            gone_since_ms: None,
            more: LaterFields::new(),
        });
        self.next_id += 1;
    }

    fn drop_of(&mut self, object: &ObjectName, is_meant: impl Fn(&OverlayEntry) -> bool) {
        let stays = |entry: &OverlayEntry| entry.object != *object || !is_meant(entry);
        self.entries.retain(stays);
        self.paused.retain(stays);
    }

    fn no_target(&self, name: &str) -> Declined {
        let names: Vec<&str> = self.file.config.targets.iter().map(|target| target.name.as_str()).collect();
        Declined::Missing(format!("there is no target {name}{}", meant(name, &names, "")))
    }

    fn missing(&self, object: &ObjectName) -> Declined {
        let laid = lay(self.file, &self.entries);
        let target = laid.loaded.config.targets.iter().find(|target| target.name == object.target);
        let names: Vec<&str> =
            target.iter().flat_map(|target| &target.backends).map(|backend| backend.name.as_str()).collect();
        let near =
            meant(object.backend.as_deref().unwrap_or_default(), &names, &format!("{}/", object.target));
        Declined::Missing(format!("there is no backend {object}{near}"))
    }
}

fn is_live_removal(entry: &OverlayEntry) -> bool {
    entry.gone_since_ms.is_none() && entry.change.field() == EntryField::Removed
}

/// Which of `names` may have been meant, or all if they are few.
fn meant(wrong: &str, names: &[&str], prefix: &str) -> String {
    const FEW: usize = 5;
    let likeness = |name: &str| strsim::jaro_winkler(name, wrong);
    let nearest = names.iter().max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
    match nearest.filter(|name| likeness(name) > 0.8) {
        Some(name) => format!("; did you mean {prefix}{name}?"),
        None if names.len() <= FEW && !names.is_empty() => {
            let all: Vec<String> = names.iter().map(|name| format!("{prefix}{name}")).collect();
            format!("; there are {}", all.join(", "))
        }
        None => String::new(),
    }
}
