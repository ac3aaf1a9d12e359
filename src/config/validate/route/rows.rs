//! What is in force of a route, and where each part is written.

use super::written::{show_rewrite, written};
use crate::config::effective::{EffectiveRows, number_of};
use crate::config::model::route::{Action, RouteConfig};
use crate::config::model::{HashKey, Text};
use crate::config::origin::{Field, Written};
use crate::config::raw::{Condition, RawEdits, RawHeaders, RawRoute};
use crate::config::units::{show_duration, show_size};
use crate::config::validate::show::show_statuses;

/// Notes what `raw` has become, whose keys stand at `path`.
pub(super) fn route(raw: &RawRoute, route: &RouteConfig, path: &str, rows: &mut EffectiveRows) {
    rows.note(format!("{path}.match"), written(&route.matches), raw.spot.origin.clone());
    if let Some(order) = &raw.order {
        rows.note(format!("{path}.order"), order.value.to_string(), order.spot.origin.clone());
    }
    if let (Some(rewrite), Field::Given(at)) = (&route.rewrite, &raw.rewrite) {
        rows.note(format!("{path}.rewrite"), show_rewrite(rewrite), at.spot.origin.clone());
    }
    if let Field::Given(passthrough) = &raw.passthrough {
        let place = passthrough.spot.origin.clone();
        rows.note(format!("{path}.passthrough"), passthrough.value.to_string(), place);
    }
    edits(&raw.headers, path, rows);
    own(raw, path, rows);
    if let Field::Given(target) = &raw.target {
        rows.note(format!("{path}.target"), target.value.clone(), target.spot.origin.clone());
    }
    if let Field::Given(split) = &raw.split {
        for (target, weight) in &split.value.targets {
            let place = weight.spot.origin.clone();
            rows.note(format!("{path}.split.targets.{}", target.value), weight.value.to_string(), place);
        }
        if let Some(by) = &split.value.by {
            rows.note(format!("{path}.split.by"), show_hash_key(&by.value), by.spot.origin.clone());
        }
    }
    if let Field::Given(redirect) = &raw.redirect {
        let (to, status) = &redirect.value;
        rows.note(format!("{path}.redirect.to"), to.to.source(), redirect.spot.origin.clone());
        rows.settle(format!("{path}.redirect.status"), status.as_ref(), 308, ToString::to_string);
    }
    respond(raw, route, path, rows);
}

/// What it says instead of its listener and its target.
fn own(raw: &RawRoute, path: &str, rows: &mut EffectiveRows) {
    let times = &raw.timeouts;
    for (key, written) in [("idle", &times.idle), ("tunnel", &times.tunnel)] {
        if let Some(time) = written {
            rows.note(format!("{path}.timeouts.{key}"), show_duration(time.value), time.spot.origin.clone());
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
    match &raw.own.retries {
        Some(Written { value: Some(retries), .. }) => {
            if let Some(attempts) = &retries.attempts {
                let place = attempts.spot.origin.clone();
                rows.note(format!("{path}.retries.attempts"), attempts.value.to_string(), place);
            }
            if let Some(on) = &retries.on {
                let place = on.spot.origin.clone();
                rows.note(format!("{path}.retries.on"), show_conditions(&on.value), place);
            }
        }
        Some(Written { value: None, spot }) => {
            rows.note(format!("{path}.retries"), "off", spot.origin.clone());
        }
        None => {}
    }
    if let Some(key) = &raw.own.hash_key {
        rows.note(format!("{path}.hash_key"), show_hash_key(&key.value), key.spot.origin.clone());
    }
    if let Some(upgrade) = &raw.own.upgrade {
        let names = &upgrade.value;
        let shown = if names.is_empty() { "off".to_owned() } else { format!("[{}]", names.join(", ")) };
        rows.note(format!("{path}.upgrade"), shown, upgrade.spot.origin.clone());
    }
}

fn respond(raw: &RawRoute, route: &RouteConfig, path: &str, rows: &mut EffectiveRows) {
    let (Field::Given(written), Action::Respond(respond)) = (&raw.respond, &route.action) else { return };
    let raw = &written.value;
    rows.settle(format!("{path}.respond.status"), raw.status.as_ref(), 200, ToString::to_string);
    if let Some(body) = &raw.body {
        rows.note(
            format!("{path}.respond.body"),
            body.value.escape_debug().to_string(),
            body.spot.origin.clone(),
        );
    }
    if let Some(file) = &raw.body_file {
        let content = Some(number_of([&*respond.body]));
        rows.note_file(format!("{path}.respond.body_file"), &file.value, file.spot.origin.clone(), content);
    }
    if let Some(usual) = &respond.content_type {
        let kind = raw.content_type.as_ref();
        rows.settle(format!("{path}.respond.content_type"), kind, usual.clone(), String::clone);
    }
    lines(&raw.headers, &format!("{path}.respond.headers"), rows);
}

/// Notes the edits of headers of whoever has its keys at `path`.
pub(in crate::config::validate) fn edits(headers: &Field<RawHeaders>, path: &str, rows: &mut EffectiveRows) {
    let Field::Given(headers) = headers else { return };
    let mut side = |side: &str, RawEdits { remove, set, add }: &RawEdits| {
        let path = format!("{path}.headers.{side}");
        if let Some(remove) = remove {
            let shown = format!("[{}]", remove.value.join(", "));
            rows.note(format!("{path}.remove"), shown, remove.spot.origin.clone());
        }
        lines(set, &format!("{path}.set"), rows);
        lines(add, &format!("{path}.add"), rows);
    };
    side("request", &headers.value.request);
    side("response", &headers.value.response);
}

/// Notes header lines; those of one name by their number.
fn lines(lines: &[(String, Written<Text>)], path: &str, rows: &mut EffectiveRows) {
    for (index, (name, text)) in lines.iter().enumerate() {
        let number = lines[..index].iter().filter(|(other, _)| other == name).count();
        let is_one = lines.iter().filter(|(other, _)| other == name).count() == 1;
        let place = if is_one { String::new() } else { format!("[{number}]") };
        rows.note(format!("{path}.{name}{place}"), text.value.source(), text.spot.origin.clone());
    }
}

fn show_hash_key(key: &HashKey) -> String {
    match key {
        HashKey::ClientIp => "client_ip".to_owned(),
        HashKey::Path => "path".to_owned(),
        HashKey::Query => "query".to_owned(),
        HashKey::Parameter(name) => format!("{{query: {name}}}"),
        HashKey::Header(name) => format!("{{header: {name}}}"),
        HashKey::Cookie(name) => format!("{{cookie: {name}}}"),
    }
}

fn show_conditions(conditions: &[Written<Condition>]) -> String {
    let shown = conditions.iter().map(|condition| match &condition.value {
        Condition::Statuses(range) => show_statuses(std::slice::from_ref(range)),
        named => named.name().unwrap_or_default().to_owned(),
    });
    format!("[{}]", shown.collect::<Vec<_>>().join(", "))
}
