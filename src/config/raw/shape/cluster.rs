//! The keys of `cluster`.

use crate::config::raw::bounds::CLUSTER_LEASE;
use crate::config::raw::kind::Kind::{Group, OneOrItems, Text, Time, Word};
use crate::config::raw::kind::{FILE, INSTANCE, RECEIVER, Shape, key};

/// `cluster`.
pub(in crate::config::raw) const CLUSTER: Shape = Shape {
    title: "in `cluster`",
    path: "cluster.",
    needs: &[&["name"]],
    keys: &[
        key("name", Word(INSTANCE), "What the cluster is called, on each of its nodes."),
        key("node", Word(INSTANCE), "What this node is called among the others; by default as its host."),
        key("etcd", Group(&ETCD), "Who keeps what the nodes share; without it, this process for itself."),
        key(
            "lease",
            Time(CLUSTER_LEASE.0, CLUSTER_LEASE.1),
            "How long a node that says nothing counts as there.",
        )
        .or("10s"),
        key(
            "secrets_key_file",
            Word(FILE),
            "A file of 32 random bytes or more, the same on all nodes: without it nothing secret is shared.",
        ),
    ],
};

/// `cluster.etcd`.
pub(in crate::config::raw) const ETCD: Shape = Shape {
    title: "in `cluster.etcd`",
    path: "cluster.etcd.",
    needs: &[&["endpoints"]],
    keys: &[
        key("endpoints", OneOrItems(&Text(RECEIVER)), "Its members: `https://host:2379`."),
        key("ca_file", Word(FILE), "Who issues the certificates of its members: a PEM file."),
        key("client_cert", Word(FILE), "What it knows us by: a PEM file with a certificate."),
        key("client_key", Word(FILE), "The private key of `client_cert`."),
        key(
            "prefix",
            Text(r"/[^\s]+"),
            "What all names begin with that are kept there; by default `/evenkeel/` and the name of the cluster.",
        ),
    ],
};
