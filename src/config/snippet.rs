//! The line of a file that a problem is about, with carets below it.

use super::error::visible;
use super::origin::Place;

/// Longest part of a source line that is shown, in characters.
const SNIPPET_WIDTH: usize = 100;

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
pub(super) fn snippet(line: &str, place: Place) -> (String, String) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_around_the_caret() {
        let line = format!("{}here{}", "x".repeat(300), "y".repeat(300));
        let (shown, carets) = snippet(&line, Place::new(1, 301, 4));
        assert_eq!(shown.chars().count(), SNIPPET_WIDTH + 2);
        let at = carets.chars().count() - 4;
        assert_eq!(shown.chars().skip(at).take(4).collect::<String>(), "here");
    }
}
