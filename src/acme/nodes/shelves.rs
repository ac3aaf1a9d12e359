//! What one node has of authorities, and all are to have: certificates, accounts, and what was asked for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex as Turn, watch};

use super::duty::{AskedKnown, CertificateRank, OrderDuty, able_row, duty};
use crate::acme::book::AskedLine;
use crate::acme::desk::{OrderDesk, seconds};
use crate::acme::shelf::Shelf;
use crate::cluster::membership::Standing;
use crate::cluster::node::ClusterNode;
use crate::cluster::view::{ClusterView, KnownRows};
use crate::config::model::tls::Identity;
use crate::config::model::tls::acme::OrderedCertificate;
use crate::events;
use crate::store::shared::{Committed, Revision, RowChange, RowCondition, StoreFault, Transaction};

const CERTIFICATES: &str = "acme/cert/";
const ACCOUNTS: &str = "acme/account/";
const ASKED: &str = "acme/asked/";
/// Rows that are dropped at once.
const AT_ONCE: usize = 60;

/// `acme/cert/AUTHORITY/FILE`.
#[derive(Serialize, Deserialize)]
struct CertificateRow {
    rank: CertificateRank,
    /// Who has had it issued.
    node: String,
    /// When it was asked for, in seconds since 1970, as in the book of that node.
    #[serde(default)]
    asked: Option<i64>,
    /// The private key, and behind it the chain.
    pem: String,
}

/// `acme/account/AUTHORITY/FILE`.
#[derive(Serialize, Deserialize)]
struct AccountRow {
    text: String,
}

/// `acme/asked/AUTHORITY`.
#[derive(Serialize, Deserialize)]
struct AskedRow {
    all: Vec<AskedLine>,
}

/// What a node shares of all this.
pub(in crate::acme) struct SharedShelves {
    node: Arc<ClusterNode>,
    /// How far what was asked for is known here. What is taken in is in the book before anybody else may look.
    known: Mutex<AskedKnown>,
    /// Who reads or writes that row: one after the other, and whoever writes until this node sees it.
    turn: Turn<()>,
    /// Rows that could not be read, as they were then: so that each is told once.
    unread: Mutex<HashMap<String, Revision>>,
}

/// What of the cluster decides about orders.
pub(in crate::acme) type OrderFacts =
    ((Revision, Revision), (Revision, Revision), (Revision, Revision), bool);

/// A later certificate than the one that is shown here, and the node that has had it issued.
pub(in crate::acme) type TakenCertificate = (Identity, String);

fn facts(view: &ClusterView) -> OrderFacts {
    let touched = |area| view.rows.touched(area);
    (touched("acme"), touched("node"), touched("drain"), view.standing == Standing::Member)
}

impl SharedShelves {
    pub(in crate::acme) fn new(node: &Arc<ClusterNode>) -> SharedShelves {
        SharedShelves {
            node: Arc::clone(node),
            known: Mutex::default(),
            turn: Turn::new(()),
            unread: Mutex::default(),
        }
    }

    /// Who orders of this authority.
    pub(in crate::acme) fn duty(&self, authority: &str) -> OrderDuty {
        duty(&self.node.view(), self.node.seals(), authority)
    }

    /// Says whether this node could order of an authority: who can't keep what is issued leaves that to others.
    pub(in crate::acme) async fn say_able(&self, shelf: &Shelf) {
        let view = self.node.view();
        let Some(lease) = self.node.lent().filter(|_| self.node.seals()) else { return };
        let name = able_row(shelf.name(), &view.node);
        let row = view.rows.get(&name);
        let change = match shelf.try_out() {
            Ok(()) if row.is_some_and(|row| row.lease == Some(lease)) => return,
            Ok(()) => RowChange::Put { name: name.clone(), value: b"{}".to_vec(), lease: Some(lease) },
            Err(_) if row.is_none() => return,
            Err(_) => RowChange::drop(&name),
        };
        let conditions = vec![RowCondition { changed: view.rows.changed(&name), name }];
        // What is not said now is said with the next look.
        let _ = self.node.commit(Transaction { conditions, changes: vec![change] }).await;
    }

    /// Waits until something is different by which orders go.
    pub(in crate::acme) async fn changed(
        views: &mut watch::Receiver<Arc<ClusterView>>,
        before: &mut OrderFacts,
    ) {
        let now = views.wait_for(|view| facts(view) != *before).await.map(|view| facts(&view));
        match now {
            Ok(now) => *before = now,
            Err(_) => std::future::pending().await,
        }
    }

