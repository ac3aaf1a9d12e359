//! Backends of a few places each that several nodes share (`owner: soft`): each node prefers its own, and says how many requests it has on which, so that the others
//! know which of them are free; and one node moves them to where requests come.
//!
//! Invariants:
//!
//! 1. `busy/NODE` is what its node has on backends, as of its last change and half a second ago at most. What is older than a second says nothing any more: a node
//!    that has nothing to say, or can't say it, has nothing on anybody.
//! 2. Nobody else sets what others have on a backend; what is not owned softly any more has nothing of others.
//! 3. A detached node keeps what it prefers, and goes by its own requests alone.
//! 4. Nothing moves while a node is in the dark about another one.
//! 5. Who hears waits for no store: what this node has is said, and others are moved, beside that.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::busy::{self, BusyRow, HeardNodes, LATELY_PARTS};
use super::moving;
use super::sharing::Together;
use crate::cluster::membership::Standing;
use crate::cluster::revision::current;
use crate::cluster::rows::{self, Farewell};
use crate::cluster::view::ClusterView;
use crate::config::model::OwnerMode;
use crate::net::now;
use crate::reload::running::RunningConfig;
use crate::store::shared::{Committed, Revision, RowChange, RowCondition, Transaction};
use crate::targets::sharing::doubts::Doubts;
use crate::targets::sharing::evening::{EVENING, Evening, EveningScene};
use crate::targets::sharing::hearing::{HeardCount, are_short, turn};
use crate::targets::sharing::levelling::{LevelScene, Levelling};
use crate::targets::sharing::owners::Owners;
use crate::targets::sharing::stays::Stays;
use crate::targets::sharing::uses::Uses;
use crate::targets::{Backend, Target};

/// What is old says nothing any more: that is found out as often as this.
const TICK: Duration = Duration::from_millis(250);
/// What others say within this time is heard together.
const TOGETHER: Duration = Duration::from_millis(10);
/// After which time it says again what it has.
const AGAIN: Duration = Duration::from_millis(500);
/// Which node evens: the first for this.
const EVENS: &str = "owners";

/// What this node has said.
struct Said {
    row: BusyRow,
    at: Instant,
}

/// Who prefers what.
#[derive(Default)]
struct OwnersBook {
    /// Of which nodes, which config and which rows that is.
    of: Option<(Vec<String>, u64, (Revision, Revision))>,
    /// By target.
    owners: HashMap<Arc<str>, Owners>,
    /// By target, too: what nodes preferred that are gone.
    doubts: HashMap<Arc<str>, Doubts>,
}

/// What is remembered from one turn to the next.
#[derive(Default)]
struct Turns {
    heard: HeardNodes,
    said: Option<Said>,
    book: OwnersBook,
    evenings: HashMap<Arc<str>, Evening>,
    evened: Option<Instant>,
    uses: UseBook,
}

/// What is remembered of what others say from one time to the next.
#[derive(Default)]
struct Hearing {
    heard: HeardNodes,
    book: OwnersBook,
    stays: StayBook,
    levels: HashMap<Arc<str>, Levelling>,
}

/// How many requests have begun on the backends of each target, lately and since the last turn.
#[derive(Default)]
struct UseBook {
    targets: HashMap<Arc<str>, Uses>,
    stays: StayBook,
}

