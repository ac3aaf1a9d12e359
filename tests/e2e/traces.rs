//! Traces: what a collector gets of requests, and what backends are told of them.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use evenkeel::net::now;
use fake_backend::{Authority, Behaviour, Fake, Running, TlsOptions};
use flate2::read::GzDecoder;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Span};
use prost::Message as _;

use super::metrics::scrape;
use super::support::process::Process;
use super::support::{Client, Keel, eventually, load};

/// A config with a target of these backends, `tracing` with these keys, and `keys` in the target.
fn of(collector: &Running, tracing: &str, backends: &[&Running], keys: &str) -> String {
    let line = |(number, backend): (usize, &&Running)| {
        format!("      - {{name: b{number}, host: 127.0.0.1, port: {}}}\n", backend.port())
    };
    let each: String = backends.iter().enumerate().map(line).collect();
    format!(
        "workers: 1\ntracing: {{otlp: '{}'{tracing}}}\ntargets:\n  web:\n    protocol: http\n    listener: 127.0.0.1:0\n    health_check: off\n{keys}    backends:\n{each}",
        collector.url()
    )
}

/// What takes spans.
fn collector() -> Running {
    Fake::http("collector").record().start_in_thread().unwrap()
}

/// What was sent to a collector.
fn sent(collector: &Running) -> Vec<ResourceSpans> {
    let whole = collector.last_requests().into_iter().filter(|request| request.complete);
    let each = whole.flat_map(|request| {
        assert!(request.head_text().starts_with("POST /v1/traces HTTP/1.1\r\n"), "{}", request.head_text());
        assert_eq!(request.header("Content-Type"), ["application/x-protobuf"]);
        assert_eq!(request.header("Content-Encoding"), ["gzip"]);
        let mut body = Vec::new();
        GzDecoder::new(&request.body[..]).read_to_end(&mut body).unwrap();
        ExportTraceServiceRequest::decode(&body[..]).unwrap().resource_spans
    });
    each.collect()
}

/// All spans that were sent to a collector, once there are so many requests among them.
fn spans(collector: &Running, requests: usize) -> Vec<Span> {
    let mut all = Vec::new();
    eventually("the spans have come", || {
        let each = sent(collector).into_iter().flat_map(|resource| resource.scope_spans);
        all = each.flat_map(|scope| scope.spans).collect();
        all.iter().filter(|span: &&Span| span.kind == 2).count() >= requests
    });
    all
}

/// An attribute of a span as text; empty: it has none of that name.
fn attribute(span: &Span, key: &str) -> String {
    let found = span.attributes.iter().find(|one| one.key == key);
    match found.and_then(|one| one.value.as_ref()).and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        Some(Value::BoolValue(flag)) => flag.to_string(),
        _ => String::new(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_request_is_one_trace_and_its_backend_is_told_which() {
    let (collector, backend) = (collector(), Fake::http("b").record().start_in_thread().unwrap());
    let process = Process::start(&of(&collector, ", sample: 100%, service_name: edge", &[&backend], ""), 1);
    let answer = Client::connect(process.address("web")).get("/shop?user=secret");
    assert_eq!(answer.status, 200);
    let all = spans(&collector, 1);
    let names: Vec<&str> = all.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["GET", "attempt", "connect", "first byte"]);
    let [request, attempt, connect, first] = &all[..] else { panic!("four") };
    let [id] = &backend.last_requests()[0].header("X-Request-Id")[..] else { panic!("one id") };
    let told = backend.last_requests()[0].header("traceparent").join(",");
    assert_eq!(told, format!("00-{}-{}-01", hex(&request.trace_id), hex(&attempt.span_id)));
    assert_eq!(
        (hex(&request.trace_id), attribute(request, "evenkeel.request_id")),
        (id.to_string(), id.to_string())
    );
    assert!(request.parent_span_id.is_empty() && attempt.parent_span_id == request.span_id);
    assert!([connect, first].iter().all(|part| part.parent_span_id == attempt.span_id));
    assert_eq!(
        (attribute(request, "url.path"), attribute(request, "url.query")),
        ("/shop".into(), "user=*".into())
    );
    assert_eq!(attribute(attempt, "evenkeel.backend"), "b0");
    let resource = sent(&collector)[0].resource.clone().unwrap();
    let service = resource.attributes.iter().find(|one| one.key == "service.name").unwrap();
    let name = service.value.as_ref().and_then(|value| value.value.clone());
    assert_eq!(name, Some(Value::StringValue("edge".to_owned())));
}

/// That each span is within its parent, which is one of them, and that parts of one whole are one after the other where they have to be.
fn adds_up(all: &[Span]) {
    for span in all {
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano && span.trace_id == all[0].trace_id);
        let Some(parent) = all.iter().find(|other| other.span_id == span.parent_span_id) else {
            assert_eq!(span.kind, 2, "only the request may have its parent elsewhere: {}", span.name);
            continue;
        };
        let within = parent.start_time_unix_nano..=parent.end_time_unix_nano;
        assert!(
            within.contains(&span.start_time_unix_nano) && within.contains(&span.end_time_unix_nano),
            "{} is not within {}",
            span.name,
            parent.name
        );
    }
    let ids: std::collections::HashSet<_> = all.iter().map(|span| &span.span_id).collect();
    assert_eq!(ids.len(), all.len());
}

