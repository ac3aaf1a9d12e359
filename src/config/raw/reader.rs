//! Reads single values out of nodes: right type, right range, or a problem that says what was found and what
//! belongs there. Every function returns `None` after it reported.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use super::kind::{Key, Shape, is_inside};
pub(in crate::config) use super::said::{choose, out_of_range, subject};
pub(super) use super::said::{found, is_off, is_on};
use super::said::{in_range, variable};
use super::shape::{home, meant};
use super::unfit;
use super::unknown::{self, Trail};
use super::vocabulary::later;
use crate::config::edit::Fix;
use crate::config::error::{Wrong, one_of, quoted};
use crate::config::files::FileRole;
use crate::config::files::fence::PathUse;
use crate::config::hidden;
use crate::config::origin::{Origin, Place, Spot, Written};
use crate::config::report::Report;
use crate::config::units;
use crate::config::yaml::{Entry, Node, Typed, integer, truth};

/// Walks nodes and collects problems.
pub(in crate::config) struct Reader<'r> {
    /// Where problems go, and the files that are read.
    pub(super) report: &'r mut Report,
    /// The mappings that the walk is in, outermost first: their paths, and where their first keys stand.
    trail: Trail,
    /// Whether the target that the walk is in speaks HTTP.
    is_http: bool,
}

/// The entries of one mapping whose keys have been checked.
pub(super) struct Section<'n> {
    entries: Vec<&'n Entry>,
    known: &'static [Key],
    misspelt: Vec<&'static str>,
}

