//! What a scrape says is what was sent, and nothing that a client has written is in it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use fake_backend::{Authority, Running};

use super::support::process::{Process, whole};
use super::support::tls::{TLS13, TlsSocket, client_config};
use super::support::{Client, PATIENCE, eventually, fakes};

/// Series with their values.
pub(super) type Series = BTreeMap<String, f64>;

/// Sends a request and reads all of its answer: head and body, chunks taken apart.
fn exchange(mut stream: impl std::io::Read + std::io::Write, line: &str, more: &str) -> (String, String) {
    let _ = write!(stream, "{line} HTTP/1.1\r\nHost: anything.example\r\nConnection: close\r\n{more}\r\n");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let text = String::from_utf8(answer).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    if !head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        return (head.to_owned(), body.to_owned());
    }
    let (mut rest, mut whole) = (body, String::new());
    while let Some((length, behind)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        if length == 0 {
            return (head.to_owned(), whole);
        }
        whole += &behind[..length];
        rest = &behind[length + 2..];
    }
    panic!("it was cut: {head}");
}

fn over_tcp(address: SocketAddr, line: &str, more: &str) -> (String, String) {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    exchange(stream, line, more)
}

/// What a process says at its socket.
pub(super) fn scrape(process: &Process) -> Series {
    let (head, body) = exchange(UnixStream::connect(process.socket()).unwrap(), "GET /metrics", "");
    assert!(
        head.starts_with("HTTP/1.1 200 ") && head.contains("text/plain; version=0.0.4; charset=utf-8"),
        "{head}"
    );
    series(&body)
}

fn series(body: &str) -> Series {
    let mut all = Series::new();
    for line in body.lines().filter(|line| !line.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let before = all.insert(series.to_owned(), value.parse().unwrap());
        assert!(before.is_none(), "twice: {series}");
    }
    all
}

/// The sum of all series of a family that have all of these labels.
pub(super) fn sum(of: &Series, name: &str, labels: &[&str]) -> f64 {
    let is_it = |series: &&String| {
        let (family, own) = series.split_once('{').unwrap_or((series, ""));
        family == name && labels.iter().all(|label| own.contains(label))
    };
    of.iter().filter(|(series, _)| is_it(series)).map(|(_, value)| value).sum()
}

/// Where metrics are given over TCP.
fn metrics_listener(process: &Process) -> SocketAddr {
    let said = process.said();
    let line = said.iter().find_map(|line| line.split("metrics listener ").nth(1));
    let line = line.unwrap_or_else(|| panic!("no metrics listener: {said:#?}"));
    line.split(' ').next().unwrap().parse().unwrap()
}

fn config(backends: &[Running]) -> String {
    let each: String = backends
        .iter()
        .enumerate()
        .map(|(number, backend)| {
            format!("      - {{name: b{number}, host: 127.0.0.1, port: {}}}\n", backend.port())
        })
        .collect();
    format!(
        "workers: 2\nmetrics: {{listener: 127.0.0.1:0}}\nlisteners:\n  front:\n    bind: 127.0.0.1:0\n    routes:\n      \
         - {{name: shop, match: {{host: shop.example, path_prefix: /api}}, target: web}}\n      \
         - {{name: old, match: {{host: shop.example, path_prefix: /old}}, redirect: {{to: /api}}}}\n\
         targets:\n  web:\n    health_check: off\n    backends:\n{each}  \
         raw:\n    protocol: tcp\n    listener: 127.0.0.1:0\n    health_check: off\n    backends:\n      - {{host: 127.0.0.1, port: {}}}\n",
        backends[0].port()
    )
}

