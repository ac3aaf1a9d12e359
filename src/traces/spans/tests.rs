use super::*;
use crate::message::{BackendId, CacheNote, WhyNot};
use crate::telemetry::recorder::KeptFor;

const MS: u64 = 1_000_000;

/// A request on a route whose clients are asked for elsewhere, with a cache, and a new connection with TLS to its backend.
fn kept() -> KeptRequest {
    let mut record = Record {
        accepted: Tick(MS),
        started: Tick(10 * MS),
        head_read: Tick(11 * MS),
        asked: Tick(11 * MS),
        told: Tick(15 * MS),
        routed: Tick(15 * MS),
        done: Tick(60 * MS),
        status: 200,
        cache: Some(CacheNote::Uncacheable(WhyNot::Private)),
        id: 7,
        ..Record::default()
    };
    let attempt = record.attempt(BackendId(0), Tick(20 * MS));
    (attempt.stood, attempt.connected, attempt.sent) = (Tick(22 * MS), Tick(30 * MS), Tick(31 * MS));
    (attempt.first_byte, attempt.end) = (Tick(50 * MS), Tick(60 * MS));
    KeptRequest {
        record,
        backends: vec!["b0".into()],
        trace: Some(TraceContext { trace: 7, parent: 0, span: 9, flags: 1 }),
        method: b"GET".to_vec(),
        host: b"shop.example".to_vec(),
        path: b"/a?b=*".to_vec(),
        route: "shop".into(),
        ..KeptRequest::default()
    }
}

/// Name, when it began and how long it took, in milliseconds of the request.
fn told(kept: &KeptRequest) -> Vec<String> {
    let all = spans(kept, 1_000 * MS);
    let each = all.iter().map(|span| {
        let (from, to) = (span.start_time_unix_nano / MS - 1_000, span.end_time_unix_nano / MS - 1_000);
        format!("{} {from} {}", span.name, to - from)
    });
    each.collect()
}

#[test]
fn each_part_of_a_request_has_its_time() {
    assert_eq!(
        told(&kept()),
        [
            "GET shop 10 50",
            "forward auth 11 4",
            "cache 15 5",
            "attempt 20 40",
            "connect 20 2",
            "tls 22 8",
            "first byte 31 19"
        ]
    );
}

#[test]
fn what_never_came_ends_with_the_request_and_nothing_is_outside_of_it() {
    let mut kept = kept();
    let record = &mut kept.record;
    (record.told, record.cache, record.waited) = (Tick::ZERO, None, Tick(16 * MS));
    record.attempts[0] = Attempt { end: Tick(99 * MS), connected: Tick::ZERO, ..record.attempts[0] };
    (record.attempts[0].sent, record.attempts[0].outcome) = (Tick::ZERO, Cause::UpstreamTlsTimeout);
    (record.cause, record.status, kept.method) = (Cause::UpstreamTlsTimeout, 504, b"BREW".to_vec());
    let expected =
        ["HTTP 10 50", "forward auth 11 49", "queue 16 4", "attempt 20 40", "connect 20 2", "tls 22 38"];
    assert_eq!(told(&kept), expected);
    let all = spans(&kept, 0);
    let errors: Vec<&str> =
        all.iter().filter(|span| span.status.is_some()).map(|span| span.name.as_str()).collect();
    assert_eq!(errors, ["HTTP", "attempt"]);
    let no_trace = KeptRequest { trace: None, ..kept };
    assert!(spans(&no_trace, 0).is_empty());
}

#[test]
fn a_client_that_is_refused_is_no_error_of_ours() {
    let mut kept = KeptRequest { kept_for: KeptFor::Sampled, ..kept() };
    let is_error = |kept: &KeptRequest| spans(kept, 0)[0].status.is_some();
    for (cause, status, error) in [
        (Cause::Done, 200, false),
        (Cause::Done, 404, false),
        (Cause::Done, 500, true),
        (Cause::RateLimited, 429, false),
        (Cause::ClientGone, 0, false),
        (Cause::QueueFull, 503, true),
    ] {
        (kept.record.cause, kept.record.status) = (cause, status);
        assert_eq!(is_error(&kept), error, "{cause}");
    }
}

#[test]
fn an_address_is_told_without_its_port() {
    for (authority, address, port) in [
        ("shop.example", "shop.example", None),
        ("shop.example:8443", "shop.example", Some(8443)),
        ("[2001:db8::1]:80", "2001:db8::1", Some(80)),
        ("[2001:db8::1]", "2001:db8::1", None),
        ("shop.example:", "shop.example", None),
        ("", "", None),
    ] {
        assert_eq!(place_of(authority), (address, port), "{authority}");
    }
}
