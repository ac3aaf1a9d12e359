//! From a request to its answer: path, scope, query and body are judged in this order, then its handler is called.

use std::fmt::Display;
use std::sync::Arc;

use hyper::body::{Body, Bytes};
use hyper::header::{ALLOW, ETAG, HeaderValue, IF_MATCH, WWW_AUTHENTICATE};
use hyper::{Request, StatusCode};

use super::api::Api;
use super::exchange::answers::{self, AdminAnswer};
use super::exchange::caller::Caller;
use super::exchange::problem_document::ProblemDocument;
use super::exchange::question::{BodyKind, Question, body_of, discard, judge_query};
use super::route::{AdminOutcome, AdminRoute};
use super::routes::{Led, lead};
use crate::config::model::Scope;

impl Api {
    /// The answer to a request of `caller`. Called inside of the control runtime.
    pub async fn answer<B>(self: &Arc<Self>, request: Request<B>, caller: Caller) -> AdminAnswer
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: Display,
    {
        let (parts, mut body) = request.into_parts();
        let (route, values) = match lead(parts.method.as_str(), parts.uri.path()) {
            Led::To(route, values) => (route, values),
            // Whoever may see nothing is not told what there is.
            Led::NotSo(_) | Led::Nowhere(_) if caller.scope < Scope::Read => {
                return forbidden(&caller, Scope::Read);
            }
            Led::NotSo(allowed) => return not_so(&allowed.join(", ")),
            Led::Nowhere(problem) => return answers::problem(&problem),
        };
        if caller.scope < route.scope {
            return forbidden(&caller, route.scope);
        }
        let judged = async {
            judge_query(parts.uri.query(), route.query)?;
            let is_far = !caller.is_local && !self.takes_configs_over_tcp();
            if route.body == BodyKind::Config && is_far && !body.is_end_stream() {
                let detail =
                    "the text of a config is taken over the unix socket only (`admin.configure_over_tcp`)";
                return Err(ProblemDocument::plain(StatusCode::FORBIDDEN, detail));
            }
            body_of(&parts.headers, &mut body, route.body).await
        };
        let judged: Result<Bytes, ProblemDocument> = judged.await;
        let asked = match judged {
            Ok(body) => Question::new(caller, &parts, values, body),
            Err(problem) => {
                discard(&parts.headers, &mut body).await;
                return answers::problem(&problem);
            }
        };
        match self.call(route, asked).await {
            Ok(answer) => answer,
            Err(problem) => answers::problem(&problem),
        }
    }

    async fn call(self: &Arc<Self>, route: &'static AdminRoute, asked: Question) -> AdminOutcome {
        if !route.changes {
            let revision = self.revision();
            let mut answer = (route.handler)(Arc::clone(self), asked).await?;
            if let Ok(revision) = HeaderValue::from_str(&revision) {
                answer.headers_mut().entry(ETAG).or_insert(revision);
            }
            return Ok(answer);
        }
        let api = Arc::clone(self);
        // A client that goes away does not stop half-way what it has begun.
        let change = tokio::spawn(async move {
            let Some(expected) = asked.headers.get(IF_MATCH).cloned() else {
                let _shared = api.changing.read().await;
                return (route.handler)(Arc::clone(&api), asked).await;
            };
            let _alone = api.changing.write().await;
            compare(&expected, &api.revision())?;
            (route.handler)(Arc::clone(&api), asked).await
        });
        change.await.unwrap_or_else(|failed| {
            let detail = format!("this failed, which is a bug: {failed}");
            Err(ProblemDocument::plain(StatusCode::INTERNAL_SERVER_ERROR, detail))
        })
    }
}

/// Whether a change that was meant for the revision `expected` may be made at the one in force (RFC 9110 §13.1.1).
fn compare(expected: &HeaderValue, in_force: &str) -> Result<(), ProblemDocument> {
    let expected = expected.to_str().unwrap_or_default();
    if expected.split(',').map(str::trim).any(|one| one == "*" || one == in_force) {
        return Ok(());
    }
    let detail = format!("something has changed since: the revision in force is {in_force}; look again");
    Err(ProblemDocument::plain(StatusCode::PRECONDITION_FAILED, detail))
}

fn not_so(allowed: &str) -> AdminAnswer {
    let problem = ProblemDocument::plain(StatusCode::METHOD_NOT_ALLOWED, format!("{allowed} only"));
    let mut answer = answers::problem(&problem);
    if let Ok(allowed) = HeaderValue::from_str(allowed) {
        answer.headers_mut().insert(ALLOW, allowed);
    }
    answer
}

/// Who has said nothing of itself may do so (401); who has, may do less than this (403).
fn forbidden(caller: &Caller, needed: Scope) -> AdminAnswer {
    let needed = needed.name();
    if caller.scope > Scope::Open {
        let (who, has) = (&caller.who, caller.scope.name());
        let detail = format!("this needs the scope `{needed}`, and {who} has `{has}`");
        return answers::problem(&ProblemDocument::plain(StatusCode::FORBIDDEN, detail));
    }
    let detail = format!("this needs a token with the scope `{needed}`: `Authorization: Bearer TOKEN`");
    let mut answer = answers::problem(&ProblemDocument::plain(StatusCode::UNAUTHORIZED, detail));
    answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"evenkeel\""));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_meant_for_another_revision_is_refused() {
        let judge = |text: &str| compare(&HeaderValue::from_str(text).expect("a value"), "\"a-7\"");
        for same in ["\"a-7\"", "*", "\"a-6\", \"a-7\""] {
            judge(same).expect(same);
        }
        // A weak one never does (RFC 9110 §13.1.1).
        for other in ["\"a-6\"", "W/\"a-7\"", "a-7", ""] {
            assert_eq!(judge(other).expect_err(other).status, 412);
        }
    }

    #[test]
    fn who_is_unknown_is_asked_for_a_token_and_who_is_known_is_refused() {
        let answer = forbidden(&Caller::anonymous(Scope::Open), Scope::Operate);
        assert_eq!(
            (answer.status(), answer.headers().contains_key(WWW_AUTHENTICATE)),
            (StatusCode::UNAUTHORIZED, true)
        );
        let answer = forbidden(&Caller::token("ci", Scope::Read), Scope::Operate);
        assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    }
}
