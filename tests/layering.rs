//! Who may import whom, checked on every path of every source file.
//!
//! Higher rows import lower rows only, never the same row except inside one folder (docs/architecture.md), and no files of a folder
//! import one another in a ring (`rings`). Files are read as token trees: paths inside macros count, what would hide one is refused.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

#[path = "layering/names.rs"]
mod names;
#[path = "layering/rings.rs"]
mod rings;

/// Every top-level module with its row. `config` and `tick` may be imported by anyone.
const ROWS: &[(i8, &[&str])] = &[
    (-2, &["config", "tick"]),
    (-1, &["events", "chunk"]),
    (0, &["message", "tls", "net", "shutdown", "lasting", "slots", "steps", "instance"]),
    (1, &["telemetry", "route", "targets", "cache", "compress", "access", "store", "outgoing"]),
    (2, &["snapshot"]),
    (3, &["proxy", "probe", "simulate"]),
    (4, &["worker"]),
    (5, &["cluster", "overlay", "decision", "discover", "metrics"]),
    (6, &["reload", "watch"]),
    (7, &["acme", "admin", "webhook", "jwks", "scale", "statsd", "traces", "upgrade"]),
    (8, &["server"]),
    (9, &["cli"]),
];
/// From this row on all of `config` is open; below only its accepted form, `config::model`.
const CONFIG_FROM: i8 = 5;
/// Two folders inside one that do not know each other.
const STRANGERS: &[(&str, [&str; 2])] = &[("proxy", ["tcp", "http"])];
/// Decisions: no sockets, no clock, no randomness of their own.
#[rustfmt::skip]
const PURE: &[&str] = &[
    "targets/picking/balance", "targets/picking/hash", "targets/resilience/breaker",
    "targets/resilience/outlier", "targets/resilience/gradient", "targets/resilience/attempt_counts",
    "targets/resilience/retry", "targets/resilience/budget", "targets/resilience/hedge",
    "targets/queueing/queue", "targets/state/decide", "targets/state/health", "targets/resilience/ejection",
    "simulate", "watch/debounce", "overlay", "decision", "reload/judge", "webhook/queue", "webhook/backoff",
    "webhook/last_told", "webhook/kept", "scale/decide", "access/networks", "access/rate/pace", "access/rate/table",
    "access/rate/buckets", "access/rate/several", "access/jwt/claims", "access/jwt/lines", "access/jwt/refresh",
    "access/jwt/token", "cache", "compress", "traces/line",
    "proxy/http/h2/hpack", "message/proxy_header", "tls/hello", "acme/limits", "acme/schedule", "acme/nodes/duty",
    "discover/merge", "discover/pace", "discover/answer", "proxy/udp/flows", "proxy/udp/returning",
    "targets/sharing", "cluster/rows", "cluster/membership", "cluster/view",
];
/// Crates that a decision has no use for.
const IMPURE_CRATES: &[&str] = &["tokio", "tokio_util", "socket2", "rustix", "rand", "fastrand", "getrandom"];
/// What a decision may take from `std::net` and `std::time`: plain values.
const PLAIN: &[&str] =
    &["IpAddr", "Ipv4Addr", "Ipv6Addr", "SocketAddr", "SocketAddrV4", "SocketAddrV6", "Duration"];
/// Files that may contain `unsafe`, each with its argument inside.
const UNSAFE_FILES: &[&str] =
    &["src/net/option.rs", "src/proxy/http/h1/scan/sse2.rs", "src/worker/spare_memory.rs"];
/// Longest file, in lines.
const MOST_LINES: usize = 500;

#[test]
fn every_file_keeps_to_its_row() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["src", "tests", "fake_backend", "benches", "fuzz/cases", "fuzz/fuzz_targets"] {
        collect(&root.join(folder), &mut files);
    }
    let (mut report, mut seen) = (String::new(), 0);
    for file in &files {
        let source = std::fs::read_to_string(file).expect("readable");
        let name = file.strip_prefix(root).expect("below the root").to_str().expect("UTF-8");
        seen += usize::from(name.starts_with("src/"));
        for problem in check(name, &source) {
            writeln!(report, "{problem}").expect("a String takes everything");
        }
    }
    assert!(seen > 3, "saw {seen} files in src: the check looks in the wrong place");
    for folder in ["config", "message", "net", "targets", "telemetry", "probe", "proxy", "worker", "cli"] {
        let inside = root.join("src").join(folder);
        assert!(files.iter().any(|file| file.starts_with(&inside)), "no file of src/{folder} was looked at");
    }
    let is_there = |path: String| root.join("src").join(path).exists();
    for pure in PURE {
        assert!(is_there(format!("{pure}.rs")) || is_there(format!("{pure}/mod.rs")), "no src/{pure}");
    }
    assert!(report.is_empty(), "\n{report}");
}

