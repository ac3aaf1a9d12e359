//! Keeps secrets out of the source lines that problems show.
//!
//! The walker knows where a secret stands; in a file that is no YAML nobody does, so what follows the word `key` is
//! taken for one, and so is the path of each URL: it may be that of a webhook. A reference such as `${NAME}` is none. Called by `error` and `variables`.

use super::origin::Place;

/// Names of keys whose values are secrets.
const NAMES: &[&str] = &["key"];
/// Names of header lines whose values are, wherever they stand, in any case.
const LINES: &[&str] = &["authorization", "proxy-authorization"];

/// Whether the value of a key of this name is a secret.
pub(super) fn is_secret(key: &str) -> bool {
    NAMES.contains(&key)
}

/// Whether the value of a key of this name may have a secret in it: a webhook's URL does.
pub(super) fn may_be_secret(key: &str) -> bool {
    is_secret(key) || matches!(key, "url" | "on_dead_server_webhook")
}

/// Whether a text has what may be a secret, so that nothing of it may be repeated.
pub(super) fn has_secret(text: &str) -> bool {
    text.lines().any(|line| {
        let at_end = |name: &&str| line.trim_end().trim_end_matches(':').trim_end().ends_with(*name);
        mask(line, 0, &[]) != line || NAMES.iter().any(at_end)
    })
}

/// Line `number` of a file with a `*` for each character of a secret.
pub(super) fn mask(line: &str, number: u32, places: &[Place]) -> String {
    let mut characters: Vec<char> = line.chars().collect();
    let told = places.iter().filter(|place| place.line == number).map(|place| {
        let start = (place.column as usize).saturating_sub(1);
        (start, start.saturating_add(place.width as usize))
    });
    let in_urls = users(&characters).into_iter().chain(paths(&characters));
    let spans: Vec<(usize, usize)> = told.chain(suspects(&characters)).chain(in_urls).collect();
    for (start, end) in spans {
        let end = end.min(characters.len());
        if let Some(span) = characters.get_mut(start..end)
            && !is_reference(span)
        {
            span.fill('*');
        }
    }
    characters.into_iter().collect()
}

/// A URL without what may be a password in it.
pub(super) fn without_user(url: &str) -> String {
    let mut characters: Vec<char> = url.chars().collect();
    for (start, end) in users(&characters).into_iter().rev() {
        characters.splice(start..end, "***".chars());
    }
    characters.into_iter().collect()
}

/// Where users and their passwords stand in the URLs of a line: all up to the last `@`.
fn users(line: &[char]) -> Vec<(usize, usize)> {
    let user = |(start, end): (usize, usize)| {
        let length = line[start..end].iter().rposition(|c| *c == '@').filter(|length| *length > 0)?;
        Some((start, start + length))
    };
    urls(line).into_iter().filter_map(user).collect()
}

/// Where the paths of URLs stand in a line: all behind the host. One `/` is none, and what stands behind a method is what a test asks,
/// which nobody hides.
fn paths(line: &[char]) -> Vec<(usize, usize)> {
    let path = |(start, end): (usize, usize)| {
        let closing = line[start..end].iter().rev().take_while(|c| [',', ']', '}'].contains(*c)).count();
        let end = end - closing;
        let path = start + line[start..end].iter().position(|c| matches!(c, '/' | '?'))? + 1;
        (path < end).then_some((path, end))
    };
    urls(line).into_iter().filter(|(start, _)| !is_asked(line, *start)).filter_map(path).collect()
}

/// Whether a method stands before the URL whose host begins at `host`.
fn is_asked(line: &[char], host: usize) -> bool {
    let before: String = line[..host].iter().collect();
    let mut words = before.rsplit([' ', '"', '\'', '{', '[', ',']);
    let (_, method) = (words.next(), words.next());
    method.is_some_and(|word| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_uppercase()))
}

/// Where URLs stand in a line, without their schemes: all between `://` and a blank or a quote.
fn urls(line: &[char]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = line[from..].windows(3).position(|three| three == [':', '/', '/']) {
        let start = from + at + 3;
        let is_inside = |c: &&char| !c.is_whitespace() && !['"', '\'', '`'].contains(*c);
        from = start + line[start..].iter().take_while(is_inside).count();
        found.push((start, from));
    }
    found
}

/// Where values stand behind the name of a secret, in characters.
fn suspects(line: &[char]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let folded: Vec<char> = line.iter().map(char::to_ascii_lowercase).collect();
    let names = NAMES.iter().map(|name| (name, line)).chain(LINES.iter().map(|name| (name, &folded[..])));
    for (name, written) in names {
        let name: Vec<char> = name.chars().collect();
        for start in 0..line.len() {
            let is_inside =
                start > 0 && (line[start - 1].is_alphanumeric() || "_-.".contains(line[start - 1]));
            if !is_inside && written[start..].starts_with(&name) {
                found.extend(value(line, start + name.len()));
            }
        }
    }
    found
}

