//! What is changed by hand, and who is blocked, on all nodes of a cluster at once.

use std::path::Path;

use fake_backend::Running;
use serde_json::{Value, json};

use super::cluster::comes_to;
use super::cluster_config::{of, own, revision};
use super::metrics::{scrape, sum};
use super::support::etcd::{Etcd, is_there};
use super::support::process::{Process, whole};
use super::support::{Client, eventually, fakes};

fn config(etcd: &Etcd, node: &str, backends: &[Running], keys: &str) -> String {
    let list = backends
        .iter()
        .enumerate()
        .map(|(number, backend)| format!("{{name: b{number}, host: 127.0.0.1, port: {}}}", backend.port()));
    let list = list.collect::<Vec<_>>().join(", ");
    own(&of(etcd), node)
        + &format!(
            "targets: {{web: {{protocol: http, listener: \"127.0.0.1:0\", health_check: off{keys}, backends: [{list}]}}}}\n"
        )
}

/// Two nodes that have the same config.
fn pair(etcd: &Etcd, backends: &[Running]) -> [Process; 2] {
    let nodes = ["a", "b"].map(|node| Process::start(&config(etcd, node, backends, ""), 1));
    for node in &nodes {
        comes_to(node, &["a", "b"]);
        eventually("there is a first revision", || revision(node) == 1);
    }
    nodes
}

/// Changes of one kind in force: object, field, value.
fn entries(process: &Process) -> Vec<(String, String, Value)> {
    let (_, answer) = process.ask("GET /api/v1/overlay", b"");
    let all = answer["entries"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    all.iter().map(|entry| (text(&entry["backend"]), text(&entry["field"]), entry["value"].clone())).collect()
}

fn blocked(process: &Process) -> Vec<String> {
    let (_, answer) = process.ask("GET /api/v1/access/blocked/entries", b"");
    let all = answer["entries"].as_array().cloned().unwrap_or_default();
    all.iter().map(|entry| entry["network"].as_str().unwrap().to_owned()).collect()
}

fn set(process: &Process, backend: &str, change: &Value) -> u16 {
    let path = format!("PATCH /api/v1/targets/web/backends/{backend}");
    process.ask(&path, change.to_string().as_bytes()).0
}

/// What is answered once the store has had time to be told: on a machine that has none it is no refusal.
fn told(mut ask: impl FnMut() -> u16) -> u16 {
    let mut status = 503;
    eventually("the store has time", || {
        status = ask();
        status != 503
    });
    status
}

/// Who answers of a few requests.
fn answering(process: &Process) -> Vec<String> {
    let mut client = Client::connect(process.address("web"));
    let mut all: Vec<String> = (0..8).map(|_| client.get("/").text().replace("Hello from ", "")).collect();
    all.sort();
    all.dedup();
    all
}

#[test]
fn a_change_by_hand_is_in_force_on_all_nodes_and_over_on_all() {
    if !is_there() {
        return;
    }
    let (etcd, backends) = (Etcd::start(1), fakes(2));
    let [first, second] = pair(&etcd, &backends);
    assert!(first.command(&["down", "web/b0"]).status.success());
    assert_eq!(answering(&first), ["fake-2"]);
    eventually("it is down on the other one", || answering(&second) == ["fake-2"]);
    // What is listed comes behind what is in force.
    let down = [("b0".to_owned(), "state".to_owned(), json!("down"))];
    eventually("it is listed", || entries(&second) == down);
    // Taken back where it was not set.
    assert!(second.command(&["ready", "web/b0"]).status.success());
    eventually("it is up again", || answering(&first) == ["fake-1", "fake-2"]);
    // One with an end is over on both.
    assert!(first.command(&["weight", "web/b1", "7", "--for", "3s"]).status.success());
    eventually("it is there", || entries(&second).len() == 1);
    eventually("it is over", || entries(&first).is_empty() && entries(&second).is_empty());
    // Who comes later has it from the first request on.
    assert!(second.command(&["down", "web/b1"]).status.success());
    let third = Process::start(&config(&etcd, "c", &backends, ""), 1);
    assert_eq!(answering(&third), ["fake-1"]);
}

#[test]
fn nodes_that_change_things_at_once_come_to_the_same() {
    if !is_there() {
        return;
    }
    let (etcd, backends) = (Etcd::start(1), fakes(2));
    let nodes = pair(&etcd, &backends);
    std::thread::scope(|scope| {
        for (node, process) in nodes.iter().enumerate() {
            scope.spawn(move || {
                for number in 0..15 {
                    // Both the same object, and each one of its own.
                    let weight = json!({ "weight": 2 + node * 20 + number });
                    assert_eq!(told(|| set(process, "b0", &weight)), 200);
                    let drain = json!({ "state": "drain" });
                    assert_eq!(told(|| set(process, &format!("b{node}"), &drain)), 200);
                    let block = json!({ "network": format!("192.0.{node}.{number}") });
                    let path = "POST /api/v1/access/blocked/entries";
                    assert_eq!(told(|| process.ask(path, block.to_string().as_bytes()).0), 201);
                }
            });
        }
    });
    let same = || entries(&nodes[0]) == entries(&nodes[1]) && blocked(&nodes[0]) == blocked(&nodes[1]);
    eventually("they are the same", same);
    assert_eq!(blocked(&nodes[0]).len(), 30);
    assert_eq!(entries(&nodes[0]).len(), 3, "{:?}", entries(&nodes[0]));
}

#[test]
fn who_is_blocked_on_one_node_is_out_on_all() {
    if !is_there() {
        return;
    }
    let (etcd, backends) = (Etcd::start(1), fakes(1));
    let [first, second] = pair(&etcd, &backends);
    assert!(first.command(&["block", "127.0.0.1", "--force"]).status.success());
    let status = |process: &Process| Client::connect(process.address("web")).get("/").status;
    eventually("it is out there too", || status(&second) == 403);
    assert!(second.command(&["unblock", "127.0.0.1"]).status.success());
    eventually("it is in again", || status(&first) == 200);
}

#[test]
fn changes_outlive_a_restart_without_a_store_and_are_refused_meanwhile() {
    if !is_there() {
        return;
    }
    let (mut etcd, backends) = (Etcd::start(1), fakes(2));
    let [first, second] = pair(&etcd, &backends);
    assert!(first.command(&["down", "web/b0"]).status.success());
    eventually("it is down on the other one", || answering(&second) == ["fake-2"]);
    let kept = |folder: &Path| {
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if entry.is_dir() {
                    folders.push(entry);
                } else if entry.extension().is_some_and(|extension| extension == "overlay") {
                    return std::fs::read_to_string(entry).unwrap_or_default();
                }
            }
        }
        String::new()
    };
    eventually("it lies on the disk", || kept(second.folder()).contains("down"));
    etcd.kill(0);
    let second = Process::start_in(second.kill(), 1);
    assert_eq!(answering(&second), ["fake-2"]);
    let (status, answer) = second.ask("PATCH /api/v1/targets/web/backends/b1", br#"{"weight": 9}"#);
    assert_eq!(status, 503, "{answer}");
    assert!(answer["detail"].as_str().unwrap().contains("the cluster can't be told"), "{answer}");
    etcd.begin(0);
    comes_to(&second, &["a", "b"]);
    assert_eq!(answering(&second), ["fake-2"]);
    // A store that has lost everything gets it back from those who know it.
    etcd.wipe(0);
    comes_to(&second, &["a", "b"]);
    assert_eq!(
        (answering(&first), answering(&second)),
        (vec!["fake-2".to_owned()], vec!["fake-2".to_owned()])
    );
    // An answer may be lost with the connection.
    eventually("it is taken back", || second.command(&["ready", "web/b0"]).status.success());
    eventually("it is up on both", || answering(&first).len() == 2 && answering(&second).len() == 2);
}

