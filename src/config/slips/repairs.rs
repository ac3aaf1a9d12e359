//! What would make YAML of a text that is none: some edits are tried, and the one that leaves the fewest problems is proposed.

use super::slip::Burden;
use crate::config::edit::Fix;
use crate::config::hidden;
use crate::config::origin::Place;
use crate::config::snippet::lines as lines_of;

/// Most lines above the fault that are looked at.
const REACH: usize = 40;

/// What to do about a fault of the syntax at `place`.
pub(in crate::config) fn repair(text: &str, place: Place, burden: Burden<'_>) -> Option<(String, Fix)> {
    let lines: Vec<&str> = lines_of(text).collect();
    let at = (place.line as usize).checked_sub(1)?.min(lines.len().checked_sub(1)?);
    let mut tries = Vec::new();
    quotes(&lines, at, &mut tries);
    brackets(&lines, at, &mut tries);
    colons(&lines, at, &mut tries);
    indents(&lines, at, &mut tries);
    let with = |(index, line): &(usize, String)| {
        let mut changed = lines.clone();
        changed[*index] = line;
        changed.join("\n")
    };
    let judged = tries.into_iter().map(|(words, edit)| (burden(&with(&edit)), words, edit));
    let (_, words, (index, line)) =
        judged.filter(|(left, ..)| *left < usize::MAX).min_by_key(|(left, ..)| *left)?;
    let number = u32::try_from(index + 1).ok()?;
    // What it says may quote the file.
    let words = if hidden::has_secret(text) && words.contains(['"', '\'', '`']) {
        format!("line {number} needs a pair of quotes, a bracket or a colon more")
    } else {
        words
    };
    Some((words, Fix::Line(number, line)))
}

/// Words with the line that they are about and what it becomes.
type Try = (String, (usize, String));

/// The last lines with something on them before `at`, nearest first.
fn above<'l>(lines: &'l [&'l str], at: usize) -> impl Iterator<Item = (usize, &'l str)> {
    let written = |line: &&str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    (0..at).rev().map(|index| (index, lines[index])).filter(move |(_, line)| written(line)).take(REACH)
}

/// A value that needs quotes, or whose quotes are not closed.
fn quotes(lines: &[&str], at: usize, tries: &mut Vec<Try>) {
    for index in [Some(at), above(lines, at).next().map(|(index, _)| index)].into_iter().flatten() {
        let line = lines[index];
        flow_values(line, index, tries);
        if let Some((head, value)) = line.split_once(": ").or_else(|| line.split_once("- ")) {
            let sign = if line.contains(": ") { ": " } else { "- " };
            let value = value.split_once(" #").map_or(value, |(value, _)| value);
            let bare = value.trim();
            if !bare.is_empty() && !bare.contains('"') {
                let quote = |text: &str| {
                    if text.contains('\\') { format!("'{text}'") } else { format!("\"{text}\"") }
                };
                tries.push((
                    format!("put the value in quotes: {}", quote(bare)),
                    (index, format!("{head}{sign}{}", quote(bare))),
                ));
            }
            if bare.starts_with('"') && bare.contains('\\') {
                let single = format!("'{}'", bare.trim_matches('"'));
                tries.push((
                    format!("single quotes leave a backslash as it is: {single}"),
                    (index, format!("{head}{sign}{single}")),
                ));
            }
        }
    }
    let odd = |line: &str, quote: char| line.matches(quote).count() % 2 == 1;
    let own = std::iter::once((at, lines[at]));
    for (index, line) in own.chain(above(lines, at)) {
        for quote in ['"', '\''] {
            if odd(line, quote) {
                tries.push((
                    format!("close the quote on line {} with another `{quote}`", index + 1),
                    (index, format!("{}{quote}", line.trim_end())),
                ));
            }
        }
    }
}

/// Values in `{…}` and `[…]` that begin with a sign of YAML's own, or are variables.
fn flow_values(line: &str, index: usize, tries: &mut Vec<Try>) {
    for start in ["${", "*", "@", "%", "&", "!", "`"] {
        let Some(found) = line.find(start) else { continue };
        let rest = &line[found..];
        let end =
            if start == "${" { rest.find('}').map(|end| end + 1) } else { rest.find([',', ']', '}', ' ']) };
        let (value, after) = rest.split_at(end.unwrap_or(rest.len()));
        let tail = after.find([',', ']', '}', ' ']).filter(|_| start == "${").unwrap_or(0);
        let (more, after) = after.split_at(tail);
        tries.push((
            format!("put the value in quotes: \"{value}{more}\""),
            (index, format!("{}\"{value}{more}\"{after}", &line[..found])),
        ));
    }
}

