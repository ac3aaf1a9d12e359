//! Twelve things that backends do wrong: what the client is told, what the log says, and that it is over when it is over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use evenkeel::config::model::Resilience;
use evenkeel::message::Cause;
use fake_backend::{Behaviour, Ending, Fault, Running};

use super::life_lab::{assert_own, until_ended};
use super::support::{Client, Keel, eventually, fakes};

/// What goes wrong, what the client gets for it, and what the log calls it.
struct Case {
    name: &'static str,
    begin: fn(&Running),
    expected: Expected,
}

enum Expected {
    /// An answer of our own for this cause.
    Own(Cause),
    /// The same, or that no connection could be made: a reset may come before or after we know of it.
    OwnOrRefused(Cause),
    /// The backend's head, then a visible end before all of the body came, logged with this cause.
    Cut(Cause),
    /// The backend's own answer with this status.
    Passed(u16),
}

fn raw(bytes: &[u8], ending: Ending) -> Behaviour {
    Behaviour::fault(Fault::Raw { bytes: bytes.to_vec(), ending })
}

const HALF: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhalf of it";

fn cases() -> Vec<Case> {
    use Expected::{Cut, Own, OwnOrRefused, Passed};
    let case = |name, begin, expected| Case { name, begin, expected };
    vec![
        case("refuse", |fake| fake.stop(), Own(Cause::ConnectFailed)),
        case(
            "reset at connect",
            |fake| fake.behave(Behaviour::fault(Fault::ResetOnAccept)),
            OwnOrRefused(Cause::BackendClosed),
        ),
        case(
            "reset in the head",
            |fake| fake.behave(Behaviour::fault(Fault::ResetMidHead)),
            Own(Cause::BackendClosed),
        ),
        case("reset in the body", |fake| fake.behave(raw(HALF, Ending::Reset)), Cut(Cause::AnswerCut)),
        case("silent before the head", |fake| fake.behave(Behaviour::hang()), Own(Cause::FirstByteTimeout)),
        case(
            "silent in the body",
            |fake| fake.behave(raw(HALF, Ending::KeepOpen)),
            Cut(Cause::AnswerStalled),
        ),
        case("garbage", |fake| fake.behave(Behaviour::fault(Fault::Garbage)), Own(Cause::BadAnswer)),
        case(
            "drip",
            |fake| {
                let head = [&b"HTTP/1.1 200 OK\r\nX-Long: "[..], &[b'x'; 20_000]].concat();
                fake.behave(raw(&head, Ending::KeepOpen).pace(1, Duration::from_millis(1)));
            },
            // The time is for the whole head, not for its first byte.
            Own(Cause::FirstByteTimeout),
        ),
        case(
            "wrong length",
            |fake| fake.behave(Behaviour::fault(Fault::LengthTooLong).size(100)),
            Cut(Cause::AnswerCut),
        ),
        case("early close", |fake| fake.behave(raw(HALF, Ending::Close)), Cut(Cause::AnswerCut)),
        case("500", |fake| fake.behave(Behaviour::status(500)), Passed(500)),
    ]
}

/// In front of these backends, impatient, and with what the caller changes.
fn impatient(backends: &[&Running], change: impl FnOnce(&mut Resilience)) -> Keel {
    Keel::with(backends, |config| {
        let target = &mut config.targets[0];
        target.timeouts.first_byte = Duration::from_secs(2);
        target.timeouts.idle = Duration::from_secs(2);
        change(&mut target.resilience);
    })
}

#[test]
fn each_fault_is_told_as_what_it_is() {
    let cases = cases();
    assert_eq!(cases.len(), 11, "the twelfth is a flap");
    for Case { name, begin, expected } in cases {
        let fake = fakes(1).remove(0);
        let keel = impatient(&[&fake], |_| ());
        begin(&fake);
        let answer = keel.client().get("/");
        match expected {
            Expected::Own(cause) => {
                assert_own(&answer, cause);
                until_ended(&keel, cause, 1);
            }
            Expected::OwnOrRefused(cause) => {
                let refused = answer.text().contains(Cause::ConnectFailed.token());
                let cause = if refused { Cause::ConnectFailed } else { cause };
                assert_own(&answer, cause);
                until_ended(&keel, cause, 1);
            }
            Expected::Cut(cause) => {
                assert_eq!((answer.status, answer.cut), (200, true), "{name}: {answer:?}");
                until_ended(&keel, cause, 1);
            }
            Expected::Passed(status) => {
                assert_eq!((answer.status, answer.cut), (status, false), "{name}: {answer:?}");
                until_ended(&keel, Cause::Done, 1);
            }
        }
    }
}

/// While one of three backends does it, requests end one way or another, and when it is over that backend is used again.
#[test]
fn after_each_fault_the_backend_is_used_again() {
    for Case { name, begin, .. } in cases() {
        let backends = fakes(3);
        let keel = impatient(&[&backends[0], &backends[1], &backends[2]], |_| ());
        let served = |client: &mut Client| client.get("/").text();
        assert_eq!(served(&mut keel.client()), "Hello from fake-1", "{name}");
        begin(&backends[0]);
        let good: usize =
            (0..60).filter(|_| keel.client().get("/").text().starts_with("Hello from fake-")).count();
        // Five in a row until it is left out, and perhaps a trial or two.
        assert!(good >= 50, "{name}: {good} of 60");
        backends[0].behave(Behaviour::default());
        backends[0].restart().unwrap();
        eventually(name, || served(&mut keel.client()) == "Hello from fake-1");
    }
}

#[test]
fn a_backend_that_flaps_costs_requests_that_may_be_repeated_nothing() {
    let backends = fakes(3);
    let keel = impatient(&[&backends[0], &backends[1], &backends[2]], |_| ());
    let (done, address) = (AtomicBool::new(false), keel.address());
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut good = 0;
                    while !done.load(Ordering::Relaxed) {
                        let answer = Client::connect(address).get("/");
                        assert_eq!(answer.status, 200, "{answer:?}");
                        good += 1;
                    }
                    good
                })
            })
            .collect();
        for _ in 0..10 {
            let before = backends[1].requests();
            backends[0].stop_accepting();
            eventually("requests go elsewhere", || backends[1].requests() > before + 10);
            backends[0].restart().unwrap();
            let before = backends[1].requests();
            eventually("requests go on", || backends[1].requests() > before + 10);
        }
        done.store(true, Ordering::Relaxed);
        let good: usize = clients.into_iter().map(|client| client.join().unwrap()).sum();
        assert!(good > 200, "{good}");
    });
    eventually("it is used again", || keel.client().get("/").text() == "Hello from fake-1");
}
