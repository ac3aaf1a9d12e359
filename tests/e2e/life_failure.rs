//! Backends that fail, and what it costs a client: as little as possible, and never more than it must.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use evenkeel::message::Cause;
use evenkeel::targets::Health;
use fake_backend::{Behaviour, Fake, Fault, Running};

use super::life_lab::{
    Deaf, Watch, assert_own, post, probe_quickly, reading, status, tcp, until, until_ended,
};
use super::support::{self, Client, Keel, backend, eventually, fakes};

fn refusing(count: usize) -> Vec<Running> {
    (1..=count).map(|n| Fake::http(format!("off-{n}")).refusing().start_in_thread().unwrap()).collect()
}

#[test]
fn with_every_backend_down_the_answer_is_503_at_once_until_one_is_back() {
    let backends = fakes(2);
    let keel = Keel::with(&[&backends[0], &backends[1]], probe_quickly);
    until(&keel, 0, Health::Up);
    until(&keel, 1, Health::Up);
    let mut client = keel.client();
    assert_eq!(client.get("/").status, 200);
    backends.iter().for_each(|backend| backend.set_healthy(false));
    until(&keel, 0, Health::Down);
    until(&keel, 1, Health::Down);
    let before = backends[0].requests() + backends[1].requests();
    for _ in 0..5 {
        // On one connection: our own answer does not end it.
        assert_own(&client.get("/"), Cause::NoBackend);
    }
    assert_eq!(backends[0].requests() + backends[1].requests(), before);
    until_ended(&keel, Cause::NoBackend, 5);
    backends[1].set_healthy(true);
    until(&keel, 1, Health::Up);
    // It says so a moment before it is among those that are picked.
    eventually("it serves", || client.get("/").text() == "Hello from fake-2");
}

#[test]
fn a_backend_that_refuses_from_the_start_costs_a_connect_per_second_and_no_request() {
    let (off, on) = (refusing(1), fakes(1));
    let keel = Keel::http(&[&off[0], &on[0]]);
    let watch = Watch::start();
    let mut client = keel.client();
    for _ in 0..200 {
        assert_eq!(client.get("/").text(), "Hello from fake-1");
    }
    let most = 1 + watch.elapsed().as_secs();
    until_ended(&keel, Cause::Done, 200);
    let (refused, served) = (reading(&keel, 0), reading(&keel, 1));
    assert!((1..=most).contains(&refused.attempts), "{} connects", refused.attempts);
    assert_eq!(refused.failures, refused.attempts);
    assert_eq!((served.attempts, served.failures), (200, 0));
    assert_eq!(keel.server.readings().retries, refused.attempts);
    assert!(status(&keel, 0).ejected_until.is_some());
}

#[test]
fn a_request_tries_three_backends_and_no_more() {
    let off = refusing(5);
    let keel = Keel::http(&off.iter().collect::<Vec<_>>());
    assert_own(&keel.client().get("/"), Cause::ConnectFailed);
    until_ended(&keel, Cause::ConnectFailed, 1);
    let attempts: Vec<u64> = (0..5).map(|nth| reading(&keel, nth).attempts).collect();
    assert_eq!((attempts.iter().sum::<u64>(), keel.server.readings().retries), (3, 2), "{attempts:?}");
    assert!(attempts.iter().all(|&count| count <= 1), "each once: {attempts:?}");
}

#[test]
fn an_ejection_never_empties_a_target() {
    let off = refusing(1);
    let keel = Keel::http(&[&off[0]]);
    let mut client = keel.client();
    for _ in 0..3 {
        assert_own(&client.get("/"), Cause::ConnectFailed);
    }
    assert!(status(&keel, 0).ejected_until.is_some());
    off[0].restart().unwrap();
    assert_eq!(client.get("/").status, 200, "it is tried although its ejection has not ended");
    assert_eq!(status(&keel, 0).ejected_until, None);
}

/// One client thread's share of a mixed load: 200s and everything else.
fn load(address: SocketAddr, done: &AtomicBool, good: &AtomicUsize, bad: &AtomicUsize) {
    let mut client = Client::connect(address);
    for number in 0.. {
        if done.load(Ordering::Relaxed) {
            return;
        }
        let answer =
            if number % 2 == 0 { client.get("/") } else { client.send(post("/count", "1234")).answer() };
        if answer.status == 200 && !answer.cut {
            good.fetch_add(1, Ordering::Relaxed);
        } else {
            assert!(!answer.cut && answer.status == 502, "told what happened: {answer:?}");
            bad.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn killing_one_of_two_backends_under_load_fails_only_what_was_in_flight_on_it() {
    const THREADS: usize = 8;
    let backends = fakes(2);
    let keel = Keel::with(&[&backends[0], &backends[1]], probe_quickly);
    until(&keel, 0, Health::Up);
    until(&keel, 1, Health::Up);
    let (done, good, bad) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let address = keel.address();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| load(address, &done, &good, &bad));
        }
        let more = |what: &str| {
            let target = good.load(Ordering::Relaxed) + 300;
            eventually(what, || good.load(Ordering::Relaxed) >= target);
        };
        more("load before");
        backends[0].stop();
        more("load goes on");
        until(&keel, 0, Health::Down);
        more("and on");
        backends[0].restart().unwrap();
        let before = backends[0].requests();
        eventually("it is back", || backends[0].requests() >= before + 50);
        done.store(true, Ordering::Relaxed);
    });
    let bad = bad.load(Ordering::Relaxed);
    assert!(bad <= THREADS, "{bad} failed");
    assert_eq!(keel.server.readings().ended_with(Cause::BackendClosed), bad as u64);
}

