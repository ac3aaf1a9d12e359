//! What keys do.

use super::super::by_hand::{HandAct, ProposedChange};
use super::super::listing::{ListPlace, SortBy};
use super::*;

fn change(backend: &str, act: HandAct) -> PageWish {
    PageWish::Change(ProposedChange { target: "web".into(), backend: backend.into(), act })
}

fn marked(state: &TopState) -> String {
    state.page.marked.as_ref().map(ListPlace::name).unwrap_or_default()
}

fn names(state: &TopState) -> Vec<String> {
    state.places.iter().map(ListPlace::name).collect()
}

/// A state with this backend marked.
fn on(backend: &str) -> TopState {
    let mut state = heard(FULL, calm);
    screen(&mut state, (80, 24), at(1));
    let down = state.places.iter().position(|place| place.name() == backend).expect("it is there");
    types(&mut state, &"j".repeat(down));
    assert_eq!(marked(&state), backend);
    state
}

#[test]
fn a_change_is_made_after_a_yes_and_only_then() {
    for (letter, act) in [("d", HandAct::Drain), ("u", HandAct::Ready), ("x", HandAct::Down)] {
        let mut state = on("web/b2");
        assert_eq!(types(&mut state, letter), None);
        assert_eq!(types(&mut state, "\nqjd "), None, "neither yes nor no");
        assert_eq!(types(&mut state, "y"), Some(change("b2", act)));
        assert_eq!(types(&mut state, "y"), None, "it was answered");
        for no in ["n", "\u{1b}"] {
            let mut state = on("web/b2");
            assert_eq!(types(&mut state, letter), None);
            assert_eq!(types(&mut state, no), None);
            assert_eq!(types(&mut state, "y"), None, "{letter}{no}");
        }
    }
    let mut state = on("web");
    assert_eq!(types(&mut state, "dy"), None, "a target is not drained");
}

#[test]
fn a_weight_is_a_number_that_is_typed() {
    let weighs = |typed: &str| types(&mut on("web/b2"), typed);
    assert_eq!(weighs("w12\ny"), Some(change("b2", HandAct::Weight(Some(12)))));
    assert_eq!(weighs("w13\u{8}2x\ny"), Some(change("b2", HandAct::Weight(Some(12)))));
    assert_eq!(weighs("wfy"), Some(change("b2", HandAct::Weight(None))));
    assert_eq!(weighs("w257\n7\ny"), Some(change("b2", HandAct::Weight(Some(7)))));
    for nothing in ["w\ny", "w999\ny", "w1\u{1b}y", "w1\nny"] {
        assert_eq!(weighs(nothing), None, "{nothing:?}");
    }
}

#[test]
fn what_is_marked_stays_marked_wherever_it_goes() {
    let mut state = on("web/b2");
    types(&mut state, "s");
    assert_eq!((state.page.wanted.by, marked(&state)), (SortBy::Rate, "web/b2".into()));
    assert_eq!(names(&state), ["web", "web/b1", "web/b2", "web/b3", "db", "db/10.0.0.1:5432"]);
    types(&mut state, "r");
    assert_eq!(names(&state), ["db", "db/10.0.0.1:5432", "web", "web/b3", "web/b2", "web/b1"]);
    assert_eq!(marked(&state), "web/b2");
    types(&mut state, "rsssss");
    assert_eq!(state.page.wanted.by, SortBy::Name);
    state.hear(frame("changes", 2, &json!({}), &["backend/web/b2"]), at(2));
    screen(&mut state, (80, 24), at(2));
    assert_eq!(marked(&state), "web/b3", "what has taken its place");
    types(&mut state, "\n");
    state.hear(frame("changes", 3, &json!({}), &["backend/web/b3"]), at(3));
    let shown = screen(&mut state, (80, 24), at(3)).join("\n");
    assert!(shown.contains("web/b3 is not there any more"), "{shown}");
}

