//! Screens, as they are read.

use ratatui::style::{Color, Modifier};

use super::*;

/// The lines of a small screen, without those that are empty.
fn small(state: &mut TopState, now: u64) -> Vec<String> {
    screen(state, (80, 24), at(now)).into_iter().filter(|line| !line.is_empty()).collect()
}

#[test]
fn in_good_times_a_small_screen_says_so() {
    assert_eq!(
        small(&mut heard(FULL, calm), 1),
        [
            " evenkeel edge-1  0.1.0 · config 4 · up 1h00m · 12 connections            ● live",
            " ● All is well · 4 of 4 backends get requests · 35 requests/s",
            "   NAME             STATE    REQ/S ERROR    P99 ACTIVE  WHY",
            "> ● db              up           0     –   31ms      4  1 of 1 backends",
            "    ● 10.0.0.1:5432 up           0     –   31ms      2",
            "  ● web             up          35    0%   31ms      4  3 of 3 backends",
            "    ● b1            up          20    0%   31ms      2",
            "    ● b2            up          15    0%   31ms      2",
            "    ● b3            up           0     –   31ms      2",
            " ● db is up: 1 of 1 backends get requests, for 1m01s",
            " ? help  q end  Enter open  s sort: name  / filter  d drain  u ready  x down",
        ]
    );
}

#[test]
fn in_an_outage_the_reason_can_be_read_on_a_small_screen() {
    let mut state = heard(FULL, outage);
    types(&mut state, "jjjj");
    assert_eq!(
        small(&mut state, 1),
        [
            " evenkeel edge-1  0.1.0 · config 4 · up 1h00m · 12 connections            ● live",
            " ✕ db has no backend left: connection refused · for 13s · and 2 more",
            "   NAME             STATE    REQ/S ERROR    P99 ACTIVE  WHY",
            "  ✕ db              down         0     –   31ms      4  0 of 1 backends",
            "    ✕ 10.0.0.1:5432 down         0     –   31ms      2  connection refused",
            "  ◐ web             1/3 up      35   14%   31ms      4  1 of 3 backends",
            "    ● b1            up          35   14%   31ms      2",
            ">   ✕ b2            down         0     –   31ms      2  no answer within 2s to …",
            "    ◐ b3            draining     0     –   31ms      2  drained by hand (uid 0)",
            " ✕ web/b2 is down: no answer within 2s to GET /health of 10.0.0.2:8001 (3 in a",
            "   row) (probe), for 13s",
            " ? help  q end  Enter open  s sort: name  / filter  d drain  u ready  x down",
        ]
    );
}

#[test]
fn a_large_screen_has_listeners_sparklines_and_all_of_what_is_marked() {
    for rows in [calm, outage] {
        let mut state = heard(FULL, rows);
        let lines = screen(&mut state, (160, 50), at(1));
        let text = lines.join("\n");
        for said in [
            "   web                      http   0.0.0.0:80 +1                      12     35     0%  web",
            "LAST 30 S",
            "WEIGHT",
            " P50 ",
            "█",
            "   commands          evenkeel status db",
            "w weight",
        ] {
            assert!(text.contains(said), "{said}\n{text}");
        }
        assert!(lines[0].ends_with("● live") && lines[49].starts_with(" ? help"), "{text}");
    }
    let text = screen(&mut heard(FULL, outage), (160, 50), at(1)).join("\n");
    assert!(text.contains("\n ◐ web/b2 is down: no answer within 2s · for 13s\n"), "{text}");
    assert!(text.contains("connection refused (probe), for 13s\n"), "{text}");
}

#[test]
fn what_is_opened_is_told_in_full() {
    let mut state = heard(FULL, outage);
    state.words = " --socket '/run/e k'".into();
    types(&mut state, "jjjj\n");
    let text = small(&mut state, 1).join("\n");
    for said in [
        " ✕ web/b2 is down: no answer within 2s to GET /health of 10.0.0.2:8001 (3 in a\n   row) (probe), for 13s\n",
        "   address           10.0.0.1:8001\n",
        "   weight            1, 50% of new clients' requests\n",
        "   first byte        within 0.4ms (half of them) and 31ms (99 %)\n",
        "   hue               green\n",
        "   commands          evenkeel status web/b2 --socket '/run/e k'\n",
        "                     evenkeel drain web/b2 --socket '/run/e k'\n",
    ] {
        assert!(text.contains(said), "{said}\n{text}");
    }
    types(&mut state, "d");
    let text = small(&mut state, 1).join("\n");
    let asked = " drains web/b2: 1 of 3 backends left, 2 requests under way will finish; clients\n whose cookie names it stay\n   \
                 evenkeel drain web/b2 --socket '/run/e k'\n y does it   n does nothing";
    assert!(text.ends_with(asked), "{text}");
    types(&mut state, "n");
    assert!(small(&mut state, 1).join("\n").contains("nothing was done"));
}

#[test]
fn what_is_taller_than_the_screen_can_be_scrolled() {
    let mut state = heard(FULL, outage);
    types(&mut state, "jjjj\n");
    let commands =
        |state: &mut TopState| screen(state, (80, 12), at(1)).join("\n").contains("evenkeel weight web/b2 1");
    assert!(!commands(&mut state));
    state.press(key(KeyCode::End));
    assert!(commands(&mut state));
    state.press(key(KeyCode::Home));
    assert!(!commands(&mut state));
}

