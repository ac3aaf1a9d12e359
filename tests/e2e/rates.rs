//! Rate limits over real sockets: who counts together, what is told, and what outlives what.

use evenkeel::config::model::Config;
use evenkeel::message::Cause;
use evenkeel::telemetry::cells::RateReading;
use fake_backend::{Behaviour, Fake, Running, TcpMode};
use serde_json::json;

use super::life_lab::{connect, read_to_end, until_ended};
use super::support::process::Process;
use super::support::{self, Answer, Client, Keel, eventually, recording};

/// Limits, and a listener whose routes have these keys beside their target.
fn text(limits: &str, top: &str, listener: &str, routes: &[&str], backend: &Running) -> String {
    let routes: String = routes
        .iter()
        .enumerate()
        .map(|(number, keys)| format!("      - {{match: {{path_prefix: /{number}}}, target: one, {keys}}}\n"))
        .collect();
    format!(
        "{top}\nworkers: 2\nrate_limits: {{{limits}}}\nlisteners:\n  front:\n    bind: 127.0.0.1:0\n    {listener}\n    routes:\n\
         {routes}targets:\n  one: {{health_check: off, backends: [{{url: 'http://{}'}}]}}\n",
        backend.addr()
    )
}

struct Lab {
    keel: Keel,
    backend: Running,
}

fn lab_with(limits: &str, top: &str, listener: &str, routes: &[&str]) -> Lab {
    let backend = recording();
    let keel = Keel::start(&support::load(&text(limits, top, listener, routes, &backend)));
    Lab { keel, backend }
}

/// One route, `/0`, with the limit `l`.
fn lab(limit: &str) -> Lab {
    lab_with(&format!("l: {{{limit}}}"), "", "x_real_ip: off", &["rate_limit: l"])
}

impl Lab {
    /// `GET path` with these further header lines, on a connection of its own.
    fn get(&self, path: &str, lines: &str) -> Answer {
        self.keel.client().ask(&format!("GET {path} HTTP/1.1\r\nHost: h\r\n{lines}\r\n"))
    }

    /// How many of ten such requests pass.
    fn passed(&self, path: &str, lines: &str) -> usize {
        (0..10).filter(|_| self.get(path, lines).status == 200).count()
    }

    fn counted(&self, limit: &str) -> RateReading {
        let snapshot = self.keel.server.reloader().snapshots.current().unwrap();
        let (_, number) = snapshot.rates.numbers().into_iter().find(|(name, _)| *name == limit).unwrap();
        self.keel.server.readings().rate(number)
    }
}

fn reading(admitted: u64, refused: u64, would_refuse: u64) -> RateReading {
    RateReading { admitted, refused, would_refuse }
}

