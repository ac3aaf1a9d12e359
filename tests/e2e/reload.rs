//! Another config while it serves: what is not concerned notices nothing, what fails changes nothing.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use evenkeel::config::model::{Bind, Config, Protocol};
use evenkeel::message::Cause;
use evenkeel::reload::Refused;
use evenkeel::telemetry::cells::TargetReading;
use fake_backend::{Behaviour, Running};

use super::life_lab::connect;
use super::support::port::Reserved;
use super::support::process::Process;
use super::support::{self, Client, Keel, PATIENCE, all_to, config, eventually, fakes, quick_health};

/// One target and listener for each name, each with the next of `backends`.
pub fn config_of(names: &[&str], backends: &[&Running]) -> Config {
    let mut whole = config(Protocol::Http, &[]);
    (whole.listeners, whole.targets) = (Vec::new(), Vec::new());
    for (name, backend) in names.iter().zip(backends) {
        let mut one = config(Protocol::Http, &[backend.addr()]);
        let (mut listener, mut target) = (one.listeners.remove(0), one.targets.remove(0));
        (listener.name, target.name) = ((*name).into(), (*name).into());
        listener.routes = all_to(name);
        whole.listeners.push(listener);
        whole.targets.push(target);
    }
    whole
}

/// Requests that a target has counted.
fn total(target: &TargetReading) -> u64 {
    target.traffic.requests()
}

/// Reads exactly these bytes.
fn take_exactly(socket: &mut TcpStream, bytes: &[u8]) {
    let mut found = vec![0; bytes.len()];
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.read_exact(&mut found).unwrap();
    assert_eq!(found, bytes);
}

#[test]
fn a_kept_connection_goes_on_and_its_next_request_meets_the_new_config() {
    let backends = fakes(2);
    let keel = Keel::http(&[&backends[0]]);
    let mut client = keel.client();
    assert_eq!(client.get("/").text(), "Hello from fake-1");
    let reloaded = keel.reload(&config(Protocol::Http, &[backends[1].addr()])).unwrap();
    assert_eq!((reloaded.added, reloaded.removed), (1, 1));
    let answer = client.get("/");
    assert_eq!((answer.text().as_str(), answer.header("connection")), ("Hello from fake-2", None));
    assert_eq!(keel.server.readings().connections.accepted, 1);
    eventually("the pooled connection to the one that is gone is closed", || {
        backends[0].open_connections() == 0
    });
}

#[test]
fn a_request_under_way_ends_under_the_config_that_it_was_begun_with() {
    let backends = fakes(2);
    backends[0].behave(Behaviour::default().latency(Duration::from_millis(300)).times(1));
    let keel = Keel::http(&[&backends[0]]);
    let mut client = keel.client();
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("it is under way", || backends[0].requests() == 1);
    keel.reload(&config(Protocol::Http, &[backends[1].addr()])).unwrap();
    assert_eq!(client.answer().text(), "Hello from fake-1");
    assert_eq!(client.get("/").text(), "Hello from fake-2");
    assert_eq!(backends[0].requests(), 1);
}

#[test]
fn what_has_other_neighbours_keeps_its_name_its_sockets_and_its_numbers() {
    let backends = fakes(3);
    let each: Vec<&Running> = backends.iter().collect();
    let keel = Keel::start(&config_of(&["a", "b", "c"], &each));
    let addresses = ["a", "b", "c"].map(|name| keel.addresses(name)[0]);
    let mut c = Client::connect(addresses[2]);
    assert_eq!(c.get("/").text(), "Hello from fake-3");
    let before = keel.server.targets().remove(2);
    // From the third place to the first, from three to one and back.
    for names in [&["c"][..], &["b", "c"], &["c", "b"], &["a", "c"]] {
        let of = |name: &&str| each[usize::from(name.as_bytes()[0] - b'a')];
        keel.reload(&config_of(names, &names.iter().map(of).collect::<Vec<_>>())).unwrap();
        assert_eq!(c.get("/").text(), "Hello from fake-3", "{names:?}");
        assert_eq!(keel.addresses("c"), [addresses[2]], "{names:?}");
        let place = names.iter().position(|name| *name == "c").unwrap();
        assert!(std::sync::Arc::ptr_eq(&before, &keel.server.targets()[place]), "{names:?}");
    }
    eventually("all are counted at one place", || {
        keel.server.readings().target(before.id).map(total) == Some(5)
    });
    assert_eq!(keel.server.reloader().snapshots.alive(), 1);
}

