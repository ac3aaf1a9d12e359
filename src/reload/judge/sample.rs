//! What is counted of all that is in force, at one moment.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::message::{ListenerId, TargetId};
use crate::snapshot::Snapshot;
use crate::telemetry::cells::{Cells, EndTally};
use crate::tick::Tick;

/// What is judged: a listener or a target, by its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JudgedObject {
    /// A listener.
    Listener(Arc<str>),
    /// A target.
    Target(Arc<str>),
}

impl fmt::Display for JudgedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JudgedObject::Listener(name) => write!(f, "listener {name}"),
            JudgedObject::Target(name) => write!(f, "target {name}"),
        }
    }
}

/// One object of a roster.
#[derive(Clone, Debug)]
pub struct RosterEntry {
    /// Which one.
    pub object: JudgedObject,
    /// Under which number it is counted: another one stands for another object of the same name.
    pub number: u16,
    /// Of a listener: the places of the targets that its requests may go to.
    pub leads_to: Vec<usize>,
}

/// What is in force, in the order in which it is counted.
#[derive(Debug, Default)]
pub struct Roster {
    objects: Vec<RosterEntry>,
    places: HashMap<JudgedObject, usize>,
}

impl Roster {
    /// Of these.
    #[must_use]
    pub fn new(objects: Vec<RosterEntry>) -> Roster {
        let places = objects.iter().enumerate().map(|(place, entry)| (entry.object.clone(), place)).collect();
        Roster { objects, places }
    }

    /// Of what `snapshot` has: its targets, then its listeners.
    #[must_use]
    pub fn of(snapshot: &Snapshot) -> Roster {
        let targets = snapshot.targets.iter().map(|target| RosterEntry {
            object: JudgedObject::Target(Arc::clone(&target.name)),
            number: target.id.0,
            leads_to: Vec::new(),
        });
        let places: HashMap<TargetId, usize> =
            snapshot.targets.iter().enumerate().map(|(place, target)| (target.id, place)).collect();
        let listeners = snapshot.listeners.iter().map(|listener| RosterEntry {
            object: JudgedObject::Listener(listener.config.name.as_str().into()),
            number: listener.id.0,
            leads_to: listener
                .targets()
                .iter()
                .filter_map(|target| places.get(&target.id).copied())
                .collect(),
        });
        Roster::new(targets.chain(listeners).collect())
    }

    /// All of them.
    #[must_use]
    pub fn objects(&self) -> &[RosterEntry] {
        &self.objects
    }

    /// Where this one stands; `None`: it is not there.
    #[must_use]
    pub fn place(&self, object: &JudgedObject) -> Option<usize> {
        self.places.get(object).copied()
    }
}

/// What is counted of one object, since it is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectTally {
    /// What has ended.
    pub ends: EndTally,
    /// Of a target: what has begun and not ended.
    pub under_way: u64,
}

/// What is counted of everything at one moment.
#[derive(Clone, Debug)]
pub struct TrafficSample {
    /// When.
    pub at: Tick,
    /// Of what.
    pub roster: Arc<Roster>,
    /// In its order.
    pub tallies: Vec<ObjectTally>,
}

impl TrafficSample {
    /// What has ended of the object at `place` since `before`. Nothing if that is not known: the object was not there, or its number
    /// has been given to another one.
    #[must_use]
    pub fn ended_since(&self, before: &TrafficSample, place: usize) -> EndTally {
        let (Some(entry), Some(now)) = (self.roster.objects.get(place), self.tallies.get(place)) else {
            return EndTally::default();
        };
        let was = if Arc::ptr_eq(&self.roster, &before.roster) {
            Some(place)
        } else {
            before.roster.place(&entry.object)
        };
        let was = was.filter(|&was| before.roster.objects[was].number == entry.number);
        let Some(was) = was.and_then(|was| before.tallies.get(was)) else {
            // What is new has counted nothing before it was there, but its number may have been somebody's.
            return EndTally::default();
        };
        let (now, was) = (now.ends, was.ends);
        if now.ended < was.ended || now.bad < was.bad {
            return EndTally::default();
        }
        EndTally { ended: now.ended - was.ended, bad: now.bad - was.bad }
    }
}

/// Takes samples. It knows what was in force at the latest one, so that this is not made anew each time.
#[derive(Debug, Default)]
pub struct Sampler {
    latest: Option<(u64, Arc<Roster>)>,
}

impl Sampler {
    /// What `workers` have counted at `now` of all that `snapshot` has.
    #[must_use]
    pub fn sample(&mut self, snapshot: &Snapshot, workers: &[Arc<Cells>], now: Tick) -> TrafficSample {
        let roster = match &self.latest {
            Some((number, roster)) if *number == snapshot.number => Arc::clone(roster),
            _ => Arc::new(Roster::of(snapshot)),
        };
        self.latest = Some((snapshot.number, Arc::clone(&roster)));
        let mut tallies = Vec::with_capacity(roster.objects.len());
        tallies.extend(snapshot.targets.iter().map(|target| {
            let ends = sum(workers, |cells, tally| cells.add_target_ends(target.id, tally));
            ObjectTally { ends, under_way: target.under_way() }
        }));
        tallies.extend(snapshot.listeners.iter().map(|listener| {
            let id: ListenerId = listener.id;
            ObjectTally {
                ends: sum(workers, |cells, tally| cells.add_listener_ends(id, tally)),
                under_way: 0,
            }
        }));
        TrafficSample { at: now, roster, tallies }
    }
}

fn sum(workers: &[Arc<Cells>], add: impl Fn(&Cells, &mut EndTally)) -> EndTally {
    let mut tally = EndTally::default();
    workers.iter().for_each(|cells| add(cells, &mut tally));
    tally
}
