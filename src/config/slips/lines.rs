//! Slips within one line.

use super::slip::{Slip, small};
use crate::config::edit::Fix;
use crate::config::error::quoted;
use crate::config::hidden;
use crate::config::origin::Place;
use crate::config::raw::SHAPES;

/// Characters that look like a blank, or like nothing, with their names.
const BLANKS: &[(char, &str, &str)] = &[
    ('\u{a0}', "a no-break space (U+00A0)", " "),
    ('\u{202f}', "a narrow no-break space (U+202F)", " "),
    ('\u{2003}', "an em space (U+2003)", " "),
    ('\u{2002}', "an en space (U+2002)", " "),
    ('\u{2009}', "a thin space (U+2009)", " "),
    ('\u{3000}', "an ideographic space (U+3000)", " "),
    ('\u{200b}', "a zero-width space (U+200B)", ""),
    ('\u{2060}', "a word joiner (U+2060)", ""),
    ('\u{feff}', "a byte order mark (U+FEFF)", ""),
];
/// Quotes of word processors.
const QUOTES: &[char] = &['“', '”', '„', '‟', '«', '»', '‘', '’', '‚', '`', '´'];
/// What stands for the dash of a list.
const DASHES: &[(char, &str)] = &[
    ('–', "an en dash (U+2013)"),
    ('—', "an em dash (U+2014)"),
    ('−', "a minus sign (U+2212)"),
    ('‐', "a hyphen (U+2010)"),
    ('•', "a bullet (U+2022)"),
];