/// All Rust files below `folder`, sorted.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Everything wrong with one file; `name` is its path from the root.
fn check(name: &str, source: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let lines = source.lines().count();
    if lines > MOST_LINES {
        problems.push(format!("{name}: {lines} lines, {MOST_LINES} are allowed"));
    }
    let (file, tokens) = match (syn::parse_file(source), source.parse::<TokenStream>()) {
        (Ok(file), Ok(tokens)) => (file, tokens),
        (Err(error), _) => return vec![format!("{name}: {error}")],
        (_, Err(error)) => return vec![format!("{name}: {error}")],
    };
    let modules = modules_of(name);
    if let Some(top) = modules.first().filter(|_| name.starts_with("src/"))
        && row(top).is_none()
    {
        problems.push(format!("{name}: `{top}` has no row in tests/layering.rs"));
    }
    let bare = |item: &syn::Item| matches!(item, syn::Item::Mod(module) if module.content.is_none());
    if name == "src/lib.rs" && !file.items.iter().all(bare) {
        problems.push(format!("{name}: only `mod` lines belong here"));
    }
    let mut scan = Scan { name, modules, problems };
    scan.walk(tokens);
    scan.problems
}

/// The module that a file of `src` is: `src/a/b.rs` and `src/a/b/mod.rs` are both `[a, b]`.
fn modules_of(name: &str) -> Vec<String> {
    let inner = name.strip_prefix("src/").unwrap_or_default().trim_end_matches(".rs");
    let inner = inner.strip_suffix("/mod").unwrap_or(inner);
    let parts = inner.split('/').filter(|part| !matches!(*part, "" | "lib" | "main"));
    parts.map(str::to_owned).collect()
}

fn row(top: &str) -> Option<i8> {
    ROWS.iter().find(|(_, names)| names.contains(&top)).map(|(row, _)| *row)
}

/// A walk over one file's tokens.
struct Scan<'a> {
    name: &'a str,
    /// The module that the walk is in, inline ones included.
    modules: Vec<String>,
    problems: Vec<String>,
}

