//! Backends that break HTTP/2, or leave in the middle of it: what each request hears, and what becomes of the others on the connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use evenkeel::config::model::resilience::{Hedging, Retries};
use evenkeel::net::now;
use evenkeel::proxy::http::h2::code::ErrorCode;
use evenkeel::proxy::http::h2::frame::{self, FrameHead};

use super::support::h2_backend::{BackendLine, RawH2, ask_all, is_well, keel};
use super::support::{Client, eventually};

#[test]
fn what_a_backend_that_leaves_has_not_begun_goes_to_it_again_on_another_connection() {
    let backend = RawH2::start(|number, line: &mut BackendLine| {
        line.settings(&[]);
        if number == 1 {
            let streams: Vec<_> = (0..3).map(|_| line.asked().unwrap()).collect();
            line.goaway(streams[0].stream, ErrorCode::NO_ERROR);
            line.answer(streams[0].stream, "first");
        }
        line.serve();
    });
    let keel = keel(&backend, |_| ());
    let mut answers: Vec<String> =
        ask_all(keel.address(), &["/a", "/b", "/c"]).iter().map(|answer| answer.text()).collect();
    answers.sort();
    assert_eq!(answers[2], "first", "{answers:?}");
    assert!(answers[..2].iter().all(|answer| ["/a", "/b", "/c"].contains(&answer.as_str())), "{answers:?}");
    is_well(&keel);
    assert_eq!(backend.connections(), 2);
}

#[test]
fn a_refused_stream_is_asked_again_whatever_its_method() {
    let backend = RawH2::start(|_, line| {
        line.settings(&[]);
        let mut refused = false;
        while let Some(asked) = line.asked() {
            if asked.method == "POST" && !refused {
                refused = true;
                line.reset(asked.stream, ErrorCode::REFUSED_STREAM);
            } else {
                line.answer(asked.stream, &asked.path);
            }
        }
    });
    let keel = keel(&backend, |_| ());
    let answer = keel.client().ask("POST /once HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    assert_eq!((answer.status, answer.text().as_str()), (200, "/once"));
    is_well(&keel);
    assert_eq!(backend.connections(), 1);
}

#[test]
fn a_backend_that_refuses_everything_is_a_502_and_asked_a_few_times() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let backend = RawH2::start(|_, line| {
        line.settings(&[]);
        while let Some(asked) = line.asked() {
            if asked.path == "/after" {
                line.answer(asked.stream, &asked.path);
            } else {
                ASKED.fetch_add(1, Ordering::AcqRel);
                line.reset(asked.stream, ErrorCode::REFUSED_STREAM);
            }
        }
    });
    let keel = keel(&backend, |config| config.targets[0].resilience.retries = Some(Retries::default()));
    assert_eq!(keel.client().get("/").status, 502);
    assert_eq!(ASKED.load(Ordering::Acquire), 3);
    is_well(&keel);
}

#[test]
fn a_reset_before_the_head_is_a_502_and_after_it_a_cut_body_and_others_go_on() {
    let is_asked = Arc::new(AtomicBool::new(false));
    let slow_is_asked = Arc::clone(&is_asked);
    let backend = RawH2::start(move |_, line| {
        line.settings(&[]);
        let slow = line.asked().unwrap();
        slow_is_asked.store(true, Ordering::Relaxed);
        while let Some(asked) = line.asked() {
            match asked.path.as_str() {
                "/before" => line.reset(asked.stream, ErrorCode::INTERNAL_ERROR),
                "/amid" => {
                    line.head(asked.stream, false, 200, &[("content-length", "10")]);
                    line.frame(frame::DATA, 0, asked.stream, b"half");
                    line.reset(asked.stream, ErrorCode::INTERNAL_ERROR);
                }
                "/unknown" => {
                    line.head(asked.stream, false, 200, &[]);
                    line.frame(frame::DATA, 0, asked.stream, b"half");
                    line.reset(asked.stream, ErrorCode::INTERNAL_ERROR);
                }
                "/go" => {
                    line.answer(slow.stream, "slow");
                    line.answer(asked.stream, &asked.path);
                }
                _ => line.answer(asked.stream, &asked.path),
            }
        }
    });
    let keel = keel(&backend, |_| ());
    let address = keel.address();
    thread::scope(|scope| {
        let slow = scope.spawn(move || Client::connect(address).get("/slow"));
        // Before that another request may overtake it.
        eventually("it is asked", || is_asked.load(Ordering::Relaxed));
        assert_eq!(keel.client().get("/before").status, 502);
        for path in ["/amid", "/unknown"] {
            let mut client = keel.client();
            client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
            let text = String::from_utf8_lossy(&client.rest()).into_owned();
            assert!(!text.ends_with("0\r\n\r\n"), "{path} looks whole: {text}");
        }
        assert_eq!(keel.client().get("/go").text(), "/go");
        assert_eq!(slow.join().unwrap().text(), "slow");
    });
    is_well(&keel);
    assert_eq!(backend.connections(), 1);
}

