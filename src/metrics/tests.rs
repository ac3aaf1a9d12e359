//! What is counted is what is written.

use std::sync::Arc;

use super::*;
use crate::message::{BackendId, Cause, ListenerId, Record, RouteId, TargetId};
use crate::snapshot::{Snapshot, Snapshots};
use crate::telemetry::cells::{Cells, Totals};
use crate::telemetry::exposition::{MetricKind, TextForm, strict};
use crate::tick::Tick;

/// A config of one listener with one route, whose backends are these.
fn config(backends: &[&str]) -> crate::config::model::Config {
    let backends: Vec<String> =
        backends.iter().map(|name| format!("{{name: {name}, host: {name}.test, port: 1}}")).collect();
    loaded(&format!(
        "targets: {{web: {{protocol: http, listener: 0, health_check: off, backends: [{}]}}}}",
        backends.join(", ")
    ))
}

fn loaded(text: &str) -> crate::config::model::Config {
    let flags = crate::config::Flags::default();
    crate::config::load_text(text, "t.yaml", std::path::Path::new("."), &flags, &|_| None)
        .expect("a config")
        .config
}

fn moment(snapshots: &Snapshots, cells: &[Arc<Cells>]) -> Moment {
    Moment {
        snapshot: snapshots.current().expect("one is in force"),
        leaving: snapshots.leaving(),
        cells: cells.to_vec(),
        control: ControlState::default(),
        system: SystemUse::default(),
    }
}

/// All of it, and what was read of it.
fn text(snapshots: &Snapshots, cells: &[Arc<Cells>], form: TextForm) -> String {
    let mut scrape = Scrape::new(ScrapeSources::new(moment(snapshots, cells)), Arc::default(), form);
    std::iter::from_fn(|| scrape.piece()).collect()
}

type Read = std::collections::BTreeMap<String, strict::ReadFamily>;

fn scrape(snapshots: &Snapshots, cells: &[Arc<Cells>]) -> Read {
    strict::read(&text(snapshots, cells, TextForm::Prometheus), false).expect("it is well-formed")
}

/// The sum of all samples with these labels.
fn sum(read: &Read, name: &str, labels: &[(&str, &str)]) -> f64 {
    let has = |own: &[(String, String)]| {
        labels.iter().all(|(name, value)| own.iter().any(|(n, v)| n == name && v == value))
    };
    read[name].samples.iter().filter(|(_, own, _)| has(own)).map(|(_, _, value)| value).sum()
}

/// A request of the first route for this backend.
fn request(snapshot: &Snapshot, backend: BackendId) -> Record {
    let listener = &snapshot.listeners[0];
    let mut record = Record {
        listener: listener.id,
        route: Some(listener.routes()[0].destinations[0].id),
        target: Some(snapshot.targets[0].id),
        status: 200,
        accepted: Tick(1),
        started: Tick(1_000_000),
        done: Tick(9_000_000),
        ..Record::default()
    };
    let attempt = record.attempt(backend, Tick(2_000_000));
    (attempt.sent, attempt.first_byte) = (Tick(3_000_000), Tick(8_000_000));
    record
}

fn commit(
    snapshots: &Snapshots,
    cells: &[Arc<Cells>],
    config: &crate::config::model::Config,
) -> Arc<Snapshot> {
    let (snapshot, _) = snapshots.commit(snapshots.prepare(config));
    cells.iter().for_each(|cells| cells.renew(snapshot.number, &snapshot.given.counted()));
    snapshot
}