#[test]
fn a_number_that_somebody_had_counts_from_zero() {
    let backends = fakes(2);
    let keel = Keel::start(&config_of(&["a"], &[&backends[0]]));
    let id = keel.server.targets()[0].id;
    for _ in 0..3 {
        assert_eq!(Client::connect(keel.address()).get("/").status, 200);
    }
    eventually("three are counted", || {
        keel.server.readings().target(id).is_some_and(|target| total(target) == 3)
    });
    eventually("its connections are gone", || keel.server.connections() == 0);
    keel.reload(&config_of(&["b"], &[&backends[1]])).unwrap();
    eventually("the pools let go of it", || backends[0].open_connections() == 0);
    // Nobody holds `a` any more, so that its number is free.
    eventually("it has its number", || {
        keel.reload(&config_of(&["b", "c"], &[&backends[1], &backends[0]])).unwrap();
        let found = keel.server.targets()[1].id == id;
        if !found {
            keel.reload(&config_of(&["b"], &[&backends[1]])).unwrap();
        }
        found
    });
    assert!(keel.server.readings().target(id).is_none_or(|target| total(target) == 0));
    assert_eq!(Client::connect(keel.addresses("c")[0]).get("/").status, 200);
    eventually("one is counted", || {
        keel.server.readings().target(id).is_some_and(|target| total(target) == 1)
    });
}

#[test]
fn a_listener_that_is_gone_says_so_to_its_clients_and_refuses_new_ones() {
    let backends = fakes(2);
    let keel = Keel::start(&config_of(&["a", "b"], &[&backends[0], &backends[1]]));
    let (address, mut idle, mut busy) = (
        keel.addresses("a")[0],
        Client::connect(keel.addresses("a")[0]),
        Client::connect(keel.addresses("a")[0]),
    );
    assert_eq!(idle.get("/").status, 200);
    backends[0].behave(Behaviour::default().latency(Duration::from_secs(3)).times(1));
    busy.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("it is under way", || backends[0].requests() == 2);
    keel.reload(&config_of(&["b"], &[&backends[1]])).unwrap();
    let answer = busy.answer();
    assert_eq!((answer.text().as_str(), answer.header("connection")), ("Hello from fake-1", Some("close")));
    assert!(idle.is_closed());
    eventually("nobody listens there", || TcpStream::connect(address).is_err());
    assert_eq!(Client::connect(keel.addresses("b")[0]).get("/").text(), "Hello from fake-2");
}

#[test]
fn an_address_that_is_taken_refuses_the_whole_and_nothing_has_changed() {
    let backends = fakes(2);
    let reserved = Reserved::new();
    let taken = TcpListener::bind(("127.0.0.1", reserved.number())).unwrap();
    let before = config_of(&["a"], &[&backends[0]]);
    let keel = Keel::start(&before);
    let (targets, address) = (keel.server.targets(), keel.address());
    let mut after = config_of(&["a", "b"], &[&backends[1], &backends[1]]);
    after.listeners[1].binds =
        vec![Bind::Tcp("127.0.0.1:0".parse().unwrap()), Bind::Tcp(taken.local_addr().unwrap())];
    assert!(matches!(keel.reload(&after), Err(Refused::Bind(unbound)) if unbound.listener == "b"));
    assert!(std::sync::Arc::ptr_eq(&targets[0], &keel.server.targets()[0]));
    assert_eq!(keel.server.bound().len(), 1);
    assert_eq!(Client::connect(address).get("/").text(), "Hello from fake-1");
    drop(taken);
    keel.reload(&after).unwrap();
    assert_eq!((keel.address(), keel.addresses("b").len()), (address, 2));
    for address in keel.server.bound() {
        let evenkeel::reload::bound::Bound::Tcp(address) = address.1 else { panic!("TCP") };
        assert_eq!(Client::connect(address).get("/").text(), "Hello from fake-2");
    }
}

#[test]
fn what_needs_a_restart_is_refused_by_name() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let mut other = config(Protocol::Http, &[backends[0].addr()]);
    other.workers = 3;
    let refused = keel.reload(&other).unwrap_err();
    assert_eq!(refused.to_string(), "`workers` differs from what is in force; this needs a restart");
}

#[test]
fn a_backend_that_is_known_to_be_dead_is_still_known_to_be_after_a_reload() {
    let backends = fakes(2);
    let change = |extra: bool| {
        let mut config = config_of(&["web", "other"], &[&backends[0], &backends[1]]);
        config.targets[0].health = Some(quick_health());
        config.targets[0].backends.push(support::backend(backends[1].addr()));
        if extra {
            config.targets[1].backends.push(support::backend(backends[0].addr()));
        }
        config
    };
    backends[0].stop();
    let keel = Keel::start(&change(false));
    let down = || keel.server.targets()[0].status()[0].health == evenkeel::targets::Health::Down;
    eventually("it is down", down);
    let since = keel.server.targets()[0].status()[0].since;
    let (before, mut client) = (backends[0].requests(), Client::connect(keel.addresses("web")[0]));
    for turn in 0..20 {
        keel.reload(&change(turn % 2 == 0)).unwrap();
        assert_eq!(client.get("/").text(), "Hello from fake-2");
    }
    assert_eq!(backends[0].requests(), before);
    assert!(down() && keel.server.targets()[0].status()[0].since == since);
}

