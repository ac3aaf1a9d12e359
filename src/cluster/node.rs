//! This node: it joins, says now and then that it is there, and learns what the others share.
//!
//! Three things go on beside one another once it has joined: words that keep its lease alive, the watch over all rows, and the deadline after which it
//! takes itself for gone. None waits for another: a store that is slow to answer one of them delays no other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::membership::{Standing, beat, deadline, refusal};
use super::refusing::{RefusalNews, StoreRefusals};
use super::rows::{self, Farewell, META, NodeRow, SCHEMA, SchemaRow};
use super::view::{ClusterView, KnownRows};
use crate::config::model::{ClusterConfig, ClusterKey};
use crate::events;
use crate::net::now;
use crate::store::shared::chosen::ChosenStore;
use crate::store::shared::{
    ClusterStore as _, Committed, LeaseNumber, ListedFrom, Revision, RowChange, RowCondition, StoreFault,
    StoreRow, Transaction,
};
use crate::tick::Tick;

/// Before the next attempt to join, and after many in vain.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// Whom a process that starts asks, and for how long it waits.
const LOOKS: [(ListedFrom, Duration); 2] =
    [(ListedFrom::Majority, Duration::from_millis(900)), (ListedFrom::OneMember, Duration::from_millis(600))];
/// How long the end of the process waits until others know of it.
const GRACE: Duration = Duration::from_secs(1);

/// Who this node is.
#[derive(Clone, Debug)]
pub struct NodeFacts {
    /// What it is called.
    pub name: String,
    /// What its folder of state is known by.
    pub machine: String,
    /// What this start of it is known by.
    pub boot: String,
    /// Whether it takes part in what all agree on.
    pub shares: bool,
    /// Where it runs.
    pub zone: Option<String>,
    /// Since when it runs, in milliseconds since 1970.
    pub since_ms: u64,
}

/// This node among the others.
#[derive(Debug)]
pub struct ClusterNode {
    pub(super) store: ChosenStore,
    pub(super) lease: Duration,
    key: Option<Arc<ClusterKey>>,
    row: NodeRow,
    pub(super) view: watch::Sender<Arc<ClusterView>>,
    /// Until when it may think that it is there.
    pub(super) due: watch::Sender<Tick>,
    /// What it has lent of the store. Only [`ClusterNode::keep`] changes it.
    pub(super) lent: Mutex<Option<LeaseNumber>>,
    /// The store has gone back, and what it has now is not known yet.
    is_rewound: AtomicBool,
    /// What it refuses while it answers.
    refusals: StoreRefusals,
    /// Another process is this node by now.
    pub(super) has_heir: AtomicBool,
    /// What is still to be said once it has left, and in which row.
    pub(super) last_words: Mutex<Option<(String, Farewell)>>,
}

/// How a session with the store has ended.
enum Ended {
    /// It is none of them any more, for this reason: at once again.
    Rejoin(&'static str),
    /// What has happened meanwhile is not known, or somebody was there first.
    Relist,
    /// It can't go on now.
    Fault(StoreFault),
    /// It may not join.
    Refused(String),
}

/// What it has come to by joining.
struct Joined {
    /// When the lease was asked for.
    sent: Tick,
    lease: LeaseNumber,
    /// All that was there, and its own row.
    rows: KnownRows,
    /// The revision of its row.
    at: Revision,
}

impl From<StoreFault> for Ended {
    fn from(fault: StoreFault) -> Ended {
        Ended::Fault(fault)
    }
}

impl ClusterNode {
    /// The one of this config. Nobody knows of it yet.
    #[must_use]
    pub fn new(config: &ClusterConfig, facts: NodeFacts, store: ChosenStore) -> ClusterNode {
        let NodeFacts { name, machine, boot, shares, zone, since_ms } = facts;
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let row = NodeRow { boot, machine, version, schema: [1, SCHEMA], shares, zone, since_ms };
        let view = ClusterView {
            cluster: config.name.as_str().into(),
            node: name.into(),
            standing: Standing::Joining,
            since: now(),
            kept: None,
            boot: row.boot.as_str().into(),
            rows: Arc::default(),
            rewinds: 0,
        };
        let view = watch::Sender::new(Arc::new(view));
        let (lease, key) = (config.lease, config.key.clone());
        ClusterNode {
            store,
            lease,
            key,
            row,
            view,
            due: watch::Sender::new(Tick::ZERO),
            lent: Mutex::default(),
            has_heir: AtomicBool::new(false),
            last_words: Mutex::default(),
            is_rewound: AtomicBool::new(false),
            refusals: StoreRefusals::default(),
        }
    }

