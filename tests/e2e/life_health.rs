//! Health: who is out, who is back, and who waits for whom.

use std::time::Duration;

use evenkeel::config::model::HealthCheck;
use evenkeel::message::Cause;
use evenkeel::targets::{Health, Source};
use fake_backend::{Behaviour, Fake};

use super::life_lab::{assert_own, by_name, probe, probe_quickly, status, until, until_ended};
use super::support::{Keel, eventually, fakes, quick_health};

const SOON: Duration = Duration::from_millis(100);

/// Only the first probe matters: the second is far away.
fn one_probe(timeout: Duration) -> HealthCheck {
    HealthCheck { interval: Duration::from_secs(60), timeout, rise: 5, fall: 5, ..quick_health() }
}

#[test]
fn a_backend_that_answers_500_is_out_after_fall_probes_and_comes_back_after_rise() {
    let backends = fakes(2);
    let health = HealthCheck { interval: SOON, rise: 3, fall: 3, ..quick_health() };
    let keel = Keel::with(&[&backends[0], &backends[1]], |config| probe(config, health));
    until(&keel, 0, Health::Up);
    until(&keel, 1, Health::Up);

    let before = backends[0].probes();
    backends[0].behave(Behaviour::status(500));
    let down = until(&keel, 0, Health::Down);
    let took = backends[0].probes() - before;
    // At least: a busy machine may look late. That it is just so many is tested where it is decided.
    assert!(took >= 3, "{took} probes");
    assert_eq!((down.source, &*down.reason), (Source::Probe, "status 500, expected 200-399"));
    let mut client = keel.client();
    for _ in 0..10 {
        assert_eq!(client.get("/").text(), "Hello from fake-2");
    }
    assert_eq!(backends[0].requests(), 0);

    let before = backends[0].probes();
    backends[0].behave(Behaviour::default());
    let up = until(&keel, 0, Health::Up);
    let took = backends[0].probes() - before;
    assert!(took >= 3, "{took} probes");
    assert_eq!(&*up.reason, "3 probes passed");
    // It is told a moment before it is asked.
    eventually("it gets requests", || client.get("/").text().ends_with("fake-1"));
    let served: Vec<String> = (0..10).map(|_| client.get("/").text()).collect();
    assert_eq!(served.iter().filter(|name| name.ends_with("fake-1")).count(), 5, "{served:?}");
}

#[test]
fn a_backend_that_hangs_is_out_within_fall_times_interval() {
    let backends = fakes(2);
    let health = HealthCheck { interval: SOON * 4, timeout: SOON, rise: 1, fall: 3, ..quick_health() };
    let keel = Keel::with(&[&backends[0], &backends[1]], |config| probe(config, health));
    until(&keel, 0, Health::Up);
    let before = backends[0].probes();
    backends[0].behave(Behaviour::hang());
    let down = until(&keel, 0, Health::Down);
    assert_eq!(&*down.reason, "timeout after 100ms");
    let took = backends[0].probes() - before;
    // The last one was given up, and may be read later.
    assert!(took >= 2, "{took} probes");
    eventually("three probes have come", || backends[0].probes() - before >= 3);
    assert_eq!(status(&keel, 1).health, Health::Up);
    backends[0].behave(Behaviour::default());
    until(&keel, 0, Health::Up);
}

#[test]
fn a_request_at_the_start_waits_for_the_first_verdict() {
    let slow = Behaviour::default().latency(Duration::from_secs(3));
    let backend = Fake::http("fake-1").behave(slow).start_in_thread().unwrap();
    let keel = Keel::with(&[&backend], |config| probe(config, one_probe(Duration::from_secs(10))));
    assert_eq!(status(&keel, 0).health, Health::Unknown);
    assert_eq!(keel.client().get("/").status, 200);
    assert_eq!((status(&keel, 0).health, backend.probes()), (Health::Up, 1));
    assert_eq!(&*status(&keel, 0).reason, "the first probe passed");
}

#[test]
fn a_hung_backend_delays_neither_probes_nor_requests() {
    let backends = fakes(3);
    backends[1].behave(Behaviour::hang());
    let all = [&backends[0], &backends[1], &backends[2]];
    let keel = Keel::with(&all, |config| probe(config, one_probe(Duration::from_secs(60))));
    let mut client = keel.client();
    for _ in 0..10 {
        assert_ne!(client.get("/").text(), "Hello from fake-2");
    }
    until(&keel, 0, Health::Up);
    until(&keel, 2, Health::Up);
    assert_eq!(status(&keel, 1).health, Health::Unknown);
    assert_eq!(&*status(&keel, 1).reason, "not probed yet");
}

