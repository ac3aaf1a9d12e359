//! What one store has told is there in another one.

use super::*;
use crate::cache::store::ToldPurge;

fn kept(store: &Arc<CacheStore>, path: &str, version: u64) -> Arc<Object> {
    let object = object(store, path, version, store.purges());
    store.solo(&key(path)).keep(Arc::clone(&object));
    object
}

fn told(store: &CacheStore, most: u64) -> Vec<u8> {
    let mut told = Vec::new();
    store.tell(most, &mut told).unwrap();
    told
}

fn found(store: &CacheStore, path: &str) -> Option<Arc<Object>> {
    match store.find(&key(path), |_| true) {
        Lookup::Object(object) => Some(object),
        Lookup::OtherVariant | Lookup::Nothing => None,
    }
}

#[test]
fn what_is_told_is_there_as_it_was() {
    let (one, other) = (store(), store());
    let before = kept(&one, "/a?b=c", 7);
    let stale = kept(&one, "/stale", 8);
    stale.spoil();
    kept(&one, "/purged", 9);
    one.purge(PurgeOf::Prefix(key("/purged").url().into()), PurgeKind::Hard);
    assert_eq!(other.take_over(&mut &told(&one, 1 << 20)[..]).unwrap(), 2);
    let after = found(&other, "/a?b=c").unwrap();
    assert_eq!((version(&after), after.key()), (7, before.key()));
    let (one_answer, other_answer) = (&before.answer, &after.answer);
    assert_eq!(one_answer.freshness, other_answer.freshness);
    assert_eq!(one_answer.variant, other_answer.variant);
    assert_eq!(one_answer.tags, other_answer.tags);
    let lines = |head: &Head| -> Vec<(Vec<u8>, Vec<u8>)> {
        head.lines()
            .iter()
            .map(|line| head.pair(line))
            .map(|(one, two)| (one.to_vec(), two.to_vec()))
            .collect()
    };
    assert_eq!(
        (one_answer.head.status, lines(&one_answer.head)),
        (other_answer.head.status, lines(&other_answer.head))
    );
    assert!(found(&other, "/stale").unwrap().is_spoilt() && !after.is_spoilt());
    assert!(found(&other, "/purged").is_none());
    other.purge(PurgeOf::All, PurgeKind::Hard);
    assert_eq!(other.bytes(), after.whole().unwrap().weight(), "only what is read is held");
}

#[test]
fn no_more_bytes_are_told_than_may_be_and_who_has_no_room_takes_none() {
    let one = store();
    (0..10).for_each(|number| drop(kept(&one, &format!("/{number}"), number)));
    let other = store();
    let each = found(&one, "/3").unwrap().weight() + 8;
    assert_eq!(other.take_over(&mut &told(&one, each * 3 + each / 2)[..]).unwrap(), 3);
    let full = CacheStore::new(1);
    assert_eq!(full.take_over(&mut &told(&one, 1 << 20)[..]).unwrap(), 0, "it keeps nothing yet");
}

#[test]
fn what_breaks_off_is_an_error_and_what_came_before_is_whole() {
    let one = store();
    (0..4).for_each(|number| drop(kept(&one, &format!("/{number}"), number)));
    let told = told(&one, 1 << 20);
    for end in 0..told.len() {
        let other = store();
        let _ = other.take_over(&mut &told[..end]);
        for number in 0..4 {
            let path = format!("/{number}");
            assert!(found(&other, &path).is_none_or(|object| version(&object) == number), "{end}");
        }
    }
    assert!(store().take_over(&mut &[255; 64][..]).is_err());
}

#[test]
fn what_is_purged_meanwhile_is_not_there_afterwards() {
    let (one, other) = (store(), store());
    ["/a", "/b", "/c", "/d"].iter().zip(0..).for_each(|(path, number)| drop(kept(&one, path, number)));
    one.watch_purges();
    let told = told(&one, 1 << 20);
    one.purge_url(key("/a").url(), PurgeKind::Hard);
    one.purge(PurgeOf::Prefix(key("/b").url().into()), PurgeKind::Hard);
    one.purge_url(key("/c").url(), PurgeKind::Soft);
    other.take_over(&mut &told[..]).unwrap();
    let seen = one.purges_seen();
    let text = serde_json::to_string(&seen).unwrap();
    let heard: Vec<ToldPurge> = serde_json::from_str(&text).unwrap();
    assert_eq!((heard.len(), &heard), (3, &seen));
    heard.into_iter().for_each(|purge| other.purge_as(purge));
    assert!(found(&other, "/a").is_none() && found(&other, "/b").is_none());
    assert!(found(&other, "/c").unwrap().is_spoilt() && !found(&other, "/d").unwrap().is_spoilt());
    assert_eq!(one.purges_seen(), []);
    one.unwatch_purges();
    one.purge(PurgeOf::All, PurgeKind::Hard);
    assert_eq!(one.purges_seen(), []);
}

#[test]
fn more_purges_than_are_remembered_are_one_of_everything() {
    let store = store();
    store.watch_purges();
    // The same one again and again is one.
    for _ in 0..5_000 {
        store.purge_url(b"/same", PurgeKind::Hard);
    }
    assert_eq!(store.purges_seen().len(), 1);
    for number in 0..5_000 {
        store.purge_url(format!("/{number}").as_bytes(), PurgeKind::Hard);
    }
    let other = super::store();
    kept(&other, "/a", 1);
    let seen = store.purges_seen();
    assert!(seen.len() < 4_097, "{}", seen.len());
    seen.into_iter().for_each(|purge| other.purge_as(purge));
    assert!(found(&other, "/a").is_none());
}

#[test]
fn what_is_doubted_is_stale_and_nobody_is_told() {
    let store = store();
    kept(&store, "/a", 1);
    store.watch_purges();
    store.doubt();
    assert!(found(&store, "/a").unwrap().is_spoilt());
    assert_eq!(store.purges_seen(), []);
}
