//! Answers out of the cache, end to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use evenkeel::config::model::cache::CachePolicy;

use super::cache_lab::{Origin, get, keel, write};
use super::support::eventually;

/// Only what answers say counts.
fn said() -> CachePolicy {
    CachePolicy { ttl: None, ..CachePolicy::default() }
}

#[test]
fn what_is_fresh_costs_the_backend_nothing() {
    let origin = Origin::with(&[]);
    let keel = keel(&origin, CachePolicy::default());
    let mut client = keel.client();
    let (status, body, said) = get(&mut client, "/a?x=1", &[]);
    assert_eq!((status, body.as_str()), (200, "body 1"));
    assert!(said.starts_with("evenkeel; fwd=uri-miss; ttl=") && said.ends_with("; stored"), "{said}");
    for _ in 0..3 {
        let (status, body, said) = get(&mut client, "/a?x=1", &[]);
        assert_eq!((status, body.as_str()), (200, "body 1"));
        assert!(said.starts_with("evenkeel; hit; ttl="), "{said}");
    }
    assert_eq!(get(&mut client, "/a?x=2", &[]).1, "body 2");
    let head = client.send("HEAD /a?x=1 HTTP/1.1\r\nHost: a.example\r\n\r\n").answer_to_head();
    assert_eq!((head.status, head.header("content-length")), (200, Some("6")));
    assert_eq!(origin.count(), 2);
}

#[test]
fn a_client_has_it_already_or_wants_a_part() {
    let origin = Origin::with(&["ETag: \"v1\"", "Cache-Control: max-age=100"]);
    let keel = keel(&origin, said());
    let mut client = keel.client();
    assert_eq!(get(&mut client, "/", &[]).1, "body 1");
    let (status, body, _) = get(&mut client, "/", &["If-None-Match: \"v1\""]);
    assert_eq!((status, body.as_str()), (304, ""));
    let (status, body, _) = get(&mut client, "/", &["Range: bytes=5-"]);
    assert_eq!((status, body.as_str()), (206, "1"));
    let (status, body, _) = get(&mut client, "/", &["Range: bytes=99-"]);
    assert_eq!((status, body.as_str()), (416, ""));
    assert_eq!(origin.count(), 1);
}

#[test]
fn what_is_stale_is_asked_for_again() {
    let origin = Origin::scripted(|got, number, stream| match got.line("if-none-match") {
        Some("\"v1\"") if number < 3 => write(stream, 304, &["ETag: \"v1\"", "Cache-Control: max-age=0"], ""),
        _ => write(stream, 200, &["ETag: \"v1\"", "Cache-Control: max-age=0"], &format!("body {number}")),
    });
    let keel = keel(&origin, said());
    let mut client = keel.client();
    assert_eq!(get(&mut client, "/", &[]).1, "body 1");
    let (status, body, said) = get(&mut client, "/", &[]);
    assert_eq!((status, body.as_str()), (200, "body 1"));
    assert_eq!(said, "evenkeel; fwd=stale; fwd-status=304; ttl=0; stored");
    assert_eq!(get(&mut client, "/", &[]).1, "body 3");
    assert_eq!(origin.count(), 3);
}

#[test]
fn what_is_private_or_sets_a_cookie_is_for_one_alone() {
    for lines in [
        &["Cache-Control: private, max-age=100"][..],
        &["Cache-Control: no-store"],
        &["Set-Cookie: a=b", "Cache-Control: max-age=100"],
        &["Vary: *", "Cache-Control: max-age=100"],
        &["Vary: X-Forwarded-For", "Cache-Control: max-age=100"],
    ] {
        let lines: &'static [&'static str] = lines.to_vec().leak();
        let origin = Origin::with(lines);
        let keel = keel(&origin, CachePolicy::default());
        let mut client = keel.client();
        assert_eq!(get(&mut client, "/", &[]).1, "body 1");
        assert_eq!(get(&mut client, "/", &[]).1, "body 2", "{lines:?}");
    }
}

#[test]
fn variants_are_told_apart() {
    let origin = Origin::with(&["Vary: Accept-Language", "Cache-Control: max-age=100"]);
    let keel = keel(&origin, said());
    let mut client = keel.client();
    for _ in 0..2 {
        assert_eq!(get(&mut client, "/", &["Accept-Language: de"]).1, "body 1");
        assert_eq!(get(&mut client, "/", &["Accept-Language: en"]).1, "body 2");
    }
    assert_eq!(origin.count(), 2);
}

#[test]
fn a_change_makes_what_is_stored_invalid() {
    let origin = Origin::with(&["Cache-Control: max-age=100"]);
    let keel = keel(&origin, said());
    let mut client = keel.client();
    assert_eq!(get(&mut client, "/a", &[]).1, "body 1");
    let posted = client.ask("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 2\r\n\r\nhi");
    assert_eq!(posted.status, 200);
    assert_eq!(get(&mut client, "/a", &[]).1, "body 3");
}

