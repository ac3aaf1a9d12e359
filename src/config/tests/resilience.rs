//! Keys for bad times, from text to the accepted form.

use std::time::Duration;

use super::certificates::Certs;
use super::every_key::{Check, health, of, probe, target};
use super::*;
use crate::config::model::resilience::{BreakerConfig, Hedging, Outlier, Resilience, Retries};

const SECOND: Duration = Duration::from_secs(1);

fn breaker(config: &Config) -> &BreakerConfig {
    of(config).1.resilience.breaker.as_ref().unwrap()
}

fn outlier(config: &Config) -> &Outlier {
    of(config).1.resilience.outlier.as_ref().unwrap()
}

fn retries(config: &Config) -> &Retries {
    of(config).1.resilience.retries.as_ref().unwrap()
}

fn hedging(config: &Config) -> Option<&Hedging> {
    of(config).1.resilience.hedging.as_ref()
}

/// One row per key, as in `every_key`.
pub(super) fn rows() -> Vec<(&'static str, String, Check)> {
    let breaker_with = |key: &str| target(&format!("breaker: {{{key}}}"));
    let outlier_with = |key: &str| target(&format!("outlier: {{{key}}}"));
    let retries_with = |key: &str| target(&format!("retries: {{{key}}}"));
    vec![
        ("targets.<name>.health_check.body", health("body: ready"), |c| {
            probe(c).body.as_deref() == Some("ready")
        }),
        ("targets.<name>.health_check.agent", health("agent: 9000"), |c| probe(c).agent == Some(9000)),
        ("targets.<name>.breaker", target("breaker: off"), |c| of(c).1.resilience.breaker.is_none()),
        ("targets.<name>.breaker.failures", breaker_with("failures: 3"), |c| breaker(c).failures == 3),
        ("targets.<name>.breaker.open", breaker_with("open: 1s"), |c| breaker(c).open == SECOND),
        ("targets.<name>.breaker.statuses", breaker_with("statuses: [500, 502-504]"), |c| {
            breaker(c).statuses == [500..=500, 502..=504]
        }),
        ("targets.<name>.outlier", target("outlier: no"), |c| of(c).1.resilience.outlier.is_none()),
        ("targets.<name>.outlier.failures", outlier_with("failures: off"), |c| outlier(c).failures == 0),
        ("targets.<name>.outlier.error_rate", outlier_with("error_rate: 30%"), |c| {
            outlier(c).error_rate == 30
        }),
        ("targets.<name>.outlier.latency", outlier_with("latency: 9"), |c| outlier(c).latency == 9),
        ("targets.<name>.outlier.window", outlier_with("window: 1s"), |c| outlier(c).window == SECOND),
        ("targets.<name>.outlier.requests", outlier_with("requests: 9"), |c| outlier(c).requests == 9),
        ("targets.<name>.outlier.ejection", outlier_with("ejection: 2s"), |c| {
            outlier(c).ejection == 2 * SECOND
        }),
        ("targets.<name>.outlier.ejection_max", outlier_with("ejection_max: 2s"), |c| {
            outlier(c).ejection_max == 2 * SECOND
        }),
        ("targets.<name>.outlier.max_ejected", outlier_with("max_ejected: 10"), |c| {
            outlier(c).max_ejected == 10
        }),
        ("targets.<name>.retries", target("retries: off"), |c| of(c).1.resilience.retries.is_none()),
        ("targets.<name>.retries.attempts", retries_with("attempts: 2"), |c| retries(c).attempts == 2),
        ("targets.<name>.retries.on", retries_with("on: [timeout, 502]"), |c| {
            *retries(c)
                == Retries {
                    on_connect: false,
                    on_reset: false,
                    on_timeout: true,
                    on_statuses: vec![502..=502],
                    ..Retries::default()
                }
        }),
        ("targets.<name>.retries.budget", retries_with("budget: 100"), |c| retries(c).budget == 100),
        ("targets.<name>.retries.backoff", retries_with("backoff: off"), |c| retries(c).backoff.is_zero()),
        ("targets.<name>.hedging", target("hedging: on"), |c| hedging(c) == Some(&Hedging::default())),
        ("targets.<name>.hedging.percentile", target("hedging: {percentile: p99}"), |c| {
            hedging(c).is_some_and(|hedging| hedging.percentile == 99)
        }),
        ("targets.<name>.hedging.budget", target("hedging: {budget: 1%}"), |c| {
            hedging(c).is_some_and(|hedging| hedging.budget == 1)
        }),
        ("targets.<name>.max_in_flight", target("max_in_flight: 7"), |c| {
            of(c).1.resilience.max_in_flight == Some(7)
        }),
        ("targets.<name>.queue", target("queue: off"), |c| of(c).1.resilience.queue == 0),
        ("targets.<name>.queue.size", target("queue: {size: 7}"), |c| of(c).1.resilience.queue == 7),
        ("targets.<name>.queue.timeout", target("queue: {timeout: 1s}"), |c| {
            of(c).1.timeouts.queue == SECOND
        }),
        ("targets.<name>.panic_threshold", target("panic_threshold: off"), |c| {
            of(c).1.resilience.panic_threshold == 0
        }),
        ("targets.<name>.timeouts.queue", target("timeouts: {queue: 1s}"), |c| {
            of(c).1.timeouts.queue == SECOND
        }),
        ("targets.<name>.timeouts.attempt", target("timeouts: {attempt: 1s}"), |c| {
            of(c).1.timeouts.attempt == Some(SECOND)
        }),
        ("targets.<name>.timeouts.total", target("timeouts: {total: 1s}"), |c| {
            of(c).1.timeouts.total == Some(SECOND)
        }),
        ("targets.<name>.limits.connections", target("limits: {connections: 9}"), |c| {
            of(c).0.limits.connections == Some(9)
        }),
        (
            "targets.<name>.limits.connections_per_client",
            target("limits: {connections_per_client: 9}"),
            |c| of(c).0.limits.connections_per_client == Some(9),
        ),
    ]
}

