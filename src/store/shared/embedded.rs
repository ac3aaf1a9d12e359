//! The rows of a cluster of one, in this process. Those that stay are kept in a journal, if there is one.
//!
//! Invariants, of what is behind the mutex (`Shelf`):
//!
//! 1. `revision` is the greatest that any row has or had, and that was told to anybody.
//! 2. A row with a lease is in `rows` as long as its lease is in `leases`, and is named there; it is in no journal.
//! 3. `past` has the latest changes in their order, without a gap, up to `revision`: whoever watches from one of them misses none.
//! 4. What stays is in the journal before anybody sees it in `rows`: both happen under the mutex, which is taken on threads that may wait.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, watch};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep_until};

use super::{
    ClusterStore, Committed, LeaseNumber, ListedFrom, Listing, Revision, RowChange, StoreChanges, StoreFault,
    StoreRow, StoreWatch, Transaction,
};
use crate::store::Store;

/// How many changes are known for whoever comes back to a watch.
const PAST: usize = if cfg!(test) { 64 } else { 4096 };
/// A journal of fewer bytes is not worth to be rewritten, and how many times as long as it would be anew it becomes.
const WORTH: (u64, u64) = if cfg!(test) { (2048, 4) } else { (256 * 1024, 4) };

/// One record of the journal.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    revision: Revision,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    put: Vec<KeptRow>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    drop: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptRow {
    name: String,
    /// In base64.
    value: String,
    /// `None`: that of the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changed: Option<Revision>,
}

impl KeptRow {
    fn new(name: &str, value: &[u8], changed: Option<Revision>) -> KeptRow {
        KeptRow { name: name.to_owned(), value: STANDARD_NO_PAD.encode(value), changed }
    }
}

/// A lease that is there.
#[derive(Debug)]
struct Lent {
    lasts: Duration,
    due: Instant,
    rows: BTreeSet<String>,
}

#[derive(Debug, Default)]
struct Shelf {
    rows: BTreeMap<String, StoreRow>,
    revision: Revision,
    leases: BTreeMap<LeaseNumber, Lent>,
    latest_lease: i64,
    past: VecDeque<StoreChanges>,
    journal: Option<Box<dyn Store>>,
}

/// The rows of a cluster of one.
#[derive(Clone, Debug)]
pub struct EmbeddedStore {
    shelf: Arc<Mutex<Shelf>>,
    /// Tells those who watch that there is something.
    news: watch::Sender<Revision>,
}

impl EmbeddedStore {
    /// One that lasts as long as the process.
    #[must_use]
    pub fn fleeting() -> EmbeddedStore {
        EmbeddedStore::of(Shelf::default())
    }

    /// One whose rows outlive the process, but for those with leases.
    ///
    /// # Errors
    /// `journal` can't be read, in words.
    pub fn kept_in(mut journal: Box<dyn Store>) -> Result<EmbeddedStore, String> {
        let kept = journal.load().map_err(|error| error.to_string())?;
        let mut shelf = Shelf::default();
        for record in &kept.records {
            let unknown = |why: String| format!("the journal has what this version does not know: {why}");
            let kept: Kept = serde_json::from_slice(record).map_err(|error| unknown(error.to_string()))?;
            for name in &kept.drop {
                shelf.rows.remove(name);
            }
            for KeptRow { name, value, changed } in kept.put {
                let value = STANDARD_NO_PAD.decode(value).map_err(|error| unknown(error.to_string()))?;
                let changed = changed.unwrap_or(kept.revision);
                shelf.rows.insert(name.clone(), StoreRow { name, value, changed, lease: None });
            }
            shelf.revision = shelf.revision.max(kept.revision);
        }
        // Rows with leases had revisions too, and are in no journal.
        shelf.revision += u64::from(shelf.revision > 0);
        shelf.journal = Some(journal);
        Ok(EmbeddedStore::of(shelf))
    }

    fn of(shelf: Shelf) -> EmbeddedStore {
        let news = watch::Sender::new(shelf.revision);
        EmbeddedStore { shelf: Arc::new(Mutex::new(shelf)), news }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        // Each change is done or not done.
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something that may wait for a disk.
    async fn doing<T: Send + 'static>(
        &self,
        doing: impl FnOnce(&mut Shelf) -> Result<T, StoreFault> + Send + 'static,
    ) -> Result<T, StoreFault> {
        let here = self.clone();
        let done = spawn_blocking(move || {
            let mut shelf = here.shelf();
            let done = doing(&mut shelf);
            here.news.send_replace(shelf.revision);
            done
        });
        done.await.unwrap_or_else(|error| Err(StoreFault::Unreachable(error.to_string())))
    }

