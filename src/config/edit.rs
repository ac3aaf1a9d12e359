//! The edit that a hint proposes, and what the file looks like after it.
//!
//! A hint says in words what to write; its [`Fix`] says the same so exactly that a program can do it. `load` follows every
//! hint before it is shown: one that would lead to another problem is shown as a note. Pure text; called by `error`.

use super::origin::Place;

/// What to do with the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fix {
    /// Write this where the problem is.
    Value(String),
    /// Write this there instead.
    At(Place, String),
    /// Write the value at the first place and one more entry behind it; the second place is that of its key.
    Then(Place, String, Place, String),
    /// Remove the entry whose key stands there.
    Remove(Place),
    /// Remove the item of a list that stands there.
    RemoveItem(Place),
    /// Move the entry whose key stands first before the one whose key stands second, under another name.
    Move(Place, Place, String),
    /// Put the entry whose key stands there into a group of this name, under another name.
    Wrap(Place, String, String),
    /// Indent the entries whose keys stand there by so many spaces.
    Indent(Vec<Place>, usize),
    /// Make an item of a list of the mapping that the entry with this key has as its value; the value stands second.
    Dash(Place, Place),
    /// Put what the entry with this key has as its value below one more name.
    Nest(Place, String),
    /// Write this instead of the whole line.
    Line(u32, String),
    /// Write this instead of the whole text.
    Text(String),
}

impl Fix {
    /// `text` with this done; `place` is that of the problem. `None` where the file is not written so that it can be.
    pub(super) fn apply(&self, text: &str, place: Place) -> Option<String> {
        let page = Page::new(text);
        match self {
            Fix::Value(value) => page.replaced(page.span(place)?, value),
            Fix::At(place, value) => page.replaced(page.span(*place)?, value),
            Fix::Then(at, value, key, entry) => {
                let gap = if page.is_flow(*key)? { ", ".to_owned() } else { page.line_break(*key)? };
                page.replaced(page.span(*at)?, &format!("{value}{gap}{entry}"))
            }
            Fix::Remove(key) => page.replaced(page.entry_with_gap(*key)?, ""),
            Fix::RemoveItem(place) => page.replaced(page.item(*place)?, ""),
            Fix::Move(key, before, name) => {
                let entry = page.renamed(*key, name)?;
                let (at, (start, end)) = (page.offset(*before)?, page.entry_with_gap(*key)?);
                let entry = page.led_by(*before, entry.trim_end())?;
                let (text, head) = (page.text, page.text.get(..start)?);
                if at <= start {
                    Some(format!("{}{entry}{}{}", &text[..at], text.get(at..start)?, &text[end..]))
                } else {
                    Some(format!("{head}{}{entry}{}", text.get(end..at)?, &text[at..]))
                }
            }
            Fix::Wrap(key, group, name) => {
                let entry = page.renamed(*key, name)?;
                let wrapped = if page.is_flow(*key)? || !entry.contains('\n') {
                    format!("{group}: {{{}}}", entry.trim_end())
                } else {
                    let deeper = format!("{}  ", page.line_break(*key)?);
                    format!("{group}:{deeper}{}", entry.replace('\n', &deeper))
                };
                page.replaced(page.entry(*key)?, &wrapped)
            }
            Fix::Indent(keys, by) => {
                let mut text = page.text.to_owned();
                for key in keys {
                    let page = Page::new(&text);
                    let (start, end) = page.entry(*key)?;
                    let start = page.text[..start].rfind('\n').map_or(0, |at| at + 1);
                    text = page.replaced((start, end), &indented(page.text.get(start..end)?, *by))?;
                }
                Some(text)
            }
            Fix::Dash(key, value) => {
                let (start, end) = page.entry(*key)?;
                if let Some(span) = page.span(*value).filter(|(at, _)| page.text[*at..].starts_with('{')) {
                    return page.replaced(span, &format!("[{}]", page.text.get(span.0..span.1)?));
                }
                let line = start + page.text[start..end].find('\n')? + 1;
                let deeper = indented(page.text.get(line..end)?, 2);
                let lead = deeper.len() - deeper.trim_start_matches(' ').len();
                page.replaced(
                    (line, end),
                    &format!("{}- {}", " ".repeat(lead.checked_sub(2)?), &deeper[lead..]),
                )
            }
            Fix::Nest(key, name) => {
                let (start, end) = page.entry(*key)?;
                let line = start + page.text[start..end].find('\n')? + 1;
                let inner = page.text.get(line..end)?;
                let lead = " ".repeat(inner.len() - inner.trim_start_matches(' ').len());
                page.replaced((line, end), &format!("{lead}{name}:\n{}", indented(inner, 2)))
            }
            Fix::Line(line, with) => {
                let (start, end) = *page.lines.get((*line as usize).checked_sub(1)?)?;
                page.replaced((start, end), with)
            }
            Fix::Text(text) => Some(text.clone()),
        }
    }
}

