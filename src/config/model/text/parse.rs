//! Takes a text apart, and says what is wrong with it and where.

use super::{Text, TextPiece, Variable};
use crate::config::model::ProxyFact;

/// Where a text stands: what there is to fill in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextPlace {
    /// How many groups the `path_regex` of its route has; `None`: there is none.
    pub groups: Option<usize>,
    /// A target is chosen before the text is needed.
    pub has_target: bool,
    /// So is a backend.
    pub has_backend: bool,
}

impl TextPlace {
    /// In what goes to a backend.
    pub const REQUEST: TextPlace = TextPlace { groups: None, has_target: true, has_backend: false };
    /// In what comes from one.
    pub const ANSWER: TextPlace = TextPlace { groups: None, has_target: true, has_backend: true };
    /// In an answer of our own.
    pub const OURS: TextPlace = TextPlace { groups: None, has_target: false, has_backend: false };

    /// The same in a route whose `path_regex` has so many groups.
    #[must_use]
    pub const fn with_groups(self, groups: Option<usize>) -> TextPlace {
        TextPlace { groups, ..self }
    }

    /// Whether this is known there.
    const fn has(self, variable: &Variable) -> bool {
        match variable {
            Variable::Target => self.has_target,
            Variable::Backend => self.has_backend,
            _ => true,
        }
    }
}

/// What is wrong with a text. Places are counted in characters from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextFault {
    /// Where it begins.
    pub start: usize,
    /// How long it is.
    pub width: usize,
    /// What it is.
    pub kind: TextFaultKind,
}

/// The ways in which a text can be wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextFaultKind {
    /// No variable has this name.
    Unknown(String),
    /// It is a variable, but nothing is known of it where the text stands.
    TooEarly(String),
    /// No header can have this name (RFC 9110 §5.1).
    BadHeader(String),
    /// No cookie can have this name (RFC 6265 §4.1.1).
    BadCookie(String),
    /// A `{` that nothing closes.
    Unclosed,
    /// A `}` that nothing opened.
    Unopened,
    /// `$1` where the route has no `path_regex`.
    NoExpression(u8),
    /// `$3` where its `path_regex` has fewer groups, and how many those are. There is no group 0.
    NoGroup(u8, usize),
    /// A line end or another control character, which would make a second line.
    Control,
}

impl Text {
    /// Takes a text apart that stands in such a place.
    ///
    /// # Errors
    /// Everything that is wrong with it, in the order of the text.
    pub fn parse(source: &str, place: TextPlace) -> Result<Text, Vec<TextFault>> {
        let characters: Vec<char> = source.chars().collect();
        let (mut pieces, mut faults) = (Vec::new(), Vec::new());
        let mut plain = String::new();
        let mut at = 0;
        while let Some(&character) = characters.get(at) {
            let rest = &characters[at + 1..];
            let (used, read) = match character {
                '{' | '}' if rest.first() == Some(&character) => (2, Ok(Err(character))),
                '{' => match rest.iter().position(|next| matches!(next, '{' | '}')) {
                    Some(end) if rest[end] == '}' => {
                        let name: String = rest[..end].iter().collect();
                        (end + 2, variable(&name, place).map(Ok))
                    }
                    Some(_) | None => (1, Err(TextFaultKind::Unclosed)),
                },
                '}' => (1, Err(TextFaultKind::Unopened)),
                '$' => match rest {
                    ['$', digit, ..] if digit.is_ascii_digit() => (2, Ok(Err('$'))),
                    [digit, ..] => match digit.to_digit(10).and_then(|digit| u8::try_from(digit).ok()) {
                        Some(number) => (2, group(number, place).map(Ok)),
                        None => (1, Ok(Err('$'))),
                    },
                    [] => (1, Ok(Err('$'))),
                },
                control if control.is_control() => (1, Err(TextFaultKind::Control)),
                other => (1, Ok(Err(other))),
            };
            match read {
                Ok(Ok(variable)) => {
                    if !plain.is_empty() {
                        pieces.push(TextPiece::Plain(std::mem::take(&mut plain).into()));
                    }
                    pieces.push(TextPiece::Value(variable));
                }
                Ok(Err(character)) => plain.push(character),
                Err(kind) => faults.push(TextFault { start: at, width: used, kind }),
            }
            at += used;
        }
        if !plain.is_empty() {
            pieces.push(TextPiece::Plain(plain.into()));
        }
        if faults.is_empty() { Ok(Text { source: source.into(), pieces }) } else { Err(faults) }
    }
}