    /// Ends a lease when its time is over.
    async fn end_in_time(self, lease: LeaseNumber) {
        loop {
            let Some(due) = self.shelf().leases.get(&lease).map(|lent| lent.due) else { return };
            sleep_until(due).await;
            let ended = self.doing(move |shelf| {
                let is_over = shelf.leases.get(&lease).is_some_and(|lent| lent.due <= Instant::now());
                if is_over { shelf.give_back(lease) } else { Ok(()) }
            });
            // What goes with leases is in no journal.
            let _ = ended.await;
        }
    }
}

impl Shelf {
    fn list(&self, prefix: &str) -> Listing {
        let from = self.rows.range(prefix.to_owned()..);
        let rows = from.take_while(|(name, _)| name.starts_with(prefix)).map(|(_, row)| row.clone());
        Listing { rows: rows.collect(), revision: self.revision }
    }

    fn commit(&mut self, transaction: Transaction) -> Result<Committed, StoreFault> {
        transaction.check()?;
        let changed = |name: &String| self.rows.get(name).map_or(0, |row| row.changed);
        if !transaction.conditions.iter().all(|condition| changed(&condition.name) == condition.changed) {
            return Ok(Committed::Conflict);
        }
        let is_over = |change: &RowChange| match change {
            RowChange::Put { lease: Some(lease), .. } => !self.leases.contains_key(lease),
            RowChange::Put { lease: None, .. } | RowChange::Drop { .. } => false,
        };
        if transaction.changes.iter().any(is_over) {
            return Err(StoreFault::LeaseOver);
        }
        if transaction.changes.is_empty() {
            return Ok(Committed::Done(self.revision));
        }
        self.keep(&transaction.changes)?;
        Ok(Committed::Done(self.take(transaction.changes)))
    }

    /// Writes what stays into the journal.
    fn keep(&mut self, changes: &[RowChange]) -> Result<(), StoreFault> {
        let mut kept = Kept { revision: self.revision + 1, ..Kept::default() };
        for change in changes {
            match change {
                RowChange::Put { name, value, lease: None } => {
                    kept.put.push(KeptRow::new(name, value, None));
                }
                // One that stayed until now does not any more.
                RowChange::Put { name, .. } | RowChange::Drop { name } => {
                    if self.rows.get(name).is_some_and(|row| row.lease.is_none()) {
                        kept.drop.push(name.clone());
                    }
                }
            }
        }
        let Some(journal) = &mut self.journal else { return Ok(()) };
        if kept.put.is_empty() && kept.drop.is_empty() {
            return Ok(());
        }
        if journal.size() > WORTH.0 {
            let stays = self.rows.values().filter(|row| row.lease.is_none());
            let put = stays.map(|row| KeptRow::new(&row.name, &row.value, Some(row.changed)));
            let whole = json(&Kept { revision: self.revision, put: put.collect(), drop: Vec::new() });
            if journal.size() / WORTH.1 > whole.len() as u64 {
                // The old one is as good, if longer.
                let _ = journal.compact(&[whole]);
            }
        }
        journal.append(&json(&kept)).map_err(|error| StoreFault::Full(error.to_string()))
    }

    /// Does it, and notes it for those who watch.
    fn take(&mut self, all: Vec<RowChange>) -> Revision {
        self.revision += 1;
        let mut changes = StoreChanges { revision: self.revision, ..StoreChanges::default() };
        for change in all {
            let before = self.rows.remove(change.name());
            if let Some(lent) = before.as_ref().and_then(|row| self.leases.get_mut(&row.lease?)) {
                lent.rows.remove(change.name());
            }
            match change {
                RowChange::Put { name, value, lease } => {
                    if let Some(lent) = lease.and_then(|lease| self.leases.get_mut(&lease)) {
                        lent.rows.insert(name.clone());
                    }
                    let row = StoreRow { name: name.clone(), value, changed: self.revision, lease };
                    changes.put.push(row.clone());
                    self.rows.insert(name, row);
                }
                RowChange::Drop { name } if before.is_some() => changes.dropped.push(name),
                RowChange::Drop { .. } => {}
            }
        }
        self.past.push_back(changes);
        if self.past.len() > PAST {
            self.past.pop_front();
        }
        self.revision
    }

