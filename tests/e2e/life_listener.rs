//! Listeners: every kind of address, too many connections, and many at once.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Barrier;

use evenkeel::config::model::{Bind, Config, Protocol};
use evenkeel::message::Cause;
use evenkeel::reload::bound::Bound;
use evenkeel::server::{Options, Server};
use fake_backend::{Behaviour, TcpMode};

use super::life_lab::{assert_own, end, read_to_end, tcp, tcp_fakes};
use super::support::{Client, Keel, PATIENCE, all_to, config, eventually, fakes};

#[test]
fn over_max_connections_a_client_is_told_and_the_next_one_is_served_when_there_is_room() {
    let backends = fakes(1);
    let keel = Keel::with(&[&backends[0]], |config| config.max_connections = Some(4));
    let mut clients: Vec<Client> = (0..4).map(|_| keel.client()).collect();
    for client in &mut clients {
        assert_eq!(client.get("/").status, 200);
    }
    assert_eq!(keel.server.connections(), 4);
    for turned_away in 1..=3 {
        let mut client = keel.client();
        let answer = client.get("/");
        assert_own(&answer, Cause::TooManyConnections);
        assert_eq!(answer.header("connection"), Some("close"));
        assert!(client.is_closed());
        eventually("counted", || keel.server.readings().connections.refused == turned_away);
    }
    assert_eq!(backends[0].requests(), 4);
    assert_eq!(clients[0].get("/").status, 200, "those inside are not disturbed");
    clients.pop();
    eventually("there is room again", || keel.server.connections() == 3);
    assert_eq!(keel.client().get("/").status, 200);
    drop(clients);
    eventually("all are gone", || keel.server.connections() == 0);
    eventually("the gauge agrees", || keel.server.readings().connections.open == 0);
}

#[test]
fn over_max_connections_a_tcp_client_is_closed() {
    let backends = tcp_fakes(1, |fake| fake.behave(Behaviour::tcp(TcpMode::GreetAndEcho)));
    let keel = tcp(&[&backends[0]], |config| config.max_connections = Some(2));
    let mut clients: Vec<Client> = (0..2).map(|_| keel.client()).collect();
    for client in &mut clients {
        let mut greeting = [0u8; 17];
        client.socket.read_exact(&mut greeting).unwrap();
    }
    assert!(keel.client().is_closed());
    assert_eq!(backends[0].connections(), 2);
    clients.pop();
    eventually("there is room again", || keel.server.connections() == 1);
    let mut greeting = [0u8; 17];
    keel.client().socket.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"Hello from fake-1");
}

#[test]
fn a_v6_listener_serves_and_its_client_is_known_by_its_v6_address() {
    let backends = [fake_backend::Fake::http("fake-1").record().start_in_thread().unwrap()];
    let keel = Keel::with(&[&backends[0]], |config| {
        config.listeners[0].binds = vec![Bind::Tcp("[::1]:0".parse().unwrap())];
    });
    assert!(keel.address().is_ipv6());
    assert_eq!(keel.client().get("/").status, 200);
    assert_eq!(backends[0].take_requests()[0].header("x-forwarded-for"), ["::1"]);
}

/// `"*:port"`: a v6 socket and a v4 socket on one port. Somebody may take a port that was free a moment ago.
#[test]
fn every_address_of_both_families_on_one_port() {
    let backends = fakes(1);
    let started = (0..20).find_map(|_| {
        let port = TcpListener::bind("0.0.0.0:0").unwrap().local_addr().unwrap().port();
        let mut config = config(Protocol::Http, &[backends[0].addr()]);
        config.listeners[0].binds =
            ["[::]", "0.0.0.0"].map(|any| Bind::Tcp(format!("{any}:{port}").parse().unwrap())).to_vec();
        Some((Server::start(&config, Options::default()).ok()?, port))
    });
    let (server, port) = started.unwrap();
    assert_eq!(server.bound().len(), 2);
    for address in ["127.0.0.1", "[::1]"] {
        let address: SocketAddr = format!("{address}:{port}").parse().unwrap();
        assert_eq!(Client::connect(address).get("/").status, 200);
    }
}

fn on_unix(path: &Path, backend: SocketAddr) -> Config {
    let mut config = config(Protocol::Http, &[backend]);
    config.listeners[0].binds = vec![Bind::Unix(path.to_path_buf())];
    config
}