impl UseBook {
    /// Looks again; gives what this node has to say, as one of so many. How many requests have begun lately it says where they are short, or almost, and it has looked for long
    /// enough; less than the quarter of one is not worth its bytes.
    fn row(&mut self, targets: &[Arc<Target>], nodes: usize) -> BusyRow {
        if nodes < 2 {
            // Who is alone tells nobody, and has nothing to say of that time later.
            *self = UseBook::default();
            return own_row(targets);
        }
        let tick = turn(nodes);
        self.stays.look(targets, tick);
        let mut before = std::mem::take(&mut self.targets);
        let mut row = own_row(targets);
        for target in targets.iter().filter(|target| is_owned(target)) {
            let mut uses = before.remove(&target.name).unwrap_or_default();
            uses.look(target, now());
            let fresh = |backend: &Arc<Backend>| (backend.identity.to_string(), uses.fresh(backend.id));
            row.fresh.extend(target.backends.iter().map(fresh).filter(|(_, count)| *count > 0));
            let is_short = self.stays.mean(&target.name).is_none_or(|stay| stay < tick * 3 / 4);
            if target.is_levelled() && is_short && uses.is_known() {
                let count = |backend: &Arc<Backend>| (uses.of(backend.id) * LATELY_PARTS) as u32;
                let counts = target.backends.iter().map(|backend| (backend.name.to_string(), count(backend)));
                let counts = counts.filter(|(_, count)| f64::from(*count) >= LATELY_PARTS / 4.0);
                row.lately.insert(target.name.to_string(), counts.collect());
            }
            self.targets.insert(Arc::clone(&target.name), uses);
        }
        row
    }
}

/// How long requests stay on the backends of each target.
#[derive(Default)]
struct StayBook {
    targets: HashMap<Arc<str>, Stays>,
    looked: Option<Instant>,
}

impl StayBook {
    /// Looks again, if the last look is a turn ago.
    fn look(&mut self, targets: &[Arc<Target>], tick: Duration) {
        if self.looked.is_some_and(|at| at.elapsed() < tick) {
            return;
        }
        self.looked = Some(Instant::now());
        let mut before = std::mem::take(&mut self.targets);
        for target in targets.iter().filter(|target| is_owned(target)) {
            let mut stays = before.remove(&target.name).unwrap_or_default();
            stays.look(target, now());
            self.targets.insert(Arc::clone(&target.name), stays);
        }
    }

    fn mean(&self, target: &str) -> Option<Duration> {
        self.targets.get(target)?.mean()
    }
}

fn is_soft(target: &Target) -> bool {
    target.config.balance.owner == OwnerMode::Soft
}

/// Also where somebody has lifted the limit by hand nobody would ever take another one than its own.
pub(super) fn is_owned(target: &Target) -> bool {
    is_soft(target) && target.limit().is_some()
}

/// All nodes that share backends.
fn sharing(view: &ClusterView) -> Vec<String> {
    view.nodes().into_iter().filter(|node| node.row.shares).map(|node| node.name).collect()
}

impl RunningConfig {
    /// Has nodes share backends, until the process drains.
    pub async fn follow_owners(&self) {
        let Some(together) = &self.together else { return };
        let reloader = Arc::clone(&self.reloader);
        let words = move || {
            let snapshot = reloader.snapshots.current()?;
            let row = own_row(&snapshot.targets);
            // A number of its own: the same again is news, and says that it is still so.
            let turn = now().0;
            (!row.is_empty()).then(|| rows::write(&BusyRow { turn, ..row }))
        };
        together.node.at_last("busy", Farewell(Arc::new(words)));
        tokio::join!(self.hear_nodes(together), self.take_turns(together));
    }

    /// Puts in force what others say, as soon as it is known.
    async fn hear_nodes(&self, together: &Together) {
        let mut hearing = Hearing::default();
        let (mut views, mut due, mut known) = (together.node.views(), Instant::now(), None);
        loop {
            let view = Arc::clone(&views.borrow_and_update());
            let now = (view.standing.clone(), ["busy", "own", "node"].map(|area| view.rows.touched(area)));
            if Instant::now() >= due || known.as_ref() != Some(&now) {
                self.hear(together, &view, &mut hearing);
                known = Some(now);
                due = Instant::now() + TICK;
            }
            tokio::select! {
                () = sleep_until(due) => {}
                changed = views.changed() => match changed {
                    Ok(()) => sleep(TOGETHER).await,
                    Err(_) => return,
                },
            }
        }
    }

