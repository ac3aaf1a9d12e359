//! What is wrong with a configuration, in words for somebody who has never seen evenkeel.
//!
//! The YAML reader, the walker and validation all push into one [`Report`] and go on; at the end it becomes
//! [`Problems`]: every problem of one run, in the order of the file, each with its line and a caret under it.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::sync::Arc;

use super::edit::Fix;
use super::files::Files;
use super::hidden;
use super::origin::{Origin, Place, Spot};

/// Longest part of a source line that is shown, in characters.
const SNIPPET_WIDTH: usize = 100;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The config file as it was named; `None` for a problem of the command line.
    pub file: Option<Arc<str>>,
    /// Where in the file; `None` when it concerns the whole file or the command line.
    pub place: Option<Place>,
    /// What is wrong, one sentence without a full stop.
    pub message: String,
    /// What would be right.
    pub expected: Option<String>,
    /// What to write instead. [`Problem::mended`] does it.
    pub hint: Option<String>,
    /// What else there is to know, where no edit of the file can be proposed.
    pub note: Option<String>,
    /// The edit that the hint proposes.
    pub(super) fix: Option<Fix>,
    /// The file is no YAML here, so that nothing behind it was looked at.
    pub(super) is_syntax: bool,
    /// The source line and a line with carets below it.
    snippet: Option<(String, String)>,
}

impl Problem {
    /// Adds what would be right.
    pub(super) fn expected(&mut self, text: impl Into<String>) -> &mut Self {
        self.expected = Some(text.into());
        self
    }

    /// Adds what to write instead, in words and as an edit.
    pub(super) fn hint(&mut self, text: impl Into<String>, fix: Fix) -> &mut Self {
        (self.hint, self.fix) = (Some(text.into()), Some(fix));
        self
    }

    /// Adds what else there is to know.
    pub(super) fn note(&mut self, text: impl Into<String>) -> &mut Self {
        self.note = Some(text.into());
        self
    }

    /// The hint is right in its words only: followed to the letter it would lead to another problem.
    pub(super) fn demote(&mut self) {
        self.fix = None;
        let words = self.hint.take();
        self.note = match (words, self.note.take()) {
            (Some(hint), Some(note)) => Some(format!("{hint}; {note}")),
            (hint, note) => hint.or(note),
        };
    }

    /// The text of the file with the hint followed to the letter; `None` where there is no hint, or no file.
    #[must_use]
    pub fn mended(&self, text: &str) -> Option<String> {
        self.fix.as_ref()?.apply(text, self.place?)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.place) {
            (Some(file), Some(place)) => write!(f, "{}:{}:{}: ", Shown(file), place.line, place.column)?,
            (Some(file), None) => write!(f, "{}: ", Shown(file))?,
            (None, _) => f.write_str("command line: ")?,
        }
        Shown(&self.message).fmt(f)?;
        if let (Some(place), Some((line, carets))) = (self.place, &self.snippet) {
            let number = place.line;
            let margin = number.to_string().len().max(4);
            write!(f, "\n {number:>margin$} | {line}\n {:margin$} | {carets}", "")?;
        }
        if let Some(expected) = &self.expected {
            write!(f, "\n  expected: {}", Shown(expected))?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {}", Shown(hint))?;
        }
        if let Some(note) = &self.note {
            write!(f, "\n  note: {}", Shown(note))?;
        }
        Ok(())
    }
}

/// Words of ours around words of the file: what is no line end and no character one can see is shown as one that
/// is, because it could drive a terminal.
struct Shown<'a>(&'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| f.write_char(if c == '\n' { c } else { visible(c) }))
    }
}

/// One visible character for each.
fn visible(c: char) -> char {
    if c.is_control() { '·' } else { c }
}

/// Every problem of one run, in the order of the file; those of the command line come last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    list: Vec<Problem>,
    files: Files,
}

impl Problems {
    /// The problems; never empty.
    #[must_use]
    pub fn list(&self) -> &[Problem] {
        &self.list
    }

    /// What was read before they were found, or would have been.
    #[must_use]
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// The same, to be changed.
    pub(super) fn files_mut(&mut self) -> &mut Files {
        &mut self.files
    }

