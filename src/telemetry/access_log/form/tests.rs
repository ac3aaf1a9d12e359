//! Exact lines for whole records.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use serde_json::{Value, json};

use super::*;
use crate::config::model::GrpcStatus;
use crate::config::model::template::LogField;
use crate::message::proxy_header::{ProxyHeader, ToldLines};
use crate::telemetry::access_log::{RouteName, SeldomSaid};

use crate::message::{
    BackendId, CacheNote, Cause, ClientAddress, Head, HeadLine, HeaderField, ListenerId, Record, RecordKind,
    Span, TargetId, TlsSession, Version, WhyNot,
};
use crate::telemetry::access_log::batch::text_of;
use crate::telemetry::access_log::{Names, Stamps, WallStart};
use crate::tick::Tick;

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

/// A head whose bytes nobody has checked.
fn head(method: &[u8], path: &[u8], host: &[u8], fields: &[(&str, &[u8])]) -> Head {
    let mut bytes = Vec::new();
    let mut add = |part: &[u8], end: &[u8]| {
        let start = bytes.len();
        bytes.extend_from_slice(part);
        let span = Span::new(start, bytes.len());
        bytes.extend_from_slice(end);
        span
    };
    let (method, path, host) = (add(method, b" "), add(path, b"\r\n"), add(host, b"\r\n"));
    let mut line = |(name, value): &(&str, &[u8])| {
        let (field, name, value) =
            (HeaderField::classify(name.as_bytes()), add(name.as_bytes(), b": "), add(value, b"\r\n"));
        HeadLine::new(field, name, value, value.end as usize + 2)
    };
    let lines: Vec<HeadLine> = fields.iter().map(&mut line).collect();
    let mut head = Head::new();
    head.load(&bytes);
    head.set_request_line(method, path, path, host);
    lines.into_iter().for_each(|line| head.index(line));
    head
}

fn usual() -> Head {
    head(b"GET", b"/a?b=c", b"example.com", &[("User-Agent", b"curl/8.5 (x)"), ("X-One", b"1 2")])
}

fn answered() -> Record {
    let mut record = Record {
        client: Some(ClientAddress::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 10)), 50_000)),
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

fn written(form: &Form, record: &Record, head: Option<&Head>) -> String {
    written_on(form, record, head, None)
}

fn written_on(form: &Form, record: &Record, head: Option<&Head>, route: Option<&str>) -> String {
    let names = names();
    let share = form.share_of(record).expect("it is logged");
    let route = route.map(RouteName::new);
    let facts = Facts::new(record, head, &names, share).on(route.as_ref());
    text_of(|room| form.write(room, &facts, &mut (&mut Stamps::default(), WALL)))
}

fn told(format: &LogFormat, record: &Record, head: Option<&Head>) -> String {
    written(&Form::new(format, Share::ALL), record, head)
}

fn filled(template: &str, record: &Record, head: Option<&Head>) -> String {
    told(&LogFormat::Template(Template::parse(template).expect("a template")), record, head)
}

fn parsed(record: &Record, head: Option<&Head>) -> Value {
    let text = told(&LogFormat::Json, record, head);
    assert_eq!(text.matches('\n').count(), 1, "{text}");
    serde_json::from_str(&text).expect("valid JSON")
}

#[test]
fn an_answered_request_in_both_forms() {
    assert_eq!(
        told(&LogFormat::Text, &answered(), Some(&usual())),
        "2026-11-20T11:38:40.523Z 192.0.2.10:50000 web api b\\x202 \"GET /a?b=c\" 200 - host=example.com in=12 \
         out=3456 ms=5.001 connect=0.250 first_byte=1.007 attempts=2 earlier_causes=connect_failed \
         reused=no kind=http tls=- id=000000000000000000000000feed0001 agent=\"curl/8.5 (x)\" referer=\"-\"\n"
    );
    assert_eq!(
        told(&LogFormat::Json, &answered(), Some(&usual())),
        "{\"time\":\"2026-11-20T11:38:40.523Z\",\"kind\":\"http\",\"client\":\"192.0.2.10:50000\",\
         \"listener\":\"web\",\"target\":\"api\",\"backend\":\"b 2\",\"method\":\"GET\",\"path\":\"/a?b=c\",\
         \"host\":\"example.com\",\"status\":200,\"cause\":null,\"bytes_in\":12,\"bytes_out\":3456,\
         \"duration_ms\":5.001,\"connect_ms\":0.250,\"first_byte_ms\":1.007,\"attempts\":2,\"earlier_causes\":[\"connect_failed\"],\"reused\":false,\
         \"tls\":null,\"tls_resumed\":null,\"tls_ms\":null,\"id\":\"000000000000000000000000feed0001\",\"user_agent\":\"curl/8.5 (x)\",\"referer\":null}\n"
    );
}

