//! The cache beside everything else that a route or a target may have.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};

use evenkeel::config::model::Config;
use evenkeel::config::model::cache::CachePolicy;
use evenkeel::config::model::resilience::Hedging;
use evenkeel::message::Cause;
use evenkeel::net::now;

use super::cache_lab::{Origin, get, keel_with, write};
use super::life_lab::end;
use super::mirror_lab::copies;
use super::retry_lab::{at_once, first_always};
use super::support::{Client, Keel, backend, eventually, load};

const FRESH: &[&str] = &["Cache-Control: max-age=100"];

/// What answers say counts, and nothing else.
fn said() -> CachePolicy {
    CachePolicy { ttl: None, ..CachePolicy::default() }
}

/// A backend in the text of a config.
fn pool(name: &str, origin: &Origin, more: &str) -> String {
    format!("  {name}: {{health_check: off, {more} backends: [{{url: 'http://{}'}}]}}\n", origin.address)
}

/// A server with one listener that has these routes, in front of these targets.
fn start(routes: &str, targets: &[String]) -> Keel {
    let targets = targets.concat();
    Keel::start(&load(&format!(
        "listeners:\n  front:\n    bind: 127.0.0.1:0\n    routes: [{routes}]\ntargets:\n{targets}"
    )))
}

/// Sends `GET path` without reading the answer.
fn send(client: &mut Client, path: &str) {
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a.example\r\n\r\n"));
}

/// One request at a time reaches the backend.
fn narrow(config: &mut Config) {
    config.targets[0].resilience.max_in_flight = Some(1);
}

/// An origin that answers `/slow` only when it is told to, and counts the others.
fn slow_origin() -> (Origin, Arc<Barrier>) {
    let go = Arc::new(Barrier::new(2));
    let begin = Arc::clone(&go);
    let origin = Origin::scripted(move |got, number, stream| {
        if got.path == "/slow" {
            begin.wait();
        }
        write(stream, 200, FRESH, &format!("{} {number}", got.path));
    });
    (origin, go)
}

#[test]
fn while_others_wait_in_the_queue_hits_are_answered_and_one_waits_for_all_who_want_the_same() {
    let (origin, go) = slow_origin();
    let keel = keel_with(&origin, said(), narrow);
    let mut client = keel.client();
    assert_eq!(get(&mut client, "/known", &[]).1, "/known 1");
    let mut slow = keel.client();
    send(&mut slow, "/slow");
    eventually("the backend is busy", || origin.count() == 2);
    let mut waiting: Vec<_> = (0..20).map(|_| keel.client()).collect();
    waiting.iter_mut().for_each(|client| send(client, "/new"));
    let queued = || keel.server.targets()[0].waiting();
    eventually("one of them waits for its turn", || queued() == 1);
    assert_eq!(get(&mut client, "/known", &[]).1, "/known 1");
    go.wait();
    assert_eq!(slow.answer().text(), "/slow 2");
    for client in &mut waiting {
        assert_eq!(client.answer().text(), "/new 3");
    }
    assert_eq!((origin.count(), queued()), (3, 0));
}

#[test]
fn who_leaves_the_queue_leaves_its_place_to_one_who_wants_the_same() {
    let (origin, go) = slow_origin();
    let keel = keel_with(&origin, said(), narrow);
    let mut slow = keel.client();
    send(&mut slow, "/slow");
    eventually("the backend is busy", || origin.count() == 1);
    let queued = || keel.server.targets()[0].waiting();
    let (mut leaves, mut stays) = (keel.client(), keel.client());
    send(&mut leaves, "/new");
    eventually("it waits", || queued() == 1);
    send(&mut stays, "/new");
    drop(leaves);
    eventually("it is gone", || {
        keel.server.readings().errors().any(|(cause, count)| cause == Cause::ClientGone && count == 1)
    });
    go.wait();
    assert_eq!(slow.answer().text(), "/slow 1");
    assert_eq!(stays.answer().text(), "/new 2");
    assert_eq!(get(&mut stays, "/new", &[]).1, "/new 2");
}

