//! Changes, edits of the file, reloads, restarts, full disks and crashes at any byte, in any order: the same as in the model.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::model::{File, Model, ModelChange, ModelKind, ModelServer};
use super::*;
use crate::config::model::{BackendAddress, BackendConfig, BackendState};
use crate::config::{Flags, Loaded, load_text};
use crate::overlay::{
    AddedBackend, Author, EntryChange, EntryField, Laid, ObjectName, Wish, WishList, change, lay, reconcile,
};
use crate::store::memory::{MemoryDisk, MemoryStore};

/// As many as take some seconds without optimisation; the variable says otherwise.
const INTERLEAVINGS: u64 = 1_500;
const STEPS: usize = 24;
const START: u64 = 1_800_000_000_000;
const STATES: [BackendState; 3] = [BackendState::Up, BackendState::Drain, BackendState::Down];

/// SplitMix64.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn of<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize].clone()
    }
}

/// What a process has in force, without a process.
struct Machine {
    kept: KeptOverlay,
    file: Arc<Loaded>,
    laid: Laid,
}

impl Machine {
    fn start(disk: &MemoryDisk, file: Arc<Loaded>, now: u64) -> Machine {
        let (kept, found) = KeptOverlay::load(Box::new(MemoryStore(disk.clone())));
        assert_eq!((kept.fault(), found.damaged), (None, 0));
        let mut machine = Machine { kept, laid: lay(&file, &[]), file: Arc::clone(&file) };
        machine.read(file, now);
        machine
    }

    /// Says whether all of it is kept.
    fn read(&mut self, file: Arc<Loaded>, now: u64) -> bool {
        let left = reconcile(self.kept.entries(), &file, now).entries;
        (self.laid, self.file) = (lay(&file, &left), file);
        let next = self.kept.next_id();
        self.kept.hold(&left, next);
        self.kept.catch_up().is_ok()
    }

    /// `None`: it is declined; else whether it is kept, and so done.
    fn ask(&mut self, ask: &WishList) -> Option<bool> {
        let (kept, aside) = (&self.kept, &self.laid.aside);
        let changed = change(&self.file, kept.entries(), aside, kept.next_id(), ask).ok()?;
        let is_kept = self.kept.keep(&changed.entries, &[], changed.next_id).is_ok();
        if is_kept {
            self.laid = changed.laid;
        }
        Some(is_kept)
    }
}

/// Backends, limit, and all changes with their times.
type Seen = (Option<Vec<ModelServer>>, String, Vec<String>);

fn port(address: &BackendAddress) -> u16 {
    match address {
        BackendAddress::Host { port, .. } => *port,
        BackendAddress::Unix(_) => 0,
    }
}

fn seen(machine: &Machine) -> Seen {
    let config = &machine.laid.loaded.config;
    let target = config.targets.iter().find(|target| target.name == "web");
    let server = |one: &BackendConfig| {
        ModelServer(one.name.clone(), port(&one.address), one.portion.weight, one.state.as_str().to_owned())
    };
    let servers = target.map(|target| {
        let mut servers: Vec<ModelServer> = target.backends.iter().map(server).collect();
        servers.sort();
        servers
    });
    let limit = target.map_or_else(String::new, |target| {
        match (target.resilience.adaptive, target.resilience.max_in_flight) {
            (true, _) => "adaptive".to_owned(),
            (false, limit) => limit.map_or("off".to_owned(), |limit| limit.to_string()),
        }
    });
    let entry = |entry: &OverlayEntry| {
        let (kind, value) = match &entry.change {
            EntryChange::Added(added) => ("added", added.weight.unwrap_or(1).to_string()),
            EntryChange::Removed => ("removed", String::new()),
            EntryChange::State(state) => ("state", state.as_str().to_owned()),
            EntryChange::Weight(weight) => ("weight", weight.to_string()),
            EntryChange::MaxInFlight(_) => ("limit", entry.change.value().unwrap()),
        };
        let name = entry.object.backend.clone().unwrap_or_default();
        told(kind, &name, &value, entry.expires_ms, entry.gone_since_ms)
    };
    (servers, limit, machine.kept.entries().iter().map(entry).collect())
}

fn told(kind: ModelKind, name: &str, value: &str, until: Option<u64>, gone: Option<u64>) -> String {
    format!("{kind} {name} {value} until {until:?}, gone {gone:?}")
}