/// The tree of a trace: names, indented, in the order in which they began.
fn tree(all: &[Span]) -> String {
    fn below(all: &[Span], id: &[u8], depth: usize, text: &mut String) {
        let mut children: Vec<&Span> = all.iter().filter(|span| span.parent_span_id == id).collect();
        children.sort_by_key(|span| span.start_time_unix_nano);
        for span in children {
            let more = [attribute(span, "evenkeel.backend"), attribute(span, "evenkeel.cause")].join(" ");
            *text += &format!("{}{} {}\n", " ".repeat(depth), span.name, more.trim()).replace(" \n", "\n");
            below(all, &span.span_id, depth + 1, text);
        }
    }
    let mut text = String::new();
    below(all, &[], 0, &mut text);
    text
}

#[test]
fn a_request_that_waits_is_hedged_and_retried_is_the_right_tree_with_times_that_add_up() {
    let collector = collector();
    let backends: Vec<Running> =
        (0..3).map(|number| Fake::http(format!("b{number}")).record().start_in_thread().unwrap()).collect();
    let each: Vec<&Running> = backends.iter().collect();
    let keys = "    balance: first\n    sticky: {key: 0123456789abcdef}\n    max_in_flight: 1\n    queue: {timeout: 20s}\n    hedging: {percentile: 50, budget: 100%}\n    retries: {on: [503], attempts: 3, budget: 100%, backoff: off}\n";
    let keel = Keel::start(&load(&of(&collector, ", sample: off", &each, keys)));
    let target = &keel.server.targets()[0];
    let mut client = keel.client();
    let cookie = client.get("/").header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    // A competitor comes only where it is known how long answers take. Made up: with real ones it is chance who is slower than half of them, and has one.
    (0..100).for_each(|_| target.state.pace.note(Duration::from_millis(20)));
    eventually("it is known how long answers take", || target.state.pace.percentile(50, now()).is_some());
    // One that is not over before it is told to be, so that the next one waits for its backend, which the cookie names.
    let mut holder = keel.client();
    holder
        .send(format!("POST /held HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\nContent-Length: 5\r\n\r\n1234"));
    eventually("it is there", || backends[0].last_requests().iter().any(|request| !request.complete));
    client.send(format!("GET /all HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n"));
    eventually("it waits", || target.waiting() == 1);
    backends[0].behave(Behaviour::hang());
    backends[1].behave(Behaviour::status(503));
    holder.send("5");
    assert_eq!((holder.answer().status, client.answer().status), (200, 200));
    let all = spans(&collector, 1);
    adds_up(&all);
    assert_eq!(
        tree(&all),
        "GET\n queue\n attempt b0 overtaken\n  first byte\n attempt b1 error_status\n  connect\n  first byte\n attempt b2\n  connect\n  first byte\n"
    );
    let named = |name: &str| all.iter().filter(|span| span.name == name).collect::<Vec<_>>();
    let (queue, attempts) = (named("queue")[0], named("attempt"));
    assert_eq!(queue.end_time_unix_nano, attempts[0].start_time_unix_nano);
    assert!(attempts[1].start_time_unix_nano > attempts[0].start_time_unix_nano);
    assert!(attempts[2].start_time_unix_nano >= attempts[1].end_time_unix_nano);
    let of_last = attempts[2].end_time_unix_nano;
    assert_eq!(named("GET")[0].end_time_unix_nano, of_last);
    // Each backend was told the span of its own attempt.
    for (backend, attempt) in backends.iter().zip(&attempts) {
        let requests = backend.last_requests();
        let [told] = &requests.last().unwrap().header("traceparent")[..] else { panic!("one line") };
        assert_eq!(*told, format!("00-{}-{}-00", hex(&attempt.trace_id), hex(&attempt.span_id)));
    }
    assert_eq!(attribute(attempts[2], "http.request.resend_count"), "2");
    assert_eq!(attribute(named("GET")[0], "evenkeel.kept_for"), "retried");
}