/// Lines that are so much deeper.
fn indented(text: &str, by: usize) -> String {
    let spaces = " ".repeat(by);
    let deeper = |line: &str| if line.trim().is_empty() { line.to_owned() } else { spaces.clone() + line };
    text.split('\n').map(deeper).collect::<Vec<_>>().join("\n")
}

/// A text with the places of its lines, in bytes and without what ends them.
struct Page<'t> {
    text: &'t str,
    lines: Vec<(usize, usize)>,
}

impl<'t> Page<'t> {
    fn new(text: &'t str) -> Page<'t> {
        let mut lines = Vec::new();
        let mut start = 0;
        for (at, sign) in text.match_indices(['\n', '\r']) {
            // A carriage return in front of a line feed is a part of it.
            if sign == "\r" || !text[..at].ends_with('\r') {
                lines.push((start, at));
            }
            start = at + 1;
        }
        lines.push((start, text.len()));
        Page { text, lines }
    }

    fn line(&self, number: u32) -> Option<&'t str> {
        let (start, end) = *self.lines.get((number as usize).checked_sub(1)?)?;
        self.text.get(start..end)
    }

    /// Where a place begins, in bytes.
    fn offset(&self, place: Place) -> Option<usize> {
        let line = self.line(place.line)?;
        let before = (place.column as usize).checked_sub(1)?;
        let inside = line.char_indices().map(|(at, _)| at).chain([line.len()]).nth(before)?;
        Some(self.lines.get(place.line as usize - 1)?.0 + inside)
    }

    /// A place in bytes. One that is a single bracket is that of the whole list or mapping.
    fn span(&self, place: Place) -> Option<(usize, usize)> {
        let start = self.offset(place)?;
        if place.width == 1
            && self.text[start..].starts_with(['[', '{'])
            && let Some(end) = self.flow_end(start + 1)
        {
            return Some((start, end + 1));
        }
        let end = self.text[start..].char_indices().map(|(at, _)| at).nth(place.width as usize);
        let line_end = self.lines.get(place.line as usize - 1)?.1;
        Some((start, end.map_or(line_end, |end| start + end).min(line_end)))
    }

    fn replaced(&self, (start, end): (usize, usize), with: &str) -> Option<String> {
        Some(format!("{}{with}{}", self.text.get(..start)?, self.text.get(end..)?))
    }

    /// Whether a place is inside of `[…]` or `{…}`.
    fn is_flow(&self, place: Place) -> Option<bool> {
        let mut depth = 0_i32;
        scan(self.text.get(..self.offset(place)?)?, |_, sign| {
            depth += i32::from(matches!(sign, '[' | '{')) - i32::from(matches!(sign, ']' | '}'));
            true
        });
        Some(depth > 0)
    }

    /// A new line as deep as a place, from which the mapping there goes on.
    fn line_break(&self, place: Place) -> Option<String> {
        let lead = self.line(place.line)?.chars().take(place.column as usize - 1);
        let lead: String = lead.map(|c| if c == '\t' { c } else { ' ' }).collect();
        Some(format!("\n{lead}"))
    }

    /// `entry` as it is written before the entry at `before`.
    fn led_by(&self, before: Place, entry: &str) -> Option<String> {
        Some(if self.is_flow(before)? {
            format!("{entry}, ")
        } else {
            let gap = self.line_break(before)?;
            format!("{}{gap}", entry.replace('\n', &gap))
        })
    }

    /// Where the flow list or mapping around `from` ends: at its closing bracket.
    fn flow_end(&self, from: usize) -> Option<usize> {
        let (mut depth, mut end) = (0_i32, None);
        scan(self.text.get(from..)?, |at, sign| {
            if matches!(sign, ']' | '}') && depth == 0 {
                end = Some(from + at);
                return false;
            }
            depth += i32::from(matches!(sign, '[' | '{')) - i32::from(matches!(sign, ']' | '}'));
            true
        });
        end
    }