#[test]
fn json_has_every_field_in_the_order_of_the_documentation() {
    let form = Form::new(&LogFormat::Json, Share::from_millionths(1).expect("in range"));
    let cache = Some(CacheNote::Uncacheable(WhyNot::Private));
    let grpc = Some(GrpcStatus::Unavailable);
    let record = Record { status: 503, cache, grpc, tracing: Tracing::Unsampled, ..answered() };
    let (route, names) = (RouteName::new("shop.example/a b"), names());
    let share = form.share_of(&record).expect("it is logged");
    let told =
        ProxyHeader { told: ToldLines::new(b"\x01\0\x02h2").expect("a whole one"), ..ProxyHeader::default() };
    let said = SeldomSaid {
        user: Some("anna b".into()),
        told: Some(Rc::new(told)),
        sni: Some("mail.example".into()),
    };
    let facts = Facts::new(&record, None, &names, share).on(Some(&route)).with(Some(&said));
    let text = text_of(|room| form.write(room, &facts, &mut (&mut Stamps::default(), WALL)));
    assert!(
        text.contains(",\"user\":\"anna b\",\"tls_sni\":\"mail.example\",\"proxy_alpn\":\"h2\","),
        "{text}"
    );
    let keys = LogField::ALL.iter().map(|field| format!("\"{}\":", field.name()));
    let places: Vec<Option<usize>> = keys.map(|key| text.find(&key)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} in {text}");
}

#[test]
fn a_request_of_a_route_with_a_cache_says_what_that_has_done() {
    let ending = |cache| {
        let text = told(&LogFormat::Text, &Record { cache: Some(cache), ..answered() }, None);
        text.rsplit_once(" referer=\"-\"").expect("it is there").1.to_owned()
    };
    assert_eq!(ending(CacheNote::Hit), " route=- cache=hit cache_reason=-\n");
    assert_eq!(
        ending(CacheNote::Uncacheable(WhyNot::Private)),
        " route=- cache=uncacheable cache_reason=private\n"
    );
}

#[test]
fn a_request_that_may_be_traced_says_in_which_trace_it_is() {
    let record = Record { tracing: Tracing::Unsampled, ..answered() };
    let own = "000000000000000000000000feed0001";
    let told =
        |head: &Head| [LogFormat::Text, LogFormat::Json].map(|format| told(&format, &record, Some(head)));
    let mut head = usual();
    let [text, json] = told(&head);
    assert!(text.ends_with(&format!(" referer=\"-\" trace_id={own}\n")), "{text}");
    assert!(json.ends_with(&format!(",\"referer\":null,\"trace_id\":\"{own}\"}}\n")), "{json}");
    head.push(b"traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00");
    let [text, json] = told(&head);
    assert!(text.ends_with(" trace_id=0af7651916cd43dd8448eb211c80319c\n"), "{text}");
    assert!(json.ends_with(",\"trace_id\":\"0af7651916cd43dd8448eb211c80319c\"}\n"), "{json}");
}

#[test]
fn a_request_of_one_of_several_routes_says_which() {
    let on = |format: &LogFormat, route| {
        written_on(&Form::new(format, Share::ALL), &answered(), Some(&usual()), route)
    };
    let route = Some("shop.example/a b");
    assert!(on(&LogFormat::Text, route).ends_with(" referer=\"-\" route=shop.example/a\\x20b\n"));
    assert!(on(&LogFormat::Json, route).ends_with(",\"referer\":null,\"route\":\"shop.example/a b\"}\n"));
    let template = LogFormat::Template(Template::parse("{route}").expect("a template"));
    assert_eq!([on(&template, route), on(&template, None)], ["shop.example/a\\x20b\n", "-\n"]);
}