    /// What a row says that can be read here.
    fn read<T: DeserializeOwned>(&self, known: &KnownRows, name: &str) -> Option<T> {
        match self.node.unpacked(known, name)? {
            Ok(row) => Some(row),
            Err(fault) => {
                self.tell_unread(known, name, &fault.to_string());
                None
            }
        }
    }

    fn tell_unread(&self, known: &KnownRows, name: &str, why: &str) {
        let (mut told, now) =
            (self.unread.lock().unwrap_or_else(PoisonError::into_inner), known.changed(name));
        if told.insert(name.to_owned(), now) != Some(now) {
            events::secret_unread(name, why);
        }
    }

    /// Writes a row that is as it is known.
    async fn write<T: Serialize + DeserializeOwned>(
        &self,
        known: &KnownRows,
        name: &str,
        row: &T,
    ) -> Result<Committed, StoreFault> {
        let conditions = vec![RowCondition { name: name.to_owned(), changed: known.changed(name) }];
        let changes = vec![RowChange::put(name, self.node.packed_over(known, name, row))];
        self.node.commit(Transaction { conditions, changes }).await
    }

    /// Takes the certificate that another node has had issued, if that is later than what is `shown` here; tells the others of this one otherwise.
    pub(in crate::acme) async fn exchange(
        &self,
        desk: &OrderDesk,
        shelf: &Shelf,
        order: &OrderedCertificate,
        shown: Option<&Identity>,
    ) -> Option<TakenCertificate> {
        if !self.node.seals() {
            return None;
        }
        let view = self.node.view();
        let name = format!("{CERTIFICATES}{}/{}", shelf.name(), shelf.file(order));
        let is_there = view.rows.get(&name).is_some();
        let row: Option<CertificateRow> = self.read(&view.rows, &name);
        if row.is_none() && is_there && self.duty(shelf.name()) != OrderDuty::Own {
            // It may be sealed with a key that this node does not have yet. Who orders has the last word.
            return None;
        }
        let (ours, theirs) = (shown.map(CertificateRank::of), row.as_ref().map(|row| row.rank));
        let names = order.sorted();
        let was_issued = |row: &CertificateRow| {
            if let Some(asked) = row.asked {
                desk.book().was_issued(shelf.name(), &names, asked);
            }
        };
        if let Some(row) = row.as_ref().filter(|_| theirs == ours) {
            was_issued(row);
        }
        if let Some(row) = row.filter(|_| theirs > ours) {
            return match shelf.keep(order, &row.pem) {
                Ok(identity) => {
                    was_issued(&row);
                    Some((identity, row.node))
                }
                Err(why) => {
                    self.tell_unread(&view.rows, &name, &why);
                    None
                }
            };
        }
        if let (Some(rank), true) = (ours, ours > theirs)
            && view.standing == Standing::Member
            && let Ok(pem) = shelf.text(order)
        {
            // What the others were not told they are told the next time; if another was first, that is looked at then.
            let now = seconds(SystemTime::now());
            let asked = desk.book().ledger(shelf.name(), now).last_issued(&names);
            let row = CertificateRow { rank, node: view.node.to_string(), asked, pem };
            if let Ok(Committed::Done(at)) = self.write(&view.rows, &name, &row).await {
                self.node.learned(at).await;
            }
        }
        None
    }

    /// Whether the others have what is `shown` here, or something later.
    pub(in crate::acme) fn has(
        &self,
        shelf: &Shelf,
        order: &OrderedCertificate,
        shown: Option<&Identity>,
    ) -> bool {
        let view = self.node.view();
        let name = format!("{CERTIFICATES}{}/{}", shelf.name(), shelf.file(order));
        let rank = || self.read::<CertificateRow>(&view.rows, &name).map(|row| row.rank);
        !self.node.seals() || shown.is_none_or(|shown| rank() >= Some(CertificateRank::of(shown)))
    }

