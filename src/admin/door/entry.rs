//! Who comes over TCP: a pure function of a request's head and of what the config says.
//!
//! A browser can be made to ask this address by any page that it shows, so three things are looked at. The name by which it is
//! asked: a page whose own name leads here (DNS rebinding) is sent away. The page that asks for a change: only one of this very
//! address may. And nothing is said about other pages that may read answers (no CORS).

use std::net::IpAddr;

use http::request::Parts;
use http::uri::Authority;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::{Method, StatusCode};

use super::cookie::session_cookie;
use super::sessions::{BrowserSession, SessionBook};
use crate::admin::exchange::caller::Caller;
use crate::admin::exchange::problem_document::ProblemDocument;
use crate::config::model::{AdminAccess, AdminToken, Scope};

/// From where a page's request leads where.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Who asks. `now`: in seconds since 1970.
///
/// # Errors
/// It is asked by a name that is none of ours (421), or for a change by a page of another address (403).
pub fn caller_of(
    parts: &Parts,
    access: &AdminAccess,
    (sessions, now): (&SessionBook, u64),
) -> Result<Caller, ProblemDocument> {
    let host = host_of(parts, &access.hosts)?;
    let looks = matches!(parts.method, Method::GET | Method::HEAD);
    if !looks && !is_same_origin(&parts.headers, &host) {
        let detail = "a page of another origin may change nothing here";
        return Err(ProblemDocument::plain(StatusCode::FORBIDDEN, detail));
    }
    if access.tokens.is_none() {
        return Ok(Caller::anonymous(Scope::Read));
    }
    let known = |token: &AdminToken| Caller::token(&token.name, token.scope);
    if parts.headers.contains_key(AUTHORIZATION) {
        let token = bearer(&parts.headers).and_then(|presented| access.token(presented));
        return Ok(token.map_or(Caller::anonymous(Scope::Open), known));
    }
    let session = session_cookie(&parts.headers).and_then(|cookie| sessions.who(cookie, access, now));
    let Some(BrowserSession { token, ends }) = session else { return Ok(Caller::anonymous(Scope::Open)) };
    // A browser adds a cookie by itself, so the page has to be named which asks for a change.
    let is_named = parts.headers.contains_key(ORIGIN) || parts.headers.contains_key(SEC_FETCH_SITE);
    if !looks && !is_named {
        let detail = "a change that comes with a cookie says from which page: `Origin` or `Sec-Fetch-Site`";
        return Err(ProblemDocument::plain(StatusCode::FORBIDDEN, detail));
    }
    Ok(Caller { session_ends: Some(ends), ..known(token) })
}

/// By which name it is asked, if that is one of ours.
fn host_of(parts: &Parts, ours: &[String]) -> Result<Authority, ProblemDocument> {
    let bad = |detail: &str| ProblemDocument::plain(StatusCode::BAD_REQUEST, detail);
    let mut lines = parts.headers.get_all(HOST).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return Err(bad("a request has one line `Host`"));
    };
    let line =
        Authority::try_from(line.as_bytes()).map_err(|_| bad("the line `Host` is no name or address"))?;
    for authority in parts.uri.authority().into_iter().chain([&line]) {
        if authority.as_str().contains('@') {
            return Err(bad("the line `Host` is no name or address"));
        }
        if !is_ours(authority.host(), ours) {
            let detail = "nobody here goes by this name; `admin.hosts` lists those that do";
            return Err(ProblemDocument::plain(StatusCode::MISDIRECTED_REQUEST, detail));
        }
    }
    Ok(line)
}