impl Scan<'_> {
    fn walk(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        // Inside `use …;`, and whether that is public.
        let mut public_use = false;
        while let Some(token) = tokens.get(at) {
            match token {
                TokenTree::Group(group) => {
                    self.attribute(&tokens[..at], group);
                    self.walk(group.stream());
                    at += 1;
                }
                TokenTree::Ident(ident) => {
                    match (ident.to_string().as_str(), tokens.get(at + 1), tokens.get(at + 2)) {
                        ("mod", Some(TokenTree::Ident(child)), Some(TokenTree::Group(body))) => {
                            self.modules.push(child.to_string());
                            self.walk(body.stream());
                            self.modules.pop();
                            at += 3;
                        }
                        // `pub(crate)`, `pub(super)`, `pub(in …)` name a scope and import nothing.
                        ("pub", Some(TokenTree::Group(scope)), next)
                            if scope.delimiter() == Delimiter::Parenthesis =>
                        {
                            public_use = is_word(next, "use");
                            at += 2;
                        }
                        ("pub", next, _) => {
                            public_use = is_word(next, "use");
                            at += 1;
                        }
                        ("unsafe", ..) if !UNSAFE_FILES.contains(&self.name) => {
                            self.refuse(token, "`unsafe` in a file that is not listed for it");
                            at += 1;
                        }
                        ("include", next, _) if self.name.starts_with("src/") && is_punct(next, '!') => {
                            self.refuse(token, "`include!` hides what is included");
                            at += 1;
                        }
                        _ => at = self.path(&tokens, at, &[], public_use),
                    }
                }
                TokenTree::Punct(punct) => {
                    public_use &= punct.as_char() != ';';
                    at += 1;
                }
                TokenTree::Literal(_) => at += 1,
            }
        }
    }

    /// Reads the path (or the use-tree) that begins at `at`, judges it, and tells where it ends.
    fn path(&mut self, tokens: &[TokenTree], mut at: usize, before: &[String], public: bool) -> usize {
        let start = &tokens[at];
        let mut path = before.to_vec();
        while let Some(TokenTree::Ident(ident)) = tokens.get(at) {
            path.push(ident.to_string());
            at += 1;
            if !(is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':')) {
                break;
            }
            match tokens.get(at + 2) {
                Some(TokenTree::Ident(_)) => at += 2,
                Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                    self.branches(group, &path, public);
                    return at + 3;
                }
                Some(TokenTree::Punct(star)) if star.as_char() == '*' => {
                    path.push("*".to_owned());
                    at += 3;
                    break;
                }
                _ => break,
            }
        }
        // `{self}` in a use-tree is the path before it.
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        self.judge(start, &path, public);
        at
    }

    /// The branches of a use-tree, each with the path before the brace.
    fn branches(&mut self, group: &Group, before: &[String], public: bool) {
        let tokens: Vec<TokenTree> = group.stream().into_iter().collect();
        for branch in tokens.split(|token| is_punct(Some(token), ',')) {
            match branch.first() {
                Some(TokenTree::Ident(_)) => {
                    self.path(branch, 0, before, public);
                }
                Some(star) => {
                    let path = [before, &["*".to_owned()]].concat();
                    self.judge(star, &path, public);
                }
                None => {}
            }
        }
    }

    /// `#[path = …]` would put a file where its name does not say.
    fn attribute(&mut self, before: &[TokenTree], group: &Group) {
        let mut inside = group.stream().into_iter();
        if self.name.starts_with("src/")
            && is_punct(before.last(), '#')
            && is_word(inside.next().as_ref(), "path")
        {
            self.refuse(&TokenTree::Group(group.clone()), "`#[path]` hides which module a file is");
        }
    }

    fn judge(&mut self, at: &TokenTree, path: &[String], public: bool) {
        if !self.name.starts_with("src/") {
            return;
        }
        let words: Vec<&str> = path.iter().map(String::as_str).collect();
        if self.name == "src/main.rs" {
            if matches!(words[..], ["crate" | "super", ..])
                || (words[0] == "evenkeel" && words.get(1) != Some(&"cli"))
            {
                self.refuse(at, &format!("`{}`: main knows `evenkeel::cli` only", path.join("::")));
            }
            return;
        }
        let Some(own) = self.modules.first().cloned() else { return };
        self.judge_purity(at, &words);
        // `self::super::x` is legal; only what comes after `self` matters here.
        let words = if words[0] == "self" { &words[1..] } else { &words[..] };
        let depth = words.iter().take_while(|word| **word == "super").count();
        let (base, rest) = match words.first() {
            Some(&"crate") => (0, &words[1..]),
            Some(&"super") => (self.modules.len().saturating_sub(depth), &words[depth..]),
            _ => return,
        };
        let full: Vec<&str> =
            self.modules[..base].iter().map(String::as_str).chain(rest.iter().copied()).collect();
        let shown = format!("crate::{}", full.join("::"));
        let verdict = match full.first() {
            None | Some(&"*") => {
                Some(format!("`{}`: the crate root as a whole hides what is used", path.join("::")))
            }
            Some(&top) if top == own => {
                self.stranger(&full).then(|| format!("`{shown}`: these two do not know each other"))
            }
            Some(_) if public => Some(format!("`pub use {shown}` passes on another folder's items")),
            Some(&top) => match (row(&own), row(top)) {
                (_, None) => Some(format!("`{shown}`: `{top}` has no row in tests/layering.rs")),
                (Some(mine), Some(other)) if other >= mine => {
                    Some(format!("`{shown}`: row {other} from `{own}` in row {mine}"))
                }
                (Some(mine), _) if top == "config" && mine < CONFIG_FROM && full.get(1) != Some(&"model") => {
                    Some(format!("`{shown}`: only `config::model` is open to `{own}`"))
                }
                _ => None,
            },
        };
        let unclean = self.is_pure() && full.first() == Some(&"net");
        if let Some(text) = verdict {
            self.refuse(at, &text);
        }
        if unclean {
            self.refuse(at, &format!("`{shown}`: a decision has no sockets and no clock"));
        }
    }

    /// A path from inside one stranger to the other, or to the folder of both as a whole.
    fn stranger(&self, full: &[&str]) -> bool {
        let own: Vec<&str> = self.modules.iter().map(String::as_str).collect();
        STRANGERS.iter().any(|(folder, pair)| match (&own[..], full) {
            ([top, me, ..], [_, other, ..]) if top == folder && pair.contains(me) => {
                *other == "*" || (pair.contains(other) && me != other)
            }
            ([top, me, ..], [_]) => top == folder && pair.contains(me),
            _ => false,
        })
    }

    fn is_pure(&self) -> bool {
        let inner = self.name.strip_prefix("src/").unwrap_or_default();
        let ends = |rest: &str| rest.starts_with('/') || rest == ".rs";
        PURE.iter().any(|pure| inner.strip_prefix(pure).is_some_and(ends))
    }

    fn judge_purity(&mut self, at: &TokenTree, words: &[&str]) {
        if !self.is_pure() {
            return;
        }
        let refused = match *words {
            ["std" | "core", "net" | "time", item, ..] => !PLAIN.contains(&item),
            ["std" | "core", "net" | "time"] | ["std" | "core"] | ["std" | "core", "*"] => true,
            [first, ..] if IMPURE_CRATES.contains(&first) => true,
            _ => words.contains(&"RandomState"),
        };
        if refused {
            self.refuse(
                at,
                &format!("`{}`: a decision has no sockets, clock or chance of its own", words.join("::")),
            );
        }
    }

    fn refuse(&mut self, at: &TokenTree, text: &str) {
        self.problems.push(format!("{}:{}: {text}", self.name, at.span().start().line));
    }
}