#[test]
fn an_entry_has_the_same_fate_on_all_nodes_while_their_files_are_edited_one_by_one() {
    if !is_there() {
        return;
    }
    let (etcd, backends) = (Etcd::start(1), fakes(2));
    let [first, second] = pair(&etcd, &backends);
    assert!(first.command(&["weight", "web/b0", "9"]).status.success());
    eventually("it is there", || entries(&second).len() == 1);
    // The file of one says something else of the same thing: the entry is over on both with that revision, and not before.
    let write = |process: &Process, node: &str, keys: &str| {
        std::fs::write(process.folder().join("evenkeel.yaml"), whole(&config(&etcd, node, &backends, keys)))
            .unwrap();
    };
    write(&second, "b", ", timeouts: {connect: 7s}");
    assert!(second.command(&["reload"]).status.success());
    eventually("both have it", || revision(&first) == 2 && revision(&second) == 2);
    assert_eq!((entries(&first).len(), entries(&second).len()), (1, 1));
    write(&first, "a", ", timeouts: {connect: 7s}");
    assert!(first.command(&["reload"]).status.success());
    assert_eq!((entries(&first).len(), entries(&second).len(), revision(&first)), (1, 1, 2));
    let text = whole(&config(&etcd, "a", &backends, "")).replace("name: b0,", "name: b0, weight: 4,");
    std::fs::write(first.folder().join("evenkeel.yaml"), text).unwrap();
    assert!(first.command(&["reload"]).status.success());
    eventually("it is over on both", || entries(&first).is_empty() && entries(&second).is_empty());
    assert_eq!(revision(&second), 3);
}

