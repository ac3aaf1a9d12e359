//! The workloads that docs/balancing.md has figures of.

use core::time::Duration;

use super::workload::{Arrivals, Burst, Class, Clients, Conduct, Fake, Phase, Spread, Workload};
use crate::config::model::{HealthCheck, Resilience};

/// Requests in a second, each by itself.
fn open(rate: f64) -> Arrivals {
    Arrivals::Open { rate, burst: None }
}

/// So many seconds on average, spread as widely as the times between accidents.
fn taking(mean: f64) -> Vec<Class> {
    vec![Class { share: 1.0, service: Spread { mean, shape: 1.0 } }]
}

impl Workload {
    /// `backends` that are sent requests of 20 ms in an open loop: what the others are variations of.
    #[must_use]
    pub fn new(name: &str, about: &str, backends: Vec<Fake>, rate: f64) -> Workload {
        Workload {
            name: name.into(),
            about: about.into(),
            backends,
            arrivals: open(rate),
            classes: taking(0.020),
            // An answer of 16 KiB, some of them much longer, on a link of a gigabit.
            size: Spread { mean: 16_384.0, shape: 0.7 },
            bandwidth: 125_000_000.0,
            silence: Duration::ZERO,
            clients: Clients { count: 10_000, skew: 0.0 },
            health: None,
            slow_start: Duration::ZERO,
            resilience: Resilience::default(),
        }
    }

    /// The stock workloads, by which algorithms are compared.
    #[must_use]
    pub fn stock() -> Vec<Workload> {
        let mut all = vec![
            Workload::new("even", "5 backends with 2 slots, 80 % busy", vec![Fake::new(2); 5], 400.0),
            skewed_weights(),
            one_slow(),
            failing_fast(),
            flapping(),
            Workload {
                classes: vec![
                    Class { share: 0.9, service: Spread { mean: 0.002, shape: 1.0 } },
                    Class { share: 0.1, service: Spread { mean: 0.100, shape: 1.0 } },
                ],
                ..Workload::new(
                    "cheap_and_expensive",
                    "90 % take 2 ms, 10 % 100 ms, on one route; 80 % busy",
                    vec![Fake::new(4); 5],
                    1_350.0,
                )
            },
        ];
        all.extend(cold_start());
        all.extend([burst(), hot_keys(), workers(), crowd(), udp_flows()]);
        all
    }
}

fn skewed_weights() -> Workload {
    let sized = |weight: u16| Fake::new(u32::from(weight) * 2).weighing(weight);
    let backends = [5, 3, 1, 1].map(sized).to_vec();
    Workload::new("skewed_weights", "weights 5:3:1:1 and slots to match, 80 % busy", backends, 800.0)
}

fn one_slow() -> Workload {
    let mut backends = vec![Fake::new(16); 5];
    backends[0] = Fake::always(16, Conduct::Slow(10.0));
    Workload::new("one_slow", "1 of 5 takes 10 times as long, and has slots for its share", backends, 350.0)
}

fn failing_fast() -> Workload {
    let mut backends = vec![Fake::new(8); 3];
    backends[0] = Fake::always(8, Conduct::FailsFast(Duration::from_millis(1)));
    Workload::new("failing_fast", "1 of 3 answers 500 in 1 ms; no health checks", backends, 400.0)
}

fn flapping() -> Workload {
    let refuses = Phase { from: Duration::from_secs(5), conduct: Conduct::Refuses };
    let mut backends = vec![Fake::new(8); 3];
    backends[0] = Fake { phases: vec![refuses], period: Some(Duration::from_secs(10)), ..Fake::new(8) };
    let about = "1 of 3 is up for 5 s and refuses connections for 5 s; health checks";
    Workload { health: Some(HealthCheck::default()), ..Workload::new("flapping", about, backends, 600.0) }
}

/// Without and with slow start.
fn cold_start() -> [Workload; 2] {
    let mut backends = vec![Fake::new(8); 4];
    let cold = Conduct::Warms { factor: 5.0, over: Duration::from_secs(10) };
    let refuses = Phase { from: Duration::ZERO, conduct: Conduct::Refuses };
    let warms = Phase { from: Duration::from_secs(10), conduct: cold };
    let period = Some(Duration::from_secs(40));
    backends[0] = Fake { phases: vec![refuses, warms], period, ..Fake::new(8) };
    let about =
        "every 40 s 1 of 4 is away for 10 s and comes back 5 times as slow, warm after 10 s; health checks";
    let without = Workload {
        health: Some(HealthCheck::default()),
        ..Workload::new("cold_start", about, backends, 800.0)
    };
    let with = Workload {
        name: "cold_start_eased".into(),
        about: "the same with `slow_start: 15s`".into(),
        slow_start: Duration::from_secs(15),
        ..without.clone()
    };
    [without, with]
}

fn burst() -> Workload {
    let burst = Burst { factor: 10.0, lasts: Duration::from_millis(100), every: Duration::from_secs(1) };
    let about =
        "10 times as many requests, of 5 ms, for 100 ms of each second: more than the backends can do";
    Workload {
        arrivals: Arrivals::Open { rate: 300.0, burst: Some(burst) },
        classes: taking(0.005),
        ..Workload::new("burst", about, vec![Fake::new(2); 5], 0.0)
    }
}

fn hot_keys() -> Workload {
    Workload {
        clients: Clients { count: 10_000, skew: 1.0 },
        ..Workload::new(
            "hot_keys",
            "`even`, but the busiest of 10,000 clients sends 10 % of it (Zipf)",
            vec![Fake::new(2); 5],
            400.0,
        )
    }
}

fn workers() -> Workload {
    Workload {
        classes: taking(0.5),
        ..Workload::new(
            "workers",
            "2,500 backends that do one request of 0.5 s at a time, 80 % busy",
            vec![Fake::new(1); 2_500],
            4_000.0,
        )
    }
}

fn crowd() -> Workload {
    Workload {
        arrivals: Arrivals::Closed { clients: 9_500, think: Duration::ZERO },
        classes: taking(0.2),
        ..Workload::new(
            "crowd",
            "9,500 clients that ask again at once; 10 backends with 64 slots, 0.2 s each",
            vec![Fake::new(64); 10],
            0.0,
        )
    }
}

fn udp_flows() -> Workload {
    let about = "`even` over UDP: a flow for each question, which counts until it was silent for 5 s";
    Workload {
        silence: Duration::from_secs(5),
        ..Workload::new("udp_flows", about, vec![Fake::new(2); 5], 400.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_workload_has_a_name_of_its_own_and_backends_to_go_to() {
        let all = Workload::stock();
        let names: HashSet<&str> = all.iter().map(|workload| workload.name.as_str()).collect();
        assert_eq!(names.len(), all.len());
        for workload in &all {
            assert!(!workload.backends.is_empty() && !workload.about.is_empty(), "{}", workload.name);
            assert!(
                workload.backends.iter().all(|fake| fake.slots > 0 && fake.portion.weight > 0),
                "{}",
                workload.name
            );
        }
    }
}