#[test]
fn when_only_unknown_backends_are_left_the_answer_is_503_after_the_probe_timeout() {
    let backend = fakes(1).remove(0);
    backend.behave(Behaviour::hang());
    let keel = Keel::with(&[&backend], |config| probe(config, one_probe(SOON * 2)));
    let answer = keel.client().get("/");
    // The probe's own timeout and the request's patience end almost together.
    let text = answer.text();
    assert_eq!(answer.status, 503);
    assert!(text.contains("cause: no_verdict") || text.contains("cause: no_backend"), "{text}");
    assert_eq!(&*until(&keel, 0, Health::Down).reason, "timeout after 200ms");
    assert_own(&keel.client().get("/"), Cause::NoBackend);
}

#[test]
fn the_first_verdict_decides_alone() {
    let backends =
        [Fake::http("fake-1"), Fake::http("fake-2").unhealthy()].map(|fake| fake.start_in_thread().unwrap());
    let keel = Keel::with(&[&backends[0], &backends[1]], |config| {
        probe(config, one_probe(Duration::from_secs(10)));
    });
    until(&keel, 0, Health::Up);
    let down = until(&keel, 1, Health::Down);
    assert_eq!(&*down.reason, "status 503, expected 200-399");
    assert_eq!((backends[0].probes(), backends[1].probes()), (1, 1));
}

#[test]
fn without_health_checks_everybody_is_healthy_and_nobody_is_probed() {
    let backend = Fake::http("fake-1").unhealthy().start_in_thread().unwrap();
    let keel = Keel::http(&[&backend]);
    assert_eq!(status(&keel, 0).health, Health::Up);
    assert_eq!(keel.client().get("/").status, 200);
    assert_eq!((backend.probes(), backend.connections()), (0, 1));
    assert_eq!(&*status(&keel, 0).reason, "health_check is off");
}

#[test]
fn without_a_path_the_probe_is_a_connect() {
    let backend = fakes(1).remove(0);
    let keel = Keel::with(&[&backend], |config| config.targets[0].health = Some(quick_health()));
    until(&keel, 0, Health::Up);
    eventually("it is probed again and again", || backend.connections() >= 3);
    assert_eq!(backend.probes(), 0, "no request is made");
    backend.stop_accepting();
    assert_eq!(&*until(&keel, 0, Health::Down).reason, "connection refused");
    backend.restart().unwrap();
    until(&keel, 0, Health::Up);
    // The status says so a moment before it is picked again.
    eventually("it serves", || keel.client().get("/").status == 200);
}

#[test]
fn a_name_that_does_not_resolve_is_a_backend_that_is_down() {
    let backend = fakes(1).remove(0);
    let port = backend.port();
    let keel = Keel::with(&[&backend], |config| {
        probe_quickly(config);
        // RFC 6761: never resolves. `localhost` comes from the system's own table.
        config.targets[0].backends.push(by_name("backend.invalid", port));
        config.targets[0].backends.push(by_name("localhost", port));
    });
    let down = until(&keel, 1, Health::Down);
    assert_eq!(down.source, Source::Name);
    assert!(down.reason.starts_with("name does not resolve: "), "{}", down.reason);
    until(&keel, 0, Health::Up);
    until(&keel, 2, Health::Up);
    let mut client = keel.client();
    for _ in 0..6 {
        assert_eq!(client.get("/").status, 200);
    }
    until_ended(&keel, Cause::Done, 6);
    assert_eq!(super::life_lab::reading(&keel, 2).attempts, 3);
}

/// The interval is an hour: whoever is out before it ends was probed because requests failed.
#[test]
fn a_backend_that_fails_requests_is_probed_at_once() {
    let hourly = || HealthCheck { interval: SOON * 36_000, fall: 1, ..quick_health() };
    let backends = fakes(2);
    let keel = Keel::with(&[&backends[0], &backends[1]], |config| probe(config, hourly()));
    until(&keel, 0, Health::Up);
    until(&keel, 1, Health::Up);
    backends[0].stop_accepting();
    let mut client = keel.client();
    let by_probe = |nth: usize| {
        let status = status(&keel, nth);
        status.health == Health::Down && status.source == Source::Probe
    };
    eventually("a refused connection is looked into", || {
        assert_eq!(client.get("/").status, 200);
        by_probe(0)
    });
    assert_eq!(&*status(&keel, 0).reason, "connection refused");

    backends[1].behave(Behaviour::status(500));
    eventually("a failed request is looked into", || {
        let _ = client.get("/");
        by_probe(1)
    });
    assert_eq!(&*status(&keel, 1).reason, "status 500, expected 200-399");
    assert_eq!(backends[1].probes(), 2, "the first one, and the one that was called for");
}

#[test]
fn the_body_of_a_good_answer_contains_the_text() {
    let backends = [Fake::http("fake-1"), Fake::http("fake-2")].map(|fake| fake.start_in_thread().unwrap());
    for (text, health) in [("healthy", Health::Up), ("Healthy", Health::Down)] {
        let keel = Keel::with(&[&backends[0], &backends[1]], |config| {
            probe(config, HealthCheck { body: Some(text.into()), ..quick_health() });
        });
        let found = until(&keel, 0, health);
        if health == Health::Down {
            assert_eq!(&*found.reason, "the body lacks \"Healthy\"");
        }
    }
}
