//! Blocks, turns of entries that go on meanwhile, time, full disks and crashes at any byte, in any order: the same as a list would say.

use ipnet::IpNet;

use super::super::{KeptOverlay, OverlayState, StoreReach, Unkept};
use super::START;
use crate::overlay::blocked::{blocked_until_now, network_of, networks};
use crate::overlay::{
    Author, BlockWish, BlockedEntry, EntryChange, LaterFields, ObjectName, OverlayEntry, block, unblock,
};
use crate::store::memory::{MemoryDisk, MemoryStore};

const SEEDS: u64 = 2_000;
const STEPS: usize = 30;

/// What is blocked: network, whether what was under way was left, until when.
type Words = Vec<(IpNet, bool, Option<u64>)>;

pub(super) struct Draws(pub(super) u64);

impl Draws {
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % end
    }
}

pub(super) fn some_network(draws: &mut Draws) -> IpNet {
    const ALL: [&str; 6] = ["10.0.0.1", "10.0.0.0/24", "10.0.0.0/8", "2001:db8::/32", "::1", "192.0.2.7"];
    network_of(ALL[draws.below(6) as usize]).expect("a network")
}

pub(super) fn weight(id: u64, weight: u16) -> OverlayEntry {
    OverlayEntry {
        id,
        object: ObjectName::backend("web", "b1"),
        change: EntryChange::Weight(weight),
        file_value: Some("1".into()),
        address: None,
        author: Author::Uid(0),
        at_ms: START,
        expires_ms: None,
        gone_since_ms: None,
        more: LaterFields::new(),
    }
}

fn words(blocked: &[BlockedEntry]) -> Words {
    blocked.iter().map(|entry| (entry.network, entry.keep, entry.expires_ms)).collect()
}

fn blocked_of(kept: &KeptOverlay) -> Vec<BlockedEntry> {
    kept.state().blocked().to_vec()
}

fn load(disk: &MemoryDisk, now: u64) -> KeptOverlay {
    let (kept, found) = KeptOverlay::load(Box::new(MemoryStore(disk.clone())));
    assert_eq!((kept.state().fault(), found.damaged), (None, 0));
    // As `Begun::load` does.
    let left = blocked_until_now(kept.state().blocked(), now).0;
    kept.state().hold_blocked(left);
    kept
}

/// As `Blocks::block` does; says whether it is kept.
fn do_block(kept: &KeptOverlay, wish: &BlockWish) -> bool {
    let plan = |state: &OverlayState| {
        let id = state.next_block();
        Ok::<_, Unkept>((block(state.blocked(), wish, id).expect("there is room").0, id + 1, ()))
    };
    kept.change_blocked(StoreReach::All, plan, |_, ()| ()).is_ok()
}

/// As `Blocks::unblock` does.
fn keep_blocked(kept: &KeptOverlay, left: Vec<BlockedEntry>) -> bool {
    let plan = |state: &OverlayState| Ok::<_, Unkept>((left, state.next_block(), ()));
    kept.change_blocked(StoreReach::All, plan, |_, ()| ()).is_ok()
}

/// All of one seed; says how often a crash came, and a disk was full.
fn run(seed: u64) -> (u64, u64) {
    let (mut draws, disk, mut now) = (Draws(seed), MemoryDisk::default(), START);
    let mut kept = load(&disk, now);
    let (mut model, mut entries, mut highest) = (Words::new(), Vec::<OverlayEntry>::new(), 0);
    let (mut crashes, mut refusals) = (0, 0);
    for step in 0..STEPS {
        let place = format!("seed {seed}, step {step}");
        now += draws.below(3) * 500;
        if draws.below(8) == 0 {
            disk.crash_behind(draws.below(400) as usize);
        }
        if draws.below(8) == 0 {
            disk.fill(draws.below(2) == 0);
        }
        // A turn of the entries begins: it has looked at what there is.
        let seen = |state: &OverlayState| (state.entries().to_vec(), state.next_id());
        let turn = (draws.below(3) == 0).then(|| seen(&kept.state()));
        let mut maybe = model.clone();
        let (network, keep) = (some_network(&mut draws), draws.below(2) == 0);
        match draws.below(4) {
            0 | 1 => {
                let expires_ms = (draws.below(2) == 0).then_some(now + 1_000);
                maybe.retain(|(other, ..)| *other != network);
                maybe.push((network, keep, expires_ms));
                let wish = BlockWish { network, keep, author: Author::Uid(0), at_ms: now, expires_ms };
                if do_block(&kept, &wish) {
                    model.clone_from(&maybe);
                    let id = kept.state().blocked().last().expect("it is there").id;
                    assert!(id > highest, "{place}: {id} was given before");
                    highest = id;
                } else {
                    refusals += 1;
                }
            }
            2 => match unblock(&blocked_of(&kept), network) {
                Ok((left, _)) => {
                    maybe.retain(|(other, ..)| *other != network);
                    if keep_blocked(&kept, left) {
                        model.clone_from(&maybe);
                    }
                }
                Err(_) => assert!(model.iter().all(|(other, ..)| *other != network), "{place}"),
            },
            _ => {
                // As `Blocks::let_in` does: with a disk that takes it or not.
                let left = blocked_until_now(&blocked_of(&kept), now).0;
                kept.state().hold_blocked(left);
                let _ = kept.catch_up_blocked();
                model.retain(|(_, _, end)| end.is_none_or(|end| end > now));
                maybe.clone_from(&model);
            }
        }
        if let Some((before, id)) = turn {
            let mut next = before;
            next.retain(|entry| entry.id + 3 > id);
            next.push(weight(id, (id % 200) as u16));
            if kept.keep(&next, &[], id + 1, StoreReach::All).is_ok() {
                entries = next;
            }
        }
        assert_eq!(words(&blocked_of(&kept)), model, "{place}");
        let table = networks(&blocked_of(&kept));
        assert_eq!(table.is_empty(), model.is_empty(), "{place}");
        if disk.restart() || draws.below(12) == 0 {
            crashes += 1;
            kept = load(&disk, now);
            let alive = |words: &Words| -> Words {
                words.iter().filter(|(_, _, end)| end.is_none_or(|end| end > now)).copied().collect()
            };
            let found = words(&blocked_of(&kept));
            // What nobody was told may be there or not.
            assert!(found == alive(&model) || found == alive(&maybe), "{place}: {found:?} of {model:?}");
            model = found;
            entries = kept.state().entries().to_vec();
        }
        assert_eq!(
            kept.state().entries(),
            entries,
            "{place}: a turn and a block take nothing from one another"
        );
    }
    (crashes, refusals)
}

#[test]
fn who_was_told_that_somebody_is_out_finds_him_out() {
    let (mut crashes, mut refusals) = (0, 0);
    for seed in 0..SEEDS {
        let (crashed, refused) = run(seed);
        (crashes, refusals) = (crashes + crashed, refusals + refused);
    }
    assert!(crashes > SEEDS && refusals > SEEDS, "{crashes} crashes, {refusals} refusals");
}

#[test]
fn a_journal_of_before_has_nobody_blocked_and_numbers_begin_at_one() {
    let disk = MemoryDisk::default();
    let mut store = MemoryStore(disk.clone());
    crate::store::Store::load(&mut store).unwrap();
    crate::store::Store::append(&mut store, br#"{"next":7}"#).unwrap();
    let kept = load(&disk, START);
    let state = kept.state();
    assert_eq!((state.next_id(), state.next_block(), state.blocked().len()), (7, 1, 0));
}
