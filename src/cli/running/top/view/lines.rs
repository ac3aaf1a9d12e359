//! Lines of text with styles: how they are put together, and onto the screen.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use crate::cli::running::top::look::{Look, Mood};

/// Text in the usual style.
pub(super) fn plain(text: impl Into<String>) -> Span<'static> {
    Span::raw(text.into())
}

/// Text that stands out.
pub(super) fn bold(text: impl Into<String>) -> Span<'static> {
    Span::styled(text.into(), Style::new().add_modifier(Modifier::BOLD))
}

/// Text in the style of a mood.
pub(super) fn toned(look: Look, mood: Mood, text: impl Into<String>) -> Span<'static> {
    Span::styled(text.into(), look.style(mood))
}

/// A line of one text.
pub(super) fn line(text: impl Into<String>) -> Line<'static> {
    Line::from(plain(text))
}

/// A text on as many lines as it takes, broken at blanks where that can be. `text` is safe already.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut word: Vec<char> = word.chars().collect();
        if used > 0 && used + 1 + word.len() > width {
            lines.push(String::new());
            used = 0;
        }
        while !word.is_empty() {
            let gap = usize::from(used > 0);
            let taken = word.len().min(width - used - gap);
            let rest = word.split_off(taken);
            // There is always a last one.
            if let Some(last) = lines.last_mut() {
                last.extend(std::iter::repeat_n(' ', gap).chain(word));
            }
            used += gap + taken;
            word = rest;
            if !word.is_empty() {
                lines.push(String::new());
                used = 0;
            }
        }
    }
    lines
}

/// Puts a line onto the screen, as far as it fits. Whatever is in it, only harmless characters get there.
pub(super) fn paint(look: Look, line: &Line<'_>, area: Rect, y: u16, onto: &mut Buffer) {
    if y >= area.height {
        return;
    }
    let safe = line.spans.iter().map(|span| Span::styled(look.text(&span.content), span.style));
    let safe = Line::from(safe.collect::<Vec<_>>());
    onto.set_style(Rect { y: area.y + y, height: 1, ..area }, line.style);
    onto.set_line(area.x, area.y + y, &safe, area.width);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_takes_as_many_lines_as_it_needs() {
        assert_eq!(wrapped("", 5), [""]);
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("a bcdefgh ij", 3), ["a", "bcd", "efg", "h", "ij"]);
        assert_eq!(wrapped("abc", 0), ["a", "b", "c"]);
        for width in 1..20 {
            let lines =
                wrapped("0123456789 a bb ccc dddd eeeee 0123456789012345678901234567890123456789", width);
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{width}: {lines:?}");
        }
    }
}
