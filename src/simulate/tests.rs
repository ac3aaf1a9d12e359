//! The engine against what is known without it.

use core::time::Duration;

use super::workload::{Arrivals, Class, Clients, Conduct, Fake, Spread, Workload};
use super::{SimulationReport, run};
use crate::config::model::{Balance, Policy};

/// Answers without a size: the formulas are about service times.
fn plain(backends: Vec<Fake>, arrivals: Arrivals, mean: f64) -> Workload {
    let classes = vec![Class { share: 1.0, service: Spread { mean, shape: 1.0 } }];
    let nothing = Spread { mean: 0.0, shape: 1.0 };
    Workload { arrivals, classes, size: nothing, ..Workload::new("plain", "", backends, 1.0) }
}

pub(super) fn open(rate: f64) -> Arrivals {
    Arrivals::Open { rate, burst: None }
}

pub(super) fn stock(name: &str) -> Workload {
    Workload::stock().into_iter().find(|workload| workload.name == name).unwrap()
}

fn unguarded(name: &str) -> Workload {
    stock(name).unguarded()
}

pub(super) fn by(workload: &Workload, algorithm: Balance, requests: u64) -> SimulationReport {
    run(workload, &algorithm.into(), requests, 11)
}

#[track_caller]
fn near(found: Duration, expected: f64, share: f64) {
    let found = found.as_secs_f64();
    assert!((found / expected - 1.0).abs() < share, "{found} s instead of {expected} s");
}

#[test]
fn a_seed_repeats_its_figures_and_another_one_does_not() {
    for workload in Workload::stock().iter().filter(|workload| workload.backends.len() < 100) {
        for algorithm in [Balance::RoundRobin, Balance::PowerOfTwo] {
            let once = run(workload, &algorithm.into(), 3_000, 1);
            assert_eq!(once, run(workload, &algorithm.into(), 3_000, 1), "{}", workload.name);
            assert_ne!(once, run(workload, &algorithm.into(), 3_000, 2), "{}", workload.name);
            assert_eq!(once.requests, 3_000);
        }
    }
}

/// M/M/1: the time in the system is exponential with the mean 1 ÷ (μ − λ).
#[test]
fn one_slot_agrees_with_queueing_theory() {
    let report = by(&plain(vec![Fake::new(1)], open(70.0), 0.010), Balance::RoundRobin, 400_000);
    let mean = 1.0 / (100.0 - 70.0);
    near(report.mean, mean, 0.03);
    near(report.p50, mean * 2_f64.ln(), 0.03);
    near(report.p99, mean * 100_f64.ln(), 0.05);
    assert_eq!((report.errors, report.imbalance), (0, 1.0));
}

/// M/M/c: Erlang's C formula.
#[test]
fn several_slots_agree_with_queueing_theory() {
    let (slots, rate, service) = (4_u32, 320.0, 0.010);
    let load: f64 = rate * service;
    let busy = load / f64::from(slots);
    let (mut sum, mut term) = (0.0, 1.0);
    for n in 1..=slots {
        sum += term;
        term *= load / f64::from(n);
    }
    let waits = term / (1.0 - busy) / (sum + term / (1.0 - busy));
    let mean = service + waits * service / (f64::from(slots) * (1.0 - busy));
    let report = by(&plain(vec![Fake::new(slots)], open(rate), service), Balance::RoundRobin, 400_000);
    near(report.mean, mean, 0.03);
}

/// M/M/c/K: clients that think, by the birth-death chain of how many do not.
#[test]
fn a_closed_loop_agrees_with_queueing_theory() {
    let (clients, slots, think, service) = (20_u32, 2_u32, 0.1, 0.010);
    let (mut term, mut sum, mut here, mut through) = (1.0_f64, 1.0, 0.0, 0.0);
    for n in 1..=clients {
        term *= f64::from(clients - n + 1) / think / (f64::from(n.min(slots)) / service);
        sum += term;
        here += term * f64::from(n);
        through += term * f64::from(n.min(slots)) / service;
    }
    let arrivals = Arrivals::Closed { clients, think: Duration::from_secs_f64(think) };
    let report = by(&plain(vec![Fake::new(slots)], arrivals, service), Balance::RoundRobin, 300_000);
    near(report.mean, here / through, 0.03);
    assert!((report.requests as f64 / report.span.as_secs_f64() / (through / sum) - 1.0).abs() < 0.02);
}

#[test]
fn round_robin_gives_each_backend_its_turn() {
    let report = by(&stock("even"), Balance::RoundRobin, 10_000);
    assert_eq!(report.shares, [2_000; 5]);
    assert!(report.imbalance < 1.1, "{}", report.imbalance);
}

#[test]
fn a_backend_that_fails_fast_takes_its_third_of_a_round() {
    let report = by(&unguarded("failing_fast"), Balance::RoundRobin, 30_000);
    assert_eq!(report.errors, 10_000);
    assert!(report.mean > Duration::from_millis(15), "errors are not counted as fast answers");
}