    fn hear(&self, together: &Together, view: &ClusterView, hearing: &mut Hearing) {
        let Hearing { heard, book, stays, levels } = hearing;
        let Some(snapshot) = self.reloader.snapshots.current() else { return };
        let all = &snapshot.targets;
        if view.standing == Standing::Member {
            for target in book.renew(view, all, snapshot.number) {
                let owners = book.owners.get(&target.name);
                target.prefer_own(&view.node, owners.unwrap_or(&Owners::default()), now());
            }
            together.show_owners(&book.owners);
        }
        let tick = turn(view.nodes().len());
        let others = heard.listen(view, tick, Instant::now());
        let sums = others.sums();
        stays.look(all, tick);
        levels.retain(|name, _| book.owners.contains_key(name));
        for target in all {
            let owners = book.owners.get(&target.name).filter(|_| is_owned(target));
            let Some(owners) = owners else {
                target.hear_others(&Owners::default(), |_| HeardCount::default(), &[], None);
                target.level(&mut Levelling::default(), None, now());
                continue;
            };
            let busy = |place: usize| {
                let backend = target.backends.get(place);
                backend.and_then(|backend| sums.get(&*backend.identity)).copied().unwrap_or_default()
            };
            let stays = stays.mean(&target.name);
            target.hear_others(owners, busy, &others.needy(&target.name), stays);
            let uses = others.lately(&target.name).filter(|_| target.is_levelled());
            let lately = |place: usize| {
                let (uses, backend) = (uses.as_ref()?, target.backends.get(place)?);
                uses.get(&*backend.name).copied()
            };
            let lately = |place: usize| lately(place).unwrap_or(0.0);
            let number = owners.nodes().iter().position(|node| **node == *view.node);
            let doubts = book.doubts.get(&target.name);
            let is_doubted = |place: usize| {
                let backend = target.backends.get(place).zip(doubts);
                backend.is_some_and(|(backend, doubts)| doubts.is_doubted(&backend.identity, now()))
            };
            let scene = stays.filter(|stay| are_short(owners, Some(*stay))).filter(|_| uses.is_some());
            let scene = scene.zip(number).map(|(stay, number)| LevelScene {
                lately: &lately,
                is_doubted: &is_doubted,
                node: (number, owners.nodes().len()),
                stay,
            });
            let levelling = levels.entry(Arc::clone(&target.name)).or_default();
            target.level(levelling, scene.as_ref(), now());
        }
    }

    /// Says what this node has, and evens if it is the one that does.
    async fn take_turns(&self, together: &Together) {
        let mut turns = Turns::default();
        loop {
            let view = together.node.view();
            if let Some(snapshot) = self.reloader.snapshots.current() {
                let row = turns.uses.row(&snapshot.targets, view.nodes().len());
                say(together, &view, row, &mut turns.said).await;
            }
            let view = together.node.view();
            let tick = turn(view.nodes().len());
            let is_due = turns.evened.is_none_or(|at| at.elapsed() >= EVENING);
            if is_due {
                turns.evened = Some(Instant::now());
            }
            self.even(together, &view, &mut turns, is_due).await;
            sleep(tick).await;
        }
    }

