//! States in which everything waits for one side that has stopped half-way (HAProxy CVE-2024-45506 and kin spun in one).
//!
//! Each is shown to end at the deadline that is meant for it, with the cause that is meant for it: that one deadline is
//! short, every other is an hour, and what waits for another is still there. All of them at once are shown to cost nothing,
//! in wake-ups and processor time against a process on which nothing hangs; benches/bars has the same as a share of a core.

use super::stuck_lab::{DEADLINES, Lab};
use super::stuck_states::STATES;
use super::support::eventually;

/// Everything that waits for the deadline called `short` ends with its cause, and nothing else does.
fn ends(short: &str) {
    let mut lab = Lab::start(short, "1h");
    let (mine, others): (Vec<_>, Vec<_>) = STATES.iter().partition(|state| state.deadline == short);
    assert!(!mine.is_empty(), "no state waits for {short}");
    let others = others.into_iter().filter(|state| !state.fills && !state.deadline.is_empty());
    let others: Vec<_> = others.map(|state| (state, (state.open)(&mut lab))).collect();
    let mine: Vec<_> = mine.into_iter().map(|state| (state, (state.open)(&mut lab))).collect();
    for (state, mut client) in mine {
        if state.cause.is_empty() {
            let came = client.rest();
            assert!(!came.starts_with(b"HTTP") && !client.was_reset(), "{}: {came:?}", state.name);
            assert!(lab.causes(&client).iter().all(|cause| cause == "-"), "{}", state.name);
        } else {
            eventually(state.name, || lab.causes(&client).last().is_some_and(|cause| cause == state.cause));
        }
    }
    for (state, client) in &others {
        let waits = lab.causes(client).iter().all(|cause| cause == "-");
        assert!(waits, "{short} has ended `{}`, which waits for {}", state.name, state.deadline);
    }
    assert_eq!(lab.good(), 200);
}

#[test]
fn what_the_head_deadline_ends() {
    ends("head");
}

#[test]
fn what_the_keep_alive_deadline_ends() {
    ends("keep_alive");
}

#[test]
fn what_the_first_byte_deadline_ends() {
    ends("first_byte");
}

#[test]
fn what_the_idle_deadline_ends() {
    ends("idle");
}

#[test]
fn what_the_tunnel_deadline_ends() {
    ends("tunnel");
}

#[test]
fn what_the_connect_deadline_ends() {
    ends("connect");
}

#[test]
fn what_the_tls_deadline_ends() {
    ends("tls");
}

#[test]
fn what_ends_whatever_the_config_says() {
    ends("");
}

#[test]
fn what_the_timeout_of_health_checks_ends() {
    let lab = Lab::start("", "150ms");
    for target in ["probed_mute", "probed_full", "probed_connect", "probed_tls"] {
        eventually(target, || {
            let said = lab.process.said();
            let mut lines = said.iter().filter(|line| line.contains(&format!("backend {target}/")));
            lines.any(|line| line.contains("is down: timeout after 150ms"))
        });
    }
    assert_eq!(lab.good(), 200);
}

#[test]
fn all_of_them_at_once_cost_nothing() {
    let idle = Lab::start("", "1h");
    let mut lab = Lab::start("", "1h");
    let states: Vec<_> = STATES.iter().filter(|state| DEADLINES.contains(&state.deadline)).collect();
    assert!(states.len() >= 30, "saw {}", states.len());
    let held: Vec<_> = states.into_iter().map(|state| (state, (state.open)(&mut lab))).collect();
    let before = lab.process.cost();
    (0..50).for_each(|_| assert_eq!(lab.good(), 200));
    eventually("what is done is counted", || {
        let after = lab.process.cost();
        after.wake_ups >= before.wake_ups + 25 && after.cpu_nanoseconds > before.cpu_nanoseconds
    });
    // The other process has the same threads, housekeeping and hanging probes. Its wake-ups are the clock, and what they cost is the
    // measure: what a second is and how fast the machine is does not matter, only that the stuck ones add nothing to it, three
    // stretches in a row. Whatever spins or is woken again and again costs a hundred times as much.
    let mut quiet = 0;
    eventually("all are stuck and nothing moves", || {
        let (before, idle_before) = (lab.process.cost(), idle.process.cost());
        let mut idle_after = idle_before;
        eventually("a stretch of time", || {
            idle_after = idle.process.cost();
            idle_after.wake_ups >= idle_before.wake_ups + 4
        });
        let after = lab.process.cost();
        let wake_ups = after.wake_ups - before.wake_ups;
        let cpu = after.cpu_nanoseconds - before.cpu_nanoseconds;
        let calm = wake_ups <= 4 * (idle_after.wake_ups - idle_before.wake_ups)
            && cpu <= 10 * (idle_after.cpu_nanoseconds - idle_before.cpu_nanoseconds);
        quiet = if calm { quiet + 1 } else { 0 };
        quiet == 3
    });
    for (state, client) in &held {
        assert!(lab.causes(client).iter().all(|cause| cause == "-"), "`{}` has ended", state.name);
    }
    assert_eq!(lab.good(), 200);
}
