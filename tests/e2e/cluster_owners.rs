//! Backends of few places each that several nodes share.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fake_backend::{Behaviour, Running};

use super::cluster::comes_to;
use super::cluster_config::{of, own, revision};
use super::metrics::{scrape, sum};
use super::support::etcd::{Etcd, is_there};
use super::support::process::Process;
use super::support::{Client, eventually, fakes};

pub const COUNT: usize = 8;

pub fn start(etcd: &Etcd, backends: &[Running], keys: &str) -> [Process; 2] {
    start_with(etcd, backends, keys, "3s")
}

/// The same with leases that are so long.
pub fn start_with(etcd: &Etcd, backends: &[Running], keys: &str, lease: &str) -> [Process; 2] {
    let backend = |(number, backend): (usize, &Running)| {
        format!("{{name: b{number}, host: 127.0.0.1, port: {}}}", backend.port())
    };
    let list = backends.iter().enumerate().map(backend).collect::<Vec<_>>().join(", ");
    let nodes = ["a", "b"].map(|node| {
        let text = own(&format!("{}, lease: {lease}", of(etcd)), node)
            + &format!(
                "targets: {{web: {{protocol: http, listener: \"127.0.0.1:0\", health_check: off, max_in_flight: 1, queue: {{timeout: 60s}}, \
                 balance: least_connections{keys}, backends: [{list}]}}}}\n"
            );
        Process::start(&text, 1)
    });
    for node in &nodes {
        comes_to(node, &["a", "b"]);
        eventually("there is a first revision", || revision(node) == 1);
    }
    nodes
}

pub fn owned(node: &Process) -> f64 {
    sum(&scrape(node), "evenkeel_cluster_owned_backends", &["target=\"web\""])
}

/// Who answers of requests that come one after the other.
pub fn answering(node: &Process) -> BTreeSet<String> {
    let mut client = Client::connect(node.address("web"));
    (0..COUNT * 4).map(|_| client.get("/").text()).collect()
}

/// Requests under way on a node's backends, and those that wait.
fn load(node: &Process) -> (u64, u64) {
    let (_, target) = node.ask("GET /api/v1/targets/web", b"");
    let sum = |key: &str| {
        let backends = target["backends"].as_array().unwrap();
        backends.iter().map(|backend| backend[key].as_u64().unwrap()).sum::<u64>()
    };
    (sum("active"), target["waiting"].as_u64().unwrap())
}

#[test]
fn each_backend_has_one_node_that_prefers_it_and_another_one_when_that_is_gone() {
    if !is_there() {
        return;
    }
    let (etcd, backends) = (Etcd::start(1), fakes(COUNT));
    let [first, second] = start(&etcd, &backends, ", owner: soft");
    eventually("each prefers some", || owned(&first) + owned(&second) == COUNT as f64);
    let (of_first, of_second) = (answering(&first), answering(&second));
    assert_eq!((of_first.len(), of_second.len()), (owned(&first) as usize, owned(&second) as usize));
    assert!(of_first.is_disjoint(&of_second) && !of_first.is_empty() && !of_second.is_empty());
    drop(first.kill());
    comes_to(&second, &["b"]);
    eventually("it prefers all", || owned(&second) == COUNT as f64);
    assert_eq!(answering(&second).len(), COUNT);
}

