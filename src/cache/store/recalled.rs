//! Objects that are found again without their key.
//!
//! An entry of the table never changes, it is replaced: as long as the same one is there, what was found in it is what would be found in it.
//! What may change is whether somebody has purged the object or declared it stale, and that is asked each time. The entry is not kept alive
//! by this: what the table has let go of is gone.

use std::sync::{Arc, Weak};

use super::{CacheStore, Object, OfUrl};

/// Where an object is that is for all who have its key.
#[derive(Clone, Debug)]
pub struct Recalled {
    place: u128,
    of: Weak<OfUrl>,
    at: usize,
}

impl CacheStore {
    /// How an object is found again. `None`: it is not stored, or not what all get who have its key.
    #[must_use]
    pub fn recallable(&self, object: &Arc<Object>) -> Option<Recalled> {
        let place = object.key().url_hash(self.secret);
        let of = self.stored(place).filter(|of| *of.url == *object.key().url())?;
        let at = of.objects.iter().rposition(|other| other.key() == object.key())?;
        let is_it = Arc::ptr_eq(of.objects.get(at)?, object) && object.answer.variant.is_for_all();
        is_it.then(|| Recalled { place, of: Arc::downgrade(&of), at })
    }

    /// What `get` makes of an object, if it is still what is found, and is not declared stale.
    #[inline]
    pub fn recall<T>(&self, recalled: &Recalled, get: impl FnOnce(&Arc<Object>) -> T) -> Option<T> {
        let of = self.stored(recalled.place)?;
        if !std::ptr::eq(Arc::as_ptr(&of), recalled.of.as_ptr()) {
            return None;
        }
        let object = of.objects.get(recalled.at)?;
        (!self.is_gone(object) && !object.is_spoilt()).then(|| get(object))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{key, object, store};
    use super::super::{PurgeKind, PurgeOf};
    use super::*;

    /// An object that is stored there.
    fn kept(store: &Arc<CacheStore>, path: &str) -> Arc<Object> {
        let object = object(store, path, 1, store.purges());
        store.solo(&key(path)).keep(Arc::clone(&object));
        object
    }

    /// Whether it is still found.
    fn is_found(store: &CacheStore, recalled: &Recalled) -> bool {
        store.recall(recalled, |_| ()).is_some()
    }

    #[test]
    fn what_is_found_again_is_what_would_be_found() {
        let store = store();
        let object = kept(&store, "/a");
        let recalled = store.recallable(&object).unwrap();
        assert!(is_found(&store, &recalled));
        kept(&store, "/b");
        assert!(is_found(&store, &recalled), "of another URL");
        let newer = kept(&store, "/a");
        assert!(!is_found(&store, &recalled) && store.recallable(&object).is_none());
        let recalled = store.recallable(&newer).unwrap();
        assert!(is_found(&store, &recalled));
        store.remove(&newer);
        assert!(!is_found(&store, &recalled) && store.recallable(&newer).is_none());
    }

    #[test]
    fn what_is_purged_or_stale_is_not_found_again() {
        fn url(store: &CacheStore, object: &Object, kind: PurgeKind) {
            assert_eq!(store.purge_url(object.key().url(), kind), 1);
        }
        type Purge = dyn Fn(&CacheStore, &Object);
        let all: [&Purge; 5] = [
            &|store, object| url(store, object, PurgeKind::Hard),
            &|store, object| url(store, object, PurgeKind::Soft),
            &|store, object| store.purge(PurgeOf::Prefix(object.key().url().into()), PurgeKind::Hard),
            &|store, _| store.purge(PurgeOf::All, PurgeKind::Soft),
            &|_, object| object.spoil(),
        ];
        for (number, purge) in all.into_iter().enumerate() {
            let store = store();
            let object = kept(&store, "/a");
            let recalled = store.recallable(&object).unwrap();
            assert!(is_found(&store, &recalled));
            purge(&store, &object);
            assert!(!is_found(&store, &recalled), "{number}");
        }
    }
}
