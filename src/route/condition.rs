//! Conditions of routes beside host and path.

use std::borrow::Cow;

use crate::config::model::route::{FieldMatch, FieldTest, RouteMatch};
use crate::message::cookie::cookies;

use super::Asked;
use super::path_form::escaped;

/// Whether all conditions but those on host and path hold.
#[must_use]
pub(super) fn holds(matches: &RouteMatch, asked: &Asked<'_>) -> bool {
    let RouteMatch { hosts: _, path: _, methods, headers, queries, cookies: named, clients } = matches;
    (methods.is_empty() || methods.iter().any(|method| method.as_bytes() == asked.head.method()))
        && headers.iter().all(|field| passes(field, header(asked, &field.name)))
        && queries.iter().all(|field| passes(field, parameters(asked.query(), field.name.as_bytes())))
        && named.iter().all(|field| passes(field, cookies(asked.head, &field.name).into_iter()))
        && (clients.is_empty()
            || asked
                .client
                .map(|client| client.to_canonical())
                .is_some_and(|client| clients.iter().any(|network| network.contains(&client))))
}

/// Whether one of the values passes, or none is there where none may be.
fn passes(field: &FieldMatch, mut values: impl Iterator<Item = impl AsRef<[u8]>>) -> bool {
    match &field.test {
        FieldTest::Is(wanted) => {
            values.any(|value| wanted.iter().any(|one| one.as_bytes() == value.as_ref()))
        }
        FieldTest::Present(wanted) => values.next().is_some() == *wanted,
        FieldTest::Regex(regex) => values.any(|value| regex.is_match(value.as_ref())),
    }
}

fn header<'a>(asked: &Asked<'a>, name: &str) -> impl Iterator<Item = &'a [u8]> {
    let head = asked.head;
    let lines = head.lines().iter().map(|line| head.pair(line));
    lines.filter(move |(other, _)| other.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
}

/// The values of all parameters of this name; one without `=` is empty. Names and values are decoded, as whoever reads them behind us
/// decodes them: no spelling of a parameter gets past a condition on it.
fn parameters<'a>(query: &'a [u8], name: &[u8]) -> impl Iterator<Item = Cow<'a, [u8]>> {
    query.split(|&byte| byte == b'&').filter_map(move |pair| {
        let end = memchr::memchr(b'=', pair).unwrap_or(pair.len());
        (*decoded(&pair[..end]) == *name).then(|| decoded(pair.get(end + 1..).unwrap_or_default()))
    })
}

/// Without `%XX` and `+` (`application/x-www-form-urlencoded`). A `%` without two hex digits stands for itself.
fn decoded(text: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr2(b'%', b'+', text).is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        out.push(match byte {
            b'+' => b' ',
            b'%' => match escaped(rest) {
                Some(value) => {
                    rest = &rest[2..];
                    value
                }
                None => byte,
            },
            _ => byte,
        });
    }
    Cow::Owned(out)
}