#[test]
fn for_whom_the_queue_has_no_room_something_stale_stands_in() {
    let go = Arc::new(Barrier::new(2));
    let begin = Arc::clone(&go);
    let origin = Origin::scripted(move |got, number, stream| {
        if got.path == "/slow" {
            begin.wait();
        }
        write(stream, 200, &["Cache-Control: max-age=0, stale-if-error=60"], &format!("body {number}"));
    });
    let keel = keel_with(&origin, said(), |config| {
        narrow(config);
        config.targets[0].resilience.queue = 0;
    });
    let mut client = keel.client();
    assert_eq!(get(&mut client, "/known", &[]).1, "body 1");
    let mut slow = keel.client();
    send(&mut slow, "/slow");
    eventually("the backend is busy", || origin.count() == 2);
    assert_eq!(get(&mut client, "/new", &[]).0, 503);
    let (status, body, _) = get(&mut client, "/known", &[]);
    assert_eq!((status, body.as_str()), (200, "body 1"));
    go.wait();
    assert_eq!(slow.answer().status, 200);
    assert_eq!(get(&mut client, "/known", &[]).1, "body 3");
}

#[test]
fn of_an_attempt_and_its_competitor_the_answer_that_was_sent_is_stored() {
    let is_slow = Arc::new(AtomicBool::new(false));
    let (hangs, go) = (Arc::clone(&is_slow), Arc::new(Barrier::new(2)));
    let begin = Arc::clone(&go);
    let first = Origin::scripted(move |_, _, stream| {
        if hangs.load(Ordering::SeqCst) {
            begin.wait();
        }
        write(stream, 200, FRESH, &"first ".repeat(50_000));
    });
    let second = Origin::scripted(|_, _, stream| write(stream, 200, FRESH, &"second ".repeat(50_000)));
    let keel = keel_with(&first, said(), |config| {
        first_always(config, at_once());
        config.targets[0].backends.push(backend(second.address));
        config.targets[0].resilience.hedging = Some(Hedging { budget: 100, ..Hedging::default() });
    });
    let mut client = keel.client();
    let target = keel.server.targets().remove(0);
    // With fewer than a hundred known times it gets no competitor.
    assert!(get(&mut client, "/warm", &[]).1.starts_with("first"));
    // Made up: with real ones it is chance which request is slower than most.
    (0..100).for_each(|_| target.state.pace.note(std::time::Duration::from_millis(20)));
    eventually("it is known how long answers take", || target.state.pace.percentile(95, now()).is_some());
    is_slow.store(true, Ordering::SeqCst);
    let mut crowd: Vec<_> = (0..10).map(|_| keel.client()).collect();
    crowd.iter_mut().for_each(|client| send(client, "/"));
    for client in &mut crowd {
        assert!(client.answer().text() == "second ".repeat(50_000));
    }
    // The loser answers, too late.
    go.wait();
    assert!(get(&mut client, "/", &[]).1 == "second ".repeat(50_000));
    assert_eq!(second.count(), 1);
}

#[test]
fn a_crowd_gets_what_the_second_backend_says_where_the_first_one_fails() {
    let go = Arc::new(Barrier::new(2));
    let begin = Arc::clone(&go);
    let first = Origin::scripted(move |_, _, stream| {
        begin.wait();
        write(stream, 503, FRESH, "down");
    });
    let second = Origin::with(FRESH);
    let keel = keel_with(&first, said(), |config| {
        first_always(config, at_once());
        config.targets[0].backends.push(backend(second.address));
    });
    let mut crowd: Vec<_> = (0..20).map(|_| keel.client()).collect();
    crowd.iter_mut().for_each(|client| send(client, "/"));
    eventually("the first one is asked", || first.count() == 1);
    go.wait();
    for client in &mut crowd {
        let answer = client.answer();
        assert_eq!((answer.status, answer.text()), (200, "body 1".to_owned()));
    }
    assert_eq!((first.count(), second.count()), (1, 1));
}