#[test]
fn who_has_none_free_of_its_own_takes_those_that_it_believes_free_and_no_others() {
    if !is_there() {
        return;
    }
    let (etcd, backends) = (Etcd::start(1), fakes(COUNT));
    let [first, second] = start(&etcd, &backends, ", owner: soft");
    eventually("each prefers some", || owned(&first) + owned(&second) == COUNT as f64);
    let slow = Behaviour::default().latency(Duration::from_secs(9));
    backends.iter().for_each(|backend| backend.behave(slow.clone()));
    let ask = |address| std::thread::spawn(move || Client::connect(address).get("/").status);
    // One of them takes all: its own, and what the other one does not need.
    let mut under_way: Vec<_> = (0..COUNT).map(|_| ask(first.address("web"))).collect();
    eventually("it has one request on each", || load(&first) == (COUNT as u64, 0));
    // The other one knows that none is free, and waits for its turn.
    eventually("it is told", || {
        let (_, target) = second.ask("GET /api/v1/targets/web", b"");
        target["backends"].as_array().unwrap().iter().all(|backend| backend["elsewhere"] == 1)
    });
    under_way.push(ask(second.address("web")));
    eventually("it waits", || load(&second) == (0, 1));
    backends.iter().for_each(|backend| backend.behave(Behaviour::default()));
    assert!(under_way.into_iter().all(|asked| asked.join().unwrap() == 200));
    assert!(backends.iter().all(|backend| backend.requests() >= 1));
    eventually("nothing is left of others", || {
        [&first, &second].iter().all(|node| {
            let (_, target) = node.ask("GET /api/v1/targets/web", b"");
            target["backends"].as_array().unwrap().iter().all(|backend| backend["elsewhere"] == 0)
        })
    });
}

/// What is under way on a node that leaves the others hear of until it has ended.
#[test]
fn a_node_that_drains_is_heard_until_its_last_request_has_ended() {
    if !is_there() {
        return;
    }
    let (etcd, backends) = (Etcd::start(1), fakes(COUNT));
    let [first, second] = start(&etcd, &backends, ", owner: soft");
    eventually("each prefers some", || owned(&first) + owned(&second) == COUNT as f64);
    let slow = Behaviour::default().latency(Duration::from_secs(12));
    backends.iter().for_each(|backend| backend.behave(slow.clone()));
    let address = first.address("web");
    let ask = || std::thread::spawn(move || Client::connect(address).get("/").status);
    let under_way: Vec<_> = (0..COUNT).map(|_| ask()).collect();
    eventually("it has one request on each", || load(&first) == (COUNT as u64, 0));
    let elsewhere = || -> u64 {
        let (_, target) = second.ask("GET /api/v1/targets/web", b"");
        let backends = target["backends"].as_array().unwrap();
        backends.iter().map(|backend| backend["elsewhere"].as_u64().unwrap()).sum()
    };
    eventually("it is told", || elsewhere() == COUNT as u64);
    first.terminate();
    // None of them is ever taken for free while it is not.
    let mut least = u64::MAX;
    eventually("it has left", || {
        least = least.min(elsewhere());
        owned(&second) == COUNT as f64
    });
    assert_eq!((least, elsewhere()), (COUNT as u64, COUNT as u64));
    assert!(under_way.into_iter().all(|asked| asked.join().unwrap() == 200));
    eventually("nothing is left of it", || elsewhere() == 0);
}

/// A node whose queue is never empty lets go of what another one prefers and needs.
#[test]
fn who_always_has_somebody_waiting_gives_the_others_theirs_when_these_need_them() {
    if !is_there() {
        return;
    }
    let (etcd, backends) = (Etcd::start(1), fakes(COUNT));
    let [first, second] = start(&etcd, &backends, ", owner: soft");
    eventually("each prefers some", || owned(&first) + owned(&second) == COUNT as f64);
    let busy = Behaviour::default().latency(Duration::from_millis(50));
    backends.iter().for_each(|backend| backend.behave(busy.clone()));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..COUNT * 3 {
            scope.spawn(|| {
                let mut client = Client::connect(first.address("web"));
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(client.get("/").status, 200);
                }
            });
        }
        eventually("it has all, and more that wait", || {
            let (active, waiting) = load(&first);
            active == COUNT as u64 && waiting > 0
        });
        // They are asked one after the other: each comes to its turn, as the first one's queue never does.
        let mut client = Client::connect(second.address("web"));
        for _ in 0..5 {
            assert_eq!(client.get("/").status, 200);
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