#[test]
fn a_burst_is_exact_and_who_is_refused_is_told_when_to_come_again_on_a_connection_that_goes_on() {
    let lab = lab("rate: 2/h, burst: 3");
    let mut client = lab.keel.client();
    for _ in 0..3 {
        let answer = client.get("/0");
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("RateLimit"), None, "who passes is told nothing");
    }
    for _ in 0..2 {
        let answer = client.get("/0");
        assert_eq!(answer.status, 429);
        assert!(answer.text().contains("cause: rate_limited"), "{}", answer.text());
        let wait: u64 = answer.header("Retry-After").unwrap().parse().unwrap();
        assert!((1_700..=1_800).contains(&wait), "{wait}");
        assert_eq!(answer.header("RateLimit-Policy"), Some(r#""l";q=2;w=3600"#));
        assert_eq!(answer.header("RateLimit"), Some(&*format!(r#""l";r=0;t={wait}"#)));
        assert!(answer.header("Proxy-Status").unwrap().ends_with("details=rate_limited"));
    }
    client.send("HEAD /0 HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(client.answer_to_head().status, 429);
    assert_eq!(lab.get("/0", "").status, 429, "another connection of the same client");
    assert_eq!(lab.backend.take_requests().len(), 3);
    assert_eq!(lab.counted("l"), reading(3, 4, 0));
    until_ended(&lab.keel, Cause::RateLimited, 4);
}

#[test]
fn a_client_is_who_a_trusted_proxy_says_and_a_64_of_ipv6() {
    let trusted =
        lab_with("l: {rate: 1/h, burst: 2}", "trusted_proxies: [127.0.0.1]", "", &["rate_limit: l"]);
    let of = |client: &str| format!("X-Forwarded-For: {client}\r\n");
    assert_eq!(trusted.passed("/0", &of("10.0.0.1")), 2);
    assert_eq!(trusted.passed("/0", &of("10.0.0.2")), 2);
    assert_eq!(trusted.passed("/0", &of("::ffff:10.0.0.2")), 0);
    assert_eq!(trusted.passed("/0", &of("2001:db8:1:2::3")), 2);
    assert_eq!(trusted.passed("/0", &of("2001:db8:1:2:ffff::")), 0);
    assert_eq!(trusted.passed("/0", &of("2001:db8:1:3::")), 2);
    // Whom nobody knows counts by the proxy, however it hides.
    assert_eq!(trusted.passed("/0", &of("unknown")), 2);
    assert_eq!(trusted.passed("/0", &of("_a")) + trusted.passed("/0", "Forwarded: for=_b\r\n"), 0);
    let untrusted = lab("rate: 1/h, burst: 2");
    assert_eq!(untrusted.passed("/0", &of("10.0.0.1")) + untrusted.passed("/0", &of("10.0.0.2")), 2);
}

#[test]
fn headers_and_cookies_are_keys_and_where_they_are_absent_the_address_is() {
    let header = lab("rate: 1/h, burst: 2, by: {header: X-Api-Key}");
    assert_eq!(header.passed("/0", "X-Api-Key: a\r\n"), 2);
    assert_eq!(header.passed("/0", "x-api-key: b\r\n"), 2);
    assert_eq!(header.passed("/0", "X-Api-Key: a\r\n"), 0);
    assert_eq!(header.passed("/0", ""), 2, "its address has a bucket of its own");
    assert_eq!(header.passed("/0", "X-Api-Key:\r\n"), 0, "an empty one is none");
    let cookie = lab("rate: 1/h, burst: 2, by: {cookie: sid}");
    assert_eq!(cookie.passed("/0", "Cookie: a=b; sid=1\r\n"), 2);
    assert_eq!(cookie.passed("/0", "Cookie: sid=2\r\n"), 2);
    assert_eq!(cookie.passed("/0", "Cookie: sid=1\r\n"), 0);
    assert_eq!(cookie.passed("/0", "Cookie: SID=1\r\n"), 2);
    assert_eq!(cookie.passed("/0", ""), 0);
}

#[test]
fn routes_count_for_themselves_or_all_together() {
    let lab = lab_with(
        "each: {rate: 1/h, burst: 2, by: route}, all: {rate: 1/h, burst: 5, by: global}",
        "",
        "rate_limit: all",
        &["rate_limit: each", "rate_limit: [all, each]", ""],
    );
    assert_eq!((lab.passed("/0", ""), lab.passed("/1", "")), (2, 2));
    assert_eq!(lab.passed("/2", ""), 1, "a limit that is named twice counts once");
    assert_eq!(lab.counted("all"), reading(5, 9, 0));
}

#[test]
fn who_has_no_user_counts_by_address() {
    let lab = lab_with(
        "l: {rate: 1/h, burst: 2, by: user}",
        "trusted_proxies: [127.0.0.1]",
        "",
        &["rate_limit: l"],
    );
    assert_eq!(lab.passed("/0", "X-Forwarded-For: 10.0.0.1\r\n"), 2);
    assert_eq!(lab.passed("/0", "X-Forwarded-For: 10.0.0.2\r\n"), 2);
}

#[test]
fn of_several_each_must_pass_and_who_is_refused_takes_from_none() {
    let lab = lab_with(
        "l: {rate: 1/h, burst: 2, by: [{header: X-Key}, global]}, m: {rate: 1/h, burst: 3}",
        "",
        "",
        &["rate_limit: [l, m]", "rate_limit: m"],
    );
    assert_eq!(lab.passed("/0", "X-Key: a\r\n"), 2);
    assert_eq!(lab.passed("/0", "X-Key: b\r\n"), 0, "all together have had theirs");
    assert_eq!(lab.passed("/1", ""), 1, "those that were refused took nothing here");
    assert_eq!((lab.counted("l"), lab.counted("m")), (reading(2, 18, 0), reading(3, 9, 0)));
}

#[test]
fn a_dry_run_counts_and_refuses_nobody() {
    let lab = lab_with(
        "try: {rate: 1/h, burst: 2, dry_run: on}, real: {rate: 1/h, burst: 5}",
        "",
        "",
        &["rate_limit: [try, real]"],
    );
    assert_eq!(lab.passed("/0", ""), 5);
    assert_eq!((lab.counted("try"), lab.counted("real")), (reading(2, 0, 3), reading(5, 5, 0)));
}

#[test]
fn the_status_tells_whom_limits_and_lists_with_a_name_have_refused_and_goes_on_counting_over_a_reload() {
    let backend = recording();
    let with = |deny: &str| {
        let lists =
            format!("access_lists: {{bad: {{deny: {deny}, status: drop}}, other: {{deny: 192.0.2.8}}}}");
        let limits = "try: {rate: 1/h, burst: 2, dry_run: on}, real: {rate: 1/h, burst: 5}";
        text(
            limits,
            &format!("trusted_proxies: [127.0.0.1]\n{lists}"),
            "access: [other, bad]",
            &["rate_limit: [try, real]", "access: bad"],
            &backend,
        )
    };
    let process = Process::start(&with("192.0.2.7"), 1);
    let ask = |path: &str, client: &str| {
        let mut proxy = Client::connect(process.address("front"));
        proxy.send(format!(
            "GET {path} HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: {client}\r\nConnection: close\r\n\r\n"
        ));
        proxy.rest();
    };
    let tell = |key: &str| process.ask("GET /api/v1/status", b"").1[key].clone();
    for _ in 0..7 {
        ask("/0", "192.0.2.1");
    }
    ask("/1", "192.0.2.7");
    ask("/0", "192.0.2.7");
    let limit = |name: &str, [admitted, refused, would_refuse]: [u64; 3]| {
        let is_dry = name == "try";
        json!({"name": name, "dry_run": is_dry, "admitted": admitted, "refused": refused, "would_refuse": would_refuse, "crowded": 0})
    };
    assert_eq!(tell("rate_limits"), json!([limit("real", [5, 2, 0]), limit("try", [2, 0, 3])]));
    assert_eq!(tell("access_lists"), json!([{"name": "bad", "refused": 2}, {"name": "other", "refused": 0}]));
    process.reload(&with("192.0.2.9"));
    ask("/0", "192.0.2.9");
    assert_eq!(tell("access_lists"), json!([{"name": "bad", "refused": 3}, {"name": "other", "refused": 0}]));
    let said = String::from_utf8(process.command(&["status"]).stdout).unwrap();
    let is_there =
        |start: &str, end: &str| said.lines().any(|line| line.starts_with(start) && line.ends_with(end));
    assert!(is_there("try ", "3            0") && is_there("bad ", " 3"), "{said}");
}

#[test]
fn a_request_that_is_tried_again_counts_once() {
    let off = Fake::http("off").refusing().start_in_thread().unwrap();
    let on = Fake::http("on").start_in_thread().unwrap();
    let keel = Keel::start(&support::load(&format!(
        "rate_limits: {{l: {{rate: 1/h, burst: 4}}}}\ntargets:\n  t: {{protocol: http, listener: 127.0.0.1:0, rate_limit: l, \
         health_check: off, backends: [{{url: 'http://{}'}}, {{url: 'http://{}'}}]}}\n",
        off.addr(),
        on.addr()
    )));
    let statuses: Vec<u16> = (0..6).map(|_| keel.client().get("/").status).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 429, 429]);
    assert!(keel.server.readings().retries > 0);
}

fn reloaded(lab: &Lab, limits: &str) -> Config {
    support::load(&text(limits, "", "x_real_ip: off", &["rate_limit: l"], &lab.backend))
}

#[test]
fn a_reload_keeps_what_is_missing_also_of_who_is_limited() {
    let lab = lab("rate: 1/h, burst: 3");
    assert_eq!(lab.passed("/0", ""), 3);
    let with = |limits: &str| lab.keel.reload(&reloaded(&lab, limits)).unwrap();
    with("l: {rate: 2/h, burst: 3}, other: {rate: 1/s}");
    assert_eq!(lab.passed("/0", ""), 0, "another rate fills no bucket");
    with("l: {rate: 2/h, burst: 5}");
    assert_eq!(lab.passed("/0", ""), 2, "five less the three that are missing");
    with("l: {rate: 2/h, burst: 1}");
    assert_eq!(lab.passed("/0", ""), 0);
    with("l: {rate: 2/h, burst: 3}");
    assert_eq!(lab.passed("/0", ""), 2, "emptier than empty it was not");
    assert_eq!(lab.counted("l"), reading(7, 43, 0));
}

#[test]
fn a_connection_that_is_kept_counts_under_the_new_limit() {
    let lab = lab("rate: 1/h, burst: 1");
    let mut client = lab.keel.client();
    assert_eq!([client.get("/0").status, client.get("/0").status], [200, 429]);
    lab.keel.reload(&reloaded(&lab, "l: {rate: 1/h, burst: 2}")).unwrap();
    assert_eq!([client.get("/0").status, client.get("/0").status], [200, 429]);
}

#[test]
fn workers_and_connections_share_one_bucket() {
    let lab = lab("rate: 1/h, burst: 500");
    let (address, passed) = (lab.keel.address(), std::sync::atomic::AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let mut client = Client::connect(address);
                let mine = (0..50).filter(|_| client.get("/0").status == 200).count();
                passed.fetch_add(mine, std::sync::atomic::Ordering::Relaxed);
            });
        }
    });
    assert_eq!(passed.into_inner(), 500);
}

#[test]
fn tcp_connections_that_come_too_soon_are_closed() {
    let backend = Fake::tcp("echo").behave(Behaviour::tcp(TcpMode::GreetAtEnd)).start_in_thread().unwrap();
    let keel = Keel::start(&support::load(&format!(
        "rate_limits: {{l: {{rate: 1/h, burst: 2, by: [client_ip, global]}}}}\nlisteners:\n  raw: {{bind: 127.0.0.1:0, protocol: tcp, \
         rate_limit: l, routes: [target: t]}}\ntargets:\n  t: {{health_check: off, backends: [{{url: 'tcp://{}'}}]}}\n",
        backend.addr()
    )));
    for number in 0..4 {
        let mut socket = connect(keel.address());
        let _ = socket.shutdown(std::net::Shutdown::Write);
        let got = read_to_end(&mut socket).unwrap_or_default();
        assert_eq!(got.is_empty(), number >= 2, "{number}");
    }
    until_ended(&keel, Cause::RateLimited, 2);
    eventually("all are closed", || keel.server.connections() == 0);
}
