//! The state of things as text of at most 80 columns.

use std::fmt::Write as _;

use crate::admin::status::access::{AccessListReport, RateLimitReport};
use crate::admin::status::report::{
    BackendReport, CacheReport, CopyReport, InputReport, ListenerReport, NameReport, RateReport,
    StatusReport, TargetReport,
};

/// Columns of a line.
const COLUMNS: usize = 80;
/// Columns of a backend's name.
const NAME: usize = 22;

/// Everything.
pub(super) fn everything(report: &StatusReport) -> String {
    let StatusReport { process, connections, listeners, targets, .. } = report;
    let mut text = String::new();
    let mut line = |of: String| {
        text += &clipped(&of, COLUMNS);
        text.push('\n');
    };
    line(format!(
        "evenkeel {}, process {}, up for {}, config {}",
        process.version,
        process.pid,
        span(process.uptime_ms),
        process.config_number
    ));
    line(match &process.config {
        Some(file) => format!("  {}: {}", process.name, shortened(file, COLUMNS - process.name.len() - 4)),
        None => format!("  {}: without a config file", process.name),
    });
    line(format!("  {} of {} connections, {}", connections.open, connections.limit, of_all(listeners)));
    line(format!("  {}", verdict(targets)));
    if let Some(said) = cached(&report.cache) {
        line(said);
    }
    match process.blocked {
        0 => {}
        1 => line("  1 network is blocked: `evenkeel diff` shows it".to_owned()),
        many => line(format!("  {many} networks are blocked: `evenkeel diff` shows them")),
    }
    if let Some(trial) = &process.trial {
        line(match trial.left_ms {
            0 => "  on trial, and its time is over: it is taken back as soon as that can be done".to_owned(),
            left => {
                format!(
                    "  on trial for {} more (applied by {}): `evenkeel confirm` keeps it",
                    span(left),
                    trial.who
                )
            }
        });
    }
    line(String::new());
    line(format!(
        "{:<22} {:<6} {:<26} {:>6} {:>8} {:>7}",
        "LISTENER", "SPEAKS", "ADDRESS", "OPEN", "REQ/S", "ERR/S"
    ));
    for listener in listeners {
        let ListenerReport { name, protocol, addresses, connections, rate, .. } = listener;
        let (requests, errors) = rates(rate.as_ref());
        for (place, address) in addresses.iter().enumerate() {
            let address = shortened(address, 26);
            line(match place {
                0 => format!(
                    "{:<22} {protocol:<6} {address:<26} {connections:>6} {requests:>8} {errors:>7}",
                    shortened(name, 22)
                ),
                _ => format!("{:<29} {address}", ""),
            });
        }
    }
    who_was_refused(report).lines().for_each(|one| line(one.to_owned()));
    for target in targets {
        line(String::new());
        section(target).lines().for_each(|one| line(one.to_owned()));
    }
    text
}

/// What the cache was good for; `None`: no route has one, or nobody has asked.
fn cached(cache: &CacheReport) -> Option<String> {
    let of = |kinds: &[&str]| kinds.iter().filter_map(|kind| cache.requests.get(*kind)).sum::<u64>();
    let (stored, all) =
        (of(&["hit", "stale", "revalidated", "collapsed"]), cache.requests.values().sum::<u64>());
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    (all > 0).then(|| {
        format!(
            "  cache: {stored} of {all} requests answered from it, {} of {} MiB taken",
            mib(cache.bytes),
            mib(cache.memory)
        )
    })
}

/// Rate limits and access lists, and how many they have sent away.
fn who_was_refused(report: &StatusReport) -> String {
    let StatusReport { rate_limits, access_lists, .. } = report;
    let mut text = String::new();
    if !rate_limits.is_empty() {
        let _ = writeln!(
            text,
            "\n{:<22} {:>12} {:>12} {:>13} {:>12}",
            "RATE LIMIT", "PASSED", "REFUSED", "WOULD REFUSE", "CROWDED"
        );
    }
    for RateLimitReport { name, dry_run, admitted, refused, would_refuse, crowded } in rate_limits {
        let would_refuse = if *dry_run { would_refuse.to_string() } else { "-".to_owned() };
        let name = shortened(name, NAME);
        let _ = writeln!(text, "{name:<22} {admitted:>12} {refused:>12} {would_refuse:>13} {crowded:>12}");
    }
    if !access_lists.is_empty() {
        let _ = writeln!(text, "\n{:<35} {:>12}", "ACCESS LIST", "REFUSED");
    }
    for AccessListReport { name, refused } in access_lists {
        let _ = writeln!(text, "{:<35} {refused:>12}", shortened(name, 35));
    }
    text
}

