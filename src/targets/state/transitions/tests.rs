use super::*;
use crate::targets::state::decide::{EjectionState, Fuse, Resolution, decide};
use crate::targets::state::input::Input;

/// A backend whose probe, breaker and ejection say this, at a time when nothing is as it was when it was made.
fn seen(id: u32, probe: Probe, fuse: Fuse, standing: EjectionState) -> Sight {
    let mut inputs = Inputs::new(
        Input::new(Resolution::Resolved, "a literal address", Tick::ZERO),
        Input::new(
            probe,
            if probe == Probe::Good { "2 probes passed" } else { "connection refused" },
            if probe == Probe::Off { Tick::ZERO } else { Tick(1) },
        ),
    );
    let trial = "its trial went well";
    inputs.fuse =
        Input::new(fuse, if fuse == Fuse::Closed { trial } else { "5 attempts in a row failed" }, Tick(1));
    inputs.standing =
        Input::new(standing, if standing == EjectionState::Fine { trial } else { "it is slow" }, Tick(1));
    let decision = decide(&inputs);
    let serves = decision.health == Health::Up;
    let backend = (id, format!("b{id}").into());
    Sight {
        backend,
        decision,
        inputs,
        serves,
        is_free: false,
        is_tried: false,
        counts: true,
        is_backup: false,
    }
}

fn up(id: u32) -> Sight {
    seen(id, Probe::Good, Fuse::Closed, EjectionState::Fine)
}

fn down(id: u32) -> Sight {
    seen(id, Probe::Bad, Fuse::Closed, EjectionState::Fine)
}

fn broken(id: u32) -> Sight {
    seen(id, Probe::Good, Fuse::Open, EjectionState::Fine)
}

fn unknown(id: u32) -> Sight {
    seen(id, Probe::Pending, Fuse::Closed, EjectionState::Fine)
}

fn backup(sight: Sight) -> Sight {
    Sight { is_backup: true, ..sight }
}

const SECOND: u64 = 1_000_000_000;

/// Each line in a few words.
fn told(transitions: &mut Transitions, all: &[Sight], second: u64) -> Vec<String> {
    let line = |(news, left, of): Counted| match news {
        News::Backend { name, from, to, source, reason, after } => {
            let after = after.map_or_else(String::new, |after| format!(" after {}s", after.as_secs()));
            format!("{name} {from:?}>{to:?}{after} {source:?}: {reason} ({left}/{of})")
        }
        News::Target { from, to, after } => {
            let after = after.map_or_else(String::new, |after| format!(" after {}s", after.as_secs()));
            format!("{from:?}>{to:?}{after} ({left}/{of})")
        }
    };
    transitions.step(all, Tick(second * SECOND)).into_iter().map(line).collect()
}

#[test]
fn an_outage_of_all_has_one_line_for_each_transition() {
    let mut transitions = Transitions::default();
    let mut told = |all: &[Sight], second| told(&mut transitions, all, second);
    assert!(told(&[unknown(0), unknown(1)], 1).is_empty(), "nothing is known");
    assert_eq!(
        told(&[up(0), up(1)], 2),
        ["b0 Unknown>Up Probe: 2 probes passed (1/2)", "b1 Unknown>Up Probe: 2 probes passed (2/2)"]
    );
    assert_eq!(told(&[down(0), up(1)], 10), ["b0 Up>Down after 8s Probe: connection refused (1/2)"]);
    assert!(told(&[down(0), up(1)], 11).is_empty());
    assert_eq!(
        told(&[down(0), down(1)], 12),
        ["b1 Up>Down after 10s Probe: connection refused (0/2)", "Served>Down after 10s (0/2)"]
    );
    assert_eq!(
        told(&[up(0), down(1)], 24),
        ["b0 Down>Up after 14s Probe: 2 probes passed (1/2)", "Down>Served after 12s (1/2)"]
    );
    assert_eq!(told(&[up(0), up(1)], 25), ["b1 Down>Up after 13s Probe: 2 probes passed (2/2)"]);
}

#[test]
fn who_is_down_for_several_reasons_goes_and_returns_once() {
    let mut transitions = Transitions::default();
    let mut told = |all: &[Sight], second| told(&mut transitions, all, second);
    told(&[up(0), up(1)], 1);
    assert_eq!(
        told(&[broken(0), up(1)], 2),
        ["b0 Up>Down after 1s Breaker: 5 attempts in a row failed (1/2)"]
    );
    let all_at_once = seen(0, Probe::Bad, Fuse::Open, EjectionState::Ejected);
    assert!(told(&[all_at_once, up(1)], 3).is_empty(), "the probe has found it too");
    let probed = seen(0, Probe::Good, Fuse::HalfOpen, EjectionState::Fine);
    assert!(told(&[probed, up(1)], 5).is_empty(), "its breaker still holds it");
    assert_eq!(
        told(&[up(0), up(1)], 6),
        ["b0 Down>Up after 4s Breaker: its trial went well (2/2)"],
        "who let it go is the reason"
    );
    assert_eq!(
        told(&[seen(0, Probe::Good, Fuse::Closed, EjectionState::Ejected), up(1)], 7),
        ["b0 Up>Down after 1s Outlier: it is slow (1/2)"]
    );
    assert_eq!(told(&[down(0), up(1)], 8), [""; 0]);
    assert_eq!(told(&[up(0), up(1)], 9), ["b0 Down>Up after 2s Probe: 2 probes passed (2/2)"]);
}

