//! What is known of the process: the rows that the stream has told, and what comes of them each second. Pure.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::rows::{BackendSeen, CountedRow, ListenerSeen, ProcessSeen, TargetSeen, TroubleSeen};
use super::track::Track;

/// A message of the stream.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ToldRows {
    at_ms: u64,
    up_ms: u64,
    rows: BTreeMap<String, Value>,
    gone: Vec<String>,
    #[serde(skip)]
    is_whole: bool,
}

impl ToldRows {
    /// Of a message of this kind; `None`: it tells nothing that is shown.
    pub(super) fn of(kind: &str, data: &str) -> Option<ToldRows> {
        let is_whole = match kind {
            "whole" => true,
            "changes" => false,
            _ => return None,
        };
        let told = serde_json::from_str(data).ok()?;
        Some(ToldRows { is_whole, ..told })
    }
}

/// A row, and what comes of its counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Followed<R> {
    pub(super) row: R,
    pub(super) track: Track,
}

impl<R: CountedRow + DeserializeOwned> Followed<R> {
    /// Takes another value of the row. One that is not understood leaves what is known.
    fn put(&mut self, row: Value) {
        if let Ok(row) = serde_json::from_value(row) {
            self.row = row;
        }
    }

    fn follow(&mut self, seconds: f64) {
        self.track.follow(self.row.counts(), seconds);
    }
}

/// A target with its backends by their names.
#[derive(Clone, Debug, Default)]
pub(super) struct TargetKnown {
    pub(super) own: Followed<TargetSeen>,
    pub(super) backends: BTreeMap<String, Followed<BackendSeen>>,
}

/// The state of everything, as the latest frame has it.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    /// When that was by the clock of the process, in milliseconds since 1970; 0: nothing is known yet.
    pub(super) at_ms: u64,
    /// The same since it began, by a clock that nobody sets.
    up_ms: u64,
    /// Frames since the process was found, or has begun anew.
    pub(super) frames: u64,
    pub(super) process: ProcessSeen,
    pub(super) troubles: Vec<TroubleSeen>,
    pub(super) listeners: BTreeMap<String, Followed<ListenerSeen>>,
    pub(super) targets: BTreeMap<String, TargetKnown>,
}

/// What a row is about, by its name.
enum Subject<'n> {
    Process,
    Troubles,
    Listener(&'n str),
    Target(&'n str),
    /// No target has a slash in its name.
    Backend(&'n str, &'n str),
    Unknown,
}

impl<'n> Subject<'n> {
    fn of(name: &'n str) -> Subject<'n> {
        match name.split_once('/') {
            None if name == "process" => Subject::Process,
            None if name == "troubles" => Subject::Troubles,
            Some(("listener", name)) => Subject::Listener(name),
            Some(("target", name)) => Subject::Target(name),
            Some(("backend", name)) => match name.split_once('/') {
                Some((target, backend)) => Subject::Backend(target, backend),
                None => Subject::Unknown,
            },
            _ => Subject::Unknown,
        }
    }
}

impl Known {
    /// Goes on with what was told. True: by another process than the one before, which counts from zero.
    pub(super) fn take(&mut self, told: ToldRows) -> bool {
        let ToldRows { at_ms, up_ms, rows, gone, is_whole } = told;
        let before = self.process.identity();
        if is_whole {
            self.keep_only(|name| rows.contains_key(name));
        }
        for (name, row) in rows {
            self.put(&name, row);
        }
        for name in &gone {
            self.remove(name);
        }
        let is_other = self.at_ms > 0 && before != self.process.identity();
        if is_other {
            self.forget_counts();
        }
        let is_next = self.at_ms > 0 && !is_other;
        let seconds =
            if is_next { super::track::to_float(up_ms.saturating_sub(self.up_ms)) / 1_000.0 } else { 0.0 };
        self.frames += 1;
        (self.at_ms, self.up_ms) = (at_ms, up_ms);
        self.follow(seconds);
        is_other
    }

    /// A backend.
    pub(super) fn backend(&self, target: &str, backend: &str) -> Option<&Followed<BackendSeen>> {
        self.targets.get(target)?.backends.get(backend)
    }

    /// How long ago a point in time was, in milliseconds.
    pub(super) fn age_ms(&self, since_ms: u64) -> u64 {
        self.at_ms.saturating_sub(since_ms)
    }

    fn put(&mut self, name: &str, row: Value) {
        match Subject::of(name) {
            Subject::Process => self.process = serde_json::from_value(row).unwrap_or_default(),
            Subject::Troubles => self.troubles = serde_json::from_value(row).unwrap_or_default(),
            Subject::Listener(name) => self.listeners.entry(name.to_owned()).or_default().put(row),
            Subject::Target(name) => self.targets.entry(name.to_owned()).or_default().own.put(row),
            Subject::Backend(target, name) => {
                let target = self.targets.entry(target.to_owned()).or_default();
                target.backends.entry(name.to_owned()).or_default().put(row);
            }
            Subject::Unknown => {}
        }
    }

    fn remove(&mut self, name: &str) {
        match Subject::of(name) {
            Subject::Listener(name) => drop(self.listeners.remove(name)),
            Subject::Target(name) => drop(self.targets.remove(name)),
            Subject::Backend(target, name) => {
                self.targets.get_mut(target).map(|target| target.backends.remove(name));
            }
            Subject::Process | Subject::Troubles | Subject::Unknown => {}
        }
    }

    fn keep_only(&mut self, is_there: impl Fn(&str) -> bool) {
        self.listeners.retain(|name, _| is_there(&format!("listener/{name}")));
        self.targets.retain(|name, _| is_there(&format!("target/{name}")));
        for (target, known) in &mut self.targets {
            known.backends.retain(|name, _| is_there(&format!("backend/{target}/{name}")));
        }
    }

    fn follow(&mut self, seconds: f64) {
        self.listeners.values_mut().for_each(|listener| listener.follow(seconds));
        for target in self.targets.values_mut() {
            target.own.follow(seconds);
            target.backends.values_mut().for_each(|backend| backend.follow(seconds));
        }
    }

    fn forget_counts(&mut self) {
        self.frames = 0;
        self.listeners.values_mut().for_each(|listener| listener.track = Track::default());
        for target in self.targets.values_mut() {
            target.own.track = Track::default();
            target.backends.values_mut().for_each(|backend| backend.track = Track::default());
        }
    }
}
