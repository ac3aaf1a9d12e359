//! The whole way from text and flags to the accepted form.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

mod access;
mod actions;
mod auth;
mod balance;
mod beyond;
mod cache;
mod dialing;
mod every_key;
mod flags;
mod hostile;
mod http2;
mod include;
mod listeners;
mod passthrough;
mod proxy_protocol;
mod rates;
mod redirects;
mod resilience;
mod routing_tests;
mod schema;
mod secured;
mod tokens;

use std::path::Path;

use beyond::{cluster, found};
use secured::{certificate_folders, certificates, offers, ordered};

use super::*;

/// An environment with one variable.
fn env(name: &str) -> Option<String> {
    match name {
        "PORT" => Some("8081".into()),
        "WORD" => Some("no".into()),
        "SWITCH" => Some("off".into()),
        _ => None,
    }
}

fn load_with(text: &str, flags: &Flags) -> Result<Loaded, Problems> {
    load_text(text, "t.yaml", Path::new("."), flags, &env)
}

fn config(text: &str) -> Config {
    load_with(text, &Flags::default()).unwrap_or_else(|problems| panic!("{problems}\n{text}")).config
}

/// The messages of a text that does not load.
fn messages(text: &str, flags: &Flags) -> Vec<String> {
    match load_with(text, flags) {
        Ok(_) => panic!("this loads:\n{text}"),
        Err(problems) => problems.list().iter().map(|problem| problem.message.clone()).collect(),
    }
}

/// `path = value (origin)` of every effective value.
fn effective(text: &str, flags: &Flags) -> Vec<String> {
    let loaded = load_with(text, flags).unwrap_or_else(|problems| panic!("{problems}"));
    loaded.effective.iter().map(|row| format!("{} = {} ({})", row.path, row.value, row.origin)).collect()
}

const WEB: &str = "targets: {web: {protocol: http, listener: 8080, backends: [{host: a, port: 1}]}}\n";

#[test]
fn defaults_are_those_of_the_contract() {
    let config = config("targets: {t: {listener: 9090, backends: [{host: a, port: 1}]}}");
    assert_eq!(config.listeners[0].binds, [model::Bind::Tcp("127.0.0.1:9090".parse().unwrap())]);
    assert_eq!(config.targets[0].protocol, model::Protocol::Tcp);
    assert_eq!(config.shutdown_timeout.as_secs(), 30);
    assert_eq!(
        (config.max_connections, config.access_log, config.log_level),
        (None, None, model::LogLevel::Info)
    );
    assert_eq!(config.workers, std::thread::available_parallelism().unwrap().get());
    let health = config.targets[0].health.clone().unwrap();
    assert_eq!((health.interval.as_secs(), health.timeout.as_secs(), health.rise, health.fall), (2, 1, 2, 3));
    assert_eq!((health.expect, health.host), (vec![200..=399], None));
    assert_eq!(config.targets[0].timeouts, model::Timeouts::default());
    assert_eq!(config.listeners[0].limits, model::Limits::default());
    assert_eq!(config.listeners[0].client_timeouts, model::ClientTimeouts::default());
    assert_eq!(config.targets[0].backends[0].name, "a:1");
    assert_eq!(config.targets[0].backends[0].probe_path, None);
}

#[test]
fn a_star_binds_v6_then_v4() {
    let config = config("targets: {t: {listener: \"*:90\", backends: [{host: a, port: 1}]}}");
    let binds: Vec<_> = config.listeners[0].binds.iter().map(|bind| format!("{bind:?}")).collect();
    assert_eq!(binds, ["Tcp([::]:90)", "Tcp(0.0.0.0:90)"]);
}

#[test]
fn the_nearest_health_path_wins() {
    let paths = |text: &str| -> Vec<Option<String>> {
        config(text).targets[0].backends.iter().map(|backend| backend.probe_path.clone()).collect()
    };
    let both = "backends: [{host: a, port: 1, health_path: /own}, {host: b, port: 1}]";
    let with = format!("targets: {{t: {{listener: 1, health_check: {{path: /all}}, {both}}}}}");
    assert_eq!(paths(&with), [Some("/own".into()), Some("/all".into())]);
    assert_eq!(paths(&format!("targets: {{t: {{listener: 1, {both}}}}}")), [Some("/own".into()), None]);
}

#[test]
fn a_health_path_may_stay_while_checks_are_off() {
    let text =
        "targets: {t: {listener: 1, health_check: off, backends: [{host: a, port: 1, health_path: /p}]}}";
    let loaded = load_text(text, "t.yaml", Path::new(""), &Flags::default(), &env).unwrap();
    assert_eq!(loaded.config.targets[0].health, None);
    let row = loaded.effective.iter().find(|row| row.path.ends_with("health_path")).unwrap();
    assert_eq!(row.value, "/p (not asked for)");
}