/// A TCP target with these keys.
fn tcp(keys: &str) -> String {
    target(keys).replace("protocol: http", "protocol: tcp")
}

fn problems(text: &str) -> String {
    load_with(text, &Flags::default()).expect_err(text).to_string()
}

fn warnings(text: &str) -> Vec<String> {
    load_with(text, &Flags::default()).unwrap_or_else(|problems| panic!("{problems}")).warnings
}

#[test]
fn without_keys_everything_is_as_the_model_says() {
    assert_eq!(of(&config(WEB)).1.resilience, Resilience::default());
    // Empty groups say nothing either.
    let empty = target("breaker: {}, outlier: {}, retries: {}, queue: {}, timeouts: {}, limits: {}");
    assert_eq!(of(&config(&empty)).1.resilience, Resilience::default());
    assert_eq!(config(&empty), config(WEB));
}

#[test]
fn a_tcp_target_repeats_nothing_but_what_was_never_sent() {
    let only = Retries { on_reset: false, on_statuses: Vec::new(), ..Retries::default() };
    assert_eq!(*retries(&config(&tcp("retries: {}"))), only);
    assert_eq!(*retries(&config(&tcp("balance: random"))), only);
    assert_eq!(*retries(&config(&tcp("retries: {on: connect}"))), only);
    let text = problems(&tcp("retries: {on: [connect, reset, timeout, 502-504], budget: 5%, backoff: off}"));
    for word in ["`reset` in `on`", "`timeout` in `on`", "`502-504` in `on`", "`budget`", "`backoff`"] {
        assert!(text.contains(&format!("{word} belongs to HTTP")), "{word}: {text}");
    }
    assert!(text.ends_with("5 problems"), "{text}");
}

