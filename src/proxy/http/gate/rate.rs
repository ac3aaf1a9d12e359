//! Whether a request comes too soon: the buckets that it counts in, and what it is told when one of them is empty.

use std::net::IpAddr;

use crate::access::rate::RateKey;
use crate::config::model::{RateBy, RateLimit};
use crate::message::cookie::cookie;
use crate::message::{Cause, Head};
use crate::proxy::tolls::take;
use crate::snapshot::{RateCheck, RateSet, Route};
use crate::telemetry::cells::RateCells;
use crate::tick::Tick;

use super::Denial;

/// Who asks, as far as it is known by then.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    /// The request.
    pub head: &'a Head,
    /// Its client, as trusted proxies tell it; where they don't, the proxy that the connection comes from, so that all of those share a
    /// bucket and nobody gets a new one by hiding.
    pub client: Option<IpAddr>,
    /// Who that is; `None`: nobody has asked, or it has no name.
    pub user: Option<&'a str>,
}

impl Asker<'_> {
    /// Whose bucket it is that the request counts in.
    #[inline]
    #[must_use]
    pub fn key(&self, check: &RateCheck) -> RateKey {
        let secret = &check.state.secret;
        let text = match &check.by {
            RateBy::ClientIp => None,
            RateBy::Route | RateBy::Global => match check.fixed {
                Some(key) => return key,
                None => None,
            },
            RateBy::Header(name) => self.head.named(name),
            RateBy::Cookie(name) => cookie(self.head, name),
            RateBy::User => self.user.map(str::as_bytes),
        };
        match text.filter(|text| !text.is_empty()) {
            Some(text) => secret.of_text(check.kind, text),
            None => secret.of_address(check.kind, self.client),
        }
    }
}

/// What the limits of a route say before it is known who the user is, and where nobody will ask for one (`has_users`: somebody will)
/// also what those by user say, for which the client's address then stands.
///
/// # Errors
/// The request comes too soon.
#[inline]
pub fn of_anybody(
    route: &Route,
    asker: &Asker<'_>,
    has_users: bool,
    now: Tick,
    cells: &RateCells,
) -> Result<(), Box<Denial>> {
    count(&route.rates.of_anybody, asker, now, cells)?;
    if has_users { Ok(()) } else { of_user(route, asker, now, cells) }
}

/// What the limits by user say, when it is known who that is. Who has no name counts by the client's address.
///
/// # Errors
/// The request comes too soon.
#[inline]
pub fn of_user(route: &Route, asker: &Asker<'_>, now: Tick, cells: &RateCells) -> Result<(), Box<Denial>> {
    count(&route.rates.of_users, asker, now, cells)
}

#[inline(always)]
fn count(set: &RateSet, asker: &Asker<'_>, now: Tick, cells: &RateCells) -> Result<(), Box<Denial>> {
    if set.is_empty() { Ok(()) } else { count_in(set, asker, now, cells) }
}

#[inline(never)]
fn count_in(set: &RateSet, asker: &Asker<'_>, now: Tick, cells: &RateCells) -> Result<(), Box<Denial>> {
    take(set, |check| asker.key(check), now, cells)
        .map_err(|refusal| Box::new(too_soon(&refusal.check.limit, refusal.wait)))
}

/// What a client gets that has to come again after `wait` nanoseconds (draft-ietf-httpapi-ratelimit-headers-10).
fn too_soon(limit: &RateLimit, wait: u64) -> Denial {
    let seconds = wait.div_ceil(1_000_000_000).max(1);
    let name = structured(&limit.name);
    let policy = format!("{name};q={};w={}", limit.count, limit.per.seconds());
    let lines = vec![
        ("Retry-After", seconds.to_string()),
        ("RateLimit-Policy", policy),
        ("RateLimit", format!("{name};r=0;t={seconds}")),
    ];
    Denial { cause: Cause::RateLimited, status: Some(Cause::RateLimited.status()), lines }
}

/// A text as a string of a structured field (RFC 9651 §3.3.3), which has ASCII only.
fn structured(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            ' '..='~' => quoted.push(c),
            _ => quoted.push('_'),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::RatePeriod;

    #[test]
    fn a_client_is_told_when_to_come_again() {
        let limit = RateLimit {
            name: "a\"b\\ü".into(),
            count: 100,
            per: RatePeriod::Minute,
            burst: 7,
            by: vec![RateBy::ClientIp],
            dry_run: false,
        };
        let told = |wait| too_soon(&limit, wait).lines;
        assert_eq!(
            told(1_000_000_001),
            [
                ("Retry-After", "2".to_owned()),
                ("RateLimit-Policy", r#""a\"b\\_";q=100;w=60"#.to_owned()),
                ("RateLimit", r#""a\"b\\_";r=0;t=2"#.to_owned()),
            ]
        );
        assert_eq!(told(1)[0].1, "1");
    }
}