/// A `traceparent` of somebody.
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-";
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// What a backend was told by the lines of trace context of its latest request.
fn told(backend: &Running) -> (String, String) {
    let requests = backend.last_requests();
    let latest = requests.last().unwrap();
    (latest.header("traceparent").join("|"), latest.header("tracestate").join("|"))
}

#[test]
fn whose_flag_counts_and_what_is_malformed_is_replaced() {
    let (collector, backend) = (collector(), Fake::http("b").record().start_in_thread().unwrap());
    let of = |sample: &str, trusted: &str| {
        let keys = format!(", sample: {sample}");
        let text = of(&collector, &keys, &[&backend], "");
        load(&format!("trusted_proxies: [{trusted}]\n{text}"))
    };
    let ask = |keel: &Keel, lines: &str| {
        let answer = keel.client().ask(&format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n"));
        assert_eq!(answer.status, 200);
        told(&backend)
    };
    let state = "tracestate: a=1\r\n";
    let (nobody, anybody) = (Keel::start(&of("off", "")), Keel::start(&of("100%", "")));
    let (strict, lax) = (Keel::start(&of("off", "127.0.0.0/8")), Keel::start(&of("100%", "127.0.0.0/8")));
    let flag = |(parent, state): (String, String)| {
        assert!(
            parent.starts_with(&format!("00-{TRACE}-")) && !parent.contains("b7ad6b7169203331"),
            "{parent}"
        );
        assert_eq!(state, "a=1");
        parent[53..].to_owned()
    };
    for (flags, by_rate, by_peer) in
        [("00", ["00", "01"], "00"), ("01", ["00", "01"], "01"), ("03", ["02", "03"], "03")]
    {
        let lines = format!("traceparent: {PARENT}{flags}\r\n{state}");
        // From anybody else our own rate decides.
        assert_eq!([&nobody, &anybody].map(|keel| flag(ask(keel, &lines))), by_rate);
        assert_eq!([&strict, &lax].map(|keel| flag(ask(keel, &lines))), [by_peer, by_peer]);
    }
    for bad in [
        format!("traceparent: {PARENT}1\r\n"),
        format!("traceparent: {}\r\n", PARENT.replace("0af7", "0AF7") + "01"),
        "traceparent: 00-00000000000000000000000000000000-b7ad6b7169203331-01\r\n".to_owned(),
        "traceparent: ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n".to_owned(),
        format!("traceparent: {PARENT}01\r\ntraceparent: {PARENT}01\r\n"),
        "traceparent:\r\n".to_owned(),
        String::new(),
    ] {
        let (parent, state) = ask(&lax, &format!("{bad}{state}"));
        assert!(
            parent.starts_with("00-") && parent.ends_with("-01") && parent.len() == 55,
            "{bad}: {parent}"
        );
        assert!(!parent.contains(TRACE) && state.is_empty(), "{bad}: {parent} {state}");
    }
    // Where nothing is traced both go on as they came, whatever they are.
    let plain = Keel::http(&[&backend]);
    assert_eq!(ask(&plain, "Traceparent: nonsense\r\nTracestate: x\r\n"), ("nonsense".into(), "x".into()));
    assert_eq!(ask(&plain, ""), (String::new(), String::new()));
}

#[test]
fn failures_are_traced_beside_the_sample_and_the_log_says_in_which_trace_they_are() {
    let (collector, off) = (collector(), Fake::http("off").refusing().start_in_thread().unwrap());
    let well = Fake::http("well").start_in_thread().unwrap();
    let text = of(&collector, ", sample: off", &[&off], "");
    let second =
        of(&collector, "", &[&well], "").split_once("targets:\n").unwrap().1.replace("web:", "well:");
    let process = Process::start(&format!("{text}{second}"), 2);
    assert_eq!(Client::connect(process.address("well")).get("/").status, 200);
    let lines = format!("traceparent: {PARENT}01\r\n");
    let request = format!("GET /a HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
    let answer = Client::connect(process.address("web")).ask(&request);
    assert_eq!(answer.status, 503);
    let all = spans(&collector, 1);
    adds_up(&all);
    assert_eq!(tree(&all), "", "its parent is somebody else's");
    assert_eq!(all.iter().filter(|span| span.kind == 2).count(), 1, "the other one went well");
    assert_eq!(
        (hex(&all[0].trace_id), hex(&all[0].parent_span_id)),
        (TRACE.into(), "b7ad6b7169203331".into())
    );
    assert_eq!(attribute(&all[0], "error.type"), "connect_failed");
    assert_eq!(all[0].status.as_ref().map(|status| status.code), Some(2));
    let id = answer.header("x-request-id").unwrap();
    let records = || process.records();
    eventually("both are logged", || records().len() == 2);
    let of_failed = records().into_iter().find(|record| record["id"] == id).unwrap();
    let of_well = records().into_iter().find(|record| record["id"] != id).unwrap();
    assert_eq!(of_failed["trace_id"], TRACE);
    assert_eq!(of_well["trace_id"], of_well["id"]);
    let (status, story) = process.ask(&format!("GET /api/v1/requests/{id}"), b"");
    assert_eq!((status, &story["trace_id"]), (200, &TRACE.into()));
}

#[test]
fn no_more_traces_than_may_go_out_and_the_rest_are_counted() {
    let (collector, backend) = (collector(), Fake::http("b").record().start_in_thread().unwrap());
    let process = Process::start(&of(&collector, ", sample: 100%, limit: 3/s", &[&backend], ""), 1);
    let mut client = Client::connect(process.address("web"));
    let counts = || {
        let series = scrape(&process);
        ["evenkeel_traces_total", "evenkeel_traces_dropped_total{reason=\"limit\"}"].map(|name| series[name])
    };
    let mut asked = 0.0;
    eventually("some are dropped", || {
        (0..20).for_each(|_| assert_eq!(client.get("/").status, 200));
        asked += 20.0;
        counts()[1] > 0.0
    });
    eventually("all are counted", || counts().iter().sum::<f64>() == asked);
    let [taken, _] = counts();
    assert!(taken >= 1.0);
    eventually("all that were taken were sent", || {
        scrape(&process)["evenkeel_trace_spans_sent_total"] >= 3.0 * taken
    });
    // Nobody was told that a request is sampled that was not: its own spans would have no beginning.
    let told = backend.last_requests();
    let sampled = told.iter().filter(|request| request.header("traceparent")[0].ends_with("-01")).count();
    assert!(sampled as f64 <= taken && told.len() as f64 > taken, "{sampled} of {taken}");
}

#[test]
fn what_a_collector_refuses_of_a_batch_is_counted_and_told() {
    let refusal = ExportTraceServiceResponse {
        partial_success: Some(ExportTracePartialSuccess {
            rejected_spans: 2,
            error_message: "too old".to_owned(),
        }),
    };
    let body = refusal.encode_to_vec();
    let collector = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = collector.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in collector.incoming() {
            let mut stream = stream.unwrap();
            let mut read = Vec::new();
            // It closes once the whole has come; the length is that of a body in gzip, which ends as such do.
            let head = loop {
                let mut piece = [0; 4096];
                let count = stream.read(&mut piece).unwrap();
                read.extend_from_slice(&piece[..count]);
                if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
                    break end + 4;
                }
            };
            let text = String::from_utf8_lossy(&read[..head]).to_ascii_lowercase();
            let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            let mut rest = vec![0; length.parse::<usize>().unwrap() + head - read.len()];
            stream.read_exact(&mut rest).unwrap();
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            stream.write_all(&[answer.as_bytes(), &body].concat()).unwrap();
        }
    });
    let backend = Fake::http("b").start_in_thread().unwrap();
    let text =
        of(&backend, ", sample: 100%", &[&backend], "").replacen(&backend.url(), &format!("http://{at}"), 1);
    let process = Process::start(&text, 1);
    assert_eq!(Client::connect(process.address("web")).get("/").status, 200);
    eventually("it is told", || process.said().join("\n").contains("it refused 2 of 4 spans: too old"));
    // It is told right before it is counted.
    eventually("it is counted", || {
        let series = scrape(&process);
        ["evenkeel_trace_spans_sent_total", "evenkeel_trace_spans_refused_total"].map(|name| series[name])
            == [2.0; 2]
    });
}

