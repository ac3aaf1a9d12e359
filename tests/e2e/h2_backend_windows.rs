//! Backends of HTTP/2 that take little, or make work: what waits for them waits alone, and not for ever.

use std::time::Duration;

use evenkeel::proxy::http::h2::frame;

use super::support::h2_backend::{BackendLine, RawH2, is_well, keel};
use super::support::{Keel, eventually};

fn open_window(line: &mut BackendLine, stream: u32, bytes: u32) {
    let mut update = Vec::new();
    frame::window_update(&mut update, stream, bytes);
    line.send(&update);
}

/// Serves uploads to `/up` with windows that `open` makes, and all else at once.
fn serve(line: &mut BackendLine, mut open: impl FnMut(&mut BackendLine, u32, usize)) {
    let (mut upload, mut body) = (0, Vec::new());
    while let Some(came) = line.next() {
        match came.kind {
            frame::HEADERS => {
                let asked = line.request(&came);
                if asked.path == "/up" {
                    (upload, body) = (asked.stream, Vec::new());
                    open(line, upload, 0);
                } else {
                    line.answer(asked.stream, &asked.path);
                }
            }
            frame::DATA => {
                body.extend_from_slice(&came.payload);
                if came.flags & frame::END_STREAM != 0 {
                    line.answer(came.stream, &String::from_utf8(body.clone()).unwrap());
                } else {
                    open(line, upload, body.len());
                }
            }
            _ => {}
        }
    }
}

/// What a backend takes is known once it has answered.
fn greeted(keel: &Keel) {
    assert_eq!(keel.client().get("/hello").text(), "/hello");
}

const UPLOAD: &str = "POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789";

#[test]
fn a_body_goes_out_as_its_windows_allow_however_small_they_are() {
    let backend = RawH2::start(|_, line| {
        line.settings(&[(frame::INITIAL_WINDOW_SIZE, 0)]);
        serve(line, |line, stream, _| open_window(line, stream, 1));
    });
    let keel = keel(&backend, |_| ());
    greeted(&keel);
    for _ in 0..3 {
        let answer = keel.client().ask(UPLOAD);
        assert_eq!((answer.status, answer.text().as_str()), (200, "0123456789"));
    }
    is_well(&keel);
    assert_eq!(backend.connections(), 1);
}

#[test]
fn a_window_that_shrinks_below_nothing_holds_up_its_stream_alone_until_it_grows() {
    let backend = RawH2::start(|_, line| {
        // The one that has been used up is taken away as well, before the upload is through.
        line.settings(&[(frame::INITIAL_WINDOW_SIZE, 4)]);
        serve(line, |line, _, had| match had {
            0 => line.settings(&[(frame::INITIAL_WINDOW_SIZE, 0)]),
            4 => line.settings(&[(frame::INITIAL_WINDOW_SIZE, 7)]),
            _ => line.settings(&[(frame::INITIAL_WINDOW_SIZE, 100)]),
        });
    });
    let keel = keel(&backend, |_| ());
    greeted(&keel);
    let answer = keel.client().ask(UPLOAD);
    assert_eq!((answer.status, answer.text().as_str()), (200, "0123456789"));
    is_well(&keel);
    assert_eq!(backend.connections(), 1);
}

#[test]
fn a_window_that_is_never_opened_is_waited_for_for_a_while_and_others_are_served_meanwhile() {
    let backend = RawH2::start(|_, line| {
        line.settings(&[(frame::INITIAL_WINDOW_SIZE, 0)]);
        serve(line, |_, _, _| ());
    });
    let keel = keel(&backend, |config| config.targets[0].timeouts.idle = Duration::from_secs(3));
    greeted(&keel);
    let mut client = keel.client();
    client.send(UPLOAD);
    eventually("it is there", || keel.server.targets()[0].backends[0].in_flight() == 1);
    for _ in 0..3 {
        assert_eq!(keel.client().get("/other").text(), "/other");
    }
    let answer = client.answer();
    assert_eq!(answer.status, 504, "{}", answer.text());
    is_well(&keel);
    assert_eq!(backend.connections(), 1, "a stream that is slow is no connection that is");
}

#[test]
fn a_backend_that_floods_us_with_pings_is_left() {
    let backend = RawH2::start(|number, line| {
        line.settings(&[]);
        if number == 1 {
            line.asked();
            let mut pings = Vec::new();
            (0..100_000).for_each(|_| frame::ping(&mut pings, 0, *b"anything"));
            line.send(&pings);
        }
        line.serve();
    });
    let keel = keel(&backend, |_| ());
    let answer = keel.client().get("/");
    assert_eq!(answer.status, 502, "{}", answer.text());
    is_well(&keel);
    assert_eq!(backend.connections(), 2);
}
