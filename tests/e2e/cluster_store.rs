//! Both stores of a cluster are asked the same, and give the same answers; and what only one that is somewhere else can do wrong.

use std::time::Duration;

use evenkeel::store::shared::embedded::EmbeddedStore;
use evenkeel::store::shared::etcd::EtcdStore;
use evenkeel::store::shared::{
    ClusterStore, Committed, LeaseNumber, ListedFrom, Revision, RowChange, RowCondition, StoreFault,
    StoreWatch, Transaction,
};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use super::support::etcd::{Etcd, is_there};
use super::support::{PATIENCE, eventually};

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn transaction(conditions: &[(&str, Revision)], changes: &[RowChange]) -> Transaction {
    let condition =
        |(name, changed): &(&str, Revision)| RowCondition { name: (*name).to_owned(), changed: *changed };
    Transaction { conditions: conditions.iter().map(condition).collect(), changes: changes.to_vec() }
}

fn leased(name: &str, value: &str, lease: LeaseNumber) -> RowChange {
    RowChange::Put { name: name.to_owned(), value: value.into(), lease: Some(lease) }
}

/// Under the condition that the rows are what they are: without one, an attempt whose answer was lost may be done later on, once more. Again where nobody has
/// answered in time, unless it was done all the same.
async fn done<S: ClusterStore>(store: &S, changes: &[RowChange]) -> Revision {
    timeout(PATIENCE * 2, tried(store, changes)).await.expect("it is done in time")
}

async fn tried<S: ClusterStore>(store: &S, changes: &[RowChange]) -> Revision {
    let mut is_unknown = false;
    loop {
        let listing = match store.list("", ListedFrom::Majority).await {
            Ok(listing) => listing,
            // They elect another leader, which takes as long as the machine is busy.
            Err(StoreFault::Unreachable(_)) => continue,
            Err(fault) => panic!("{fault}"),
        };
        let of = |name: &str| listing.rows.iter().find(|row| row.name == name);
        let is_so = |change: &RowChange| match change {
            RowChange::Put { name, value, .. } => of(name).is_some_and(|row| row.value == *value),
            RowChange::Drop { name } => of(name).is_none(),
        };
        if is_unknown && changes.iter().all(is_so) {
            return listing.revision;
        }
        let conditions: Vec<(&str, Revision)> = changes
            .iter()
            .map(|change| (change.name(), of(change.name()).map_or(0, |row| row.changed)))
            .collect();
        match store.commit(transaction(&conditions, changes)).await {
            Ok(Committed::Done(revision)) => return revision,
            Ok(Committed::Conflict) => assert!(is_unknown, "nobody else writes"),
            Err(StoreFault::Unreachable(_)) => is_unknown = true,
            Err(fault) => panic!("{fault}"),
        }
    }
}

async fn rows<S: ClusterStore>(store: &S, prefix: &str) -> Vec<(String, String)> {
    let listing = store.list(prefix, ListedFrom::Majority).await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    listing.rows.into_iter().map(|row| (row.name, text(row.value))).collect()
}

