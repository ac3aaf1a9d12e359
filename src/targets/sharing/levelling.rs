//! Backends that take one request at a time are used alike, from second to second, where requests are short: who has had less than others is next, whichever node gave it what
//! it had.
//!
//! Backends follow demand within seconds ([`evening`](super::evening)), and what comes to a node goes up and down faster than that. Where a request is over before others
//! could be told of it, what they count is how many there were: each node says on which backends it has begun how many lately, so all know how much each of them has had. By
//! that free backends stand in order, and of what comes to a node whose own have had more than their share some go to those of others.
//!
//! What goes there may find somebody: of a backend of another node nobody knows at that moment whether it is free. So a node sends no more there than it must: what is beyond a
//! hundredth of a backend's time is no difference. And it may keep the other node from its own: what finds those taken goes to others, back to this node's at last. Two nodes would
//! send each other all that they have, and each the more, the more it gets. So what a node sends though one of its own is free is bounded by what comes to it: what is beyond the
//! part of its own backends, and a little of it beside that.

use std::collections::HashMap;
use std::time::Duration;

use super::uses::{LATELY, Uses};
use crate::targets::{Backend, Target};
use crate::tick::Tick;

/// By which part of its time a backend may be used more than others.
const ALIKE: f64 = 0.01;
/// Where own ones are used for less than this part of their time they are almost always free, and none of them differs from another by more than that.
const IDLE: f64 = 0.2;
/// What is beyond that goes to others within this time, where it is little: more takes as long as what comes to the node is counted, see [`LevelSums::allowed`].
const WITHIN: Duration = Duration::from_millis(200);
/// Which part of what comes to a node may go to others beside what is beyond the part of its own. That makes good what others send here that find their own taken: where one node of
/// five gets ten times as much and all are used for 70 % of their time, that is 5 of 100 of what comes to it.
const BESIDE: f64 = 0.08;

/// What others say of a target, for one node.
pub struct LevelScene<'a> {
    /// How many requests others have begun on the backend at each place lately, see [`LATELY`].
    pub lately: &'a dyn Fn(usize) -> f64,
    /// Whether somebody may use it of whom nobody hears, see [`doubts`](super::doubts).
    pub is_doubted: &'a dyn Fn(usize) -> bool,
    /// Where this node stands among so many that share the target.
    pub node: (usize, usize),
    /// How long a request stays on a backend.
    pub stay: Duration,
}

/// How much own backends and those of others have had, all in all.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::targets) struct LevelSums {
    /// Requests on own ones, and how many these are.
    pub(in crate::targets) own: (f64, usize),
    /// The same of others.
    pub(in crate::targets) others: (f64, usize),
}

impl LevelSums {
    /// Requests that own ones have had lately beyond their part, and beyond what makes no difference.
    fn beyond(&self, stay: Duration) -> f64 {
        let ((own, count), (others, other_count)) = (self.own, self.others);
        let part = count as f64 / (count + other_count) as f64;
        // As many as own ones can do, all in all.
        let most = count as f64 * LATELY.as_secs_f64() / stay.as_secs_f64().max(f64::EPSILON);
        if own < IDLE * most { 0.0 } else { (own - (own + others) * part - ALIKE * most).max(0.0) }
    }

    /// How many requests may go to others within `passed`, of so many that the node has `begun` lately, wherever.
    fn allowed(&self, begun: f64, passed: Duration) -> f64 {
        let ((own, count), (others, other_count)) = (self.own, self.others);
        let part = count as f64 / (count + other_count) as f64;
        let surplus = (begun - (own + others) * part).max(0.0);
        (surplus + BESIDE * begun) * passed.as_secs_f64() / LATELY.as_secs_f64()
    }
}

/// What a backend has had.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::targets) struct Had {
    /// Requests of all nodes lately.
    pub(in crate::targets) requests: f64,
    /// By which part of a request it stands behind those that this node begins with, if it is another node's.
    pub(in crate::targets) apart: f64,
    /// Somebody may use it of whom nobody hears, and it is another node's.
    pub(in crate::targets) is_doubted: bool,
}