#[test]
fn on_a_tcp_target_idle_and_tunnel_both_bound_silence() {
    let tunnel = |timeouts: &str| {
        let text = format!(
            "targets: {{t: {{listener: 1, timeouts: {timeouts}, backends: [{{host: a, port: 1}}]}}}}"
        );
        let loaded = load_text(&text, "t.yaml", Path::new(""), &Flags::default(), &env).unwrap();
        loaded.config.targets[0].timeouts.tunnel.as_secs()
    };
    assert_eq!(tunnel("{}"), 3600);
    assert_eq!(tunnel("{tunnel: 5s}"), 5);
    assert_eq!(tunnel("{idle: 7s}"), 7);
    assert_eq!((tunnel("{idle: 7s, tunnel: 5s}"), tunnel("{idle: 5s, tunnel: 7s}")), (5, 5));
    assert_eq!(tunnel("{idle: 2h}"), 7200);
}

#[test]
fn a_faulty_health_path_is_one_problem_and_not_two() {
    for path in ["path: health", "pathh: /health"] {
        let text = format!(
            "targets: {{t: {{listener: 1, health_check: {{{path}, expect: 200}}, backends: [{{host: a, port: 1}}]}}}}"
        );
        assert_eq!(messages(&text, &Flags::default()).len(), 1, "{text}");
    }
}

#[test]
fn check_shows_of_health_checks_what_is_in_force() {
    let shown = |health: &str| -> Vec<String> {
        let text = format!("targets: {{t: {{listener: 1, {health} backends: [{{host: a, port: 1}}]}}}}");
        let rows = effective(&text, &Flags::default());
        rows.into_iter().filter(|row| row.contains("health") || row.contains("expect")).collect()
    };
    let asking = shown("health_check: {path: /p},");
    for row in [
        "targets.t.health_check.path = /p (t.yaml:1)",
        "targets.t.health_check.expect = 200-399 (default)",
        "targets.t.backends[0].health_path = /p (t.yaml:1)",
    ] {
        assert!(asking.iter().any(|other| other == row), "{row} is not in {asking:#?}");
    }
    assert!(!shown("").iter().any(|row| row.contains("expect") || row.contains("host")), "nobody asks");
    assert_eq!(shown("health_check: off,"), ["targets.t.health_check = off (t.yaml:1)"]);
}

#[test]
fn a_target_speaks_louder_than_the_top_level() {
    let text = "health_check_interval: 9\nhealth_check_max_retries: 9\ntargets:\n  a: {listener: 1, health_check: {interval: 1s, fall: 1}, backends: [{host: a, port: 1}]}\n  b: {listener: 2, backends: [{host: a, port: 1}]}";
    let config = config(text);
    let of = |index: usize| {
        config.targets[index].health.as_ref().map(|health| (health.interval.as_secs(), health.fall))
    };
    assert_eq!((of(0), of(1)), (Some((1, 1)), Some((9, 9))));
}

#[test]
fn variables_take_the_type_their_key_wants() {
    let text = "graceful_shutdown: ${SWITCH}\ntargets: {t: {listener: \"${PORT}\", backends: [{host: \"${WORD}\", port: \"${PORT}\"}]}}";
    let rows = effective(text, &Flags::default());
    for row in [
        "graceful_shutdown = false (t.yaml:1 (${SWITCH}))",
        "shutdown_timeout = 0s (t.yaml:1 (${SWITCH}))",
        "targets.t.listener = 127.0.0.1:8081 (t.yaml:2 (${PORT}))",
        "targets.t.backends[0].address = no:8081 (t.yaml:2 (${WORD}))",
    ] {
        assert!(rows.iter().any(|other| other == row), "{row} is not in {rows:#?}");
    }
}

#[test]
fn off_has_three_spellings_with_and_without_quotes() {
    for off in ["off", "no", "false", "Off", "\"off\"", "'no'", "${SWITCH}"] {
        let text = format!(
            "access_log: {off}\ntargets:\n  t:\n    protocol: http\n    listener: 1\n    health_check: {off}\n    limits:\n      body: {off}\n      body_rate: {off}\n    forwarded: {off}\n    upgrade: {off}\n    backends: [{{host: a, port: 1}}]"
        );
        let config = config(&text);
        assert!(config.access_log.is_none() && config.targets[0].health.is_none(), "{off}");
        assert!(config.targets[0].upgrade.is_empty(), "{off}");
        assert_eq!(
            (config.listeners[0].limits.body, config.listeners[0].limits.body_rate),
            (None, 0),
            "{off}"
        );
        assert_eq!(config.listeners[0].forwarded, model::Forwarded::Off, "{off}");
    }
}

