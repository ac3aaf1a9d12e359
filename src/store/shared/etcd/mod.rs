//! etcd, API v3: three or five members, of whom a majority decides.
//!
//! One member is spoken to until it fails, then the next. A balancing client asks the dead one again and again: with one of three members gone it
//! failed more than a fifth of its writes. Each attempt has little time at first, and more with each that follows; all of them together have
//! five seconds. Watches want a member that has a leader, so that they never listen to one that is cut off; nothing else does, so that a
//! process that starts can read what a single member knows.

mod client;
mod line;
mod messages;
mod verdict;
mod watching;

use std::time::Duration;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::{
    ClusterStore, Committed, LeaseNumber, ListedFrom, Listing, Revision, RowChange, RowCondition, StoreFault,
    StoreWatch, Transaction,
};
use crate::config::model::EtcdConfig;
use client::{EtcdClient, asking, number, revision};
use line::EtcdLine;
use messages::{
    Compare, CompareTarget, DeleteRangeRequest, Done, LeaseGrantRequest, LeaseRequest, LeaseResponse,
    PutRequest, RangeRequest, Request, RequestOp, TxnRequest, TxnResponse, path,
};

/// Keeps rows in etcd. Clones share their connection.
#[derive(Clone, Debug)]
pub struct EtcdStore {
    client: EtcdClient,
}

impl EtcdStore {
    /// The one of this config. Nobody is spoken to yet.
    #[must_use]
    pub fn new(config: &EtcdConfig) -> EtcdStore {
        EtcdStore { client: EtcdClient::new(config) }
    }

    fn question(&self, transaction: &Transaction) -> TxnRequest {
        let compare = |condition: &RowCondition| Compare {
            result: 0,
            target: CompareTarget::Mod.into(),
            key: self.client.key(&condition.name),
            mod_revision: Some(number(condition.changed)),
        };
        let success = |change: &RowChange| match change {
            RowChange::Put { name, value, lease } => Request::Put(PutRequest {
                key: self.client.key(name),
                value: value.clone(),
                lease: lease.map_or(0, |lease| lease.0),
            }),
            RowChange::Drop { name } => Request::Delete(DeleteRangeRequest { key: self.client.key(name) }),
        };
        // What there is instead, to know our own.
        let failure = |change: &RowChange| {
            Request::Range(RangeRequest { key: self.client.key(change.name()), ..RangeRequest::default() })
        };
        let op = |request: Request| RequestOp { request: Some(request) };
        TxnRequest {
            compare: transaction.conditions.iter().map(compare).collect(),
            success: transaction.changes.iter().map(|change| op(success(change))).collect(),
            failure: transaction.changes.iter().map(|change| op(failure(change))).collect(),
        }
    }

    /// Whether what is there instead is what `transaction` was to make: an attempt was heard, and its answer was lost. Then it gives its
    /// revision.
    fn own(&self, transaction: &Transaction, answer: &TxnResponse) -> Option<Revision> {
        let latest =
            transaction.conditions.iter().map(|condition| condition.changed).max().unwrap_or_default();
        let mut done = None;
        for (change, there) in transaction.changes.iter().zip(&answer.responses) {
            let row = there.range.as_ref().and_then(|range| range.kvs.first().cloned());
            match (change, row.and_then(|row| self.client.row(row))) {
                (RowChange::Put { value, lease, .. }, Some(row)) => {
                    let is_own = row.value == *value && row.lease == *lease && row.changed > latest;
                    if !is_own || done.is_some_and(|done| done != row.changed) {
                        return None;
                    }
                    done = Some(row.changed);
                }
                (RowChange::Drop { .. }, None) => {}
                _ => return None,
            }
        }
        done.or_else(|| answer.header.as_ref().map(|header| revision(header.revision)))
    }
}

async fn kept_alive(line: EtcdLine, lease: LeaseNumber) -> Result<LeaseResponse, Status> {
    // The question stays open until the answer is there: whoever ends it at once may get none.
    let (asks, asked) = mpsc::channel(1);
    let _ = asks.send(LeaseRequest { id: lease.0 }).await;
    let mut answers = line.talk(path::KEEP_ALIVE, ReceiverStream::new(asked), false).await?;
    let answer = answers.message().await?;
    drop(asks);
    answer.ok_or_else(|| Status::unavailable("it ended without an answer"))
}

impl ClusterStore for EtcdStore {
    async fn list(&self, prefix: &str, from: ListedFrom) -> Result<Listing, StoreFault> {
        self.client.list(prefix, from).await
    }

    async fn commit(&self, transaction: Transaction) -> Result<Committed, StoreFault> {
        transaction.check()?;
        let question = self.question(&transaction);
        let asked = self.client.asking(|line| asking(line, path::TXN, question.clone()));
        let (answer, is_doubtful): (TxnResponse, bool) = asked.await?;
        if answer.succeeded {
            return Ok(Committed::Done(answer.header.map_or(0, |header| revision(header.revision))));
        }
        if !is_doubtful {
            return Ok(Committed::Conflict);
        }
        // What was done by an attempt whose answer was lost may have been changed again since.
        let own = self.own(&transaction, &answer);
        own.map(Committed::Done).ok_or_else(|| {
            StoreFault::Unreachable("an answer was lost, and what was asked for is not there".to_owned())
        })
    }

    fn watch(&self, prefix: &str, after: Revision) -> StoreWatch {
        let (teller, told) = StoreWatch::new();
        tokio::spawn(watching::tell(self.client.clone(), prefix.to_owned(), after, teller));
        told
    }

    async fn grant(&self, lasts: Duration) -> Result<LeaseNumber, StoreFault> {
        let ask = LeaseGrantRequest { ttl: i64::try_from(lasts.as_secs()).unwrap_or(i64::MAX).max(1) };
        let asked = self.client.asking(|line| asking(line, path::GRANT, ask.clone()));
        let (LeaseResponse { id, .. }, _) = asked.await?;
        if id == 0 {
            Err(StoreFault::Unreachable("an answer without a lease".to_owned()))
        } else {
            Ok(LeaseNumber(id))
        }
    }

    async fn keep_alive(&self, lease: LeaseNumber) -> Result<(), StoreFault> {
        let asked = self.client.asking(|line| kept_alive(line, lease));
        let (LeaseResponse { ttl, .. }, _) = asked.await?;
        if ttl > 0 { Ok(()) } else { Err(StoreFault::LeaseOver) }
    }

    async fn revoke(&self, lease: LeaseNumber) -> Result<(), StoreFault> {
        let ask = LeaseRequest { id: lease.0 };
        let asked = self.client.asking(|line| asking(line, path::REVOKE, ask.clone()));
        let (Done {}, _) = asked.await?;
        Ok(())
    }
}