fn expected(model: &Model) -> Seen {
    let (servers, limit, _) = model.force();
    let change =
        |(kind, one): &(ModelKind, ModelChange)| told(kind, &one.name, &one.value, one.until, one.gone);
    (servers, limit, model.changes.iter().map(change).collect())
}

fn some_file(chance: &mut Draws) -> File {
    if chance.below(8) == 0 {
        return (None, String::new());
    }
    let mut ports = vec![1, 2, 3, 4];
    let mut servers = Vec::new();
    for number in 1..=4u16 {
        if chance.below(3) == 0 {
            continue;
        }
        // Mostly its own port, so that files have much in common.
        let own = ports.iter().position(|port| *port == number).filter(|_| chance.below(6) > 0);
        let port = ports.remove(own.unwrap_or(0));
        let (weight, state) = (chance.of(&[1, 1, 1, 2, 0]), chance.of(&["up", "up", "up", "drain"]));
        servers.push(ModelServer(format!("b{number}"), port, weight, state.to_owned()));
    }
    match servers.first_mut() {
        Some(first) => first.2 = first.2.max(1),
        None => servers.push(ModelServer("b1".into(), 1, 1, "up".into())),
    }
    (Some(servers), chance.of(&["off", "off", "5", "adaptive"]).to_owned())
}

struct Files(HashMap<String, Arc<Loaded>>);

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
        Arc::clone(self.0.entry(text.clone()).or_insert_with(|| load(&text)))
    }
}

/// What somebody might ask for, in the words of both.
fn some_wish(chance: &mut Draws, now: u64) -> (ModelKind, ModelChange, bool, WishList) {
    let number = chance.below(5) + 1;
    let name = format!("b{number}");
    let until = (chance.below(4) == 0).then(|| now + chance.of(&[1_000, 3_600_000, 3 * 86_400_000]));
    let object = ObjectName::backend("web", &name);
    let of = |name: &str, value: &str| ModelChange {
        name: name.into(),
        value: value.into(),
        until,
        ..ModelChange::default()
    };
    let (kind, change, takes_back, wish) = match chance.below(10) {
        0 | 1 => {
            let weight = chance.below(4) as u16;
            let wish = Wish::Set(object, EntryChange::Weight(weight));
            ("weight", of(&name, &weight.to_string()), false, wish)
        }
        2 | 3 => {
            let state = chance.of(&STATES);
            ("state", of(&name, state.as_str()), false, Wish::Set(object, EntryChange::State(state)))
        }
        4 => {
            let limit = chance.of(&[None, Some(5), Some(9)]);
            let text = limit.map_or("off".to_owned(), |limit: u32| limit.to_string());
            let wish = Wish::Set(ObjectName::target("web"), EntryChange::MaxInFlight(limit));
            ("limit", of("", &text), false, wish)
        }
        5 => {
            let (kind, field, object) = match chance.below(3) {
                0 => ("weight", EntryField::Weight, object),
                1 => ("state", EntryField::State, object),
                _ => ("limit", EntryField::MaxInFlight, ObjectName::target("web")),
            };
            let name = object.backend.clone().unwrap_or_default();
            (kind, of(&name, ""), true, Wish::Clear(object, field))
        }
        6 | 7 => ("removed", of(&name, ""), false, Wish::Remove(object)),
        _ => {
            let port = if chance.below(4) == 0 { chance.below(6) as u16 + 1 } else { number as u16 };
            let weight = chance.of(&[None, None, Some(0), Some(2)]);
            let backend = AddedBackend { url: format!("http://h:{port}"), weight, ..AddedBackend::default() };
            let wish = Wish::Add { target: "web".into(), name: Some(name.clone()), backend };
            let change = ModelChange { port, ..of(&name, &weight.unwrap_or(1).to_string()) };
            ("added", change, false, wish)
        }
    };
    let ask = WishList { wishes: vec![wish], author: Author::Uid(0), at_ms: now, expires_ms: until };
    (kind, change, takes_back, ask)
}

#[test]
fn whatever_happens_in_whichever_order_it_is_as_the_documentation_says() {
    let count = std::env::var("EVENKEEL_INTERLEAVINGS").ok().and_then(|text| text.parse().ok());
    let mut files = Files(HashMap::new());
    for seed in 0..count.unwrap_or(INTERLEAVINGS) {
        interleave(seed, &mut files);
    }
}