/// What backends that stand together have had, as they are to stand: which is new and has no part in it.
///
/// One that has had less than half of what they have had on average has just come, or is not well, and nobody knows how much it should have. It takes its turn as others do, and
/// has nothing to catch up: else it would have everything until it had as much. One that is doubted has had nobody knows how much, and comes after all others.
pub(in crate::targets) fn standing(had: &[Had]) -> Vec<(f64, bool)> {
    let known = || had.iter().filter(|had| !had.is_doubted);
    let mean = known().map(|had| had.requests).sum::<f64>() / known().count().max(1) as f64;
    let stands = |had: &Had| match had.requests < mean / 2.0 {
        _ if had.is_doubted => (f64::INFINITY, true),
        true => (mean, true),
        false => (had.requests, false),
    };
    had.iter().map(stands).collect()
}

/// What is remembered of one target.
#[derive(Debug, Default)]
pub struct Levelling {
    uses: Uses,
    at: Option<Tick>,
    /// What is left of those that are to go to others: a part of one, and those that were to and have not come.
    left: f64,
}

impl Levelling {
    /// How many of the next requests go to others, where it is like this and the node has `begun` so many lately.
    fn spills(&mut self, sums: &LevelSums, stay: Duration, begun: f64, passed: Duration) -> u32 {
        let beyond = sums.beyond(stay);
        if beyond <= 0.0 {
            self.left = 0.0;
            return 0;
        }
        let share = 1.0 - (-passed.as_secs_f64() / WITHIN.as_secs_f64()).exp();
        // Where few come, the next word of somebody comes before the request that was to go. It is made good, but nothing piles up.
        let left = self.left.min(1.0 + sums.allowed(begun, WITHIN));
        let spills = (beyond * share).min(sums.allowed(begun, passed)) + left;
        self.left = spills.fract();
        spills as u32
    }
}

impl Target {
    /// Whether its backends can be used alike from second to second: each takes one request at a time, so it is free or it is not, and no client stays with the one that it was
    /// given.
    #[must_use]
    pub fn is_levelled(&self) -> bool {
        self.limit() == Some(1) && self.pins.is_none()
    }

