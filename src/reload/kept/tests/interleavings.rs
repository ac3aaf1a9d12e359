//! Changes, edits of the file, reloads, trials, restarts, full disks and crashes at any byte, in any order: the same as in the model.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

use super::super::model::{File, Model, ModelEntry, ModelServer, ModelWish};
use super::{Files, Machine, START};
use crate::config::model::{BackendAddress, BackendConfig, BackendState};
use crate::overlay::{
    AddedBackend, Author, EntryChange, EntryField, ObjectName, OverlayEntry, Wish, WishList,
};
use crate::store::memory::MemoryDisk;

/// As many as take some seconds without optimisation; the variable says otherwise.
const INTERLEAVINGS: u64 = 1_000;
const STEPS: usize = 24;
const WEEK: u64 = 7 * 86_400_000;
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

/// Backends, limit, and all entries with their times; then those that are paused.
type Seen = (Option<Vec<ModelServer>>, String, Vec<String>, Vec<String>);

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
            EntryChange::Added(added) => ('a', format!("{} {}", added.url, added.weight.unwrap_or(1))),
            EntryChange::Removed => ('r', String::new()),
            EntryChange::State(state) => ('s', state.as_str().to_owned()),
            EntryChange::Weight(weight) => ('w', weight.to_string()),
            EntryChange::MaxInFlight(_) => ('l', entry.change.value().unwrap()),
        };
        let name = entry.object.backend.clone().unwrap_or_default();
        let is_aside = entry.gone_since_ms.is_none() && machine.laid.aside.contains_key(&entry.id);
        told(kind, &name, &value, (entry.expires_ms, entry.gone_since_ms), is_aside)
    };
    let all = |entries: &[OverlayEntry]| entries.iter().map(entry).collect();
    let state = machine.kept.state();
    (servers, limit, all(state.entries()), all(state.paused()))
}

fn told(
    kind: char,
    name: &str,
    value: &str,
    (until, gone): (Option<u64>, Option<u64>),
    is_aside: bool,
) -> String {
    let gone = gone.map_or(String::new(), |since| format!(", gone since {since}"));
    format!("{kind} {name} {value} until {until:?}{gone}, aside {is_aside}")
}

fn expected(model: &Model) -> Seen {
    let (servers, limit) = model.in_force();
    let (_, aside) = model.laid();
    let entry = |(number, kind, server, value, _, until, dropped): &ModelEntry| {
        let value = match kind {
            'a' => format!("http://h:{} {}", server.1, server.2),
            'r' => String::new(),
            _ => value.clone(),
        };
        let times = (*until, dropped.map(|end| end - WEEK));
        told(*kind, &server.0, &value, times, aside.contains(number))
    };
    let mut paused = model.3.clone();
    paused.sort_by_key(|entry| entry.0);
    (servers, limit, model.1.iter().map(entry).collect(), paused.iter().map(entry).collect())
}