    /// Drops certificates of an authority that have ended, and that none of these orders wants.
    pub(in crate::acme) async fn clear(&self, shelf: &Shelf, orders: &[Arc<OrderedCertificate>], now: i64) {
        let view = self.node.view();
        if view.standing != Standing::Member || !self.node.seals() {
            return;
        }
        let prefix = format!("{CERTIFICATES}{}/", shelf.name());
        let wanted: Vec<String> =
            orders.iter().map(|order| format!("{prefix}{}", shelf.file(order))).collect();
        let has_ended = |name: &&str| {
            let row: Option<CertificateRow> = self.read(&view.rows, name);
            row.is_some_and(|row| row.rank.expires < now)
        };
        let unwanted = view.rows.names(&prefix).filter(|name| !wanted.iter().any(|wanted| wanted == name));
        let over: Vec<&str> = unwanted.filter(has_ended).take(AT_ONCE).collect();
        if over.is_empty() {
            return;
        }
        let condition =
            |name: &&str| RowCondition { name: (*name).to_owned(), changed: view.rows.changed(name) };
        let conditions = over.iter().map(condition).collect();
        let changes = over.iter().map(|name| RowChange::drop(*name)).collect();
        let _ = self.node.commit(Transaction { conditions, changes }).await;
    }

    fn known(&self) -> MutexGuard<'_, AskedKnown> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What whoever decides now to ask writes upon, see [`AskedKnown`].
    pub(in crate::acme) fn heard(&self) -> u64 {
        self.known().heard()
    }

    /// Comes to know what other nodes have asked an authority for.
    pub(in crate::acme) async fn read_asked(&self, desk: &OrderDesk, authority: &str, now: i64) {
        if !self.node.seals() {
            return;
        }
        let _turn = self.turn.lock().await;
        let (view, name) = (self.node.view(), format!("{ASKED}{authority}"));
        let mut known = self.known();
        if known.hears((view.rewinds, view.rows.changed(&name)))
            && let Some(row) = self.read::<AskedRow>(&view.rows, &name)
        {
            desk.book().learn(authority, &row.all, now);
        }
    }

    /// Has all know what this node has asked an authority for, and the order of this `number`, which it is about to ask for. Who has decided that before he `heard`
    /// what others write there has to look again.
    ///
    /// # Errors
    /// Nobody knows of it, and why.
    pub(in crate::acme) async fn write_asked(
        &self,
        desk: &OrderDesk,
        authority: &str,
        heard: u64,
        number: Option<u64>,
    ) -> Result<(), String> {
        if !self.node.seals() {
            return Ok(());
        }
        let _turn = self.turn.lock().await;
        let (view, name) = (self.node.view(), format!("{ASKED}{authority}"));
        if !self.known().may_write((view.rewinds, view.rows.changed(&name)), heard) {
            return Err("another node has asked it meanwhile".to_owned());
        }
        let row = AskedRow { all: desk.book().lines(authority, number) };
        match self.write(&view.rows, &name, &row).await {
            Ok(Committed::Done(at)) => {
                self.known().has_written((view.rewinds, at));
                if let Some(number) = number {
                    desk.book().is_told(authority, number);
                }
                // Whoever reads or writes next has this before him.
                self.node.learned(at).await;
                Ok(())
            }
            Ok(Committed::Conflict) => Err("another node has asked it meanwhile".to_owned()),
            Err(fault) => Err(fault.to_string()),
        }
    }

    /// Has the account that another node has made.
    pub(in crate::acme) fn read_account(&self, shelf: &Shelf) {
        if !self.node.seals() {
            return;
        }
        let (view, name) = (self.node.view(), account_row(shelf));
        let Some(row) = self.read::<AccountRow>(&view.rows, &name) else { return };
        let is_known = shelf.account().is_ok_and(|known| known.as_deref() == Some(row.text.as_bytes()));
        if !is_known && let Err(why) = shelf.keep_account(row.text.as_bytes()) {
            self.tell_unread(&view.rows, &name, &why);
        }
    }

    /// Has all have the account of this node. Where that can't be done another node makes one of its own.
    pub(in crate::acme) async fn write_account(&self, shelf: &Shelf) {
        if !self.node.seals() {
            return;
        }
        let (view, name) = (self.node.view(), account_row(shelf));
        let Ok(Some(Ok(text))) = shelf.account().map(|known| known.map(String::from_utf8)) else { return };
        if self.read::<AccountRow>(&view.rows, &name).is_none_or(|row| row.text != text) {
            let _ = self.write(&view.rows, &name, &AccountRow { text }).await;
        }
    }

    /// Has nobody come by an account any more that its authority does not know.
    pub(in crate::acme) async fn drop_account(&self, shelf: &Shelf) {
        let name = account_row(shelf);
        if !self.node.seals() || self.node.view().rows.get(&name).is_none() {
            return;
        }
        let dropping = Transaction { conditions: Vec::new(), changes: vec![RowChange::drop(name)] };
        if let Ok(Committed::Done(at)) = self.node.commit(dropping).await {
            self.node.learned(at).await;
        }
    }
}

