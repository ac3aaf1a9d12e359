//! What is told of the processes that act as one.

use super::kind::EventKind;
use super::wording::{name, sentence};

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
