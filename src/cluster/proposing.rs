//! How a text becomes a revision: it is proposed, all nodes say whether they would take it, and then it is in force on all, or on none.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::membership::Standing;
use super::node::ClusterNode;
use super::packed::{Unpacked, pack, pack_over, unpack};
use super::revision::{
    self, AckRow, CURRENT, CurrentRow, PROPOSAL, ProposalRow, ProposalTally, RevisionRow, tally,
};
use super::rows;
use super::view::KnownRows;
use crate::store::shared::{Committed, RowChange, RowCondition, StoreFault, Transaction};

/// How long nodes have to say whether they would take a proposal.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// A text that is to become a revision.
#[derive(Clone, Debug)]
pub struct ProposedText {
    /// What it says.
    pub text: String,
    /// By whom: `uid 0`.
    pub author: String,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

/// Why a text has not become a revision. Nothing has changed on any node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProposalFault {
    /// Another one is under way, of this node; `None`: it was first by a moment.
    Busy(Option<String>),
    /// These nodes would not take it.
    Refused(Vec<(String, Vec<String>)>),
    /// These nodes have not said anything in time.
    Unanswered(Vec<String>),
    /// The cluster can't be told.
    Store(StoreFault),
}

impl fmt::Display for ProposalFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProposalFault::Busy(Some(node)) => {
                write!(f, "another config is being agreed on, proposed on node {node}")
            }
            ProposalFault::Busy(None) => {
                f.write_str("another config was proposed at the same moment: ask again")
            }
            ProposalFault::Refused(all) => {
                let nodes: Vec<String> = all
                    .iter()
                    .map(|(node, problems)| {
                        let first = problems.first().map_or("it does not fit", String::as_str);
                        let more = problems.len().saturating_sub(1);
                        let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
                        format!("node {node} would not take it: {first}{more}")
                    })
                    .collect();
                f.write_str(&nodes.join("; "))
            }
            ProposalFault::Unanswered(nodes) => {
                let (nodes, secs) = (nodes.join(", "), PATIENCE.as_secs());
                write!(f, "no word within {secs} s of whether they would take it from: {nodes}")
            }
            ProposalFault::Store(fault) => write!(f, "the cluster can't be told: {fault}"),
        }
    }
}

impl From<StoreFault> for ProposalFault {
    fn from(fault: StoreFault) -> ProposalFault {
        ProposalFault::Store(fault)
    }
}

impl ClusterNode {
    /// What a packed row is sealed for.
    fn full_name(&self, name: &str) -> String {
        format!("{}/{name}", self.view().cluster)
    }

    /// A row as it is kept: compressed, and sealed if there is a key.
    #[must_use]
    pub fn packed<T: Serialize>(&self, name: &str, row: &T) -> Vec<u8> {
        pack(&self.full_name(name), &rows::write(row), self.key())
    }

    /// The same in the place of what is there: what this version does not know of it stays.
    #[must_use]
    pub fn packed_over<T: Serialize + DeserializeOwned>(
        &self,
        known: &KnownRows,
        name: &str,
        row: &T,
    ) -> Vec<u8> {
        pack_over(&self.full_name(name), row, known.value(name), self.key())
    }

    /// What a row says that was kept so; `None`: it is not there.
    #[must_use]
    pub fn unpacked<T: DeserializeOwned>(
        &self,
        known: &KnownRows,
        name: &str,
    ) -> Option<Result<T, Unpacked>> {
        let row = known.get(name)?;
        let read = unpack(&self.full_name(name), &row.value, self.key());
        Some(read.and_then(|bytes| rows::read(&bytes).ok_or(Unpacked::Damaged)))
    }

    /// A revision; `None`: it is not there.
    #[must_use]
    pub fn revision(&self, known: &KnownRows, number: u64) -> Option<Result<RevisionRow, Unpacked>> {
        self.unpacked(known, &revision::revision(number))
    }

    /// What is proposed.
    #[must_use]
    pub fn proposal(&self, known: &KnownRows) -> Option<Result<ProposalRow, Unpacked>> {
        self.unpacked(known, PROPOSAL)
    }

    /// Makes the first revision; `Conflict`: somebody else has.
    ///
    /// # Errors
    /// The cluster can't be told.
    pub async fn seed(&self, proposed: ProposedText) -> Result<Committed, StoreFault> {
        let row = self.row_of(proposed, 1);
        let name = revision::revision(1);
        let changes = vec![
            RowChange::put(name.clone(), self.packed(&name, &row)),
            RowChange::put(CURRENT, rows::write(&CurrentRow { number: 1 })),
        ];
        let conditions = vec![RowCondition { name: CURRENT.to_owned(), changed: 0 }];
        self.commit(Transaction { conditions, changes }).await
    }

