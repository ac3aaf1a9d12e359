//! Access lists, by name and where they hold.

use std::sync::{Arc, LazyLock};

use super::every_key::{Check, target};
use super::listeners::{POOL, front, of, route};
use super::*;
use crate::config::model::AccessList;

/// A file of two networks.
pub(super) fn networks() -> String {
    // Written once: others read it meanwhile.
    static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
        let folder = tempfile::tempdir().unwrap();
        let text = "# ours\n10.0.0.0/8\n2001:db8::/32\n";
        std::fs::write(folder.path().join("networks.txt"), text).unwrap();
        folder
    });
    FOLDER.path().join("networks.txt").display().to_string()
}

/// Values that are right somewhere.
pub(super) fn values() -> [serde_json::Value; 3] {
    let list = serde_json::json!({ "deny": "10.0.0.1" });
    [serde_json::json!({ "web": list }), list, networks().into()]
}

/// Adds what a list with the key at `path` needs beside it.
pub(super) fn complete(path: &str, list: &mut serde_json::Value) {
    if path.ends_with("access.status") || path == "access_lists.<name>.status" {
        list["deny"] = "10.0.0.9".into();
    }
}

/// A list at the top level, and a listener beside it.
fn named(keys: &str) -> String {
    format!("access_lists: {{offices: {{{keys}}}}}\n{}", front("protocol: http"))
}

fn any(lists: &[Arc<AccessList>], is_it: impl Fn(&AccessList) -> bool) -> bool {
    lists.iter().any(|list| is_it(list))
}

fn on_route(config: &Config) -> &[Arc<AccessList>] {
    &of(config).routes[0].access
}

