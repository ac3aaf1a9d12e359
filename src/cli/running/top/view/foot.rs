//! The foot of the screen: what is marked, in full, and what the keys do now.

use ratatui::text::Line;

use super::lines::{bold, line, plain, toned, wrapped};
use super::table::why;
use crate::cli::running::top::frames::Known;
use crate::cli::running::top::keys::PageMode;
use crate::cli::running::top::listing::{ListPlace, mood_of};
use crate::cli::running::top::look::Mood;
use crate::cli::running::top::state::TopState;

/// Lines for what is marked.
const ABOUT: usize = 3;

/// The lines below the table. `is_told`: what is marked is told elsewhere.
pub(super) fn foot(state: &TopState, width: usize, is_told: bool) -> Vec<Line<'static>> {
    let look = state.look;
    let text = |text: &str| -> Vec<Line<'static>> {
        let lines = wrapped(&look.text(text), width.saturating_sub(2));
        lines.into_iter().map(|text| Line::from(bold(format!(" {text}")))).collect()
    };
    match &state.page.mode {
        PageMode::Confirm(change) => {
            let mut lines = text(&change.question(state.latest()));
            lines.extend(
                wrapped(&look.text(&change.command(&state.words)), width.saturating_sub(4))
                    .into_iter()
                    .map(|text| line(format!("   {text}"))),
            );
            lines.push(Line::from(vec![bold(" y"), plain(" does it   "), bold("n"), plain(" does nothing")]));
            lines
        }
        PageMode::Weight { target, backend, typed } => {
            let mut lines = text(&format!("weight of {target}/{backend}: {typed}_"));
            lines.push(line(" 0 to 256, then Enter   f: what the file says   Esc: nothing"));
            lines
        }
        PageMode::Filter => {
            let filter = look.text(&state.page.wanted.filter);
            vec![Line::from(vec![bold(format!(" /{filter}_")), plain("   Enter keeps it, Esc clears it")])]
        }
        PageMode::Help => vec![Line::from(vec![bold(" Any key"), plain(" goes back")])],
        PageMode::Browse => {
            let mut lines = if is_told { Vec::new() } else { about(state, width) };
            if let Some(said) = &state.page.said {
                lines = text(said);
                lines.truncate(ABOUT);
            }
            lines.push(keys(state, width));
            lines
        }
    }
}

/// What is marked, with its reason in full.
fn about(state: &TopState, width: usize) -> Vec<Line<'static>> {
    let (look, known) = (state.look, state.known());
    let Some(place) = state.page.marked.as_ref().filter(|_| state.page.opened.is_none()) else {
        return Vec::new();
    };
    let Some((mood, word)) = mood_and_word(known, place) else { return Vec::new() };
    let text = look.text(&format!("{} is {word}: {}", place.name(), why(known, place)));
    let mut lines = wrapped(&text, width.saturating_sub(4));
    lines.truncate(ABOUT);
    let mut lines: Vec<Line<'static>> =
        lines.into_iter().map(|text| Line::from(plain(format!("   {text}")))).collect();
    if let Some(first) = lines.first_mut() {
        let text = first.spans[0].content.chars().skip(3).collect::<String>();
        *first = Line::from(vec![toned(look, mood, format!(" {} ", look.shape(mood))), plain(text)]);
    }
    lines
}

/// How the state of a place is told.
pub(super) fn mood_and_word<'k>(known: &'k Known, place: &ListPlace) -> Option<(Mood, &'k str)> {
    match place {
        ListPlace::Target(name) => {
            known.targets.get(name).map(|target| (mood_of(target), &*target.own.row.state))
        }
        ListPlace::Backend(target, name) => {
            let state = &*known.backend(target, name)?.row.state;
            Some((Mood::of(state), state))
        }
    }
}

fn keys(state: &TopState, width: usize) -> Line<'static> {
    let page = &state.page;
    let sort =
        format!("sort: {}{}", page.wanted.by.name(), if page.wanted.is_reversed { " (r)" } else { "" });
    let filter = match &*page.wanted.filter {
        "" => "filter".to_owned(),
        filter => format!("filter: {}", state.look.begun(&state.look.text(filter), 16)),
    };
    let (enter, open) = if page.opened.is_some() { ("Esc", "back") } else { ("Enter", "open") };
    let all = [
        ("?", "help"),
        ("q", "end"),
        (enter, open),
        ("s", &*sort),
        ("/", &*filter),
        ("d", "drain"),
        ("u", "ready"),
        ("x", "down"),
        ("w", "weight"),
        ("p", "hold"),
    ];
    let mut parts = Vec::new();
    let mut used = 0;
    for (key, does) in all {
        used += key.chars().count() + does.chars().count() + 3;
        if used > width {
            break;
        }
        parts.extend([bold(format!(" {key}")), plain(format!(" {does} "))]);
    }
    Line::from(parts)
}
