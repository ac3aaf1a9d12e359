//! Shares under load and over the wire: least connections, weights, tiers.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use evenkeel::config::model::{Balance, Policy, Portion};
use fake_backend::Behaviour;

use super::support::{Client, Keel, eventually, fakes, quick_health};

/// How many requests each backend got of `requests` by so many clients at once.
fn shares(keel: &Keel, clients: usize, requests: usize) -> BTreeMap<String, usize> {
    let left = AtomicUsize::new(requests);
    let address = keel.address();
    let ask = || {
        let mut client = Client::connect(address);
        let mut names = Vec::new();
        while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok() {
            names.push(client.get("/").text().replace("Hello from ", ""));
        }
        names
    };
    let mut counts = BTreeMap::new();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(ask)).collect();
        for name in threads.into_iter().flat_map(|thread| thread.join().unwrap()) {
            *counts.entry(name).or_default() += 1;
        }
    });
    assert_eq!(counts.values().sum::<usize>(), requests);
    counts
}

/// The scenario of jkalsi1's load balancer: a fair share of 60 would be 20.
#[test]
fn a_slow_backend_gets_fewer_requests_by_least_connections_in_20_runs_of_20() {
    let backends = fakes(3);
    backends[0].behave(Behaviour::status(200).latency(Duration::from_millis(100)));
    backends[1].behave(Behaviour::status(200).latency(Duration::from_millis(10)));
    backends[2].behave(Behaviour::status(200).latency(Duration::from_millis(10)));
    let keel = Keel::with(&[&backends[0], &backends[1], &backends[2]], |config| {
        config.targets[0].balance = Balance::LeastConnections.into();
    });
    for run in 0..20 {
        let shares = shares(&keel, 10, 60);
        let slow = shares.get(backends[0].id()).copied().unwrap_or(0);
        assert!((1..=14).contains(&slow), "run {run}: {shares:?}");
    }
    // With nothing under way all are equal, however slow.
    backends.iter().for_each(|backend| backend.behave(Behaviour::status(200)));
    let idle = shares(&keel, 1, 60);
    assert!(idle.values().all(|turns| (19..=21).contains(turns)), "{idle:?}");
}

#[test]
fn weights_take_turns_in_the_smooth_order_over_the_wire() {
    let backends = fakes(3);
    let keel = Keel::with(&[&backends[0], &backends[1], &backends[2]], |config| {
        for (backend, weight) in config.targets[0].backends.iter_mut().zip([5, 1, 1]) {
            backend.portion = Portion { weight, ..Portion::default() };
        }
    });
    let mut client = keel.client();
    let turns: Vec<String> = (0..14).map(|_| client.get("/").text()).collect();
    let letter = |name: &String| {
        let place = backends.iter().position(|backend| name.contains(backend.id()));
        ["a", "b", "c"][place.unwrap()]
    };
    assert_eq!(turns.iter().map(letter).collect::<String>(), "aabacaaaabacaa");
}

#[test]
fn a_backup_takes_over_and_hands_back() {
    let backends = fakes(2);
    let keel = Keel::with(&[&backends[0], &backends[1]], |config| {
        let target = &mut config.targets[0];
        target.balance = Policy::from(Balance::PowerOfTwo);
        target.health = Some(quick_health());
        target.backends[1].portion = Portion { priority: Portion::BACKUP, ..Portion::default() };
        target.backends.iter_mut().for_each(|backend| backend.probe_path = Some("/health".into()));
    });
    let mut client = keel.client();
    let mut serves = |backend: usize| {
        let name = backends[backend].id();
        eventually("the right backend serves", || client.get("/").text().contains(name));
        assert!((0..20).all(|_| client.get("/").text().contains(name)));
    };
    serves(0);
    backends[0].set_healthy(false);
    serves(1);
    backends[0].set_healthy(true);
    serves(0);
}
