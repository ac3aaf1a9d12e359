//! Webhooks of several nodes: one message for each thing, whichever of them dies.

use std::path::Path;

use fake_backend::{Behaviour, Fake, Running};
use serde_json::Value;

use super::cluster::comes_to;
use super::cluster_config::{of, own, revision};
use super::support::etcd::{Etcd, is_there};
use super::support::process::Process;
use super::support::{eventually, fakes};

struct Nodes {
    nodes: Vec<(String, Process)>,
    backends: Vec<Running>,
    receiver: Running,
    etcd: Etcd,
    _key: tempfile::NamedTempFile,
}

fn config(etcd: &Etcd, node: &str, backends: &[Running], receiver: &Running, key: &Path) -> String {
    let of = format!("{}, lease: 3s, secrets_key_file: {}", of(etcd), key.display());
    let backend = |(number, backend): (usize, &Running)| {
        format!("{{name: b{number}, host: 127.0.0.1, port: {}}}", backend.port())
    };
    let list = backends.iter().enumerate().map(backend).collect::<Vec<_>>().join(", ");
    own(&of, node)
        + &format!(
            "webhooks: [{{url: '{}/hush', events: [backend_down, backend_up, reload]}}]\n\
             targets: {{web: {{protocol: http, listener: \"127.0.0.1:0\", health_check: {{path: /health, interval: 100ms, timeout: 15s, fall: 1, rise: 1}}, \
             backends: [{list}]}}}}\n",
            receiver.url()
        )
}

impl Nodes {
    fn start(names: &[&str]) -> Nodes {
        let (etcd, backends) = (Etcd::start(1), fakes(2));
        let receiver = Fake::http("hook").record().start_in_thread().unwrap();
        let key = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(key.path(), [7; 32]).unwrap();
        let node = |name: &&str| {
            let process = Process::start(&config(&etcd, name, &backends, &receiver, key.path()), 1);
            ((*name).to_owned(), process)
        };
        let nodes = names.iter().map(node).collect();
        let nodes = Nodes { nodes, backends, receiver, etcd, _key: key };
        for (_, node) in &nodes.nodes {
            comes_to(node, names);
            eventually("there is a first revision", || revision(node) == 1);
            nodes.all_find(0, "up");
            nodes.all_find(1, "up");
        }
        nodes
    }

    fn all_find(&self, backend: usize, wanted: &str) {
        for (name, node) in &self.nodes {
            eventually(&format!("{name} finds b{backend} {wanted}"), || {
                let (_, target) = node.ask("GET /api/v1/targets/web", b"");
                target["backends"][backend]["state"] == wanted
            });
        }
    }

    /// Everything that the receiver was sent.
    fn sent(&self) -> Vec<Value> {
        let whole = self.receiver.last_requests().into_iter().filter(|request| request.complete);
        whole.map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
    }

    /// The same in words: `backend_down web/b0`.
    fn told(&self) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        self.sent().iter().map(|body| format!("{} {}", text(&body["event"]), text(&body["object"]))).collect()
    }

    fn comes_to(&self, wanted: &[&str]) {
        eventually(&format!("it is told {wanted:?}"), || self.told().len() >= wanted.len());
        assert_eq!(self.told(), wanted);
    }

    /// Nothing waits on any node.
    fn rests(&self) {
        for (name, node) in &self.nodes {
            eventually(&format!("nothing waits on {name}"), || {
                let (_, status) = node.ask("GET /api/v1/status", b"");
                status["webhooks"][0]["waiting"] == 0
            });
        }
    }

    fn kill(&mut self, name: &str) {
        let at = self.nodes.iter().position(|(other, _)| other == name).unwrap();
        drop(self.nodes.remove(at).1.kill());
    }
}

