//! What nodes say they have on backends that they share.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::cluster::membership::Standing;
use crate::cluster::rows;
use crate::cluster::view::ClusterView;
use crate::store::shared::Revision;
use crate::targets::sharing::hearing::HeardCount;

/// What the names of its rows begin with.
pub(super) const ROWS: &str = "busy/";
/// After which time what a node has said says nothing any more; with very many nodes, three of their turns.
const OLD: Duration = Duration::from_secs(1);
/// In so many parts of a request it is said how many have begun lately.
pub(super) const LATELY_PARTS: f64 = 64.0;

/// `busy/NODE`. It goes with the lease of its node; `busy/NODE/BOOT-PROCESS` is what is under way on one that has left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BusyRow {
    /// A number that grows, so that what is said again is a change.
    pub(super) turn: u64,
    /// Requests on backends that have any, by identity.
    pub(super) backends: BTreeMap<String, u32>,
    /// How many of these were not there a turn before. Of what it does not say it, they were.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) fresh: BTreeMap<String, u32>,
    /// Requests that wait, by target.
    #[serde(default)]
    pub(super) waiting: BTreeMap<String, u32>,
    /// Targets where they wait because all is full that this node prefers: nobody else takes that.
    #[serde(default)]
    pub(super) needy: BTreeSet<String>,
    /// How many it has begun on backends lately ([`LATELY`](crate::targets::sharing::uses::LATELY)), in 64ths, by target and the backend's name in it. Of a target that is not there
    /// it does not say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) lately: BTreeMap<String, BTreeMap<String, u32>>,
}

impl BusyRow {
    pub(super) fn is_empty(&self) -> bool {
        let has_begun = self.lately.values().any(|lately| !lately.is_empty());
        self.backends.is_empty() && self.waiting.is_empty() && self.needy.is_empty() && !has_begun
    }

    /// What is asked of it for a target: requests under way and waiting.
    pub(super) fn demand(&self, target: &str) -> u32 {
        let prefix = format!("{target}/");
        let on_backends = self.backends.range(prefix.clone()..);
        let on_backends = on_backends.take_while(|(identity, _)| identity.starts_with(&prefix));
        let waiting = self.waiting.get(target).copied().unwrap_or(0);
        on_backends.fold(waiting, |sum, (_, count)| sum.saturating_add(*count))
    }
}

/// What is known of others.
#[derive(Default)]
pub(super) struct HeardNodes {
    /// By node.
    said: HashMap<String, HeardRow>,
}

/// What one of them has said last.
struct HeardRow {
    /// By which change of its row.
    changed: Revision,
    /// When that was seen.
    since: Instant,
    row: Arc<BusyRow>,
}

/// What the other nodes say at a moment.
#[derive(Default)]
pub(super) struct BusyOthers {
    /// Of each that has said something lately, by name.
    pub(super) rows: BTreeMap<String, Arc<BusyRow>>,
    /// One of them had something and says nothing any more: nobody knows what it has.
    pub(super) is_in_the_dark: bool,
}

impl BusyOthers {
    /// What all of them have on backends, by identity.
    pub(super) fn sums(&self) -> HashMap<&str, HeardCount> {
        let mut sums: HashMap<&str, HeardCount> = HashMap::new();
        for row in self.rows.values() {
            for (identity, count) in &row.backends {
                let fresh = row.fresh.get(identity).copied().unwrap_or(0);
                let sum = sums.entry(identity).or_default();
                sum.last = sum.last.saturating_add(*count);
                sum.still = sum.still.saturating_add(count.saturating_sub(fresh));
            }
        }
        sums
    }

    /// How many requests all of them have begun on backends of a target lately, by name; `None`: one of them has some there, and does not say. Who has left begins none.
    pub(super) fn lately(&self, target: &str) -> Option<HashMap<&str, f64>> {
        let mut sums: HashMap<&str, f64> = HashMap::new();
        for (_, row) in self.rows.iter().filter(|(node, _)| !node.contains('/')) {
            match row.lately.get(target) {
                None if row.demand(target) > 0 => return None,
                None => {}
                Some(lately) => lately.iter().for_each(|(name, count)| {
                    *sums.entry(name).or_default() += f64::from(*count) / LATELY_PARTS;
                }),
            }
        }
        (!self.is_in_the_dark).then_some(sums)
    }

    /// Who of them needs what it prefers of this target.
    pub(super) fn needy(&self, target: &str) -> Vec<&str> {
        let needy = self.rows.iter().filter(|(_, row)| row.needy.contains(target));
        needy.map(|(node, _)| node.as_str()).collect()
    }
}

