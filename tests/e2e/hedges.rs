//! Competitors of slow attempts: the first head wins, and the loser leaves no trace.

use std::rc::Rc;
use std::time::Duration;

use evenkeel::config::model::resilience::{Hedging, Outlier};
use evenkeel::config::model::{Config, Protocol};
use evenkeel::message::{Attempt, Cause, Head, Peer, Record};
use evenkeel::net::now;
use evenkeel::proxy::WorkerCtx;
use evenkeel::proxy::http::body::Memory;
use evenkeel::proxy::http::exchange::{IncomingRequest, Space, exchange};
use evenkeel::proxy::http::memory::MemoryEdge;
use evenkeel::proxy::http::request_body::RequestBody;
use evenkeel::targets::{Ask, Pick, Tried};
use fake_backend::{Behaviour, Fake, Fault, Running};

use super::retry_lab::{at_once, first_always};
use super::support::worker::{here, run, target};
use super::support::{self, Keel, chunked, eventually, fakes, settled};

/// Two backends of which the first is always tried first, and competitors for everybody who is slow.
fn pair() -> ([Running; 2], Config) {
    let pair = ["first", "second"].map(|name| Fake::http(name).start_in_thread().unwrap());
    let mut config = support::config(Protocol::Http, &[pair[0].addr(), pair[1].addr()]);
    first_always(&mut config, at_once());
    config.targets[0].resilience.hedging = Some(Hedging { budget: 100, ..Hedging::default() });
    (pair, config)
}

/// One request, with its Record.
async fn ask(ctx: &Rc<WorkerCtx>, method: &str, body: RequestBody) -> (MemoryEdge, Record) {
    ask_for(ctx, &Head::request(method, "/", "test"), body).await
}

async fn ask_for(ctx: &Rc<WorkerCtx>, head: &Head, body: RequestBody) -> (MemoryEdge, Record) {
    let (mut edge, mut space) = (MemoryEdge::default(), Space::default());
    let (peer, start) = (Peer::default(), now());
    let listener = &*here(ctx);
    let incoming =
        IncomingRequest { ctx, listener, head, peer: &peer, told: None, started: start, head_read: start };
    exchange(&incoming, &mut edge, &body, &mut space).await;
    (edge, space.record)
}

/// Asks until it is known how long answers take. Gives how many requests `other` has had by then: whoever asks as that becomes known may have got a competitor.
async fn settle(ctx: &Rc<WorkerCtx>, other: &Running) -> u64 {
    let target = target(ctx);
    while target.state.pace.percentile(95, now()).is_none() {
        assert_eq!(ask(ctx, "GET", RequestBody::Empty).await.0.status, 200);
    }
    settled("requests are counted", || other.requests())
}

fn outcomes(record: &Record) -> Vec<(u32, Cause)> {
    record.kept_attempts().iter().map(|&Attempt { backend, outcome, .. }| (backend.0, outcome)).collect()
}

fn nobody_in_flight(ctx: &WorkerCtx) {
    let target = target(ctx);
    assert!(target.backends.iter().all(|backend| backend.in_flight() == 0));
}

#[test]
fn a_competitor_that_is_sooner_gives_the_answer() {
    let ([first, second], config) = pair();
    run(&config, async |ctx| {
        let before = settle(&ctx, &second).await;
        let aborted = first.stats().aborted;
        first.behave(Behaviour::hang());
        let small = || RequestBody::Memory(Box::new(Memory::whole(b"12345".to_vec(), ctx.buffers.clone())));
        for (count, (method, body)) in [("GET", RequestBody::Empty), ("PUT", small())].into_iter().enumerate()
        {
            let (edge, record) = ask(&ctx, method, body).await;
            assert_eq!((edge.status, edge.content), (200, b"Hello from second".to_vec()));
            assert_eq!(outcomes(&record), [(0, Cause::Overtaken), (1, Cause::Done)]);
            assert_eq!(record.cause, Cause::Done);
            assert_eq!(second.requests(), before + count as u64 + 1);
            eventually("the loser's connection is closed", || {
                first.stats().aborted == aborted + count as u64 + 1
            });
            nobody_in_flight(&ctx);
        }
    });
}

