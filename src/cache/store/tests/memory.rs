//! What the store holds: never more than it may, whoever comes, reads and leaves, and nothing in the end.

use super::*;

/// A store of one shard.
fn small() -> Arc<CacheStore> {
    sized(4 << 20, 1 << 19)
}

/// Stores a body of so many bytes.
fn put(store: &Arc<CacheStore>, path: &str, length: u64, is_wanted: bool) -> Result<StoredBody, WhyNot> {
    let room = store.room(&key(path), Some(length), is_wanted)?;
    let body = room.fill(&vec![1; length as usize]);
    keep(store, path, body.clone());
    Ok(body)
}

fn keep(store: &Arc<CacheStore>, path: &str, body: StoredBody) {
    let answer = Arc::clone(&object(&super::store(), path, 0, 0).answer);
    store.solo(&key(path)).keep(Arc::new(Object::new(key(path), answer, ObjectBody::Whole(body), 0)));
}

fn stored(store: &CacheStore, path: &str) -> Option<StoredBody> {
    match store.find(&key(path), |_| true) {
        Lookup::Object(object) => match &object.body {
            ObjectBody::Whole(body) => Some(body.clone()),
            ObjectBody::Filling(_) => None,
        },
        Lookup::OtherVariant | Lookup::Nothing => None,
    }
}

#[test]
fn what_is_coming_takes_the_room_of_what_is_stored_and_leaves_a_quarter() {
    let store = small();
    for number in 0..200 {
        put(&store, &format!("/{number}"), 30_000, false).expect("small ones are let in");
    }
    let coming: Vec<BodyRoom> =
        (0..20).map_while(|_| store.room(&key("/coming"), Some(300_000), true).ok()).collect();
    assert_eq!(coming.len(), 10, "what is coming may take three quarters of 4 MiB");
    assert!(store.bytes() <= store.memory());
    let left = (0..200).filter(|number| stored(&store, &format!("/{number}")).is_some()).count();
    assert!((1..=40).contains(&left), "{left}");
    let refused = store.room(&key("/coming"), Some(300_000), true).map(|_| ());
    assert_eq!(refused, Err(WhyNot::NoRoom));
    drop(coming);
    assert!(put(&store, "/coming", 300_000, true).is_ok());
}

#[test]
fn what_is_let_go_while_it_is_read_counts_until_it_has_been_read() {
    let store = small();
    let readers: Vec<StoredBody> =
        (0..40).map_while(|number| put(&store, &format!("/{number}"), 500_000, true).ok()).collect();
    assert_eq!(readers.len(), 8, "that is all that 4 MiB have room for");
    assert!(store.bytes() <= store.memory());
    assert_eq!(put(&store, "/more", 500_000, true).map(|_| ()), Err(WhyNot::NoRoom));
    drop(readers);
    assert!(put(&store, "/more", 500_000, true).is_ok());
}

#[test]
fn a_large_body_that_is_wanted_once_pushes_nothing_out() {
    let store = small();
    assert!(put(&store, "/first", 400_000, false).is_ok(), "there is room");
    for number in 0..200 {
        put(&store, &format!("/{number}"), 30_000, false).expect("small ones are let in");
    }
    let before = (0..200).filter(|number| stored(&store, &format!("/{number}")).is_some()).count();
    for number in 0..50 {
        assert_eq!(
            put(&store, &format!("/scan/{number}"), 400_000, false).map(|_| ()),
            Err(WhyNot::WantedOnce)
        );
    }
    let after = (0..200).filter(|number| stored(&store, &format!("/{number}")).is_some()).count();
    assert_eq!(before, after);
    assert!(put(&store, "/scan/7", 400_000, false).is_ok(), "it is wanted again");
    assert!(put(&store, "/others/wait", 400_000, true).is_ok());
}

#[test]
fn a_large_body_whose_length_is_not_known_is_let_in_as_far_as_a_small_one() {
    let store = small();
    for number in 0..200 {
        put(&store, &format!("/{number}"), 30_000, false).expect("small ones are let in");
    }
    let come = || {
        let room = store.room(&key("/coming"), None, false).expect("nothing of it is there");
        let filling = Filling::new(room, store.most(), None);
        (0..10).for_each(|_| filling.append(&[1; 40_000]));
        filling
    };
    let first = come();
    assert_eq!((first.outgrown(), first.body().is_none()), (Some(WhyNot::WantedOnce), true));
    let second = come();
    assert_eq!(second.outgrown(), None);
    assert_eq!(second.body().map(|body| body.length()), Some(400_000));
}

#[test]
fn a_smaller_store_lets_go_what_does_not_fit() {
    let store = small();
    for number in 0..100 {
        put(&store, &format!("/{number}"), 30_000, false).expect("small ones are let in");
    }
    let reader = stored(&store, "/99").expect("it was the last one");
    store.resize(1 << 20, 1 << 17);
    assert!(store.bytes() <= 1 << 20 && store.memory() == 1 << 20);
    assert_eq!(reader.part(0, 1).map(|(chunk, _)| chunk[0]), Some(1));
}

