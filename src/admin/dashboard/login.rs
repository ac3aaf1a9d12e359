//! Logging in and out with a browser.

use std::sync::Arc;

use hyper::StatusCode;
use hyper::header::{HeaderValue, SET_COOKIE};

use crate::admin::api::Api;
use crate::admin::door::cookie::{COOKIE_TRAITS, cookie_name, session_cookie};
use crate::admin::door::sessions::LASTS;
use crate::admin::exchange::answers::{AdminAnswer, ok};
use crate::admin::exchange::problem_document::ProblemDocument;
use crate::admin::exchange::question::Question;
use crate::admin::route::AdminOutcome;
use crate::admin::wire::SessionReport;
use crate::config::model::Scope;
use crate::net::wall::unix_seconds;

/// `POST`: a cookie for a token.
pub(in crate::admin) fn log_in(api: &Arc<Api>, asked: &Question) -> AdminOutcome {
    let mut fields = asked.fields()?;
    let presented = fields.text("token")?.ok_or_else(|| fields.wrong("token", "a token"))?;
    fields.end()?;
    let access = api.running.reloader.admin.borrow().clone().filter(|_| !asked.caller.is_local);
    let Some(access) = access.filter(|access| access.tokens.is_some()) else {
        let detail = "nobody has to log in here: there are no tokens, or this is the unix socket";
        return Err(ProblemDocument::plain(StatusCode::CONFLICT, detail));
    };
    let Some(token) = access.token(presented.as_bytes()) else {
        return Err(ProblemDocument::plain(
            StatusCode::UNAUTHORIZED,
            "this token is none of those that are known here",
        ));
    };
    let now = unix_seconds();
    let cookie = api.sessions.begin(token, now, rand::random());
    let report = SessionReport {
        who: format!("token {}", token.name),
        scope: token.scope.name().to_owned(),
        ends_ms: Some((now + LASTS.as_secs()) * 1000),
        tokens: true,
    };
    let traits = format!("{COOKIE_TRAITS}; Max-Age={}", LASTS.as_secs());
    Ok(with_cookie(ok(&report), asked, &cookie, &traits, access.tls.is_some()))
}

/// `DELETE`: the cookie is good no more.
pub(in crate::admin) fn log_out(api: &Arc<Api>, asked: &Question) -> AdminOutcome {
    let access = api.running.reloader.admin.borrow().clone();
    if let (Some(cookie), Some(access)) = (session_cookie(&asked.headers), &access)
        && api.sessions.who(cookie, access, unix_seconds()).is_some()
    {
        api.sessions.end(cookie);
    }
    let is_tls = access.as_ref().is_some_and(|access| access.tls.is_some());
    let report = SessionReport {
        who: "anonymous".to_owned(),
        scope: Scope::Open.name().to_owned(),
        ends_ms: None,
        tokens: access.is_some_and(|access| access.tokens.is_some()),
    };
    Ok(with_cookie(ok(&report), asked, "", &format!("{COOKIE_TRAITS}; Max-Age=0"), is_tls))
}

/// `GET`: who asks, and what it may.
pub(in crate::admin) fn session(api: &Arc<Api>, asked: &Question) -> AdminOutcome {
    let admin = api.running.reloader.admin.borrow().clone();
    Ok(ok(&SessionReport {
        who: asked.caller.who.clone(),
        scope: asked.caller.scope.name().to_owned(),
        ends_ms: asked.caller.session_ends.map(|ends| ends * 1000),
        tokens: asked.caller.scope == Scope::Open || admin.is_some_and(|access| access.tokens.is_some()),
    }))
}

fn with_cookie(
    mut answer: AdminAnswer,
    asked: &Question,
    value: &str,
    traits: &str,
    is_tls: bool,
) -> AdminAnswer {
    let secure = if is_tls { "; Secure" } else { "" };
    let line = format!("{}={value}; {traits}{secure}", cookie_name(&asked.headers));
    if let Ok(line) = HeaderValue::try_from(line) {
        answer.headers_mut().insert(SET_COOKIE, line);
    }
    answer
}
