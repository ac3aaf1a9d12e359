//! The config of a cluster in a process that runs: what is proposed is judged, what all have agreed to is put into force, and an edit of this node's own
//! file is a proposal.
//!
//! Invariants:
//!
//! 1. What is in force beside the node's own keys is a revision, from the first one on that was taken; never this node's file again.
//! 2. A revision is taken when the store names it, whoever has proposed it: who proposes on this node waits for that like everybody else.
//! 3. **No revision at all is no revision**: where the store names none any more, or an older one, what is in force stays, and that is told.
//! 4. Who proposes a config holds no turn, since judging what is proposed takes one. A change by hand holds its own while the store is told, as it does while a
//!    disk is written: others wait as long as the store takes to answer or to be given up.

mod busy;
mod cached;
pub mod handing;
mod health;
mod healthy;
mod limiting;
mod limits;
mod moving;
mod names;
mod naming;
mod overlay;
mod owning;
mod proposals;
pub mod purges;
pub mod purging;
mod secrets;
pub mod sharing;

use std::sync::Arc;

use tokio::runtime::Handle;

use super::begun::now_ms;
use super::running::{Occasion, RunningConfig};
use crate::cluster::membership::Standing;
use crate::cluster::proposing::ProposedText;
use crate::cluster::revision::{self, CURRENT, RevisionRow};
use crate::cluster::view::ClusterView;
use crate::config::shared_rows;
use crate::events;
use crate::store::shared::Committed;

pub use cached::CachedRevision;
pub use sharing::{SharedReading, Together};
use sharing::{TakenRevision, unsealed};

impl RunningConfig {
    /// The same of a process that shares its config with others.
    #[must_use]
    pub fn together(mut self, together: Option<Together>) -> RunningConfig {
        self.together = together;
        self
    }

    /// The revision of its cluster's config that is in force; `None`: its own file is.
    #[must_use]
    pub fn revision(&self) -> Option<Arc<RevisionRow>> {
        self.together.as_ref().and_then(Together::in_force)
    }

    /// Puts into force what the cluster agrees on, and says what this node thinks of what is proposed, until the process drains. Called inside of the
    /// control runtime.
    pub async fn follow_cluster(&self) {
        let Some(together) = &self.together else { return };
        let mut views = together.node.views();
        let mut answered = None;
        together.line.connect(&Handle::current());
        self.tell_difference(together).await;
        loop {
            let view = Arc::clone(&views.borrow_and_update());
            self.answer(together, &view, &mut answered).await;
            self.come_to(together, &view).await;
            self.adopt_overlay(together, &view).await;
            together.seen.send_replace(view.rows.revision());
            if views.changed().await.is_err() {
                return;
            }
        }
    }

    /// Goes over to the revision that the store names.
    pub(super) async fn come_to(&self, together: &Together, view: &ClusterView) {
        let in_force = together.in_force();
        let Some(number) = revision::current(&view.rows) else {
            together.line.has_config_of(0);
            match in_force {
                Some(row) if view.rows.revision() > 0 => {
                    if together.is_new(format!("none beside {}", row.number)) {
                        events::revision_gone(row.number);
                    }
                }
                None if view.standing == Standing::Member => self.seed(together).await,
                Some(_) | None => {}
            }
            return;
        };
        // What was refused is not tried again until somebody reloads, or there is another one.
        let changed = view.rows.changed(CURRENT);
        let is_seen = together.state().seen == Some((number, changed));
        if is_seen {
            return;
        }
        let row = match together.node.revision(&view.rows, number) {
            Some(Ok(row)) => row,
            read => {
                let why = read.map_or_else(
                    || "its text is not there".to_owned(),
                    |read| read.err().map(|fault| fault.to_string()).unwrap_or_default(),
                );
                if together.is_new(format!("{number}: {why}")) {
                    events::revision_unread(number, &why);
                }
                return;
            }
        };
        let is_in_force = |row: &RevisionRow| {
            together.in_force().is_some_and(|force| (force.number, force.at_ms) == (row.number, row.at_ms))
        };
        if is_in_force(&row) {
            together.line.has_config_of(changed);
            together.state().seen = Some((number, changed));
            // Whoever began with it has not kept it yet.
            self.keep_revision(together, row).await;
            return;
        }
        // Rows that were brought back from yesterday are no news.
        if let Some(before) = in_force.filter(|before| before.number >= number && before.at_ms >= row.at_ms) {
            if together.is_new(format!("{number} behind {}", before.number)) {
                events::revision_behind(before.number, number);
            }
            together.state().seen = Some((number, changed));
            return;
        }
        self.take_revision(together, row.clone()).await;
        // What was refused is not tried again until somebody reloads, or there is another one.
        together.state().seen = Some((number, changed));
        if is_in_force(&row) {
            together.line.has_config_of(changed);
            self.end_for_all(true, &self.last.lock().await.force).await;
        }
    }

