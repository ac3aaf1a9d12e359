//! The table: a line for each target and backend. What is least important goes first where there is no room.

use ratatui::style::Modifier;
use ratatui::text::Line;

use super::head::share;
use super::lines::{bold, plain, toned};
use crate::cli::running::status_text::{precise, span};
use crate::cli::running::top::figures::{count, rate, sparkline};
use crate::cli::running::top::frames::Known;
use crate::cli::running::top::listing::{ListPlace, mood_of};
use crate::cli::running::top::look::{Look, Mood};
use crate::cli::running::top::rows::TimesSeen;
use crate::cli::running::top::state::TopState;
use crate::cli::running::top::track::Track;

/// What stands before a name: the mark, the step of a backend, the shape.
const BEFORE: usize = 6;
/// Columns for the reason that nothing else takes.
const WHY: usize = 22;
/// The same where there is room for what is less important.
const WHY_WIDE: usize = 44;
/// From so many on it is told who says so, and since when.
const WHY_WHOLE: usize = 36;
/// The end of what is said of a target, which anybody understands without it.
const SAID_ANYWAY: &str = " get requests";

/// A column between name and reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    State,
    Rate,
    Spark,
    Errors,
    P50,
    P99,
    Active,
    Weight,
}

use Kind::{Active, Errors, P50, P99, Rate, Spark, State, Weight};

impl Kind {
    /// In this order they stand.
    const ALL: [Kind; 8] = [State, Rate, Spark, Errors, P50, P99, Active, Weight];
    /// In this order they are worth their room.
    const WORTH: [Kind; 8] = [State, Rate, Errors, P99, Active, P50, Weight, Spark];

    /// With the gap before it.
    fn width(self) -> usize {
        match self {
            State => 9,
            Rate | Errors => 6,
            P50 | P99 | Active | Weight => 7,
            Spark => 31,
        }
    }

    fn head(self) -> &'static str {
        match self {
            State => "STATE",
            Rate => "REQ/S",
            Spark => "LAST 30 S",
            Errors => "ERROR",
            P50 => "P50",
            P99 => "P99",
            Active => "ACTIVE",
            Weight => "WEIGHT",
        }
    }
}

/// The columns that are shown, and how wide names may be.
struct Columns {
    kinds: Vec<Kind>,
    name: usize,
    why: usize,
}

impl Columns {
    fn of(state: &TopState, width: usize) -> Columns {
        let longest = |place: &ListPlace| match place {
            ListPlace::Target(name) => state.look.text(name).chars().count().saturating_sub(2),
            ListPlace::Backend(_, name) => state.look.text(name).chars().count(),
        };
        // All of them: a table that is scrolled keeps its columns.
        let name = state.places.iter().map(longest).max().unwrap_or(0).max(8);
        let mut kinds: Vec<Kind> = Vec::new();
        let mut used = BEFORE + 1;
        for kind in Kind::WORTH {
            let is_extra = matches!(kind, P50 | Weight | Spark);
            let (why, least) =
                if is_extra { (WHY_WIDE, name.min(40)) } else { (WHY.min(width / 4), name.min(12)) };
            if used + kind.width() + least + why > width {
                break;
            }
            used += kind.width();
            kinds.push(kind);
        }
        let why = WHY.min(width / 4);
        let name = name.min(width.saturating_sub(used + why).max(6)).min(40);
        kinds.sort_by_key(|kind| Kind::ALL.iter().position(|other| other == kind));
        Columns { kinds, name, why: width.saturating_sub(used + name + 1) }
    }
}

/// The names of the columns, and the lines of these places.
pub(super) fn table(state: &TopState, places: &[ListPlace], width: usize) -> Vec<Line<'static>> {
    let columns = Columns::of(state, width);
    let mut lines = vec![heads(state.look, &columns, width)];
    lines.extend(places.iter().map(|place| row(state, place, &columns)));
    lines
}

fn heads(look: Look, columns: &Columns, width: usize) -> Line<'static> {
    let mut text = format!("   {:<1$}", "NAME", columns.name + BEFORE - 3);
    for kind in &columns.kinds {
        let width = kind.width();
        text += &match kind {
            State | Spark => format!(" {:<1$}", kind.head(), width - 1),
            _ => format!("{:>width$}", kind.head()),
        };
    }
    text += "  WHY";
    Line::from(bold(look.begun(&text, width)))
}

/// What is known of a line.
struct Seen<'k> {
    name: &'k str,
    mood: Mood,
    word: String,
    why: String,
    track: &'k Track,
    times: Option<TimesSeen>,
    active: u64,
    weight: Option<u64>,
}