impl HeardNodes {
    /// What others say by now.
    pub(super) fn listen(&mut self, view: &ClusterView, tick: Duration, at: Instant) -> BusyOthers {
        let mut others = BusyOthers::default();
        if view.standing != Standing::Member {
            self.said.clear();
            // Nobody knows what they have.
            others.is_in_the_dark = true;
            return others;
        }
        let mut said = HashMap::new();
        // Also of nodes that have left, for as long as they have something under way.
        let all = view.rows.names(ROWS).filter_map(|name| Some((name, name.strip_prefix(ROWS)?)));
        for (name, node) in all.filter(|(_, node)| *node != &*view.node) {
            let changed = view.rows.changed(name);
            let heard = match self.said.remove(node) {
                Some(heard) if heard.changed == changed => heard,
                _ => {
                    let row = view.rows.get(name).and_then(|row| rows::read::<BusyRow>(&row.value));
                    HeardRow { changed, since: at, row: Arc::new(row.unwrap_or_default()) }
                }
            };
            if at.duration_since(heard.since) <= OLD.max(tick * 3) {
                others.rows.insert(node.to_owned(), Arc::clone(&heard.row));
            } else if !heard.row.is_empty() {
                others.is_in_the_dark = true;
            }
            said.insert(node.to_owned(), heard);
        }
        self.said = said;
        others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demand_is_what_is_under_way_and_waits_of_that_target_alone() {
        let backends = [("web/a", 2), ("web/b", 3), ("web-2/a", 7), ("we/a", 9)];
        let backends = backends.map(|(identity, count)| (identity.to_owned(), count)).into();
        let waiting = BTreeMap::from([("web".to_owned(), 4), ("other".to_owned(), 1)]);
        let row = BusyRow {
            turn: 1,
            backends,
            waiting,
            needy: BTreeSet::from(["web".to_owned()]),
            ..BusyRow::default()
        };
        let other =
            BusyRow { fresh: [("web/b".to_owned(), 1), ("web/c".to_owned(), 1)].into(), ..row.clone() };
        assert_eq!(["web", "web-2", "other", "none"].map(|target| row.demand(target)), [9, 7, 1, 0]);
        let others = BusyOthers {
            rows: [("a", row), ("b", other)].map(|(node, row)| (node.to_owned(), Arc::new(row))).into(),
            is_in_the_dark: false,
        };
        let of = |backend: &str| others.sums()[backend];
        assert_eq!(of("web/b"), HeardCount { last: 6, still: 5 }, "one of three that b has is another one");
        assert_eq!((of("web/a").still, others.needy("web").len()), (4, 2));
        assert!(!others.sums().contains_key("web/c"), "where it has none, none is there");
        assert!(others.needy("other").is_empty());
    }

    #[test]
    fn what_others_have_begun_is_known_when_each_that_has_some_says_it() {
        let says = |count: u32| BusyRow {
            lately: [("web".to_owned(), [("a".to_owned(), count)].into())].into(),
            ..BusyRow::default()
        };
        let has_one = || BusyRow { backends: [("web/b".to_owned(), 1)].into(), ..BusyRow::default() };
        let others = |rows: &[(&str, BusyRow)], is_in_the_dark: bool| BusyOthers {
            rows: rows.iter().map(|(node, row)| ((*node).to_owned(), Arc::new(row.clone()))).collect(),
            is_in_the_dark,
        };
        let two = [("a", says(96)), ("b", says(32))];
        assert_eq!(others(&two, false).lately("web"), Some(HashMap::from([("a", 2.0)])));
        assert_eq!(others(&two, false).lately("other"), Some(HashMap::new()));
        assert_eq!(others(&two, true).lately("web"), None);
        let older = others(&[("a", says(96)), ("b", has_one())], false);
        assert_eq!((older.lately("web"), older.lately("other")), (None, Some(HashMap::new())));
        for left in [("b/x-1", has_one()), ("b", BusyRow::default())] {
            let known = others(&[("a", says(64)), left], false);
            assert_eq!(known.lately("web"), Some(HashMap::from([("a", 1.0)])));
        }
        let none = BusyRow { lately: [("web".to_owned(), BTreeMap::new())].into(), ..BusyRow::default() };
        assert!(!says(1).is_empty() && none.is_empty());
        // What an older one has written is read, and one that has nothing to say of it writes what an older one would.
        let old: BusyRow = rows::read(br#"{"turn":1,"backends":{"web/a":1}}"#).unwrap();
        assert!(old.lately.is_empty() && old.fresh.is_empty());
        let again = String::from_utf8(rows::write(&old)).unwrap();
        assert!(!["lately", "fresh"].iter().any(|field| again.contains(field)), "{again}");
    }

    #[test]
    fn a_node_that_is_none_of_them_knows_nothing_of_what_others_have_begun() {
        let view = |standing| ClusterView {
            cluster: "t".into(),
            node: "a".into(),
            boot: "x".into(),
            standing,
            since: crate::tick::Tick::ZERO,
            kept: None,
            rows: Arc::default(),
            rewinds: 0,
        };
        let hear = |standing| {
            let others =
                HeardNodes::default().listen(&view(standing), Duration::from_millis(250), Instant::now());
            others.lately("web").is_some()
        };
        assert!(hear(Standing::Member) && !hear(Standing::Joining));
        assert!(!hear(Standing::Detached("it has left".to_owned())));
    }
}
