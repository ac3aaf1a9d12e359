//! Nodes that change the same at once, whichever comes first and however late each one hears of it: what each takes for stored is what was stored at
//! the generation that it names, nobody is blocked who was let in, and no id is given twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock};

use ipnet::IpNet;

use super::super::shared::SharedOverlay;
use super::super::step::{OverlayStep, StepJournal, StoredOverlay, replay};
use super::super::{KeptOverlay, OverlayState, StoreReach, Unkept};
use super::START;
use super::blocked::{Draws, some_network, weight};
use crate::overlay::blocked::blocked_until_now;
use crate::overlay::{Author, BlockWish, block, unblock};
use crate::store::shared::Revision;

const SEEDS: u64 = 1_500;
const STEPS: usize = 25;

/// What all share, and everything that it ever was.
#[derive(Debug, Default)]
struct Rows {
    history: BTreeMap<Revision, StoredOverlay>,
    steps: Vec<Vec<u8>>,
    given: BTreeSet<u64>,
    conflicts: u64,
}

impl Rows {
    fn last(&self) -> SharedOverlay {
        let last = self.history.last_key_value();
        last.map_or_else(SharedOverlay::default, |(generation, stored)| SharedOverlay {
            stored: stored.clone(),
            generation: *generation,
        })
    }

    fn commit(&mut self, step: &OverlayStep, known: Revision) -> Result<Revision, Unkept> {
        if self.last().generation != known {
            self.conflicts += 1;
            return Err(Unkept { is_conflict: true, ..Unkept::because("others were first") });
        }
        for entry in &step.block {
            assert!(self.given.insert(entry.id), "{} was given before", entry.id);
        }
        self.steps.push(step.record());
        // Revisions of other rows lie between.
        let at = known + 1 + known % 3;
        self.history.insert(at, replay(&self.steps).expect("steps"));
        Ok(at)
    }
}

/// What is done while somebody waits for the store.
struct Cluster {
    rows: Mutex<Rows>,
    nodes: OnceLock<[Arc<KeptOverlay>; 2]>,
    draws: Mutex<Draws>,
    /// Whether one goes on inside of another: whoever waits holds its own journal.
    depth: Mutex<u32>,
}

struct Journal {
    cluster: Arc<Cluster>,
    node: usize,
}

impl std::fmt::Debug for Journal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Journal({})", self.node)
    }
}

impl Cluster {
    fn below(&self, end: u64) -> u64 {
        self.draws.lock().unwrap().below(end)
    }

    fn node(&self, node: usize) -> &KeptOverlay {
        &self.nodes.get().unwrap()[node]
    }

    fn adopt(&self, node: usize) {
        let last = self.rows.lock().unwrap().last();
        let mut state = self.node(node).state();
        if state.adopt(&last) {
            let (entries, next) = (last.stored.entries.clone(), last.stored.next_id);
            state.hold(&entries, next);
        }
    }

    /// The other one changes something, and this one may hear of it.
    fn meanwhile(&self, node: usize) {
        if *self.depth.lock().unwrap() == 0 && self.below(3) == 0 {
            *self.depth.lock().unwrap() += 1;
            self.change(1 - node);
            *self.depth.lock().unwrap() -= 1;
        }
        if self.below(2) == 0 {
            self.adopt(node);
        }
        if self.below(4) == 0 {
            let mut state = self.node(node).state();
            let left = blocked_until_now(state.blocked(), START + 5_000).0;
            state.hold_blocked(left);
        }
    }

    /// Somebody changes something on a node, again until nobody else was first.
    fn change(&self, node: usize) {
        let kept = self.node(node);
        loop {
            let (what, network) = (self.below(6), some_network(&mut self.draws.lock().unwrap()));
            let done = match what {
                0 => {
                    let next = kept.state().next_id();
                    kept.keep(&[weight(next, (next % 200) as u16)], &[], next + 1, self.reach())
                }
                1 => kept.catch_up_blocked(),
                2 => self.unblock(kept, network),
                _ => {
                    let expires_ms = (self.below(3) == 0).then_some(START + 1_000);
                    let wish =
                        BlockWish { network, keep: false, author: Author::Uid(0), at_ms: START, expires_ms };
                    let plan = |state: &OverlayState| {
                        let id = state.next_block();
                        Ok::<_, Unkept>((
                            block(state.blocked(), &wish, id).expect("there is room").0,
                            id + 1,
                            (),
                        ))
                    };
                    kept.change_blocked(self.reach(), plan, |_, ()| ())
                }
            };
            self.holds(node);
            match done {
                // What it has changed for itself is over then.
                Err(unkept) if unkept.is_conflict && self.end_own(kept) => self.holds(node),
                Err(unkept) if unkept.is_conflict => self.adopt(node),
                _ => return,
            }
        }
    }

