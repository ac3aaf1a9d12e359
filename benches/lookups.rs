//! What it costs to find a request's route: `cargo bench --bench lookups`.
//!
//! 100 routes of 10 hosts and 10,000 of 1,000, ten of each host, are loaded from YAML as everybody's are. Then requests for any of them are
//! asked for in any order, in both routers in turn: first with the same paths for every host, as the customers of a platform have them,
//! then with paths that no other host has. A figure is the mean of the best of several rounds; the allocator is the one that ships.
//!
//! `cargo bench --bench lookups -- 1000 20000` asks 20,000 times in the router of 1,000 hosts and tells nothing:
//! `benches/lookups_counted` counts the instructions of that.

#![expect(clippy::disallowed_methods, reason = "no test pauses the time of a measurement")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use evenkeel::config::{self, Flags};
use evenkeel::message::Head;
use evenkeel::route::{Asked, Router, path_form};

/// Hosts of the two routers; each has ten routes.
const HOSTS: [usize; 2] = [10, 1_000];
/// What a host's routes match beside the host.
const ROUTES: [&str; 10] = [
    "path: /",
    "path_prefix: /api",
    "path_prefix: /api/v1",
    "path_prefix: /api/v1/users, method: [GET, HEAD]",
    "path_prefix: /api, header: {X-Beta: yes}",
    "path_prefix: /static",
    "path: /favicon.ico",
    "path_prefix: /search, query: {v: 2}",
    "path_regex: '^/v[0-9]+/'",
    "path_prefix: /",
];
/// What is asked for.
const PATHS: [&str; 10] = [
    "/",
    "/api/orders/17",
    "/api/v1/items?page=3",
    "/api/v1/users/4711",
    "/api",
    "/static/css/main.css",
    "/favicon.ico",
    "/search?q=shoes&v=2",
    "/v2/items",
    "/about/us",
];
const REQUESTS: usize = 20_000;
const ROUNDS: usize = 15;
/// What a lookup may take among 10,000 routes, in nanoseconds, and beside one among 100.
const MOST: f64 = 2_000.0;
const GROWTH: f64 = 1.3;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let numbers: Vec<usize> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    if let [hosts, requests] = numbers[..] {
        let side = Side::new(hosts, requests, false);
        side.ask();
        return;
    }
    say("| routes | hosts | paths | ns for a lookup | from YAML to a config | to a router |");
    say("|--:|--:|---|--:|--:|--:|");
    let grown = [("alike", false), ("their own", true)].map(|(paths, own)| compare(paths, own));
    for growth in grown {
        say(&growth);
    }
}

/// Compares the two routers, and tells how much longer a lookup takes among many routes. `own`: no two hosts have the same paths.
fn compare(paths: &str, own: bool) -> String {
    let sides = HOSTS.map(|hosts| Side::new(hosts, REQUESTS, own));
    let mut best = [Duration::MAX; 2];
    for _ in 0..ROUNDS {
        for (side, best) in sides.iter().zip(&mut best) {
            *best = (*best).min(side.ask());
        }
    }
    let [few, many] = best.map(|time| time.as_nanos() as f64 / REQUESTS as f64);
    for (side, mean) in sides.iter().zip([few, many]) {
        let (hosts, load, build) = (side.hosts, side.load, side.build);
        say(&format!("| {} | {hosts} | {paths} | {mean:.0} | {load:.0?} | {build:.0?} |", 10 * hosts));
    }
    let short = if many > MOST || many > GROWTH * few { "SHORT" } else { "ok" };
    let bar = format!("at most {MOST} ns and {GROWTH} times are asked: {short}");
    format!("Paths {paths}: {:.2} times as long among 10,000 as among 100; {bar}.", many / few)
}

fn say(line: &str) {
    // Whoever has closed our output does not want to read on.
    _ = writeln!(std::io::stdout(), "{line}");
}

/// A router, and requests for it.
struct Side {
    hosts: usize,
    router: Router,
    requests: Vec<Head>,
    load: Duration,
    build: Duration,
}

impl Side {
    fn new(hosts: usize, requests: usize, own: bool) -> Side {
        let below = |host: usize| if own { format!("/t{host}") } else { String::new() };
        let mut text = "listeners:\n  front:\n    bind: 127.0.0.1:0\n    routes:\n".to_owned();
        for host in 0..hosts {
            for (number, route) in ROUTES.iter().enumerate() {
                let route = route.replacen('/', &format!("{}/", below(host)), 1);
                // Writing to a text does not fail.
                _ = writeln!(
                    text,
                    "    - {{name: h{host}r{number}, match: {{host: {}, {route}}}, target: t}}",
                    name(host)
                );
            }
        }
        text.push_str("targets:\n  t: {backends: [{host: 127.0.0.1, port: 1}]}\n");
        let begun = Instant::now();
        let loaded = config::load_text(&text, "bench", Path::new("."), &Flags::default(), &|_| None);
        let loaded = loaded.unwrap_or_else(|problems| panic!("{problems}"));
        let load = begun.elapsed();
        let begun = Instant::now();
        let router = Router::new(&loaded.config.listeners[0].routes, None);
        let build = begun.elapsed();
        let mut chance = 0x9E37_79B9_7F4A_7C15_u64;
        let mut draw = |count: usize| {
            chance ^= chance << 13;
            chance ^= chance >> 7;
            chance ^= chance << 17;
            (chance >> 33) as usize % count
        };
        let requests = (0..requests).map(|_| {
            let (path, host) = (PATHS[draw(PATHS.len())], draw(hosts));
            let mut head = Head::request("GET", &format!("{}{path}", below(host)), &name(host));
            head.push(b"User-Agent", b"bench");
            head.push(b"Accept", b"*/*");
            head
        });
        Side { hosts, router, requests: requests.collect(), load, build }
    }

    /// Asks once for each request, the form of its path and all.
    fn ask(&self) -> Duration {
        let begun = Instant::now();
        for head in &self.requests {
            let sent = head.path();
            let sent = &sent[..memchr::memchr(b'?', sent).unwrap_or(sent.len())];
            let path = path_form::form(sent, &Default::default()).expect("a path");
            let asked = Asked { head, path: &path, client: None, certificate: None };
            black_box(self.router.find(&asked).expect("one reading").expect("a route"));
        }
        begun.elapsed()
    }
}

fn name(host: usize) -> String {
    format!("shop-{host:04}.customers.example")
}