    /// What it knows.
    #[must_use]
    pub fn view(&self) -> Arc<ClusterView> {
        Arc::clone(&self.view.borrow())
    }

    /// The same, and each time that it is something else.
    #[must_use]
    pub fn views(&self) -> watch::Receiver<Arc<ClusterView>> {
        self.view.subscribe()
    }

    /// Who keeps what is shared.
    #[must_use]
    pub fn engine(&self) -> &'static str {
        self.store.as_str()
    }

    /// How long a node counts as there that says nothing.
    #[must_use]
    pub fn lease(&self) -> Duration {
        self.lease
    }

    /// What this start of the node is known by.
    #[must_use]
    pub fn boot(&self) -> &str {
        &self.row.boot
    }

    /// What its folder of state is known by.
    #[must_use]
    pub fn machine(&self) -> &str {
        &self.row.machine
    }

    /// Whether what is secret can be shared.
    #[must_use]
    pub fn seals(&self) -> bool {
        self.key.is_some()
    }

    /// What the store has, as far as that can be found out soon: of a majority, or else of one that is cut off. Nobody knows of this node yet.
    pub async fn look(&self) -> Option<KnownRows> {
        for (from, patience) in LOOKS {
            if let Ok(Ok(listing)) = tokio::time::timeout(patience, self.store.list("", from)).await {
                return Some(KnownRows::of(listing));
            }
        }
        None
    }

    /// What secrets are sealed with.
    pub(super) fn key(&self) -> Option<&ClusterKey> {
        self.key.as_deref()
    }

