//! Pooled connections to backends: reused, never trusted, closed in time.

use std::fs::File;
use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::mpsc;
use std::task::Poll;
use std::time::Duration;

use evenkeel::config::model::resilience::{BreakerConfig, Retries};
use evenkeel::config::model::{Config, Protocol};
use evenkeel::message::{Cause, Head};
use evenkeel::net::{Stream, now};
use evenkeel::proxy::http::request_body::RequestBody;
use evenkeel::proxy::pool::Used;
use evenkeel::targets::Health;
use fake_backend::{Behaviour, Fake, Fault, Running};
use tokio::io::ReadBuf;

use super::life_lab::{assert_own, pause, post, probe_quickly, until};
use super::retry_lab::{at_once, first_always};
use super::support::worker::{self, run, target};
use super::support::{Client, Keel, PATIENCE, config, eventually, fakes};
use super::tls_backends_lab::until_left;

/// One worker, so that there is one pool.
fn one_worker(backends: &[&Running]) -> Keel {
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

/// Asks on a connection that has served before, while the backend behaves like this once: the status, and how often the backend
/// has seen the request.
fn on_a_used_connection(keel: &Keel, backend: &Running, request: &str, behaviour: Behaviour) -> (u16, u64) {
    let mut client = keel.client();
    assert_eq!(client.get("/").status, 200, "{request:?}");
    let before = backend.requests();
    backend.behave(behaviour.times(1));
    client.send(request);
    let answer = if request.starts_with("HEAD") { client.answer_to_head() } else { client.answer() };
    backend.behave(Behaviour::default());
    (answer.status, backend.requests() - before)
}

/// Nothing but the pool may repeat a request, and nothing leaves the backend out.
fn nothing_repeats(config: &mut Config) {
    config.workers = 1;
    let resilience = &mut config.targets[0].resilience;
    (resilience.retries, resilience.breaker, resilience.outlier) = (None, None, None);
}

#[test]
fn a_connection_that_closes_at_once_costs_a_repeatable_request_nothing_and_no_other_is_sent_twice() {
    let repeatable = ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"];
    let requests: Vec<(bool, String)> = repeatable
        .iter()
        .map(|method| (true, format!("{method} / HTTP/1.1\r\nHost: test\r\n\r\n")))
        .chain([
            (false, "POST / HTTP/1.1\r\nHost: test\r\n\r\n".to_owned()),
            (false, "PATCH / HTTP/1.1\r\nHost: test\r\n\r\n".to_owned()),
            (false, post("/", "body")),
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
    let keel = Keel::with(&[&backend], nothing_repeats);
    for (fault, silent) in faults {
        for (repeatable, request) in &requests {
            let what = format!("{fault:?} at {request:?}");
            let ask = || on_a_used_connection(&keel, &backend, request, Behaviour::fault(fault.clone()));
            if *repeatable && silent {
                // On a busy machine it may look like a backend that has thought about it.
                eventually(&what, || {
                    let came = ask();
                    assert!(matches!(came, (200, 2) | (502, 1)), "{what}: {came:?}");
                    came.0 == 200
                });
            } else {
                assert_eq!(ask(), (502, 1), "{what}");
            }
        }
    }
}

/// What is still to come of a request would be the beginning of the next one.
#[test]
fn a_connection_whose_request_has_not_gone_out_whole_serves_nobody_else() {
    let backend = fakes(1).remove(0);
    let keel = one_worker(&[&backend]);
    backend.behave(Behaviour::default().answering_early());
    let mut slow = keel.client();
    slow.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\nhalf ");
    assert_eq!(slow.answer().status, 200);
    assert_eq!(keel.client().get("/").status, 200);
    assert_eq!((backend.connections(), backend.stats().malformed), (2, 0));
}

/// As long as this a backend thinks before it closes: well over the few milliseconds that count as at once, even where the worker looks at
/// the clock late, which it does when it has sent a request.
const THOUGHT: Duration = Duration::from_millis(250);

#[test]
fn a_request_that_a_backend_has_worked_on_is_not_sent_again_for_nothing() {
    for retries in [None, Some(Retries { budget: 0, ..Retries::default() })] {
        let backend = fakes(1).remove(0);
        let keel = Keel::with(&[&backend], |config| {
            nothing_repeats(config);
            config.targets[0].resilience.retries = retries.clone();
        });
        for fault in [Fault::CloseUnanswered, Fault::ResetUnanswered] {
            for request in [
                "GET / HTTP/1.1\r\nHost: test\r\n\r\n".to_owned(),
                post("/", "body").replacen("POST", "PUT", 1),
            ] {
                for _ in 0..2 {
                    let behaviour = Behaviour::fault(fault.clone()).latency(THOUGHT);
                    let came = on_a_used_connection(&keel, &backend, &request, behaviour);
                    assert_eq!(came, (502, 1), "{fault:?} at {request:?}");
                }
            }
        }
    }
}

#[test]
fn it_is_a_failed_attempt_like_any_other_charged_and_sent_elsewhere() {
    let (first, second) = (fakes(1).remove(0), Fake::http("second").record().start_in_thread().unwrap());
    let keel = Keel::with(&[&first, &second], |config| {
        first_always(config, Retries { budget: 1, ..at_once() });
    });
    let request = "GET / HTTP/1.1\r\nHost: test\r\n\r\n";
    let ask = || {
        on_a_used_connection(
            &keel,
            &first,
            request,
            Behaviour::fault(Fault::CloseUnanswered).latency(THOUGHT),
        )
    };
    // Three are lent.
    let came: Vec<_> = (0..5).map(|_| ask()).collect();
    assert_eq!(came, [(200, 1), (200, 1), (200, 1), (502, 1), (502, 1)]);
    let seen = second.take_requests();
    assert!(seen.len() == 3 && seen.iter().all(|request| request.header("retry-attempt") == ["1"]));
}

#[test]
fn it_counts_against_the_backend() {
    let backend = fakes(1).remove(0);
    let keel = Keel::with(&[&backend], |config| {
        nothing_repeats(config);
        let breaker = BreakerConfig {
            failures: 3,
            open: Duration::from_secs(600),
            statuses: Vec::new(),
            open_is_default: false,
        };
        config.targets[0].resilience.breaker = Some(breaker);
    });
    // As many connections as will be broken.
    let mut clients: Vec<Client> = (0..3).map(|_| keel.client()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send("POST /echo HTTP/1.1\r\nHost: test\r\nContent-Length: 4\r\n\r\nab");
        eventually("it has arrived", || backend.requests() == number as u64 + 1);
    }
    for client in &mut clients {
        assert_eq!(client.send("cd").answer().text(), "abcd");
    }
    backend.behave(Behaviour::fault(Fault::CloseUnanswered).latency(THOUGHT));
    for client in &mut clients {
        assert_own(&client.get("/"), Cause::BackendClosed);
    }
    assert_eq!((backend.requests(), backend.connections()), (6, 3));
    assert_own(&clients[0].get("/"), Cause::BreakerOpen);
}

#[test]
fn a_long_body_on_a_connection_that_closes_is_a_failed_attempt_however_soon_that_is() {
    let backend = fakes(1).remove(0);
    let keel = Keel::with(&[&backend], |config| {
        nothing_repeats(config);
        let breaker = BreakerConfig {
            failures: 1,
            open: Duration::from_secs(600),
            statuses: Vec::new(),
            open_is_default: false,
        };
        config.targets[0].resilience.breaker = Some(breaker);
    });
    let request = post("/", &"x".repeat(100_000)).replacen("POST", "PUT", 1);
    let came = on_a_used_connection(&keel, &backend, &request, Behaviour::fault(Fault::CloseUnanswered));
    assert_eq!(came, (502, 1));
    assert_own(&keel.client().get("/"), Cause::BreakerOpen);
}

#[test]
fn what_was_closed_before_the_request_came_is_never_met() {
    let backend = fakes(1).remove(0);
    let keel = Keel::with(&[&backend], nothing_repeats);
    let mut client = keel.client();
    for round in 1..=20 {
        assert_eq!((client.get("/").status, backend.requests()), (200, round));
        until_left(&backend);
    }
}

/// A socket of which the event loop has not been told that its peer is gone: not a byte of a request is taken.
#[test]
fn a_request_of_which_not_a_byte_was_taken_is_sent_again_whatever_the_retries_are() {
    let backend = fakes(1).remove(0);
    let mut config = config(Protocol::Http, &[backend.addr()]);
    nothing_repeats(&mut config);
    config.targets[0].timeouts.first_byte = Duration::from_secs(2);
    run(&config, async |ctx| {
        let target = target(&ctx);
        let target = &target.backends[0];
        let mut far = Vec::new();
        for _ in 0..2 {
            let (near, other) = tokio::net::UnixStream::pair().unwrap();
            let mut near = Stream::from(near);
            let mut byte = [0u8; 1];
            let read = poll_fn(|cx| Poll::Ready(near.poll_read(cx, &mut ReadBuf::new(&mut byte)))).await;
            assert!(read.is_pending(), "it is silent, and that is known");
            let used = Used { stream: near, keep_for: None, generation: target.generation() };
            ctx.pool.put(&ctx.cells, target, used, now());
            far.push(other);
        }
        // The one that was used last is gone; the other one is there and will never answer.
        far.pop();
        let (_, edge) = worker::ask(&ctx, &Head::request("GET", "/", "test"), RequestBody::Empty).await;
        assert_eq!((edge.status, ctx.cells.pool.reused.value()), (200, 1), "once, and then on a fresh one");
        assert_eq!(target.in_flight(), 0);
    });
    assert_eq!(backend.requests(), 1);
}

/// The limit is of the process, so it is one of its own.
#[test]
fn idle_connections_give_way_where_descriptors_are_few() {
    let line = "ulimit -n 200 && exec \"$0\" --exact life_pool::where_descriptors_are_few --ignored";
    let own = std::env::current_exe().unwrap();
    let output = Command::new("sh").args(["-c", line]).arg(own).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "run by the test above"]
fn where_descriptors_are_few() {
    let backends = fakes(2);
    let mut config = config(Protocol::Http, &[backends[0].addr(), backends[1].addr()]);
    first_always(&mut config, at_once());
    config.targets[0].resilience.retries = None;
    run(&config, async |ctx| {
        let target = target(&ctx);
        let other = &target.backends[1];
        let mut far = Vec::new();
        for _ in 0..8 {
            let (near, end) = tokio::net::UnixStream::pair().unwrap();
            let used = Used { stream: near.into(), keep_for: None, generation: other.generation() };
            ctx.pool.put(&ctx.cells, other, used, now());
            far.push(end);
        }
        let held: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        assert!(held.len() > 10 && ctx.pool.len() == 8, "{}", held.len());
        let (_, edge) = worker::ask(&ctx, &Head::request("GET", "/", "test"), RequestBody::Empty).await;
        assert_eq!((edge.status, ctx.pool.len()), (200, 1), "its own");
    });
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