fn some_file(chance: &mut Draws) -> File {
    if chance.below(8) == 0 {
        return (None, String::new());
    }
    let mut ports = vec![1, 2, 3, 4];
    let absent = chance.of(&[1, 1, 2]);
    let mut servers = Vec::new();
    for number in 1..=4u16 {
        if chance.below(3) < absent {
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

/// What somebody might ask for, in the words of both.
fn some_wish(chance: &mut Draws) -> (ModelWish, Wish) {
    let number = chance.below(5) as u16 + 1;
    let name = chance.of(&[format!("b{number}"), format!("b{number}"), format!("h:{number}")]);
    let (object, web) = (ObjectName::backend("web", &name), ObjectName::target("web"));
    match chance.below(10) {
        0 | 1 => {
            let weight = chance.below(4) as u16;
            (ModelWish::Weight(name, Some(weight)), Wish::Set(object, EntryChange::Weight(weight)))
        }
        2 | 3 => {
            let state = chance.of(&STATES);
            let text = Some(state.as_str().to_owned());
            (ModelWish::State(name, text), Wish::Set(object, EntryChange::State(state)))
        }
        4 => {
            let limit = chance.of(&[None, Some(5), Some(9)]);
            let text = limit.map_or("off".to_owned(), |limit: u32| limit.to_string());
            (ModelWish::Limit(Some(text)), Wish::Set(web, EntryChange::MaxInFlight(limit)))
        }
        5 => match chance.below(3) {
            0 => (ModelWish::Weight(name, None), Wish::Clear(object, EntryField::Weight)),
            1 => (ModelWish::State(name, None), Wish::Clear(object, EntryField::State)),
            _ => (ModelWish::Limit(None), Wish::Clear(web, EntryField::MaxInFlight)),
        },
        6 | 7 => (ModelWish::Remove(name), Wish::Remove(object)),
        _ => {
            let port = if chance.below(4) == 0 { chance.below(6) as u16 + 1 } else { number };
            let name = (chance.below(3) > 0).then(|| format!("b{number}"));
            let weight = chance.of(&[None, None, None, Some(0), Some(1), Some(2)]);
            let url = format!("http://h:{port}");
            let backend = AddedBackend { url, weight: weight.map(u32::from), ..AddedBackend::default() };
            let wish = Wish::Add { target: "web".into(), name: name.clone(), backend };
            (ModelWish::Add(name, port, weight), wish)
        }
    }
}

/// A config on trial.
struct Trial {
    /// What was in force before, and what lay on the disk then.
    before: (File, File),
    text: File,
}

/// Both, side by side.
struct Interleaving<'a> {
    seed: u64,
    chance: Draws,
    files: &'a mut Files,
    history: Vec<String>,
    /// How often.
    happened: BTreeMap<&'static str, u64>,
    now: u64,
    disk: MemoryDisk,
    machine: Machine,
    model: Model,
    /// What lies on the disk, and what was read of it last.
    file: File,
    read: File,
    trial: Option<Trial>,
    /// What a process would find that begins now; a full disk leaves it behind.
    on_disk: Model,
    /// What one might find after a crash in this step: nobody was told, so it is there or not, as a whole.
    maybe: Vec<Model>,
}

impl Interleaving<'_> {
    fn begin(seed: u64, files: &mut Files) -> Interleaving<'_> {
        let (mut chance, disk) = (Draws(seed), MemoryDisk::default());
        let file = some_file(&mut chance);
        let (machine, _) = Machine::start(&disk, files.load(&file), START);
        let mut model = Model::default();
        model.read(file.clone(), START);
        let history = vec![format!("{file:?}")];
        let (read, on_disk) = (file.clone(), model.clone());
        let (trial, maybe, now) = (None, Vec::new(), START);
        Interleaving {
            seed,
            chance,
            files,
            history,
            happened: BTreeMap::new(),
            now,
            disk,
            machine,
            model,
            file,
            read,
            trial,
            on_disk,
            maybe,
        }
    }

    fn tell(&mut self, what: &'static str, more: &dyn Debug) {
        self.history.push(format!("{}: {what} {more:?}", self.now));
        *self.happened.entry(what).or_default() += 1;
    }

    /// One of so many.
    fn one_in(&mut self, count: u64) -> bool {
        self.chance.below(count) == 0
    }

    fn edit(&mut self) {
        self.file = some_file(&mut self.chance);
        self.tell("edit", &self.file.clone());
    }

    /// Something was done; says whether the process lives.
    fn done(&mut self, is_kept: bool) -> bool {
        self.maybe.push(self.model.clone());
        if is_kept {
            self.on_disk = self.model.clone();
        }
        !self.disk.has_crashed()
    }

    fn time_passes(&mut self) -> bool {
        self.model.pass(self.now);
        let is_kept = self.machine.pass(self.now);
        self.done(is_kept)
    }

    fn read(&mut self, file: File) -> bool {
        self.tell(if file.0.is_some() { "read" } else { "target gone" }, &file);
        self.model.read(file.clone(), self.now);
        let is_kept = self.machine.read(self.files.load(&file), self.now, false);
        self.read = file;
        self.done(is_kept)
    }

    fn read_on_trial(&mut self, text: File) -> bool {
        self.tell("on trial", &text);
        self.model.apply(text.clone(), self.now);
        let is_kept = self.machine.read(self.files.load(&text), self.now, true);
        self.read = text;
        self.done(is_kept)
    }

    fn change(&mut self) {
        let count = self.chance.of(&[1, 1, 1, 2, 3]);
        let (words, wishes): (Vec<_>, Vec<_>) = (0..count).map(|_| some_wish(&mut self.chance)).unzip();
        let lasts = self.chance.of(&[None, None, None, Some(1_000), Some(3_600_000), Some(3 * 86_400_000)]);
        let (expires_ms, refuses) = (lasts.map(|span| self.now + span), self.one_in(12));
        self.tell(if count > 1 { "several changes" } else { "change" }, &(&words, expires_ms));
        let ask = WishList { wishes, author: Author::Uid(0), at_ms: self.now, expires_ms };
        let mut next = self.model.clone();
        let is_right = next.change(&words, expires_ms, self.now);
        let outcome = self.machine.ask(&ask, refuses);
        assert_eq!(outcome.is_some(), is_right, "{}: {:#?}\n{:#?}", self.seed, self.history, self.now());
        self.maybe.push(next.clone());
        match outcome {
            Some(true) => {
                self.model.clone_from(&next);
                self.on_disk = next;
            }
            Some(false) => self.tell("not done", &refuses),
            None => self.tell("declined", &words),
        }
    }

    fn reload(&mut self) {
        if self.one_in(2) {
            self.edit();
        }
        // Also where the file is wrong, or the process can't go over to it.
        let is_refused = self.trial.is_some() || self.one_in(6);
        if is_refused {
            self.tell("reload refused", &self.trial.is_some());
        } else {
            self.read(self.file.clone());
        }
    }

    fn apply(&mut self) {
        if self.trial.is_some() {
            return;
        }
        let text = some_file(&mut self.chance);
        let before = (self.read.clone(), self.file.clone());
        if !self.read_on_trial(text.clone()) {
            return;
        }
        match self.chance.below(4) {
            // For good, at once; or it would be, but its file can't be replaced.
            0 => {
                self.file = text.clone();
                self.confirmed(text);
            }
            1 => drop(self.read(before.0)),
            _ => self.trial = Some(Trial { before, text }),
        }
    }

    fn confirmed(&mut self, text: File) {
        self.machine.kept.state().pause(&[]);
        self.read(text);
    }

    fn end_trial(&mut self) {
        let Some(Trial { before, text }) = self.trial.take() else { return };
        match self.chance.below(4) {
            0 => {
                self.read_on_trial(text.clone());
                self.trial = Some(Trial { before, text });
            }
            1 if self.file == before.1 => {
                self.tell("confirm", &());
                self.file = text.clone();
                self.confirmed(text);
            }
            // An edit would be lost.
            1 => {
                self.tell("confirm refused", &self.file.clone());
                self.trial = Some(Trial { before, text });
            }
            _ => {
                self.tell("rollback", &());
                if self.read(before.0) && self.file != before.1 {
                    self.read(self.file.clone());
                }
            }
        }
    }

    fn restart(&mut self, has_crashed: bool) {
        if self.one_in(2) {
            self.edit();
        }
        self.tell(if has_crashed { "crash" } else { "restart" }, &());
        let (machine, is_kept) = Machine::start(&self.disk, self.files.load(&self.file), self.now);
        (self.machine, self.trial, self.read) = (machine, None, self.file.clone());
        let mut candidates = vec![self.on_disk.clone()];
        if has_crashed {
            candidates.append(&mut self.maybe);
        }
        for candidate in &mut candidates {
            candidate.read(self.file.clone(), self.now);
        }
        let found = candidates.into_iter().find(|candidate| expected(candidate) == self.now());
        self.model = found.unwrap_or_else(|| panic!("{}: {:#?}\n{:#?}", self.seed, self.history, self.now()));
        self.done(is_kept);
    }

    fn now(&self) -> Seen {
        seen(&self.machine)
    }

    fn step(&mut self) {
        self.now += self.chance.of(&[0, 0, 1_000, 3_600_000, 86_400_000, 4 * 86_400_000]);
        if self.one_in(4) {
            let bytes = self.chance.below(500) as usize;
            self.disk.crash_behind(bytes);
        }
        self.maybe = vec![self.on_disk.clone()];
        if self.time_passes() {
            match self.chance.below(20) {
                0..=9 => self.change(),
                10..=13 => self.reload(),
                14 | 15 => self.apply(),
                16 | 17 => self.end_trial(),
                18 => self.edit(),
                _ => {}
            }
        }
        let has_crashed = self.disk.restart();
        if has_crashed || self.one_in(20) {
            self.restart(has_crashed);
        }
        let seen = self.now();
        assert_eq!(seen, expected(&self.model), "{}: {:#?}", self.seed, self.history);
        let some = |what: &str| seen.2.iter().any(|entry| entry.contains(what));
        for (what, is) in
            [("set aside", some("aside true")), ("gone", some("gone since")), ("paused", !seen.3.is_empty())]
        {
            *self.happened.entry(what).or_default() += u64::from(is);
        }
        if self.one_in(10) {
            let is_full = self.one_in(2);
            self.tell("full disk", &is_full);
            self.disk.fill(is_full);
        }
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "who runs it at full length is to know what was tried")]
fn whatever_happens_in_whichever_order_it_is_as_the_documentation_says() {
    let count = std::env::var("EVENKEEL_INTERLEAVINGS").ok().and_then(|text| text.parse().ok());
    let count = count.unwrap_or(INTERLEAVINGS);
    let mut files = Files(HashMap::new());
    let mut happened: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in 0..count {
        for (what, times) in interleave(seed, &mut files) {
            *happened.entry(what).or_default() += times;
        }
    }
    println!("{count} interleavings of {STEPS} steps: equal; {happened:?}");
    for what in ["target gone", "paused", "set aside", "gone", "rollback", "confirm", "crash", "not done"] {
        assert!(happened.get(what).copied().unwrap_or(0) >= count / 100, "{what} is hardly tried");
    }
}

/// Says what has happened, and how often.
fn interleave(seed: u64, files: &mut Files) -> BTreeMap<&'static str, u64> {
    let mut interleaving = Interleaving::begin(seed, files);
    for _ in 0..STEPS {
        interleaving.step();
    }
    interleaving.happened
}
