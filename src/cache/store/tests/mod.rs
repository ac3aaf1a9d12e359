//! The store against models: what is read is what came, and nobody gets what was purged before it asked.

mod forms;
mod left;
mod memory;

use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use proptest::prelude::*;

use super::*;
use crate::cache::{Arrival, AskedBy, CacheRequest, KeyParts, KeyRules, KnownClient, Storable, may_store};
use crate::config::model::cache::CachePolicy;
use crate::message::Head;

pub(super) fn key(path: &str) -> CacheKey {
    let parts = KeyParts {
        is_https: false,
        authority: b"a",
        told_host: b"",
        path: path.as_bytes(),
        route: b"l/r",
        target: b"t",
    };
    CacheKey::of(&parts, &Head::request("GET", path, "a"), &KeyRules::default())
}

fn sized(memory: u64, most: u64) -> Arc<CacheStore> {
    let store = CacheStore::new(7);
    store.resize(memory, most);
    Arc::new(store)
}

pub(super) fn store() -> Arc<CacheStore> {
    sized(1 << 24, 1 << 20)
}

/// An answer for everybody.
fn storable(path: &str) -> Storable {
    let request = Head::request("GET", path, "a");
    let client = CacheRequest::read(&request, false).expect("it is about the cache");
    let mut answer = Head::answer(200);
    answer.push(b"Cache-Control", b"max-age=100");
    answer.push(b"Cache-Tag", b"every");
    let arrival = Arrival { asked: Tick(1), came: Tick(2), date: 1_800_000_000 };
    let asked = AskedBy { client: &client, sent: &request, known: KnownClient::No };
    may_store(&asked, &answer, &CachePolicy::default(), &arrival).expect("it may")
}

/// The same as an object; `version` is its body.
pub(super) fn object(store: &CacheStore, path: &str, version: u64, purges: u64) -> Arc<Object> {
    let room = store.room(&key(path), Some(8), false).expect("eight bytes have room");
    let body = ObjectBody::Whole(room.fill(&version.to_le_bytes()));
    Arc::new(Object::new(key(path), Arc::new(storable(path)), body, purges))
}

fn version(object: &Object) -> u64 {
    let ObjectBody::Whole(body) = &object.body else { panic!("it is whole") };
    let (chunk, range) = body.part(0, 8).expect("eight bytes");
    u64::from_le_bytes(chunk[range].try_into().expect("eight bytes"))
}

/// A step of one who asks, who answers, or who purges.
#[derive(Clone, Debug)]
enum Step {
    Ask(u8),
    Open(usize),
    Keep(usize),
    Fail(usize),
    Drop(usize),
    Alone(usize),
    Look(usize),
    Change(u8),
    All,
}

fn step() -> impl Strategy<Value = Step> {
    let any = 0usize..8;
    prop_oneof![
        4 => (0u8..3).prop_map(Step::Ask),
        2 => any.clone().prop_map(Step::Open),
        4 => any.clone().prop_map(Step::Keep),
        1 => any.clone().prop_map(Step::Fail),
        1 => any.clone().prop_map(Step::Drop),
        1 => any.clone().prop_map(Step::Alone),
        4 => any.prop_map(Step::Look),
        2 => (0u8..3).prop_map(Step::Change),
        1 => Just(Step::All),
    ]
}

