//! The config of a cluster: revisions of one text, one after the other, each of which all nodes have agreed to.
//!
//! Invariants:
//!
//! 1. `config/current` names the revision in force. It is there from the first one on, and only ever goes up by one.
//! 2. The row of a revision is never changed. Those of late stay, so that a node that was away finds what it missed.
//! 3. There is one proposal at a time, which goes with the lease of who proposes. Every node that is there says whether it would take it; it
//!    becomes a revision in the same step in which it stops to be a proposal, and only if `config/current` is what it was when it was proposed.

use serde::{Deserialize, Serialize};

use super::view::{ClusterView, KnownRows};

/// The row that names the revision in force.
pub const CURRENT: &str = "config/current";
/// What is proposed.
pub const PROPOSAL: &str = "config/proposal";
/// What the names of revisions begin with.
const REVISIONS: &str = "config/rev/";
/// What the names of rows begin with that say who agrees.
const ACKS: &str = "config/ack/";
/// How many revisions are kept.
pub const KEPT: u64 = 20;

/// `config/current`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurrentRow {
    /// The number of the revision in force, from 1.
    pub number: u64,
}

/// `config/rev/NUMBER`, packed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevisionRow {
    /// Its number, from 1.
    pub number: u64,
    /// What it says.
    pub text: String,
    /// Who has proposed it.
    pub author: String,
    /// On which node.
    pub node: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

/// `config/proposal`, packed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProposalRow {
    /// What it is known by: no other has it.
    pub id: String,
    /// What would be the next revision.
    pub revision: RevisionRow,
}

/// `config/ack/ID/NODE`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AckRow {
    /// Why it would not be taken; empty: it would.
    pub problems: Vec<String>,
}

/// The name of the row of a revision.
#[must_use]
pub fn revision(number: u64) -> String {
    // So that they stand in their order.
    format!("{REVISIONS}{number:010}")
}

/// The name of the row by which a node agrees.
#[must_use]
pub fn ack(id: &str, node: &str) -> String {
    format!("{ACKS}{id}/{node}")
}

/// Names of the rows of revisions that are not kept any more once this one is in force, and of all that was said about proposals.
#[must_use]
pub fn over(rows: &KnownRows, number: u64) -> Vec<String> {
    let oldest = revision(number.saturating_sub(KEPT - 1));
    let revisions = rows.names(REVISIONS).filter(|name| **name < *oldest);
    revisions.chain(rows.names(ACKS)).map(str::to_owned).collect()
}

/// The number of the revision in force.
#[must_use]
pub fn current(rows: &KnownRows) -> Option<u64> {
    let row = rows.get(CURRENT)?;
    super::rows::read::<CurrentRow>(&row.value).map(|row| row.number)
}

/// What the nodes say about a proposal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProposalTally {
    /// Those who have said nothing yet.
    pub waiting: Vec<String>,
    /// Those who would not take it, with the reasons.
    pub refusals: Vec<(String, Vec<String>)>,
}

/// Counts what is said about the proposal of this id by the nodes that are there.
#[must_use]
pub fn tally(view: &ClusterView, id: &str) -> ProposalTally {
    let mut tally = ProposalTally::default();
    for node in view.nodes().into_iter().filter(|node| node.row.shares) {
        let row = view.rows.get(&ack(id, &node.name));
        match row.and_then(|row| super::rows::read::<AckRow>(&row.value)) {
            None => tally.waiting.push(node.name),
            Some(AckRow { problems }) if !problems.is_empty() => tally.refusals.push((node.name, problems)),
            Some(_) => {}
        }
    }
    tally
}