#[test]
fn what_all_nodes_find_is_told_once_and_a_revision_too() {
    if !is_there() {
        return;
    }
    let nodes = Nodes::start(&["a", "b", "c"]);
    nodes.backends[0].stop();
    nodes.all_find(0, "down");
    nodes.comes_to(&["backend_down web/b0"]);
    nodes.backends[0].restart().unwrap();
    nodes.all_find(0, "up");
    nodes.comes_to(&["backend_down web/b0", "backend_up web/b0"]);
    let node = &nodes.nodes[1].1;
    let path = node.folder().join("evenkeel.yaml");
    let text = std::fs::read_to_string(&path).unwrap().replace("timeout: 15s", "timeout: 16s");
    std::fs::write(&path, text).unwrap();
    assert!(node.command(&["reload"]).status.success());
    for (_, node) in &nodes.nodes {
        eventually("the next revision is in force", || revision(node) == 2);
    }
    nodes.comes_to(&["backend_down web/b0", "backend_up web/b0", "reload -"]);
    nodes.rests();
    // Whoever comes later has nothing to tell.
    nodes.backends[1].stop();
    nodes.all_find(1, "down");
    let all = ["backend_down web/b0", "backend_up web/b0", "reload -", "backend_down web/b1"];
    nodes.comes_to(&all);
    let late = config(&nodes.etcd, "d", &nodes.backends, &nodes.receiver, nodes._key.path());
    let late = Process::start(&late, 1);
    comes_to(&late, &["a", "b", "c", "d"]);
    nodes.backends[1].restart().unwrap();
    nodes.all_find(1, "up");
    nodes.comes_to(&[&all[..], &["backend_up web/b1"]].concat());
}

#[test]
fn what_the_node_that_tells_has_left_another_one_sends_with_the_same_id() {
    if !is_there() {
        return;
    }
    let mut nodes = Nodes::start(&["a", "b", "c"]);
    nodes.receiver.behave(Behaviour { status: 503, ..Behaviour::default() });
    nodes.backends[0].stop();
    nodes.all_find(0, "down");
    eventually("it is tried", || !nodes.sent().is_empty());
    let first = nodes.sent().remove(0);
    nodes.kill(first["node"].as_str().unwrap());
    let refused = nodes.sent().len();
    nodes.receiver.behave(Behaviour::default());
    eventually("another one sends it", || nodes.sent().len() > refused);
    let sent = nodes.sent();
    assert!(sent.iter().all(|body| body["id"] == first["id"]), "{sent:#?}");
    nodes.rests();
    assert_eq!(nodes.sent().len(), refused + 1);
}

#[test]
fn what_happens_when_nobody_tells_is_told_by_the_next_one() {
    if !is_there() {
        return;
    }
    let mut nodes = Nodes::start(&["a", "b", "c"]);
    nodes.backends[0].stop();
    nodes.all_find(0, "down");
    nodes.comes_to(&["backend_down web/b0"]);
    nodes.rests();
    let teller = nodes.sent()[0]["node"].as_str().unwrap().to_owned();
    nodes.kill(&teller);
    // Before anybody else knows that it is gone.
    nodes.backends[1].stop();
    nodes.backends[0].restart().unwrap();
    nodes.all_find(1, "down");
    nodes.all_find(0, "up");
    eventually("both are told", || nodes.told().len() == 3);
    let mut told = nodes.told();
    told.sort();
    assert_eq!(told, ["backend_down web/b0", "backend_down web/b1", "backend_up web/b0"]);
}

#[test]
fn without_a_store_each_node_tells_what_it_finds() {
    if !is_there() {
        return;
    }
    let mut nodes = Nodes::start(&["a", "b"]);
    nodes.etcd.kill(0);
    for (_, node) in &nodes.nodes {
        eventually("it is detached", || {
            let (_, report) = node.ask("GET /api/v1/cluster", b"");
            report["standing"] == "detached"
        });
    }
    nodes.backends[0].stop();
    nodes.all_find(0, "down");
    eventually("both have told it", || nodes.told().len() == 2);
    let who: Vec<Value> = nodes.sent().iter().map(|body| body["node"].clone()).collect();
    assert_ne!(who[0], who[1]);
    nodes.etcd.begin(0);
    for (_, node) in &nodes.nodes {
        comes_to(node, &["a", "b"]);
    }
    nodes.backends[0].restart().unwrap();
    nodes.all_find(0, "up");
    // By the one that tells for all; and by the other one, if it hears of it before it hears that all were told.
    eventually("that it is up is told", || nodes.told().len() > 2);
    assert!(nodes.told()[2..].iter().all(|told| told == "backend_up web/b0"), "{:?}", nodes.told());
}
