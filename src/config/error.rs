//! What is wrong with a configuration, in words for somebody who has never seen evenkeel.
//!
//! The YAML reader, the walker and validation all push into one `Report` and go on; at the end it becomes
//! [`Problems`]: every problem of one run, in the order of the file, each with its line and a caret under it.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use super::edit::Fix;
use super::files::Files;
use super::origin::{Place, SourceFile};

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
    pub(super) snippet: Option<(String, String)>,
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
pub(super) struct Shown<'a>(pub(super) &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| f.write_char(if c == '\n' { c } else { visible(c) }))
    }
}

/// One visible character for each.
pub(super) fn visible(c: char) -> char {
    if c.is_control() { '·' } else { c }
}

/// Every problem of one run, in the order of the file; those of the command line come last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    pub(super) list: Vec<Problem>,
    pub(super) files: Files,
    /// The texts that they are about.
    pub(super) sources: Vec<SourceFile>,
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

    /// These and others, in the order of the file.
    pub(super) fn with(mut self, others: Vec<Problem>) -> Problems {
        self.list.extend(others);
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

/// Where a problem comes among others.
pub(super) fn order(problem: &Problem) -> (u8, u16, u32, u32) {
    match (&problem.file, problem.place) {
        (Some(_), Some(place)) => (1, place.file, place.line, place.column),
        (Some(_), None) => (0, 0, 0, 0),
        (None, _) => (2, 0, 0, 0),
    }
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
    use super::super::report::Report;
    use super::super::snippet::lines;
    use super::*;

    #[test]
    fn problems_come_in_the_order_of_the_file_with_carets() {
        let mut report = Report::about("a.yaml", "ab\r\n\tx yz\n");
        report.command_line("`--port` is wrong");
        let second = report.at(Place::new(2, 4, 2), "second");
        second.expected("this").hint("do that", Fix::Value("that".into())).note("or not");
        report.at(Place::new(1, 1, 99), "first");
        let text = report.finish().to_string();
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
        let mut report = Report::about("a.yaml", "ab\rcd\r");
        report.at(Place::new(2, 1, 2), "wrong");
        let text = report.finish().to_string();
        assert!(text.contains("a.yaml:2:1: wrong\n    2 | cd\n      | ^^"), "{text}");
    }

    #[test]
    fn no_word_of_a_file_drives_a_terminal() {
        let mut report = Report::about("a\u{1b}.yaml", "");
        report.whole("`\u{1b}[2J`").expected("`\u{85}`\n    or more").note("`\r`");
        let text = report.finish().to_string();
        assert_eq!(text, "a·.yaml: `·[2J`\n  expected: `·`\n    or more\n  note: `·`\n\n1 problem");
    }

    #[test]
    fn a_place_outside_the_text_still_prints() {
        let mut report = Report::about("a.yaml", "");
        report.at(Place::new(1, 9, 3), "past the end");
        report.at(Place::new(7, 1, 1), "past the last line");
        let text = report.finish().to_string();
        assert!(text.contains("past the end") && text.contains("2 problems"), "{text}");
    }
}
