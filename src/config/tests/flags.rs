//! Flags alone, and flags over a file.

use std::time::Duration;

use super::*;
use crate::config::model::{Bind, Protocol};

fn flags(change: impl FnOnce(&mut Flags)) -> Flags {
    let mut flags = Flags::default();
    change(&mut flags);
    flags
}

fn alone(flags: &Flags) -> Result<Loaded, Problems> {
    load(None, flags, &env)
}

fn bind(text: &str) -> Vec<Bind> {
    vec![Bind::Tcp(text.parse().unwrap())]
}

#[test]
fn backends_alone_make_a_target() {
    let backends = vec!["http://a:8001,http://b:8002".to_owned(), "http://c".to_owned()];
    let loaded = alone(&Flags { backends, ..Flags::default() }).unwrap();
    assert_eq!(loaded.config.listeners[0].binds, bind("127.0.0.1:3030"));
    let target = &loaded.config.targets[0];
    assert_eq!((target.name.as_str(), target.protocol), ("default", Protocol::Http));
    let names: Vec<_> = target.backends.iter().map(|backend| backend.name.as_str()).collect();
    assert_eq!(names, ["a:8001", "b:8002", "c:80"]);
}

#[test]
fn every_flag_alone_changes_the_configuration() {
    let base = || flags(|flags| flags.backends = vec!["http://a:1".into()]);
    let with = |change: fn(&mut Flags)| {
        let mut flags = base();
        change(&mut flags);
        alone(&flags).unwrap().config
    };
    assert_eq!(with(|flags| flags.port = Some(9)).listeners[0].binds, bind("127.0.0.1:9"));
    assert_eq!(with(|flags| flags.address = Some("::1".into())).listeners[0].binds, bind("[::1]:3030"));
    assert_eq!(with(|flags| flags.address = Some("*".into())).listeners[0].binds.len(), 2);
    assert_eq!(with(|flags| flags.workers = Some(7)).workers, 7);
    assert_eq!(with(|flags| flags.log_level = Some("WARN".into())).log_level, model::LogLevel::Warn);
    assert_eq!(with(|flags| flags.log_format = Some("JSON".into())).log_format, model::EventFormat::Json);
    assert_eq!(
        with(|flags| flags.health_path = Some("/p".into())).targets[0].backends[0].probe_path.as_deref(),
        Some("/p")
    );
    assert_eq!(
        with(|flags| flags.algorithm = Some("round_robin".into())).targets[0].balance.algorithm,
        model::Balance::RoundRobin
    );
    let tcp = alone(&flags(|flags| flags.backends = vec!["tcp://a:1,tcp://b:1".into()])).unwrap();
    assert_eq!(tcp.config.targets[0].protocol, Protocol::Tcp);
}

#[test]
fn flags_override_the_file_and_check_says_so() {
    let flags = Flags {
        backends: vec!["http://z:9".into()],
        port: Some(99),
        address: Some("::1".into()),
        algorithm: Some("round_robin".into()),
        health_path: Some("/flag".into()),
        workers: Some(5),
        log_level: Some("trace".into()),
        log_format: Some("json".into()),
        ..Flags::default()
    };
    let text = "address: 10.0.0.1\nworkers: 2\nlogging: info\nlog_format: text\ntargets: {web: {protocol: http, listener: 1, balance: round_robin, backends: [{host: a, port: 1, health_path: /file}]}}";
    let rows = effective(text, &flags);
    for row in [
        "address = [::1] (--address)",
        "workers = 5 (--workers)",
        "logging = trace (--log-level)",
        "log_format = json (--log-format)",
        "targets.web.listener = [::1]:99 (--port)",
        "targets.web.balance = round_robin (--algorithm)",
        "targets.web.backends[0].address = z:9 (--backends)",
        "targets.web.backends[0].health_path = /flag (--health-path)",
    ] {
        assert!(rows.iter().any(|other| other == row), "{row} is not in {rows:#?}");
    }
}

#[test]
fn a_port_keeps_the_address_that_the_file_gives() {
    let text = "targets: {t: {listener: \"0.0.0.0:1\", backends: [{host: a, port: 1}]}}";
    let loaded = load_with(text, &flags(|flags| flags.port = Some(9))).unwrap();
    assert_eq!(loaded.config.listeners[0].binds, bind("0.0.0.0:9"));
}

#[test]
fn a_port_stands_in_for_a_missing_listener() {
    let text = "targets: {t: {backends: [{host: a, port: 1}]}}";
    let loaded = load_with(text, &flags(|flags| flags.port = Some(9))).unwrap();
    assert_eq!(loaded.config.listeners[0].binds, bind("127.0.0.1:9"));
}

