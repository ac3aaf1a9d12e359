//! Breakers, outliers and queues over the wire: what a backend that fails gets, and who waits for whom.

use std::time::Duration;

use evenkeel::config::model::resilience::BreakerConfig;
use evenkeel::config::model::{Balance, Resilience};
use evenkeel::message::Cause;
use evenkeel::net::now;
use evenkeel::targets::{Circuit, Health, Source};
use fake_backend::{Behaviour, Fake, Fault, Running};

use super::life_lab::{assert_own, status};
use super::support::{Client, Keel, eventually, fakes};

/// Nothing but a breaker that opens after three failures.
fn quick_breaker() -> Resilience {
    Resilience {
        breaker: Some(BreakerConfig {
            failures: 3,
            open: Duration::from_secs(1),
            statuses: Vec::new(),
            open_is_default: false,
        }),
        outlier: None,
        retries: None,
        ..Resilience::default()
    }
}

/// In front of these backends with such a breaker, and no probes.
fn broken(backends: &[&Running]) -> Keel {
    Keel::with(backends, |config| config.targets[0].resilience = quick_breaker())
}

/// Fails attempts until the breaker of the first backend is open.
fn open(keel: &Keel, backend: &Running, fault: Fault) {
    backend.behave(Behaviour::fault(fault));
    for _ in 0..100 {
        if status(keel, 0).circuit != Circuit::Closed {
            return;
        }
        keel.client().get("/");
    }
    panic!("the breaker did not open");
}

/// Waits until the time of an open breaker is up.
fn until_half_open(keel: &Keel) {
    let Circuit::Open(until) = status(keel, 0).circuit else { panic!("it is not open") };
    eventually("its time is up", || now() >= until);
}

fn asking(keel: &Keel, path: &str) -> Client {
    let mut client = keel.client();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
    client
}

#[test]
fn of_a_thousand_requests_at_half_open_one_reaches_the_backend() {
    let suspect = Fake::http("fake-1").record().start_in_thread().unwrap();
    let other = Fake::http("fake-2").start_in_thread().unwrap();
    let keel = broken(&[&suspect, &other]);
    open(&keel, &suspect, Fault::ResetUnanswered);
    let failed = suspect.requests();
    until_half_open(&keel);
    suspect.behave(Behaviour::hang());
    let mut on_trial = None;
    for round in 0..10 {
        let before = suspect.requests() + other.requests();
        let mut clients: Vec<Client> =
            (0..100).map(|turn| asking(&keel, &format!("/{round}/{turn}"))).collect();
        eventually("all are served", || suspect.requests() + other.requests() == before + 100);
        assert_eq!(suspect.requests(), failed + 1, "the others went elsewhere");
        if round == 0 {
            let asked = path(&suspect.last_requests().last().unwrap().head);
            let turn = asked.rsplit('/').next().unwrap().parse().unwrap();
            on_trial = Some(clients.remove(turn));
        }
        for client in &mut clients {
            assert_eq!(client.answer().text(), "Hello from fake-2");
        }
    }
    assert_eq!(status(&keel, 0).circuit, Circuit::HalfOpen);

    // Its client leaves: nothing was found out, and the next one tries.
    suspect.behave(Behaviour::default());
    drop(on_trial);
    eventually("the trial is free", || matches!(status(&keel, 0).circuit, Circuit::Open(_)));
    eventually("it is closed", || {
        assert_eq!(keel.client().get("/").status, 200);
        status(&keel, 0).circuit == Circuit::Closed
    });
    assert_eq!(status(&keel, 0).health, Health::Up);
}

#[test]
fn with_every_breaker_open_the_answer_is_503_at_once_and_says_so() {
    let backend = fakes(1).remove(0);
    let keel = Keel::with(&[&backend], |config| {
        let resilience = &mut config.targets[0].resilience;
        *resilience = quick_breaker();
        resilience.breaker.as_mut().unwrap().open = Duration::from_secs(5);
    });
    open(&keel, &backend, Fault::CloseUnanswered);
    let tried = backend.requests();
    for _ in 0..10 {
        assert_own(&keel.client().get("/"), Cause::BreakerOpen);
    }
    assert_eq!(backend.requests(), tried);
    let state = status(&keel, 0);
    assert_eq!((state.health, state.source), (Health::Down, Source::Breaker));
    backend.behave(Behaviour::default());
    eventually("it is tried again", || keel.client().get("/").status == 200);
}

