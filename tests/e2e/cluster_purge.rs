//! What is purged on one node is purged on all, also on those that did not hear of it.

use super::cache_lab::Origin;
use super::cluster::comes_to;
use super::cluster_config::{of, own, revision};
use super::support::etcd::{Etcd, is_there};
use super::support::process::Process;
use super::support::{Client, eventually};

fn config(etcd: &Etcd, node: &str, origin: &Origin) -> String {
    own(&of(etcd), node)
        + &format!(
            "listeners:\n  front:\n    bind: 127.0.0.1:0\n    routes: [{{name: all, target: web, cache: {{ttl: 1h}}}}]\n\
             targets: {{web: {{health_check: off, backends: [{{host: 127.0.0.1, port: {}}}]}}}}\n",
            origin.address.port()
        )
}

fn get(process: &Process, path: &str) -> String {
    let mut client = Client::connect(process.address("front"));
    client.send(format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\n\r\n").as_bytes());
    client.answer().text()
}

#[test]
fn a_purge_holds_on_every_node_also_on_one_that_was_away() {
    if !is_there() {
        return;
    }
    let etcd = Etcd::start(1);
    let origin = Origin::with(&["Cache-Tag: spring"]);
    let [first, second] = ["a", "b"].map(|node| Process::start(&config(&etcd, node, &origin), 1));
    for node in [&first, &second] {
        comes_to(node, &["a", "b"]);
        eventually("there is a first revision", || revision(node) == 1);
    }
    for purge in [
        &["--url", "http://shop.example/x"][..],
        &["--prefix", "http://shop.example/"],
        &["--tag", "spring"],
        &["--all"],
    ] {
        let before = [get(&first, "/x"), get(&second, "/x")];
        assert_eq!([get(&first, "/x"), get(&second, "/x")], before, "both have it");
        let asked = first.command(&[&["purge"], purge].concat());
        assert!(asked.status.success(), "{asked:?}");
        assert_ne!(get(&first, "/x"), before[0], "{purge:?}");
        eventually("it is gone on the other one", || get(&second, "/x") != before[1]);
    }
    // On one node alone.
    let before = [get(&first, "/x"), get(&second, "/x")];
    assert!(second.command(&["purge", "--all", "--local"]).status.success());
    assert_ne!(get(&second, "/x"), before[1]);
    assert_eq!(get(&first, "/x"), before[0]);
}

#[test]
fn a_node_that_is_cut_off_purges_when_it_is_back_and_refuses_to_purge_meanwhile() {
    if !is_there() {
        return;
    }
    let mut etcd = Etcd::start(1);
    let origin = Origin::with(&[]);
    let [first, second] = ["a", "b"].map(|node| Process::start(&config(&etcd, node, &origin), 1));
    for node in [&first, &second] {
        comes_to(node, &["a", "b"]);
        eventually("there is a first revision", || revision(node) == 1);
    }
    let stale = get(&second, "/x");
    second.stand_still(true);
    // The lease of who stands still is over.
    comes_to(&first, &["a"]);
    assert!(first.command(&["purge", "--all"]).status.success());
    second.stand_still(false);
    eventually("it is not served any more", || get(&second, "/x") != stale);
    comes_to(&second, &["a", "b"]);
    let kept = get(&second, "/x");
    etcd.kill(0);
    let asked = second.command(&["purge", "--all"]);
    let said = String::from_utf8(asked.stderr).unwrap();
    assert!(
        !asked.status.success() && said.contains("nothing was purged") && said.contains("--local"),
        "{said}"
    );
    assert_eq!(get(&second, "/x"), kept);
    assert!(second.command(&["purge", "--all", "--local"]).status.success());
    assert_ne!(get(&second, "/x"), kept);
}
