//! What is proposed: by this node, which waits for what becomes of it, and by others, of which this node says whether it would take it.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::sharing::{TakenRevision, Together, name_of, refusal, unsealed};
use crate::cluster::proposing::ProposedText;
use crate::cluster::revision::{PROPOSAL, RevisionRow};
use crate::cluster::view::ClusterView;
use crate::config::{Files, SharedPart, SharedText, shared_rows};
use crate::events;
use crate::reload::background::background;
use crate::reload::begun::{Loader, now_ms};
use crate::reload::difference::difference;
use crate::reload::plan::{Plan, PlanVerdict};
use crate::reload::running::{Refusal, ReloadOutcome, RunningConfig};
use crate::reload::trial::{Applied, ApplyAsk, ApplyFault};

/// How long what was agreed on takes to be in force here.
const TAKING: Duration = Duration::from_secs(30);

impl RunningConfig {
    /// Says what this node thinks of what is proposed, once.
    pub(super) async fn answer(
        &self,
        together: &Together,
        view: &ClusterView,
        answered: &mut Option<(u64, String)>,
    ) {
        let changed = view.rows.changed(PROPOSAL);
        if changed == 0 || answered.as_ref().is_some_and(|(at, _)| *at == changed) {
            return;
        }
        let Some(read) = together.node.proposal(&view.rows) else { return };
        let (id, problems) = match read {
            Ok(row) => {
                let problems = self.judge_proposed(together, &row.revision).await;
                events::proposal_judged(
                    &row.revision.author,
                    &row.revision.node,
                    problems.first().map(String::as_str),
                );
                (row.id, problems)
            }
            // Nobody knows what it is called, so nobody can be told: who proposes hears that there is no word.
            Err(fault) => return events::proposal_unread(&fault.to_string()),
        };
        if together.node.acknowledge(&id, problems).await.is_ok() {
            *answered = Some((changed, id));
        }
    }

    /// Why this node would not take it.
    async fn judge_proposed(&self, together: &Together, row: &RevisionRow) -> Vec<String> {
        let plan = self.plan(Some(together.loader_of(row))).await;
        if plan.verdict != PlanVerdict::Refused {
            return Vec::new();
        }
        let mut problems: Vec<String> =
            plan.problems.iter().map(|problem| problem.first_line().to_owned()).collect();
        problems.truncate(20);
        if problems.is_empty() {
            problems.push("it can't be put into force".to_owned());
        }
        problems
    }

    /// Reads this node's own file again: what is its own is taken, and what is shared is proposed, if it is something else than it was.
    pub(in crate::reload) async fn reload_together(&self, together: &Together) -> ReloadOutcome {
        let own = Arc::clone(&together.reading.own);
        let read = background(move || own()).await;
        let part = match read.map_err(|error| refusal(error.to_string()))? {
            Ok(part) => part,
            Err(error) => {
                let refused = refusal(format!("{error:#}"));
                events::reload_refused(&refused.first(), 0);
                return Err(refused);
            }
        };
        // What was in the way of the cluster's config may not be any more.
        let is_refused = {
            let mut state = together.state();
            state.seen = state.seen.filter(|_| !state.is_refused);
            std::mem::take(&mut state.is_refused)
        };
        if is_refused {
            self.come_to(together, &together.node.view()).await;
        }
        let is_edited = together.state().own.as_ref() != Some(&part.text);
        let is_shared = together.in_force().is_some();
        let is_news = is_shared && is_edited && !self.says_what_is_in_force(together).await?;
        let outcome = match is_news {
            true => self.propose(together, &part, "an edited file".to_owned()).await,
            false => self.reload_own().await,
        };
        match &outcome {
            // Whoever asks again after a refusal asks all nodes again.
            Ok(_) => together.state().own = Some(part.text),
            Err(refusal) if is_news => {
                events::reload_refused(&refusal.first(), refusal.problems.len().saturating_sub(1));
            }
            Err(_) => {}
        }
        if !is_shared {
            // What kept it from being the first revision may be gone.
            self.come_to(together, &together.node.view()).await;
        }
        outcome
    }

    /// Whether the file of this node comes to what is in force.
    async fn says_what_is_in_force(&self, together: &Together) -> Result<bool, Refusal> {
        let (read, _) = self.read(&together.own_as_shared(), Files::default()).await;
        let own = match read {
            Ok(own) => own,
            Err(refusal) => {
                events::reload_refused(&refusal.first(), refusal.problems.len().saturating_sub(1));
                return Err(refusal);
            }
        };
        let last = self.last.lock().await;
        let in_force = shared_rows(&last.force.file.effective);
        Ok(difference(&in_force, &shared_rows(&own.effective)).is_empty())
    }

    /// Has all nodes agree to a config that somebody gives.
    pub(in crate::reload) async fn apply_together(
        &self,
        together: &Together,
        ask: ApplyAsk,
    ) -> Result<Applied, ApplyFault> {
        if ask.window.is_some() {
            let why = "in a cluster no config is on trial: all nodes say beforehand whether they would take it; apply it without `confirm`";
            return Err(ApplyFault::Conflict(why.to_owned()));
        }
        if together.in_force().is_none() {
            let why = "this node has not heard of its cluster's config yet";
            return Err(ApplyFault::Conflict(why.to_owned()));
        }
        let (part, text) = (Arc::clone(&together.reading.part), Arc::clone(&ask.text));
        let read = background(move || part(&text)).await;
        let part = read.map_err(|error| ApplyFault::Conflict(error.to_string()))?;
        let part = part.map_err(|error| ApplyFault::Conflict(format!("{error:#}")))?;
        let plan = self.propose(together, &part, ask.who).await.map_err(ApplyFault::Refused)?;
        Ok(Applied { plan: Plan::clone(&plan), trial: None })
    }

    /// Has all nodes agree to a text, and waits until it is in force here.
    pub(in crate::reload) async fn propose(
        &self,
        together: &Together,
        part: &SharedPart,
        author: String,
    ) -> ReloadOutcome {
        if let Some(why) = unsealed(together, part) {
            return Err(refusal(why));
        }
        // What this node itself would not take is told in full, and is shown to nobody.
        let shared = SharedText { name: "this config".into(), text: Arc::clone(&part.text) };
        let load = Arc::clone(&together.reading.shared);
        let own: Loader = Arc::new(move || load(&shared));
        self.read(&own, Files::default()).await.0?;
        // Later than what is in force, whatever the clocks of its authors say.
        let (force, force_at) = together.in_force().map_or((0, 0), |row| (row.number, row.at_ms));
        let at_ms = now_ms().max(force_at + 1);
        let proposed = ProposedText { text: part.text.to_string(), author, at_ms };
        let number = together.node.propose(together.next_id(), proposed, force).await;
        let number = number.map_err(|fault| refusal(fault.to_string()))?;
        let mut taken = together.taken.subscribe();
        let is_there = taken.wait_for(|taken| taken.number == number && taken.at_ms == at_ms);
        match timeout(TAKING, is_there).await {
            Ok(Ok(taken)) => {
                let TakenRevision { outcome, .. } = &*taken;
                outcome.clone()
            }
            Ok(Err(_)) | Err(_) => {
                let name = name_of(number);
                Err(refusal(format!(
                    "{name} is the cluster's config now, and is not in force on this node yet"
                )))
            }
        }
    }
}
