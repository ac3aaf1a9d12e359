//! Backends that the operator drains and takes down, by reloads of a config that differs in nothing but `state`.

use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::time::Duration;

use evenkeel::config::model::{BackendState, Config, Protocol, Sticky};
use evenkeel::message::Cause;
use evenkeel::targets::{Health, Source};
use fake_backend::{Behaviour, Fake, Running, TcpMode};

use super::drain::{AWAY, Played, exactly};
use super::life_lab::{pause, probe_quickly, read_to_end, status, tcp_fakes, until, until_ended};
use super::support::{Keel, config, events, eventually, fakes};

const A_MOMENT: Duration = Duration::from_millis(200);

/// A target with these backends in these states.
fn of(protocol: Protocol, backends: &[SocketAddr], states: &[BackendState]) -> Config {
    let mut config = config(protocol, backends);
    config.targets[0].drain_timeout = A_MOMENT;
    for (backend, state) in config.targets[0].backends.iter_mut().zip(states) {
        backend.state = *state;
    }
    config
}

fn http(backends: &[Running], states: &[BackendState]) -> Config {
    of(Protocol::Http, &backends.iter().map(Running::addr).collect::<Vec<_>>(), states)
}

/// Who answers `count` new clients.
fn serving(keel: &Keel, count: usize) -> Vec<String> {
    let mut names: Vec<String> = (0..count).map(|_| keel.client().get("/").text()).collect();
    names.sort();
    names.dedup();
    names
}

use BackendState::{Down, Drain, Up};

#[test]
fn a_reload_drains_takes_down_and_lets_in_again_and_events_say_who_and_why() {
    events::listen();
    let backends = fakes(2);
    let named = |states: &[BackendState]| {
        let mut config = http(&backends, states);
        for (backend, name) in config.targets[0].backends.iter_mut().zip(["op-a", "op-b"]) {
            backend.name = name.into();
        }
        probe_quickly(&mut config);
        config
    };
    let keel = Keel::start(&named(&[Up, Up]));
    until(&keel, 0, Health::Up);
    until(&keel, 1, Health::Up);
    let told = |line: &str| eventually(line, || events::with(line).len() == 1);
    // Who was not told to be up is told as one that nobody knew.
    told("backend web/op-a is up: ");
    told("backend web/op-b is up: ");

    keel.reload(&named(&[Drain, Up])).unwrap();
    let drained = status(&keel, 0);
    assert_eq!((drained.health, drained.source), (Health::Draining, Source::Operator));
    assert_eq!(&*drained.reason, "drained by the config");
    assert_eq!(serving(&keel, 6), ["Hello from fake-2"]);
    told("backend web/op-a is draining: drained by the config (1 of 2 left)");

    let mut by_hand = named(&[Down, Up]);
    by_hand.targets[0].backends[0].state_by = Some("by hand (uid 0)".into());
    keel.reload(&by_hand).unwrap();
    assert_eq!((status(&keel, 0).health, status(&keel, 0).source), (Health::Down, Source::Operator));
    assert_eq!(serving(&keel, 6), ["Hello from fake-2"]);
    told("backend web/op-a is down: taken down by hand (uid 0) (1 of 2 left)");
    // Nobody's probes stop.
    let before = backends[0].probes();
    eventually("it is probed on", || backends[0].probes() >= before + 3);

    keel.reload(&named(&[Down, Drain])).unwrap();
    assert_eq!(keel.client().get("/").status, 503);
    told("backend web/op-b is draining: drained by the config (0 of 2 left)");
    eventually("the target is lost", || !events::with("target web: no backend left (0 of 2)").is_empty());

    keel.reload(&named(&[Up, Up])).unwrap();
    assert_eq!(
        serving(&keel, 6),
        ["Hello from fake-1", "Hello from fake-2"],
        "with the verdicts that they had"
    );
    eventually("its return is told", || {
        let lines = events::with("backend web/op-a is up again after ");
        lines.len() == 1 && lines[0].contains(": let in again (") && lines[0].contains("INFO")
    });
    assert!(events::with("op-a").iter().all(|line| !line.contains("WARN")), "it was wanted");
}

#[test]
fn up_does_not_let_in_one_that_is_sick() {
    let backends = fakes(2);
    let with = |states: &[BackendState]| {
        let mut config = http(&backends, states);
        probe_quickly(&mut config);
        config
    };
    backends[0].set_healthy(false);
    let keel = Keel::start(&with(&[Drain, Up]));
    let sick = until(&keel, 0, Health::Down);
    assert_eq!(sick.source, Source::Probe, "a drain makes nobody well");
    keel.reload(&with(&[Up, Up])).unwrap();
    assert_eq!((status(&keel, 0).health, status(&keel, 0).source), (Health::Down, Source::Probe));
    keel.reload(&with(&[Down, Up])).unwrap();
    assert_eq!(status(&keel, 0).source, Source::Operator);
    backends[0].set_healthy(true);
    let good = |says: &str| status(&keel, 0).inputs.iter().any(|input| &*input.says == says);
    eventually("its probe finds it well", || good("good"));
    assert_eq!(status(&keel, 0).health, Health::Down, "that does not let it in either");
    keel.reload(&with(&[Up, Up])).unwrap();
    assert_eq!(status(&keel, 0).health, Health::Up);
}

