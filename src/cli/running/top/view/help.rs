//! What the keys do.

use ratatui::text::Line;

use super::lines::{bold, line, plain};

const KEYS: &[(&str, &str)] = &[
    ("Up Down, k j", "one line up or down"),
    ("PgUp PgDn", "one screen up or down"),
    ("Home End", "the first and the last line"),
    ("Enter, Esc", "all that is known of what is marked, and back"),
    ("s", "sort by the next: name, req/s, errors, p99, in flight, state"),
    ("r", "the other way round"),
    ("/", "only what has this text in its name, state or reason"),
    ("d", "drain: it keeps its own clients, and what is under way"),
    ("x", "down: it gets no new request at all"),
    ("u", "ready: takes back what was set by hand"),
    ("w", "its weight, 0 to 256"),
    ("", "these four are asked for once more before they are done"),
    ("Space, p", "hold the picture, and go on"),
    ("Ctrl-L", "draw all of it anew"),
    ("q, Ctrl-C", "the end"),
];

/// The lines of it.
pub(super) fn help() -> Vec<Line<'static>> {
    let keys = KEYS.iter().map(|(key, does)| Line::from(vec![bold(format!("   {key:<14}")), plain(*does)]));
    let mut lines: Vec<Line<'static>> = keys.collect();
    lines.extend([
        line(""),
        line("   An error of a target is an answer from 500 on, one of a backend an attempt"),
        line("   that failed by its fault. p50 and p99 are times until the first byte."),
    ]);
    lines
}