#[test]
fn resets_nonsense_and_timeouts_count_for_the_breaker_and_a_client_that_leaves_does_not() {
    for (fault, cause) in [
        (Fault::ResetUnanswered, Cause::BackendClosed),
        (Fault::Garbage, Cause::BadAnswer),
        (Fault::Hang, Cause::FirstByteTimeout),
    ] {
        let backend = fakes(1).remove(0);
        let keel = Keel::with(&[&backend], |config| {
            config.targets[0].resilience = quick_breaker();
            config.targets[0].timeouts.first_byte = Duration::from_secs(2);
        });
        backend.behave(Behaviour::hang());
        for leaves in 0..5 {
            let client = asking(&keel, "/");
            eventually("it has begun", || backend.requests() == leaves + 1);
            drop(client);
        }
        eventually("all are gone", || status(&keel, 0).in_flight == 0);
        assert_eq!(status(&keel, 0).circuit, Circuit::Closed, "{cause}");
        backend.behave(Behaviour::fault(fault));
        for _ in 0..3 {
            assert_own(&keel.client().get("/"), cause);
        }
        assert!(matches!(status(&keel, 0).circuit, Circuit::Open(_)), "{cause}");
    }
}

/// No probes, no retries: a quick error looks like a quick backend to every algorithm but one.
#[test]
fn a_backend_that_fails_fast_is_left_out_under_every_algorithm() {
    for &(name, algorithm) in Balance::ALL {
        let backends = fakes(3);
        let keel = Keel::with(&[&backends[0], &backends[1], &backends[2]], |config| {
            let target = &mut config.targets[0];
            target.balance = algorithm.into();
            target.balance.hash_key = evenkeel::config::model::HashKey::Path;
            target.resilience.retries = None;
            // It must not come back while the test counts.
            let outlier = target.resilience.outlier.as_mut().unwrap();
            outlier.ejection = Duration::from_secs(600);
            outlier.ejection_max = Duration::from_secs(600);
        });
        backends[0].behave(Behaviour::status(500));
        let mut client = keel.client();
        let failed = (0..300).filter(|turn| client.get(&format!("/{turn}")).status == 500).count();
        if algorithm == Balance::PeakEwma {
            // It goes by answers itself and need not wait for five.
            assert!(failed <= 5, "{failed}");
            continue;
        }
        assert_eq!(failed, 5, "{name}: five in a row");
        let state = status(&keel, 0);
        assert_eq!((state.health, state.source), (Health::Down, Source::Outlier), "{name}");
        assert_eq!(&*state.reason, "5 errors in a row");
    }
}

fn queueing(backends: &[&Running], queue: u32) -> Keel {
    Keel::with(backends, |config| {
        let target = &mut config.targets[0];
        target.resilience = Resilience { max_in_flight: Some(1), queue, ..Resilience::default() };
        target.timeouts.queue = Duration::from_secs(60);
    })
}

fn waiting(keel: &Keel) -> usize {
    keel.server.targets()[0].waiting()
}

/// The second word of the first line.
fn path(head: &[u8]) -> String {
    String::from_utf8_lossy(head).split(' ').nth(1).unwrap_or_default().to_owned()
}

#[test]
fn who_waits_is_served_in_order_of_arrival_over_both_workers() {
    const BURST: usize = 40;
    let backend = Fake::http("fake-1").record().start_in_thread().unwrap();
    let keel = queueing(&[&backend], 1_024);
    backend.behave(Behaviour::hang().times(1));
    let first = asking(&keel, "/first");
    eventually("it is served", || backend.requests() == 1);
    let mut clients: Vec<Client> = (0..BURST)
        .map(|turn| {
            let client = asking(&keel, &format!("/{turn}"));
            eventually("it waits", || waiting(&keel) == turn + 1);
            client
        })
        .collect();
    // One that leaves gives up its place and holds nobody up.
    drop(clients.remove(7));
    eventually("it is gone", || waiting(&keel) == BURST - 1);
    drop(first);
    for client in &mut clients {
        assert_eq!(client.answer().status, 200);
    }
    let order: Vec<String> = backend.last_requests().iter().map(|request| path(&request.head)).collect();
    let expected: Vec<String> = std::iter::once("/first".to_owned())
        .chain((0..BURST).filter(|turn| *turn != 7).map(|turn| format!("/{turn}")))
        .collect();
    assert_eq!(order, expected);
    eventually("all is quiet", || status(&keel, 0).in_flight == 0);
    assert_eq!(waiting(&keel), 0);
}

