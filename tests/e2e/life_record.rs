//! What is counted and logged, after a known mix.

use std::io::BufRead as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use evenkeel::config::model::{AccessLog, LogFormat, LogPath, Share, Template};
use evenkeel::message::{BackendId, Cause, ListenerId, TargetId};
use evenkeel::telemetry::cells::StatusClass;
use fake_backend::{Behaviour, Fake, TcpMode};
use serde_json::Value;

use super::life_lab::{
    LogFile, connect, end, post, read_to_end, reset_on_close, tcp, tcp_fakes, until_ended,
};
use super::support::{Keel, eventually, fakes};

#[test]
fn the_cells_agree_with_a_known_mix() {
    let backends = fakes(1);
    let keel = Keel::http(&[&backends[0]]);
    let mut client = keel.client();
    let mut came = 0;
    let mut requests: Vec<String> =
        vec!["/", "/", "/", "/bytes/70000", "/chunked/70000", "/status/404", "/status/302", "/status/500"]
            .into_iter()
            .map(|path| format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"))
            .collect();
    requests.push(post("/count", "0123456789"));
    requests.push(
        "POST /count HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n\
                   5\r\nabcde\r\n0\r\n\r\n"
            .to_owned(),
    );
    for request in &requests {
        came += client.send(request).answer().body.len() as u64;
    }
    let asked = client.send("HEAD /bytes/500 HTTP/1.1\r\nHost: test\r\n\r\n").answer_to_head();
    assert_eq!(asked.header("content-length"), Some("500"));
    came += client.send("BAD\r\n\r\n").answer().body.len() as u64;
    eventually("all are counted", || keel.server.readings().requests() == 12);

    let readings = keel.server.readings();
    let listener = readings.listener(ListenerId(0)).unwrap();
    let by_class = |class| listener.with(class);
    assert_eq!(by_class(StatusClass::Success), 8);
    assert_eq!(by_class(StatusClass::Redirection), 1);
    assert_eq!(by_class(StatusClass::ClientError), 2);
    assert_eq!(by_class(StatusClass::ServerError), 1);
    assert_eq!((listener.bytes_in, listener.bytes_out), (15, came));

    // The malformed one never got as far as a target.
    let target = readings.target(TargetId(0)).unwrap();
    assert_eq!((target.traffic.requests(), target.traffic.with(StatusClass::ClientError)), (11, 1));
    assert_eq!((target.stages.duration.count(), target.stages.first_byte.count()), (11, 11));
    // A POST may have found the idle connection too old.
    let pool = readings.pool;
    assert_eq!((target.stages.connect.count(), pool.opened + pool.reused), (pool.opened, 11));
    assert!(pool.opened <= 3 && backends[0].connections() == pool.opened, "{pool:?}");
    assert!(target.stages.duration.sum() >= target.stages.first_byte.sum());
    let backend = readings.backend(BackendId(0)).unwrap();
    assert_eq!((backend.attempts, backend.failures, backend.traffic.requests()), (11, 0, 11));
    assert_eq!(readings.retries, 0);
    assert_eq!((readings.ended_with(Cause::Done), readings.ended_with(Cause::BadHead)), (11, 1));
    assert_eq!((readings.connections.accepted, readings.panics, readings.accept_errors), (1, 0, 0));
    let by_worker: u64 = keel.server.readings_by_worker().iter().map(|worker| worker.requests()).sum();
    assert_eq!(by_worker, 12);
}

/// Success, retry, 503 and a client that leaves; the log's lines in the order of the requests.
fn known_mix(format: LogFormat) -> (LogFile, Vec<String>) {
    let (off, on) = (Fake::http("off").refusing().start_in_thread().unwrap(), fakes(1).remove(0));
    let mut log = None;
    let keel = Keel::with(&[&off, &on], |config| {
        log = Some(LogFile::of(config, format));
        config.workers = 1;
        config.targets[0].backends[0].name = "off".into();
        config.targets[0].backends[1].name = "on".into();
        config.targets[0].resilience.outlier.as_mut().unwrap().ejection = Duration::from_secs(20);
    });
    let mut client = keel.client();
    // Refused by the first backend, answered by the second; then the first is left alone.
    for path in ["/one?x=1", "/two"] {
        client.send(format!(
            "GET {path} HTTP/1.1\r\nHost: test\r\nUser-Agent: agent/1\r\nReferer: http://r/\r\n\r\n"
        ));
        assert_eq!(client.answer().status, 200);
    }
    on.behave(Behaviour::hang());
    let mut leaver = keel.client();
    leaver.send(post("/three", "12345"));
    eventually("it is under way", || on.requests() == 3);
    reset_on_close(&leaver.socket);
    drop(leaver);
    until_ended(&keel, Cause::ClientGone, 1);
    eventually("the abort reaches the backend", || on.stats().aborted == 1);
    on.stop();
    eventually("its connections have ended", || on.open_connections() == 0);
    assert_eq!(client.send("HEAD /four HTTP/1.1\r\nHost: test\r\n\r\n").answer_to_head().status, 503);
    end(keel);
    let log = log.unwrap();
    let lines = log.lines();
    (log, lines)
}

#[test]
fn the_access_log_in_json_has_every_field_right() {
    let (log, _) = known_mix(LogFormat::Json);
    let records = log.records();
    let pick = |names: &[&str]| -> Vec<Vec<Value>> {
        records.iter().map(|record| names.iter().map(|&name| record[name].clone()).collect()).collect()
    };
    let rows = |text: &str| serde_json::from_str::<Vec<Vec<Value>>>(text).unwrap();
    assert_eq!(
        pick(&["method", "path", "status", "cause", "backend", "attempts"]),
        rows(
            r#"[["GET", "/one?x=1", 200, null, "on", 2],
                ["GET", "/two", 200, null, "on", 1],
                ["POST", "/three", null, "client_gone", "on", 1],
                ["HEAD", "/four", 503, "connect_failed", "off", 2]]"#
        )
    );
    assert_eq!(
        pick(&["kind", "listener", "target", "host", "bytes_in", "bytes_out", "user_agent", "referer"]),
        rows(
            r#"[["http", "web", "web", "test", 0, 17, "agent/1", "http://r/"],
                ["http", "web", "web", "test", 0, 17, "agent/1", "http://r/"],
                ["http", "web", "web", "test", 5, 0, null, null],
                ["http", "web", "web", "test", 0, 0, null, null]]"#
        )
    );
    for (record, answered) in records.iter().zip([true, true, false, false]) {
        assert!(record["client"].as_str().unwrap().starts_with("127.0.0.1:"));
        assert!(record["time"].as_str().unwrap().ends_with('Z'));
        assert_eq!(record["id"].as_str().unwrap().len(), 32);
        assert!(record["duration_ms"].as_f64().unwrap() > 0.0);
        assert_eq!(record["first_byte_ms"].is_number(), answered, "{record}");
    }
    let [first, second, _, last] = &records[..] else { panic!("four") };
    let reused = [first, second, last].map(|record| (&record["reused"], record["connect_ms"].is_number()));
    assert_eq!(reused, [(&false.into(), true), (&true.into(), false), (&false.into(), false)]);
}