    /// Has free backends stand in the order of how much each has had lately, and says how many of the next requests go to those of others first. `None`: what others
    /// have had is not known, or over long before it matters: none goes there that finds one of its own free.
    pub fn level(&self, levelling: &mut Levelling, scene: Option<&LevelScene<'_>>, now: Tick) {
        let Some(scene) = scene else {
            *levelling = Levelling::default();
            self.state.spill(0);
            return;
        };
        levelling.uses.look(self, now);
        let passed = levelling.at.replace(now).map_or(Duration::ZERO, |before| now.since(before));
        let (node, nodes) = (scene.node.0, scene.node.1.max(1));
        let had = |place: usize, backend: &Backend| Had {
            requests: levelling.uses.of(backend.id) + (scene.lately)(place),
            // Each node begins with others of them: they would else all send to the same ones before they hear of one another.
            apart: ((place + node) % nodes) as f64 / nodes as f64,
            is_doubted: !backend.is_own() && (scene.is_doubted)(place),
        };
        let all = self.backends.iter().enumerate();
        let had: HashMap<_, _> = all.map(|(place, backend)| (backend.id, had(place, backend))).collect();
        let sums = self.state.order_by(&had);
        levelling.left += f64::from(self.state.spill(0));
        let begun = self.backends.iter().map(|backend| levelling.uses.of(backend.id)).sum();
        let spills = sums.map_or(0, |sums| levelling.spills(&sums, scene.stay, begun, passed));
        self.state.spill(spills);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::{Balance, OwnerMode, Policy, Resilience, TargetConfig};
    use crate::targets::fixtures::{target, unprobed};
    use crate::targets::{Ask, Chance, Heard, Outcome, Pick, Tried};

    const NOW: Tick = Tick(1_000_000_000);
    const STAY: Duration = Duration::from_millis(20);

    fn after(millis: u64) -> Tick {
        NOW.after(Duration::from_millis(millis))
    }

    fn shared(algorithm: Balance, backends: u16, own: u32) -> std::sync::Arc<Target> {
        let balance = Policy { owner: OwnerMode::Soft, ..algorithm.into() };
        let resilience = Resilience { max_in_flight: Some(1), queue: 10, ..Resilience::default() };
        let target = target(&TargetConfig { balance, resilience, ..unprobed(backends) });
        target.state.prefer(|backend| backend.id.0 < own, NOW);
        target
    }

    /// Serves one request: which backend had it.
    fn serve(target: &Target, now: Tick) -> usize {
        let (tried, chance) = (Tried::new(), Chance::seeded(1));
        let Pick::Lease(lease) = target.pick(&Ask::new(&tried, &chance, now)) else {
            panic!("some are free")
        };
        let place = lease.backend().id.0 as usize;
        lease.note_answer(Heard::GOOD, now);
        lease.finish(Outcome::Success, now);
        place
    }

    fn level(target: &Target, levelling: &mut Levelling, lately: &dyn Fn(usize) -> f64, now: Tick) {
        target.level(
            levelling,
            Some(&LevelScene { lately, is_doubted: &|_| false, node: (0, 2), stay: STAY }),
            now,
        );
    }

    #[test]
    fn what_own_ones_have_had_beyond_their_part_goes_to_others_bit_by_bit() {
        let sums = LevelSums { own: (40.0, 2), others: (60.0, 8) };
        // A hundredth of 1.4 s is 0.7 requests of 20 ms, for each of two.
        assert!((sums.beyond(STAY) - 18.6).abs() < 1e-9);
        let mut levelling = Levelling::default();
        let many = levelling.spills(&sums, STAY, 1_000.0, WITHIN);
        assert_eq!(many, 11, "1 - 1/e of them");
        // What is left of a request is not lost.
        let few: u32 = (0..100).map(|_| levelling.spills(&sums, STAY, 1_000.0, WITHIN / 100)).sum();
        assert!((17..=19).contains(&few), "{few}");
        assert_eq!(levelling.spills(&sums, STAY, 1_000.0, Duration::ZERO), 0);
        // 28 requests are a fifth of what both can do.
        assert!(LevelSums { own: (28.1, 2), others: (0.0, 8) }.beyond(STAY) > 20.0);
        for own in [(27.9, 2), (15.0, 2), (0.0, 2), (0.0, 0)] {
            assert_eq!(LevelSums { own, others: (0.0, 8) }.beyond(STAY), 0.0, "{own:?}");
        }
        for own in [(15.0, 2), (0.0, 2), (0.0, 0)] {
            assert_eq!(LevelSums { own, ..sums }.beyond(STAY), 0.0, "{own:?}");
        }
        assert_eq!(LevelSums::default().beyond(STAY), 0.0);
        assert_eq!(sums.beyond(Duration::ZERO), 0.0, "of what takes no time there is never too much");
    }

    /// Found in five processes: one that had more than its part sent others nearly half of what came to it, they found their own taken and sent all they had back, and so it stayed.
    #[test]
    fn what_others_send_is_not_sent_back_again_and_again() {
        // Its own have had 150 beyond their part of 350, and 300 came to it: the rest is of others.
        let sums = LevelSums { own: (500.0, 7), others: (500.0, 13) };
        let is = |begun, most: f64| (sums.allowed(begun, LATELY) - most).abs() < 1e-9;
        assert!(is(300.0, 24.0), "a little of what came to it");
        assert!(is(400.0, 50.0 + 32.0), "and what is beyond its part of 350");
        let of = |begun| {
            let mut levelling = Levelling::default();
            (0..70).map(|_| levelling.spills(&sums, STAY, begun, LATELY / 70)).sum::<u32>()
        };
        assert!((23..=24).contains(&of(300.0)) && (81..=82).contains(&of(400.0)), "however much there is");
        assert!(of(1_000.0) > 500, "where it came to this node, all of it goes, and soon");
    }

    #[test]
    fn what_was_to_go_to_others_and_has_not_come_is_made_good_and_nothing_piles_up() {
        let (target, mut levelling) = (shared(Balance::LeastConnections, 10, 2), Levelling::default());
        level(&target, &mut levelling, &|_| 0.0, NOW);
        for _ in 0..40 {
            assert!(serve(&target, NOW) < 2);
        }
        // Somebody says something each 10 ms, and nothing comes meanwhile.
        (1..=35).for_each(|turn| level(&target, &mut levelling, &|_| 5.0, after(turn * 10)));
        let spilt = (0..30).filter(|_| serve(&target, after(350)) >= 2).count();
        assert!((2..=5).contains(&spilt), "{spilt}");
        (36..=400).for_each(|turn| level(&target, &mut levelling, &|_| 5.0, after(turn * 10)));
        let spilt = (0..30).filter(|_| serve(&target, after(4_000)) >= 2).count();
        assert!(spilt <= 1, "{spilt}: what was is over");
    }

    /// Found by cutting a node off: what it preferred had had less than all else, as far as others knew, so what was to go to others went there, and three were on one place.
    #[test]
    fn what_goes_to_others_though_own_ones_are_free_goes_to_those_that_nobody_doubts() {
        for algorithm in [Balance::LeastConnections, Balance::LeastBusy] {
            for (doubted, least) in [(0..0, 0..4), (4..7, 7..10)] {
                let (target, mut levelling) = (shared(algorithm, 10, 4), Levelling::default());
                let lately = |place: usize| if (4..7).contains(&place) { 2.0 } else { 3.0 };
                let mut level = |now: Tick| {
                    let is_doubted = |place: usize| doubted.contains(&place);
                    let scene =
                        LevelScene { lately: &lately, is_doubted: &is_doubted, node: (0, 2), stay: STAY };
                    target.level(&mut levelling, Some(&scene), now);
                };
                level(NOW);
                let mut served = [0; 10];
                for turn in 1..=400 {
                    level(after(turn * 10));
                    served[serve(&target, after(turn * 10))] += 1;
                }
                let of = |places: std::ops::Range<usize>| served[places].iter().sum::<u32>();
                assert!(of(4..10) > 10, "{algorithm:?}: {served:?}");
                assert!(doubted.is_empty() == (of(4..7) > 0), "{algorithm:?}, {doubted:?}: {served:?}");
                assert!(of(least.clone()) > 0);
                // They are there where nobody else is.
                let (tried, chance, now) = (Tried::new(), Chance::seeded(1), after(5_000));
                let leases: Vec<_> = (0..10)
                    .map(|_| match target.pick(&Ask::new(&tried, &chance, now)) {
                        Pick::Lease(lease) => lease,
                        other => panic!("{other:?}"),
                    })
                    .collect();
                let last: Vec<u32> = leases[7..].iter().map(|lease| lease.backend().id.0).collect();
                assert!(doubted.is_empty() || last.iter().all(|place| (4..7).contains(place)), "{last:?}");
                leases.into_iter().for_each(|lease| lease.finish(Outcome::Success, now));
            }
        }
    }

    #[test]
    fn who_has_had_less_of_all_nodes_is_next() {
        for algorithm in [Balance::LeastConnections, Balance::LeastBusy] {
            let (target, mut levelling) = (shared(algorithm, 6, 3), Levelling::default());
            level(&target, &mut levelling, &|_| 0.0, NOW);
            // Others have had more on the first own one.
            let lately = |place: usize| if place == 0 { 8.0 } else { 5.0 };
            level(&target, &mut levelling, &lately, after(1));
            let served: Vec<usize> = (0..6).map(|_| serve(&target, after(1))).collect();
            assert!(
                !served.contains(&0) && served.iter().all(|place| *place < 3),
                "{algorithm:?}: {served:?}"
            );
        }
    }

    #[test]
    fn a_node_whose_own_have_had_more_sends_some_to_others_and_each_node_to_others_first() {
        for (name, algorithm) in Balance::ALL {
            let (target, mut levelling) = (shared(*algorithm, 10, 2), Levelling::default());
            level(&target, &mut levelling, &|_| 0.0, NOW);
            for _ in 0..40 {
                assert!(serve(&target, NOW) < 2, "{name}: nobody knows of anything yet");
            }
            // All have had five, and own ones forty beyond that.
            level(&target, &mut levelling, &|_| 5.0, after(350));
            let served: Vec<usize> = (0..30).map(|_| serve(&target, after(350))).collect();
            let spilt = served.iter().filter(|place| **place >= 2).count();
            assert!((5..=9).contains(&spilt), "{name}: {served:?}");
            assert!(served[..spilt].iter().all(|place| *place >= 2), "{name}: those that come next");
            // And nothing any more where what others have had is not known.
            level(&target, &mut levelling, &|_| 5.0, after(700));
            target.level(&mut levelling, None, after(701));
            assert!((0..30).all(|_| serve(&target, after(701)) < 2), "{name}");
        }
        let first = |node: usize| {
            let (target, mut levelling) = (shared(Balance::LeastConnections, 10, 2), Levelling::default());
            target.level(
                &mut levelling,
                Some(&LevelScene { lately: &|_| 0.0, is_doubted: &|_| false, node: (node, 4), stay: STAY }),
                NOW,
            );
            target.state.spill(2);
            [serve(&target, NOW), serve(&target, NOW)]
        };
        let all: std::collections::BTreeSet<usize> = (0..4).flat_map(first).collect();
        assert_eq!(all.len(), 8, "no two begin with the same: {all:?}");
    }

    #[test]
    fn what_is_to_go_to_others_is_served_at_home_where_none_of_them_is_free_or_there_are_none() {
        let full = shared(Balance::LeastConnections, 4, 2);
        full.backends[2..].iter().for_each(|backend| full.state.set_elsewhere(backend, 1));
        full.state.spill(5);
        assert!((0..3).all(|_| serve(&full, NOW) < 2));
        // Those that stand in for all of a first choice are not meant.
        let mut config = TargetConfig {
            balance: Policy { owner: OwnerMode::Soft, ..Balance::LeastConnections.into() },
            resilience: Resilience { max_in_flight: Some(1), ..Resilience::default() },
            ..unprobed(3)
        };
        config.backends[2].portion.priority = 1;
        let target = target(&config);
        target.state.prefer(|_| true, NOW);
        target.state.spill(5);
        assert!((0..3).all(|_| serve(&target, NOW) < 2));
        let mut levelling = Levelling::default();
        for millis in [0, 50] {
            level(&target, &mut levelling, &|_| 0.0, after(millis));
            (0..40).for_each(|_| assert!(serve(&target, after(millis)) < 2));
        }
    }

    #[test]
    fn one_that_is_new_or_not_well_takes_its_turn_and_has_nothing_to_catch_up() {
        for algorithm in [Balance::LeastConnections, Balance::LeastBusy] {
            let (target, mut levelling) = (shared(algorithm, 5, 5), Levelling::default());
            level(&target, &mut levelling, &|_| 0.0, NOW);
            // All but the first own one have had ten.
            let lately = |place: usize| if place == 0 { 0.0 } else { 10.0 };
            let mut counts = [0; 5];
            for turn in 1..=50 {
                level(&target, &mut levelling, &lately, after(turn));
                (0..2).for_each(|_| counts[serve(&target, after(turn))] += 1);
            }
            // Twenty each, give or take what it takes until it has had as much as half of that: it would have had all of them else.
            assert!((15..=35).contains(&counts[0]), "{algorithm:?}: {counts:?}");
        }
    }

    #[test]
    fn nothing_is_sent_to_others_where_some_are_to_have_more_take_more_or_keep_their_clients() {
        let served = |change: &dyn Fn(&mut TargetConfig)| {
            let mut config = TargetConfig {
                balance: Policy { owner: OwnerMode::Soft, ..Balance::LeastBusy.into() },
                resilience: Resilience { max_in_flight: Some(1), ..Resilience::default() },
                ..unprobed(6)
            };
            change(&mut config);
            let target = target(&config);
            target.state.prefer(|backend| backend.id.0 < 2, NOW);
            let mut levelling = Levelling::default();
            level(&target, &mut levelling, &|_| 0.0, NOW);
            (0..40).for_each(|_| assert!(serve(&target, NOW) < 2));
            level(&target, &mut levelling, &|_| 5.0, after(100));
            (target.is_levelled(), serve(&target, after(100)) < 2)
        };
        assert_eq!(served(&|_| {}), (true, false), "with nothing of that one is");
        assert_eq!(served(&|config| config.backends[5].portion.weight = 3), (true, true));
        assert!(!served(&|config| config.resilience.max_in_flight = Some(2)).0);
    }
}
