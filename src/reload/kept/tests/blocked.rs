//! Blocks, turns of entries that go on meanwhile, time, full disks and crashes at any byte, in any order: the same as a list would say.

use ipnet::IpNet;

use super::super::KeptOverlay;
use super::START;
use crate::overlay::blocked::{blocked_until_now, network_of, networks};
use crate::overlay::{
    Author, BlockWish, BlockedEntry, EntryChange, ObjectName, OverlayEntry, block, unblock,
};
use crate::store::memory::{MemoryDisk, MemoryStore};

const SEEDS: u64 = 2_000;
const STEPS: usize = 30;

/// What is blocked: network, whether what was under way was left, until when.
type Words = Vec<(IpNet, bool, Option<u64>)>;

struct Draws(u64);

impl Draws {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % end
    }
}

fn some_network(draws: &mut Draws) -> IpNet {
    const ALL: [&str; 6] = ["10.0.0.1", "10.0.0.0/24", "10.0.0.0/8", "2001:db8::/32", "::1", "192.0.2.7"];
    network_of(ALL[draws.below(6) as usize]).expect("a network")
}

fn weight(id: u64, weight: u16) -> OverlayEntry {
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
    }
}

fn words(blocked: &[BlockedEntry]) -> Words {
    blocked.iter().map(|entry| (entry.network, entry.keep, entry.expires_ms)).collect()
}

fn load(disk: &MemoryDisk, now: u64) -> KeptOverlay {
    let (mut kept, found) = KeptOverlay::load(Box::new(MemoryStore(disk.clone())));
    assert_eq!((kept.fault(), found.damaged), (None, 0));
    // As `Begun::load` does.
    let left = blocked_until_now(kept.blocked(), now).0;
    kept.hold_blocked(left);
    kept
}

/// As `Blocks::block` does; says whether it is kept.
fn do_block(kept: &mut KeptOverlay, wish: &BlockWish) -> bool {
    let id = kept.next_block();
    let (blocked, _) = block(kept.blocked(), wish, id).expect("there is room");
    kept.keep_blocked(blocked, id + 1).is_ok()
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
        let turn = (draws.below(3) == 0).then(|| (kept.entries().to_vec(), kept.next_id()));
        let mut maybe = model.clone();
        let (network, keep) = (some_network(&mut draws), draws.below(2) == 0);
        match draws.below(4) {
            0 | 1 => {
                let expires_ms = (draws.below(2) == 0).then_some(now + 1_000);
                maybe.retain(|(other, ..)| *other != network);
                maybe.push((network, keep, expires_ms));
                let wish = BlockWish { network, keep, author: Author::Uid(0), at_ms: now, expires_ms };
                if do_block(&mut kept, &wish) {
                    model.clone_from(&maybe);
                    let id = kept.blocked().last().expect("it is there").id;
                    assert!(id > highest, "{place}: {id} was given before");
                    highest = id;
                } else {
                    refusals += 1;
                }
            }
            2 => match unblock(kept.blocked(), network) {
                Ok((left, _)) => {
                    maybe.retain(|(other, ..)| *other != network);
                    let next = kept.next_block();
                    if kept.keep_blocked(left, next).is_ok() {
                        model.clone_from(&maybe);
                    }
                }
                Err(_) => assert!(model.iter().all(|(other, ..)| *other != network), "{place}"),
            },
            _ => {
                // As `Blocks::let_in` does: with a disk that takes it or not.
                let left = blocked_until_now(kept.blocked(), now).0;
                kept.hold_blocked(left);
                let _ = kept.catch_up_blocked();
                model.retain(|(_, _, end)| end.is_none_or(|end| end > now));
                maybe.clone_from(&model);
            }
        }
        if let Some((before, id)) = turn {
            let mut next = before;
            next.retain(|entry| entry.id + 3 > id);
            next.push(weight(id, (id % 200) as u16));
            if kept.keep(&next, &[], id + 1).is_ok() {
                entries = next;
            }
        }
        assert_eq!(words(kept.blocked()), model, "{place}");
        let table = networks(kept.blocked());
        assert_eq!(table.is_empty(), model.is_empty(), "{place}");
        if disk.restart() || draws.below(12) == 0 {
            crashes += 1;
            kept = load(&disk, now);
            let alive = |words: &Words| -> Words {
                words.iter().filter(|(_, _, end)| end.is_none_or(|end| end > now)).copied().collect()
            };
            let found = words(kept.blocked());
            // What nobody was told may be there or not.
            assert!(found == alive(&model) || found == alive(&maybe), "{place}: {found:?} of {model:?}");
            model = found;
            entries = kept.entries().to_vec();
        }
        assert_eq!(kept.entries(), entries, "{place}: a turn and a block take nothing from one another");
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
    assert_eq!((kept.next_id(), kept.next_block(), kept.blocked().len()), (7, 1, 0));
}