#[test]
fn a_drained_backend_keeps_its_sticky_clients_and_its_pool_and_down_sends_them_away() {
    let backends = fakes(2);
    let sticky = |states: &[BackendState]| {
        let mut config = http(&backends, states);
        let key = b"0123456789abcdef"[..].into();
        config.targets[0].sticky = Some(Sticky { cookie: "c".into(), key, is_fleeting: false });
        config
    };
    let keel = Keel::start(&sticky(&[Up, Up]));
    let mut client = keel.client();
    let mut first = client.get("/");
    while first.text() != "Hello from fake-1" {
        first = client.get("/");
    }
    let cookie = first.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let mut ask = || {
        let answer = client.ask(&format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n"));
        (answer.text(), answer.header("set-cookie").is_some())
    };
    keel.reload(&sticky(&[Drain, Up])).unwrap();
    assert_eq!(ask(), ("Hello from fake-1".into(), false));
    assert_eq!(serving(&keel, 5), ["Hello from fake-2"]);
    assert!(backends[0].open_connections() > 0);
    keel.reload(&sticky(&[Down, Up])).unwrap();
    assert_eq!(ask(), ("Hello from fake-2".into(), true), "with a new cookie");
    eventually("its idle connections are closed", || backends[0].open_connections() == 0);
    keel.reload(&sticky(&[Up, Up])).unwrap();
    assert_eq!(ask(), ("Hello from fake-1".into(), false), "the old cookie still names it");
}

#[test]
fn a_request_under_way_finishes_at_one_that_is_down() {
    let backends = fakes(2);
    let keel = Keel::start(&http(&backends, &[Up, Down]));
    backends[0].behave(Behaviour::default().latency(Duration::from_millis(300)).times(1));
    let mut busy = keel.client();
    busy.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("it is under way", || backends[0].requests() == 1);
    keel.reload(&http(&backends, &[Down, Up])).unwrap();
    assert_eq!(keel.client().get("/").text(), "Hello from fake-2");
    let answer = busy.answer();
    assert_eq!((answer.text().as_str(), answer.header("connection")), ("Hello from fake-1", None));
    assert_eq!(busy.get("/").text(), "Hello from fake-2", "the client's connection goes on");
    eventually("its connection is not kept", || backends[0].open_connections() == 0);
}

#[test]
fn a_failed_attempt_is_not_repeated_on_one_that_is_drained() {
    let (dead, backends) = (Fake::http("dead").refusing().start_in_thread().unwrap(), fakes(2));
    let each = [dead.addr(), backends[0].addr(), backends[1].addr()];
    let mut config = of(Protocol::Http, &each, &[Up, Drain, Up]);
    config.targets[0].balance = evenkeel::config::model::Balance::First.into();
    let keel = Keel::start(&config);
    for _ in 0..5 {
        assert_eq!(keel.client().get("/").text(), "Hello from fake-2");
    }
    assert_eq!(backends[0].requests(), 0);
}

#[test]
fn a_websocket_goes_on_with_a_drain_and_hears_1001_when_its_backend_is_taken_down() {
    let (played, other) = (Played::new(), fakes(1));
    let with = |states: &[BackendState]| of(Protocol::Http, &[played.address(), other[0].addr()], states);
    let keel = Keel::start(&with(&[Up, Down]));
    let (mut client, mut far) = played.websocket(&keel);
    keel.reload(&with(&[Drain, Up])).unwrap();
    pause(400);
    far.write_all(b"\x81\x02hi").unwrap();
    assert_eq!(client.take(4), b"\x81\x02hi", "longer than `drain_timeout`");
    keel.reload(&with(&[Down, Up])).unwrap();
    assert_eq!(client.take(4), AWAY);
    assert_eq!(exactly(&mut far, 2), [0x88, 0x82]);
    drop(client);
    until_ended(&keel, Cause::Drained, 1);
}

#[test]
fn a_tunnel_ends_with_down_and_goes_on_when_its_backend_is_taken_back_in_time() {
    let backends = tcp_fakes(2, |fake| fake.behave(Behaviour::tcp(TcpMode::Echo)));
    let addresses: Vec<SocketAddr> = backends.iter().map(Running::addr).collect();
    let with = |states: &[BackendState], window| {
        let mut config = of(Protocol::Tcp, &addresses, states);
        config.targets[0].drain_timeout = window;
        config
    };
    let hour = Duration::from_secs(3600);
    let keel = Keel::start(&with(&[Up, Down], hour));
    let mut client = super::life_lab::connect(keel.address());
    let mut echo = |byte: u8| {
        client.write_all(&[byte]).unwrap();
        let mut back = [0];
        client.read_exact(&mut back).unwrap();
        back[0]
    };
    assert_eq!(echo(1), 1);
    keel.reload(&with(&[Down, Up], hour)).unwrap();
    assert_eq!(echo(2), 2, "it has an hour");
    keel.reload(&with(&[Up, Up], hour)).unwrap();
    keel.reload(&with(&[Down, Up], A_MOMENT)).unwrap();
    assert_eq!(read_to_end(&mut client), Err(Vec::new()), "it is reset");
    until_ended(&keel, Cause::Drained, 1);
}
