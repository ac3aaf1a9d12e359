use proptest::prelude::*;

use super::*;
use crate::targets::resilience::attempt_counts::{AttemptCounts, Reading};

const NOBODY: [u32; 0] = [];

/// Attempts, errors, and milliseconds to an answer.
type Done = (u32, u32, u64);

fn counts((attempts, errors, millis): Done) -> Counts {
    let one = |error| {
        let attempt_counts = AttemptCounts::default();
        attempt_counts.note(error, Duration::from_millis(millis));
        attempt_counts.read().since(Reading::default())
    };
    let (good, bad) = (one(false), one(true));
    let times = |counts: Counts, times: u32| Counts {
        attempts: counts.attempts * times,
        errors: counts.errors * times,
        timed: counts.timed * times,
        steps: counts.steps * u64::from(times),
    };
    times(good, attempts - errors.min(attempts)).and(times(bad, errors.min(attempts)))
}

/// All of it spread over a window.
fn history((attempts, errors, millis): Done) -> History {
    let mut history = History::default();
    for (attempts, errors) in [
        (attempts / 3, errors / 3),
        (attempts / 3, errors / 3),
        (attempts - attempts / 3 * 2, errors - errors / 3 * 2),
    ] {
        history.turn(3);
        history.add(counts((attempts, errors, millis)));
    }
    history
}

/// The verdicts on siblings that did this in one window, by place.
fn verdicts(done: &[Done], rules: &Outlier) -> Vec<(u32, String)> {
    let histories: Vec<History> = done.iter().map(|&done| history(done)).collect();
    judged(&histories, rules).iter().map(|found| (found.id.0, found.fault.to_string())).collect()
}

fn judged(histories: &[History], rules: &Outlier) -> Vec<Outlying> {
    let subjects = (0..).zip(histories).map(|(id, history)| Subject {
        id: BackendId(id),
        history,
        timed: Timed::Lastingly,
    });
    judge(&subjects.collect::<Vec<_>>(), rules)
}

fn places(done: &[Done]) -> Vec<u32> {
    verdicts(done, &Outlier::default()).into_iter().map(|(place, _)| place).collect()
}

#[test]
fn gross_cases_are_plain_after_the_fewest_attempts() {
    let rules = Outlier::default();
    let failing = verdicts(&[(50, 50, 1), (50, 0, 20), (50, 0, 20)], &rules);
    assert_eq!(failing, [(0, "100% errors, its siblings have 0%".to_owned())]);
    let hanging = verdicts(&[(50, 0, 20), (50, 0, 20), (50, 0, 900)], &rules);
    let [(2, reason)] = &hanging[..] else { panic!("{hanging:?}") };
    assert!(reason.starts_with("answers in 9") && reason.ends_with("ms, its siblings in 20ms"), "{reason}");
    // One fewer, or nobody to compare it with, says nothing.
    for done in [[(49, 49, 1), (50, 0, 20)], [(500, 500, 1), (49, 0, 20)]] {
        assert_eq!(places(&done), NOBODY);
    }
    assert_eq!(places(&[(5_000, 5_000, 1)]), NOBODY);
    assert_eq!(places(&[]), NOBODY);
}

#[test]
fn a_mild_case_takes_more_attempts() {
    // 30 % and 1 %; 8 times as slow.
    for (few, many) in [
        ([(50, 15, 20), (50, 0, 20)], [(1_000, 300, 20), (1_000, 10, 20)]),
        ([(50, 0, 160), (50, 0, 20)], [(1_000, 0, 160), (1_000, 0, 20)]),
    ] {
        assert_eq!((places(&few), places(&many)), (vec![], vec![0]));
    }
    // And what is within the limits is no case, however sure it is.
    assert_eq!(places(&[(100_000, 19_000, 90), (100_000, 0, 20)]), NOBODY);
}

#[test]
fn where_everybody_or_most_do_badly_nobody_stands_out() {
    assert_eq!(places(&[(500, 500, 1); 4]), NOBODY);
    assert_eq!(places(&[(500, 200, 800), (500, 190, 750), (500, 230, 900)]), NOBODY);
    // By rate a half may be out; by latency only who is slower than the slower half.
    assert_eq!(places(&[(500, 500, 20), (500, 500, 20), (500, 0, 20), (500, 0, 20)]), [0, 1]);
    assert_eq!(places(&[(500, 500, 20), (500, 500, 20), (500, 500, 20), (500, 0, 20)]), NOBODY);
    assert_eq!(places(&[(500, 0, 900), (500, 0, 900), (500, 0, 20)]), NOBODY);
}

#[test]
fn nobody_is_slow_by_less_than_anyone_notices() {
    assert_eq!(places(&[(5_000, 0, 15), (5_000, 0, 0), (5_000, 0, 0)]), NOBODY);
    assert_eq!(places(&[(5_000, 0, 40), (5_000, 0, 0), (5_000, 0, 0)]), [0]);
}