#[test]
fn the_access_log_in_text_says_the_same() {
    let (_log, lines) = known_mix(LogFormat::Text);
    let expected = [
        (
            " web web on \"GET /one?x=1\" 200 - host=test in=0 out=17 ",
            " attempts=2 earlier_causes=connect_failed reused=no kind=http ",
        ),
        (
            " web web on \"GET /two\" 200 - host=test in=0 out=17 ",
            " attempts=1 earlier_causes=- reused=yes kind=http ",
        ),
        (" web web on \"POST /three\" - client_gone host=test in=5 out=0 ", " attempts=1 "),
        (
            " web web off \"HEAD /four\" 503 connect_failed host=test in=0 out=0 ",
            " attempts=2 earlier_causes=connect_failed reused=no ",
        ),
    ];
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, (start, end)) in lines.iter().zip(expected) {
        assert!(line.contains(start) && line.contains(end), "{line}");
    }
    assert!(lines[0].ends_with(" agent=\"agent/1\" referer=\"http://r/\""), "{}", lines[0]);
}

/// What stands before and behind the time in brackets.
fn around_the_time(line: &str) -> (&str, &str) {
    let (before, rest) = line.split_once('[').unwrap();
    let (time, after) = rest.split_once(']').unwrap();
    assert!(time.len() == 26 && time.ends_with(" +0000"), "{line}");
    (before, after)
}

#[test]
fn the_access_log_in_the_combined_form_fits_the_tools_that_read_it() {
    let (_log, lines) = known_mix(LogFormat::Combined);
    let told: Vec<_> = lines.iter().map(|line| around_the_time(line)).collect();
    assert_eq!(
        told,
        [
            ("127.0.0.1 - - ", " \"GET /one?x=1 HTTP/1.1\" 200 17 \"http://r/\" \"agent/1\""),
            ("127.0.0.1 - - ", " \"GET /two HTTP/1.1\" 200 17 \"http://r/\" \"agent/1\""),
            ("127.0.0.1 - - ", " \"POST /three HTTP/1.1\" 499 0 \"-\" \"-\""),
            ("127.0.0.1 - - ", " \"HEAD /four HTTP/1.1\" 503 0 \"-\" \"-\""),
        ]
    );
}

#[test]
fn a_template_has_fields_and_headers_of_the_request() {
    let form = "{method} {path} {status} {header.referer} \"{header.USER-AGENT}\" {{{header.none}}}";
    let (_log, lines) = known_mix(LogFormat::Template(Template::parse(form).unwrap()));
    assert_eq!(
        lines,
        [
            "GET /one?x=1 200 http://r/ \"agent/1\" {-}",
            "GET /two 200 http://r/ \"agent/1\" {-}",
            "POST /three - - \"-\" {-}",
            "HEAD /four 503 - \"-\" {-}",
        ]
    );
}