#[test]
fn a_backend_that_refuses_costs_other_attempts_and_no_errors() {
    let mut workload = stock("flapping");
    let report = by(&workload, Balance::RoundRobin, 60_000);
    assert_eq!(report.errors, 0);
    let [flapping, others @ ..] = &report.shares[..] else { panic!("three backends") };
    assert!(others.iter().all(|share| share > flapping) && *flapping > 5_000, "{:?}", report.shares);
    // And where all of them refuse, nobody is served and the run still ends.
    let refuses = Fake::always(1, Conduct::Refuses);
    workload.backends = vec![refuses; 3];
    for arrivals in [open(100.0), Arrivals::Closed { clients: 7, think: Duration::ZERO }] {
        for health in [workload.health.clone(), None] {
            let workload = Workload { arrivals, health, ..workload.clone() };
            let report = by(&workload, Balance::RoundRobin, 1_000);
            assert_eq!((report.requests, report.errors, report.shares), (1_000, 1_000, vec![0; 3]));
        }
    }
}

#[test]
fn transfer_keeps_the_slot() {
    let workload = plain(vec![Fake::new(1)], open(50.0), 0.005);
    // 1,000 bytes at 200,000 a second: 5 ms, always.
    let size = Spread { mean: 1_000.0, shape: 200.0 };
    let report = by(&Workload { size, bandwidth: 200_000.0, ..workload }, Balance::RoundRobin, 300_000);
    // M/G/1 (Pollaczek and Khinchine): service of 10 ms on average with a variance of (5 ms)².
    let wait = 50.0 * (0.010_f64.powi(2) + 0.005_f64.powi(2)) / (2.0 * (1.0 - 0.5));
    near(report.mean, 0.010 + wait, 0.03);
}

#[test]
fn a_closed_loop_keeps_as_many_under_way_as_it_has_clients() {
    let arrivals = Arrivals::Closed { clients: 30, think: Duration::ZERO };
    let report = by(&plain(vec![Fake::new(1); 3], arrivals, 0.010), Balance::RoundRobin, 200_000);
    // Little: 30 under way, and the throughput that was seen.
    let through = report.requests as f64 / report.span.as_secs_f64();
    near(report.mean, 30.0 / through, 0.01);
    assert!((250.0..=300.0).contains(&through), "{through}");
}

#[test]
fn algorithms_differ_where_they_are_known_to() {
    let p99 = |name, algorithm| by(&unguarded(name), algorithm, 30_000).p99.as_secs_f64();
    let slow = |algorithm| p99("one_slow", algorithm);
    assert!(slow(Balance::LeastConnections) < 0.7 * slow(Balance::RoundRobin));
    // The same load on fewer of them is there sooner.
    let workers = Workload { backends: vec![Fake::new(1); 100], arrivals: open(160.0), ..stock("workers") };
    let workers = |algorithm| by(&workers, algorithm, 30_000).p99.as_secs_f64();
    assert!(workers(Balance::LeastBusy) < 0.75 * workers(Balance::PowerOfTwo));
    assert!(workers(Balance::PowerOfTwo) < 0.75 * workers(Balance::Random));
    // Who fails fast looks idle.
    let failing = by(&unguarded("failing_fast"), Balance::LeastConnections, 30_000);
    assert!(failing.error_share() > 0.5, "{failing:?}");
    let failing = by(&unguarded("failing_fast"), Balance::PeakEwma, 30_000);
    assert!(failing.error_share() < 0.05, "{failing:?}");
    assert!(slow(Balance::PeakEwma) < 0.7 * slow(Balance::PowerOfTwo));
    // One client with a tenth of the load fits into no table's share, unless the share has a bound.
    let hot = |algorithm| p99("hot_keys", algorithm);
    assert!(hot(Balance::RingHash) < 0.5 * hot(Balance::Maglev));
    // Weights that fit the slots: everybody is as busy as the others, unless the algorithm does not look at them.
    let skewed = |algorithm| by(&stock("skewed_weights"), algorithm, 30_000).imbalance;
    assert!(skewed(Balance::RoundRobin) < 1.1 && skewed(Balance::LeastBusy) > 1.15);
    let cold = |name| p99(name, Balance::RoundRobin);
    assert!(cold("cold_start_eased") < 0.3 * cold("cold_start"), "slow start spares who is cold");
}

#[test]
fn without_backends_every_request_is_an_error() {
    let workload = plain(Vec::new(), open(100.0), 0.010);
    let report = by(&workload, Balance::RoundRobin, 10);
    assert_eq!((report.requests, report.errors, report.imbalance), (10, 10, 0.0));
    let nobody = Workload { clients: Clients { count: 0, skew: 0.0 }, ..workload };
    assert_eq!(run(&nobody, &Policy::default(), 10, 1).errors, 10);
}
