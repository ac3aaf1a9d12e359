//! What the end of an attempt does to the words of its backend: breaker, ejection, errors in a row.
//!
//! A lease calls this; the rules are in `breaker` and `ejection`. The usual case, a success of a backend that nothing is
//! held against, is a few loads of one cache line and no store.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::targets::Backend;
use crate::targets::resilience::breaker::{Circuit, Passage};
use crate::targets::resilience::ejection::{Admission, EjectionKind, EjectionWord};
use crate::targets::resilience::trial::{Told, Trial};
use crate::targets::state::decide::{EjectionState, Fuse};
use crate::targets::state::input::Input;
use crate::tick::Tick;

/// Why a backend is back that was out.
const WENT_WELL: &str = "its trial went well";

/// A fresh connection to `backend` stands, asked for at `picked`.
pub(in crate::targets) fn connected(backend: &Backend, picked: Tick) {
    if backend.ejection().word().kind() != Some(EjectionKind::Refused) {
        return;
    }
    let rules = backend.board().rules();
    if let Some(spans) = rules.ejection
        && backend.ejection().update(|word| word.connect(picked, spans))
    {
        backend.board().lock().refresh(backend);
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
    let was_outlier = backend.ejection().word().is_outlier();
    if backend.ejection().update(|word| word.succeed(tried.ejection, picked, spans)) {
        backend.board().lock().refresh(backend);
        if was_outlier {
            note_return(backend, WENT_WELL);
        }
    }
}

/// No connection to it could be opened.
#[cold]
pub(in crate::targets) fn refused(backend: &Backend, trial: &Cell<Trial>, picked: Tick, now: Tick) {
    let tried = trial.replace(Trial::NONE);
    count_failure(backend, tried.breaker, picked, now);
    let board = backend.board();
    if let Some(spans) = board.rules().ejection
        && backend
            .ejection()
            .update(|word| word.fail_tried(EjectionKind::Refused, tried.ejection, spans, picked, now))
    {
        note_standing(backend, tried.ejection, "it could not be connected to", now);
        board.lock().refresh(backend);
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
    let mut pardoned = None;
    let has_place = trial || has_room && locked.may_eject(&rules);
    if !has_place {
        pardoned = if kind == EjectionKind::Failing { locked.pardon_slow(now) } else { None };
        if pardoned.is_none() {
            return false;
        }
    }
    let is_new = backend.ejection().update(fail);
    locked.refresh(backend);
    drop(locked);
    if let Some(pardoned) = pardoned {
        note_return(
            &pardoned,
            &format!("it is only slow, and {} fails; not both may be left out", backend.identity),
        );
    }
    if !is_new {
        return false;
    }
    note_standing(backend, trial, reason, now);
    board.turned.notify_one();
    true
}

/// Keeps for status readers why it is left out, and since when.
fn note_standing(backend: &Backend, trial: bool, reason: &str, now: Tick) {
    let mut detail = backend.detail();
    let standing = &mut detail.inputs.standing;
    // What its trial has found out is nothing new.
    let since = if trial { standing.since } else { now };
    *standing = Input::new(EjectionState::Ejected, reason, since);
}

/// Keeps why it is left out no more, for whoever tells it.
fn note_return(backend: &Backend, reason: &str) {
    let mut detail = backend.detail();
    let since = detail.inputs.standing.since;
    detail.inputs.standing = Input::new(EjectionState::Fine, reason, since);
    drop(detail);
    backend.board().turned.notify_one();
}

/// Changes the word of its breaker, and all that follows from another state of it.
fn change(
    backend: &Backend,
    with: impl Fn(
        crate::targets::resilience::breaker::BreakerWord,
    ) -> crate::targets::resilience::breaker::BreakerWord,
    now: Tick,
) {
    let Some((from, to)) = backend.breaker().update(with) else { return };
    let board = backend.board();
    board.lock().refresh(backend);
    let Some(rules) = board.rules().breaker else { return };
    let fuse = match (from, to) {
        (_, Circuit::Closed) => Input::new(Fuse::Closed, WENT_WELL, now),
        (Circuit::Closed, Circuit::Open(_)) => {
            Input::new(Fuse::Open, format!("{} attempts in a row failed", rules.failures), now)
        }
        (Circuit::Open(_) | Circuit::HalfOpen, _) | (Circuit::Closed, Circuit::HalfOpen) => return,
    };
    backend.detail().inputs.fuse = fuse;
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