#[test]
fn a_tcp_target_has_limits_a_queue_and_a_breaker() {
    let text = tcp(
        "limits: {connections: 5, connections_per_client: 2}, max_in_flight: 3, queue: {size: 4, timeout: 1s}, breaker: {failures: 9}, outlier: {latency: off}, panic_threshold: 10%",
    );
    let config = config(&text);
    let (listener, target) = of(&config);
    assert_eq!((listener.limits.connections, listener.limits.connections_per_client), (Some(5), Some(2)));
    assert_eq!((target.resilience.max_in_flight, target.resilience.queue), (Some(3), 4));
    assert_eq!((target.timeouts.queue, breaker(&config).failures), (SECOND, 9));
    assert_eq!((outlier(&config).latency, target.resilience.panic_threshold), (0, 10));
    for (keys, word) in [
        ("hedging: on", "hedging"),
        ("hedging: off", "hedging"),
        ("breaker: {statuses: 500}", "statuses"),
        ("max_in_flight: adaptive", "adaptive"),
        ("timeouts: {attempt: 1s}", "attempt"),
        ("timeouts: {total: off}", "total"),
        ("limits: {body: 1MB}", "body"),
    ] {
        let text = problems(&tcp(keys));
        assert!(
            text.contains(&format!("`{word}` belongs to HTTP")) && text.ends_with("\n1 problem"),
            "{text}"
        );
    }
}

#[test]
fn what_is_in_force_is_shown_as_it_would_be_written() {
    let keys = "breaker: {statuses: [500, 502-504]}, outlier: {failures: off, error_rate: 30, ejection: 1m}, \
                retries: {on: 503, backoff: 0, budget: 10}, hedging: on, max_in_flight: 9, queue: {timeout: 2s}, \
                panic_threshold: 0, timeouts: {total: 30s, half_closed: 0s}, limits: {connections: 4}";
    let rows = effective(&target(keys), &Flags::default());
    for row in [
        "breaker.failures = 20 (default)",
        "breaker.statuses = [500, 502-504] (t.yaml:1)",
        "outlier.failures = off (t.yaml:1)",
        "outlier.error_rate = 30% (t.yaml:1)",
        "outlier.ejection = 1m (t.yaml:1)",
        "outlier.ejection_max = 1m (default)",
        "outlier.max_ejected = 50% (default)",
        "retries.on = 503 (t.yaml:1)",
        "retries.backoff = off (t.yaml:1)",
        "retries.budget = 10% (t.yaml:1)",
        "hedging = on (t.yaml:1)",
        "hedging.percentile = 95 (default)",
        "hedging.budget = 5% (default)",
        "max_in_flight = 9 (t.yaml:1)",
        "queue.size = 1024 (default)",
        "panic_threshold = off (t.yaml:1)",
        "timeouts.queue = 2s (t.yaml:1)",
        "timeouts.half_closed = 0s (t.yaml:1)",
        "timeouts.attempt = off (default)",
        "timeouts.total = 30s (t.yaml:1)",
        "limits.connections = 4 (t.yaml:1)",
        "limits.connections_per_client = off (default)",
    ] {
        let row = format!("targets.web.{row}");
        assert!(rows.contains(&row), "{row} is not in {rows:#?}");
    }
    let rows = effective(&target("max_in_flight: adaptive"), &Flags::default());
    for row in [
        "max_in_flight = adaptive (t.yaml:1)",
        "queue.size = 1024 (default)",
        "timeouts.queue = 5s (default)",
    ] {
        assert!(rows.contains(&format!("targets.web.{row}")), "{row} is not in {rows:#?}");
    }
    // Of what has no effect nothing is shown.
    let rows = effective(&target("outlier: off, breaker: off, retries: off"), &Flags::default());
    for key in ["outlier.", "breaker.", "retries.", "hedging.", "queue", "panic_threshold", "timeouts.queue"]
    {
        assert!(!rows.iter().any(|row| row.starts_with(&format!("targets.web.{key}"))), "{key}: {rows:#?}");
    }
    assert!(rows.iter().any(|row| row == "targets.web.retries = off (t.yaml:1)"), "{rows:#?}");
    assert!(rows.iter().any(|row| row == "targets.web.hedging = off (default)"), "{rows:#?}");
}

