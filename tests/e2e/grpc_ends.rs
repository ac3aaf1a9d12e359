//! How calls of gRPC end when their backend does not end them: by time, by silence, and when it dies.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use evenkeel::config::model::resilience::Outlier;
use evenkeel::config::model::{Http2, Protocol, UpstreamProtocol};
use evenkeel::message::Cause;
use evenkeel::net::now;
use evenkeel::proxy::http::h2::code::ErrorCode;
use evenkeel::proxy::http::h2::frame;

use super::support::grpc::{self, HEAD, answer, begin, framed, is_left_alone, keel, service, unary};
use super::support::h2::H2Client;
use super::support::h2_backend::RawH2;
use super::support::port::Reserved;
use super::support::{Keel, config, eventually, fakes};

#[test]
fn what_ends_a_call_here_is_said_as_a_status_with_its_cause() {
    let reserved = Reserved::new();
    let gone = SocketAddr::from(([127, 0, 0, 1], reserved.number()));
    let mut dead = config(Protocol::Http, &[gone]);
    dead.listeners[0].http2 = Some(Http2::default());
    dead.targets[0].upstream = UpstreamProtocol::Grpc;
    let keel = Keel::start(&dead);
    let client = H2Client::connect(keel.address());
    let ended = unary(&client, "/a.B/C", &[], b"x");
    assert_eq!((ended.status, ended.trailers_only), (Some(14), true), "{ended:?}");
    assert!(ended.message.starts_with("No backend could be reached. cause: connect_failed"), "{ended:?}");
    // The web's form is another protocol, and so is everything else: they hear it in HTTP.
    for kind in ["application/grpc-web+proto", "application/json"] {
        let request = H2Client::request("POST", "/a.B/C").header("content-type", kind).body(()).unwrap();
        let answer = client.finish(client.begin(request, true).answer).unwrap();
        assert_eq!((answer.status, answer.header("grpc-status")), (503, None), "{kind}");
    }
    // The same where nobody is behind it that speaks gRPC.
    let backends = fakes(1);
    let keel = Keel::with(&[&backends[0]], |config| {
        config.listeners[0].http2 = Some(Http2::default());
        config.listeners[0].limits.body = Some(3);
    });
    let client = H2Client::connect(keel.address());
    let ended = unary(&client, "/a.B/C", &[], b"long");
    assert_eq!((ended.status, ended.trailers_only), (Some(8), true), "{ended:?}");
    assert!(ended.message.contains("cause: body_too_large"), "{ended:?}");
}

#[test]
fn a_call_ends_when_the_time_it_was_given_is_over_wherever_it_is() {
    let (resets, reset) = mpsc::channel();
    let resets = Mutex::new(resets);
    let backend = RawH2::start(move |_, line| {
        line.settings(&[]);
        let mut first = true;
        while let Some(came) = line.next() {
            match came.kind {
                frame::HEADERS if first => first = false,
                frame::HEADERS => {
                    line.head(came.stream, false, 200, &HEAD);
                    line.frame(frame::DATA, 0, came.stream, &framed(b"one"));
                }
                frame::RST_STREAM => {
                    let code = u32::from_be_bytes(came.payload.try_into().unwrap());
                    resets.lock().unwrap().send(code).unwrap();
                }
                _ => {}
            }
        }
    });
    let keel = keel(&[&backend], |_| ());
    let client = H2Client::connect(keel.address());
    // Before a head came, and between messages.
    for (messages, trailers_only, given) in
        [(Vec::new(), true, "2000m"), (vec![b"one".to_vec()], false, "2S")]
    {
        let mut call = begin(&client, "/a.B/C", &[("grpc-timeout", given)]);
        call.send(&client, b"x", trailers_only);
        let ended = call.end(&client).unwrap();
        assert_eq!((ended.status, ended.trailers_only), (Some(4), trailers_only), "{ended:?}");
        assert!(ended.message.contains("cause: grpc_timeout"), "{ended:?}");
        assert_eq!(ended.messages, messages);
        assert_eq!(reset.recv_timeout(Duration::from_secs(20)), Ok(ErrorCode::CANCEL.0));
    }
    is_left_alone(&keel);
    let backend = &keel.server.targets()[0].backends[0];
    assert_eq!(backend.condition(), evenkeel::targets::BackendCondition::Up, "it is no fault of the backend");
    eventually("it is counted", || keel.server.readings().ended_with(Cause::GrpcTimeout) == 2);
}

#[test]
fn every_stream_of_a_backend_that_dies_ends_as_unavailable() {
    let backend = RawH2::start(|number, line| {
        line.settings(&[(frame::MAX_CONCURRENT_STREAMS, 1000)]);
        let mut count = 0;
        while let Some(asked) = line.asked() {
            if number > 1 {
                answer(line, asked.stream, b"", "0");
                continue;
            }
            // Every other one has begun to answer.
            if count % 2 == 0 {
                line.head(asked.stream, false, 200, &HEAD);
                line.frame(frame::DATA, 0, asked.stream, &framed(b"one"));
            }
            count += 1;
            if count == 100 {
                return;
            }
        }
    });
    let keel = keel(&[&backend], |config| {
        config.targets[0].resilience.outlier = None;
        config.targets[0].resilience.breaker = None;
    });
    let client = H2Client::connect(keel.address());
    let calls: Vec<_> = (0..100)
        .map(|_| {
            let mut call = begin(&client, "/a.B/Both", &[]);
            call.send(&client, b"mine", false);
            call
        })
        .collect();
    for call in calls {
        let ended = call.end(&client).unwrap();
        assert_eq!(ended.status, Some(14), "{ended:?}");
        let cause = if ended.trailers_only { "backend_closed" } else { "answer_cut" };
        assert!(ended.message.contains(cause), "{ended:?}");
    }
    is_left_alone(&keel);
    assert_eq!(unary(&client, "/a.B/C", &[], b"x").status, Some(0));
}

