//! Whether everything is well, and if not, what: the line that stands above all others. A pure function of the status.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::admin::status::report::{BackendReport, ListenerReport, StatusReport, TargetReport};
use crate::cluster::membership::Standing;

/// How bad something is; the worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Weight {
    /// Requests fail for want of something.
    Down,
    /// Others do the work of what is missing.
    Hurt,
    /// Somebody wanted it so, and may have forgotten.
    Note,
}

/// Something that is not as it is in good times.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct DashboardTrouble {
    pub(super) weight: Weight,
    /// Since when; 0: that is not known.
    pub(super) since_ms: u64,
    /// The name of the row that it is about.
    pub(super) row: String,
    /// A sentence without its full stop.
    pub(super) text: String,
}

/// What is the matter, the worst and oldest first.
///
/// `apart`: what the matter is between this node and its cluster.
pub(super) fn troubles(
    status: &StatusReport,
    not_ready: &[String],
    apart: Option<DashboardTrouble>,
    now_ms: u64,
) -> Vec<DashboardTrouble> {
    let trouble =
        |weight, since_ms, row: &str, text| DashboardTrouble { weight, since_ms, row: row.to_owned(), text };
    let mut all: Vec<DashboardTrouble> =
        not_ready.iter().map(|reason| trouble(Weight::Hurt, 0, "process", reason.clone())).collect();
    all.extend(apart);
    if let Some(trial) = &status.process.trial {
        let text = format!("a config of {} is on trial, and goes back unless it is confirmed", trial.who);
        all.push(trouble(Weight::Note, trial.since_ms, "process", text));
    }
    all.extend(status.listeners.iter().filter_map(|listener| of_certificates(listener, now_ms)));
    for target in &status.targets {
        let own = of_target(target);
        // Why there are no good answers says more than that there are none.
        if own.as_ref().is_none_or(|trouble| trouble.weight != Weight::Down) {
            all.extend(of_answers(target));
        }
        all.extend(own);
    }
    all.sort();
    all
}

/// What is the matter where this node is none of its cluster.
pub(super) fn of_standing(standing: &Standing, cluster: &str, since_ms: u64) -> Option<DashboardTrouble> {
    let text = match standing {
        Standing::Member | Standing::Joining => return None,
        // Why says the line above the nodes: its words may change, and this one is read out.
        Standing::Detached(_) => {
            format!("this node is detached from the cluster {cluster}, and goes by what it knew last")
        }
        Standing::Refused(_) => format!("this node may not join the cluster {cluster}"),
    };
    Some(DashboardTrouble { weight: Weight::Hurt, since_ms, row: "cluster".to_owned(), text })
}

/// What the matter is where the store of its cluster answers, and takes nothing.
pub(super) fn of_store(cluster: &str) -> DashboardTrouble {
    let text = format!("the store of the cluster {cluster} takes no changes");
    DashboardTrouble { weight: Weight::Hurt, since_ms: 0, row: "cluster".to_owned(), text }
}

/// The certificate that ends first, if it has or soon will.
fn of_certificates(listener: &ListenerReport, now_ms: u64) -> Option<DashboardTrouble> {
    const DAY: i64 = 24 * 3600 * 1000;
    let first = listener.certificates.iter().min_by_key(|one| one.expires_ms)?;
    let left = first.expires_ms - i64::try_from(now_ms).unwrap_or(i64::MAX);
    let names = first.names.first().map_or("", String::as_str);
    let (weight, since_ms, how) = match left {
        ..=0 => (Weight::Hurt, u64::try_from(first.expires_ms).unwrap_or(0), "has ended".to_owned()),
        // A certificate may live for six days or for years.
        _ if left <= (first.expires_ms - first.begins_ms) / 5 => {
            (Weight::Note, 0, format!("ends in {} days", left / DAY))
        }
        _ => return None,
    };
    let text = format!("the certificate for {names} of {} {how}", listener.name);
    Some(DashboardTrouble { weight, since_ms, row: format!("listener/{}", listener.name), text })
}