#[test]
fn a_limit_is_a_number_or_found_out() {
    let limit = |value: &str| {
        let config = config(&target(&format!("max_in_flight: {value}")));
        (of(&config).1.resilience.max_in_flight, of(&config).1.resilience.adaptive)
    };
    assert_eq!(limit("7"), (Some(7), false));
    assert_eq!(limit("off"), (None, false));
    for word in ["adaptive", "Adaptive", "'ADAPTIVE'"] {
        assert_eq!(limit(word), (None, true), "{word}");
    }
    let expected = "expected: `off`, `adaptive`, or a whole number from 1 to 1000000";
    for (value, hint) in [
        ("adaptiv", "did you mean `adaptive`?"),
        ("'7'", "write 7 without quotes"),
        ("0", "write `off`"),
        ("on", ""),
        ("[1]", ""),
    ] {
        let text = problems(&target(&format!("max_in_flight: {value}")));
        assert!(text.contains(expected) && text.contains(hint) && text.ends_with("1 problem"), "{text}");
    }
}

#[test]
fn the_time_in_the_queue_has_two_names_and_one_value() {
    let queue = |keys: &str| of(&config(&target(keys))).1.timeouts.queue;
    assert_eq!(queue("queue: {timeout: 2s}, timeouts: {queue: 2s}"), 2 * SECOND);
    let text = problems(
        "targets:\n  web:\n    listener: 1\n    queue: {timeout: 2s}\n    timeouts: {queue: 3s}\n    backends: [{host: a, port: 1}]\n",
    );
    assert!(
        text.contains(
            "t.yaml:5:23: `timeouts.queue` is 3s, but `queue.timeout` is 2s (line 4): they are one setting"
        ),
        "{text}"
    );
}

#[test]
fn what_waits_for_another_key_is_a_warning() {
    let found = |keys: &str| warnings(&target(keys));
    assert_eq!(
        found("max_in_flight: 1, queue: {size: 5}, timeouts: {queue: 1s}, panic_threshold: 10%"),
        [""; 0]
    );
    assert_eq!(found("max_in_flight: adaptive, queue: {size: 5}, timeouts: {queue: 1s}"), [""; 0]);
    // `off` is as it is.
    assert_eq!(found("queue: off, outlier: off, panic_threshold: off"), [""; 0]);
    for (keys, key) in [
        ("queue: {size: 5}", "`queue`"),
        ("max_in_flight: off, queue: {}", "`queue`"),
        ("timeouts: {queue: 1s}", "`timeouts.queue`"),
        ("max_in_flight: 5, queue: off, timeouts: {queue: 1s}", "`timeouts.queue`"),
        ("outlier: off, panic_threshold: 10%", "`panic_threshold`"),
    ] {
        let warnings = found(keys);
        let start = format!("t.yaml:1: {key} of the target `web` has no effect: ");
        assert!(warnings.len() == 1 && warnings[0].starts_with(&start), "{keys}: {warnings:?}");
    }
}

#[test]
fn traces_that_go_where_something_else_is_spoken_or_open_to_all_are_a_warning() {
    let certs = Certs::shared();
    let found = |otlp: &str| {
        let file = certs.path("otlp.headers");
        let tracing = format!("tracing: {{otlp: '{otlp}', headers_file: {file}}}");
        warnings(&format!("{tracing}\n{}", target("retries: off")))
    };
    assert_eq!(found("http://127.0.0.1:4318"), [""; 0]);
    assert_eq!(found("https://c.example:4318"), [""; 0]);
    let [grpc] = &found("http://localhost:4317")[..] else { panic!("one") };
    assert!(grpc.contains("`otlp` has the port 4317"), "{grpc}");
    let [open] = &found("http://c.example")[..] else { panic!("one") };
    assert!(open.contains("is sent in plain text"), "{open}");
}