/// A lead, what it will get, and whether its head is there.
struct Asker {
    lead: FlightLead,
    path: String,
    version: u64,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// The origin counts up with each change, which purges. Whoever asks gets nothing that is older than its question.
    #[test]
    fn nobody_gets_what_was_purged_before_it_asked(steps in prop::collection::vec(step(), 1..60)) {
        let store = store();
        let (mut latest, mut versions) = (0_u64, HashMap::<String, u64>::new());
        let mut leads: Vec<Asker> = Vec::new();
        // Who follows, and the oldest that it may get.
        let mut followers: Vec<(FlightFollower, String, u64)> = Vec::new();
        let now = Tick(3);
        for step in steps {
            match step {
                Step::Ask(number) => {
                    let path = format!("/{number}");
                    let oldest = versions.get(&path).copied().unwrap_or(0);
                    let found = store.find(&key(&path), |_| true);
                    if let Lookup::Object(object) = found {
                        prop_assert!(version(&object) >= oldest);
                        continue;
                    }
                    match store.enter(&key(&path), |_| true, |_| true, now) {
                        Entrance::Lead(lead) => leads.push(Asker { lead, path, version: latest }),
                        Entrance::Follow(follower) => followers.push((follower, path, oldest)),
                        Entrance::Join(object) => prop_assert!(version(&object) >= oldest),
                        Entrance::Alone => {
                            let lead = store.solo(&key(&path));
                            leads.push(Asker { lead, path, version: latest });
                        }
                    }
                }
                Step::Open(at) => if let Some(asker) = leads.get_mut(at) {
                    let object = object(&store, &asker.path, asker.version, asker.lead.purges());
                    asker.lead.open(&object);
                },
                Step::Keep(at) => if at < leads.len() {
                    let Asker { lead, path, version } = leads.remove(at);
                    let object = object(&store, &path, version, lead.purges());
                    lead.keep(object);
                },
                Step::Fail(at) => if at < leads.len() {
                    leads.remove(at).lead.fail(Cause::BackendClosed, 1);
                },
                Step::Drop(at) => if at < leads.len() {
                    drop(leads.remove(at));
                },
                Step::Alone(at) => if at < leads.len() {
                    let Asker { lead, path, .. } = leads.remove(at);
                    lead.alone(&key(&path), None);
                },
                Step::Look(at) => if at < followers.len() {
                    let mut cx = Context::from_waker(Waker::noop());
                    let (follower, path, oldest) = &mut followers[at];
                    let Poll::Ready(landed) = follower.poll(&mut cx) else { continue };
                    match landed {
                        Landed::Object(object) => prop_assert!(version(&object) >= *oldest),
                        Landed::Lead => {
                            let lead = store.lead_on(follower, &key(path));
                            leads.push(Asker { lead, path: path.clone(), version: latest });
                        }
                        Landed::Alone | Landed::Failed(_) => {}
                    }
                    followers.remove(at);
                },
                Step::Change(number) => {
                    let path = format!("/{number}");
                    latest += 1;
                    versions.insert(path.clone(), latest);
                    store.purge_url(key(&path).url(), PurgeKind::Hard);
                }
                Step::All => {
                    latest += 1;
                    let of = [PurgeOf::All, PurgeOf::Prefix(b"pa\0/"[..].into()), PurgeOf::Tag(b"every"[..].into())];
                    (0..3).for_each(|number| { versions.insert(format!("/{number}"), latest); });
                    store.purge(of[latest as usize % 3].clone(), PurgeKind::Hard);
                }
            }
        }
        // Nobody waits for somebody who is gone.
        leads.clear();
        let mut cx = Context::from_waker(Waker::noop());
        while let Some((mut follower, path, _)) = followers.pop() {
            match follower.poll(&mut cx) {
                Poll::Ready(Landed::Lead) => drop(store.lead_on(&follower, &key(&path))),
                Poll::Ready(_) => {}
                Poll::Pending => prop_assert!(false, "a follower waits for nobody"),
            }
        }
        prop_assert_eq!(store.under_way.count(), 0);
    }

    /// Readers of different speeds read what came, and of what outgrows no more is held than is said.
    #[test]
    fn every_reader_reads_what_came(
        sizes in prop::collection::vec(1usize..200_000, 1..12),
        order in prop::collection::vec(0usize..4, 1..400),
        most in prop_oneof![Just(100_000_u64), Just(10_000_000)],
        breaks: bool,
    ) {
        let store = store();
        let room = store.room(&key("/"), None, true).expect("it is empty");
        let filling = Filling::new(room, most, None);
        let mut cx = Context::from_waker(Waker::noop());
        let mut readers: Vec<_> =
            (0..3).map(|_| (filling.reader().expect("it is new"), Vec::new(), None)).collect();
        let all: Vec<u8> = (0..sizes.iter().sum::<usize>()).map(|at| (at % 253) as u8).collect();
        let (mut sent, mut pieces) = (0, sizes.into_iter());
        let mut turns = order.into_iter().chain((0..).map(|turn| turn % 4));
        let mut is_ended = false;
        while readers.iter().any(|(_, _, end)| end.is_none()) {
            match turns.next().expect("without end") {
                3 if !is_ended => if filling.poll_room(&mut cx).is_ready() {
                    match pieces.next() {
                        Some(size) => {
                            filling.append(&all[sent..sent + size]);
                            sent += size;
                            let slowest = readers.iter().filter(|(_, _, end)| end.is_none());
                            let slowest = slowest.map(|(_, read, _)| read.len()).min().unwrap_or(sent);
                            let ahead = (sent - slowest) as u64;
                            prop_assert!(filling.outgrown().is_none() || ahead <= most.max(filling::WINDOW) + 200_000);
                        }
                        None => {
                            is_ended = true;
                            if breaks { filling.break_off(Cause::AnswerCut) } else { filling.finish() }
                            prop_assert_eq!(
                                filling.body().map(|body| body.length()),
                                (!breaks && sent as u64 <= most).then_some(sent as u64)
                            );
                        }
                    }
                },
                3 => {}
                at => {
                    let (reader, read, end) = &mut readers[at];
                    let mut copied = Vec::new();
                    let mut copy = |bytes: &[u8]| {
                        copied.extend_from_slice(&bytes[..bytes.len().min(5_000)]);
                        copied.len()
                    };
                    match reader.poll_part(&mut cx, &mut copy) {
                        Poll::Ready(Ok(Some(Part::Shared(chunk, range)))) => read.extend_from_slice(&chunk[range]),
                        Poll::Ready(Ok(Some(Part::Copied(_)))) => read.append(&mut copied),
                        Poll::Ready(Ok(None)) => *end = Some(Ok(())),
                        Poll::Ready(Err(cause)) => *end = Some(Err(cause)),
                        Poll::Pending => {}
                    }
                }
            }
        }
        for (_, read, end) in readers {
            prop_assert!(read == all, "{} of {}", read.len(), all.len());
            prop_assert_eq!(end, Some(if breaks { Err(Cause::AnswerCut) } else { Ok(()) }));
        }
    }
}