/// One target.
pub(super) fn one_target(report: &TargetReport) -> String {
    let TargetReport { protocol, balance, active, waiting, max_in_flight, traffic, .. } = report;
    let TargetReport { first_byte, copies, .. } = report;
    let mut text = section(report);
    let limit = max_in_flight.map_or(String::new(), |limit| format!(", at most {limit} for each backend"));
    let _ = writeln!(text, "\n  {protocol}, {balance}; {active} active{limit}, {waiting} waiting");
    match report.scale.as_deref() {
        Some("out") => text.push_str("  it needs more backends\n"),
        Some(_) => text.push_str("  it would do with fewer backends\n"),
        None => {}
    }
    let failed = traffic.by_class.get("5xx").copied().unwrap_or_default();
    let _ = writeln!(text, "  {} ended since the start, {failed} of them with 5xx", traffic.requests);
    if let Some(latency) = first_byte {
        let (half, most) = (precise(latency.p50_ms), precise(latency.p99_ms));
        let _ = writeln!(text, "  first byte within {half} (half of them) and {most} (99 %)");
    }
    if let Some(CopyReport { chosen, answered, by_cause }) = copies {
        let _ = writeln!(text, "  {chosen} requests were to be copied here, {answered} copies were answered");
        for (cause, count) in by_cause {
            let _ = writeln!(text, "    {count} not: {cause}");
        }
    }
    fitted(&text)
}

/// One backend.
pub(super) fn one_backend(report: &BackendReport) -> String {
    let BackendReport { target, name, address, state, source, reason, age_ms, .. } = report;
    let mut text = format!("{target}/{name} is {state} for {}: {reason} ({source})\n", span(*age_ms));
    let over = if report.tls { ", over TLS" } else { "" };
    let _ = writeln!(text, "  at {address}{over}\n");
    let _ = writeln!(text, "  {:<9} {:<9} {:>7}  WHY", "INPUT", "SAYS", "FOR");
    for InputReport { source: of, says, reason, age_ms, .. } in &report.inputs {
        let mark = if of == source { "*" } else { " " };
        let _ = writeln!(text, "{mark} {of:<9} {says:<9} {:>7}  {reason}", span(*age_ms));
    }
    let probe = match &report.last_probe {
        None => "none".to_owned(),
        Some(probe) => {
            let why = probe.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
            format!("{}, {} ago, in {}{why}", probe.result, span(probe.age_ms), precise(probe.took_ms))
        }
    };
    let (requests, errors) = rates(report.rate.as_ref());
    let BackendReport { active, idle_connections, attempts, failures, weight, agent_share, share, .. } =
        report;
    let granted = if *agent_share == 100 {
        String::new()
    } else {
        format!(", of which the agent grants {agent_share}%")
    };
    let _ = writeln!(text, "\n  last probe  {probe}");
    let _ = writeln!(
        text,
        "  requests    {requests}/s, {errors} failures/s; {active} active, {idle_connections} idle connections"
    );
    if let Some(latency) = &report.first_byte {
        let (half, most) = (precise(latency.p50_ms), precise(latency.p99_ms));
        let _ =
            writeln!(text, "  first byte  within {half} (half of them) and {most} (99 %), or a quarter less");
    }
    let _ = writeln!(text, "  in all      {attempts} attempts, {failures} of them failed");
    let _ =
        writeln!(text, "  weight      {weight}{granted}; {} of the requests of new clients", percent(*share));
    fitted(&text)
}

/// A target with a line for each backend, and another one for each that is not up.
fn section(target: &TargetReport) -> String {
    let TargetReport { name, state, reason, age_ms, backends, .. } = target;
    let mark = if state == "up" { "" } else { "! " };
    let mut text = format!("{mark}{name} is {state} for {}: {reason}\n", span(*age_ms));
    target.names.iter().for_each(|name| text += &asked(name));
    let _ = writeln!(
        text,
        "    {:<NAME$} {:<8}{:>7}{:>7}{:>7}{:>6}{:>9}{:>8}",
        "BACKEND", "STATE", "FOR", "ACTIVE", "WEIGHT", "SHARE", "REQ/S", "ERR/S"
    );
    for backend in backends {
        let BackendReport { name, state, age_ms, active, weight, share, rate, .. } = backend;
        let mark = match state.as_str() {
            "up" => ' ',
            "draining" => '~',
            "unknown" => '?',
            _ => '!',
        };
        let (requests, errors) = rates(rate.as_ref());
        let _ = writeln!(
            text,
            "  {mark} {:<NAME$} {state:<8}{:>7}{active:>7}{weight:>7}{:>6}{requests:>9}{errors:>8}",
            shortened(name, NAME),
            span(*age_ms),
            percent(*share)
        );
        if state != "up" {
            let _ = writeln!(text, "      {} ({})", backend.reason, backend.source);
        }
    }
    fitted(&text)
}

