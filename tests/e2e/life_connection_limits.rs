//! Limits of connections: of a listener, and of one client on it.

use std::net::{Ipv4Addr, TcpStream};
use std::sync::Barrier;

use evenkeel::config::model::{Bind, LogFormat};
use evenkeel::message::Cause;
use fake_backend::{Behaviour, TcpMode};

use super::life_lab::{LogFile, assert_own, end, tcp, tcp_fakes, until_ended};
use super::support::{Client, Keel, eventually, fakes};

const ONE: Ipv4Addr = Ipv4Addr::LOCALHOST;
const OTHER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// So many clients from this address, each served once.
fn served(keel: &Keel, from: Ipv4Addr, count: usize) -> Vec<Client> {
    let mut clients: Vec<Client> = (0..count).map(|_| Client::connect_from(from, keel.address())).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.get("/").status, 200));
    clients
}

#[test]
fn over_a_listeners_limit_a_client_is_told_and_other_listeners_have_their_own() {
    let backends = fakes(1);
    let keel = Keel::with(&[&backends[0]], |config| {
        config.listeners[0].limits.connections = Some(3);
        let mut second = config.listeners[0].clone();
        second.name = "other".into();
        second.limits.connections = None;
        config.listeners.push(second);
    });
    let mut clients = served(&keel, ONE, 3);
    for _ in 0..3 {
        let mut client = keel.client();
        assert_own(&client.get("/"), Cause::TooManyConnections);
        assert!(client.is_closed());
    }
    until_ended(&keel, Cause::TooManyConnections, 3);
    let addresses: Vec<_> = keel.server.bound().iter().map(|(_, bound)| bound.to_string()).collect();
    let mut elsewhere = Client::connect(addresses[1].parse().unwrap());
    assert_eq!(elsewhere.get("/").status, 200);
    clients.pop();
    eventually("there is room again", || keel.server.connections() == 3);
    clients.extend(served(&keel, ONE, 1));
    assert_own(&keel.client().get("/"), Cause::TooManyConnections);
}

#[test]
fn over_a_clients_limit_it_is_told_when_to_come_back_and_others_are_served() {
    let backends = fakes(1);
    let mut log = None;
    let keel = Keel::with(&[&backends[0]], |config| {
        config.listeners[0].limits.connections_per_client = Some(2);
        // The peer counts, whatever it says of others.
        config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
        log = Some(LogFile::of(config, LogFormat::Json));
    });
    let mut clients = served(&keel, ONE, 2);
    let mut third = Client::connect_from(ONE, keel.address());
    let answer = third.ask("GET / HTTP/1.1\r\nHost: test\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n");
    assert_own(&answer, Cause::TooManyFromClient);
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("1")));
    assert!(third.is_closed());
    let others = served(&keel, OTHER, 2);
    assert_own(&Client::connect_from(OTHER, keel.address()).get("/"), Cause::TooManyFromClient);
    until_ended(&keel, Cause::TooManyFromClient, 2);
    assert_eq!(keel.server.readings().connections.refused, 2);
    clients.pop();
    eventually("there is room again", || keel.server.connections() == 3);
    clients.extend(served(&keel, ONE, 1));
    drop((clients, others));
    eventually("all have left", || keel.server.connections() == 0);
    drop(served(&keel, ONE, 2));
    end(keel);
    let records = log.unwrap().records();
    let refused: Vec<_> = records.iter().filter(|record| record["cause"] == "too_many_from_client").collect();
    assert_eq!(refused.len(), 2);
    assert!(
        refused.iter().all(|record| record["status"] == 429 && record["listener"] == "web"),
        "{refused:?}"
    );
    // Two workers write, each when it comes to it.
    let is_from = |record: &&serde_json::Value, address: &str| {
        record["client"].as_str().is_some_and(|client| client.starts_with(address))
    };
    for address in ["127.0.0.1:", &format!("{OTHER}:")] {
        assert!(refused.iter().any(|record| is_from(record, address)), "{address} {refused:?}");
    }
}

#[test]
fn over_a_clients_limit_a_tcp_client_is_closed() {
    let backends = tcp_fakes(1, |fake| fake.behave(Behaviour::tcp(TcpMode::GreetAndEcho)));
    let keel = tcp(&[&backends[0]], |config| config.listeners[0].limits.connections_per_client = Some(1));
    let greeted = |from| Client::connect_from(from, keel.address()).take(17);
    let mut inside = Client::connect_from(ONE, keel.address());
    assert_eq!(inside.take(17), b"Hello from fake-1");
    assert!(Client::connect_from(ONE, keel.address()).is_closed());
    assert_eq!(greeted(OTHER), b"Hello from fake-1");
    drop(inside);
    eventually("there is room again", || keel.server.connections() == 0);
    assert_eq!(greeted(ONE), b"Hello from fake-1");
}

#[test]
fn a_client_on_a_unix_socket_has_no_address_and_no_limit() {
    let backends = fakes(1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keel.sock");
    let _keel = Keel::with(&[&backends[0]], |config| {
        config.listeners[0].limits.connections_per_client = Some(1);
        config.listeners[0].binds = vec![Bind::Unix(path.clone())];
    });
    let mut clients: Vec<_> =
        (0..3).map(|_| Client::over(std::os::unix::net::UnixStream::connect(&path).unwrap())).collect();
    for client in &mut clients {
        assert_eq!(client.get("/").status, 200);
    }
}

/// Each of the two workers accepts some of a burst; together they let in as many as may be, no more and no fewer.
#[test]
fn the_limits_are_exact_over_workers() {
    const BURST: usize = 40;
    let backends = fakes(1);
    for (all, own, cause) in
        [(Some(7), None, Cause::TooManyConnections), (None, Some(7), Cause::TooManyFromClient)]
    {
        let keel = Keel::with(&[&backends[0]], |config| {
            config.listeners[0].limits.connections = all;
            config.listeners[0].limits.connections_per_client = own;
        });
        let address = keel.address();
        let (start, done) = (Barrier::new(BURST), Barrier::new(BURST));
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let ask = || {
                start.wait();
                let mut client: Client<TcpStream> = Client::connect(address);
                let status = client.get("/").status;
                // Nobody makes room before all were answered.
                done.wait();
                status
            };
            let threads: Vec<_> = (0..BURST).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let count = |status| statuses.iter().filter(|seen| **seen == status).count();
        assert_eq!((count(200), count(cause.status())), (7, BURST - 7), "{statuses:?}");
        eventually("all have left", || keel.server.connections() == 0);
        assert_eq!(keel.client().get("/").status, 200);
    }
}
