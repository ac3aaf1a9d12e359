//! What the build may contain, checked on the locked graph: licences, duplicates, crates that stay out.
//!
//! `deny.toml` says the same to `cargo deny`, for machines that have it and a network. Here only
//! `cargo metadata` is asked, which every toolchain has.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Crates that stay out of every graph, with the reason.
const BANNED: &[(&str, &str)] = &[
    ("ring", "a second crypto provider beside aws-lc-rs makes rustls' implicit choice panic"),
    ("openssl-sys", "C code with its own release cycle; TLS is rustls"),
    ("native-tls", "TLS is rustls"),
    ("serde_yaml", "archived; the last of duplicate keys wins silently"),
];

/// Crates that may be there in several incompatible versions, with the reason.
const DUPLICATES: &[(&str, &str)] = &[
    ("base64", "under instant-acme, which has not moved on to 0.23 yet"),
    ("hashbrown", "under dashmap, whose next version is not out; quick_cache has moved on to 0.17"),
    ("getrandom", "under rand 0.9, which opentelemetry_sdk has not left yet"),
    ("rand", "under opentelemetry_sdk, of which opentelemetry-proto needs nothing but that it is there"),
    ("rand_core", "under rand 0.9, in the same way"),
    (
        "syn",
        "runs in the compiler only: the derives under x509-parser and ratatui have not moved from 2 to 3 yet",
    ),
    (
        "untrusted",
        "under aws-lc-rs, of which instant-acme takes all that it has by default; rustls-webpki has moved on",
    ),
    ("synstructure", "runs in the compiler only: the same derives, beside newer ones under idna"),
];

/// Licences that may be linked in. `AND` needs all, `OR` (and the old `/`) needs one.
const LICENCES: &[&str] = &[
    "MIT",
    "Apache-2.0",
    "ISC",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "Zlib",
    "Unicode-3.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    // xxhash-rust. Like MIT, and binaries need not even name it.
    "BSL-1.0",
];

/// One package of the graph.
struct Package {
    id: String,
    name: String,
    version: String,
    licence: String,
}

/// The locked graph of the workspace for the platform that runs this test.
struct Graph {
    packages: Vec<Package>,
    /// Package ids that a package id builds against, tests included.
    edges: BTreeMap<String, Vec<String>>,
}

/// What is really built, as `name vVersion`. `cargo metadata` also lists optional dependencies that nothing
/// switches on but a weak feature names (`ring?/alloc` of rustls-webpki).
fn built() -> BTreeSet<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(env!("CARGO_MANIFEST_DIR")).args([
        "tree",
        "--workspace",
        "--locked",
        "--offline",
        "--edges=normal,build,dev",
        "--prefix=none",
        "--format={p}",
    ]);
    let output = command.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let words = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    String::from_utf8_lossy(&output.stdout).lines().map(words).collect()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

impl Graph {
    /// Asks cargo; everything it needs was fetched for the build of this test.
    fn read() -> Graph {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.current_dir(env!("CARGO_MANIFEST_DIR")).args([
            "metadata",
            "--format-version=1",
            "--locked",
            "--offline",
        ]);
        command.args(["--filter-platform", &host()]);
        let output = command.output().expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut graph = Graph::from(&serde_json::from_slice(&output.stdout).expect("JSON"));
        let built = built();
        graph.packages.retain(|package| built.contains(&format!("{} v{}", package.name, package.version)));
        assert!(graph.packages.len() > 20, "saw {} packages: this is not the graph", graph.packages.len());
        graph
    }

    fn from(metadata: &Value) -> Graph {
        let nodes = list(&metadata["resolve"], "nodes");
        let edges: BTreeMap<String, Vec<String>> = nodes
            .map(|node| {
                let deps = list(node, "deps").map(|dep| text(dep, "pkg").to_owned());
                (text(node, "id").to_owned(), deps.collect())
            })
            .collect();
        let package = |package: &Value| Package {
            id: text(package, "id").to_owned(),
            name: text(package, "name").to_owned(),
            version: text(package, "version").to_owned(),
            licence: text(package, "license").to_owned(),
        };
        // Packages outside the resolve are for other platforms.
        let packages =
            list(metadata, "packages").map(package).filter(|package| edges.contains_key(&package.id));
        Graph { packages: packages.collect(), edges }
    }

    fn banned(&self) -> Vec<String> {
        let reason = |name: &str| BANNED.iter().find(|(banned, _)| *banned == name);
        let found = self.packages.iter().filter_map(|package| Some((package, reason(&package.name)?)));
        found.map(|(package, (name, reason))| format!("{name} {}: {reason}", package.version)).collect()
    }

    fn duplicates(&self, allowed: &[(&str, &str)]) -> Vec<String> {
        let mut lines: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for package in &self.packages {
            lines.entry(&package.name).or_default().insert(compatible(&package.version));
        }
        let twice = lines
            .into_iter()
            .filter(|(name, lines)| lines.len() > 1 && !allowed.iter().any(|(a, _)| a == name));
        twice.map(|(name, lines)| format!("{name}: {}", Vec::from_iter(lines).join(", "))).collect()
    }

    fn unlicensed(&self) -> Vec<String> {
        let refused = self.packages.iter().filter(|package| !is_allowed(&package.licence));
        refused
            .map(|package| format!("{} {}: {:?}", package.name, package.version, package.licence))
            .collect()
    }

    fn id(&self, name: &str) -> &str {
        &self.packages.iter().find(|package| package.name == name).expect("in the graph").id
    }

    /// Every package that `id` builds against, directly or not.
    fn below(&self, id: &str) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let mut open = vec![id];
        while let Some(next) = open.pop() {
            let deps = self.edges.get(next).into_iter().flatten().map(String::as_str);
            open.extend(deps.filter(|dep| found.insert(*dep)).collect::<Vec<_>>());
        }
        found
    }
}

