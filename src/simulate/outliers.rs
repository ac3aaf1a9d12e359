//! Whom the defaults leave out, and whom they don't, under every algorithm.

use core::time::Duration;

use super::tests::{by, open, stock};
use super::workload::{Conduct, Fake, Workload};
use crate::config::model::Balance;

fn algorithms() -> impl Iterator<Item = Balance> {
    Balance::ALL.iter().map(|(_, algorithm)| *algorithm)
}

/// The share of errors among the requests from `from` to `to` seconds, of so many a second: the same seed sends the same
/// requests, so a longer run begins with the shorter one.
fn late_errors(workload: &Workload, algorithm: Balance, rate: u64, from: u64, to: u64) -> f64 {
    let workload = Workload { arrivals: open(rate as f64), ..workload.clone() };
    let [early, all] = [from, to].map(|seconds| by(&workload, algorithm, rate * seconds));
    // Those that are under way at the end of the shorter run belong to it.
    all.errors.saturating_sub(early.errors) as f64 / (all.requests - early.requests) as f64
}

#[test]
fn who_fails_fast_is_left_alone_after_two_seconds() {
    let failing = stock("failing_fast");
    for algorithm in algorithms() {
        for rate in [300, 1_000] {
            let share = late_errors(&failing, algorithm, rate, 2, 30);
            assert!(share <= 0.03, "{algorithm:?} at {rate}: {share}");
        }
    }
}

#[test]
fn backends_that_are_merely_unlike_are_all_used() {
    let unlike = [2.0, 3.0, 4.0].map(|factor| {
        let mut workload = stock("one_slow");
        workload.backends[0] = Fake::always(16, Conduct::Slow(factor));
        workload
    });
    let stock = Workload::stock();
    let bad = ["one_slow", "failing_fast"];
    // Where there are thousands each has too little to be judged by.
    let few = |one: &&Workload| one.backends.len() < 100 && !bad.contains(&&*one.name);
    for workload in stock.iter().filter(few).chain(&unlike) {
        // None of them fails, and under the others latencies are not compared.
        for algorithm in algorithms().filter(|algorithm| !algorithm.is_hash() && *algorithm != Balance::First)
        {
            let report = by(workload, algorithm, 30_000);
            assert_eq!(report.ejected, 0, "{} {algorithm:?}", workload.name);
        }
    }
}

#[test]
fn one_that_takes_ten_times_as_long_is_left_out_where_requests_are_alike() {
    let slow = stock("one_slow");
    // `peak_ewma` gives it too little to judge it by.
    let spared = [Balance::First, Balance::PeakEwma];
    for algorithm in algorithms().filter(|algorithm| !algorithm.is_hash() && !spared.contains(algorithm)) {
        let (guarded, plain) =
            (by(&slow, algorithm, 30_000), by(&slow.clone().unguarded(), algorithm, 30_000));
        assert!(guarded.ejected > 0, "{algorithm:?}");
        assert!(guarded.mean < plain.mean && guarded.shares[0] < plain.shares[0], "{algorithm:?}");
    }
}

#[test]
fn one_that_fails_now_and_then_is_left_out_most_of_the_time() {
    let mut flaky = stock("failing_fast");
    flaky.backends[0] = Fake::always(8, Conduct::Flaky(0.5));
    for algorithm in algorithms().filter(|algorithm| *algorithm != Balance::First) {
        let share = late_errors(&flaky, algorithm, 400, 5, 60);
        let plain = late_errors(&flaky.clone().unguarded(), algorithm, 400, 5, 60);
        assert!(share < 0.2 * plain, "{algorithm:?}: {share} of {plain}");
    }
}

#[test]
fn where_all_fail_alike_all_are_used() {
    let mut failing = stock("even");
    failing.backends = vec![Fake::always(2, Conduct::Flaky(0.3)); 5];
    for algorithm in algorithms() {
        assert_eq!(by(&failing, algorithm, 30_000).ejected, 0, "{algorithm:?}");
    }
}

#[test]
fn half_of_the_backends_may_be_out_and_no_more() {
    let mut failing = stock("failing_fast");
    let fails = Fake::always(8, Conduct::FailsFast(Duration::from_millis(1)));
    failing.backends = vec![fails.clone(), fails.clone(), fails, Fake::new(8)];
    let report = by(&failing, Balance::RoundRobin, 30_000);
    let [first, second, third, well] = report.shares[..] else { panic!("four backends") };
    let most = first.max(second).max(third);
    assert!(most > well / 2, "one of the three stays: {:?}", report.shares);
    assert!(report.error_share() < 0.75, "{report:?}");
}
