//! Whatever comes in whatever order: it draws, and nothing harmful.

use proptest::prelude::*;
use unicode_width::UnicodeWidthStr as _;

use super::*;
use crate::message::steers;

/// Names and reasons that somebody chose to break a screen.
const HOSTILE: [&str; 40] = [
    "\u{1b}[2J",
    "\u{1b}]0;title\u{7}",
    "\u{9b}31m",
    "a\rb",
    "a\nb",
    "a\tb",
    "\0",
    "\u{7f}",
    "\u{8}\u{8}",
    "\u{85}",
    "\u{202a}a",
    "\u{202b}a",
    "\u{202c}",
    "\u{202d}a",
    "\u{202e}evil",
    "\u{2066}a",
    "\u{2067}a",
    "\u{2068}a",
    "\u{2069}",
    "\u{61c}",
    "\u{200b}",
    "\u{200d}",
    "\u{feff}",
    "\u{ad}",
    "e\u{301}\u{301}\u{301}",
    "\u{3164}",
    "中文名字",
    "👩‍👩‍👧‍👦",
    "🇨🇭",
    "ﷺ",
    "שלום",
    "مرحبا",
    "\u{fe0f}",
    "\u{e0041}",
    "ｗｉｄｅ",
    "\u{2028}",
    "\u{fff9}",
    "\u{1f3fb}",
    "%s%n",
    "'; rm -rf / #",
];

fn hostile(names: &[&str], second: u64) -> Value {
    let mut rows = Map::new();
    let mut host = process(812);
    host["name"] = json!(names[0]);
    rows.insert("process".into(), host);
    rows.insert("troubles".into(), json!([{"weight": names[0], "since_ms": 1, "text": names.concat()}]));
    for name in names {
        let mut one = backend("down", name, second, 0);
        one["address"] = json!(name);
        one["zone"] = json!(name);
        one["source"] = json!(name);
        one[*name] = json!(name);
        let mut of = target(name, (0, 1), second, 0);
        of["reason"] = json!(name);
        rows.insert(format!("target/{name}"), of);
        rows.insert(format!("backend/{name}/{name}"), one);
        rows.insert(
            format!("listener/{name}"),
            json!({"protocol": name, "addresses": [name, name], "targets": [name]}),
        );
    }
    Value::Object(rows)
}

/// That each column of the screen has one character, which does nothing but to be seen.
fn harmless(state: &mut TopState, size: (u16, u16), now: Tick) -> Result<(), TestCaseError> {
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).expect("a terminal");
    terminal.draw(|frame| view::draw(state, frame.area(), now, frame.buffer_mut())).expect("it is drawn");
    for cell in terminal.backend().buffer().content() {
        let sign = cell.symbol();
        prop_assert_eq!(sign.width(), 1, "{:?}", sign);
        prop_assert!(!sign.contains(steers), "{:?}", sign);
        prop_assert!(!state.look.is_ascii || sign.is_ascii(), "{:?}", sign);
    }
    Ok(())
}

#[test]
fn hostile_names_break_no_screen() {
    for look in [FULL, PLAIN] {
        for size in [(80, 24), (160, 50), (20, 6), (1, 1)] {
            let mut state = TopState::new(look, " --socket \u{1b}x".into(), at(0));
            for second in 0..2 {
                state.hear(frame("whole", second, &hostile(&HOSTILE, second), &[]), at(second));
            }
            for _ in 0..HOSTILE.len() {
                state.press(key(KeyCode::Char('j')));
                harmless(&mut state, size, at(1)).expect("harmless");
            }
            for letter in "\nkd\u{1b}\u{1b}kdnw1\u{1b}?n/".chars() {
                types(&mut state, &letter.to_string());
                harmless(&mut state, size, at(1)).expect("harmless");
            }
            types(&mut state, "\u{1b}");
            state.lose(HOSTILE.concat());
            harmless(&mut state, size, at(9)).expect("harmless");
            let text = view::whole(&state, 80, at(9));
            assert!(!text.contains(|sign| steers(sign) && sign != '\n'), "{text:?}");
            assert!(text.lines().all(|line| line.width() <= 80), "{text}");
        }
    }
}

/// What may happen.
#[derive(Clone, Debug)]
enum Happening {
    Key(KeyCode),
    Paste(String),
    Frame { is_whole: bool, pid: u32, rows: Vec<(String, u64)>, gone: Vec<String> },
    Lost(String),
    Said(String),
    Size(u16, u16),
    Time(u64),
}

fn happening() -> impl Strategy<Value = Happening> {
    let codes = vec![
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::PageUp,
        KeyCode::PageDown,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::Backspace,
        KeyCode::Tab,
    ];
    let letters =
        prop::sample::select("jksr/duxwpyn?123fq ".chars().collect::<Vec<_>>()).prop_map(KeyCode::Char);
    let name = || prop::sample::select(&HOSTILE[..]).prop_map(str::to_owned);
    let row = ("(target|listener|backend/web|backend/(x|y)|other)/(a|b|c)|target/(web|x)", 0..u64::MAX);
    prop_oneof![
        4 => prop_oneof![prop::sample::select(codes), letters, any::<char>().prop_map(KeyCode::Char)].prop_map(Happening::Key),
        1 => "\\PC{0,9}".prop_map(Happening::Paste),
        3 => (any::<bool>(), 0..3_u32, prop::collection::vec(row, 0..8), prop::collection::vec("(target/x|backend/web/[abc]|listener/a)", 0..3))
            .prop_map(|(is_whole, pid, rows, gone)| Happening::Frame { is_whole, pid, rows, gone }),
        1 => name().prop_map(Happening::Lost),
        1 => name().prop_map(Happening::Said),
        1 => (0..200_u16, 0..60_u16).prop_map(|(width, height)| Happening::Size(width, height)),
        1 => (0..10_u64).prop_map(Happening::Time),
    ]
}

proptest! {
    #[test]
    fn any_keys_and_frames_draw_a_harmless_screen(steps in prop::collection::vec(happening(), 1..60), is_plain: bool) {
        let mut state = TopState::new(if is_plain { PLAIN } else { FULL }, String::new(), at(0));
        let (mut size, mut second) = ((80, 24), 0);
        for step in steps {
            match step {
                Happening::Key(code) => drop(state.press(key(code))),
                Happening::Paste(text) => state.paste(&text),
                Happening::Frame { is_whole, pid, rows, gone } => {
                    let mut told = Map::new();
                    told.insert("process".into(), process(pid));
                    for (number, (name, count)) in rows.into_iter().enumerate() {
                        let mut row = if name.starts_with("target") { target("up", (1, 2), count, count / 2) } else { backend("down", HOSTILE[number], count, 1) };
                        row["since_ms"] = json!(count);
                        row["active"] = json!(count);
                        row["weight"] = json!(count);
                        told.insert(name, row);
                    }
                    let gone: Vec<&str> = gone.iter().map(String::as_str).collect();
                    state.hear(frame(if is_whole { "whole" } else { "changes" }, second, &Value::Object(told), &gone), at(second));
                }
                Happening::Lost(why) => state.lose(why),
                Happening::Said(said) => state.page.said = Some(said),
                Happening::Size(width, height) => size = (width, height),
                Happening::Time(seconds) => second += seconds,
            }
            harmless(&mut state, size, at(second))?;
        }
        prop_assert!(!view::whole(&state, size.0, at(second)).contains(|sign| steers(sign) && sign != '\n'));
    }
}