#[test]
fn a_request_over_tls_says_which_and_how_long_it_took_to_agree() {
    let tls = Some(TlsSession { is_tls13: true, resumed: true });
    let record = Record { tls, accepted: Tick(MS), secured: Tick(3 * MS), ..answered() };
    assert_eq!(filled("{tls} {tls_resumed} {tls_ms}", &record, None), "1.3 yes 2.000\n");
    let parsed = parsed(&record, None);
    assert_eq!(
        [&parsed["tls"], &parsed["tls_resumed"], &parsed["tls_ms"]],
        [&json!("1.3"), &json!(true), &json!(2.0)]
    );
}

#[test]
fn a_tcp_connection_has_no_head_whatever_is_passed() {
    let mut record = Record {
        kind: RecordKind::Tcp,
        client: Some(ClientAddress::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 9)),
        target: Some(TargetId(3)),
        accepted: Tick(MS),
        done: Tick(3_601_001 * MS),
        cause: Cause::TunnelIdle,
        ..Record::default()
    };
    let attempt = record.attempt(BackendId(77), Tick(2 * MS));
    attempt.connected = Tick(2 * MS + 1);
    assert_eq!(
        told(&LogFormat::Text, &record, Some(&usual())),
        "2026-11-20T11:38:40.501Z [::1]:9 web #3 #77 tcp tunnel_idle in=0 out=0 ms=3601000.000 connect=0.000 \
         attempts=1 earlier_causes=- tls=-\n"
    );
    // Of one that was routed by the name it has asked for.
    let (route, names) = (RouteName::new("mail;passthrough"), names());
    let said = SeldomSaid { sni: Some("mail.example".into()), ..SeldomSaid::default() };
    let facts = Facts::new(&record, None, &names, Share::ALL).on(Some(&route)).with(Some(&said));
    let form = Form::new(&LogFormat::Text, Share::ALL);
    let text = text_of(|room| form.write(room, &facts, &mut (&mut Stamps::default(), WALL)));
    assert!(text.ends_with(" tls=- tls_sni=mail.example route=mail;passthrough\n"), "{text}");
    assert_eq!(
        parsed(&record, Some(&usual())),
        json!({
            "time": "2026-11-20T11:38:40.501Z", "kind": "tcp", "client": "[::1]:9", "listener": "web",
            "target": "#3", "backend": "#77", "method": null, "path": null, "host": null, "status": null,
            "cause": "tunnel_idle", "bytes_in": 0, "bytes_out": 0, "duration_ms": 3_601_000.0,
            "connect_ms": 0.0, "first_byte_ms": null, "attempts": 1, "earlier_causes": null, "reused": false, "tls": null,
            "tls_resumed": null, "tls_ms": null, "id": null, "user_agent": null, "referer": null,
        })
    );
}

#[test]
fn a_refused_head_on_a_unix_socket_has_almost_nothing() {
    let record = Record { status: 400, cause: Cause::BadHead, accepted: Tick(MS), ..Record::default() };
    assert_eq!(
        told(&LogFormat::Text, &record, None),
        "2026-11-20T11:38:40.501Z - web - - \"-\" 400 bad_head host=- in=0 out=0 ms=- connect=- first_byte=- \
         attempts=0 earlier_causes=- reused=- kind=http tls=- id=- agent=\"-\" referer=\"-\"\n"
    );
    let value = parsed(&record, None);
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
    record.kind = RecordKind::Upgrade;
    record.status = 101;
    record.client = Some(ClientAddress::new(IpAddr::V6(Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped()), 1));
    record.last_attempt().expect("made").reused = true;
    let text = told(&LogFormat::Text, &record, Some(&usual()));
    assert!(text.contains(" 10.0.0.1:1 web "), "{text}");
    assert!(
        text.contains(" 101 - ")
            && text.contains(" connect=- ")
            && text.contains(" reused=yes kind=upgrade "),
        "{text}"
    );
    let value = parsed(&record, Some(&usual()));
    assert_eq!(
        (&value["reused"], &value["connect_ms"], &value["kind"]),
        (&json!(true), &Value::Null, &json!("upgrade"))
    );
}