#[test]
fn an_answer_that_came_before_the_request_was_whole_is_passed_on_whole_when_the_rest_is_refused() {
    let backend = RawH2::start(|_, line| {
        line.settings(&[]);
        while let Some(asked) = line.asked() {
            line.answer(asked.stream, &asked.path);
            if !asked.ended {
                line.reset(asked.stream, ErrorCode::NO_ERROR);
            }
        }
    });
    let keel = keel(&backend, |_| ());
    let mut client = keel.client();
    client.send("POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nbeginning");
    let answer = client.answer();
    assert_eq!((answer.status, answer.text().as_str()), (200, "/early"));
    is_well(&keel);
    assert_eq!(backend.connections(), 1);
}

/// What breaks a connection breaks its streams, and the next one is fine.
fn breaks_the_connection(fault: fn(&mut BackendLine, u32)) {
    let backend = RawH2::start(move |number, line| {
        line.settings(&[]);
        if number == 1 {
            let asked = line.asked().unwrap();
            fault(line, asked.stream);
            while line.next().is_some() {}
        }
        line.serve();
    });
    let keel = keel(&backend, |_| ());
    assert_eq!(keel.client().get("/").status, 502);
    is_well(&keel);
    assert_eq!(backend.connections(), 2);
}

#[test]
fn frames_that_have_no_place_end_the_connection() {
    breaks_the_connection(|line, _| line.frame(frame::DATA, 0, 0, b"x"));
    breaks_the_connection(|line, stream| {
        line.frame(frame::PUSH_PROMISE, frame::END_HEADERS, stream, &[0, 0, 0, 2, 0x88]);
    });
    breaks_the_connection(|line, _| line.frame(frame::HEADERS, 5, 99, &[0x88]));
    breaks_the_connection(|line, stream| line.frame(frame::HEADERS, 5, stream, &[0xff, 0xff, 0xff]));
    breaks_the_connection(|line, stream| {
        line.frame(frame::HEADERS, 0, stream, &[0x88]);
        for _ in 0..100 {
            line.frame(frame::CONTINUATION, 0, stream, &[]);
        }
    });
    breaks_the_connection(|line, _| {
        for _ in 0..10_000 {
            line.frame(frame::PING, 0, 0, b"12345678");
        }
    });
    breaks_the_connection(|line, stream| {
        // Each counts as much as the table lets it.
        line.frame(frame::HEADERS, 0, stream, b"\x88\x40\x01x\x7f\x91\x1e");
        line.frame(frame::CONTINUATION, 0, stream, &[b'y'; 4000]);
        line.frame(frame::CONTINUATION, 4, stream, &[0xbe; 12000]);
    });
}

#[test]
fn answers_that_are_none_are_a_502_and_harm_no_other_stream() {
    let backend = RawH2::start(|_, line| {
        line.settings(&[]);
        while let Some(asked) = line.asked() {
            let id = asked.stream;
            match asked.path.as_str() {
                "/no-status" => line.frame(frame::HEADERS, 5, id, b"\x00\x01x\x01y"),
                "/101" => line.head(id, true, 101, &[]),
                "/connection" => line.head(id, true, 200, &[("connection", "close")]),
                "/chunked" => line.head(id, false, 200, &[("transfer-encoding", "chunked")]),
                "/two-lengths" => {
                    line.head(id, false, 200, &[("content-length", "1"), ("content-length", "2")])
                }
                "/data-first" => line.frame(frame::DATA, 1, id, b"x"),
                "/interim-end" => line.head(id, true, 103, &[]),
                "/interims" => (0..40).for_each(|_| line.head(id, false, 103, &[("link", "x")])),
                "/no-body" => line.head(id, true, 200, &[("content-length", "7")]),
                _ => line.answer(id, &asked.path),
            }
        }
    });
    let keel = keel(&backend, |_| ());
    let paths = [
        "/no-status",
        "/101",
        "/connection",
        "/chunked",
        "/two-lengths",
        "/data-first",
        "/interim-end",
        "/no-body",
    ];
    for path in paths {
        assert_eq!(keel.client().get(path).status, 502, "{path}");
        assert_eq!(keel.client().get("/fine").text(), "/fine", "behind {path}");
    }
    assert_eq!(keel.client().send("GET /interims HTTP/1.1\r\nHost: a\r\n\r\n").final_answer().status, 502);
    is_well(&keel);
    assert_eq!(backend.connections(), 1);
}