#[test]
fn one_leads_and_the_others_follow_until_two_have_failed() {
    let store = store();
    let (a, now) = (key("/"), Tick(3));
    let Entrance::Lead(first) = store.enter(&a, |_| true, |_| true, now) else { panic!("nobody asks yet") };
    let follow = || match store.enter(&a, |_| true, |_| true, now) {
        Entrance::Follow(follower) => follower,
        other => panic!("{other:?}"),
    };
    let mut followers: Vec<FlightFollower> = (0..3).map(|_| follow()).collect();
    let mut cx = Context::from_waker(Waker::noop());
    assert!(followers.iter_mut().all(|follower| follower.poll(&mut cx).is_pending()));
    first.fail(Cause::BackendClosed, 1);
    assert!(matches!(followers[1].poll(&mut cx), Poll::Ready(Landed::Lead)));
    let second = store.lead_on(&followers[1], &a);
    assert!(followers[0].poll(&mut cx).is_pending(), "another one leads");
    second.fail(Cause::AnswerCut, 1);
    for at in [0, 2] {
        assert!(matches!(followers[at].poll(&mut cx), Poll::Ready(Landed::Failed(Cause::AnswerCut))));
    }
}

#[test]
fn a_flight_whose_lead_has_failed_and_whose_followers_leave_is_not_listed_any_more() {
    let store = store();
    let a = key("/");
    let listed = || store.under_way.count();
    let follow = || match store.enter(&a, |_| true, |_| true, Tick(3)) {
        Entrance::Follow(follower) => follower,
        other => panic!("{other:?}"),
    };
    let Entrance::Lead(lead) = store.enter(&a, |_| true, |_| true, Tick(3)) else {
        panic!("nobody asks yet")
    };
    let (mut one, other) = (follow(), follow());
    assert!(one.poll(&mut Context::from_waker(Waker::noop())).is_pending());
    lead.fail(Cause::ConnectFailed, 1);
    assert_eq!(listed(), 1, "one of them may lead on");
    drop(one);
    assert_eq!(listed(), 1);
    drop(other);
    assert_eq!(listed(), 0);
    assert!(matches!(store.enter(&a, |_| true, |_| true, Tick(3)), Entrance::Lead(_)));
    assert_eq!(listed(), 0, "and a lead that is dropped takes off its own");
}

#[test]
fn whoever_had_looked_before_an_answer_landed_asked_for_it_again() {
    let store = store();
    let a = key("/");
    let Entrance::Lead(lead) = store.enter(&a, |_| true, |_| true, Tick(3)) else {
        panic!("nobody asks yet")
    };
    assert!(matches!(store.find(&a, |_| true), Lookup::Nothing), "as for another one, who goes on below");
    let landed = object(&store, "/", 7, lead.purges());
    lead.keep(Arc::clone(&landed));
    let enter = |fits: bool, is_news: bool| store.enter(&a, |_| fits, |_| is_news, Tick(3));
    assert!(matches!(enter(true, true), Entrance::Join(object) if Arc::ptr_eq(&object, &landed)));
    assert!(matches!(enter(true, false), Entrance::Lead(_)), "it is what this one had found");
    assert!(matches!(enter(false, true), Entrance::Lead(_)), "it is for others");
    assert_eq!(store.under_way.count(), 0);
}

