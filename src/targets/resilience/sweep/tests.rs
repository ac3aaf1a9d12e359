use super::*;
use crate::config::model::{self, Balance};
use crate::targets::fixtures::{probed, target, unprobed};
use crate::targets::resilience::window::Window;
use crate::targets::{Registry, Verdict};
use std::time::Duration;

fn at(seconds: u64) -> Tick {
    Tick((100 + seconds) * 1_000_000_000)
}

/// So many attempts of the backend at `place` that ended in this way.
fn count_attempts(target: &Target, place: usize, attempts: u32, error: bool, millis: u64) {
    for _ in 0..attempts {
        target.backends[place].attempt_counts().note(error, Duration::from_millis(millis));
    }
}

/// A second in which every backend answers well, but the first: so many errors, so many milliseconds.
fn second(target: &Target, errors: u32, millis: u64) {
    for place in 1..target.backends.len() {
        count_attempts(target, place, 200, false, 20);
    }
    count_attempts(target, 0, errors, true, millis);
    count_attempts(target, 0, 200 - errors, false, millis);
}

/// Who a sweep finds; nobody is really ejected.
fn found(target: &Target, now: Tick) -> Vec<String> {
    let mut asked = Vec::new();
    target.compare(now, |backend, _, reason, has_room| {
        if has_room {
            asked.push(format!("{}: {reason}", backend.name));
        }
        has_room
    });
    asked
}

const FAILS: &str = "b0: 50% errors, its siblings have 0%";

#[test]
fn an_outlier_is_found_after_its_first_second() {
    let target = target(&unprobed(3));
    assert_eq!(found(&target, at(0)), Vec::<String>::new());
    second(&target, 100, 20);
    assert_eq!(found(&target, at(1)), [FAILS]);
    assert_eq!(
        found(&target, at(2)),
        Vec::<String>::new(),
        "what it was ejected for is not held against it twice"
    );
}

/// The first second, from `since` on, at whose end the first backend is named when it is slow.
fn slow(target: &Target, since: u64) -> Option<u64> {
    (since..since + 60).find(|&now| {
        second(target, 0, 900);
        found(target, at(now)).first().is_some_and(|found| found.starts_with("b0: answers in "))
    })
}

#[test]
fn a_slow_one_is_found_when_it_lasts_and_sooner_when_it_comes_back() {
    let target = target(&unprobed(3));
    found(&target, at(0));
    assert_eq!(slow(&target, 1), Some(7), "in the last third of the window are 4 slices");
    assert_eq!(slow(&target, 8), Some(8));
    // It has been well for a window.
    for now in 9..=19 {
        second(&target, 0, 20);
        assert_eq!(found(&target, at(now)), Vec::<String>::new());
    }
    assert_eq!(slow(&target, 20), Some(27), "all of the window is looked at, not each second of it");
}

#[test]
fn what_was_there_before_the_first_sweep_is_no_evidence() {
    let target = target(&unprobed(3));
    second(&target, 100, 20);
    assert_eq!(found(&target, at(0)), Vec::<String>::new());
}

#[test]
fn where_it_is_off_nobody_is_compared() {
    let mut config = unprobed(3);
    config.resilience.outlier = None;
    let target = target(&config);
    found(&target, at(0));
    second(&target, 200, 20);
    assert_eq!(found(&target, at(1)), Vec::<String>::new());
}

#[test]
fn one_that_may_not_be_ejected_is_found_again_and_the_share_bounds_how_many() {
    let free = target(&unprobed(5));
    found(&free, at(0));
    for place in 0..5 {
        count_attempts(&free, place, 100, place < 2, 20);
    }
    let mut asked = 0;
    let refused = free.compare(at(1), |_, _, _, _| {
        asked += 1;
        false
    });
    assert_eq!((refused.len(), asked), (0, 2));
    assert_eq!(found(&free, at(2)).len(), 2);
    let mut config = unprobed(5);
    config.resilience.outlier.as_mut().expect("on by default").max_ejected = 20;
    let bounded = target(&config);
    found(&bounded, at(0));
    for place in 0..5 {
        count_attempts(&bounded, place, 100, place < 2, 20);
    }
    assert_eq!(found(&bounded, at(1)).len(), 1);
}

