//! Clients that we did not write, in front of a real server: curl, Python and Node, over http, https and HTTP/2, and Go over HTTP/2.
//!
//! Each check is a row: client × scheme × case. A row of curl's is a function in [`curl`]; those of Python, Node
//! and Go are functions in the programs beside this file, which write a line for each. After every row an
//! ordinary request must be answered. A client that is not installed is skipped, and says so on the terminal.

mod curl;
mod curl_http2;
mod curl_tls;
mod program;
mod scene;

use std::io::Write;

use scene::{Scene, Scheme};

/// At least so many rows must have been made, so that none gets lost unnoticed.
const CURL: [usize; 3] = [35, 44, 43];
const PYTHON: [usize; 3] = [49, 60, 64];
const NODE: [usize; 3] = [33, 39, 47];
const GO: usize = 38;

#[test]
fn curl_over_http() {
    curl::all(Scheme::Http, CURL[0]);
}

#[test]
fn curl_over_https() {
    curl::all(Scheme::Https, CURL[1]);
}

#[test]
fn curl_over_http2() {
    curl::all(Scheme::Http2, CURL[2]);
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
fn python_over_http2() {
    let Some(version) = program::version("python3", &["--version"]) else { return };
    let names = "import h2, httpx; print('httpx', httpx.__version__, 'and h2', h2.__version__)";
    match program::said("python3", &["-c", names]) {
        Some(names) => {
            let (version, scene) = (format!("{version}, {names}"), Scene::new(Scheme::Http2));
            program::matrix(&version, "python3", "python_http2.py", &scene, PYTHON[2]);
        }
        None => tell("SKIPPED Python over http2: it has no httpx or no h2"),
    }
}

#[test]
fn node_over_http() {
    node(Scheme::Http, "node.mjs", NODE[0]);
}

#[test]
fn node_over_https() {
    node(Scheme::Https, "node.mjs", NODE[1]);
}

#[test]
fn node_over_http2() {
    node(Scheme::Http2, "node_http2.mjs", NODE[2]);
}

#[test]
fn go_over_http2() {
    let Some(version) = program::version("go", &["version"]) else { return };
    let number = version.split(' ').find_map(|word| word.strip_prefix("go1."));
    let minor = number.and_then(|number| number.split(['.', 'r', 'b']).next()?.parse::<u32>().ok());
    if minor.is_none_or(|minor| minor < 20) {
        return tell(&format!("SKIPPED {version}: the checks need 1.20"));
    }
    let scene = Scene::new(Scheme::Http2);
    let client = program::built_by_go(&scene);
    program::run(&version, client, &scene, GO);
}

fn python(scheme: Scheme, at_least: usize) {
    if let Some(version) = program::version("python3", &["--version"]) {
        program::matrix(&version, "python3", "python.py", &Scene::new(scheme), at_least);
    }
}

fn node(scheme: Scheme, program: &str, at_least: usize) {
    let Some(version) = program::version("node", &["--version"]) else { return };
    let major = version.trim_start_matches('v').split('.').next().and_then(|number| number.parse().ok());
    if major.is_none_or(|major: u32| major < 18) {
        return tell(&format!("SKIPPED node {version}: the checks need 18, which has fetch"));
    }
    program::matrix(&format!("node {version}"), "node", program, &Scene::new(scheme), at_least);
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
