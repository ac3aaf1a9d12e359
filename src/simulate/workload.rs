//! What is simulated: how requests come, how long they take, how the backends behave.

use core::time::Duration;

use crate::config::model::{HealthCheck, Portion, Resilience};

/// Everything about a run but the algorithm, the number of requests and the seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// A short name, in lower case.
    pub name: String,
    /// What it is about, in one line.
    pub about: String,
    /// The backends, at least one.
    pub backends: Vec<Fake>,
    /// How requests come.
    pub arrivals: Arrivals,
    /// The kinds of requests, by their shares.
    pub classes: Vec<Class>,
    /// Bytes of an answer.
    pub size: Spread,
    /// Bytes that an answer moves in a second, with nothing but itself on its way; 0: answers take no time to move.
    pub bandwidth: f64,
    /// For how long a backend counts as used behind an answer: the `timeouts.flow` of UDP, where requests are flows; zero: not at all.
    pub silence: Duration,
    /// Who sends the requests: what hash algorithms tell apart.
    pub clients: Clients,
    /// How backends are probed; `None`: not at all.
    pub health: Option<HealthCheck>,
    /// How long a backend that came back takes to get its full share.
    pub slow_start: Duration,
    /// What is done about backends that fail or do worse than their siblings. Of it the breaker, the outliers and the panic
    /// are simulated: retries, hedging, limits and the queue are not.
    pub resilience: Resilience,
}

impl Workload {
    /// The same without breaker and without outlier detection, so that a backend that fails gets requests like any other.
    #[must_use]
    pub fn unguarded(self) -> Workload {
        Workload { resilience: Resilience { breaker: None, outlier: None, ..self.resilience }, ..self }
    }
}

/// A simulated backend: a process with so many slots and one queue before them.
#[derive(Clone, Debug, PartialEq)]
pub struct Fake {
    /// How much it gets beside its siblings, and when.
    pub portion: Portion,
    /// Requests that it serves at once, at least 1; the others wait in order.
    pub slots: u32,
    /// How it behaves, from when on. Before the first phase it is well.
    pub phases: Vec<Phase>,
    /// After this time the phases begin anew; `None`: the last one stays.
    pub period: Option<Duration>,
}

impl Fake {
    /// One like any other that is always well.
    #[must_use]
    pub fn new(slots: u32) -> Fake {
        Fake { portion: Portion::default(), slots, phases: Vec::new(), period: None }
    }

    /// The same with this weight, 0 to 256.
    #[must_use]
    pub fn weighing(self, weight: u16) -> Fake {
        Fake { portion: Portion { weight, ..self.portion }, ..self }
    }

    /// One that always behaves like this.
    #[must_use]
    pub fn always(slots: u32, conduct: Conduct) -> Fake {
        Fake { phases: vec![Phase { from: Duration::ZERO, conduct }], ..Fake::new(slots) }
    }
}

/// A stretch of a backend's life.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// When it begins, from the start of the run or of the period.
    pub from: Duration,
    /// How the backend behaves from then on.
    pub conduct: Conduct,
}

/// How a backend behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Conduct {
    /// As it should.
    Well,
    /// Every request takes so many times as long.
    Slow(f64),
    /// Every request is answered with 500 after this time.
    FailsFast(Duration),
    /// This share of its requests, 0 to 1, is answered with 500 instead of what was worked out.
    Flaky(f64),
    /// No connection can be opened to it. Requests that it has are served to their end.
    Refuses,
    /// It begins so many times as slow as it should be, and gets better evenly.
    Warms {
        /// How many times as long the first request takes.
        factor: f64,
        /// How long it takes to be as fast as it should be.
        over: Duration,
    },
}

/// A kind of request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Class {
    /// How many of all requests are of it, beside the shares of the others.
    pub share: f64,
    /// How long a backend works on one, in seconds.
    pub service: Spread,
}

/// A Weibull distribution by its mean: what response times and sizes of real services look like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean, in the unit of what is drawn; 0: always 0.
    pub mean: f64,
    /// Below 1 a long tail, 1 exponential, above 1 a hump near the mean. Above 0.
    pub shape: f64,
}

/// How requests come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// Independent of each other and of the answers (Poisson): many users that do not know each other.
    Open {
        /// Requests in a second, above 0.
        rate: f64,
        /// Times when more of them come.
        burst: Option<Burst>,
    },
    /// So many clients that send the next request when they have the answer.
    Closed {
        /// How many, at least 1.
        clients: u32,
        /// How long they think in between on average (exponential).
        think: Duration,
    },
}

/// A rush that comes again and again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// How many times the usual rate.
    pub factor: f64,
    /// How long it lasts.
    pub lasts: Duration,
    /// From the beginning of one to the beginning of the next.
    pub every: Duration,
}

/// Who sends requests that come in an open loop. In a closed loop each client is one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clients {
    /// How many there are, at least 1.
    pub count: u32,
    /// Zipf's exponent: the n-th busiest sends n^-skew times as much as the busiest; 0: all the same.
    pub skew: f64,
}
