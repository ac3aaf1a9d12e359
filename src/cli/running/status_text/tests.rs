use std::collections::BTreeMap;

use super::*;
use crate::admin::status::report::{
    ConnectionReport, LatencyReport, ProbeReport, ProcessReport, TrafficReport, UpstreamReport,
};

fn rate(requests: f64, errors: f64) -> Option<RateReport> {
    Some(RateReport { requests, errors, over_ms: 10_000 })
}

fn backend(name: &str, state: &str, source: &str, reason: &str) -> BackendReport {
    let input = |of: &str, says: &str, reason: &str| InputReport {
        source: of.into(),
        says: says.into(),
        reason: reason.into(),
        since_ms: 0,
        age_ms: 192_000,
    };
    BackendReport {
        target: "web".into(),
        name: name.into(),
        address: "127.0.0.1:40001".into(),
        tls: false,
        state: state.into(),
        source: source.into(),
        reason: reason.into(),
        since_ms: 0,
        age_ms: 12_000,
        inputs: vec![
            input("operator", "up", ""),
            input("name", "resolved", "a literal address"),
            input("probe", "bad", reason),
            input("agent", "nothing", ""),
            input("breaker", "closed", "no failures"),
            input("outlier", "fine", "no errors"),
        ],
        weight: 1,
        agent_share: 100,
        share: if state == "up" { 100.0 / 3.0 } else { 0.0 },
        priority: 0,
        zone: None,
        active: 2,
        elsewhere: 0,
        is_own: None,
        idle_connections: 3,
        traffic: TrafficReport::default(),
        attempts: 1_204,
        failures: 3,
        rate: rate(17.64, 0.0),
        first_byte: None,
        last_probe: Some(ProbeReport {
            at_ms: 0,
            age_ms: 800,
            result: "bad".into(),
            reason: Some(reason.into()),
            took_ms: 0.4,
        }),
    }
}

fn target(name: &str, state: &str, backends: Vec<BackendReport>) -> TargetReport {
    let (left, of) = (backends.iter().filter(|one| one.state == "up").count(), backends.len());
    TargetReport {
        name: name.into(),
        state: state.into(),
        reason: format!("{left} of {of} backends get requests"),
        since_ms: 0,
        age_ms: 192_000,
        protocol: "http".into(),
        balance: "round_robin".into(),
        left,
        of,
        active: 2,
        waiting: 0,
        max_in_flight: None,
        scale: None,
        panics: false,
        stand_ins: 0,
        traffic: TrafficReport {
            requests: 1_204,
            by_class: BTreeMap::from([("5xx".into(), 3)]),
            ..Default::default()
        },
        rate: rate(35.2, 0.3),
        first_byte: Some(LatencyReport { p50_ms: 0.42, p99_ms: 31.0 }),
        copies: None,
        names: Vec::new(),
        backends,
    }
}

fn listener(name: &str, protocol: &str, addresses: &[&str]) -> ListenerReport {
    ListenerReport {
        name: name.into(),
        state: "listening".into(),
        reason: "its addresses are bound".into(),
        since_ms: 0,
        age_ms: 192_000,
        protocol: protocol.into(),
        addresses: addresses.iter().map(ToString::to_string).collect(),
        targets: vec!["web".into()],
        connections: 3,
        connections_limit: None,
        connections_per_client: None,
        traffic: TrafficReport::default(),
        rate: rate(35.2, 0.3),
        certificates: Vec::new(),
    }
}

fn report(targets: Vec<TargetReport>) -> StatusReport {
    StatusReport {
        process: ProcessReport {
            version: "0.1.0".into(),
            name: "demo".into(),
            pid: 4711,
            config: None,
            config_number: 1,
            workers: 2,
            started_ms: 0,
            uptime_ms: 192_000,
            blocked: 0,
            trial: None,
        },
        connections: ConnectionReport { open: 12, limit: 512, accepted: 99, refused: 0 },
        upstream: UpstreamReport { opened: 9, reused: 90, retries: 0 },
        causes: BTreeMap::new(),
        cache: CacheReport::default(),
        listeners: vec![
            listener("web", "http", &["127.0.0.1:8080"]),
            listener("tcp", "tcp", &["0.0.0.0:9090", "[::]:9090"]),
        ],
        webhooks: Vec::new(),
        rate_limits: Vec::new(),
        access_lists: Vec::new(),
        targets,
    }
}

#[test]
fn whom_rules_with_a_name_have_refused_stands_below_the_listeners() {
    let limit = |name: &str, dry_run| RateLimitReport {
        name: name.into(),
        dry_run,
        admitted: 9_000,
        refused: if dry_run { 0 } else { 12 },
        would_refuse: if dry_run { 7 } else { 0 },
        crowded: 3,
    };
    let mut of = report(Vec::new());
    of.rate_limits = vec![limit("api", false), limit("try", true)];
    of.access_lists = vec![AccessListReport { name: "offices".into(), refused: 41 }];
    let text = everything(&of);
    let lines = [
        "RATE LIMIT                   PASSED      REFUSED  WOULD REFUSE      CROWDED",
        "api                            9000           12             -            3",
        "try                            9000            0             7            3",
        "",
        "ACCESS LIST                              REFUSED",
        "offices                                       41",
    ];
    assert!(text.ends_with(&format!("\n\n{}\n", lines.join("\n"))), "{text}");
}

