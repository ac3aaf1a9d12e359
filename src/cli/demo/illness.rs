//! The ways in which a backend falls ill: what it does then, and where that is to be seen.

use std::time::Duration;

use fake_backend::{Behaviour, Fault, Running};

/// How long one takes that is slow.
const SLOW: Duration = Duration::from_millis(400);
/// Which share of the answers is held up, and for how long.
const STALLS: (f64, Duration) = (0.15, Duration::from_millis(1_500));

/// While there is one, its backend is ill.
#[must_use]
pub(super) struct Ill<'a> {
    backend: &'a Running,
    usual: Behaviour,
}

impl Drop for Ill<'_> {
    fn drop(&mut self) {
        self.backend.behave(self.usual.clone());
        // Nothing happens where it listens. Where it does not, its port was held for it.
        let _ = self.backend.restart();
    }
}

/// One way to be ill. But for the first, health checks go on to pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Illness {
    /// Nobody listens at its port.
    Refuses,
    /// Each request gets a 500.
    Fails,
    /// All answers take long.
    IsSlow,
    /// Some answers take very long.
    Stalls,
    /// Answers end in their middle.
    BreaksOff,
}

impl Illness {
    /// The order in which they take turns.
    pub(super) const ALL: [Illness; 5] =
        [Illness::Refuses, Illness::Fails, Illness::IsSlow, Illness::Stalls, Illness::BreaksOff];

    /// Has a backend fall ill, until what comes back is dropped.
    pub(super) fn befall(self, backend: &Running) -> Ill<'_> {
        let usual = backend.behaviour();
        let ill = match self {
            Illness::Refuses => {
                backend.stop();
                return Ill { backend, usual };
            }
            Illness::Fails => Behaviour { status: 500, ..usual.clone() },
            Illness::IsSlow => usual.clone().latency(SLOW),
            Illness::Stalls => usual.clone().stall(STALLS.0, STALLS.1),
            Illness::BreaksOff => Behaviour { fault: Some(Fault::CloseMidBody), ..usual.clone() },
        };
        backend.behave(ill.sparing_health());
        Ill { backend, usual }
    }

    /// What the backend does now, and where to look.
    pub(super) fn told(self) -> &'static str {
        match self {
            Illness::Refuses => "refuses connections: see it go down on the page, and in `evenkeel status`",
            Illness::Fails => {
                "answers 500, but to health checks: see it left out on the page, and `evenkeel why`"
            }
            Illness::IsSlow => {
                "takes 400 ms: see its p99 on the page, `evenkeel why --slow`, and soon how it is left out"
            }
            Illness::Stalls => "stalls now and then: see its p99 on the page, and `evenkeel why --slow`",
            Illness::BreaksOff => {
                "breaks off its answers: see it left out on the page, and `evenkeel why --cause answer_cut`"
            }
        }
    }

    /// What it does when that is over.
    pub(super) fn over(self) -> &'static str {
        match self {
            Illness::Refuses => "listens again: see it come back",
            Illness::Fails | Illness::IsSlow | Illness::BreaksOff => {
                "is well again: it gets requests once it is left out no more"
            }
            Illness::Stalls => "is well again: see its p99 fall",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    use fake_backend::Fake;

    use super::*;

    /// The answer to a request; `None`: nobody listens.
    fn ask(backend: &Running, path: &str) -> Option<String> {
        let mut socket = TcpStream::connect(backend.addr()).ok()?;
        write!(socket, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        let _ = socket.read_to_string(&mut text);
        Some(text)
    }

    fn is_well(backend: &Running) -> bool {
        ["/", "/health"]
            .iter()
            .all(|path| ask(backend, path).is_some_and(|text| text.starts_with("HTTP/1.1 200 ")))
            && ask(backend, "/").is_some_and(|text| text.ends_with("Hello from one"))
    }

    #[test]
    fn each_illness_is_as_it_is_told_spares_health_checks_and_passes() {
        let usual = Behaviour::default().latency(Duration::from_millis(1));
        let backend = Fake::http("one").behave(usual.clone()).start_in_thread().unwrap();
        for illness in Illness::ALL {
            assert!(is_well(&backend), "before {illness:?}");
            let ill = illness.befall(&backend);
            let (answer, health) = (ask(&backend, "/"), ask(&backend, "/health"));
            match illness {
                Illness::Refuses => assert_eq!((&answer, &health), (&None, &None)),
                _ => assert!(health.is_some_and(|text| text.starts_with("HTTP/1.1 200 ")), "{illness:?}"),
            }
            let (now, answer) = (backend.behaviour(), answer.unwrap_or_default());
            match illness {
                Illness::Refuses => {}
                Illness::Fails => assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}"),
                Illness::IsSlow => assert_eq!(now.latency, usual.clone().latency(SLOW).latency),
                Illness::Stalls => {
                    assert!(now.stall.is_some_and(|stall| (stall.share, stall.time) == STALLS));
                }
                Illness::BreaksOff => assert!(answer.ends_with("Hello f"), "{answer}"),
            }
            drop(ill);
            assert_eq!(backend.behaviour(), usual);
        }
        assert!(is_well(&backend));
    }
}