/// The value behind a name that ends at `at`, to the end of its quotes or of the line.
fn value(line: &[char], mut at: usize) -> Option<(usize, usize)> {
    let skip = |at: usize, skipped: &[char]| {
        at + line[at..].iter().take_while(|character| skipped.contains(character)).count()
    };
    at = skip(at, &['"', '\'']);
    at = skip(at, &[' ', '\t']);
    if line.get(at) != Some(&':') {
        return None;
    }
    let start = skip(at + 1, &[' ', '\t']);
    let quote = *line.get(start)?;
    let mut end = line.len();
    if matches!(quote, '"' | '\'') {
        let mut at = start + 1;
        while let Some(&character) = line.get(at) {
            let is_escape = (character == '\\' && quote == '"')
                || (character == '\'' && quote == '\'' && line.get(at + 1) == Some(&'\''));
            if is_escape {
                at += 1;
            } else if character == quote {
                end = at + 1;
                break;
            }
            at += 1;
        }
    }
    // The name of a file is no secret.
    let end = if matches!(quote, '"' | '\'') { end } else { before_file(line, start, end) };
    (start < end).then_some((start, end))
}

/// Where a value ends behind which `, NAME_file:` follows.
fn before_file(line: &[char], start: usize, end: usize) -> usize {
    let suffix: Vec<char> = "_file:".chars().collect();
    let found = (start..end).find(|&at| {
        let name = line[at..end].iter().take_while(|c| c.is_ascii_lowercase() || **c == '_').count();
        let follows = line[at + name..end].starts_with(&[':']) && line[..=at + name].ends_with(&suffix);
        follows && line[start..at].iter().rev().find(|c| **c != ' ') == Some(&',')
    });
    found.unwrap_or(end)
}

/// Whether a value is `${NAME}`, perhaps in quotes, and nothing else.
fn is_reference(value: &[char]) -> bool {
    let text: String = value.iter().collect();
    let bare = text.trim_end_matches([' ', '\r', '}', ',', '"', '\'']).trim_start_matches(['"', '\'']);
    let name = bare.strip_prefix("${").unwrap_or_default();
    text.contains('}') && !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_the_word_is_hidden() {
        let table = [
            ("    key: abcdef", "    key: ******"),
            ("key : abc, def", "key : ********"),
            (r#"{"key":"a\"b","x":1}"#, r#"{"key":******,"x":1}"#),
            ("{key: 'a''b', x: 1}", "{key: ******, x: 1}"),
            ("key: \"not closed", "key: ***********"),
            ("sticky: {key: abc}", "sticky: {key: ****"),
            ("    key: ${STICKY_KEY}", "    key: ${STICKY_KEY}"),
            ("  - {key: \"${STICKY_KEY}\", x: 1}", "  - {key: \"${STICKY_KEY}\", x: 1}"),
            ("    key: ${KEY:-default}", "    key: ***************"),
            ("    key: ${A}b", "    key: *****"),
            ("    key: ${A", "    key: ***"),
            ("{key: abc, key_file: a.key}", "{key: *****key_file: a.key}"),
            ("cert_key: a.pem", "cert_key: a.pem"),
            ("keys: a", "keys: a"),
            ("monkey: a", "monkey: a"),
            ("key", "key"),
            ("key:", "key:"),
            ("ä key: ö", "ä key: *"),
            ("url: http://me:p@ss@host:80", "url: http://*******@host:80"),
            ("- {url: \"http://me@a\", name: x@y}", "- {url: \"http://**@a\", name: x@y}"),
            ("[http://a:1, 'http://b@c']", "[http://a:1, 'http://*@c']"),
            ("# mail me@a.example", "# mail me@a.example"),
            ("url: https://a.example/T0/abc?d", "url: https://a.example/********"),
            ("- {url: 'https://a/b', events: reload}", "- {url: 'https://a/*', events: reload}"),
            ("- request: GET http://a.example/b?c", "- request: GET http://a.example/b?c"),
            (
                "- {request: \"PUT http://a/b\", x: http://a/b}",
                "- {request: \"PUT http://a/b\", x: http://a/*}",
            ),
            ("url: ME http://a/b", "url: ME http://a/*"),
            ("[http://a:1/, https://me:p@b/${C}]", "[http://a:1/, https://****@b/***}]"),
        ];
        for (line, shown) in table {
            assert_eq!(mask(line, 1, &[]), shown);
        }
    }

    #[test]
    fn a_told_place_is_hidden_on_its_line_only() {
        let place = Place::new(2, 9, 3);
        assert_eq!(mask("secret: abc # x", 2, &[place]), "secret: *** # x");
        assert_eq!(mask("secret: abc", 1, &[place]), "secret: abc");
        assert_eq!(mask("short", 2, &[place]), "short");
        assert_eq!(mask("secret: a", 2, &[place]), "secret: *");
    }
}
