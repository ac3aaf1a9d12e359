//! What is told of the processes that act as one.

use super::kind::EventKind;
use super::wording::{listed, name, sentence};

/// Logs that this node is one of its cluster, of which it knows so many nodes.
pub fn cluster_joined(cluster: &str, node: &str, nodes: usize) {
    tracing::info!(
        kind = EventKind::ClusterJoined.name(),
        cluster,
        node,
        nodes,
        "cluster {}: this is node {}, one of {nodes}",
        name(cluster),
        name(node)
    );
}

/// Logs that it is not any more: it serves on with what it knows.
pub fn cluster_detached(reason: &str) {
    tracing::warn!(
        kind = EventKind::ClusterDetached.name(),
        reason,
        "{}",
        sentence("detached from the cluster, serving on with what is known: ", &[], "", reason, "")
    );
}

/// Logs that it may not join.
pub fn cluster_refused(reason: &str) {
    tracing::error!(
        kind = EventKind::ClusterRefused.name(),
        reason,
        "{}",
        sentence("this node may not join its cluster, and serves alone: ", &[], "", reason, "")
    );
}

/// Logs that what a cluster of one shares with itself is not kept.
pub fn cluster_unkept(reason: &str) {
    tracing::warn!(
        kind = EventKind::ClusterDetached.name(),
        reason,
        "{}",
        sentence("what the cluster of one shares ends with this process: ", &[], "", reason, "")
    );
}

/// Logs that the store did not hear that it is there.
pub fn cluster_unheard(reason: &str) {
    tracing::debug!(reason, "{}", sentence("the cluster's store does not answer: ", &[], "", reason, ""));
}

/// Logs that it answers and takes no changes.
pub fn cluster_store_refuses(reason: &str) {
    tracing::warn!(
        kind = EventKind::ClusterStoreRefuses.name(),
        reason,
        "{}",
        sentence(
            "the cluster's store takes no changes, serving on with what is known: ",
            &[],
            "",
            reason,
            ""
        )
    );
}

/// Logs that it does again.
pub fn cluster_store_works() {
    tracing::info!(kind = EventKind::ClusterStoreWorks.name(), "the cluster's store takes changes again");
}

/// Logs that what is shared is read anew, because it changed more than is known of.
pub fn cluster_relisted() {
    tracing::debug!("what the cluster shares is read anew");
}

/// Logs that there is one more.
pub fn node_joined(node: &str, version: &str) {
    tracing::info!(
        kind = EventKind::NodeJoined.name(),
        node,
        version,
        "{}",
        sentence("node ", &[node], " has joined: evenkeel ", version, "")
    );
}

/// Logs that one is there again under its name.
pub fn node_restarted(node: &str) {
    tracing::info!(kind = EventKind::NodeJoined.name(), node, "node {} has started again", name(node));
}

/// Logs that there is one less.
pub fn node_gone(node: &str) {
    tracing::warn!(kind = EventKind::NodeGone.name(), node, "node {} is gone", name(node));
}

/// Logs that another revision of the cluster's config is in force here.
pub fn revision_in_force(number: u64, who: &str, at: &str, differing: &[String]) {
    let (count, all) = (differing.len(), differing.join("\n"));
    tracing::info!(
        kind = EventKind::RevisionInForce.name(),
        revision = number,
        who,
        node = at,
        differing = count,
        keys = all,
        "revision {number} of the cluster's config, by {} on {}: {}",
        name(who),
        name(at),
        listed(differing)
    );
}

/// Logs that the store names no revision any more.
pub fn revision_gone(number: u64) {
    tracing::error!(
        kind = EventKind::RevisionLost.name(),
        revision = number,
        "the cluster's store has no config any more: revision {number} stays in force; `evenkeel apply` gives it one"
    );
}

/// Logs that it names one that is older than what is in force.
pub fn revision_behind(number: u64, behind: u64) {
    tracing::error!(
        kind = EventKind::RevisionLost.name(),
        revision = number,
        behind,
        "the cluster's store has gone back to revision {behind}: revision {number} stays in force; `evenkeel apply` gives it another"
    );
}