/// Shares of a target's answers that are errors (5xx), from which on that is worth a line, and from which on it is as good as down.
const MANY: f64 = 0.05;
const MOST: f64 = 0.5;
/// Fewer of them are an accident.
const FEW: f64 = 3.0;

/// What its clients get, whatever its backends' states are.
fn of_answers(target: &TargetReport) -> Option<DashboardTrouble> {
    let rate = target.rate.as_ref().filter(|rate| rate.requests > 0.0)?;
    let share = rate.errors / rate.requests;
    #[expect(clippy::cast_precision_loss, reason = "some seconds")]
    let errors = rate.errors * rate.over_ms as f64 / 1_000.0;
    if share < MANY || errors < FEW {
        return None;
    }
    let name = &target.name;
    // A figure that is another one each second is read out each second.
    let least = if share < 0.1 { 5.0 } else { (share * 10.0 + 1e-9).floor() * 10.0 };
    let more = if share < 1.0 { "more than " } else { "" };
    let text = format!("{more}{least:.0} % of the answers of {name} are errors (5xx)");
    let weight = if share >= MOST { Weight::Down } else { Weight::Hurt };
    Some(DashboardTrouble { weight, since_ms: 0, row: format!("target/{name}"), text })
}

/// Of many backends that are out one line is enough.
fn of_target(target: &TargetReport) -> Option<DashboardTrouble> {
    let out: Vec<&BackendReport> =
        target.backends.iter().filter(|backend| matches!(&*backend.state, "down" | "draining")).collect();
    let by_itself: Vec<&&BackendReport> = out.iter().filter(|backend| backend.source != "operator").collect();
    let name = &target.name;
    let row = format!("target/{name}");
    if matches!(&*target.state, "down" | "backups") {
        let text = match &*target.state {
            "down" if by_itself.is_empty() && !out.is_empty() => {
                format!("{name} has no backend left: all were taken out by hand")
            }
            "down" => format!("{name} has no backend left{}", because(&by_itself)),
            _ => format!("{name} is left with its backups only{}", because(&by_itself)),
        };
        let weight = if target.state == "down" { Weight::Down } else { Weight::Hurt };
        return Some(DashboardTrouble { weight, since_ms: target.since_ms, row, text });
    }
    if target.panics || target.stand_ins > 0 {
        let text = match target.panics {
            true => format!("{name} has so few backends left that those which fail get requests again"),
            false => format!("of {name} the {} backends before a reload stand in", target.stand_ins),
        };
        return Some(DashboardTrouble { weight: Weight::Hurt, since_ms: target.since_ms, row, text });
    }
    if let [first, others @ ..] = &*by_itself {
        let oldest = by_itself.iter().map(|backend| backend.since_ms).min().unwrap_or_default();
        let text = match others.len() {
            0 => format!("{name}/{} is {}: {}", first.name, first.state, first.reason),
            _ => format!(
                "{} of {} backends of {name} are out{}",
                by_itself.len(),
                target.backends.len(),
                because(&by_itself)
            ),
        };
        let row = if others.is_empty() { format!("backend/{name}/{}", first.name) } else { row };
        return Some(DashboardTrouble { weight: Weight::Hurt, since_ms: oldest, row, text });
    }
    let oldest = out.iter().map(|backend| backend.since_ms).min()?;
    let names: Vec<&str> = out.iter().take(3).map(|backend| &*backend.name).collect();
    let more = if out.len() > names.len() {
        format!(" and {} more", out.len() - names.len())
    } else {
        String::new()
    };
    let text = format!("{}{more} of {name} taken out by hand", names.join(", "));
    Some(DashboardTrouble { weight: Weight::Note, since_ms: oldest, row, text })
}

