//! Webhooks of several nodes: what happens to all of them is told once, by one of them, and by another one if that is gone.
//!
//! Rows of the store, below `hook/`:
//!
//! | row | says | goes |
//! |---|---|---|
//! | `told/OBJECT` | what receivers believe of a backend or a target | when it is gone from the config |
//! | `once/KEY` | that something was told which each node finds out by itself | after a month |
//! | `message/ID` | a message that waits, for whom, and which process sends it | when nobody waits for it any more |
//!
//! Invariants:
//!
//! 1. What receivers believe and the message that makes them do so are written together, under the condition that nobody else has: two that take themselves for
//!    the one who tells make one message.
//! 2. How backends and targets are, the first of the nodes tells, of what it finds itself; whoever comes to be the first compares that with what was told. So
//!    nothing is lost with a node that dies between an event and its message.
//! 3. A message is sent by the process that is named in its row as long as that is there, and else by whoever is the first. It has the same id then.
//! 4. A node that is detached tells everything itself: nobody knows whether anybody else does.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::message::WebhookMessage;
use crate::cluster::membership::Standing;
use crate::cluster::node::ClusterNode;
use crate::cluster::rows;
use crate::cluster::view::ClusterView;
use crate::store::shared::{Committed, Revision, RowChange, RowCondition, StoreFault, Transaction};

const TOLD: &str = "hook/told/";
const ONCE: &str = "hook/once/";
const MESSAGES: &str = "hook/message/";
/// How long it is remembered that something was told which nodes find out by themselves.
const MONTH_MS: u64 = 30 * 24 * 3_600 * 1_000;
/// Rows that are dropped at once.
const AT_ONCE: usize = 60;
/// How often something is written anew that others have written meanwhile.
const TRIES: usize = 4;

/// `hook/told/OBJECT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ToldRow {
    is_down: bool,
    at_ms: u64,
}

/// `hook/once/KEY`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct OnceRow {
    at_ms: u64,
}

/// `hook/message/ID`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct MessageRow {
    /// The process that sends it.
    boot: String,
    /// The receivers that have not taken it.
    to: Vec<String>,
    message: WebhookMessage,
}

/// What this node has to do with what happens to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TellingRole {
    /// It tells.
    First,
    /// Another one does.
    Other,
    /// It tells what it knows; nobody knows what the others do.
    Alone,
}

/// What a message is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToldOf<'a> {
    /// An object that is down from now on, or up.
    State(&'a str, bool),
    /// What has this key, and is told once.
    Once(&'a str),
}

/// What has become of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claimed {
    /// This node is to send it.
    Ours,
    /// Another node has told it.
    Told,
    /// Nobody could be asked.
    Unknown,
}

/// What a node shares of its webhooks.
pub struct SharedHooks {
    node: Arc<ClusterNode>,
    views: watch::Receiver<Arc<ClusterView>>,
    /// Where the store is spoken with.
    control: Handle,
    /// By which change of the store what was told is known here.
    known: Revision,
    facts: Facts,
}

/// What of the cluster decides about webhooks.
type Facts = ((Revision, Revision), (Revision, Revision), (Revision, Revision), bool);

fn facts(view: &ClusterView) -> Facts {
    let touched = |area| view.rows.touched(area);
    (touched("hook"), touched("node"), touched("drain"), view.standing == Standing::Member)
}

fn row(name: String, changed: Revision) -> RowCondition {
    RowCondition { name, changed }
}

impl SharedHooks {
    /// Of this node, whose store is spoken with on the runtime of `control`.
    #[must_use]
    pub fn new(node: &Arc<ClusterNode>, control: Handle) -> SharedHooks {
        SharedHooks {
            node: Arc::clone(node),
            views: node.views(),
            control,
            known: 0,
            facts: Facts::default(),
        }
    }

    /// Waits until it is clear whether this node is one of the cluster, though no longer than a lease.
    pub(super) async fn joined(&mut self) {
        let lease = self.node.lease();
        let joined = self.views.wait_for(|view| view.standing != Standing::Joining);
        let _ = tokio::time::timeout(lease, joined).await;
    }

