//! How many connections a backend of HTTP/2 gets: what it takes of streams on each, and how they end.

use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use evenkeel::proxy::http::h2::code::ErrorCode;
use evenkeel::proxy::http::h2::frame::{self};

use super::support::h2_backend::{RawH2, ask_all, is_well, keel};
use super::support::{Client, PATIENCE};

#[test]
fn a_backend_that_takes_no_streams_for_a_while_is_waited_for() {
    let backend = RawH2::start(|_, line| {
        line.settings(&[]);
        let first = line.asked().unwrap();
        line.settings(&[(frame::MAX_CONCURRENT_STREAMS, 1), (frame::INITIAL_WINDOW_SIZE, 0)]);
        line.answer(first.stream, &first.path);
        let upload = line.asked().unwrap();
        // No window: its body waits.
        line.settings(&[(frame::INITIAL_WINDOW_SIZE, 5)]);
        let next = loop {
            let came = line.next().unwrap();
            assert_eq!(came.kind, frame::DATA);
            if came.flags & frame::END_STREAM != 0 {
                break came;
            }
            let mut bytes = Vec::new();
            frame::window_update(&mut bytes, came.stream, came.payload.len() as u32);
            line.send(&bytes);
        };
        assert_eq!(next.stream, upload.stream);
        line.answer(upload.stream, &upload.path);
        line.serve();
    });
    let keel = keel(&backend, |_| ());
    let mut client = keel.client();
    assert_eq!(client.get("/first").text(), "/first");
    assert_eq!(client.post("/upload", b"twelve bytes").text(), "/upload");
    is_well(&keel);
    assert_eq!(backend.connections(), 1);
}

#[test]
fn beyond_the_streams_that_a_backend_takes_the_next_connection_is_made() {
    let backend = RawH2::start(|_, line| {
        line.settings(&[(frame::MAX_CONCURRENT_STREAMS, 2)]);
        line.serve();
    });
    let keel = keel(&backend, |_| ());
    // Before it has said so it is trusted to take more.
    assert_eq!(keel.client().get("/").status, 200);
    let address = keel.address();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(move || {
                let mut client = Client::connect(address);
                for _ in 0..50 {
                    assert_eq!(client.get("/x").text(), "/x");
                }
            });
        }
    });
    assert!((2..=8).contains(&backend.connections()), "{}", backend.connections());
    is_well(&keel);
}

#[test]
fn a_connection_is_found_for_all_of_a_crowd_however_few_streams_a_backend_takes() {
    let backend = RawH2::start(|_, line| {
        line.settings(&[(frame::MAX_CONCURRENT_STREAMS, 2)]);
        line.serve();
    });
    let keel = keel(&backend, |config| config.targets[0].timeouts.connect = Duration::from_secs(60));
    let answers = ask_all(keel.address(), &["/x"; 60]);
    assert!(answers.iter().all(|answer| answer.text() == "/x"));
    is_well(&keel);
}

#[test]
fn a_backend_that_closes_whatever_it_accepts_is_not_dialled_without_end() {
    let backend = RawH2::start(|_, line| line.goaway(0, ErrorCode::NO_ERROR));
    let keel = keel(&backend, |_| ());
    let answers = ask_all(keel.address(), &["/x"; 5]);
    assert!(answers.iter().all(|answer| matches!(answer.status, 502 | 503)), "{answers:?}");
    // Each is tried again a few times, and none of them makes connections for as long as it may wait.
    assert!(backend.connections() <= 20, "{}", backend.connections());
}

#[test]
fn whoever_ends_says_so_to_its_backends() {
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(tell);
    let backend = RawH2::start(move |_, line| {
        line.settings(&[]);
        let asked = line.asked().unwrap();
        line.answer(asked.stream, "x");
        while let Some(came) = line.next() {
            let _ = tell.lock().unwrap().send(came.kind);
        }
    });
    let keel = keel(&backend, |_| ());
    assert_eq!(keel.client().get("/").status, 200);
    drop(keel);
    assert_eq!(told.recv_timeout(PATIENCE).unwrap(), frame::GOAWAY);
}
