//! What other nodes change by hand, and whom they block: it is put into force here.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::time::timeout;

use super::cached;
use super::sharing::Together;
use crate::cluster::membership::Standing;
use crate::cluster::view::ClusterView;
use crate::events;
use crate::overlay::{OverlayEntry, lay, reconcile};
use crate::reload::background::background;
use crate::reload::begun::now_ms;
use crate::reload::kept::StoreReach;
use crate::reload::kept::shared::SharedOverlay;
use crate::reload::running::{ConfigInForce, RunningConfig};
use crate::store::shared::Revision;

/// How long a change that came second waits to learn of the first.
const LEARNING: std::time::Duration = std::time::Duration::from_secs(2);

impl RunningConfig {
    /// Up to which change of the store all is in force here.
    pub(in crate::reload) fn overlay_seen(&self) -> Revision {
        self.together.as_ref().map_or(0, |together| *together.seen.borrow())
    }

    /// Waits until more is in force than was at `seen`, though not for long; says whether it is.
    pub(in crate::reload) async fn learn_overlay(&self, seen: Revision) -> bool {
        let Some(together) = &self.together else { return false };
        let mut changes = together.seen.subscribe();
        let learned = timeout(LEARNING, changes.wait_for(|at| *at > seen)).await;
        matches!(learned, Ok(Ok(_)))
    }

    /// Whether something may be changed for these: a node that is one of the cluster changes nothing for itself alone.
    pub(in crate::reload) fn may_reach(&self, reach: StoreReach) -> Result<(), ()> {
        let is_member =
            self.together.as_ref().is_some_and(|together| together.node.view().standing == Standing::Member);
        if reach == StoreReach::Own && is_member { Err(()) } else { Ok(()) }
    }

    /// Puts into force what these rows say of changes by hand and blocks.
    pub(super) async fn adopt_overlay(&self, together: &Together, view: &ClusterView) {
        let is_rewound = together.rewinds.swap(view.rewinds, Ordering::Relaxed) != view.rewinds;
        if (view.standing == Standing::Member || is_rewound) && self.blocks.end_own() {
            events::own_changes_ended();
            let mut last = self.last.lock().await;
            self.go_over(&mut last.force).await;
        }
        if is_rewound {
            // What it has now comes, or if it has nothing, what is in force here is written to it.
            self.blocks.forget_stored();
            together.cached.store(0, Ordering::Relaxed);
        }
        if self.blocks.has_own() {
            // That holds until it is one of them again, whatever it hears of them.
            return;
        }
        let generation = SharedOverlay::generation(&view.rows);
        if generation == 0 {
            if view.standing == Standing::Member && view.rows.revision() > 0 {
                self.store_overlay().await;
            }
            return;
        }
        let is_known = generation <= self.blocks.generation();
        if is_known && together.cached.load(Ordering::Relaxed) >= generation {
            return;
        }
        let shared = SharedOverlay::of(&view.rows);
        if !is_known {
            let mut last = self.last.lock().await;
            let (is_news, has_blocks) = self.blocks.adopt(&shared);
            if has_blocks {
                events::blocked_elsewhere(self.blocked().len());
            }
            if is_news {
                self.go_over(&mut last.force).await;
            }
        }
        let place = together.reading.cache.as_deref().map(cached::beside);
        if let Some(place) = place
            && let Err(error) = cached::keep_overlay(place, shared).await
        {
            events::overlay_behind(&error.to_string());
        }
        together.cached.store(generation, Ordering::Relaxed);
    }

    /// Puts what is stored into force, as far as it is not over here.
    async fn go_over(&self, force: &mut ConfigInForce) {
        let before = force.kept().entries().to_vec();
        let reconciled = reconcile(&force.kept().basis(), &force.file, now_ms());
        let entries = reconciled.entries;
        if entries != before {
            let laid = lay(&force.file, &entries);
            match self.apply(&laid, force.rows()).await {
                Ok((plan, reloaded)) => {
                    let differs = |all: &[OverlayEntry], entry: &&OverlayEntry| !all.contains(entry);
                    let new = entries.iter().filter(|entry| differs(&before, entry));
                    let gone = before.iter().filter(|entry| differs(&entries, entry));
                    let mut objects: Vec<_> = new.chain(gone).map(|entry| entry.object.clone()).collect();
                    objects.sort();
                    objects.dedup();
                    events::overlay_changed("another node", &plan.lines(), &objects);
                    self.tell_swap(&reloaded);
                    force.laid = laid;
                }
                // It is tried again with the next config.
                Err(refusal) => return events::reload_refused(&refusal.first(), 0),
            }
        }
        self.settle(&entries, force).await;
        self.show(force);
    }

    /// The store has nothing of it: what is in force here is written there.
    async fn store_overlay(&self) {
        let last = self.last.lock().await;
        let kept = Arc::clone(&last.force.kept);
        {
            let mut state = kept.state();
            state.forget_stored();
            if state.entries().is_empty() && state.blocked().is_empty() {
                state.nothing_stored();
                return;
            }
        }
        match background(move || kept.catch_up()).await {
            Ok(Ok(())) => events::overlay_stored_again(),
            // Another node was first, and what it has written is on its way.
            Ok(Err(unkept)) if unkept.is_conflict => {}
            Ok(Err(unkept)) => events::overlay_behind(&unkept.reason),
            Err(error) => events::overlay_behind(&error.to_string()),
        }
    }
}
