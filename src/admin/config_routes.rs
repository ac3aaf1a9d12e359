//! What is asked about the config: what another one would change, another reading of it, what is in force.

use std::sync::Arc;

use super::api::Api;
use super::exchange::answers::ok;
use super::exchange::problem_document::ProblemDocument;
use super::exchange::question::Question;
use super::route::AdminOutcome;
use super::wire::Digest;

/// What a reload would do, or the text in the body.
pub(super) async fn plan(api: Arc<Api>, asked: Question) -> AdminOutcome {
    let loader = asked.text()?.map(|text| api.loader_of(text, asked.query("file"), &asked.caller));
    Ok(ok(&api.running.plan(loader).await))
}

/// Another reading of the config.
pub(super) async fn reload(api: Arc<Api>) -> AdminOutcome {
    match api.running.reload().await {
        Ok(plan) => Ok(ok(&*plan)),
        Err(refusal) => Err(ProblemDocument::refused(refusal.problems, refusal.is_conflict)),
    }
}

/// What tells the running state from another one.
pub(super) fn digest(api: &Api) -> AdminOutcome {
    Ok(ok(&Digest { digest: api.running.digest() }))
}
