//! Bodies that are kept in several forms.

use super::*;
use crate::config::model::cache::Coding;

/// Kept, with a body of so many bytes.
fn put(store: &Arc<CacheStore>, path: &str, length: usize) -> Arc<Object> {
    let room = store.room(&key(path), Some(length as u64), true).expect("there is room");
    let body = ObjectBody::Whole(room.fill(&vec![7; length]));
    let answer = Arc::new(storable(path));
    let object = Arc::new(Object::new(key(path), answer, body, store.purges()));
    store.solo(&key(path)).keep(Arc::clone(&object));
    object
}

fn found(store: &CacheStore, path: &str) -> Option<Arc<Object>> {
    match store.find(&key(path), |_| true) {
        Lookup::Object(object) => Some(object),
        Lookup::OtherVariant | Lookup::Nothing => None,
    }
}

fn claimed(store: &CacheStore, object: &Object, coding: Coding) -> Arc<Filling> {
    match store.form(object, coding) {
        Some(CodedForm::Claimed(filling)) => filling,
        other => panic!("{other:?}"),
    }
}

/// Compresses it to so many bytes.
fn code(store: &CacheStore, object: &Object, coding: Coding, length: usize) {
    let filling = claimed(store, object, coding);
    filling.append(&vec![1; length]);
    if let Some(form) = filling.body() {
        store.keep_form(object, coding, &form);
    }
    filling.finish();
}

fn kept(object: &Object, coding: Coding) -> Option<u64> {
    object.kept_form(coding).map(|form| form.length())
}

fn weight(object: &Object, coding: Coding) -> u64 {
    object.kept_form(coding).map_or(0, |form| form.weight())
}

#[test]
fn one_makes_a_form_and_all_have_it() {
    let store = store();
    let object = put(&store, "/", 1_000);
    let plain = store.bytes();
    let filling = claimed(&store, &object, Coding::Gzip);
    assert!(
        matches!(store.form(&object, Coding::Gzip), Some(CodedForm::Coming(other)) if Arc::ptr_eq(&other, &filling))
    );
    assert_eq!(kept(&object, Coding::Gzip), None, "it is not whole yet");
    filling.append(&[1; 300]);
    let form = filling.body().expect("it is short enough");
    store.keep_form(&object, Coding::Gzip, &form);
    filling.finish();
    code(&store, &object, Coding::Brotli, 200);
    assert_eq!((kept(&object, Coding::Gzip), kept(&object, Coding::Brotli)), (Some(300), Some(200)));
    assert!(matches!(store.form(&object, Coding::Gzip), Some(CodedForm::Kept(_))));
    assert_eq!(store.bytes(), plain + weight(&object, Coding::Gzip) + weight(&object, Coding::Brotli));
    store.remove(&object);
    drop((object, filling, form));
    assert_eq!(store.bytes(), 0, "they go with it");
}

#[test]
fn what_breaks_off_or_gets_longer_is_made_anew() {
    let store = store();
    let object = put(&store, "/", 1_000);
    let plain = store.bytes();
    claimed(&store, &object, Coding::Gzip).break_off(Cause::Shutdown);
    code(&store, &object, Coding::Gzip, 1_001);
    code(&store, &object, Coding::Gzip, 1_000);
    assert_eq!(kept(&object, Coding::Gzip), Some(1_000));
    assert_eq!(store.bytes(), plain + weight(&object, Coding::Gzip));
}

#[test]
fn another_head_for_the_same_body_has_its_forms() {
    let store = store();
    let before = put(&store, "/", 1_000);
    code(&store, &before, Coding::Gzip, 300);
    // One is being made while the head is renewed.
    let filling = claimed(&store, &before, Coding::Brotli);
    let storable = Storable { tags: Vec::new(), ..storable("/") };
    store.solo(&key("/")).keep(Arc::new(before.renewed(storable, 0)));
    let after = found(&store, "/").expect("it is stored");
    assert!(!Arc::ptr_eq(&before, &after) && after.answer.tags == before.answer.tags);
    assert!(matches!(store.form(&after, Coding::Brotli), Some(CodedForm::Coming(_))));
    filling.append(&[1; 200]);
    store.keep_form(&before, Coding::Brotli, &filling.body().expect("it is short"));
    filling.finish();
    assert_eq!((kept(&after, Coding::Gzip), kept(&after, Coding::Brotli)), (Some(300), Some(200)));
    let weight = store.bytes();
    store.solo(&key("/")).keep(Arc::new(after.renewed(self::storable("/"), 0)));
    assert_eq!(store.bytes(), weight);
}

#[test]
fn what_was_purged_or_replaced_meanwhile_keeps_no_form() {
    for replaces in [false, true] {
        let store = store();
        let object = put(&store, "/", 1_000);
        let plain = store.bytes();
        let filling = claimed(&store, &object, Coding::Gzip);
        let filling_alone = store.bytes() - plain;
        assert_eq!(store.purge_url(key("/").url(), PurgeKind::Hard), 1);
        if replaces {
            put(&store, "/", 1_000);
        }
        let before = store.bytes() - filling_alone;
        filling.append(&[1; 300]);
        store.keep_form(&object, Coding::Gzip, &filling.body().expect("it is short"));
        filling.finish();
        drop(filling);
        assert_eq!(store.bytes(), before, "{replaces}");
        assert_eq!(found(&store, "/").and_then(|object| kept(&object, Coding::Gzip)), None, "{replaces}");
    }
}

#[test]
fn a_form_that_would_push_its_body_out_is_not_kept() {
    let store = sized(8 << 20, 1 << 20);
    store.resize(2 << 20, 1 << 20);
    let length = usize::try_from(store.most()).expect("it fits") - 4_096;
    let object = put(&store, "/", length);
    let plain = store.bytes();
    code(&store, &object, Coding::Gzip, length / 2);
    assert_eq!((kept(&object, Coding::Gzip), store.bytes()), (None, plain));
    assert!(found(&store, "/").is_some());
    assert!(matches!(store.form(&object, Coding::Gzip), Some(CodedForm::Claimed(_))), "and holds no memory");
}
