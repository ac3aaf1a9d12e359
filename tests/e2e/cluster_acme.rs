//! Certificates that several nodes order as one.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::acme::{Place, is_trusted, known, order_of};
use super::cluster::comes_to;
use super::cluster_config::revision;
use super::support::acme::AcmeAuthority;
use super::support::etcd::{Etcd, is_there};
use super::support::process::Process;
use super::support::tls::{TlsSocket, credulous};
use super::support::{Client, eventually};

/// A node of a cluster that has a certificate ordered for this name.
fn node(etcd: &Etcd, authority: &AcmeAuthority, name: &str, key: Option<&Path>, challenge: &str) -> Process {
    node_that(true, etcd, authority, name, key, challenge)
}

/// The same; `can_keep`: what is issued.
fn node_that(
    can_keep: bool,
    etcd: &Etcd,
    authority: &AcmeAuthority,
    name: &str,
    key: Option<&Path>,
    challenge: &str,
) -> Process {
    let key = key.map_or(String::new(), |key| format!(", secrets_key_file: {}", key.display()));
    let text = format!(
        "cluster: {{name: t, node: {name}, lease: 3s{key}, etcd: {}}}\nstate_dir: state\n\
         acme: {{directory: \"{}\", challenge: {challenge}}}\nlisteners:\n  plain: {{bind: 127.0.0.1:0, routes: [{{respond: {{status: 200, body: plain}}}}]}}\n  front:\n    \
         bind: 127.0.0.1:0\n    protocol: https\n    tls: {{certificates: [{{acme: a.example}}]}}\n    routes: [{{respond: {{status: 200, body: hello}}}}]\n",
        etcd.yaml(""),
        authority.directory(),
    );
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("evenkeel.yaml"), text).unwrap();
    if !can_keep {
        std::fs::create_dir(folder.path().join("state")).unwrap();
        std::fs::write(folder.path().join("state/acme"), "in the way").unwrap();
    }
    Process::start_in(folder, 2)
}

fn key() -> tempfile::NamedTempFile {
    let key = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(key.path(), [7; 32]).unwrap();
    key
}

/// What somebody is shown at the front who asks for `a.example`.
fn shown(node: &Process) -> Vec<u8> {
    let config = Arc::new(credulous(super::support::tls::BOTH));
    TlsSocket::open(node.address("front"), &config, "a.example").unwrap().leaf().to_vec()
}

/// Which nodes order, as each says.
fn orders(node: &Process) -> Option<String> {
    let order = order_of(node, "a.example");
    assert!(order["by"].is_null() || order["next_ms"].is_null(), "{order}");
    order["by"].as_str().map(str::to_owned)
}

#[test]
fn one_node_orders_every_node_answers_and_all_show_what_is_issued() {
    if !is_there() {
        return;
    }
    let (etcd, key, all) = (Etcd::start(1), key(), Arc::new(Mutex::new(Vec::<SocketAddr>::new())));
    let looked_at = Arc::clone(&all);
    // It looks at each of them.
    let authority = AcmeAuthority::start(Box::new(move |_, _, token, proof| {
        eventually("there are all of them", || looked_at.lock().unwrap().len() > 1);
        let places = looked_at.lock().unwrap().clone();
        let wrong = places.iter().find_map(|place| {
            let answer = Client::connect(*place).get(&format!("/.well-known/acme-challenge/{token}"));
            (answer.text() != proof).then(|| format!("{}: {}", answer.status, answer.text()))
        });
        wrong.map_or(Ok(()), Err)
    }));
    let nodes: Vec<Process> = ["a", "b", "c"]
        .iter()
        .map(|name| node(&etcd, &authority, name, Some(key.path()), "http-01"))
        .collect();
    for node in &nodes {
        comes_to(node, &["a", "b", "c"]);
    }
    // Whoever becomes able later may be the first then, and the one before it has asked when to renew by now: for hours it would not ask again.
    eventually("all could order", || etcd.count("/evenkeel/t/acme/able/") == 3);
    *all.lock().unwrap() = nodes.iter().map(|node| node.address("plain")).collect();
    for node in &nodes {
        eventually("it shows what was issued", || is_trusted(node, &authority, "a.example"));
    }
    assert!(nodes.iter().all(|node| shown(node) == shown(&nodes[0])), "all show the same");
    assert_eq!(authority.issued(), 1);
    eventually("two of them say who orders", || nodes.iter().filter_map(orders).count() == 2);
    for node in &nodes {
        eventually("nobody answers any more", || {
            let path = "/.well-known/acme-challenge/x";
            Client::connect(node.address("plain")).get(path).text() == "plain"
        });
    }
    // The one who orders is gone: another one does, as the same account.
    let before = shown(&nodes[0]);
    let (gone, left): (Vec<_>, Vec<_>) = nodes.into_iter().partition(|node| orders(node).is_none());
    *all.lock().unwrap() = left.iter().map(|node| node.address("plain")).collect();
    drop(gone.into_iter().map(Process::kill).collect::<Vec<_>>());
    // All are to be renewed now.
    authority.behave(|manners| manners.window = Some((-200, 0)));
    eventually("another one orders", || left.iter().all(|node| shown(node) != before));
    assert_eq!(left.iter().filter_map(orders).count(), 1);
    eventually("both show the same", || shown(&left[0]) == shown(&left[1]));
    assert!(left.iter().all(|node| is_trusted(node, &authority, "a.example")));
    assert_eq!((authority.issued(), authority.accounts().len()), (2, 1));
    // What it is to replace it knows from its predecessor.
    assert!(authority.orders()[1].1.is_some(), "{:?}", authority.orders());
}

