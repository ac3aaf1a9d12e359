//! The rule of docs/operations.md, sentence by sentence.

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::config::model::BackendState;
use crate::config::{Flags, Loaded, Origin, load_text};

const NOW: u64 = 1_800_000_000_000;
const DAY: u64 = 24 * 3600 * 1000;

/// A target `web` with these backends.
fn file(backends: &str) -> Arc<Loaded> {
    let text = format!("targets: {{web: {{protocol: http, listener: 127.0.0.1:0, backends: [{backends}]}}}}");
    let loaded = load_text(&text, "t.yaml", Path::new("/"), &Flags::default(), &|_| None);
    Arc::new(loaded.unwrap_or_else(|error| panic!("{error}\n{text}")))
}

/// `b1` and `b2` at ports 1 and 2, with more keys for the second.
fn two(more: &str) -> Arc<Loaded> {
    file(&format!("{{name: b1, host: h, port: 1}}, {{name: b2, host: h, port: 2{more}}}"))
}

fn b(name: &str) -> ObjectName {
    ObjectName::backend("web", name)
}

fn ask(wishes: Vec<Wish>) -> WishList {
    WishList { wishes, author: Author::Uid(0), at_ms: NOW, expires_ms: None }
}

fn try_change(file: &Arc<Loaded>, entries: &[OverlayEntry], ask: &WishList) -> Result<Changed, Declined> {
    let next = entries.iter().map(|entry| entry.id).max().unwrap_or(0) + 1;
    change(file, entries, &[], &lay(file, entries).aside, next, ask)
}

fn changed(file: &Arc<Loaded>, entries: &[OverlayEntry], wish: Wish) -> Vec<OverlayEntry> {
    try_change(file, entries, &ask(vec![wish])).expect("it can be").entries
}

fn weight(name: &str, weight: u16) -> Wish {
    Wish::Set(b(name), EntryChange::Weight(weight))
}

fn drain(name: &str) -> Wish {
    Wish::Set(b(name), EntryChange::State(BackendState::Drain))
}

fn add(url: &str) -> Wish {
    Wish::Add {
        target: "web".into(),
        name: None,
        backend: AddedBackend { url: url.into(), ..AddedBackend::default() },
    }
}

/// Names with weights, states in front where they are not `up`.
fn seen(laid: &Laid) -> Vec<String> {
    let backends = &laid.loaded.config.targets[0].backends;
    let one = |backend: &crate::config::model::BackendConfig| {
        let state = if backend.state == BackendState::Up { "" } else { backend.state.as_str() };
        format!("{} {} {state}", backend.name, backend.portion.weight).trim_end().to_owned()
    };
    backends.iter().map(one).collect()
}

fn after(
    entries: &[OverlayEntry],
    file: &Arc<Loaded>,
    now: u64,
) -> (Vec<String>, Vec<EntryEnd>, Vec<OverlayEntry>) {
    let Reconciled { entries, ended } = reconcile(entries, file, now);
    (seen(&lay(file, &entries)), ended.into_iter().map(|(_, end)| end).collect(), entries)
}

#[test]
fn a_change_holds_as_long_as_the_file_says_what_it_said() {
    let entries = changed(&two(""), &[], weight("b2", 5));
    assert_eq!(after(&entries, &two(""), NOW).0, ["b1 1", "b2 5"]);
    let (seen, ended, left) = after(&entries, &two(", state: drain"), NOW);
    assert_eq!((seen, ended.len(), left.len()), (vec!["b1 1".to_owned(), "b2 5 drain".into()], 0, 1));
    let (seen, ended, left) = after(&entries, &two(", weight: 3"), NOW);
    assert_eq!(seen, ["b1 1", "b2 3"]);
    assert_eq!((ended, left.len()), (vec![EntryEnd::FileChanged { now: "3".into() }], 0));
    assert_eq!(after(&left, &two(""), NOW).0, ["b1 1", "b2 1"], "what is over does not come back");
}

