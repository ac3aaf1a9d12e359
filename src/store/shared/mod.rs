//! What the nodes of a cluster share: rows of bytes under names, in one order of revisions.
//!
//! Two keep them: [`embedded`] in this process, with a journal in the folder of state, which makes a cluster of one; and [`etcd`]. The same test
//! (`tests/e2e/cluster_store.rs`) asks both the same.
//!
//! What holds of either:
//!
//! 1. Each change that is done has a revision greater than all before it, and all rows that it touches have that revision.
//! 2. A [`Transaction`] is done as a whole or not at all, and it is done only if each of its conditions held at that moment.
//!    Without conditions it may be done once more, later, where an answer was lost on the way: whoever can't have that says what has to hold.
//! 3. A watch tells of every change after the revision that it was begun with, each revision whole and in their order; or it says that it can't.
//! 4. **A fault is never an empty list.** Whoever is told [`StoreFault`] knows nothing that it did not know before.
//! 5. A row with a lease goes with it: when that is given back, or when nobody has kept it alive for its time.

pub mod chosen;
pub mod embedded;
pub mod etcd;

use std::collections::BTreeSet;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::mpsc;

/// The number of a change; 0 is before every change.
pub type Revision = u64;

/// The number of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseNumber(pub i64);

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreRow {
    /// Its name.
    pub name: String,
    /// What it says.
    pub value: Vec<u8>,
    /// The revision of its latest change.
    pub changed: Revision,
    /// With what it goes; `None`: it stays until somebody drops it.
    pub lease: Option<LeaseNumber>,
}

/// The rows whose names begin alike, as they were at one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// By name.
    pub rows: Vec<StoreRow>,
    /// When.
    pub revision: Revision,
}

/// Whom a listing is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListedFrom {
    /// From a majority: it has every change that was done before it was asked for.
    Majority,
    /// From one member, as it knows it, also if it is cut off from the others.
    OneMember,
}

/// What has to hold for a [`Transaction`] to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowCondition {
    /// Of which row.
    pub name: String,
    /// The revision of its latest change; 0: it is not there.
    pub changed: Revision,
}

/// A part of a [`Transaction`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowChange {
    /// The row says this from now on.
    Put {
        /// Its name.
        name: String,
        /// What it says.
        value: Vec<u8>,
        /// With what it goes.
        lease: Option<LeaseNumber>,
    },
    /// The row is no more.
    Drop {
        /// Its name.
        name: String,
    },
}

impl RowChange {
    /// One that stays.
    #[must_use]
    pub fn put(name: impl Into<String>, value: impl Into<Vec<u8>>) -> RowChange {
        RowChange::Put { name: name.into(), value: value.into(), lease: None }
    }

    /// One that is no more.
    #[must_use]
    pub fn drop(name: impl Into<String>) -> RowChange {
        RowChange::Drop { name: name.into() }
    }

    /// Which row.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            RowChange::Put { name, .. } | RowChange::Drop { name } => name,
        }
    }
}

/// Changes that are done together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// What has to hold.
    pub conditions: Vec<RowCondition>,
    /// What is done then; no row twice.
    pub changes: Vec<RowChange>,
}

impl Transaction {
    /// The most conditions and changes of one, each: what etcd takes unless it is told otherwise.
    pub const MOST: usize = 128;

    /// Whether it may be asked for.
    ///
    /// # Errors
    /// [`StoreFault::Unfit`]: it has too many parts, or touches a row twice.
    pub fn check(&self) -> Result<(), StoreFault> {
        let unfit = |why: String| Err(StoreFault::Unfit(why));
        if self.conditions.len() > Transaction::MOST || self.changes.len() > Transaction::MOST {
            return unfit(format!("a transaction has at most {} parts", Transaction::MOST));
        }
        let names: BTreeSet<&str> = self.changes.iter().map(RowChange::name).collect();
        if names.len() < self.changes.len() {
            return unfit("a transaction changes a row once".to_owned());
        }
        Ok(())
    }
}

/// What has become of a [`Transaction`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Committed {
    /// It is done, at this revision.
    Done(Revision),
    /// A condition did not hold; nothing has changed.
    Conflict,
}

/// What a watch tells of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreChanges {
    /// Rows that say something new.
    pub put: Vec<StoreRow>,
    /// Names of rows that are no more.
    pub dropped: Vec<String>,
    /// All changes up to this revision have been told.
    pub revision: Revision,
}

