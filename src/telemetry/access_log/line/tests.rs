//! Exact lines for whole records.

use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};

use super::*;
use crate::message::{BackendId, ListenerId, TargetId};

const MS: u64 = 1_000_000;
/// 2026-11-20T11:38:40.500Z.
const WALL: WallStart = WallStart(1_795_174_720_500_000_000);

fn names() -> Names {
    let mut names = Names::default();
    names.name_listener(ListenerId(0), "web");
    names.name_target(TargetId(0), "api");
    names.name_backend(BackendId(0), "127.0.0.1:8001");
    names.name_backend(BackendId(1), "b 2");
    names
}

const HEAD: Line<'static> = Line {
    method: b"GET",
    target: b"/a?b=c",
    host: b"example.com",
    user_agent: b"curl/8.5 (x)",
    referer: b"",
};

fn answered() -> Record {
    let mut record = Record {
        client: Some((IpAddr::V4(Ipv4Addr::new(192, 0, 2, 10)), 50_000)),
        target: Some(TargetId(0)),
        id: 0xfeed_0001,
        status: 200,
        accepted: Tick(MS),
        started: Tick(23 * MS),
        done: Tick(28 * MS + 1_999),
        bytes_in: 12,
        bytes_out: 3456,
        ..Record::default()
    };
    record.attempt(BackendId(0), Tick(24 * MS)).outcome = Cause::ConnectFailed;
    let attempt = record.attempt(BackendId(1), Tick(25 * MS));
    attempt.connected = Tick(25 * MS + 250_000);
    attempt.sent = Tick(26 * MS);
    attempt.first_byte = Tick(27 * MS + 7_000);
    record
}

fn told(format: LogFormat, record: &Record, line: &Line<'_>) -> String {
    let mut out = Vec::new();
    write(&mut out, format, record, line, &names(), (&mut Stamp::default(), WALL));
    String::from_utf8(out).expect("always UTF-8")
}

fn parsed(record: &Record, line: &Line<'_>) -> Value {
    let text = told(LogFormat::Json, record, line);
    assert_eq!(text.matches('\n').count(), 1, "{text}");
    serde_json::from_str(&text).expect("valid JSON")
}

#[test]
fn an_answered_request_in_both_forms() {
    assert_eq!(
        told(LogFormat::Text, &answered(), &HEAD),
        "2026-11-20T11:38:40.523Z 192.0.2.10:50000 web api b\\x202 \"GET /a?b=c\" 200 - host=example.com in=12 \
         out=3456 ms=5.001 connect=0.250 first_byte=1.007 attempts=2 reused=no kind=http \
         id=000000000000000000000000feed0001 agent=\"curl/8.5 (x)\" referer=\"-\"\n"
    );
    assert_eq!(
        told(LogFormat::Json, &answered(), &HEAD),
        "{\"time\":\"2026-11-20T11:38:40.523Z\",\"kind\":\"http\",\"client\":\"192.0.2.10:50000\",\
         \"listener\":\"web\",\"target\":\"api\",\"backend\":\"b 2\",\"method\":\"GET\",\"path\":\"/a?b=c\",\
         \"host\":\"example.com\",\"status\":200,\"cause\":null,\"bytes_in\":12,\"bytes_out\":3456,\
         \"duration_ms\":5.001,\"connect_ms\":0.250,\"first_byte_ms\":1.007,\"attempts\":2,\"reused\":false,\
         \"id\":\"000000000000000000000000feed0001\",\"user_agent\":\"curl/8.5 (x)\",\"referer\":null}\n"
    );
}