#[test]
fn a_file_without_targets_and_backends_by_flag() {
    let by_flag = flags(|flags| flags.backends = vec!["http://a:1".into()]);
    let loaded = load_with("workers: 2", &by_flag).unwrap();
    assert_eq!((loaded.config.workers, loaded.config.targets[0].name.as_str()), (2, "default"));
}

#[test]
fn flags_that_can_not_be_meant_are_refused_by_name() {
    let two = "targets:\n  a: {listener: 1, backends: [{host: a, port: 1}]}\n  b: {listener: \"127.0.0.1:2\", backends: [{host: a, port: 1}]}";
    let one = "targets: {a: {listener: \"127.0.0.1:1\", backends: [{host: a, port: 1}]}}";
    let off =
        "targets: {a: {protocol: http, listener: 1, health_check: off, backends: [{host: a, port: 1}]}}";
    let table: Vec<(&str, Flags, &str)> = vec![
        (two, flags(|f| f.port = Some(1)), "`--port` does not say which target it means: the file has 2"),
        (
            two,
            flags(|f| f.backends = vec!["tcp://a:1".into()]),
            "`--backends` does not say which target it means: the file has 2",
        ),
        (
            one,
            flags(|f| f.address = Some("::1".into())),
            "`--address` would change nothing: every `listener` in the file has an address of its own",
        ),
        (
            one,
            flags(|f| f.health_path = Some("/p".into())),
            "`--health-path` would change nothing: no target speaks http",
        ),
        (
            off,
            flags(|f| f.health_path = Some("/p".into())),
            "`--health-path` would change nothing: `health_check` is `off`",
        ),
        (
            off,
            flags(|f| f.health_interval = Some(5)),
            "`--health-check-frequency-in-seconds` would change nothing: `health_check` is `off` everywhere",
        ),
        (
            off,
            flags(|f| f.health_fall = Some(5)),
            "`--health-check-max-retries` would change nothing: `health_check` is `off` everywhere",
        ),
        (
            one,
            flags(|f| f.backends = vec!["http://a:1".into()]),
            "this backend speaks http, but the target `a` speaks tcp",
        ),
        (
            WEB,
            flags(|f| f.address = Some("nowhere".into())),
            "`--address` is `nowhere`, which is no IP address",
        ),
        (
            WEB,
            flags(|f| f.health_path = Some("p".into())),
            "`--health-path` is `p`, which does not begin with `/`",
        ),
        (WEB, flags(|f| f.workers = Some(0)), "`--workers` is 0, which is too small"),
        (
            WEB,
            flags(|f| f.workers = Some(usize::MAX)),
            "`--workers` is 18446744073709551615, which is too large",
        ),
        (WEB, flags(|f| f.log_level = Some("loud".into())), "`--log-level` is `loud`, which does not exist"),
        (WEB, flags(|f| f.log_format = Some("xml".into())), "`--log-format` is `xml`, which does not exist"),
        (
            WEB,
            flags(|f| f.algorithm = Some("fastest".into())),
            "`--algorithm` is `fastest`, which does not exist",
        ),
        (
            WEB,
            flags(|f| f.backends = vec!["a:1,".into()]),
            "an entry of `--backends` is `a:1`, which has no scheme",
        ),
    ];
    for (text, flags, message) in table {
        let found = messages(text, &flags);
        assert_eq!(found.first().map(String::as_str), Some(message), "{found:?}");
        let printed = load_with(text, &flags).unwrap_err().to_string();
        assert!(printed.starts_with("command line: "), "{printed}");
    }
}

#[test]
fn an_unknown_algorithm_lists_the_valid_ones() {
    let problems = load_with(WEB, &flags(|flags| flags.algorithm = Some("fastest".into()))).unwrap_err();
    for (name, _) in model::Balance::ALL {
        assert!(problems.to_string().contains(&format!("`{name}`")), "{problems}");
    }
}

#[test]
fn neither_file_nor_backends() {
    let text = alone(&Flags::default()).unwrap_err().to_string();
    assert!(text.contains("--config") && text.contains("--backends"), "{text}");
}

#[test]
fn health_flags_win_over_the_target_and_are_checked() {
    let text =
        "targets: {a: {listener: 1, health_check: {interval: 5s, fall: 9}, backends: [{host: h, port: 1}]}}";
    let flags = Flags { health_interval: Some(7), health_fall: Some(4), ..Flags::default() };
    let loaded = load_text(text, "f.yaml", Path::new(""), &flags, &|_| None).expect("valid");
    let health = loaded.config.targets[0].health.clone().expect("on");
    assert_eq!((health.interval, health.fall), (Duration::from_secs(7), 4));
    let flags = Flags { health_interval: Some(0), health_fall: Some(0), ..Flags::default() };
    let problems =
        load_text(text, "f.yaml", Path::new(""), &flags, &|_| None).expect_err("both are out of range");
    assert_eq!(problems.list().len(), 2, "{problems}");
}
