//! The routes of a listener.

mod action;
pub(super) mod cache;
pub(super) mod compress;
mod gaps;
mod mirror;
pub(super) mod passthrough;
mod reach;
mod rows;
mod written;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::clashes::line_of;
use super::gate::access::{self, AccessLists};
use super::gate::auth::{self, AuthRules};
use super::gate::rate::{self, RateLimits};
use super::owner::KeyOwner;
use crate::config::effective::EffectiveRows;
use crate::config::error::quoted;
use crate::config::model::cache::CompressPolicy;
use crate::config::model::route::{
    Action, HeaderEdits, PathPattern, RetryOn, Rewrite, RouteMatch, RouteOverrides,
};
use crate::config::model::{Auth, GrpcStatuses, Protocol, RouteConfig};
use crate::config::origin::{Field, Spot, Written};
use crate::config::raw::{Condition, RawHeaders, RawOwn, RawRoute};
use crate::config::report::Report;
pub(super) use rows::edits as edit_rows;
use written::of_route;

/// What a listener says of all of its routes: edits of headers, who its clients are, how answers are compressed.
type OfAll<'r> = (&'r Field<RawHeaders>, Option<&'r Arc<Auth>>, Option<&'r Arc<CompressPolicy>>);

/// Makes the routes of a listener; `targets`: all there are, and what they speak, `headers`: the edits of the listener.
pub(super) fn accept_all(
    raw: &[RawRoute],
    owner: &KeyOwner<'_>,
    targets: &HashMap<&str, Protocol>,
    (headers, auth_of_all, compress_of_all): OfAll<'_>,
    (lists, rates, rules): (&AccessLists<'_>, &RateLimits<'_>, &AuthRules<'_>),
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Vec<RouteConfig> {
    let mut names: HashMap<String, &Spot> = HashMap::with_capacity(raw.len());
    let mut conditions: HashMap<String, &Spot> = HashMap::with_capacity(raw.len());
    let mut routes = Vec::with_capacity(raw.len());
    let mut spots = Vec::with_capacity(raw.len());
    let of_all = match headers {
        Field::Given(headers) => headers.value.edits(),
        Field::Absent | Field::Faulty => HeaderEdits::default(),
    };
    for raw in raw {
        passthrough::refuse(raw, owner, report);
        let Some(mut route) = accept(raw, targets, report) else { continue };
        warn_of_unasked(raw, owner, report);
        let condition = format!("{:?} {}", route.order, of_route(&route.matches, route.is_passthrough));
        if let Some(first) = conditions.get(&condition) {
            let line = line_of(first, &raw.spot);
            let message =
                format!("this route of {} never has a request: another one takes the same", owner.told());
            report
                .spot(&raw.spot, message)
                .note(format!("the other one{line} stands first; change or remove one of them"));
            continue;
        }
        conditions.insert(condition, &raw.spot);
        let spot = raw.name.as_ref().map_or(&raw.spot, |name| &name.spot);
        if let Some(first) = names.get(&route.name) {
            let line = line_of(first, spot);
            let message = format!("two routes of {} have the name {}", owner.told(), quoted(&route.name));
            report.spot(spot, message).note(format!("give this one another `name`; the first stands{line}"));
            continue;
        }
        names.insert(route.name.clone(), spot);
        let path = owner.path(&format!("routes.{}", route.name));
        rows::route(raw, &route, &path, rows);
        route.access =
            access::accept(&raw.access, &format!("{path}.access"), lists, report, rows).unwrap_or_default();
        route.auth = auth::accept(&raw.auth, &path, auth_of_all, rules, report, rows);
        if let (Some(rule), Field::Given(Written { value: None, spot })) = (auth_of_all, &raw.auth) {
            let message = format!(
                "this route of {} has `auth: off`: {} does not hold for it",
                owner.told(),
                quoted(&rule.name)
            );
            report.warn(spot, &message);
        }
        let (is_http, at) = (!route.is_passthrough, format!("{path}.rate_limit"));
        route.rate_limits = rate::accept(&raw.rate_limit, &at, is_http, rates, report, rows);
        if is_http {
            rate::warn_of_no_user(&raw.rate_limit, &route, owner, report);
        }
        if let Field::Given(written) = &raw.mirror {
            mirror::note(&path, written, rows);
        }
        if !route.is_passthrough && matches!(route.action, Action::Forward(_) | Action::Split(_)) {
            route.cache = cache::accept(&raw.cache, &format!("{path}.cache"), report, rows);
            route.compress =
                compress::accept(&raw.compress, &format!("{path}.compress"), compress_of_all, rows);
        }
        if route.is_passthrough {
            // There are no requests by which anybody could show who he is.
            route.auth = None;
        } else {
            route.headers = joined(&of_all, route.headers);
        }
        routes.push(route);
        spots.push(&raw.spot);
    }
    passthrough::refuse_shadowed(&routes, &spots, owner, report);
    for is_passthrough in [false, true] {
        let is_one = |(route, _): &(&RouteConfig, &&Spot)| route.is_passthrough == is_passthrough;
        let (these, spots): (Vec<&RouteConfig>, Vec<&Spot>) =
            routes.iter().zip(&spots).filter(is_one).map(|(route, spot)| (route, *spot)).unzip();
        let these: Cow<'_, [RouteConfig]> = match these.len() == routes.len() {
            true => Cow::Borrowed(&routes),
            false => these.into_iter().cloned().collect(),
        };
        check_together(&these, &spots, owner, report);
    }
    routes
}

/// Reports routes that get no request, or no connection, and warns of those that get what others protect.
fn check_together(routes: &[RouteConfig], spots: &[&Spot], owner: &KeyOwner<'_>, report: &mut Report) {
    let conditions: Vec<String> = routes.iter().map(|route| written::conditions(&route.matches)).collect();
    for (place, other) in reach::unreachable(routes, &conditions) {
        let (here, there) = (spots[place], spots[other]);
        let message =
            format!("this route of {} never has a request: another one takes all of them", owner.told());
        let line = line_of(there, here);
        let name = quoted(&routes[other].name);
        report
            .spot(here, message)
            .note(format!("{name}{line} is asked first; see the order in docs/routing.md"));
    }
    warn_of_gaps(routes, spots, report);
}

/// Open routes that are told of one listener; whoever has more has made one mistake in a loop.
const OPEN_TOLD: usize = 20;
/// Guards that are told of one open route.
const GUARDS_TOLD: usize = 3;

/// Warns where a request that one route protects reaches one that does not: once for each of these, what lets in who may not come in
/// before what lets in too many.
fn warn_of_gaps(routes: &[RouteConfig], spots: &[&Spot], report: &mut Report) {
    let open = gaps::by_open_route(&gaps::gaps(routes), routes);
    for gaps in open.iter().take(OPEN_TOLD) {
        let Some(first) = gaps.first() else { continue };
        let guards: Vec<String> = gaps
            .iter()
            .take(GUARDS_TOLD)
            .map(|gap| {
                let (guard, open) = (&routes[gap.guard], &routes[gap.open]);
                let missing = gaps::missing(guard, open);
                let keys: Vec<String> = missing.into_iter().map(|key| format!("`{key}`")).collect();
                let origin = &spots[gap.guard].origin;
                format!("{} ({origin}) protects by {}", quoted(&guard.name), keys.join(" and "))
            })
            .collect();
        let more = match gaps.len().saturating_sub(GUARDS_TOLD) {
            0 => String::new(),
            1 => ", and 1 more route protects".to_owned(),
            more => format!(", and {more} more routes protect"),
        };
        let firsts = gaps.iter().filter(|gap| gap.is_first).count();
        let why = match (firsts, gaps.len()) {
            (0, 1) => "it takes what the other one leaves",
            (0, _) => "it takes what the others leave",
            (firsts, all) if firsts == all => "it is asked first",
            _ => "it is asked first, or takes what the others leave",
        };
        let name = quoted(&routes[first.open].name);
        let message = format!(
            "the route {name} gets requests for what {}{more}, and has none itself: {why}",
            guards.join(", ")
        );
        report.warn(spots[first.open], &message);
    }
    let rest = open.get(OPEN_TOLD..).unwrap_or_default();
    if let Some(first) = rest.first().and_then(|gaps| gaps.first()) {
        let more = match rest.len() {
            1 => "and 1 more route gets around routes that protect".to_owned(),
            more => format!("and {more} more routes get around routes that protect"),
        };
        report.warn(spots[first.open], &more);
    }
}

/// Those of the listener first.
fn joined(of_all: &HeaderEdits, own: HeaderEdits) -> HeaderEdits {
    if of_all.is_empty() {
        return own;
    }
    HeaderEdits {
        request: of_all.request.iter().cloned().chain(own.request).collect(),
        response: of_all.response.iter().cloned().chain(own.response).collect(),
    }
}

/// What a key says; `None` outside: its fault has been reported.
fn given<T: Clone>(field: &Field<T>) -> Option<Option<T>> {
    match field {
        Field::Given(written) => Some(Some(written.value.clone())),
        Field::Absent => Some(None),
        Field::Faulty => None,
    }
}

/// Makes one, with every fault that it has.
fn accept(raw: &RawRoute, targets: &HashMap<&str, Protocol>, report: &mut Report) -> Option<RouteConfig> {
    let action = action::accept(raw, targets, report);
    let parts = (given(&raw.matches), given(&raw.rewrite));
    if let (Some(Some(matches)), Some(Some(rewrite)), Field::Given(Written { spot, .. })) =
        (&parts.0, &parts.1, &raw.rewrite)
    {
        refuse_idle_strip(matches, rewrite, spot, report);
    }
    let headers = match &raw.headers {
        Field::Given(headers) => Some(headers.value.edits()),
        Field::Absent => Some(HeaderEdits::default()),
        Field::Faulty => None,
    };
    let ((Some(matches), Some(rewrite)), Some(headers)) = (parts, headers) else { return None };
    let matches = matches.unwrap_or_default();
    let RawOwn { retries, hash_key, upgrade } = &raw.own;
    let (attempts, retry_on) = match retries {
        Some(Written { value: Some(retries), .. }) => {
            let on = retries.on.as_ref().map(|on| retry_on(&on.value));
            (retries.attempts.as_ref().map(|attempts| attempts.value), on)
        }
        Some(Written { value: None, .. }) => (Some(1), None),
        None => (None, None),
    };
    let own = RouteOverrides {
        body: raw.limits.body.as_ref().map(|body| body.value),
        idle: raw.timeouts.idle.as_ref().map(|idle| idle.value),
        tunnel: raw.timeouts.tunnel.as_ref().map(|tunnel| tunnel.value),
        total: raw.timeouts.total.as_ref().map(|total| total.value),
        attempts,
        retry_on,
        hash_key: hash_key.as_ref().map(|key| key.value.clone()),
        upgrade: upgrade.as_ref().map(|upgrade| upgrade.value.clone()),
    };
    let usual = || of_route(&matches, raw.is_passthrough());
    let name = raw.name.as_ref().map_or_else(usual, |name| name.value.clone());
    let order = raw.order.as_ref().map(|order| order.value);
    let mut route = RouteConfig {
        name,
        order,
        matches,
        action: action?,
        is_passthrough: raw.is_passthrough(),
        access: Vec::new(),
        auth: None,
        rate_limits: Vec::new(),
        rewrite,
        headers,
        mirror: None,
        cache: None,
        compress: None,
        own,
    };
    if let Field::Given(written) = &raw.mirror {
        route.mirror = written.value.as_ref().and_then(|raw| mirror::accept(raw, &route, targets, report));
    }
    Some(route)
}

/// A condition on certificates never holds where no client is asked for one.
fn warn_of_unasked(raw: &RawRoute, owner: &KeyOwner<'_>, report: &mut Report) {
    let Field::Given(Written { value: matches, spot }) = &raw.matches else { return };
    let is_asked = match owner.tls {
        Field::Given(tls) => tls.value.client_ca.is_some(),
        Field::Absent => false,
        Field::Faulty => true,
    };
    if !matches.certificate.is_empty() && !is_asked {
        let message = format!(
            "`client_cert` never holds here: {} asks no client for a certificate, which `tls.client_ca` makes it do",
            owner.told()
        );
        report.warn(spot, &message);
    }
}

fn retry_on(conditions: &[Written<Condition>]) -> RetryOn {
    let has = |condition| conditions.iter().any(|written| written.value == condition);
    let statuses = conditions.iter().filter_map(|written| match &written.value {
        Condition::Statuses(statuses) => Some(statuses.clone()),
        Condition::Connect | Condition::Reset | Condition::Timeout | Condition::Grpc(_) => None,
    });
    RetryOn {
        grpc: GrpcStatuses::of(|status| has(Condition::Grpc(status))),
        connect: has(Condition::Connect),
        reset: has(Condition::Reset),
        timeout: has(Condition::Timeout),
        statuses: statuses.collect(),
    }
}

/// A prefix that no path of the route has would never be stripped.
fn refuse_idle_strip(matches: &RouteMatch, rewrite: &Rewrite, spot: &Spot, report: &mut Report) {
    let (Rewrite::Prefix { strip, .. }, PathPattern::Exact(path) | PathPattern::Prefix(path)) =
        (rewrite, &matches.path)
    else {
        return;
    };
    let is_below = |path: &str, prefix: &str| {
        prefix == "/"
            || path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    // The route may well take more than what is stripped, or paths below it.
    let may_be_deeper = matches!(matches.path, PathPattern::Prefix(_)) && is_below(strip, path);
    if !strip.is_empty() && !is_below(path, strip) && !may_be_deeper {
        let message =
            format!("`strip_prefix: {strip}` has no effect: the paths of this route begin with `{path}`");
        report.spot(spot, message).expected(format!("a prefix of `{path}`, or none"));
    }
}
