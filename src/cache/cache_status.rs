//! The line `Cache-Status` (RFC 9211): what the cache did for one answer.

use crate::tick::Tick;

use super::freshness::Freshness;
use crate::message::{CacheNote, WhyNot};

/// Why a request went on to the backend (RFC 9211 §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyForwarded {
    /// It has nothing to do with the cache, or somebody else must not have the answer.
    Bypass,
    /// Its method.
    Method,
    /// Nothing is stored under its URL.
    UriMiss,
    /// Something is, but for other requests.
    VaryMiss,
    /// The client wanted something newer.
    Request,
    /// What is stored is stale.
    Stale,
}

impl WhyForwarded {
    const fn token(self) -> &'static str {
        match self {
            WhyForwarded::Bypass => "bypass",
            WhyForwarded::Method => "method",
            WhyForwarded::UriMiss => "uri-miss",
            WhyForwarded::VaryMiss => "vary-miss",
            WhyForwarded::Request => "request",
            WhyForwarded::Stale => "stale",
        }
    }
}

/// What the cache did for one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatus {
    /// Why it was asked for; `None`: it came out of the cache.
    pub forwarded: Option<WhyForwarded>,
    /// What the backend said, where the client gets something else: a 304, or an error that a stored answer stood in for.
    pub backend_status: Option<u16>,
    /// For how many seconds it is fresh; below zero: for how many it has been stale.
    pub ttl: Option<i64>,
    /// Whether it was stored.
    pub stored: bool,
    /// Whether it was asked for together with others.
    pub collapsed: bool,
    /// Why it was not stored, or not taken out of the cache.
    pub detail: Option<WhyNot>,
}

impl CacheStatus {
    /// That of an answer out of the cache.
    #[must_use]
    pub fn hit(freshness: &Freshness, now: Tick) -> CacheStatus {
        CacheStatus { ttl: Some(freshness.seconds_left(now)), ..CacheStatus::default() }
    }

    /// What it says, for records.
    #[must_use]
    pub fn note(&self) -> CacheNote {
        match (self.detail, self.forwarded) {
            (Some(why), _) => CacheNote::Uncacheable(why),
            (None, None) => CacheNote::Hit,
            (None, Some(_)) if self.collapsed => CacheNote::Collapsed,
            (None, Some(_)) if !self.stored => CacheNote::Stale,
            (None, Some(_)) if self.backend_status == Some(304) => CacheNote::Revalidated,
            (None, Some(_)) => CacheNote::Miss,
        }
    }

    /// Appends the value of the line. It has no key of an object: that is nobody's business.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"evenkeel");
        match self.forwarded {
            None => out.extend_from_slice(b"; hit"),
            Some(why) => {
                out.extend_from_slice(b"; fwd=");
                out.extend_from_slice(why.token().as_bytes());
            }
        }
        if let Some(status) = self.backend_status {
            out.extend_from_slice(b"; fwd-status=");
            push(status.into(), out);
        }
        if let Some(ttl) = self.ttl {
            out.extend_from_slice(b"; ttl=");
            push(ttl, out);
        }
        if self.stored {
            out.extend_from_slice(b"; stored");
        }
        if self.collapsed {
            out.extend_from_slice(b"; collapsed");
        }
        if let Some(detail) = self.detail {
            out.extend_from_slice(b"; detail=");
            out.extend_from_slice(detail.token().as_bytes());
        }
    }
}

/// Appends a number of at most 15 digits (RFC 9651 §3.3.1).
fn push(number: i64, out: &mut Vec<u8>) {
    let number = number.clamp(-999_999_999_999_999, 999_999_999_999_999);
    if number < 0 {
        out.push(b'-');
    }
    let mut digits = [0u8; 15];
    let mut at = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc9211_2_lines() {
        let hit = CacheStatus { ttl: Some(376), ..CacheStatus::default() };
        for (status, line) in [
            (hit, "evenkeel; hit; ttl=376"),
            (CacheStatus { ttl: Some(-12), ..hit }, "evenkeel; hit; ttl=-12"),
            (CacheStatus { ttl: Some(0), ..hit }, "evenkeel; hit; ttl=0"),
            (CacheStatus { ttl: Some(i64::MAX), ..hit }, "evenkeel; hit; ttl=999999999999999"),
            (
                CacheStatus {
                    forwarded: Some(WhyForwarded::UriMiss),
                    ttl: None,
                    stored: true,
                    collapsed: true,
                    ..hit
                },
                "evenkeel; fwd=uri-miss; stored; collapsed",
            ),
            (
                CacheStatus { forwarded: Some(WhyForwarded::Stale), backend_status: Some(304), ..hit },
                "evenkeel; fwd=stale; fwd-status=304; ttl=376",
            ),
            (
                CacheStatus {
                    forwarded: Some(WhyForwarded::Bypass),
                    ttl: None,
                    detail: Some(WhyNot::KnownClient),
                    ..hit
                },
                "evenkeel; fwd=bypass; detail=known_client",
            ),
        ] {
            let mut out = Vec::new();
            status.write(&mut out);
            assert_eq!(String::from_utf8_lossy(&out), line);
            // It is a structured field: the same grammar reads it, but for the list around it.
            let parameters = format!("x;{}", line.split_once("; ").map_or("", |(_, rest)| rest))
                .replace("-status", "_status");
            assert!(
                super::super::structured::dictionary(parameters.as_bytes(), |_, _| Some(())).is_some(),
                "{line}"
            );
        }
    }

    #[test]
    fn rfc9211_2_2_reasons_are_the_registered_ones() {
        for (why, token) in [
            (WhyForwarded::Method, "method"),
            (WhyForwarded::VaryMiss, "vary-miss"),
            (WhyForwarded::Request, "request"),
        ] {
            assert_eq!(why.token(), token);
        }
    }
}