#[test]
fn a_row_says_who_has_set_it_by_hand_and_all_others_stay() {
    let file = two("");
    let laid = lay(&file, &changed(&file, &[], weight("b2", 5)));
    let row = |loaded: &Loaded, path: &str| {
        let row = loaded.effective.iter().find(|row| row.path == path).expect(path);
        (row.value.clone(), row.origin.clone())
    };
    let path = "targets.web.backends[1].weight";
    assert_eq!(row(&laid.loaded, path), ("5".into(), Origin::Hand { who: "uid 0".into(), at_ms: NOW }));
    let others =
        |loaded: &Loaded| loaded.effective.iter().filter(|row| row.path != path).cloned().collect::<Vec<_>>();
    assert_eq!(others(&laid.loaded), others(&file));
    let drained = lay(&file, &changed(&file, &[], drain("b1")));
    let by = drained.loaded.config.targets[0].backends[0].state_by.as_deref();
    assert_eq!(by, Some("by hand (uid 0)"));
    let removed = lay(&file, &changed(&file, &[], Wish::Remove(b("b1"))));
    assert!(!removed.loaded.effective.iter().any(|row| row.path.starts_with("targets.web.backends[0]")));
    assert!(Arc::ptr_eq(&lay(&file, &[]).loaded, &file), "without entries it is the file's own");
}

#[test]
fn what_says_what_the_file_says_is_no_change_by_hand() {
    let file = two("");
    assert!(changed(&file, &[], weight("b2", 1)).is_empty());
    let entries = changed(&file, &[], weight("b2", 5));
    assert!(changed(&file, &entries, weight("b2", 1)).is_empty());
    let drained = changed(&file, &entries, drain("b2"));
    assert_eq!(drained.len(), 2);
    let ready = changed(&file, &drained, Wish::Clear(b("b2"), EntryField::State));
    assert_eq!(seen(&lay(&file, &ready)), ["b1 1", "b2 5"]);
    assert!(changed(&file, &[], Wish::Clear(b("b2"), EntryField::State)).is_empty());
}

#[test]
fn what_is_removed_by_hand_stays_removed_until_its_entry_in_the_file_changes() {
    let entries = changed(&two(""), &changed(&two(""), &[], weight("b2", 5)), Wish::Remove(b("b2")));
    assert_eq!(entries.len(), 1, "other entries go with it");
    assert_eq!(after(&entries, &two(""), NOW).0, ["b1 1"]);
    for more in [", weight: 2", ", state: down", ", zone: a", ", health_path: /x", ", priority: 1"] {
        let (_, ended, left) = after(&entries, &two(more), NOW);
        assert_eq!((ended.len(), left.len()), (1, 0), "{more}");
    }
    let other = file("{name: b1, host: h, port: 1}, {name: b2, host: h, port: 3}");
    assert_eq!(after(&entries, &other, NOW).0, ["b1 1", "b2 1"]);
    let Declined::Missing(why) =
        try_change(&two(""), &entries, &ask(vec![drain("b2")])).expect_err("it is gone")
    else {
        panic!("missing")
    };
    assert_eq!(why, "web/b2 was removed by hand, by uid 0; to add it again brings it back");
    let hour = WishList { expires_ms: Some(NOW + 3_600_000), ..ask(vec![add("http://h:2")]) };
    assert!(matches!(try_change(&two(""), &entries, &hour), Err(Declined::Duplicate(_))), "no time is kept");
    let back = changed(&two(""), &entries, add("http://H.:2"));
    assert_eq!((seen(&lay(&two(""), &back)), back.len()), (vec!["b1 1".to_owned(), "b2 1".into()], 0));
}

#[test]
fn what_is_added_by_hand_and_in_the_file_is_one_backend_with_the_file_s_fields() {
    let entries = changed(&two(""), &[], add("http://h:3"));
    let entries = changed(&two(""), &entries, weight("h:3", 7));
    assert_eq!(after(&entries, &two(""), NOW).0, ["b1 1", "b2 1", "h:3 7"]);
    // Of the same name, with what it was added with: the weight by hand stays.
    let same = file("{name: b1, host: h, port: 1}, {host: h, port: 3}");
    let (seen, ended, _) = after(&entries, &same, NOW);
    assert_eq!((seen, ended), (vec!["b1 1".to_owned(), "h:3 7".into()], vec![EntryEnd::InFile]));
    // With another weight: the file's.
    let other = file("{name: b1, host: h, port: 1}, {host: h, port: 3, weight: 2}");
    assert_eq!(after(&entries, &other, NOW).0, ["b1 1", "h:3 2"]);
    // The address alone, under another name.
    let renamed = file("{name: b1, host: h, port: 1}, {name: x, host: H, port: 3}");
    let (seen, ended, left) = after(&entries, &renamed, NOW);
    assert_eq!(seen, ["b1 1", "x 1"]);
    assert_eq!((ended, left.len()), (vec![EntryEnd::InFile, EntryEnd::WithBackend], 0));
}

