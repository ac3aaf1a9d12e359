//! Clients that we did not write, in front of a real server: curl, Python and Node, over http and https.
//!
//! Each check is a row: client × scheme × case. A row of curl's is a function in [`curl`]; those of Python and
//! Node are functions in the programs beside this file, which write a line for each. After every row an
//! ordinary request must be answered. A client that is not installed is skipped, and says so on the terminal.

mod curl;
mod curl_tls;
mod program;
mod scene;

use std::io::Write;

use scene::{Scene, Scheme};

/// At least so many rows must have been made, so that none gets lost unnoticed.
const CURL: [usize; 2] = [35, 44];
const PYTHON: [usize; 2] = [49, 60];
const NODE: [usize; 2] = [33, 39];

#[test]
fn curl_over_http() {
    curl::all(Scheme::Http, CURL[0]);
}

#[test]
fn curl_over_https() {
    curl::all(Scheme::Https, CURL[1]);
}

#[test]
fn python_over_http() {
    python(Scheme::Http, PYTHON[0]);
}

#[test]
fn python_over_https() {
    python(Scheme::Https, PYTHON[1]);
}

#[test]
fn node_over_http() {
    node(Scheme::Http, NODE[0]);
}

#[test]
fn node_over_https() {
    node(Scheme::Https, NODE[1]);
}

fn python(scheme: Scheme, at_least: usize) {
    if let Some(version) = program::version("python3", &["--version"]) {
        program::matrix(&version, "python3", "python.py", &Scene::new(scheme), at_least);
    }
}

fn node(scheme: Scheme, at_least: usize) {
    let Some(version) = program::version("node", &["--version"]) else { return };
    let major = version.trim_start_matches('v').split('.').next().and_then(|number| number.parse().ok());
    if major.is_none_or(|major: u32| major < 18) {
        return tell(&format!("SKIPPED node {version}: the checks need 18, which has fetch"));
    }
    program::matrix(&format!("node {version}"), "node", "node.mjs", &Scene::new(scheme), at_least);
}

/// Past the test harness, which keeps what passing tests print.
fn tell(line: &str) {
    std::io::stderr().write_all(format!("clients: {line}\n").as_bytes()).unwrap();
}

/// Fails with every row that failed, or when there were fewer than there should be.
fn judge(client: &str, scheme: Scheme, rows: &[(String, Result<(), String>)], at_least: usize) {
    let failed: Vec<_> =
        rows.iter().filter_map(|(name, outcome)| Some((name, outcome.as_ref().err()?))).collect();
    let listed: String = failed.iter().map(|(name, why)| format!("\n== {name}\n{why}")).collect();
    tell(&format!("{client} over {}: {} checks, {} failed", scheme.name(), rows.len(), failed.len()));
    assert!(failed.is_empty(), "{client} over {}:{listed}", scheme.name());
    assert!(rows.len() >= at_least, "{client} over {}: only {} checks", scheme.name(), rows.len());
}