fn account_row(shelf: &Shelf) -> String {
    format!("{ACCOUNTS}{}/{}", shelf.name(), shelf.account_file())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::acme::limits::{LedgerEntry, OrderEnd};
    use crate::cluster::node::NodeFacts;
    use crate::config::model::{ClusterConfig, ClusterKey};
    use crate::store::memory::{MemoryDisk, MemoryStore};
    use crate::store::shared::chosen::ChosenStore;
    use crate::store::shared::embedded::EmbeddedStore;
    use crate::store::shared::{ClusterStore as _, ListedFrom};

    /// A node, what it knows of authorities, and what it has asked for.
    struct Lab {
        store: EmbeddedStore,
        shelves: SharedShelves,
        desk: OrderDesk,
    }

    impl Lab {
        async fn start(name: &str, store: &EmbeddedStore) -> Lab {
            let key = Some(Arc::new(ClusterKey([7; ClusterKey::LENGTH])));
            let (cluster, lease) = ("t".to_owned(), Duration::from_secs(60));
            let config = ClusterConfig { name: cluster, node: None, etcd: None, lease, key };
            let own = || name.to_owned();
            let facts =
                NodeFacts { name: own(), machine: own(), boot: own(), shares: true, zone: None, since_ms: 1 };
            let node = Arc::new(ClusterNode::new(&config, facts, ChosenStore::Embedded(store.clone())));
            let kept = Arc::clone(&node);
            tokio::spawn(async move { kept.keep(&CancellationToken::new()).await });
            let is_member = |view: &Arc<ClusterView>| view.standing == Standing::Member;
            node.views().wait_for(is_member).await.expect("it joins");
            let book = Box::new(MemoryStore(MemoryDisk::default()));
            let desk = OrderDesk::open(std::path::Path::new("/nowhere"), book).expect("an empty book");
            Lab { store: store.clone(), shelves: SharedShelves::new(&node), desk }
        }

        /// Decides to order this name, in the second 3. Gives the number of that, and what it was decided upon.
        fn decide(&self, name: &str) -> (u64, u64) {
            let names = vec![name.to_owned()];
            let order = LedgerEntry::Order { at: 3, names, end: OrderEnd::Open, rest: None };
            (self.desk.book().decide("ca", order, 3).expect("kept"), self.shelves.heard())
        }

        async fn write(&self, (number, heard): (u64, u64)) -> bool {
            self.shelves.write_asked(&self.desk, "ca", heard, Some(number)).await.is_ok()
        }

        /// Knows what everybody has written.
        async fn read(&self) {
            let listing = self.store.list("", ListedFrom::Majority).await.expect("it is there");
            self.shelves.node.learned(listing.revision).await;
            self.shelves.read_asked(&self.desk, "ca", 3).await;
        }

        /// How often each name was asked for, as far as it knows.
        fn asked(&self) -> [u32; 3] {
            let mut book = self.desk.book();
            let ledger = book.ledger("ca", 3);
            ["a", "b", "c"]
                .map(|name| ledger.failures(&[name.to_owned()]).map_or(0, |failures| failures.count))
        }
    }

    #[tokio::test]
    async fn of_two_nodes_that_decide_in_the_same_second_each_name_is_ordered_by_one() {
        let store = EmbeddedStore::fleeting();
        let [one, two] = [Lab::start("one", &store).await, Lab::start("two", &store).await];
        // Several that are decided at once are all written.
        let decided = ["a", "b"].map(|name| (one.decide(name), two.decide(name)));
        for (of_one, _) in &decided {
            assert!(one.write(*of_one).await);
            one.read().await;
        }
        // Whether it has heard of it or not, the other one looks again.
        assert!(!two.write(decided[0].1).await);
        two.read().await;
        assert!(!two.write(decided[1].1).await, "it was decided before that was known");
        // What one of them takes back does not make it forget the other one's, and is no word of its own.
        two.desk.book().withdraw("ca", decided[0].1.0);
        let third = two.decide("c");
        assert!(two.write(third).await);
        two.desk.book().withdraw("ca", decided[1].1.0);
        two.read().await;
        one.read().await;
        assert_eq!([one.asked(), two.asked()], [[1; 3]; 2]);
    }
}