/// With this share and these numbers the choice is fixed.
#[test]
fn sampling_goes_by_the_request_id_and_never_leaves_out_an_error() {
    let backends = fakes(1);
    let mut log = None;
    let keel = Keel::with(&[&backends[0]], |config| {
        config.trusted_proxies = vec!["127.0.0.0/8".parse().unwrap()];
        log = Some(LogFile::of(config, LogFormat::Json));
        config.access_log.as_mut().unwrap().sample = Share::from_millionths(250_000).unwrap();
    });
    let mut client = keel.client();
    for round in 0..2 {
        for number in 1..=40 {
            let path = if number == 40 { "/status/500" } else { "/" };
            let answer = client.send(format!(
                "GET {path} HTTP/1.1\r\nHost: test\r\nX-Request-Id: {number:032x}\r\nX-Round: {round}\r\n\r\n"
            ));
            assert_ne!(answer.answer().status, 0);
        }
    }
    eventually("all are counted", || keel.server.readings().requests() == 80);
    end(keel);
    let records = log.unwrap().records();
    let ids: Vec<&str> = records.iter().map(|record| record["id"].as_str().unwrap()).collect();
    let (first, second) = ids.split_at(ids.len() / 2);
    assert_eq!(first, second, "the same numbers, the same choice");
    assert!((5..=20).contains(&first.len()), "{first:?}");
    for record in &records {
        let rate = if record["status"] == 500 { 1.0 } else { 0.25 };
        assert_eq!(record["sample_rate"].as_f64(), Some(rate), "{record}");
    }
    assert_eq!(records.iter().filter(|record| record["status"] == 500).count(), 2);
}

#[test]
fn a_tcp_connection_is_one_line() {
    let backends = tcp_fakes(1, |fake| fake.behave(Behaviour::tcp(TcpMode::GreetAtEnd)));
    let mut log = None;
    let keel = tcp(&[&backends[0]], |config| log = Some(LogFile::of(config, LogFormat::Json)));
    let mut socket = connect(keel.address());
    std::io::Write::write_all(&mut socket, b"12345").unwrap();
    socket.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&mut socket).unwrap().len(), 17);
    until_ended(&keel, Cause::Done, 1);
    end(keel);
    let records = log.unwrap().records();
    let [record] = &records[..] else { panic!("{records:?}") };
    let told: Vec<_> = ["kind", "method", "status", "cause", "bytes_in", "bytes_out", "attempts", "reused"]
        .map(|name| record[name].clone())
        .into();
    let expected = r#"["tcp", null, null, null, 5, 17, 1, false]"#;
    assert_eq!(Value::from(told), serde_json::from_str::<Value>(expected).unwrap());
    assert_eq!(record["backend"], Value::from(backends[0].addr().to_string()));
    assert!(record["connect_ms"].is_number());
}

#[test]
fn lines_reach_the_file_while_the_server_runs() {
    let backends = fakes(1);
    let mut log = None;
    let keel = Keel::with(&[&backends[0]], |config| log = Some(LogFile::of(config, LogFormat::Text)));
    let log = log.unwrap();
    assert_eq!(keel.client().get("/").status, 200);
    eventually("a line", || log.lines().len() == 1);
    assert_eq!(keel.server.readings().access_dropped, 0);
}

/// A pipe that nobody reads takes 64 KiB and then nothing.
#[test]
fn every_record_is_written_or_counted_as_dropped() {
    let backends = fakes(1);
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let keel = Keel::with(&[&backends[0]], |config| {
        let (path, format) = (LogPath::File(pipe.clone()), LogFormat::Json);
        config.access_log = Some(AccessLog { path, format, sample: Share::ALL });
    });
    let mut client = keel.client();
    let long = "x".repeat(4000);
    let request =
        format!("GET /{long} HTTP/1.1\r\nHost: test\r\nUser-Agent: {long}\r\nReferer: {long}\r\n\r\n");
    let mut asked = 0;
    while keel.server.readings().access_dropped < 20 {
        assert_eq!(client.send(&request).answer().status, 200);
        asked += 1;
        assert!(asked < 20_000, "nothing is ever dropped");
    }
    let source = std::io::BufReader::new(std::fs::File::open(&pipe).unwrap());
    let written = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&written);
    let reader = std::thread::spawn(move || {
        for line in source.lines() {
            serde_json::from_str::<Value>(&line.unwrap()).expect("whole lines only");
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    eventually("each is in one count", || {
        keel.server.readings().access_dropped + written.load(Ordering::Relaxed) == asked
    });
    drop(client);
    end(keel);
    reader.join().unwrap();
    assert!(written.load(Ordering::Relaxed) < asked);
}