    /// The problems, to be changed.
    pub(super) fn list_mut(&mut self) -> &mut [Problem] {
        &mut self.list
    }

    /// These and others, in the order of the file.
    pub(super) fn with(mut self, others: Problems) -> Problems {
        self.list.extend(others.list);
        self.list.sort_by_key(order);
        self
    }
}

/// Problems that are shown; whoever has more has pasted something else, or made one mistake in a loop.
const SHOWN: usize = 100;

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in self.list.iter().take(SHOWN) {
            write!(f, "{problem}\n\n")?;
        }
        if let Some(more) = self.list.len().checked_sub(SHOWN).filter(|&more| more > 0) {
            write!(f, "… and {more} more\n\n")?;
        }
        match self.list.len() {
            1 => f.write_str("1 problem"),
            count => write!(f, "{count} problems"),
        }
    }
}

impl std::error::Error for Problems {}

/// What is wrong with one value, before it is known where the value stands. `message` continues a sentence
/// that begins with the key: "is `abc`, which is not a time".
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// The predicate.
    pub(super) message: String,
    /// What would be right.
    pub(super) expected: Option<String>,
    /// What to write instead.
    pub(super) hint: Option<String>,
    /// What else there is to know.
    pub(super) note: Option<String>,
    /// The edit that the hint proposes.
    pub(super) fix: Option<Box<Fix>>,
}

impl Wrong {
    /// A predicate and what would be right.
    pub(super) fn new(message: impl Into<String>, expected: impl Into<String>) -> Self {
        Wrong { message: message.into(), expected: Some(expected.into()), ..Wrong::bare("") }
    }

    /// A predicate that needs no more words.
    pub(super) fn bare(message: impl Into<String>) -> Self {
        Wrong { message: message.into(), expected: None, hint: None, note: None, fix: None }
    }

    /// Adds what to write instead of the value, and the words around it where `write …` does not say it all.
    pub(super) fn instead(self, value: impl Into<String>) -> Self {
        let value = value.into();
        self.hint(format!("write `{value}`"), value)
    }

    /// The same in words of its own.
    pub(super) fn hint(mut self, text: impl Into<String>, value: impl Into<String>) -> Self {
        (self.hint, self.fix) = (Some(text.into()), Some(Box::new(Fix::Value(value.into()))));
        self
    }

    /// The same with another edit than one of the value.
    pub(super) fn hint_by(mut self, text: impl Into<String>, fix: Fix) -> Self {
        (self.hint, self.fix) = (Some(text.into()), Some(Box::new(fix)));
        self
    }

    /// Adds what else there is to know.
    pub(super) fn note(mut self, text: impl Into<String>) -> Self {
        self.note = Some(text.into());
        self
    }

    /// Takes over hint and note of a fault inside.
    pub(super) fn advised_by(self, inner: Wrong) -> Self {
        Wrong { hint: inner.hint, note: inner.note, fix: inner.fix, ..self }
    }
}

/// Collects problems; nothing stops at the first.
#[derive(Debug)]
pub(super) struct Report {
    file: Arc<str>,
    list: Vec<Problem>,
    /// Values that are known to be unusable, with the number of problems before anybody looked at them.
    broken: HashMap<Place, usize>,
    /// Where secrets stand.
    secrets: Vec<Place>,
    /// What is right and yet may not be what somebody wants.
    warnings: Vec<String>,
    /// What was read, or would have been.
    pub(super) files: Files,
}

impl Report {
    /// An empty report about `file`.
    pub(super) fn new(file: &str) -> Self {
        Report {
            file: file.into(),
            list: Vec::new(),
            broken: HashMap::new(),
            secrets: Vec::new(),
            warnings: Vec::new(),
            files: Files::default(),
        }
    }

    /// The file as it was named.
    pub(super) fn file(&self) -> Arc<str> {
        Arc::clone(&self.file)
    }

    /// Nothing was wrong so far.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// A problem at a place in the file.
    pub(super) fn at(&mut self, place: Place, message: impl Into<String>) -> &mut Problem {
        let file = Some(self.file());
        self.push(file, Some(place), message.into())
    }

    /// What stands at `place` is unusable and that has been said; what is found wrong with it later is not.
    pub(super) fn silence(&mut self, place: Place) {
        self.broken.insert(place, self.list.len());
    }