/// The triple of the machine: crates for other systems are neither fetched nor built.
fn host() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("-vV").output().expect("rustc runs");
    let told = String::from_utf8(output.stdout).expect("UTF-8");
    told.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host line").to_owned()
}

/// What cargo counts as one line of versions: `1` of 1.2.3, `0.4` of 0.4.5, `0.0.3` of 0.0.3.
fn compatible(version: &str) -> &str {
    let mut dots = version.match_indices('.').map(|(place, _)| place);
    let (first, second) = (dots.next(), dots.next());
    let end = if !version.starts_with("0.") {
        first
    } else if !version.starts_with("0.0.") {
        second
    } else {
        None
    };
    &version[..end.unwrap_or(version.len())]
}

/// Whether an SPDX expression can be met with [`LICENCES`]. `AND` binds tighter than `OR`.
fn is_allowed(expression: &str) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let met = either(&words, &mut at);
    met && at == words.len()
}

fn either(words: &[&str], at: &mut usize) -> bool {
    let mut met = both(words, at);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        // Not `||`: the right side has to be read in any case.
        met |= both(words, at);
    }
    met
}

fn both(words: &[&str], at: &mut usize) -> bool {
    let mut met = licence(words, at);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        met &= licence(words, at);
    }
    met
}

fn licence(words: &[&str], at: &mut usize) -> bool {
    // Advances even past the end: an expression that stops too early does not end where it should.
    let word = words.get(*at).copied().unwrap_or_default();
    *at += 1;
    if word == "(" {
        let met = either(words, at);
        let closed = words.get(*at) == Some(&")");
        *at += 1;
        return met && closed;
    }
    if words.get(*at) == Some(&"WITH") {
        let whole = format!("{word} WITH {}", words.get(*at + 1).unwrap_or(&""));
        *at += 2;
        return LICENCES.contains(&whole.as_str());
    }
    LICENCES.contains(&word)
}

#[test]
fn the_graph_has_nothing_that_stays_out() {
    let graph = Graph::read();
    assert_eq!(graph.banned(), Vec::<String>::new(), "banned crates");
    assert_eq!(graph.unlicensed(), Vec::<String>::new(), "licences outside the list");
    assert_eq!(graph.duplicates(DUPLICATES), Vec::<String>::new(), "two incompatible versions of one crate");
    let needless = DUPLICATES.iter().filter(|(name, _)| {
        !graph.duplicates(&[]).iter().any(|found| found.starts_with(&format!("{name}:")))
    });
    assert_eq!(needless.count(), 0, "an entry of DUPLICATES is no longer needed");
}

#[test]
fn fake_backend_and_rig_stand_alone() {
    let graph = Graph::read();
    let (fake, own) = (graph.id("fake_backend"), graph.id("evenkeel"));
    assert!(graph.below(own).contains(fake), "evenkeel runs it in its demo");
    assert!(!graph.below(fake).contains(own), "fake_backend must not depend on evenkeel");
    // A measurement must not change with what it measures.
    assert!(!graph.below(graph.id("rig")).contains(own), "rig must not depend on evenkeel");
}

#[test]
fn the_checks_find_what_they_look_for() {
    let package = |name: &str, version: &str, licence: &str| serde_json::json!({"id": format!("{name}@{version}"), "name": name, "version": version, "license": licence});
    let node = |id: &str, deps: &[&str]| {
        let deps: Vec<Value> = deps.iter().map(|dep| serde_json::json!({"pkg": dep})).collect();
        serde_json::json!({"id": id, "deps": deps})
    };
    let graph = Graph::from(&serde_json::json!({
        "packages": [
            package("ring", "0.17.8", "ISC"), package("syn", "2.0.1", "MIT"), package("syn", "3.0.0", "MIT"),
            package("rand", "0.9.0", "GPL-3.0"), package("rand", "0.9.1", "MIT"), package("elsewhere", "1.0.0", ""),
        ],
        "resolve": {"nodes": [
            node("ring@0.17.8", &["syn@2.0.1"]), node("syn@2.0.1", &["rand@0.9.0"]), node("syn@3.0.0", &[]),
            node("rand@0.9.0", &["ring@0.17.8"]), node("rand@0.9.1", &[]),
        ]},
    }));
    assert_eq!(graph.banned().len(), 1);
    assert_eq!(graph.duplicates(&[]), ["syn: 2, 3"]);
    assert_eq!(graph.duplicates(&[("syn", "")]), Vec::<String>::new());
    assert_eq!(graph.unlicensed(), ["rand 0.9.0: \"GPL-3.0\""]);
    assert_eq!(graph.below(graph.id("ring")), BTreeSet::from(["rand@0.9.0", "ring@0.17.8", "syn@2.0.1"]));
    assert!(graph.below("syn@3.0.0").is_empty());
}

#[test]
fn licence_expressions_are_read_as_spdx_says() {
    for good in [
        "MIT",
        "MIT/GPL-3.0",
        "GPL-3.0 OR MIT AND ISC",
        "(MIT OR GPL-3.0) AND Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
    ] {
        assert!(is_allowed(good), "{good}");
    }
    for bad in [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "MIT AND (GPL-3.0 OR MPL-2.0)",
        "MIT WITH x",
        "Apache-2.0 WITH",
        "MIT MIT",
        "(MIT",
        "MIT OR",
    ] {
        assert!(!is_allowed(bad), "{bad}");
    }
    assert_eq!(["1.2.3", "0.4.5", "0.0.3", "10.0.0-rc.1"].map(compatible), ["1", "0.4", "0.0.3", "10"]);
}