impl<'n> Section<'n> {
    /// The entry of a known key.
    pub(super) fn find(&self, key: &'static str) -> Option<&'n Entry> {
        debug_assert!(self.known.iter().any(|known| known.name == key), "`{key}` is missing in its shape");
        self.all(key).next()
    }

    /// The entries of a known key, one in each file at most.
    pub(super) fn all(&self, key: &'static str) -> impl Iterator<Item = &'n Entry> {
        self.entries.iter().copied().filter(move |entry| entry.key == key)
    }

    /// Goes on with what another file says in the same place. Of keys that are not among those that `add_up` the second is reported.
    pub(super) fn join(&mut self, other: Section<'n>, add_up: &[&str], reader: &mut Reader<'_>) {
        for entry in other.entries {
            let first = self.entries.iter().find(|first| first.key == entry.key);
            match first.filter(|_| !add_up.contains(&entry.key.as_str())) {
                Some(first) => reader.refuse_second(entry, first),
                None => self.entries.push(entry),
            }
        }
        self.misspelt.extend(other.misspelt);
    }

    /// The entry of a key that not all mappings of this kind know.
    pub(super) fn known(&self, key: &'static str) -> Option<&'n Entry> {
        if self.known.iter().any(|known| known.name == key) { self.find(key) } else { None }
    }

    /// All entries, known or not.
    pub(super) fn entries(&self) -> &[&'n Entry] {
        &self.entries
    }

    /// An unknown key was reported that probably stands for `key`, so nothing is to be said about its absence.
    pub(super) fn is_misspelt(&self, key: &str) -> bool {
        self.misspelt.contains(&key)
    }
}

impl<'r> Reader<'r> {
    /// A reader of the files that `report` is about.
    pub(in crate::config) fn new(report: &'r mut Report) -> Self {
        Reader { report, trail: Vec::new(), is_http: true }
    }

    /// A path as it is written there, counted from the folder of that file.
    pub(super) fn path(&mut self, text: &str, using: PathUse, spot: &Spot) -> PathBuf {
        self.named_path(text, using, spot).0
    }

    /// Beside it, whether it may be named.
    pub(super) fn named_path(&mut self, text: &str, using: PathUse, spot: &Spot) -> (PathBuf, bool) {
        let file = spot.place.map_or(0, |place| place.file);
        let path = self.report.source(file).folder().join(text);
        let is_fine = self.report.names(&path, using, spot.place);
        (path, is_fine)
    }

    /// The same of a file that is read when the config is.
    pub(super) fn read_path(&mut self, text: &str, using: PathUse, spot: &Spot) -> PathBuf {
        let (path, is_fine) = self.named_path(text, using, spot);
        if is_fine {
            self.report.files.add(&path, FileRole::Named);
        }
        path
    }

    /// Begins with a target, which speaks HTTP or does not.
    pub(super) fn enter(&mut self, is_http: bool) {
        self.is_http = is_http;
    }

    /// What a backend's address without a scheme probably means.
    pub(super) fn usual_scheme(&self) -> &'static str {
        if self.is_http { "http" } else { "tcp" }
    }

    /// Where a value stands; a value that is not there stands at its key.
    pub(super) fn spot(&self, entry: &Entry) -> Spot {
        let spot = self.spot_of(&entry.node);
        if entry.node.is_null() { Spot { place: Some(entry.key_place), ..spot } } else { spot }
    }

    /// Where `width` characters stand in the text of a value, counted from 0. The whole value where that can't be
    /// told: it came from the environment, is written with escapes, or goes over several lines.
    pub(super) fn spot_inside(&self, node: &Node, start: usize, width: usize) -> Spot {
        let spot = self.spot_of(node);
        let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let length = node.text().map_or(0, |text| small(text.chars().count()));
        let quotes = |place: Place| place.width.checked_sub(length).filter(|extra| matches!(extra, 0 | 2));
        let inside = |place: Place| {
            let column = place.column + quotes(place)? / 2 + small(start);
            Some(Place { column, width: small(width), ..place })
        };
        let plain = node.variable().is_none();
        let place = spot.place.map(|place| if plain { inside(place).unwrap_or(place) } else { place });
        Spot { place, ..spot }
    }

    /// Where a key stands.
    pub(super) fn key_spot(&self, entry: &Entry) -> Spot {
        let line = entry.key_place.line as usize;
        Spot {
            origin: Origin::File { file: self.report.name(entry.key_place), line },
            place: Some(entry.key_place),
        }
    }

    /// Where a node was put: what is wrong with it beside others is wrong there, and not where its alias leads.
    pub(super) fn spot_of_use(&self, node: &Node) -> Spot {
        Spot { place: Some(node.used_at()), ..self.spot_of(node) }
    }

    /// Where a node stands.
    pub(super) fn spot_of(&self, node: &Node) -> Spot {
        let (file, line) = (self.report.name(node.place), node.place.line as usize);
        let origin = match node.variable() {
            Some(variable) => Origin::Environment { variable: variable.to_owned(), file, line },
            None => Origin::File { file, line },
        };
        Spot { origin, place: Some(node.place) }
    }

    /// The mapping behind `node`, every key of which is one of `shape`. An empty value is a mapping without
    /// entries: what is left when all lines below a key are comments.
    pub(super) fn section<'n>(
        &mut self,
        subject: &str,
        node: &'n Node,
        shape: &Shape,
    ) -> Option<Section<'n>> {
        let entries: &[Entry] = match node.typed() {
            Typed::Null => &[],
            Typed::Map(entries) => entries,
            Typed::Bool(_) | Typed::Integer(_) | Typed::Float(_) | Typed::Text(_) | Typed::List(_) => {
                let spot = self.spot_of(node);
                let keys = one_of(shape.names());
                let wrong =
                    Wrong::new(found(node), format!("a mapping, `key: value`, with keys such as {keys}"));
                self.report.wrong(&spot, subject, wrong);
                return None;
            }
        };
        // The top levels of all files stand beside one another.
        let is_over = |path: &str| !path.is_empty() && !is_inside(shape.path, path);
        while self.trail.last().is_some_and(|(path, _)| is_over(path)) {
            self.trail.pop();
        }
        self.trail.push((shape.path, entries.first().map(|entry| entry.key_place)));
        let is_ours = |entry: &&Entry| {
            shape.has(&entry.key) || (shape.path.is_empty() && unknown::is_extension(&entry.key))
        };
        let unknown = entries.iter().filter(|entry| !is_ours(entry));
        let misspelt = unknown.filter_map(|entry| self.refuse_key(entry, entries, shape)).collect();
        Some(Section { entries: entries.iter().collect(), known: shape.keys, misspelt })
    }