#[test]
fn a_request_is_in_every_family_that_tells_of_it() {
    let (snapshots, cells) = (Snapshots::new(), vec![Arc::<Cells>::default(), Arc::default()]);
    let snapshot = snapshots.commit(snapshots.prepare(&config(&["a", "b"]))).0;
    let backend = snapshot.targets[0].backends[1].id;
    cells[0].record(&request(&snapshot, backend));
    cells[1].record(&request(&snapshot, backend));
    let lost = Record {
        listener: snapshot.listeners[0].id,
        status: 404,
        cause: Cause::NoRoute,
        started: Tick(5),
        done: Tick(9),
        ..Record::default()
    };
    cells[1].record(&lost);
    let read = scrape(&snapshots, &cells);
    let of = |name: &str, labels: &[(&str, &str)]| sum(&read, name, labels);
    assert_eq!(of("evenkeel_requests_total", &[("class", "2xx"), ("listener", "web")]), 2.0);
    assert_eq!(of("evenkeel_requests_total", &[("class", "4xx"), ("route", "no route")]), 1.0);
    assert_eq!(of("evenkeel_requests_total", &[]), 3.0);
    assert_eq!(of("evenkeel_upstream_requests_total", &[("backend", "b"), ("class", "2xx")]), 2.0);
    assert_eq!(of("evenkeel_upstream_attempts_total", &[]), 2.0);
    assert_eq!(of("evenkeel_errors_total", &[("target", "no target"), ("cause", "no_route")]), 1.0);
    assert_eq!(of("evenkeel_worker_requests_total", &[("worker", "1")]), 2.0);
    let total = |name: &str, le: &str| {
        let samples = &read[name].samples;
        samples
            .iter()
            .find(|(_, labels, _)| labels.last().is_some_and(|(n, v)| n == "le" && v == le))
            .expect("a bucket")
            .2
    };
    // 8 ms in all, of which a backend was waited for 6 ms.
    assert_eq!(
        (
            total("evenkeel_target_duration_seconds", "0.005"),
            total("evenkeel_target_duration_seconds", "0.01")
        ),
        (0.0, 2.0)
    );
    assert_eq!(
        (total("evenkeel_target_own_seconds", "0.001"), total("evenkeel_target_own_seconds", "0.0025")),
        (0.0, 2.0)
    );
    assert_eq!(
        (
            total("evenkeel_request_backend_seconds", "0.005"),
            total("evenkeel_request_backend_seconds", "0.01")
        ),
        (0.0, 2.0)
    );
    let open = text(&snapshots, &cells, TextForm::OpenMetrics);
    strict::read(&open, true).expect("it is well-formed");
}

#[test]
fn totals_stay_exact_over_a_hundred_reloads_that_remove_and_add() {
    let (snapshots, cells) = (Snapshots::new(), vec![Arc::<Cells>::default(), Arc::default()]);
    let (mut sent, mut before) = (0.0, 0.0);
    let mut snapshot = commit(&snapshots, &cells, &config(&["a", "b0"]));
    for turn in 1..=100 {
        for (number, backend) in snapshot.targets[0].backends.iter().enumerate() {
            cells[number % 2].record(&request(&snapshot, backend.id));
            cells[turn % 2].record(&request(&snapshot, backend.id));
            sent += 2.0;
        }
        // A request is under way when its backend goes, and one worker has not gone over yet.
        let held = Arc::clone(&snapshot);
        let next = config(&["a", &format!("b{turn}"), &format!("c{turn}")]);
        let (new, _) = snapshots.commit(snapshots.prepare(&next));
        cells[0].renew(new.number, &new.given.counted());
        for check in 0..3 {
            let read = scrape(&snapshots, &cells);
            for name in [
                "evenkeel_upstream_requests_total",
                "evenkeel_upstream_attempts_total",
                "evenkeel_requests_total",
            ] {
                assert_eq!(sum(&read, name, &[]), sent, "{name} {turn} {check}");
            }
            assert!(sent >= before);
            match check {
                0 => cells[1].renew(new.number, &new.given.counted()),
                1 => {
                    let gone = held.targets[0].backends.last().expect("one").id;
                    cells[1].record(&request(&held, gone));
                    sent += 1.0;
                }
                _ => {}
            }
        }
        before = sent;
        snapshot = new;
    }
    let read = scrape(&snapshots, &cells);
    let backends: std::collections::BTreeSet<&str> =
        read["evenkeel_upstream_attempts_total"].samples.iter().map(|(_, labels, _)| &*labels[1].1).collect();
    assert_eq!(backends, ["a", "b100", "c100", "removed backends"].into());
    assert_eq!(Totals::sum(&cells).target(TargetId(0)).requests as f64, sent);
}

#[test]
fn a_backend_that_drains_is_there_until_nobody_uses_it() {
    let (snapshots, cells) = (Snapshots::new(), vec![Arc::<Cells>::default()]);
    let before = commit(&snapshots, &cells, &config(&["a", "b"]));
    let leaving = Arc::clone(&before.targets[0].backends[1]);
    cells[0].record(&request(&before, leaving.id));
    drop(before);
    commit(&snapshots, &cells, &config(&["a"]));
    let of = |backend: &str| {
        let read = scrape(&snapshots, &cells);
        let has = |labels: &[(String, String)]| labels.iter().any(|(n, v)| n == "backend" && v == backend);
        read["evenkeel_upstream_attempts_total"]
            .samples
            .iter()
            .find(|(_, labels, _)| has(labels))
            .map(|one| one.2)
    };
    assert_eq!((of("b"), of("removed backends")), (Some(1.0), None));
    drop(leaving);
    assert_eq!((of("b"), of("removed backends")), (None, Some(1.0)));
    // Another one with its number begins anew.
    commit(&snapshots, &cells, &config(&["a", "c"]));
    assert_eq!((of("c"), of("removed backends")), (Some(0.0), Some(1.0)));
}

