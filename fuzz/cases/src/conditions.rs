//! Conditions beside host and path, read a second time: each kind of field becomes a list of names and values first.

use evenkeel::config::model::Wildcard;
use evenkeel::config::model::route::{FieldMatch, FieldTest, RouteMatch};
use evenkeel::route::Asked;

use crate::readers::decoded;

/// Names and values, in the order in which they came.
type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// Whether all of them hold.
pub(crate) fn hold(matches: &RouteMatch, asked: &Asked<'_>) -> bool {
    let head = asked.head;
    let lines: Fields = head
        .lines()
        .iter()
        .map(|line| head.pair(line))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_vec()))
        .collect();
    let brought = lines.iter().filter(|(name, _)| name == b"cookie");
    let cookies: Fields = brought
        .flat_map(|(_, value)| value.split(|&byte| byte == b';'))
        .filter_map(|pair| parted(pair, |text| text.trim_ascii().to_vec()))
        .collect();
    let form = |text: &[u8]| {
        decoded(&text.iter().map(|&byte| if byte == b'+' { b' ' } else { byte }).collect::<Vec<_>>())
    };
    let parameters: Fields = asked
        .query()
        .split(|&byte| byte == b'&')
        .map(|pair| parted(pair, form).unwrap_or_else(|| (form(pair), Vec::new())))
        .collect();
    let all = |wanted: &[FieldMatch], there: &Fields| wanted.iter().all(|field| passes(field, there));
    let client = asked.client.map(|client| client.to_canonical());
    let is_near =
        || matches.clients.iter().any(|network| client.is_some_and(|client| network.contains(&client)));
    (matches.methods.is_empty() || matches.methods.iter().any(|method| method.as_bytes() == head.method()))
        && all(&matches.headers, &lines)
        && all(&matches.cookies, &cookies)
        && all(&matches.queries, &parameters)
        && (matches.clients.is_empty() || is_near())
        && is_shown(matches, asked)
}

/// Each star tried at all of its ends.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    match pattern {
        [] => text.is_empty(),
        [b'*', rest @ ..] => (0..=text.len()).any(|end| fits(rest, &text[end..])),
        [byte, rest @ ..] => text.first() == Some(byte) && fits(rest, &text[1..]),
    }
}

/// Whether the certificate is as it has to be, name by name in lower case where case does not count.
fn is_shown(matches: &RouteMatch, asked: &Asked<'_>) -> bool {
    let wanted = &matches.certificate;
    let any = |patterns: &[Wildcard], text: &str, lower: bool| {
        let plain = |text: &str| if lower { text.to_ascii_lowercase() } else { text.to_owned() };
        patterns.iter().any(|one| fits(plain(&one.to_string()).as_bytes(), plain(text).as_bytes()))
    };
    match asked.certificate {
        None => wanted.subjects.is_empty() && wanted.names.is_empty(),
        Some(facts) => {
            let mut names = facts.names.iter();
            (wanted.subjects.is_empty() || any(&wanted.subjects, &facts.subject, false))
                && (wanted.names.is_empty()
                    || names.any(|name| any(&wanted.names, name, !name.contains(':'))))
        }
    }
}

/// What is before and behind the first `=`.
fn parted(pair: &[u8], read: impl Fn(&[u8]) -> Vec<u8>) -> Option<(Vec<u8>, Vec<u8>)> {
    let at = pair.iter().position(|&byte| byte == b'=')?;
    Some((read(&pair[..at]), read(&pair[at + 1..])))
}

fn passes(field: &FieldMatch, all: &Fields) -> bool {
    let mut values = all.iter().filter(|(name, _)| name == field.name.as_bytes()).map(|(_, value)| value);
    match &field.test {
        FieldTest::Is(wanted) => values.any(|value| wanted.iter().any(|one| one.as_bytes() == value)),
        FieldTest::Present(wanted) => values.next().is_some() == *wanted,
        FieldTest::Regex(regex) => values.any(|value| regex.is_match(value)),
    }
}