#[test]
fn entries_of_what_is_gone_are_kept_for_seven_days_and_come_back_at_the_same_address_only() {
    let entries = changed(&two(""), &[], drain("b2"));
    let without = file("{name: b1, host: h, port: 1}");
    let (_, ended, gone) = after(&entries, &without, NOW);
    assert_eq!((ended.len(), gone[0].gone_since_ms), (0, Some(NOW)));
    assert_eq!(lay(&without, &gone).aside[&gone[0].id], Aside::Gone);
    assert_eq!(next_end(&gone), Some(NOW + 7 * DAY));
    assert_eq!(after(&gone, &two(""), NOW + 7 * DAY - 1).0, ["b1 1", "b2 1 drain"]);
    let (_, ended, _) = after(&gone, &without, NOW + 7 * DAY);
    assert_eq!(ended, [EntryEnd::LongGone]);
    let elsewhere = file("{name: b1, host: h, port: 1}, {name: b2, host: h, port: 9}");
    let (seen, ended, _) = after(&gone, &elsewhere, NOW + 1);
    assert_eq!((seen, ended), (vec!["b1 1".to_owned(), "b2 1".into()], vec![EntryEnd::OtherAddress]));
    // Back for a moment counts as back.
    let (.., back) = after(&gone, &two(""), NOW + 6 * DAY);
    let (.., again) = after(&back, &without, NOW + 6 * DAY);
    assert_eq!(again[0].gone_since_ms, Some(NOW + 6 * DAY));
    // What is left of one that is gone can be taken away.
    assert!(changed(&without, &gone, Wish::Clear(b("b2"), EntryField::State)).is_empty());
    assert!(changed(&without, &gone, Wish::Remove(b("b2"))).is_empty());
}

#[test]
fn what_time_has_ended_was_over_before_a_file_that_is_read_later() {
    let without = file("{name: b1, host: h, port: 1}");
    let gone = after(&changed(&two(""), &[], drain("b2")), &without, NOW).2;
    let (seen, ended, _) = after(&gone, &two(""), NOW + 7 * DAY);
    assert_eq!((seen, ended), (vec!["b1 1".to_owned(), "b2 1".into()], vec![EntryEnd::LongGone]));
    let hour = WishList { expires_ms: Some(NOW + 3_600_000), ..ask(vec![add("http://h:3")]) };
    let entries = try_change(&two(""), &[], &hour).expect("it can be").entries;
    let entries = changed(&two(""), &entries, weight("h:3", 7));
    let same = file("{name: b1, host: h, port: 1}, {host: h, port: 3}");
    let (seen, ended, _) = after(&entries, &same, NOW + 3_600_000);
    assert_eq!(seen, ["b1 1", "h:3 1"]);
    assert_eq!(ended, [EntryEnd::Expired, EntryEnd::WithBackend]);
}

#[test]
fn what_is_left_of_one_that_is_gone_does_not_stand_against_another_one_at_its_address() {
    let entries = changed(&two(""), &[], Wish::Remove(b("b2")));
    let gone = after(&entries, &file("{name: b1, host: h, port: 1}"), NOW).2;
    assert_eq!(gone.len(), 1);
    let entries = changed(&file("{name: b1, host: h, port: 1}"), &gone, add("http://h:2"));
    assert_eq!(entries.len(), 1);
    assert_eq!(after(&entries, &two(""), NOW).0, ["b1 1", "b2 1"], "it is not removed from there");
}

