//! Has the certificates ordered that the config in force wants.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::task::{AbortHandle, Id, JoinSet};
use tokio::time::sleep;
use xxhash_rust::xxh3::xxh3_64;

use super::desk::{OrderDesk, seconds};
use super::fault::OrderFault;
use super::limits::{LedgerEntry, OrderEnd};
use super::nodes::duty::OrderDuty;
use super::nodes::proofs::answer_for_others;
use super::nodes::shelves::{OrderFacts, SharedShelves};
use super::schedule::{KnownCertificate, LifeSpan, due, renewal};
use super::visit::{Advice, NEVER, Visit};
use crate::cluster::node::ClusterNode;
use crate::config::model::tls::Identity;
use crate::config::model::tls::acme::OrderedCertificate;
use crate::events;
use crate::reload::Reloader;
use crate::snapshot::{WantedCertificate, WantedCertificates};
use crate::tls::{LiveCertificate, OrderNews, Proofs};

/// Orders under way at a time.
const MOST: usize = 4;
/// However far away the next one is, the clock may be set meanwhile.
const LOOK: Duration = Duration::from_secs(60);
/// After which time it is looked again, where the other nodes could not be told of an order or its end.
const AGAIN: Duration = Duration::from_secs(1);

/// Orders what is wanted, from the config in force on, with the other nodes if this is one of several; it ends with those who change configs.
pub async fn keep(
    reloader: &Reloader,
    desk: &Result<Arc<OrderDesk>, String>,
    node: Option<&Arc<ClusterNode>>,
) {
    let proofs = reloader.snapshots.proofs();
    let others = async {
        match node {
            Some(node) => answer_for_others(node, proofs).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = Box::pin(keep_own(reloader, desk, node)) => {}
        () = Box::pin(others) => {}
    }
}

async fn keep_own(
    reloader: &Reloader,
    desk: &Result<Arc<OrderDesk>, String>,
    node: Option<&Arc<ClusterNode>>,
) {
    let (mut views, mut facts) = (node.map(|node| node.views()), OrderFacts::default());
    let mut wanted = reloader.certificates.subscribe();
    let mut counter: Option<Counter> = None;
    let mut is_told = false;
    loop {
        let now = wanted.borrow_and_update().clone();
        match desk {
            Err(reason) if !now.all.is_empty() && !is_told => {
                is_told = true;
                events::orders_unkept(reason);
            }
            Err(_) => {}
            Ok(desk) => {
                if counter.as_ref().is_none_or(|counter| counter.visit.config != now.authority) {
                    // Whatever is under way with another authority ends with this.
                    counter = Some(Counter::new(&now, desk, reloader.snapshots.proofs(), node));
                }
                if let Some(counter) = &mut counter {
                    counter.follow(&now);
                }
            }
        }
        loop {
            let next = match &mut counter {
                Some(counter) => {
                    Box::pin(counter.exchange()).await;
                    counter.go_on()
                }
                None => LOOK,
            };
            let elsewhere = async {
                match &mut views {
                    Some(views) => SharedShelves::changed(views, &mut facts).await,
                    None => std::future::pending().await,
                }
            };
            let done = async {
                match &mut counter {
                    Some(counter) if !counter.tasks.is_empty() => counter.tasks.join_next_with_id().await,
                    _ => std::future::pending().await,
                }
            };
            tokio::select! {
                changed = wanted.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return,
                },
                Some(done) = done => {
                    if let Some(counter) = &mut counter {
                        match done {
                            Ok((id, done)) => counter.finish(id, Some(done)),
                            Err(error) => counter.finish(error.id(), None),
                        }
                    }
                }
                () = elsewhere => {}
                () = sleep(next.min(LOOK)) => {}
            }
        }
    }
}

/// What a task has brought.
enum Brought {
    Order(Result<Identity, OrderFault>),
    Advice(Advice),
    /// It was not asked for: others have to know of it first, and don't.
    Nothing(String),
}