#[test]
fn a_body_on_a_stored_url_goes_past_and_the_next_request_is_the_next_one() {
    let origin = Origin::with(&["Cache-Control: max-age=100"]);
    let keel = keel(&origin, said());
    let mut client = keel.client();
    assert_eq!(get(&mut client, "/a", &[]).1, "body 1");
    let inside = "GET /b HTTP/1.1\r\nHost: a.example\r\n\r\n";
    let length = inside.len();
    let with_body = client
        .ask(&format!("GET /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: {length}\r\n\r\n{inside}"));
    assert_eq!(with_body.text(), "body 2");
    assert_eq!(get(&mut client, "/a", &[]).1, "body 1");
    assert_eq!(origin.got().iter().map(|got| got.path.as_str()).collect::<Vec<_>>(), ["/a", "/a"]);
}

#[test]
fn a_backend_that_fails_is_stood_in_for() {
    let dead = Arc::new(AtomicBool::new(false));
    let is_dead = Arc::clone(&dead);
    let origin = Origin::scripted(move |_, number, stream| {
        if is_dead.load(Ordering::SeqCst) {
            return write(stream, 503, &[], "down");
        }
        write(stream, 200, &["Cache-Control: max-age=0, stale-if-error=60"], &format!("body {number}"));
    });
    let keel = keel(&origin, said());
    let mut client = keel.client();
    assert_eq!(get(&mut client, "/", &[]).1, "body 1");
    dead.store(true, Ordering::SeqCst);
    let (status, body, said) = get(&mut client, "/", &[]);
    assert_eq!((status, body.as_str()), (200, "body 1"));
    assert!(said.starts_with("evenkeel; fwd=stale; fwd-status=503; ttl="), "{said}");
    dead.store(false, Ordering::SeqCst);
    assert_eq!(get(&mut client, "/", &[]).1, "body 3");
}

#[test]
fn what_may_be_stale_is_sent_at_once_and_asked_for_once_meanwhile() {
    let origin = Origin::with(&["Cache-Control: max-age=0, stale-while-revalidate=60"]);
    let keel = keel(&origin, said());
    let mut client = keel.client();
    assert_eq!(get(&mut client, "/", &[]).1, "body 1");
    let (_, body, said) = get(&mut client, "/", &[]);
    assert_eq!(body, "body 1");
    assert!(said.starts_with("evenkeel; hit; ttl="), "{said}");
    eventually("it is asked for again", || origin.count() == 2);
}

#[test]
fn nothing_but_what_is_stored() {
    let origin = Origin::with(&["Cache-Control: max-age=100"]);
    let keel = keel(&origin, said());
    let mut client = keel.client();
    assert_eq!(get(&mut client, "/", &["Cache-Control: only-if-cached"]).0, 504);
    assert_eq!(get(&mut client, "/", &[]).1, "body 1");
    let stored = get(&mut client, "/", &["Cache-Control: only-if-cached"]);
    assert_eq!((stored.0, stored.1.as_str()), (200, "body 1"), "{}", stored.2);
    assert_eq!(origin.count(), 1);
}

#[test]
fn a_long_body_is_stored_as_it_comes() {
    let origin = Origin::scripted(|_, number, stream| {
        write(stream, 200, &["Cache-Control: max-age=100"], &format!("{number}").repeat(1_000_000));
    });
    let keel = keel(&origin, said());
    let mut client = keel.client();
    for _ in 0..3 {
        assert!(get(&mut client, "/", &[]).1 == "1".repeat(1_000_000));
    }
    assert_eq!(origin.count(), 1);
}

/// Reads answers to the same question on many connections.
fn crowd(keel: &super::support::Keel, count: usize) -> Vec<std::thread::JoinHandle<(u16, String, String)>> {
    let address = keel.address();
    let ask = move || {
        let mut client = super::support::Client::connect(address);
        get(&mut client, "/", &[])
    };
    (0..count).map(|_| std::thread::spawn(ask)).collect()
}

#[test]
fn many_who_want_the_same_are_one_request() {
    let go = Arc::new(std::sync::Barrier::new(2));
    let begin = Arc::clone(&go);
    let origin = Origin::scripted(move |_, number, stream| {
        begin.wait();
        write(stream, 200, &["Cache-Control: max-age=100"], &format!("{number}").repeat(3_000_000));
    });
    let keel = keel(&origin, said());
    let crowd = crowd(&keel, 60);
    eventually("the first one is asked for", || origin.count() == 1);
    go.wait();
    for client in crowd {
        let (status, body, _) = client.join().unwrap();
        assert!(status == 200 && body == "1".repeat(3_000_000));
    }
    assert_eq!(origin.count(), 1);
}

