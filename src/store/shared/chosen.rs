//! The store that a config asks for.

use std::time::Duration;

use super::embedded::EmbeddedStore;
use super::etcd::EtcdStore;
use super::{
    ClusterStore, Committed, LeaseNumber, ListedFrom, Listing, Revision, StoreFault, StoreWatch, Transaction,
};

/// One of the two.
#[derive(Clone, Debug)]
pub enum ChosenStore {
    /// In this process.
    Embedded(EmbeddedStore),
    /// Somewhere else.
    Etcd(EtcdStore),
}

impl ChosenStore {
    /// Its name for people.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            ChosenStore::Embedded(_) => "embedded",
            ChosenStore::Etcd(_) => "etcd",
        }
    }
}

impl ClusterStore for ChosenStore {
    async fn list(&self, prefix: &str, from: ListedFrom) -> Result<Listing, StoreFault> {
        match self {
            ChosenStore::Embedded(store) => store.list(prefix, from).await,
            ChosenStore::Etcd(store) => store.list(prefix, from).await,
        }
    }

    async fn commit(&self, transaction: Transaction) -> Result<Committed, StoreFault> {
        match self {
            ChosenStore::Embedded(store) => store.commit(transaction).await,
            ChosenStore::Etcd(store) => store.commit(transaction).await,
        }
    }

    fn watch(&self, prefix: &str, after: Revision) -> StoreWatch {
        match self {
            ChosenStore::Embedded(store) => store.watch(prefix, after),
            ChosenStore::Etcd(store) => store.watch(prefix, after),
        }
    }

    async fn grant(&self, lasts: Duration) -> Result<LeaseNumber, StoreFault> {
        match self {
            ChosenStore::Embedded(store) => store.grant(lasts).await,
            ChosenStore::Etcd(store) => store.grant(lasts).await,
        }
    }

    async fn keep_alive(&self, lease: LeaseNumber) -> Result<(), StoreFault> {
        match self {
            ChosenStore::Embedded(store) => store.keep_alive(lease).await,
            ChosenStore::Etcd(store) => store.keep_alive(lease).await,
        }
    }

    async fn revoke(&self, lease: LeaseNumber) -> Result<(), StoreFault> {
        match self {
            ChosenStore::Embedded(store) => store.revoke(lease).await,
            ChosenStore::Etcd(store) => store.revoke(lease).await,
        }
    }
}
