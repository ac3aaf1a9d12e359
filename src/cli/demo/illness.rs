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
            Illness::Refuses => "refuses connections: see it go down on the page and in `evenkeel status`",
            Illness::Fails => {
                "answers 500, its probes pass: see it ejected on the page, and `evenkeel why --last`"
            }
            Illness::IsSlow => {
                "takes 400 ms: see its p99 on the page, `evenkeel why --slow`, and its ejection in 10 s or so"
            }
            Illness::Stalls => "stalls now and then: see its p99 on the page, and `evenkeel why --slow`",
            Illness::BreaksOff => {
                "breaks off its answers: see it ejected on the page, and `evenkeel why --cause answer_cut`"
            }
        }
    }

    /// What it does when that is over.
    pub(super) fn over(self) -> &'static str {
        match self {
            Illness::Refuses => "listens again: see it come back",
            Illness::Fails | Illness::IsSlow | Illness::BreaksOff => {
                "is well again: it gets requests when the time of its ejection is over"
            }
            Illness::Stalls => "is well again: see its p99 fall",
        }
    }
}
