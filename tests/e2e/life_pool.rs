//! Pooled connections to backends: reused, never trusted, closed in time.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;
use std::time::Duration;

use evenkeel::config::model::Protocol;
use evenkeel::message::Cause;
use evenkeel::target::Health;
use fake_backend::{Behaviour, Fake, Fault};

use super::life_lab::{assert_own, pause, post, probe_quickly, until};
use super::support::{Client, Keel, PATIENCE, config, eventually, fakes};

/// One worker, so that there is one pool.
fn one_worker(backends: &[&fake_backend::Running]) -> Keel {
    Keel::with(backends, |config| config.workers = 1)
}

#[test]
fn the_connection_used_last_is_used_next() {
    let backend = Fake::http("fake-1").record().start_in_thread().unwrap();
    let keel = one_worker(&[&backend]);
    let (mut first, mut second) = (keel.client(), keel.client());
    // Half a body each: both are under way at once, on a connection each.
    for (number, client) in [(1, &mut first), (2, &mut second)] {
        client.send("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 4\r\n\r\nab");
        eventually("it has arrived", || backend.requests() == number);
    }
    for client in [&mut first, &mut second] {
        assert_eq!(client.send("cd").answer().text(), "abcd");
    }
    for _ in 0..3 {
        assert_eq!(first.get("/").status, 200);
    }
    let used: Vec<u64> = backend.take_requests().iter().map(|request| request.connection).collect();
    assert_eq!(used, [1, 2, 2, 2, 2]);
    let pool = keel.server.readings().pool;
    assert_eq!((pool.opened, pool.reused), (2, 3));
}

#[test]
fn a_backends_keep_alive_timeout_less_a_second_is_the_idle_time() {
    let backend = Fake::http("fake-1").behave(Behaviour::default().keep_alive_timeout(2)).start_in_thread();
    let backend = backend.unwrap();
    let keel = one_worker(&[&backend]);
    let mut client = keel.client();
    assert_eq!(client.get("/").status, 200);
    assert_eq!(backend.open_connections(), 1);
    eventually("it is closed by us", || keel.server.readings().pool.closed_idle == 1);
    eventually("the backend sees it", || backend.open_connections() == 0);
    assert_eq!(client.get("/").status, 200);
    assert_eq!(backend.connections(), 2);

    // One second promised: not kept at all.
    backend.behave(Behaviour::default().keep_alive_timeout(1));
    for _ in 0..2 {
        assert_eq!(client.get("/").status, 200);
    }
    assert_eq!(backend.connections(), 3, "one went out on the connection from before, one on a fresh one");
}

#[test]
fn connections_to_a_backend_that_went_down_are_closed() {
    let backend = fakes(1).remove(0);
    let keel = Keel::with(&[&backend], probe_quickly);
    until(&keel, 0, Health::Up);
    let mut clients: Vec<Client> = (0..4).map(|_| keel.client()).collect();
    for client in &mut clients {
        assert_eq!(client.get("/").status, 200);
    }
    let opened = keel.server.readings().pool.opened;
    backend.set_healthy(false);
    until(&keel, 0, Health::Down);
    eventually("all are closed", || keel.server.readings().pool.closed_idle == opened);
    eventually("nothing but probes is open", || backend.open_connections() == 0);
}