#[test]
fn a_short_answer_of_unknown_length_reached_clients_of_http_1_1_without_its_chunks() {
    let backend = RawH2::start(|_, line| {
        line.settings(&[]);
        while let Some(asked) = line.asked() {
            line.head(asked.stream, false, 200, &[]);
            line.frame(frame::DATA, frame::END_STREAM, asked.stream, b"short");
        }
    });
    let keel = keel(&backend, |_| ());
    let mut client = keel.client();
    for _ in 0..20 {
        let answer = client.get("/");
        assert_eq!((answer.text().as_str(), answer.cut), ("short", false), "{}", answer.head);
        assert_eq!(answer.header("transfer-encoding"), Some("chunked"), "{}", answer.head);
    }
}

#[test]
fn a_body_that_is_longer_or_shorter_than_its_length_is_visibly_cut() {
    let backend = RawH2::start(|_, line| {
        line.settings(&[]);
        while let Some(asked) = line.asked() {
            let id = asked.stream;
            match asked.path.as_str() {
                "/longer" | "/shorter" => {
                    line.head(id, false, 200, &[("content-length", "5")]);
                    let body: &[u8] = if asked.path == "/longer" { b"sixsix" } else { b"four" };
                    line.frame(frame::DATA, 1, id, body);
                }
                _ => line.answer(id, &asked.path),
            }
        }
    });
    let keel = keel(&backend, |_| ());
    for path in ["/longer", "/shorter"] {
        let mut client = keel.client();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
        let text = String::from_utf8_lossy(&client.rest()).into_owned();
        let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        assert!(text.starts_with("HTTP/1.1 502") || body.len() < 5, "{path}: {text}");
    }
    is_well(&keel);
    assert_eq!(backend.connections(), 1);
}

#[test]
fn a_backend_that_says_nothing_is_a_504_and_its_connection_serves_on() {
    let backend = RawH2::start(|_, line| {
        line.settings(&[]);
        let _silent = line.asked().unwrap();
        line.serve();
    });
    let keel = keel(&backend, |config| config.targets[0].timeouts.first_byte = Duration::from_secs(3));
    assert_eq!(keel.client().get("/").status, 504);
    is_well(&keel);
    assert_eq!(backend.connections(), 1);
}

#[test]
fn an_answer_in_many_small_frames_is_no_flood() {
    let backend = RawH2::start(|_, line| {
        line.settings(&[]);
        while let Some(asked) = line.asked() {
            if asked.path != "/rows" {
                line.answer(asked.stream, &asked.path);
                continue;
            }
            line.head(asked.stream, false, 200, &[]);
            let mut frames = Vec::new();
            FrameHead { length: 20, kind: frame::DATA, flags: 0, stream: asked.stream }.write(&mut frames);
            frames.extend_from_slice(b"a row of twenty byte");
            // As many as the window of the stream takes.
            for _ in 0..120 {
                line.send(&frames.repeat(100));
            }
            line.frame(frame::DATA, frame::END_STREAM, asked.stream, b"");
        }
    });
    let keel = keel(&backend, |_| ());
    assert_eq!(keel.client().get("/rows").body.len(), 12_000 * 20);
    is_well(&keel);
    assert_eq!(backend.connections(), 1);
}

