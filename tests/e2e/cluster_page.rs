//! Nodes of a cluster on the dashboard of one of them.

use fake_backend::Running;
use serde_json::Value;

use super::cluster::comes_to;
use super::cluster_config::{of, own, revision};
use super::dashboard_acts::log_in;
use super::door_lab::{READ, guarded, tokens};
use super::support::browser::Browser;
use super::support::etcd::{Etcd, is_there};
use super::support::process::Process;
use super::support::{Client, eventually, fakes};

/// Two nodes that share backends of one place each, with a page.
fn start(etcd: &Etcd, backends: &[Running]) -> [Process; 2] {
    let backend = |(number, backend): (usize, &Running)| {
        format!("{{name: b{number}, host: 127.0.0.1, port: {}}}", backend.port())
    };
    let list = backends.iter().enumerate().map(backend).collect::<Vec<_>>().join(", ");
    let nodes = ["a", "b"].map(|node| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tokens"), tokens()).unwrap();
        let text = own(&format!("{}, lease: 3s", of(etcd)), node)
            + "admin: {listener: 127.0.0.1:0, token_file: tokens}\n"
            + &format!(
                "targets: {{web: {{protocol: http, listener: \"127.0.0.1:0\", health_check: off, max_in_flight: 1, \
                 balance: least_connections, owner: soft, backends: [{list}]}}}}\n"
            );
        std::fs::write(folder.path().join("evenkeel.yaml"), super::support::process::whole(&text)).unwrap();
        Process::start_in(folder, 1)
    });
    for node in &nodes {
        comes_to(node, &["a", "b"]);
        eventually("there is a first revision", || revision(node) == 1);
    }
    nodes
}

/// What a node's page shows.
fn rows(node: &Process) -> Value {
    node.ask("GET /api/v1/stream?nodes=on", b"").1["rows"].clone()
}

fn ask(node: &Process, count: usize) {
    let mut client = Client::connect(node.address("web"));
    assert!((0..count).all(|_| client.get("/").status == 200));
}

#[test]
fn whoever_looks_at_one_node_sees_what_each_has_to_do() {
    if !is_there() {
        return;
    }
    let (mut etcd, backends) = (Etcd::start(1), fakes(4));
    let nodes = start(&etcd, &backends);
    let said = || etcd.count("/evenkeel/t/page/");
    ask(&nodes[0], 3);
    ask(&nodes[1], 7);
    assert_eq!(said(), 0, "nobody looks");
    eventually("one shows what the other has said", || rows(&nodes[0])["node/b"]["requests"] == 7);
    let shown = rows(&nodes[0]);
    let of = |node: &str, key: &str| shown[format!("node/{node}")][key].clone();
    assert_eq!((of("a", "requests"), of("a", "own"), of("b", "own")), (3.into(), true.into(), false.into()));
    assert_eq!((of("b", "state"), of("b", "errors"), of("b", "active")), ("up".into(), 0.into(), 0.into()));
    assert_eq!(of("a", "owned").as_u64().unwrap() + of("b", "owned").as_u64().unwrap(), 4, "{shown}");
    assert!(of("b", "times").is_object(), "{shown}");
    assert_eq!((&shown["cluster"]["name"], &shown["cluster"]["standing"]), (&"t".into(), &"member".into()));
    ask(&nodes[1], 2);
    eventually("it follows", || rows(&nodes[0])["node/b"]["requests"] == 9);
    assert!(nodes[1].command(&["cluster", "drain", "b"]).status.success());
    eventually("who drains is seen to", || rows(&nodes[0])["node/b"]["state"] == "draining");
    assert!(nodes[1].command(&["cluster", "ready", "b"]).status.success());
    // A look that does not ask for nodes has nobody say anything.
    eventually("nothing is said any more when nobody wants it", || {
        let _ = nodes[0].ask("GET /api/v1/stream", b"");
        said() == 0
    });
    etcd.kill(0);
    eventually("what the matter is stands above all", || {
        let shown = rows(&nodes[0]);
        let troubles = shown["troubles"].as_array().unwrap();
        shown["cluster"]["standing"] == "detached"
            && troubles.iter().any(|trouble| trouble["row"] == "cluster")
    });
    assert_eq!(rows(&nodes[0])["node/a"]["state"], "up");
    assert_eq!(rows(&nodes[0])["node/b"]["state"], "unknown");
}

#[test]
fn a_page_has_a_line_for_each_node() {
    let Some(browser) = Browser::start() else { return };
    if !is_there() {
        return;
    }
    let (etcd, backends) = (Etcd::start(1), fakes(4));
    let nodes = start(&etcd, &backends);
    log_in(&browser, &nodes[0], READ);
    ask(&nodes[1], 5);
    let line = |node: &str| format!("document.getElementById('node/{node}')?.innerText");
    browser.until("both are there", &format!("{} && {}", line("a"), line("b")));
    browser.until("the other one is heard", &format!("!/nothing was heard/.test({})", line("b")));
    assert!(browser.text("#nodes h2").contains("Cluster t 2 nodes"), "{}", browser.text("#nodes h2"));
    assert!(browser.text("[id=\"node/a\"]").contains("this one"));
    assert_eq!(browser.complaints(&[]), [""; 0]);
    assert_eq!(browser.barriers(), [""; 0]);
    let lonely = guarded(&backends[0]);
    log_in(&browser, &lonely, READ);
    assert_eq!(browser.eval("document.getElementById('nodes').checkVisibility()"), false);
}
