//! Reloads in the middle of everything that takes its time: retries, hedges, queues, sticky clients, outliers, breakers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use evenkeel::config::model::resilience::Hedging;
use evenkeel::config::model::{Config, Portion, Protocol, Resilience, Sticky};
use evenkeel::targets::{Circuit, Health};
use fake_backend::{Behaviour, Fake, Running};

use super::support::{Keel, Stop, config, eventually, fakes};

/// A target with these backends and these rules.
fn of(backends: &[&Running], resilience: &Resilience) -> Config {
    let mut config = config(Protocol::Http, &backends.iter().map(|one| one.addr()).collect::<Vec<_>>());
    config.targets[0].resilience = resilience.clone();
    config
}

/// The same config with something that differs each time and concerns nobody.
fn stirred(config: &Config, turn: u64) -> Config {
    let mut config = config.clone();
    config.targets[0].timeouts.first_byte += Duration::from_millis(1 + turn);
    config
}

/// Does `work` while reloads come one after the other.
fn under_reloads<T>(keel: &Keel, config: &Config, work: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    let (reloader, control) = (keel.server.reloader(), keel.server.control().unwrap().clone());
    std::thread::scope(|scope| {
        let stop = &stop;
        let reloads = scope.spawn(move || {
            for turn in (0..).take_while(|_| !stop.load(Ordering::Relaxed)) {
                control.block_on(reloader.apply(&stirred(config, turn % 7))).unwrap();
            }
        });
        let ends = Stop(stop);
        let outcome = work();
        drop(ends);
        reloads.join().unwrap();
        outcome
    })
}

#[test]
fn retries_find_another_backend_also_when_theirs_is_taken_away() {
    let (good, dead) = (fakes(1).remove(0), Fake::http("dead").refusing().start_in_thread().unwrap());
    let config = of(&[&dead, &good], &Resilience::default());
    let keel = Keel::start(&config);
    under_reloads(&keel, &config, || {
        for _ in 0..100 {
            assert_eq!(keel.client().get("/").text(), "Hello from fake-1");
        }
    });
    // The next attempt of one that is under way goes by the config that it was begun with.
    let slow = Fake::http("slow").start_in_thread().unwrap();
    slow.behave(Behaviour::status(503).latency(Duration::from_millis(200)).times(1));
    let mut both = of(&[&slow, &good], &Resilience::default());
    both.targets[0].balance = evenkeel::config::model::Balance::First.into();
    keel.reload(&both).unwrap();
    let mut client = keel.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("it is under way", || slow.requests() == 1);
    keel.reload(&of(&[&good], &Resilience::default())).unwrap();
    assert_eq!(client.answer().status, 200);
}

#[test]
fn who_waits_in_the_queue_is_served_by_who_comes_with_a_reload() {
    let backends = fakes(2);
    let rules = Resilience { max_in_flight: Some(1), queue: 10, ..Resilience::default() };
    let keel = Keel::start(&of(&[&backends[0]], &rules));
    backends[0].behave(Behaviour::default().latency(Duration::from_secs(3)).times(1));
    let (mut holds, mut waits) = (keel.client(), keel.client());
    holds.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("it holds the only place", || backends[0].requests() == 1);
    waits.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("it waits", || keel.server.targets()[0].waiting() == 1);
    keel.reload(&of(&[&backends[0], &backends[1]], &rules)).unwrap();
    assert_eq!(waits.answer().text(), "Hello from fake-2");
    // Also when all that it has waited for is taken away.
    assert_eq!(holds.answer().text(), "Hello from fake-1");
}

