//! Whether the process is alive, and whether it is ready for traffic: for whoever sends it some, or not.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hyper::StatusCode;

use super::api::Api;
use super::exchange::answers::{json, ok};
use super::route::AdminOutcome;
use super::wire::{Liveness, Readiness};
use crate::targets::{Health, Target};

/// It answers, so it is.
pub(super) fn alive() -> AdminOutcome {
    Ok(ok(&Liveness { alive: true }))
}

/// 200, or 503 and why.
pub(super) fn ready(api: &Arc<Api>) -> AdminOutcome {
    let reasons = reasons(api);
    let status = if reasons.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    Ok(json(status, &Readiness { ready: reasons.is_empty(), reasons }))
}

/// Why the process is to get no traffic.
pub(super) fn reasons(api: &Api) -> Vec<String> {
    let mut reasons = Vec::new();
    if api.running.reloader.is_leaving() {
        reasons.push("the process has been told to end".to_owned());
    }
    if let Some(wish) = api.cluster.as_ref().and_then(|node| node.view().drain()) {
        reasons.push(format!("this node is drained, by {}", wish.author));
    }
    if !api.was_judged.load(Ordering::Relaxed) {
        let snapshot = api.running.reloader.snapshots.current();
        let unjudged: Vec<String> =
            snapshot.iter().flat_map(|snapshot| &snapshot.targets).filter_map(unjudged).collect();
        // What a later config brings makes nobody less ready who serves already.
        api.was_judged.fetch_or(unjudged.is_empty(), Ordering::Relaxed);
        reasons.extend(unjudged);
    }
    reasons
}

/// What a target waits for.
fn unjudged(target: &Arc<Target>) -> Option<String> {
    let all = &target.backends;
    let waiting = all.iter().filter(|backend| backend.health() == Health::Unknown).count();
    (waiting > 0)
        .then(|| format!("target {}: {waiting} of {} backends have no verdict yet", target.name, all.len()))
}
