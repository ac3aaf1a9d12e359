//! Who may have an answer that was made for somebody else: written from RFC 9111 and docs/cache.md, and from nothing of `src/cache`.

use super::answers::Meaning;
use super::asks::Case;
use super::worlds::Policy;

/// Lines that evenkeel writes for each client, or that end at each hop: what varies by them is nobody else's.
const NEVER: [&str; 4] = ["x-forwarded-for", "client-cert", "x-forwarded-client-cert", "te"];
/// Statuses whose meaning for caches everybody knows; answers with them may be stored by a route's wish.
const KNOWN: [u16; 5] = [200, 203, 301, 404, 410];
/// Those of which `must-understand` speaks.
const UNDERSTOOD: [u16; 7] = [200, 203, 301, 404, 410, 500, 503];

/// An answer: for whom it was made, by which target, and what it says.
pub struct MadeFor<'a> {
    pub case: &'a Case,
    pub target: &'a str,
    pub meaning: &'a Meaning,
}

/// A rule, and whether it holds.
pub type Rule = (&'static str, bool);

/// Whether anybody else may have an answer.
pub fn may_be_shared(policy: &Policy, made: &MadeFor<'_>) -> Vec<Rule> {
    let (one, said) = (made.case, made.meaning);
    vec![
        ("method of its request", matches!(one.method, "GET" | "HEAD")),
        ("body of its request", one.body.is_none()),
        ("connection of its request", !one.names_lines),
        ("no-store of its request", one.wants != "no-store"),
        ("status", status_lets(policy, said)),
        ("error to a condition", said.status < 400 || !one.is_conditional),
        ("no-store", !said.no_store || said.must_understand),
        ("must-understand", !said.must_understand || UNDERSTOOD.contains(&said.status)),
        ("private", !said.private),
        ("authorization", !one.has("authorization") || for_others(said) || said.must_revalidate),
        ("known client", !one.is_known || for_others(said)),
        ("set-cookie", !said.sets_cookie || for_others(said) || said.excepted.contains("set-cookie")),
        ("cookie of its request", !one.has("cookie") || !is_unsaid(policy, said)),
        ("vary of any kind", !said.varies_by_anything && !said.vary.iter().any(|name| NEVER.contains(name))),
    ]
}

/// Whether a request asks for the same object; `target`: where it leads.
pub fn is_same_object(policy: &Policy, made: &MadeFor<'_>, asks: &Case, target: Option<&str>) -> Vec<Rule> {
    let one = made.case;
    vec![
        ("who it is was asked", !asks.is_refused),
        ("route", one.route == asks.route),
        ("target", target == Some(made.target)),
        ("host", one.host == asks.host),
        ("path", one.path == asks.path),
        ("query", policy.counted(&one.query) == policy.counted(&asks.query)),
        ("chosen headers", policy.headers.iter().all(|name| one.came(name) == asks.came(name))),
        ("method", matches!(asks.method, "GET" | "HEAD")),
        ("body", asks.body.is_none()),
        ("connection", !asks.names_lines),
    ]
}

/// Whether it is among those of its object that this request may get.
pub fn fits(policy: &Policy, made: &MadeFor<'_>, asks: &Case) -> Vec<Rule> {
    let (one, said) = (made.case, made.meaning);
    vec![
        ("cookie", !asks.has("cookie") || !is_unsaid(policy, said)),
        ("vary", said.vary.iter().all(|name| one.told(name) == asks.told(name))),
        // Who did not have it confirmed itself.
        ("no-cache", !said.no_cache || policy.overrides),
    ]
}

/// Its origin says that others may have it.
fn for_others(said: &Meaning) -> bool {
    said.public || said.s_maxage.is_some()
}

/// Its origin says nothing of who may have it and for how long.
fn is_unsaid(policy: &Policy, said: &Meaning) -> bool {
    if policy.ignores_cookies {
        return false;
    }
    let lifetime = said.s_maxage.or(said.max_age);
    if policy.overrides {
        return !said.public && lifetime.unwrap_or(0) == 0 && said.expires != Some(true);
    }
    !said.public && lifetime.is_none() && !said.no_cache && said.expires.is_none()
}

/// Whether answers with this status are stored at all, if they say so or if not.
fn status_lets(policy: &Policy, said: &Meaning) -> bool {
    let says = said.max_age.is_some() || said.s_maxage.is_some() || said.expires.is_some() || said.no_cache;
    if says {
        return true;
    }
    if !KNOWN.contains(&said.status) && !said.public {
        return false;
    }
    let is_negative = matches!(said.status, 404 | 410);
    policy.overrides && !is_negative
        || if is_negative { policy.negative } else { policy.ttl }
        || policy.overrides && said.public
}