    /// What stands at `place` is a secret; no line that is shown has it.
    pub(super) fn hide(&mut self, place: Place) {
        self.secrets.push(place);
    }

    /// A problem of the whole file.
    pub(super) fn whole(&mut self, message: impl Into<String>) -> &mut Problem {
        let file = Some(self.file());
        self.push(file, None, message.into())
    }

    /// A problem of the command line.
    pub(super) fn command_line(&mut self, message: impl Into<String>) -> &mut Problem {
        self.push(None, None, message.into())
    }

    /// A problem of a value that stands at `spot`.
    pub(super) fn spot(&mut self, spot: &Spot, message: impl Into<String>) -> &mut Problem {
        match (&spot.origin, spot.place) {
            (_, Some(place)) => self.at(place, message),
            (Origin::Flag(_), None) => self.command_line(message),
            (Origin::Default | Origin::File { .. } | Origin::Environment { .. }, None) => self.whole(message),
        }
    }

    /// A problem of the value of `subject` that stands at `spot`.
    pub(super) fn wrong(&mut self, spot: &Spot, subject: &str, wrong: Wrong) {
        let problem = self.spot(spot, format!("{subject} {}", wrong.message));
        problem.expected = wrong.expected;
        (problem.hint, problem.note, problem.fix) = (wrong.hint, wrong.note, wrong.fix.map(|fix| *fix));
        if let Origin::Environment { variable, .. } = &spot.origin
            && !problem.message.contains(&format!("${{{variable}}}"))
        {
            let from = format!("from the variable `{variable}`");
            problem.note = Some(problem.note.take().map_or(from.clone(), |note| format!("{note}; {from}")));
        }
    }

    /// Something that is right and yet may not be what somebody wants.
    pub(super) fn warn(&mut self, spot: &Spot, message: &str) {
        let message = match &spot.origin {
            Origin::Default => Shown(message).to_string(),
            origin => format!("{}: {}", Shown(&origin.to_string()), Shown(message)),
        };
        self.warnings.push(message);
    }

    /// The warnings of a config in which nothing is wrong, and the files that it was made of.
    pub(super) fn into_accepted(self) -> (Vec<String>, Files) {
        (self.warnings, self.files)
    }

    /// Ends the collection; `text` is the source the snippets are cut from.
    pub(super) fn finish(mut self, text: &str) -> Problems {
        let broken = self.broken;
        let mut number = 0;
        self.list.retain(|problem| {
            number += 1;
            problem.place.and_then(|place| broken.get(&place)).is_none_or(|said| number <= *said)
        });
        // A stable sort keeps the order of discovery at one place.
        self.list.sort_by_key(order);
        self.list.dedup();
        let lines: Vec<&str> = lines(text).collect();
        for problem in &mut self.list {
            if let Some(place) = problem.place {
                let line = lines.get((place.line as usize).saturating_sub(1));
                problem.snippet =
                    line.map(|line| snippet(&hidden::mask(line, place.line, &self.secrets), place));
            }
        }
        Problems { list: self.list, files: self.files }
    }

    fn push(&mut self, file: Option<Arc<str>>, place: Option<Place>, message: String) -> &mut Problem {
        let problem = Problem {
            file,
            place,
            message,
            expected: None,
            hint: None,
            note: None,
            fix: None,
            is_syntax: false,
            snippet: None,
        };
        self.list.push(problem);
        let last = self.list.len() - 1;
        &mut self.list[last]
    }
}

/// Where a problem comes among others.
fn order(problem: &Problem) -> (u8, u32, u32) {
    match (&problem.file, problem.place) {
        (Some(_), Some(place)) => (1, place.line, place.column),
        (Some(_), None) => (0, 0, 0),
        (None, _) => (2, 0, 0),
    }
}

/// The lines of a text as YAML counts them: a carriage return ends one too, with or without a line feed behind it.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let feeds = text.matches('\n').count();
    text.split('\n').enumerate().flat_map(move |(index, line)| {
        let line = if index < feeds { line.strip_suffix('\r').unwrap_or(line) } else { line };
        line.split('\r')
    })
}