#[test]
fn what_is_switched_off_or_spared_is_not_judged() {
    let (failing, slow) = ([(500, 400, 20), (500, 0, 20)], [(500, 0, 900), (500, 0, 20)]);
    let no_errors = Outlier { error_rate: 0, ..Outlier::default() };
    let no_latency = Outlier { latency: 0, ..Outlier::default() };
    assert_eq!([&failing, &slow].map(|done| verdicts(done, &no_errors).len()), [0, 1]);
    assert_eq!([&failing, &slow].map(|done| verdicts(done, &no_latency).len()), [1, 0]);
    let histories = slow.map(history);
    let subject = |place: usize, timed| Subject { id: BackendId(0), history: &histories[place], timed };
    let judged = |one, other| judge(&[subject(0, one), subject(1, other)], &Outlier::default()).len();
    assert_eq!(judged(Timed::Never, Timed::Lastingly), 0);
    assert_eq!(judged(Timed::Lastingly, Timed::Never), 1, "it is a sibling");
}

#[test]
fn the_worst_comes_first_and_errors_before_slowness() {
    let well = (500, 0, 20);
    let done = [well, (500, 0, 2_000), (500, 300, 20), well, (500, 450, 20), well, well, (500, 500, 2_000)];
    assert_eq!(places(&done), [7, 4, 2, 1]);
}

#[test]
fn what_was_well_is_forgotten_while_the_window_still_holds_it() {
    let mut histories = [history((400, 0, 20)), history((400, 0, 20))];
    let mut seen = Vec::new();
    for second in 1..=12 {
        for (history, errors) in histories.iter_mut().zip([if second < 6 { 0 } else { 400 }, 0]) {
            history.turn(1);
            history.add(counts((400, errors, 20)));
        }
        seen.push(judged(&histories, &Outlier::default()).len());
    }
    assert_eq!(seen, [0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1]);
    histories[0].turn(1);
    assert_eq!(histories[0].sum(0..SLICES).attempts, 3_600);
    histories[0].turn(usize::MAX);
    assert_eq!(histories[0].sum(0..SLICES), Counts::default());
}

/// A queue that comes and goes makes everything late for a while.
#[test]
fn slow_is_who_is_slow_all_the_time_or_slow_again() {
    let with = |millis: [u64; 3]| {
        let mut history = History::default();
        for millis in millis {
            history.turn(3);
            history.add(counts((200, 0, millis)));
        }
        history
    };
    for (own, theirs, lastingly, again) in [
        ([900, 900, 900], [20, 20, 20], 1, 1),
        ([900, 900, 20], [20, 20, 20], 0, 0),
        ([900, 20, 900], [20, 20, 20], 0, 1),
        ([20, 20, 900], [20, 20, 20], 0, 1),
        // They had theirs.
        ([900, 900, 900], [20, 700, 20], 0, 0),
    ] {
        let (own, theirs) = (with(own), with(theirs));
        let judged = |timed| {
            let sibling = |id| Subject { id: BackendId(id), history: &theirs, timed: Timed::Lastingly };
            let subject = Subject { id: BackendId(0), history: &own, timed };
            judge(&[subject, sibling(1), sibling(2)], &Outlier::default()).len()
        };
        assert_eq!((judged(Timed::Lastingly), judged(Timed::Again)), (lastingly, again));
    }
    // It has to be there for as long as that.
    let mut new = History::default();
    new.add(counts((1_000, 0, 900)));
    assert!(judged(&[new, with([20; 3])], &Outlier::default()).is_empty());
}

#[test]
fn the_share_never_leaves_room_for_all() {
    let rules = |max_ejected| Outlier { max_ejected, ..Outlier::default() };
    let of = |backends, share| room(backends, 0, &rules(share));
    assert_eq!([1, 2, 3, 4, 5, 10].map(|backends| of(backends, 50)), [0, 1, 1, 2, 2, 5]);
    assert_eq!([1, 2, 5, 10, 100].map(|backends| of(backends, 10)), [0, 0, 0, 1, 10]);
    assert_eq!([of(5, 100), of(5, 0), of(0, 50)], [4, 0, 0]);
    assert_eq!([0, 1, 2, 9].map(|out| room(5, out, &rules(50))), [2, 1, 0, 0]);
}

#[test]
fn reasons_are_short_and_hide_nothing() {
    let errors = |own, usual| OutlierFault::Errors { own, usual }.to_string();
    assert_eq!(errors(0.344, 0.01), "34% errors, its siblings have 1%");
    assert_eq!(errors(1.0, 0.001), "100% errors, its siblings have under 1%");
    let latency = |own, usual| {
        OutlierFault::Latency { own: Duration::from_micros(own), usual: Duration::from_micros(usual) }
            .to_string()
    };
    assert_eq!(latency(480_400, 31_000), "answers in 480ms, its siblings in 31ms");
    assert_eq!(latency(12_340_000, 800), "answers in 12.3s, its siblings in 0.8ms");
    assert_eq!(latency(999_600, 9_960), "answers in 1.0s, its siblings in 10ms");
}