#[test]
fn answers_that_are_for_one_alone_are_remembered() {
    let store = store();
    let a = key("/");
    let Entrance::Lead(lead) = store.enter(&a, |_| true, |_| true, Tick(3)) else {
        panic!("nobody asks yet")
    };
    lead.alone(&a, Some(Tick(3)));
    assert!(matches!(store.enter(&a, |_| true, |_| true, Tick(4)), Entrance::Alone));
    let later = Tick(3).after(REMEMBERED);
    assert!(matches!(store.enter(&a, |_| true, |_| true, later), Entrance::Lead(_)));
}

#[test]
fn what_is_kept_is_bounded() {
    let store = sized(1 << 20, 1 << 16);
    for number in 0..5_000 {
        let path = format!("/{number}");
        let Entrance::Lead(lead) = store.enter(&key(&path), |_| true, |_| true, Tick(3)) else {
            panic!("{path}")
        };
        lead.keep(object(&store, &path, number, 0));
    }
    assert!(store.bytes() <= 1 << 20, "{}", store.bytes());
    assert!(store.bytes() > 1 << 19, "{}", store.bytes());
    store.resize(1 << 19, 1 << 16);
    assert!(store.bytes() <= 1 << 19 && store.most() == 1 << 16);
    store.resize(1 << 17, 1 << 16);
    assert_eq!(store.most(), 1 << 15, "what does not fit into one of two shards is not said to be stored");
}

#[test]
fn what_is_almost_as_large_as_may_be_stays_in_a_small_store() {
    let store = sized(8 << 20, 1 << 20);
    for number in 0..7 {
        let path = format!("/{number}");
        let room = store.room(&key(&path), Some(1 << 20), false).expect("it has room");
        let body = ObjectBody::Whole(room.fill(&vec![0; 1 << 20]));
        let answer = Arc::clone(&object(&store, &path, number, 0).answer);
        store.solo(&key(&path)).keep(Arc::new(Object::new(key(&path), answer, body, 0)));
    }
    let stored =
        |number: &u64| matches!(store.find(&key(&format!("/{number}")), |_| true), Lookup::Object(_));
    assert_eq!((0..7).filter(stored).count(), 7);
}

#[test]
fn what_is_stored_anew_was_asked_for_again_when_the_one_before_was() {
    let store = store();
    let put = || store.solo(&key("/")).keep(object(&store, "/", 1, 0));
    let reload = |now| match store.find(&key("/"), |_| true) {
        Lookup::Object(object) => object.may_be_reloaded(10, Tick(now)),
        other => panic!("{other:?}"),
    };
    put();
    assert!(reload(1_000_000_000));
    put();
    assert!(!reload(1_050_000_000), "it was a twentieth of a second ago");
    assert!(reload(1_100_000_000));
}

#[test]
fn what_has_failed_in_the_background_has_a_rest() {
    let object = object(&store(), "/", 1, 0);
    assert!(object.is_rested(Tick(0)));
    object.rest(Tick(5));
    assert!(!object.is_rested(Tick(1_000_000_004)) && object.is_rested(Tick(1_000_000_005)));
}

#[test]
fn what_is_purged_softly_is_stale() {
    let store = store();
    let put = |path: &str| store.solo(&key(path)).keep(object(&store, path, 1, store.purges()));
    let find = |path: &str| match store.find(&key(path), |_| true) {
        Lookup::Object(object) => object.freshness().is_fresh(Tick(3)),
        other => panic!("{other:?}"),
    };
    ["/a", "/b", "/c"].into_iter().for_each(put);
    store.purge(PurgeOf::Prefix(b"pa\0/a"[..].into()), PurgeKind::Soft);
    assert_eq!((find("/a"), find("/b")), (false, true));
    assert_eq!(store.purge_url(key("/b").url(), PurgeKind::Soft), 1);
    assert_eq!((find("/b"), find("/c")), (false, true));
    store.purge(PurgeOf::Tag(b"every"[..].into()), PurgeKind::Soft);
    assert!(!find("/c"));
    put("/c");
    assert!(find("/c"));
}

#[test]
fn what_a_purge_has_taken_out_before_is_not_counted_again() {
    let store = store();
    for kind in [PurgeKind::Soft, PurgeKind::Hard] {
        let put = || store.solo(&key("/")).keep(object(&store, "/", 1, store.purges()));
        put();
        store.purge(PurgeOf::Tag(b"every"[..].into()), PurgeKind::Hard);
        assert_eq!(store.purge_url(key("/").url(), kind), 0, "{kind:?}");
        put();
        assert_eq!(store.purge_url(key("/").url(), kind), 1, "{kind:?}");
    }
}
