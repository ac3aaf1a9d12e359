//! Whether backends work, as one fact of all nodes.

use fake_backend::{Behaviour, Running};

use super::cluster::comes_to;
use super::cluster_config::{of, own, revision};
use super::metrics::{scrape, sum};
use super::support::etcd::{Etcd, is_there};
use super::support::process::Process;
use super::support::{Client, eventually, fakes};

fn config(etcd: &Etcd, node: &str, backends: &[Running]) -> String {
    let list = backends
        .iter()
        .enumerate()
        .map(|(number, backend)| format!("{{name: b{number}, host: 127.0.0.1, port: {}}}", backend.port()));
    let list = list.collect::<Vec<_>>().join(", ");
    own(&of(etcd), node)
        + &format!(
            "targets: {{web: {{protocol: http, listener: \"127.0.0.1:0\", health_check: {{path: /health, interval: 100ms, timeout: 1s, fall: 2, rise: 1}}, \
             backends: [{list}]}}}}\n"
        )
}

fn start<const N: usize>(etcd: &Etcd, names: [&str; N], backends: &[Running]) -> [Process; N] {
    let nodes = names.map(|node| Process::start(&config(etcd, node, backends), 1));
    for node in &nodes {
        comes_to(node, &names);
        eventually("there is a first revision", || revision(node) == 1);
    }
    nodes
}

/// What it says of a backend, and why.
fn state(process: &Process, backend: usize) -> (String, String) {
    let (_, target) = process.ask("GET /api/v1/targets/web", b"");
    let one = &target["backends"][backend];
    (
        one["state"].as_str().unwrap_or_default().to_owned(),
        one["reason"].as_str().unwrap_or_default().to_owned(),
    )
}

fn probes(process: &Process) -> f64 {
    sum(&scrape(process), "evenkeel_probes_total", &[])
}

/// Which nodes probe while the only backend is probed five times.
fn probing(nodes: &[&Process], backend: &Running) -> Vec<usize> {
    let (before, seen): (Vec<f64>, u64) = (nodes.iter().map(|node| probes(node)).collect(), backend.probes());
    eventually("it is probed", || backend.probes() >= seen + 5);
    let is_one = |number: &usize| probes(nodes[*number]) > before[*number];
    (0..nodes.len()).filter(is_one).collect()
}

#[test]
fn each_backend_is_probed_by_one_node_and_by_another_once_that_is_gone() {
    if !is_there() {
        return;
    }
    let (etcd, backends) = (Etcd::start(1), fakes(1));
    let [a, b, c] = start(&etcd, ["a", "b", "c"], &backends);
    let mut who = Vec::new();
    eventually("one of three probes", || {
        who = probing(&[&a, &b, &c], &backends[0]);
        who.len() == 1
    });
    let mut nodes = vec![a, b, c];
    for node in &nodes {
        eventually("it is up everywhere", || state(node, 0).0 == "up");
    }
    let gone = nodes.remove(who[0]);
    drop(gone.kill());
    eventually("one of the two that are left probes", || {
        probing(&[&nodes[0], &nodes[1]], &backends[0]).len() == 1
    });
}

#[test]
fn what_one_has_found_and_another_confirmed_all_know_and_who_comes_later_too() {
    if !is_there() {
        return;
    }
    let (mut etcd, backends) = (Etcd::start(1), fakes(3));
    let [a, b, c] = start(&etcd, ["a", "b", "c"], &backends);
    let all = [&a, &b, &c];
    let comes = |wanted: &str, backend: usize| {
        for node in all {
            eventually(&format!("b{backend} is {wanted}"), || state(node, backend).0 == wanted);
        }
    };
    (0..3).for_each(|backend| comes("up", backend));
    backends[0].behave(Behaviour::status(500));
    comes("down", 0);
    let told = all.map(|node| state(node, 0).1);
    assert!(told.iter().filter(|why| why.starts_with("node ")).count() >= 1, "{told:?}");
    // It has not probed anything yet.
    let late = Process::start(&config(&etcd, "d", &backends), 1);
    let mut client = Client::connect(late.address("web"));
    for _ in 0..12 {
        let answer = client.get("/");
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    backends[0].behave(Behaviour::default());
    comes("up", 0);
    // Without the store each one probes for itself.
    etcd.kill(0);
    for node in all {
        let before = probes(node);
        eventually("it probes", || probes(node) > before + 5.0);
    }
    backends[1].behave(Behaviour::status(500));
    comes("down", 1);
    etcd.begin(0);
    comes_to(&a, &["a", "b", "c", "d"]);
    comes("down", 1);
    backends[1].behave(Behaviour::default());
    comes("up", 1);
}
