//! Whether everything is well, and if not, what: the line that stands above all others. A pure function of the status.

use serde::Serialize;

use crate::admin::status::report::{BackendReport, StatusReport, TargetReport};

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
pub(super) fn troubles(status: &StatusReport, not_ready: &[String]) -> Vec<DashboardTrouble> {
    let trouble =
        |weight, since_ms, row: &str, text| DashboardTrouble { weight, since_ms, row: row.to_owned(), text };
    let mut all: Vec<DashboardTrouble> =
        not_ready.iter().map(|reason| trouble(Weight::Hurt, 0, "process", reason.clone())).collect();
    if let Some(trial) = &status.process.trial {
        let text = format!("a config of {} is on trial, and goes back unless it is confirmed", trial.who);
        all.push(trouble(Weight::Note, trial.since_ms, "process", text));
    }
    all.extend(status.targets.iter().flat_map(of_target));
    all.sort();
    all
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
            "down" => format!("{name} has no backend left{}", because(&by_itself)),
            _ => format!("{name} is left with its backups only{}", because(&by_itself)),
        };
        let weight = if target.state == "down" { Weight::Down } else { Weight::Hurt };
        return Some(DashboardTrouble { weight, since_ms: target.since_ms, row, text });
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
    let count = |reason: &str| out.iter().filter(|backend| backend.reason == reason).count();
    let most = out.iter().map(|backend| &backend.reason).max_by_key(|reason| count(reason));
    match most {
        None => String::new(),
        Some(reason) if count(reason) == out.len() => format!(": {reason}"),
        Some(reason) => format!(": {reason} ({} of them)", count(reason)),
    }
}
