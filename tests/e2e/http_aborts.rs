//! A client that leaves: the backend learns of it, and nobody else does.

use std::time::Duration;

use evenkeel::message::Cause;
use fake_backend::{Behaviour, Running, pattern};

use super::support::{Client, Keel, eventually, fakes, recording};

/// Leaves with a reset, as a killed process with unread data does.
fn reset(client: Client) {
    socket2::SockRef::from(&client.socket).set_linger(Some(Duration::ZERO)).unwrap();
}

fn noticed(backend: &Running, keel: &Keel, aborted: u64) {
    eventually("the backend sees the abort", || backend.stats().aborted == aborted);
    eventually("its connection is closed", || backend.open_connections() == 0);
    eventually("it is written down", || keel.server.readings().ended_with(Cause::ClientGone) == aborted);
}

fn goes_on(keel: &Keel) {
    assert_eq!(keel.client().get("/").text(), "Hello from fake-1");
}

#[test]
fn in_the_middle_of_an_upload() {
    let backend = recording();
    let keel = Keel::http(&[&backend]);
    let mut count = 0;
    for framing in ["Content-Length: 500000", "Transfer-Encoding: chunked"] {
        for leave in [drop as fn(Client), reset, |client: Client| {
            client.finish_sending();
            eventually("it is answered by an abort", || {
                client.socket.peek(&mut [0]).map_or(true, |n| n == 0)
            });
        }] {
            let mut client = keel.client();
            client.send(format!("POST / HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n"));
            let chunk = super::support::chunked(&pattern(100_000), &[100_000], "");
            client.send(&chunk[..chunk.len() - 5]);
            eventually("half of it is there", || {
                backend.last_requests().pop().is_some_and(|seen| seen.body.len() >= 100_000)
            });
            leave(client);
            count += 1;
            noticed(&backend, &keel, count);
            let uploads = backend.take_requests();
            assert!(uploads.iter().all(|seen| !seen.complete), "{framing}");
        }
    }
}

#[test]
fn while_it_waits_for_an_answer() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    for (count, leave) in (1..).zip([drop as fn(Client), reset]) {
        backends[0].behave(Behaviour::hang().times(1));
        let mut client = keel.client();
        client.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
        eventually("the backend has it", || backends[0].requests() == count);
        leave(client);
        noticed(&backends[0], &keel, count);
    }
    goes_on(&keel);
}

#[test]
fn in_the_middle_of_a_download() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let mut count = 0;
    for framing in ["bytes", "chunked", "close"] {
        for leave in [drop as fn(Client), reset] {
            let mut client = keel.client();
            client.send(format!("GET /{framing}/1000000000000 HTTP/1.1\r\nHost: a\r\n\r\n"));
            assert_eq!(client.take(100_000).len(), 100_000);
            leave(client);
            count += 1;
            noticed(&backends[0], &keel, count);
        }
    }
    goes_on(&keel);
}

#[test]
fn while_a_slow_answer_trickles() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let mut client = keel.client();
    client.send("GET /bytes/100000?piece=1&every=20 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(client.take(100).len(), 100);
    drop(client);
    noticed(&backends[0], &keel, 1);
    goes_on(&keel);
}

#[test]
fn before_its_request_was_complete() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    for leave in [drop as fn(Client), reset] {
        let mut client = keel.client();
        client.send("GET / HTTP/1.1\r\nHo");
        leave(client);
    }
    eventually("both are gone", || keel.server.connections() == 0);
    assert_eq!((backends[0].requests(), backends[0].connections()), (0, 0));
}