    fn row_of(&self, proposed: ProposedText, number: u64) -> RevisionRow {
        let ProposedText { text, author, at_ms } = proposed;
        RevisionRow { number, text, author, node: self.view().node.to_string(), at_ms }
    }

    /// Says whether this node would take what is proposed under this id.
    ///
    /// # Errors
    /// The cluster can't be told.
    pub async fn acknowledge(&self, id: &str, problems: Vec<String>) -> Result<Committed, StoreFault> {
        let view = self.view();
        let name = revision::ack(id, &view.node);
        let value = rows::write(&AckRow { problems });
        let changes = vec![RowChange::Put { name, value, lease: self.lent() }];
        // What is not proposed any more needs no word.
        let changed = view.rows.changed(PROPOSAL);
        let conditions = vec![RowCondition { name: PROPOSAL.to_owned(), changed }];
        self.commit(Transaction { conditions, changes }).await
    }

    /// Has a text become the next revision, and gives its number: greater than `known`, which the store may know nothing of any more.
    ///
    /// # Errors
    /// See [`ProposalFault`].
    pub async fn propose(
        &self,
        id: String,
        proposed: ProposedText,
        known: u64,
    ) -> Result<u64, ProposalFault> {
        let view = self.view();
        if let Some(other) = self.proposal(&view.rows) {
            return Err(ProposalFault::Busy(other.ok().map(|other| other.revision.node)));
        }
        let number = revision::current(&view.rows).unwrap_or_default().max(known).saturating_add(1);
        let row = ProposalRow { id: id.clone(), revision: self.row_of(proposed, number) };
        let at = |name: &str, changed: u64| RowCondition { name: name.to_owned(), changed };
        let before = view.rows.changed(CURRENT);
        let value = self.packed(PROPOSAL, &row);
        let put = RowChange::Put { name: PROPOSAL.to_owned(), value, lease: self.lent() };
        let conditions = vec![at(PROPOSAL, 0), at(CURRENT, before)];
        let Committed::Done(begun) = self.commit(Transaction { conditions, changes: vec![put] }).await?
        else {
            return Err(ProposalFault::Busy(None));
        };
        let heard = self.hear(&id, begun).await;
        let is_own = at(PROPOSAL, begun);
        if let Err(fault) = heard {
            let changes = vec![RowChange::drop(PROPOSAL)];
            // It goes with the lease anyway.
            let _ = self.commit(Transaction { conditions: vec![is_own], changes }).await;
            return Err(fault);
        }
        let name = revision::revision(number);
        let mut changes = vec![
            RowChange::put(name.clone(), self.packed(&name, &row.revision)),
            RowChange::put(CURRENT, rows::write_over(&CurrentRow { number }, view.rows.value(CURRENT))),
            RowChange::drop(PROPOSAL),
        ];
        let over = revision::over(&self.view().rows, number);
        changes.extend(over.into_iter().take(Transaction::MOST - 3).map(RowChange::drop));
        let conditions = vec![is_own, at(CURRENT, before)];
        match self.commit(Transaction { conditions, changes }).await? {
            Committed::Done(done) => {
                self.learned(done).await;
                Ok(number)
            }
            Committed::Conflict => Err(ProposalFault::Busy(None)),
        }
    }

    /// Waits until all nodes that are there agree.
    async fn hear(&self, id: &str, begun: u64) -> Result<(), ProposalFault> {
        let mut views = self.views();
        let is_over = |tally: &ProposalTally| tally.waiting.is_empty() || !tally.refusals.is_empty();
        let waited = timeout(PATIENCE, async {
            loop {
                let view = views.borrow_and_update().clone();
                let tally = tally(&view, id);
                if view.rows.revision() >= begun && is_over(&tally) || view.standing != Standing::Member {
                    return;
                }
                if views.changed().await.is_err() {
                    return;
                }
            }
        });
        let _ = waited.await;
        let view = self.view();
        let ProposalTally { waiting, refusals } = tally(&view, id);
        if !refusals.is_empty() {
            return Err(ProposalFault::Refused(refusals));
        }
        if view.standing != Standing::Member {
            let why = view.standing.reason().unwrap_or("it is no member any more").to_owned();
            let why = format!("{}: {why}", view.standing.as_str());
            return Err(ProposalFault::Store(StoreFault::Apart(why)));
        }
        if waiting.is_empty() { Ok(()) } else { Err(ProposalFault::Unanswered(waiting)) }
    }
}
