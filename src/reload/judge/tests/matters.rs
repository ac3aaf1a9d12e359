//! What is compared with what, and what hangs.

use std::sync::Arc;
use std::time::Duration;

use super::super::sample::Roster;
use super::super::touched::touched;
use super::super::worse::Worsening;
use super::scene::{Scene, entry, listener, target, those};
use crate::reload::plan::{
    AddressChange, ObjectChange, ObjectKind, Plan, PlannedAddress, PlannedKey, PlannedObject,
};

#[test]
fn listeners_of_a_touched_target_show_nothing_and_neither_do_targets_behind_a_touched_listener() {
    // t0 <- l0, t1 <- l1 and l2, t2 <- l2 as well, t3 alone.
    let roster = Roster::new(vec![
        entry(target(0), 0, Vec::new()),
        entry(target(1), 1, Vec::new()),
        entry(target(2), 2, Vec::new()),
        entry(target(3), 3, Vec::new()),
        entry(listener(0), 0, vec![0]),
        entry(listener(1), 1, vec![1]),
        entry(listener(2), 2, vec![1, 2]),
    ]);
    let (found, others) = those(&[target(0), target(9)]).split(&roster);
    assert_eq!(found, [target(0)]);
    assert_eq!(others, [target(1), target(2), target(3), listener(1), listener(2)]);
    let (found, others) = those(&[listener(1)]).split(&roster);
    assert_eq!(found, [listener(1)]);
    assert_eq!(others, [target(0), target(3), listener(0)]);
    let mut all = those(&[]);
    all.every_listener = true;
    let (found, others) = all.split(&roster);
    assert_eq!((found.len(), others), (3, vec![target(3)]));
}

#[test]
fn a_plan_touches_what_comes_or_does_something_differently() {
    let object = |kind, name: &str, change, keys: &[&str]| PlannedObject {
        kind,
        name: name.to_owned(),
        change,
        place: None,
        keys: keys
            .iter()
            .map(|key| PlannedKey { key: (*key).to_owned(), old: None, new: None, place: None })
            .collect(),
        loses_traffic: false,
        under_way: 0,
        idle_connections: 0,
        connections: 0,
    };
    let plan = Plan {
        objects: vec![
            object(ObjectKind::Process, "", ObjectChange::Changed, &["log_level", "admin.socket"]),
            object(ObjectKind::Listener, "l0", ObjectChange::Changed, &["tls.cert_file"]),
            object(ObjectKind::Listener, "l1", ObjectChange::Removed, &[]),
            object(ObjectKind::Target, "t0", ObjectChange::Added, &[]),
            object(ObjectKind::Target, "t1", ObjectChange::Removed, &[]),
            object(ObjectKind::Backend, "t2/b1", ObjectChange::Removed, &[]),
            object(ObjectKind::Backend, "t3/unix:/run/b1", ObjectChange::Replaced, &[]),
        ],
        addresses: vec![PlannedAddress {
            address: "127.0.0.1:80".to_owned(),
            listener: "l2".to_owned(),
            change: AddressChange::Bound,
        }],
        ..Plan::default()
    };
    assert_eq!(touched(&plan), those(&[listener(0), listener(2), target(0), target(2), target(3)]));
    let mut plan = Plan {
        objects: vec![object(ObjectKind::Process, "", ObjectChange::Changed, &["workers"])],
        ..Plan::default()
    };
    assert!(touched(&plan).is_nothing());
    plan.objects[0].keys[0].key = "trusted_proxies[0]".to_owned();
    assert!(touched(&plan).every_listener);
}

#[test]
fn an_untouched_target_that_fails_reverts_nothing_and_hides_nothing() {
    let mut scene = Scene::new(1, 2);
    scene.pass(30, |_| (300, 1));
    let mut judge = scene.apply(&[target(0)]);
    assert_eq!(scene.trial(&mut judge, 20_000, |object| (30, if object == 1 { 30 } else { 0 })), None);
    // It fails as badly then, and more than the others do together.
    assert!(scene.trial(&mut judge, 500, |object| (30, if object == 2 { 0 } else { 30 })).is_some());
}

#[test]
fn an_untouched_target_that_always_fails_excuses_nothing() {
    let mut scene = Scene::new(1, 1);
    let mut object = 0;
    scene.pass(30, |_| {
        object += 1;
        (300, if object % 2 == 0 { 300 } else { 0 })
    });
    let mut judge = scene.apply(&[target(0)]);
    assert!(scene.trial(&mut judge, 500, |_| (30, 30)).is_some());
}

