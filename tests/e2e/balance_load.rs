//! Shares under load and over the wire: least connections, weights, tiers.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use evenkeel::config::model::{Balance, Policy, Portion, Protocol};

use super::support::{Client, Keel, config, eventually, fakes, quick_health};

/// A backend that holds its answers back until the gate is opened. It answers on any number of connections.
fn held(gate: &Arc<Barrier>) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let (gate, count) = (Arc::clone(gate), Arc::clone(&asked));
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let (gate, count) = (Arc::clone(&gate), Arc::clone(&count));
            thread::spawn(move || {
                let mut head = Vec::new();
                let mut byte = [0];
                while stream.read_exact(&mut byte).is_ok() {
                    head.push(byte[0]);
                    if head.ends_with(b"\r\n\r\n") {
                        head.clear();
                        count.fetch_add(1, Ordering::SeqCst);
                        gate.pass();
                        if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nslow").is_err() {
                            return;
                        }
                    }
                }
            });
        }
    });
    (address, asked)
}

/// Closed until it is opened, and then open for good.
#[derive(Default)]
struct Barrier {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Barrier {
    fn pass(&self) {
        drop(self.opened.wait_while(self.open.lock().unwrap(), |open| !*open).unwrap());
    }

    fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

/// The scenario of jkalsi1's load balancer, with a backend that is as slow as can be: a fair share of 60 would be 20.
#[test]
fn a_slow_backend_gets_fewer_requests_by_least_connections() {
    let backends = fakes(2);
    let gate = Arc::<Barrier>::default();
    let (slow, asked) = held(&gate);
    let mut config = config(Protocol::Http, &[slow, backends[0].addr(), backends[1].addr()]);
    config.targets[0].balance = Balance::LeastConnections.into();
    let keel = Keel::start(&config);
    let fast = || backends.iter().map(|backend| backend.requests()).sum::<u64>();
    let (address, left) = (keel.address(), AtomicUsize::new(60));
    thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                let mut client = Client::connect(address);
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1)).is_ok() {
                    assert_eq!(client.get("/").status, 200);
                }
            });
        }
        // Whoever met the slow one waits there, and the others take all the rest.
        eventually("all requests are out", || fast() + asked.load(Ordering::SeqCst) as u64 == 60);
        gate.open();
    });
    let slow = asked.load(Ordering::SeqCst);
    assert!((1..=5).contains(&slow), "{slow} of 60");
}

#[test]
fn idle_backends_take_turns_by_least_connections() {
    let backends = fakes(3);
    let keel = Keel::with(&[&backends[0], &backends[1], &backends[2]], |config| {
        config.targets[0].balance = Balance::LeastConnections.into();
    });
    let mut client = keel.client();
    (0..60).for_each(|_| assert_eq!(client.get("/").status, 200));
    let turns: Vec<u64> = backends.iter().map(|backend| backend.requests()).collect();
    assert!(turns.iter().all(|turns| (19..=21).contains(turns)), "{turns:?}");
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
