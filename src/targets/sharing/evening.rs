//! How many backends each node prefers, by what is asked of it: one node says once a second which of them move.
//!
//! A node's share of the backends is to be its share of the demand (requests under way and waiting, measured), less half of what it hands over to others (`spilling`), at least a few. Demand by itself goes up and down: so it is
//! looked at twice, over two seconds and over a minute. What differs by much more than chance would have it for three seconds is a change, and from then on
//! only what came after it counts; everything else is chance, of which little is believed. Moves begin when a node is off by more than chance explains, and end when none is by
//! half of that. What chance does is measured: how far demand goes by itself, and for how long it remembers itself, since requests that take long make it slow.
//!
//! Invariants:
//!
//! 1. A backend that has moved does not move again for ten seconds, and one that is not free to (held by hand, down, or behind others) not at all: it counts for nothing.
//! 2. At most a tenth of the backends moves at once.
//! 3. Nothing moves until the nodes have been the same for as long as their lease, and for ten seconds.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::owners::Owners;
use super::shares::shares;
use super::spilling;
use crate::tick::Tick;

/// How often [`Evening::tick`] is called.
pub const EVENING: Duration = Duration::from_secs(1);
/// Seconds over which demand is looked at for changes.
const FAST: f64 = 2.0;
/// Seconds over which it is looked at otherwise.
const SLOW: f64 = 60.0;
/// So many times more than chance a change differs; and so many times what chance does to the other one is no reason to move.
const CHANGE: f64 = 4.0;
const CHANCE: f64 = 3.5;
/// For how many looks demand remembers itself at least and at most, and before anything was seen of it: requests that take long are there for many of them.
const MEMORY: [f64; 2] = [1.0, 60.0];
const UNSEEN: f64 = 2.0;
/// Requests by which what changes differs at least, where chance does nothing to it.
const LEAST: f64 = 0.5;
/// A change is followed at once, as if it had lasted for so many seconds.
const SOON: f64 = 15.0;
/// Seconds after which a change is one.
const LASTS: u32 = 3;
/// As many of these as come after it: it begins somewhere in the first one.
const AFTER: u32 = LASTS - 1;
/// The part of its backends by which a node may be off, and backends by which any may: rounding alone makes it almost one.
const OFF: f64 = 0.05;
const ROUNDED: f64 = 0.75;
/// Backends that a node has at least, where there are enough.
const FLOOR: usize = 4;
/// Of so many backends one moves at a time.
const PART: usize = 10;
/// How long a backend that has moved stays.
const REST: Duration = Duration::from_secs(10);
/// Where fewer requests than this are under way on all nodes together, nobody is to be helped.
const IDLE: f64 = 1.0;

/// What is to be evened.
pub struct EveningScene<'a> {
    /// Who prefers what.
    pub owners: &'a Owners,
    /// What the backends are called, by place.
    pub identities: &'a [&'a str],
    /// Requests that a backend takes at once.
    pub places: u32,
    /// Whether it is to be drained.
    pub is_leaving: &'a [bool],
    /// Whether a backend has requests.
    pub is_busy: &'a dyn Fn(usize) -> bool,
    /// Whether it gets requests, and may move.
    pub is_free: &'a dyn Fn(usize) -> bool,
    /// How long the nodes have to be the same.
    pub calm: Duration,
}

/// A backend that is to be preferred by another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerMove {
    /// Its place.
    pub backend: usize,
    /// The node's, in [`Owners::nodes`].
    pub to: usize,
}

/// Demand of one node.
#[derive(Clone, Copy, Debug)]
struct Demand {
    fast: f64,
    slow: f64,
    /// How far from that it goes by itself, squared.
    spread: f64,
    /// How far it goes in one look and in four of them, squared; jumps count for no more than chance would have it at most.
    steps: [f64; 2],
    /// The latest looks.
    last: [f64; 4],
}

impl Demand {
    /// Of which nothing is known but how much it is.
    fn of(count: f64) -> Demand {
        Demand { fast: count, slow: count, spread: count, steps: [0.0; 2], last: [count; 4] }
    }

    /// Takes in how much it is now; of what was known so much goes.
    fn look(&mut self, count: f64, share: f64) {
        let most = 9.0 * self.slow.max(1.0);
        let mix = |old: &mut f64, new: f64| *old += (new - *old) * share;
        mix(&mut self.steps[0], (count - self.last[3]).powi(2).min(most));
        mix(&mut self.steps[1], (count - self.last[0]).powi(2).min(most));
        self.last.rotate_left(1);
        self.last[3] = count;
        self.fast += (count - self.fast) * (1.0 - (-1.0 / FAST).exp());
        mix(&mut self.spread, (count - self.slow).powi(2));
        mix(&mut self.slow, count);
    }

    /// How much it was in the latest seconds.
    fn lately(&self) -> f64 {
        self.last[self.last.len() - AFTER as usize..].iter().sum::<f64>() / f64::from(AFTER)
    }

