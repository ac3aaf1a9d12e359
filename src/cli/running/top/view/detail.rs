//! One target or backend: all that is known of it.

use ratatui::text::Line;
use serde_json::{Map, Value};

use super::foot::mood_and_word;
use super::lines::{bold, line, plain, toned, wrapped};
use super::table::why;
use crate::cli::running::status_text::precise;
use crate::cli::running::top::by_hand::{HandAct, ProposedChange, quoted};
use crate::cli::running::top::figures::{percent, rate, sparkline};
use crate::cli::running::top::frames::Known;
use crate::cli::running::top::listing::ListPlace;
use crate::cli::running::top::look::Look;
use crate::cli::running::top::rows::{BackendSeen, TargetSeen, TimesSeen};
use crate::cli::running::top::state::TopState;
use crate::cli::running::top::track::{RATES, Track};

/// Columns of a name.
const NAME: usize = 16;

/// The lines of what is marked.
pub(super) fn detail(state: &TopState, place: &ListPlace, width: usize) -> Vec<Line<'static>> {
    let (look, known) = (state.look, state.known());
    let Some((mood, word)) = mood_and_word(known, place) else {
        return vec![line(format!(" {} is not there any more", look.text(&place.name())))];
    };
    let mut sheet = Sheet { look, width, lines: Vec::new() };
    let text = look.text(&format!("{} is {word}: {}", place.name(), why(known, place)));
    for (number, text) in wrapped(&text, width.saturating_sub(4)).into_iter().enumerate() {
        let shape = if number == 0 { look.shape(mood) } else { ' ' };
        sheet.lines.push(Line::from(vec![toned(look, mood, format!(" {shape} ")), bold(text)]));
    }
    sheet.lines.push(line(""));
    match place {
        ListPlace::Target(name) => {
            if let Some(target) = known.targets.get(name) {
                sheet.target(&target.own.row);
                sheet.flow(&target.own.track, target.own.row.times);
                sheet.counts(target.own.row.requests, target.own.row.errors);
                sheet.rest(&target.own.row.more);
            }
        }
        ListPlace::Backend(target, name) => {
            if let Some(backend) = known.backend(target, name) {
                sheet.backend(&backend.row);
                sheet.flow(&backend.track, backend.row.times);
                sheet.counts(backend.row.requests, backend.row.errors);
                sheet.rest(&backend.row.more);
            }
        }
    }
    sheet.commands(known, place, &state.words);
    sheet.lines
}

struct Sheet {
    look: Look,
    width: usize,
    lines: Vec<Line<'static>>,
}

impl Sheet {
    /// A fact, on as many lines as it takes.
    fn fact(&mut self, name: &str, value: &str) {
        let name = self.look.shortened(&self.look.text(name), NAME);
        let value = wrapped(&self.look.text(value), self.width.saturating_sub(NAME + 6));
        for (number, value) in value.into_iter().enumerate() {
            let name = if number == 0 { &*name } else { "" };
            self.lines.push(Line::from(vec![plain(format!("   {name:<NAME$}  ")), plain(value)]));
        }
    }

    fn target(&mut self, row: &TargetSeen) {
        self.fact("backends", &format!("{} of {} get requests", row.left, row.of));
        self.fact("speaks", &format!("{}, {}", row.protocol, row.balance));
        self.fact("in flight", &format!("{}; {} wait in the queue", row.active, row.waiting));
    }

    fn backend(&mut self, row: &BackendSeen) {
        self.fact("address", &row.address);
        if let Some(zone) = &row.zone {
            self.fact("zone", zone);
        }
        self.fact(
            "weight",
            &format!("{}, {} of new clients' requests", row.weight, percent(row.share / 100.0)),
        );
        self.fact("priority", &row.priority.to_string());
        self.fact("in flight", &row.active.to_string());
    }

    fn flow(&mut self, track: &Track, times: Option<TimesSeen>) {
        let look = self.look;
        match track.rate() {
            Some(per_second) => {
                let errors = match track.share().filter(|share| *share > 0.0) {
                    Some(share) => format!("{} of them errors", percent(share)),
                    None => "no errors".to_owned(),
                };
                self.fact("requests", &format!("{}/s, {errors}", rate(per_second)));
            }
            None => self.fact("requests", "too early for rates"),
        }
        let width = RATES.min(self.width.saturating_sub(NAME + 6));
        let line = sparkline(track.rates(), width, look.steps());
        let name = format!("last {width} s");
        self.lines.push(Line::from(vec![plain(format!("   {name:<NAME$}  ")), plain(line)]));
        let times = times.map_or(look.dash().to_owned(), |times| {
            format!("within {} (half of them) and {} (99 %)", precise(times.p50_ms), precise(times.p99_ms))
        });
        self.fact("first byte", &times);
    }

    fn counts(&mut self, requests: u64, errors: u64) {
        self.fact("in all", &format!("{requests} requests, {errors} of them errors"));
    }

    /// What this version has no words for.
    fn rest(&mut self, more: &Map<String, Value>) {
        for (name, value) in more {
            match value {
                Value::String(text) => self.fact(name, text),
                Value::Bool(_) | Value::Number(_) => self.fact(name, &value.to_string()),
                Value::Null | Value::Array(_) | Value::Object(_) => {}
            }
        }
    }

    fn commands(&mut self, known: &Known, place: &ListPlace, words: &str) {
        self.lines.push(line(""));
        let mut commands = vec![format!("evenkeel status {}{words}", quoted(&place.name()))];
        if let ListPlace::Backend(target, backend) = place {
            let command =
                |act| ProposedChange { target: target.clone(), backend: backend.clone(), act }.command(words);
            let weight = known.backend(target, backend).map(|backend| backend.row.weight);
            commands.extend(
                [HandAct::Drain, HandAct::Ready, HandAct::Down, HandAct::Weight(weight)].map(command),
            );
        }
        for (number, command) in commands.iter().enumerate() {
            self.fact(if number == 0 { "commands" } else { "" }, command);
        }
    }
}