#[test]
fn over_the_bound_of_the_queue_the_answer_is_503_at_once_with_retry_after() {
    let backend = fakes(1).remove(0);
    let keel = queueing(&[&backend], 2);
    backend.behave(Behaviour::hang());
    let held = asking(&keel, "/");
    eventually("it is served", || backend.requests() == 1);
    let waiters: Vec<Client> = (1..=2)
        .map(|turn| {
            let client = asking(&keel, "/");
            eventually("it waits", || waiting(&keel) == turn);
            client
        })
        .collect();
    for _ in 0..5 {
        let answer = keel.client().get("/");
        assert_own(&answer, Cause::QueueFull);
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    drop(waiters);
    eventually("nobody waits", || waiting(&keel) == 0);
    backend.behave(Behaviour::default());
    drop(held);
    assert_eq!(keel.client().get("/").status, 200);
    assert_eq!(backend.requests(), 2, "who left cost the backend nothing");
}

#[test]
fn who_waits_too_long_is_told() {
    let backend = fakes(1).remove(0);
    let keel = Keel::with(&[&backend], |config| {
        let target = &mut config.targets[0];
        target.resilience = Resilience { max_in_flight: Some(1), ..Resilience::default() };
        target.timeouts.queue = Duration::from_millis(50);
    });
    backend.behave(Behaviour::hang());
    let held = asking(&keel, "/");
    eventually("it is served", || backend.requests() == 1);
    assert_own(&keel.client().get("/"), Cause::QueueTimeout);
    assert_eq!((waiting(&keel), backend.requests()), (0, 1));
    drop(held);
}

#[test]
fn the_trial_of_a_backend_that_was_left_out_goes_out_on_a_fresh_connection() {
    let (suspect, other) = (Fake::http("fake-1").record().start_in_thread().unwrap(), fakes(1).remove(0));
    let keel = Keel::with(&[&suspect, &other], |config| {
        config.workers = 1;
        let resilience = &mut config.targets[0].resilience;
        (resilience.breaker, resilience.retries) = (None, None);
        resilience.outlier.as_mut().unwrap().ejection = Duration::from_secs(2);
    });
    suspect.behave(Behaviour::status(500));
    let mut client = keel.client();
    eventually("it is left out", || {
        client.get("/");
        status(&keel, 0).source == Source::Outlier
    });
    suspect.behave(Behaviour::default());
    let before = suspect.take_requests();
    assert!(before.iter().all(|request| request.connection == 1));
    assert_eq!((before.len(), suspect.open_connections()), (5, 1), "its connection rests in the pool");
    eventually("it is on trial", || {
        assert_eq!(client.get("/").status, 200);
        suspect.requests() > 5
    });
    assert_eq!(suspect.take_requests()[0].connection, 2);
}

/// The other one is busy for longer than an attempt may take: what it sends is the end of an attempt, not of a request.
#[test]
fn a_retry_after_a_refused_connect_waits_in_the_queue_and_is_no_attempt_meanwhile() {
    let (gone, busy) = (Fake::http("gone").start_in_thread().unwrap(), fakes(1).remove(0));
    let keel = Keel::with(&[&gone, &busy], |config| {
        let target = &mut config.targets[0];
        target.balance = Balance::First.into();
        target.resilience.max_in_flight = Some(1);
        (target.timeouts.queue, target.timeouts.attempt) =
            (Duration::from_secs(60), Some(Duration::from_secs(2)));
    });
    gone.stop();
    // A tunnel is no attempt any more, and holds its lease.
    let mut tunnel = keel.client();
    tunnel.send("GET /upgrade HTTP/1.1\r\nHost: test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n");
    assert_eq!(tunnel.answer_to_head().status, 101);
    eventually("the first is asked again", || {
        status(&keel, 0).ejected_until.is_none_or(|until| now() >= until)
    });
    let mut retry = asking(&keel, "/");
    eventually("it waits", || waiting(&keel) == 1);
    let since = now();
    eventually("an attempt would be over", || now() >= since.after(Duration::from_secs(3)));
    assert_eq!(waiting(&keel), 1);
    drop(tunnel);
    assert_eq!(retry.answer().text(), "Hello from fake-1");
}