/// A name whose addresses are among the backends.
fn asked(name: &NameReport) -> String {
    let NameReport {
        name,
        asked_as,
        addresses,
        lacked,
        left_out,
        ttl_ms,
        answered_age_ms,
        trouble,
        asked_by,
        ..
    } = name;
    let mut text = match (asked_by, answered_age_ms, ttl_ms) {
        (Some(node), ..) => {
            format!("    {asked_as} {name}: {} addresses, asked for by node {node}", addresses.len())
        }
        (None, Some(age), Some(ttl)) => {
            let count = addresses.len();
            format!(
                "    {asked_as} {name}: {count} addresses, answered {} ago, TTL {}",
                span(*age),
                span(*ttl)
            )
        }
        _ => format!("    {asked_as} {name}: no answer yet"),
    };
    match (lacked.len(), left_out) {
        (0, 0) => {}
        (lacked, 0) => drop(write!(text, ", which lacks {lacked} of them")),
        (_, beyond) => drop(write!(text, ", {beyond} more left out")),
    }
    text.push('\n');
    if let Some(trouble) = trouble {
        let _ = writeln!(text, "    ! for {}: {}", span(trouble.age_ms), trouble.reason);
    }
    text
}

/// Whether anything is wrong, in words.
fn verdict(targets: &[TargetReport]) -> String {
    let sick: Vec<String> = targets
        .iter()
        .filter(|target| target.state != "up")
        .map(|target| {
            format!(
                "{} ({})",
                target.name,
                if target.state == "backups" { "on backups" } else { &target.state }
            )
        })
        .collect();
    let lost =
        targets.iter().flat_map(|target| &target.backends).filter(|backend| backend.state != "up").count();
    let backends = match lost {
        0 => "all backends are up".to_owned(),
        1 => "1 backend is not up".to_owned(),
        more => format!("{more} backends are not up"),
    };
    match sick.as_slice() {
        [] => format!("all targets are up, {backends}"),
        some => format!("NOT UP: {}; {backends}", some.join(", ")),
    }
}

/// What all listeners have together.
fn of_all(listeners: &[ListenerReport]) -> String {
    let each = || listeners.iter().filter_map(|listener| listener.rate.as_ref());
    if each().next().is_none() {
        return "too early for rates".to_owned();
    }
    let (requests, errors): (f64, f64) =
        (each().map(|rate| rate.requests).sum(), each().map(|rate| rate.errors).sum());
    format!("{} requests/s, {} errors/s", number(requests), number(errors))
}

fn rates(rate: Option<&RateReport>) -> (String, String) {
    match rate {
        Some(rate) => (number(rate.requests), number(rate.errors)),
        None => ("-".to_owned(), "-".to_owned()),
    }
}

/// A rate in few figures.
fn number(rate: f64) -> String {
    match rate {
        _ if rate == 0.0 => "0".to_owned(),
        _ if rate < 10.0 => format!("{rate:.1}"),
        _ => format!("{rate:.0}"),
    }
}

fn percent(share: f64) -> String {
    format!("{share:.0}%")
}

/// A time in few figures.
pub(super) fn precise(ms: f64) -> String {
    match ms {
        _ if ms < 10.0 => format!("{ms:.1}ms"),
        _ if ms < 1_000.0 => format!("{ms:.0}ms"),
        _ => format!("{:.1}s", ms / 1_000.0),
    }
}

/// An age in two figures.
pub(super) fn span(ms: u64) -> String {
    let seconds = ms / 1_000;
    let (minutes, hours) = (seconds / 60, seconds / 3_600);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{minutes}m{:02}s", seconds % 60),
        3_600..86_400 => format!("{hours}h{:02}m", minutes % 60),
        _ => format!("{}d{:02}h", hours / 24, hours % 24),
    }
}

/// The lines of `text`, none of them longer than a terminal.
fn fitted(text: &str) -> String {
    text.lines().map(|line| clipped(line, COLUMNS) + "\n").collect()
}

fn clipped(text: &str, room: usize) -> String {
    let text = text.trim_end();
    if text.chars().count() <= room {
        return text.to_owned();
    }
    text.chars().take(room.saturating_sub(1)).chain(['…']).collect()
}

/// Names and paths that are alike differ at either end.
fn shortened(text: &str, room: usize) -> String {
    let count = text.chars().count();
    if count <= room {
        return text.to_owned();
    }
    let kept = room.saturating_sub(1);
    let (head, tail) = (kept - kept / 2, kept / 2);
    text.chars().take(head).chain(['…']).chain(text.chars().skip(count - tail)).collect()
}

#[cfg(test)]
mod tests;
