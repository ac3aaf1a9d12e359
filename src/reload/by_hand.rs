//! Changes by hand: each is a turn of its own, in which the file as it was last read is put into force with another overlay.
//!
//! Validated, then kept by the store, then applied, then answered. What is not kept is not applied; what is kept and can't be
//! applied is taken back from the store. So whoever was told that it is done finds it done after a crash, and whoever was told nothing may
//! find either.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::background::background;
use super::begun::now_ms;
use super::kept::{StoreReach, Unkept};
use super::plan::{Plan, PlannedEnd};
use super::running::{ConfigInForce, Refusal, RunningConfig, TurnPause};
use crate::events;
use crate::overlay::{
    Author, Changed, Declined, ObjectName, OverlayEntry, Wish, WishList, change, lay, next_end, reconcile,
};
use crate::targets::Backend;

/// The clock may be set, so it is looked at again after at most so long.
pub(super) const GLANCE: Duration = Duration::from_secs(60);

/// For how long a change is tried again before which other nodes come with theirs.
pub(super) const TRYING: Duration = Duration::from_secs(10);

/// What somebody wants changed.
#[derive(Clone, Debug)]
pub struct HandAsk {
    /// One after the other; all of it or nothing.
    pub wishes: Vec<Wish>,
    /// By whom.
    pub author: Author,
    /// For how long; `None`: until somebody says otherwise.
    pub lasts: Option<Duration>,
    /// Within which time the tunnels of what is removed end, if that is shorter than the `drain_timeout` of its target.
    pub drain: Option<Duration>,
    /// For whom.
    pub reach: StoreReach,
}

/// What has become of it.
#[derive(Clone, Debug)]
pub struct HandChange {
    /// What has changed in the process.
    pub plan: Plan,
    /// Which objects were meant, in the order of the wishes.
    pub objects: Vec<ObjectName>,
}

/// Why nothing has changed.
#[derive(Clone, Debug)]
pub enum HandFault {
    /// What was asked for can't be.
    Declined(Declined),
    /// The process can't go over to it now.
    Refused(Refusal),
    /// It can't be kept.
    Unkept(Unkept),
    /// It can be done for all, so it is not done for this node alone.
    Shared,
}

impl RunningConfig {
    /// Changes something by hand, and logs it. Called inside of the control runtime.
    ///
    /// # Errors
    /// Nothing has changed.
    pub async fn change(&self, ask: HandAsk) -> Result<HandChange, HandFault> {
        self.may_reach(ask.reach).map_err(|()| HandFault::Shared)?;
        let begun = Instant::now();
        loop {
            let seen = self.overlay_seen();
            match self.change_once(ask.clone()).await {
                Err(HandFault::Unkept(unkept)) if unkept.is_conflict && begun.elapsed() < TRYING => {
                    // What others have changed meanwhile is in force first.
                    if !self.learn_overlay(seen).await {
                        return Err(HandFault::Unkept(unkept));
                    }
                }
                outcome => return outcome,
            }
        }
    }

    async fn change_once(&self, ask: HandAsk) -> Result<HandChange, HandFault> {
        let mut last = self.last.lock().await;
        // It may have come to be one of the cluster meanwhile.
        self.may_reach(ask.reach).map_err(|()| HandFault::Shared)?;
        let outcome = self.change_in_turn(&mut last.force, ask).await;
        self.show(&last.force);
        outcome
    }

    async fn change_in_turn(&self, force: &mut ConfigInForce, ask: HandAsk) -> Result<HandChange, HandFault> {
        let HandAsk { wishes, author, lasts, drain, reach } = ask;
        let at_ms = now_ms();
        let lasts = lasts.map(|span| u64::try_from(span.as_millis()).unwrap_or(u64::MAX));
        let expires_ms = lasts.map(|span| at_ms.saturating_add(span));
        let (before, paused_before, next_id) = {
            let kept = force.kept();
            if let Some(reason) = kept.fault() {
                return Err(HandFault::Unkept(Unkept::because(reason)));
            }
            // Where others change them too, what they have stored may not be in force here yet.
            let before = if kept.is_shared() {
                reconcile(&kept.basis(), &force.file, at_ms).entries
            } else {
                kept.entries().to_vec()
            };
            (before, kept.paused().to_vec(), kept.next_id())
        };
        let ask = WishList { wishes, author, at_ms, expires_ms };
        let changed = change(&force.file, &before, &paused_before, &force.laid.aside, next_id, &ask);
        let Changed { entries, paused, next_id, laid, objects } = changed.map_err(HandFault::Declined)?;
        self.keep(force, entries, paused, next_id, reach).await.map_err(HandFault::Unkept)?;
        let leaving = self.backends(&objects);
        match self.apply(&laid, force.rows()).await {
            Ok((plan, reloaded)) => {
                force.laid = laid;
                if let Some(window) = drain {
                    self.reloader.hasten(leaving, window);
                }
                events::overlay_changed(&ask.author.to_string(), &plan.lines(), &objects);
                self.tell_swap(&reloaded);
                Ok(HandChange { plan, objects })
            }
            Err(refusal) => {
                // Nobody is told that it is done, so it may not be there after a crash.
                let kept = self.keep(force, before.clone(), paused_before.clone(), next_id, reach).await;
                if let Err(unkept) = kept {
                    let mut kept = force.kept();
                    kept.pause(&paused_before);
                    kept.hold(&before, next_id);
                    drop(kept);
                    events::overlay_behind(&unkept.reason);
                }
                Err(HandFault::Refused(refusal))
            }
        }
    }