    /// The entry whose key stands at `key`, with its value.
    fn entry(&self, key: Place) -> Option<(usize, usize)> {
        let start = self.offset(key)?;
        if self.is_flow(key)? {
            let (mut depth, mut end) = (0_i32, self.text.len());
            scan(&self.text[start..], |at, sign| {
                if depth == 0 && matches!(sign, ',' | ']' | '}') {
                    end = start + at;
                    return false;
                }
                depth += i32::from(matches!(sign, '[' | '{')) - i32::from(matches!(sign, ']' | '}'));
                true
            });
            return Some((start, start + self.text[start..end].trim_end().len()));
        }
        let depth = key.column as usize - 1;
        let first = key.line as usize - 1;
        let own = self.line(key.line)?.trim_end();
        let takes_dashes = own.ends_with(':') || own.contains(": #");
        let mut last = first;
        for (index, &(from, to)) in self.lines.iter().enumerate().skip(first + 1) {
            let line = &self.text[from..to];
            if line.trim().is_empty() {
                continue;
            }
            let indent = line.chars().take_while(|c| *c == ' ').count();
            let is_below =
                indent > depth || (takes_dashes && indent == depth && line[indent..].starts_with('-'));
            if !is_below {
                break;
            }
            last = index;
        }
        Some((start, self.lines.get(last)?.1))
    }

    /// The same with what is too much when it goes.
    fn entry_with_gap(&self, key: Place) -> Option<(usize, usize)> {
        let (start, end) = self.entry(key)?;
        if self.is_flow(key)? {
            return Some(self.with_comma(start, end));
        }
        let line = self.lines.get(key.line as usize - 1)?.0;
        let after = self.text[end..].find('\n').map_or(self.text.len(), |at| end + at + 1);
        if self.text[line..start].trim().is_empty() {
            return Some((line, after));
        }
        // The first entry of an item: the next one takes its place.
        let next = &self.text[after..];
        let lead = next.len() - next.trim_start_matches(' ').len();
        let is_sibling = lead == key.column as usize - 1 && !next[lead..].starts_with(['-', '#', '\n']);
        Some((start, if is_sibling { after + lead } else { end }))
    }

    fn with_comma(&self, start: usize, end: usize) -> (usize, usize) {
        let rest = &self.text[end..];
        let blanks = rest.len() - rest.trim_start().len();
        if rest[blanks..].starts_with(',') {
            let after = &rest[blanks + 1..];
            return (start, end + blanks + 1 + after.len() - after.trim_start().len());
        }
        let before = self.text[..start].trim_end();
        (before.strip_suffix(',').map_or(start, str::len), end)
    }

    /// The item of a list that stands at `place`, with what is too much when it goes.
    fn item(&self, place: Place) -> Option<(usize, usize)> {
        if self.is_flow(place)? {
            let (start, end) = self.entry(place)?;
            return Some(self.with_comma(start, end));
        }
        let line = self.line(place.line)?;
        let dash = line.find('-')?;
        let column = u32::try_from(dash + 1).ok()?;
        let (start, end) = self.entry(Place { column, ..place })?;
        let line_start = start - dash;
        let after = self.text[end..].find('\n').map_or(self.text.len(), |at| end + at + 1);
        Some((line_start, after))
    }

    /// The text of an entry under another name, its further lines counted from the column of its key.
    fn renamed(&self, key: Place, name: &str) -> Option<String> {
        let (start, end) = self.entry(key)?;
        let key_end = self.span(key)?.1;
        let rest = self.text.get(key_end..end)?;
        let lead = " ".repeat(key.column as usize - 1);
        let rest = rest.replace("\r\n", "\n").replace(&format!("\n{lead}"), "\n");
        debug_assert!(start <= key_end);
        Some(format!("{name}{rest}"))
    }
}

/// Calls `each` with every sign of YAML's flow style and where it is; neither quotes nor comments have any. Ends when it
/// says no.
pub(super) fn scan(text: &str, mut each: impl FnMut(usize, char) -> bool) {
    let mut quote = None;
    let mut is_comment = false;
    let mut before = '\n';
    let mut signs = text.char_indices().peekable();
    while let Some((at, sign)) = signs.next() {
        match quote {
            Some(open) => {
                if open == '"' && sign == '\\' {
                    signs.next();
                } else if sign == open {
                    quote = None;
                }
            }
            None if is_comment => is_comment = sign != '\n',
            None => match sign {
                '#' if before.is_whitespace() => is_comment = true,
                '"' | '\'' if before.is_whitespace() || "[{,:".contains(before) => quote = Some(sign),
                '[' | '{' | ']' | '}' | ',' => {
                    // A variable is no mapping.
                    let is_variable =
                        (sign == '{' && before == '$') || sign == '}' && opens_variable(&text[..at]);
                    if !is_variable && !each(at, sign) {
                        return;
                    }
                }
                _ => {}
            },
        }
        before = sign;
    }
}