    fn give_back(&mut self, lease: LeaseNumber) -> Result<(), StoreFault> {
        let lent = self.leases.get(&lease).ok_or(StoreFault::LeaseOver)?;
        let changes: Vec<RowChange> = lent.rows.iter().map(RowChange::drop).collect();
        if !changes.is_empty() {
            self.take(changes);
        }
        self.leases.remove(&lease);
        Ok(())
    }

    /// The changes of `prefix` after `after`.
    fn since(&self, prefix: &str, after: Revision) -> Result<StoreChanges, StoreFault> {
        if after > self.revision {
            return Err(StoreFault::Rewound(self.revision));
        }
        let oldest = self.past.front().map_or(self.revision + 1, |changes| changes.revision);
        if after + 1 < oldest {
            return Err(StoreFault::Compacted(after));
        }
        let mut all = StoreChanges { revision: self.revision, ..StoreChanges::default() };
        for changes in self.past.iter().filter(|changes| changes.revision > after) {
            let mut those = changes.clone();
            those.put.retain(|row| row.name.starts_with(prefix));
            those.dropped.retain(|name| name.starts_with(prefix));
            all.add(those);
        }
        all.revision = self.revision;
        Ok(all)
    }
}

fn json(kept: &Kept) -> Vec<u8> {
    // It has texts for keys, so it can't fail.
    serde_json::to_vec(kept).unwrap_or_default()
}

impl ClusterStore for EmbeddedStore {
    async fn list(&self, prefix: &str, _: ListedFrom) -> Result<Listing, StoreFault> {
        let prefix = prefix.to_owned();
        self.doing(move |shelf| Ok(shelf.list(&prefix))).await
    }

    async fn commit(&self, transaction: Transaction) -> Result<Committed, StoreFault> {
        self.doing(move |shelf| shelf.commit(transaction)).await
    }

    fn watch(&self, prefix: &str, after: Revision) -> StoreWatch {
        let (teller, told) = StoreWatch::new();
        tokio::spawn(tell(self.clone(), prefix.to_owned(), after, teller));
        told
    }

    async fn grant(&self, lasts: Duration) -> Result<LeaseNumber, StoreFault> {
        let lease = self.doing(move |shelf| {
            shelf.latest_lease += 1;
            let lease = LeaseNumber(shelf.latest_lease);
            let due = Instant::now() + lasts;
            shelf.leases.insert(lease, Lent { lasts, due, rows: BTreeSet::new() });
            Ok(lease)
        });
        let lease = lease.await?;
        tokio::spawn(self.clone().end_in_time(lease));
        Ok(lease)
    }

    async fn keep_alive(&self, lease: LeaseNumber) -> Result<(), StoreFault> {
        let kept = self.doing(move |shelf| {
            let lent = shelf.leases.get_mut(&lease).ok_or(StoreFault::LeaseOver)?;
            lent.due = Instant::now() + lent.lasts;
            Ok(())
        });
        kept.await
    }

    async fn revoke(&self, lease: LeaseNumber) -> Result<(), StoreFault> {
        self.doing(move |shelf| shelf.give_back(lease)).await
    }
}

/// Tells somebody of changes until he does not listen any more.
async fn tell(
    store: EmbeddedStore,
    prefix: String,
    mut after: Revision,
    teller: mpsc::Sender<Result<StoreChanges, StoreFault>>,
) {
    let mut news = store.news.subscribe();
    loop {
        news.borrow_and_update();
        let since = store.shelf().since(&prefix, after);
        let is_over = since.is_err();
        if let Ok(changes) = &since {
            after = changes.revision;
        }
        let is_news = !matches!(&since, Ok(changes) if changes.put.is_empty() && changes.dropped.is_empty());
        if is_news && teller.send(since).await.is_err() || is_over {
            return;
        }
        tokio::select! {
            () = teller.closed() => return,
            changed = news.changed() => if changed.is_err() { return },
        }
    }
}

#[cfg(test)]
mod tests;