#[test]
fn a_sticky_client_stays_where_it_is_over_reloads_and_is_moved_with_a_new_cookie() {
    let backends = fakes(3);
    let sticky = |these: &[&Running]| {
        let mut config = of(these, &Resilience::default());
        config.targets[0].sticky =
            Some(Sticky { cookie: "c".into(), key: b"0123456789abcdef"[..].into(), is_fleeting: false });
        config
    };
    let all: Vec<&Running> = backends.iter().collect();
    let config = sticky(&all);
    let keel = Keel::start(&config);
    let mut client = keel.client();
    let first = client.get("/");
    let cookie = first.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let mut ask = |cookie: &str| {
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n");
        let answer = client.send(&request).answer();
        (answer.text(), answer.header("set-cookie").map(str::to_owned))
    };
    under_reloads(&keel, &config, || {
        for _ in 0..50 {
            assert_eq!(ask(&cookie), (first.text(), None));
        }
    });
    let others: Vec<&Running> = all.iter().copied().filter(|one| !first.text().ends_with(one.id())).collect();
    keel.reload(&sticky(&others)).unwrap();
    let (moved, anew) = ask(&cookie);
    assert!(moved != first.text() && anew.is_some());
    let anew = anew.unwrap().split(';').next().unwrap().to_owned();
    assert_eq!(ask(&anew), (moved, None));
}

#[test]
fn who_is_out_stays_out_and_comes_back_by_its_own_trial() {
    let backends = fakes(2);
    let mut rules = Resilience::default();
    rules.breaker.iter_mut().for_each(|breaker| {
        (breaker.failures, breaker.open) = (1, Duration::from_millis(300));
        breaker.statuses = vec![500..=599];
    });
    let config = of(&[&backends[0], &backends[1]], &rules);
    let keel = Keel::start(&config);
    let circuit = || keel.server.targets()[0].status()[0].circuit;
    backends[0].behave(Behaviour::status(500));
    eventually("its breaker is open", || {
        keel.client().get("/");
        matches!(circuit(), Circuit::Open(_))
    });
    backends[0].behave(Behaviour::default());
    under_reloads(&keel, &config, || {
        eventually("its trial has found it well", || {
            assert_eq!(keel.client().get("/").status, 200);
            circuit() == Circuit::Closed
        });
    });
    assert!(keel.server.targets()[0].status().iter().all(|status| status.health == Health::Up));
}

#[test]
fn counts_pools_and_weights_hold_under_reloads() {
    let backends = fakes(3);
    let mut config = of(&[&backends[0], &backends[1], &backends[2]], &Resilience::default());
    config.targets[0].backends[2].portion = Portion { weight: 0, ..Portion::default() };
    let keel = Keel::start(&config);
    let before: Vec<_> = keel.server.targets()[0].backends.iter().map(Arc::clone).collect();
    let mut client = keel.client();
    under_reloads(&keel, &config, || {
        for _ in 0..300 {
            assert_eq!(client.get("/").status, 200);
        }
    });
    let after = keel.server.targets();
    assert!(before.iter().zip(&after[0].backends).all(|(was, now)| Arc::ptr_eq(was, now)));
    assert!(before.iter().all(|backend| backend.in_flight() == 0 && backend.generation() == 0));
    let pool = keel.server.readings().pool;
    assert!(pool.opened <= 4 && pool.closed_idle == 0, "{pool:?}");
    assert_eq!(backends[2].requests(), 0);
    eventually("all are counted at one place", || {
        keel.server.readings().target(after[0].id).is_some_and(|target| target.traffic.requests() == 300)
    });
    assert!(backends[0].requests().abs_diff(backends[1].requests()) <= 1, "the turn goes on");
}

#[test]
fn hedged_requests_end_once_each_under_reloads() {
    let backends = fakes(2);
    let mut config = of(&[&backends[0], &backends[1]], &Resilience::default());
    config.targets[0].resilience.hedging = Some(Hedging { budget: 100, ..Hedging::default() });
    let keel = Keel::start(&config);
    backends[0].behave(Behaviour::default().latency(Duration::from_millis(40)));
    under_reloads(&keel, &config, || {
        let mut client = keel.client();
        for _ in 0..60 {
            assert_eq!(client.get("/").status, 200);
        }
    });
    let target = keel.server.targets().remove(0);
    eventually("nobody holds a lease", || target.backends.iter().all(|backend| backend.in_flight() == 0));
}