#[test]
fn silence_is_told_and_so_is_its_end() {
    let mut state = heard(FULL, calm);
    assert!(small(&mut state, 4)[0].ends_with("● live"), "three seconds are nothing");
    let lines = small(&mut state, 9);
    assert!(lines[0].ends_with("○ no news for 8s"), "{lines:#?}");
    assert_eq!(lines[1], " ○ Nothing is heard from evenkeel any more; trying again");
    state.lose("connection refused".into());
    assert!(small(&mut state, 9)[1].ends_with("trying again (connection refused)"));
    state.hear(frame("whole", 12, &calm(12), &[]), at(12));
    let text = small(&mut state, 12).join("\n");
    assert!(text.contains("evenkeel is heard again, after 11s") && text.contains("● live"), "{text}");
    assert!(
        text.contains(" ● All is well · 4 of 4 backends get requests · 35 requests/s"),
        "over the gap: {text}"
    );
    let mut rows = calm(0);
    rows["process"] = process(901);
    state.lose("it has ended its stream".into());
    state.hear(frame("whole", 13, &rows, &[]), at(13));
    let text = small(&mut state, 13).join("\n");
    assert!(text.contains("evenkeel was started anew: process 901 in the place of 812"), "{text}");
    assert!(text.contains("get requests · – requests/s"), "another process counts from zero: {text}");
    rows["target/web"] = target("up", (3, 3), 7, 0);
    state.hear(frame("changes", 14, &rows, &[]), at(14));
    assert!(small(&mut state, 14).join("\n").contains("· 7.0 requests/s"));
    // In a container each has the same number.
    let mut rows = calm(0);
    rows["process"] = process(901);
    rows["process"]["born"] = json!(7);
    state.hear(frame("whole", 40, &rows, &[]), at(40));
    assert_eq!(state.frames(), 1, "another one counts from zero");
}

#[test]
fn a_frame_without_a_row_leaves_it_and_one_that_is_not_understood_too() {
    let mut state = heard(FULL, calm);
    let odd = json!({"target/web": {"state": 7}, "backend/web/b1": "what", "backend/lost": {}, "x/y": null, "troubles": [{}]});
    state.hear(frame("changes", 2, &odd, &["listener/none", "nothing"]), at(2));
    let text = small(&mut state, 2).join("\n");
    assert!(text.contains("  ● web             up           0"), "{text}");
    assert!(ToldRows::of("whole", "{").is_none() && ToldRows::of("ping", "{}").is_none());
}

#[test]
fn a_thousand_backends_are_a_list_like_any_other() {
    let mut state = TopState::new(FULL, String::new(), at(0));
    for second in 0..2 {
        state.hear(frame("whole", second, &many(1_000, second), &[]), at(second));
    }
    types(&mut state, "s");
    state.press(key(KeyCode::End));
    let lines = screen(&mut state, (160, 50), at(1));
    assert!(lines.iter().any(|line| line.starts_with(">   ● b000 ")), "{lines:#?}");
    assert!(lines.iter().filter(|line| line.contains(" ● b0")).count() > 20, "{lines:#?}");
    types(&mut state, "/b77");
    let lines = screen(&mut state, (80, 24), at(1));
    assert_eq!(lines.iter().filter(|line| line.contains(" ● b77")).count(), 10, "{lines:#?}");
    let text = view::whole(&state, 80, at(1));
    assert_eq!(text.lines().filter(|line| line.contains(" ● b77")).count(), 10, "{text}");
}

#[test]
fn without_colours_state_is_a_shape_and_a_word() {
    for (look, has_colours) in [(FULL, true), (PLAIN, false)] {
        let mut state = heard(look, outage);
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).expect("a terminal");
        terminal
            .draw(|frame| view::draw(&mut state, frame.area(), at(1), frame.buffer_mut()))
            .expect("it is drawn");
        let cells = || terminal.backend().buffer().content().iter();
        assert_eq!(cells().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset), has_colours);
        assert!(cells().any(|cell| cell.modifier.contains(Modifier::REVERSED)), "what is marked");
    }
    let lines = small(&mut heard(PLAIN, outage), 1);
    assert!(lines[0].ends_with("o live") && lines[1].starts_with(" ! db has"), "{lines:#?}");
    assert!(lines.iter().all(|line| line.is_ascii()), "{lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("    ~ b3            draining ")), "{lines:#?}");
}

#[test]
fn what_is_least_important_goes_first_where_there_is_no_room() {
    let heads = |width| {
        let lines = screen(&mut heard(FULL, outage), (width, 24), at(1));
        lines.into_iter().find(|line| line.contains("NAME")).unwrap_or_default()
    };
    assert_eq!(heads(60).split_whitespace().collect::<Vec<_>>(), ["NAME", "STATE", "REQ/S", "ERROR", "WHY"]);
    assert_eq!(heads(40).split_whitespace().collect::<Vec<_>>(), ["NAME", "STATE", "WHY"]);
    assert!(heads(120).contains("WEIGHT") && !heads(120).contains("LAST"), "{}", heads(120));
}
