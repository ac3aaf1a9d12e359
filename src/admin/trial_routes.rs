//! A config that is given, confirmed and taken back.

use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use tokio::time::Instant;

use super::api::Api;
use super::exchange::answers::ok;
use super::exchange::problem_document::ProblemDocument;
use super::exchange::question::Question;
use super::route::AdminOutcome;
use super::wire::{ApplyReport, TrialReport};
use crate::reload::trial::{Applied, ApplyAsk, ApplyFault, TrialView, WINDOWS};

/// The text in the body.
pub(super) async fn apply(api: Arc<Api>, asked: Question) -> AdminOutcome {
    let window = asked.span("confirm", WINDOWS.1)?;
    if window.is_some_and(|window| window < WINDOWS.0) {
        let detail = "`confirm` is at least a second";
        return Err(ProblemDocument::plain(StatusCode::BAD_REQUEST, detail));
    }
    let Some(text) = asked.text()?.filter(|text| !text.trim().is_empty()) else {
        let detail = "the body is the text of a config, and this one is empty";
        return Err(ProblemDocument::plain(StatusCode::BAD_REQUEST, detail));
    };
    let loader = api.loader_of(text.clone(), asked.query("file"), &asked.caller);
    let ask = ApplyAsk { text: text.into(), loader, who: asked.caller.who, window };
    let Applied { plan, trial } = api.running.apply_text(ask).await.map_err(problem)?;
    Ok(ok(&ApplyReport { plan, trial: trial.as_deref().map(trial_report) }))
}

/// It is to stay.
pub(super) async fn confirm(api: Arc<Api>, asked: Question) -> AdminOutcome {
    Ok(ok(&api.running.confirm(&asked.caller.who).await.map_err(problem)?))
}

/// It is to go.
pub(super) async fn rollback(api: Arc<Api>, asked: Question) -> AdminOutcome {
    Ok(ok(&api.running.rollback(&asked.caller.who).await.map_err(problem)?))
}

/// How a trial stands.
pub(super) fn trial_report(trial: &TrialView) -> TrialReport {
    let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    TrialReport {
        who: trial.who.clone(),
        since_ms: trial.since_ms,
        window_ms: millis(trial.window),
        left_ms: millis(trial.deadline.saturating_duration_since(Instant::now())),
    }
}

fn problem(fault: ApplyFault) -> ProblemDocument {
    match fault {
        ApplyFault::Conflict(why) => ProblemDocument::plain(StatusCode::CONFLICT, why),
        ApplyFault::Refused(refusal) => ProblemDocument::refused(refusal.problems, refusal.is_conflict),
        ApplyFault::Unwritten { reason, is_full } => {
            ProblemDocument::unkept(is_full, &format!("nothing has changed: {reason}"))
        }
    }
}