#[test]
fn thresholds_of_scale_that_no_target_can_meet_are_a_warning() {
    let found = |scale: &str, keys: &str| warnings(&format!("scale: {{{scale}}}\n{}", target(keys)));
    let both = "out: {queued: 100}, in: {busy: 20%}";
    assert_eq!(found(both, "max_in_flight: 5"), [""; 0]);
    assert_eq!(found(both, "max_in_flight: adaptive"), [""; 0]);
    let bare = found(both, "retries: off");
    assert!(bare.len() == 2 && bare.iter().all(|text| text.starts_with("t.yaml:1: `scale.")), "{bare:?}");
    let short = found(both, "max_in_flight: 5, queue: {size: 100}");
    assert_eq!(short, ["t.yaml:1: `scale.out` has no effect: in no target more than 100 requests can wait"]);
    assert_eq!(found("out: {}", "retries: off"), [""; 0], "what nobody has written is nothing to warn of");
}

#[test]
fn a_target_without_anybody_in_service_is_a_warning() {
    let found = |backends: &str| {
        let text = "targets: {web: {protocol: http, listener: 8080, backends: [";
        warnings(&format!("{text}{backends}]}}}}\n"))
    };
    let (a, b) = ("{host: a, port: 1, state: drain}", "{host: b, port: 1, state: down}");
    assert_eq!(
        found(&format!("{a}, {b}")),
        ["t.yaml:1: no backend of the target `web` has `state: up`: it serves no new client"]
    );
    assert_eq!(found(&format!("{a}, {{host: b, port: 1, weight: 0}}")).len(), 1);
    assert_eq!(found(&format!("{a}, {{host: b, port: 1}}")), [""; 0]);
    assert_eq!(found("{host: a, port: 1}, {host: b, port: 1, weight: 0}"), [""; 0]);
}

#[test]
fn the_words_of_others_for_a_state_are_answered_with_ours() {
    for (word, ours) in [("maint", "down"), ("disabled", "down"), ("ready", "up"), ("Draining", "drain")] {
        let line = format!(
            "targets: {{web: {{listener: 1, protocol: http, backends: [{{host: a, port: 1, state: {word}}}]}}}}\n"
        );
        let text = problems(&line);
        assert!(text.contains("expected: `up`, `drain` or `down`"), "{text}");
        assert!(text.contains(&format!("write `{ours}`")), "{text}");
    }
}

#[test]
fn a_long_ejection_needs_no_longer_maximum() {
    let ejection = |keys: &str| {
        let config = config(&target(&format!("outlier: {{{keys}}}")));
        (outlier(&config).ejection.as_secs(), outlier(&config).ejection_max.as_secs())
    };
    assert_eq!(ejection("ejection: 1m"), (60, 60));
    assert_eq!(ejection("ejection: 2s"), (2, 30));
    assert_eq!(ejection("ejection: 2s, ejection_max: 2s"), (2, 2));
    let text = problems(&target("outlier: {ejection_max: 500ms}"));
    assert!(text.contains("is 500ms, which is less than `ejection` (1s, the default)"), "{text}");
    // One fault is one problem.
    for keys in ["ejection: soon, ejection_max: 500ms", "ejecton: 100ms, ejection_max: 500ms"] {
        assert!(problems(&target(&format!("outlier: {{{keys}}}"))).ends_with("\n1 problem"), "{keys}");
    }
}

#[test]
fn values_from_the_environment_switch_and_count() {
    let text = target("breaker: '${SWITCH}', max_in_flight: '${PORT}', retries: {backoff: '${SWITCH}'}");
    let config = config(&text);
    assert_eq!(of(&config).1.resilience.breaker, None);
    assert_eq!(of(&config).1.resilience.max_in_flight, Some(8081));
    assert!(retries(&config).backoff.is_zero());
}
