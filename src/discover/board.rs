//! What is known of all names, and the tasks that ask.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::answer::NameAnswer;
use super::asking::NameAsker;
use super::merge::{HoldRules, KnownAddress, KnownAddresses};
use super::pace::TtlBounds;
use super::servers::{self, LOOK, RESOLV_CONF};
use crate::config::model::discovery::{DnsKind, DnsQuestion, ResolverConfig};
use crate::config::{FoundAddress, Loaded, WithFound};
use crate::events;
use crate::lasting::again;
use crate::telemetry::names::{KnownView, NameView};
use crate::tick::Tick;

/// What gives the time.
type Clock = fn() -> Tick;

/// All names whose addresses are backends.
///
/// Invariants of what is known:
///
/// 1. A name is there from when a config is read that has it until no config in force has it any more.
/// 2. There is at most one task for a name, which is the only one that takes in answers about it once it runs.
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
    /// Who asks; another one has all names asked for again.
    asker: watch::Sender<Arc<NameAsker>>,
    /// Where the system says who is asked.
    system: PathBuf,
}

#[derive(Debug)]
struct Names {
    config: ResolverConfig,
    all: HashMap<DnsQuestion, KnownName>,
    /// It looks at what the system says.
    looking: Option<Task>,
}

#[derive(Debug, Default)]
struct KnownName {
    addresses: KnownAddresses,
    /// As those who make backends of them see them.
    found: Arc<[FoundAddress]>,
    ttl: Option<Duration>,
    answered: Option<SystemTime>,
    trouble: Option<(String, SystemTime)>,
    failures: u32,
    beyond: usize,
    task: Option<Task>,
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
        let names = Names { config: ResolverConfig::default(), all: HashMap::new(), looking: None };
        let inner = Inner {
            clock,
            names: Mutex::new(names),
            changes: watch::Sender::new(0),
            asker: watch::Sender::new(Arc::new(asker)),
            system: system.to_owned(),
        };
        Discovery { inner: Arc::new(inner) }
    }

    /// Asks once for all names of `loaded` that were never asked for, and waits for that, as long as one question may take.
    /// Whoever is not back by then is asked again by its task. Called inside of a runtime.
    pub async fn meet(&self, loaded: &Loaded) {
        let questions = loaded.questions();
        if questions.is_empty() {
            return;
        }
        let resolver = &loaded.config.resolver;
        self.inner.go_by(resolver);
        let mut unasked = tokio::task::JoinSet::new();
        {
            let mut names = self.inner.names();
            for question in questions {
                let known = names.all.entry(question.clone()).or_default();
                if known.ttl.is_none() && known.failures == 0 {
                    let (inner, question) = (Arc::clone(&self.inner), question.clone());
                    unasked.spawn(async move { inner.ask(&question).await });
                }
            }
        }
        // Who is slow is not waited for any longer; what comes then comes with the next question.
        let _ = timeout(resolver.timeout, async { while unasked.join_next().await.is_some() {} }).await;
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
        // What it has opened ends with the runtime.
        if matches!(**self.inner.asker.borrow(), NameAsker::Dns { .. }) {
            self.inner.asker.send_replace(Arc::new(NameAsker::Nobody("nobody is asked any more".into())));
        }
        Ok(Arc::unwrap_or_clone(self.expand(&Arc::new(loaded)).loaded))
    }

    /// Has a task for each name of `loaded` and for no other; forgets what is known of others. Called inside of the control runtime.
    pub fn follow(&self, loaded: &Loaded) {
        let questions = loaded.questions();
        if !questions.is_empty() {
            self.inner.go_by(&loaded.config.resolver);
        }
        let mut names = self.inner.names();
        names.all.retain(|known, _| questions.contains(&known));
        for question in questions {
            let known = names.all.entry(question.clone()).or_default();
            if known.task.is_none() {
                known.task = Some(self.inner.begin(question.clone()));
            }
        }
        let is_watched = !names.all.is_empty() && names.config.servers.is_empty();
        match (is_watched, names.looking.is_some()) {
            (true, false) => names.looking = Some(self.inner.watch_system()),
            (false, true) => names.looking = None,
            _ => {}
        }
    }

    /// `loaded` with what is known of its names.
    #[must_use]
    pub fn expand(&self, loaded: &Arc<Loaded>) -> WithFound {
        let names = self.inner.names();
        loaded.with_found(&|question| {
            names.all.get(question).map(|known| Arc::clone(&known.found)).unwrap_or_default()
        })
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
        let mut all: Vec<NameView> = names.all.iter().map(|(question, known)| known.view(question)).collect();
        all.sort_by(|one, other| one.question.cmp(&other.question));
        all
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
        drop(names);
        if !is_given {
            self.asker.send_replace(Arc::new(NameAsker::new(
                config,
                servers::system_text(&self.system).as_deref(),
            )));
        }
    }

    fn begin(self: &Arc<Self>, question: DnsQuestion) -> Task {
        let inner = Arc::clone(self);
        let what = format!("asking for {question}");
        let asking = async move || inner.keep_asking(&question).await;
        Task(tokio::spawn(again(what, asking)).abort_handle())
    }

    /// Asks for a name again and again.
    async fn keep_asking(&self, question: &DnsQuestion) {
        let mut askers = self.asker.subscribe();
        // Somebody may have asked for it a moment ago, when the config was read.
        let mut pause = self.names().all.get(question).and_then(|known| known.ttl).unwrap_or_default();
        loop {
            tokio::select! {
                () = sleep(pause) => {}
                // Others may know more.
                Ok(()) = askers.changed() => {}
            }
            askers.mark_unchanged();
            pause = self.ask(question).await;
        }
    }

    /// Asks once, and takes in what comes. Gives the pause until the next time.
    async fn ask(&self, question: &DnsQuestion) -> Duration {
        let asker = Arc::clone(&self.asker.borrow());
        let outcome = asker.ask(question).await;
        let now = (self.clock)();
        let mut names = self.names();
        let Names { config, all, .. } = &mut *names;
        let bounds = TtlBounds { min: config.ttl_min, max: config.ttl_max };
        let rules = HoldRules { hold: config.hold, most: config.addresses };
        let Some(known) = all.get_mut(question) else { return bounds.max };
        match outcome {
            Ok(answer) => {
                let ttl = bounds.bound(answer.ttl);
                if known.take(question, &NameAnswer { ttl, ..answer }, rules, now) {
                    self.changes.send_modify(|number| *number += 1);
                }
                ttl
            }
            Err(why) => {
                known.fail(question, why);
                bounds.after_failures(known.failures)
            }
        }
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
                let config = inner.names().config.clone();
                events::resolvers_changed(&inner.system);
                inner.asker.send_replace(Arc::new(NameAsker::new(&config, now.as_deref())));
                before = now;
            }
        };
        Task(tokio::spawn(again("who is asked for names", watching)).abort_handle())
    }
}