    /// Hears where requests come, and if that `is_due` moves backends there.
    async fn even(&self, together: &Together, view: &ClusterView, turns: &mut Turns, is_due: bool) {
        // Which config is in force before what is of it.
        let in_force = together.in_force().map(|row| row.number);
        let Some(snapshot) = self.reloader.snapshots.current() else { return };
        let all = &snapshot.targets;
        let others = turns.heard.listen(view, turn(view.nodes().len()), Instant::now());
        let is_current = in_force.is_some() && in_force == current(&view.rows);
        let is_member = view.standing == Standing::Member;
        if !is_member || !is_current || view.first_for(EVENS).as_deref() != Some(&*view.node) {
            turns.evenings.clear();
            return;
        }
        turns.book.renew(view, all, snapshot.number);
        turns.evenings.retain(|name, _| turns.book.owners.contains_key(name));
        if others.is_in_the_dark {
            return;
        }
        let (nodes, own) = (view.nodes(), own_row(all));
        let leaves = |name: &String| nodes.iter().any(|node| node.name == *name && node.drain.is_some());
        for target in all.iter().filter(|target| is_owned(target)) {
            let Some(owners) = turns.book.owners.get(&target.name) else { continue };
            let evening = turns.evenings.entry(Arc::clone(&target.name)).or_default();
            let row = moving::row_of(&view.rows, &target.name);
            let identities: Vec<&str> = target.backends.iter().map(|backend| &*backend.identity).collect();
            let chosen = target.chosen();
            let of = |node: &String| match *node == *view.node {
                true => own.demand(&target.name),
                false => others.rows.get(node).map_or(0, |row| row.demand(&target.name)),
            };
            evening.hear(&owners.nodes().iter().map(of).collect::<Vec<_>>());
            if !is_due {
                continue;
            }
            let moves = {
                let scene = EveningScene {
                    owners,
                    identities: &identities,
                    places: target.limit().unwrap_or(1),
                    is_leaving: &owners.nodes().iter().map(leaves).collect::<Vec<_>>(),
                    is_busy: &|place| target.backends[place].taken() > 0,
                    is_free: &|place| chosen[place] && !row.by_hand.contains(identities[place]),
                    calm: together.node.lease(),
                };
                evening.tick(&scene, now())
            };
            if moves.is_empty() {
                continue;
            }
            let row = moving::moved(row, owners, &identities, &moves);
            // Where somebody else was first it is looked at again.
            let done = together.node.commit(moving::writing(&view.rows, &target.name, &row)).await;
            if let Ok(Committed::Done(_)) = done {
                evening.moved(&identities, &moves, now());
                together.count_moves(moves.len() as u64);
            }
        }
        if !is_due {
            return;
        }
        // Also of those whose limit somebody has lifted for a while.
        let there: BTreeSet<&str> = all.iter().map(|target| &*target.name).collect();
        if let Some(transaction) = moving::clearing(&view.rows, &there) {
            // What is not dropped now is dropped in a second.
            let _ = together.node.commit(transaction).await;
        }
    }
}

impl OwnersBook {
    /// Looks who prefers what by now; gives the targets where that is another than before.
    fn renew<'a>(
        &mut self,
        view: &ClusterView,
        targets: &'a [Arc<Target>],
        number: u64,
    ) -> Vec<&'a Arc<Target>> {
        let of = (sharing(view), number, view.rows.touched("own"));
        if self.of.as_ref() == Some(&of) {
            return Vec::new();
        }
        let before = self.of.replace(of);
        let Some((nodes, ..)) = &self.of else { return Vec::new() };
        let is_other = before.as_ref().is_none_or(|(_, before, _)| *before != number);
        let are_others = is_other || before.is_none_or(|(before, ..)| before != *nodes);
        let mut before = std::mem::take(&mut self.owners);
        let mut changed = Vec::new();
        for target in targets {
            let old = before.remove(&target.name);
            let owners = if is_owned(target) {
                let identities = target.backends.iter().map(|backend| &*backend.identity);
                let moved = moving::row_of(&view.rows, &target.name).moved;
                match &old {
                    Some(old) if !are_others => old.again(identities, &moved),
                    _ => Owners::of(nodes, identities, &moved),
                }
            } else {
                Owners::default()
            };
            if is_other || old.as_ref() != Some(&owners) {
                changed.push(target);
            }
            if is_owned(target) {
                let identities: Vec<&str> =
                    target.backends.iter().map(|backend| &*backend.identity).collect();
                // In another config places are others'.
                let before = old.as_ref().filter(|_| !is_other);
                let doubts = self.doubts.entry(Arc::clone(&target.name)).or_default();
                doubts.look(&identities, before, &owners, now());
                self.owners.insert(Arc::clone(&target.name), owners);
            }
        }
        self.doubts.retain(|name, _| self.owners.contains_key(name));
        changed
    }
}