/// A request on a connection that the backend breaks: how often does the backend see it, what does the client?
#[test]
fn a_stale_connection_costs_a_repeatable_request_nothing_and_no_other_is_sent_twice() {
    let repeatable = ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"];
    let requests: Vec<(bool, String)> = repeatable
        .iter()
        .map(|method| (true, format!("{method} / HTTP/1.1\r\nHost: test\r\n\r\n")))
        .chain([
            (false, "POST / HTTP/1.1\r\nHost: test\r\n\r\n".to_owned()),
            (false, "PATCH / HTTP/1.1\r\nHost: test\r\n\r\n".to_owned()),
            (false, post("/", "body")),
            // What is short is kept while it is sent.
            (true, post("/", "body").replacen("POST", "PUT", 1)),
            (true, post("/", "body").replacen("POST", "GET", 1)),
        ])
        .collect();
    // With the second half of the faults a byte of an answer has come: nothing is repeated.
    let faults = [
        (Fault::CloseUnanswered, true),
        (Fault::ResetUnanswered, true),
        (Fault::CloseMidHead, false),
        (Fault::ResetMidHead, false),
    ];
    let backend = fakes(1).remove(0);
    let keel = one_worker(&[&backend]);
    for (fault, silent) in faults {
        for (repeatable, request) in &requests {
            let what = format!("{fault:?} at {request:?}");
            let mut client = keel.client();
            assert_eq!(client.get("/").status, 200, "{what}");
            let before = backend.requests();
            backend.behave(Behaviour::fault(fault.clone()).times(1));
            client.send(request);
            let answer = if request.starts_with("HEAD") { client.answer_to_head() } else { client.answer() };
            let seen = backend.requests() - before;
            if *repeatable && silent {
                assert_eq!((answer.status, seen), (200, 2), "{what}");
            } else {
                assert_eq!((answer.status, seen), (502, 1), "{what}");
            }
            backend.behave(Behaviour::default());
        }
    }
}

#[test]
fn a_fresh_connection_that_breaks_is_an_error_at_once() {
    let backend = Fake::http("fake-1").behave(Behaviour::fault(Fault::CloseUnanswered)).start_in_thread();
    let backend = backend.unwrap();
    let keel = one_worker(&[&backend]);
    assert_own(&keel.client().get("/"), Cause::BackendClosed);
    assert_eq!(backend.requests(), 1);
}

/// Answers one request per connection, promises nothing, and has closed before it says so through the channel.
fn close_after_each(listener: &TcpListener, closed: &mpsc::Sender<()>) {
    for socket in listener.incoming() {
        let mut socket = socket.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") && !request.ends_with(b"body") {
            let mut space = [0u8; 1024];
            match socket.read(&mut space) {
                Ok(count) if count > 0 => request.extend_from_slice(&space[..count]),
                Ok(_) | Err(_) => return,
            }
        }
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
        drop(socket);
        if closed.send(()).is_err() {
            return;
        }
    }
}

#[test]
fn a_post_takes_a_fresh_connection_when_the_idle_one_was_closed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut config = config(Protocol::Http, &[listener.local_addr().unwrap()]);
    config.workers = 1;
    let keel = Keel::start(&config);
    let (send, closed) = mpsc::channel();
    std::thread::spawn(move || close_after_each(&listener, &send));
    let mut client = keel.client();
    for number in 0..50 {
        assert_eq!(client.send(post("/", "body")).answer().status, 200, "request {number}");
        closed.recv_timeout(PATIENCE).unwrap();
    }
    assert_eq!(keel.server.readings().pool.opened, 50);
}

#[test]
fn backends_that_close_idle_connections_early_cause_no_error() {
    let backends: Vec<_> = (1..=2)
        .map(|number| {
            let early = Behaviour::default().idle_close(Duration::from_millis(50));
            Fake::http(format!("fake-{number}")).behave(early).start_in_thread().unwrap()
        })
        .collect();
    let keel = Keel::http(&[&backends[0], &backends[1]]);
    let address = keel.address();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            scope.spawn(move || {
                let mut client = Client::connect(address);
                for number in 0..60u64 {
                    let answer = if (number + thread) % 2 == 0 {
                        client.get("/")
                    } else {
                        client.send(post("/count", "12345")).answer()
                    };
                    assert_eq!((answer.status, answer.cut), (200, false), "request {number}: {answer:?}");
                    // From nothing to well over the backends' patience.
                    pause((number * 17 + thread * 5) % 90);
                }
            });
        }
    });
    let sent: u64 = backends.iter().map(|backend| backend.requests()).sum();
    assert!(sent >= 240, "{sent}");
    assert!(keel.server.readings().pool.discarded_stale > 0, "the backends did close connections");
}