#[test]
fn what_was_changed_before_there_was_a_cluster_goes_into_it_with_the_first_node_and_with_no_other() {
    if !is_there() {
        return;
    }
    let (etcd, backends) = (Etcd::start(1), fakes(2));
    // As it was alone, with a change by hand; and then as a node.
    let joining = |node: &str, words: &[&str]| {
        let whole_config = config(&etcd, node, &backends, "");
        let alone: String = whole_config
            .lines()
            .filter(|line| !line.starts_with("cluster:"))
            .map(|line| format!("{line}\n"))
            .collect();
        let process = Process::start(&alone, 1);
        assert!(process.command(words).status.success());
        let folder = process.kill();
        std::fs::write(folder.path().join("evenkeel.yaml"), whole(&whole_config)).unwrap();
        Process::start_in(folder, 1)
    };
    let first = joining("a", &["weight", "web/b0", "9"]);
    eventually("there is a first revision", || revision(&first) == 1);
    let weight = [("b0".to_owned(), "weight".to_owned(), json!(9))];
    eventually("it is listed", || entries(&first) == weight);
    let second = joining("b", &["down", "web/b1"]);
    comes_to(&second, &["a", "b"]);
    eventually("it has what all have", || entries(&second) == weight);
    eventually("it is listed", || entries(&first) == weight);
    assert_eq!(answering(&second), ["fake-1", "fake-2"]);
}

#[test]
fn a_detached_node_changes_itself_alone_where_it_is_told_to_and_goes_by_the_others_afterwards() {
    if !is_there() {
        return;
    }
    let (mut etcd, backends) = (Etcd::start(1), fakes(2));
    let keys = ", rate_limit: [all]";
    let limits = "rate_limits: {all: {rate: 6000/s, burst: 6000, by: global}}\n";
    let nodes = ["a", "b"].map(|node| {
        let text = config(&etcd, node, &backends, keys).replacen("targets:", &format!("{limits}targets:"), 1);
        Process::start(&text.replacen("name: t,", "name: t, lease: 3s,", 1), 1)
    });
    for node in &nodes {
        comes_to(node, &["a", "b"]);
        eventually("there is a first revision", || revision(node) == 1);
    }
    let [first, second] = &nodes;
    let said = |process: &Process, words: &[&str]| {
        let output = process.command(words);
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    // For this node alone nothing is changed as long as all can be told.
    let (is_done, why) = said(first, &["down", "web/b0", "--local"]);
    assert!(!is_done && why.contains("a change is for all of them"), "{why}");
    assert!(first.command(&["weight", "web/b1", "7"]).status.success());
    eventually("all have it", || entries(second).len() == 1);
    let part = |node: &Process| sum(&scrape(node), "evenkeel_cluster_limit_part", &["limit=\"all\""]);
    eventually("who is asked has most of the limit", || {
        answering(first);
        part(first) > 0.9
    });
    etcd.kill(0);
    for node in &nodes {
        eventually("it is detached", || node.ask("GET /api/v1/cluster", b"").1["standing"] == "detached");
        eventually("it has its part by head count", || {
            answering(first);
            (part(node) - 0.5).abs() < 0.01
        });
    }
    let (is_done, why) = said(first, &["down", "web/b0"]);
    assert!(!is_done && why.contains("nothing has changed") && why.contains("--local"), "{why}");
    assert!(first.command(&["down", "web/b0", "--local"]).status.success());
    assert!(first.command(&["block", "192.0.2.0/24", "--local"]).status.success());
    assert_eq!(
        (answering(first), blocked(first)),
        (vec!["fake-2".to_owned()], vec!["192.0.2.0/24".to_owned()])
    );
    assert_eq!(answering(second), ["fake-1", "fake-2"]);
    // And takes it back in the same way.
    assert!(first.command(&["unblock", "192.0.2.0/24", "--local"]).status.success());
    assert!(first.command(&["ready", "web/b0", "--local"]).status.success());
    assert!((answering(first).len(), blocked(first).len()) == (2, 0));
    assert!(first.command(&["down", "web/b0", "--local"]).status.success());
    assert!(first.command(&["block", "192.0.2.0/24", "--local"]).status.success());
    etcd.begin(0);
    for node in &nodes {
        comes_to(node, &["a", "b"]);
    }
    eventually("it goes by what all have", || answering(first).len() == 2 && blocked(first).is_empty());
    // What is listed comes behind what is in force.
    let common = [("b1".to_owned(), "weight".to_owned(), json!(7))];
    eventually("nothing else is listed", || entries(first) == common);
    eventually("it can be told", || second.command(&["down", "web/b0"]).status.success());
    eventually("a change is for all again", || answering(first) == ["fake-2"]);
}
