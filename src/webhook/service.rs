//! Reads what is told, makes messages of it, and has them sent. All of it on one thread of its own, so that nothing else waits for
//! a receiver, and nothing is missed because others are busy.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::backoff::{AGE_MAX, WINDOW};
use super::delivery::Receiver;
use super::journal::WebhookJournal;
use super::kept::{KeptMessages, QueuedMessage, WaitingMessages, WebhookStep};
use super::last_told::{LastTold, ToldNews};
use super::message::WebhookMessage;
use super::queue::WebhookQueue;
use super::receivers::{DropReason, Receivers};
use super::states::BackendStates;
use super::telling::{StoredMessage, Telling};
use super::together::{SharedHooks, TellingRole};
use crate::config::model::{Webhook, WebhookEvent};
use crate::events::{self, Event, EventHistory, EventKind, EventReader, EventsAfter};
use crate::net::now;
use crate::reload::Reloader;
use crate::reload::begun::now_ms;
use crate::targets::Health;
use crate::tick::Tick;

mod shared;

/// Events that are taken in at a time.
const BATCH: usize = 512;
/// After which time the store is told again what it could not be.
const AGAIN: Duration = Duration::from_secs(1);
/// How long those that are being sent have when the process drains.
const GRACE: Duration = Duration::from_millis(250);

/// What becomes of an attempt.
type Attempted = Result<(), String>;

/// An attempt under way.
type Attempt = Pin<Box<dyn Future<Output = Attempted> + Send>>;

/// Begins one: to this receiver, with this message, and how all backends are at this moment. Tests have others.
type Post = fn(Arc<Receiver>, Arc<WebhookMessage>, Arc<str>, u64) -> Attempt;

fn post(receiver: Arc<Receiver>, message: Arc<WebhookMessage>, states: Arc<str>, at_ms: u64) -> Attempt {
    Box::pin(async move { receiver.send(&message, &states, at_ms).await })
}

/// What it all needs.
pub(super) struct WebhookService {
    node: String,
    reloader: Arc<Reloader>,
    history: Arc<EventHistory>,
    reader: EventReader,
    config: watch::Receiver<Vec<Webhook>>,
    drain: CancellationToken,
    receivers: Receivers,
    queue: WebhookQueue,
    told: LastTold,
    next_number: u64,
    states: BackendStates,
    /// The config that `told` was last compared with.
    compared: u64,
    /// `None`: nothing is kept.
    journal: Option<WebhookJournal>,
    attempts: JoinSet<Attempted>,
    post: Post,
    under_way: HashMap<Id, (String, u64)>,
    /// `None`: there are no other nodes.
    shared: Option<SharedHooks>,
    role_before: TellingRole,
    /// Messages that lie in the store, by their numbers here.
    stored: HashMap<u64, StoredMessage>,
    /// Who does not wait any more for which of them, and nobody could be told.
    undone: Vec<(String, Vec<String>)>,
    /// Those that were sent last.
    finished: VecDeque<String>,
    /// There are messages that nobody sends.
    is_behind: bool,
    /// What this node has told to be down while it was none of the cluster.
    told_alone: BTreeSet<String>,
}

/// What was told before this is told no more, in milliseconds since 1970.
fn oldest_told() -> u64 {
    now_ms().saturating_sub(u64::try_from(AGE_MAX.as_millis()).unwrap_or(u64::MAX))
}

impl WebhookService {
    /// Of the process that is called `node`, for what comes after the event of number `from`. `kept`: what the process before has left.
    #[must_use]
    pub(super) fn new(
        node: &str,
        reloader: &Arc<Reloader>,
        (history, from): (&Arc<EventHistory>, u64),
        drain: &CancellationToken,
        (journal, kept): (Option<WebhookJournal>, KeptMessages),
    ) -> WebhookService {
        let mut service = WebhookService {
            node: node.to_owned(),
            reloader: Arc::clone(reloader),
            history: Arc::clone(history),
            reader: history.reader(from),
            config: reloader.webhooks.subscribe(),
            drain: drain.clone(),
            receivers: Receivers::default(),
            queue: WebhookQueue::default(),
            told: kept.told,
            next_number: kept.waiting.keys().last().map_or(1, |last| last + 1),
            states: BackendStates::default(),
            compared: 0,
            journal,
            attempts: JoinSet::new(),
            post,
            under_way: HashMap::new(),
            shared: None,
            role_before: TellingRole::Alone,
            stored: HashMap::new(),
            undone: Vec::new(),
            finished: VecDeque::new(),
            is_behind: false,
            told_alone: BTreeSet::new(),
        };
        service.follow();
        service.take_over(kept.waiting);
        service
    }

