//! A backend that dies at every point of a request: what may be repeated is, and a POST of which a byte was sent never.

use std::time::Duration;

use evenkeel::config::model::Protocol;
use evenkeel::config::model::resilience::Retries;
use fake_backend::{Fake, Running};

use super::retry_lab::{Mortal, Point, at_once, first_always};
use super::support::{self, Answer, Keel, PATIENCE};

/// What is asked for with a method: its head is so long, and its body so many bytes.
#[derive(Clone, Copy, Debug)]
struct Request {
    method: &'static str,
    body: &'static str,
    idempotent: bool,
}

const REQUESTS: [Request; 6] = [
    Request { method: "GET", body: "", idempotent: true },
    Request { method: "PUT", body: "0123456789", idempotent: true },
    Request { method: "DELETE", body: "", idempotent: true },
    Request { method: "POST", body: "0123456789", idempotent: false },
    Request { method: "POST", body: "", idempotent: false },
    Request { method: "PATCH", body: "0123456789", idempotent: false },
];

impl Request {
    fn text(&self, number: usize) -> String {
        let Request { method, body, .. } = self;
        let length =
            if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        format!("{method} /{number} HTTP/1.1\r\nHost: test\r\n{length}\r\n{body}")
    }
}

/// A backend that dies, one that lives, and the proxy before both.
struct Scene {
    mortal: Mortal,
    second: Running,
    keel: Keel,
    asked: usize,
}

impl Scene {
    fn new(retries: Retries, first_byte: Duration) -> Scene {
        let (mortal, second) = (Mortal::start(), Fake::http("second").record().start_in_thread().unwrap());
        let mut config = support::config(Protocol::Http, &[mortal.address, second.addr()]);
        first_always(&mut config, retries);
        config.targets[0].timeouts.first_byte = first_byte;
        Scene { mortal, second, keel: Keel::start(&config), asked: 0 }
    }

    /// Asks while the first backend dies at `point`, on a connection that has served before if `pooled`; then holds what
    /// happened to what may happen.
    fn ask(&mut self, request: Request, point: Point, reset: bool, pooled: bool) -> Answer {
        let mut client = self.keel.client();
        if pooled {
            self.mortal.dies(Point::Never, false);
            assert_eq!(client.get("/before").text(), "first");
        }
        self.asked += 1;
        self.mortal.dies(point, reset);
        let answer = client.send(request.text(self.asked)).answer();
        let what = format!("{request:?} {point:?} reset={reset} pooled={pooled}: {answer:?}");
        let reached = self.second.take_requests();
        assert!(reached.len() <= 1, "{what}");
        if let [again] = &reached[..] {
            assert!(again.head_text().contains(&format!(" /{} ", self.asked)), "{what}");
            assert_eq!(again.body, request.body.as_bytes(), "{what}");
            assert_eq!((answer.status, answer.cut), (200, false), "{what}");
            assert!(
                request.idempotent || self.mortal.seen().is_empty(),
                "a byte was sent, and it was repeated: {what}"
            );
        }
        if request.idempotent && !matches!(point, Point::MidHead | Point::MidBody) {
            assert_eq!(reached.len(), 1, "it may be repeated, and was not: {what}");
        }
        if !request.idempotent && !matches!(point, Point::Accept) {
            assert!(reached.is_empty() && (answer.status != 200 || answer.cut), "{what}");
        }
        answer
    }
}

fn everything() -> Retries {
    // A token for each request: the share is not what this is about.
    Retries { budget: 100, on_timeout: true, ..at_once() }
}

#[test]
fn a_post_of_which_a_byte_was_sent_is_never_repeated_wherever_the_backend_dies() {
    let mut scene = Scene::new(everything(), PATIENCE);
    for request in REQUESTS {
        // As long as the request is on its way to the backend.
        scene.mortal.dies(Point::Never, false);
        assert_eq!(scene.keel.client().send(request.text(0)).answer().text(), "first");
        let length = scene.mortal.seen().len();
        assert!(length > 150, "{length}");
        for count in 0..=length {
            scene.ask(request, Point::After(count), count % 2 == 0, count % 3 == 0);
        }
        for point in [Point::Whole, Point::MidHead, Point::MidBody, Point::Unavailable] {
            for (reset, pooled) in [(false, false), (true, false), (false, true), (true, true)] {
                scene.ask(request, point, reset, pooled);
            }
        }
    }
}

#[test]
fn nor_by_a_backend_that_accepts_and_closes() {
    for request in REQUESTS {
        for reset in [false, true] {
            // A connection that is reset at once may look refused, and then the backend is left alone for a while.
            let mut scene = Scene::new(everything(), PATIENCE);
            scene.ask(request, Point::Accept, reset, false);
        }
    }
}

#[test]
fn nor_is_one_whose_answer_does_not_come_in_time() {
    let mut scene = Scene::new(everything(), Duration::from_secs(2));
    for request in [REQUESTS[0], REQUESTS[1], REQUESTS[3]] {
        let answer = scene.ask(request, Point::Silent, false, false);
        assert_eq!(answer.status, if request.idempotent { 200 } else { 504 });
    }
}
