//! TCP targets: every byte, both ways, both ends.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::time::Duration;

use evenkeel::message::{Cause, TargetId};
use evenkeel::targets::Health;
use fake_backend::{Behaviour, Fake, Fault, TcpMode, pattern};

use super::life_lab::{
    Watch, connect, read_to_end, reading, reset_on_close, status, tcp, tcp_fakes, until, until_ended,
};
use super::support::{Keel, accept, config, eventually, quick_health};

const MIB: u64 = 1024 * 1024;

fn in_mode(mode: TcpMode) -> Vec<fake_backend::Running> {
    tcp_fakes(1, |fake| fake.behave(Behaviour::tcp(mode)))
}

fn bytes(keel: &Keel) -> (u64, u64) {
    let readings = keel.server.readings();
    readings.target(TargetId(0)).map_or((0, 0), |t| (t.traffic.bytes_in, t.traffic.bytes_out))
}

#[test]
fn megabytes_both_ways_at_once() {
    let backends = in_mode(TcpMode::Echo);
    let keel = tcp(&[&backends[0]], |_| ());
    let sent = pattern(8 << 20);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            let mut reader = connect(keel.address());
            let mut writer = reader.try_clone().unwrap();
            let sent = &sent;
            scope.spawn(move || {
                writer.write_all(sent).unwrap();
                writer.shutdown(Shutdown::Write).unwrap();
            });
            scope.spawn(move || {
                let echoed = read_to_end(&mut reader).unwrap();
                assert!(echoed == *sent, "{} bytes of {}", echoed.len(), sent.len());
            });
        }
    });
    until_ended(&keel, Cause::Done, 3);
    assert_eq!(bytes(&keel), (24 * MIB, 24 * MIB));
    eventually("both sides are closed", || backends[0].open_connections() == 0);
    eventually("no connection is left", || keel.server.connections() == 0);
}

#[test]
fn a_client_that_has_finished_still_gets_its_answer() {
    let backends = in_mode(TcpMode::GreetAtEnd);
    let keel = tcp(&[&backends[0]], |_| ());
    let mut socket = connect(keel.address());
    socket.write_all(b"a question").unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&mut socket).unwrap(), b"Hello from fake-1");
    until_ended(&keel, Cause::Done, 1);
    assert_eq!(bytes(&keel), (10, 17));
}

#[test]
fn a_backend_that_has_finished_still_gets_what_the_client_sends() {
    let backend = TcpListener::bind("127.0.0.1:0").unwrap();
    let keel = Keel::start(&config(evenkeel::config::model::Protocol::Tcp, &[backend.local_addr().unwrap()]));
    let mut client = connect(keel.address());
    let mut accepted = accept(&backend);
    accepted.write_all(b"bye").unwrap();
    accepted.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&mut client).unwrap(), b"bye");
    let sent = pattern(1 << 20);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            client.write_all(&sent).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
        });
        assert!(read_to_end(&mut accepted).unwrap() == sent);
    });
    until_ended(&keel, Cause::Done, 1);
    assert_eq!(bytes(&keel), (MIB, 3));
}

#[test]
fn a_backend_that_speaks_first_and_a_long_source_arrive_whole() {
    let backends = in_mode(TcpMode::Greet);
    let keel = tcp(&[&backends[0]], |_| ());
    assert_eq!(read_to_end(&mut connect(keel.address())).unwrap(), b"Hello from fake-1");
    backends[0].behave(Behaviour::tcp(TcpMode::Source(5 * MIB)));
    assert!(read_to_end(&mut connect(keel.address())).unwrap() == pattern(5 << 20));
}

#[test]
fn connections_rotate_and_a_refused_connect_goes_to_the_next_backend() {
    let backends = tcp_fakes(3, |fake| fake);
    backends[1].stop_accepting();
    let keel = tcp(&[&backends[0], &backends[1], &backends[2]], |_| ());
    let mut served: Vec<String> = (0..8)
        .map(|_| String::from_utf8(read_to_end(&mut connect(keel.address())).unwrap()).unwrap())
        .collect();
    served.sort();
    assert!(served.iter().all(|text| text != "Hello from fake-2"), "{served:?}");
    until_ended(&keel, Cause::Done, 8);
    let refused = reading(&keel, 1);
    assert!(refused.attempts >= 1 && refused.failures == refused.attempts, "{refused:?}");
    assert_eq!(keel.server.readings().retries, refused.attempts);
    assert_eq!(reading(&keel, 0).failures + reading(&keel, 2).failures, 0);
}