#[test]
fn what_is_said_by_hand_takes_the_place_of_what_is_paused() {
    let file = two("");
    let paused = changed(&file, &changed(&file, &[], weight("b2", 5)), drain("b2"));
    let left = |wish| {
        let done = change(&file, &[], &paused, &lay(&file, &[]).aside, 9, &ask(vec![wish]));
        done.expect("it can be").paused.len()
    };
    assert_eq!((left(weight("b2", 1)), left(weight("b1", 3))), (1, 2));
    assert_eq!(left(Wish::Clear(b("b2"), EntryField::State)), 1);
    assert_eq!(left(Wish::Remove(b("b2"))), 0);
    let alone = self::file("{name: b1, host: h, port: 1}");
    let added = change(&alone, &[], &paused, &lay(&alone, &[]).aside, 9, &ask(vec![add("http://h:2")]));
    assert_eq!(added.expect("it can be").paused, [], "another one is there");
}

#[test]
fn what_lies_beneath_a_removal_is_not_set_aside() {
    let file = two("");
    let mut entries = changed(&file, &[], Wish::Remove(b("b2")));
    // As after a trial, whose text has ended the removal.
    entries.extend(
        changed(&file, &[], weight("b2", 0)).into_iter().map(|entry| OverlayEntry { id: 2, ..entry }),
    );
    let laid = lay(&file, &entries);
    assert_eq!((seen(&laid), laid.aside.len()), (vec!["b1 1".to_owned()], 0));
}

#[test]
fn what_has_a_time_is_over_at_its_end() {
    let file = two("");
    let hour = WishList { expires_ms: Some(NOW + 3_600_000), ..ask(vec![add("http://h:3")]) };
    let entries = try_change(&file, &[], &hour).expect("it can be").entries;
    let entries = changed(&file, &entries, drain("h:3"));
    assert_eq!(next_end(&entries), Some(NOW + 3_600_000));
    assert_eq!(after(&entries, &file, NOW + 3_599_999).0, ["b1 1", "b2 1", "h:3 1 drain"]);
    let (seen, ended, left) = after(&entries, &file, NOW + 3_600_000);
    assert_eq!((seen.len(), left.len()), (2, 0));
    assert_eq!(ended, [EntryEnd::Expired, EntryEnd::WithBackend]);
}

#[test]
fn no_target_loses_the_last_that_gets_requests() {
    let file = two("");
    let entries = changed(&file, &[], weight("b1", 0));
    let declined = |wish| try_change(&file, &entries, &ask(vec![wish])).expect_err("it can't be").to_string();
    let why = "web/b2: no backend of the target would have a weight above 0";
    assert_eq!((declined(weight("b2", 0)), declined(Wish::Remove(b("b2")))), (why.into(), why.into()));
    // A file that takes the other one away does not.
    let alone = self::file("{name: b1, host: h, port: 1}");
    let Reconciled { entries: left, .. } = reconcile(&entries, &alone, NOW);
    let laid = lay(&alone, &left);
    assert_eq!((seen(&laid), laid.aside.len()), (vec!["b1 1".to_owned()], 1));
    assert_eq!(seen(&lay(&file, &left)), ["b1 0", "b2 1"], "it is tried again with the next file");
    // To take back what keeps another one up is refused as well.
    let entries = changed(&file, &changed(&file, &[], add("http://h:3")), weight("b1", 0));
    let entries = changed(&file, &entries, weight("b2", 0));
    assert!(try_change(&file, &entries, &ask(vec![Wish::Remove(b("h:3"))])).is_err());
}

#[test]
fn duplicates_are_refused_and_what_does_not_fit_is_told_with_its_key() {
    let file = two("");
    let refused =
        |entries: &[OverlayEntry], wish| try_change(&file, entries, &ask(vec![wish])).expect_err("refused");
    let Declined::Duplicate(why) = refused(&[], add("http://H:2")) else { panic!("a duplicate") };
    assert_eq!(why, "the backend `H:2` is there twice in the target `web`: the first is `b2`");
    let entries = changed(&file, &[], add("http://h:3"));
    assert!(matches!(refused(&entries, add("http://h:3")), Declined::Duplicate(_)));
    let named = Wish::Add {
        target: "web".into(),
        name: Some("b1".into()),
        backend: AddedBackend { url: "http://x:1".into(), ..AddedBackend::default() },
    };
    assert!(matches!(refused(&[], named), Declined::Duplicate(_)));
    let Declined::Unfit(faults) = refused(&[], add("tcp://h:3")) else { panic!("unfit") };
    assert_eq!(faults[0].key, "url");
    assert_eq!(refused(&[], drain("b3")).to_string(), "there is no backend web/b3; there are web/b1, web/b2");
    let elsewhere = Wish::Remove(ObjectName::backend("wep", "b1"));
    assert_eq!(refused(&[], elsewhere).to_string(), "there is no target wep; did you mean web?");
}

