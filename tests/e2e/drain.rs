//! Backends and listeners that leave: requests finish, tunnels end within their time, and nobody else notices.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use evenkeel::config::model::{Config, Protocol, Sticky};
use evenkeel::message::Cause;
use fake_backend::{Behaviour, Running, TcpMode};

use super::life_lab::{connect, end, read_to_end, tcp_fakes, until_ended};
use super::support::tls::Secure;
use super::support::{Client, Keel, accept, all_to, backend, config, eventually, fakes};

const ASK: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const SWITCHED: &str =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
/// A Close with the status 1001, as a server sends it.
pub const AWAY: &[u8] = &[0x88, 2, 0x03, 0xe9];
/// A client's answer to that.
const ANSWER: &[u8] = &[0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe9];
const A_MOMENT: Duration = Duration::from_millis(200);
/// Long enough for who answers what it is told.
const A_WHILE: Duration = Duration::from_secs(4);
const LONG: Duration = Duration::from_secs(3600);

/// A target with these backends, and this time to drain.
fn of(protocol: Protocol, backends: &[SocketAddr], window: Duration) -> Config {
    let mut config = config(protocol, backends);
    config.targets[0].drain_timeout = window;
    config
}

/// A backend that is played by the test.
pub struct Played {
    listener: TcpListener,
}

impl Played {
    pub fn new() -> Played {
        Played { listener: TcpListener::bind("127.0.0.1:0").unwrap() }
    }

    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap()
    }

    /// A WebSocket through `keel` to here.
    pub fn websocket(&self, keel: &Keel) -> (Client, TcpStream) {
        let mut client = keel.client();
        client.send(ASK);
        let mut far = self.asked();
        far.write_all(SWITCHED.as_bytes()).unwrap();
        assert_eq!(client.answer().status, 101);
        (client, far)
    }

    /// The next connection, once a request was read from it.
    fn asked(&self) -> TcpStream {
        let mut far = accept(&self.listener);
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.extend(exactly(&mut far, 1));
        }
        far
    }

    /// A relay through `keel` to here.
    pub fn tunnel(&self, keel: &Keel) -> (TcpStream, TcpStream) {
        let mut client = connect(keel.address());
        client.write_all(b"x").unwrap();
        let mut far = accept(&self.listener);
        assert_eq!(exactly(&mut far, 1), b"x");
        (client, far)
    }
}

pub fn exactly(socket: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    socket.read_exact(&mut bytes).unwrap();
    bytes
}

/// What a backend is told: a masked Close with the status 1001.
fn assert_masked_away(frame: &[u8]) {
    assert_eq!((frame.len(), &frame[..2]), (8, &[0x88, 0x82][..]));
    assert_eq!([frame[6] ^ frame[2], frame[7] ^ frame[3]], [0x03, 0xe9]);
}

#[test]
fn a_websocket_of_a_backend_that_is_gone_hears_1001_on_both_sides() {
    let (played, others) = (Played::new(), fakes(1));
    let keel = Keel::start(&of(Protocol::Http, &[played.address()], A_WHILE));
    let (mut client, mut far) = played.websocket(&keel);
    client.send([0x81, 0x81, 1, 2, 3, 4, 5]);
    assert_eq!(exactly(&mut far, 7), [0x81, 0x81, 1, 2, 3, 4, 5]);
    far.write_all(b"\x81\x02hi").unwrap();
    assert_eq!(client.take(4), b"\x81\x02hi");
    keel.reload(&of(Protocol::Http, &[others[0].addr()], A_WHILE)).unwrap();
    assert_eq!(keel.client().get("/").text(), "Hello from fake-1", "new requests go elsewhere");
    assert_eq!(client.take(4), AWAY);
    assert_masked_away(&exactly(&mut far, 8));
    // What was on its way when they were told reaches nobody, and their answers end it.
    client.send([0x81, 0x80, 9, 9, 9, 9]).send(ANSWER);
    far.write_all(&[0x81, 0]).unwrap();
    far.write_all(AWAY).unwrap();
    assert_eq!(client.rest(), b"");
    assert!(!client.was_reset(), "it ends as a WebSocket does");
    assert_eq!(read_to_end(&mut far), Ok(Vec::new()));
    until_ended(&keel, Cause::Drained, 1);
}

