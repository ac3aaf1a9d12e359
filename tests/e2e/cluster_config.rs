//! The config that the nodes of a cluster share: in force on all of them, or on none.

use std::path::Path;

use fake_backend::Running;

use super::cluster::{comes_to, report, text};
use super::support::etcd::{Etcd, is_there};
use super::support::process::{Process, whole};
use super::support::{Client, eventually, fakes};

/// A node's own part of a file.
pub fn own(etcd: &str, node: &str) -> String {
    format!("cluster: {{name: t, node: {node}{etcd}}}\n")
}

/// What is shared: a target with this backend.
fn web(backend: &Running, keys: &str) -> String {
    format!(
        "{keys}targets: {{web: {{protocol: http, listener: \"127.0.0.1:0\", health_check: off, backends: [{{host: 127.0.0.1, port: {}}}]}}}}\n",
        backend.port()
    )
}

pub fn of(etcd: &Etcd) -> String {
    format!(", etcd: {}", etcd.yaml(""))
}

/// Who answers.
fn answer(process: &Process) -> String {
    Client::connect(process.address("web")).get("/").text().replace("Hello from ", "")
}

/// The number of the revision in force, and 0 for none.
pub fn revision(process: &Process) -> u64 {
    report(process)["config"]["revision"].as_u64().unwrap_or_default()
}

fn says(process: &Process, kind: &str) -> String {
    text(process, &["log", "--kind", kind])
}

/// Writes a file of a node, whole.
fn write(process: &Process, config: &str) {
    std::fs::write(process.folder().join("evenkeel.yaml"), whole(config)).unwrap();
}

#[test]
fn the_first_node_brings_the_config_and_the_others_take_it() {
    if !is_there() {
        return;
    }
    let (etcd, backends) = (Etcd::start(1), fakes(2));
    let first = Process::start(&(own(&of(&etcd), "a") + &web(&backends[0], "")), 1);
    comes_to(&first, &["a"]);
    eventually("there is a first revision", || revision(&first) == 1);
    // Another file, which says something else: it serves what is shared from its first request on, and says so.
    let second = Process::start(&(own(&of(&etcd), "b") + &web(&backends[1], "")), 1);
    assert_eq!(answer(&second), "fake-1");
    comes_to(&second, &["a", "b"]);
    assert_eq!(revision(&second), 1);
    eventually("it says so", || {
        says(&second, "file_differs").contains("is not revision 1, which is in force")
    });
}

