//! Tunnels and TCP relays that are cut: whatever cuts them, what was not sent whole does not look whole to whom it was for.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use evenkeel::config::model::{Config, Protocol};
use evenkeel::message::Cause;
use fake_backend::{Behaviour, TcpMode};

use super::life_lab::{connect, read_to_end, reset_on_close, tcp_fakes, until_ended};
use super::support::tls::Secure;
use super::support::{Keel, PATIENCE, config, eventually, fakes};

const ASK: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const SWITCHED: &str =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

/// Far more than a test needs until its tunnel is to be silent.
const SILENCE: Duration = Duration::from_millis(1500);

/// A client, and the backend that is played here.
struct Pair {
    keel: Keel,
    client: TcpStream,
    backend: TcpStream,
}

impl Pair {
    /// A relay of the given kind whose tunnel timeout is short.
    fn new(protocol: Protocol) -> Pair {
        Pair::with(protocol, |config| config.targets[0].timeouts.tunnel = SILENCE)
    }

    fn with(protocol: Protocol, change: impl FnOnce(&mut Config)) -> Pair {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut config = config(protocol, &[listener.local_addr().unwrap()]);
        change(&mut config);
        let keel = Keel::start(&config);
        let mut client = connect(keel.address());
        if protocol == Protocol::Http {
            client.write_all(ASK.as_bytes()).unwrap();
        }
        let mut backend = listener.accept().unwrap().0;
        backend.set_read_timeout(Some(PATIENCE)).unwrap();
        if protocol == Protocol::Http {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                backend.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            backend.write_all(SWITCHED.as_bytes()).unwrap();
            take(&mut client, SWITCHED);
        }
        Pair { keel, client, backend }
    }
}

/// Reads exactly this text, apart from the case of letters.
fn take(socket: &mut TcpStream, text: &str) {
    let mut came = vec![0; text.len()];
    socket.read_exact(&mut came).unwrap();
    assert_eq!(String::from_utf8_lossy(&came).to_ascii_lowercase(), text.to_ascii_lowercase());
}

const BOTH: [Protocol; 2] = [Protocol::Tcp, Protocol::Http];

/// All cases at once: most of each is waiting.
fn in_every_case(test: impl Fn(Protocol, bool) + Sync) {
    std::thread::scope(|scope| {
        let cases = BOTH.into_iter().flat_map(|protocol| [(protocol, false), (protocol, true)]);
        let test = &test;
        cases.for_each(|(protocol, ended)| drop(scope.spawn(move || test(protocol, ended))));
    });
}

#[test]
fn a_download_that_stalled_does_not_look_complete() {
    in_every_case(|protocol, client_has_ended| {
        let Pair { keel, mut client, mut backend } = Pair::new(protocol);
        backend.write_all(b"half of").unwrap();
        take(&mut client, "half of");
        if client_has_ended {
            client.shutdown(Shutdown::Write).unwrap();
            assert_eq!(read_to_end(&mut backend).unwrap(), b"", "its end was passed on");
        }
        let what = format!("{protocol:?}, client has ended: {client_has_ended}");
        assert_eq!(read_to_end(&mut client).expect_err(&what), b"");
        until_ended(&keel, Cause::TunnelIdle, 1);
        eventually("the backend is told that nobody waits any more", || {
            backend.take_error().unwrap().is_some() || backend.write_all(b"x").is_err()
        });
    });
}

#[test]
fn an_upload_that_stalled_does_not_look_complete() {
    in_every_case(|protocol, backend_has_ended| {
        let Pair { keel, mut client, mut backend } = Pair::new(protocol);
        client.write_all(b"half of").unwrap();
        take(&mut backend, "half of");
        if backend_has_ended {
            backend.write_all(b"all of it").unwrap();
            backend.shutdown(Shutdown::Write).unwrap();
            assert_eq!(read_to_end(&mut client).unwrap(), b"all of it", "what was whole stays whole");
        }
        let what = format!("{protocol:?}, backend has ended: {backend_has_ended}");
        assert_eq!(read_to_end(&mut backend).expect_err(&what), b"");
        until_ended(&keel, Cause::TunnelIdle, 1);
    });
}

#[test]
fn the_failure_of_one_side_is_no_end_for_the_other() {
    for protocol in BOTH {
        let Pair { keel, mut client, mut backend } = Pair::with(protocol, |_| ());
        // A reset right behind the handshake would look like a failed connect.
        client.write_all(b"x").unwrap();
        take(&mut backend, "x");
        backend.write_all(b"y").unwrap();
        take(&mut client, "y");
        reset_on_close(&backend);
        drop(backend);
        assert_eq!(read_to_end(&mut client).expect_err("a reset"), b"", "{protocol:?}");
        until_ended(&keel, Cause::AnswerCut, 1);

        let Pair { keel, client, mut backend } = Pair::with(protocol, |_| ());
        reset_on_close(&client);
        drop(client);
        assert_eq!(read_to_end(&mut backend).expect_err("a reset"), b"", "{protocol:?}");
        until_ended(&keel, Cause::ClientGone, 1);
    }
}

#[test]
fn who_has_ended_and_waits_for_the_other_is_reset_by_a_shutdown() {
    for protocol in BOTH {
        let Pair { keel, mut client, mut backend } =
            Pair::with(protocol, |config| config.shutdown_timeout = Duration::ZERO);
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_to_end(&mut backend).unwrap(), b"");
        keel.server.shutdown().advance();
        assert_eq!(read_to_end(&mut client).expect_err("a reset"), b"", "{protocol:?}");
        assert_eq!(keel.server.wait().unwrap().cut, 1);
    }
}

#[test]
fn under_tls_a_tunnel_that_stalled_ends_without_close_notify() {
    let short = |config: &mut Config| config.targets[0].timeouts.tunnel = SILENCE;
    let backends = tcp_fakes(1, |fake| fake.behave(Behaviour::tcp(TcpMode::Echo)));
    let secure = Secure::with(Protocol::Tcp, &[&backends[0]], "", short);
    let mut client = secure.client();
    assert_eq!(client.send("x").take(1), b"x");
    assert_eq!(client.rest(), b"");
    assert!(client.was_reset());
    until_ended(&secure.keel, Cause::TunnelIdle, 1);
    eventually("the backend sees an abort", || backends[0].stats().aborted == 1);

    let backends = fakes(1);
    let secure = Secure::with(Protocol::Http, &[&backends[0]], "", short);
    let mut client = secure.client();
    assert_eq!(client.send(ASK.replace("GET /", "GET /upgrade")).answer().status, 101);
    assert_eq!(client.rest(), b"");
    assert!(client.was_reset());
    until_ended(&secure.keel, Cause::TunnelIdle, 1);
}
