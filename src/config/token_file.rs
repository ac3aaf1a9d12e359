//! The file of the admin API's tokens: a line for each, `name scope token`. Nothing of what is in it is ever repeated.

use std::collections::HashMap;
use std::path::Path;

use super::error::Wrong;
use super::files::whole;
use super::model::{AdminToken, Scope};

/// The shortest token, in bytes: what can be guessed is none.
const TOKEN_MIN: usize = 16;
const NAME_MAX: usize = 64;

const LINE: &str = "`name scope token`, such as `ci operate` and a token behind it";
const EXPECTED: &str = "a file with a line `name scope token` for each token";

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WrongLine {
    /// Counted from 1.
    pub(super) line: u32,
    /// Where in it, in characters: the first, counted from 1, and how many.
    pub(super) span: (u32, u32),
    /// What it is.
    pub(super) message: String,
    /// What would be right.
    pub(super) expected: &'static str,
}

/// The text of a token file.
pub(super) fn read(file: &Path) -> Result<String, Wrong> {
    whole::text(file, 1, EXPECTED)
}

/// The tokens in a text, and what is wrong with it.
pub(super) fn parse(text: &str) -> (Vec<AdminToken>, Vec<WrongLine>) {
    let (mut tokens, mut wrong): (Vec<(u32, AdminToken)>, Vec<WrongLine>) = Default::default();
    let mut names: HashMap<&str, u32> = HashMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let words = words(line);
        let span = span(line);
        let mut refuse = |message: String, expected| {
            wrong.push(WrongLine { line: number, span, message, expected });
        };
        let (name, scope, secret) = match words[..] {
            [] => continue,
            [first, ..] if first.starts_with('#') => continue,
            [name, scope, secret] => (name, scope, secret),
            [_] => {
                refuse("this line has 1 word".to_owned(), LINE);
                continue;
            }
            _ => {
                refuse(format!("this line has {} words", words.len()), LINE);
                continue;
            }
        };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let begins = |c: char| c.is_ascii_alphanumeric();
        if name.len() > NAME_MAX || !name.starts_with(begins) || !name.chars().all(is_plain) {
            let expected = "1 to 64 letters, digits, `.`, `_` and `-`, the first a letter or a digit";
            refuse("the first word of this line is no name".to_owned(), expected);
            continue;
        }
        let Some((_, scope)) = Scope::OF_TOKENS.iter().find(|(known, _)| *known == scope) else {
            refuse("the second word of this line is no scope".to_owned(), "`read`, `operate` or `configure`");
            continue;
        };
        if secret.len() < TOKEN_MIN {
            let message = "the token in this line is shorter than 16 bytes".to_owned();
            refuse(message, "a long random one, such as `openssl rand -hex 32` prints");
            continue;
        }
        // What can't stand in a header line can't be sent (RFC 6750 §2.1).
        let is_token = |c: char| c.is_ascii_alphanumeric() || "-._~+/=".contains(c);
        if !secret.chars().all(is_token) {
            let message = "the token in this line has a character that no token has".to_owned();
            refuse(message, "letters, digits, `-`, `.`, `_`, `~`, `+`, `/` and `=`");
            continue;
        }
        if let Some(first) = names.get(name) {
            refuse(format!("the name in this line is that of line {first}"), "one line for each name");
            continue;
        }
        let token = AdminToken::new(name, *scope, secret.as_bytes());
        if let Some((first, _)) = tokens.iter().find(|(_, other)| other.is_same_secret(&token)) {
            refuse(format!("the token in this line is that of line {first}"), "another token for each name");
            continue;
        }
        names.insert(name, number);
        tokens.push((number, token));
    }
    if tokens.is_empty() && wrong.is_empty() {
        let message = "there is no token in this file".to_owned();
        wrong.push(WrongLine { line: 1, span: (1, 1), message, expected: LINE });
    }
    (tokens.into_iter().map(|(_, token)| token).collect(), wrong)
}

fn words(line: &str) -> Vec<&str> {
    line.trim_start_matches('\u{feff}').split_ascii_whitespace().collect()
}

/// Where the words of a line stand.
fn span(line: &str) -> (u32, u32) {
    let small = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let before = line.chars().take_while(|c| c.is_whitespace()).count();
    (small(before + 1), small(line.trim().chars().count().max(1)))
}

/// The same text with a `*` for each character: lines that may be shown.
pub(super) fn masked(text: &str) -> String {
    text.chars().map(|c| if c.is_whitespace() { c } else { '*' }).collect()
}

/// All that is said of bytes as a token file; nothing of it where they are one.
#[must_use]
pub fn token_file_faults(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    parse(&text).1.into_iter().map(|wrong| wrong.message).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn a_line_is_a_token_and_what_is_wrong_is_told_without_repeating_it() {
        let text = format!(
            "# who may come\n\n  ci   operate {SECRET}\r\nadmin\tconfigure {SECRET}x # not a comment\n"
        );
        let (tokens, wrong) = parse(&text);
        assert_eq!(
            tokens.iter().map(|one| (one.name.as_str(), one.scope)).collect::<Vec<_>>(),
            [("ci", Scope::Operate)]
        );
        assert_eq!(wrong.len(), 1);
        assert_eq!((wrong[0].line, wrong[0].message.as_str()), (4, "this line has 7 words"));
        let table = [
            (format!("{SECRET}\n"), "1 word"),
            (format!("read {SECRET}"), "2 words"),
            (format!("-a read {SECRET}"), "no name"),
            (format!("{} read {SECRET}", "a".repeat(65)), "no name"),
            (format!("a {SECRET} read"), "no scope"),
            (format!("a Read {SECRET}"), "no scope"),
            ("a read 0123456789abcde".to_owned(), "shorter than 16"),
            ("a read 0123456789abcdeü".to_owned(), "no token has"),
            (format!("a read {SECRET}\na read {SECRET}y"), "that of line 1"),
            (format!("a read {SECRET}\nb read {SECRET}"), "the token in this line is that of line 1"),
            (String::new(), "no token in this file"),
            ("# none\n".to_owned(), "no token in this file"),
        ];
        for (text, expected) in table {
            let wrong = parse(&text).1;
            assert!(wrong.len() == 1 && wrong[0].message.contains(expected), "{text}: {wrong:?}");
            assert!(!format!("{wrong:?}").contains("0123456789"), "{wrong:?}");
        }
        assert_eq!(masked("a read\t1ü\n"), "* ****\t**\n");
    }
}