#[test]
fn a_unix_socket_replaces_a_stale_file_but_not_a_live_instance() {
    let backends = fakes(1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("web.sock");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "left behind by somebody who is gone");

    let keel = Keel::start(&on_unix(&path, backends[0].addr()));
    assert_eq!(keel.server.bound(), [("web".to_owned(), Bound::Unix(path.clone()))]);
    // More connections than one worker would take: both accept from the one socket.
    for _ in 0..8 {
        let mut socket = UnixStream::connect(&path).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.write_all(b"GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("Hello from fake-1"), "{answer}");
    }
    let second = Server::start(&on_unix(&path, backends[0].addr()), Options::default());
    let message = second.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(message.contains("in use") && message.contains("web.sock"), "{message}");
    assert!(UnixStream::connect(&path).is_ok(), "the first one is not disturbed");
    end(keel);
    assert!(!path.exists(), "the file goes with its owner");
}

#[test]
fn an_instance_that_drains_leaves_its_successors_socket_file_alone() {
    let backends = fakes(1);
    backends[0].behave(Behaviour::hang().times(1));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("web.sock");
    let first = Keel::start(&on_unix(&path, backends[0].addr()));
    let mut busy = UnixStream::connect(&path).unwrap();
    busy.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    eventually("a request is under way", || backends[0].requests() == 1);
    first.server.shutdown().advance();
    eventually("the first one listens no more", || UnixStream::connect(&path).is_err());

    let second = Keel::start(&on_unix(&path, backends[0].addr()));
    first.server.shutdown().advance();
    assert_eq!(first.server.wait().unwrap().cut, 1);
    assert!(UnixStream::connect(&path).is_ok(), "the second one can still be reached");
    end(second);
    assert!(!path.exists(), "the file goes with its owner");
}

#[test]
fn a_start_that_fails_leaves_no_socket_file_behind() {
    let backends = fakes(1);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("web.sock");
    let mut config = on_unix(&path, backends[0].addr());
    config.listeners[0].binds.push(Bind::Tcp(taken.local_addr().unwrap()));
    let error = Server::start(&config, Options::default()).err().unwrap().to_string();
    assert!(error.contains("in use"), "{error}");
    assert!(!path.exists());
}

#[test]
fn a_thousand_connections_opened_at_once_are_all_served() {
    const THREADS: usize = 10;
    const EACH: usize = 100;
    let backends = fakes(2);
    let keel = Keel::http(&[&backends[0], &backends[1]]);
    let address = keel.address();
    let all_open = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut clients: Vec<Client> = (0..EACH).map(|_| Client::connect(address)).collect();
                all_open.wait();
                for client in &mut clients {
                    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
                }
                for client in &mut clients {
                    assert_eq!(client.answer().status, 200);
                }
            });
        }
    });
    let readings = keel.server.readings();
    assert_eq!((readings.connections.accepted, readings.connections.refused), (1000, 0));
    assert_eq!((backends[0].requests(), backends[1].requests()), (500, 500));
    eventually("all are gone", || keel.server.connections() == 0);
}

#[test]
fn a_client_that_connects_and_says_nothing_costs_nothing_but_its_place() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let silent = keel.client();
    eventually("it is in", || keel.server.connections() == 1);
    drop(silent);
    eventually("it is out", || keel.server.connections() == 0);
    let readings = keel.server.readings();
    assert_eq!((readings.requests(), readings.connections.accepted), (0, 1));
    assert_eq!(backends[0].connections(), 0);
}

#[test]
fn two_listeners_have_their_own_protocol() {
    let web = fakes(1);
    let raw = tcp_fakes(1, |fake| fake);
    let mut both = config(Protocol::Http, &[web[0].addr()]);
    let mut other = config(Protocol::Tcp, &[raw[0].addr()]);
    for part in [&mut other.listeners[0].name, &mut other.targets[0].name] {
        *part = "raw".into();
    }
    other.listeners[0].routes = all_to("raw");
    both.listeners.append(&mut other.listeners);
    both.targets.append(&mut other.targets);
    let keel = Keel::start(&both);
    let bound = keel.server.bound();
    let [(_, Bound::Tcp(http)), (name, Bound::Tcp(tcp))] = &bound[..] else { panic!("two") };
    assert_eq!(name, "raw");
    assert_eq!(Client::connect(*http).get("/").text(), "Hello from fake-1");
    assert_eq!(read_to_end(&mut Client::connect(*tcp).socket).unwrap(), b"Hello from fake-1");
}

#[test]
fn a_worker_that_has_far_more_connections_than_the_other_gives_new_ones_away() {
    let backends = fakes(1);
    let keel = Keel::with(&[&backends[0]], |config| config.workers = 2);
    let accepted = |worker: usize| keel.server.readings_by_worker()[worker].connections.accepted;
    let open = |worker: usize| keel.server.readings_by_worker()[worker].connections.open;
    let served = || {
        let mut client = keel.client();
        assert_eq!(client.get("/").status, 200);
        client
    };
    // Chance says where each goes, until the first worker has enough; then those of the second leave.
    let (mut clients, mut others) = (Vec::new(), Vec::new());
    while clients.len() < 20 && others.len() < 400 {
        let before = accepted(0);
        let client = served();
        let list = if accepted(0) > before { &mut clients } else { &mut others };
        list.push(client);
    }
    drop(others);
    eventually("all are on the first worker", || (open(0), open(1)) == (20, 0));
    let before = accepted(0);
    let more: Vec<Client> = (0..10).map(|_| served()).collect();
    assert_eq!(
        (open(0), open(1)),
        (20, 10),
        "none of these went where a fair hash would have sent half of them"
    );
    assert_eq!(accepted(0), before, "each counts once, where it is served");
    assert_eq!(keel.server.connections(), 30);
    drop((clients, more));
    eventually("every place is given back", || keel.server.connections() == 0);
    assert_eq!(end(keel).cut, 0);
}