/// The reason of most of them.
fn because(out: &[&&BackendReport]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    out.iter().for_each(|backend| *counts.entry(&backend.reason).or_default() += 1);
    match counts.into_iter().max_by_key(|(_, count)| *count) {
        None => String::new(),
        Some((reason, count)) if count == out.len() => format!(": {reason}"),
        Some((reason, count)) => format!(": {reason} ({count} of them)"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::admin::status::report::RateReport;

    fn backend(name: &str, state: &str, source: &str, reason: &str, since_ms: u64) -> Value {
        json!({
            "target": "web", "name": name, "address": "10.0.0.1:80", "tls": false, "state": state, "source": source, "reason": reason,
            "since_ms": since_ms, "age_ms": 0, "inputs": [], "weight": 1, "agent_share": 100, "share": 0.0, "priority": 0, "zone": null,
            "active": 0, "idle_connections": 0, "traffic": {"requests": 0, "by_class": {}, "bytes_in": 0, "bytes_out": 0}, "attempts": 0,
            "failures": 0, "rate": null, "first_byte": null, "last_probe": null,
        })
    }

    fn target(state: &str, backends: &[Value]) -> TargetReport {
        let report = json!({
            "name": "web", "state": state, "reason": "", "since_ms": 50, "age_ms": 0, "protocol": "http", "balance": "round_robin",
            "left": 0, "of": 0, "active": 0, "waiting": 0, "max_in_flight": null, "scale": null, "panics": false, "stand_ins": 0,
            "traffic": {"requests": 0, "by_class": {}, "bytes_in": 0, "bytes_out": 0}, "rate": null, "first_byte": null,
            "backends": backends,
        });
        serde_json::from_value(report).expect("a report")
    }

    fn said(state: &str, backends: &[Value]) -> Option<(Weight, u64, String, String)> {
        of_target(&target(state, backends)).map(|one| (one.weight, one.since_ms, one.row, one.text))
    }

    #[test]
    fn a_target_says_the_worst_of_it_in_one_line() {
        let up = backend("b0", "up", "probe", "fine", 1);
        let refused = backend("b1", "down", "probe", "connection refused", 20);
        let slow = backend("b2", "down", "probe", "timeout", 10);
        let also = backend("b3", "down", "probe", "connection refused", 30);
        let by_hand = backend("b4", "draining", "operator", "for an hour", 5);
        assert_eq!(said("up", std::slice::from_ref(&up)), None);
        assert_eq!(said("unknown", &[backend("b0", "unknown", "probe", "no verdict yet", 1)]), None);
        let one = |row: &str, text: &str| Some((Weight::Hurt, 20, row.to_owned(), text.to_owned()));
        assert_eq!(
            said("up", &[up.clone(), refused.clone(), by_hand.clone()]),
            one("backend/web/b1", "web/b1 is down: connection refused")
        );
        let (weight, since, row, text) =
            said("up", &[up.clone(), refused.clone(), slow.clone(), also.clone()]).expect("something is");
        assert_eq!((weight, since, row.as_str()), (Weight::Hurt, 10, "target/web"));
        assert_eq!(text, "3 of 4 backends of web are out: connection refused (2 of them)");
        let (weight, since, _, text) = said("down", &[refused.clone(), also]).expect("it is");
        assert_eq!((weight, since), (Weight::Down, 50));
        assert_eq!(text, "web has no backend left: connection refused");
        let (weight, _, _, text) = said("backups", &[refused, up.clone()]).expect("it is");
        assert_eq!(
            (weight, text.as_str()),
            (Weight::Hurt, "web is left with its backups only: connection refused")
        );
        let (weight, since, _, text) = said("up", &[up, by_hand]).expect("somebody wanted it so");
        assert_eq!((weight, since, text.as_str()), (Weight::Note, 5, "b4 of web taken out by hand"));
        let many: Vec<Value> = (0..5).map(|n| backend(&format!("b{n}"), "down", "operator", "", n)).collect();
        assert_eq!(said("up", &many).expect("it is").3, "b0, b1, b2 and 2 more of web taken out by hand");
        let by_hand = said("down", &many).expect("it is").3;
        assert_eq!(by_hand, "web has no backend left: all were taken out by hand");
    }

    #[test]
    fn answers_that_are_errors_are_told_whatever_the_backends_states_are() {
        let of = |requests: f64, errors: f64| {
            let rate = Some(RateReport { requests, errors, over_ms: 10_000 });
            of_answers(&TargetReport { rate, ..target("up", &[]) }).map(|one| (one.weight, one.text))
        };
        assert_eq!((of(0.0, 0.0), of(100.0, 4.9)), (None, None));
        assert_eq!(
            of(100.0, 5.0),
            Some((Weight::Hurt, "more than 5 % of the answers of web are errors (5xx)".to_owned()))
        );
        assert_eq!(
            of(0.7, 0.7),
            Some((Weight::Down, "100 % of the answers of web are errors (5xx)".to_owned()))
        );
        assert_eq!(of(0.2, 0.2), None, "two of them are an accident");
        let told = of(100.0, 76.2).expect("it is");
        assert_eq!(told, (Weight::Down, "more than 70 % of the answers of web are errors (5xx)".to_owned()));
        assert_eq!(of_answers(&target("up", &[])), None, "it is too early");
    }

    #[test]
    fn a_certificate_is_told_of_in_the_last_fifth_of_its_life() {
        let certificate = |name: &str, expires_ms: i64| {
            json!({ "names": [format!("{name}.example")], "file": name, "begins_ms": expires_ms - 90 * 86_400_000, "expires_ms": expires_ms, "days_left": 0,
                "key": "", "chain": [], "stapled_until_ms": null, "is_default": false, "order": null })
        };
        let listener = json!({
            "name": "front", "state": "", "reason": "", "since_ms": 0, "age_ms": 0, "protocol": "https", "addresses": [], "targets": [],
            "connections": 0, "connections_limit": null, "connections_per_client": null,
            "traffic": {"requests": 0, "by_class": {}, "bytes_in": 0, "bytes_out": 0}, "rate": null,
            "certificates": [certificate("b", 9_000_000_000), certificate("a", 4_000_000_000)],
        });
        let listener: ListenerReport = serde_json::from_value(listener).expect("a report");
        let told =
            |now_ms| of_certificates(&listener, now_ms).map(|one| (one.weight, one.since_ms, one.text));
        assert_eq!(told(4_000_000_000 - 19 * 86_400_000), None);
        let soon = told(4_000_000_000 - 17 * 86_400_000 - 5).expect("soon");
        assert_eq!(
            soon,
            (Weight::Note, 0, "the certificate for a.example of front ends in 17 days".to_owned())
        );
        let over = told(4_000_000_001).expect("over");
        assert_eq!((over.0, over.1), (Weight::Hurt, 4_000_000_000));
        assert!(over.2.ends_with("has ended"), "{}", over.2);
    }

    #[test]
    fn a_target_whose_failing_backends_get_requests_is_not_well() {
        let up = backend("b0", "up", "probe", "fine", 1);
        let of = |panics, stand_ins| {
            let target = TargetReport { panics, stand_ins, ..target("up", std::slice::from_ref(&up)) };
            of_target(&target).map(|one| (one.weight, one.text))
        };
        assert_eq!(of(false, 0), None);
        let (weight, text) = of(true, 0).expect("it panics");
        assert_eq!(weight, Weight::Hurt);
        assert!(text.contains("so few backends left"), "{text}");
        assert!(of(false, 2).expect("others stand in").1.contains("2 backends before a reload"));
    }

    #[test]
    fn the_worst_and_oldest_comes_first() {
        let trouble =
            |weight, since_ms| DashboardTrouble { weight, since_ms, row: String::new(), text: String::new() };
        let mut all = [
            trouble(Weight::Note, 1),
            trouble(Weight::Hurt, 9),
            trouble(Weight::Down, 8),
            trouble(Weight::Hurt, 2),
        ];
        all.sort();
        let order: Vec<u64> = all.iter().map(|one| one.since_ms).collect();
        assert_eq!(order, [8, 2, 9, 1]);
    }
}
