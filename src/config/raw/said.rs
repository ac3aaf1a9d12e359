//! What a value is, in words, and what somebody who wrote it probably meant.

use std::fmt::Display;
use std::ops::RangeInclusive;

use super::vocabulary::nearest::nearest;
use crate::config::error::{Wrong, one_of, quoted};
use crate::config::hidden::without_user;
use crate::config::units;
use crate::config::yaml::{Node, Typed, truth};

/// The value behind a name; upper and lower case are the same.
pub(in crate::config) fn choose<T: Clone>(text: &str, table: &[(&'static str, T)]) -> Result<T, Wrong> {
    let lower = text.to_lowercase();
    if let Some((_, value)) = table.iter().find(|(name, _)| *name == lower) {
        return Ok(value.clone());
    }
    let expected = one_of(table.iter().map(|(name, _)| *name));
    let mut wrong = Wrong::new(format!("is {}, which does not exist", quoted(text)), expected);
    if let Some(name) = nearest(&lower.replace('-', "_"), table.iter().map(|(name, _)| *name)) {
        wrong = wrong.hint(format!("did you mean `{name}`?"), name);
    }
    Err(wrong)
}

/// Advice for whoever wrote a variable as shells do.
pub(super) fn variable(wrong: Wrong, text: &str) -> Wrong {
    if wrong.hint.is_some() {
        return wrong;
    }
    let Some((before, after)) = text.split_once('$') else { return wrong };
    let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
    let (name, rest) = after.split_at(end);
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return wrong;
    }
    let value = format!("{before}${{{name}}}{rest}");
    wrong.hint(format!("write `{value}`: the name of a variable stands in braces"), format!("\"{value}\""))
}

/// The number that a text has in it, when there is one and it is in range.
pub(super) fn meant_number(text: &str, range: &RangeInclusive<u32>, form: &str) -> Option<String> {
    if units::is_endless(text) {
        return form.contains("`off`").then(|| "off".to_owned());
    }
    let grouped = text.contains(',') && text.split(',').skip(1).all(|group| group.len() == 3);
    let text = if grouped { &text.replace(',', "") } else { text };
    let bare: String = text.chars().filter(|c| !matches!(c, '_' | '\'' | ' ')).collect();
    let bare = bare.trim_end_matches([',', ';', '.']).trim_end_matches(".0");
    let bare = bare.trim_start_matches([':', '=']);
    let (digits, thousand) = match bare.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000),
        None => (bare, 1),
    };
    let number = digits.parse::<u32>().ok()?.checked_mul(thousand)?;
    range.contains(&number).then(|| number.to_string())
}

/// A word that switches something off: `off`, `no` or `false`, with or without quotes.
pub(super) fn is_off(node: &Node) -> bool {
    match node.typed() {
        Typed::Bool(value) => !value,
        Typed::Text(text) => truth(text) == Some(false),
        Typed::Null | Typed::Integer(_) | Typed::Float(_) | Typed::List(_) | Typed::Map(_) => false,
    }
}

/// A word that switches something on: `on`, `yes` or `true`, with or without quotes.
pub(super) fn is_on(node: &Node) -> bool {
    match node.typed() {
        Typed::Bool(value) => value,
        Typed::Text(text) => truth(text) == Some(true),
        Typed::Null | Typed::Integer(_) | Typed::Float(_) | Typed::List(_) | Typed::Map(_) => false,
    }
}

/// A key as the subject of a sentence.
pub(in crate::config) fn subject(key: &str) -> String {
    quoted(key)
}

/// What a node is, as a predicate.
pub(super) fn found(node: &Node) -> String {
    let text = node.text().map(|text| quoted(&without_user(text))).unwrap_or_default();
    match (node.typed(), node.variable()) {
        (_, Some(variable)) => format!("is {text} (from `${{{variable}}}`)"),
        (Typed::Null, None) => "has no value".into(),
        (Typed::Bool(value), None) if node.text() == Some(if value { "true" } else { "false" }) => {
            format!("is {text}")
        }
        (Typed::Bool(value), None) => format!("is {text}, which YAML reads as {value}"),
        (Typed::Integer(_) | Typed::Float(_), None) => format!("is the number {text}"),
        (Typed::Text(_), None) => format!("is the text {text}"),
        (Typed::List(_), None) => "is a list".into(),
        (Typed::Map(_), None) => "is a mapping (`key: value`)".into(),
    }
}

/// The predicate of a number that its key does not take.
pub(in crate::config) fn out_of_range(number: impl Display, expected: &str, too_small: bool) -> Wrong {
    let side = if too_small { "too small" } else { "too large" };
    Wrong::new(format!("is {number}, which is {side}"), expected)
}

pub(super) fn in_range<T: PartialOrd>(
    value: &T,
    range: &RangeInclusive<T>,
    expected: &str,
    shown: String,
) -> Result<(), Wrong> {
    if range.contains(value) { Ok(()) } else { Err(out_of_range(shown, expected, value < range.start())) }
}