#[test]
fn a_tcp_connection_has_no_head_whatever_is_passed() {
    let mut record = Record {
        kind: Kind::Tcp,
        client: Some((IpAddr::V6(Ipv6Addr::LOCALHOST), 9)),
        target: Some(TargetId(3)),
        accepted: Tick(MS),
        done: Tick(3_601_001 * MS),
        cause: Cause::TunnelIdle,
        ..Record::default()
    };
    let attempt = record.attempt(BackendId(77), Tick(2 * MS));
    attempt.connected = Tick(2 * MS + 1);
    assert_eq!(
        told(LogFormat::Text, &record, &HEAD),
        "2026-11-20T11:38:40.501Z [::1]:9 web #3 #77 \"-\" - tunnel_idle host=- in=0 out=0 ms=3601000.000 \
         connect=0.000 first_byte=- attempts=1 reused=no kind=tcp id=- agent=\"-\" referer=\"-\"\n"
    );
    assert_eq!(
        parsed(&record, &HEAD),
        json!({
            "time": "2026-11-20T11:38:40.501Z", "kind": "tcp", "client": "[::1]:9", "listener": "web",
            "target": "#3", "backend": "#77", "method": null, "path": null, "host": null, "status": null,
            "cause": "tunnel_idle", "bytes_in": 0, "bytes_out": 0, "duration_ms": 3_601_000.0,
            "connect_ms": 0.0, "first_byte_ms": null, "attempts": 1, "reused": false, "id": null,
            "user_agent": null, "referer": null,
        })
    );
}

#[test]
fn a_refused_head_on_a_unix_socket_has_almost_nothing() {
    let record = Record { status: 400, cause: Cause::BadHead, accepted: Tick(MS), ..Record::default() };
    assert_eq!(
        told(LogFormat::Text, &record, &Line::default()),
        "2026-11-20T11:38:40.501Z - web - - \"-\" 400 bad_head host=- in=0 out=0 ms=- connect=- first_byte=- \
         attempts=0 reused=- kind=http id=- agent=\"-\" referer=\"-\"\n"
    );
    let value = parsed(&record, &Line::default());
    assert_eq!(
        (&value["client"], &value["backend"], &value["reused"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert_eq!(
        (&value["cause"], &value["status"], &value["duration_ms"]),
        (&json!("bad_head"), &json!(400), &Value::Null)
    );
}

#[test]
fn an_upgrade_on_a_pooled_connection_says_so() {
    let mut record = answered();
    record.kind = Kind::Upgrade;
    record.status = 101;
    record.client = Some((IpAddr::V6(Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped()), 1));
    record.last_attempt().expect("made").reused = true;
    let text = told(LogFormat::Text, &record, &HEAD);
    assert!(text.contains(" 10.0.0.1:1 web "), "{text}");
    assert!(
        text.contains(" 101 - ")
            && text.contains(" connect=- ")
            && text.contains(" reused=yes kind=upgrade "),
        "{text}"
    );
    let value = parsed(&record, &HEAD);
    assert_eq!(
        (&value["reused"], &value["connect_ms"], &value["kind"]),
        (&json!(true), &Value::Null, &json!("upgrade"))
    );
}

#[test]
fn hostile_bytes_forge_neither_line_nor_field() {
    let hostile = Line {
        method: b"GET",
        target: b"/\" 200 - host=good\r\n\x1b]0;x\x07\xff",
        host: b"a b\"",
        user_agent: "é\u{202e}\n{\"status\":200}".as_bytes(),
        referer: b"\\\"",
    };
    let text = told(LogFormat::Text, &answered(), &hostile);
    let forged = r#""GET /\x22\x20200\x20-\x20host=good\x0d\x0a\x1b]0;x\x07\xff" 200 - host=a\x20b\x22 in="#;
    assert!(text.contains(forged), "{text}");
    assert!(
        text.ends_with(
            "agent=\"\\xc3\\xa9\\xe2\\x80\\xae\\x0a{\\x22status\\x22:200}\" referer=\"\\x5c\\x22\"\n"
        ),
        "{text}"
    );
    assert_eq!(text.matches('\n').count(), 1);
    let value = parsed(&answered(), &hostile);
    assert_eq!(value["path"], "/\" 200 - host=good\r\n\u{1b}]0;x\u{7}\u{fffd}");
    assert_eq!(value["user_agent"], "é\u{202e}\n{\"status\":200}");
    assert_eq!((&value["status"], &value["referer"]), (&json!(200), &json!("\\\"")));
}
