//! Upgrades of processes that act as one.

use std::time::Duration;

use evenkeel::net::now;
use serde_json::{Value, json};

use super::cluster::{comes_to, report, text};
use super::cluster_owners::{COUNT, answering, owned, start_with};
use super::metrics::{scrape, sum};
use super::support::etcd::{Etcd, is_there};
use super::support::{eventually, fakes};
use super::upgrade_lab::Heirs;

#[test]
fn a_node_that_is_upgraded_has_never_left() {
    if !is_there() {
        return;
    }
    let (etcd, backends) = (Etcd::start(1), fakes(COUNT));
    let [first, second] = start_with(&etcd, &backends, ", owner: soft", "6s");
    eventually("each prefers some", || owned(&first) + owned(&second) == COUNT as f64);
    let boots = || {
        let nodes = report(&second)["nodes"].clone();
        let nodes: Vec<Value> = nodes.as_array().unwrap().iter().map(|node| node["boot"].clone()).collect();
        (nodes.len() == 2).then_some(nodes)
    };
    let (before, share, of_first) = (boots().unwrap(), owned(&first), answering(&first));
    let mut heirs = [Heirs::default(), Heirs::default()];
    for _ in 0..3 {
        for (node, heirs) in [&first, &second].into_iter().zip(&mut heirs) {
            let answer = heirs.upgrade(&node.socket(), &json!({}));
            comes_to(node, &["a", "b"]);
            eventually("it knows what it prefers", || owned(&first) == share);
            assert_eq!(boots(), Some(before.clone()), "{answer}");
            assert_eq!(answering(&first), of_first);
        }
    }
    // Who does not keep its lease alive is gone by then.
    let since = now();
    eventually("a lease would be over", || now() >= since.after(Duration::from_secs(8)));
    comes_to(&first, &["a", "b"]);
    let kinds = ["log", "--kind", "node_gone,node_joined,cluster_detached"];
    for node in [&first, &second] {
        let said = text(node, &kinds);
        assert!(!["is gone", "again", "detached"].iter().any(|word| said.contains(word)), "{said}");
        assert_eq!(sum(&scrape(node), "evenkeel_cluster_owner_moves_total", &[]), 0.0);
    }
}