#[test]
fn what_took_the_place_of_something_else_begins_anew() {
    let mut scene = Scene::new(1, 1);
    scene.pass(30, |_| (300, 300));
    let mut judge = scene.apply(&[target(1)]);
    // Another object has the number, and what was counted under it is taken back by each worker when it hears of that.
    scene.now.tallies[1].ends.ended -= 4_000;
    scene.now.tallies[1].ends.bad -= 4_000;
    assert_eq!(judge.look(scene.now.clone()), None);
    assert_eq!(scene.trial(&mut judge, 10_000, |_| (30, 0)), None);
    // It is there under another number.
    let mut judge = scene.apply(&[target(1)]);
    let entries = vec![entry(target(1), 7, Vec::new()), entry(target(0), 0, Vec::new())];
    scene.now.roster = Arc::new(Roster::new(entries));
    scene.now.tallies.reverse();
    assert_eq!(scene.trial(&mut judge, 10_000, |_| (30, 0)), None);
}

#[test]
fn what_happened_during_a_trial_is_not_the_past() {
    let mut scene = Scene::new(1, 0);
    scene.pass(30, |_| (300, 0));
    scene.past.pause();
    let mut judge = scene.apply(&[target(0)]);
    assert!(scene.trial(&mut judge, 2_000, |_| (30, 30)).is_some());
    scene.past.note(scene.now.clone());
    // What is left of it fails as well.
    scene.pass(1, |_| (300, 200));
    scene.pass(2, |_| (300, 0));
    let mut judge = scene.apply(&[target(0)]);
    assert!(scene.trial(&mut judge, 3_000, |_| (30, 5)).is_some());
}

/// Ends in a look, and requests under way after it, before and after a change, of a target; whether it is found to hang, and after
/// how many seconds.
fn hangs(before: (u32, u64), after: impl Fn(u64) -> (u32, u64)) -> Option<u64> {
    let mut scene = Scene::new(1, 1);
    scene.now.tallies[0].under_way = before.1;
    scene.pass(30, |_| (before.0 * 10, 0));
    let mut judge = scene.apply(&[target(0)]);
    for look in 1..200 {
        scene.now.at = scene.now.at.after(Duration::from_millis(100));
        let (ended, under_way) = after(look);
        scene.now.tallies[0].ends.ended += u64::from(ended);
        scene.now.tallies[0].under_way = under_way;
        scene.now.tallies[1].ends.ended += u64::from(before.0);
        if let Some(worse) = judge.look(scene.now.clone()) {
            assert!(matches!(worse.how, Worsening::Hanging { .. }), "{worse}");
            return Some(look / 10);
        }
    }
    None
}

#[test]
fn what_takes_requests_and_ends_none_hangs() {
    assert_eq!(hangs((30, 3), |look| (0, 3 + 30 * look)), Some(3), "requests pile up");
    assert_eq!(hangs((30, 50), |_| (0, 50)), Some(3), "as many clients as ever wait");
    assert_eq!(hangs((30, 50), |_| (0, 10)), None, "clients have gone");
    assert_eq!(hangs((30, 3), |look| (u32::from(look % 20 == 0), 500)), None, "it is slow");
    assert_eq!(hangs((30, 3), |look| (if look < 20 { 0 } else { 60 }, 600)), None, "it was slow to begin");
    assert_eq!(hangs((0, 500), |_| (0, 600)), None, "it never ended anything");
}

#[test]
fn long_polls_are_no_hanging() {
    let mut scene = Scene::new(1, 0);
    // All of them end each ten seconds.
    scene.now.tallies[0].under_way = 300;
    scene.pass(30, |second| (if second % 10 == 9 { 300 } else { 0 }, 0));
    let mut judge = scene.apply(&[target(0)]);
    let mut look = 0;
    assert_eq!(
        scene.trial(&mut judge, 60_000, |_| {
            look += 1;
            (if look % 100 == 0 { 300 } else { 0 }, 0)
        }),
        None
    );
}

#[test]
fn where_all_stand_still_it_is_not_the_change() {
    let mut scene = Scene::new(1, 1);
    scene.pass(30, |_| (300, 0));
    let mut judge = scene.apply(&[target(0)]);
    scene.now.tallies.iter_mut().for_each(|tally| tally.under_way = 500);
    assert_eq!(scene.trial(&mut judge, 10_000, |_| (0, 0)), None);
    assert!(scene.trial(&mut judge, 5_000, |object| (if object == 1 { 30 } else { 0 }, 0)).is_some());
}
