//! A node whose process is followed by another one: to the cluster it is the same node, which has never left.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use serde::{Deserialize, Serialize};

use super::membership::{Standing, deadline};
use super::node::ClusterNode;
use super::view::KnownRows;
use crate::net::now;
use crate::store::shared::LeaseNumber;
use crate::tick::Tick;

/// What the process of a node leaves to the next one, on the same machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLegacy {
    /// The cluster.
    pub cluster: String,
    /// The node.
    pub node: String,
    /// What its folder of state is known by.
    pub machine: String,
    /// What this start of it is known by.
    pub boot: String,
    /// What it has lent of the store.
    lease: Option<i64>,
    /// When a word was sent that has kept that alive.
    kept: Option<u64>,
}

impl ClusterNode {
    /// What the next process needs to be this node.
    #[must_use]
    pub fn legacy(&self) -> NodeLegacy {
        let view = self.view();
        let is_member = view.standing == Standing::Member;
        NodeLegacy {
            cluster: view.cluster.to_string(),
            node: view.node.to_string(),
            machine: self.machine().to_owned(),
            boot: self.boot().to_owned(),
            lease: self.lent().map(|lease| lease.0),
            kept: view.kept.filter(|_| is_member).map(|kept| kept.0),
        }
    }

    /// Another process is this node from now on: what this one has lent is not given back.
    pub fn leave_to_heir(&self) {
        self.has_heir.store(true, Ordering::Release);
    }

    /// Goes on as the node that the process before was, which has left this. `rows`: what the store has; without it nothing is known yet.
    pub fn go_on(&self, legacy: &NodeLegacy, rows: Option<KnownRows>) {
        *self.lent.lock().unwrap_or_else(PoisonError::into_inner) = legacy.lease.map(LeaseNumber);
        let (Some(rows), Some(kept)) = (rows, legacy.kept.map(Tick)) else { return };
        let due = deadline(kept, self.lease);
        if due <= now() {
            return;
        }
        // It is one of them as long as the word counts that the other one has sent last.
        self.view.send_modify(|view| {
            let view = Arc::make_mut(view);
            (view.rows, view.kept, view.standing) = (Arc::new(rows), Some(kept), Standing::Member);
        });
        self.due.send_replace(due);
    }
}