fn is_punct(token: Option<&TokenTree>, character: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == character)
}

fn is_word(token: Option<&TokenTree>, word: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(ident)) if *ident == word)
}

mod checker {
    use super::*;

    /// Asserts that `source` as file `name` is refused once, with `text` in the message.
    #[track_caller]
    fn refused(name: &str, source: &str, text: &str) {
        let problems = check(name, source);
        assert!(problems.len() == 1 && problems[0].contains(text), "{source}\n{problems:?}");
    }

    #[track_caller]
    fn fine(name: &str, source: &str) {
        assert_eq!(check(name, source), Vec::<String>::new(), "{source}");
    }

    #[test]
    fn downward_and_own_folder_are_fine() {
        fine(
            "src/proxy/tcp.rs",
            "use crate::targets::{Target, lease::Lease as L}; use super::buffer::*; use crate::tick::Tick;",
        );
        fine(
            "src/telemetry/cells/mod.rs",
            "pub use table::Table; pub(crate) use self::counter::Counter; use crate::telemetry::x;",
        );
        fine(
            "src/targets/mod.rs",
            "pub(crate) fn f() { super::message::f(); } mod tests { use super::*; use super::super::tick::Tick; }",
        );
        fine(
            "src/reload.rs",
            "use crate::config::yaml; pub(in crate::reload) struct A; pub(super) struct B;",
        );
        fine("src/main.rs", "use std::process::ExitCode; fn main() -> ExitCode { evenkeel::cli::run() }");
        fine("src/lib.rs", "//! Map.\npub mod tick; pub mod worker;");
        fine("tests/x.rs", "use evenkeel::server::Server; use crate::anything;");
    }

    #[test]
    fn upward_imports_are_refused_however_they_are_written() {
        for source in [
            "use crate::worker::Worker;",
            "use crate::worker;",
            "use crate::{tick::Tick, worker::{self, Worker}};",
            "use crate::{\n    tick::Tick, worker::Worker as W};",
            "fn f() { crate::worker::run(); }",
            "fn f(x: &crate::worker::Worker) {}",
            "fn f() { Vec::<crate::worker::Worker>::new(); }",
            "use super::worker::*;",
            "use self::super::worker::Worker;",
            "mod a { mod b { use super::super::super::worker::Worker; } }",
            "fn f() { assert!(crate::worker::idle(), \"busy\"); }",
            "fn f() { println!(\"{}\", [crate::worker::COUNT]); }",
            "macro_rules! m { () => { $crate::worker::run() }; }",
            "#[derive(Debug)] #[x(crate::worker::Y)] struct A;",
            "#[cfg(test)] mod tests { use crate::worker::Worker; }",
        ] {
            let problems = check("src/targets.rs", source);
            assert!(
                !problems.is_empty() && problems[0].contains("row 4 from `targets` in row 1"),
                "{source}\n{problems:?}"
            );
        }
    }

