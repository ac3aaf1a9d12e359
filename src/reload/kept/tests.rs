//! The entries of a process that is not one: what it has in force, and what is on its disk.

mod blocked;
mod interleavings;
mod shared;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::model::{File, ModelServer};
use super::*;
use crate::config::model::BackendState;
use crate::config::{Flags, Loaded, load_text};
use crate::overlay::{
    Author, EntryChange, EntryField, Laid, ObjectName, Wish, WishList, change, lay, reconcile,
};
use crate::store::memory::{MemoryDisk, MemoryStore};

const START: u64 = 1_800_000_000_000;

/// What a process has in force, without a process.
struct Machine {
    kept: KeptOverlay,
    file: Arc<Loaded>,
    laid: Laid,
}

impl Machine {
    /// Says too whether all of it is kept.
    fn start(disk: &MemoryDisk, file: Arc<Loaded>, now: u64) -> (Machine, bool) {
        let (kept, found) = KeptOverlay::load(Box::new(MemoryStore(disk.clone())));
        assert_eq!((kept.state().fault(), found.damaged), (None, 0));
        let mut machine = Machine { kept, laid: lay(&file, &[]), file: Arc::clone(&file) };
        let is_kept = machine.read(file, now, false);
        (machine, is_kept)
    }

    /// As `RunningConfig::take` does. Says whether all of it is kept.
    fn read(&mut self, file: Arc<Loaded>, now: u64, is_on_trial: bool) -> bool {
        let (reconciled, paused) = self.kept.state().read(&file, now, is_on_trial);
        (self.laid, self.file) = (lay(&file, &reconciled.entries), file);
        self.kept.state().pause(&paused);
        self.settle(&reconciled.entries)
    }

    /// As `RunningConfig::keep_time` does.
    fn pass(&mut self, now: u64) -> bool {
        let left = reconcile(self.kept.state().entries(), &self.file, now).entries;
        self.laid = lay(&self.file, &left);
        self.settle(&left)
    }

    fn settle(&mut self, entries: &[OverlayEntry]) -> bool {
        let next = self.kept.state().next_id();
        self.kept.state().hold(entries, next);
        self.kept.catch_up().is_ok()
    }

    /// As `RunningConfig::change` does. `None`: it is declined; else whether it is kept, and so done. It is not where the process
    /// `refuses` to go over to it.
    fn ask(&mut self, ask: &WishList, refuses: bool) -> Option<bool> {
        let kept = &self.kept;
        let seen =
            |state: &OverlayState| (state.entries().to_vec(), state.paused().to_vec(), state.next_id());
        let (entries, paused, next) = seen(&kept.state());
        let changed = change(&self.file, &entries, &paused, &self.laid.aside, next, ask).ok()?;
        let is_kept = kept.keep(&changed.entries, &changed.paused, changed.next_id, StoreReach::All).is_ok();
        if is_kept && refuses {
            if kept.keep(&entries, &paused, changed.next_id, StoreReach::All).is_err() {
                kept.state().pause(&paused);
                kept.state().hold(&entries, changed.next_id);
            }
            return Some(false);
        }
        if is_kept {
            self.laid = changed.laid;
        }
        Some(is_kept)
    }
}

/// Files that are read already.
struct Files(HashMap<String, Arc<Loaded>>);
const MANY: usize = 4_000;

impl Files {
    fn load(&mut self, (servers, limit): &File) -> Arc<Loaded> {
        let other = "other: {protocol: http, listener: 127.0.0.1:0, backends: [{host: o, port: 1}]}";
        let web = servers.as_ref().map_or(String::new(), |servers| {
            let one = |ModelServer(name, port, weight, state): &ModelServer| {
                format!("{{name: {name}, host: h, port: {port}, weight: {weight}, state: {state}}}")
            };
            let all: Vec<String> = servers.iter().map(one).collect();
            format!(
                ", web: {{protocol: http, listener: 127.0.0.1:0, max_in_flight: {limit}, backends: [{}]}}",
                all.join(", ")
            )
        });
        let text = format!("targets: {{{other}{web}}}");
        let load = |text: &String| {
            let loaded = load_text(text, "t.yaml", Path::new("/"), &Flags::default(), &|_| None);
            Arc::new(loaded.unwrap_or_else(|error| panic!("{error}")))
        };
        if self.0.len() > MANY {
            self.0.clear();
        }
        Arc::clone(self.0.entry(text.clone()).or_insert_with(|| load(&text)))
    }
}

#[test]
fn what_a_full_disk_did_not_take_is_taken_with_the_next_change() {
    let mut files = Files(HashMap::new());
    let with = |weight| {
        (
            Some(vec![
                ModelServer("b1".into(), 1, 1, "up".into()),
                ModelServer("b2".into(), 2, weight, "up".into()),
            ]),
            "off".to_owned(),
        )
    };
    let disk = MemoryDisk::default();
    let (mut machine, _) = Machine::start(&disk, files.load(&with(1)), START);
    let ask = |change| WishList {
        wishes: vec![Wish::Set(ObjectName::backend("web", "b2"), change)],
        author: Author::Uid(0),
        at_ms: START,
        expires_ms: None,
    };
    assert_eq!(machine.ask(&ask(EntryChange::Weight(5)), false), Some(true));
    disk.fill(true);
    let Err(unkept) = machine.kept.keep(&[], &[], 9, StoreReach::All) else { panic!("it is full") };
    assert!(unkept.is_full);
    assert!(!machine.read(files.load(&with(3)), START, false), "it serves on");
    let counts = |state: &OverlayState| (state.entries().len(), state.stored().entries.len());
    assert_eq!(counts(&machine.kept.state()), (0, 1));
    disk.fill(false);
    assert_eq!(machine.ask(&ask(EntryChange::State(BackendState::Drain)), false), Some(true));
    let (next, _) = Machine::start(&disk, files.load(&with(1)), START);
    let fields: Vec<EntryField> =
        next.kept.state().entries().iter().map(|entry| entry.change.field()).collect();
    assert_eq!(fields, [EntryField::State], "what was over does not come back");
    assert!(next.kept.state().next_id() > 2);
}

#[test]
fn a_record_that_this_version_does_not_know_refuses_changes_and_is_left_alone() {
    let disk = MemoryDisk::default();
    let mut store = MemoryStore(disk.clone());
    store.load().unwrap();
    store.append(br#"{"put":[{"id":1,"target":"a","field":"colour","value":"red","author":"uid 0","at_ms":1}],"next":2}"#).unwrap();
    let size = store.size();
    let (kept, _) = KeptOverlay::load(Box::new(MemoryStore(disk.clone())));
    assert!(kept.state().fault().unwrap().contains("does not know"), "{:?}", kept.state());
    assert!(kept.keep(&[], &[], 5, StoreReach::All).is_err());
    assert_eq!(MemoryStore(disk).size(), size);
}