impl KnownName {
    /// Takes in a good answer, whose TTL is within its bounds. Says whether anything differs.
    fn take(&mut self, question: &DnsQuestion, answer: &NameAnswer, rules: HoldRules, now: Tick) -> bool {
        let merged = self.addresses.take(answer, rules, now);
        if merged.beyond > 0 && self.beyond == 0 {
            events::name_has_too_many(question, merged.beyond, rules.most);
        }
        if self.trouble.take().is_some() {
            events::name_found_again(question, self.addresses.len());
        }
        (self.beyond, self.failures) = (merged.beyond, 0);
        (self.ttl, self.answered) = (Some(answer.ttl), Some(SystemTime::now()));
        if merged.differs() {
            self.found = found(question, &self.addresses).into();
        }
        merged.differs()
    }

    /// There was no good answer.
    fn fail(&mut self, question: &DnsQuestion, why: String) {
        self.failures = self.failures.saturating_add(1);
        let (since, is_new) = match self.trouble.take() {
            Some((before, since)) => (since, before != why),
            None => (SystemTime::now(), true),
        };
        if is_new {
            events::name_not_found(question, &why, self.addresses.len());
        }
        self.trouble = Some((why, since));
    }

    fn view(&self, question: &DnsQuestion) -> NameView {
        let of = |(address, known): (&std::net::SocketAddr, &KnownAddress)| KnownView {
            address: if address.port() == 0 { address.ip().to_string() } else { address.to_string() },
            absent: known.absent,
        };
        NameView {
            question: question.clone(),
            addresses: self.addresses.iter().map(of).collect(),
            ttl: self.ttl,
            answered_ms: self.answered.map(since_1970),
            trouble: self.trouble.as_ref().map(|(why, since)| (why.clone(), since_1970(*since))),
            beyond: self.beyond,
        }
    }
}

/// Milliseconds since 1970.
fn since_1970(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The addresses as backends are made of them. Weights of SRV records (RFC 2782: 0 to 65,535, where 0 is a little) become ours; of their
/// priorities only the order counts.
fn found(question: &DnsQuestion, known: &KnownAddresses) -> Vec<FoundAddress> {
    let is_service = question.kind == DnsKind::Services;
    let mut heaviest: std::collections::BTreeMap<u16, u16> = std::collections::BTreeMap::new();
    for (_, one) in known.iter() {
        let most = heaviest.entry(one.priority).or_default();
        *most = one.weight.max(*most);
    }
    let tiers: HashMap<u16, u8> = heaviest
        .keys()
        .enumerate()
        .map(|(tier, priority)| (*priority, u8::try_from(tier).unwrap_or(u8::MAX)))
        .collect();
    let of = |(address, one): (&std::net::SocketAddr, &KnownAddress)| FoundAddress {
        address: *address,
        weight: is_service
            .then(|| scaled(one.weight, heaviest.get(&one.priority).copied().unwrap_or_default())),
        tier: tiers.get(&one.priority).copied().unwrap_or_default(),
    };
    known.iter().map(of).collect()
}

/// A weight among others of which the heaviest is `most`, from 1 to 256.
fn scaled(weight: u16, most: u16) -> u16 {
    use crate::config::model::Portion;
    if most <= Portion::WEIGHT_MAX {
        return weight.max(1);
    }
    let share = u32::from(weight) * u32::from(Portion::WEIGHT_MAX) / u32::from(most);
    u16::try_from(share).unwrap_or(Portion::WEIGHT_MAX).max(1)
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "addresses are made of numbers")]
mod tests;