#[test]
fn backups_are_told_when_they_alone_are_left_and_when_they_are_not() {
    let mut transitions = Transitions::default();
    let mut told = |all: &[Sight], second| told(&mut transitions, all, second);
    assert_eq!(told(&[unknown(0), backup(up(1))], 1).len(), 1, "the first one may be there in a moment");
    told(&[up(0), backup(up(1))], 2);
    let mut last = |all: &[Sight], second| told(all, second).pop().unwrap_or_default();
    assert_eq!(last(&[down(0), backup(up(1))], 3), "Served>OnBackups after 1s (1/2)");
    assert_eq!(last(&[down(0), backup(down(1))], 5), "OnBackups>Down after 2s (0/2)");
    assert_eq!(last(&[down(0), backup(up(1))], 9), "Down>OnBackups after 4s (1/2)", "without a backend");
    assert_eq!(last(&[up(0), backup(up(1))], 16), "OnBackups>Served after 7s (2/2)", "on backups");
    last(&[down(0), backup(up(1))], 20);
    last(&[down(0), backup(down(1))], 50);
    assert_eq!(
        last(&[up(0), backup(down(1))], 52),
        "Down>Served after 2s (1/2)",
        "not since it was on backups"
    );
}

#[test]
fn outliers_that_serve_all_the_same_are_left() {
    let mut transitions = Transitions::default();
    let out = |id| seen(id, Probe::Good, Fuse::Closed, EjectionState::Ejected);
    told(&mut transitions, &[up(0), up(1)], 1);
    assert_eq!(told(&mut transitions, &[out(0), up(1)], 2).len(), 1);
    let set_aside = Sight { serves: true, ..out(0) };
    assert_eq!(
        told(&mut transitions, &[set_aside, down(1)], 3),
        ["b1 Up>Down after 2s Probe: connection refused (1/2)"],
        "the target has somebody"
    );
}

#[test]
fn what_is_up_from_the_start_or_was_removed_is_nothing_to_tell() {
    let mut transitions = Transitions::default();
    let initial = seen(0, Probe::Off, Fuse::Closed, EjectionState::Fine);
    let line = told(&mut transitions, &[initial.clone(), down(1)], 1);
    assert_eq!(line, ["b1 Unknown>Down Probe: connection refused (1/2)"]);
    assert!(told(&mut transitions, &[initial], 2).is_empty());
    let weightless = Sight { counts: false, serves: false, ..down(2) };
    assert_eq!(told(&mut transitions, &[weightless], 3), ["b2 Unknown>Down Probe: connection refused (0/0)"]);
}

/// Of three first verdicts the bad one is often the first: a refused connect takes no time.
#[test]
fn who_goes_does_not_say_that_nobody_is_left_while_others_come_in_the_same_moment() {
    let mut transitions = Transitions::default();
    assert_eq!(
        told(&mut transitions, &[down(0), up(1), up(2)], 1),
        [
            "b1 Unknown>Up Probe: 2 probes passed (1/3)",
            "b2 Unknown>Up Probe: 2 probes passed (2/3)",
            "b0 Unknown>Down Probe: connection refused (2/3)",
        ]
    );
    let unprobed = |id, fuse| seen(id, Probe::Off, fuse, EjectionState::Fine);
    let all = [unprobed(0, Fuse::Open), unprobed(1, Fuse::Closed), unprobed(2, Fuse::Closed)];
    let mut transitions = Transitions::default();
    assert_eq!(
        told(&mut transitions, &all, 1),
        ["b0 Up>Down Breaker: 5 attempts in a row failed (2/3)"],
        "two serve of which nothing was ever told"
    );
}

/// A backup whose breaker opened when it was needed last, and that was not needed since.
#[test]
fn a_backup_that_is_free_for_a_trial_is_left_until_that_fails() {
    let free = || Sight { is_free: true, ..backup(broken(1)) };
    let tried = || Sight { is_tried: true, ..backup(broken(1)) };
    let outage = |second_of: &[Sight]| {
        let mut transitions = Transitions::default();
        told(&mut transitions, &[up(0), backup(up(1))], 1);
        assert_eq!(told(&mut transitions, &[up(0), backup(broken(1))], 2).len(), 1);
        assert_eq!(told(&mut transitions, &[up(0), free()], 9), [""; 0]);
        assert_eq!(
            told(&mut transitions, &[down(0), free()], 10),
            ["b0 Up>Down after 9s Probe: connection refused (1/2)"],
            "nobody knows yet that none is left"
        );
        assert!(told(&mut transitions, &[down(0), tried()], 11).is_empty() && transitions.is_in_doubt());
        told(&mut transitions, second_of, 12)
    };
    assert_eq!(
        outage(&[down(0), backup(up(1))]),
        ["b1 Down>Up after 10s Breaker: its trial went well (1/2)", "Served>OnBackups after 11s (1/2)"]
    );
    assert_eq!(outage(&[down(0), backup(broken(1))]), ["Served>Down after 11s (0/2)"]);
    assert_eq!(outage(&[down(0), tried()]), ["Served>Down after 11s (0/2)"], "it hangs");
}