#[test]
fn a_question_in_the_background_hands_on_nothing_that_a_client_says_of_its_trace() {
    let (collector, backend) = (collector(), Fake::http("b").record().start_in_thread().unwrap());
    let keys = "    cache: {ttl: 1ms, stale_while_revalidate: 1h}\n";
    let process = Process::start(&of(&collector, ", sample: off", &[&backend], keys), 1);
    let mut client = Client::connect(process.address("web"));
    assert_eq!(client.get("/").status, 200);
    let sent = format!(
        "GET / HTTP/1.1\r\nHost: a\r\ntraceparent: 00-{TRACE}-b7ad6b7169203331-01\r\ntracestate: v=1\r\n\r\n"
    );
    eventually("it is asked for in the background", || {
        client.ask(&sent.replace("Host: a", "Host: 127.0.0.1"));
        client.get("/");
        backend.last_requests().len() > 3
    });
    for request in backend.last_requests() {
        let told = request.header("traceparent").join(",");
        assert!(told.ends_with("-00") && !told.is_empty(), "{}", request.head_text());
        assert_eq!(request.header("tracestate").is_empty(), !told.contains(TRACE), "{}", request.head_text());
    }
}

#[test]
fn a_collector_that_is_away_costs_requests_nothing_and_gets_what_waits() {
    let collector = Fake::http("collector").record().refusing().start_in_thread().unwrap();
    let backend = Fake::http("b").start_in_thread().unwrap();
    let process = Process::start(&of(&collector, ", sample: 100%", &[&backend], ""), 1);
    assert_eq!(Client::connect(process.address("web")).get("/one").status, 200);
    let said = || process.said().join("\n");
    eventually("it is told", || said().contains("does not take traces: connection refused"));
    // One that can't take them now, then takes them.
    collector.behave(Behaviour::status(503).times(1));
    collector.restart().unwrap();
    let all = spans(&collector, 2);
    assert_eq!(all.iter().filter(|span| attribute(span, "url.path") == "/one").count(), 2, "once in vain");
    eventually("that is over", || said().contains("takes traces again after"));
    assert_eq!(said().matches("does not take traces").count(), 2, "each reason once");
    // What it never wants is dropped.
    collector.behave(Behaviour::status(400).times(1));
    assert_eq!(Client::connect(process.address("web")).get("/two").status, 200);
    let dropped = "evenkeel_traces_dropped_total{reason=\"unsent\"}";
    eventually("it is dropped", || scrape(&process)[dropped] == 1.0);
}