#[test]
fn routes_that_go_are_kept_for_their_listener_and_listeners_that_go_end() {
    let of = |routes: &[&str]| {
        let routes: Vec<String> = routes
            .iter()
            .map(|path| format!("{{name: {path}, match: {{path_prefix: /{path}}}, target: web}}"))
            .collect();
        loaded(&format!(
            "listeners: {{front: {{bind: '0', routes: [{}]}}}}\ntargets: {{web: {{health_check: off, backends: [{{host: a, port: 1}}]}}}}",
            routes.join(", ")
        ))
    };
    let (snapshots, cells) = (Snapshots::new(), vec![Arc::<Cells>::default()]);
    let snapshot = commit(&snapshots, &cells, &of(&["x", "y"]));
    let record = |route: RouteId| Record {
        listener: ListenerId(0),
        route: Some(route),
        status: 200,
        ..Record::default()
    };
    let ids: Vec<RouteId> = snapshot.listeners[0].routes().iter().map(|route| route.id).collect();
    ids.iter().for_each(|id| cells[0].record(&record(*id)));
    drop(snapshot);
    let counts = |name: &str| sum(&scrape(&snapshots, &cells), "evenkeel_requests_total", &[("route", name)]);
    let snapshot = commit(&snapshots, &cells, &of(&["z", "y"]));
    assert_eq!((counts("y"), counts("z"), counts("removed routes")), (1.0, 0.0, 1.0));
    cells[0].record(&record(snapshot.listeners[0].routes()[0].id));
    drop(snapshot);
    commit(&snapshots, &cells, &of(&["y", "w"]));
    assert_eq!((counts("y"), counts("w"), counts("removed routes")), (1.0, 0.0, 2.0));
}

#[test]
fn names_are_like_those_of_others_and_labels_are_known() {
    let mut seen = std::collections::HashSet::new();
    let known = [
        "listener",
        "route",
        "class",
        "target",
        "backend",
        "cause",
        "state",
        "version",
        "resumed",
        "worker",
        "certificate",
        "list",
        "limit",
        "outcome",
        "reason",
        "kind",
        "webhook",
        "url",
        "result",
        "direction",
        "name",
        "status",
    ];
    for family in all() {
        let name = family.head.name;
        assert!(seen.insert(name), "{name} twice");
        assert!(name.starts_with("evenkeel_") || name.starts_with("process_"), "{name}");
        assert_eq!(name.ends_with("_total"), family.head.kind == MetricKind::Counter, "{name}");
        assert!(family.head.kind != MetricKind::Histogram || name.ends_with("_seconds"), "{name}");
        assert!(family.labels.iter().all(|label| known.contains(label)), "{name}");
        assert!(
            family.head.help.ends_with('.') && !family.head.help.contains(['"', '\n', '\\', '|']),
            "{name}"
        );
    }
    assert!(seen.len() > 50);
}

