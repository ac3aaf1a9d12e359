//! The thinnest whole path, and what it promises first: exact rotation.

use std::collections::BTreeMap;
use std::net::TcpStream;

use super::support::{Keel, fakes};

#[test]
fn a_get_goes_through_and_comes_back() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let mut client = keel.client();
    for _ in 0..3 {
        let answer = client.get("/");
        assert_eq!((answer.status, answer.text().as_str()), (200, "Hello from fake-1"));
    }
    assert_eq!((backends[0].requests(), backends[0].connections()), (3, 1));
}

#[test]
fn round_robin_is_exact_over_workers_and_client_threads() {
    let backends = fakes(3);
    let keel = Keel::http(&[&backends[0], &backends[1], &backends[2]]);
    let address = keel.address();
    let served = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|thread| {
                scope.spawn(move || {
                    let mut served = BTreeMap::new();
                    // 999 = 7 × 125 + 124, on new connections every 10 requests so that both workers get some.
                    let mine = if thread == 7 { 124 } else { 125 };
                    let mut client = super::support::Client::connect(address);
                    for number in 0..mine {
                        if number % 10 == 9 {
                            client = super::support::Client::connect(address);
                        }
                        *served.entry(client.get("/").text()).or_insert(0) += 1;
                    }
                    served
                })
            })
            .collect();
        let mut total = BTreeMap::<String, u32>::new();
        for thread in threads {
            for (name, count) in thread.join().unwrap() {
                *total.entry(name).or_insert(0) += count;
            }
        }
        total
    });
    assert_eq!(served.values().copied().collect::<Vec<_>>(), [333, 333, 333], "{served:?}");
    let by_worker: Vec<u64> =
        keel.server.readings_by_worker().iter().map(|readings| readings.requests()).collect();
    assert!(by_worker.iter().all(|&count| count >= 100), "both workers took part: {by_worker:?}");
}

#[test]
fn a_second_instance_on_the_same_address_is_refused_by_name() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let mut config = super::support::config(evenkeel::config::model::Protocol::Http, &[backends[0].addr()]);
    config.listeners[0].binds = vec![evenkeel::config::model::Bind::Tcp(keel.address())];
    let refused = evenkeel::server::Server::start(&config, Default::default());
    let message = refused.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(message.contains("listener web") && message.contains(&keel.address().to_string()), "{message}");
    assert!(message.contains("in use"), "{message}");
    assert!(TcpStream::connect(keel.address()).is_ok());
}