#[test]
fn a_reload_begins_and_ends_it_and_the_end_of_the_process_sends_what_is_left() {
    let (first, second) = (collector(), collector());
    let backend = Fake::http("b").start_in_thread().unwrap();
    let off = of(&first, "", &[&backend], "")
        .lines()
        .filter(|line| !line.starts_with("tracing"))
        .collect::<Vec<_>>()
        .join("\n");
    let process = Process::start(&off, 1);
    let ask = |path: &str| assert_eq!(Client::connect(process.address("web")).get(path).status, 200);
    ask("/off");
    process.reload(&of(&first, ", sample: 100%", &[&backend], ""));
    ask("/first");
    assert_eq!(attribute(&spans(&first, 1)[0], "url.path"), "/first");
    process.reload(&of(&second, ", sample: 100%", &[&backend], ""));
    ask("/second");
    assert_eq!(attribute(&spans(&second, 1)[0], "url.path"), "/second");
    process.reload(&off);
    ask("/off");
    process.reload(&of(&second, ", sample: 100%", &[&backend], ""));
    ask("/last");
    process.terminate();
    let all = spans(&second, 2);
    let paths: Vec<String> =
        all.iter().filter(|span| span.kind == 2).map(|span| attribute(span, "url.path")).collect();
    assert_eq!(paths, ["/second", "/last"]);
    assert_eq!(spans(&first, 1).iter().filter(|span| span.kind == 2).count(), 1);
}

