//! What is asked about the state of things: all of it, one target, one backend.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::StatusCode;
use tokio::task::spawn_blocking;
use tokio::time::interval;

use super::api::Api;
use super::exchange::answers::ok;
use super::exchange::problem_document::ProblemDocument;
use super::exchange::question::Question;
use super::history::Shot;
use super::life_routes;
use super::route::AdminOutcome;
use super::status::assembly::Sources;
use super::status::rates::STEP;
use super::status::report::{ProcessReport, StatusReport};
use super::trial_routes::trial_report;
use crate::net::now;
use crate::snapshot::Snapshot;
use crate::telemetry::cells::{Readings, Totals};

impl Api {
    /// Counts for rates and for what pages show of the past.
    pub async fn keep_counting(self: &Arc<Self>) {
        let mut seconds = interval(Duration::from_secs(1));
        for second in 0_u64.. {
            seconds.tick().await;
            let api = Arc::clone(self);
            // With many backends it takes a while.
            let _ = spawn_blocking(move || api.count_second()).await;
            if second.is_multiple_of(STEP.as_secs()) {
                self.rates.note(Totals::sum(&self.running.reloader.cells), now());
            }
        }
    }

    /// Counts for what pages show of the past, if there is a page that may be looked at, or somebody has looked of late.
    fn count_second(&self) {
        /// How long after the last look there may be another one.
        const INTEREST: Duration = Duration::from_secs(60);
        let (reloader, now) = (&self.running.reloader, now());
        let has_page = reloader.admin.borrow().is_some();
        let is_looked_at = self.frames.looked().is_some_and(|looked| now.since(looked) <= INTEREST);
        if !has_page && !is_looked_at && !self.is_looked_at_elsewhere() {
            return;
        }
        if let Some(snapshot) = reloader.snapshots.current() {
            self.history.note(Shot::take(&snapshot, &reloader.cells, now));
        }
    }

    fn sources(&self) -> Result<Sources, ProblemDocument> {
        let reloader = &self.running.reloader;
        let Some(snapshot) = reloader.snapshots.current() else {
            let detail = "no config is in force yet";
            return Err(ProblemDocument::plain(StatusCode::SERVICE_UNAVAILABLE, detail));
        };
        let (cells, now) = (&reloader.cells, now());
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Sources {
            now,
            wall: self.wall.at(now, unix),
            snapshot,
            readings: Readings::sum(cells),
            rates: self.rates.rates(Totals::sum(cells), now),
            webhooks: self.running.reloader.webhook_board.counts(),
            names: self.running.discovery().view(),
        })
    }
}

/// Everything at one moment: what was read, and what is said about it.
pub(super) struct StatusSurvey {
    pub(super) sources: Sources,
    pub(super) report: StatusReport,
    /// Why the process is to get no traffic.
    pub(super) not_ready: Vec<String>,
}

impl Api {
    /// Looks at everything; `None`: no config is in force yet. With many backends it takes a while.
    pub(super) fn survey(&self) -> Option<StatusSurvey> {
        let sources = self.sources().ok()?;
        let (report, not_ready) = (report(self, &sources), life_routes::reasons(self));
        Some(StatusSurvey { sources, report, not_ready })
    }
}

/// All of it.
pub(super) fn status(api: &Api) -> AdminOutcome {
    Ok(ok(&report(api, &api.sources()?)))
}

fn report(api: &Api, sources: &Sources) -> StatusReport {
    let reloader = &api.running.reloader;
    let (started_ms, uptime_ms) = sources.begun(api.rates.begun());
    let process = ProcessReport {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        name: api.about.name.clone(),
        pid: std::process::id(),
        config: api.about.config.clone(),
        config_number: sources.snapshot.number,
        workers: reloader.cells.len(),
        started_ms,
        uptime_ms,
        blocked: api.running.blocked().len(),
        trial: api.running.trial().as_deref().map(trial_report),
    };
    let bound: Vec<(String, String)> =
        reloader.bound().into_iter().map(|(listener, address)| (listener, address.to_string())).collect();
    let connections = (reloader.limits.taken(), reloader.limits.limit());
    sources.status(process, &bound, connections)
}

/// One target.
pub(super) fn target(api: &Api, asked: &Question) -> AdminOutcome {
    let (sources, name) = (api.sources()?, asked.parameter("target"));
    match sources.target(name) {
        Some(report) => Ok(ok(&report)),
        None => Err(no_target(&sources.snapshot, name)),
    }
}

/// One backend.
pub(super) fn backend(api: &Api, asked: &Question) -> AdminOutcome {
    let (sources, target, name) = (api.sources()?, asked.parameter("target"), asked.parameter("backend"));
    if let Some(report) = sources.backend(target, name) {
        return Ok(ok(&report));
    }
    let found = sources.snapshot.targets.iter().find(|one| &*one.name == target);
    let Some(found) = found else { return Err(no_target(&sources.snapshot, target)) };
    let names = found.backends.iter().map(|backend| &*backend.name);
    Err(missing(&format!("target {target} has no backend `{}`", clipped(name)), name, names))
}

/// 404: there is no such target.
pub(super) fn no_target(snapshot: &Snapshot, name: &str) -> ProblemDocument {
    let names = snapshot.targets.iter().map(|target| &*target.name);
    missing(&format!("there is no target `{}`", clipped(name)), name, names)
}

/// What somebody asks for may be long.
pub(super) fn clipped(name: &str) -> String {
    name.chars().take(60).collect()
}

/// 404 with the nearest name, or with the first few.
fn missing<'a>(what: &str, name: &str, names: impl Iterator<Item = &'a str> + Clone) -> ProblemDocument {
    const SHOWN: usize = 5;
    let near = names.clone().map(|known| (strsim::damerau_levenshtein(known, &clipped(name)), known));
    let nearest = near.filter(|(slips, known)| *slips <= (known.len() / 3).max(1)).min();
    let detail = match nearest {
        Some((_, known)) => format!("{what}; did you mean `{known}`?"),
        None => {
            let first: Vec<&str> = names.clone().take(SHOWN).collect();
            let more = if names.count() > SHOWN { ", …" } else { "" };
            format!("{what}; there are {}{more}", first.join(", "))
        }
    };
    ProblemDocument::plain(StatusCode::NOT_FOUND, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_not_there_is_told_with_the_nearest_or_with_those_that_are() {
        let of = |name: &str, names: &[&str]| {
            missing(&format!("there is no target `{name}`"), name, names.iter().copied()).detail
        };
        assert_eq!(of("wbe", &["api", "web"]), "there is no target `wbe`; did you mean `web`?");
        assert_eq!(of("x", &["api", "web"]), "there is no target `x`; there are api, web");
        let many = ["a1", "b2", "c3", "d4", "e5", "f6"];
        assert_eq!(of("x", &many), "there is no target `x`; there are a1, b2, c3, d4, e5, …");
    }
}