#[test]
fn hostile_bytes_forge_neither_line_nor_field() {
    let hostile = head(
        b"GET",
        b"/\" 200 - host=good\r\n\x1b]0;x\x07\xff",
        b"a b\"",
        &[("User-Agent", "é\u{202e}\n{\"status\":200}".as_bytes()), ("Referer", b"\\\"")],
    );
    let text = told(&LogFormat::Text, &answered(), Some(&hostile));
    let forged = r#""GET /\x22\x20200\x20-\x20host=good\x0d\x0a\x1b]0;x\x07\xff" 200 - host=a\x20b\x22 in="#;
    assert!(text.contains(forged), "{text}");
    assert!(
        text.ends_with(
            "agent=\"\\xc3\\xa9\\xe2\\x80\\xae\\x0a{\\x22status\\x22:200}\" referer=\"\\x5c\\x22\"\n"
        ),
        "{text}"
    );
    assert_eq!(text.matches('\n').count(), 1);
    let value = parsed(&answered(), Some(&hostile));
    assert_eq!(value["path"], "/\" 200 - host=good\r\n\u{1b}]0;x\u{7}\u{fffd}");
    assert_eq!(value["user_agent"], "é\u{202e}\n{\"status\":200}");
    assert_eq!((&value["status"], &value["referer"]), (&json!(200), &json!("\\\"")));
}

#[test]
fn common_and_combined_are_those_of_apache_and_nginx() {
    let common = "192.0.2.10 - - [20/Nov/2026:11:38:40 +0000] \"GET /a?b=c HTTP/1.1\" 200 3456";
    assert_eq!(told(&LogFormat::Common, &answered(), Some(&usual())), format!("{common}\n"));
    assert_eq!(
        told(&LogFormat::Combined, &answered(), Some(&usual())),
        format!("{common} \"-\" \"curl/8.5 (x)\"\n")
    );
    let mut old = usual();
    old.version = Version::Http10;
    let v6 = Record {
        client: Some(ClientAddress::new(IpAddr::V6(Ipv6Addr::LOCALHOST), 9)),
        bytes_out: 0,
        ..answered()
    };
    assert_eq!(
        told(&LogFormat::Common, &v6, Some(&old)),
        "::1 - - [20/Nov/2026:11:38:40 +0000] \"GET /a?b=c HTTP/1.0\" 200 0\n"
    );
}

#[test]
fn common_has_a_status_where_nobody_got_one() {
    let code = |record: Record| told(&LogFormat::Common, &record, None);
    let gone = Record { cause: Cause::ClientGone, accepted: Tick(MS), ..Record::default() };
    assert_eq!(code(gone), "- - - [20/Nov/2026:11:38:40 +0000] \"-\" 499 0\n");
    let tcp = Record { kind: RecordKind::Tcp, accepted: Tick(MS), bytes_out: 7, ..Record::default() };
    assert_eq!(code(tcp), "- - - [20/Nov/2026:11:38:40 +0000] \"-\" 200 7\n");
    let failed = Record { cause: Cause::ConnectFailed, ..tcp };
    assert!(code(failed).ends_with("\"-\" 503 7\n"));
}