#[test]
fn who_does_not_answer_a_close_is_closed_all_the_same() {
    let (played, others) = (Played::new(), fakes(1));
    let keel = Keel::start(&of(Protocol::Http, &[played.address()], A_MOMENT));
    let (mut client, mut far) = played.websocket(&keel);
    keel.reload(&of(Protocol::Http, &[others[0].addr()], A_MOMENT)).unwrap();
    assert_eq!(client.rest(), AWAY);
    assert!(!client.was_reset());
    assert_masked_away(&read_to_end(&mut far).unwrap());
    until_ended(&keel, Cause::Drained, 1);
}

#[test]
fn over_tls_a_websocket_hears_1001_and_the_end_of_the_session() {
    let (played, others) = (Played::new(), fakes(1));
    let mut after = None;
    let secure = Secure::with(Protocol::Http, &[&others[0]], "", |config| {
        config.targets[0].drain_timeout = A_WHILE;
        after = Some(config.clone());
        config.targets[0].backends = vec![backend(played.address())];
    });
    let mut client = secure.client();
    client.send(ASK);
    let mut far = played.asked();
    far.write_all(SWITCHED.as_bytes()).unwrap();
    assert_eq!(client.answer().status, 101);
    secure.keel.reload(&after.unwrap()).unwrap();
    assert_eq!(client.take(4), AWAY);
    client.send(ANSWER);
    assert_masked_away(&exactly(&mut far, 8));
    far.write_all(AWAY).unwrap();
    assert_eq!(client.rest(), b"");
    assert!(!client.was_reset(), "with close_notify");
    until_ended(&secure.keel, Cause::Drained, 1);
}

#[test]
fn a_frame_that_never_ends_is_cut_and_the_other_side_is_told() {
    let (played, others) = (Played::new(), fakes(1));
    let keel = Keel::start(&of(Protocol::Http, &[played.address()], A_MOMENT));
    let (mut client, mut far) = played.websocket(&keel);
    client.send([0x82, 0x85, 1, 2, 3, 4, b'a']);
    assert_eq!(exactly(&mut far, 7).len(), 7);
    keel.reload(&of(Protocol::Http, &[others[0].addr()], A_MOMENT)).unwrap();
    assert_eq!(read_to_end(&mut far), Err(Vec::new()), "half a frame is not whole");
    assert_eq!(client.rest(), AWAY);

    let keel = Keel::start(&of(Protocol::Http, &[played.address()], A_MOMENT));
    let (mut client, mut far) = played.websocket(&keel);
    far.write_all(&[0x82, 5, b'a']).unwrap();
    assert_eq!(client.take(3).len(), 3);
    keel.reload(&of(Protocol::Http, &[others[0].addr()], A_MOMENT)).unwrap();
    assert_masked_away(&read_to_end(&mut far).unwrap());
    assert_eq!(client.rest(), b"");
    assert!(client.was_reset(), "half a frame is not whole");
    until_ended(&keel, Cause::Drained, 1);
}

#[test]
fn what_speaks_no_frames_is_cut_whatever_it_is_called() {
    let (played, others) = (Played::new(), fakes(1));
    let keel = Keel::start(&of(Protocol::Http, &[played.address()], A_MOMENT));
    let (mut client, mut far) = played.websocket(&keel);
    client.send("ping");
    assert_eq!(exactly(&mut far, 4), b"ping");
    far.write_all(b"pong").unwrap();
    assert_eq!(client.take(4), b"pong");
    keel.reload(&of(Protocol::Http, &[others[0].addr()], A_MOMENT)).unwrap();
    assert_eq!(client.rest(), b"");
    assert!(client.was_reset());
    assert_eq!(read_to_end(&mut far), Err(Vec::new()));
}

#[test]
fn nothing_is_said_behind_a_close() {
    let (played, others) = (Played::new(), fakes(1));
    let keel = Keel::start(&of(Protocol::Http, &[played.address()], A_MOMENT));
    let (mut client, mut far) = played.websocket(&keel);
    client.send(ANSWER);
    assert_eq!(exactly(&mut far, 8), ANSWER);
    far.write_all(&[0x88, 0]).unwrap();
    assert_eq!(client.take(2), [0x88, 0]);
    keel.reload(&of(Protocol::Http, &[others[0].addr()], A_MOMENT)).unwrap();
    assert_eq!(client.rest(), b"");
    assert_eq!(read_to_end(&mut far), Ok(Vec::new()));
    until_ended(&keel, Cause::Drained, 1);
}

