use super::*;

const MILLI: u64 = 1_000_000;
const START: u64 = 1_000_000 * MILLI;

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// So many milliseconds after the start.
fn at(count: u64) -> Tick {
    Tick(START + count * MILLI)
}

fn outlook(answers: &Answers, in_flight: u32, now: Tick) -> Outlook {
    answers.outlook(in_flight, 1, now)
}

/// Seconds that an answer is expected to take.
fn pace(answers: &Answers, now: Tick) -> f32 {
    outlook(answers, 0, now).pace.expect("it has answered")
}

fn is_near(one: f32, other: f32) -> bool {
    (one - other).abs() <= 0.01 * other
}

#[test]
fn a_slow_answer_counts_at_once_and_fades() {
    let answers = Answers::default();
    answers.note_good(millis(10), at(0));
    assert!(is_near(pace(&answers, at(0)), 0.01));
    answers.note_good(millis(500), at(1));
    assert!(is_near(pace(&answers, at(1)), 0.5));
    for second in 1..=20 {
        answers.note_good(millis(10), at(second * 1000));
    }
    assert!(is_near(pace(&answers, at(20_000)), 0.5 * (-2.0_f32).exp()), "{}", pace(&answers, at(20_000)));
    for second in 21..=60 {
        answers.note_good(millis(10), at(second * 1000));
    }
    assert!(is_near(pace(&answers, at(60_000)), 0.01));
}

#[test]
fn without_answers_it_looks_better_and_better_but_never_free() {
    let answers = Answers::default();
    answers.note_good(millis(1000), at(0));
    assert!(is_near(pace(&answers, at(10_000)), (-1.0_f32).exp()));
    assert!(is_near(pace(&answers, at(46_000)), 0.01));
    assert_eq!(pace(&answers, at(3_600_000)).to_bits(), SOONEST.to_bits());
    let never = Answers::default();
    assert_eq!(outlook(&never, 0, at(0)).pace, None);
}

#[test]
fn faults_are_a_burden_that_time_and_good_answers_take_off() {
    let answers = Answers::default();
    answers.note_good(millis(10), at(0));
    let burden = |now| outlook(&answers, 0, now).burden;
    assert_eq!(burden(at(0)).to_bits(), 1.0_f32.to_bits());
    answers.note_fault(None, at(10));
    let one = burden(at(10));
    assert!((1.2..1.4).contains(&one), "one fault is no reason to go elsewhere: {one}");
    (0..40).for_each(|_| answers.note_fault(None, at(20)));
    assert!(burden(at(20)) > 1000.0, "{}", burden(at(20)));
    assert!((1.5..3.0).contains(&burden(at(4000))), "{}", burden(at(4000)));
    // The first request after that failed as well: time has forgiven too much.
    answers.note_fault(None, at(4000));
    assert!(burden(at(4000)) > 1000.0);
    assert!(is_near(pace(&answers, at(4000)), 0.01), "it would take as long as it did, if it worked");
    // The next one did not.
    (8000..8030).for_each(|now| answers.note_good(millis(10), at(now)));
    assert_eq!(burden(at(8030)).to_bits(), 1.0_f32.to_bits());
}

#[test]
fn backends_that_all_fail_are_equal() {
    let all: Vec<Answers> = (0..3).map(|_| Answers::default()).collect();
    for (answers, faults) in all.iter().zip([100, 200, 5000]) {
        (0..faults).for_each(|_| answers.note_fault(None, at(0)));
    }
    for one in &all {
        assert!(all.iter().all(|other| !outlook(one, 1, at(1)).beats(&outlook(other, 1, at(1)))));
        assert!(all.iter().all(|other| outlook(one, 1, at(1)).beats(&outlook(other, 2, at(1)))));
    }
}

#[test]
fn one_that_has_only_failed_is_compared_by_its_faults() {
    let (failing, slow) = (Answers::default(), Answers::default());
    (0..9).for_each(|_| failing.note_fault(None, at(0)));
    slow.note_good(millis(5000), at(0));
    assert!(outlook(&slow, 3, at(0)).beats(&outlook(&failing, 0, at(0))));
    assert!(outlook(&failing, 0, at(0)).beats(&outlook(&slow, 90, at(0))), "but not at any price");
}