/// Whether the last brace that opened belongs to `${`.
fn opens_variable(before: &str) -> bool {
    let last = before.rfind(['{', '}', '\n']);
    last.is_some_and(|at| before[at..].starts_with('{') && before[..at].ends_with('$'))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
mod tests {
    use super::*;

    fn at(line: u32, column: u32, width: u32) -> Place {
        Place::new(line, column, width)
    }

    fn done(fix: Fix, text: &str) -> String {
        fix.apply(text, at(1, 1, 1)).unwrap()
    }

    #[test]
    fn mappings_become_items_and_get_names() {
        let one = "b:\n  h: a\n  p: 1\nc: 2\n";
        assert_eq!(done(Fix::Dash(at(1, 1, 1), at(2, 3, 1)), one), "b:\n  - h: a\n    p: 1\nc: 2\n");
        assert_eq!(done(Fix::Dash(at(1, 1, 1), at(1, 4, 1)), "b: {h: a}"), "b: [{h: a}]");
        assert_eq!(done(Fix::Nest(at(1, 1, 1), "n".into()), one), "b:\n  n:\n    h: a\n    p: 1\nc: 2\n");
    }

    #[test]
    fn values_are_replaced_with_their_quotes_and_brackets() {
        assert_eq!(done(Fix::At(at(1, 4, 3), "\"*:1\"".into()), "a: 'x' # y"), "a: \"*:1\" # y");
        assert_eq!(done(Fix::At(at(1, 4, 1), "x".into()), "a: [1, ['2'], {b: ']'}]\nc: 1"), "a: x\nc: 1");
        assert_eq!(done(Fix::At(at(2, 5, 1), "2".into()), "ä: 1\r\nö: é1\r\n"), "ä: 1\r\nö: é2\r\n");
    }

    #[test]
    fn entries_go_with_all_that_is_theirs() {
        let block = "t:\n  a: 1\n  b:\n  - x\n\n  - y\n  c: 3\n";
        assert_eq!(done(Fix::Remove(at(3, 3, 1)), block), "t:\n  a: 1\n  c: 3\n");
        assert_eq!(done(Fix::Remove(at(1, 4, 1)), "- {a: 1, b: [2, 3]}"), "- {b: [2, 3]}");
        assert_eq!(done(Fix::Remove(at(1, 10, 1)), "- {a: 1, b: [2, 3]}"), "- {a: 1}");
        assert_eq!(done(Fix::Remove(at(1, 3, 1)), "- a: 1\n  b: 2\n- c: 3"), "- b: 2\n- c: 3");
        assert_eq!(done(Fix::RemoveItem(at(2, 5, 1)), "l:\n  - a\n  - b\n"), "l:\n  - b\n");
        assert_eq!(done(Fix::RemoveItem(at(1, 8, 1)), "l: [a, b]"), "l: [a]");
    }

    #[test]
    fn entries_move_and_get_groups() {
        let block = "t:\n  a: 1\n  l:\n    - b: 2\n      k: 3\n";
        assert_eq!(
            done(Fix::Move(at(5, 7, 1), at(2, 3, 1), "m".into()), block),
            "t:\n  m: 3\n  a: 1\n  l:\n    - b: 2\n"
        );
        assert_eq!(
            done(Fix::Wrap(at(2, 3, 1), "g".into(), "n".into()), block).lines().nth(1),
            Some("  g: {n: 1}")
        );
        let list = "t:\n  k:\n    - 1\n    - 2\n";
        assert_eq!(
            done(Fix::Wrap(at(2, 3, 1), "g".into(), "n".into()), list),
            "t:\n  g:\n    n:\n      - 1\n      - 2\n"
        );
        assert_eq!(done(Fix::Indent(vec![at(2, 3, 1)], 2), list), "t:\n    k:\n      - 1\n      - 2\n");
        assert_eq!(
            done(Fix::Then(at(1, 8, 1), "h".into(), at(1, 2, 4), "port: 1".into()), "{host: a}"),
            "{host: h, port: 1}"
        );
    }
}
