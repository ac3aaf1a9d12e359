//! Competitors of slow attempts: the first head wins, and the loser leaves no trace.

use std::rc::Rc;
use std::time::Duration;

use evenkeel::config::model::resilience::Hedging;
use evenkeel::config::model::{Config, Protocol};
use evenkeel::message::{Attempt, Cause, Head, Peer, Record};
use evenkeel::net::now;
use evenkeel::proxy::WorkerCtx;
use evenkeel::proxy::http::Body;
use evenkeel::proxy::http::body::Memory;
use evenkeel::proxy::http::exchange::{Arrival, Space, exchange};
use evenkeel::proxy::http::memory::MemoryEdge;
use fake_backend::{Behaviour, Fake, Fault, Running};

use super::retry_lab::{at_once, first_always};
use super::support::worker::run;
use super::support::{self, eventually};

/// Two backends of which the first is always tried first, and competitors for everybody who is slow.
fn pair() -> ([Running; 2], Config) {
    let pair = ["first", "second"].map(|name| Fake::http(name).start_in_thread().unwrap());
    let mut config = support::config(Protocol::Http, &[pair[0].addr(), pair[1].addr()]);
    first_always(&mut config, at_once());
    config.targets[0].resilience.hedging = Some(Hedging { budget: 100, ..Hedging::default() });
    (pair, config)
}

/// One request, with its Record.
async fn ask(ctx: &Rc<WorkerCtx>, method: &str, body: Body) -> (MemoryEdge, Record) {
    let (mut edge, mut space) = (MemoryEdge::default(), Space::default());
    let (head, peer, start) = (Head::request(method, "/", "test"), Peer::default(), now());
    let listener = &ctx.snapshot.listeners[0];
    let arrival = Arrival { ctx, listener, head: &head, peer: &peer, started: start, head_read: start };
    exchange(&arrival, &mut edge, &body, &mut space).await;
    (edge, space.record)
}

/// Asks until it is known how long answers take.
async fn settle(ctx: &Rc<WorkerCtx>) {
    let target = &ctx.snapshot.targets[0];
    while target.state.pace.percentile(95, now()).is_none() {
        assert_eq!(ask(ctx, "GET", Body::Empty).await.0.status, 200);
    }
}

fn outcomes(record: &Record) -> Vec<(u32, Cause)> {
    record.kept_attempts().iter().map(|&Attempt { backend, outcome, .. }| (backend.0, outcome)).collect()
}

fn nobody_in_flight(ctx: &WorkerCtx) {
    let target = &ctx.snapshot.targets[0];
    assert!(target.backends.iter().all(|backend| backend.in_flight() == 0));
}

#[test]
fn a_competitor_that_is_sooner_gives_the_answer() {
    let ([first, second], config) = pair();
    run(&config, async |ctx| {
        settle(&ctx).await;
        first.behave(Behaviour::hang());
        let small = || Body::Memory(Box::new(Memory::whole(b"12345".to_vec(), ctx.buffers.clone())));
        for (count, (method, body)) in [("GET", Body::Empty), ("PUT", small())].into_iter().enumerate() {
            let (edge, record) = ask(&ctx, method, body).await;
            assert_eq!((edge.status, edge.content), (200, b"Hello from second".to_vec()));
            assert_eq!(outcomes(&record), [(0, Cause::Overtaken), (1, Cause::Done)]);
            assert_eq!(record.cause, Cause::Done);
            assert_eq!(second.requests(), count as u64 + 1);
            eventually("the loser's connection is closed", || first.stats().aborted == count as u64 + 1);
            nobody_in_flight(&ctx);
        }
    });
}

#[test]
fn one_that_is_not_sooner_leaves_no_trace() {
    let ([first, second], config) = pair();
    run(&config, async |ctx| {
        settle(&ctx).await;
        first.behave(Behaviour::default().latency(Duration::from_secs(2)));
        second.behave(Behaviour::hang());
        let (edge, record) = ask(&ctx, "GET", Body::Empty).await;
        assert_eq!((edge.status, edge.content), (200, b"Hello from first".to_vec()));
        assert_eq!(outcomes(&record), [(1, Cause::Overtaken), (0, Cause::Done)]);
        eventually("the loser's connection is closed", || second.stats().aborted == 1);
        nobody_in_flight(&ctx);

        // Nor does one that can't be connected to.
        second.stop();
        let (edge, record) = ask(&ctx, "GET", Body::Empty).await;
        assert_eq!((edge.status, edge.content), (200, b"Hello from first".to_vec()));
        assert_eq!(outcomes(&record), [(1, Cause::ConnectFailed), (0, Cause::Done)]);
    });
}

#[test]
fn a_competitor_goes_on_alone_when_the_first_attempt_fails() {
    let ([first, second], config) = pair();
    run(&config, async |ctx| {
        settle(&ctx).await;
        first.behave(Behaviour::fault(Fault::CloseUnanswered).latency(Duration::from_secs(2)));
        second.behave(Behaviour::default().latency(Duration::from_secs(5)));
        let (edge, record) = ask(&ctx, "GET", Body::Empty).await;
        assert_eq!((edge.status, edge.content), (200, b"Hello from second".to_vec()));
        assert_eq!(outcomes(&record), [(0, Cause::BackendClosed), (1, Cause::Done)]);
        nobody_in_flight(&ctx);
    });
}

#[test]
fn what_may_not_be_sent_twice_gets_no_competitor() {
    let ([first, second], mut config) = pair();
    config.targets[0].timeouts.first_byte = Duration::from_secs(2);
    run(&config, async |ctx| {
        settle(&ctx).await;
        first.behave(Behaviour::hang());
        let (edge, record) = ask(&ctx, "POST", Body::Empty).await;
        assert_eq!((edge.status, record.attempts_made), (504, 1));
        assert_eq!(second.requests(), 0);
    });
}

#[test]
fn competitors_have_a_budget() {
    let ([first, second], mut config) = pair();
    config.targets[0].resilience.hedging = Some(Hedging { budget: 1, ..Hedging::default() });
    config.targets[0].timeouts.first_byte = Duration::from_secs(2);
    run(&config, async |ctx| {
        let target = &ctx.snapshot.targets[0];
        settle(&ctx).await;
        while target.state.hedges.take(now()) {}
        first.behave(Behaviour::hang());
        let (edge, record) = ask(&ctx, "GET", Body::Empty).await;
        assert_eq!((edge.status, record.attempts_made), (504, 1));
        assert_eq!(second.requests(), 0);
    });
}
