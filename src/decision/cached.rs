//! What the cache of a route has to do with a request, as far as that is known before it is answered.

use std::fmt::Write as _;

use super::sample::{SampleSent, shown};
use crate::cache::{CacheKey, CacheRequest, KeyParts};
use crate::message::{Framing, HeaderField};
use crate::proxy::http::h1::framing;
use crate::proxy::http::incoming::{says_https, told_host};
use crate::snapshot::{Route, RouteCache};

/// Its key, and what is decided by its head alone; `None`: its route has no cache.
pub(super) fn cached(sample: &SampleSent<'_>, route: &Route, path: &[u8]) -> Option<String> {
    let cache = route.cache.as_ref()?;
    let head = sample.head;
    let has_body = !matches!(framing::request(head), Ok(Framing::None | Framing::Length(0)));
    let decision = match CacheRequest::read(head, has_body) {
        Err(why) => return Some(format!("goes past it: {}", why.token())),
        Ok(request) => decision(sample, route, &request, cache),
    };
    Some(format!("{}{decision}", key(sample, cache, path)))
}

/// The key, as people write it.
fn key(sample: &SampleSent<'_>, cache: &RouteCache, path: &[u8]) -> String {
    let head = sample.head;
    let is_trusted = sample.sender.trusted;
    let query = memchr::memchr(b'?', head.path()).map_or(&[][..], |at| &head.path()[at..]);
    let path = [path, query].concat();
    let is_https = sample.listener.tls.is_some() || is_trusted && says_https(head);
    let told_host = if is_trusted { told_host(head) } else { b"" };
    let authority = head.authority();
    let parts =
        KeyParts { is_https, authority, told_host, path: &path, route: cache.name.as_bytes(), target: b"" };
    let key = CacheKey::of(&parts, head, &cache.key_rules);
    let url = key.url().get(1..).unwrap_or_default();
    let mut url = url.split(|byte| *byte == 0).map(shown);
    let (host, path) = (url.next().unwrap_or_default(), url.next().unwrap_or_default());
    let scheme = if is_https { "https" } else { "http" };
    let mut text = format!("key {scheme}://{host}{path}");
    for name in &cache.key_rules.headers {
        let value = head.named(name).map_or_else(|| "none".to_owned(), shown);
        let _ = write!(text, ", {name}: {value}");
    }
    text
}

fn decision(
    sample: &SampleSent<'_>,
    route: &Route,
    request: &CacheRequest<'_>,
    cache: &RouteCache,
) -> &'static str {
    let wants = &request.directives;
    if wants.only_if_cached {
        "; 504 if nothing is stored that is fresh"
    } else if wants.no_store {
        "; answered from it, and not stored: request_no_store"
    } else if route.auth.is_some() || sample.request.certificate.is_some() {
        "; stored only if its answer says `public` or `s-maxage`: known_client"
    } else if sample.head.has(HeaderField::Authorization) {
        "; stored only if its answer says `public`, `s-maxage` or `must-revalidate`: authorization"
    } else if request.has_cookie && !cache.policy.ignore_cookies {
        "; stored and answered from it only if the answer says how long it is fresh: cookie"
    } else if request.is_head {
        "; answered from it, and not stored: method"
    } else {
        ""
    }
}
