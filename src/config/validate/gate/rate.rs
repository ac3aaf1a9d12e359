//! Rate limits: names followed, defaults filled in.

use std::sync::Arc;

use super::named::NamedRules;
use crate::config::effective::EffectiveRows;
use crate::config::error::quoted;
use crate::config::model::{Auth, AuthKind, RateBy, RateLimit, RouteConfig};
use crate::config::origin::{Field, Written};
use crate::config::raw::{RATE_LIMITS, RawNamed, RawRateLimit};
use crate::config::report::Report;
use crate::config::validate::owner::KeyOwner;

/// The limits at the top level.
pub(in crate::config::validate) type RateLimits<'r> = NamedRules<'r, Arc<RateLimit>>;

/// Items of `by` that one listener or one route may have, over all of its limits.
const MOST: usize = 8;

/// Makes those at the top level.
pub(in crate::config::validate) fn limits<'r>(
    raw: &'r [RawNamed<RawRateLimit>],
    rows: &mut EffectiveRows,
) -> RateLimits<'r> {
    NamedRules::accept(RATE_LIMITS, raw, |name, raw| {
        let path = |key: &str| format!("{}.{}.{key}", RATE_LIMITS.key, name.value);
        let (count, per) = rows.settle(path("rate"), Some(&raw.rate), raw.rate.value, |(count, per)| {
            format!("{count}/{}", per.token())
        });
        let usual = RateLimit::usual_burst(count, per);
        let burst = rows.settle(path("burst"), raw.burst.as_ref(), usual, ToString::to_string);
        let by = rows.settle(path("by"), raw.by.as_ref(), vec![RateBy::ClientIp], |by| {
            format!("[{}]", by.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        });
        let dry_run = rows.settle(path("dry_run"), raw.dry_run.as_ref(), false, ToString::to_string);
        Some(Arc::new(RateLimit { name: name.value.clone(), count, per, burst, by, dry_run }))
    })
}

/// Warns of limits that count by user on a route on which nobody ever has a name. `raw`: those of the route itself.
pub(in crate::config::validate) fn warn_of_no_user(
    raw: &Field<Vec<Written<String>>>,
    route: &RouteConfig,
    owner: &KeyOwner<'_>,
    report: &mut Report,
) {
    let Field::Given(written) = raw else { return };
    let why = match route.auth.as_deref() {
        Some(Auth { kind: AuthKind::Forward(forward), name }) if forward.copy_headers.is_empty() => {
            format!("{} has no `copy_headers` that would tell it", quoted(name))
        }
        Some(_) => return,
        None => "no `auth` holds for it".to_owned(),
    };
    let by_user = |name: &&Written<String>| {
        route.rate_limits.iter().any(|limit| limit.name == name.value && limit.by.contains(&RateBy::User))
    };
    for name in written.value.iter().filter(by_user) {
        let message = format!(
            "the rate limit {} counts by `user`, whom nobody knows on the route {} of {}: {why}, so it counts by address",
            quoted(&name.value),
            quoted(&route.name),
            owner.told()
        );
        report.warn(&name.spot, &message);
    }
}

/// What `rate_limit` at `path` says. `is_http`: requests are counted, and not connections.
pub(in crate::config::validate) fn accept(
    raw: &Field<Vec<Written<String>>>,
    path: &str,
    is_http: bool,
    limits: &RateLimits<'_>,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Vec<Arc<RateLimit>> {
    let Field::Given(written) = raw else { return Vec::new() };
    let count = written.value.len();
    let mut accepted = Vec::with_capacity(count);
    for (index, name) in written.value.iter().enumerate() {
        let Some(limit) = limits.find(name, report) else { continue };
        let other = limit.by.iter().find(|by| !matches!(by, RateBy::ClientIp | RateBy::Global));
        if let Some(other) = other.filter(|_| !is_http) {
            let message = format!(
                "the rate limit {} counts by `{other}`, of which a TCP connection has nothing",
                quoted(&name.value)
            );
            report.spot(&name.spot, message).expected("a limit by `client_ip` or `global`");
            continue;
        }
        let path = if count > 1 { format!("{path}[{index}]") } else { path.to_owned() };
        rows.note(path, name.value.clone(), name.spot.origin.clone());
        accepted.push(Arc::clone(limit));
    }
    let items: usize = accepted.iter().map(|limit| limit.by.len()).sum();
    if items > MOST {
        let message =
            format!("`rate_limit` counts by {items} things: each item of `by` of each limit is one");
        report.spot(&written.spot, message).expected(format!("at most {MOST}"));
    }
    accepted
}