    /// Reports an unknown key and returns the one that was probably meant.
    fn refuse_key(&mut self, entry: &Entry, all: &[Entry], shape: &Shape) -> Option<&'static str> {
        if entry.key.is_empty() {
            self.report.at(entry.key_place, format!("a value without a key {}", shape.title));
        } else if let Some(instead) = later::key(&entry.key, shape.path) {
            let message = format!("`{}` is not supported yet: {instead}", entry.key);
            let problem = self.report.at(entry.key_place, message);
            problem.hint(later::until_then(&entry.key), Fix::Remove(entry.key_place));
        } else {
            let message = format!("unknown key {} {}", quoted(&entry.key), shape.title);
            // `x-limits` is there for something else than `limits`, and `x-real-ip` is not.
            let is_meant = |meant: &&str| !unknown::is_extension(&entry.key) || meant.starts_with("x_");
            let meant = meant(shape, &entry.key).filter(is_meant);
            let advice = match meant {
                Some(meant) => Some(unknown::renamed(entry, all, meant)),
                None => {
                    home(&entry.key, shape).map(|home| unknown::moved(entry, all, shape, &home, &self.trail))
                }
            };
            let problem = self.report.at(entry.key_place, message);
            match advice {
                Some((words, Some(fix))) => problem.hint(words, fix),
                Some((words, None)) => problem.note(words),
                None => unknown::extension(problem, &entry.key, shape),
            };
            return meant.map(unknown::first);
        }
        None
    }

    /// Reports a key that stands in another file already, where each may stand once.
    pub(super) fn refuse_second(&mut self, entry: &Entry, first: &Entry) {
        let place = self.key_spot(first).origin;
        let words = format!("remove this one, or that at {place} if this one is right");
        let message = format!("the key `{}` is written twice: first at {place}", entry.key);
        self.report.at(entry.key_place, message).hint(words, Fix::Remove(entry.key_place));
    }

    /// Reports that a value is none of what its key takes.
    pub(super) fn refuse(&mut self, entry: &Entry, expected: impl Into<String>) {
        let spot = self.spot(entry);
        let wrong = Wrong::new(found(&entry.node), expected);
        let wrong = entry.node.text().map_or(wrong.clone(), |text| variable(wrong, text));
        self.report.wrong(&spot, &subject(&entry.key), wrong);
    }

    /// The value of `entry` when `parse` accepts its text.
    pub(super) fn parsed<T>(
        &mut self,
        entry: &Entry,
        expected: &str,
        parse: impl FnMut(&str) -> Result<T, Wrong>,
    ) -> Option<Written<T>> {
        let is_text = matches!(entry.node.typed(), Typed::Text(_)) || entry.node.variable().is_some();
        match entry.node.text() {
            Some(text) if is_text => self.judged(entry, text, parse),
            Some(_) | None => {
                self.refuse(entry, expected);
                None
            }
        }
    }

    /// Like [`Reader::parsed`], for names: somebody who writes `no` may mean Norway.
    pub(super) fn word<T>(
        &mut self,
        entry: &Entry,
        expected: &str,
        parse: impl FnMut(&str) -> Result<T, Wrong>,
    ) -> Option<Written<T>> {
        match (entry.node.typed(), entry.node.text()) {
            (Typed::Bool(_), Some(text)) if entry.node.variable().is_none() => {
                let spot = self.spot(entry);
                let wrong = Wrong::new(found(&entry.node), expected);
                let value = format!("\"{text}\"");
                let hint = format!("quote it if the word itself is meant: {value}");
                self.report.wrong(&spot, &subject(&entry.key), wrong.hint(hint, value));
                None
            }
            _ => self.parsed_with_numbers(entry, expected, parse),
        }
    }

    /// Like [`Reader::parsed`], for values that may also look like a number.
    pub(super) fn parsed_with_numbers<T>(
        &mut self,
        entry: &Entry,
        expected: &str,
        parse: impl FnMut(&str) -> Result<T, Wrong>,
    ) -> Option<Written<T>> {
        match (entry.node.typed(), entry.node.text()) {
            (Typed::Integer(_) | Typed::Float(_), Some(text)) => self.judged(entry, text, parse),
            _ => self.parsed(entry, expected, parse),
        }
    }

    fn judged<T>(
        &mut self,
        entry: &Entry,
        text: &str,
        mut parse: impl FnMut(&str) -> Result<T, Wrong>,
    ) -> Option<Written<T>> {
        let spot = self.spot(entry);
        match parse(text) {
            Ok(value) => Some(Written::new(value, spot)),
            Err(wrong) => {
                let wrong = if hidden::is_secret(&entry.key) { wrong } else { variable(wrong, text) };
                self.report.wrong(&spot, &subject(&entry.key), wrong);
                None
            }
        }
    }

    /// A whole number in a range.
    pub(super) fn whole(&mut self, entry: &Entry, range: RangeInclusive<u32>) -> Option<Written<u32>> {
        self.number(entry, range, "a whole number")
    }

    /// The same for a key that also takes `off`: a value of `None`.
    pub(super) fn whole_or_off(
        &mut self,
        entry: &Entry,
        range: RangeInclusive<u32>,
    ) -> Option<Written<Option<u32>>> {
        if is_off(&entry.node) {
            return Some(Written::new(None, self.spot(entry)));
        }
        let read = self.number(entry, range, "`off`, or a whole number")?;
        Some(Written::new(Some(read.value), read.spot))
    }

    /// A whole number in a range, where `form` is what is expected but for the range.
    pub(super) fn number(
        &mut self,
        entry: &Entry,
        range: RangeInclusive<u32>,
        form: &str,
    ) -> Option<Written<u32>> {
        let expected = format!("{form} from {} to {}", range.start(), range.end());
        let number = match (entry.node.typed(), entry.node.text()) {
            (Typed::Integer(number), _) => Some(number),
            (_, Some(text)) if entry.node.variable().is_some() => integer(text),
            (Typed::Text(text), _) if integer(text).is_some() => {
                let spot = self.spot(entry);
                let wrong = Wrong::new("is a number in quotes, which makes it a text", expected);
                self.report.wrong(
                    &spot,
                    &subject(&entry.key),
                    wrong.hint(format!("write {text} without quotes"), text),
                );
                return None;
            }
            _ => None,
        };
        let spot = self.spot(entry);
        let Some(number) = number else {
            let wrong = Wrong::new(found(&entry.node), expected);
            self.report.wrong(&spot, &subject(&entry.key), unfit::no_number(wrong, entry, &range, form));
            return None;
        };
        match u32::try_from(number).ok().filter(|number| range.contains(number)) {
            Some(number) => Some(Written::new(number, spot)),
            None => {
                let wrong = out_of_range(number, &expected, number < i64::from(*range.start()));
                let wrong = unfit::number(wrong, entry, number, &range, form);
                self.report.wrong(&spot, &subject(&entry.key), wrong);
                None
            }
        }
    }

    /// Yes or no.
    pub(super) fn switch(&mut self, entry: &Entry) -> Option<Written<bool>> {
        let value = match (entry.node.typed(), entry.node.text()) {
            (Typed::Bool(value), _) => Some(value),
            (_, Some(text)) if entry.node.variable().is_some() => truth(text),
            _ => None,
        };
        if value.is_none() {
            self.refuse(entry, "`true` or `false` (also `on`, `off`, `yes`, `no`)");
        }
        let spot = self.spot(entry);
        value.map(|value| Written::new(value, spot))
    }

    /// A time with a unit, in a range.
    pub(super) fn duration(
        &mut self,
        entry: &Entry,
        range: RangeInclusive<Duration>,
    ) -> Option<Written<Duration>> {
        self.time(entry, range, "a time such as `250ms`, `2s`, `1m` or `1h`", units::duration)
    }

    /// The same for a key that also takes `off`, which is not there.
    pub(super) fn duration_or_off(
        &mut self,
        entry: &Entry,
        range: RangeInclusive<Duration>,
    ) -> Option<Written<Duration>> {
        self.time(entry, range, "`off`, or a time such as `250ms`, `2s` or `1m`", units::duration)
    }

    /// A time of one of the older keys, where a bare number is seconds.
    pub(super) fn seconds(
        &mut self,
        entry: &Entry,
        range: RangeInclusive<Duration>,
    ) -> Option<Written<Duration>> {
        self.time(entry, range, "a number of seconds such as `2`, or a time such as `500ms`", units::seconds)
    }

    /// A time in a range; `form` is what it looks like.
    fn time(
        &mut self,
        entry: &Entry,
        range: RangeInclusive<Duration>,
        form: &str,
        read: fn(&str) -> Result<Duration, Wrong>,
    ) -> Option<Written<Duration>> {
        let (least, most) = (units::show_duration(*range.start()), units::show_duration(*range.end()));
        let expected = format!("{form} ({least} to {most})");
        let or_off = form.contains("`off`");
        self.parsed_with_numbers(entry, &expected, |text| {
            let time = read(text).map_err(|wrong| {
                let wrong = Wrong { expected: Some(expected.clone()), ..wrong };
                unfit::no_time(wrong, entry, text, &range, or_off)
            })?;
            in_range(&time, &range, &expected, units::show_duration(time))
                .map_err(|wrong| unfit::time(wrong, entry, time, &range, or_off))?;
            Ok(time)
        })
    }

    /// Like [`Reader::duration`], for a limit that can't be switched off.
    pub(super) fn limit(
        &mut self,
        entry: &Entry,
        range: RangeInclusive<Duration>,
    ) -> Option<Written<Duration>> {
        if !unfit::is_no_limit(&entry.node) {
            return self.duration(entry, range);
        }
        let text = entry.node.text().unwrap_or_default();
        let (least, most) = (units::show_duration(*range.start()), units::show_duration(*range.end()));
        let expected = format!("a time such as `250ms`, `2s`, `1m` or `1h` ({least} to {most})");
        let wrong = Wrong::new(format!("is {}, but it can't be switched off", quoted(text)), expected);
        let spot = self.spot(entry);
        self.report.wrong(&spot, &subject(&entry.key), unfit::no_limit(wrong, entry, most));
        None
    }

    /// A size in a range.
    pub(super) fn size(
        &mut self,
        entry: &Entry,
        range: RangeInclusive<u64>,
        or_off: bool,
    ) -> Option<Written<u64>> {
        let form = if or_off {
            "`off` or a size such as `64KiB` or `10MiB`"
        } else if range.contains(&8_192) {
            "a size such as `8KiB` or `64KiB`"
        } else {
            "a size such as `4MiB` or `64MiB`"
        };
        let expected =
            format!("{form} ({} to {})", units::show_size(*range.start()), units::show_size(*range.end()));
        self.parsed_with_numbers(entry, &expected, |text| {
            let size = units::size(text).map_err(|wrong| {
                let wrong = Wrong { expected: Some(expected.clone()), ..wrong };
                if or_off && units::is_endless(text) { wrong.instead("off") } else { wrong }
            })?;
            let verdict = in_range(&size, &range, &expected, units::show_size(size));
            verdict.map_err(|wrong| {
                if or_off && size == 0 {
                    wrong.hint("write `off` for no limit", "off")
                } else {
                    unfit::size(wrong, entry, size, &range)
                }
            })?;
            Ok(size)
        })
    }

    /// One of the names in `table`.
    pub(super) fn choice<T: Copy>(
        &mut self,
        entry: &Entry,
        table: &[(&'static str, T)],
    ) -> Option<Written<T>> {
        let expected = one_of(table.iter().map(|(name, _)| *name));
        self.parsed(entry, &expected, |text| choose(text, table))
    }
}