impl StoreChanges {
    /// Adds those that came after it.
    pub fn add(&mut self, later: StoreChanges) {
        let StoreChanges { put, dropped, revision } = later;
        let is_touched = |name: &String| dropped.contains(name) || put.iter().any(|row| row.name == *name);
        self.put.retain(|row| !is_touched(&row.name));
        self.dropped.retain(|name| !is_touched(name));
        self.put.extend(put);
        self.dropped.extend(dropped);
        self.revision = revision;
    }
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum StoreFault {
    /// Nobody answers, or nobody who may decide. What was asked for may have been done all the same.
    #[error("unreachable: {0}")]
    Unreachable(String),
    /// Nobody was asked: this node is none of those who share.
    #[error("this node is {0}")]
    Apart(String),
    /// It may not be done by whom we come as.
    #[error("refused: {0}")]
    Refused(String),
    /// There is no room.
    #[error("no room: {0}")]
    Full(String),
    /// The lease is no more.
    #[error("the lease is over")]
    LeaseOver,
    /// Changes after the revision that was asked for are not known any more.
    #[error("changes since revision {0} are not known any more")]
    Compacted(Revision),
    /// There are fewer changes than were told before: these are other rows than they were.
    #[error("it has gone back to revision {0}: its rows are not those that there were")]
    Rewound(Revision),
    /// What was asked for can't be asked.
    #[error("{0}")]
    Unfit(String),
}

/// Changes as they happen. Dropping it ends it.
#[derive(Debug)]
pub struct StoreWatch {
    told: mpsc::Receiver<Result<StoreChanges, StoreFault>>,
    /// Why it has ended: told behind the last changes.
    fault: Option<StoreFault>,
}

impl StoreWatch {
    /// How many batches wait for who reads them; who is slower is waited for.
    const WAITING: usize = 64;

    fn new() -> (mpsc::Sender<Result<StoreChanges, StoreFault>>, StoreWatch) {
        let (teller, told) = mpsc::channel(StoreWatch::WAITING);
        (teller, StoreWatch { told, fault: None })
    }

    /// The next changes, all that there are, as one.
    ///
    /// # Errors
    /// Why it can't go on. It tells nothing more then.
    pub async fn next(&mut self) -> Result<StoreChanges, StoreFault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let ended = || StoreFault::Unreachable("the watch has ended".to_owned());
        let mut changes = match self.told.recv().await.unwrap_or_else(|| Err(ended())) {
            Ok(changes) => changes,
            Err(fault) => return Err(self.fault.insert(fault).clone()),
        };
        while let Ok(told) = self.told.try_recv() {
            match told {
                Ok(more) => changes.add(more),
                Err(fault) => {
                    self.fault = Some(fault);
                    break;
                }
            }
        }
        Ok(changes)
    }
}

/// Keeps rows.
pub trait ClusterStore: Send + Sync + 'static {
    /// The rows whose names begin with `prefix`.
    ///
    /// # Errors
    /// It is not known.
    fn list(
        &self,
        prefix: &str,
        from: ListedFrom,
    ) -> impl Future<Output = Result<Listing, StoreFault>> + Send;

    /// Does `transaction` if its conditions hold.
    ///
    /// # Errors
    /// It is not done; or nobody knows, if it is [`StoreFault::Unreachable`].
    fn commit(&self, transaction: Transaction) -> impl Future<Output = Result<Committed, StoreFault>> + Send;

    /// Tells of all changes of rows whose names begin with `prefix` that have a revision greater than `after`.
    fn watch(&self, prefix: &str, after: Revision) -> StoreWatch;

    /// A lease that lasts so long, in whole seconds, each time that it is kept alive.
    ///
    /// # Errors
    /// There is none.
    fn grant(&self, lasts: Duration) -> impl Future<Output = Result<LeaseNumber, StoreFault>> + Send;

    /// Begins the time of a lease anew.
    ///
    /// # Errors
    /// [`StoreFault::LeaseOver`], or it is not known.
    fn keep_alive(&self, lease: LeaseNumber) -> impl Future<Output = Result<(), StoreFault>> + Send;

    /// Gives a lease back, with all rows that go with it.
    ///
    /// # Errors
    /// It may last until its time is over.
    fn revoke(&self, lease: LeaseNumber) -> impl Future<Output = Result<(), StoreFault>> + Send;
}
