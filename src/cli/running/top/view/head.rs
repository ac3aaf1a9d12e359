//! The head of the screen: which process it is, whether it is heard, and whether all is well.

use ratatui::text::Line;

use super::lines::{bold, line, plain, toned};
use crate::cli::running::status_text::span;
use crate::cli::running::top::figures::{count, percent, rate};
use crate::cli::running::top::frames::{Followed, Known};
use crate::cli::running::top::look::{Look, Mood};
use crate::cli::running::top::rows::ListenerSeen;
use crate::cli::running::top::state::TopState;
use crate::cli::running::top::track::Track;
use crate::tick::Tick;

/// From so many lines on there is room for more than the worst.
const TALL: usize = 30;
/// Troubles beside the worst that are shown there, and listeners.
const OTHERS: usize = 4;
const LISTENERS: usize = 6;

/// The lines above the table.
pub(super) fn head(state: &TopState, width: usize, height: usize, now: Tick) -> Vec<Line<'static>> {
    let mut lines = vec![who(state, width, now)];
    lines.extend(verdict(state, width, height, now));
    if height >= TALL {
        lines.push(line(""));
        lines.extend(listeners(state.look, state.known(), width));
    }
    lines.push(line(""));
    lines
}

fn who(state: &TopState, width: usize, now: Tick) -> Line<'static> {
    let (look, known) = (state.look, state.known());
    let live = match (state.silence(now), state.page.is_held) {
        (Some(silence), _) => toned(
            look,
            Mood::Down,
            format!("{} no news for {}s", look.shape(Mood::Unknown), silence.as_secs()),
        ),
        (None, true) => bold("= held, Space goes on"),
        (None, false) => toned(look, Mood::Well, format!("{} live", look.shape(Mood::Well))),
    };
    let process = &known.process;
    let facts = [
        process.version.clone(),
        format!("config {}", process.config_number),
        format!("up {}", span(known.age_ms(process.started_ms))),
        format!("{} connections", process.connections.open),
    ];
    let facts = if known.at_ms == 0 { "connecting".to_owned() } else { facts.join(look.dot()) };
    let room = width.saturating_sub(live.content.chars().count() + 2);
    let name =
        look.shortened(&look.text(&process.name), room.saturating_sub(facts.chars().count() + 12).max(8));
    let left = look.begun(&look.text(&format!("evenkeel {name}  {facts}")), room);
    let gap = (room + 1).saturating_sub(left.chars().count());
    Line::from(vec![plain(" "), bold(left), plain(" ".repeat(gap)), live])
}

fn verdict(state: &TopState, width: usize, height: usize, now: Tick) -> Vec<Line<'static>> {
    let (look, known) = (state.look, state.known());
    let says = |mood, text: &str| {
        let text = format!(" {} {text}", look.shape(mood));
        Line::from(toned(look, mood, look.begun(&look.text(&text), width)))
    };
    if state.silence(now).is_some() {
        let why = state.lost.as_deref().map_or(String::new(), |why| format!(" ({why})"));
        return vec![says(
            Mood::Unknown,
            &format!("Nothing is heard from evenkeel any more; trying again{why}"),
        )];
    }
    let Some(worst) = known.troubles.first() else {
        return vec![says(Mood::Well, &all_is_well(known, look))];
    };
    let others = if height >= TALL { &known.troubles[1..known.troubles.len().min(1 + OTHERS)] } else { &[] };
    let left = known.troubles.len() - 1 - others.len();
    let since =
        |ms| if ms == 0 { String::new() } else { format!("{}for {}", look.dot(), span(known.age_ms(ms))) };
    let more = if left == 0 { String::new() } else { format!("{}and {left} more", look.dot()) };
    // What it is gives way to since when it is.
    let end = format!("{}{more}", since(worst.since_ms));
    let text = look.begun(&look.text(&worst.text), width.saturating_sub(end.chars().count() + 3));
    let mut lines = vec![says(Mood::of(&worst.weight), &format!("{text}{end}"))];
    lines.extend(
        others.iter().map(|one| says(Mood::of(&one.weight), &format!("{}{}", one.text, since(one.since_ms)))),
    );
    lines
}

fn all_is_well(known: &Known, look: Look) -> String {
    let all = |of: fn(&super::super::rows::TargetSeen) -> u64| -> u64 {
        known.targets.values().map(|target| of(&target.own.row)).sum()
    };
    let rates: Vec<f64> = known.targets.values().filter_map(|target| target.own.track.rate()).collect();
    let (left, of) = (all(|row| row.left), all(|row| row.of));
    let rate = if rates.is_empty() { look.dash().to_owned() } else { rate(rates.iter().sum()) };
    format!("All is well{dot}{left} of {of} backends get requests{dot}{rate} requests/s", dot = look.dot())
}

fn listeners(look: Look, known: &Known, width: usize) -> Vec<Line<'static>> {
    if known.listeners.is_empty() {
        return Vec::new();
    }
    let (name, address) = if width < 110 { (14, 21) } else { (24, 30) };
    let heads = format!(
        "   {:<name$} {:<6} {:<address$} {:>6} {:>6} {:>6}  TO",
        "LISTENER", "SPEAKS", "ADDRESS", "OPEN", "REQ/S", "ERROR"
    );
    let mut lines = vec![Line::from(bold(look.begun(&heads, width)))];
    let rows = known.listeners.iter().take(LISTENERS);
    lines.extend(rows.map(|(own, of)| line(look.begun(&listener(look, own, of, (name, address)), width))));
    let left = known.listeners.len().saturating_sub(LISTENERS);
    if left > 0 {
        lines.push(line(format!("   and {left} more")));
    }
    lines
}

fn listener(look: Look, own: &str, of: &Followed<ListenerSeen>, (name, room): (usize, usize)) -> String {
    let ListenerSeen { protocol, addresses, targets, connections, .. } = &of.row;
    let address = match &addresses[..] {
        [] => String::new(),
        [only] => look.text(only),
        [first, rest @ ..] => format!("{} +{}", look.text(first), rest.len()),
    };
    let text = |text: &str, width| look.shortened(&look.text(text), width);
    let rate = of.track.rate().map_or(look.dash().to_owned(), rate);
    let to: Vec<String> = targets.iter().map(|target| look.text(target)).collect();
    format!(
        "   {:<name$} {:<6} {:<room$} {:>6} {rate:>6} {:>6}  {}",
        text(own, name),
        text(protocol, 6),
        look.shortened(&address, room),
        count(*connections),
        share(look, &of.track),
        to.join(", ")
    )
}

/// The part of the requests that are errors.
pub(super) fn share(look: Look, track: &Track) -> String {
    track.share().map_or(look.dash().to_owned(), percent)
}