    async fn take_revision(&self, together: &Together, row: RevisionRow) {
        let (number, at_ms) = (row.number, row.at_ms);
        let loader = together.loader_of(&row);
        let mut last = self.last.lock().await;
        let force = &mut last.force;
        let (read, files) = self.read(&loader, force.file.files.clone()).await;
        let taken = match read {
            Ok(loaded) => {
                let occasion = Occasion::Revision { number, who: &row.author, node: &row.node };
                self.take(Arc::new(loaded), force, occasion).await
            }
            Err(refusal) => Err(refusal),
        };
        let outcome = self.told(taken, force, &files);
        self.show(force);
        {
            let mut state = together.state();
            state.is_refused = outcome.is_err();
            if outcome.is_ok() {
                state.in_force = Some(Arc::new(row.clone()));
            }
        }
        drop(last);
        if outcome.is_ok() {
            self.keep_revision(together, row).await;
            self.tell_difference(together).await;
        }
        together.taken.send_replace(TakenRevision { number, at_ms, outcome });
    }

    /// Keeps it for a start without the store.
    async fn keep_revision(&self, together: &Together, row: RevisionRow) {
        if let Some(cache) = &together.reading.cache {
            cached::keep(cache.clone(), row).await;
        }
    }

    /// Tells if this node's own file says something else than what is in force.
    async fn tell_difference(&self, together: &Together) {
        if together.in_force().is_none() {
            return;
        }
        let own = together.own_as_shared();
        let (read, _) = self.read(&own, crate::config::Files::default()).await;
        let Ok(own) = read else { return };
        let last = self.last.lock().await;
        let (ours, theirs) = (shared_rows(&own.effective), shared_rows(&last.force.file.effective));
        let differing = super::difference::difference(&theirs, &ours);
        if let (false, Some(row)) = (differing.is_empty(), together.in_force()) {
            let lines: Vec<String> = differing.iter().map(ToString::to_string).collect();
            events::file_differs(row.number, &lines);
        }
    }

    /// Makes the first revision of this node's own file.
    async fn seed(&self, together: &Together) {
        let own = Arc::clone(&together.reading.own);
        let read = super::background::background(move || own()).await;
        let part = match read {
            Ok(Ok(part)) => part,
            Ok(Err(error)) => {
                let why = format!("{error:#}");
                if together.is_new(why.clone()) {
                    events::unseeded(&why);
                }
                return;
            }
            Err(_) => return,
        };
        if let Some(why) = unsealed(together, &part) {
            if together.is_new(why.clone()) {
                events::unseeded(&why);
            }
            return;
        }
        // Without this node's own keys an anchor may be gone that others need.
        if let Err(refusal) = self.read(&together.own_as_shared(), crate::config::Files::default()).await.0 {
            let why = refusal.first();
            if together.is_new(why.clone()) {
                events::unseeded(&why);
            }
            return;
        }
        let author = "the first node".to_owned();
        let proposed = ProposedText { text: part.text.to_string(), author, at_ms: now_ms() };
        // Whoever was first, what comes of it is learned.
        if let Ok(Committed::Done(revision)) = together.node.seed(proposed).await {
            together.node.learned(revision).await;
        }
    }
}