#[test]
fn one_that_is_not_sooner_leaves_no_trace() {
    let ([first, second], mut config) = pair();
    config.targets[0].resilience.outlier = Some(Outlier { failures: 1, ..Outlier::default() });
    run(&config, async |ctx| {
        settle(&ctx, &second).await;
        let before = second.stats().aborted;
        first.behave(Behaviour::default().latency(Duration::from_secs(2)));
        second.behave(Behaviour::hang());
        let (edge, record) = ask(&ctx, "GET", RequestBody::Empty).await;
        assert_eq!((edge.status, edge.content), (200, b"Hello from first".to_vec()));
        assert_eq!(outcomes(&record), [(1, Cause::Overtaken), (0, Cause::Done)]);
        eventually("the loser's connection is closed", || second.stats().aborted == before + 1);
        nobody_in_flight(&ctx);
        assert_eq!(target(&ctx).status()[1].ejected_until, None, "to have been slower is no error");

        // Nor does one that can't be connected to.
        second.stop();
        let (edge, record) = ask(&ctx, "GET", RequestBody::Empty).await;
        assert_eq!((edge.status, edge.content), (200, b"Hello from first".to_vec()));
        assert_eq!(outcomes(&record), [(1, Cause::ConnectFailed), (0, Cause::Done)]);
    });
}

#[test]
fn a_competitor_goes_on_alone_when_the_first_attempt_fails() {
    let ([first, second], config) = pair();
    run(&config, async |ctx| {
        settle(&ctx, &second).await;
        first.behave(Behaviour::fault(Fault::CloseUnanswered).latency(Duration::from_secs(2)));
        second.behave(Behaviour::default().latency(Duration::from_secs(5)));
        let (edge, record) = ask(&ctx, "GET", RequestBody::Empty).await;
        assert_eq!((edge.status, edge.content), (200, b"Hello from second".to_vec()));
        assert_eq!(outcomes(&record), [(0, Cause::BackendClosed), (1, Cause::Done)]);
        nobody_in_flight(&ctx);
    });
}

/// Asserts that a request with this head waits for the first backend alone.
fn assert_alone(head: &Head) {
    let ([first, second], mut config) = pair();
    config.targets[0].timeouts.first_byte = Duration::from_secs(2);
    run(&config, async |ctx| {
        let before = settle(&ctx, &second).await;
        first.behave(Behaviour::hang());
        let (edge, record) = ask_for(&ctx, head, RequestBody::Empty).await;
        assert_eq!((edge.status, record.attempts_made), (504, 1));
        assert_eq!(second.requests(), before);
    });
}

#[test]
fn what_may_not_be_sent_twice_gets_no_competitor() {
    assert_alone(&Head::request("POST", "/", "test"));
}

#[test]
fn what_belongs_to_a_connection_gets_no_competitor_on_another() {
    let mut head = Head::request("GET", "/", "test");
    head.push(b"Authorization", b"NTLM TlRM");
    assert_alone(&head);
}

#[test]
fn the_retry_of_another_proxy_gets_no_competitor() {
    let mut head = Head::request("GET", "/", "test");
    head.push(b"Retry-Attempt", b"1");
    assert_alone(&head);
}

#[test]
fn a_retry_gets_no_competitor() {
    let ([first, second], mut config) = pair();
    let third = fakes(1).remove(0);
    config.targets[0].backends.push(support::backend(third.addr()));
    config.targets[0].timeouts.first_byte = Duration::from_secs(3);
    run(&config, async |ctx| {
        // Known from what answers have taken, a first attempt that is slower than most would have a competitor, and be no retry then.
        let usual = Duration::from_secs(1);
        (0..1000).for_each(|_| target(&ctx).state.pace.note(usual));
        assert!(target(&ctx).state.pace.percentile(95, now()).is_some_and(|found| found < 2 * usual));
        first.behave(Behaviour::status(503));
        second.behave(Behaviour::hang());
        let (edge, record) = ask(&ctx, "GET", RequestBody::Empty).await;
        assert_eq!((edge.status, record.attempts_made), (504, 2));
        assert_eq!((second.requests(), third.requests()), (1, 0));
    });
}