    /// What chance does to the mean of it over so many seconds. Requests that come by themselves spread as much as there are of them on average; those of clients that
    /// wait for their answers less; and what spreads more is none.
    fn chance(&self, memory: f64, seconds: f64) -> f64 {
        (self.spread.min(self.slow.max(1.0)) * (memory / seconds.max(1.0)).min(1.0)).sqrt()
    }
}

/// What is remembered of one target.
#[derive(Debug)]
pub struct Evening {
    nodes: Vec<String>,
    demand: Vec<Demand>,
    /// Seconds since the latest change.
    seconds: u32,
    /// For how many of them demand has been another.
    changed: u32,
    /// For how many looks demand remembers itself.
    memory: f64,
    /// Backends are moving.
    moves: bool,
    /// What was asked of the nodes since the last second, added up, and how often that was heard.
    heard: (Vec<f64>, f64),
    /// Since when the nodes are these.
    since: Tick,
    moved: HashMap<String, Tick>,
}

impl Default for Evening {
    fn default() -> Evening {
        Evening {
            nodes: Vec::new(),
            demand: Vec::new(),
            seconds: 0,
            changed: 0,
            memory: UNSEEN,
            moves: false,
            heard: (Vec::new(), 0.0),
            since: Tick::ZERO,
            moved: HashMap::new(),
        }
    }
}

impl Evening {
    /// Requests are under way and waiting on each node of [`Owners::nodes`]. Said several times a second: what is short comes and goes in between.
    pub fn hear(&mut self, demand: &[u32]) {
        let (sums, times) = &mut self.heard;
        if sums.len() != demand.len() {
            (*sums, *times) = (vec![0.0; demand.len()], 0.0);
        }
        sums.iter_mut().zip(demand).for_each(|(sum, count)| *sum += f64::from(*count));
        *times += 1.0;
    }

    /// One more second has passed: what moves.
    pub fn tick(&mut self, scene: &EveningScene<'_>, now: Tick) -> Vec<OwnerMove> {
        let nodes = scene.owners.nodes();
        let (sums, times) = std::mem::take(&mut self.heard);
        if sums.len() != nodes.len() {
            return Vec::new();
        }
        let heard: Vec<f64> = sums.iter().map(|sum| sum / times).collect();
        if self.nodes != nodes {
            let demand = heard.iter().map(|count| Demand::of(*count));
            *self = Evening {
                nodes: nodes.to_vec(),
                demand: demand.collect(),
                since: now,
                moved: std::mem::take(&mut self.moved),
                ..Evening::default()
            };
        }
        self.look(&heard);
        self.moved.retain(|_, at| now.since(*at) < REST);
        let is_idle = self.demand.iter().map(|one| one.slow).sum::<f64>() < IDLE
            && !scene.is_leaving.iter().any(|leaves| *leaves);
        let is_calm = now.since(self.since) >= scene.calm.max(REST);
        if !scene.owners.are_shared() || !is_calm || is_idle {
            return Vec::new();
        }
        let WantedShares { whole: wanted, exact, bands } = self.wanted(scene);
        let mut counts = vec![0; nodes.len()];
        let owners = scene.owners.numbers().iter().enumerate();
        owners.filter(|(place, _)| (scene.is_free)(*place)).for_each(|(_, owner)| counts[*owner] += 1);
        let off = |node: usize| (exact[node] - counts[node] as f64).abs();
        let ends = |band: f64| if band > 0.0 { (band / 2.0).max(ROUNDED / 2.0) } else { 0.0 };
        let bound = |node: usize| if self.moves { ends(bands[node]) } else { bands[node] };
        self.moves = (0..nodes.len()).any(|node| off(node) > bound(node));
        if !self.moves {
            return Vec::new();
        }
        let moves = self.choose(scene, &wanted, counts.clone());
        // No more can be done about what is left.
        self.moves = !moves.is_empty() || wanted != counts;
        moves
    }

    /// These have moved.
    pub fn moved(&mut self, identities: &[&str], moves: &[OwnerMove], now: Tick) {
        for one in moves {
            self.moved.insert(identities[one.backend].to_owned(), now);
        }
    }

    /// For how many looks demand remembers itself, by how much further it goes in four of them than in one.
    fn remembers(&self) -> f64 {
        let [one, four] =
            [0, 1].map(|which| self.demand.iter().map(|demand| demand.steps[which]).sum::<f64>());
        let [least, most] = MEMORY;
        if one <= 0.0 {
            return self.memory;
        }
        // With `alike` between one look and the next these are as 1 to 1 + alike + alike² + alike³.
        let further = (four / one).clamp(1.0, 4.0);
        let (mut low, mut high) = (0.0_f64, 1.0_f64);
        for _ in 0..20 {
            let alike = f64::midpoint(low, high);
            let is_less = 1.0 + alike + alike.powi(2) + alike.powi(3) < further;
            *(if is_less { &mut low } else { &mut high }) = alike;
        }
        ((1.0 + low) / (1.0 - low).max(f64::EPSILON)).clamp(least, most)
    }

