//! Clients that leave while they wait, and how that is noticed: `timeouts.half_closed`, resets, and bytes in front of either.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::time::Duration;

use evenkeel::config::model::Resilience;
use evenkeel::message::Cause;
use fake_backend::{Behaviour, Running, TcpMode, pattern};

use super::life_lab::{connect, read_to_end, reset_on_close, tcp, tcp_fakes, until_ended};
use super::support::{Client, Keel, eventually, fakes};

const HOUR: Duration = Duration::from_secs(3600);

/// A TCP backend with room for one connection, which is taken by the client that comes with it; whoever else comes waits for an hour.
fn taken(backend: &Running) -> (Keel, std::net::TcpStream) {
    let keel = tcp(&[backend], |config| {
        config.targets[0].resilience = Resilience { max_in_flight: Some(1), ..Resilience::default() };
        config.targets[0].timeouts.queue = HOUR;
    });
    let first = occupy(&keel);
    (keel, first)
}

/// A client that is being served.
fn occupy(keel: &Keel) -> std::net::TcpStream {
    let mut first = connect(keel.address());
    first.write_all(b"x").unwrap();
    first.read_exact(&mut [0]).unwrap();
    first
}

fn waiting(keel: &Keel) -> usize {
    keel.server.targets()[0].waiting()
}

#[test]
fn a_tcp_client_that_leaves_the_queue_is_noticed_long_before_its_time_there_is_up() {
    let backend = tcp_fakes(1, |fake| fake.behave(Behaviour::tcp(TcpMode::Echo))).remove(0);
    let (keel, _first) = taken(&backend);
    for (nth, sent) in (1..).zip([0, 10, 500_000]) {
        for reset in [true, false] {
            // What it has sent and nobody reads hides its end, but not a reset.
            if sent > 100_000 && !reset {
                continue;
            }
            let mut client = connect(keel.address());
            client.set_nonblocking(true).unwrap();
            // What the kernel takes is enough.
            let _ = client.write(&pattern(sent)).unwrap();
            eventually("it waits", || waiting(&keel) == 1);
            if reset {
                reset_on_close(&client);
            }
            drop(client);
            eventually(&format!("nobody waits: {sent} bytes, reset: {reset}"), || waiting(&keel) == 0);
        }
        let count = if sent > 100_000 { 2 * nth - 1 } else { 2 * nth };
        until_ended(&keel, Cause::ClientGone, count);
    }
    assert_eq!(backend.connections(), 1);
}

#[test]
fn what_a_tcp_client_sends_while_it_waits_is_the_first_that_its_backend_gets() {
    let backend = tcp_fakes(1, |fake| fake.behave(Behaviour::tcp(TcpMode::Echo))).remove(0);
    let (keel, first) = taken(&backend);
    let sent = pattern(500_000);
    let mut client = connect(keel.address());
    let mut writer = client.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            writer.write_all(&sent).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        eventually("it waits", || waiting(&keel) == 1);
        drop(first);
        assert!(read_to_end(&mut client).unwrap() == sent);
    });
    until_ended(&keel, Cause::Done, 2);
}

/// In front of this backend, where a client's end means this.
fn half_closed(backend: &Running, span: Option<Duration>) -> Keel {
    Keel::with(&[backend], |config| config.listeners[0].client_timeouts.half_closed = span)
}

#[test]
fn where_half_closed_is_off_a_client_that_has_finished_sending_gets_a_late_answer() {
    let backends = fakes(1);
    let keel = half_closed(&backends[0], None);
    let mut client = keel.client();
    client.send("GET /delay/2500 HTTP/1.1\r\nHost: a\r\n\r\n").finish_sending();
    assert_eq!(client.answer().text(), "Hello from fake-1");
    assert!(client.is_closed() && !client.was_reset());

    backends[0].behave(Behaviour::hang());
    let mut client = keel.client();
    client.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n").finish_sending();
    eventually("the backend has it", || backends[0].requests() == 2);
    reset(client);
    until_ended(&keel, Cause::ClientGone, 1);
}

#[test]
fn where_half_closed_is_nothing_the_end_gives_the_request_up() {
    let backends = fakes(1);
    let keel = half_closed(&backends[0], Some(Duration::ZERO));
    let mut client = keel.client();
    // By default this is answered.
    client.send("GET /delay/60000 HTTP/1.1\r\nHost: a\r\n\r\n").finish_sending();
    assert_eq!(client.rest(), b"");
    until_ended(&keel, Cause::ClientGone, 1);
    assert_eq!(keel.client().get("/delay/50").status, 200, "others are not concerned");
}

#[test]
fn a_tcp_client_that_has_finished_sending_waits_for_a_backend_as_long_as_half_closed_says() {
    let backend = tcp_fakes(1, |fake| fake.behave(Behaviour::tcp(TcpMode::Echo))).remove(0);
    let keel = tcp(&[&backend], |config| {
        config.targets[0].resilience = Resilience { max_in_flight: Some(1), ..Resilience::default() };
        config.targets[0].timeouts.queue = HOUR;
        config.listeners[0].client_timeouts.half_closed = None;
    });
    let first = occupy(&keel);
    let mut client = connect(keel.address());
    client.write_all(b"question").unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    eventually("it waits", || waiting(&keel) == 1);
    // Behind its end a reset is still seen.
    let other = connect(keel.address());
    other.shutdown(Shutdown::Write).unwrap();
    eventually("it waits too", || waiting(&keel) == 2);
    reset_on_close(&other);
    drop(other);
    eventually("one waits", || waiting(&keel) == 1);
    drop(first);
    assert_eq!(read_to_end(&mut client).unwrap(), b"question");
    until_ended(&keel, Cause::Done, 2);
    until_ended(&keel, Cause::ClientGone, 1);
}

#[test]
fn a_reset_behind_bytes_that_nobody_reads_is_noticed() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    backends[0].behave(Behaviour::hang());
    let mut client = keel.client();
    client.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("the backend has it", || backends[0].requests() == 1);
    client.send("GET /next HTTP/1.1\r\nHost: a\r\n\r\n".repeat(8_000));
    reset(client);
    eventually("the backend sees the abort", || backends[0].stats().aborted == 1);
    until_ended(&keel, Cause::ClientGone, 1);
}

fn reset(client: Client) {
    reset_on_close(&client.socket);
}
