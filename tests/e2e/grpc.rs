//! gRPC: calls through evenkeel, how they end when a backend does not end them, and what is heard of how it does.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel::config::model::resilience::{BreakerConfig, Outlier, Retries};
use evenkeel::config::model::{Balance, Config, GrpcStatus, GrpcStatuses};
use evenkeel::net::now;
use evenkeel::proxy::http::h2::code::ErrorCode;
use evenkeel::proxy::http::h2::frame;

use super::metrics::scrape;
use super::support::grpc::{
    self, Ended, HEAD, answer, begin, framed, is_left_alone, keel, refuse, service, unary,
};
use super::support::h2::H2Client;
use super::support::h2_backend::RawH2;
use super::support::process::Process;
use super::support::{Keel, eventually};

#[test]
fn a_call_goes_through_with_its_messages_its_lines_and_its_status() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&lines);
    let backend = service(move |line, asked| {
        seen.lock().unwrap().push((asked.path.clone(), asked.lines.clone()));
        answer(line, asked.stream, b"pong", if asked.path.ends_with("Bad") { "9" } else { "0" });
    });
    let keel = keel(&[&backend], |_| ());
    let client = H2Client::connect(keel.address());
    for (method, status) in [("/shop.Cart/Add", 0), ("/shop.Cart/Bad", 9)] {
        let lines = [("grpc-timeout", "5S"), ("x-trace-bin", "AAEC"), ("grpc-encoding", "gzip")];
        let ended = unary(&client, method, &lines, b"ping");
        let expected = Ended {
            status: Some(status),
            message: String::new(),
            messages: vec![b"pong".to_vec()],
            trailers_only: false,
        };
        assert_eq!(ended, expected);
    }
    let seen = lines.lock().unwrap();
    let (path, lines) = &seen[0];
    assert_eq!(path, "/shop.Cart/Add");
    for line in [
        ("te", "trailers"),
        ("content-type", "application/grpc"),
        ("grpc-timeout", "5S"),
        ("x-trace-bin", "AAEC"),
        ("grpc-encoding", "gzip"),
    ] {
        assert!(lines.contains(&(line.0.to_owned(), line.1.to_owned())), "{line:?} in {lines:?}");
    }
    is_left_alone(&keel);
}

#[test]
fn calls_on_one_connection_are_balanced_one_by_one() {
    let counts: Vec<_> = (0..3).map(|_| Arc::new(AtomicUsize::new(0))).collect();
    let backends: Vec<_> = counts
        .iter()
        .map(|count| {
            let count = Arc::clone(count);
            service(move |line, asked| {
                count.fetch_add(1, Ordering::Relaxed);
                answer(line, asked.stream, b"", "0");
            })
        })
        .collect();
    let keel = keel(&[&backends[0], &backends[1], &backends[2]], |_| ());
    let client = H2Client::connect(keel.address());
    for _ in 0..300 {
        assert_eq!(unary(&client, "/a.B/C", &[], b"").status, Some(0));
    }
    let counts: Vec<_> = counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    assert_eq!(counts, [100, 100, 100]);
}

/// Retries by status, and nothing else that would eject or wait.
fn retrying(config: &mut Config) {
    let on_grpc = GrpcStatuses::of(|status| status == GrpcStatus::Unavailable);
    config.targets[0].resilience.outlier = None;
    config.targets[0].resilience.retries =
        Some(Retries { on_grpc, budget: 100, backoff: Duration::ZERO, ..Retries::default() });
}

#[test]
fn a_call_is_tried_elsewhere_for_the_statuses_that_were_asked_for_and_as_its_backend_wants_it() {
    let asked = Arc::new(AtomicUsize::new(0));
    let backends: Vec<_> = (0..2)
        .map(|_| {
            let asked = Arc::clone(&asked);
            service(move |line, call| {
                let wish = |name: &str| {
                    call.lines.iter().find(|(line, _)| line == name).map(|(_, value)| value.as_str())
                };
                let status = wish("x-status").unwrap_or("0");
                // The first one fails.
                if asked.fetch_add(1, Ordering::AcqRel).is_multiple_of(2) {
                    let pushback = wish("x-pushback").map(|value| ("grpc-retry-pushback-ms", value));
                    refuse(line, call.stream, status, &pushback.into_iter().collect::<Vec<_>>());
                } else {
                    answer(line, call.stream, b"second", "0");
                }
            })
        })
        .collect();
    let keel = keel(&[&backends[0], &backends[1]], retrying);
    let client = H2Client::connect(keel.address());
    let mut times = 0;
    let mut ask = |lines: &[(&str, &str)], count: usize| {
        let ended = unary(&client, "/a.B/C", lines, b"x");
        times += count;
        assert_eq!(asked.load(Ordering::Acquire), times, "{lines:?}: {ended:?}");
        if count == 1 {
            // The next one begins anew.
            asked.fetch_add(1, Ordering::AcqRel);
            times += 1;
        }
        ended.status
    };
    assert_eq!(ask(&[("x-status", "14")], 2), Some(0));
    assert_eq!(ask(&[("x-status", "13")], 1), Some(13), "that was not asked for");
    assert_eq!(ask(&[("x-status", "14"), ("x-pushback", "-1")], 1), Some(14), "it does not want that");
    assert_eq!(ask(&[("x-status", "14"), ("x-pushback", "1")], 2), Some(0));
    assert_eq!(ask(&[("x-status", "14"), ("x-pushback", "600000")], 1), Some(14), "nobody waits so long");
    let given = [("x-status", "14"), ("x-pushback", "30000"), ("grpc-timeout", "10S")];
    assert_eq!(ask(&given, 1), Some(14), "its time would be over before");
    is_left_alone(&keel);
}

