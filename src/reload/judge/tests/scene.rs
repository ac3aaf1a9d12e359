//! A process with some targets that are going to be touched and some that are not, and what is counted of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::super::past::TrafficPast;
use super::super::sample::{JudgedObject, ObjectTally, Roster, RosterEntry, TrafficSample};
use super::super::touched::Touched;
use super::super::worse::Worse;
use super::super::{Judge, LOOK};
use crate::tick::Tick;

pub(super) struct Scene {
    pub(super) past: TrafficPast,
    pub(super) now: TrafficSample,
}

pub(super) fn target(number: usize) -> JudgedObject {
    JudgedObject::Target(format!("t{number}").into())
}

pub(super) fn listener(number: usize) -> JudgedObject {
    JudgedObject::Listener(format!("l{number}").into())
}

pub(super) fn those(objects: &[JudgedObject]) -> Touched {
    Touched { every_listener: false, objects: objects.iter().cloned().collect::<BTreeSet<_>>() }
}

pub(super) fn entry(object: JudgedObject, number: u16, leads_to: Vec<usize>) -> RosterEntry {
    RosterEntry { object, number, leads_to }
}

impl Scene {
    /// With so many targets that are touched and so many others.
    pub(super) fn new(touched: usize, others: usize) -> Scene {
        let target = |number: usize| entry(target(number), u16::try_from(number).expect("few"), Vec::new());
        Scene::of((0..touched + others).map(target).collect())
    }

    pub(super) fn of(entries: Vec<RosterEntry>) -> Scene {
        let tallies = vec![ObjectTally::default(); entries.len()];
        let now = TrafficSample { at: Tick(1), roster: Arc::new(Roster::new(entries)), tallies };
        let mut past = TrafficPast::default();
        past.note(now.clone());
        Scene { past, now }
    }

    /// `come` says what ends of each object, and how much of that is bad.
    fn step(&mut self, span: Duration, mut come: impl FnMut(usize) -> (u32, u32)) {
        self.now.at = self.now.at.after(span);
        for (place, tally) in self.now.tallies.iter_mut().enumerate() {
            let (ended, bad) = come(place);
            tally.ends.ended += u64::from(ended);
            tally.ends.bad += u64::from(bad);
        }
    }

    /// So many seconds before the change; `come` is asked for each object with the second.
    pub(super) fn pass(&mut self, seconds: usize, mut come: impl FnMut(usize) -> (u32, u32)) {
        for second in 0..seconds {
            self.step(Duration::from_secs(1), |_| come(second));
            self.past.note(self.now.clone());
        }
    }

    /// Puts a config into force that touches these.
    pub(super) fn apply(&mut self, touched: &[JudgedObject]) -> Judge {
        Judge::new(&self.past, &those(touched), self.now.clone())
    }

    /// Goes on for so long, or until something is worse: then when, in milliseconds.
    pub(super) fn trial(
        &mut self,
        judge: &mut Judge,
        millis: u64,
        mut come: impl FnMut(usize) -> (u32, u32),
    ) -> Option<(u64, Worse)> {
        let begun = self.now.at;
        while self.now.at.since(begun) < Duration::from_millis(millis) {
            self.step(LOOK, &mut come);
            if let Some(worse) = judge.look(self.now.clone()) {
                let millis = self.now.at.since(begun).as_millis();
                return Some((u64::try_from(millis).expect("short"), worse));
            }
        }
        None
    }
}