#[test]
fn limits_change_in_place() {
    let backends = fakes(1);
    let with = |connections, body| {
        let mut config = config(Protocol::Http, &[backends[0].addr()]);
        (config.listeners[0].limits.connections, config.listeners[0].limits.body) = (connections, body);
        config
    };
    let keel = Keel::start(&with(None, None));
    let mut client = keel.client();
    assert_eq!(client.post("/", b"0123456789").status, 200);
    keel.reload(&with(Some(1), Some(5))).unwrap();
    assert_eq!(keel.client().get("/").status, 503, "the one that is there counts");
    assert_eq!(client.post("/", b"0123456789").status, 413);
    eventually("its place is free", || keel.server.connections() == 0);
    keel.reload(&with(None, None)).unwrap();
    assert_eq!(keel.client().post("/", b"0123456789").status, 200);
}

#[test]
fn a_tunnel_goes_on_and_holds_no_config() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let of = |tunnel| {
        let mut config = config(Protocol::Tcp, &[listener.local_addr().unwrap()]);
        config.targets[0].timeouts.tunnel = Duration::from_secs(tunnel);
        config
    };
    let keel = Keel::start(&of(1000));
    let mut client = connect(keel.address());
    let mut backend = support::accept(&listener);
    for turn in 0..20 {
        keel.reload(&of(2000 + turn)).unwrap();
        client.write_all(b"ping").unwrap();
        take_exactly(&mut backend, b"ping");
        backend.write_all(b"pong").unwrap();
        take_exactly(&mut client, b"pong");
        assert_eq!(keel.server.reloader().snapshots.alive(), 1);
    }
    assert_eq!(keel.server.readings().ended_with(Cause::Shutdown), 0);
}

#[test]
fn connections_of_a_listener_that_is_gone_are_cut_when_its_time_is_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut before = config(Protocol::Tcp, &[listener.local_addr().unwrap()]);
    before.shutdown_timeout = Duration::from_millis(50);
    let keel = Keel::start(&before);
    let client = connect(keel.address());
    let _backend = support::accept(&listener);
    let mut after = before.clone();
    after.listeners[0].name = "other".into();
    after.listeners[0].binds = vec![Bind::Tcp("127.0.0.1:0".parse().unwrap())];
    // The address is the same as it is written, and goes over to the other listener.
    let address = keel.address();
    keel.reload(&after).unwrap();
    assert_eq!(keel.addresses("other"), [address]);
    // The cut at the end of its time may be there before the tunnel has seen its own moment.
    let ended = |cause| keel.server.readings().ended_with(cause);
    eventually("it was cut", || ended(Cause::Shutdown) + ended(Cause::Drained) == 1);
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    // It is let go of behind its record.
    eventually("no connection is left", || keel.server.connections() == 0);
}

#[test]
fn a_hangup_reads_the_file_again_and_whatever_is_wrong_with_it_changes_nothing() {
    let backends = fakes(2);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let of = |backend: &Running, more: &str| {
        format!(
            "workers: 1\n{more}targets:\n  web:\n    protocol: http\n    listener: 127.0.0.1:0\n    health_check: off\n    \
             backends: [{{host: 127.0.0.1, port: {}}}]\n",
            backend.port()
        )
    };
    let process = Process::start(&of(&backends[0], ""), 1);
    let mut client = Client::connect(process.address("web"));
    assert_eq!(client.get("/").text(), "Hello from fake-1");
    let said = process.reload(&of(&backends[1], ""));
    let (old, new) = (backends[0].port(), backends[1].port());
    assert!(said.contains("reloaded: ") && said.contains(&new.to_string()), "{said}");
    assert!(said.contains(&old.to_string()) && said.contains("evenkeel.yaml:"), "{said}");
    assert_eq!(client.get("/").text(), "Hello from fake-2");
    assert!(process.hang_up().ends_with("reloaded: nothing differs"));

    let good = of(&backends[1], "");
    let refused = |said: String, reason: &str| {
        assert!(said.contains("reload refused, nothing has changed: "), "{said}");
        assert!(said.contains(reason), "{reason}: {said}");
    };
    refused(process.reload(&of(&backends[0], "worker: 2\n")), "evenkeel.yaml:3:1: unknown key `worker`");
    refused(
        process.reload(&of(&backends[0], "").replace("workers: 1", "workers: 2")),
        "evenkeel.yaml:2: `workers` differs",
    );
    let busy = format!("listener: {}", taken.local_addr().unwrap());
    refused(
        process.reload(&of(&backends[0], "").replace("listener: 127.0.0.1:0", &busy)),
        "can't bind 127.0.0.1:",
    );
    refused(process.reload(""), "no `targets`");
    refused(
        process.reload(&of(&backends[0], "trusted_proxies: [10.0.0.0/99]\nzone: 1\nmax_connections: x\n")),
        " more",
    );
    std::fs::remove_file(process.folder().join("evenkeel.yaml")).unwrap();
    refused(process.hang_up(), "evenkeel.yaml");
    std::fs::create_dir(process.folder().join("evenkeel.yaml")).unwrap();
    refused(process.hang_up(), "evenkeel.yaml");
    std::fs::remove_dir(process.folder().join("evenkeel.yaml")).unwrap();
    assert_eq!(client.get("/").text(), "Hello from fake-2");
    assert!(process.reload(&good).ends_with("reloaded: nothing differs"));
    assert_eq!(client.get("/").text(), "Hello from fake-2");
    assert_eq!(backends[0].requests(), 1);
}
