use proptest::prelude::*;

use super::*;
use crate::message::{BackendId, ListenerId, TargetId};
use crate::telemetry::access_log::Names;
use crate::telemetry::recorder::ring::ENTRY_MAX;

fn names() -> Names {
    let mut names = Names::default();
    names.name_listener(ListenerId(3), "public");
    names.name_target(TargetId(2), "web");
    names.name_backend(BackendId(7), "b7");
    names
}

fn record() -> Record {
    let mut record = Record {
        kind: RecordKind::Http,
        client: Some(ClientAddress::new([192, 0, 2, 7].into(), 4711)),
        listener: ListenerId(3),
        target: Some(TargetId(2)),
        id: u128::MAX - 5,
        status: 503,
        cause: Cause::ConnectFailed,
        cache: Some(CacheNote::Uncacheable(WhyNot::NoRoom)),
        grpc: Some(GrpcStatus::DataLoss),
        accepted: Tick(5_000_000_000),
        secured: Tick(5_000_400_000),
        tls: Some(TlsSession { is_tls13: true, resumed: true }),
        started: Tick(5_000_500_000),
        head_read: Tick(5_000_500_000),
        routed: Tick(5_000_500_000),
        asked: Tick(5_000_510_000),
        told: Tick(5_000_520_000),
        waited: Tick(5_000_600_000),
        done: Tick(6_000_000_000),
        bytes_in: 12,
        bytes_out: 1 << 40,
        ..Record::default()
    };
    for number in 0..6 {
        let attempt = record.attempt(BackendId(7), Tick(5_000_700_000 + number));
        attempt.outcome = Cause::ConnectFailed;
        attempt.pick = PickNote::new(300, number % 2 == 0);
        attempt.resent = number == 1;
        (attempt.stood, attempt.end) = (Tick(5_000_800_000), Tick(5_900_000_000));
    }
    record
}

const TRACE: TraceContext = TraceContext { trace: u128::MAX - 9, parent: 5, span: u64::MAX - 7, flags: 3 };

fn encoded(record: &Record, head: Option<&Head>, shows: &[&str]) -> Vec<u8> {
    let shows: Vec<Box<str>> = shows.iter().map(|name| (*name).into()).collect();
    let (names, route) = (names(), RouteName::new("shop"));
    let subject = KeptSubject { head, route: Some(&route), names: &names, config: 9, trace: Some(TRACE) };
    let mut bytes = Vec::new();
    encode((record, KeptFor::Failed), &subject, &shows, &mut bytes);
    bytes
}

#[test]
fn what_is_kept_comes_back() {
    let mut head = Head::request("GET", "/a?b=secret", "shop.example");
    head.push(b"User-Agent", b"curl");
    head.push(b"user-agent", b"again");
    head.push(b"Authorization", b"Basic c2VjcmV0");
    let bytes = encoded(&record(), Some(&head), &["User-Agent", "X-None"]);
    let kept = decode(&bytes).unwrap();
    let mut expected = record();
    (expected.listener, expected.target) = (ListenerId(0), None);
    expected.attempts.iter_mut().for_each(|attempt| attempt.backend = BackendId(0));
    assert_eq!(kept.record, expected);
    assert_eq!((kept.kept_for, kept.config, kept.backends.len()), (KeptFor::Failed, 9, 4));
    assert_eq!(kept.trace, Some(TRACE));
    assert_eq!(
        [&*kept.listener, &kept.target, &kept.route, &kept.backends[3]],
        ["public", "web", "shop", "b7"]
    );
    assert_eq!(
        (&*kept.method, &*kept.host, &*kept.path),
        (&b"GET"[..], &b"shop.example"[..], &b"/a?b=*"[..])
    );
    let line = |value: &[u8]| ("User-Agent".to_owned(), value.to_vec());
    assert_eq!(kept.headers, [line(b"curl"), line(b"again")]);
    assert!(!bytes.windows(6).any(|window| window == b"secret" || window == b"c2VjcmV0"));
    assert!(bytes.len() < 320, "{}", bytes.len());
}

#[test]
fn a_record_without_a_head_has_none_and_one_without_anything_is_kept_too() {
    let kept = decode(&encoded(&Record::default(), None, &["User-Agent"])).unwrap();
    assert_eq!((kept.record, &*kept.method, &*kept.target), (Record::default(), &b""[..], ""));
    let v6 = Record { client: Some(ClientAddress::new([7; 16].into(), 1)), ..Record::default() };
    assert_eq!(decode(&encoded(&v6, None, &[])).unwrap().record, v6);
}

#[test]
fn the_longest_entry_is_shorter_than_what_a_ring_takes() {
    let mut head = Head::request(&"G".repeat(3000), &format!("/{}", "a".repeat(9000)), &"h".repeat(3000));
    let shows: Vec<String> = (0..16).map(|number| format!("X-{}{number}", "n".repeat(900))).collect();
    for name in &shows {
        (0..9).for_each(|_| head.push(name.as_bytes(), &[b'v'; 900]));
    }
    let mut record = record();
    record.attempts.iter_mut().for_each(|attempt| attempt.end = Tick(1));
    let shows: Vec<&str> = shows.iter().map(String::as_str).collect();
    let bytes = encoded(&record, Some(&head), &shows);
    assert!((ENTRY_MAX / 2..=ENTRY_MAX).contains(&bytes.len()), "{}", bytes.len());
    let kept = decode(&bytes).unwrap();
    assert_eq!((kept.path.len(), kept.path.ends_with(DOTS)), (PATH_MAX, true));
    assert!(kept.headers.len() > 1);
}

proptest! {
    #[test]
    fn bytes_that_are_no_entry_are_none_and_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), cut in 0..300usize) {
        drop(decode(&bytes));
        let whole = encoded(&record(), Some(&Head::request("GET", "/", "a")), &[]);
        drop(decode(&whole[..cut.min(whole.len())]));
    }
}