#[test]
fn tcp_connections_of_a_backend_that_is_gone_are_reset_and_others_go_on() {
    let (going, staying) = (Played::new(), Played::new());
    let keel = Keel::start(&of(Protocol::Tcp, &[going.address()], A_MOMENT));
    let mut cut: Vec<_> = (0..20).map(|_| going.tunnel(&keel)).collect();
    // Half of it is over, and what the backend says is on its way.
    cut[0].0.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&mut cut[0].1), Ok(Vec::new()));
    let both = of(Protocol::Tcp, &[going.address(), staying.address()], A_MOMENT);
    keel.reload(&both).unwrap();
    let only = of(Protocol::Tcp, &[staying.address()], A_MOMENT);
    keel.reload(&only).unwrap();
    let mut kept: Vec<_> = (0..20).map(|_| staying.tunnel(&keel)).collect();
    for (client, far) in &mut cut {
        assert_eq!(read_to_end(client), Err(Vec::new()), "nothing that was cut looks whole");
        eventually("the backend is told", || {
            far.take_error().unwrap().is_some() || far.write_all(b"x").is_err()
        });
    }
    until_ended(&keel, Cause::Drained, 20);
    for (client, far) in &mut kept {
        far.write_all(b"y").unwrap();
        assert_eq!(exactly(client, 1), b"y");
    }
}

#[test]
fn without_a_window_tunnels_are_cut_at_once_and_with_a_long_one_they_stay() {
    let (played, others) = (Played::new(), tcp_fakes(1, |fake| fake.behave(Behaviour::tcp(TcpMode::Echo))));
    for window in [Duration::ZERO, LONG] {
        let keel = Keel::start(&of(Protocol::Tcp, &[played.address()], window));
        let (mut client, mut far) = played.tunnel(&keel);
        // The time that counts is the one that was in force.
        keel.reload(&of(Protocol::Tcp, &[others[0].addr()], LONG - window)).unwrap();
        if window.is_zero() {
            assert_eq!(read_to_end(&mut client), Err(Vec::new()));
            until_ended(&keel, Cause::Drained, 1);
        } else {
            // Over any number of reloads, also if it is there again: that is another one.
            for backend in [played.address(), others[0].addr(), played.address()] {
                keel.reload(&of(Protocol::Tcp, &[backend], Duration::ZERO)).unwrap();
                far.write_all(b"y").unwrap();
                assert_eq!(exactly(&mut client, 1), b"y");
            }
            let (mut fresh, mut fresh_far) = played.tunnel(&keel);
            keel.reload(&of(Protocol::Tcp, &[others[0].addr()], LONG)).unwrap();
            assert_eq!(read_to_end(&mut fresh), Err(Vec::new()), "this one had no time");
            assert_eq!(read_to_end(&mut fresh_far), Err(Vec::new()));
            client.write_all(b"z").unwrap();
            assert_eq!(exactly(&mut far, 1), b"z");
        }
    }
}

#[test]
fn a_tunnel_that_begins_behind_the_removal_ends_too() {
    let (played, others) = (Played::new(), fakes(1));
    let keel = Keel::start(&of(Protocol::Http, &[played.address()], Duration::ZERO));
    let mut client = keel.client();
    client.send(ASK);
    let mut far = played.asked();
    keel.reload(&of(Protocol::Http, &[others[0].addr()], Duration::ZERO)).unwrap();
    far.write_all(SWITCHED.as_bytes()).unwrap();
    assert_eq!(client.answer().status, 101);
    assert_eq!(client.rest(), AWAY);
    assert_masked_away(&read_to_end(&mut far).unwrap());
    until_ended(&keel, Cause::Drained, 1);
}

#[test]
fn a_transfer_through_a_pipe_is_cut_and_looks_cut() {
    let source = tcp_fakes(1, |fake| fake.behave(Behaviour::tcp(TcpMode::Source(1 << 30))));
    let other = Played::new();
    let keel = Keel::start(&of(Protocol::Tcp, &[source[0].addr()], A_MOMENT));
    let mut client = connect(keel.address());
    let mut came = vec![0; 1 << 20];
    client.read_exact(&mut came).unwrap();
    keel.reload(&of(Protocol::Tcp, &[other.address()], A_MOMENT)).unwrap();
    // Nobody reads meanwhile, so bytes are everywhere on the way.
    until_ended(&keel, Cause::Drained, 1);
    assert!(read_to_end(&mut client).is_err_and(|came| came.len() < 1 << 29));
    eventually("the backend is rid of it", || source[0].open_connections() == 0);
}