    /// Waits until something is different by which webhooks go.
    pub(super) async fn changed(&mut self) {
        let before = self.facts;
        let now = self.views.wait_for(|view| facts(view) != before).await.map(|view| facts(&view));
        match now {
            Ok(now) => self.facts = now,
            Err(_) => std::future::pending().await,
        }
    }

    /// What this node has to do now.
    pub(super) fn role(&self) -> TellingRole {
        let view = self.node.view();
        if view.standing != Standing::Member {
            return TellingRole::Alone;
        }
        match view.first_for("hook") {
            Some(name) if name == *view.node => TellingRole::First,
            // Its own row may still be on its way.
            Some(_) | None => TellingRole::Other,
        }
    }

    /// What others have told since it was asked last: objects with whether they are down.
    pub(super) fn told(&mut self) -> Vec<(String, bool)> {
        let view = self.node.view();
        let is_new = |name: &&str| view.rows.changed(name) > self.known;
        let names = view.rows.names(TOLD).filter(is_new);
        let told = names.filter_map(|name| {
            let row: ToldRow = rows::read(&view.rows.get(name)?.value)?;
            Some((name.strip_prefix(TOLD)?.to_owned(), row.is_down))
        });
        let told = told.collect();
        self.known = view.rows.revision();
        told
    }

    async fn commit(&self, transaction: Transaction) -> Result<Committed, StoreFault> {
        let node = Arc::clone(&self.node);
        let outcome = self.control.spawn(async move { node.commit(transaction).await }).await;
        let outcome = outcome.unwrap_or_else(|_| Err(StoreFault::Apart("it ends".to_owned())))?;
        if let Committed::Done(at) = outcome {
            self.node.learned(at).await;
        }
        Ok(outcome)
    }

    /// Makes a message for these the one that is told of this, or finds that another node has. Where nobody is to get it, it is only noted that it is so.
    pub(super) async fn claim(&self, of: ToldOf<'_>, message: &WebhookMessage, to: &[String]) -> Claimed {
        let at_ms = message.time_ms;
        for _ in 0..TRIES {
            let view = self.node.view();
            let (name, value) = match of {
                ToldOf::State(object, is_down) => {
                    let name = format!("{TOLD}{object}");
                    let there = view.rows.get(&name).and_then(|row| rows::read::<ToldRow>(&row.value));
                    // What is there since receivers were told otherwise, by who could ask nobody, is no word of it.
                    let is_since = view.rows.changed(&name) > self.known;
                    if is_since && there.is_some_and(|there| there.is_down == is_down) {
                        return Claimed::Told;
                    }
                    let told = rows::write_over(&ToldRow { is_down, at_ms }, view.rows.value(&name));
                    (name, told)
                }
                ToldOf::Once(key) => {
                    let name = format!("{ONCE}{key}");
                    if view.rows.get(&name).is_some() {
                        return Claimed::Told;
                    }
                    (name, rows::write(&OnceRow { at_ms }))
                }
            };
            let conditions = vec![row(name.clone(), view.rows.changed(&name))];
            let mut changes = vec![RowChange::put(name, value)];
            if !to.is_empty() {
                let boot = self.node.boot().to_owned();
                let waiting = MessageRow { boot, to: to.to_vec(), message: message.clone() };
                changes.push(RowChange::put(format!("{MESSAGES}{}", message.id), rows::write(&waiting)));
            }
            match self.commit(Transaction { conditions, changes }).await {
                Ok(Committed::Done(_)) => return Claimed::Ours,
                // What another has written is on its way.
                Ok(Committed::Conflict) => self.node.learned(view.rows.revision() + 1).await,
                Err(_) => return Claimed::Unknown,
            }
        }
        Claimed::Unknown
    }

    /// Notes what receivers believe of an object, of which they were told while nobody could be asked. False: that can't be.
    pub(super) async fn note(&self, object: &str, is_down: bool, at_ms: u64) -> bool {
        let (view, name) = (self.node.view(), format!("{TOLD}{object}"));
        let conditions = vec![row(name.clone(), view.rows.changed(&name))];
        let told = rows::write_over(&ToldRow { is_down, at_ms }, view.rows.value(&name));
        let changes = vec![RowChange::put(name, told)];
        matches!(self.commit(Transaction { conditions, changes }).await, Ok(Committed::Done(_)))
    }