#[test]
fn what_comes_late_for_a_request_that_was_given_up_harms_nobody() {
    let backend = RawH2::start(|_, line| {
        line.settings(&[]);
        let given_up = line.asked().unwrap();
        let mut count = 0;
        while let Some(asked) = line.asked() {
            count += 1;
            if count == 400 {
                // More streams ago than anybody remembers.
                line.head(given_up.stream, false, 200, &[("x-late", "yes")]);
                line.frame(frame::DATA, 0, given_up.stream, b"late");
            }
            line.answer(asked.stream, &asked.path);
        }
    });
    let keel = keel(&backend, |_| ());
    let mut client = keel.client();
    client.send("GET /given-up HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("it is asked", || keel.server.targets()[0].backends[0].in_flight() == 1);
    drop(client);
    eventually("it is given up", || keel.server.targets()[0].backends[0].in_flight() == 0);
    let mut client = keel.client();
    for _ in 0..410 {
        assert_eq!(client.get("/x").text(), "/x");
    }
    is_well(&keel);
    assert_eq!(backend.connections(), 1);
}

#[test]
fn an_answer_whose_head_is_too_large_is_a_502_and_harms_no_other_stream() {
    let backend = RawH2::start(|_, line| {
        line.settings(&[]);
        while let Some(asked) = line.asked() {
            if asked.path != "/large" {
                line.answer(asked.stream, &asked.path);
                continue;
            }
            let mut block = vec![0x88];
            for _ in 0..8 {
                // A literal of 12,000 bytes.
                block.extend_from_slice(b"\x00\x01x\x7f\xe1\x5c");
                block.extend_from_slice(&[b'y'; 12_000]);
            }
            for (place, part) in block.chunks(16_000).enumerate() {
                let kind = if place == 0 { frame::HEADERS } else { frame::CONTINUATION };
                let is_last = (place + 1) * 16_000 >= block.len();
                line.frame(kind, if is_last { frame::END_HEADERS } else { 0 }, asked.stream, part);
            }
        }
    });
    let keel = keel(&backend, |_| ());
    assert_eq!(keel.client().get("/large").status, 502);
    is_well(&keel);
    assert_eq!(backend.connections(), 1);
}

#[test]
fn it_is_noted_when_an_answer_begins() {
    let backend = RawH2::start(|_, line| {
        line.settings(&[]);
        line.serve();
    });
    let keel = keel(&backend, |config| {
        config.targets[0].resilience.hedging = Some(Hedging { budget: 100, ..Hedging::default() });
    });
    let mut client = keel.client();
    let pace = || keel.server.targets()[0].state.pace.percentile(95, now());
    while pace().is_none() {
        assert_eq!(client.get("/x").status, 200);
    }
    assert!(pace().unwrap() > Duration::ZERO);
}

#[test]
fn a_login_that_a_backend_offers_is_not_begun_on_a_shared_connection() {
    let backend = RawH2::start(|_, line| {
        line.settings(&[]);
        while let Some(asked) = line.asked() {
            if asked.path == "/login" {
                line.head(asked.stream, true, 401, &[("www-authenticate", "NTLM")]);
            } else {
                line.answer(asked.stream, &asked.path);
            }
        }
    });
    let keel = keel(&backend, |_| ());
    let answer = keel.client().get("/login");
    assert!(answer.status == 421 && answer.text().contains("needs_http_1_1"), "{}", answer.text());
    is_well(&keel);
    assert_eq!(backend.connections(), 1);
}

#[test]
fn answers_without_a_body_are_whole_whatever_length_they_speak_of() {
    let backend = RawH2::start(|_, line| {
        line.settings(&[]);
        while let Some(asked) = line.asked() {
            match asked.path.as_str() {
                "/head" => line.head(asked.stream, true, 200, &[("content-length", "1000")]),
                "/204" => line.head(asked.stream, true, 204, &[]),
                "/304" => {
                    line.head(asked.stream, true, 304, &[("content-length", "1000"), ("etag", "\"x\"")])
                }
                "/empty" => line.head(asked.stream, true, 200, &[]),
                _ => line.answer(asked.stream, &asked.path),
            }
        }
    });
    let keel = keel(&backend, |_| ());
    let mut client = keel.client();
    client.send("HEAD /head HTTP/1.1\r\nHost: a\r\n\r\n");
    let answer = client.answer_to_head();
    assert_eq!((answer.status, answer.header("content-length")), (200, Some("1000")));
    for (path, status) in [("/204", 204), ("/304", 304), ("/empty", 200)] {
        let answer = client.get(path);
        assert_eq!((answer.status, answer.body.len()), (status, 0), "{path}");
    }
    assert_eq!(client.get("/fine").text(), "/fine", "on the same connection");
    assert_eq!(backend.connections(), 1);
}
