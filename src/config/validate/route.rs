//! The routes of a listener.

mod mirror;
mod named;

use std::collections::HashMap;
use std::fmt::Write as _;

use super::clashes::line_of;
use super::owner::KeyOwner;
use crate::config::effective::EffectiveRows;
use crate::config::error::quoted;
use crate::config::model::route::{
    FieldMatch, FieldTest, InlineAccess, PathPattern, RouteMatch, RouteOverrides,
};
use crate::config::model::{RouteConfig, TargetConfig};
use crate::config::origin::{Field, Spot};
use crate::config::raw::RawRoute;
use crate::config::report::Report;
use crate::config::units::{show_duration, show_size};

/// Makes the routes of a listener; `targets`: all there are.
pub(super) fn accept_all(
    raw: &[RawRoute],
    owner: &KeyOwner<'_>,
    targets: &[TargetConfig],
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Vec<RouteConfig> {
    let mut names: HashMap<String, &Spot> = HashMap::with_capacity(raw.len());
    let mut conditions: HashMap<String, &Spot> = HashMap::with_capacity(raw.len());
    let mut routes = Vec::with_capacity(raw.len());
    for raw in raw {
        let Some(route) = accept(raw, targets, report) else { continue };
        let condition = format!("{:?} {}", route.order, written(&route.matches));
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
        rows.note(format!("{path}.match"), written(&route.matches), raw.spot.origin.clone());
        if let Some(order) = &raw.order {
            rows.note(format!("{path}.order"), order.value.to_string(), order.spot.origin.clone());
        }
        if let (Some(access), Field::Given(at)) = (&route.access, &raw.access) {
            rows.note(format!("{path}.access"), show_access(access), at.spot.origin.clone());
        }
        let times = &raw.timeouts;
        for (key, written) in [("idle", &times.idle), ("tunnel", &times.tunnel)] {
            if let Some(time) = written {
                rows.note(
                    format!("{path}.timeouts.{key}"),
                    show_duration(time.value),
                    time.spot.origin.clone(),
                );
            }
        }
        if let Some(total) = &times.total {
            let shown = total.value.map_or_else(|| "off".to_owned(), show_duration);
            rows.note(format!("{path}.timeouts.total"), shown, total.spot.origin.clone());
        }
        if let Some(body) = &raw.limits.body {
            let shown = body.value.map_or_else(|| "off".to_owned(), show_size);
            rows.note(format!("{path}.limits.body"), shown, body.spot.origin.clone());
        }
        if let Field::Given(target) = &raw.target {
            rows.note(format!("{path}.target"), target.value.clone(), target.spot.origin.clone());
        }
        if let Field::Given(written) = &raw.mirror {
            mirror::note(&path, written, rows);
        }
        routes.push(route);
    }
    routes
}

fn accept(raw: &RawRoute, targets: &[TargetConfig], report: &mut Report) -> Option<RouteConfig> {
    let target = match &raw.target {
        Field::Given(target) => target,
        Field::Faulty => return None,
        Field::Absent => {
            let problem = report.spot(&raw.spot, "a route without `target`");
            problem.expected("`target: web`, with the name of a target");
            return None;
        }
    };
    named::find(target, targets, report)?;
    let matches = match &raw.matches {
        Field::Given(matches) => matches.value.clone(),
        Field::Absent => RouteMatch::default(),
        Field::Faulty => return None,
    };
    let access = match &raw.access {
        Field::Given(access) => Some(access.value.clone()),
        Field::Absent => None,
        Field::Faulty => return None,
    };
    let own = RouteOverrides {
        body: raw.limits.body.as_ref().map(|body| body.value),
        idle: raw.timeouts.idle.as_ref().map(|idle| idle.value),
        tunnel: raw.timeouts.tunnel.as_ref().map(|tunnel| tunnel.value),
        total: raw.timeouts.total.as_ref().map(|total| total.value),
        ..RouteOverrides::default()
    };
    let name = raw.name.as_ref().map_or_else(|| written(&matches), |name| name.value.clone());
    let order = raw.order.as_ref().map(|order| order.value);
    let mut route =
        RouteConfig { name, order, matches, access, own, ..RouteConfig::catch_all(&target.value) };
    if let Field::Given(written) = &raw.mirror {
        route.mirror = written.value.as_ref().and_then(|raw| mirror::accept(raw, &route, targets, report));
    }
    Some(route)
}

fn show_access(access: &InlineAccess) -> String {
    let list =
        |networks: &[ipnet::IpNet]| networks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let status = access.status.map_or_else(|| "drop".to_owned(), |status| status.to_string());
    format!("allow [{}], deny [{}], else {status}", list(&access.allow), list(&access.deny))
}

/// A match in one line, the same for equal ones: `shop.example/api`, `=/exact`, `~^/v[0-9]`, `/api;method=GET`.
fn written(matches: &RouteMatch) -> String {
    let RouteMatch { hosts, path, methods, headers, queries, cookies, clients } = matches;
    let host = |host: &crate::config::model::route::HostPattern| {
        let star = if host.is_suffix { "*." } else { "" };
        let port = host.port.map_or_else(String::new, |port| format!(":{port}"));
        format!("{star}{}{port}", host.name)
    };
    let mut text = hosts.iter().map(host).collect::<Vec<_>>().join(",");
    match path {
        PathPattern::Any => {}
        PathPattern::Exact(path) => text.extend(["=", path]),
        PathPattern::Prefix(path) => text.push_str(path),
        PathPattern::Regex(regex) => text.extend(["~", regex.as_str()]),
    }
    if text.is_empty() {
        text.push('*');
    }
    if !methods.is_empty() {
        text.extend([";method=", &methods.join(",")]);
    }
    for (kind, fields) in [("header", headers), ("query", queries), ("cookie", cookies)] {
        for FieldMatch { name, test } in fields {
            // Writing to a text does not fail.
            let _ = match test {
                FieldTest::Is(values) => write!(text, ";{kind}.{name}={}", values.join(",")),
                FieldTest::Present(wanted) => write!(text, ";{kind}.{name}:{wanted}"),
                FieldTest::Regex(regex) => write!(text, ";{kind}.{name}~{regex}"),
            };
        }
    }
    if !clients.is_empty() {
        let clients: Vec<String> = clients.iter().map(ToString::to_string).collect();
        text.extend([";client=", &clients.join(",")]);
    }
    text
}
