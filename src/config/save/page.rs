//! A text as lines that are replaced, removed and put between others. What is not touched stays as it is, to the byte.

use std::collections::{BTreeMap, BTreeSet};

use super::wanted::ChangedLine;
use crate::config::hidden;
use crate::config::yaml::NodeMark;

/// A text and what becomes of its lines.
pub(super) struct Page<'t> {
    /// Each with what ends it.
    lines: Vec<(&'t str, &'t str)>,
    /// By line: bytes that are replaced, and by what.
    replaced: BTreeMap<usize, Vec<(usize, usize, String)>>,
    removed: BTreeSet<usize>,
    /// By the line that they stand in front of.
    inserted: BTreeMap<usize, Vec<String>>,
}

impl<'t> Page<'t> {
    /// `None`: a line ends with a carriage return alone, and not everybody counts that as a line.
    pub(super) fn new(text: &'t str) -> Option<Page<'t>> {
        let lines = text.split_inclusive('\n').map(|line| {
            let inner = line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line));
            line.split_at(inner.len())
        });
        let lines: Vec<(&str, &str)> = lines.collect();
        let is_known = lines.iter().all(|(content, _)| !content.contains('\r'));
        let (replaced, removed, inserted) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        is_known.then_some(Page { lines, replaced, removed, inserted })
    }

    /// A line as it was, without its end and without a byte order mark.
    pub(super) fn line(&self, number: usize) -> &'t str {
        let line = self.lines.get(number).map_or("", |(content, _)| *content);
        if number == 0 { line.strip_prefix(ORDER_MARK).unwrap_or(line) } else { line }
    }

    /// What stands between two points of one line.
    pub(super) fn between(&self, from: NodeMark, to: NodeMark) -> Option<&'t str> {
        let line = self.line(from.line);
        (from.line == to.line).then_some(())?;
        line.get(byte(line, from.column)?..byte(line, to.column)?)
    }

    /// Puts `text` in the place of what is between two points of one line. `None`: they are not there.
    pub(super) fn replace(&mut self, from: NodeMark, to: NodeMark, text: String) -> Option<()> {
        self.between(from, to)?;
        let line = self.line(from.line);
        let span = (byte(line, from.column)?, byte(line, to.column)?, text);
        self.replaced.entry(from.line).or_default().push(span);
        Some(())
    }

    /// Removes the lines from `first` to `last`.
    pub(super) fn remove(&mut self, first: usize, last: usize) {
        self.removed.extend(first..=last);
    }

    /// Puts lines in front of line `before`, behind those that were put there already.
    pub(super) fn insert(&mut self, before: usize, lines: impl IntoIterator<Item = String>) {
        self.inserted.entry(before).or_default().extend(lines);
    }

    /// What a line is then; `None`: what it was.
    fn changed(&mut self, number: usize) -> Option<String> {
        let mut spans = self.replaced.remove(&number)?;
        // Those that stand at one point stay in the order in which they came.
        spans.sort_by_key(|(start, _, _)| *start);
        let (line, mut changed, mut at) = (self.line(number), String::new(), 0);
        for (start, end, text) in spans {
            changed.push_str(line.get(at..start).unwrap_or_default());
            changed.push_str(&text);
            at = end;
        }
        changed.push_str(line.get(at..).unwrap_or_default());
        Some(changed)
    }

    /// The text as it is then, and the lines that differ.
    pub(super) fn finish(mut self) -> (String, Vec<ChangedLine>) {
        let usual = self.lines.iter().map(|(_, end)| *end).find(|end| !end.is_empty()).unwrap_or("\n");
        let is_open = self.lines.last().is_some_and(|(_, end)| end.is_empty());
        let (mut lines, mut diff) = (Vec::<(String, &str)>::new(), Vec::new());
        for number in 0..=self.lines.len() {
            for line in self.inserted.remove(&number).unwrap_or_default() {
                diff.push(ChangedLine::new('+', lines.len() + 1, &line));
                lines.push((line, usual));
            }
            let Some(&(content, end)) = self.lines.get(number) else { break };
            // What comes behind the last line needs an end before it.
            let end = if end.is_empty() { usual } else { end };
            let is_removed = self.removed.contains(&number);
            let changed = self.changed(number).filter(|_| !is_removed);
            if is_removed || changed.is_some() {
                diff.push(ChangedLine::new('-', number + 1, self.line(number)));
            }
            if let Some(line) = changed {
                diff.push(ChangedLine::new('+', lines.len() + 1, &line));
                let mark = if content.starts_with(ORDER_MARK) { ORDER_MARK } else { "" };
                lines.push((format!("{mark}{line}"), end));
            } else if !is_removed {
                lines.push((content.to_owned(), end));
            }
        }
        if let (true, Some((_, end))) = (is_open, lines.last_mut()) {
            *end = "";
        }
        (lines.into_iter().map(|(line, end)| line + end).collect(), diff)
    }
}

/// What some editors begin a file with.
const ORDER_MARK: &str = "\u{feff}";

impl ChangedLine {
    fn new(sign: char, number: usize, text: &str) -> ChangedLine {
        ChangedLine { sign, line: number, text: hidden::mask(text, 0, &[]) }
    }
}

/// Where so many characters end.
fn byte(line: &str, characters: usize) -> Option<usize> {
    line.char_indices().map(|(at, _)| at).chain([line.len()]).nth(characters)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: usize, column: usize) -> NodeMark {
        NodeMark { line, column }
    }

    #[test]
    fn ends_of_lines_and_of_the_text_stay() {
        for (text, then) in [
            ("a\nb\nc\n", "a\nx\nB\ny\n"),
            ("a\r\nb\r\nc\r\n", "a\r\nx\r\nB\r\ny\r\n"),
            ("\u{feff}a\nb\nc", "\u{feff}a\nx\nB\ny"),
        ] {
            let mut page = Page::new(text).expect("known");
            page.insert(1, ["x".to_owned()]);
            page.replace(at(1, 0), at(1, 1), "B".into()).expect("there");
            page.remove(2, 2);
            page.insert(3, ["y".to_owned()]);
            let (now, diff) = page.finish();
            assert_eq!(now, then);
            let diff: Vec<String> = diff.iter().map(ToString::to_string).collect();
            assert_eq!(diff, ["+ 2: x", "- 2: b", "+ 3: B", "- 3: c", "+ 4: y"]);
        }
        assert!(Page::new("a\rb\n").is_none());
    }

    #[test]
    fn a_line_is_changed_more_than_once() {
        let mut page = Page::new("{ä: 1, b: 22}").expect("known");
        page.replace(at(0, 12), at(0, 12), ", c: 4".into()).expect("there");
        page.replace(at(0, 12), at(0, 12), ", d: 5".into()).expect("there");
        page.replace(at(0, 4), at(0, 5), "100".into()).expect("there");
        assert_eq!(page.finish().0, "{ä: 100, b: 22, c: 4, d: 5}");
        let mut page = Page::new("a").expect("known");
        assert_eq!(page.replace(at(0, 1), at(0, 3), "b".into()), None);
    }
}