/// What this node has.
fn own_row(targets: &[Arc<Target>]) -> BusyRow {
    let mut row = BusyRow::default();
    for target in targets.iter().filter(|target| is_owned(target)) {
        for backend in &target.backends {
            let count = backend.in_flight();
            if count > 0 {
                row.backends.insert(backend.identity.to_string(), count);
            }
        }
        let waiting = u32::try_from(target.waiting()).unwrap_or(u32::MAX);
        if waiting > 0 {
            row.waiting.insert(target.name.to_string(), waiting);
        }
        if waiting > 0 && target.waiting_in_need() > 0 {
            row.needy.insert(target.name.to_string());
        }
    }
    row
}

/// Says what this node has, if it is one of the cluster, and that is not known.
async fn say(together: &Together, view: &ClusterView, own: BusyRow, said: &mut Option<Said>) {
    let name = format!("{}{}", busy::ROWS, view.node);
    let known = view.rows.get(&name).and_then(|row| rows::read::<BusyRow>(&row.value));
    let before = known.as_ref().map_or(0, |row| row.turn);
    let own = BusyRow { turn: before, ..own };
    let is_known = known.as_ref().map_or(own.is_empty(), |row| *row == own);
    let is_fresh = own.is_empty() || said.as_ref().is_some_and(|said| said.at.elapsed() < AGAIN);
    if is_known && is_fresh {
        return;
    }
    let Some(lease) = together.node.lent().filter(|_| view.standing == Standing::Member) else { return };
    // Whoever else has written there may have written anything.
    let turn = said.as_ref().map_or(0, |said| said.row.turn).max(before).wrapping_add(1);
    let row = BusyRow { turn, ..own };
    let conditions = vec![RowCondition { name: name.clone(), changed: view.rows.changed(&name) }];
    let changes = vec![RowChange::Put { name, value: rows::write(&row), lease: Some(lease) }];
    // What they did not get they get with the next turn.
    if let Ok(Committed::Done(_)) = together.node.commit(Transaction { conditions, changes }).await {
        *said = Some(Said { row, at: Instant::now() });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::model::{Balance, Policy, Resilience, TargetConfig};
    use crate::targets::fixtures::{target, unprobed};
    use crate::targets::{Ask, Chance, Heard, Lease, Outcome, Pick, Tried};

    /// Found in five processes: one node had a request on the same backend of another one at each of its words, another request each time, and nobody else took that backend any
    /// more, its owner included, for many seconds: it was used for less than half of what others were.
    #[test]
    fn a_request_that_another_one_has_followed_is_not_there_any_more() {
        let shared = |limit| {
            let balance = Policy { owner: OwnerMode::Soft, ..Balance::LeastConnections.into() };
            let resilience = Resilience { max_in_flight: Some(limit), ..Resilience::default() };
            target(&TargetConfig { balance, resilience, ..unprobed(1) })
        };
        let begin = |target: &Target| match target.pick(&Ask::new(&Tried::new(), &Chance::seeded(1), now())) {
            Pick::Lease(lease) => lease,
            other => panic!("{other:?}"),
        };
        let end = |lease: Lease| {
            lease.note_answer(Heard::GOOD, now());
            lease.finish(Outcome::Success, now());
        };
        for limit in [1, 2] {
            let targets = [shared(limit)];
            let (mut book, identity) = (UseBook::default(), targets[0].backends[0].identity.to_string());
            let mut still = || {
                let row = book.row(&targets, 2);
                let of = |counts: &BTreeMap<String, u32>| counts.get(&identity).copied().unwrap_or(0);
                of(&row.backends) - of(&row.fresh)
            };
            assert_eq!(still(), 0);
            let first = begin(&targets[0]);
            assert_eq!((still(), still(), still()), (0, 1, 1), "it has just come, and it stays");
            end(first);
            let second = begin(&targets[0]);
            assert_eq!(still(), u32::from(limit > 1), "with two places it may be the one that was there");
            assert_eq!(still(), 1);
            end(second);
            assert_eq!(still(), 0);
            let third = begin(&targets[0]);
            assert_eq!(book.row(&targets, 1).fresh.len(), 0);
            assert!(book.row(&targets, 2).fresh.is_empty(), "since when it is there nobody knows");
            end(third);
        }
    }
}