#[test]
fn a_competitor_for_whom_there_is_no_room_costs_no_token() {
    let ([first, second], mut config) = pair();
    let resilience = &mut config.targets[0].resilience;
    (resilience.hedging, resilience.max_in_flight) =
        (Some(Hedging { budget: 1, ..Hedging::default() }), Some(1));
    config.targets[0].timeouts.first_byte = Duration::from_secs(2);
    run(&config, async |ctx| {
        let before = settle(&ctx, &second).await;
        let target = target(&ctx);
        let mut tried = Tried::new();
        tried.insert(target.backends[0].id);
        let Pick::Lease(_held) = target.pick(&Ask::new(&tried, &ctx.chance, now())) else {
            panic!("it is free")
        };
        while target.state.hedges.take(now()) {}
        // What is owed is paid first.
        while !target.state.hedges.take(now()) {
            target.state.hedges.put();
        }
        target.state.hedges.put();
        first.behave(Behaviour::hang());
        let (edge, record) = ask(&ctx, "GET", RequestBody::Empty).await;
        assert_eq!((edge.status, record.attempts_made), (504, 1));
        assert_eq!(second.requests(), before);
        assert!(target.state.hedges.take(now()), "it was given back");
    });
}

#[test]
fn competitors_have_a_budget() {
    let ([first, second], mut config) = pair();
    config.targets[0].resilience.hedging = Some(Hedging { budget: 1, ..Hedging::default() });
    config.targets[0].timeouts.first_byte = Duration::from_secs(2);
    run(&config, async |ctx| {
        let target = target(&ctx);
        settle(&ctx, &second).await;
        while target.state.hedges.take(now()) {}
        // A hundred requests fill a token: the one that is to get none must not be the hundredth.
        while !target.state.hedges.take(now()) {
            assert_eq!(ask(&ctx, "GET", RequestBody::Empty).await.0.status, 200);
        }
        let before = settled("requests are counted", || second.requests());
        first.behave(Behaviour::hang());
        let (edge, record) = ask(&ctx, "GET", RequestBody::Empty).await;
        assert_eq!((edge.status, record.attempts_made), (504, 1));
        assert_eq!(second.requests(), before);
    });
}

/// Sends a PUT whose first attempt never ends, and all of its body or the first bytes of it; gives what the second backend has
/// seen of it when the time for a competitor has come.
fn competitor_of(head: &str, body: &[u8]) -> Vec<Vec<u8>> {
    let first = Fake::http("first").start_in_thread().unwrap();
    let second = Fake::http("second").record().start_in_thread().unwrap();
    let mut config = support::config(Protocol::Http, &[first.addr(), second.addr()]);
    first_always(&mut config, at_once());
    config.targets[0].resilience.hedging = Some(Hedging { budget: 100, ..Hedging::default() });
    let keel = Keel::start(&config);
    let mut other = keel.client();
    while keel.server.targets()[0].state.pace.percentile(95, now()).is_none() {
        assert_eq!(other.get("/").status, 200);
    }
    let backends = &keel.server.targets()[0].backends;
    // One of those requests may have had a competitor, which may have had a connection and sent nothing.
    eventually("all is over", || backends.iter().all(|backend| backend.in_flight() == 0));
    let opened = settled("connections are counted", || second.connections());
    drop(second.take_requests());
    let before = first.stats().bytes_in;
    first.behave(Behaviour::hang());
    let mut client = keel.client();
    // At one go: a competitor that is due between the two would find half of it.
    client.send([head.as_bytes(), body].concat());
    let sent = body.len() as u64;
    eventually("it has arrived", || first.stats().bytes_in > before + sent);
    // Its own competitor is due later: when that has answered, the first one's time has come as well.
    assert_eq!(other.get("/other").text(), "Hello from second");
    drop(client);
    eventually("all is over", || backends.iter().all(|backend| backend.in_flight() == 0));
    let seen = second.take_requests();
    assert!(second.connections() - opened <= seen.len() as u64, "a connection was opened for nothing");
    let heads = seen.into_iter().map(|request| request.head);
    heads.filter(|head| !head.starts_with(b"GET /other")).collect()
}

#[test]
fn a_body_that_is_too_long_to_be_sent_again_gets_no_competitor() {
    let body = vec![b'x'; 100_000];
    let length = "PUT / HTTP/1.1\r\nHost: test\r\nContent-Length: 100000\r\n\r\n";
    assert!(competitor_of(length, &body).is_empty());
    let chunks = "PUT / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert!(competitor_of(chunks, &chunked(&body, &[10_000], "")).is_empty());
}

#[test]
fn a_body_that_is_not_whole_yet_gets_no_competitor() {
    let head = "PUT / HTTP/1.1\r\nHost: test\r\nContent-Length: 10\r\n\r\n";
    assert!(competitor_of(head, b"half ").is_empty());
    assert!(competitor_of(head, b"").is_empty());
    assert_eq!(competitor_of(head, b"all of it.").len(), 1, "and a whole one does");
}