#[test]
fn a_change_over_a_route_without_a_cache_is_one_for_all_routes() {
    let origin = Origin::with(FRESH);
    let keel = Keel::start(&load(&format!(
        "listeners:\n  front:\n    bind: 127.0.0.1:0\n    routes:\n    - {{match: {{method: [POST]}}, target: web, rewrite: {{strip_prefix: /a}}}}\n    \
         - {{target: web, cache: {{ttl: off, query: [page]}}}}\n  back:\n    bind: 127.0.0.1:0\n    routes: [{{target: web}}]\ntargets:\n{}",
        pool("web", &origin, "")
    )));
    let mut client = keel.client();
    let mut other = Client::connect(keel.addresses("back")[0]);
    let ask = |client: &mut Client, path: &str| get(client, path, &[]).1;
    assert_eq!(ask(&mut client, "/a?page=1&x=1"), "body 1");
    assert_eq!(ask(&mut client, "/a?page=1&x=2"), "body 1");
    // What has nothing to do with it, or did not happen, changes nothing.
    assert_eq!(client.post("/b?page=1", b"x").status, 200);
    assert_eq!(ask(&mut client, "/a?page=1"), "body 1");
    let post = |client: &mut Client| {
        client.ask("POST /a?page=1&x=3 HTTP/1.1\r\nHost: a.example\r\nContent-Length: 1\r\n\r\nx").status
    };
    assert_eq!(post(&mut client), 200);
    assert_eq!(ask(&mut client, "/a?page=1"), "body 4");
    assert_eq!(post(&mut other), 200);
    assert_eq!(ask(&mut client, "/a?page=1"), "body 6");
}

#[test]
fn what_is_answered_from_the_cache_is_copied_for_the_shadow_and_what_that_says_is_not_stored() {
    let (web, shadow) =
        (Origin::with(FRESH), Origin::scripted(|_, _, stream| write(stream, 200, FRESH, "shadow")));
    let keel = start(
        "{target: web, cache: {ttl: off}, mirror: {target: shadow}}",
        &[pool("web", &web, ""), pool("shadow", &shadow, "")],
    );
    let mut client = keel.client();
    for ended in 1..=3 {
        assert_eq!(get(&mut client, "/", &[]).1, "body 1");
        eventually("the shadow has answered", || copies(&keel).answered() == ended);
    }
    assert_eq!((web.count(), shadow.count()), (1, 3));
}

#[test]
fn a_websocket_on_a_route_with_a_cache_is_a_tunnel_and_its_url_is_stored_beside_it() {
    let origin = Origin::scripted(|got, number, stream| {
        use std::io::Write as _;
        if got.line("upgrade").is_some() {
            let _ = stream.write_all(
                b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nCache-Control: max-age=100\r\n\r\nhello",
            );
            return;
        }
        write(stream, 200, FRESH, &format!("body {number}"));
    });
    let keel = keel_with(&origin, said(), |_| {});
    for _ in 0..2 {
        let mut tunnel = keel.client();
        tunnel.send(
            "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
        );
        let answer = tunnel.answer();
        assert_eq!((answer.status, answer.header("cache-status")), (101, None), "{}", answer.head);
        assert_eq!(tunnel.take(5), b"hello");
        assert_eq!(get(&mut keel.client(), "/", &[]).1, "body 2", "what is stored is the other answer");
    }
    assert_eq!(origin.count(), 3);
}

#[test]
fn nobody_gets_the_sticky_cookie_of_another_client() {
    let origin = Origin::scripted(|got, number, stream| {
        let lines: &[&str] = if got.path == "/own" { &["Cache-Control: no-store"] } else { FRESH };
        write(stream, 200, lines, &format!("body {number}"));
    });
    let keel = start("{target: web, cache: {ttl: off}}", &[pool("web", &origin, "sticky: {},")]);
    let cookie = |client: &mut Client, path: &str| {
        let answer = client.ask(&format!("GET {path} HTTP/1.1\r\nHost: a.example\r\n\r\n"));
        answer.header("set-cookie").map(str::to_owned)
    };
    for _ in 0..2 {
        assert_eq!(cookie(&mut keel.client(), "/"), None, "it is for all");
    }
    assert!(cookie(&mut keel.client(), "/own").is_some(), "it is for its client alone");
    assert_eq!(cookie(&mut keel.client(), "/"), None);
    assert_eq!(origin.count(), 2);
}

