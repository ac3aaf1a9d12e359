//! What the end of an attempt does to the words of its backend: breaker, ejection, errors in a row.
//!
//! A lease calls this; the rules are in `breaker` and `ejection`. The usual case, a success of a backend that nothing is
//! held against, is a few loads of one cache line and no store.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::targets::Backend;
use crate::targets::resilience::breaker::{BreakerWord, Circuit, Passage};
use crate::targets::resilience::ejection::{Admission, EjectionKind, EjectionWord};
use crate::targets::resilience::trial::{Told, Trial};
use crate::targets::state::decide::{EjectionState, Fuse};
use crate::targets::state::input::Input;
use crate::targets::state::objects::BoardState;
use crate::tick::Tick;

/// Why a backend is back that was out.
const WENT_WELL: &str = "its trial went well";
/// The same of one that refused connections.
const CONNECTS: &str = "it can be connected to again";

/// A fresh connection to `backend` stands, asked for at `picked`.
pub(in crate::targets) fn connected(backend: &Backend, picked: Tick) {
    if backend.ejection().word().kind() != Some(EjectionKind::Refused) {
        return;
    }
    let Some(spans) = backend.board().rules().ejection else { return };
    if turn(backend, |word| word.connect(picked, spans), |standing| *standing = back(standing, CONNECTS)) {
        backend.board().lock().refresh(backend);
        backend.board().turned.notify_one();
    }
}

/// The answer of the trial of its breaker, picked at `picked`, began well.
#[cold]
pub(in crate::targets) fn heard(backend: &Backend, trial: &Cell<Trial>, picked: Tick) {
    change(backend, |word| word.hear(true, picked), Tick::ZERO);
    trial.set(Trial { breaker: false, ..trial.get() });
}

/// An attempt picked at `picked` has got its whole answer at `now`, whose head said what it was `told`.
#[inline]
pub(in crate::targets) fn answered(
    backend: &Backend,
    trial: &Cell<Trial>,
    told: Told,
    picked: Tick,
    now: Tick,
) {
    let is_clean = backend.errors().load(Ordering::Relaxed) == 0
        && backend.breaker().is_clear()
        && backend.ejection().word().kind().is_none();
    if is_clean && !told.error && !told.failure && !trial.get().is_any() {
        return;
    }
    judge(backend, trial, told, picked, now);
}

#[cold]
fn judge(backend: &Backend, trial: &Cell<Trial>, told: Told, picked: Tick, now: Tick) {
    let tried = trial.replace(Trial::NONE);
    if told.failure {
        count_failure(backend, tried.breaker, picked, now);
    } else {
        change(backend, |word| word.succeed(tried.breaker), now);
    }
    if told.error {
        count_error(backend, tried.ejection, picked, now);
        return;
    }
    backend.errors().store(0, Ordering::Relaxed);
    let Some(spans) = backend.board().rules().ejection else { return };
    let succeed = |word: EjectionWord| word.succeed(tried.ejection, picked, spans);
    if turn(backend, succeed, |standing| *standing = back(standing, WENT_WELL)) {
        backend.board().lock().refresh(backend);
        backend.board().turned.notify_one();
    }
}

/// No connection to it could be opened.
#[cold]
pub(in crate::targets) fn refused(backend: &Backend, trial: &Cell<Trial>, picked: Tick, now: Tick) {
    let tried = trial.replace(Trial::NONE);
    count_failure(backend, tried.breaker, picked, now);
    let board = backend.board();
    let Some(spans) = board.rules().ejection else { return };
    let fail =
        |word: EjectionWord| word.fail_tried(EjectionKind::Refused, tried.ejection, spans, picked, now);
    let reason = "it could not be connected to";
    if turn(backend, fail, |standing| *standing = out(standing, tried.ejection, reason, now)) {
        if !tried.ejection {
            board.tally.eject();
        }
        board.lock().refresh(backend);
        if backend.ejection().word().is_news() {
            board.turned.notify_one();
        }
    }
}

/// It took the connection and then failed.
#[cold]
pub(in crate::targets) fn failed(backend: &Backend, trial: &Cell<Trial>, picked: Tick, now: Tick) {
    let tried = trial.replace(Trial::NONE);
    count_failure(backend, tried.breaker, picked, now);
    count_error(backend, tried.ejection, picked, now);
}

/// The trial of its breaker came to nothing, by nobody's doing.
#[cold]
pub(in crate::targets) fn released(backend: &Backend) {
    change(backend, |word| word.release(true), Tick::ZERO);
}

fn count_failure(backend: &Backend, trial: bool, picked: Tick, now: Tick) {
    if let Some(rules) = backend.board().rules().breaker {
        change(backend, |word| word.fail(trial, rules, picked, now), now);
    }
}

fn count_error(backend: &Backend, trial: bool, picked: Tick, now: Tick) {
    let errors = backend.errors();
    let count = |errors: u8| Some(errors.saturating_add(1));
    let before = errors.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count).unwrap_or(u8::MAX);
    let count = before.saturating_add(1);
    let most = backend.board().rules().errors;
    if trial && backend.ejection().word().is_outlier() {
        // It was left out for something; it still does it.
        let leave = Leave { kind: EjectionKind::Failing, trial: true, has_room: true };
        leave_out(backend, leave, "its trial failed", picked, now);
    } else if most > 0 && count >= most {
        // Counted anew whether it may be left out or not: where all fail, not every failure asks.
        errors.store(0, Ordering::Relaxed);
        eject(backend, EjectionKind::Failing, &format!("{count} errors in a row"), true, now);
    }
}