#[test]
fn a_collector_over_tls_is_verified_and_gets_the_headers_of_the_file() {
    let authority = Authority::new("lab");
    let collector = Fake::http("collector").record().tls(TlsOptions::new().authority(&authority));
    let (collector, backend) =
        (collector.start_in_thread().unwrap(), Fake::http("b").start_in_thread().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let (ca, headers) = (folder.path().join("ca.pem"), folder.path().join("otlp.headers"));
    std::fs::write(&ca, authority.ca_pem()).unwrap();
    std::fs::write(&headers, "Authorization: Bearer hush-token\n").unwrap();
    let trusting = format!(", sample: 100%, ca_file: {}, headers_file: {}", ca.display(), headers.display());
    let text = |keys: &str| {
        let text = of(&collector, keys, &[&backend], "");
        text.replace(&collector.url(), &format!("https://localhost:{}", collector.port()))
    };
    let process = Process::start(&text(", sample: 100%"), 1);
    assert_eq!(Client::connect(process.address("web")).get("/").status, 200);
    eventually("it is not trusted", || process.said().join("\n").contains("does not take traces: TLS: "));
    process.reload(&text(&trusting));
    spans(&collector, 1);
    assert_eq!(collector.last_requests()[0].header("Authorization"), ["Bearer hush-token"]);
    let (_, status) = process.ask("GET /api/v1/config/digest", b"");
    let all = [process.said().join("\n"), status.to_string()].join("\n");
    assert!(!all.contains("hush-token"), "{all}");
}

#[test]
fn secrets_of_requests_are_in_no_span() {
    let (collector, backend) = (collector(), Fake::http("b").start_in_thread().unwrap());
    let keel = Keel::start(&load(&of(&collector, ", sample: 100%", &[&backend], "")));
    let lines = "Authorization: Bearer c4n4ry\r\nCookie: a=c4n4ry\r\nX-Api-Key: c4n4ry\r\nUser-Agent: c4n4ry\r\nReferer: http://a/?c4n4ry\r\ntracestate: v=c4n4ry\r\n";
    let request = format!(
        "GET http://u:c4n4ry@shop.example/a?k=c4n4ry&c4n4ry HTTP/1.1\r\nHost: shop.example\r\n{lines}\r\n"
    );
    let mut client = keel.client();
    // A name in an authority is refused, which is no reason to tell it.
    let status = client.ask(&request).status;
    assert!(status == 200 || status == 400, "{status}");
    let request =
        format!("GET /a?k=c4n4ry&token=c4n4ry#c4n4ry HTTP/1.1\r\nHost: shop.example\r\n{lines}\r\n");
    keel.client().ask(&request);
    let plain = format!("GET /a?k=c4n4ry&token=c4n4ry HTTP/1.1\r\nHost: shop.example\r\n{lines}\r\n");
    assert_eq!(keel.client().ask(&plain).status, 200);
    let all = spans(&collector, 1);
    assert!(all.iter().any(|span| attribute(span, "url.query") == "k=*&token=*"));
    for span in &all {
        let text = format!("{span:?}");
        assert!(!text.contains("c4n4ry"), "{text}");
    }
}