#[test]
fn threads_that_store_and_read_and_purge_leave_nothing_behind() {
    let store = small();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let store = &store;
            scope.spawn(move || {
                let mut readers = Vec::new();
                for step in 0..2_000_u64 {
                    let number = (step * 7 + thread * 13) % 61;
                    let path = format!("/{number}");
                    match stored(store, &path) {
                        Some(body) => readers.push(body),
                        None => drop(put(store, &path, 1 + number * 8_000, true)),
                    }
                    readers.drain(..readers.len().saturating_sub(5));
                    if step % 97 == 0 {
                        store.purge_url(key(&path).url(), PurgeKind::Hard);
                    }
                }
            });
        }
    });
    assert!(store.bytes() <= store.memory(), "{}", store.bytes());
    store.purge(PurgeOf::All, PurgeKind::Hard);
    assert_eq!(store.bytes(), 0);
}

/// A step of what comes, of who reads, or of who purges.
#[derive(Clone, Debug)]
enum Turn {
    Begin { path: u8, length: usize, is_known: bool, is_wanted: bool },
    Grow(usize, usize),
    Finish(usize),
    Break(usize),
    Read(u8),
    Leave(usize),
    Purge(u8),
    Clear,
}

fn turn() -> impl Strategy<Value = Turn> {
    let at = 0usize..12;
    prop_oneof![
        6 => (0u8..12, 0usize..600_000, any::<bool>(), any::<bool>())
            .prop_map(|(path, length, is_known, is_wanted)| Turn::Begin { path, length, is_known, is_wanted }),
        6 => (at.clone(), 1usize..200_000).prop_map(|(at, count)| Turn::Grow(at, count)),
        5 => at.clone().prop_map(Turn::Finish),
        1 => at.clone().prop_map(Turn::Break),
        4 => (0u8..12).prop_map(Turn::Read),
        3 => at.prop_map(Turn::Leave),
        1 => (0u8..12).prop_map(Turn::Purge),
        1 => Just(Turn::Clear),
    ]
}

/// A body on its way.
struct Coming {
    path: String,
    filling: Arc<Filling>,
    come: usize,
    length: usize,
}

impl Coming {
    fn grow(&mut self, count: usize) {
        let count = count.min(self.length - self.come);
        self.filling.append(&vec![2; count]);
        self.come += count;
    }
}

/// Bytes of bodies that are there: those that are coming, and those that are stored or read, each once.
fn there(store: &CacheStore, coming: &[Coming], readers: &[StoredBody]) -> u64 {
    let stored = (0..12).filter_map(|number| stored(store, &format!("/{number}")));
    let whole = stored.chain(readers.iter().cloned());
    let whole: HashMap<_, _> =
        whole.filter_map(|body| Some((body.part(0, 1)?.0.as_ptr(), body.length()))).collect();
    let kept = coming.iter().filter(|one| one.filling.outgrown().is_none());
    kept.map(|one| one.come as u64).sum::<u64>() + whole.values().sum::<u64>()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// All that is there is held, and what is held is never more than may be.
    #[test]
    fn no_more_is_held_than_may_be(turns in prop::collection::vec(turn(), 1..120)) {
        let store = small();
        let mut coming: Vec<Coming> = Vec::new();
        let mut readers: Vec<StoredBody> = Vec::new();
        for turn in turns {
            match turn {
                Turn::Begin { path, length, is_known, is_wanted } => {
                    let path = format!("/{path}");
                    let expected = is_known.then_some(length as u64);
                    match store.room(&key(&path), expected, is_wanted) {
                        Ok(room) => {
                            let filling = Filling::new(room, store.most(), expected);
                            coming.push(Coming { path, filling, come: 0, length });
                        }
                        Err(WhyNot::TooLarge) => prop_assert!(length as u64 > store.most()),
                        Err(why) => prop_assert!(why.is_of_the_moment(), "{:?}", why),
                    }
                }
                Turn::Grow(at, count) => if let Some(one) = coming.get_mut(at) {
                    one.grow(count);
                },
                Turn::Finish(at) => if at < coming.len() {
                    let mut one = coming.remove(at);
                    one.grow(usize::MAX);
                    if let Some(body) = one.filling.body() {
                        prop_assert_eq!(body.length(), one.length as u64);
                        keep(&store, &one.path, body);
                    }
                    one.filling.finish();
                },
                Turn::Break(at) => if at < coming.len() {
                    coming.remove(at).filling.break_off(Cause::AnswerCut);
                },
                Turn::Read(path) => readers.extend(stored(&store, &format!("/{path}"))),
                Turn::Leave(at) => if at < readers.len() {
                    readers.remove(at);
                },
                Turn::Purge(path) => {
                    store.purge_url(key(&format!("/{path}")).url(), PurgeKind::Hard);
                }
                Turn::Clear => store.purge(PurgeOf::All, PurgeKind::Hard),
            }
            prop_assert!(store.bytes() <= store.memory(), "{}", store.bytes());
            let there = there(&store, &coming, &readers);
            prop_assert!(there <= store.bytes(), "{} of {}", there, store.bytes());
        }
        drop((coming, readers));
        store.purge(PurgeOf::All, PurgeKind::Hard);
        prop_assert_eq!(store.bytes(), 0);
    }
}
