//! What is known of all names, and the tasks that ask.

mod sharing;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::answer::NameAnswer;
use super::asking::NameAsker;
use super::known::{FAILING, KnownName};
use super::merge::HoldRules;
use super::pace::TtlBounds;
use super::servers::{self, LOOK, RESOLV_CONF};
use super::told::ToldNames;
use crate::config::model::discovery::{DnsQuestion, ResolverConfig};
use crate::config::{FoundAddress, LeftOut, Loaded, WithFound};
use crate::events;
use crate::lasting::again;
use crate::telemetry::names::NameView;
use crate::tick::Tick;

/// What gives the time.
type Clock = fn() -> Tick;

/// Nobody who puts a config into force waits longer for new names.
const PATIENCE: Duration = Duration::from_secs(2);
/// For how long it is kept what is known of a name that no config has any more: a rollback brings it back, and DNS may be away.
const KEPT: Duration = Duration::from_hours(1);
/// Of how many of them.
const MOST_KEPT: usize = 100;
/// Addresses of one target that are told to be no backends.
const TOLD: usize = 3;

/// All names whose addresses are backends.
///
/// Invariants of what is known:
///
/// 1. A name is there from when a config is read that has it until long after no config in force has it any more.
/// 2. A name of the config in force has one task, which alone takes in answers about it, in their order, and only those that were asked for as the
///    config in force says; or another node that asks for it, and is what that one tells. One that has neither yet is asked for as the config says that
///    would bring it, so a config that is refused changes nothing.
/// 3. Whoever has read `changes` and then asks what was found finds at least what that number stands for: the number grows after the
///    addresses have changed, under the same lock.
#[derive(Debug)]
pub struct Discovery {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    clock: Clock,
    names: Mutex<Names>,
    /// Grows with every change of any set of addresses.
    changes: watch::Sender<u64>,
    /// Grows with everything that other nodes may want to know.
    found: watch::Sender<u64>,
    /// Who asks; another one has all names asked for again.
    asker: watch::Sender<Arc<NameAsker>>,
    /// Where the system says who is asked.
    system: PathBuf,
}

#[derive(Debug)]
struct Names {
    config: ResolverConfig,
    /// By what is asked for in its canonical form.
    all: HashMap<DnsQuestion, NameEntry>,
    /// It looks at what the system says.
    looking: Option<Task>,
    /// Addresses that are no backends.
    left_out: HashSet<LeftOut>,
}

#[derive(Debug, Default)]
struct NameEntry {
    known: KnownName,
    /// `None`: nobody asks here, because no config in force has it, or does not have it yet, or because another node does.
    task: Option<Task>,
    /// The node that asks for it.
    by: Option<Arc<str>>,
    /// Which of its tasks the one at work is: an earlier one may still have an answer on its way.
    turn: u64,
    /// Since when no config in force has it any more; `None`: one has it, or will.
    left: Option<Tick>,
}

