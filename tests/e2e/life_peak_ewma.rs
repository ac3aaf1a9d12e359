//! `peak_ewma`: what backends answer is heard by the next picks.

use evenkeel::config::model::{Balance, Config};
use fake_backend::{Behaviour, Ending, Fault};

use super::support::{Keel, fakes};

fn by_answers(config: &mut Config) {
    config.targets[0].balance = Balance::PeakEwma.into();
    // Else a 503 is asked again elsewhere, and nobody sees it.
    config.targets[0].resilience.retries = None;
}

#[test]
fn a_backend_that_fails_fast_gets_hardly_any_requests() {
    let backends = fakes(3);
    backends[0].behave(Behaviour::status(500));
    let keel = Keel::with(&[&backends[0], &backends[1], &backends[2]], by_answers);
    let mut client = keel.client();
    let failed = (0..300).filter(|_| client.get("/").status == 500).count();
    assert!((1..=15).contains(&failed), "{failed}");
    // Nobody is left who would do better.
    backends[1].behave(Behaviour::status(500));
    backends[2].behave(Behaviour::status(500));
    assert!((0..30).all(|_| client.get("/").status == 500));
}

#[test]
fn a_backend_that_asks_for_it_is_left_alone() {
    for (status, lines) in [
        ("503 Service Unavailable", "Retry-After: 60"),
        ("429 Too Many Requests", "Retry-After: 60"),
        // By its own clock, which is a little late.
        (
            "503 Service Unavailable",
            "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nRetry-After: Sun, 06 Nov 1994 08:50:37 GMT",
        ),
    ] {
        let backends = fakes(2);
        let answer = format!("HTTP/1.1 {status}\r\n{lines}\r\nContent-Length: 0\r\n\r\n");
        let raw = Fault::Raw { bytes: answer.into_bytes(), ending: Ending::KeepOpen };
        backends[0].behave(Behaviour::fault(raw));
        let keel = Keel::with(&[&backends[0], &backends[1]], by_answers);
        let mut client = keel.client();
        // Both are new, so each gets one of the first two.
        let answers: Vec<u16> = (0..60).map(|_| client.get("/").status).collect();
        assert_eq!(answers.iter().filter(|&&status| status != 200).count(), 1, "{answers:?}");
        assert!(answers[2..].iter().all(|&status| status == 200), "{answers:?}");
    }
}
