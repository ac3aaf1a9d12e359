//! Access lists, by name and where they hold.

use std::sync::{Arc, LazyLock};

use super::every_key::Check;
use super::listeners::{POOL, front, of, route};
use super::*;
use crate::config::model::AccessList;

/// A file of two networks.
fn networks() -> String {
    static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| tempfile::tempdir().unwrap());
    let file = FOLDER.path().join("networks.txt");
    std::fs::write(&file, "# ours\n10.0.0.0/8\n2001:db8::/32\n").unwrap();
    file.display().to_string()
}

/// A list at the top level, and a listener beside it.
fn named(keys: &str) -> String {
    format!("access_lists: {{offices: {{{keys}}}}}\n{}", front("protocol: http"))
}

fn first(config: &Config) -> &AccessList {
    &config.access_lists[0]
}

fn on_route(config: &Config) -> &[Arc<AccessList>] {
    &of(config).routes[0].access
}

/// Keys of access lists, each with a text in which it stands and what it changes.
pub(super) fn rows() -> Vec<(&'static str, String, Check)> {
    vec![
        ("access_lists", named("allow: 10.0.0.0/8"), |c| first(c).name.as_deref() == Some("offices")),
        ("access_lists.<name>.allow", named("allow: [10.0.0.0/8, '::1']"), |c| {
            first(c).allow.len() == 2 && first(c).is_closed
        }),
        ("access_lists.<name>.deny", named("deny: 10.0.0.0/8"), |c| {
            first(c).deny.len() == 1 && !first(c).is_closed
        }),
        (
            "access_lists.<name>.allow_file",
            named(&format!("allow: '::1', allow_file: {}", networks())),
            |c| first(c).allow.len() == 3 && first(c).is_closed,
        ),
        ("access_lists.<name>.deny_file", named(&format!("deny_file: {}", networks())), |c| {
            first(c).deny.len() == 2 && !first(c).is_closed
        }),
        ("access_lists.<name>.status", named("deny: 10.0.0.0/8, status: 401"), |c| {
            first(c).status == Some(401)
        }),
        ("listeners.<name>.routes[].access", route("access: {deny: 10.0.0.0/8}"), |c| {
            on_route(c)[0].status == Some(403)
        }),
        ("listeners.<name>.routes[].access.allow", route("access: {allow: [10.0.0.0/8, '::1']}"), |c| {
            on_route(c)[0].allow.len() == 2
        }),
        ("listeners.<name>.routes[].access.deny", route("access: {deny: 10.0.0.0/8}"), |c| {
            on_route(c)[0].deny.len() == 1
        }),
        (
            "listeners.<name>.routes[].access.allow_file",
            route(&format!("access: {{allow_file: {}}}", networks())),
            |c| on_route(c)[0].allow.len() == 2,
        ),
        (
            "listeners.<name>.routes[].access.deny_file",
            route(&format!("access: {{deny_file: {}}}", networks())),
            |c| on_route(c)[0].deny.len() == 2,
        ),
        ("listeners.<name>.routes[].access.status", route("access: {deny: 10.0.0.0/8, status: Drop}"), |c| {
            on_route(c)[0].status.is_none()
        }),
    ]
}

#[test]
fn a_name_stands_for_the_list_and_several_stand_beside_one_another() {
    let text = format!(
        "access_lists: {{offices: {{allow: 10.0.0.0/8}}, bad: {{deny: 10.1.0.0/16, status: drop}}}}\n{}",
        route("access: [offices, bad, {deny: '::1', status: 401}]")
    );
    let config = load_with(&text, &Flags::default()).unwrap().config;
    let statuses: Vec<_> = on_route(&config).iter().map(|list| list.status).collect();
    assert_eq!(statuses, [Some(403), None, Some(401)]);
    assert!(Arc::ptr_eq(&on_route(&config)[0], &config.access_lists[0]), "it is there once");
}

#[test]
fn lists_of_several_files_add_up_and_a_name_is_there_once() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    at(
        "a.yaml",
        &format!("include: b.yaml\naccess_lists: {{one: {{deny: '::1'}}}}\n{}", front("protocol: http")),
    );
    at("b.yaml", "access_lists:\n  two: {deny: '::1'}\n");
    let read = || load(Some(&folder.path().join("a.yaml")), &Flags::default(), &|_| None);
    let names: Vec<_> = read().unwrap().config.access_lists.iter().map(|list| list.name.clone()).collect();
    assert_eq!(names, [Some("one".to_owned()), Some("two".to_owned())]);
    at("b.yaml", "access_lists:\n  one: {deny: '::1'}\n");
    let told = read().unwrap_err().to_string();
    let first = format!("{}/a.yaml:2", folder.path().display());
    assert!(
        told.contains(&format!("b.yaml:2:3: the access list `one` is there twice: first at {first}")),
        "{told}"
    );
}

#[test]
fn a_wrong_line_of_a_file_is_told_with_its_place_there() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("bad.txt");
    std::fs::write(&list, "10.0.0.0/8\n  10.0.0.1/8 # x\nlocalhost\n").unwrap();
    let text = route(&format!("access: {{deny_file: {}}}", list.display()));
    let told = load_with(&text, &Flags::default()).unwrap_err().to_string();
    let at = list.display();
    assert!(
        told.contains(&format!("{at}:2:3: this line is `10.0.0.1/8`, an address inside a network")),
        "{told}"
    );
    assert!(told.contains(&format!("{at}:3:1: this line is `localhost`")), "{told}");
    assert!(told.contains("\n    2 |   10.0.0.1/8 # x\n      |   ^^^^^^^^^^\n"), "{told}");
}

#[test]
fn an_empty_file_of_those_who_may_lets_nobody_in() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("none.txt");
    std::fs::write(&list, "# nobody yet\n").unwrap();
    let text = format!(
        "listeners: {{l: {{bind: 8080, routes: [{{target: web, access: {{allow_file: {}}}}}]}}}}\n{POOL}\n",
        list.display()
    );
    let loaded = load_with(&text, &Flags::default()).unwrap();
    assert!(on_route(&loaded.config)[0].is_closed);
    assert!(loaded.warnings[0].ends_with("`allow_file` has no network in it, so this list lets nobody in"));
    assert!(loaded.files.paths().any(|path| path == list), "it is watched");
}
