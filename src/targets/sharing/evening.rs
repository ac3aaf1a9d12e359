//! How many backends each node prefers, by what is asked of it: one node says once a second which of them move.
//!
//! A node's share of the backends is to be its share of the demand (requests under way and waiting, measured), less what it hands over to others (`spilling`), at least a few. Demand by itself goes up and down: so it is
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
            // The step itself is no memory of the demand that comes after it.
            self.demand.iter_mut().for_each(|one| *one = Demand::of(one.fast));
            (self.seconds, self.changed) = (LASTS, 0);
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
        let parts = spilling::parts(&demand, count as f64 * f64::from(scene.places));
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
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const CALM: Duration = Duration::from_secs(12);

    /// Nodes that share forty backends, and who evens them.
    struct Lab {
        nodes: Vec<String>,
        identities: Vec<String>,
        moved: BTreeMap<String, String>,
        evening: Evening,
        seconds: u64,
        is_leaving: Vec<bool>,
        held: Vec<usize>,
    }

    impl Lab {
        fn new(nodes: &[&str]) -> Lab {
            Lab {
                nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
                identities: (0..40).map(|number| format!("web/b{number}")).collect(),
                moved: BTreeMap::new(),
                evening: Evening::default(),
                seconds: 100,
                is_leaving: vec![false; nodes.len()],
                held: Vec::new(),
            }
        }

        fn owners(&self) -> Owners {
            Owners::of(&self.nodes, self.identities.iter().map(String::as_str), &self.moved)
        }

        /// One more second with this demand: which moved.
        fn tick(&mut self, demand: &[u32]) -> Vec<usize> {
            self.seconds += 1;
            let (owners, identities) = (self.owners(), self.identities.clone());
            let identities: Vec<&str> = identities.iter().map(String::as_str).collect();
            let (held, is_leaving) = (self.held.clone(), self.is_leaving.clone());
            let scene = EveningScene {
                owners: &owners,
                identities: &identities,
                places: 1,
                is_leaving: &is_leaving,
                is_busy: &|place| place % 2 == 0,
                is_free: &|place| !held.contains(&place),
                calm: CALM,
            };
            let now = Tick(self.seconds * SECOND);
            self.evening.hear(demand);
            let moves = self.evening.tick(&scene, now);
            self.evening.moved(&identities, &moves, now);
            for one in &moves {
                assert_ne!(owners.numbers()[one.backend], one.to);
                self.moved.insert(identities[one.backend].to_owned(), self.nodes[one.to].clone());
            }
            moves.into_iter().map(|one| one.backend).collect()
        }

        /// Until nothing has moved for a while: how many did at once at most, and how long it took.
        fn settle(&mut self, demand: &[u32]) -> (usize, u64) {
            let (mut most, mut last, begun) = (0, self.seconds, self.seconds);
            while self.seconds < last + 60 {
                let moved = self.tick(demand).len();
                most = most.max(moved);
                if moved > 0 {
                    last = self.seconds;
                }
            }
            let took = last - begun;
            // What is left is moved once chance is known to do nothing here.
            (0..300).for_each(|_| drop(self.tick(demand)));
            (most, took)
        }
    }

    #[test]
    fn backends_go_where_requests_come_a_tenth_at_a_time_and_idle_ones_first() {
        let mut lab = Lab::new(&["a", "b"]);
        assert!((0..12).all(|_| lab.tick(&[20, 0]).is_empty()), "the nodes have just come");
        let (first, before) = (lab.tick(&[20, 0]), lab.owners());
        assert!(first.len() == 4 && first.iter().all(|place| place % 2 == 1), "{first:?}");
        let (most, took) = lab.settle(&[20, 0]);
        assert!(most <= 4 && took <= 10, "{most} at once, {took} s");
        assert_eq!((lab.owners().counts(), before.counts().len()), (vec![36, 4], 2));
        // And back, some seconds after it is the other one that is asked.
        let (most, took) = lab.settle(&[0, 20]);
        assert!(most <= 4 && took <= 15, "{most} at once, {took} s");
        assert_eq!(lab.owners().counts(), [4, 36]);
        assert!((0..200).all(|second| lab.tick(&[second % 2, 20 + second % 3]).is_empty()), "it rests");
    }

    #[test]
    fn what_is_held_and_what_has_just_moved_stays_and_nobody_is_helped_who_has_nothing_to_do() {
        let mut lab = Lab::new(&["a", "b"]);
        lab.held = (0..40).collect();
        assert_eq!(lab.settle(&[20, 0]).0, 0);
        lab.held.clear();
        let mut last = HashMap::new();
        for second in 0..200 {
            let demand = if second / 6 % 2 == 0 { [30, 0] } else { [0, 30] };
            for place in lab.tick(&demand) {
                let before = last.insert(place, second);
                assert!(before.is_none_or(|before| second - before >= 10), "{place}: {before:?}, {second}");
            }
        }
        let mut lab = Lab::new(&["a", "b", "c"]);
        assert_eq!(lab.settle(&[0, 0, 0]).0, 0, "nobody is asked");
        let mut few = Lab::new(&["a", "b"]);
        few.identities.truncate(3);
        assert_eq!(few.settle(&[20, 0]).0, 0, "all prefer all");
    }

    #[test]
    fn a_node_that_is_to_be_drained_gives_all_of_its_backends_away_and_gets_them_back() {
        let mut lab = Lab::new(&["a", "b", "c"]);
        lab.settle(&[10, 10, 10]);
        lab.is_leaving[1] = true;
        lab.settle(&[10, 0, 10]);
        assert_eq!(lab.owners().counts(), [20, 0, 20]);
        lab.is_leaving[1] = false;
        lab.settle(&[10, 10, 10]);
        // Also while nobody asks for anything; but for one that is held there, which keeps nobody from coming to rest.
        lab.held = vec![(0..40).find(|place| lab.owners().owner(*place) == Some("b")).unwrap()];
        lab.is_leaving[1] = true;
        lab.settle(&[0, 0, 0]);
        assert_eq!(lab.owners().counts()[1], 1);
        assert!((0..200).all(|_| lab.tick(&[10, 0, 10]).is_empty()));
        (lab.is_leaving[1], lab.held) = (false, Vec::new());
        lab.settle(&[10, 10, 10]);
        let counts = lab.owners().counts();
        assert!(counts.iter().all(|count| (12..=15).contains(count)), "{counts:?}");
        // Where all are, somebody serves all the same.
        lab.is_leaving = vec![true; 3];
        assert_eq!(lab.settle(&[10, 10, 10]).0, 0);
        // One that goes changes nothing for as long as a lease, and its own are those of who is first.
        lab.nodes.pop();
        lab.is_leaving = vec![false; 2];
        assert!((0..12).all(|_| lab.tick(&[20, 0]).is_empty()));
        assert_eq!(lab.owners().counts().iter().sum::<usize>(), 40);
    }
}