    /// The lease that its row has, and all that is to be gone with it.
    #[must_use]
    pub fn lent(&self) -> Option<LeaseNumber> {
        *self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does `transaction` if its conditions hold.
    ///
    /// # Errors
    /// See [`StoreFault`]. Whoever is no member asks nobody.
    pub async fn commit(&self, transaction: Transaction) -> Result<Committed, StoreFault> {
        let view = self.view();
        if view.standing != Standing::Member {
            let why = view.standing.reason().unwrap_or("it has not joined yet");
            return Err(StoreFault::Apart(format!("{}: {why}", view.standing.as_str())));
        }
        let is_put = transaction.changes.iter().any(|change| matches!(change, RowChange::Put { .. }));
        let outcome = self.store.commit(transaction).await;
        // What is full lets rows be dropped.
        match is_put.then(|| self.refusals.note(&outcome, now())).flatten() {
            Some(RefusalNews::Refuses(why)) => events::cluster_store_refuses(&why),
            Some(RefusalNews::Works) => events::cluster_store_works(),
            None => {}
        }
        outcome
    }

    /// Why the store takes no changes, though it answers; `None`: it does, as far as is known.
    #[must_use]
    pub fn refusal_of_store(&self) -> Option<String> {
        self.refusals.why()
    }

    /// Waits until it knows everything up to this change, though not for long.
    pub async fn learned(&self, revision: Revision) {
        let mut views = self.views();
        let known = views.wait_for(|view| view.rows.revision() >= revision);
        let _ = tokio::time::timeout(GRACE, known).await;
    }

    /// Is one of the cluster until `end`, and says good-bye then.
    pub async fn keep(&self, end: &CancellationToken) {
        let _ = end.run_until_cancelled(self.keep_on()).await;
        // It is none of them any more, and what it knows grows old: it decides for itself from now on.
        self.view
            .send_modify(|view| Arc::make_mut(view).standing = Standing::Detached("it has left".to_owned()));
        let lent = self.lent.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(lease) = lent {
            let last = self.begin_last_words().await;
            // Without it others wait until the lease is over.
            if !self.has_heir.load(Ordering::Acquire) {
                let _ = tokio::time::timeout(GRACE, self.store.revoke(lease)).await;
            }
            if let Some(lease) = last {
                self.end_last_words(lease).await;
            }
        }
    }

    async fn keep_on(&self) {
        tokio::join!(self.sessions(), self.watch_deadline());
    }

    async fn sessions(&self) {
        let mut pause = PAUSE.0;
        loop {
            let begun = now();
            match Box::pin(self.session()).await {
                Ended::Rejoin(why) => self.stand(Standing::Detached(why.to_owned())),
                Ended::Relist => events::cluster_relisted(),
                Ended::Fault(fault) => {
                    self.is_rewound.fetch_or(matches!(fault, StoreFault::Rewound(_)), Ordering::Relaxed);
                    self.stand(Standing::Detached(fault.to_string()));
                }
                Ended::Refused(why) => self.stand(Standing::Refused(why)),
            }
            // One that went on for a while has not failed at once.
            pause = if now().since(begun) > self.lease { PAUSE.0 } else { (pause * 2).min(PAUSE.1) };
            sleep(pause).await;
        }
    }

    /// Joins and goes on until something is in the way.
    async fn session(&self) -> Ended {
        match self.join().await {
            Ok(Joined { sent, lease, rows, at }) => {
                // Also where nobody has said so: a watch may have ended for another reason.
                let is_older = rows.revision() < self.view().rows.revision();
                let rewinds = u32::from(self.is_rewound.swap(false, Ordering::Relaxed) || is_older);
                self.learn_with(rows, rewinds);
                self.heard(sent);
                tokio::select! {
                    ended = self.beat(lease) => ended,
                    ended = self.follow(at) => ended,
                }
            }
            Err(ended) => ended,
        }
    }

    /// Writes its row, with a lease of its own.
    async fn join(&self) -> Result<Joined, Ended> {
        let mut rows = KnownRows::of(self.store.list("", ListedFrom::Majority).await?);
        let name = self.view().node.to_string();
        let own = rows::node(&name);
        if let Some(why) = self.refusal(&rows) {
            self.learn(rows);
            return Err(Ended::Refused(why));
        }
        let held = self.lent();
        let sent = now();
        // A lease that still lasts is kept: whoever comes back has never left.
        let lease = match held {
            Some(lease) if self.store.keep_alive(lease).await.is_ok() => lease,
            _ => self.store.grant(self.lease).await?,
        };
        *self.lent.lock().unwrap_or_else(PoisonError::into_inner) = Some(lease);
        let condition = |name: &str| RowCondition { name: name.to_owned(), changed: rows.changed(name) };
        let value = rows::write(&self.row);
        let row = RowChange::Put { name: own.clone(), value: value.clone(), lease: Some(lease) };
        let mut changes = vec![row];
        if rows.get(META).is_none() {
            changes.push(RowChange::put(META, rows::write(&SchemaRow { writer: SCHEMA, min_reader: 1 })));
        }
        let conditions = vec![condition(META), condition(&own)];
        match self.store.commit(Transaction { conditions, changes }).await? {
            Committed::Done(at) => {
                // What others have changed since the listing is still to be told, and this with it.
                rows.put(StoreRow { name: own, value, changed: at, lease: Some(lease) });
                Ok(Joined { sent, lease, rows, at })
            }
            Committed::Conflict => Err(Ended::Relist),
        }
    }

    /// Why this node may not be one of them, as far as these rows say.
    fn refusal(&self, known: &KnownRows) -> Option<String> {
        let name = self.view().node.to_string();
        let value = |name: &str| known.get(name).map(|row| row.value.as_slice());
        let (schema, there) = (value(META), value(&rows::node(&name)));
        let (read_schema, read_there) =
            (schema.and_then(rows::read::<SchemaRow>), there.and_then(rows::read::<NodeRow>));
        // What this version can't read is of a later one.
        if schema.is_some() && read_schema.is_none() || there.is_some() && read_there.is_none() {
            return Some("this evenkeel is too old: it can't read what its cluster writes".to_owned());
        }
        if let Some(other) = read_there.as_ref().filter(|row| row.machine == self.row.machine)
            && other.boot != self.row.boot
            && self.view().kept.is_some()
        {
            return Some(format!(
                "another process has taken the place of the node `{name}`, with the same `state_dir` or a copy of it"
            ));
        }
        refusal((&name, &self.row), read_schema, read_there.as_ref())
    }

    /// Its lease was kept alive by a word that was sent then: it is there, if that is not too long ago.
    fn heard(&self, sent: Tick) {
        let due = deadline(sent, self.lease);
        self.view.send_if_modified(|view| {
            Arc::make_mut(view).kept = Some(sent);
            false
        });
        self.due.send_replace(due);
        if due > now() {
            self.stand(Standing::Member);
        }
    }

    /// Says that it is there, again and again.
    async fn beat(&self, lease: LeaseNumber) -> Ended {
        loop {
            sleep(beat(self.lease)).await;
            let sent = now();
            match self.store.keep_alive(lease).await {
                Ok(()) => self.heard(sent),
                Err(StoreFault::LeaseOver) => return Ended::Rejoin("its lease is over"),
                // The deadline says when that is too long.
                Err(StoreFault::Unreachable(why)) => events::cluster_unheard(&why),
                Err(fault) => return Ended::Fault(fault),
            }
        }
    }

    /// Takes itself for gone when nobody has heard it for too long, whatever else goes on; ends itself never.
    async fn watch_deadline(&self) {
        let mut due = self.due.subscribe();
        loop {
            let until = *due.borrow_and_update();
            let left = until.since(now());
            if left.is_zero() && self.view().standing == Standing::Member {
                self.stand(Standing::Detached("its lease was not kept alive in time".to_owned()));
            }
            tokio::select! {
                () = sleep(left), if !left.is_zero() => {}
                // Whoever sends lives as long as this.
                _ = due.changed() => {}
            }
        }
    }

    /// Learns what changes, from when it has joined on.
    async fn follow(&self, joined: Revision) -> Ended {
        let mut watch = self.store.watch("", self.view().rows.revision());
        let own = rows::node(&self.view().node);
        loop {
            match watch.next().await {
                Ok(changes) => {
                    let mut rows = KnownRows::clone(&self.view().rows);
                    rows.take(changes);
                    let is_since = rows.revision() >= joined;
                    let there = rows.get(&own).and_then(|row| rows::read::<NodeRow>(&row.value));
                    let refused = is_since.then(|| self.refusal(&rows)).flatten();
                    self.learn(rows);
                    if let Some(why) = refused {
                        return Ended::Refused(why);
                    }
                    if is_since && there.is_none_or(|row| row.boot != self.row.boot) {
                        return Ended::Rejoin("its row is gone");
                    }
                }
                Err(StoreFault::Compacted(_)) => return Ended::Relist,
                Err(fault) => return Ended::Fault(fault),
            }
        }
    }

    /// These are the rows.
    fn learn(&self, rows: KnownRows) {
        self.learn_with(rows, 0);
    }

    /// These are the rows, and the store has gone back so often before.
    fn learn_with(&self, rows: KnownRows, rewinds: u32) {
        let before = self.view();
        self.view.send_modify(|view| {
            let view = Arc::make_mut(view);
            view.rows = Arc::new(rows);
            view.rewinds += rewinds;
        });
        let after = self.view();
        if before.standing == Standing::Joining {
            return;
        }
        let (before, after) = (before.nodes(), after.nodes());
        for node in &after {
            match before.iter().find(|other| other.name == node.name) {
                None => events::node_joined(&node.name, &node.row.version),
                Some(other) if other.row.boot != node.row.boot => events::node_restarted(&node.name),
                Some(_) => {}
            }
        }
        let is_gone = |name: &str| !after.iter().any(|node| node.name == name);
        before.iter().filter(|node| is_gone(&node.name)).for_each(|node| events::node_gone(&node.name));
    }

    /// This is how it stands; tells when that is something else.
    fn stand(&self, standing: Standing) {
        let changed = self.view.send_if_modified(|view| {
            let differs = view.standing.as_str() != standing.as_str();
            if view.standing != standing {
                let view = Arc::make_mut(view);
                if differs {
                    view.since = now();
                }
                view.standing = standing.clone();
            }
            differs
        });
        if !changed {
            return;
        }
        let view = self.view();
        match &standing {
            Standing::Joining => {}
            Standing::Member => events::cluster_joined(&view.cluster, &view.node, view.nodes().len()),
            Standing::Detached(why) => events::cluster_detached(why),
            Standing::Refused(why) => events::cluster_refused(why),
        }
    }
}
