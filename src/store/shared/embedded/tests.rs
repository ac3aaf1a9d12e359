#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use super::*;
use crate::store::memory::{MemoryDisk, MemoryStore};

fn on(disk: &MemoryDisk) -> EmbeddedStore {
    EmbeddedStore::kept_in(Box::new(MemoryStore(disk.clone()))).unwrap()
}

async fn put(store: &EmbeddedStore, name: &str, value: &str) -> Result<Committed, StoreFault> {
    let changes = vec![RowChange::put(name, value)];
    store.commit(Transaction { conditions: Vec::new(), changes }).await
}

async fn rows(store: &EmbeddedStore) -> Vec<(String, String)> {
    let listing = store.list("", ListedFrom::Majority).await.unwrap();
    let text = |value: Vec<u8>| String::from_utf8(value).unwrap();
    listing.rows.into_iter().map(|row| (row.name, text(row.value))).collect()
}

fn named(rows: &[(&str, &str)]) -> Vec<(String, String)> {
    rows.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[tokio::test]
async fn what_stays_outlives_the_process_and_what_is_leased_does_not() {
    let disk = MemoryDisk::default();
    let store = on(&disk);
    put(&store, "a", "1").await.unwrap();
    put(&store, "b", "2").await.unwrap();
    let lease = store.grant(Duration::from_secs(60)).await.unwrap();
    let leased =
        |name: &str| RowChange::Put { name: name.to_owned(), value: b"x".to_vec(), lease: Some(lease) };
    // One that stayed until now goes with the lease from now on.
    let changes = vec![leased("b"), leased("c"), RowChange::drop("none")];
    let done = store.commit(Transaction { conditions: Vec::new(), changes }).await.unwrap();
    let Committed::Done(before) = done else { panic!("{done:?}") };
    drop(store);
    let store = on(&disk);
    assert_eq!(rows(&store).await, named(&[("a", "1")]));
    // No revision is given twice, also not one of a row that is in no journal.
    let Ok(Committed::Done(after)) = put(&store, "a", "2").await else { panic!("not done") };
    assert!(after > before || after > 2, "{before} {after}");
    // Whoever watches since before is told that he can't be told.
    let mut watch = store.watch("", 1);
    assert_eq!(watch.next().await, Err(StoreFault::Compacted(1)));
}

#[tokio::test]
async fn what_can_not_be_kept_is_not_done() {
    let disk = MemoryDisk::default();
    let store = on(&disk);
    put(&store, "a", "1").await.unwrap();
    disk.fill(true);
    assert!(matches!(put(&store, "a", "2").await, Err(StoreFault::Full(_))));
    assert_eq!(rows(&store).await, named(&[("a", "1")]));
    // What goes with a lease needs no room.
    let lease = store.grant(Duration::from_secs(60)).await.unwrap();
    let change = RowChange::Put { name: "l".to_owned(), value: Vec::new(), lease: Some(lease) };
    let done = store.commit(Transaction { conditions: Vec::new(), changes: vec![change] }).await;
    assert!(matches!(done, Ok(Committed::Done(_))), "{done:?}");
    disk.fill(false);
    put(&store, "a", "3").await.unwrap();
    assert_eq!(rows(&on(&disk)).await, named(&[("a", "3")]));
}

#[tokio::test]
async fn after_a_crash_at_any_byte_there_is_all_that_was_said_to_be_done_and_at_most_one_more() {
    let mut crashes = 0;
    for bytes in 0..600_usize {
        let disk = MemoryDisk::default();
        let store = on(&disk);
        disk.crash_behind(bytes);
        let mut done = 0_usize;
        for number in 0..6 {
            if put(&store, "row", &number.to_string()).await.is_err() {
                break;
            }
            done = number + 1;
        }
        crashes += u32::from(disk.restart());
        let found = rows(&on(&disk)).await;
        let found: Option<usize> = found.first().map(|(_, value)| value.parse().unwrap());
        let may_be = [done.checked_sub(1), Some(done)];
        assert!(may_be.contains(&found), "{bytes} bytes: {found:?}, and {done} were done");
    }
    assert!(crashes > 100, "{crashes} crashes");
}

#[tokio::test]
async fn a_journal_that_is_rewritten_says_the_same() {
    let disk = MemoryDisk::default();
    let store = on(&disk);
    put(&store, "stays", "x").await.unwrap();
    for number in 0..500 {
        put(&store, "row", &number.to_string()).await.unwrap();
    }
    let changed = store.list("stays", ListedFrom::Majority).await.unwrap().rows[0].changed;
    assert!(store.shelf().journal.as_ref().unwrap().size() < 8 * WORTH.0, "it was never rewritten");
    let again = on(&disk);
    assert_eq!(rows(&again).await, named(&[("row", "499"), ("stays", "x")]));
    assert_eq!(again.list("stays", ListedFrom::Majority).await.unwrap().rows[0].changed, changed);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_over_after_its_time_and_not_before() {
    let store = EmbeddedStore::fleeting();
    let lease = store.grant(Duration::from_secs(10)).await.unwrap();
    let change = RowChange::Put { name: "l".to_owned(), value: Vec::new(), lease: Some(lease) };
    store.commit(Transaction { conditions: Vec::new(), changes: vec![change] }).await.unwrap();
    tokio::time::sleep(Duration::from_secs(9)).await;
    store.keep_alive(lease).await.unwrap();
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert_eq!(rows(&store).await.len(), 1);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(rows(&store).await.len(), 0);
    assert_eq!(store.keep_alive(lease).await, Err(StoreFault::LeaseOver));
}