/// A bracket that is not closed.
fn brackets(lines: &[&str], at: usize, tries: &mut Vec<Try>) {
    let own = std::iter::once((at, lines[at]));
    for (index, line) in own.chain(above(lines, at)) {
        let mut open = Vec::new();
        for c in line.chars() {
            match c {
                '[' => open.push(']'),
                '{' => open.push('}'),
                ']' | '}' => {
                    open.pop();
                }
                _ => {}
            }
        }
        if !open.is_empty() {
            let close: String = open.iter().rev().collect();
            tries.push((
                format!("close it with `{close}` at the end of line {}", index + 1),
                (index, format!("{}{close}", line.trim_end())),
            ));
        }
    }
}

/// A key without its colon.
fn colons(lines: &[&str], at: usize, tries: &mut Vec<Try>) {
    let own = std::iter::once((at, lines[at]));
    for (index, line) in own.chain(above(lines, at)).take(3) {
        let bare = line.trim();
        let is_word =
            |word: &str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
        let lead = &line[..line.len() - line.trim_start().len()];
        if is_word(bare) {
            tries.push((format!("write `{bare}:` on line {}", index + 1), (index, format!("{lead}{bare}:"))));
        }
    }
}

/// A line that begins in a column of its own.
fn indents(lines: &[&str], at: usize, tries: &mut Vec<Try>) {
    let lead = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let mut seen = vec![lead(lines[at])];
    for (index, line) in above(lines, at) {
        let mut columns = vec![lead(line)];
        if line.trim_start().starts_with("- ") {
            columns.push(lead(line) + 2);
        }
        for column in columns {
            if !seen.contains(&column) {
                seen.push(column);
                let moved = format!("{}{}", " ".repeat(column), lines[at].trim_start());
                let words = begin(at, column, index, lead(lines[at]));
                tries.push((words, (at, moved)));
            }
        }
    }
    // The line above may be the one that is wrong.
    if let Some((index, line)) = above(lines, at).next() {
        let column = lead(lines[at]);
        if column != lead(line) {
            let moved = format!("{}{}", " ".repeat(column), line.trim_start());
            let words = begin(index, column, at, lead(line));
            tries.push((words, (index, moved)));
        }
    }
}

/// Where a line is to begin.
fn begin(at: usize, column: usize, like: usize, now: usize) -> String {
    let spaces = match column {
        0 => "no space".to_owned(),
        1 => "exactly 1 space".to_owned(),
        _ => format!("exactly {column} spaces"),
    };
    format!("begin line {} with {spaces}, like line {} (it has {now} now)", at + 1, like + 1)
}

/// What to do where a `#` has made a comment of a value, or of its end. `None` in place of the edit: there is none.
pub(in crate::config) fn comment(
    text: &str,
    place: Place,
    is_accepted: impl Fn(&Fix) -> bool,
) -> Option<(String, Option<Fix>)> {
    let line = lines_of(text).nth((place.line as usize).checked_sub(1)?)?;
    let start = line.char_indices().nth((place.column as usize).checked_sub(1)?)?.0;
    let after = &line[start..];
    let hash = after.find(" #")?;
    // A comment has a blank behind its sign, as a rule.
    if after[hash + 2..].starts_with([' ', '#']) || after[hash + 2..].is_empty() {
        return None;
    }
    let (head, value, key) = match after[..hash].split_once(':') {
        Some((key, rest)) if rest.trim().is_empty() => {
            (format!("{}{key}: ", &line[..start]), after[hash..].trim(), Some(key))
        }
        _ => (line[..start].to_owned(), after.trim(), None),
    };
    if value.contains('"') || hidden::has_secret(line) {
        return None;
    }
    let with = |value: &str| Fix::Line(place.line, format!("{head}{value}"));
    let quoted = format!("\"{value}\"");
    if is_accepted(&with(&quoted)) {
        let words =
            format!("the `#` begins a comment; put the value in quotes if it is a part of it: {quoted}");
        return Some((words, Some(with(&quoted))));
    }
    let nothing = "the `#` begins a comment, so nothing is left of the value";
    let path = value.replacen('#', "/", 1);
    match key? {
        "path" | "health_path" if is_accepted(&with(&path)) => {
            Some((format!("{nothing}: write `{path}`"), Some(with(&path))))
        }
        _ => Some((nothing.to_owned(), None)),
    }
}