    /// For whom: sometimes for the node alone.
    fn reach(&self) -> StoreReach {
        if self.below(8) == 0 { StoreReach::Own } else { StoreReach::All }
    }

    /// It is one of the cluster again.
    #[expect(clippy::unused_self, reason = "it is a step like any other")]
    fn end_own(&self, kept: &KeptOverlay) -> bool {
        let has_ended = kept.end_own();
        let mut state = kept.state();
        let (basis, next_id) = (state.basis(), state.next_id());
        if has_ended {
            state.hold(&basis, next_id);
        }
        has_ended
    }

    fn unblock(&self, kept: &KeptOverlay, network: IpNet) -> Result<(), Unkept> {
        let plan = |state: &OverlayState| {
            let (left, _) = unblock(state.blocked(), network).map_err(|_| Unkept::because("it is not"))?;
            Ok((left, state.next_block(), ()))
        };
        kept.change_blocked(StoreReach::All, plan, |_, ()| ())
    }

    /// What a node takes for stored was stored at the generation that it names; in force is that, without whose time is over.
    fn holds(&self, node: usize) {
        let state = self.node(node).state();
        let rows = self.rows.lock().unwrap();
        let nothing = StoredOverlay::default();
        let there = rows.history.get(&state.generation()).unwrap_or(&nothing);
        let common = state.common.as_ref().unwrap_or(state.stored());
        assert_eq!((&common.entries, &common.blocked), (&there.entries, &there.blocked));
        if state.common.is_some() {
            return;
        }
        let timed = |blocked: &[crate::overlay::BlockedEntry]| blocked_until_now(blocked, START + 5_000).0;
        assert_eq!(timed(state.blocked()), timed(&there.blocked));
    }
}

impl StepJournal for Journal {
    fn append(&mut self, step: &OverlayStep, known: Revision) -> Result<Revision, Unkept> {
        self.cluster.meanwhile(self.node);
        let outcome = self.cluster.rows.lock().unwrap().commit(step, known);
        // It is done, and its answer is on the way.
        self.cluster.meanwhile(self.node);
        outcome
    }
}

/// All of one seed; says how often somebody else was first.
fn run(seed: u64) -> u64 {
    let cluster = Arc::new(Cluster {
        rows: Mutex::default(),
        nodes: OnceLock::new(),
        draws: Mutex::new(Draws(seed)),
        depth: Mutex::new(0),
    });
    let node = |node| {
        let journal = Journal { cluster: Arc::clone(&cluster), node };
        Arc::new(KeptOverlay::shared(Box::new(journal), SharedOverlay::default()))
    };
    assert!(cluster.nodes.set([node(0), node(1)]).is_ok());
    for _ in 0..STEPS {
        cluster.change(cluster.below(2) as usize);
        if cluster.below(3) == 0 {
            cluster.adopt(cluster.below(2) as usize);
        }
    }
    for node in [0, 1] {
        let _ = cluster.end_own(cluster.node(node));
        cluster.adopt(node);
        cluster.holds(node);
    }
    let entries = [0, 1].map(|node| cluster.node(node).state().entries().to_vec());
    assert_eq!(entries[0], entries[1], "seed {seed}");
    let rows = cluster.rows.lock().unwrap();
    rows.conflicts
}

#[test]
fn nodes_that_change_the_same_at_once_lose_nothing_and_take_nothing_back() {
    let conflicts: u64 = (0..SEEDS).map(run).sum();
    assert!(conflicts > SEEDS, "{conflicts}");
}