    /// What receivers believe of an object; `None`: nothing was told of it.
    pub(super) fn believed(&self, object: &str) -> Option<bool> {
        let view = self.node.view();
        let told: ToldRow = rows::read(&view.rows.get(&format!("{TOLD}{object}"))?.value)?;
        Some(told.is_down)
    }

    /// Takes over messages that nobody sends: those of this process that are not among its `own` ids, since it was not told that they were written; and for who
    /// `is_first` those of processes that are gone. Oldest first; false: there are more.
    pub(super) async fn adopt(
        &self,
        own: &HashSet<String>,
        is_first: bool,
    ) -> (Vec<(Vec<String>, WebhookMessage)>, bool) {
        let view = self.node.view();
        let there: HashSet<String> = view.nodes().into_iter().map(|node| node.row.boot).collect();
        let is_orphan = |id: &str, row: &MessageRow| match row.boot == self.node.boot() {
            true => !own.contains(id),
            false => is_first && !there.contains(&row.boot),
        };
        let orphans = view.rows.all::<MessageRow>(MESSAGES).filter(|(id, row)| is_orphan(id, row));
        let orphans: Vec<(String, MessageRow)> =
            orphans.map(|(id, row)| (format!("{MESSAGES}{id}"), row)).collect();
        let (mut adopted, mut is_whole) = (Vec::new(), true);
        for (name, waiting) in orphans {
            let conditions = vec![row(name.clone(), view.rows.changed(&name))];
            let own = MessageRow { boot: self.node.boot().to_owned(), ..waiting };
            let value = rows::write_over(&own, view.rows.value(&name));
            let changes = vec![RowChange::put(name, value)];
            if let Ok(Committed::Done(_)) = self.commit(Transaction { conditions, changes }).await {
                adopted.push((own.to, own.message));
            } else {
                is_whole = false;
            }
        }
        adopted.sort_by_key(|(_, message)| message.time_ms);
        (adopted, is_whole)
    }

    /// These do not wait any more for the message of this id. False: nobody could be told.
    pub(super) async fn done(&self, id: &str, receivers: &[String]) -> bool {
        let name = format!("{MESSAGES}{id}");
        for _ in 0..TRIES {
            let view = self.node.view();
            let there = view.rows.get(&name).and_then(|row| rows::read::<MessageRow>(&row.value));
            let Some(mut there) = there else { return true };
            there.to.retain(|other| !receivers.contains(other));
            let conditions = vec![row(name.clone(), view.rows.changed(&name))];
            let change = match there.to.is_empty() {
                true => RowChange::drop(name.clone()),
                false => RowChange::put(name.clone(), rows::write_over(&there, view.rows.value(&name))),
            };
            match self.commit(Transaction { conditions, changes: vec![change] }).await {
                Ok(Committed::Done(_)) => return true,
                Ok(Committed::Conflict) => self.node.learned(view.rows.revision() + 1).await,
                Err(_) => return false,
            }
        }
        false
    }

    /// Drops what is of no use any more: what was told of objects that are not there, and what was told long ago.
    pub(super) async fn clear(&self, is_there: impl Fn(&str) -> bool, now_ms: u64) {
        let view = self.node.view();
        let gone = |name: &&str| name.strip_prefix(TOLD).is_some_and(|object| !is_there(object));
        let is_old = |name: &&str| {
            let row = view.rows.get(name).and_then(|row| rows::read::<OnceRow>(&row.value));
            row.is_none_or(|row| row.at_ms.saturating_add(MONTH_MS) < now_ms)
        };
        let over = view.rows.names(TOLD).filter(gone).chain(view.rows.names(ONCE).filter(is_old));
        let over: Vec<&str> = over.take(AT_ONCE).collect();
        if over.is_empty() {
            return;
        }
        let conditions = over.iter().map(|name| row((*name).to_owned(), view.rows.changed(name))).collect();
        let changes = over.iter().map(|name| RowChange::drop(*name)).collect();
        let _ = self.commit(Transaction { conditions, changes }).await;
    }
}