#[test]
fn requests_under_way_finish_and_pooled_connections_close() {
    let backends = fakes(2);
    backends[0].behave(Behaviour::default().latency(Duration::from_millis(300)).times(1));
    let window = Duration::from_secs(30);
    let keel = Keel::start(&of(Protocol::Http, &[backends[0].addr()], window));
    let (mut busy, mut idle) = (keel.client(), keel.client());
    busy.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("it is under way", || backends[0].requests() == 1);
    assert_eq!(idle.get("/").text(), "Hello from fake-1");
    keel.reload(&of(Protocol::Http, &[backends[1].addr()], window)).unwrap();
    assert_eq!(idle.get("/").text(), "Hello from fake-2");
    let answer = busy.answer();
    assert_eq!((answer.text().as_str(), answer.header("connection")), ("Hello from fake-1", None));
    assert_eq!(busy.get("/").text(), "Hello from fake-2", "its connection goes on");
    eventually("no connection is left", || backends[0].open_connections() == 0);
    assert_eq!(backends[0].requests(), 2);
}

/// A connection that is logged in is its client's alone, and leads to its backend only as long as that is there.
#[test]
fn a_client_that_is_logged_in_to_a_backend_that_is_gone_is_asked_to_by_another() {
    let backends = fakes(2);
    let of = |backend: &Running| {
        let mut config = of(Protocol::Http, &[backend.addr()], LONG);
        config.workers = 1;
        config
    };
    let keel = Keel::start(&of(&backends[0]));
    let mut client = keel.client();
    let login = |client: &mut Client, line: &str| {
        client.ask(&format!("GET /login HTTP/1.1\r\nHost: a\r\n{line}\r\n")).status
    };
    assert_eq!(login(&mut client, "Authorization: Negotiate alice\r\n"), 200);
    assert_eq!(login(&mut client, ""), 200, "its connection is logged in");
    let before = backends[0].requests();
    keel.reload(&of(&backends[1])).unwrap();
    for _ in 0..3 {
        assert_eq!(login(&mut client, ""), 401);
    }
    assert_eq!((backends[0].requests(), backends[1].requests()), (before, 3));
    eventually("nothing is left", || backends[0].open_connections() == 0);
}

#[test]
fn who_waits_for_a_place_at_one_that_goes_gets_another() {
    let (played, others) = (Played::new(), fakes(1));
    let limited = |address| {
        let mut config = of(Protocol::Http, &[address], LONG);
        config.targets[0].resilience.max_in_flight = Some(1);
        config
    };
    let keel = Keel::start(&limited(played.address()));
    let (mut first, mut second) = (keel.client(), keel.client());
    first.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut far = played.asked();
    second.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("it waits", || keel.server.targets()[0].waiting() == 1);
    keel.reload(&limited(others[0].addr())).unwrap();
    assert_eq!(second.answer().text(), "Hello from fake-1");
    far.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").unwrap();
    assert_eq!(first.answer().text(), "hi");
}

#[test]
fn tunnels_of_a_listener_that_is_gone_end_within_the_time_for_a_shutdown() {
    let (web, raw, others) = (Played::new(), Played::new(), fakes(1));
    let of = |names: &[&str]| {
        let mut whole = config(Protocol::Http, &[]);
        (whole.listeners, whole.targets) = (Vec::new(), Vec::new());
        whole.shutdown_timeout = A_WHILE;
        for name in names {
            let (protocol, address) = match *name {
                "web" => (Protocol::Http, web.address()),
                "raw" => (Protocol::Tcp, raw.address()),
                _ => (Protocol::Http, others[0].addr()),
            };
            let mut one = config(protocol, &[address]);
            let (mut listener, mut target) = (one.listeners.remove(0), one.targets.remove(0));
            (listener.name, target.name) = ((*name).into(), (*name).into());
            listener.routes = all_to(name);
            // The listener's own time is the shorter one.
            target.drain_timeout = LONG;
            whole.listeners.push(listener);
            whole.targets.push(target);
        }
        whole
    };
    let keel = Keel::start(&of(&["web", "raw", "other"]));
    let (mut client, mut far) = web.websocket(&keel);
    let mut cut = connect(keel.addresses("raw")[0]);
    cut.write_all(b"x").unwrap();
    let mut cut_far = accept(&raw.listener);
    assert_eq!(exactly(&mut cut_far, 1), b"x");
    keel.reload(&of(&["other"])).unwrap();
    assert_eq!(client.take(4), AWAY);
    client.send(ANSWER);
    assert_masked_away(&exactly(&mut far, 8));
    far.write_all(AWAY).unwrap();
    assert_eq!(client.rest(), b"");
    assert!(!client.was_reset());
    assert_eq!(read_to_end(&mut cut), Err(Vec::new()));
    assert_eq!(read_to_end(&mut cut_far), Err(Vec::new()));
    until_ended(&keel, Cause::Drained, 2);
    assert_eq!(Client::connect(keel.addresses("other")[0]).get("/").status, 200);
}