#[test]
fn one_that_does_not_fit_the_file_any_more_is_set_aside_and_tried_again() {
    let entries = changed(&two(""), &[], add("http://h:3"));
    let entries = changed(&two(""), &entries, drain("h:3"));
    let text =
        "targets: {web: {protocol: tcp, listener: 127.0.0.1:0, backends: [{name: b1, host: h, port: 1}]}}";
    let tcp = load_text(text, "t.yaml", Path::new("/"), &Flags::default(), &|_| None).expect("valid");
    let tcp = Arc::new(tcp);
    let (seen, ended, left) = after(&entries, &tcp, NOW);
    assert_eq!((seen, ended.len()), (vec!["b1 1".to_owned()], 0));
    let aside: Vec<String> = lay(&tcp, &left).aside.values().map(ToString::to_string).collect();
    assert_eq!(
        aside,
        ["this backend speaks http, but the target `web` speaks tcp", "its backend is set aside"]
    );
    assert_eq!(after(&left, &two(""), NOW).0, ["b1 1", "b2 1", "h:3 1 drain"]);
}

#[test]
fn the_limit_of_a_target_is_changed_like_a_field_of_a_backend() {
    let web = || ObjectName::target("web");
    let set = |limit| Wish::Set(web(), EntryChange::MaxInFlight(limit));
    let entries = changed(&two(""), &[], set(Some(7)));
    assert_eq!(lay(&two(""), &entries).loaded.config.targets[0].resilience.max_in_flight, Some(7));
    let text = "targets: {web: {protocol: http, listener: 127.0.0.1:0, max_in_flight: adaptive, \
                backends: [{name: b1, host: h, port: 1}]}}";
    let adaptive = load_text(text, "t.yaml", Path::new("/"), &Flags::default(), &|_| None).expect("valid");
    let adaptive = Arc::new(adaptive);
    assert_eq!(
        reconcile(&entries, &adaptive, NOW).ended[0].1,
        EntryEnd::FileChanged { now: "adaptive".into() }
    );
    let off = changed(&adaptive, &[], set(None));
    let laid = lay(&adaptive, &off);
    let resilience = &laid.loaded.config.targets[0].resilience;
    assert_eq!((resilience.max_in_flight, resilience.adaptive), (None, false));
    assert!(changed(&two(""), &[], set(None)).is_empty(), "off is what the file says");
}

#[test]
fn several_wishes_are_one_change() {
    let file = two("");
    let both = ask(vec![drain("b2"), weight("b2", 3), drain("nobody")]);
    assert!(try_change(&file, &[], &both).is_err());
    let twice = ask(vec![add("http://h:2"), Wish::Remove(b("h:2"))]);
    assert!(matches!(try_change(&file, &[], &twice), Err(Declined::Duplicate(_))), "each for itself");
    let done = try_change(&file, &[], &ask(vec![drain("b2"), weight("b2", 3)])).expect("it can be");
    assert_eq!(seen(&done.laid), ["b1 1", "b2 3 drain"]);
    assert_eq!(
        (done.entries.iter().map(|entry| entry.id).collect::<Vec<_>>(), done.next_id),
        (vec![1, 2], 3)
    );
}

#[test]
fn what_is_shown_has_the_file_s_line_beside_it() {
    let file = two("");
    let entries = changed(&file, &changed(&file, &[], weight("b2", 5)), add("http://h:3"));
    let entries = changed(&file, &entries, Wish::Remove(b("b1")));
    let lines: Vec<String> =
        report(&file, &entries, &lay(&file, &entries).aside, NOW).iter().map(ToString::to_string).collect();
    let by = "by hand, uid 0, 2027-01-15T08:00:00Z";
    assert_eq!(
        lines,
        [
            format!("~ web/b2 weight: 1 -> 5 (default; {by})"),
            format!("+ web/h:3: http://h:3 ({by})"),
            format!("- web/b1: h:1 (t.yaml:1; {by})"),
        ]
    );
}