#[test]
fn ten_thousand_backends_come_in_pieces_of_which_none_is_long() {
    let names: Vec<String> = (0..10_000).map(|number| format!("b{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let config = {
        let backends: Vec<String> = names
            .iter()
            .zip(1..)
            .map(|(name, port)| format!("{{name: {name}, host: 127.0.0.1, port: {port}}}"))
            .collect();
        loaded(&format!(
            "targets: {{web: {{protocol: http, listener: 0, health_check: off, backends: [{}]}}}}",
            backends.join(", ")
        ))
    };
    let (snapshots, cells) = (Snapshots::new(), vec![Arc::<Cells>::default(), Arc::default()]);
    let snapshot = snapshots.commit(snapshots.prepare(&config)).0;
    for backend in &snapshot.targets[0].backends {
        cells[0].record(&request(&snapshot, backend.id));
    }
    let mut scrape =
        Scrape::new(ScrapeSources::new(moment(&snapshots, &cells)), Arc::default(), TextForm::Prometheus);
    let pieces: Vec<String> = std::iter::from_fn(|| scrape.piece()).collect();
    assert!(pieces.len() > 50 && pieces.iter().all(|piece| piece.len() < 40_000), "{}", pieces.len());
    let read = strict::read(&pieces.concat(), false).expect("it is well-formed");
    assert_eq!(sum(&read, "evenkeel_upstream_requests_total", &[]), 10_000.0);
    let of_one: usize = read
        .values()
        .flat_map(|family| &family.samples)
        .filter(|(_, labels, _)| labels.iter().any(|(name, value)| name == "backend" && value == "b7"))
        .count();
    assert!(of_one <= 12, "{of_one}");
}

#[test]
fn the_times_of_a_target_stay_when_routes_to_it_go() {
    let of = |sides: &str| {
        loaded(&format!(
            "listeners: {{front: {{bind: '0', routes: [{{name: r, split: {{targets: {{{sides}}}}}}}]}}}}\n\
             targets: {{a: {{health_check: off, backends: [{{host: a, port: 1}}]}}, b: {{health_check: off, backends: [{{host: b, port: 1}}]}}, \
             c: {{health_check: off, backends: [{{host: c, port: 1}}]}}}}"
        ))
    };
    let (snapshots, cells) = (Snapshots::new(), vec![Arc::<Cells>::default()]);
    let send = |snapshot: &Snapshot| {
        for way in &snapshot.listeners[0].routes()[0].destinations {
            let record = Record {
                listener: ListenerId(0),
                route: Some(way.id),
                target: Some(way.target.id),
                status: 200,
                started: Tick(1),
                done: Tick(9),
                ..Record::default()
            };
            cells[0].record(&record);
        }
    };
    let counts = || {
        let read = scrape(&snapshots, &cells);
        let of = |name: &str, label: (&str, &str)| {
            let samples = read[name].samples.iter().filter(|(name, _, _)| name.ends_with("_count"));
            samples
                .filter(|(_, own, _)| own.iter().any(|(n, v)| (n.as_str(), v.as_str()) == label))
                .map(|one| one.2)
                .sum::<f64>()
        };
        let target = |name| of("evenkeel_target_duration_seconds", ("target", name));
        let route = of("evenkeel_request_duration_seconds", ("route", "r"));
        ([target("a"), target("b"), target("c")], route, sum(&read, "evenkeel_requests_total", &[]))
    };
    let snapshot = commit(&snapshots, &cells, &of("a: 1, b: 1"));
    send(&snapshot);
    assert_eq!(counts(), ([1.0, 1.0, 0.0], 2.0, 2.0));
    drop(snapshot);
    // Its way to `b` is gone, that to `a` goes on under its number, and the route has all that it had.
    let snapshot = commit(&snapshots, &cells, &of("a: 1, c: 1"));
    send(&snapshot);
    assert_eq!(counts(), ([2.0, 1.0, 1.0], 4.0, 4.0));
    drop(snapshot);
    let snapshot = commit(&snapshots, &cells, &of("b: 1, c: 1"));
    send(&snapshot);
    assert_eq!(counts(), ([2.0, 2.0, 2.0], 6.0, 6.0));
}

#[test]
fn backends_of_a_target_that_was_renamed_were_told_of_under_the_name_of_the_next() {
    let (snapshots, cells) = (Snapshots::new(), vec![Arc::<Cells>::default()]);
    let named = |name: &str, port: u16| {
        loaded(&format!(
            "targets: {{{name}: {{protocol: http, listener: 0, health_check: off, backends: [{{name: b, host: b.test, port: {port}}}]}}}}"
        ))
    };
    let first = commit(&snapshots, &cells, &named("old", 1));
    // Somebody uses it for longer than its target is there, whose number goes to the next.
    let (used, number) = (Arc::clone(&first.targets[0].backends[0]), first.targets[0].id);
    drop(first);
    commit(&snapshots, &cells, &named("between", 2));
    let mut port = 3;
    let last = loop {
        let last = commit(&snapshots, &cells, &named(&format!("new{port}"), port));
        if last.targets[0].id == number {
            break last;
        }
        port += 1;
        assert!(port < 10, "no target gets its number");
    };
    assert!(snapshots.leaving().iter().any(|(id, backend)| *id == number && Arc::ptr_eq(backend, &used)));
    let read = scrape(&snapshots, &cells);
    let told = &read["evenkeel_backend_in_flight"].samples;
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].1.contains(&("target".to_owned(), last.targets[0].name.to_string())), "{told:?}");
}