/// What stands between the braces.
fn variable(name: &str, place: TextPlace) -> Result<Variable, TextFaultKind> {
    if let Some(header) = name.strip_prefix("header.") {
        let name = header.to_ascii_lowercase().into();
        return if is_token(header) {
            Ok(Variable::Header(name))
        } else {
            Err(TextFaultKind::BadHeader(header.to_owned()))
        };
    }
    if let Some(cookie) = name.strip_prefix("cookie.") {
        return if is_token(cookie) {
            Ok(Variable::Cookie(cookie.into()))
        } else {
            Err(TextFaultKind::BadCookie(cookie.to_owned()))
        };
    }
    if let Some(kind) = name.strip_prefix("proxy_tlv.") {
        let kind = match kind.strip_prefix("0x") {
            Some(digits) => u8::from_str_radix(digits, 16),
            None => kind.parse(),
        };
        let kind = kind.map_err(|_| TextFaultKind::Unknown(name.to_owned()))?;
        return Ok(Variable::Proxy(ProxyFact::Line(kind)));
    }
    match Variable::NAMED.iter().find(|(word, _)| *word == name) {
        Some((_, variable)) if place.has(variable) => Ok(variable.clone()),
        Some(_) => Err(TextFaultKind::TooEarly(name.to_owned())),
        None => Err(TextFaultKind::Unknown(name.to_owned())),
    }
}

fn group(number: u8, place: TextPlace) -> Result<Variable, TextFaultKind> {
    match place.groups {
        None => Err(TextFaultKind::NoExpression(number)),
        Some(there) if number == 0 || usize::from(number) > there => {
            Err(TextFaultKind::NoGroup(number, there))
        }
        Some(_) => Ok(Variable::Group(number)),
    }
}