#[test]
fn the_sides_of_a_split_are_stored_apart() {
    let (one, two) = (
        Origin::scripted(|_, number, stream| write(stream, 200, FRESH, &format!("one {number}"))),
        Origin::scripted(|_, number, stream| write(stream, 200, FRESH, &format!("two {number}"))),
    );
    let keel = start(
        "{cache: {ttl: off}, split: {targets: {one: 50, two: 50}, by: {header: x-user}}}",
        &[pool("one", &one, ""), pool("two", &two, "")],
    );
    let mut client = keel.client();
    let mut ask = |user: usize| get(&mut client, "/", &[&format!("X-User: {user}")]).1;
    let first: Vec<String> = (0..40).map(&mut ask).collect();
    assert!(first.iter().all(|body| body == "one 1" || body == "two 1"), "{first:?}");
    assert!(first.contains(&"one 1".to_owned()) && first.contains(&"two 1".to_owned()));
    assert!((0..40).map(&mut ask).eq(first.iter().cloned()));
    assert_eq!((one.count(), two.count()), (1, 1));
}

#[test]
fn what_a_304_in_the_background_freshens_keeps_its_tags() {
    let origin = Origin::scripted(|got, number, stream| match got.line("if-none-match") {
        Some(_) => write(stream, 304, &["ETag: \"v1\"", "Cache-Control: max-age=100"], ""),
        None => {
            let lines =
                ["ETag: \"v1\"", "Cache-Control: max-age=0, stale-while-revalidate=60", "Cache-Tag: every"];
            write(stream, 200, &lines, &format!("body {number}"));
        }
    });
    let keel = keel_with(&origin, said(), |_| {});
    let mut client = keel.client();
    assert_eq!(get(&mut client, "/", &[]).1, "body 1");
    assert_eq!(get(&mut client, "/", &[]).1, "body 1");
    eventually("it is fresh", || get(&mut client, "/", &[]).2.starts_with("evenkeel; hit; ttl=9"));
    let store = keel.server.cache_store().unwrap();
    let tag = evenkeel::cache::store::PurgeOf::Tag(b"every"[..].into());
    store.purge(tag, evenkeel::cache::store::PurgeKind::Hard);
    assert_ne!(get(&mut client, "/", &[]).1, "body 1");
}

/// A connection on each of the two workers.
fn on_each_worker(keel: &Keel) -> [Client; 2] {
    let open = || -> Vec<u64> {
        keel.server.readings_by_worker().iter().map(|readings| readings.connections.open).collect()
    };
    let (mut found, mut others) = ([None, None], Vec::new());
    while found.iter().any(Option::is_none) {
        let before = open();
        let mut client = keel.client();
        assert_eq!(get(&mut client, "/warm", &[]).0, 200);
        let worker = open().iter().zip(&before).position(|(after, before)| after > before).unwrap();
        others.extend(found[worker].replace(client));
    }
    drop(others);
    eventually("the others are gone", || open() == [1, 1]);
    found.map(Option::unwrap)
}

#[test]
fn a_worker_that_drains_reads_on_what_others_read_from_it() {
    const PIECES: usize = 40;
    let go = Arc::new(Barrier::new(2));
    let step = Arc::clone(&go);
    let origin = Origin::scripted(move |got, _, stream| {
        use std::io::Write as _;
        if got.path == "/warm" {
            return write(stream, 200, &["Cache-Control: no-store"], "warm");
        }
        let head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=100\r\nContent-Length: {}\r\n\r\n",
            5 * PIECES
        );
        let _ = stream.write_all(head.as_bytes());
        for number in 0..PIECES {
            let _ = stream.write_all(format!("{number:05}").as_bytes());
            step.wait();
        }
    });
    let keel = keel_with(&origin, said(), |config| config.workers = 2);
    let [mut leads, mut reads] = on_each_worker(&keel);
    for client in [&mut leads, &mut reads] {
        send(client, "/");
        client.take_until("\r\n\r\n00000");
    }
    drop(leads);
    eventually("the worker that fetches it has no client any more", || {
        keel.server.readings_by_worker().iter().any(|readings| readings.connections.open == 0)
    });
    keel.server.shutdown().advance();
    for number in 1..PIECES {
        go.wait();
        assert_eq!(String::from_utf8_lossy(&reads.take(5)), format!("{number:05}"));
    }
    go.wait();
    assert!(reads.is_closed());
    assert_eq!(end(keel).cut, 0);
}
