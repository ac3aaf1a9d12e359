//! The overlay laid over what a file says: the config in force.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use super::entry::{AddedBackend, Author, EntryChange, ObjectName, OverlayEntry};
use crate::config::model::{BackendConfig, BackendState};
use crate::config::{Addition, AdditionFault, Effective, Loaded, Origin, backend_numbers};

/// The config in force.
#[derive(Clone, Debug)]
pub struct Laid {
    /// Model and rows, with who has set what by hand. Without entries it is the file's own.
    pub loaded: Arc<Loaded>,
    /// Entries that have no effect with this file, by id. They are tried again with the next one.
    pub aside: BTreeMap<u64, Aside>,
}

/// Why an entry has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aside {
    /// The file does not have the object.
    Gone,
    /// The added backend does not fit the target.
    Unfit(Vec<AdditionFault>),
    /// The target would have no backend with a weight above 0.
    Last,
    /// The added backend that it is about is set aside.
    WithBackend,
}

impl fmt::Display for Aside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Aside::Gone => f.write_str("it is not in the file"),
            Aside::Unfit(faults) => {
                f.write_str(faults.first().map_or("it does not fit", |fault| fault.problem.message.as_str()))
            }
            Aside::Last => f.write_str("no backend of the target would have a weight above 0"),
            Aside::WithBackend => f.write_str("its backend is set aside"),
        }
    }
}

/// Lays `entries` over `file`.
#[must_use]
pub fn lay(file: &Arc<Loaded>, entries: &[OverlayEntry]) -> Laid {
    let mut laid = Laid { loaded: Arc::clone(file), aside: BTreeMap::new() };
    let (live, gone): (Vec<&OverlayEntry>, Vec<&OverlayEntry>) =
        entries.iter().partition(|entry| entry.gone_since_ms.is_none());
    laid.aside.extend(gone.iter().map(|entry| (entry.id, Aside::Gone)));
    if live.is_empty() {
        return laid;
    }
    let mut loaded = Loaded::clone(file);
    let mut by_target: HashMap<&str, Vec<&OverlayEntry>> = HashMap::new();
    for entry in &live {
        by_target.entry(&entry.object.target).or_default().push(entry);
    }
    let mut rows = RowEdits::default();
    for index in 0..loaded.config.targets.len() {
        let Some(own) = by_target.remove(loaded.config.targets[index].name.as_str()) else { continue };
        laid.aside.extend(lay_target(&mut loaded, index, &own, &mut rows));
    }
    let lost = by_target.into_values().flatten();
    laid.aside.extend(lost.map(|entry| (entry.id, Aside::Gone)));
    rows.make(&mut loaded.effective);
    laid.loaded = Arc::new(loaded);
    laid
}