/// Leaves `backend` out as an outlier of this kind, from `now` on, because of `reason`. Where as many are left out as may be,
/// or `has_room` says so, one that fails takes the place of one that is only slow. False: it is out already, or there is no
/// place.
pub(in crate::targets) fn eject(
    backend: &Backend,
    kind: EjectionKind,
    reason: &str,
    has_room: bool,
    now: Tick,
) -> bool {
    leave_out(backend, Leave { kind, trial: false, has_room }, reason, now, now)
}

/// How a backend comes to be left out.
struct Leave {
    kind: EjectionKind,
    /// Its trial failed: it has its place among those who are left out.
    trial: bool,
    /// One more may be left out, as far as the caller knows.
    has_room: bool,
}

fn leave_out(backend: &Backend, leave: Leave, reason: &str, picked: Tick, now: Tick) -> bool {
    let Leave { kind, trial, has_room } = leave;
    let board = backend.board();
    let rules = board.rules();
    let Some(spans) = rules.ejection else { return false };
    let fail = |word: EjectionWord| word.fail_tried(kind, trial, spans, picked, now);
    let mut locked = board.lock();
    if fail(backend.ejection().word()) == backend.ejection().word() {
        return false;
    }
    let has_place = trial || has_room && locked.may_eject(&rules, now);
    let pardoned = if has_place {
        false
    } else {
        kind == EjectionKind::Failing && pardon_slow(&mut locked, backend, now)
    };
    if !has_place && !pardoned {
        return false;
    }
    let is_new = turn(backend, fail, |standing| *standing = out(standing, trial, reason, now));
    locked.refresh(backend);
    drop(locked);
    if is_new && !trial {
        board.tally.eject();
    }
    if pardoned || is_new {
        board.turned.notify_one();
    }
    is_new
}

/// Lets in again, at `now`, who is left out only for being slow, if there is somebody: `failing` needs its place among those that
/// may be left out.
fn pardon_slow(locked: &mut BoardState, failing: &Backend, now: Tick) -> bool {
    let Some(slow) = locked.slow() else { return false };
    let reason = format!("it is only slow, and {} fails; not both may be left out", failing.identity);
    let is_new = turn(&slow, |word| word.pardon(now), |standing| *standing = back(standing, &reason));
    locked.refresh(&slow);
    is_new
}

/// Changes the word of its ejection and what is `noted` of it, under one lock: whoever reads both finds the one with the other.
/// Says whether that changed something.
fn turn(
    backend: &Backend,
    with: impl Fn(EjectionWord) -> EjectionWord,
    noted: impl FnOnce(&mut Input<EjectionState>),
) -> bool {
    let word = backend.ejection().word();
    if with(word) == word {
        return false;
    }
    let mut detail = backend.detail();
    let is_new = backend.ejection().update(with);
    if is_new {
        noted(&mut detail.inputs.standing);
    }
    is_new
}

/// Why it is left out, and since when. What its `trial` has found out is nothing new.
fn out(standing: &Input<EjectionState>, trial: bool, reason: &str, now: Tick) -> Input<EjectionState> {
    Input::new(EjectionState::Ejected, reason, if trial { standing.since } else { now })
}

/// Why it is left out no more.
fn back(standing: &Input<EjectionState>, reason: &str) -> Input<EjectionState> {
    Input::new(EjectionState::Fine, reason, standing.since)
}

/// Changes the word of its breaker, and all that follows from another state of it.
fn change(backend: &Backend, with: impl Fn(BreakerWord) -> BreakerWord, now: Tick) {
    let breaker = backend.breaker();
    if breaker.count(&with) {
        return;
    }
    // The state and its reason change under one lock: whoever reads both finds the one with the other.
    let mut detail = backend.detail();
    let was_tried = breaker.word().is_on_probation();
    let Some((from, to)) = breaker.update(with) else { return };
    let board = backend.board();
    match (from, to, board.rules().breaker) {
        (_, Circuit::Closed, _) => detail.inputs.fuse = Input::new(Fuse::Closed, WENT_WELL, now),
        (Circuit::Closed, Circuit::Open(_), Some(rules)) => {
            let reason = match was_tried {
                true => "it failed again right after its trial".to_owned(),
                false => format!("{} attempts in a row failed", rules.failures),
            };
            detail.inputs.fuse = Input::new(Fuse::Open, reason, now);
            board.tally.trip();
        }
        (Circuit::Open(_) | Circuit::HalfOpen, _, _)
        | (Circuit::Closed, Circuit::HalfOpen | Circuit::Open(_), _) => {}
    }
    drop(detail);
    board.lock().refresh(backend);
    board.turned.notify_one();
}

/// What an attempt that begins at `now` finds out about a backend that has been left out. `None`: it is not time for that.
pub(in crate::targets) fn on_trial(backend: &Arc<Backend>, now: Tick) -> Option<Trial> {
    let rules = backend.board().rules();
    let breaker = match backend.breaker().admit(now) {
        Passage::Barred => return None,
        passage => passage == Passage::Trial,
    };
    let admission = rules.ejection.map_or(Admission::Open, |spans| backend.ejection().admit(now, spans));
    let set_aside = backend.board().panics() && backend.ejection().word().is_outlier();
    if admission == Admission::Ejected && !set_aside {
        if breaker {
            backend.breaker().update(|word| word.release(true));
        }
        return None;
    }
    Some(Trial { breaker, ejection: admission == Admission::Trial })
}

/// The same of one that nobody else can be picked instead of, whose breaker is open.
#[cold]
pub(in crate::targets) fn on_trial_alone(backend: &Arc<Backend>, now: Tick) -> Option<Trial> {
    let rules = backend.board().rules();
    if backend.breaker().admit_alone(now, rules.breaker?) != Passage::Trial {
        return None;
    }
    let admission = rules.ejection.map_or(Admission::Open, |spans| backend.ejection().admit(now, spans));
    Some(Trial { breaker: true, ejection: admission == Admission::Trial })
}
