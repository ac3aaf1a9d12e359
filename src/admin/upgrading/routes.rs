//! Another binary in the place of the process.

use std::path::PathBuf;

use hyper::StatusCode;

use super::desk::{UpgradeAsk, UpgradeProblem};
use crate::admin::api::Api;
use crate::admin::exchange::answers::ok;
use crate::admin::exchange::problem_document::ProblemDocument;
use crate::admin::exchange::question::Question;
use crate::admin::route::AdminOutcome;

/// `POST` of one.
pub(in crate::admin) async fn upgrade(api: &Api, asked: &Question) -> AdminOutcome {
    if !asked.caller.is_local {
        let detail = "an upgrade is taken over the unix socket only";
        return Err(ProblemDocument::plain(StatusCode::FORBIDDEN, detail));
    }
    let mut fields = asked.fields()?;
    let binary = fields.text("binary")?.map(PathBuf::from);
    let force = fields.switch("force")?.unwrap_or(false);
    fields.end()?;
    let Some(desk) = &api.upgrades else {
        let detail = "this process can't be upgraded: it is no server of a config";
        return Err(ProblemDocument::plain(StatusCode::CONFLICT, detail));
    };
    match desk.upgrade(UpgradeAsk { binary, force }).await {
        Ok(report) => Ok(ok(&report)),
        Err(UpgradeProblem { is_conflict, detail }) => {
            let status = if is_conflict { StatusCode::CONFLICT } else { StatusCode::BAD_REQUEST };
            Err(ProblemDocument::plain(status, detail))
        }
    }
}