/// The first slip of a line, and the line without any.
pub(super) fn slip(line: &str, number: u32) -> Option<(Slip, String)> {
    if line.trim_start().starts_with('#') {
        return None;
    }
    let mut first: Option<(usize, usize, String, Option<&'static str>, String)> = None;
    let mut mended = line.to_owned();
    for find in [blanks, dash, quotes, colon, template, no_blank_after_dash, no_blank_after_colon, no_colon] {
        if let Some(found) = find(&mended) {
            mended = found.mended;
            first.get_or_insert((found.at, found.width, found.message, found.expected, found.hint));
        }
    }
    let (at, width, message, expected, hint) = first?;
    let place = Place::new(number, small(at + 1), small(width.max(1)));
    let is_secret = hidden::has_secret(&mended) || hidden::has_secret(line);
    let hint = if is_secret { "write it as the documentation shows".to_owned() } else { hint };
    let secret = is_secret.then(|| Place::new(number, small(at + 1), u32::MAX));
    let slip = Slip { place, message, expected, hint, fix: Fix::Line(number, mended.clone()), secret };
    Some((slip, mended))
}

/// One kind of slip in a line; places are in characters.
struct Found {
    at: usize,
    width: usize,
    message: String,
    expected: Option<&'static str>,
    hint: String,
    mended: String,
}

/// Which characters of a line stand in plain quotes or in a comment.
fn sheltered(line: &str) -> Vec<bool> {
    let mut inside = Vec::with_capacity(line.len());
    let (mut quote, mut is_comment, mut before) = (None, false, ' ');
    for c in line.chars() {
        match quote {
            Some(open) if c == open => {
                inside.push(true);
                quote = None;
            }
            Some(_) => inside.push(true),
            None => {
                is_comment |= c == '#' && before.is_whitespace();
                let opens = matches!(c, '"' | '\'') && (before.is_whitespace() || "[{,:-".contains(before));
                if opens && !is_comment {
                    quote = Some(c);
                }
                inside.push(opens || is_comment);
            }
        }
        before = c;
    }
    inside
}

fn blanks(line: &str) -> Option<Found> {
    let inside = sheltered(line);
    let name = |c: char| BLANKS.iter().find(|(odd, ..)| *odd == c);
    let mut found: Option<(usize, &str, &str)> = None;
    let mut mended = String::with_capacity(line.len());
    for (at, c) in line.chars().enumerate() {
        match name(c) {
            // At the beginning of a file a byte order mark is allowed.
            Some((_, name, with)) if !inside[at] && (at > 0 || c != '\u{feff}') => {
                found.get_or_insert((at, name, with));
                mended.push_str(with);
            }
            _ => mended.push(c),
        }
    }
    let (at, name, with) = found?;
    let (like, do_this) = match with {
        "" => ("which nobody sees", "remove it"),
        _ => ("which only looks like a plain one", "write a plain space"),
    };
    let message = format!("{name} stands here, {like}");
    Some(Found { at, width: 1, message, expected: None, hint: do_this.to_owned(), mended })
}

fn dash(line: &str) -> Option<Found> {
    let at = line.chars().position(|c| c != ' ')?;
    let c = line.chars().nth(at)?;
    let (_, name) = DASHES.iter().find(|(dash, _)| *dash == c)?;
    let mended = line.replacen(c, "-", 1);
    let message = format!("{name} stands here, which only looks like the `-` of a list");
    Some(Found { at, width: 1, message, expected: None, hint: "write `-`".to_owned(), mended })
}

fn quotes(line: &str) -> Option<Found> {
    let inside = sheltered(line);
    let chars: Vec<char> = line.chars().collect();
    let begins_value = |at: usize| {
        let before = chars[..at].iter().rev().find(|c| !c.is_whitespace());
        before.is_some_and(|c| ":-[{,".contains(*c))
    };
    let at = (0..chars.len()).find(|&at| QUOTES.contains(&chars[at]) && !inside[at] && begins_value(at))?;
    let mended: String = chars.iter().map(|c| if QUOTES.contains(c) { '"' } else { *c }).collect();
    let message = match chars[at] {
        '`' | '´' => "a backquote stands here, which is none of YAML's quotes".to_owned(),
        quote => format!("{quote} is a quote of printed text, and none of YAML's"),
    };
    let hint = "write plain quotes: \"…\"".to_owned();
    Some(Found { at, width: 1, message, expected: None, hint, mended })
}

/// A colon of Chinese or Japanese text.
fn colon(line: &str) -> Option<Found> {
    let inside = sheltered(line);
    let at = line.chars().enumerate().position(|(at, c)| c == '：' && !inside[at])?;
    let message = "a full-width colon (U+FF1A) stands here, which only looks like `:`".to_owned();
    let mended = line.replace("： ", ": ").replace('：', ": ");
    Some(Found { at, width: 1, message, expected: None, hint: "write `: `".to_owned(), mended })
}

/// Whether a word is the name of a key somewhere.
fn is_key(word: &str) -> bool {
    SHAPES.iter().flat_map(|shape| shape.keys()).any(|key| key.name == word)
}

fn no_blank_after_dash(line: &str) -> Option<Found> {
    let at = line.len() - line.trim_start_matches(' ').len();
    let rest = line[at..].strip_prefix('-')?;
    let word: String = rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
    let is_item =
        rest.starts_with(['{', '"', '\'']) || (is_key(&word) && rest[word.len()..].starts_with(':'));
    let is_item =
        is_item || ["http:", "https:", "tcp:", "tls:", "unix:"].iter().any(|start| rest.starts_with(start));
    is_item.then(|| Found {
        at,
        width: 1,
        message: "a space is missing behind `-`, so this is no item of a list".to_owned(),
        expected: None,
        hint: format!("write `- {}`", shortened(rest)),
        mended: format!("{}- {rest}", &line[..at]),
    })
}

fn shortened(text: &str) -> String {
    let mut short: String = text.trim_end().chars().take(40).collect();
    if text.trim_end().chars().count() > 40 {
        short.push('…');
    }
    short
}

fn no_blank_after_colon(line: &str) -> Option<Found> {
    let inside = sheltered(line);
    let chars: Vec<char> = line.chars().collect();
    let mut found: Option<(usize, String)> = None;
    let mut mended = String::with_capacity(line.len() + 4);
    for (at, &c) in chars.iter().enumerate() {
        mended.push(c);
        let next = chars.get(at + 1).copied();
        if c != ':' || inside[at] || next.is_none_or(|next| next.is_whitespace() || next == '/') {
            continue;
        }
        let word: String =
            chars[..at].iter().rev().take_while(|c| c.is_ascii_lowercase() || **c == '_').collect();
        let word: String = word.chars().rev().collect();
        let start = at - word.chars().count();
        let before = chars[..start].iter().rev().find(|c| **c != ' ');
        let is_first = before.is_none_or(|c| "-{,".contains(*c));
        if is_key(&word) && is_first {
            mended.push(' ');
            found.get_or_insert((start, word));
        }
    }
    let (start, word) = found?;
    let entry: String = mended.chars().skip(start).collect();
    let is_flow = line[..line.char_indices().nth(start)?.0].contains(['{', '[']);
    let shown = if is_flow { entry.split([',', '}']).next().unwrap_or(&entry) } else { &entry };
    let more = mended.chars().count() > line.chars().count() + 1;
    let rest = if more { ", and the same in the rest of the line" } else { "" };
    let hint = format!("write `{}`{rest}", shortened(shown));
    Some(Found {
        at: start,
        width: word.chars().count() + 1,
        message: format!("a space is missing behind `{word}:`"),
        expected: None,
        hint,
        mended,
    })
}

/// What a program was to fill in.
fn template(line: &str) -> Option<Found> {
    let inside = sheltered(line);
    let start = line.find("{{")?;
    let end = start + line[start..].find("}}")? + 2;
    let at = line[..start].chars().count();
    let value = line[..start].trim_end();
    if inside.get(at).copied().unwrap_or(true) || !value.ends_with([':', '-', '[', ',']) {
        return None;
    }
    let example = match value {
        _ if value.ends_with("listener:") => "8080",
        _ if value.ends_with("port:") => "8001",
        _ => "1",
    };
    Some(Found {
        at,
        width: line[start..end].chars().count(),
        message: format!("{} is a placeholder that no program has filled in", quoted(&line[start..end])),
        expected: None,
        hint: format!("write the value itself, for example `{example}`"),
        mended: format!("{}{example}{}", &line[..start], &line[end..]),
    })
}

/// `listener 8080`, `listener = 8080`, and `backends` alone.
fn no_colon(line: &str) -> Option<Found> {
    let inside = sheltered(line);
    let lead = line.len() - line.trim_start_matches(' ').len();
    let at = lead + if line[lead..].starts_with("- ") { 2 } else { 0 };
    let rest = line.get(at..)?;
    let word: String = rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
    if !is_key(&word) || inside.get(at).copied().unwrap_or(true) {
        return None;
    }
    let after = &rest[word.len()..];
    let value = after.trim_start().strip_prefix('=').unwrap_or(after).trim();
    let is_apart = after.is_empty() || after.starts_with([' ', '\t', '=']);
    if !is_apart || after.trim_start().starts_with([':', ',', ']', '}']) || value.contains(": ") {
        return None;
    }
    // A word that goes on is text, unless it is what a value looks like.
    if value.starts_with('#') || value.split_whitespace().count() > 1 && !value.starts_with(['[', '{', '"']) {
        return None;
    }
    let entry = if value.is_empty() { format!("{word}:") } else { format!("{word}: {value}") };
    Some(Found {
        at,
        width: word.chars().count(),
        message: format!("a `:` is missing behind {}", quoted(&word)),
        expected: None,
        hint: format!("write `{}`", shortened(&entry)),
        mended: format!("{}{entry}", &line[..at]),
    })
}