#[test]
fn a_template_takes_every_field_there_is() {
    let all: String = LogField::ALL.iter().map(|field| format!("{}={{{0}}} ", field.name())).collect();
    let line = filled(&all, &answered(), Some(&usual()));
    let json = parsed(&answered(), Some(&usual()));
    for field in LogField::ALL {
        let shown = match json.get(field.name()) {
            _ if *field == LogField::SampleRate => "1".to_owned(),
            _ if matches!(
                field,
                LogField::Route
                    | LogField::User
                    | LogField::TlsSni
                    | LogField::Cache
                    | LogField::CacheReason
                    | LogField::GrpcStatus
                    | LogField::TraceId
                    | LogField::ProxyAlpn
                    | LogField::ProxyAuthority
                    | LogField::ProxyUniqueId
                    | LogField::ProxyTls
                    | LogField::ProxyClientCn
            ) =>
            {
                "-".to_owned()
            }
            Some(Value::Null) => "-".to_owned(),
            Some(Value::String(text)) => text.replace(' ', "\\x20"),
            Some(Value::Array(causes)) => {
                causes.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
            }
            Some(Value::Bool(flag)) => if *flag { "yes" } else { "no" }.to_owned(),
            Some(Value::Number(number)) if field.name().ends_with("_ms") => {
                format!("{:.3}", number.as_f64().expect("a number"))
            }
            other => other.expect("in JSON too").to_string(),
        };
        assert!(line.contains(&format!("{}={shown} ", field.name())), "{}={shown} in {line}", field.name());
    }
    assert_eq!(
        filled(
            "{client_ip};{client_port};{code};\"{method_path}\";{header.x-ONE};{header.none}",
            &answered(),
            Some(&usual())
        ),
        "192.0.2.10;50000;200;\"GET /a?b=c\";1\\x202;-\n"
    );
    assert_eq!(filled("{{{status}}}\té", &answered(), None), "{200}\té\n");
    assert_eq!(
        filled("{request}|\"{header.x-one}\"", &answered(), Some(&usual())),
        "GET\\x20/a?b=c\\x20HTTP/1.1|\"1 2\"\n"
    );
}

#[test]
fn a_template_tells_why_each_earlier_attempt_has_failed() {
    let mut record = Record::default();
    for (outcomes, expected) in [
        (&[][..], "-\n"),
        (&[Cause::Done], "-\n"),
        (&[Cause::ConnectFailed, Cause::Done], "connect_failed\n"),
        (&[Cause::ErrorStatus, Cause::BackendClosed, Cause::BackendClosed], "error_status,backend_closed\n"),
    ] {
        record.clear();
        for &outcome in outcomes {
            record.attempt(BackendId(0), Tick(1)).outcome = outcome;
        }
        assert_eq!(filled("{earlier_causes}", &record, None), expected);
    }
}

#[test]
fn no_header_forges_a_field_of_a_template_or_a_line() {
    let hostile =
        head(b"GET", b"/|x", b"h", &[("X-One", b"a|b \"c\" 200\n{status}\\"), ("X-One", b"second")]);
    assert_eq!(
        filled("{header.x-one}|{status}|{path}|{host}", &answered(), Some(&hostile)),
        "a\\x7cb\\x20\\x22c\\x22\\x20200\\x0a{status}\\x5c|200|/\\x7cx|h\n"
    );
    assert_eq!(
        filled("\"{header.x-one}\" {status}", &answered(), Some(&hostile)),
        "\"a|b \\x22c\\x22 200\\x0a{status}\\x5c\" 200\n"
    );
    let combined = told(&LogFormat::Combined, &answered(), Some(&hostile));
    assert_eq!((combined.matches('\n').count(), combined.matches('"').count()), (1, 6));
}

#[test]
fn sampled_lines_say_for_how_many_they_stand() {
    let share = Share::from_millionths(2_500).expect("in range");
    let taken = (1..).map(|id| Record { id, ..answered() });
    let form = |format| Form::new(&format, share);
    let json_form = form(LogFormat::Json);
    let taken = taken.into_iter().find(|record| json_form.share_of(record).is_some()).expect("one in 400");
    let broken = Record { cause: Cause::AnswerCut, ..answered() };
    let rate = |record: &Record| {
        let value: Value = serde_json::from_str(&written(&json_form, record, None)).expect("JSON");
        value["sample_rate"].clone()
    };
    assert_eq!((rate(&taken), rate(&broken)), (json!(0.0025), json!(1)));
    assert!(written(&form(LogFormat::Text), &taken, None).ends_with(" referer=\"-\" sample=0.0025\n"));
    assert!(written(&form(LogFormat::Text), &broken, None).ends_with(" sample=1\n"));
    assert!(written(&form(LogFormat::Common), &taken, None).ends_with(" 200 3456\n"));
}