/// A token (RFC 9110 §5.6.2).
fn is_token(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WITH_TWO: TextPlace = TextPlace::ANSWER.with_groups(Some(2));

    fn plain(text: &str) -> TextPiece {
        TextPiece::Plain(text.into())
    }

    fn faults(source: &str, place: TextPlace) -> Vec<(usize, usize, TextFaultKind)> {
        let faults = Text::parse(source, place).expect_err("faulty");
        faults.into_iter().map(|fault| (fault.start, fault.width, fault.kind)).collect()
    }

    #[test]
    fn variables_groups_braces_and_dollars_are_told_apart() {
        let text = Text::parse("a{{b}}{hostname}$1x$$2$ $a{header.X-A}{cookie.Id}$", WITH_TWO);
        let text = text.expect("a text");
        assert_eq!(
            text.pieces(),
            [
                plain("a{b}"),
                TextPiece::Value(Variable::Hostname),
                TextPiece::Value(Variable::Group(1)),
                plain("x$2$ $a"),
                TextPiece::Value(Variable::Header("x-a".into())),
                TextPiece::Value(Variable::Cookie("Id".into())),
                plain("$"),
            ]
        );
        assert_eq!(text.constant(), None);
        assert_eq!(Text::parse("{{}}", TextPlace::OURS).expect("a text").constant(), Some("{}"));
    }

    #[test]
    fn every_variable_with_a_name_is_read() {
        for (name, variable) in Variable::NAMED {
            let text = Text::parse(&format!("{{{name}}}"), TextPlace::ANSWER).expect(name);
            assert_eq!(text.pieces(), [TextPiece::Value(variable.clone())]);
        }
    }

    #[test]
    fn every_fault_is_found_with_its_place() {
        assert_eq!(
            faults("é{hst} {header.} {cookie.a b} } {id\r\n$3$0{x", WITH_TWO),
            [
                (1, 5, TextFaultKind::Unknown("hst".into())),
                (7, 9, TextFaultKind::BadHeader(String::new())),
                (17, 12, TextFaultKind::BadCookie("a b".into())),
                (30, 1, TextFaultKind::Unopened),
                (32, 1, TextFaultKind::Unclosed),
                (35, 1, TextFaultKind::Control),
                (36, 1, TextFaultKind::Control),
                (37, 2, TextFaultKind::NoGroup(3, 2)),
                (39, 2, TextFaultKind::NoGroup(0, 2)),
                (41, 1, TextFaultKind::Unclosed),
            ]
        );
        for control in ["\0", "\n", "\r", "\u{7f}", "\u{85}", "\t"] {
            assert_eq!(faults(control, WITH_TWO), [(0, 1, TextFaultKind::Control)]);
        }
    }

    #[test]
    fn what_is_not_known_yet_can_not_be_filled_in() {
        let early = |name: &str| TextFaultKind::TooEarly(name.to_owned());
        assert_eq!(faults("{backend}", TextPlace::REQUEST), [(0, 9, early("backend"))]);
        assert_eq!(
            faults("{target}{backend}", TextPlace::OURS),
            [(0, 8, early("target")), (8, 9, early("backend"))]
        );
        assert_eq!(faults("$1", TextPlace::REQUEST), [(0, 2, TextFaultKind::NoExpression(1))]);
        assert!(Text::parse("{target}", TextPlace::REQUEST).is_ok());
    }

    proptest! {
        #[test]
        fn any_text_is_taken_apart_or_has_faults_inside_it(
            source in "([{}$0-9a-z. \\PC\r\n]|\\{path\\}|\\{header\\.a\\}|\\{cookie\\.B\\}|\\$[0-9]){0,40}",
            groups in prop::option::of(0usize..10),
        ) {
            match Text::parse(&source, TextPlace::ANSWER.with_groups(groups)) {
                Ok(text) => {
                    prop_assert_eq!(text.source(), &source);
                    // Put together again it means the same.
                    let shown: String = text.pieces().iter().map(|piece| match piece {
                        TextPiece::Plain(plain) => plain.replace('{', "{{").replace('}', "}}"),
                        TextPiece::Value(Variable::Header(name)) => format!("{{header.{name}}}"),
                        TextPiece::Value(Variable::Cookie(name)) => format!("{{cookie.{name}}}"),
                        TextPiece::Value(Variable::Group(number)) => format!("${number}"),
                        TextPiece::Value(Variable::Path) => "{path}".to_owned(),
                        TextPiece::Value(other) => format!("{other:?}"),
                    }).collect();
                    let dollars = regex::Regex::new(r"\$\$([0-9])").expect("an expression");
                    prop_assert_eq!(shown, dollars.replace_all(&source, "$$$1"));
                    let controls = text.pieces().iter().any(|piece| {
                        matches!(piece, TextPiece::Plain(plain) if plain.contains(char::is_control))
                    });
                    prop_assert!(!controls);
                }
                Err(faults) => {
                    prop_assert!(!faults.is_empty());
                    let length = source.chars().count();
                    prop_assert!(faults.iter().all(|fault| fault.start + fault.width <= length));
                }
            }
        }

        #[test]
        fn a_text_without_signs_is_plain(source in "[^{}$\\p{Cc}]{0,40}") {
            prop_assert_eq!(Text::parse(&source, TextPlace::default()), Ok(Text::plain(&source)));
        }
    }
}