#[test]
fn everything_that_was_sent_is_counted_once_under_its_labels() {
    let backends = fakes(2);
    let process = Process::start(&config(&backends), 2);
    let mut client = Client::connect(process.address("front"));
    let mut get = |host: &str, path: &str| {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
        client.answer().status
    };
    for _ in 0..20 {
        assert_eq!(get("shop.example", "/api/x"), 200);
    }
    for _ in 0..3 {
        assert_eq!((get("shop.example", "/old/x"), get("other.example", "/")), (308, 404));
    }
    let before = scrape(&process);
    // The next request on the connection came after the last one was counted.
    assert_eq!(
        sum(&before, "evenkeel_requests_total", &["listener=\"front\"", "route=\"shop\"", "class=\"2xx\""]),
        20.0
    );
    let mut raw = Client::connect(process.address("raw"));
    assert_eq!(raw.get("/").status, 200);
    drop(raw);
    eventually("the connection is counted", || {
        sum(&scrape(&process), "evenkeel_requests_total", &["listener=\"raw\""]) == 1.0
    });
    // Who has asked last has its answer before that is counted.
    eventually("all are counted", || sum(&scrape(&process), "evenkeel_requests_total", &[]) == 27.0);
    let now = scrape(&process);
    let of = |name: &str, labels: &[&str]| sum(&now, name, labels);
    assert_eq!(of("evenkeel_requests_total", &["route=\"old\"", "class=\"3xx\""]), 3.0);
    assert_eq!(of("evenkeel_requests_total", &["route=\"no route\"", "class=\"4xx\""]), 3.0);
    assert_eq!(of("evenkeel_requests_total", &[]), 27.0);
    assert_eq!(of("evenkeel_worker_requests_total", &[]), 27.0);
    assert_eq!(of("evenkeel_upstream_requests_total", &["target=\"web\""]), 20.0);
    assert_eq!(of("evenkeel_upstream_attempts_total", &["backend=\"b0\""]), 10.0);
    assert_eq!(of("evenkeel_errors_total", &["target=\"no target\"", "cause=\"no_route\""]), 3.0);
    assert_eq!(of("evenkeel_request_duration_seconds_count", &["route=\"shop\""]), 20.0);
    assert_eq!(of("evenkeel_target_backend_seconds_count", &["target=\"web\""]), 20.0);
    assert_eq!(
        of("evenkeel_target_own_seconds_count", &["target=\"raw\""]),
        0.0,
        "a connection has no such time"
    );
    let (whole, own) =
        (of("evenkeel_target_duration_seconds_sum", &[]), of("evenkeel_target_own_seconds_sum", &[]));
    let backend = of("evenkeel_target_backend_seconds_sum", &[]);
    assert!(own > 0.0 && (whole - own - backend).abs() < 1e-6, "{whole} is {own} and {backend}");
    assert_eq!(
        (of("evenkeel_snapshots", &[]), of("evenkeel_ready", &[]), of("evenkeel_config_number", &[])),
        (1.0, 1.0, 1.0)
    );
    assert_eq!(of("evenkeel_target_backends", &["target=\"web\"", "state=\"up\""]), 2.0);
    assert!(of("process_resident_memory_bytes", &[]) > 1e6 && of("process_open_fds", &[]) > 5.0);
}

#[test]
fn whoever_watches_gets_three_paths_without_a_token_and_nothing_else() {
    let backends = fakes(1);
    let process = Process::start(&config(&backends), 2);
    let address = metrics_listener(&process);
    let status = |line: &str| {
        let (head, _) = over_tcp(address, line, "");
        head.split(' ').nth(1).unwrap().to_owned()
    };
    for (line, expected) in [
        ("GET /metrics", "200"),
        ("HEAD /metrics", "200"),
        ("GET /healthz", "200"),
        ("GET /readyz", "200"),
        ("POST /metrics", "405"),
        ("GET /metrics?name=x", "400"),
        ("GET /", "404"),
        ("GET /api/v1/status", "404"),
        ("GET /api/v1", "404"),
        ("POST /api/v1/config/reload", "404"),
        ("GET /metrics/..%2fapi/v1", "404"),
    ] {
        assert_eq!(status(line), expected, "{line}");
    }
    let (head, open) = over_tcp(
        address,
        "GET /metrics",
        "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n",
    );
    assert!(head.contains("application/openmetrics-text; version=1.0.0; charset=utf-8"), "{head}");
    assert!(open.ends_with("\n# EOF\n") && open.contains("# TYPE evenkeel_requests counter\n"), "{open}");
    let (_, plain) = over_tcp(address, "GET /metrics", "");
    assert!(!plain.contains("# EOF") && plain.contains("# TYPE evenkeel_requests_total counter\n"));
    let names =
        |text: &str| -> BTreeSet<String> { series(&text.replace("# EOF\n", "")).into_keys().collect() };
    assert_eq!(names(&open), names(&plain));
}

