//! May a stored answer be used for a request (RFC 9111 §4, §4.2.4, RFC 5861).

use std::time::Duration;

use crate::tick::Tick;

use super::freshness::Freshness;
use super::request::CacheRequest;
use crate::message::WhyNot;

/// What is done with a stored answer that fits a request by key and variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It is sent.
    Fresh,
    /// It is sent though it is stale: the client said that it takes such a one (`max-stale`).
    Stale,
    /// It is sent, and the backend is asked meanwhile, by one at a time.
    StaleWhileRevalidate,
    /// The backend is asked first: see [`conditions`](super::conditions).
    Revalidate {
        /// Who wants that.
        why: AskAgain,
        /// Until when it may be sent all the same if the backend can't be reached or answers with an
        /// [error](super::is_backend_error); `None`: never.
        stands_in_until: Option<Tick>,
    },
    /// The answer is 504: the client wants nothing that the backend is asked for (RFC 9111 §5.2.1.7).
    OnlyIfCached,
    /// It is for others: the request goes past the cache.
    Past(WhyNot),
}

/// Why the backend is asked though something is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskAgain {
    /// It is stale.
    Stale,
    /// Its origin wants to be asked each time (`no-cache`).
    Origin,
    /// The client wants something newer (`no-cache`, `max-age`, `min-fresh`). [`CacheRequest::deaf`] keeps it from that.
    Client,
}

/// What is done with a stored answer. A request that nothing is stored for is a miss, or 504 where it says `only-if-cached`.
#[must_use]
pub fn may_use(freshness: &Freshness, request: &CacheRequest<'_>, ignores_cookies: bool, now: Tick) -> Use {
    if request.has_cookie && freshness.is_unsaid && !ignores_cookies {
        // Stored for those without a cookie, by our wish and not its origin's.
        return Use::Past(WhyNot::Cookie);
    }
    let wants = &request.directives;
    let again = |why| {
        if wants.only_if_cached {
            return Use::OnlyIfCached;
        }
        Use::Revalidate { why, stands_in_until: stands_in_until(freshness, request, now) }
    };
    if freshness.always_asks {
        return again(AskAgain::Origin);
    }
    let is_fresh = freshness.is_fresh(now);
    // RFC 8246 §2: a reload is no reason to ask for what never changes; `no-cache` is.
    let trusts = is_fresh && freshness.immutable;
    let is_too_old =
        wants.max_age.is_some_and(|most| seconds(most) < freshness.age(now) || most == 0) && !trusts;
    let is_too_short = wants.min_fresh.is_some_and(|least| freshness.left(now) < seconds(least));
    if wants.no_cache || is_too_old || is_too_short {
        return again(AskAgain::Client);
    }
    if is_fresh {
        return Use::Fresh;
    }
    if freshness.forbids_stale {
        return again(AskAgain::Stale);
    }
    let stale_for = freshness.stale_for(now);
    if stale_for < freshness.stale_while_revalidate {
        return Use::StaleWhileRevalidate;
    }
    if wants.max_stale.is_some_and(|most| stale_for <= seconds(most)) {
        return Use::Stale;
    }
    again(AskAgain::Stale)
}

/// Until when a stored answer may stand in for a backend that fails, `None`: it may not now. What the request says of that goes before
/// what the answer and the route say; and nothing goes before `must-revalidate`, its relatives and `no-cache` of the answer
/// (RFC 9111 §4.2.4).
#[must_use]
fn stands_in_until(freshness: &Freshness, request: &CacheRequest<'_>, now: Tick) -> Option<Tick> {
    if freshness.always_asks || freshness.forbids_stale {
        return None;
    }
    let window = request.directives.stale_if_error.map_or(freshness.stale_if_error, seconds);
    let left = freshness.left(now) + window.saturating_sub(freshness.stale_for(now));
    // A fresh one that the client did not want stands in as well, unless nobody has allowed that.
    (!window.is_zero() && !left.is_zero()).then(|| now.after(left))
}

/// Whether a backend that answers so has failed (RFC 5861 §4); not to be reached is a failure too.
#[must_use]
pub const fn is_backend_error(status: u16) -> bool {
    matches!(status, 500 | 502 | 503 | 504)
}

fn seconds(seconds: u32) -> Duration {
    Duration::from_secs(seconds.into())
}
