//! What a scalar means: YAML 1.2 numbers and nulls, and the YAML 1.1 words for true and false that people
//! write in config files (`yes`, `no`, `on`, `off`).

use super::{Entry, Node, Value};

/// A scalar as written.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::config) struct Scalar {
    /// After escapes and, later, after `${…}`.
    pub(in crate::config) text: String,
    /// Written without quotes, so it may be a number, a truth value or nothing.
    pub(in crate::config) plain: bool,
    /// The variable its text came from. Such a value takes the type its key wants: nobody can put quotes
    /// into an environment variable for YAML's sake.
    pub(in crate::config) variable: Option<String>,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::config) enum Typed<'n> {
    /// Nothing, `~` or `null`.
    Null,
    /// `true`, `yes`, `on`, `false`, `no`, `off`.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// Anything else, or anything in quotes.
    Text(&'n str),
    /// `- item` lines or `[…]`.
    List(&'n [Node]),
    /// `key: value` lines or `{…}`.
    Map(&'n [Entry]),
}

impl Node {
    /// What it is.
    pub(in crate::config) fn typed(&self) -> Typed<'_> {
        match &self.value {
            Value::Scalar(scalar) if scalar.plain => plain(&scalar.text),
            Value::Scalar(scalar) => Typed::Text(&scalar.text),
            Value::List(items) => Typed::List(items),
            Value::Map(entries) => Typed::Map(entries),
        }
    }

    /// Its text when it is a scalar.
    pub(in crate::config) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(scalar) => Some(&scalar.text),
            Value::List(_) | Value::Map(_) => None,
        }
    }

    /// The variable it came from.
    pub(in crate::config) fn variable(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar(scalar) => scalar.variable.as_deref(),
            Value::List(_) | Value::Map(_) => None,
        }
    }

    /// Nothing was written.
    pub(in crate::config) fn is_null(&self) -> bool {
        self.typed() == Typed::Null
    }
}

/// The meaning of an unquoted scalar.
pub(in crate::config) fn plain(text: &str) -> Typed<'_> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Typed::Null,
        _ => truth(text)
            .map(Typed::Bool)
            .or_else(|| integer(text).map(Typed::Integer))
            .or_else(|| float(text).map(Typed::Float))
            .unwrap_or(Typed::Text(text)),
    }
}

/// Words for yes.
pub(in crate::config) const TRUE_WORDS: &[&str] =
    &["true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"];
/// Words for no.
pub(in crate::config) const FALSE_WORDS: &[&str] =
    &["false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"];

/// The truth value that a word stands for.
pub(in crate::config) fn truth(text: &str) -> Option<bool> {
    if TRUE_WORDS.contains(&text) {
        Some(true)
    } else if FALSE_WORDS.contains(&text) {
        Some(false)
    } else {
        None
    }
}

/// A whole number in decimal, `0x` or `0o`.
pub(in crate::config) fn integer(text: &str) -> Option<i64> {
    if let Some(digits) = text.strip_prefix("0x") {
        return i64::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with(['+', '-']));
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return i64::from_str_radix(digits, 8).ok().filter(|_| !digits.starts_with(['+', '-']));
    }
    text.parse().ok()
}

/// Any other number. Rust reads `inf` and `NaN` too, which YAML spells `.inf` and `.nan`: all of them are text here.
fn float(text: &str) -> Option<f64> {
    let numeric = text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'))
        && text.contains(|c: char| c.is_ascii_digit());
    text.parse().ok().filter(|_| numeric)
}