#[test]
fn what_backends_do_wrong_has_its_cause_and_status() {
    let fake = fakes(1).remove(0);
    let keel = Keel::with(&[&fake], |config| {
        config.targets[0].timeouts.first_byte = Duration::from_secs(1);
    });
    for (fault, cause) in [
        (Fault::Garbage, Cause::BadAnswer),
        (Fault::CloseOnAccept, Cause::BackendClosed),
        (Fault::CloseUnanswered, Cause::BackendClosed),
        (Fault::CloseMidHead, Cause::BackendClosed),
        (Fault::UnsolicitedUpgrade, Cause::BadUpgrade),
        (Fault::Hang, Cause::FirstByteTimeout),
        (Fault::HangUnread, Cause::FirstByteTimeout),
    ] {
        fake.behave(Behaviour::fault(fault.clone()));
        let answer = keel.client().get("/");
        assert_own(&answer, cause);
        assert!(!answer.text().contains("127.0.0.1"), "nothing internal: {}", answer.text());
        assert!(answer.header("x-request-id").is_some() && answer.header("date").is_some());
    }
    fake.behave(Behaviour::default());
    assert_eq!(keel.client().get("/").status, 200);
}

#[test]
fn a_backend_that_does_not_accept_is_given_up_after_the_connect_timeout() {
    let (deaf, fake) = (Deaf::on([127, 0, 0, 1].into()), fakes(1).remove(0));
    let impatient = |addresses: &[SocketAddr]| {
        let mut config = support::config(evenkeel::config::model::Protocol::Http, addresses);
        config.targets[0].timeouts.connect = Duration::from_secs(1);
        Keel::start(&config)
    };
    let keel = impatient(&[deaf.address]);
    assert_own(&keel.client().get("/"), Cause::ConnectTimeout);
    let keel = impatient(&[deaf.address, fake.addr()]);
    let mut client = keel.client();
    for _ in 0..5 {
        assert_eq!(client.get("/").status, 200);
    }
    until_ended(&keel, Cause::Done, 5);
    assert_eq!(reading(&keel, 0).attempts, 1);
}

/// `count` answers from several threads, by who gave them.
fn served(keel: &Keel, count: usize) -> BTreeMap<String, usize> {
    let address = keel.address();
    let mut total = BTreeMap::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(move || {
                    let mut client = Client::connect(address);
                    (0..count / 4).map(|_| client.get("/").text()).collect::<Vec<_>>()
                })
            })
            .collect();
        for text in threads.into_iter().flat_map(|thread| thread.join().unwrap()) {
            *total.entry(text).or_insert(0) += 1;
        }
    });
    total
}

#[test]
fn rotation_stays_exact_when_a_backend_leaves_and_returns() {
    let backends = fakes(3);
    let keel = Keel::with(&backends.iter().collect::<Vec<_>>(), probe_quickly);
    let everybody = |health| (0..3).for_each(|nth| drop(until(&keel, nth, health)));
    everybody(Health::Up);
    let counts = |count| served(&keel, count).into_values().collect::<Vec<_>>();
    assert_eq!(counts(240), [80, 80, 80]);
    backends[1].set_healthy(false);
    until(&keel, 1, Health::Down);
    // It is told a moment before it is out.
    eventually("it gets nothing", || served(&keel, 12).len() == 2);
    assert_eq!(counts(240), [120, 120]);
    backends[1].set_healthy(true);
    everybody(Health::Up);
    eventually("it gets requests", || served(&keel, 12).len() == 3);
    assert_eq!(counts(240), [80, 80, 80]);
}

/// Were it ejected until its trial connection ends, that would stay the only one for as long as it is open.
#[test]
fn a_backend_that_is_back_gets_its_share_while_its_trial_connection_is_still_open() {
    let backends =
        super::life_lab::tcp_fakes(2, |fake| fake.behave(Behaviour::tcp(fake_backend::TcpMode::Echo)));
    backends[0].stop_accepting();
    let keel = tcp(&[&backends[0], &backends[1]], |_| ());
    let mut open = vec![keel.client()];
    eventually("it was refused", || status(&keel, 0).ejected_until.is_some());
    backends[0].restart().unwrap();
    eventually("a trial reaches it", || {
        open.push(keel.client());
        open.last_mut().unwrap().send("x");
        let arrived = |backend: &Running| backend.connections();
        eventually("arrived", || arrived(&backends[0]) + arrived(&backends[1]) == open.len() as u64);
        arrived(&backends[0]) == 1
    });
    // It arrives there a moment before that is known here.
    eventually("it is back", || status(&keel, 0).ejected_until.is_none());
    let before = open.len() as u64;
    for _ in 0..10 {
        open.push(keel.client());
    }
    eventually("arrived", || backends.iter().map(|b| b.connections()).sum::<u64>() == before + 10);
    assert_eq!(backends[0].connections(), 6);
}

#[test]
fn a_backend_on_another_address_family_or_a_unix_socket_serves_too() {
    let folder = tempfile::tempdir().unwrap();
    let unix = Fake::http("unix").unix(folder.path().join("app.sock")).start_in_thread().unwrap();
    let v6 = Fake::http("v6").bind("[::1]:0").start_in_thread().unwrap();
    let mut config = support::config(evenkeel::config::model::Protocol::Http, &[v6.addr()]);
    let mut local = backend(v6.addr());
    local.name = "app".into();
    local.address = evenkeel::config::model::BackendAddress::Unix(unix.path().unwrap().to_path_buf());
    config.targets[0].backends.push(local);
    let keel = Keel::start(&config);
    let mut client = keel.client();
    let mut served: Vec<String> = (0..4).map(|_| client.get("/").text()).collect();
    served.sort();
    assert_eq!(served, ["Hello from unix", "Hello from unix", "Hello from v6", "Hello from v6"]);
}
