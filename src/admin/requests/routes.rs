//! Requests that are over, in short or one in full.

use std::sync::Arc;

use hyper::StatusCode;

use super::report::RequestList;
use super::story::{story, summary};
use crate::admin::api::Api;
use crate::admin::exchange::answers::ok;
use crate::admin::exchange::problem_document::ProblemDocument;
use crate::admin::exchange::question::Question;
use crate::admin::route::AdminOutcome;
use crate::message::{Cause, Record};
use crate::net::wall::wall_start;
use crate::snapshot::Snapshot;
use crate::telemetry::recorder::{KeptFor, KeptRequest, ONE_IN};

/// How many are told at most.
const LAST_MAX: usize = 1000;
/// How many are told where nobody says.
const LAST: usize = 100;

/// Which of them.
#[derive(Clone)]
struct Wanted {
    cause: Option<Cause>,
    target: Option<String>,
    reasons: Vec<KeptFor>,
    last: usize,
}

impl Wanted {
    fn of(asked: &Question) -> Result<Wanted, ProblemDocument> {
        let cause = asked.query("cause").map(|token| named(&token)).transpose()?;
        let (slow, sampled) = (switch(asked, "slow")?, switch(asked, "sampled")?);
        let mut reasons = vec![KeptFor::Failed, KeptFor::Retried, KeptFor::Slow, KeptFor::Refused];
        if slow {
            reasons = vec![KeptFor::Slow];
        }
        if sampled {
            reasons.push(KeptFor::Sampled);
        }
        let last = match asked.query("last") {
            None => LAST,
            Some(last) => last
                .parse()
                .ok()
                .filter(|last| (1..=LAST_MAX).contains(last))
                .ok_or_else(|| bad(format!("`last` is a whole number from 1 to {LAST_MAX}")))?,
        };
        Ok(Wanted { cause, target: asked.query("target"), reasons, last })
    }

    /// A cause is that of the request, or of an attempt after which another backend was tried.
    fn takes(&self, kept: &KeptRequest) -> bool {
        let has_ended = |record: &Record, cause| {
            record.cause == cause || record.kept_attempts().iter().any(|attempt| attempt.outcome == cause)
        };
        self.cause.is_none_or(|cause| has_ended(&kept.record, cause))
            && self.target.as_ref().is_none_or(|target| *target == kept.target)
    }

    /// The latest first, one more than is wanted if there is.
    fn find(&self, snapshot: &Snapshot) -> Vec<KeptRequest> {
        let mut all: Vec<KeptRequest> = Vec::new();
        for recorder in &snapshot.recorders {
            for reason in &self.reasons {
                let mut found = 0;
                recorder.read(&[*reason], |kept| {
                    if self.takes(&kept) {
                        all.push(kept);
                        found += 1;
                    }
                    found <= self.last
                });
            }
            all.sort_by_key(|kept| std::cmp::Reverse(kept.record.done));
            all.truncate(self.last + 1);
        }
        all
    }
}

fn bad(detail: String) -> ProblemDocument {
    ProblemDocument::plain(StatusCode::BAD_REQUEST, detail)
}

fn switch(asked: &Question, name: &str) -> Result<bool, ProblemDocument> {
    match asked.query(name).as_deref() {
        None | Some("false" | "off" | "0") => Ok(false),
        Some("true" | "on" | "1") => Ok(true),
        Some(_) => Err(bad(format!("`{name}` is true or false"))),
    }
}

/// The cause with this token.
fn named(token: &str) -> Result<Cause, ProblemDocument> {
    let causes = || Cause::ALL.iter().copied().filter(|&cause| cause != Cause::Done);
    if let Some(cause) = causes().find(|cause| cause.token() == token) {
        return Ok(cause);
    }
    // What somebody sends may be long.
    let token: String = token.chars().take(40).collect();
    let written = token.to_ascii_lowercase().replace('-', "_");
    let likeness = |cause: &Cause| strsim::jaro_winkler(cause.token(), &written);
    let nearest = causes().max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
    let meant = nearest.filter(|cause| likeness(cause) > 0.8);
    let meant = meant.map_or(String::new(), |cause| format!("; did you mean `{cause}`?"));
    Err(bad(format!("there is no cause `{token}`{meant}")))
}

