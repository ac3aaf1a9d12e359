//! Proofs that one node has an authority ask for, and all of them give: the authority comes to whichever it likes.
//!
//! Nothing of them is secret: an authority tells who asks what it asks for, and the answer is the print of a public key.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use crate::acme::proof::proving;
use crate::cluster::membership::Standing;
use crate::cluster::node::ClusterNode;
use crate::cluster::rows;
use crate::cluster::view::ClusterView;
use crate::config::model::tls::acme::AcmeChallenge;
use crate::events;
use crate::store::shared::{RowChange, Transaction};
use crate::tls::{OfferedProof, Proofs};

const PROOFS: &str = "acme/proof/";
const SEEN: &str = "acme/seen/";
/// Proofs of others that are given at once: more than any cluster has.
const MOST: usize = 1_000;
/// Characters of what is asked for, and of the answer.
const LONGEST: usize = 512;
/// After which time the others are told again what they could not be.
const AGAIN: Duration = Duration::from_secs(1);
/// Rows that are changed at once.
const AT_ONCE: usize = 60;

/// `acme/proof/BOOT-N`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ProofRow {
    /// `http-01` or `tls-alpn-01`.
    challenge: String,
    /// The token, or the name.
    asked: String,
    /// What the authority wants to be told (RFC 8555 §8.1).
    answer: String,
}

/// `acme/seen/BOOT-N/NODE`.
#[derive(Serialize, Deserialize)]
struct SeenRow {}

/// By what an order has its proofs given by the other nodes, too.
pub(in crate::acme) struct ProofSpread {
    node: Arc<ClusterNode>,
    next: AtomicU64,
}

/// A proof that all nodes give as long as this is there.
pub(in crate::acme) struct SpreadProof {
    node: Arc<ClusterNode>,
    id: String,
}

impl Drop for SpreadProof {
    fn drop(&mut self) {
        let (node, name) = (Arc::clone(&self.node), format!("{PROOFS}{}", self.id));
        if let Ok(handle) = Handle::try_current() {
            // If nobody can be told, it goes with the lease.
            handle.spawn(async move { node.commit(changing(vec![RowChange::drop(name)])).await });
        }
    }
}

impl ProofSpread {
    pub(in crate::acme) fn new(node: &Arc<ClusterNode>) -> ProofSpread {
        ProofSpread { node: Arc::clone(node), next: AtomicU64::new(0) }
    }

    /// From now on the other nodes come to give this.
    ///
    /// # Errors
    /// They can't be told, in words.
    pub(in crate::acme) async fn spread(
        &self,
        challenge: AcmeChallenge,
        asked: &str,
        answer: &str,
    ) -> Result<SpreadProof, String> {
        let id = format!("{}{}", own_prefix(&self.node), self.next.fetch_add(1, Ordering::Relaxed));
        let name = format!("{PROOFS}{id}");
        let row = ProofRow {
            challenge: challenge.name().to_owned(),
            asked: asked.to_owned(),
            answer: answer.to_owned(),
        };
        let Some(lease) = self.node.lent() else { return Err("it is none of the cluster now".to_owned()) };
        let value = self.node.packed(&name, &row);
        let put = RowChange::Put { name, value, lease: Some(lease) };
        // Also if nobody knows whether it was written.
        let spread = SpreadProof { node: Arc::clone(&self.node), id };
        self.node.commit(changing(vec![put])).await.map_err(|fault| fault.to_string())?;
        Ok(spread)
    }

    /// Waits until all nodes that are there give these, though no longer than two leases.
    pub(in crate::acme) async fn seen(&self, names: &str, proofs: &[&SpreadProof]) {
        let mut views = self.node.views();
        let all = views.wait_for(|view| proofs.iter().all(|proof| missing(view, &proof.id).is_empty()));
        if timeout(self.node.lease() * 2, all).await.is_err() {
            let view = self.node.view();
            let mut late: Vec<String> = proofs.iter().flat_map(|proof| missing(&view, &proof.id)).collect();
            late.sort();
            late.dedup();
            events::proof_unseen(names, &late.join(", "));
        }
    }
}

