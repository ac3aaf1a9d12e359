//! Processes that act as one.

use serde_json::Value;

use super::support::etcd::{Etcd, is_there};
use super::support::process::Process;
use super::support::{Client, eventually};

/// The config of a node.
fn config(etcd: Option<&Etcd>, node: &str, keys: &str) -> String {
    let etcd = etcd.map_or_else(String::new, |etcd| format!(", etcd: {}", etcd.yaml("")));
    format!(
        "cluster: {{name: t, node: {node}, lease: 3s{etcd}}}\n{keys}\
         targets: {{web: {{protocol: http, listener: 127.0.0.1:0, health_check: off, backends: [{{host: 127.0.0.1, port: 1}}]}}}}\n"
    )
}

fn start(etcd: &Etcd, node: &str) -> Process {
    Process::start(&config(Some(etcd), node, ""), 1)
}

pub fn report(process: &Process) -> Value {
    let output = process.command(&["cluster", "status", "--json"]);
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

/// The names of all nodes that this one knows; nothing as long as it is no member.
fn members(process: &Process) -> Vec<String> {
    let report = report(process);
    if report["standing"] != "member" {
        return Vec::new();
    }
    let nodes = report["nodes"].as_array().unwrap();
    nodes.iter().map(|node| node["name"].as_str().unwrap().to_owned()).collect()
}

pub fn comes_to(process: &Process, wanted: &[&str]) {
    eventually(&format!("it is {wanted:?}"), || members(process) == wanted);
}

pub fn text(process: &Process, words: &[&str]) -> String {
    String::from_utf8(process.command(words).stdout).unwrap()
}

#[test]
fn a_process_without_others_is_a_cluster_of_one() {
    let process = Process::start(&config(None, "only", ""), 1);
    comes_to(&process, &["only"]);
    let status = text(&process, &["cluster", "status"]);
    assert!(status.starts_with("cluster t, kept by embedded\nnode only: member for "), "{status}");
    let nodes = text(&process, &["cluster", "nodes"]);
    assert!(nodes.starts_with("only  evenkeel ") && nodes.ends_with("  (this one)\n"), "{nodes}");
}

#[test]
fn a_process_that_stands_alone_says_so() {
    let alone = config(None, "a", "");
    let process = Process::start(alone.split_once('\n').unwrap().1, 1);
    let output = process.command(&["cluster", "status"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "this process stands alone: its config has no `cluster`\n");
}

#[test]
fn nodes_know_one_another_until_one_says_good_bye() {
    if !is_there() {
        return;
    }
    let etcd = Etcd::start(1);
    let (first, second) = (start(&etcd, "a"), start(&etcd, "b"));
    comes_to(&first, &["a", "b"]);
    comes_to(&second, &["a", "b"]);
    // Long before its lease is over.
    second.end();
    comes_to(&first, &["a"]);
    let events = text(&first, &["log", "--kind", "node_gone"]);
    assert!(events.contains("node b is gone"), "{events}");
}

#[test]
fn a_node_that_is_killed_is_gone_with_its_lease_and_comes_back_to_its_place() {
    if !is_there() {
        return;
    }
    let etcd = Etcd::start(1);
    let (first, second) = (start(&etcd, "a"), start(&etcd, "b"));
    comes_to(&first, &["a", "b"]);
    let boot = |process: &Process| report(process)["nodes"][1]["boot"].as_str().map(str::to_owned);
    let before = boot(&first);
    // It takes its own place at once, since its folder of state is the same.
    let again = Process::start_in(second.kill(), 1);
    comes_to(&again, &["a", "b"]);
    eventually("it is another start of it", || boot(&first).is_some_and(|boot| Some(boot) != before));
    again.kill();
    comes_to(&first, &["a"]);
}

#[test]
fn a_second_process_of_the_same_name_is_refused_and_serves() {
    if !is_there() {
        return;
    }
    let etcd = Etcd::start(1);
    let first = start(&etcd, "a");
    comes_to(&first, &["a"]);
    let second = start(&etcd, "a");
    eventually("it is refused", || report(&second)["standing"] == "refused");
    let output = second.command(&["cluster", "status"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("another process is the node `a` already"), "{said}");
    assert_eq!(output.status.code(), Some(1));
    let mut client = Client::connect(second.address("web"));
    assert_eq!(client.get("/").status, 503);
    // Once there is room it is one of them.
    first.end();
    comes_to(&second, &["a"]);
}

#[test]
fn a_node_is_detached_without_a_store_serves_on_and_is_back_with_it() {
    if !is_there() {
        return;
    }
    let mut etcd = Etcd::start(1);
    let process = start(&etcd, "a");
    comes_to(&process, &["a"]);
    etcd.kill(0);
    eventually("it knows", || report(&process)["standing"] == "detached");
    let known = report(&process);
    assert_eq!(known["nodes"].as_array().map(Vec::len), Some(1), "what it knows stays: {known}");
    assert_eq!(Client::connect(process.address("web")).get("/").status, 503);
    etcd.begin(0);
    comes_to(&process, &["a"]);
}

#[test]
fn a_node_that_stood_still_finds_its_way_back() {
    if !is_there() {
        return;
    }
    let etcd = Etcd::start(1);
    let (first, second) = (start(&etcd, "a"), start(&etcd, "b"));
    comes_to(&first, &["a", "b"]);
    second.signal("STOP");
    comes_to(&first, &["a"]);
    second.signal("CONT");
    comes_to(&first, &["a", "b"]);
    comes_to(&second, &["a", "b"]);
}

#[test]
fn a_node_that_is_drained_is_not_ready_wherever_that_was_said() {
    if !is_there() {
        return;
    }
    let etcd = Etcd::start(1);
    let (first, second) = (start(&etcd, "a"), start(&etcd, "b"));
    comes_to(&first, &["a", "b"]);
    let ready = |process: &Process| {
        let mut stream = std::os::unix::net::UnixStream::connect(process.socket()).unwrap();
        std::io::Write::write_all(
            &mut stream,
            b"GET /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        )
        .unwrap();
        let mut answer = String::new();
        std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
        answer
    };
    assert!(ready(&second).starts_with("HTTP/1.1 200 "));
    let said = text(&first, &["cluster", "drain", "b"]);
    assert!(said.contains("drained by uid "), "{said}");
    eventually("it knows", || ready(&second).starts_with("HTTP/1.1 503 "));
    assert!(ready(&second).contains("this node is drained, by uid "));
    assert!(ready(&first).starts_with("HTTP/1.1 200 "));
    let said = text(&second, &["cluster", "ready", "b"]);
    assert!(!said.contains("drained"), "{said}");
    assert!(ready(&second).starts_with("HTTP/1.1 200 "));
    let output = first.command(&["cluster", "drain", "c"]);
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "there is no node `c`; there are: a, b\n");
}

#[test]
fn a_node_whose_row_was_taken_away_is_there_again() {
    if !is_there() {
        return;
    }
    let etcd = Etcd::start(1);
    let (first, second) = (start(&etcd, "a"), start(&etcd, "b"));
    comes_to(&first, &["a", "b"]);
    etcd.drop_row("/evenkeel/t/node/b");
    eventually("somebody has seen that", || {
        text(&first, &["log", "--kind", "node_gone"]).contains("node b is gone")
    });
    comes_to(&first, &["a", "b"]);
    comes_to(&second, &["a", "b"]);
}

#[test]
fn a_node_that_is_too_old_for_what_its_cluster_writes_serves_and_is_refused_also_if_it_was_there() {
    if !is_there() {
        return;
    }
    let etcd = Etcd::start(1);
    let process = start(&etcd, "a");
    comes_to(&process, &["a"]);
    for (schema, why) in [
        (r#"{"writer":9,"min_reader":9}"#, "wants 9 understood"),
        ("no JSON at all", "can't read what its cluster writes"),
    ] {
        etcd.put_row("/evenkeel/t/meta/schema", schema);
        eventually("it is refused", || report(&process)["reason"].as_str().unwrap_or_default().contains(why));
        assert_eq!(report(&process)["standing"], "refused");
        assert_eq!(Client::connect(process.address("web")).get("/").status, 503);
    }
    // What it can't read it does not write over.
    assert_eq!(etcd.get_row("/evenkeel/t/meta/schema"), "no JSON at all");
    etcd.put_row("/evenkeel/t/meta/schema", r#"{"writer":1,"min_reader":1}"#);
    comes_to(&process, &["a"]);
}

#[test]
fn a_store_that_takes_no_changes_is_told_once_and_what_is_known_is_served() {
    if !is_there() {
        return;
    }
    let etcd = Etcd::start(1);
    let process = start(&etcd, "a");
    comes_to(&process, &["a"]);
    etcd.guard();
    for _ in 0..2 {
        let output = process.command(&["cluster", "drain", "a"]);
        assert!(!output.status.success(), "{output:?}");
    }
    let status = text(&process, &["cluster", "status"]);
    assert!(status.contains("the store takes no changes: "), "{status}");
    let told = text(&process, &["log", "--kind", "cluster_store_refuses"]);
    assert_eq!(told.lines().count(), 1, "{told}");
    assert_eq!(Client::connect(process.address("web")).get("/").status, 503, "as before");
}

#[test]
fn a_stopped_member_keeps_nobody_from_hearing_of_changes_and_a_drain_is_done_or_refused() {
    if !is_there() {
        return;
    }
    let etcd = Etcd::start(3);
    let (first, second) = (start(&etcd, "a"), start(&etcd, "b"));
    comes_to(&first, &["a", "b"]);
    comes_to(&second, &["a", "b"]);
    // The one that both speak to.
    etcd.pause(0, true);
    for (words, is_drained) in [("drain", true), ("ready", false), ("drain", true)] {
        eventually("it is done, and not only said to be", || {
            let output = first.command(&["cluster", words, "b"]);
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            // It may be refused, by who is just about to find another member.
            assert!(!output.status.success() || said.contains("drained by") == is_drained, "{words}: {said}");
            output.status.success()
        });
        let drained = || report(&second)["nodes"][1]["drained_by"].is_string();
        eventually("the other one knows", || drained() == is_drained);
    }
    etcd.pause(0, false);
    let mut alone = etcd;
    alone.kill(0);
    alone.kill(1);
    eventually("it is detached", || report(&first)["standing"] == "detached");
    let output = first.command(&["cluster", "drain", "b"]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("the cluster can't be told"), "{said}");
}

#[test]
fn a_node_that_is_away_can_be_let_come_back_undrained() {
    if !is_there() {
        return;
    }
    let etcd = Etcd::start(1);
    let (first, second) = (start(&etcd, "a"), start(&etcd, "b"));
    comes_to(&first, &["a", "b"]);
    assert!(text(&first, &["cluster", "drain", "b"]).contains("drained by"));
    second.end();
    comes_to(&first, &["a"]);
    assert_eq!(text(&first, &["cluster", "ready", "b"]), "b  away\n");
    assert_eq!(first.command(&["cluster", "ready", "b"]).status.code(), Some(2));
}