/// Logs that the revision that it names can't be read.
pub fn revision_unread(number: u64, reason: &str) {
    tracing::error!(
        kind = EventKind::RevisionLost.name(),
        revision = number,
        reason,
        "{}",
        sentence(&format!("revision {number} of the cluster's config can't be read: "), &[], "", reason, "")
    );
}

/// Logs that a revision is not kept on the disk of this node.
pub fn revision_unkept(number: u64, reason: &str) {
    tracing::warn!(
        kind = EventKind::RevisionLost.name(),
        revision = number,
        reason,
        "{}",
        sentence(&format!("revision {number} can't be kept in state_dir: "), &[], "", reason, "")
    );
}

/// Logs that the first revision can't be made of this node's file.
pub fn unseeded(reason: &str) {
    tracing::error!(
        kind = EventKind::RevisionLost.name(),
        reason,
        "{}",
        sentence("this node's file can't be the cluster's config: ", &[], "", reason, "")
    );
}

/// Logs that this node's own file says something else than what is in force.
pub fn file_differs(number: u64, differing: &[String]) {
    let (count, all) = (differing.len(), differing.join("\n"));
    tracing::warn!(
        kind = EventKind::FileDiffers.name(),
        revision = number,
        differing = count,
        keys = all,
        "this node's file is not revision {number}, which is in force: {}",
        listed(differing)
    );
}

/// Logs what this node thinks of a config that is proposed.
pub fn proposal_judged(who: &str, at: &str, problem: Option<&str>) {
    match problem {
        None => tracing::debug!(who, node = at, "a config is proposed that this node would take"),
        Some(problem) => tracing::warn!(
            kind = EventKind::ProposalRefused.name(),
            who,
            node = at,
            reason = problem,
            "{}",
            sentence("this node would not take a config proposed on ", &[at], ": ", problem, "")
        ),
    }
}

/// Logs that what is proposed can't be read.
pub fn proposal_unread(reason: &str) {
    tracing::warn!(
        kind = EventKind::ProposalRefused.name(),
        reason,
        "{}",
        sentence("a config is proposed that can't be read: ", &[], "", reason, "")
    );
}

/// Logs that other nodes have blocked somebody, or let somebody in; so many networks are blocked now.
pub fn blocked_elsewhere(count: usize) {
    tracing::info!(
        kind = EventKind::Blocked.name(),
        networks = count,
        "blocked or let in on another node; networks blocked now: {count}"
    );
}

/// Logs that the store had nothing of what is changed by hand and blocked here, and has it now.
pub fn overlay_stored_again() {
    tracing::warn!(
        kind = EventKind::RevisionLost.name(),
        "the store of the cluster knew nothing of the changes by hand and blocks that are in force here: they are written to it"
    );
}

/// Logs that what was changed by hand on this node alone is taken back: what all nodes have is in force.
pub fn own_changes_ended() {
    tracing::info!(
        kind = EventKind::ChangedByHand.name(),
        "what was changed on this node alone (`--local`) is taken back: it is one of the cluster again"
    );
}

/// Logs that somebody has had a node prefer a backend; `None`: it moves as nodes have need of it again.
pub fn owner_by_hand(backend: &str, node: Option<&str>, who: &str) {
    let what = match node {
        Some(node) => sentence("", &[backend], " is preferred by node ", node, ", by hand"),
        None => sentence("", &[backend], " is preferred by whichever node has need of it", "", ", by hand"),
    };
    tracing::info!(kind = EventKind::ChangedByHand.name(), backend, node, author = who, "{what}");
}

/// Logs that nodes share nothing that is secret.
pub fn secrets_unshared() {
    tracing::info!(
        kind = EventKind::SecretsUnshared.name(),
        "without `cluster.secrets_key_file` nodes share nothing secret: session tickets, and sticky cookies without a `key`, are each node's own"
    );
}

/// Logs that a row that all share can't be read here.
pub fn secret_unread(row: &str, reason: &str) {
    tracing::error!(
        kind = EventKind::SecretsUnshared.name(),
        row,
        reason,
        "{}",
        sentence(&format!("`{row}` of the cluster can't be read: "), &[], "", reason, "")
    );
}
