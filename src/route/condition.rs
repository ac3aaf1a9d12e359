//! Conditions of routes beside host and path.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use crate::config::model::RouteConfig;
use crate::config::model::route::{CertificateMatch, FieldMatch, FieldTest, PathPattern, RouteMatch};
use crate::message::cookie::cookies;
use crate::tls::CertificateFacts;

use super::Asked;
use super::keys::small;
use super::path_form::escaped;

/// A condition of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteCondition<'r> {
    /// On the host.
    Host,
    /// On the path.
    Path,
    /// On the method.
    Method,
    /// On the header of this name, in lower case.
    Header(&'r str),
    /// On the parameter of this name in the query.
    Query(&'r str),
    /// On the cookie of this name.
    Cookie(&'r str),
    /// On the client's address.
    Client,
    /// On the client's certificate.
    Certificate,
}

/// The conditions of all routes beside host and path, each of them once, and of each route which ones it has, from 1; 0: none.
#[must_use]
pub(super) fn shared(routes: &[Arc<RouteConfig>]) -> (Vec<RouteMatch>, Vec<u32>) {
    let mut all: Vec<RouteMatch> = Vec::new();
    // What is written differently differs; whether what is written alike is alike is looked at.
    let mut written: HashMap<String, u32> = HashMap::new();
    let of_each = routes.iter().map(|route| {
        if route.matches.conditions() == 0 {
            return 0;
        }
        let bare = RouteMatch { hosts: Vec::new(), path: PathPattern::Any, ..route.matches.clone() };
        let number = written.entry(format!("{bare:?}")).or_insert(0);
        if *number == 0 || all[*number as usize - 1] != bare {
            all.push(bare);
            *number = small(all.len());
        }
        *number
    });
    let of_each = of_each.collect();
    (all, of_each)
}

/// Whether all conditions but those on host and path hold.
#[must_use]
pub(super) fn holds(matches: &RouteMatch, asked: &Asked<'_>) -> bool {
    // Most clients show none, and then nothing else need be looked at.
    if asked.certificate.is_none() && !matches.certificate.is_empty() {
        return false;
    }
    unmet(matches, asked).is_none()
}

/// The first condition that does not hold, but for those on host and path.
#[must_use]
pub(super) fn unmet<'r>(matches: &'r RouteMatch, asked: &Asked<'_>) -> Option<RouteCondition<'r>> {
    // What is passed through has no requests.
    let RouteMatch {
        hosts: _,
        path: _,
        alpn: _,
        methods,
        headers,
        queries,
        cookies: named,
        clients,
        certificate,
    } = matches;
    if !methods.is_empty() && methods.iter().all(|method| method.as_bytes() != asked.head.method()) {
        return Some(RouteCondition::Method);
    }
    let failed = headers.iter().find(|field| !passes(field, header(asked, &field.name)));
    if let Some(field) = failed {
        return Some(RouteCondition::Header(&field.name));
    }
    let failed =
        queries.iter().find(|field| !passes(field, parameters(asked.query(), field.name.as_bytes())));
    if let Some(field) = failed {
        return Some(RouteCondition::Query(&field.name));
    }
    let failed = named.iter().find(|field| !passes(field, cookies(asked.head, &field.name).into_iter()));
    if let Some(field) = failed {
        return Some(RouteCondition::Cookie(&field.name));
    }
    let is_of = |networks: &[ipnet::IpNet]| {
        let client = asked.client.map(|client| client.to_canonical());
        client.is_some_and(|client| networks.iter().any(|network| network.contains(&client)))
    };
    if !clients.is_empty() && !is_of(clients) {
        return Some(RouteCondition::Client);
    }
    let is_its = certificate.is_empty() || asked.certificate.is_some_and(|facts| is_like(certificate, facts));
    (!is_its).then_some(RouteCondition::Certificate)
}

/// Whether a certificate is as it has to be. Of its other names those with a colon (URIs, IPv6 addresses) are compared with regard to
/// case, the others (DNS names, email addresses) without.
fn is_like(wanted: &CertificateMatch, facts: &CertificateFacts) -> bool {
    let CertificateMatch { subjects, names } = wanted;
    let is_named = |name: &str| names.iter().any(|wanted| wanted.fits(name, !name.contains(':')));
    (subjects.is_empty() || subjects.iter().any(|wanted| wanted.fits(&facts.subject, false)))
        && (names.is_empty() || facts.names.iter().any(|name| is_named(name)))
}

/// Whether one of the values passes, or none is there where none may be.
pub fn passes(field: &FieldMatch, mut values: impl Iterator<Item = impl AsRef<[u8]>>) -> bool {
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
