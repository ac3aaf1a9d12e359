//! What is shown, as a pure function of the state: lines of text, put onto a buffer.

mod detail;
mod foot;
mod head;
mod help;
mod lines;
mod table;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::Line;

use super::keys::PageMode;
use super::state::TopState;
use crate::tick::Tick;

/// From so many lines on what is marked may be told in full below a table that leaves room for it.
const TALL: usize = 30;

/// The parts of a screen, from above; between them is the middle.
struct Scene {
    head: Vec<Line<'static>>,
    /// Lines for the middle.
    room: usize,
    /// All of what is marked, where there is room.
    detail: Vec<Line<'static>>,
    foot: Vec<Line<'static>>,
}

impl Scene {
    fn of(state: &TopState, width: usize, height: usize, now: Tick) -> Scene {
        let mut head = head::head(state, width, height, now);
        let mut foot = foot::foot(state, width, true);
        let mut detail = match &state.page.marked {
            Some(place)
                if height >= TALL && state.page.opened.is_none() && state.page.mode != PageMode::Help =>
            {
                detail::detail(state, place, width)
            }
            _ => Vec::new(),
        };
        // Beside the table its heads, and a line above and below.
        let whole = head.len() + state.places.len() + 3 + detail.len() + foot.len();
        if detail.is_empty() || whole > height {
            detail.clear();
            foot = foot::foot(state, width, false);
        }
        // What is asked now is seen in any case, then the head.
        foot.truncate(height);
        head.truncate(height - foot.len());
        let room = height - foot.len() - head.len() - detail.len();
        Scene { head, room, detail, foot }
    }
}

/// Makes the state fit a screen, and draws it.
pub(super) fn draw(state: &mut TopState, area: Rect, now: Tick, onto: &mut Buffer) {
    let (width, height) = (usize::from(area.width), usize::from(area.height));
    let marked = state.page.marked.clone();
    let mut scene = Scene::of(state, width, height, now);
    // The heads of the columns are above the lines.
    state.page.settle(&state.places, scene.room.saturating_sub(1));
    if marked != state.page.marked {
        scene = Scene::of(state, width, height, now);
        state.page.settle(&state.places, scene.room.saturating_sub(1));
    }
    let mut middle = middle(state, width, scene.room);
    middle.resize(scene.room, Line::default());
    let is_old = state.silence(now).is_some();
    let middle = middle.into_iter().map(|line| if is_old { line.patch_style(Modifier::DIM) } else { line });
    let lines = scene.head.into_iter().chain(middle).chain(scene.detail).chain(scene.foot);
    for (y, line) in (0..area.height).zip(lines) {
        lines::paint(state.look, &line, area, y, onto);
    }
}

fn middle(state: &mut TopState, width: usize, room: usize) -> Vec<Line<'static>> {
    if state.page.mode == PageMode::Help {
        return help::help();
    }
    if let (Some(above), Some(place)) = (state.page.opened, state.page.marked.clone()) {
        let lines = detail::detail(state, &place, width);
        let above = above.min(lines.len().saturating_sub(room));
        state.page.opened = Some(above);
        return lines.into_iter().skip(above).collect();
    }
    let first = state.page.first;
    let last = state.places.len().min(first + room.saturating_sub(1));
    let shown = state.places.get(first..last).unwrap_or_default();
    let mut lines = table::table(state, shown, width);
    if state.places.is_empty() && state.known().at_ms > 0 {
        let is_filtered = !state.page.wanted.filter.is_empty();
        lines.push(lines::line(if is_filtered {
            "   nothing has this text; Esc clears it"
        } else {
            "   there are no targets"
        }));
    }
    lines
}

/// All of it as text, with every line of the list, for who has no terminal.
pub(super) fn whole(state: &TopState, width: u16, now: Tick) -> String {
    let width = usize::from(width);
    let mut all = head::head(state, width, usize::MAX, now);
    all.extend(table::table(state, &state.places, width));
    let mut text = String::new();
    for line in all {
        let line: String = line.spans.iter().map(|span| state.look.text(&span.content)).collect();
        text += &state.look.begun(line.trim_end(), width);
        text.push('\n');
    }
    text
}