#[test]
fn nothing_that_a_client_writes_becomes_a_series() {
    let backends = fakes(1);
    let process = Process::start(&config(&backends), 2);
    let names = |of: Series| -> BTreeSet<String> { of.into_keys().collect() };
    let mut client = Client::connect(process.address("front"));
    let mut ask = |method: &str, host: &str, path: &str| {
        client.send(
            format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nX-Request-Id: {path}\r\nContent-Length: 0\r\n\r\n").as_bytes(),
        );
        assert!(client.answer().status >= 200);
    };
    // Everything that can happen has happened once.
    ask("GET", "shop.example", "/api/first");
    ask("GET", "first.example", "/");
    // A request is counted once its answer has gone out: the client may be ahead of that.
    let counted = |wanted: f64| {
        eventually("every request is counted", || {
            sum(&scrape(&process), "evenkeel_requests_total", &[]) == wanted
        });
        scrape(&process)
    };
    let before = names(counted(2.0));
    for number in 0..500 {
        ask(&format!("M{number}"), &format!("h{number}.example"), &format!("/p{number}?q={number}"));
        ask(&format!("N{number}"), "shop.example", &format!("/api/{number}"));
    }
    assert_eq!(names(counted(1002.0)), before);
}

#[test]
fn totals_stay_exact_while_backends_come_and_go() {
    let backends = fakes(4);
    let list = |these: &[usize]| {
        let each: Vec<String> = these
            .iter()
            .map(|number| format!("{{name: b{number}, host: 127.0.0.1, port: {}}}", backends[*number].port()))
            .collect();
        format!(
            "workers: 2\ntargets: {{web: {{protocol: http, listener: '127.0.0.1:0', health_check: off, backends: [{}]}}}}",
            each.join(", ")
        )
    };
    let process = Process::start(&list(&[0, 1]), 1);
    let mut sent = 0.0;
    for turn in 0..12 {
        let mut client = Client::connect(process.address("web"));
        for _ in 0..7 {
            assert_eq!(client.get("/").status, 200);
            sent += 1.0;
        }
        let these = [[0, 2], [0, 3], [1, 2], [0, 1]][turn % 4];
        process.reload(&list(&these));
        drop(client);
        eventually("all is counted", || sum(&scrape(&process), "evenkeel_requests_total", &[]) == sent);
        let now = scrape(&process);
        for family in ["evenkeel_upstream_requests_total", "evenkeel_upstream_attempts_total"] {
            assert_eq!(sum(&now, family, &[]), sent, "{family} {turn}");
        }
    }
}

#[test]
fn a_route_that_goes_to_and_fro_between_two_targets_forgets_no_request() {
    let backends = fakes(2);
    let to = |target: &str| {
        format!(
            "workers: 1\nlisteners: {{front: {{bind: '127.0.0.1:0', routes: [{{name: r, target: {target}}}]}}}}\n\
             targets:\n  blue: {{health_check: off, backends: [{{host: 127.0.0.1, port: {}}}]}}\n  \
             green: {{health_check: off, backends: [{{host: 127.0.0.1, port: {}}}]}}\n",
            backends[0].port(),
            backends[1].port()
        )
    };
    let process = Process::start(&to("blue"), 1);
    for turn in 1..=40 {
        let mut client = Client::connect(process.address("front"));
        assert_eq!(client.get("/").status, 200);
        process.reload(&to(if turn % 2 == 0 { "blue" } else { "green" }));
        drop(client);
        eventually("all is counted", || {
            sum(&scrape(&process), "evenkeel_requests_total", &["route=\"r\""]) == f64::from(turn)
        });
    }
}

