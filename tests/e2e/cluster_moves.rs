//! Backends of few places each that move to the nodes where requests come.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fake_backend::{Behaviour, Fake, Running};

use super::cluster::{comes_to, text};
use super::cluster_config::{of, own, revision};
use super::metrics::{scrape, sum};
use super::support::etcd::{Etcd, is_there};
use super::support::process::Process;
use super::support::{Client, Stop, eventually, eventually_within};

const COUNT: usize = 40;

/// Forty backends that are one process: each request is at another address of it.
fn start(etcd: &Etcd, backend: &Running, names: &[&str]) -> Vec<Process> {
    let port = backend.port();
    let backend = |number: usize| format!("{{name: b{number}, host: 127.0.0.{}, port: {port}}}", number + 1);
    let list = (0..COUNT).map(backend).collect::<Vec<_>>().join(", ");
    let node = |node: &&str| {
        let text = own(&format!("{}, lease: 3s", of(etcd)), node)
            + &format!(
                "targets: {{web: {{protocol: http, listener: \"127.0.0.1:0\", health_check: off, max_in_flight: 1, queue: {{timeout: 60s}}, \
                 balance: least_connections, owner: soft, backends: [{list}]}}}}\n"
            );
        Process::start(&text, 1)
    };
    let nodes: Vec<Process> = names.iter().map(node).collect();
    for node in &nodes {
        comes_to(node, names);
        eventually("there is a first revision", || revision(node) == 1);
    }
    nodes
}

fn backend() -> Running {
    let anywhere = SocketAddr::from(([0, 0, 0, 0], 0));
    let backend = Fake::http("all").bind_addr(anywhere).start_in_thread().unwrap();
    backend.behave(Behaviour::default().latency(Duration::from_millis(50)));
    backend
}

fn owned(node: &Process) -> usize {
    sum(&scrape(node), "evenkeel_cluster_owned_backends", &["target=\"web\""]) as usize
}

/// All but four, or a few more: as long as it is not known what chance does, nobody cares for so few.
/// Backends move a few at a time, with seconds between: some fifteen seconds for all.
const MOVED: Duration = Duration::from_secs(90);

fn has_most(busy: &Process, idle: &Process) -> bool {
    let (most, rest) = (owned(busy), owned(idle));
    most + rest == COUNT && (3..=7).contains(&rest)
}

fn moves(node: &Process) -> f64 {
    sum(&scrape(node), "evenkeel_cluster_owner_moves_total", &[])
}

/// Has so many clients ask a node again and again while something is done.
fn under_load(node: &Process, clients: usize, then: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    let address = node.address("web");
    std::thread::scope(|scope| {
        let _stop = Stop(&is_over);
        for _ in 0..clients {
            scope.spawn(|| {
                let mut client = Client::connect(address);
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(client.get("/").status, 200);
                }
            });
        }
        then();
    });
}

#[test]
fn backends_move_to_the_node_that_is_asked_most_and_back_and_no_request_is_lost() {
    if !is_there() {
        return;
    }
    let (etcd, backend) = (Etcd::start(1), backend());
    let nodes = start(&etcd, &backend, &["a", "b"]);
    eventually("each prefers some", || owned(&nodes[0]) + owned(&nodes[1]) == COUNT);
    // The other one keeps four, whatever is asked of it.
    for (busy, idle) in [(0, 1), (1, 0)] {
        under_load(&nodes[busy], 20, || {
            eventually_within(MOVED, "they move", || has_most(&nodes[busy], &nodes[idle]));
        });
    }
    assert!(moves(&nodes[0]) + moves(&nodes[1]) >= 26.0, "one of them has moved them");
    assert!(moves(&nodes[0]) == 0.0 || moves(&nodes[1]) == 0.0, "and no other one");
    // What was moved is preferred by who is left once its node is gone, without anybody moving it.
    let [first, second] = <[Process; 2]>::try_from(nodes).ok().unwrap();
    let before = moves(&first);
    drop(second.kill());
    comes_to(&first, &["a"]);
    eventually("it prefers all", || owned(&first) == COUNT);
    assert_eq!(moves(&first), before);
}

#[test]
fn a_backend_that_was_moved_by_hand_stays_there_until_it_is_let_go() {
    if !is_there() {
        return;
    }
    let (etcd, backend) = (Etcd::start(1), backend());
    let nodes = start(&etcd, &backend, &["a", "b"]);
    eventually("each prefers some", || owned(&nodes[0]) + owned(&nodes[1]) == COUNT);
    let owner = |number: usize| {
        let (_, all) = nodes[0].ask("GET /api/v1/cluster/owners", b"");
        let one = &all["targets"][0]["backends"][number];
        (one["node"].as_str().unwrap_or_default().to_owned(), one["by_hand"] == true)
    };
    let (home, _) = owner(7);
    let other = if home == "a" { "b" } else { "a" };
    assert_eq!(
        text(&nodes[1], &["cluster", "move", "web/b7", other]).trim_end(),
        format!("b7  {other}  0 here, 0 elsewhere  (by hand)")
    );
    eventually("it is there for all", || owner(7) == (other.to_owned(), true));
    let told = text(&nodes[1], &["log", "--kind", "changed_by_hand"]);
    assert!(told.contains(&format!("web/b7 is preferred by node {other}, by hand")), "{told}");
    let shown = text(&nodes[0], &["cluster", "owners"]);
    assert!(shown.starts_with("web: a ") && shown.ends_with(" of 40, 1 by hand\n"), "{shown}");
    let lines = text(&nodes[0], &["cluster", "owners", "web"]);
    assert!(lines.lines().count() == COUNT && lines.contains(&format!("b7  {other}  ")), "{lines}");
    let busy = usize::from(home == "b");
    under_load(&nodes[busy], 20, || {
        eventually_within(MOVED, "others move", || has_most(&nodes[busy], &nodes[1 - busy]));
        assert_eq!(owner(7), (other.to_owned(), true));
        assert!(text(&nodes[0], &["cluster", "move", "web/b7", "--auto"]).contains(&format!("b7  {other}")));
        eventually("it is let go", || !owner(7).1);
    });
    // What makes no sense is said.
    let refused = |words: &[&str]| {
        let output = nodes[0].command(words);
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let of = |words: &[&str], wanted: &str| {
        let said = refused(words);
        assert!(said.contains(wanted), "{said}");
    };
    of(&["cluster", "move", "web/b7", "c"], "there is no node `c`; there are: a, b");
    of(&["cluster", "move", "web/none", "a"], "there is no backend `web/none`");
    of(&["cluster", "move", "other/b7", "a"], "there is no target `other`");
    of(&["cluster", "move", "b7", "a"], "a backend is said as `target/backend`");
    of(&["cluster", "owners", "other"], "there is no target `other` with `owner: soft`");
}
