//! Backends of a node that is taken for gone: it may be cut off from the store alone. Then its clients still come to it, it goes on using what it preferred, and nobody hears of that.
//!
//! Who prefers those backends from then on goes by what it sees itself, so two nodes may be on one of them at once. A third one is not to join them without need: what a node sends to
//! others though one of its own is free (`levelling`) goes to those that nobody doubts, and what finds all its own taken comes to these last.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::owners::Owners;
use crate::tick::Tick;

/// For how long: a node that is back by then says itself what it has, and one that is not is dead, or somebody has been told of it long ago.
pub const DOUBTED: Duration = Duration::from_secs(600);

/// What is doubted of one target: by node that is gone, since when it is, and the identities of what it preferred.
#[derive(Debug, Default)]
pub struct Doubts(BTreeMap<String, (Tick, BTreeSet<String>)>);

impl Doubts {
    /// Backends with these identities have these owners from now on. `before`: those that they had, by the same places; `None`: they had other places.
    pub fn look(&mut self, identities: &[&str], before: Option<&Owners>, owners: &Owners, now: Tick) {
        let is_there = |node: &str| owners.nodes().iter().any(|there| there == node);
        self.0.retain(|node, (since, _)| now.since(*since) < DOUBTED && !is_there(node));
        let Some(before) = before.filter(|before| before.are_shared()) else { return };
        for (place, identity) in identities.iter().enumerate() {
            if let Some(gone) = before.owner(place).filter(|owner| !is_there(owner)) {
                let (_, backends) = self.0.entry(gone.to_owned()).or_insert_with(|| (now, BTreeSet::new()));
                backends.insert((*identity).to_owned());
            }
        }
    }

    /// Whether somebody may use it of whom nobody hears.
    #[must_use]
    pub fn is_doubted(&self, identity: &str, now: Tick) -> bool {
        self.0.values().any(|(since, backends)| now.since(*since) < DOUBTED && backends.contains(identity))
    }
}

#[cfg(test)]
mod tests {
    use super::super::owners::MovedBackends;
    use super::*;

    const NOW: Tick = Tick(1_000_000_000);

    fn of(nodes: &[&str], identities: &[&str]) -> Owners {
        let nodes: Vec<String> = nodes.iter().map(|node| (*node).to_owned()).collect();
        Owners::of(&nodes, identities.iter().copied(), &MovedBackends::new())
    }

    #[test]
    fn what_a_node_preferred_that_is_gone_is_doubted_until_it_is_back_or_long_gone() {
        let names: Vec<String> = (0..30).map(|number| format!("web/b{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (all, two, one) = (of(&["a", "b", "c"], &names), of(&["a", "b"], &names), of(&["a"], &names));
        let doubted = |doubts: &Doubts, now: Tick| -> Vec<usize> {
            (0..30).filter(|place| doubts.is_doubted(names[*place], now)).collect()
        };
        let of_node =
            |node: &str| (0..30).filter(|place| all.owner(*place) == Some(node)).collect::<Vec<_>>();
        let mut doubts = Doubts::default();
        doubts.look(&names, None, &all, NOW);
        doubts.look(&names, Some(&all), &all, NOW);
        assert_eq!(doubted(&doubts, NOW), [0; 0]);
        doubts.look(&names, Some(&all), &two, NOW);
        assert!(!of_node("c").is_empty());
        assert_eq!(doubted(&doubts, NOW), of_node("c"));
        // Others may move meanwhile, and a config may give them other places.
        doubts.look(&names, Some(&two), &two, NOW);
        doubts.look(&names, None, &two, NOW);
        assert_eq!(doubted(&doubts, NOW), of_node("c"));
        // One more goes: what it had of the first one is doubted for both.
        doubts.look(&names, Some(&two), &one, NOW);
        assert!(
            (0..30)
                .filter(|place| two.owner(*place) == Some("b"))
                .all(|place| doubts.is_doubted(names[place], NOW))
        );
        doubts.look(&names, Some(&one), &two, NOW);
        assert_eq!(doubted(&doubts, NOW), of_node("c"), "the first one is still gone");
        let last = NOW.after(DOUBTED - Duration::from_nanos(1));
        assert_eq!(
            (doubted(&doubts, last), doubted(&doubts, NOW.after(DOUBTED))),
            (of_node("c"), Vec::new())
        );
        doubts.look(&names, Some(&two), &all, last);
        assert_eq!(doubted(&doubts, last), [0; 0]);
    }
}