    /// Takes in what is asked of the nodes.
    fn look(&mut self, demand: &[f64]) {
        self.seconds = self.seconds.saturating_add(1);
        // A mean of all that was seen, until that is long enough.
        let share = (1.0 - (-1.0 / SLOW).exp()).max(1.0 / f64::from(self.seconds));
        let (memory, mut is_other) = (self.memory, false);
        for (one, count) in self.demand.iter_mut().zip(demand) {
            one.look(*count, share);
            is_other |= (one.fast - one.slow).abs() > CHANGE * one.chance(memory, 2.0 * FAST).max(LEAST);
        }
        self.changed = if is_other { self.changed + 1 } else { 0 };
        if !is_other && f64::from(self.seconds) >= SOON {
            self.memory = self.remembers();
        }
        if self.changed >= LASTS {
            // What was before it says nothing of what comes after it, and nor does the step itself.
            self.demand.iter_mut().for_each(|one| *one = Demand::of(one.lately()));
            (self.seconds, self.changed) = (AFTER, 0);
        }
    }

    /// How many backends each node is to have, and by how many it may be off.
    fn wanted(&self, scene: &EveningScene<'_>) -> WantedShares {
        let count = (0..scene.owners.numbers().len()).filter(|place| (scene.is_free)(*place)).count();
        let all_leave = scene.is_leaving.iter().all(|leaves| *leaves);
        let stays: Vec<bool> = scene.is_leaving.iter().map(|leaves| !leaves || all_leave).collect();
        let staying = stays.iter().filter(|stays| **stays).count().max(1);
        let floor = (count / staying).clamp(0, FLOOR);
        let demand: Vec<f64> =
            self.demand.iter().zip(&stays).map(|(one, stays)| if *stays { one.slow } else { 0.0 }).collect();
        // About half of the way to where all are used alike: from there on what is handed over takes longer than it is worth.
        let alike = spilling::parts(&demand, count as f64 * f64::from(scene.places));
        let parts: Vec<f64> =
            alike.iter().zip(&demand).map(|(alike, asked)| f64::midpoint(*alike, *asked)).collect();
        let (whole_numbers, exact) = shares(count, &parts, &stays, floor);
        let whole: f64 = demand.iter().sum::<f64>().max(IDLE);
        let memory = self.memory;
        let seconds = f64::from(self.seconds).clamp(SOON, 2.0 * SLOW);
        let band = |node: usize| {
            let by_chance = CHANCE * self.demand[node].chance(memory, seconds) * count as f64 / whole;
            // Who leaves is to have none.
            if stays[node] { (exact[node] * OFF).max(by_chance).max(ROUNDED) } else { 0.0 }
        };
        let bands = (0..exact.len()).map(band).collect();
        WantedShares { whole: whole_numbers, exact, bands }
    }

    /// From whom to whom, and which.
    fn choose(&self, scene: &EveningScene<'_>, wanted: &[usize], mut counts: Vec<usize>) -> Vec<OwnerMove> {
        let owners = scene.owners.numbers();
        let mut free: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (place, owner) in owners.iter().enumerate() {
            let rests = self.moved.contains_key(scene.identities[place]);
            if counts[*owner] > wanted[*owner] && !rests && (scene.is_free)(place) {
                free.entry(*owner).or_default().push(place);
            }
        }
        // Those that are busy last, so first in what is taken from behind.
        free.values_mut().for_each(|places| places.sort_by_key(|place| !(scene.is_busy)(*place)));
        let most = (owners.len() / PART).max(1);
        let mut moves = Vec::new();
        while moves.len() < most {
            let surplus = |node: &usize| counts[*node].saturating_sub(wanted[*node]);
            let donor = free.iter().filter(|(_, places)| !places.is_empty()).map(|(node, _)| *node);
            let Some(donor) = donor.filter(|node| surplus(node) > 0).max_by_key(surplus) else { break };
            let lack = |node: &usize| wanted[*node].saturating_sub(counts[*node]);
            let Some(to) = (0..counts.len()).filter(|node| lack(node) > 0).max_by_key(lack) else { break };
            let Some(places) = free.get_mut(&donor) else { break };
            // One that is at home there need not be said to be elsewhere.
            let is_busy = places.last().is_some_and(|place| (scene.is_busy)(*place));
            let at_home = places.iter().rposition(|place| {
                scene.owners.home(*place) == Some(to) && (scene.is_busy)(*place) == is_busy
            });
            let backend = places.remove(at_home.unwrap_or(places.len() - 1));
            counts[donor] -= 1;
            counts[to] += 1;
            moves.push(OwnerMove { backend, to });
        }
        moves
    }
}

/// How many backends nodes are to have.
struct WantedShares {
    /// In whole numbers.
    whole: Vec<usize>,
    /// As it comes out.
    exact: Vec<f64>,
    /// By how many each may be off.
    bands: Vec<f64>,
}

#[cfg(test)]
mod tests;
