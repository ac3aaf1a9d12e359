//! What a request's head says to a cache.

use crate::message::{Fields, Head, HeaderField, WhyNot, tokens};

use super::directives::RequestDirectives;
use super::fields::items;

/// What a request says to a cache. Made once per request, before anything of it is changed.
#[derive(Clone, Copy, Debug)]
pub struct CacheRequest<'h> {
    pub(super) head: &'h Head,
    /// How old an answer may be. [`CacheRequest::deaf`] forgets it.
    pub directives: RequestDirectives,
    /// Whether the method is HEAD.
    pub is_head: bool,
    /// Whether there is Authorization.
    pub has_authorization: bool,
    /// Whether there is a cookie.
    pub has_cookie: bool,
    pub(super) has_range: bool,
    pub(super) has_if_range: bool,
    pub(super) has_none_match: bool,
    pub(super) has_modified_since: bool,
    /// `If-Match` or `If-Unmodified-Since`.
    pub(super) has_origin_condition: bool,
}

impl<'h> CacheRequest<'h> {
    /// Reads a request. `has_body`: its framing announces one. `Err`: it has nothing to do with the cache.
    pub fn read(head: &'h Head, has_body: bool) -> Result<CacheRequest<'h>, WhyNot> {
        let is_head = match head.method() {
            b"GET" => false,
            b"HEAD" => true,
            _ => return Err(WhyNot::Method),
        };
        if has_body || head.has(HeaderField::Upgrade) {
            return Err(WhyNot::Body);
        }
        // What Connection names the backend does not get: whoever is compared by it must not be answered as if it did.
        if head.has(HeaderField::Connection) && names_lines(head) {
            return Err(WhyNot::Connection);
        }
        let mut directives = RequestDirectives::default();
        if head.has(HeaderField::CacheControl) {
            head.values(HeaderField::CacheControl).for_each(|value| directives.take_line(value));
        } else if head.has(HeaderField::Pragma) {
            // RFC 9111 §5.4: only where there is no Cache-Control.
            let mut items = head.values(HeaderField::Pragma).flat_map(items);
            directives.no_cache = items.any(|item| item.eq_ignore_ascii_case(b"no-cache"));
        }
        Ok(CacheRequest {
            head,
            directives,
            is_head,
            has_authorization: head.has(HeaderField::Authorization),
            has_cookie: head.has(HeaderField::Cookie),
            has_range: head.has(HeaderField::Range),
            has_if_range: head.has(HeaderField::IfRange),
            has_none_match: head.has(HeaderField::IfNoneMatch),
            has_modified_since: head.has(HeaderField::IfModifiedSince),
            has_origin_condition: head.has(HeaderField::IfMatch) || head.has(HeaderField::IfUnmodifiedSince),
        })
    }

    /// The same request with no wish about how old an answer may be: for a client that has asked past the cache too often. That it
    /// wants nothing stored, and nothing but what is stored, is still heard.
    #[must_use]
    pub fn deaf(self) -> CacheRequest<'h> {
        let RequestDirectives { no_store, only_if_cached, no_transform, max_stale, stale_if_error, .. } =
            self.directives;
        let directives = RequestDirectives {
            no_store,
            only_if_cached,
            no_transform,
            max_stale,
            stale_if_error,
            ..RequestDirectives::default()
        };
        CacheRequest { directives, ..self }
    }

    /// Whether it has preconditions or a range, so that an answer from the cache is looked at by them.
    #[must_use]
    pub fn is_conditional(&self) -> bool {
        self.has_range || self.has_none_match || self.has_modified_since || self.has_origin_condition
    }
}

/// Fields by which a request is more than its method, host and path to a cache. A cookie is none of them: see
/// [`Freshness`](super::Freshness); nor is `Authorization`, which counts when an answer is stored and not when it is used.
const PARTICULAR: Fields = Fields::of(&[
    HeaderField::Upgrade,
    HeaderField::Expect,
    HeaderField::CacheControl,
    HeaderField::Pragma,
    HeaderField::Range,
    HeaderField::IfRange,
    HeaderField::IfMatch,
    HeaderField::IfNoneMatch,
    HeaderField::IfModifiedSince,
    HeaderField::IfUnmodifiedSince,
]);