#[test]
fn check_names_every_value_and_its_origin() {
    let text = "workers: 3\ntargets:\n  web:\n    protocol: http\n    listener: 8080\n    timeouts:\n      connect: 1500ms\n    backends:\n      - {host: a, port: 1}\n";
    let rows = effective(text, &Flags { log_level: Some("debug".into()), ..Flags::default() });
    assert_eq!(
        rows,
        [
            "include = none (default)",
            "watch = on (default)",
            "name = a hash of the config's path (default)",
            "state_dir = the user's folder for state, in evenkeel/NAME (default)",
            "admin.socket = the user's folder for sockets, or `state_dir` (default)",
            "admin.listener = off (default)",
            "metrics.listener = off (default)",
            "metrics.statsd = none (default)",
            "cluster = none (default)",
            "webhooks = none (default)",
            "scale.out = none (default)",
            "scale.in = none (default)",
            "address = 127.0.0.1 (default)",
            "workers = 3 (t.yaml:1)",
            "max_connections = (file descriptor limit - 200) / 2 (default)",
            "shutdown_delay = 0s (default)",
            "graceful_shutdown = true (default)",
            "shutdown_timeout = 30s (default)",
            "logging = debug (--log-level)",
            "log_format = text (default)",
            "access_log = off (default)",
            "trusted_proxies = [] (default)",
            "cache_store.memory = 256MiB (default)",
            "cache_store.object = 16MiB (default)",
            "recorder.memory = 4MiB (default)",
            "recorder.show_headers = [User-Agent, Content-Type] (default)",
            "tracing = off (default)",
            "zone = none (default)",
            "targets.web.protocol = http (t.yaml:4)",
            "targets.web.listener = 127.0.0.1:8080 (t.yaml:5)",
            "targets.web.balance = round_robin (default)",
            "targets.web.slow_start = off (default)",
            "targets.web.owner = shared (default)",
            "targets.web.sticky = off (default)",
            "targets.web.health_check.interval = 2s (default)",
            "targets.web.health_check.timeout = 1s (default)",
            "targets.web.health_check.rise = 2 (default)",
            "targets.web.health_check.fall = 3 (default)",
            "targets.web.health_check.port = that of the backend (default)",
            "targets.web.health_check.agent = none (default)",
            "targets.web.health_check.send = nothing (default)",
            "targets.web.health_check.receive = nothing (default)",
            "targets.web.breaker.failures = 20 (default)",
            "targets.web.breaker.open = 5s (default)",
            "targets.web.breaker.statuses = none (default)",
            "targets.web.outlier.failures = 5 (default)",
            "targets.web.outlier.error_rate = 20% (default)",
            "targets.web.outlier.latency = 5 (default)",
            "targets.web.outlier.window = 10s (default)",
            "targets.web.outlier.requests = 50 (default)",
            "targets.web.outlier.ejection = 1s (default)",
            "targets.web.outlier.ejection_max = 30s (default)",
            "targets.web.outlier.max_ejected = 50% (default)",
            "targets.web.retries.attempts = 3 (default)",
            "targets.web.retries.on = [connect, reset, 503] (default)",
            "targets.web.retries.budget = 20% (default)",
            "targets.web.retries.backoff = 25ms (default)",
            "targets.web.hedging = off (default)",
            "targets.web.max_in_flight = off (default)",
            "targets.web.panic_threshold = 50% (default)",
            "targets.web.timeouts.connect = 1500ms (t.yaml:7)",
            "targets.web.timeouts.first_byte = 1m (default)",
            "targets.web.timeouts.idle = 1m (default)",
            "targets.web.timeouts.tunnel = 1h (default)",
            "targets.web.timeouts.head = 10s (default)",
            "targets.web.timeouts.keep_alive = 1m (default)",
            "targets.web.timeouts.half_closed = 1s (default)",
            "targets.web.timeouts.attempt = off (default)",
            "targets.web.timeouts.total = off (default)",
            "targets.web.drain_timeout = 30s (default)",
            "targets.web.http2 = off (default)",
            "targets.web.proxy_protocol = off (default)",
            "targets.web.limits.connections = off (default)",
            "targets.web.limits.connections_per_client = off (default)",
            "targets.web.limits.head_size = 32KiB (default)",
            "targets.web.limits.headers = 100 (default)",
            "targets.web.limits.body = off (default)",
            "targets.web.limits.body_rate = 240B (default)",
            "targets.web.forwarded = x_forwarded (default)",
            "targets.web.x_real_ip = false (default)",
            "targets.web.upstream_protocol = http (default)",
            "targets.web.host = pass (default)",
            "targets.web.upgrade = [websocket] (default)",
            "targets.web.send_proxy = off (default)",
            "targets.web.bind_source = as the system chooses (default)",
            "targets.web.tcp_keepalive.idle = 1m (default)",
            "targets.web.tcp_keepalive.interval = 20s (default)",
            "targets.web.tcp_keepalive.count = 3 (default)",
            "targets.web.backends[0].name = a:1 (default)",
            "targets.web.backends[0].address = a:1 (t.yaml:9)",
            "targets.web.backends[0].health_path = none, a TCP connect is the check (default)",
            "targets.web.backends[0].weight = 1 (default)",
            "targets.web.backends[0].priority = 0 (default)",
            "targets.web.backends[0].state = up (default)",
        ]
    );
}

