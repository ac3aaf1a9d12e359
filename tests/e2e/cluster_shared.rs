//! Limits that hold over all nodes, and keys that all of them have.

use std::sync::Arc;

use fake_backend::{Authority, Running};

use super::cluster::comes_to;
use super::cluster_config::{of, own, revision};
use super::metrics::{scrape, sum};
use super::support::etcd::{Etcd, is_there};
use super::support::process::{Process, whole};
use super::support::tls::{TLS13, TlsSocket, client_config};
use super::support::{Client, eventually, fakes};

fn with_key(etcd: &Etcd, key: &std::path::Path) -> String {
    of(etcd) + &format!(", secrets_key_file: {}", key.display())
}

fn list(backends: &[Running]) -> String {
    let one = |(number, backend): (usize, &Running)| {
        format!("{{name: b{number}, host: 127.0.0.1, port: {}}}", backend.port())
    };
    backends.iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
}

fn pair(config: impl Fn(&str) -> String) -> [Process; 2] {
    started(|node| Process::start(&config(node), 1))
}

fn started(start: impl Fn(&str) -> Process) -> [Process; 2] {
    let nodes = ["a", "b"].map(start);
    for node in &nodes {
        comes_to(node, &["a", "b"]);
        eventually("there is a first revision", || revision(node) == 1);
    }
    nodes
}

/// How many of so many requests pass.
fn passing(process: &Process, requests: usize) -> usize {
    let mut client = Client::connect(process.address("web"));
    (0..requests).filter(|_| client.get("/").status == 200).count()
}

#[test]
fn a_limit_for_all_holds_over_all_nodes() {
    if !is_there() {
        return;
    }
    let (etcd, backends) = (Etcd::start(1), fakes(1));
    let [first, second] = pair(|node| {
        own(&of(&etcd), node)
            + &format!(
                "rate_limits: {{all: {{rate: 40/h, burst: 40, by: global}}, mine: {{rate: 1/h, burst: 40}}}}\n\
                 targets: {{web: {{protocol: http, listener: \"127.0.0.1:0\", health_check: off, rate_limit: [all, mine], backends: [{}]}}}}\n",
                list(&backends)
            )
    });
    let part = |node: &Process| sum(&scrape(node), "evenkeel_cluster_limit_part", &["limit=\"all\""]);
    for node in [&first, &second] {
        eventually("it has its part", || part(node) == 0.5);
    }
    // A node of which nothing is asked keeps a part, so no node ever has it all.
    let (one, other) = (passing(&first, 60), passing(&second, 60));
    assert!((1..40).contains(&one) && (1..40).contains(&other), "{one} and {other}");
    first.end();
    comes_to(&second, &["b"]);
}

#[test]
fn a_session_and_a_sticky_cookie_are_good_on_every_node() {
    if !is_there() {
        return;
    }
    let (etcd, backends) = (Etcd::start(1), fakes(4));
    let key = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(key.path(), [7; 32]).unwrap();
    let authority = Authority::new("nodes");
    let issued = authority.issue(["localhost"]);
    let config = |node: &str| {
        own(&with_key(&etcd, key.path()), node)
            + &format!(
                "targets: {{web: {{protocol: https, listener: \"127.0.0.1:0\", health_check: off, sticky: {{cookie: stay}}, \
                 tls: {{cert_file: cert.pem, cert_key: key.pem}}, backends: [{}]}}}}\n",
                list(&backends)
            )
    };
    let [first, second] = started(|node| {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("cert.pem", &issued.cert_pem),
            ("key.pem", &issued.key_pem),
            ("evenkeel.yaml", &whole(&config(node))),
        ] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Process::start_in(folder, 1)
    });
    let client = Arc::new(client_config(&[authority.ca_pem()], TLS13, None));
    let visit = |process: &Process, cookie: &str| {
        let socket = TlsSocket::open(process.address("web"), &client, "localhost").unwrap();
        let is_resumed = socket.is_resumed();
        let answer = Client::over(socket)
            .ask(&format!("GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n{cookie}\r\n"));
        (is_resumed, answer)
    };
    eventually("what one has begun the other resumes", || {
        drop(visit(&first, ""));
        visit(&second, "").0
    });
    let answer = visit(&first, "").1;
    let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    for _ in 0..12 {
        let again = visit(&second, &format!("Cookie: {cookie}\r\n")).1;
        assert_eq!(again.text(), answer.text());
    }
}