/// Keys of access lists, each with a text in which it stands and what it changes.
pub(super) fn rows() -> Vec<(&'static str, String, Check)> {
    vec![
        ("access_lists", named("allow: 10.0.0.0/8"), |c| {
            any(&c.access_lists, |list| list.name.as_deref() == Some("offices"))
        }),
        ("access_lists.<name>.allow", named("allow: [10.0.0.0/8, '::1']"), |c| {
            any(&c.access_lists, |list| list.allow.len() == 2 && list.is_closed)
        }),
        ("access_lists.<name>.deny", named("deny: 10.0.0.0/8"), |c| {
            any(&c.access_lists, |list| list.deny.len() == 1 && !list.is_closed)
        }),
        (
            "access_lists.<name>.allow_file",
            named(&format!("allow: '::1', allow_file: {}", networks())),
            |c| any(&c.access_lists, |list| list.allow.len() == 3 && list.is_closed),
        ),
        ("access_lists.<name>.deny_file", named(&format!("deny_file: {}", networks())), |c| {
            any(&c.access_lists, |list| list.deny.len() == 2 && !list.is_closed)
        }),
        ("access_lists.<name>.status", named("deny: 10.0.0.0/8, status: 401"), |c| {
            any(&c.access_lists, |list| list.status == Some(401))
        }),
        ("blacklisted_ips", format!("blacklisted_ips: [10.0.0.9]\n{WEB}"), |c| {
            any(&of(c).access, |list| list.deny.len() == 1 && list.status == Some(401))
        }),
        ("targets.<name>.access", target("access: {deny: 10.0.0.0/8}"), |c| of(c).access.len() == 1),
        ("targets.<name>.access.allow", target("access: {allow: 10.0.0.0/8}"), |c| {
            any(&of(c).access, |list| list.allow.len() == 1)
        }),
        ("targets.<name>.access.deny", target("access: {deny: 10.0.0.0/8}"), |c| {
            any(&of(c).access, |list| list.deny.len() == 1)
        }),
        (
            "targets.<name>.access.allow_file",
            target(&format!("access: {{allow_file: {}}}", networks())),
            |c| any(&of(c).access, |list| list.allow.len() == 2),
        ),
        ("targets.<name>.access.deny_file", target(&format!("access: {{deny_file: {}}}", networks())), |c| {
            any(&of(c).access, |list| list.deny.len() == 2)
        }),
        ("targets.<name>.access.status", target("access: {deny: '::1', status: drop}"), |c| {
            any(&of(c).access, |list| list.status.is_none())
        }),
        ("listeners.<name>.access", front("access: {deny: 10.0.0.0/8}"), |c| of(c).access.len() == 1),
        ("listeners.<name>.access.allow", front("access: {allow: 10.0.0.0/8}"), |c| {
            any(&of(c).access, |list| list.allow.len() == 1)
        }),
        ("listeners.<name>.access.deny", front("access: {deny: 10.0.0.0/8}"), |c| {
            any(&of(c).access, |list| list.deny.len() == 1)
        }),
        (
            "listeners.<name>.access.allow_file",
            front(&format!("access: {{allow_file: {}}}", networks())),
            |c| any(&of(c).access, |list| list.allow.len() == 2),
        ),
        (
            "listeners.<name>.access.deny_file",
            front(&format!("access: {{deny_file: {}}}", networks())),
            |c| any(&of(c).access, |list| list.deny.len() == 2),
        ),
        ("listeners.<name>.access.status", front("access: {deny: '::1', status: drop}"), |c| {
            any(&of(c).access, |list| list.status.is_none())
        }),
        ("listeners.<name>.routes[].access", route("access: {deny: 10.0.0.0/8}"), |c| {
            any(on_route(c), |list| list.status == Some(403))
        }),
        ("listeners.<name>.routes[].access.allow", route("access: {allow: [10.0.0.0/8, '::1']}"), |c| {
            any(on_route(c), |list| list.allow.len() == 2)
        }),
        ("listeners.<name>.routes[].access.deny", route("access: {deny: 10.0.0.0/8}"), |c| {
            any(on_route(c), |list| list.deny.len() == 1)
        }),
        (
            "listeners.<name>.routes[].access.allow_file",
            route(&format!("access: {{allow_file: {}}}", networks())),
            |c| any(on_route(c), |list| list.allow.len() == 2),
        ),
        (
            "listeners.<name>.routes[].access.deny_file",
            route(&format!("access: {{deny_file: {}}}", networks())),
            |c| any(on_route(c), |list| list.deny.len() == 2),
        ),
        ("listeners.<name>.routes[].access.status", route("access: {deny: 10.0.0.0/8, status: Drop}"), |c| {
            any(on_route(c), |list| list.status.is_none())
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

/// Routes of one listener, and what is warned of: which one gets what which one protects, and whether it is asked first.
#[test]
fn ways_around_a_route_that_protects_are_told_with_both_places() {
    let guard = "access: {allow: 10.0.0.0/8}";
    let warned = |routes: &[&str]| -> Vec<String> {
        let routes: String = routes
            .iter()
            .map(|route| format!("  - {{{}, target: web}}\n", route.replace("GUARD", guard)))
            .collect();
        let text = format!("listeners:\n l:\n  bind: 8080\n  routes:\n{routes}{POOL}\n");
        let loaded =
            load_with(&text, &Flags::default()).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
        let short = |warning: &String| {
            let words: Vec<&str> = warning.split('`').collect();
            let why = if warning.ends_with("asked first") { "first" } else { "rest" };
            format!("{} {} {why}", words[1], words[3])
        };
        loaded.warnings.iter().filter(|warning| !warning.contains("never holds here")).map(short).collect()
    };
    let table: &[(&[&str], &[&str])] = &[
        // A nearer path, a nearer host, more conditions, an order.
        (
            &["name: p, match: {path_prefix: /a}, GUARD", "name: u, match: {path_prefix: /a/b}"],
            &["u p first"],
        ),
        (&["name: p, match: {path_prefix: /a}, GUARD", "name: u, match: {path: /a}"], &["u p first"]),
        (&["name: p, match: {path_prefix: /a}, GUARD", "name: u, match: {host: h}"], &["u p first"]),
        (&["name: p, match: {path: /a, host: '*.h'}, GUARD", "name: u, match: {host: x.h}"], &["u p first"]),
        (&["name: p, match: {path: /a}, GUARD", "name: u, match: {path: /a, method: PUT}"], &["u p first"]),
        (
            &["name: p, match: {path: /a}, GUARD", "name: u, order: 1, match: {header: {A: b}}"],
            &["u p first"],
        ),
        // What a condition leaves falls through.
        (&["name: p, match: {path: /a, method: GET}, GUARD", "name: u"], &["u p rest"]),
        (
            &["name: p, match: {host: h, path: /a, client: 10.0.0.1}, GUARD", "name: u, match: {path: /a}"],
            &["u p rest"],
        ),
        (&["name: p, match: {path_regex: '^/a', header: {A: b}}, GUARD", "name: u"], &["u p rest"]),
        (
            &[
                "name: p, match: {path_prefix: /a, method: GET}, GUARD",
                "name: q, match: {path_prefix: /a}, GUARD",
                "name: u",
            ],
            &[],
        ),
        (
            &["name: p, match: {path: /a, client_cert: {subject: 'CN=robot'}}, GUARD", "name: u"],
            &["u p rest"],
        ),
        // Nothing that the guard is for.
        (&["name: p, match: {path_prefix: /a}, GUARD", "name: u"], &[]),
        (&["name: p, match: {path_prefix: /a}, GUARD", "name: u, match: {path_prefix: /ab}"], &[]),
        (&["name: p, match: {host: h, path_prefix: /a}, GUARD", "name: u, match: {path_prefix: /a/b}"], &[]),
        (&["name: p, match: {host: h}, GUARD", "name: u, match: {host: i}"], &[]),
        (
            &[
                "name: p, match: {path_prefix: /a}, GUARD",
                "name: u, match: {path_prefix: /a/b}, access: {deny: '::1'}",
            ],
            &[],
        ),
        (&["name: p, order: 1, match: {path_prefix: /a}, GUARD", "name: u, match: {host: h}"], &[]),
    ];
    for (routes, expected) in table {
        // An order that leaves a route without requests is an error, and is told as one.
        let told = warned(routes);
        assert_eq!(told, *expected, "{routes:?}");
    }
    let text = route("match: {path_prefix: /a}, access: {allow: 10.0.0.0/8}, name: p")
        .replace("routes: [", "routes: [{match: {path: /a/b}, target: web}, ");
    let loaded = load_with(&text, &Flags::default()).unwrap();
    assert_eq!(
        loaded.warnings,
        [
            "t.yaml:1: the route `=/a/b` gets requests for what `p` (t.yaml:1) protects by `access`, and has none itself: it is asked first"
        ]
    );
}

#[test]
fn an_open_route_is_told_once_with_the_first_of_those_that_it_gets_around() {
    let warned = |routes: &str| {
        let text = format!(
            "rate_limits: {{r: {{rate: 1/s}}}}\nlisteners:\n l:\n  bind: 8080\n  routes:\n{routes}{POOL}\n"
        );
        load_with(&text, &Flags::default()).unwrap_or_else(|problems| panic!("{problems}\n{text}")).warnings
    };
    let many: String = (0..5)
        .map(|number| {
            let keys = if number < 2 { "rate_limit: r" } else { "access: {allow: 10.0.0.0/8}" };
            format!(
                "  - {{name: p{number}, match: {{path_prefix: /{number}, method: GET}}, {keys}, target: web}}\n"
            )
        })
        .collect();
    let told = "the route `u` gets requests for what `p2` (t.yaml:8) protects by `access`, `p3` (t.yaml:9) protects by `access`, \
                `p4` (t.yaml:10) protects by `access`, and 2 more routes protect, and has none itself: it takes what the others leave";
    assert_eq!(warned(&format!("{many}  - {{name: u, target: web}}\n")), [format!("t.yaml:11: {told}")]);
    // Who may come in goes before how often, also among the open ones.
    let two = "  - {name: p, match: {path: /a, method: GET}, rate_limit: r, target: web}
  - {name: q, match: {path: /b, method: GET}, access: {allow: 10.0.0.0/8}, target: web}
  - {name: u, match: {path: /a}, target: web}
  - {name: v, match: {path: /b}, target: web}
";
    let order: Vec<String> =
        warned(two).iter().map(|told| told.split('`').nth(1).unwrap().to_owned()).collect();
    assert_eq!(order, ["v", "u"]);
    let pairs: String = (0..25)
        .map(|number| {
            let guard = format!("match: {{path: /{number}, method: GET}}, access: {{allow: 10.0.0.0/8}}");
            format!("  - {{{guard}, target: web}}\n  - {{match: {{path: /{number}}}, target: web}}\n")
        })
        .collect();
    let told = warned(&pairs);
    assert_eq!(told.len(), 21);
    assert!(told[20].ends_with("and 5 more routes get around routes that protect"), "{}", told[20]);
}