#[test]
fn relative_paths_count_from_the_folder_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let text = "access_log: {path: access.log}\ntargets: {t: {listener: unix:in.sock, backends: [{url: unix:out.sock}, {url: unix:/abs.sock}]}}";
    let loaded = load_text(text, "t.yaml", folder.path(), &Flags::default(), &env).unwrap();
    let at = |name: &str| folder.path().join(name);
    assert_eq!(loaded.config.access_log.unwrap().path, model::LogPath::File(at("access.log")));
    assert_eq!(loaded.config.listeners[0].binds, [model::Bind::Unix(at("in.sock"))]);
    assert_eq!(loaded.config.targets[0].backends[0].address, model::BackendAddress::Unix(at("out.sock")));
    assert_eq!(loaded.config.targets[0].backends[1].address, model::BackendAddress::Unix("/abs.sock".into()));
}

#[test]
fn a_file_that_is_not_there_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let load = |path: &Path| load(Some(path), &Flags::default(), &env).unwrap_err().to_string();
    assert!(load(&folder.path().join("no.yaml")).contains("this config file does not exist"));
    assert!(load(folder.path()).contains("this is a folder"));
}

#[test]
fn port_zero_may_be_used_twice() {
    let text = "targets:\n  a: {listener: 0, backends: [{host: a, port: 1}]}\n  b: {listener: 0, backends: [{host: a, port: 1}]}";
    assert_eq!(config(text).listeners.len(), 2);
}

#[test]
fn one_backend_in_two_spellings_is_one_backend() {
    for (one, other) in
        [("A.example", "a.example."), ("'::1'", "'[0:0:0:0:0:0:0:1]'"), ("10.0.0.1", "'::ffff:10.0.0.1'")]
    {
        let text = format!(
            "targets: {{t: {{listener: 1, backends: [{{host: {one}, port: 1}}, {{host: {other}, port: 1}}]}}}}"
        );
        assert!(messages(&text, &Flags::default())[0].contains("is there twice"), "{text}");
    }
}

#[test]
fn routes_lead_to_the_target_of_their_listener() {
    let text = "targets:\n  a: {listener: 1, backends: [{host: a, port: 1}]}\n  b: {listener: 2, backends: [{host: a, port: 1}]}";
    let config = config(text);
    for listener in &config.listeners {
        assert!(listener.routes[0].targets().eq([&*listener.name]));
    }
}

#[test]
fn a_fault_inside_a_template_has_its_own_place_where_that_can_be_told() {
    let place = |value: &str| {
        let text = format!("access_log: {{path: stdout, format: {value}}}\n{WEB}");
        let problems = load_with(&text, &Flags::default()).unwrap_err();
        let place = problems.list()[0].place.unwrap();
        (place.column, place.width)
    };
    // The value begins at column 36.
    assert_eq!(place("'é {statu}'"), (39, 7));
    assert_eq!(place("\"a\\t{statu}\""), (36, 12), "an escape moves what follows");
    assert_eq!(place("'${WORD} {statu}'"), (36, 17), "nobody sees what the environment said");
    let block =
        load_with(&format!("access_log:\n  path: stdout\n  format: a {{statu}}\n{WEB}"), &Flags::default());
    let place = block.unwrap_err().list()[0].place.unwrap();
    assert_eq!((place.line, place.column, place.width), (3, 13, 7));
}

#[test]
fn header_lines_that_sound_secret_are_kept_with_a_warning() {
    let text = format!("recorder: {{show_headers: [User-Agent, X-Api-Key]}}\n{WEB}");
    let warning = "t.yaml:1: `show_headers` has `X-Api-Key`, whose name says that it is secret, and `evenkeel why` shows what is in it";
    assert_eq!(load_with(&text, &Flags::default()).unwrap().warnings, [warning]);
}