#[test]
fn a_node_that_comes_later_shows_what_was_issued_to_others_and_orders_nothing() {
    if !is_there() {
        return;
    }
    let (etcd, key, front) = (Etcd::start(1), key(), Place::default());
    let place = Arc::clone(&front);
    let authority = AcmeAuthority::start(Box::new(move |kind, name, _, _| {
        assert_eq!(kind, "tls-alpn-01");
        let mut config = credulous(super::support::tls::BOTH);
        config.alpn_protocols = vec![b"acme-tls/1".to_vec()];
        let proof = TlsSocket::open(known(&place), &Arc::new(config), name).map_err(|e| format!("{e:?}"))?;
        (proof.session.alpn_protocol() == Some(b"acme-tls/1")).then_some(()).ok_or("no proof".to_owned())
    }));
    let first = node(&etcd, &authority, "a", Some(key.path()), "tls-alpn-01");
    eventually("there is a first revision", || revision(&first) == 1);
    *front.lock().unwrap() = Some(first.address("front"));
    eventually("it shows what was issued", || is_trusted(&first, &authority, "a.example"));
    let second = node(&etcd, &authority, "b", Some(key.path()), "tls-alpn-01");
    comes_to(&second, &["a", "b"]);
    eventually("it shows the same", || shown(&second) == shown(&first));
    assert_eq!(authority.issued(), 1);
    // With its file it shows it also without a store, and after a restart.
    let second = Process::start_in(second.kill(), 2);
    assert!(is_trusted(&second, &authority, "a.example"));
    assert_eq!(authority.issued(), 1);
}

#[test]
fn without_a_key_each_node_orders_and_each_answers_for_all() {
    if !is_there() {
        return;
    }
    let (etcd, places) = (Etcd::start(1), [Place::default(), Place::default()]);
    let looked_at = places.clone();
    let authority = AcmeAuthority::start(Box::new(move |_, _, token, proof| {
        let answer = |place: &Place| {
            Client::connect(known(place)).get(&format!("/.well-known/acme-challenge/{token}")).text()
        };
        let all = looked_at.iter().map(answer).collect::<Vec<_>>();
        all.iter().all(|answer| answer == proof).then_some(()).ok_or(format!("{all:?}"))
    }));
    let nodes = ["a", "b"].map(|name| node(&etcd, &authority, name, None, "http-01"));
    for (node, place) in nodes.iter().zip(&places) {
        comes_to(node, &["a", "b"]);
        *place.lock().unwrap() = Some(node.address("plain"));
    }
    for node in &nodes {
        eventually("it shows what was issued", || is_trusted(node, &authority, "a.example"));
    }
    assert_eq!(authority.issued(), 2);
    assert_ne!(shown(&nodes[0]), shown(&nodes[1]));
}

/// Whichever of the two would be the first to order.
#[test]
fn a_node_that_could_keep_nothing_leaves_orders_to_the_others() {
    if !is_there() {
        return;
    }
    for names in [["a", "b"], ["b", "a"]] {
        let (etcd, key, place) = (Etcd::start(1), key(), Place::default());
        let looked_at = place.clone();
        let authority = AcmeAuthority::start(Box::new(move |_, _, token, proof| {
            let path = format!("/.well-known/acme-challenge/{token}");
            let answer = Client::connect(known(&looked_at)).get(&path).text();
            (answer == proof).then_some(()).ok_or(answer)
        }));
        let [unfit, fit] = [(false, names[0]), (true, names[1])].map(|(can_keep, name)| {
            node_that(can_keep, &etcd, &authority, name, Some(key.path()), "http-01")
        });
        *place.lock().unwrap() = Some(unfit.address("plain"));
        comes_to(&fit, &["a", "b"]);
        eventually("it shows what was issued", || is_trusted(&fit, &authority, "a.example"));
        assert_eq!(authority.issued(), 1);
    }
}