/// A task that ends when this is dropped.
#[derive(Debug)]
struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Discovery {
    /// Nothing is asked for yet.
    #[must_use]
    pub fn new(clock: Clock) -> Discovery {
        Discovery::with(clock, NameAsker::Nobody("nobody was asked yet".into()), Path::new(RESOLV_CONF))
    }

    /// The same with another one who asks, and another place where the system says who is asked.
    #[must_use]
    pub fn with(clock: Clock, asker: NameAsker, system: &Path) -> Discovery {
        let (all, left_out) = (HashMap::new(), HashSet::new());
        let names = Names { config: ResolverConfig::default(), all, looking: None, left_out };
        let inner = Inner {
            clock,
            names: Mutex::new(names),
            changes: watch::Sender::new(0),
            found: watch::Sender::new(0),
            asker: watch::Sender::new(Arc::new(asker)),
            system: system.to_owned(),
        };
        Discovery { inner: Arc::new(inner) }
    }

    /// Asks once for all names of `loaded` that were never asked for, as `loaded` says, and waits for that for as long as one question may take,
    /// but not for long: whoever is not back by then is asked by its task, once the config is in force. Nothing changes for names in force. Called
    /// inside of a runtime.
    pub async fn meet(&self, loaded: &Loaded) {
        let config = &loaded.config.resolver;
        let mut unasked = Vec::new();
        {
            let mut names = self.inner.names();
            for question in loaded.questions() {
                let entry = names.all.entry(question.canonical()).or_default();
                if !entry.is_followed() && !entry.known.was_asked() {
                    entry.left = None;
                    unasked.push(question.canonical());
                }
            }
        }
        if unasked.is_empty() {
            return;
        }
        let current = Arc::clone(&self.inner.asker.borrow());
        let is_given = matches!(*current, NameAsker::Given(_));
        let asker = if is_given { current } else { Arc::new(self.inner.asker_for(config)) };
        let mut asking = tokio::task::JoinSet::new();
        for question in unasked {
            let (asker, most) = (Arc::clone(&asker), config.addresses);
            asking.spawn(async move { (asker.ask(&question, most).await, question) });
        }
        let meeting = async {
            while let Some(done) = asking.join_next().await {
                // An error: it has panicked, which has been told.
                let Ok((outcome, question)) = done else { continue };
                let mut names = self.inner.names();
                if let Some(entry) = names.all.get_mut(&question).filter(|entry| !entry.is_followed()) {
                    self.inner.note(entry, &question, outcome, config);
                }
            }
        };
        let _ = timeout(config.timeout.min(PATIENCE), meeting).await;
    }

    /// Begins with what the process before knows of names: they are asked for once their config is in force, and nobody waits for that.
    pub fn begin_with(&self, told: ToldNames) {
        let now = (self.inner.clock)();
        let mut names = self.inner.names();
        for (question, known) in told.into_known() {
            let entry = names.all.entry(question.clone()).or_default();
            let _ = entry.known.adopt(&question, &known, now);
            // As if a config had had it that is gone: it is forgotten if none has it.
            entry.left = Some(now);
        }
    }

    /// The same before there is a control runtime, for a process that starts; gives `loaded` with what was found.
    ///
    /// # Errors
    /// The system gives no runtime.
    pub fn meet_first(&self, loaded: Loaded) -> std::io::Result<Loaded> {
        if loaded.questions().is_empty() {
            return Ok(loaded);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(self.meet(&loaded));
        Ok(Arc::unwrap_or_clone(self.expand(&Arc::new(loaded)).loaded))
    }

    /// Has a task for each name of `loaded` and for no other. What is known of others is kept for a while: their config may come back. Called inside
    /// of the control runtime.
    pub fn follow(&self, loaded: &Loaded) {
        let questions: Vec<DnsQuestion> =
            loaded.questions().into_iter().map(DnsQuestion::canonical).collect();
        if !questions.is_empty() {
            self.inner.go_by(&loaded.config.resolver);
        }
        let now = (self.inner.clock)();
        let mut names = self.inner.names();
        let wanted: HashSet<&DnsQuestion> = questions.iter().collect();
        for (_, entry) in names.all.iter_mut().filter(|(name, _)| !wanted.contains(name)) {
            (entry.task, entry.by) = (None, None);
            entry.left.get_or_insert(now);
        }
        names.forget(now);
        for question in &questions {
            let entry = names.all.entry(question.clone()).or_default();
            entry.left = None;
            if !entry.is_followed() {
                self.inner.begin(entry, question);
            }
        }
        let is_watched = !questions.is_empty() && names.config.servers.is_empty();
        match (is_watched, names.looking.is_some()) {
            (true, false) => names.looking = Some(self.inner.watch_system()),
            (false, true) => names.looking = None,
            _ => {}
        }
    }

    /// `loaded` with what is known of its names.
    #[must_use]
    pub fn expand(&self, loaded: &Arc<Loaded>) -> WithFound {
        let asked: HashSet<DnsQuestion> =
            loaded.questions().into_iter().map(DnsQuestion::canonical).collect();
        let found: HashMap<DnsQuestion, Arc<[FoundAddress]>> = {
            let names = self.inner.names();
            let of = |question: DnsQuestion| {
                let found = names.all.get(&question).map(|entry| Arc::clone(&entry.known.found));
                (question, found.unwrap_or_default())
            };
            asked.into_iter().map(of).collect()
        };
        loaded.with_found(&|question| found.get(&question.canonical()).cloned().unwrap_or_default())
    }

    /// Notes which addresses are no backends. Gives those that are new among them, each target's first few: of more nobody wants to read.
    #[must_use]
    pub fn leave_out(&self, all: Vec<LeftOut>) -> Vec<LeftOut> {
        let mut names = self.inner.names();
        let before = std::mem::replace(&mut names.left_out, all.iter().cloned().collect());
        let mut told: HashMap<String, usize> = HashMap::new();
        let is_new = |one: &LeftOut| {
            let count = told.entry(one.target.clone()).or_default();
            *count += 1;
            !before.contains(one) && *count <= TOLD
        };
        all.into_iter().filter(is_new).collect()
    }

    /// A number that grows with each change of what is known.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    /// How it stands with all names, in their order.
    #[must_use]
    pub fn view(&self) -> Vec<NameView> {
        let names = self.inner.names();
        let present = names.all.iter().filter(|(_, entry)| entry.left.is_none());
        let mut all: Vec<NameView> =
            present.map(|(question, entry)| entry.known.view(question, entry.by.as_ref())).collect();
        all.sort_by(|one, other| one.question.cmp(&other.question));
        all
    }
}

impl Names {
    /// Forgets names that nobody has wanted for long, and the oldest of too many.
    fn forget(&mut self, now: Tick) {
        self.all.retain(|_, entry| entry.left.is_none_or(|left| now.since(left) < KEPT));
        let mut left: Vec<(Tick, DnsQuestion)> =
            self.all.iter().filter_map(|(name, entry)| Some((entry.left?, name.clone()))).collect();
        left.sort_unstable();
        for (_, name) in left.iter().take(left.len().saturating_sub(MOST_KEPT)) {
            self.all.remove(name);
        }
    }
}

impl Inner {
    fn names(&self) -> MutexGuard<'_, Names> {
        // What is done under it is one step for each name.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks as `config` says from now on.
    fn go_by(&self, config: &ResolverConfig) {
        let mut names = self.names();
        let is_first = matches!(**self.asker.borrow(), NameAsker::Nobody(_));
        let is_given = matches!(**self.asker.borrow(), NameAsker::Given(_));
        if names.config == *config && !is_first {
            return;
        }
        names.config = config.clone();
        if !is_given {
            self.asker.send_replace(Arc::new(self.asker_for(config)));
        }
    }

    fn asker_for(&self, config: &ResolverConfig) -> NameAsker {
        NameAsker::new(config, servers::system_text(&self.system).as_deref())
    }

    fn begin(self: &Arc<Self>, entry: &mut NameEntry, question: &DnsQuestion) {
        entry.turn += 1;
        let (inner, question, turn) = (Arc::clone(self), question.clone(), entry.turn);
        let what = format!("asking for {question}");
        let asking = async move || inner.keep_asking(&question, turn).await;
        entry.task = Some(Task(tokio::spawn(again(what, asking)).abort_handle()));
    }

    /// Asks for a name again and again, as its task of this turn.
    async fn keep_asking(&self, question: &DnsQuestion, turn: u64) {
        let mut askers = self.asker.subscribe();
        // Somebody may have asked for it a moment ago, when the config was read.
        let now = (self.clock)();
        let mut pause =
            self.names().all.get(question).map(|entry| entry.known.holds(now)).unwrap_or_default();
        loop {
            tokio::select! {
                () = sleep(pause) => {}
                // Others may know more.
                Ok(()) = askers.changed() => {}
            }
            let asker = Arc::clone(&askers.borrow_and_update());
            let most = self.names().config.addresses;
            let outcome = tokio::select! {
                outcome = asker.ask(question, most) => outcome,
                // Whoever is not asked any more need not be waited for.
                Ok(()) = askers.changed() => {
                    pause = Duration::ZERO;
                    continue;
                }
            };
            let mut names = self.names();
            let Names { config, all, .. } = &mut *names;
            let own = all.get_mut(question).filter(|entry| entry.turn == turn && entry.task.is_some());
            pause = match own {
                Some(entry) => self.note(entry, question, outcome, config),
                // Nobody wants it any more, or not of this one: this task is about to end.
                None => PATIENCE,
            };
        }
    }

    /// Takes in what has come of a question. Gives the pause until the next one.
    fn note(
        &self,
        entry: &mut NameEntry,
        question: &DnsQuestion,
        outcome: Result<NameAnswer, String>,
        config: &ResolverConfig,
    ) -> Duration {
        let now = (self.clock)();
        let bounds = TtlBounds { min: config.ttl_min, max: config.ttl_max };
        let rules = HoldRules { hold: config.hold, most: config.addresses };
        let known = &mut entry.known;
        let was_good = known.is_good();
        let (pause, differs) = match outcome {
            Ok(answer) => {
                let ttl = bounds.bound(answer.ttl);
                (ttl, known.take(question, &NameAnswer { ttl, ..answer }, rules, now))
            }
            Err(why) => {
                known.fail(question, why, now);
                (bounds.after_failures(known.failures()), false)
            }
        };
        if differs {
            self.changes.send_modify(|number| *number += 1);
        }
        if differs || was_good != known.is_good() || known.failures() == FAILING {
            self.found.send_modify(|number| *number += 1);
        }
        pause
    }

    /// Looks at what the system says about who is asked.
    fn watch_system(self: &Arc<Self>) -> Task {
        let inner = Arc::clone(self);
        let watching = async move || {
            let mut before = servers::system_text(&inner.system);
            loop {
                sleep(LOOK).await;
                let now = servers::system_text(&inner.system);
                if now == before {
                    continue;
                }
                events::resolvers_changed(&inner.system);
                let config = inner.names().config.clone();
                inner.asker.send_replace(Arc::new(NameAsker::new(&config, now.as_deref())));
                before = now;
            }
        };
        Task(tokio::spawn(again("who is asked for names", watching)).abort_handle())
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "addresses are made of numbers")]
mod tests;