fn named(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// What a watch tells until it has told of a revision: rows that were put, and names that were dropped, in their order.
async fn told(watch: &mut StoreWatch, until: Revision) -> (Vec<(String, String)>, Vec<String>) {
    let (mut put, mut dropped) = (Vec::new(), Vec::new());
    loop {
        let changes = timeout(PATIENCE, watch.next()).await.expect("it tells in time").unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        put.extend(changes.put.into_iter().map(|row| (row.name, text(row.value))));
        dropped.extend(changes.dropped);
        if changes.revision >= until {
            return (put, dropped);
        }
    }
}

/// What holds of every store.
async fn conforms<S: ClusterStore>(store: &S, may_lose: bool) {
    // Rows are listed by name, and a prefix is a prefix.
    let first =
        done(store, &[RowChange::put("a/1", "one"), RowChange::put("a/2", "two"), RowChange::put("b", "b")])
            .await;
    assert_eq!(rows(store, "a/").await, named(&[("a/1", "one"), ("a/2", "two")]));
    assert_eq!(rows(store, "").await, named(&[("a/1", "one"), ("a/2", "two"), ("b", "b")]));
    assert_eq!(rows(store, "c").await, []);
    // One member may not have heard of it yet.
    let listing = loop {
        let listing = store.list("a/", ListedFrom::OneMember).await.unwrap();
        if listing.revision >= first {
            break listing;
        }
    };
    assert!(listing.rows.iter().all(|row| row.changed == first && row.lease.is_none()), "{listing:?}");

    // A transaction is done as a whole if all its conditions hold, and not at all if one does not.
    let second = store.commit(transaction(
        &[("a/1", first), ("new", 0)],
        &[RowChange::put("a/1", "1"), RowChange::drop("b")],
    ));
    let Committed::Done(second) = second.await.unwrap() else { panic!("a conflict") };
    assert!(second > first);
    for conditions in [[("a/1", first), ("new", 0)], [("a/1", second), ("a/2", 0)], [("gone", 5), ("new", 0)]]
    {
        let asked = transaction(&conditions, &[RowChange::put("a/1", "no"), RowChange::put("new", "no")]);
        // An answer that was lost says nothing; asked again it is the same.
        let heard = async {
            loop {
                match store.commit(asked.clone()).await {
                    Err(StoreFault::Unreachable(_)) => {}
                    answer => break answer,
                }
            }
        };
        assert_eq!(timeout(PATIENCE * 2, heard).await, Ok(Ok(Committed::Conflict)), "{conditions:?}");
    }
    assert_eq!(rows(store, "").await, named(&[("a/1", "1"), ("a/2", "two")]));
    // Dropping what is not there is no fault, and a row once dropped counts as never there.
    done(store, &[RowChange::drop("b")]).await;
    let again = store.commit(transaction(&[("b", 0)], &[RowChange::put("b", "back")])).await;
    assert!(matches!(again, Ok(Committed::Done(_))), "{again:?}");
    let twice = transaction(&[], &[RowChange::put("b", "1"), RowChange::drop("b")]);
    assert!(matches!(store.commit(twice).await, Err(StoreFault::Unfit(_))));

    // A watch tells of what came after its revision, of its prefix alone, in order.
    let mut watch = store.watch("a/", first);
    let third = done(store, &[RowChange::drop("a/2"), RowChange::put("b", "unseen")]).await;
    let fourth = done(store, &[RowChange::put("a/3", "three")]).await;
    assert!(fourth > third);
    assert_eq!(
        told(&mut watch, fourth).await,
        (named(&[("a/1", "1"), ("a/3", "three")]), vec!["a/2".to_owned()])
    );
    // What is changed back and forth is told as it is in the end, by whoever reads late.
    let mut late = store.watch("a/", fourth);
    for number in 0..20 {
        done(store, &[RowChange::put("a/3", format!("{number}"))]).await;
    }
    let last = done(store, &[RowChange::drop("a/3")]).await;
    let (put, dropped) = told(&mut late, last).await;
    assert_eq!(dropped, ["a/3"], "{put:?}");

    // A lease takes its rows with it, when it is given back.
    let lease = store.grant(Duration::from_secs(60)).await.unwrap();
    let held = done(store, &[leased("a/held", "x", lease), RowChange::put("a/stays", "y")]).await;
    assert_eq!(store.list("a/held", ListedFrom::Majority).await.unwrap().rows[0].lease, Some(lease));
    store.keep_alive(lease).await.unwrap();
    let mut watch = store.watch("a/", held);
    revoke(store, lease, may_lose).await;
    assert_eq!(told(&mut watch, held + 1).await.1, ["a/held"]);
    assert_eq!(rows(store, "a/").await, named(&[("a/1", "1"), ("a/stays", "y")]));
    assert_eq!(store.keep_alive(lease).await, Err(StoreFault::LeaseOver));
    let asked = transaction(&[], &[leased("a/late", "x", lease)]);
    assert_eq!(store.commit(asked).await, Err(StoreFault::LeaseOver));
    // Or when nobody keeps it alive.
    let lease = store.grant(Duration::from_secs(3)).await.unwrap();
    let held = done(store, &[leased("a/held", "x", lease)]).await;
    let mut watch = store.watch("a/", held);
    assert_eq!(told(&mut watch, held + 1).await.1, ["a/held"]);
    // A row that is written anew without one stays.
    let lease = store.grant(Duration::from_secs(60)).await.unwrap();
    done(store, &[leased("a/held", "x", lease)]).await;
    done(store, &[RowChange::put("a/held", "kept")]).await;
    revoke(store, lease, may_lose).await;
    assert_eq!(rows(store, "a/held").await, named(&[("a/held", "kept")]));

    // Whoever asks for changes that are not there yet is told that they never will be.
    let now = store.list("", ListedFrom::Majority).await.unwrap().revision;
    let mut ahead = store.watch("a/", now + 1000);
    let fault = timeout(PATIENCE, ahead.next()).await.unwrap();
    assert_eq!(fault, Err(StoreFault::Rewound(now)));
    assert_eq!(ahead.next().await, Err(StoreFault::Rewound(now)));
}

/// Gives a lease back. Where an answer was lost and it was asked again, the lease is over already.
async fn revoke<S: ClusterStore>(store: &S, lease: LeaseNumber, may_lose: bool) {
    let revoked = store.revoke(lease).await;
    assert!(revoked == Ok(()) || may_lose && revoked == Err(StoreFault::LeaseOver), "{revoked:?}");
}

#[test]
fn the_embedded_store_conforms() {
    runtime().block_on(conforms(&EmbeddedStore::fleeting(), false));
}

#[test]
fn etcd_conforms() {
    if is_there() {
        let etcd = Etcd::start(3);
        runtime().block_on(conforms(&EtcdStore::new(&etcd.config("/evenkeel/conforms")), true));
    }
}

#[test]
fn etcd_conforms_with_tls_and_certificates_of_clients() {
    if is_there() {
        let etcd = Etcd::start_with_tls(3);
        runtime().block_on(conforms(&EtcdStore::new(&etcd.config("/evenkeel/conforms")), true));
    }
}

/// Who has this row, asked until there is an answer.
async fn holder<S: ClusterStore>(store: &S, row: &str) -> Vec<u8> {
    let asked = async {
        loop {
            match store.list(row, ListedFrom::Majority).await {
                Ok(listing) => return listing.rows[0].value.to_vec(),
                Err(StoreFault::Unreachable(_)) => {}
                Err(fault) => panic!("{fault}"),
            }
        }
    };
    timeout(PATIENCE, asked).await.expect("an answer in time")
}

/// Claims so many numbers, each the first that nobody has, and says which.
async fn claim<S: ClusterStore>(store: &S, who: &str, times: usize) -> Vec<u32> {
    let (mut number, mut claimed) = (1, Vec::new());
    while claimed.len() < times {
        let row = format!("claim/{number:05}");
        match store.commit(transaction(&[(&row, 0)], &[RowChange::put(&row, who)])).await {
            Ok(Committed::Done(_)) => claimed.push(number),
            Ok(Committed::Conflict) => {
                // It may be our own: what was not known to be done may be done later.
                if holder(store, &row).await == who.as_bytes() {
                    claimed.push(number);
                }
            }
            // It is not known whether that was or will be done: who asks again finds out.
            Err(StoreFault::Unreachable(_)) => continue,
            Err(fault) => panic!("{fault}"),
        }
        number += 1;
    }
    claimed
}

/// Nothing is claimed twice and no claim is lost while `trouble` is made. Each client has a connection of its own.
fn claims_right(etcd: &mut Etcd, trouble: impl FnOnce(&mut Etcd) + Send) {
    const EACH: usize = 150;
    let config = etcd.config("/evenkeel/claims");
    let claimed = std::thread::scope(|scope| {
        let claiming = scope.spawn(|| {
            runtime().block_on(async {
                let all = (0..4).map(|client| {
                    let store = EtcdStore::new(&config);
                    tokio::spawn(async move { claim(&store, &format!("client {client}"), EACH).await })
                });
                let mut claimed = Vec::new();
                for one in all.collect::<Vec<_>>() {
                    claimed.push(one.await.unwrap());
                }
                claimed
            })
        });
        trouble(etcd);
        claiming.join().unwrap()
    });
    let found = runtime().block_on(rows(&EtcdStore::new(&config), "claim/"));
    for (client, claimed) in claimed.iter().enumerate() {
        let of_client = found.iter().filter(|(_, who)| *who == format!("client {client}"));
        let of_client: Vec<u32> = of_client.map(|(name, _)| name[6..].parse().unwrap()).collect();
        assert_eq!(of_client, *claimed, "client {client}");
    }
}

#[test]
fn a_member_that_is_killed_costs_no_change_and_doubles_none() {
    if is_there() {
        let mut etcd = Etcd::start(3);
        claims_right(&mut etcd, |etcd| {
            for number in [0, 1, 2] {
                etcd.kill(number);
                etcd.begin(number);
            }
        });
    }
}

#[test]
fn a_watch_goes_on_with_another_member_and_misses_nothing() {
    if !is_there() {
        return;
    }
    let mut etcd = Etcd::start(3);
    let config = etcd.config("/evenkeel/watched");
    let runtime = runtime();
    let (watching, writing) = (EtcdStore::new(&config), EtcdStore::new(&config));
    let mut watch = runtime.block_on(async { watching.watch("row/", 0) });
    let mut last = 0;
    for round in 0..9 {
        if round % 3 == 1 {
            etcd.kill(round / 3);
        }
        last = runtime.block_on(done(&writing, &[RowChange::put(format!("row/{round}"), "x")]));
        if round % 3 == 2 {
            etcd.begin(round / 3);
        }
    }
    let (mut names, mut after) = (Vec::new(), 0);
    while after < last {
        match runtime.block_on(async { timeout(PATIENCE, watch.next()).await.expect("it tells in time") }) {
            Ok(changes) => {
                assert!(changes.dropped.is_empty(), "{changes:?}");
                names.extend(changes.put.into_iter().map(|row| row.name));
                after = changes.revision;
            }
            // They took long to elect another leader: whoever listens begins again with what it knows.
            Err(StoreFault::Unreachable(_)) => {
                watch = runtime.block_on(async { watching.watch("row/", after) });
            }
            Err(fault) => panic!("{fault}"),
        }
    }
    assert_eq!(names, (0..9).map(|round| format!("row/{round}")).collect::<Vec<_>>());
}

#[test]
fn without_a_majority_nothing_is_done_and_what_is_known_can_be_read() {
    if !is_there() {
        return;
    }
    let mut etcd = Etcd::start(3);
    let store = EtcdStore::new(&etcd.config("/evenkeel/alone"));
    let runtime = runtime();
    runtime.block_on(done(&store, &[RowChange::put("known", "x")]));
    etcd.kill(0);
    etcd.kill(1);
    runtime.block_on(async {
        let fault = store.commit(transaction(&[], &[RowChange::put("new", "x")])).await.unwrap_err();
        assert!(matches!(fault, StoreFault::Unreachable(_)), "{fault}");
        let asked = async {
            loop {
                match store.list("", ListedFrom::OneMember).await {
                    Ok(listing) => return listing,
                    // The one that is left is the third that is asked, or has no time.
                    Err(StoreFault::Unreachable(_)) => {}
                    Err(fault) => panic!("{fault}"),
                }
            }
        };
        let listing = timeout(PATIENCE, asked).await.expect("an answer in time");
        assert_eq!(listing.rows.len(), 1, "{listing:?}");
    });
    etcd.begin(0);
    runtime.block_on(async {
        let again =
            async { while store.commit(transaction(&[], &[RowChange::put("new", "x")])).await.is_err() {} };
        timeout(PATIENCE, again).await.unwrap();
    });
}

#[test]
fn a_member_that_does_not_let_us_in_says_so_at_once() {
    if !is_there() {
        return;
    }
    let etcd = Etcd::start_with_tls(1);
    let mut config = etcd.config("/evenkeel/strange");
    config.identity = None;
    // With TLS 1.3 it says so behind our first words, and has closed before it has read them: mostly that is all that is known.
    let (runtime, store) = (runtime(), EtcdStore::new(&config));
    // A machine that has no time for etcd is no word of it.
    eventually("it says so", || {
        match runtime.block_on(store.list("", ListedFrom::Majority)).expect_err("nobody lets us in") {
            StoreFault::Unreachable(why) => why != "no answer in time",
            fault => panic!("{fault}"),
        }
    });
}
