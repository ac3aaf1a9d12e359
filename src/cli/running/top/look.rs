//! With what signs and colours it is drawn, and which characters of others may be drawn at all.

use ratatui::style::{Color, Modifier, Style};
use unicode_width::UnicodeWidthChar as _;

use crate::message::steers;

/// How bad something is; the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mood {
    Down,
    Hurt,
    Unknown,
    Well,
}

impl Mood {
    /// Of the word of a state, or of the weight of a trouble.
    pub(super) fn of(word: &str) -> Mood {
        match word {
            "up" => Mood::Well,
            "down" => Mood::Down,
            "draining" | "backups" | "hurt" | "note" => Mood::Hurt,
            _ => Mood::Unknown,
        }
    }
}

/// What the terminal can show.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) has_colours: bool,
    pub(super) is_ascii: bool,
}

/// What the environment says of the terminal.
pub(super) struct Surroundings<'a> {
    pub(super) no_color: Option<&'a str>,
    pub(super) term: Option<&'a str>,
    /// The first of `LC_ALL`, `LC_CTYPE` and `LANG` that is set.
    pub(super) locale: Option<&'a str>,
}

impl Look {
    /// By what was asked for, and else by the environment.
    pub(super) fn of(wants_no_colours: bool, wants_ascii: bool, of: &Surroundings<'_>) -> Look {
        let is_plain = of.no_color.is_some_and(|value| !value.is_empty()) || of.term == Some("dumb");
        let has_unicode = of.locale.is_none_or(|locale| {
            let locale = locale.to_ascii_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        });
        Look { has_colours: !wants_no_colours && !is_plain, is_ascii: wants_ascii || !has_unicode }
    }

    /// A shape says the same as its colour.
    pub(super) fn shape(self, mood: Mood) -> char {
        match (mood, self.is_ascii) {
            (Mood::Well, false) => '●',
            (Mood::Hurt, false) => '◐',
            (Mood::Down, false) => '✕',
            (Mood::Unknown, false) => '○',
            (Mood::Well, true) => 'o',
            (Mood::Hurt, true) => '~',
            (Mood::Down, true) => '!',
            (Mood::Unknown, true) => '?',
        }
    }

    /// The steps of a sparkline.
    pub(super) fn steps(self) -> &'static [char] {
        if self.is_ascii {
            &['_', '.', '-', '=', '#']
        } else {
            &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']
        }
    }

    /// Between parts of a line.
    pub(super) fn dot(self) -> &'static str {
        if self.is_ascii { " - " } else { " · " }
    }

    /// In the place of a figure that is not known.
    pub(super) fn dash(self) -> &'static str {
        if self.is_ascii { "-" } else { "–" }
    }

    /// In the place of what has no room.
    pub(super) fn more(self) -> char {
        if self.is_ascii { '~' } else { '…' }
    }

    /// The style of something in this mood.
    pub(super) fn style(self, mood: Mood) -> Style {
        let (colour, weight) = match mood {
            Mood::Well => (Color::Green, Modifier::empty()),
            Mood::Hurt => (Color::Yellow, Modifier::BOLD),
            Mood::Down => (Color::Red, Modifier::BOLD),
            Mood::Unknown => (Color::Cyan, Modifier::empty()),
        };
        let style = Style::new().add_modifier(weight);
        if self.has_colours { style.fg(colour) } else { style }
    }

    /// A text of somebody else on one line, each character of it one column wide: what is not simple is escaped, as is what an ASCII
    /// terminal has not.
    pub(super) fn text(self, text: &str) -> String {
        let mut safe = String::with_capacity(text.len());
        for sign in text.chars() {
            match sign {
                _ if sign.is_ascii() && !sign.is_ascii_control() => safe.push(sign),
                '–' | '—' | '‐' if self.is_ascii => safe.push('-'),
                '…' if self.is_ascii => safe.push_str("..."),
                '‘' | '’' if self.is_ascii => safe.push('\''),
                _ if is_simple(sign) && !self.is_ascii => safe.push(sign),
                _ => safe.extend(sign.escape_default()),
            }
        }
        safe
    }

    /// What fits into `width` columns of a text that is safe already; names that are alike differ at either end.
    pub(super) fn shortened(self, text: &str, width: usize) -> String {
        let count = text.chars().count();
        if count <= width {
            return text.to_owned();
        }
        let kept = width.saturating_sub(1);
        let tail = text.chars().skip(count - kept / 2);
        text.chars().take(kept - kept / 2).chain((width > 0).then(|| self.more())).chain(tail).collect()
    }

    /// The beginning of a text that is safe already, as far as it fits.
    pub(super) fn begun(self, text: &str, width: usize) -> String {
        if text.chars().count() <= width {
            return text.to_owned();
        }
        text.chars().take(width.saturating_sub(1)).chain((width > 0).then(|| self.more())).collect()
    }
}