#[test]
fn a_call_whose_answer_has_begun_is_not_tried_again() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let backend = service(move |line, call| {
        count.fetch_add(1, Ordering::AcqRel);
        answer(line, call.stream, b"one", "14");
    });
    let keel = keel(&[&backend, &backend], retrying);
    let client = H2Client::connect(keel.address());
    let ended = unary(&client, "/a.B/C", &[], b"x");
    assert_eq!((ended.status, ended.messages.len(), asked.load(Ordering::Acquire)), (Some(14), 1, 1));
}

#[test]
fn a_broken_connection_is_unavailable_too() {
    let asked = Arc::new(AtomicUsize::new(0));
    let backends: Vec<_> = (0..2)
        .map(|_| {
            let asked = Arc::clone(&asked);
            RawH2::start(move |_, line| {
                line.settings(&[]);
                while let Some(call) = line.asked() {
                    if asked.fetch_add(1, Ordering::AcqRel) == 0 {
                        return;
                    }
                    answer(line, call.stream, b"", "0");
                }
            })
        })
        .collect();
    let keel = keel(&[&backends[0], &backends[1]], retrying);
    let client = H2Client::connect(keel.address());
    assert_eq!(unary(&client, "/a.B/C", &[], b"x").status, Some(0));
    assert_eq!(asked.load(Ordering::Acquire), 2);
}

#[test]
fn outlier_detection_and_the_breaker_go_by_what_calls_end_with() {
    // In trailers and in a head alone.
    for trailers_only in [false, true] {
        let backends: Vec<_> = ["13", "0"]
            .into_iter()
            .map(|status| {
                service(move |line, call| {
                    if trailers_only && status != "0" {
                        refuse(line, call.stream, status, &[]);
                    } else {
                        answer(line, call.stream, b"", status);
                    }
                })
            })
            .collect();
        let both = [&backends[0], &backends[1]];
        let ends = |keel: &Keel| {
            let client = H2Client::connect(keel.address());
            let ended: Vec<_> = (0..20).map(|_| unary(&client, "/a.B/C", &[], b"").status).collect();
            ended.iter().filter(|status| **status == Some(13)).count()
        };
        let outlier = keel(&both, |config| {
            let failures = 3;
            let long = Duration::from_secs(60);
            config.targets[0].resilience.outlier =
                Some(Outlier { failures, ejection: long, ejection_max: long, ..Outlier::default() });
        });
        assert_eq!(ends(&outlier), 3, "{trailers_only}: then it is left out");
        let breaker = keel(&both, |config| {
            config.targets[0].resilience.outlier = None;
            let open = Duration::from_secs(60);
            config.targets[0].resilience.breaker = Some(BreakerConfig {
                failures: 4,
                open,
                statuses: vec![500..=500],
                ..BreakerConfig::default()
            });
        });
        assert_eq!(ends(&breaker), 4, "{trailers_only}: then its breaker is open");
    }
}

#[test]
fn what_calls_end_with_is_counted_and_told() {
    let backend = service(|line, asked| {
        let status = asked.path.rsplit('/').next().unwrap_or_default().to_owned();
        answer(line, asked.stream, b"", &status);
    });
    let yaml = format!(
        "targets: {{web: {{protocol: http, listener: 0, upstream_protocol: grpc, http2: on, health_check: off, outlier: off, \
         backends: [{{host: 127.0.0.1, port: {}}}]}}}}\n",
        backend.address.port()
    );
    let process = Process::start(&yaml, 1);
    let client = H2Client::connect(process.address("web"));
    for status in ["0", "0", "5", "13"] {
        assert_eq!(unary(&client, &format!("/a.B/{status}"), &[], b"").status, status.parse().ok());
    }
    eventually("all are logged", || process.records().len() == 4);
    let records = process.records();
    let told: Vec<_> = records.iter().map(|record| record["grpc_status"].as_str().unwrap()).collect();
    assert_eq!(told, ["ok", "ok", "not_found", "internal"]);
    assert_eq!((records[3]["path"].as_str(), records[3]["status"].as_u64()), (Some("/a.B/13"), Some(200)));
    let series = scrape(&process);
    let of = |name: &str| {
        series.iter().filter(|(series, _)| series.contains(name)).map(|(_, count)| count).sum::<f64>()
    };
    assert_eq!(of("evenkeel_grpc_calls_total{target=\"web\",status=\"ok\"}"), 2.0);
    assert_eq!(of("evenkeel_grpc_calls_total{target=\"web\",status=\"not_found\"}"), 1.0);
    assert_eq!(of("evenkeel_grpc_calls_total{target=\"web\",status=\"internal\"}"), 1.0);
    let classes = |class: &str| {
        let wanted =
            |series: &str| series.starts_with("evenkeel_upstream_requests_total") && series.contains(class);
        series.iter().filter(|(series, _)| wanted(series)).map(|(_, count)| count).sum::<f64>()
    };
    assert_eq!((classes("2xx"), classes("4xx"), classes("5xx")), (2.0, 1.0, 1.0));
    let why = process.command(&["why", "--last"]);
    let why = String::from_utf8_lossy(&why.stdout).into_owned();
    assert!(why.contains("The call ended with internal (13)"), "{why}");
    assert!(why.contains("/a.B/13") && why.contains("grpc-status 13"), "{why}");
}