    #[test]
    fn same_row_and_strangers_are_refused() {
        refused("src/targets/x.rs", "use crate::route::Router;", "row 1 from `targets`");
        refused("src/config/model.rs", "use crate::tick::Tick;", "row -2 from `config`");
        refused("src/proxy/tcp.rs", "use super::http::pool::Pool;", "do not know each other");
        refused("src/proxy/http/pool.rs", "use crate::proxy::tcp::relay;", "do not know each other");
        refused("src/proxy/http/pool.rs", "use super::super::*;", "do not know each other");
        refused("src/proxy/tcp.rs", "use crate::proxy;", "do not know each other");
        fine(
            "src/proxy/mod.rs",
            "mod http; mod tcp; use tcp::Relay; use self::http::Pool; use crate::proxy::tcp;",
        );
        fine("src/proxy/http/mod.rs", "use super::WorkerCtx; use crate::proxy::pool;");
    }

    #[test]
    fn what_hides_a_path_is_refused() {
        refused("src/worker/mod.rs", "use crate as c;", "as a whole");
        refused("src/worker/mod.rs", "use crate::*;", "as a whole");
        refused("src/worker/mod.rs", "use crate::{*};", "as a whole");
        refused("src/worker/mod.rs", "use crate::{self as c};", "as a whole");
        refused("src/tick.rs", "use super::*;", "as a whole");
        refused("src/tick.rs", "extern crate self as me;", "as a whole");
        refused("src/worker/mod.rs", "#[path = \"../cli/x.rs\"] mod x;", "#[path]");
        refused("src/worker/mod.rs", "include!(\"x.rs\");", "include!");
        refused("src/worker/mod.rs", "pub use crate::targets::Lease;", "passes on");
        refused("src/worker/mod.rs", "pub(crate) use super::targets::{Lease};", "passes on");
        refused("src/lib.rs", "pub mod tick; pub use tick::Tick;", "only `mod` lines");
        refused("src/novel/mod.rs", "fn f() {}", "`novel` has no row");
        refused("src/worker/mod.rs", "use crate::novel::X;", "`novel` has no row");
        refused("src/main.rs", "fn main() { evenkeel::server::run() }", "main knows");
        refused("src/worker/mod.rs", "use crate::config::yaml;", "only `config::model`");
    }

    #[test]
    fn decisions_stay_pure() {
        for source in [
            "use tokio::sync::Mutex;",
            "use std::net::TcpStream;",
            "use std::net::*;",
            "use std::{time::{Duration, Instant}};",
            "use std::time;",
            "use std as s;",
            "fn f() { let now = std::time::SystemTime::now(); }",
            "fn f() { rand::random() }",
            "use std::collections::hash_map::RandomState;",
            "use crate::net::deadline;",
        ] {
            refused("src/targets/resilience/breaker.rs", source, "a decision has no");
            refused("src/targets/picking/balance/maglev.rs", source, "a decision has no");
        }
        fine(
            "src/targets/resilience/breaker.rs",
            "use std::net::{IpAddr, SocketAddr}; use std::time::Duration; use crate::tick::Tick;",
        );
        fine("src/targets/resilience/breaker_view.rs", "use std::time::Instant;");
    }

    #[test]
    fn size_and_unsafe_are_limited_everywhere() {
        for name in ["src/tick.rs", "tests/e2e/main.rs", "fake_backend/src/lib.rs"] {
            fine(name, &"\n".repeat(MOST_LINES));
            refused(name, &"\n".repeat(MOST_LINES + 1), "501 lines");
            refused(name, "fn f() { unsafe { g() } }", "`unsafe`");
        }
        refused("src/tick.rs", "fn f( {", "src/tick.rs: ");
    }
}