/// What the ids of this process begin with: one that was this node before had others.
fn own_prefix(node: &ClusterNode) -> String {
    format!("{}-{}-", node.boot(), std::process::id())
}

fn changing(changes: Vec<RowChange>) -> Transaction {
    Transaction { conditions: Vec::new(), changes }
}

/// Which nodes have not said yet that they give it.
fn missing(view: &ClusterView, id: &str) -> Vec<String> {
    let others = view.nodes().into_iter().filter(|node| node.row.shares && node.name != *view.node);
    let is_missing = |name: &String| view.rows.get(&format!("{SEEN}{id}/{name}")).is_none();
    others.map(|node| node.name).filter(is_missing).collect()
}

/// Gives what others have authorities ask for, as long as they do.
pub(in crate::acme) async fn answer_for_others(node: &Arc<ClusterNode>, proofs: &Arc<Proofs>) {
    let mut views = node.views();
    let mut given: HashMap<String, Option<OfferedProof>> = HashMap::new();
    let mut looked_at = None;
    loop {
        let view = Arc::clone(&views.borrow_and_update());
        let now = Some((view.rows.touched("acme"), node.lent()));
        if view.standing == Standing::Member && looked_at != now {
            if !follow(node, &view, proofs, &mut given).await {
                // What could not be said is said again.
                sleep(AGAIN).await;
                looked_at = None;
                continue;
            }
            looked_at = now;
        }
        if views.changed().await.is_err() {
            return;
        }
    }
}

/// Gives what is there, and says so; and gives no more what is gone. False: nobody could be told.
async fn follow(
    node: &Arc<ClusterNode>,
    view: &ClusterView,
    proofs: &Arc<Proofs>,
    given: &mut HashMap<String, Option<OfferedProof>>,
) -> bool {
    let own = own_prefix(node);
    let there: Vec<String> = view
        .rows
        .names(PROOFS)
        .filter_map(|name| name.strip_prefix(PROOFS))
        .filter(|id| !id.starts_with(&own))
        .take(MOST)
        .map(str::to_owned)
        .collect();
    given.retain(|id, _| there.contains(id));
    for id in &there {
        if !given.contains_key(id) {
            given.insert(id.clone(), offer(node, view, proofs, id));
        }
    }
    let seen = |id: &str| format!("{SEEN}{id}/{}", view.node);
    let Some(lease) = node.lent() else { return false };
    let said = given.iter().filter(|(_, proof)| proof.is_some()).map(|(id, _)| seen(id));
    let mut changes: Vec<RowChange> = said
        .filter(|name| view.rows.get(name).is_none_or(|row| row.lease != Some(lease)))
        .map(|name| RowChange::Put { name, value: rows::write(&SeenRow {}), lease: Some(lease) })
        .collect();
    let suffix = format!("/{}", view.node);
    let is_over = |name: &&str| {
        let id = name.strip_prefix(SEEN).and_then(|rest| rest.strip_suffix(&suffix));
        id.is_some_and(|id| !given.contains_key(id))
    };
    changes.extend(view.rows.names(SEEN).filter(is_over).map(RowChange::drop));
    for some in changes.chunks(AT_ONCE) {
        if node.commit(changing(some.to_vec())).await.is_err() {
            return false;
        }
    }
    true
}

/// `None`: it is none that this version can give.
fn offer(node: &ClusterNode, view: &ClusterView, proofs: &Arc<Proofs>, id: &str) -> Option<OfferedProof> {
    let name = format!("{PROOFS}{id}");
    let row: ProofRow = match node.unpacked(&view.rows, &name)? {
        Ok(row) => row,
        Err(fault) => {
            events::secret_unread(&name, &fault.to_string());
            return None;
        }
    };
    if row.asked.len() > LONGEST || row.answer.len() > LONGEST {
        return None;
    }
    if row.challenge == AcmeChallenge::Http01.name() {
        Some(proofs.answer(&row.asked, &row.answer))
    } else if row.challenge == AcmeChallenge::TlsAlpn01.name() {
        let digest = digest(&SHA256, row.answer.as_bytes());
        Some(proofs.certify(&row.asked, proving(&row.asked, digest.as_ref()).ok()?))
    } else {
        None
    }
}