#[test]
fn without_a_backend_the_connection_is_closed_and_the_record_says_why() {
    let off = Fake::tcp("off").refusing().start_in_thread().unwrap();
    let keel = tcp(&[&off], |_| ());
    assert_eq!(read_to_end(&mut connect(keel.address())).unwrap(), b"");
    until_ended(&keel, Cause::ConnectFailed, 1);
    let probed = tcp(&[&off], |config| config.targets[0].health = Some(quick_health()));
    until(&probed, 0, Health::Down);
    assert_eq!(read_to_end(&mut connect(probed.address())).unwrap(), b"");
    until_ended(&probed, Cause::NoBackend, 1);
}

#[test]
fn a_silent_connection_is_cut_after_the_tunnel_timeout() {
    let backends = in_mode(TcpMode::GreetAndEcho);
    let keel = tcp(&[&backends[0]], |config| {
        config.targets[0].timeouts.tunnel = Duration::from_secs(1);
    });
    let watch = Watch::start();
    assert_eq!(read_to_end(&mut connect(keel.address())).expect_err("a reset"), b"Hello from fake-1");
    assert!(watch.elapsed() >= Duration::from_secs(1));
    until_ended(&keel, Cause::TunnelIdle, 1);
    eventually("the backend too", || backends[0].open_connections() == 0);
    assert_eq!(reading(&keel, 0).failures, 0, "silence is nobody's failure");
}

#[test]
fn a_backends_reset_reaches_the_client() {
    let backends = tcp_fakes(1, |fake| {
        // In pieces: a reset right behind the handshake would look like a failed connect.
        let slow = Behaviour::fault(Fault::ResetMidBody).pace(10_000, Duration::from_millis(200));
        fake.behave(Behaviour { tcp: TcpMode::Source(100_000), ..slow })
    });
    let keel = tcp(&[&backends[0]], |_| ());
    let came = read_to_end(&mut connect(keel.address())).expect_err("a reset");
    assert!(came.len() <= 50_000);
    until_ended(&keel, Cause::AnswerCut, 1);
    let broken = reading(&keel, 0);
    assert_eq!((broken.attempts, broken.failures), (1, 1), "held against the backend");
    assert_eq!(status(&keel, 0).ejected_until, None, "but it does accept connections");
}

#[test]
fn a_clients_reset_reaches_the_backend() {
    let backends = in_mode(TcpMode::Echo);
    let keel = tcp(&[&backends[0]], |_| ());
    let mut socket = connect(keel.address());
    socket.write_all(b"x").unwrap();
    socket.read_exact(&mut [0u8]).unwrap();
    reset_on_close(&socket);
    drop(socket);
    eventually("aborted", || backends[0].stats().aborted == 1);
    until_ended(&keel, Cause::ClientGone, 1);
    assert_eq!(reading(&keel, 0).failures, 0);
    assert_eq!(bytes(&keel), (1, 1));
}

#[test]
fn a_backend_that_does_not_read_stops_its_client_and_nobody_else() {
    let backends = tcp_fakes(2, |fake| fake.behave(Behaviour::tcp(TcpMode::Echo)));
    backends[0].behave(Behaviour::fault(Fault::HangUnread));
    let keel = tcp(&[&backends[0], &backends[1]], |config| config.workers = 1);
    let mut stuck = connect(keel.address());
    stuck.set_nonblocking(true).unwrap();
    let piece = pattern(1 << 20);
    let mut sent = 0;
    // Until every buffer on the way is full.
    loop {
        match stuck.write(&piece) {
            Ok(count) => sent += count,
            Err(error) => {
                assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
                break;
            }
        }
    }
    assert!(sent > 0);
    let mut free = connect(keel.address());
    free.write_all(&piece[..1000]).unwrap();
    let mut back = vec![0u8; 1000];
    free.read_exact(&mut back).unwrap();
    assert!(back == piece[..1000]);
}

#[test]
fn a_connection_waits_until_another_one_has_ended_where_there_may_be_one() {
    let backends = tcp_fakes(1, |fake| fake.behave(Behaviour::tcp(TcpMode::Echo)));
    let keel = tcp(&[&backends[0]], |config| {
        config.targets[0].resilience.max_in_flight = Some(1);
        config.targets[0].timeouts.queue = Duration::from_secs(60);
    });
    let echoed = |socket: &mut std::net::TcpStream| {
        let mut back = [0; 4];
        socket.read_exact(&mut back).unwrap();
        back
    };
    let mut first = connect(keel.address());
    first.write_all(b"ping").unwrap();
    assert_eq!(&echoed(&mut first), b"ping");
    let mut second = connect(keel.address());
    second.write_all(b"pong").unwrap();
    eventually("it waits", || keel.server.targets()[0].waiting() == 1);
    assert_eq!(backends[0].open_connections(), 1);
    drop(first);
    assert_eq!(&echoed(&mut second), b"pong");
}