#[test]
fn where_metrics_are_is_changed_by_a_restart_and_told_at_its_line() {
    let backends = fakes(1);
    let process = Process::start(&config(&backends), 2);
    let other = config(&backends).replacen("listener: 127.0.0.1:0", "listener: 127.0.0.1:1", 1);
    let line = process.reload(&other);
    assert!(line.contains("evenkeel.yaml:3: `metrics.listener` differs from what is in force"), "{line}");
    let now = scrape(&process);
    assert_eq!(sum(&now, "evenkeel_config_last_reload_successful", &[]), 0.0);
    assert_eq!(sum(&now, "evenkeel_config_reloads_total", &["outcome=\"refused\""]), 1.0);
    process.reload(&config(&backends).replace("workers: 2", "workers: 2\nshutdown_timeout: 7s"));
    let now = scrape(&process);
    assert_eq!(sum(&now, "evenkeel_config_last_reload_successful", &[]), 1.0);
    assert_eq!(sum(&now, "evenkeel_events_total", &["kind=\"reload\""]), 1.0);
    assert_eq!(sum(&now, "evenkeel_config_number", &[]), 2.0);
    // Two processes never share it.
    let second = process.folder().join("second.yaml");
    let taken = format!("metrics: {{listener: {}}}", metrics_listener(&process));
    std::fs::write(&second, whole(&config(&backends).replace("metrics: {listener: 127.0.0.1:0}", &taken)))
        .unwrap();
    let output = process.command(&["second.yaml"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("second.yaml:3: listener metrics: can't bind"), "{said}");
}

/// Since 1970.
fn now_in_seconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

#[test]
fn handshakes_certificates_limits_and_lists_are_told() {
    let begun = now_in_seconds();
    let backends = fakes(1);
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new("metrics");
    let issued = authority.issue(["localhost"]);
    std::fs::write(folder.path().join("a.pem"), issued.cert_pem).unwrap();
    std::fs::write(folder.path().join("a.key"), issued.key_pem).unwrap();
    let config = format!(
        "workers: 1\nrate_limits: {{few: {{rate: 1/h, burst: 2}}}}\naccess_lists: {{nobody: {{deny: 127.0.0.0/8}}}}\nlisteners:\n  \
         front:\n    bind: 127.0.0.1:0\n    protocol: https\n    tls: {{certificates: [{{cert_file: a.pem, cert_key: a.key}}]}}\n    \
         routes:\n      - {{name: shut, match: {{path_prefix: /shut}}, access: [nobody], target: web}}\n      \
         - {{name: few, rate_limit: [few], target: web}}\n\
         targets:\n  web:\n    health_check: off\n    backends: [{{host: 127.0.0.1, port: {}}}]\n",
        backends[0].port()
    );
    std::fs::write(folder.path().join("evenkeel.yaml"), whole(&config)).unwrap();
    let process = Process::start_in(folder, 1);
    let tls = Arc::new(client_config(&[authority.ca_pem()], TLS13, None));
    let open = || Client::over(TlsSocket::open(process.address("front"), &tls, "localhost").unwrap());
    let mut client = open();
    let mut get = |path: &str| client.ask(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")).status;
    assert_eq!([get("/"), get("/"), get("/"), get("/shut"), get("/shut")], [200, 200, 429, 403, 403]);
    open();
    // The client is ready before the server has read its last words.
    eventually("both handshakes are counted", || {
        sum(&scrape(&process), "evenkeel_tls_handshakes_total", &["version=\"1.3\""]) == 2.0
    });
    let now = scrape(&process);
    let of = |name: &str, labels: &[&str]| sum(&now, name, labels);
    assert_eq!(of("evenkeel_tls_handshakes_total", &["version=\"1.2\""]), 0.0);
    assert_eq!(of("evenkeel_rate_limit_requests_total", &["limit=\"few\"", "outcome=\"admitted\""]), 2.0);
    assert_eq!(of("evenkeel_rate_limit_requests_total", &["limit=\"few\"", "outcome=\"refused\""]), 1.0);
    assert_eq!(of("evenkeel_access_refused_total", &["list=\"nobody\""]), 2.0);
    // Who is refused on the way has a route and no target.
    assert_eq!(of("evenkeel_errors_total", &["target=\"no target\"", "cause=\"rate_limited\""]), 1.0);
    assert_eq!(of("evenkeel_errors_total", &["target=\"no target\"", "cause=\"access_denied\""]), 2.0);
    assert_eq!(of("evenkeel_requests_total", &["route=\"shut\"", "class=\"4xx\""]), 2.0);
    assert_eq!(of("evenkeel_requests_total", &["route=\"few\""]), 3.0);
    let ends = of("evenkeel_certificate_expires_timestamp_seconds", &["listener=\"front\"", "a.pem"]);
    let started = of("process_start_time_seconds", &[]);
    assert!(started > 1.7e9 && ends > started, "{started} {ends}");
    let since = now_in_seconds() - begun;
    let uptime = of("evenkeel_uptime_seconds", &[]);
    assert!((0.0..=since + 1.0).contains(&uptime), "it is not as old as the machine: {uptime}");
    assert!(started >= begun - 1.0, "{started} {begun}");
}
