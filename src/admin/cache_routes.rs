//! What is stored of answers.

use std::sync::Arc;

use hyper::StatusCode;

use super::api::Api;
use super::exchange::answers::ok;
use super::exchange::problem_document::ProblemDocument;
use super::exchange::question::Question;
use super::hand_routes::author;
use super::route::AdminOutcome;
use super::wire::PurgeReport;
use crate::reload::together::purges::{PurgeScope, PurgeWish};
use crate::reload::together::purging::PurgeFault;

/// What is said of a URL that is none.
const URL: &str = "a URL with its host, such as `https://shop.example/a?b=1`";

/// `POST`: takes answers out of the store, or declares them stale.
pub(super) async fn purge(api: &Arc<Api>, asked: &Question) -> AdminOutcome {
    let mut fields = asked.fields()?;
    let [url, prefix, tag] = ["url", "prefix", "tag"];
    let values = [fields.text(url)?, fields.text(prefix)?, fields.text(tag)?];
    let all = fields.switch("all")?.unwrap_or(false);
    let soft = fields.switch("soft")?.unwrap_or(false);
    let is_local = fields.switch("local")?.unwrap_or(false);
    let one = "one of `url`, `prefix`, `tag` and `all`, and no second one";
    let (scope, key) = match (values, all) {
        ([Some(text), None, None], false) => (PurgeScope::Url(text), url),
        ([None, Some(text), None], false) => (PurgeScope::Prefix(text), prefix),
        ([None, None, Some(text)], false) if !text.is_empty() => (PurgeScope::Tag(text), tag),
        ([None, None, None], true) => (PurgeScope::All, "all"),
        _ => return Err(fields.wrong("all", one)),
    };
    let wish = PurgeWish { scope, soft };
    if !wish.is_sound() {
        return Err(fields.wrong(key, URL));
    }
    fields.end()?;
    let author = author(asked)?.to_string();
    match api.running.purge(&wish, &author, is_local).await {
        Ok(objects) => Ok(ok(&PurgeReport { of: wish.scope.words(), soft, objects })),
        Err(PurgeFault::Untold(why)) => {
            let why = format!(
                "nothing was purged, because the cluster can't be told: {why}; with `local` (`--local`) it is done on this node alone"
            );
            Err(ProblemDocument::plain(StatusCode::SERVICE_UNAVAILABLE, why))
        }
        Err(PurgeFault::NoConfig | PurgeFault::Unsound) => {
            Err(ProblemDocument::plain(StatusCode::SERVICE_UNAVAILABLE, "no config is in force"))
        }
    }
}