/// One target; gives what of `entries` has no effect.
fn lay_target(
    loaded: &mut Loaded,
    index: usize,
    entries: &[&OverlayEntry],
    rows: &mut RowEdits,
) -> Vec<(u64, Aside)> {
    let rules = Arc::clone(&loaded.backend_rules);
    let binds = loaded.config.listeners.get(index).map(|listener| listener.binds.clone()).unwrap_or_default();
    let target = &mut loaded.config.targets[index];
    let backends = &mut target.backends;
    // A backend keeps the number that its rows have, also when one before it goes.
    let known = backend_numbers(&loaded.effective, &target.name);
    let mut numbers: Vec<usize> =
        backends.iter().map(|backend| known.get(&*backend.name).copied().unwrap_or_default()).collect();
    let mut free = known.values().max().map_or(0, |last| last + 1);
    let mut aside = Vec::new();
    let of = |number: usize, key: &str| format!("targets.{}.backends[{number}].{key}", target.name);
    for entry in entries {
        let EntryChange::Added(added) = &entry.change else { continue };
        // That of a unix socket is its name without being one that anybody could give.
        let name = entry.object.backend.as_deref().filter(|name| *name != added.url);
        let addition = addition(name, added, &entry.author, entry.at_ms);
        let Some(rules) = rules.get(index) else { continue };
        match rules.add(&addition, free, backends, &binds) {
            Ok(new) => {
                numbers.push(free);
                free += 1;
                backends.push(new.backend);
                rows.new.entry(target.name.clone()).or_default().extend(new.rows);
            }
            Err(faults) => aside.push((entry.id, Aside::Unfit(faults))),
        }
    }
    let has_other = |backends: &[BackendConfig], at: usize| {
        backends.iter().enumerate().any(|(other, backend)| other != at && backend.portion.weight > 0)
    };
    // What may leave nobody comes last, so that the outcome does not hang on the order of the others.
    let rank = |entry: &&&OverlayEntry| match &entry.change {
        EntryChange::Removed => 1,
        EntryChange::Weight(0) => 2,
        _ => 0,
    };
    let mut ordered: Vec<&&OverlayEntry> = entries.iter().collect();
    ordered.sort_by_key(rank);
    for entry in ordered {
        let origin = Origin::Hand { who: entry.author.to_string().into(), at_ms: entry.at_ms };
        match &entry.change {
            EntryChange::Added(_) => {}
            EntryChange::MaxInFlight(limit) => {
                (target.resilience.max_in_flight, target.resilience.adaptive) = (*limit, false);
                rows.set(format!("targets.{}.max_in_flight", target.name), &entry.change, origin);
            }
            EntryChange::State(_) | EntryChange::Weight(_) | EntryChange::Removed => {
                let name = entry.object.backend.as_deref();
                let Some(at) = backends.iter().position(|backend| Some(backend.name.as_str()) == name) else {
                    // One that is removed by hand has this beneath.
                    if !entries.iter().any(|other| is_removal_of(other, &entry.object)) {
                        aside.push((entry.id, Aside::WithBackend));
                    }
                    continue;
                };
                match entry.change {
                    EntryChange::State(state) => {
                        set_state(&mut backends[at], state, entry);
                        rows.set(of(numbers[at], "state"), &entry.change, origin);
                    }
                    EntryChange::Weight(weight) if weight > 0 || has_other(backends, at) => {
                        backends[at].portion.weight = weight;
                        rows.set(of(numbers[at], "weight"), &entry.change, origin);
                    }
                    EntryChange::Removed if has_other(backends, at) => {
                        backends.remove(at);
                        rows.removed.insert(of(numbers.remove(at), ""));
                    }
                    _ => aside.push((entry.id, Aside::Last)),
                }
            }
        }
    }
    aside
}

fn is_removal_of(entry: &OverlayEntry, object: &ObjectName) -> bool {
    entry.object == *object && entry.change == EntryChange::Removed
}

fn set_state(backend: &mut BackendConfig, state: BackendState, entry: &OverlayEntry) {
    backend.state = state;
    backend.state_by = Some(format!("{} ({})", Origin::BY_HAND, entry.author).into());
}

/// What is to be checked as if it stood in the file.
pub(super) fn addition<'a>(
    name: Option<&'a str>,
    added: &'a AddedBackend,
    author: &Author,
    at_ms: u64,
) -> Addition<'a> {
    Addition {
        name,
        url: &added.url,
        weight: added.weight,
        priority: added.priority,
        backup: added.backup,
        zone: added.zone.as_deref(),
        health_path: added.health_path.as_deref(),
        origin: Origin::Hand { who: author.to_string().into(), at_ms },
    }
}

/// What becomes of the rows.
#[derive(Default)]
struct RowEdits {
    /// By path: value and origin.
    set: HashMap<String, (String, Origin)>,
    /// What their paths begin with, up to the dot behind the bracket.
    removed: HashSet<String>,
    /// Those of added backends, by target.
    new: HashMap<String, Vec<Effective>>,
}

impl RowEdits {
    fn set(&mut self, path: String, change: &EntryChange, origin: Origin) {
        self.set.insert(path, (change.value().unwrap_or_default(), origin));
    }

    fn make(mut self, rows: &mut Vec<Effective>) {
        if !self.removed.is_empty() {
            rows.retain(|row| !backend_of(&row.path).is_some_and(|of| self.removed.contains(of)));
        }
        for (target, new) in self.new.drain() {
            let prefix = format!("targets.{target}.");
            let is_backend = |row: &Effective| {
                row.path.strip_prefix(&prefix).is_some_and(|rest| rest.starts_with("backends["))
            };
            let end = rows.iter().rposition(is_backend).map_or(rows.len(), |last| last + 1);
            rows.splice(end..end, new);
        }
        for row in rows {
            if let Some((value, origin)) = self.set.remove(&row.path) {
                (row.value, row.origin) = (value, origin);
            }
        }
    }
}

/// `targets.web.backends[3].` of `targets.web.backends[3].weight`.
fn backend_of(path: &str) -> Option<&str> {
    const BACKENDS: &str = ".backends[";
    let inside = path.rfind(BACKENDS)? + BACKENDS.len();
    let end = path[inside..].find("].")?;
    Some(&path[..inside + end + 2])
}
