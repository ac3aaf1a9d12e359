//! What routes say, in one line each: for their default names and for `check`.

use std::fmt::Write as _;

use crate::config::model::route::{FieldMatch, FieldTest, HostPattern, PathPattern, Rewrite, RouteMatch};

/// A match in one line, the same for equal ones: `shop.example/api`, `=/exact`, `~^/v[0-9]`, `/api;method=GET`.
pub(super) fn written(matches: &RouteMatch) -> String {
    let RouteMatch { hosts, path, .. } = matches;
    let host = |host: &HostPattern| {
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
    text + &conditions(matches)
}

/// The same of a route: one that passes connections through has others than one with the same match that does not.
pub(super) fn of_route(matches: &RouteMatch, is_passthrough: bool) -> String {
    written(matches) + if is_passthrough { ";passthrough" } else { "" }
}

/// What it asks for beside host and path, in one line; empty: nothing.
pub(super) fn conditions(matches: &RouteMatch) -> String {
    let RouteMatch { methods, headers, queries, cookies, clients, certificate, alpn, .. } = matches;
    let mut text = String::new();
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
    for (kind, wanted) in [("subject", &certificate.subjects), ("san", &certificate.names)] {
        if !wanted.is_empty() {
            let wanted: Vec<String> = wanted.iter().map(ToString::to_string).collect();
            text.extend([";client_cert.", kind, "=", &wanted.join(",")]);
        }
    }
    if !alpn.is_empty() {
        text.extend([";alpn=", &alpn.join(",")]);
    }
    text
}

/// A `rewrite` as it may be written.
pub(super) fn show_rewrite(rewrite: &Rewrite) -> String {
    match rewrite {
        Rewrite::Path(text) => format!("{{path: {}}}", text.source()),
        Rewrite::Prefix { strip, add } => {
            let strip = (!strip.is_empty()).then(|| format!("strip_prefix: {strip}"));
            let add = (!add.is_empty()).then(|| format!("add_prefix: {add}"));
            format!("{{{}}}", strip.into_iter().chain(add).collect::<Vec<_>>().join(", "))
        }
    }
}