    /// The backends of these names that are in force.
    fn backends(&self, objects: &[ObjectName]) -> Vec<Arc<Backend>> {
        let Some(snapshot) = self.reloader.snapshots.current() else { return Vec::new() };
        let is_meant = |target: &str, backend: &str| {
            objects.iter().any(|object| object.target == target && object.backend.as_deref() == Some(backend))
        };
        let all = snapshot.targets.iter().flat_map(|target| {
            let meant = target.backends.iter().filter(|backend| is_meant(&target.name, &backend.name));
            meant.cloned().collect::<Vec<_>>()
        });
        all.collect()
    }

    /// Ends what is over, whenever something is; ends itself never. Called inside of the control runtime.
    pub async fn keep_time(&self) {
        tokio::join!(self.end_in_time(), self.let_in_in_time());
    }

    async fn end_in_time(&self) {
        let (mut changes, mut is_done) = (self.by_hand.subscribe(), true);
        loop {
            let due = next_end(&changes.borrow_and_update().entries).filter(|_| is_done);
            let wait = due.map_or(GLANCE, |due| Duration::from_millis(due.saturating_sub(now_ms())));
            tokio::select! {
                () = tokio::time::sleep(wait.min(GLANCE)) => is_done = self.end_what_is_over().await,
                changed = changes.changed() => if changed.is_err() { return },
            }
        }
    }

    /// Says whether nothing that is over is left.
    async fn end_what_is_over(&self) -> bool {
        let mut last = self.last.lock().await;
        let force = &mut last.force;
        if force.kept().fault().is_some() {
            // A process that ends.
            return false;
        }
        let entries = force.kept().entries().to_vec();
        let reconciled = reconcile(&force.kept().basis(), &force.file, now_ms());
        if reconciled.entries == entries {
            // What could not be kept for want of room may be kept now.
            self.settle(&entries, force).await;
            self.end_for_all(false, force).await;
            return true;
        }
        let laid = lay(&force.file, &reconciled.entries);
        match self.apply(&laid, force.rows()).await {
            Ok((mut plan, reloaded)) => {
                plan.over = reconciled.ended.iter().map(PlannedEnd::from).collect();
                self.tell_swap(&reloaded);
                force.laid = laid;
                self.settle(&reconciled.entries, force).await;
                self.end_for_all(false, force).await;
                self.show(force);
                events::overlay_ended(&plan.lines());
                true
            }
            Err(refusal) => {
                events::reload_refused(&refusal.first(), 0);
                false
            }
        }
    }

    /// Keeps what is changed by hand in the place of what was; nothing changes where that fails.
    async fn keep(
        &self,
        force: &ConfigInForce,
        entries: Vec<OverlayEntry>,
        paused: Vec<OverlayEntry>,
        next_id: u64,
        reach: StoreReach,
    ) -> Result<(), Unkept> {
        let kept = Arc::clone(&force.kept);
        let kept = background(move || kept.keep(&entries, &paused, next_id, reach));
        kept.await.unwrap_or_else(|error| Err(Unkept::because(error.to_string())))
    }

    /// The entries in force are these; they are kept as soon as they can be.
    pub(super) async fn settle(&self, entries: &[OverlayEntry], force: &mut ConfigInForce) {
        let (kept, can_keep) = {
            let mut state = force.kept();
            let next_id = state.next_id();
            state.hold(entries, next_id);
            // What becomes of what all share all decide alike, not each by what it sees.
            (Arc::clone(&force.kept), state.fault().is_none() && !state.is_shared())
        };
        let outcome = background(move || if can_keep { kept.catch_up() } else { Ok(()) });
        if let Ok(Err(unkept)) = outcome.await {
            events::overlay_behind(&unkept.reason);
        }
    }

    /// Ends what of all nodes' entries is over; with `is_judged` also what the config ends that all of them have.
    pub(super) async fn end_for_all(&self, is_judged: bool, force: &ConfigInForce) {
        if !force.kept().is_shared() {
            return;
        }
        let (kept, file) = (Arc::clone(&force.kept), is_judged.then(|| Arc::clone(&force.file)));
        let ended = background(move || kept.end_stored(file.as_deref(), now_ms())).await;
        match ended {
            // Another node has been first, and what it has made of it is on its way; or the next one does it.
            Ok(Err(unkept)) if !unkept.is_conflict => events::overlay_behind(&unkept.reason),
            _ => {}
        }
    }

    /// Keeps nothing from now on, so that a successor can have the folder. Waits for the turn that goes on.
    pub async fn close_store(&self) {
        self.close_store_in(&self.pause().await).await;
    }

    /// The same in the turn that one has: whoever waits for its own can keep nothing any more.
    pub async fn close_store_in(&self, turn: &TurnPause<'_>) {
        let kept = Arc::clone(&turn.0.force.kept);
        let _ = background(move || kept.close("this process is about to end")).await;
        self.show(&turn.0.force);
    }
}