#[test]
fn keys_and_sessions_make_latencies_unlike_but_not_errors() {
    for (algorithm, compared) in [
        (Balance::Maglev, false),
        (Balance::RingHash, false),
        (Balance::First, false),
        (Balance::Random, true),
        (Balance::LeastBusy, true),
    ] {
        let target = target(&model::TargetConfig { balance: algorithm.into(), ..unprobed(3) });
        found(&target, at(0));
        assert_eq!(slow(&target, 1).is_some(), compared, "{algorithm:?}");
        second(&target, 200, 20);
        assert_eq!(found(&target, at(90)).len(), 1, "{algorithm:?}");
    }
}

#[test]
fn whoever_came_back_or_was_added_may_be_slow_for_two_windows() {
    let registry = Registry::new();
    let mut target = registry.apply(&[probed(2)]).remove(0);
    for (place, verdict) in [(0, Verdict::Bad("connection refused".into())), (1, Verdict::Good)] {
        target.state.report(&target.backends[place], verdict, at(0));
    }
    found(&target, at(0));
    for _ in 0..2 {
        target.state.report(&target.backends[0], Verdict::Good, at(1));
    }
    assert_eq!(slow(&target, 1), Some(21));
    // Another one under the same name was never away.
    let mut config = probed(2);
    config.backends[0].address = crate::targets::fixtures::host("127.0.0.9", 80);
    target = registry.apply(&[config]).remove(0);
    target.state.report(&target.backends[0], Verdict::Good, at(30));
    assert_eq!(slow(&target, 31), Some(51));
}

#[test]
fn only_backends_of_one_tier_are_siblings() {
    let mut config = unprobed(3);
    config.backends[0].portion.priority = 1;
    let target = target(&config);
    found(&target, at(0));
    second(&target, 100, 900);
    assert_eq!(found(&target, at(1)), Vec::<String>::new());
}

#[test]
fn slices_follow_the_window_and_not_the_sweep() {
    for (window, seconds, expected) in [
        // Each sweep ends a slice of a second, also one that comes a little early.
        (10, &[0.0, 1.0, 1.9, 3.0][..], &[1, 1, 1][..]),
        (60, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], &[0, 0, 0, 0, 0, 1, 0, 0]),
        // Nothing is left of what is older than the window.
        (1, &[0.0, 1.0, 2.0], &[10, 10]),
        (10, &[0.0, 25.0], &[25]),
    ] {
        let mut books = Window { last: at(0), turned: at(0), ..Window::default() };
        let turns: Vec<usize> = seconds[1..]
            .iter()
            .map(|second| {
                books.last = at(0).after(Duration::from_secs_f64(*second));
                books.turns(Duration::from_secs(window))
            })
            .collect();
        assert_eq!(turns, expected, "{window}");
    }
}

/// Half of four may be left out. Two are, for being slow, when a third begins to fail.
#[test]
fn one_that_fails_is_left_out_though_the_share_is_taken_by_slow_ones() {
    let target = target(&unprobed(4));
    let kinds = || -> Vec<Option<EjectionKind>> {
        target.backends.iter().map(|backend| backend.ejection().word().kind()).collect()
    };
    for slow in [0, 1] {
        assert!(reports::eject(&target.backends[slow], EjectionKind::Slow, "slow", true, at(0)));
    }
    assert!(
        !reports::eject(&target.backends[2], EjectionKind::Slow, "slow", true, at(0)),
        "the share is taken"
    );
    target.sweep(at(0));
    for place in 2..4 {
        count_attempts(&target, place, 200, place == 2, 20);
    }
    // Two are compared, and one of these two can't be told from the other; a third shows what is usual.
    count_attempts(&target, 0, 200, false, 20);
    let ejected = target.sweep(at(1));
    assert_eq!(ejected.iter().map(|out| &*out.backend.name).collect::<Vec<_>>(), ["b2"]);
    assert_eq!(kinds(), [None, Some(EjectionKind::Slow), Some(EjectionKind::Failing), None]);

    // The same of errors in a row, which are counted where attempts end.
    let soon = Tick(at(1).0 + 1);
    for _ in 0..5 {
        let lease = crate::targets::Lease::take(
            &target.backends[3],
            crate::targets::resilience::trial::Trial::NONE,
            soon,
        )
        .expect("room");
        lease.finish(crate::targets::Outcome::Failed, soon);
    }
    assert_eq!(kinds(), [None, None, Some(EjectionKind::Failing), Some(EjectionKind::Failing)]);
    assert!(
        !reports::eject(&target.backends[0], EjectionKind::Failing, "errors", true, soon),
        "nobody is only slow"
    );
}
