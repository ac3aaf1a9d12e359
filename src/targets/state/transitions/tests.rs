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
            Tick(1),
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
    Sight { backend, decision, inputs, serves, counts: true, is_backup: false }
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
        News::Lost => format!("none ({left}/{of})"),
        News::OnBackups => format!("backups ({left}/{of})"),
        News::Back(after) => format!("back after {}s ({left}/{of})", after.as_secs()),
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
        ["b1 Up>Down after 10s Probe: connection refused (0/2)", "none (0/2)"]
    );
    assert_eq!(
        told(&[up(0), down(1)], 24),
        ["b0 Down>Up after 14s Probe: 2 probes passed (1/2)", "back after 12s (1/2)"]
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
    let lines = told(&[down(0), backup(up(1))], 3);
    assert_eq!(lines.last().map(String::as_str), Some("backups (1/2)"));
    let lines = told(&[down(0), backup(down(1))], 5);
    assert_eq!(lines.last().map(String::as_str), Some("none (0/2)"));
    let lines = told(&[down(0), backup(up(1))], 7);
    assert_eq!(lines.last().map(String::as_str), Some("backups (1/2)"));
    let lines = told(&[up(0), backup(up(1))], 9);
    assert_eq!(lines.last().map(String::as_str), Some("back after 6s (2/2)"), "since it had its own");
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
    let mut initial = seen(0, Probe::Off, Fuse::Closed, EjectionState::Fine);
    initial.decision.since = Tick::ZERO;
    let line = told(&mut transitions, &[initial.clone(), down(1)], 1);
    assert_eq!(line, ["b1 Unknown>Down Probe: connection refused (1/2)"]);
    assert!(told(&mut transitions, &[initial], 2).is_empty());
    let weightless = Sight { counts: false, serves: false, ..down(2) };
    assert_eq!(told(&mut transitions, &[weightless], 3), ["b2 Unknown>Down Probe: connection refused (0/0)"]);
}