#[test]
fn a_new_backend_gets_one_request_until_it_has_answered() {
    let (new, known) = (Answers::default(), Answers::default());
    known.note_good(millis(1), at(0));
    let known = |in_flight| outlook(&known, in_flight, at(1));
    assert!(outlook(&new, 0, at(1)).beats(&known(0)));
    assert!(known(50).beats(&outlook(&new, 1, at(1))));
    // Where all are new the less busy one is it, for its weight.
    assert!(new.outlook(1, 1, at(1)).beats(&new.outlook(2, 1, at(1))));
    assert!(new.outlook(4, 4, at(1)).beats(&new.outlook(2, 1, at(1))));
    new.note_good(millis(20), at(30));
    assert!(known(3).beats(&outlook(&new, 1, at(30))));
}

#[test]
fn one_that_does_not_answer_looks_worse_the_longer_it_takes() {
    let answers = Answers::default();
    answers.note_good(millis(10), at(0));
    answers.note_pick(at(100));
    answers.note_pick(at(5000));
    let expected = |in_flight, now| {
        let outlook = outlook(&answers, in_flight, now);
        outlook.pace.expect("it has answered").max(outlook.waited)
    };
    assert!(is_near(expected(2, at(5100)), 5.0));
    let quick = Answers::default();
    quick.note_good(millis(100), at(0));
    assert!(outlook(&quick, 0, at(100)).beats(&outlook(&answers, 2, at(5100))));
    assert!(is_near(expected(0, at(5100)), 0.01 * (-0.51_f32).exp()), "nobody waits any more");
    // Those who leave tell how long they had waited at least.
    answers.note_gone(millis(5000), at(5100));
    assert!(is_near(expected(1, at(5100)), 5.0));
    answers.note_pick(at(6000));
    answers.note_good(millis(10), at(6010));
    assert!(expected(1, at(6010)) < 5.0);
    let new = Answers::default();
    new.note_gone(millis(5), at(1));
    assert_eq!(outlook(&new, 0, at(1)).standing, Standing::Untried, "it has not answered yet");
}

#[test]
fn it_rests_for_as_long_as_it_asks_but_not_longer_than_a_minute() {
    let rests = |answers: &Answers, now| answers.rests(now);
    for (asked, least, most) in [(2000, 1990, 2002), (3_600_000, 59_990, 60_002), (60_000, 59_990, 60_002)] {
        let answers = Answers::default();
        answers.note_fault(Some(millis(asked)), at(0));
        assert!(rests(&answers, at(1)) && rests(&answers, at(least)), "{asked}");
        assert!(!rests(&answers, at(most)), "{asked}");
        let busy = Answers::default();
        busy.note_good(millis(9000), at(0));
        assert!(outlook(&busy, 90, at(1)).beats(&outlook(&answers, 0, at(1))));
    }
    let answers = Answers::default();
    answers.note_fault(Some(Duration::ZERO), at(0));
    assert!(!rests(&answers, at(1)));
    // Answers to what was sent before do not end it, nor does a fault that asks for nothing.
    answers.note_fault(Some(millis(5000)), at(10));
    answers.note_good(millis(10), at(20));
    answers.note_fault(None, at(30));
    assert!(rests(&answers, at(4990)) && !rests(&answers, at(5020)));
    // 52 days later the same steps come again, but the answers in between have not forgotten it was over.
    answers.note_good(millis(10), at(6000));
    assert!(!rests(&answers, Tick(at(3000).0 + (1 << (STEP_BITS + 32)))));
}

#[test]
fn words_of_many_threads_add_up() {
    let answers = Answers::default();
    answers.note_good(millis(1), at(0));
    std::thread::scope(|scope| {
        for thread in 1..=4_u64 {
            let answers = &answers;
            scope.spawn(move || {
                for number in 0..5000 {
                    answers.note_good(millis(thread * 1000 + number), at(1));
                }
            });
        }
    });
    // The slowest of all, whoever was last.
    assert!(is_near(pace(&answers, at(1)), 8.999));
    let before = answers.pace.load(Ordering::Relaxed);
    answers.note_good(millis(1), at(1));
    assert_eq!(answers.pace.load(Ordering::Relaxed), before, "of one moment only the slowest counts");
}

#[test]
fn an_answer_that_is_dated_a_little_earlier_changes_no_time() {
    let answers = Answers::default();
    answers.note_good(millis(10), at(100));
    answers.note_good(millis(10), at(50));
    assert!(is_near(pace(&answers, at(100)), 0.01));
    assert!(is_near(pace(&answers, at(10)), 0.01));
}
