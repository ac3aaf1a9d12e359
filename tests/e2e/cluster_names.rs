//! Addresses of names as one fact of all nodes.

use std::path::Path;

use super::cluster::comes_to;
use super::cluster_config::{of, own, revision};
use super::support::dns::{FakeDns, Says, addresses};
use super::support::etcd::{Etcd, is_there};
use super::support::process::{Process, whole};
use super::support::{eventually, settled};

/// A node that asks this server every 50 ms; an address that is lacking stays for three answers.
fn node(etcd: &Etcd, name: &str, dns: &FakeDns) -> Process {
    let text = own(&format!("{}, lease: 5s", of(etcd)), name)
        + "resolver: {servers: '${DNS}', timeout: 5s, attempts: 1, ttl_min: 50ms, ttl_max: 50ms, hold: 0s}\n\
           targets: {web: {protocol: http, listener: \"127.0.0.1:0\", health_check: off, backends: [{dns: app.internal, port: 8000, family: ipv4}]}}\n";
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("evenkeel.yaml"), whole(&text)).unwrap();
    let servers = dns.address.to_string();
    Process::start_with(folder, 1, &[("DNS", Path::new(&servers))])
}

/// The addresses that a node knows, and who asks for them; empty: it does itself.
fn known(process: &Process) -> (Vec<String>, String) {
    let (_, target) = process.ask("GET /api/v1/targets/web", b"");
    let name = &target["names"][0];
    let addresses = name["addresses"].as_array().into_iter().flatten();
    let addresses = addresses.map(|one| one.as_str().unwrap().to_owned()).collect();
    (addresses, name["asked_by"].as_str().unwrap_or_default().to_owned())
}

fn says(numbers: &[u8]) -> Says {
    addresses(0, numbers.iter().map(|number| format!("127.0.0.{number}")))
}

fn at(numbers: &[u8], by: &str) -> (Vec<String>, String) {
    (numbers.iter().map(|number| format!("127.0.0.{number}")).collect(), by.to_owned())
}

/// Both have one config, and the first one asks.
fn begin(etcd: &Etcd, servers: [&FakeDns; 2]) -> [Process; 2] {
    let first = node(etcd, "a", servers[0]);
    eventually("there is a first revision", || revision(&first) == 1);
    eventually("it has an answer", || !known(&first).0.is_empty());
    eventually("it has said that it asks", || etcd.count("/evenkeel/t/name/") == 1);
    let second = node(etcd, "b", servers[1]);
    comes_to(&second, &["a", "b"]);
    eventually("the first one asks", || known(&second).1 == "a");
    [first, second]
}

#[test]
fn one_node_asks_for_a_name_and_all_have_its_addresses_until_another_one_does() {
    if !is_there() {
        return;
    }
    let (etcd, of_first, of_second) = (Etcd::start(1), FakeDns::start(), FakeDns::start());
    of_first.say("app.internal", says(&[1, 2]));
    of_second.say("app.internal", says(&[2, 3]));
    let [first, second] = begin(&etcd, [&of_first, &of_second]);
    // What it had heard for itself it does not have.
    eventually("it is told", || known(&second) == at(&[1, 2], "a"));
    assert_eq!(known(&first), at(&[1, 2], ""));
    // Its last question may still be on its way.
    let before = settled("the other one asks nobody any more", || of_second.asked());
    let seen = of_first.asked();
    of_first.say("app.internal", says(&[2, 4]));
    eventually("it is told of what is new", || known(&second) == at(&[2, 4], "a"));
    eventually("one is asked", || of_first.asked() >= seen + 5);
    assert_eq!(of_second.asked(), before, "the other one asks nobody");
    // Who is told shows it.
    let output = second.command(&["status"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("dns app.internal: 2 addresses, asked for by node a"), "{text}");
    // When it is gone the other one asks, and what answers lack leaves in its own time.
    of_second.say("app.internal", says(&[2, 4, 5]));
    drop(first.kill());
    comes_to(&second, &["b"]);
    eventually("it asks", || known(&second) == at(&[2, 4, 5], ""));
    // One that comes back is told.
    let first = node(&etcd, "a", &of_first);
    comes_to(&first, &["a", "b"]);
    eventually("it is told too", || known(&first) == at(&[2, 4, 5], "b"));
}

#[test]
fn a_node_that_gets_no_answer_is_told_by_one_that_does() {
    if !is_there() {
        return;
    }
    let (etcd, of_first, of_second) = (Etcd::start(1), FakeDns::start(), FakeDns::start());
    of_first.say("app.internal", says(&[1]));
    of_second.say("app.internal", Says::Nothing);
    // One that starts without an answer has the addresses all the same.
    let [first, second] = begin(&etcd, [&of_first, &of_second]);
    eventually("it is told", || known(&second) == at(&[1], "a"));
    of_first.say("app.internal", Says::Nothing);
    of_second.say("app.internal", says(&[1, 2]));
    eventually("the other one asks", || known(&second) == at(&[1, 2], ""));
    eventually("and tells", || known(&first) == at(&[1, 2], "b"));
    // Where nobody gets one all keep what they know, and ask.
    of_second.say("app.internal", Says::Nothing);
    let (before, seen) = (of_first.asked(), of_second.asked());
    eventually("both ask", || of_first.asked() > before && of_second.asked() > seen);
    assert_eq!((known(&first).0, known(&second).0), (at(&[1, 2], "").0, at(&[1, 2], "").0));
}

#[test]
fn a_detached_node_asks_for_itself_and_is_told_again_once_it_is_back() {
    if !is_there() {
        return;
    }
    let (mut etcd, of_first, of_second) = (Etcd::start(1), FakeDns::start(), FakeDns::start());
    of_first.say("app.internal", says(&[1]));
    of_second.say("app.internal", says(&[1]));
    let [first, second] = begin(&etcd, [&of_first, &of_second]);
    etcd.kill(0);
    of_second.say("app.internal", says(&[1, 2]));
    eventually("it asks for itself", || known(&second) == at(&[1, 2], ""));
    assert_eq!(known(&first), at(&[1], ""));
    etcd.begin(0);
    comes_to(&second, &["a", "b"]);
    let asking = |one: &Process| known(one).1;
    eventually("one of them asks", || asking(&first).is_empty() != asking(&second).is_empty());
    eventually("both know the same", || known(&first).0 == known(&second).0);
}