fn interleave(seed: u64, files: &mut Files) {
    let (mut chance, disk, mut now) = (Draws(seed), MemoryDisk::default(), START);
    let mut file = some_file(&mut chance);
    let mut machine = Machine::start(&disk, files.load(&file), now);
    let mut model = Model { file: file.clone(), ..Model::default() };
    // What a process would find that begins now; a full disk leaves it behind.
    let (mut on_disk, mut is_full) = (Model::default(), false);
    let mut history = vec![format!("{file:?}")];
    for _ in 0..STEPS {
        now += chance.of(&[0, 0, 1_000, 3_600_000, 86_400_000, 4 * 86_400_000]);
        let step = chance.below(20);
        if step < 3 {
            disk.crash_behind(chance.below(400) as usize);
        }
        // What would be if it were done; a crash may leave it done.
        let mut next = model.clone();
        let is_kept;
        if chance.below(2) == 0 {
            let (kind, change, takes_back, ask) = some_wish(&mut chance, now);
            history.push(format!("{now}: {kind} {change:?} {takes_back} crash {}", step < 3));
            let is_done = next.ask(kind, &change, takes_back);
            let outcome = machine.ask(&ask);
            assert_eq!(outcome.is_some(), is_done, "{seed}: {history:#?}\n{:#?}", seen(&machine));
            is_kept = outcome == Some(true);
            if is_kept {
                model.clone_from(&next);
            }
        } else {
            if chance.below(2) == 0 {
                file = some_file(&mut chance);
            }
            history.push(format!("{now}: read {file:?} crash {}", step < 3));
            next.read(file.clone(), now);
            model.clone_from(&next);
            is_kept = machine.read(files.load(&file), now);
        }
        let has_crashed = disk.restart();
        if is_kept {
            on_disk = Model { file: File::default(), ..model.clone() };
        }
        if has_crashed || step == 4 {
            if chance.below(2) == 0 {
                file = some_file(&mut chance);
            }
            history.push(format!("{now}: restart, crash {has_crashed}, {file:?}"));
            machine = Machine::start(&disk, files.load(&file), now);
            // Nobody was told, so it may be there or not, as a whole.
            let candidates = if has_crashed { vec![on_disk.clone(), next] } else { vec![on_disk.clone()] };
            let mut found = candidates.into_iter().map(|mut candidate| {
                candidate.read(file.clone(), now);
                candidate
            });
            let fits = found.find(|candidate| expected(candidate) == seen(&machine));
            model = fits.unwrap_or_else(|| panic!("{seed}: {history:#?}\n{:#?}", seen(&machine)));
            if !is_full {
                on_disk = Model { file: File::default(), ..model.clone() };
            }
        }
        assert_eq!(seen(&machine), expected(&model), "{seed}: {history:#?}");
        if step > 17 {
            is_full = !is_full;
            disk.fill(is_full);
        }
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
    let mut machine = Machine::start(&disk, files.load(&with(1)), START);
    let ask = |change| WishList {
        wishes: vec![Wish::Set(ObjectName::backend("web", "b2"), change)],
        author: Author::Uid(0),
        at_ms: START,
        expires_ms: None,
    };
    assert_eq!(machine.ask(&ask(EntryChange::Weight(5))), Some(true));
    disk.fill(true);
    let Err(unkept) = machine.kept.keep(&[], &[], 9) else { panic!("it is full") };
    assert!(unkept.is_full);
    assert!(!machine.read(files.load(&with(3)), START), "it serves on");
    assert_eq!((machine.kept.entries().len(), machine.kept.stored.len()), (0, 1));
    disk.fill(false);
    assert_eq!(machine.ask(&ask(EntryChange::State(BackendState::Drain))), Some(true));
    let next = Machine::start(&disk, files.load(&with(1)), START);
    let fields: Vec<EntryField> = next.kept.entries().iter().map(|entry| entry.change.field()).collect();
    assert_eq!(fields, [EntryField::State], "what was over does not come back");
    assert!(next.kept.next_id() > 2);
}

#[test]
fn a_record_that_this_version_does_not_know_refuses_changes_and_is_left_alone() {
    let disk = MemoryDisk::default();
    let mut store = MemoryStore(disk.clone());
    store.load().unwrap();
    store.append(br#"{"put":[{"id":1,"target":"a","field":"colour","value":"red","author":"uid 0","at_ms":1}],"next":2}"#).unwrap();
    let size = store.size();
    let (mut kept, _) = KeptOverlay::load(Box::new(MemoryStore(disk.clone())));
    assert!(kept.fault().unwrap().contains("does not know"), "{:?}", kept.fault());
    assert!(kept.keep(&[], &[], 5).is_err());
    assert_eq!(MemoryStore(disk).size(), size);
}