    /// What waited when the process before ended waits again, with its ids.
    fn take_over(&mut self, waiting: WaitingMessages) {
        let (at, mut step, mut gone, mut late) = (now(), WebhookStep::default(), 0, HashMap::new());
        let known: HashSet<String> = self.receivers.identities().into_iter().collect();
        let oldest = oldest_told();
        for (number, (to, message)) in waiting {
            for receiver in to {
                if !known.contains(&receiver) {
                    gone += 1;
                } else if message.time_ms < oldest {
                    *late.entry(receiver.clone()).or_insert(0) += 1;
                } else {
                    let dropped = self.queue.add(&receiver, number, &message, at.after(WINDOW), at);
                    step.done.extend(dropped);
                    continue;
                }
                step.done.push((receiver, number));
            }
        }
        if gone > 0 {
            events::webhook_dropped("of an earlier config", gone, "it is not in the config any more");
        }
        late.into_iter().for_each(|(receiver, count)| {
            self.receivers.dropped(&receiver, count, DropReason::Late);
        });
        self.keep(step);
    }

    /// Goes on until the process drains.
    pub(super) async fn run(&mut self) {
        let drain = self.drain.clone();
        if let Some(shared) = &mut self.shared {
            // What it finds before it has joined the others may know already.
            let _ = drain.run_until_cancelled(shared.joined()).await;
        }
        loop {
            self.work();
            self.tell_done().await;
            let due = self.queue.due();
            let nodes = async {
                match &mut self.shared {
                    Some(shared) => shared.changed().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.drain.cancelled() => return,
                () = nodes => self.meet().await,
                after = self.reader.next(BATCH) => self.take(&after).await,
                Ok(()) = self.config.changed() => self.follow(),
                Some(ended) = self.attempts.join_next_with_id() => self.settle(ended),
                () = sleep(due.unwrap_or_default().since(now())), if due.is_some() => {}
                // What the store could not be told it is told again.
                () = sleep(AGAIN), if self.is_behind || !self.undone.is_empty() => self.meet().await,
            }
        }
    }

    /// Takes in what was told up to now, and lets those that are being sent come to an end, for a moment. The rest waits on the disk for
    /// the next process.
    pub(super) async fn end(&mut self) {
        while let Ok(after) = timeout(Duration::ZERO, self.reader.next(BATCH)).await {
            self.take(&after).await;
        }
        self.work();
        let _ = timeout(GRACE, async {
            while let Some(ended) = self.attempts.join_next_with_id().await {
                self.settle(ended);
            }
        })
        .await;
        if let Some(mut journal) = self.journal.take() {
            journal.close();
        }
    }

    /// Drops what is too old, begins to send what is due, and shows how it goes.
    fn work(&mut self) {
        let at = now();
        let mut step = WebhookStep::default();
        let mut late: HashMap<String, usize> = HashMap::new();
        for (receiver, number) in self.queue.expire(at) {
            *late.entry(receiver.clone()).or_insert(0) += 1;
            step.done.push((receiver, number));
        }
        late.into_iter().for_each(|(receiver, count)| {
            self.receivers.dropped(&receiver, count, DropReason::Late);
        });
        self.keep(step);
        while let Some(due) = self.queue.next(at) {
            let Some(receiver) = self.receivers.reach(&due.receiver) else { continue };
            let snapshot = self.reloader.snapshots.current();
            let (states, at_ms) = self.states.look(snapshot.as_deref(), at, now_ms());
            let attempt = self.attempts.spawn((self.post)(receiver, due.message, states, at_ms));
            self.under_way.insert(attempt.id(), (due.receiver, due.number));
        }
        let (config, queue) = (self.config.borrow(), &self.queue);
        let counts = self.receivers.counts(&config, |identity| queue.waiting_for(identity));
        self.reloader.webhook_board.show(counts);
    }

    /// Makes messages of events.
    async fn take(&mut self, after: &EventsAfter) {
        // Who wants to know is in force before the reload is told, and this may be that very event.
        if self.config.has_changed().unwrap_or(false) {
            self.follow();
        }
        self.states.forget();
        let mut step = WebhookStep::default();
        self.forget_what_is_gone(&mut step);
        if after.missed > 0 {
            events::webhooks_missed(after.missed);
            self.compare(after.latest, "found so after events were missed", &mut step).await;
        }
        for event in &after.events {
            self.hear(event, &mut step).await;
        }
        self.keep(step);
    }

    async fn hear(&mut self, event: &Event, step: &mut WebhookStep) {
        let kind = match event.kind {
            // It is served again, if only by its backups.
            EventKind::TargetBackups => Some(WebhookEvent::TargetUp),
            // The first is what was in force already.
            EventKind::RevisionInForce if event.facts.get("revision").and_then(Value::as_u64) == Some(1) => {
                None
            }
            EventKind::RevisionInForce => Some(WebhookEvent::Reload),
            other => WebhookEvent::named(other.name()),
        };
        let Some(kind) = kind else { return };
        let (object, mut telling) = (event.object(), Telling::of(kind, event));
        self.believe(step);
        if let Telling::State { object, is_down } = &telling
            && self.role() == TellingRole::Other
        {
            // Only what it alone has told.
            if *is_down || !self.told_alone.remove(object) {
                return;
            }
            telling = Telling::Own;
        }
        if !self.is_news(kind, object.as_deref(), step) {
            return;
        }
        let since = self.since(event, object.as_deref());
        let id = self.history.name(event.id);
        let message = WebhookMessage::of(kind, event, id, since, &self.node);
        let to = self.receivers.interested(kind);
        self.tell(telling, message, to, step).await;
    }

    fn is_news(&mut self, kind: WebhookEvent, object: Option<&str>, step: &mut WebhookStep) -> bool {
        let news = self.told.hear(kind, object);
        if matches!(news, ToldNews::Down | ToldNews::Up) {
            step.told.push((object.unwrap_or_default().to_owned(), news == ToldNews::Down));
        }
        news != ToldNews::Old
    }

    fn queue(&mut self, to: Vec<String>, message: WebhookMessage, step: &mut WebhookStep) {
        if to.is_empty() {
            return;
        }
        let (at, number, message) = (now(), self.next_number, Arc::new(message));
        self.next_number += 1;
        for receiver in &to {
            if let Some((full, oldest)) = self.queue.add(receiver, number, &message, at.after(WINDOW), at) {
                self.receivers.dropped(&full, 1, DropReason::Full);
                step.done.push((full, oldest));
            }
        }
        let message = WebhookMessage::clone(&message);
        step.queued.push(QueuedMessage { number, to, message });
    }

    /// Since when the object is what the event says, in milliseconds since 1970: that may be before it was told.
    fn since(&self, event: &Event, object: Option<&str>) -> u64 {
        let find = || {
            let snapshot = self.reloader.snapshots.current()?;
            let (target, backend) = object?.split_once('/')?;
            let target = snapshot.targets.iter().find(|one| *one.name == *target)?;
            let backend = target.backends.iter().find(|one| *one.name == *backend)?;
            let (health, since) = backend.state_since();
            (event.facts.text("to") == Some(health.as_str())).then_some(since)
        };
        let ago = |since: Tick| u64::try_from(now().since(since).as_millis()).unwrap_or(u64::MAX);
        find().map_or(event.time, |since| now_ms().saturating_sub(ago(since)).min(event.time))
    }

    /// Nothing is remembered of backends and targets that are not in the config.
    fn forget_what_is_gone(&mut self, step: &mut WebhookStep) {
        let Some(snapshot) = self.reloader.snapshots.current() else { return };
        if std::mem::replace(&mut self.compared, snapshot.number) == snapshot.number {
            return;
        }
        let backends = snapshot.targets.iter().flat_map(|target| &target.backends);
        let mut names: HashSet<&str> = backends.map(|backend| &*backend.identity).collect();
        names.extend(snapshot.targets.iter().map(|target| &*target.name));
        let gone = self.told.retain(|object| names.contains(object));
        step.told.extend(gone.into_iter().map(|object| (object, false)));
    }

    /// Where events were missed, by this node or another: tells what is otherwise than was told last, for this `reason`.
    async fn compare(&mut self, latest: u64, reason: &str, step: &mut WebhookStep) {
        self.believe(step);
        let is_other = self.role() == TellingRole::Other;
        let Some(snapshot) = self.reloader.snapshots.current() else { return };
        for target in &snapshot.targets {
            let each = target.backends.iter().filter_map(|backend| {
                let is_down = match backend.health() {
                    Health::Up => false,
                    Health::Down => true,
                    Health::Unknown | Health::Draining => return None,
                };
                Some((
                    backend.identity.to_string(),
                    [WebhookEvent::BackendUp, WebhookEvent::BackendDown],
                    is_down,
                ))
            });
            let mut found: Vec<_> = each.collect();
            let level = target.overview(now()).level;
            if level != "unknown" {
                let events = [WebhookEvent::TargetUp, WebhookEvent::TargetDown];
                found.push((target.name.to_string(), events, level == "down"));
            }
            for (object, events, is_down) in found {
                let kind = events[usize::from(is_down)];
                if is_other && (is_down || !self.told_alone.remove(&object)) {
                    continue;
                }
                if !self.is_told_otherwise(&object, is_down).await || !self.is_news(kind, Some(&object), step)
                {
                    continue;
                }
                let (reason, time_ms) = (reason.to_owned(), now_ms());
                let state = Telling::State { object: object.clone(), is_down };
                let telling = if is_other { Telling::Own } else { state };
                let message = WebhookMessage {
                    id: format!("{}-{object}", self.history.name(latest)),
                    event: kind.name().to_owned(),
                    text: format!("{object} is {}: {reason}", if is_down { "down" } else { "up" }),
                    object: Some(object),
                    reason,
                    since_ms: time_ms,
                    time_ms,
                    node: self.node.clone(),
                };
                let to = self.receivers.interested(kind);
                self.tell(telling, message, to, step).await;
            }
        }
    }

    /// Takes the receivers of the config in force.
    fn follow(&mut self) {
        let webhooks = self.config.borrow_and_update().clone();
        self.receivers.follow(&webhooks);
        let done = self.queue.receivers(&self.receivers.identities());
        self.keep(WebhookStep { done, ..WebhookStep::default() });
    }

    /// Takes in what came of an attempt.
    fn settle(&mut self, ended: Result<(Id, Attempted), JoinError>) {
        let (id, outcome) = match ended {
            Ok(ended) => ended,
            Err(error) => (error.id(), Err("a bug of evenkeel: sending it has panicked".to_owned())),
        };
        let Some((receiver, number)) = self.under_way.remove(&id) else { return };
        let at = now();
        match outcome {
            Ok(()) => {
                self.queue.delivered(&receiver, number, at);
                self.receivers.took(&receiver, at, self.queue.waiting_for(&receiver));
                self.keep(WebhookStep { done: vec![(receiver, number)], ..WebhookStep::default() });
            }
            Err(reason) => {
                self.queue.failed(&receiver, number, at, rand::random());
                self.receivers.failed(&receiver, &reason, at, now_ms());
            }
        }
    }

    fn keep(&mut self, mut step: WebhookStep) {
        self.note_done(&mut step.done);
        let (queue, told, stored) = (&self.queue, &self.told, &self.stored);
        let whole = || {
            let mut waiting = queue.all();
            // The rest lies in the store.
            waiting.retain(|number, _| stored.get(number).is_none_or(|stored| stored.is_kept));
            KeptMessages { waiting, told: told.clone() }
        };
        if let Some(journal) = &mut self.journal {
            journal.keep(step, whole);
        }
    }
}

#[cfg(test)]
mod tests;