fn is_ours(host: &str, ours: &[String]) -> bool {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    if bare.parse::<IpAddr>().is_ok() {
        return true;
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    name.eq_ignore_ascii_case("localhost") || ours.iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// Whether a request may come from a page of this address. What says nothing at all is no browser's, and has to show a token for
/// any change in any case.
fn is_same_origin(headers: &HeaderMap, host: &Authority) -> bool {
    let mut origins = headers.get_all(ORIGIN).iter();
    let origin = origins.next();
    let mut sites = headers.get_all(SEC_FETCH_SITE).iter();
    let site = sites.next();
    let is_same = |value: &str| {
        let rest = value.strip_prefix("http://").or_else(|| value.strip_prefix("https://"));
        let origin = rest.and_then(|rest| Authority::try_from(rest).ok());
        origin.is_some_and(|origin| {
            origin.host().eq_ignore_ascii_case(host.host()) && origin.port_u16() == host.port_u16()
        })
    };
    origins.next().is_none()
        && sites.next().is_none()
        && origin.is_none_or(|origin| origin.to_str().is_ok_and(is_same))
        && site.is_none_or(|site| site == "same-origin")
}

/// What stands behind `Authorization: Bearer` (RFC 6750 §2.1).
fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut lines = headers.get_all(AUTHORIZATION).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return None };
    let (scheme, token) = line.as_bytes().split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| token.trim_ascii_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdef";
    const NOW: u64 = 1_000;

    fn access(has_tokens: bool) -> AdminAccess {
        let tokens = has_tokens.then(|| vec![AdminToken::new("ci", Scope::Operate, SECRET.as_bytes())]);
        AdminAccess {
            binds: Vec::new(),
            tokens,
            hosts: vec!["lb.internal".to_owned()],
            configure_over_tcp: false,
            tls: None,
        }
    }

    fn judge(line: &str, headers: &str, has_tokens: bool) -> Result<Caller, u16> {
        let (method, uri) = line.split_once(' ').expect("two words");
        let mut request = http::Request::builder().method(method).uri(uri);
        for header in headers.split('|').filter(|header| !header.is_empty()) {
            let (name, value) = header.split_once(": ").expect("a header");
            request = request.header(name, value);
        }
        let (parts, ()) = request.body(()).expect("a request").into_parts();
        caller_of(&parts, &access(has_tokens), (&SessionBook::new([7; 32]), NOW))
            .map_err(|problem| problem.status)
    }

    #[test]
    fn a_cookie_stands_for_its_token_where_no_other_is_shown_and_changes_come_from_our_page() {
        let here = access(true);
        let token = here.token(SECRET.as_bytes()).expect("it is one");
        let cookie = SessionBook::new([7; 32]).begin(token, NOW, 5);
        let with = |line: &str, more: &str| {
            judge(line, &format!("Host: 10.0.0.1:9900|Cookie: a=b; evenkeel-9900={cookie}{more}"), true)
        };
        let looked = with("GET /", "").expect("it is ours");
        assert_eq!((looked.scope, looked.who.as_str()), (Scope::Operate, "token ci"));
        assert_eq!(looked.session_ends, Some(NOW + 12 * 3600));
        let scope = |more: &str| with("GET /", more).map(|caller| caller.scope);
        assert_eq!(scope("|Authorization: Bearer another one"), Ok(Scope::Open));
        assert_eq!(with("POST /", ""), Err(403), "nobody says from which page");
        for ours in ["|Origin: http://10.0.0.1:9900", "|Sec-Fetch-Site: same-origin"] {
            assert_eq!(with("POST /", ours).map(|caller| caller.scope), Ok(Scope::Operate), "{ours}");
        }
        for other in [
            "|Origin: http://10.0.0.1:9901",
            "|Origin: null",
            "|Sec-Fetch-Site: same-site",
            "|Sec-Fetch-Site: none",
        ] {
            assert_eq!(with("POST /", other), Err(403), "{other}");
        }
    }

    #[test]
    fn names_that_are_not_ours_are_sent_away() {
        let host = |host: &str| judge("GET /", &format!("Host: {host}"), false).map(|_| ());
        for ours in [
            "127.0.0.1",
            "10.9.8.7:1",
            "[::1]:80",
            "localhost:9900",
            "LOCALHOST.",
            "lb.internal",
            "LB.Internal.:1",
        ] {
            assert_eq!(host(ours), Ok(()), "{ours}");
        }
        for other in [
            "evil.example",
            "localhost.evil.example",
            "lb.internal.evil",
            "127.0.0.1.evil.example",
            "x:80",
            "internal",
        ] {
            assert_eq!(host(other), Err(421), "{other}");
        }
        for broken in ["", "a@localhost", "a b", "[::1", "a/b"] {
            assert_eq!(host(broken), Err(400), "{broken}");
        }
        assert_eq!(judge("GET /", "", false).map(|_| ()), Err(400));
        assert_eq!(judge("GET /", "Host: localhost|Host: localhost", false).map(|_| ()), Err(400));
        assert_eq!(judge("GET http://evil.example/", "Host: localhost", false).map(|_| ()), Err(421));
        assert_eq!(judge("GET http://localhost/", "Host: evil.example", false).map(|_| ()), Err(421));
    }

    #[test]
    fn a_page_of_another_origin_changes_nothing() {
        let bearer = format!("Authorization: Bearer {SECRET}");
        let with =
            |more: &str| judge("POST /", &format!("Host: localhost:99|{bearer}|{more}"), true).map(|_| ());
        for same in
            ["", "Origin: http://localhost:99", "Origin: https://LOCALHOST:99", "Sec-Fetch-Site: same-origin"]
        {
            assert_eq!(with(same), Ok(()), "{same}");
        }
        let others = [
            "Origin: http://localhost",
            "Origin: http://localhost:98",
            "Origin: http://evil.example",
            "Origin: null",
            "Origin: localhost:99",
            "Origin: http://localhost:99|Origin: http://localhost:99",
            "Sec-Fetch-Site: cross-site",
            "Sec-Fetch-Site: same-site",
            "Sec-Fetch-Site: none",
            "Origin: http://localhost:99|Sec-Fetch-Site: cross-site",
        ];
        for other in others {
            assert_eq!(with(other), Err(403), "{other}");
        }
        let looks = judge("GET /", &format!("Host: localhost|{bearer}|Origin: http://evil.example"), true);
        assert_eq!(looks, Ok(Caller::token("ci", Scope::Operate)), "no answer is readable from there");
    }

    #[test]
    fn a_token_is_a_caller_and_none_is_nobody() {
        let with =
            |more: &str| judge("GET /", &format!("Host: localhost|{more}"), true).expect("a caller").scope;
        assert_eq!(with(&format!("Authorization: bearer   {SECRET}")), Scope::Operate);
        let wrong = [
            String::new(),
            "Authorization: Bearer".to_owned(),
            "Authorization: Bearer ".to_owned(),
            format!("Authorization: Basic {SECRET}"),
            format!("Authorization: Bearer {SECRET}x"),
            format!("Authorization: Bearer {SECRET}|Authorization: Bearer {SECRET}"),
            format!("X-Token: {SECRET}"),
        ];
        for wrong in wrong {
            assert_eq!(with(&wrong), Scope::Open, "{wrong}");
        }
        assert_eq!(judge("GET /", "Host: localhost", false), Ok(Caller::anonymous(Scope::Read)));
    }
}
