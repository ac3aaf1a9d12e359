//! The part that has to do with other nodes: what is told once, whichever of them finds it.

use std::collections::HashSet;

use super::super::message::WebhookMessage;
use super::super::telling::{StoredMessage, Telling};
use super::super::together::{Claimed, SharedHooks, TellingRole, ToldOf};
use super::{DropReason, WebhookService, WebhookStep, oldest_told};
use crate::reload::begun::now_ms;

/// Ids that are remembered of messages that were sent.
const FINISHED: usize = 1_000;

impl WebhookService {
    /// The same as one of several nodes.
    pub(in crate::webhook) fn with(mut self, shared: Option<SharedHooks>) -> WebhookService {
        self.shared = shared;
        self
    }

    /// What this node has to do with what all find.
    pub(super) fn role(&self) -> TellingRole {
        match &self.shared {
            None => TellingRole::Alone,
            // Those that stay tell.
            Some(_) if self.drain.is_cancelled() => TellingRole::Other,
            Some(shared) => shared.role(),
        }
    }

    /// Comes to believe what receivers were told by others.
    pub(super) fn believe(&mut self, step: &mut WebhookStep) {
        let told = self.shared.as_mut().map(SharedHooks::told).unwrap_or_default();
        for (object, is_down) in &told {
            self.told.set(object, *is_down);
            self.told_alone.remove(object);
        }
        step.told.extend(told);
    }

    /// Goes by what is different among the nodes: tells what the one who told has not, and sends what it has left.
    pub(super) async fn meet(&mut self) {
        let mut step = WebhookStep::default();
        self.believe(&mut step);
        self.keep(step);
        self.tell_done().await;
        let role = self.role();
        let before = std::mem::replace(&mut self.role_before, role);
        if role == TellingRole::Alone {
            return;
        }
        let own: HashSet<String> = self.stored.values().map(|stored| stored.id.clone()).collect();
        if let Some(shared) = &self.shared {
            let (adopted, is_whole) = shared.adopt(&own, role == TellingRole::First).await;
            self.is_behind = !is_whole;
            for (to, message) in adopted {
                self.adopt(to, message);
            }
        }
        if before != role {
            let mut step = WebhookStep::default();
            let latest = self.history.latest();
            self.compare(latest, "found so by the node that tells from now on", &mut step).await;
            self.keep(step);
        }
        if role != TellingRole::First {
            return;
        }
        if let (Some(shared), Some(snapshot)) = (&self.shared, self.reloader.snapshots.current()) {
            let is_there = |object: &str| {
                let (target, backend) = object.split_once('/').map_or((object, None), |(t, b)| (t, Some(b)));
                let mut targets = snapshot.targets.iter().filter(|one| *one.name == *target);
                targets.any(|one| backend.is_none_or(|name| one.backends.iter().any(|b| *b.name == *name)))
            };
            shared.clear(is_there, now_ms()).await;
        }
    }

    /// Sends what a process has left that is gone, to those of its receivers that there are.
    fn adopt(&mut self, to: Vec<String>, message: WebhookMessage) {
        if self.finished.contains(&message.id) {
            // Its row came to be seen when it had been sent.
            self.undone.push((message.id, to));
            return;
        }
        let known = self.receivers.identities();
        let (id, is_late) = (message.id.clone(), message.time_ms < oldest_told());
        let (stay, gone): (Vec<String>, Vec<String>) =
            to.into_iter().partition(|receiver| known.contains(receiver) && !is_late);
        if is_late {
            gone.iter().for_each(|receiver| self.receivers.dropped(receiver, 1, DropReason::Late));
        }
        if !gone.is_empty() {
            self.undone.push((id, gone));
        }
        if !stay.is_empty() {
            self.queue_stored(message, stay, false);
        }
    }

    /// Has a message sent that lies in the store.
    fn queue_stored(&mut self, message: WebhookMessage, to: Vec<String>, is_kept: bool) {
        if to.is_empty() {
            return;
        }
        let mut step = WebhookStep::default();
        let number = self.next_number;
        let stored = StoredMessage { id: message.id.clone(), is_kept, left: to.clone() };
        self.stored.insert(number, stored);
        self.queue(to, message, &mut step);
        if !is_kept {
            step.queued.clear();
        }
        self.keep(step);
    }

    /// Has a message sent that this node has, or finds that another one does.
    pub(super) async fn tell(
        &mut self,
        telling: Telling,
        message: WebhookMessage,
        to: Vec<String>,
        step: &mut WebhookStep,
    ) {
        let of = match &telling {
            Telling::Own => None,
            Telling::State { object, is_down } => Some(ToldOf::State(object, *is_down)),
            Telling::Once(key) => Some(ToldOf::Once(key)),
        };
        let (Some(of), Some(shared)) = (of, &self.shared) else {
            self.queue(to, message, step);
            return;
        };
        if self.role() == TellingRole::Alone {
            if let Telling::State { object, is_down } = &telling {
                match is_down {
                    true => drop(self.told_alone.insert(object.clone())),
                    false => drop(self.told_alone.remove(object)),
                }
            }
            self.queue(to, message, step);
            return;
        }
        match shared.claim(of, &message, &to).await {
            Claimed::Told => {}
            Claimed::Ours => self.queue_stored(message, to, false),
            // It may be in the store all the same.
            Claimed::Unknown => self.queue_stored(message, to, true),
        }
    }

    /// Of these nobody waits any more, of what lies in the store.
    pub(super) fn note_done(&mut self, done: &mut Vec<(String, u64)>) {
        done.retain(|(receiver, number)| {
            let Some(stored) = self.stored.get_mut(number) else { return true };
            stored.left.retain(|other| other != receiver);
            self.undone.push((stored.id.clone(), vec![receiver.clone()]));
            let is_kept = stored.is_kept;
            if stored.left.is_empty()
                && let Some(stored) = self.stored.remove(number)
            {
                self.finished.push_back(stored.id);
                if self.finished.len() > FINISHED {
                    self.finished.pop_front();
                }
            }
            is_kept
        });
    }

    /// Says so in the store. What can't be said now is said later.
    pub(super) async fn tell_done(&mut self) {
        let Some(shared) = &self.shared else { return };
        if shared.role() == TellingRole::Alone {
            return;
        }
        while let Some((id, receivers)) = self.undone.first().cloned() {
            if !shared.done(&id, &receivers).await {
                return;
            }
            self.undone.remove(0);
        }
    }

    /// Whether receivers believe something else than is so (`is_down`), which is to be told; what they know from this node alone it has all know.
    pub(super) async fn is_told_otherwise(&mut self, object: &str, is_down: bool) -> bool {
        let believed = self.told.down().any(|other| other == object);
        let Some(shared) = &self.shared else { return believed != is_down };
        if believed == is_down && shared.believed(object).unwrap_or(false) != is_down {
            shared.note(object, is_down, now_ms()).await;
        }
        believed != is_down
    }
}