/// Characters that stand for themselves on every terminal, in one column and from left to right: Latin, Greek, Cyrillic, and signs.
/// Elsewhere what a column has may depend on those beside it.
fn is_simple(sign: char) -> bool {
    let is_known = matches!(sign,
        ' '..='~' | '\u{a0}'..='\u{24f}' | '\u{370}'..='\u{52f}' | '\u{1e00}'..='\u{1fff}' | '\u{2010}'..='\u{205e}'
        | '\u{20a0}'..='\u{20c0}' | '\u{2190}'..='\u{22ff}' | '\u{2500}'..='\u{25ff}' | '✕');
    is_known && !steers(sign) && sign.width() == Some(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: Look = Look { has_colours: true, is_ascii: false };
    const ASCII: Look = Look { has_colours: false, is_ascii: true };

    #[test]
    fn no_character_of_others_steers_turns_or_takes_another_width() {
        for sign in '\0'..=char::MAX {
            for look in [FULL, ASCII] {
                let shown = look.text(&sign.to_string());
                let is_fine = |sign: char| sign.width() == Some(1) && !steers(sign);
                assert!(shown.chars().all(is_fine), "{:x}: {shown:?}", u32::from(sign));
                assert!(!look.is_ascii || shown.is_ascii(), "{shown}");
            }
        }
        assert_eq!(FULL.text("für 'ä'\u{1b}[2J\u{202e}中\n"), "für 'ä'\\u{1b}[2J\\u{202e}\\u{4e2d}\\n");
        assert_eq!(ASCII.text("für – …"), "f\\u{fc}r - ...");
    }

    #[test]
    fn what_has_no_room_is_cut_and_says_so() {
        assert_eq!(
            [0, 1, 4, 9, 10].map(|width| FULL.shortened("0123456789", width)),
            ["", "…", "01…9", "0123…6789", "0123456789"]
        );
        assert_eq!([0, 1, 3, 4].map(|width| ASCII.begun("0123", width)), ["", "~", "01~", "0123"]);
    }

    #[test]
    fn the_environment_decides_where_nothing_is_asked_for() {
        let of = |no_color, term, locale| {
            let Look { has_colours, is_ascii } =
                Look::of(false, false, &Surroundings { no_color, term, locale });
            (has_colours, is_ascii)
        };
        assert_eq!(of(None, Some("xterm"), Some("de_CH.UTF-8")), (true, false));
        assert_eq!(of(Some(""), None, Some("C.utf8")), (true, false));
        assert_eq!(of(Some("1"), None, None), (false, false));
        assert_eq!(of(None, Some("dumb"), Some("C")), (false, true));
        assert_eq!(of(None, Some("vt100"), Some("de_CH.ISO8859-1")), (true, true));
        let all = Surroundings { no_color: None, term: None, locale: None };
        let Look { has_colours, is_ascii } = Look::of(true, true, &all);
        assert!(!has_colours && is_ascii);
    }
}