/// A certificate that is wanted.
struct Ongoing {
    live: Arc<LiveCertificate>,
    order: Arc<OrderedCertificate>,
    /// In the order of the alphabet.
    names: Vec<String>,
    /// When the authority wants it to be renewed.
    window: Option<LifeSpan>,
    /// When it is asked about that next.
    ask_at: SystemTime,
    task: Option<(AbortHandle, Option<u64>)>,
}

/// What is going on with one authority.
struct Counter {
    visit: Arc<Visit>,
    desk: Arc<OrderDesk>,
    ongoing: Vec<Ongoing>,
    tasks: JoinSet<Brought>,
    /// Whose task that is.
    of_task: HashMap<Id, Arc<LiveCertificate>>,
    /// An order has ended, and the other nodes don't know of it yet.
    is_untold: bool,
}

impl Ongoing {
    fn new(wanted: &WantedCertificate) -> Ongoing {
        // What was told of it was about another authority, or another way to prove its names.
        wanted.live.tell(|news| *news = OrderNews::default());
        Ongoing {
            live: Arc::clone(&wanted.live),
            order: Arc::clone(&wanted.order),
            names: wanted.order.sorted(),
            window: None,
            ask_at: SystemTime::UNIX_EPOCH,
            task: None,
        }
    }

    /// What is told of it.
    fn told(&self) -> String {
        self.order.names.join(", ")
    }

    /// From now on this is shown.
    fn show(&mut self, identity: Identity) {
        self.live.issue(Arc::new(identity));
        (self.window, self.ask_at) = (None, SystemTime::UNIX_EPOCH);
        self.live.tell(|news| news.last_error = None);
    }

    /// What is shown that this authority has issued.
    fn shown(&self, visit: &Visit) -> Option<Arc<Identity>> {
        let shown = self.live.shown();
        (shown.is_issued && visit.shelf.holds(&shown.identity)).then(|| Arc::clone(&shown.identity))
    }
}

impl Counter {
    fn new(
        wanted: &WantedCertificates,
        desk: &Arc<OrderDesk>,
        proofs: &Arc<Proofs>,
        node: Option<&Arc<ClusterNode>>,
    ) -> Counter {
        Counter {
            visit: Arc::new(Visit::new(&wanted.authority, desk, proofs, node)),
            desk: Arc::clone(desk),
            ongoing: Vec::new(),
            tasks: JoinSet::new(),
            of_task: HashMap::new(),
            is_untold: false,
        }
    }