#[test]
fn everything_is_understood_at_a_glance() {
    let web = target(
        "web",
        "up",
        vec![
            backend("fake-1", "up", "probe", "the first probe passed"),
            backend("fake-2", "down", "probe", "status 503"),
            backend("fake-3", "draining", "operator", "drained by hand (uid 0)"),
        ],
    );
    let text = everything(&report(vec![web]));
    assert_eq!(
        text,
        "\
evenkeel 0.1.0, process 4711, up for 3m12s, config 1
  demo: without a config file
  12 of 512 connections, 70 requests/s, 0.6 errors/s
  all targets are up, 2 backends are not up

LISTENER               SPEAKS ADDRESS                      OPEN    REQ/S   ERR/S
web                    http   127.0.0.1:8080                  3       35     0.3
tcp                    tcp    0.0.0.0:9090                    3       35     0.3
                              [::]:9090

web is up for 3m12s: 1 of 3 backends get requests
    BACKEND                STATE       FOR ACTIVE WEIGHT SHARE    REQ/S   ERR/S
    fake-1                 up          12s      2      1   33%       18       0
  ! fake-2                 down        12s      2      1    0%       18       0
      status 503 (probe)
  ~ fake-3                 draining    12s      2      1    0%       18       0
      drained by hand (uid 0) (operator)
"
    );
}

#[test]
fn a_target_that_is_not_up_is_named_first() {
    let api = target("api", "down", vec![backend("b", "down", "probe", "connection refused")]);
    let backups =
        target("cms", "backups", vec![backend("c", "down", "breaker", "20 attempts in a row failed")]);
    let text = everything(&report(vec![api, backups]));
    assert!(text.contains("\n  NOT UP: api (down), cms (on backups); 2 backends are not up\n"), "{text}");
    assert!(text.contains("\n! api is down for 3m12s: 0 of 1 backends get requests\n"), "{text}");
}

#[test]
fn no_line_is_longer_than_a_terminal() {
    let long = "x".repeat(200);
    let mut odd = backend(&long, "down", "probe", &long);
    odd.rate = rate(1_234_567.0, 123_456.0);
    (odd.active, odd.weight, odd.age_ms) = (999_999, 256, u64::MAX / 1_000_000);
    let mut whole = report(vec![target(&long, "backups", vec![odd.clone()])]);
    whole.process.config = Some(format!("/etc/{long}/evenkeel.yaml"));
    whole.listeners[0].name = long.clone();
    whole.listeners[0].addresses = vec![format!("unix:/run/{long}")];
    let texts = [everything(&whole), one_target(&whole.targets[0]), one_backend(&odd)];
    for line in texts.iter().flat_map(|text| text.lines()) {
        assert!(line.chars().count() <= COLUMNS, "{line}");
    }
}

#[test]
fn a_backend_shows_what_its_state_rests_on() {
    let text = one_backend(&backend("fake-2", "down", "probe", "status 503"));
    assert_eq!(
        text,
        "\
web/fake-2 is down for 12s: status 503 (probe)
  at 127.0.0.1:40001

  INPUT     SAYS          FOR  WHY
  operator  up          3m12s
  name      resolved    3m12s  a literal address
* probe     bad         3m12s  status 503
  agent     nothing     3m12s
  breaker   closed      3m12s  no failures
  outlier   fine        3m12s  no errors

  last probe  bad, 0s ago, in 0.4ms: status 503
  requests    18/s, 0 failures/s; 2 active, 3 idle connections
  in all      1204 attempts, 3 of them failed
  weight      1; 0% of the requests of new clients
"
    );
    let text = one_target(&target("web", "up", vec![backend("a", "up", "probe", "fine")]));
    assert!(text.contains("\n  http, round_robin; 2 active, 0 waiting\n"), "{text}");
    assert!(text.contains("\n  1204 ended since the start, 3 of them with 5xx\n"), "{text}");
    assert!(text.contains("\n  first byte within 0.4ms (half of them) and 31ms (99 %)\n"), "{text}");
    assert!(!text.contains("copies"), "{text}");
    let by_cause = BTreeMap::from([("mirror_full".into(), 17), ("connect_failed".into(), 2)]);
    let copies = Some(CopyReport { chosen: 120, answered: 100, by_cause });
    let text = one_target(&TargetReport { copies, ..target("shadow", "up", Vec::new()) });
    let told = "\n  120 requests were to be copied here, 100 copies were answered\n    2 not: connect_failed\n    17 not: mirror_full\n";
    assert!(text.contains(told), "{text}");
}

#[test]
fn ages_and_rates_have_few_figures() {
    let spans = [0, 999, 59_999, 60_000, 3_599_999, 3_600_000, 90_000_000].map(span);
    assert_eq!(spans, ["0s", "0s", "59s", "1m00s", "59m59s", "1h00m", "1d01h"]);
    assert_eq!([0.0, 0.04, 9.94, 10.0, 1234.5].map(number), ["0", "0.0", "9.9", "10", "1234"]);
    assert_eq!([0.42, 31.0, 1_500.0].map(precise), ["0.4ms", "31ms", "1.5s"]);
}