/// Whether a request is one for the whole of what there is, in any form, and has no wishes: all such requests with one key get the same,
/// but for variants and cookies. `has_body`: its framing announces one.
#[must_use]
#[inline]
pub fn is_plain(head: &Head, has_body: bool) -> bool {
    if has_body || head.fields().meets(PARTICULAR) || head.has(HeaderField::Connection) && names_lines(head) {
        return false;
    }
    head.method() == b"GET"
}

/// Whether `Connection` names a line, and not only what becomes of the connection (RFC 9110 §7.6.1).
fn names_lines(head: &Head) -> bool {
    let known = [&b"close"[..], b"keep-alive", b"te"];
    let is_known = |name: &[u8]| known.iter().any(|known| name.eq_ignore_ascii_case(known));
    head.values(HeaderField::Connection).flat_map(tokens).any(|name| !name.is_empty() && !is_known(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(method: &str, lines: &[(&str, &str)]) -> Head {
        let mut head = Head::request(method, "/", "a.example");
        lines.iter().for_each(|(name, value)| head.push(name.as_bytes(), value.as_bytes()));
        head
    }

    #[test]
    fn rfc9111_3_methods_and_bodies() {
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "get", "M-SEARCH"] {
            let head = with(method, &[]);
            assert_eq!(CacheRequest::read(&head, false).err(), Some(WhyNot::Method), "{method}");
        }
        let get = with("GET", &[]);
        assert_eq!(CacheRequest::read(&get, true).err(), Some(WhyNot::Body));
        let upgrade = with("GET", &[("Upgrade", "websocket")]);
        assert_eq!(CacheRequest::read(&upgrade, false).err(), Some(WhyNot::Body));
        assert!(CacheRequest::read(&with("HEAD", &[]), false).is_ok_and(|request| request.is_head));
    }

    #[test]
    fn rfc9110_7_6_1_a_line_that_connection_names_is_no_part_of_what_is_compared() {
        for (value, why) in [
            ("close", None),
            ("Keep-Alive, TE", None),
            ("x-api-key", Some(WhyNot::Connection)),
            ("keep-alive, Accept-Encoding", Some(WhyNot::Connection)),
        ] {
            let head = with("GET", &[("Connection", value)]);
            assert_eq!(CacheRequest::read(&head, false).err(), why, "{value}");
        }
    }

    #[test]
    fn rfc9111_5_4_pragma_counts_where_cache_control_is_absent() {
        let no_cache = |lines: &[(&str, &str)]| {
            CacheRequest::read(&with("GET", lines), false).is_ok_and(|request| request.directives.no_cache)
        };
        assert!(no_cache(&[("Pragma", "x, NO-cache")]));
        assert!(!no_cache(&[("Pragma", "no-cache"), ("Cache-Control", "max-age=5")]));
        assert!(!no_cache(&[("Pragma", "no-cache=1")]) && no_cache(&[("cache-control", "no-cache")]));
    }

    #[test]
    fn a_client_that_is_not_heard_still_wants_nothing_stored() {
        let head = with(
            "GET",
            &[("Cache-Control", "no-cache, max-age=0, min-fresh=5, no-store, only-if-cached, max-stale=3")],
        );
        let deaf = CacheRequest::read(&head, false).unwrap().deaf().directives;
        assert!(!deaf.no_cache && deaf.max_age.is_none() && deaf.min_fresh.is_none());
        assert!(deaf.no_store && deaf.only_if_cached && deaf.max_stale == Some(3));
    }

    #[test]
    fn lines_are_told_by_their_names() {
        let head = with(
            "GET",
            &[
                ("If-None-Match", "*"),
                ("rAnge", "x"),
                ("COOKIE", "a"),
                ("Authorization", "b"),
                ("ranges", ""),
            ],
        );
        let all = CacheRequest::read(&head, false).unwrap();
        assert!(
            all.has_none_match
                && all.has_range
                && all.has_cookie
                && all.has_authorization
                && all.is_conditional()
        );
        assert!(!all.has_if_range && !all.has_modified_since && !all.has_origin_condition);
        let head = with("GET", &[("If-Match", "*"), ("If-Range", "x"), ("If-Modified-Since", "x")]);
        let all = CacheRequest::read(&head, false).unwrap();
        assert!(all.has_origin_condition && all.has_if_range && all.has_modified_since);
    }
}