#[test]
fn a_backend_that_dies_before_its_head_is_asked_twice_at_most() {
    let go = Arc::new(std::sync::Barrier::new(2));
    let begin = Arc::clone(&go);
    let origin = Origin::scripted(move |_, number, stream| {
        if number == 1 {
            begin.wait();
            let _ = stream.shutdown(std::net::Shutdown::Both);
        } else {
            write(stream, 200, &["Cache-Control: max-age=100"], "good");
        }
    });
    let keel = super::cache_lab::keel_with(&origin, said(), |config| {
        config.targets[0].resilience.retries = None;
    });
    let crowd = crowd(&keel, 40);
    eventually("the first one is asked for", || origin.count() == 1);
    go.wait();
    let answers: Vec<_> = crowd.into_iter().map(|client| client.join().unwrap()).collect();
    assert!(answers.iter().filter(|(status, ..)| *status != 200).count() <= 1, "{answers:?}");
    assert_eq!(origin.count(), 2);
}

/// What is kept for the one who leads first, or for the one who leads on, is closed without an answer, as a connection is that was too old.
#[test]
fn a_backend_that_always_dies_before_its_head_is_asked_twice_also_on_kept_connections() {
    for is_kept_for_the_first in [true, false] {
        let go = Arc::new(std::sync::Barrier::new(2));
        let (begin, is_first) = (Arc::clone(&go), AtomicBool::new(true));
        let origin = Origin::scripted(move |got, _, stream| {
            if got.path == "/warm" {
                return write(stream, 200, &["Cache-Control: no-store"], "warm");
            }
            if is_first.swap(false, Ordering::Relaxed) {
                begin.wait();
            }
            let _ = stream.shutdown(std::net::Shutdown::Both);
        });
        let keel = super::cache_lab::keel_with(&origin, said(), |config| {
            config.workers = 1;
            config.targets[0].resilience.retries = None;
        });
        let asked = || origin.got().iter().filter(|got| got.path == "/").count();
        let mut other = keel.client();
        if is_kept_for_the_first {
            assert_eq!(get(&mut other, "/warm", &[]).1, "warm");
        }
        let mut crowd: Vec<_> = (0..20).map(|_| keel.client()).collect();
        for client in &mut crowd {
            client.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
        }
        eventually("the first one is asked for", || asked() == 1);
        // The only worker has read what came before this: all the others wait.
        assert_eq!(get(&mut other, "/warm", &[]).1, "warm");
        go.wait();
        for client in &mut crowd {
            assert_eq!(client.answer().status, 502);
        }
        assert_eq!(asked(), 2, "kept for the first one: {is_kept_for_the_first}");
    }
}

#[test]
fn a_body_that_breaks_off_is_cut_for_all_and_not_stored() {
    let go = Arc::new(std::sync::Barrier::new(2));
    let begin = Arc::clone(&go);
    let origin = Origin::scripted(move |_, number, stream| {
        if number > 1 {
            return write(stream, 200, &["Cache-Control: max-age=100"], "good");
        }
        use std::io::Write as _;
        let _ = stream.write_all(
            b"HTTP/1.1 200 OK\r\nCache-Control: max-age=100\r\nContent-Length: 1000000\r\n\r\nhalf",
        );
        begin.wait();
        let _ = stream.shutdown(std::net::Shutdown::Both);
    });
    let keel = keel(&origin, said());
    let mut readers: Vec<_> = (0..3).map(|_| keel.client()).collect();
    for client in &mut readers {
        client.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n").take_until("half");
    }
    assert_eq!(origin.count(), 1, "all read along");
    go.wait();
    for client in &mut readers {
        assert!(client.rest().is_empty());
    }
    assert_eq!(get(&mut keel.client(), "/", &[]).1, "good");
}

#[test]
fn who_leaves_in_the_middle_takes_nothing_from_those_who_stay() {
    let go = Arc::new(std::sync::Barrier::new(2));
    let begin = Arc::clone(&go);
    let origin = Origin::scripted(move |_, _, stream| {
        use std::io::Write as _;
        let _ = stream
            .write_all(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=100\r\nContent-Length: 8\r\n\r\nhalf");
        begin.wait();
        let _ = stream.write_all(b"more");
    });
    let keel = keel(&origin, said());
    let mut first = keel.client();
    first.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n").take_until("half");
    let mut second = keel.client();
    second.send("GET / HTTP/1.1\r\nHost: a.example\r\n\r\n").take_until("half");
    drop(first);
    go.wait();
    second.take_until("more");
    assert_eq!(get(&mut second, "/", &[]).1, "halfmore");
    assert_eq!(origin.count(), 1);
}