#[test]
fn messages_go_both_ways_one_by_one_for_as_long_as_the_call_lasts() {
    let backend = RawH2::start(|_, line| {
        line.settings(&[]);
        while let Some(came) = line.next() {
            match came.kind {
                frame::HEADERS => line.head(came.stream, false, 200, &HEAD),
                frame::DATA => {
                    if !came.payload.is_empty() {
                        line.frame(frame::DATA, 0, came.stream, &came.payload);
                    }
                    if came.flags & frame::END_STREAM != 0 {
                        line.trailers(came.stream, &[("grpc-status", "0")]);
                    }
                }
                _ => {}
            }
        }
    });
    // None of what bounds a request of HTTP bounds it.
    let keel = keel(&[&backend], |config| {
        config.targets[0].timeouts.idle = Duration::from_millis(1);
        config.targets[0].timeouts.first_byte = Duration::from_millis(1);
        config.listeners[0].limits.body_rate = 1 << 40;
        config.listeners[0].client_timeouts.idle = Duration::from_millis(1);
    });
    let client = H2Client::connect(keel.address());
    let call = begin(&client, "/a.B/Both", &[]);
    let mut mine = call.body;
    let mut theirs = grpc::head_of(&client, call.answer);
    for number in 0..10 {
        let message = framed(format!("message {number}").as_bytes());
        client.send(&mut mine, &message, false);
        assert_eq!(grpc::piece(&client, &mut theirs), Some(message));
        // Every other time there is silence for longer than that.
        let since = now();
        eventually("time goes by", || number % 2 == 0 || now().since(since) > Duration::from_millis(60));
    }
    client.send(&mut mine, &[], true);
    let ended = grpc::end_of(&client, theirs).unwrap();
    assert_eq!((ended.status, ended.message.as_str()), (Some(0), ""));
    is_left_alone(&keel);
}

/// What is said on a stream that is silent for longer than `timeouts.tunnel`.
#[test]
fn a_call_whose_stream_was_refused_after_its_message_was_taken_is_asked_again() {
    let backend = RawH2::start(|_, line| {
        line.settings(&[]);
        let mut refused = false;
        while let Some(came) = line.next() {
            if came.kind == frame::DATA && came.flags & frame::END_STREAM != 0 {
                if refused {
                    answer(line, came.stream, &came.payload, "0");
                } else {
                    refused = true;
                    line.reset(came.stream, ErrorCode::REFUSED_STREAM);
                }
            }
        }
    });
    let keel = keel(&[&backend], |_| ());
    let client = H2Client::connect(keel.address());
    let ended = unary(&client, "/a.B/C", &[], b"mine");
    assert_eq!((ended.status, ended.messages), (Some(0), vec![framed(b"mine")]));
    is_left_alone(&keel);
}

#[test]
fn a_backend_that_fails_fast_is_no_fast_backend() {
    let backends: Vec<_> = ["14", "0"]
        .into_iter()
        .map(|status| {
            service(move |line, call| {
                if status == "0" {
                    // It takes a moment for its work.
                    let since = now();
                    while now().since(since) < Duration::from_millis(5) {
                        std::thread::yield_now();
                    }
                    answer(line, call.stream, b"", status);
                } else {
                    refuse(line, call.stream, status, &[]);
                }
            })
        })
        .collect();
    let keel = keel(&[&backends[0], &backends[1]], |config| {
        config.targets[0].resilience.outlier = None;
        config.targets[0].resilience.breaker = None;
        config.targets[0].resilience.retries = None;
        config.targets[0].balance.algorithm = Balance::PeakEwma;
    });
    let client = H2Client::connect(keel.address());
    let ended: Vec<_> = (0..200).map(|_| unary(&client, "/a.B/C", &[], b"").status).collect();
    let good = ended.iter().filter(|status| **status == Some(0)).count();
    assert!(good > 150, "{good} of 200 went to the one that works");
}
