//! Whether this node is one of its cluster, as decisions: whether it may join, how long it may think that it is there.
//!
//! Invariants:
//!
//! 1. A node counts as there from the moment that its row is written until its deadline: so long after the *sending* of the latest word that kept its lease
//!    alive as the lease lasts, less [`MARGIN`]. So it knows that it may be gone before anybody else takes it for gone, whatever its clock was set to, and
//!    also when the process stood still meanwhile.
//! 2. Past its deadline it is detached: it serves on with what it knows, and does nothing that only one may do. It is back with the next word
//!    that has kept the same lease alive, or with another lease.
//! 3. Whoever may not join is refused until that has changed; it serves all the same.

use std::time::Duration;

use super::rows::{NodeRow, SCHEMA, SchemaRow};
use crate::tick::Tick;

/// How long before its lease may be over a node takes itself for gone.
pub const MARGIN: Duration = Duration::from_secs(1);
/// How often in the time of a lease it is kept alive.
const BEATS: u32 = 5;

/// How a node stands to its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It has not been there yet.
    Joining,
    /// It is one of them.
    Member,
    /// It was there, or would be: nobody answers.
    Detached(String),
    /// It may not join, and why.
    Refused(String),
}

impl Standing {
    /// In one word.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Standing::Joining => "joining",
            Standing::Member => "member",
            Standing::Detached(_) => "detached",
            Standing::Refused(_) => "refused",
        }
    }

    /// Why it is no member.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Standing::Detached(why) | Standing::Refused(why) => Some(why),
            Standing::Joining | Standing::Member => None,
        }
    }
}

/// From one word that keeps a lease alive to the next.
#[must_use]
pub fn beat(lease: Duration) -> Duration {
    lease / BEATS
}

/// Until when a node may think that it is there that has sent its latest good word at `sent`.
#[must_use]
pub fn deadline(sent: Tick, lease: Duration) -> Tick {
    sent.after(lease.saturating_sub(MARGIN))
}

/// Why `own` may not join where these rows are; `None`: it may.
#[must_use]
pub fn refusal(own: (&str, &NodeRow), schema: Option<SchemaRow>, there: Option<&NodeRow>) -> Option<String> {
    let (name, own) = own;
    if let Some(schema) = schema.filter(|schema| schema.min_reader > SCHEMA) {
        let SchemaRow { writer, min_reader } = schema;
        return Some(format!(
            "this evenkeel ({}) is too old: its cluster writes version {writer} of what is shared, which wants {min_reader} understood, and \
             this one understands {SCHEMA}",
            own.version
        ));
    }
    let other = there.filter(|row| row.machine != own.machine)?;
    Some(format!(
        "another process is the node `{name}` already (evenkeel {}, since {} s): give one of them another `cluster.node`",
        other.version,
        own.since_ms.saturating_sub(other.since_ms) / 1000
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(machine: &str) -> NodeRow {
        NodeRow {
            boot: "b".to_owned(),
            machine: machine.to_owned(),
            version: "0.1.0".to_owned(),
            schema: [1, SCHEMA],
            shares: true,
            zone: None,
            since_ms: 5_000,
        }
    }

    #[test]
    fn a_node_takes_itself_for_gone_before_anybody_else_does() {
        let lease = Duration::from_secs(10);
        let due = deadline(Tick(7), lease);
        assert_eq!(due.since(Tick(7)), Duration::from_secs(9));
        assert!(beat(lease) * 4 < due.since(Tick(7)), "several words may be lost");
    }

    #[test]
    fn a_node_takes_its_own_place_and_nobody_elses() {
        let own = row("mine");
        assert_eq!(refusal(("a", &own), None, None), None);
        assert_eq!(refusal(("a", &own), None, Some(&row("mine"))), None);
        let other = NodeRow { since_ms: 2_000, ..row("theirs") };
        let why = refusal(("a", &own), None, Some(&other)).expect("refused");
        assert!(why.contains("`a` already (evenkeel 0.1.0, since 3 s)"), "{why}");
    }

    #[test]
    fn a_node_that_is_too_old_may_not_join() {
        let own = row("mine");
        let schema = |writer, min_reader| Some(SchemaRow { writer, min_reader });
        assert_eq!(refusal(("a", &own), schema(SCHEMA + 1, SCHEMA), None), None);
        let why = refusal(("a", &own), schema(SCHEMA + 2, SCHEMA + 1), None).expect("refused");
        assert!(why.contains("too old"), "{why}");
    }
}