#[test]
fn a_call_of_which_nobody_says_anything_for_the_time_of_a_tunnel_ends() {
    let backend = RawH2::start(|_, line| {
        line.settings(&[]);
        while let Some(asked) = line.asked() {
            line.head(asked.stream, false, 200, &HEAD);
        }
    });
    let keel = keel(&[&backend], |config| config.targets[0].timeouts.tunnel = Duration::from_millis(200));
    let client = H2Client::connect(keel.address());
    for last in [true, false] {
        let mut call = begin(&client, "/a.B/Both", &[]);
        call.send(&client, b"x", last);
        let ended = call.end(&client).unwrap();
        assert_eq!(ended.status, Some(14), "{ended:?}");
        assert!(ended.message.contains("cause: tunnel_idle"), "{ended:?}");
    }
    is_left_alone(&keel);
}

#[test]
fn a_call_that_is_given_no_time_reaches_no_backend() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let backend = service(move |line, call| {
        count.fetch_add(1, Ordering::AcqRel);
        answer(line, call.stream, b"", "0");
    });
    let keel = keel(&[&backend], |_| ());
    let client = H2Client::connect(keel.address());
    for given in ["0S", "1n"] {
        let ended = unary(&client, "/a.B/C", &[("grpc-timeout", given)], b"x");
        assert_eq!((ended.status, ended.trailers_only), (Some(4), true), "{ended:?}");
    }
    assert_eq!(unary(&client, "/a.B/C", &[("grpc-timeout", "20S")], b"x").status, Some(0));
    assert_eq!(asked.load(Ordering::Acquire), 1);
    is_left_alone(&keel);
}

#[test]
fn a_call_whose_client_reads_nothing_ends_when_its_time_is_over() {
    let backend = service(|line, call| {
        line.head(call.stream, false, 200, &HEAD);
        // More than the client's window, and less than evenkeel's.
        for _ in 0..20 {
            line.frame(frame::DATA, 0, call.stream, &[0; 8192]);
        }
    });
    let keel = keel(&[&backend], |_| ());
    let client = H2Client::with_window(keel.address(), 4096);
    let mut call = begin(&client, "/a.B/C", &[("grpc-timeout", "3S")]);
    call.send(&client, b"x", true);
    let (_, stream) = call.head(&client).unwrap();
    eventually("it is over", || keel.server.readings().ended_with(Cause::GrpcTimeout) == 1);
    is_left_alone(&keel);
    let ended = grpc::end_of(&client, stream).unwrap();
    assert_eq!(ended.status, Some(4), "{ended:?}");
}

#[test]
fn an_answer_of_no_length_has_its_status_and_its_failure_all_the_same() {
    let backend = service(|line, call| {
        line.head(call.stream, false, 200, &[HEAD[0], ("content-length", "0")]);
        if call.path.ends_with("Bad") {
            line.reset(call.stream, ErrorCode::INTERNAL_ERROR);
        } else {
            line.trailers(call.stream, &[("grpc-status", "5")]);
        }
    });
    let keel = keel(&[&backend], |config| config.targets[0].resilience.outlier = None);
    let client = H2Client::connect(keel.address());
    for (method, status) in [("/a.B/Good", 5), ("/a.B/Bad", 14), ("/a.B/Good", 5)] {
        let mut call = begin(&client, method, &[]);
        call.send(&client, b"x", true);
        let ended = call.end(&client).unwrap();
        assert_eq!(ended.status, Some(status), "{method}: {ended:?}");
    }
    is_left_alone(&keel);
}

/// As servers of gRPC do: they know the same deadline, and reset the stream when it has come.
#[test]
fn a_backend_that_ends_a_call_whose_time_is_over_is_not_to_blame() {
    let backend = service(|line, call| {
        if call.path.ends_with("Begun") {
            line.head(call.stream, false, 200, &HEAD);
            line.frame(frame::DATA, 0, call.stream, &framed(b"one"));
        }
        let since = now();
        while now().since(since) < Duration::from_millis(8) {
            std::thread::yield_now();
        }
        line.reset(call.stream, ErrorCode::CANCEL);
    });
    let keel = keel(&[&backend], |config| {
        config.targets[0].resilience.outlier = Some(Outlier { failures: 1, ..Outlier::default() });
    });
    let client = H2Client::connect(keel.address());
    for method in ["/a.B/Quiet", "/a.B/Begun", "/a.B/Quiet", "/a.B/Begun"] {
        let ended = unary(&client, method, &[("grpc-timeout", "4m")], b"x");
        assert_eq!(ended.status, Some(4), "{method}: {ended:?}");
    }
    is_left_alone(&keel);
    let backend = &keel.server.targets()[0].backends[0];
    assert_eq!(backend.condition(), evenkeel::targets::BackendCondition::Up);
}