/// The config in force, if requests are kept under it.
fn recorded(api: &Api) -> Result<Arc<Snapshot>, ProblemDocument> {
    let unavailable = |detail: &str| ProblemDocument::plain(StatusCode::SERVICE_UNAVAILABLE, detail);
    let current = api.running.reloader.snapshots.current();
    let snapshot = current.ok_or_else(|| unavailable("no config is in force yet"))?;
    if snapshot.recorders.is_empty() {
        return Err(unavailable("nothing is kept of requests: the config says `recorder: off`"));
    }
    Ok(snapshot)
}

/// Looks through what is kept, apart from what else control does.
async fn apart<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ProblemDocument> {
    let broken = |_| ProblemDocument::plain(StatusCode::INTERNAL_SERVER_ERROR, "it could not be looked for");
    tokio::task::spawn_blocking(work).await.map_err(broken)
}

/// `GET /api/v1/requests`.
pub(in crate::admin) async fn list(api: &Api, asked: &Question) -> AdminOutcome {
    let (wanted, snapshot) = (Wanted::of(asked)?, recorded(api)?);
    let last = wanted.last;
    let found = apart(move || wanted.find(&snapshot)).await?;
    let (wall, more) = (wall_start(), found.len() > last);
    let requests = found.iter().take(last).map(|kept| summary(kept, wall)).collect();
    Ok(ok(&RequestList { requests, more }))
}

/// `GET /api/v1/requests/ID`.
pub(in crate::admin) async fn one(api: &Arc<Api>, asked: &Question) -> AdminOutcome {
    let written = asked.parameter("id");
    let digits: String = written.chars().filter(|&sign| sign != '-').take(33).collect();
    let is_id = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let Some(id) = u128::from_str_radix(&digits, 16).ok().filter(|_| is_id) else {
        let detail =
            "there is no such request: an id has 32 hexadecimal digits, as `request: …` of an error has";
        return Err(ProblemDocument::plain(StatusCode::NOT_FOUND, detail));
    };
    let (snapshot, api) = (recorded(api)?, Arc::clone(api));
    let found = apart(move || {
        let mut found: Option<KeptRequest> = None;
        for recorder in &snapshot.recorders {
            recorder.read(KeptFor::ALL, |kept| {
                // Whoever is trusted may give one id to several requests; the latest is told.
                let is_it = kept.record.id == id;
                let is_later = |known: &KeptRequest| known.record.done < kept.record.done;
                if is_it && found.as_ref().is_none_or(is_later) {
                    found = Some(kept);
                }
                !is_it
            });
        }
        let by_hand = api.running.by_hand();
        let config = (snapshot.number, &*by_hand.file.effective);
        found.map(|kept| story(&kept, wall_start(), config, &api.events))
    });
    found.await?.map(|story| ok(&story)).ok_or_else(|| {
        let detail = format!(
            "nothing is kept of {id:032x}: what went well is kept once in {ONE_IN}, and what failed until as much as fits \
             into `recorder.memory` came after it, or until the process ended"
        );
        ProblemDocument::plain(StatusCode::NOT_FOUND, detail)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_known_by_its_token_or_told_what_was_meant() {
        assert_eq!(named("upstream_tls_name").ok(), Some(Cause::UpstreamTlsName));
        let detail = |token: &str| named(token).expect_err("unknown").detail;
        assert_eq!(
            detail("connect_faild"),
            "there is no cause `connect_faild`; did you mean `connect_failed`?"
        );
        assert_eq!(
            detail("CONNECT-FAILED"),
            "there is no cause `CONNECT-FAILED`; did you mean `connect_failed`?"
        );
        assert_eq!(detail("-"), "there is no cause `-`");
    }
}
