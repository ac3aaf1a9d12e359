//! What is shown of what is told, and what keys do.

mod keys;
mod random;
mod screens;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Map, Value, json};

use super::frames::ToldRows;
use super::keys::PageWish;
use super::look::Look;
use super::state::TopState;
use super::view;
use crate::tick::Tick;

const FULL: Look = Look { has_colours: true, is_ascii: false };
const PLAIN: Look = Look { has_colours: false, is_ascii: true };
/// When frames come, in milliseconds since 1970.
const BEGUN: u64 = 1_700_000_000_000;

/// A moment, in seconds.
fn at(seconds: u64) -> Tick {
    Tick(seconds * 1_000_000_000)
}

/// A frame of these rows, so many seconds after the first one.
fn frame(kind: &str, second: u64, rows: &Value, gone: &[&str]) -> ToldRows {
    let told = json!({"at_ms": BEGUN + second * 1_000, "up_ms": second * 1_000, "rows": rows, "gone": gone});
    ToldRows::of(kind, &told.to_string()).expect("a frame")
}

fn backend(state: &str, reason: &str, requests: u64, errors: u64) -> Value {
    let source = if state == "draining" { "operator" } else { "probe" };
    json!({
        "state": state, "source": source, "reason": reason, "since_ms": BEGUN - 12_000, "address": "10.0.0.1:8001", "zone": null,
        "weight": 1, "share": 50.0, "priority": 0, "active": 2, "requests": requests, "errors": errors,
        "times": {"p50_ms": 0.4, "p99_ms": 31.0}, "hue": "green",
    })
}

fn target(state: &str, (left, of): (u64, u64), requests: u64, errors: u64) -> Value {
    json!({
        "state": state, "reason": format!("{left} of {of} backends get requests"), "since_ms": BEGUN - 60_000, "protocol": "http",
        "balance": "round_robin", "left": left, "of": of, "active": 4, "waiting": 0, "requests": requests, "errors": errors,
        "times": {"p50_ms": 0.4, "p99_ms": 31.0},
    })
}

fn process(pid: u32) -> Value {
    json!({"version": "0.1.0", "name": "edge-1", "pid": pid, "config": "/etc/e.yaml", "config_number": 4, "workers": 2,
           "started_ms": BEGUN - 3_600_000, "blocked": 0, "connections": {"open": 12, "limit": 512}})
}

/// Two targets in good times, `second` seconds after the first frame.
fn calm(second: u64) -> Value {
    json!({
        "process": process(812), "troubles": [], "events": {"of": "another version"}, "history/x": [1, 2],
        "listener/web": {"protocol": "http", "addresses": ["0.0.0.0:80", "[::]:80"], "targets": ["web"], "connections": 12,
                         "requests": 35 * second, "errors": 0},
        "target/web": target("up", (3, 3), 35 * second, 0),
        "backend/web/b1": backend("up", "status 200", 20 * second, 0),
        "backend/web/b2": backend("up", "status 200", 15 * second, 0),
        "backend/web/b3": backend("up", "status 200", 0, 0),
        "target/db": target("up", (1, 1), 0, 0),
        "backend/db/10.0.0.1:5432": backend("up", "connected", 0, 0),
    })
}

/// The same in an outage.
fn outage(second: u64) -> Value {
    let mut rows = calm(second);
    rows["troubles"] = json!([
        {"weight": "down", "since_ms": BEGUN - 12_000, "row": "target/db", "text": "db has no backend left: connection refused"},
        {"weight": "hurt", "since_ms": BEGUN - 12_000, "row": "backend/web/b2", "text": "web/b2 is down: no answer within 2s"},
        {"weight": "note", "since_ms": 0, "row": "target/web", "text": "b3 of web taken out by hand"},
    ]);
    rows["target/web"] = target("up", (1, 3), 35 * second, 5 * second);
    rows["backend/web/b1"] = backend("up", "status 200", 35 * second, 5 * second);
    rows["backend/web/b2"] =
        backend("down", "no answer within 2s to GET /health of 10.0.0.2:8001 (3 in a row)", 0, 0);
    rows["backend/web/b3"] = backend("draining", "drained by hand (uid 0)", 0, 0);
    rows["target/db"] = target("down", (0, 1), 0, 0);
    rows["backend/db/10.0.0.1:5432"] = backend("down", "connection refused", 0, 0);
    rows
}

/// A state that has heard two frames of these rows.
fn heard(look: Look, rows: fn(u64) -> Value) -> TopState {
    let mut state = TopState::new(look, String::new(), at(0));
    for second in 0..2 {
        state.hear(frame("whole", second, &rows(second), &[]), at(second));
    }
    state
}

/// The screen, line by line.
fn screen(state: &mut TopState, (width, height): (u16, u16), now: Tick) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal.draw(|frame| view::draw(state, frame.area(), now, frame.buffer_mut())).expect("it is drawn");
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(line).collect()
}

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

/// Types these letters on a screen of 80 × 24.
fn types(state: &mut TopState, letters: &str) -> Option<PageWish> {
    let mut wish = None;
    for letter in letters.chars() {
        let code = match letter {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            '\u{8}' => KeyCode::Backspace,
            letter => KeyCode::Char(letter),
        };
        wish = state.press(key(code));
        screen(state, (80, 24), at(1));
    }
    wish
}

/// So many backends of one target.
fn many(count: usize, second: u64) -> Value {
    let mut rows = Map::new();
    rows.insert("process".into(), process(812));
    rows.insert("target/web".into(), target("up", (999, 1_000), 1_000 * second, 0));
    for number in 0..count {
        let number = u64::try_from(number).expect("few");
        rows.insert(format!("backend/web/b{number:03}"), backend("up", "", number * second, 0));
    }
    Value::Object(rows)
}