#[test]
fn an_edited_file_is_in_force_on_all_nodes_once_all_agree() {
    if !is_there() {
        return;
    }
    let (etcd, backends) = (Etcd::start(1), fakes(2));
    let config = |node: &str, backend: usize| own(&of(&etcd), node) + &web(&backends[backend], "");
    let (first, second) = (Process::start(&config("a", 0), 1), Process::start(&config("b", 0), 1));
    comes_to(&first, &["a", "b"]);
    comes_to(&second, &["a", "b"]);
    eventually("there is a first revision", || revision(&first) == 1 && revision(&second) == 1);
    write(&second, &config("b", 1));
    let output = second.command(&["reload"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(answer(&second), "fake-2");
    eventually("it is in force on the other one", || answer(&first) == "fake-2" && revision(&first) == 2);
    assert_eq!(revision(&second), 2);
    // The other one's file is the old one. Reading it again proposes nothing: nobody has edited it.
    assert!(first.command(&["reload"]).status.success());
    assert_eq!((revision(&first), answer(&first)), (2, "fake-2".to_owned()));
    // When it says the same, that is nothing new either.
    write(&first, &config("a", 1));
    assert!(first.command(&["reload"]).status.success());
    assert_eq!(revision(&first), 2);
}

#[test]
fn a_config_that_one_node_refuses_is_in_force_nowhere_and_the_refusal_names_node_and_line() {
    if !is_there() {
        return;
    }
    let (etcd, backends) = (Etcd::start(1), fakes(2));
    let config = |node: &str| own(&of(&etcd), node) + &web(&backends[0], "");
    let (first, second) = (Process::start(&config("a"), 1), Process::start(&config("b"), 1));
    comes_to(&first, &["a", "b"]);
    comes_to(&second, &["a", "b"]);
    eventually("there is a first revision", || revision(&first) == 1 && revision(&second) == 1);
    // A file that only the first has.
    std::fs::write(first.folder().join("networks"), "192.0.2.0/24\n").unwrap();
    let lists = "access_lists: {a: {deny_file: networks}}\n";
    write(&first, &(own(&of(&etcd), "a") + "\n" + lists + &web(&backends[1], "")));
    let output = first.command(&["reload"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("node b would not take it: revision 2:"), "{said}");
    assert!(said.contains("networks"), "{said}");
    assert_eq!((answer(&first), answer(&second)), ("fake-1".to_owned(), "fake-1".to_owned()));
    assert_eq!((revision(&first), revision(&second)), (1, 1));
    // The same file once it can be taken.
    std::fs::write(second.folder().join("networks"), "192.0.2.0/24\n").unwrap();
    let output = first.command(&["reload"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    eventually("it is in force", || answer(&second) == "fake-2");
}

#[test]
fn without_a_store_the_last_revision_is_served_also_after_a_restart_and_nothing_is_proposed() {
    if !is_there() {
        return;
    }
    let (mut etcd, backends) = (Etcd::start(1), fakes(2));
    let config = |backend: usize| own(&of(&etcd), "a") + &web(&backends[backend], "");
    let (old, new) = (config(0), config(1));
    let process = Process::start(&old, 1);
    comes_to(&process, &["a"]);
    eventually("there is a first revision", || revision(&process) == 1);
    let file = process.folder().join("new.yaml");
    std::fs::write(&file, whole(&new)).unwrap();
    assert!(process.command(&["apply", file.to_str().unwrap()]).status.success());
    assert_eq!((revision(&process), answer(&process)), (2, "fake-2".to_owned()));
    etcd.kill(0);
    let again = Process::start_in(process.kill(), 1);
    // Its file says the old one.
    assert_eq!(answer(&again), "fake-2");
    let output = again.command(&["apply", again.folder().join("evenkeel.yaml").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("the cluster can't be told"), "{said}");
    etcd.begin(0);
    comes_to(&again, &["a"]);
    assert_eq!((revision(&again), answer(&again)), (2, "fake-2".to_owned()));
}

#[test]
fn a_node_that_began_with_what_the_others_had_serves_it_also_after_a_restart_without_a_store() {
    if !is_there() {
        return;
    }
    let (mut etcd, backends) = (Etcd::start(1), fakes(2));
    let config = |node: &str, backend: usize| own(&of(&etcd), node) + &web(&backends[backend], "");
    let (one, other) = (config("a", 0), config("b", 1));
    let first = Process::start(&one, 1);
    comes_to(&first, &["a"]);
    eventually("there is a first revision", || revision(&first) == 1);
    let second = Process::start(&other, 1);
    comes_to(&second, &["a", "b"]);
    assert_eq!((revision(&second), answer(&second)), (1, "fake-1".to_owned()));
    eventually("it is kept", || {
        let names = std::fs::read_dir(second.folder().join("state/evenkeel")).into_iter().flatten().flatten();
        names.into_iter().any(|name| name.path().join("cluster-t.config").exists())
    });
    etcd.kill(0);
    let again = Process::start_in(second.kill(), 1);
    assert_eq!((revision(&again), answer(&again)), (1, "fake-1".to_owned()), "its own file says another");
}

#[test]
fn a_store_that_is_empty_again_takes_no_config_away() {
    if !is_there() {
        return;
    }
    let backends = fakes(2);
    let mut etcd = Etcd::start(1);
    let config = |backend: usize| own(&of(&etcd), "a") + &web(&backends[backend], "");
    let (old, new) = (config(0), config(1));
    let process = Process::start(&old, 1);
    comes_to(&process, &["a"]);
    eventually("there is a first revision", || revision(&process) == 1);
    etcd.wipe(0);
    eventually("it says so", || says(&process, "revision_lost").contains("has no config any more"));
    assert_eq!(answer(&process), "fake-1");
    // Whoever starts now does not make its own file the config of the others either.
    let again = Process::start_in(process.kill(), 1);
    eventually("it says so", || says(&again, "revision_lost").contains("has no config any more"));
    // Another text, under a number that no node knows yet.
    let file = again.folder().join("new.yaml");
    std::fs::write(&file, whole(&new)).unwrap();
    let output = again.command(&["apply", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!((revision(&again), answer(&again)), (2, "fake-2".to_owned()));
}

#[test]
fn secrets_are_shared_sealed_or_not_at_all() {
    if !is_there() {
        return;
    }
    let (etcd, backends) = (Etcd::start(1), fakes(1));
    let secret = "0123456789abcdef0123456789abcdef";
    let with = |node: &str, more: &str| {
        let sticky = format!("sticky: {{cookie: c, key: {secret}}}, health_check");
        own(&format!("{}{more}", of(&etcd)), node) + &web(&backends[0], "").replace("health_check", &sticky)
    };
    let open = Process::start(&with("a", ""), 1);
    comes_to(&open, &["a"]);
    eventually("it says why", || {
        says(&open, "revision_lost").contains("is a secret that stands in the config")
    });
    assert_eq!(revision(&open), 0);
    open.end();
    let key = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(key.path(), [9; 32]).unwrap();
    let more = format!(", secrets_key_file: {}", key.path().display());
    let (first, second) = (Process::start(&with("a", &more), 1), Process::start(&with("b", &more), 1));
    eventually("it is shared", || revision(&first) == 1 && revision(&second) == 1);
    let found = |folder: &Path| {
        let data = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        data.filter(|path| path.is_file()).any(|path| {
            std::fs::read(path).unwrap().windows(secret.len()).any(|part| part == secret.as_bytes())
        })
    };
    assert!(!found(&etcd.path("m0.data/member/snap")), "a secret lies open in the store");
    // With another key it is not read, and nothing else is made of that.
    std::fs::write(key.path(), [8; 32]).unwrap();
    second.end();
    let third = Process::start(&with("b", &more), 1);
    eventually("it says why", || says(&third, "revision_lost").contains("sealed with another key"));
}

#[test]
fn a_cluster_of_one_agrees_with_itself() {
    let backends = fakes(2);
    let config = |backend: usize| own("", "only") + &web(&backends[backend], "");
    let process = Process::start(&config(0), 1);
    eventually("there is a first revision", || revision(&process) == 1);
    write(&process, &config(1));
    assert!(process.command(&["reload"]).status.success());
    assert_eq!((revision(&process), answer(&process)), (2, "fake-2".to_owned()));
    let again = Process::start_in(process.kill(), 1);
    assert_eq!(answer(&again), "fake-2");
    eventually("it is a member", || report(&again)["standing"] == "member");
    assert_eq!(revision(&again), 2);
    let output = again.command(&["apply", "x.yaml", "--confirm", "1m"]);
    assert_ne!(output.status.code(), Some(0));
}

#[test]
fn a_node_that_cannot_take_the_config_serves_its_own_until_somebody_reloads_it() {
    if !is_there() {
        return;
    }
    let (etcd, backends) = (Etcd::start(1), fakes(2));
    let lists = "access_lists: {a: {deny_file: networks}}\n";
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("networks"), "192.0.2.0/24\n").unwrap();
    std::fs::write(
        folder.path().join("evenkeel.yaml"),
        whole(&(own(&of(&etcd), "a") + &web(&backends[0], lists))),
    )
    .unwrap();
    let first = Process::start_in(folder, 1);
    comes_to(&first, &["a"]);
    eventually("there is a first revision", || revision(&first) == 1);
    let second = Process::start(&(own(&of(&etcd), "b") + &web(&backends[1], "")), 1);
    comes_to(&second, &["a", "b"]);
    eventually("it says why", || says(&second, "reload_refused").contains("networks"));
    assert_eq!((answer(&second), revision(&second)), ("fake-2".to_owned(), 0));
    std::fs::write(second.folder().join("networks"), "192.0.2.0/24\n").unwrap();
    assert!(second.command(&["reload"]).status.success());
    assert_eq!((answer(&second), revision(&second)), ("fake-1".to_owned(), 1));
}

#[test]
fn a_node_without_a_file_of_its_own_is_not_waited_for() {
    if !is_there() {
        return;
    }
    let (etcd, backends) = (Etcd::start(1), fakes(2));
    let config = |node: &str, backend: usize| own(&of(&etcd), node) + &web(&backends[backend], "");
    let first = Process::start(&config("a", 0), 1);
    eventually("there is a first revision", || revision(&first) == 1);
    let second = Process::start_from_input(&config("b", 0), 1);
    comes_to(&first, &["a", "b"]);
    write(&first, &config("a", 1));
    let output = first.command(&["reload"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!((answer(&first), answer(&second)), ("fake-2".to_owned(), "fake-1".to_owned()));
}