impl<'k> Seen<'k> {
    /// `room`: columns for the reason.
    fn of(known: &'k Known, place: &'k ListPlace, room: usize) -> Option<Seen<'k>> {
        match place {
            ListPlace::Target(name) => {
                let target = known.targets.get(name)?;
                let row = &target.own.row;
                let mood = mood_of(target);
                let word = if mood == Mood::Hurt && row.state == "up" {
                    format!("{}/{} up", row.left, row.of)
                } else {
                    row.state.clone()
                };
                let queue = if row.waiting > 0 {
                    format!("; {} wait in the queue", row.waiting)
                } else {
                    String::new()
                };
                let is_short = row.reason.len() + queue.len() > room;
                let short = row.reason.strip_suffix(SAID_ANYWAY).filter(|_| is_short);
                let why = format!("{}{queue}", short.unwrap_or(&row.reason));
                Some(Seen {
                    name,
                    mood,
                    word,
                    why,
                    track: &target.own.track,
                    times: row.times,
                    active: row.active,
                    weight: None,
                })
            }
            ListPlace::Backend(target, name) => {
                let backend = known.backend(target, name)?;
                let row = &backend.row;
                Some(Seen {
                    name,
                    mood: Mood::of(&row.state),
                    word: row.state.clone(),
                    why: match &*row.state {
                        "up" => String::new(),
                        _ if room < WHY_WHOLE => row.reason.clone(),
                        _ => why(known, place),
                    },
                    track: &backend.track,
                    times: row.times,
                    active: row.active,
                    weight: Some(row.weight),
                })
            }
        }
    }
}

/// The reason of a state, who says so, and since when.
pub(super) fn why(known: &Known, place: &ListPlace) -> String {
    match place {
        ListPlace::Target(name) => known.targets.get(name).map_or(String::new(), |target| {
            let row = &target.own.row;
            format!("{}, for {}", row.reason, span(known.age_ms(row.since_ms)))
        }),
        ListPlace::Backend(target, name) => known.backend(target, name).map_or(String::new(), |backend| {
            let row = &backend.row;
            let by = if row.source.is_empty() { String::new() } else { format!(" ({})", row.source) };
            format!("{}{by}, for {}", row.reason, span(known.age_ms(row.since_ms)))
        }),
    }
}

fn row(state: &TopState, place: &ListPlace, columns: &Columns) -> Line<'static> {
    let (look, known) = (state.look, state.known());
    let is_marked = state.page.marked.as_ref() == Some(place);
    let mark = if is_marked { ">" } else { " " };
    let Some(seen) = Seen::of(known, place, columns.why) else { return Line::from(plain(mark)) };
    let is_target = matches!(place, ListPlace::Target(_));
    let (step, room) = if is_target { (" ", columns.name + 2) } else { ("   ", columns.name) };
    let name = look.shortened(&look.text(seen.name), room);
    let name = format!("{name:<room$}");
    let mut parts = vec![
        plain(format!("{mark}{step}")),
        toned(look, seen.mood, format!("{} ", look.shape(seen.mood))),
        if is_target { bold(name) } else { plain(name) },
    ];
    let figure = |text: Option<String>| text.unwrap_or_else(|| look.dash().to_owned());
    for kind in &columns.kinds {
        let width = kind.width();
        let text = match kind {
            State => {
                let word = look.begun(&look.text(&seen.word), width - 1);
                parts.push(toned(look, seen.mood, format!(" {word:<0$}", width - 1)));
                continue;
            }
            Spark => {
                parts.push(plain(format!(" {}", sparkline(seen.track.rates(), width - 1, look.steps()))));
                continue;
            }
            Rate => figure(seen.track.rate().map(rate)),
            Errors => {
                let is_bad = seen.track.errors() > 0.0;
                let text = format!("{:>width$}", share(look, seen.track));
                parts.push(if is_bad { toned(look, Mood::Down, text) } else { plain(text) });
                continue;
            }
            P50 => figure(seen.times.map(|times| precise(times.p50_ms))),
            P99 => figure(seen.times.map(|times| precise(times.p99_ms))),
            Active => count(seen.active),
            Weight => seen.weight.map_or(String::new(), count),
        };
        let text = look.begun(&text, width - 1);
        parts.push(plain(format!("{text:>width$}")));
    }
    parts.push(plain(format!("  {}", look.begun(&look.text(&seen.why), columns.why))));
    let line = Line::from(parts);
    if is_marked { line.patch_style(Modifier::REVERSED) } else { line }
}