/// The part of `line` around `place`, and carets below it. Control characters would move the carets (and
/// could drive a terminal), so each becomes one visible character.
fn snippet(line: &str, place: Place) -> (String, String) {
    let characters: Vec<char> = line.chars().collect();
    let start = (place.column as usize).saturating_sub(1).min(characters.len());
    let width = (place.width as usize).clamp(1, characters.len().saturating_sub(start).max(1));
    let first = if start + width.min(40) > SNIPPET_WIDTH { start.saturating_sub(30) } else { 0 };
    let last = characters.len().min(first + SNIPPET_WIDTH);
    let mut shown: String = if first > 0 { "…".into() } else { String::new() };
    let lead = shown.chars().count();
    shown.extend(characters[first..last].iter().map(|&c| match c {
        '\t' => '→',
        c => visible(c),
    }));
    if last < characters.len() {
        shown.push('…');
    }
    let carets = "^".repeat(width.min(last.saturating_sub(start).max(1)));
    (shown.trim_end().to_owned(), format!("{}{carets}", " ".repeat(lead + start - first)))
}

/// Names in backquotes joined as in a sentence: "`a`, `b` or `c`".
pub(super) fn one_of<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.pop() {
        None => String::new(),
        Some(last) if names.is_empty() => last,
        Some(last) => format!("{} or {last}", names.join(", ")),
    }
}

/// A value as it is quoted in a message: one line, at most 60 characters.
pub(super) fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(60).map(visible).collect();
    if text.chars().nth(60).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_come_in_the_order_of_the_file_with_carets() {
        let mut report = Report::new("a.yaml");
        report.command_line("`--port` is wrong");
        let second = report.at(Place { line: 2, column: 4, width: 2 }, "second");
        second.expected("this").hint("do that", Fix::Value("that".into())).note("or not");
        report.at(Place { line: 1, column: 1, width: 99 }, "first");
        let text = report.finish("ab\r\n\tx yz\n").to_string();
        assert_eq!(
            text,
            "a.yaml:1:1: first\n    1 | ab\n      | ^^\n\n\
             a.yaml:2:4: second\n    2 | →x yz\n      |    ^^\n  expected: this\n  hint: do that\n  note: or not\n\n\
             command line: `--port` is wrong\n\n3 problems"
        );
    }

    #[test]
    fn a_carriage_return_alone_ends_a_line() {
        let of = |text| lines(text).collect::<Vec<_>>();
        assert_eq!(of("a\rb\r\nc\nd"), ["a", "b", "c", "d"]);
        assert_eq!(of("a\r\r\n\r"), ["a", "", "", ""]);
        assert_eq!(of(""), [""]);
        let mut report = Report::new("a.yaml");
        report.at(Place { line: 2, column: 1, width: 2 }, "wrong");
        let text = report.finish("ab\rcd\r").to_string();
        assert!(text.contains("a.yaml:2:1: wrong\n    2 | cd\n      | ^^"), "{text}");
    }

    #[test]
    fn a_long_line_is_cut_around_the_caret() {
        let line = format!("{}here{}", "x".repeat(300), "y".repeat(300));
        let (shown, carets) = snippet(&line, Place { line: 1, column: 301, width: 4 });
        assert_eq!(shown.chars().count(), SNIPPET_WIDTH + 2);
        let at = carets.chars().count() - 4;
        assert_eq!(shown.chars().skip(at).take(4).collect::<String>(), "here");
    }

    #[test]
    fn no_word_of_a_file_drives_a_terminal() {
        let mut report = Report::new("a\u{1b}.yaml");
        report.whole("`\u{1b}[2J`").expected("`\u{85}`\n    or more").note("`\r`");
        let text = report.finish("").to_string();
        assert_eq!(text, "a·.yaml: `·[2J`\n  expected: `·`\n    or more\n  note: `·`\n\n1 problem");
    }

    #[test]
    fn a_place_outside_the_text_still_prints() {
        let mut report = Report::new("a.yaml");
        report.at(Place { line: 1, column: 9, width: 3 }, "past the end");
        report.at(Place { line: 7, column: 1, width: 1 }, "past the last line");
        let text = report.finish("").to_string();
        assert!(text.contains("past the end") && text.contains("2 problems"), "{text}");
    }
}