#[test]
fn the_median_of_the_others() {
    let sorted = [1, 2, 3, 4, 5];
    for (place, expected) in [(0, 3..=4), (1, 3..=4), (2, 2..=4), (3, 2..=3), (4, 2..=3)] {
        let of = |upper| sorted[beside(place, sorted.len(), upper).expect("there are others")];
        assert_eq!(of(false)..=of(true), expected, "{place}");
    }
    assert_eq!([beside(0, 2, true), beside(1, 2, false), beside(0, 3, true)], [Some(1), Some(0), Some(2)]);
    assert_eq!([beside(0, 1, false), beside(0, 0, false)], [None, None]);
}

fn any_done() -> impl Strategy<Value = Vec<Done>> {
    let errors = prop_oneof![Just(0.0), Just(1.0), 0.0..1.0_f64];
    let one = (0_u32..2_000, errors, 0_u64..3_000);
    prop::collection::vec(one.prop_map(|(n, share, ms)| (n, (f64::from(n) * share) as u32, ms)), 0..12)
}

proptest! {
    #[test]
    fn the_order_of_siblings_does_not_matter(done in any_done(), turn in 0_usize..12) {
        let histories: Vec<History> = done.iter().map(|&done| history(done)).collect();
        let mut subjects: Vec<Subject<'_>> = (0..)
            .zip(&histories)
            .map(|(id, history)| Subject { id: BackendId(id), history, timed: Timed::Lastingly })
            .collect();
        let before = judge(&subjects, &Outlier::default());
        let turn = turn.min(subjects.len());
        subjects.rotate_left(turn);
        prop_assert_eq!(&before, &judge(&subjects, &Outlier::default()));
        subjects.reverse();
        prop_assert_eq!(&before, &judge(&subjects, &Outlier::default()));
    }

    /// Nobody is named twice, and neither the one with the fewest errors nor the fastest is worse than what is usual.
    #[test]
    fn whoever_does_best_is_no_outlier(done in any_done()) {
        let rules = Outlier::default();
        let found = places(&done);
        let known: std::collections::BTreeSet<u32> = found.iter().copied().collect();
        prop_assert_eq!(known.len(), found.len());
        let by = |rules: &Outlier| verdicts(&done, rules).into_iter().map(|(place, _)| place).collect::<Vec<_>>();
        let errors = by(&Outlier { latency: 0, ..rules.clone() });
        let latency = by(&Outlier { error_rate: 0, ..rules });
        for (place, (n, failed, millis)) in (0..).zip(&done) {
            let share = |n: u32, failed: u32| f64::from(failed) / f64::from(n);
            let fewest = done.iter().filter(|other| other.0 >= 50).all(|other| share(*n, *failed) <= share(other.0, other.1));
            let fastest = done.iter().filter(|other| other.0 >= 50).all(|other| *millis <= other.2);
            prop_assert!(!(fewest && errors.contains(&place) || fastest && latency.contains(&place)));
        }
    }

    /// More of the same only makes it surer.
    #[test]
    fn who_is_an_outlier_stays_one_with_more_attempts(done in any_done(), times in 2_u32..6) {
        // Those that had too few to be counted, in the window or a part of it, would count now.
        prop_assume!(done.iter().all(|(n, ..)| *n >= 160 || *n == 0));
        let few: Vec<History> = done.iter().map(|&done| history(done)).collect();
        let many: Vec<History> = few.iter().map(|few| {
            let mut many = few.clone();
            for slice in &mut many.slices {
                let once = *slice;
                *slice = (1..times).fold(once, |sum, _| sum.and(once));
            }
            many
        }).collect();
        let ids = |histories: &[History]| -> Vec<u32> {
            judged(histories, &Outlier::default()).iter().map(|found| found.id.0).collect()
        };
        let (few, many) = (ids(&few), ids(&many));
        prop_assert!(few.iter().all(|id| many.contains(id)), "{:?} {:?}", few, many);
    }

    #[test]
    fn room_keeps_to_the_share_and_never_takes_the_last(backends in 0_usize..5_000, out in 0_usize..5_000, share in 0_u8..=100) {
        let rules = Outlier { max_ejected: share, ..Outlier::default() };
        let most = room(backends, 0, &rules);
        prop_assert!(most < backends.max(1));
        prop_assert!(most * 100 <= backends * usize::from(share));
        prop_assert_eq!(room(backends, out, &rules), most.saturating_sub(out));
    }
}
