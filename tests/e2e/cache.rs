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
    assert_eq!(get(&mut client, "/", &["Cache-Control: only-if-cached"]).1, "body 1");
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
