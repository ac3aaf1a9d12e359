//! `cache`: what a route answers from what is stored, and for how long.

use std::sync::Arc;
use std::time::Duration;

use crate::config::effective::EffectiveRows;
use crate::config::error::quoted;
use crate::config::model::Protocol;
use crate::config::model::cache::CachePolicy;
use crate::config::origin::{Field, Origin, Spot, Written};
use crate::config::raw::{Raw, RawCache, RawTarget, Spoken};
use crate::config::report::Report;
use crate::config::units::show_duration;

/// What `cache` at `path` says; `None`: nothing is answered from what is stored.
pub(in crate::config::validate) fn accept(
    raw: &Field<Option<RawCache>>,
    path: &str,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Option<Arc<CachePolicy>> {
    let Field::Given(written) = raw else { return None };
    let Some(raw) = &written.value else {
        rows.note(path, "off", written.spot.origin.clone());
        return None;
    };
    refuse_idle(raw, report);
    let default = CachePolicy::default();
    let path = |key: &str| format!("{path}.{key}");
    let or_off = |time: &Option<Duration>| time.map_or_else(|| "off".to_owned(), show_duration);
    let stale = |time: &Duration| or_off(&Some(*time).filter(|time| !time.is_zero()));
    let list = |names: &Vec<String>| format!("[{}]", names.join(", "));
    let policy = CachePolicy {
        ttl: rows.settle(path("ttl"), raw.ttl.as_ref(), default.ttl, or_off),
        ttl_override: rows.settle(
            path("ttl_override"),
            raw.ttl_override.as_ref(),
            default.ttl_override,
            or_off,
        ),
        negative_ttl: rows.settle(
            path("negative_ttl"),
            raw.negative_ttl.as_ref(),
            default.negative_ttl,
            or_off,
        ),
        heuristic: rows.settle(path("heuristic"), raw.heuristic.as_ref(), false, ToString::to_string),
        stale_while_revalidate: rows.settle(
            path("stale_while_revalidate"),
            raw.stale_while_revalidate.as_ref(),
            default.stale_while_revalidate,
            stale,
        ),
        stale_if_error: rows.settle(
            path("stale_if_error"),
            raw.stale_if_error.as_ref(),
            default.stale_if_error,
            stale,
        ),
        ignore_cookies: rows.settle(
            path("ignore_cookies"),
            raw.ignore_cookies.as_ref(),
            default.ignore_cookies,
            ToString::to_string,
        ),
        query: rows.settle(path("query"), raw.query.as_ref(), default.query, |names| {
            names.as_ref().map_or_else(|| "all".to_owned(), list)
        }),
        headers: rows.settle(path("headers"), raw.headers.as_ref(), default.headers, list),
        reloads: rows.settle(path("reloads"), raw.reloads.as_ref(), default.reloads, |count| match count {
            0 => "off".to_owned(),
            count => format!("{count}/s"),
        }),
        fill: rows.settle(path("fill"), raw.fill.as_ref(), default.fill, ToString::to_string),
    };
    Some(Arc::new(policy))
}

/// A key without effect is a misunderstanding, so it is refused.
fn refuse_idle(raw: &RawCache, report: &mut Report) {
    if raw.ttl_override.as_ref().is_none_or(|time| time.value.is_none()) {
        return;
    }
    let heuristic = raw.heuristic.as_ref().filter(|written| written.value);
    let idle = [
        ("ttl", raw.ttl.as_ref().map(|written| &written.spot)),
        ("negative_ttl", raw.negative_ttl.as_ref().map(|written| &written.spot)),
        ("heuristic", heuristic.map(|written| &written.spot)),
    ];
    for (key, spot) in idle {
        let Some(spot) = spot else { continue };
        let message = format!("`{key}` has no effect: `ttl_override` says how long all answers are fresh");
        report.spot(spot, message).note("remove one of the two");
    }
}

/// GoLoadBalance's `cache_enabled` and `cache_timeout_in_seconds`: what holds for the listeners of targets that say nothing of `cache`.
pub(in crate::config::validate) fn of_short_forms(
    raw: &Raw,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Option<Written<Arc<CachePolicy>>> {
    if let Some(enabled) = &raw.cache_enabled {
        rows.note("cache_enabled", enabled.value.to_string(), enabled.spot.origin.clone());
    }
    if let Some(ttl) = &raw.cache_ttl {
        rows.note("cache_timeout_in_seconds", show_duration(ttl.value), ttl.spot.origin.clone());
    }
    let Some(enabled) = raw.cache_enabled.as_ref().filter(|enabled| enabled.value) else {
        // Who has switched it off knows that it rests.
        if let (Some(ttl), None) = (&raw.cache_ttl, &raw.cache_enabled) {
            let key = told(&ttl.spot, "cache_timeout_in_seconds");
            report.warn(&ttl.spot, &format!("{key} has no effect: nothing says `cache_enabled: true`"));
        }
        return None;
    };
    if !raw.targets.iter().any(may_have_it) {
        let key = told(&enabled.spot, "cache_enabled");
        let message = format!("{key} has no effect: no target with a `listener` of its own speaks http");
        report.spot(&enabled.spot, message).expected("`cache: {ttl: 10s}` in a route of `listeners.<name>`");
    }
    let default = CachePolicy::default();
    let ttl = raw.cache_ttl.as_ref().map(|ttl| ttl.value).or(default.ttl);
    let spot = raw.cache_ttl.as_ref().map_or(&enabled.spot, |ttl| &ttl.spot);
    Some(Written::new(Arc::new(CachePolicy { ttl, ..default }), spot.clone()))
}

/// The key, or the flag that stands for it.
fn told(spot: &Spot, key: &str) -> String {
    match &spot.origin {
        Origin::Flag(flag) => quoted(flag),
        _ => quoted(key),
    }
}

/// Of one with a fault nobody knows.
fn may_have_it(target: &RawTarget) -> bool {
    let has_listener = !matches!(target.listener, Field::Absent) || !target.may_be_pool;
    let is_http = match &target.protocol {
        Field::Given(Written { value: Spoken { protocol, .. }, .. }) => *protocol == Protocol::Http,
        Field::Absent => false,
        Field::Faulty => true,
    };
    has_listener && is_http
}

/// Notes what holds for the target whose `cache` would stand at `path`.
pub(in crate::config::validate) fn note(
    path: &str,
    of_all: &Written<Arc<CachePolicy>>,
    rows: &mut EffectiveRows,
) {
    let shown = of_all.value.ttl.map_or_else(|| "off".to_owned(), show_duration);
    rows.note(format!("{path}.ttl"), shown, of_all.spot.origin.clone());
}