/// The exit code of a clean shutdown would speak of what happened weeks before.
#[test]
fn who_was_cut_with_a_listener_is_not_counted_at_the_end_of_the_process() {
    let (played, others) = (Played::new(), fakes(1));
    let with_web = |has_web: bool| {
        let mut whole = of(Protocol::Http, &[others[0].addr()], LONG);
        (whole.listeners[0].name, whole.targets[0].name) = ("other".into(), "other".into());
        whole.listeners[0].routes = all_to("other");
        whole.shutdown_timeout = Duration::from_millis(100);
        if has_web {
            let mut web = of(Protocol::Http, &[played.address()], LONG);
            whole.listeners.append(&mut web.listeners);
            whole.targets.append(&mut web.targets);
        }
        whole
    };
    let keel = Keel::start(&with_web(true));
    let name = with_web(true).listeners[1].name.clone();
    let mut client = Client::connect(keel.addresses(&name)[0]);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let _far = played.asked();
    keel.reload(&with_web(false)).unwrap();
    until_ended(&keel, Cause::Shutdown, 1);
    assert_eq!(end(keel).cut, 0);
}

#[test]
fn at_the_end_of_a_shutdown_websockets_hear_1001_and_are_counted_as_cut() {
    let played = Played::new();
    let mut config = of(Protocol::Http, &[played.address()], LONG);
    config.shutdown_timeout = A_WHILE * 2;
    let keel = Keel::start(&config);
    let (mut client, mut far) = played.websocket(&keel);
    let told = std::thread::spawn(move || {
        assert_eq!(client.take(4), AWAY);
        client.send(ANSWER);
        assert_masked_away(&exactly(&mut far, 8));
        far.write_all(AWAY).unwrap();
        (client.rest(), client.was_reset())
    });
    assert_eq!(end(keel).cut, 1);
    assert_eq!(told.join().unwrap(), (Vec::new(), false));
}

/// Sticky clients, in pairs: of a backend that goes, and of one that stays; with a request, and with a WebSocket.
#[test]
fn sticky_clients_of_a_backend_that_is_gone_are_moved_by_their_next_answer() {
    let backends = fakes(2);
    let of = |those: &[&Running]| {
        let addresses: Vec<_> = those.iter().map(|one| one.addr()).collect();
        let mut config = of(Protocol::Http, &addresses, A_MOMENT);
        let key = b"the same on all nodes"[..].into();
        config.targets[0].sticky = Some(Sticky { cookie: "evenkeel".into(), key, is_fleeting: false });
        config
    };
    let keel = Keel::start(&of(&[&backends[0], &backends[1]]));
    let ask = |cookie: &str, upgrade: bool| {
        let upgrade = if upgrade { "Connection: Upgrade\r\nUpgrade: websocket\r\n" } else { "" };
        let mut client = keel.client();
        let path = if upgrade.is_empty() { "/" } else { "/upgrade" };
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n{upgrade}\r\n"));
        let answer = client.answer();
        let set = answer.header("set-cookie").map(|line| line.split(';').next().unwrap().to_owned());
        (answer.text(), set)
    };
    let mut cookies = [None, None];
    while cookies.contains(&None) {
        let (text, cookie) = ask("", false);
        cookies[usize::from(text.ends_with('2'))] = cookie;
    }
    let [gone, stays] = cookies.map(Option::unwrap);
    keel.reload(&of(&[&backends[1]])).unwrap();
    for upgrade in [false, true] {
        let (_, moved) = ask(&gone, upgrade);
        assert_eq!(moved.as_deref(), Some(&*stays), "upgrade: {upgrade}");
        assert_eq!(ask(&stays, upgrade).1, None, "upgrade: {upgrade}");
    }
    keel.reload(&of(&[&backends[0], &backends[1]])).unwrap();
    eventually("it is there again", || ask(&gone, false) == ("Hello from fake-1".into(), None));
}