#[test]
fn the_worst_comes_first_by_state() {
    let mut state = heard(FULL, outage);
    types(&mut state, "sssss");
    assert_eq!(names(&state), ["db", "db/10.0.0.1:5432", "web", "web/b2", "web/b3", "web/b1"]);
    types(&mut state, "sss");
    assert_eq!(state.page.wanted.by, SortBy::Errors);
    assert_eq!(names(&state)[..2], ["web", "web/b1"]);
}

#[test]
fn a_filter_leaves_what_has_its_text() {
    let mut state = heard(FULL, outage);
    types(&mut state, "/B2");
    assert_eq!(names(&state), ["web", "web/b2"]);
    types(&mut state, "\u{8}\u{8}");
    assert_eq!(names(&state).len(), 6);
    types(&mut state, "refused\n");
    assert_eq!(names(&state), ["db", "db/10.0.0.1:5432"]);
    assert_eq!(types(&mut state, "j"), None, "the keys are for moving again");
    types(&mut state, "\u{1b}");
    assert_eq!(names(&state).len(), 6, "Esc clears it");
    state.paste("d");
    assert!(types(&mut state, "y").is_none(), "what is pasted is no key");
    types(&mut state, "/");
    state.paste("b1\n");
    assert_eq!(state.page.wanted.filter, "b1");
    types(&mut state, "\u{1b}");
    assert_eq!(state.page.wanted.filter, "");
}

#[test]
fn one_moves_by_lines_by_screens_and_to_the_ends() {
    let mut state = TopState::new(FULL, String::new(), at(0));
    state.hear(frame("whole", 0, &many(1_000, 0), &[]), at(0));
    let mut go = |code| {
        state.press(key(code));
        let shown = screen(&mut state, (80, 24), at(0));
        let name = marked(&state);
        let last = name.rsplit('/').next().unwrap_or_default().to_owned();
        assert!(shown.iter().any(|line| line.starts_with('>') && line.contains(&last)), "{shown:#?}");
        name
    };
    go(KeyCode::Null);
    assert_eq!(go(KeyCode::Up), "web");
    assert_eq!(go(KeyCode::Down), "web/b000");
    let far = go(KeyCode::PageDown);
    assert!(("web/b010".."web/b022").contains(&far.as_str()), "{far}");
    assert_eq!(go(KeyCode::PageUp), "web/b000");
    assert_eq!(go(KeyCode::End), "web/b999");
    assert_eq!(go(KeyCode::Down), "web/b999");
    assert_eq!(go(KeyCode::Char('k')), "web/b998");
    assert_eq!(go(KeyCode::Home), "web");
}

#[test]
fn a_picture_that_is_held_stays_and_what_comes_is_not_lost() {
    let mut state = heard(FULL, calm);
    types(&mut state, "p");
    state
        .hear(frame("changes", 2, &json!({"target/new": target("up", (1, 1), 0, 0)}), &["target/db"]), at(2));
    let shown = screen(&mut state, (80, 24), at(2));
    assert!(
        shown[0].ends_with("= held, Space goes on") && shown.iter().any(|line| line.contains("● db ")),
        "{shown:#?}"
    );
    types(&mut state, "jd");
    let shown = screen(&mut state, (80, 24), at(2)).join("\n");
    assert!(shown.contains("db/10.0.0.1:5432 is not there any more"), "what is asked is about now: {shown}");
    types(&mut state, "n ");
    assert_eq!(names(&state)[0], "new");
}

#[test]
fn each_way_out_is_one() {
    let mut state = on("web/b1");
    assert_eq!(types(&mut state, "q"), Some(PageWish::End));
    let ctrl = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
    for before in ["", "d", "w1", "/x", "?", "\n"] {
        let mut state = on("web/b1");
        types(&mut state, before);
        assert_eq!(state.press(ctrl('c')), Some(PageWish::End), "{before:?}");
        assert_eq!(state.press(ctrl('l')), Some(PageWish::Redraw));
        assert_eq!(state.press(ctrl('d')), None);
    }
    assert_eq!(types(&mut on("web/b1"), "?q"), None, "any key goes back from the help");
}