    /// Goes over to what is wanted now.
    fn follow(&mut self, wanted: &WantedCertificates) {
        let is_wanted = |one: &Ongoing| {
            wanted.all.iter().any(|other| Arc::ptr_eq(&other.live, &one.live) && other.order == one.order)
        };
        let (stay, gone): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.ongoing).into_iter().partition(is_wanted);
        self.ongoing = stay;
        for one in gone {
            if let Some((task, _)) = one.task {
                self.of_task.remove(&task.id());
                task.abort();
                one.live.tell(|news| news.is_busy = false);
            }
        }
        for one in &wanted.all {
            if self.ongoing.iter().any(|other| Arc::ptr_eq(&other.live, &one.live)) {
                continue;
            }
            let ongoing = Ongoing::new(one);
            if ongoing.shown(&self.visit).is_none() {
                // Another authority may have issued what is shown; this one may have issued something before.
                match self.visit.shelf.read(&one.order) {
                    Some(kept) => one.live.issue(Arc::new(kept)),
                    None if !one.live.shown().is_issued => events::certificate_missing(&ongoing.told()),
                    None => {}
                }
            }
            self.ongoing.push(ongoing);
        }
    }

    /// Has what other nodes have had issued, and they what this one has.
    async fn exchange(&mut self) {
        let Some(others) = &self.visit.others else { return };
        others.shelves.say_able(&self.visit.shelf).await;
        let now = seconds(SystemTime::now());
        // What was asked for is known before the certificates are, and told after them: of no order it is known that it has ended well while its
        // certificate is not there.
        if self.is_untold || self.visit.duty() == OrderDuty::Own {
            others.shelves.read_asked(&self.desk, self.visit.shelf.name(), now).await;
        }
        for one in &mut self.ongoing {
            let shown = one.shown(&self.visit);
            let exchanging =
                others.shelves.exchange(&self.desk, &self.visit.shelf, &one.order, shown.as_deref());
            let taken = exchanging.await;
            if let Some((identity, node)) = taken {
                events::certificate_taken(&one.told(), &node, &identity.file);
                one.show(identity);
            }
        }
        if self.is_untold {
            let is_shared = self.ongoing.iter().all(|one| {
                let shown = one.shown(&self.visit);
                others.shelves.has(&self.visit.shelf, &one.order, shown.as_deref())
            });
            if is_shared {
                self.desk.book().release(self.visit.shelf.name());
            }
            self.is_untold = self.visit.tell_asked(self.visit.heard(), None).await.is_err() || !is_shared;
        }
        if self.visit.duty() == OrderDuty::Own {
            let orders: Vec<_> = self.ongoing.iter().map(|one| Arc::clone(&one.order)).collect();
            others.shelves.clear(&self.visit.shelf, &orders, now).await;
        }
    }

    /// Begins what is due, if this node orders. Gives how long after this something else is.
    fn go_on(&mut self) -> Duration {
        let now = SystemTime::now();
        let mut next = if self.is_untold { AGAIN } else { LOOK };
        let duty = self.visit.duty();
        let by = match &duty {
            OrderDuty::Of(node) => Some(node.clone()),
            OrderDuty::Own | OrderDuty::Nobody => None,
        };
        for place in 0..self.ongoing.len() {
            if self.ongoing[place].task.is_some() {
                continue;
            }
            let at = self.due(place, now);
            let wait = at.duration_since(now).unwrap_or_default();
            self.ongoing[place].live.tell(|news| {
                news.next = (duty == OrderDuty::Own).then_some(at);
                news.by.clone_from(&by);
            });
            if duty != OrderDuty::Own {
                continue;
            }
            // A clock that was ahead when it was told holds nobody up.
            let is_advised = (now..now + NEVER).contains(&self.ongoing[place].ask_at);
            if self.tasks.len() >= MOST {
                // Whoever ends makes room.
            } else if wait.is_zero() && self.is_taken(place) {
                // Another certificate for one of its names: their proofs would be in each other's way.
            } else if wait.is_zero() {
                self.begin_order(place, now);
            } else if !is_advised && self.ongoing[place].shown(&self.visit).is_some() {
                self.begin_asking(place);
            } else {
                next = next.min(wait);
            }
        }
        next
    }

    /// Whether an order is under way for one of its names.
    fn is_taken(&self, place: usize) -> bool {
        let names = &self.ongoing[place].names;
        let under_way = self.ongoing.iter().filter(|one| matches!(one.task, Some((_, Some(_)))));
        under_way.flat_map(|one| &one.names).any(|name| names.contains(name))
    }

    /// When one is ordered next.
    fn due(&self, place: usize, now: SystemTime) -> SystemTime {
        let one = &self.ongoing[place];
        let shown = one.shown(&self.visit);
        let leaf = shown.as_ref().and_then(|shown| shown.certified.cert.first());
        let chance = leaf.map_or_else(|| xxh3_64(one.names.join(" ").as_bytes()), |leaf| xxh3_64(leaf));
        let life = shown.map(|shown| LifeSpan { begins: shown.begins, ends: shown.expires });
        let at =
            |seconds: i64| SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        one.live.tell(|news| news.renewal = life.map(|life| at(renewal(life, one.window, chance))));
        let known = KnownCertificate {
            names: &one.names,
            life,
            window: one.window,
            is_public: self.visit.config.is_public,
            chance,
        };
        let mut book = self.desk.book();
        let ledger = book.ledger(self.visit.shelf.name(), seconds(now));
        let failures = ledger.failures(&one.names).filter(|_| one.task.is_none());
        one.live.tell(|news| news.failures = failures.map_or(0, |failures| failures.count));
        at(due(&known, ledger, seconds(now)))
    }

    fn begin_order(&mut self, place: usize, now: SystemTime) {
        let one = &mut self.ongoing[place];
        let names = one.names.clone();
        let asked = LedgerEntry::Order { at: seconds(now), names, end: OrderEnd::Open, rest: None };
        let noted = self.desk.book().decide(self.visit.shelf.name(), asked, seconds(now));
        let number = match noted {
            Ok(number) => number,
            Err(why) => {
                let fault = OrderFault { is_unreached: true, ..OrderFault::own(why) };
                self.failed(place, &fault);
                return;
            }
        };
        let (visit, order, shown) = (Arc::clone(&self.visit), Arc::clone(&one.order), one.shown(&self.visit));
        one.live.tell(|news| news.is_busy = true);
        let heard = visit.heard();
        let task = self.tasks.spawn(async move {
            if let Err(why) = visit.tell_asked(heard, Some(number)).await {
                sleep(AGAIN).await;
                return Brought::Nothing(why);
            }
            Brought::Order(visit.order(&order, shown.as_deref(), number).await)
        });
        self.of_task.insert(task.id(), Arc::clone(&one.live));
        one.task = Some((task, Some(number)));
    }

    fn begin_asking(&mut self, place: usize) {
        let one = &mut self.ongoing[place];
        let Some(shown) = one.shown(&self.visit) else { return };
        let visit = Arc::clone(&self.visit);
        let task = self.tasks.spawn(async move { Brought::Advice(visit.advice(&shown).await) });
        self.of_task.insert(task.id(), Arc::clone(&one.live));
        one.task = Some((task, None));
    }

    /// Takes in what a task has brought; `None`: a panic.
    fn finish(&mut self, id: Id, brought: Option<Brought>) {
        let Some(live) = self.of_task.remove(&id) else { return };
        let Some(place) = self.ongoing.iter().position(|one| Arc::ptr_eq(&one.live, &live)) else { return };
        let number = self.ongoing[place].task.take().and_then(|(_, number)| number);
        live.tell(|news| news.is_busy = false);
        let brought = match (brought, number) {
            (Some(brought), _) => brought,
            (None, Some(_)) => Brought::Order(Err(OrderFault::own("a bug: the order has ended by a panic"))),
            (None, None) => Brought::Advice((None, LOOK)),
        };
        let outcome = match brought {
            Brought::Nothing(why) => {
                if let Some(number) = number {
                    self.desk.book().withdraw(self.visit.shelf.name(), number);
                }
                live.tell(|news| news.last_error = Some(format!("the other nodes don't know of it: {why}")));
                return;
            }
            Brought::Advice((window, again)) => {
                let one = &mut self.ongoing[place];
                one.window = window.or(one.window);
                one.ask_at = SystemTime::now() + again;
                return;
            }
            Brought::Order(outcome) => outcome,
        };
        let (end, rest) = match &outcome {
            Ok(_) => (OrderEnd::Issued, None),
            Err(fault) if fault.is_signed => (OrderEnd::Signing, fault.rest),
            Err(fault) if fault.is_unreached => (OrderEnd::Unreached, fault.rest),
            Err(fault) => (OrderEnd::Failed, fault.rest),
        };
        if let Some(number) = number {
            let has_others = self.visit.others.is_some();
            if outcome.is_ok() && has_others {
                self.desk.book().hold(self.visit.shelf.name(), number);
            }
            self.desk.book().end(self.visit.shelf.name(), number, end, rest.map(seconds));
            self.is_untold = has_others;
        }
        match outcome {
            Ok(identity) => self.issued(place, identity),
            Err(fault) => self.failed(place, &fault),
        }
    }

    fn issued(&mut self, place: usize, identity: Identity) {
        let one = &mut self.ongoing[place];
        let left = u64::try_from(identity.expires.saturating_sub(seconds(SystemTime::now()))).unwrap_or(0);
        events::certificate_issued(&one.told(), &identity.file, Duration::from_secs(left));
        one.show(identity);
    }

    fn failed(&mut self, place: usize, fault: &OrderFault) {
        let now = SystemTime::now();
        let again = self.due(place, now).duration_since(now).unwrap_or_default();
        let one = &self.ongoing[place];
        let is_shown = one.live.shown().is_issued;
        events::certificate_not_issued(&one.told(), &fault.why, again, is_shown);
        one.live.tell(|news| news.last_error = Some(fault.why.clone()));
    }
}
