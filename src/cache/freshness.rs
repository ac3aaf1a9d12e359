//! How old a stored answer is, and for how long it may be used (RFC 9111 §4.2, RFC 5861).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::model::cache::CachePolicy;
use crate::message::{Head, HeaderField};
use crate::tick::Tick;

use super::arrival::Arrival;
use super::date::{HttpSeconds, http_date};
use super::directives::{AnswerDirectives, delta_seconds};
use super::fields::{has, items, single, values};

/// A guess is never longer (RFC 9111 §4.2.2 leaves it to us).
const LONGEST_GUESS: Duration = Duration::from_secs(86_400);

/// Who said how long an answer is fresh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Basis {
    /// The answer: Cache-Control, its targeted form, or Expires.
    Said,
    /// The route, for all answers.
    Override,
    /// The route, for answers that say nothing.
    Ttl,
    /// Nobody: a tenth of the time since it was last modified.
    Guess,
}

/// How old a stored answer is, and what may be done with it when. 80 bytes, copied freely; asking costs some comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Freshness {
    /// Who said it.
    pub basis: Basis,
    came: Tick,
    /// How old it was when it came.
    initial_age: Duration,
    /// How old it may get.
    lifetime: Duration,
    pub(super) stale_while_revalidate: Duration,
    pub(super) stale_if_error: Duration,
    /// Never used without asking (`no-cache`).
    pub(super) always_asks: bool,
    /// Never used when it is stale: `must-revalidate`, `proxy-revalidate`, `s-maxage`.
    pub(super) forbids_stale: bool,
    pub(super) immutable: bool,
    /// The answer itself says nothing of who may have it and for how long.
    pub(super) is_unsaid: bool,
}

impl Freshness {
    /// That of an answer; `None`: neither the answer nor the route says anything.
    #[must_use]
    pub fn of(
        answer: &Head,
        said: &AnswerDirectives,
        rules: &CachePolicy,
        arrival: &Arrival,
    ) -> Option<Freshness> {
        let date = single(answer, "date").and_then(|text| http_date(text, arrival.date));
        let initial_age = initial_age(answer, date, arrival);
        let (basis, lifetime) = lifetime(answer, said, rules, (date, arrival, initial_age))?;
        let or = |said: Option<u32>, ours| said.map_or(ours, |seconds| Duration::from_secs(seconds.into()));
        Some(Freshness {
            basis,
            came: arrival.came,
            initial_age,
            lifetime,
            stale_while_revalidate: or(said.stale_while_revalidate, rules.stale_while_revalidate),
            stale_if_error: or(said.stale_if_error, rules.stale_if_error),
            // Who overrides how long everything is fresh means these as well.
            always_asks: said.no_cache && basis != Basis::Override,
            forbids_stale: said.must_revalidate || said.proxy_revalidate || said.s_maxage.is_some(),
            immutable: said.immutable,
            is_unsaid: match basis {
                Basis::Said => false,
                Basis::Override => !permits(said),
                Basis::Ttl | Basis::Guess => !says_anything(answer, said),
            },
        })
    }

    /// How old it is (RFC 9111 §4.2.3).
    #[must_use]
    pub fn age(&self, now: Tick) -> Duration {
        self.initial_age + now.since(self.came)
    }

    /// What goes into the line `Age` (RFC 9111 §5.1).
    #[must_use]
    pub fn age_seconds(&self, now: Tick) -> u64 {
        self.age(now).as_secs().min(super::directives::MOST_SECONDS.into())
    }

    /// For how long it is still fresh; zero: it is stale.
    #[must_use]
    pub fn left(&self, now: Tick) -> Duration {
        self.lifetime.saturating_sub(self.age(now))
    }

    /// For how long it has been stale; zero: it is fresh, or has just become stale.
    #[must_use]
    pub fn stale_for(&self, now: Tick) -> Duration {
        self.age(now).saturating_sub(self.lifetime)
    }

    /// For how many seconds it is still fresh; below zero: for how many it has been stale.
    #[must_use]
    pub fn seconds_left(&self, now: Tick) -> i64 {
        let seconds = |span: Duration| i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
        if self.is_fresh(now) { seconds(self.left(now)) } else { -seconds(self.stale_for(now)) }
    }

    /// Whether it is fresh: its age is below its lifetime (RFC 9111 §4.2).
    #[must_use]
    pub fn is_fresh(&self, now: Tick) -> bool {
        self.age(now) < self.lifetime
    }

    /// Until when all that is said of it stays the same: its age in seconds, for how many it is fresh, and that it is. Later than `now`.
    #[must_use]
    pub fn alike_until(&self, now: Tick) -> Tick {
        const SECOND: u32 = 1_000_000_000;
        let age_changes = SECOND - self.age(now).subsec_nanos();
        // A whole number of seconds is one less a moment later.
        let left_changes = self.left(now).subsec_nanos() + 1;
        now.after(Duration::from_nanos(age_changes.min(left_changes).into()))
    }

    /// Whether the answer itself says nothing of who may have it and for how long.
    #[must_use]
    pub fn is_unsaid(&self) -> bool {
        self.is_unsaid
    }

    /// The same answer when somebody has declared it stale: a soft purge, or a HEAD that tells of another one (RFC 9111 §4.3.5).
    #[must_use]
    pub fn spoilt(self) -> Freshness {
        Freshness { lifetime: Duration::ZERO, immutable: false, ..self }
    }

    /// From when on it is of no use even where everything else fails, unless it can be asked for again.
    #[must_use]
    pub fn useless_from(&self) -> Tick {
        let stale = if self.forbids_stale {
            Duration::ZERO
        } else {
            self.stale_while_revalidate.max(self.stale_if_error)
        };
        self.came.after((self.lifetime + stale).saturating_sub(self.initial_age))
    }
}

/// How old it was when it came (RFC 9111 §4.2.3): what the caches before us say, or what the origin's clock says, if that is more.
fn initial_age(answer: &Head, date: Option<HttpSeconds>, arrival: &Arrival) -> Duration {
    // RFC 9111 §5.1: of a list the first member; what is no age is passed over.
    let first = values(answer, "age").next().and_then(|value| items(value).next());
    let age_value = first.and_then(delta_seconds).unwrap_or(0);
    let apparent = date.map_or(0, |date| arrival.date.saturating_sub(date).max(0));
    let corrected = Duration::from_secs(age_value.into()) + arrival.came.since(arrival.asked);
    corrected.max(Duration::from_secs(apparent.cast_unsigned()))
}

/// How old it may get, and who says so.
fn lifetime(
    answer: &Head,
    said: &AnswerDirectives,
    rules: &CachePolicy,
    (date, arrival, initial_age): (Option<HttpSeconds>, &Arrival, Duration),
) -> Option<(Basis, Duration)> {
    // What the route says counts from when the answer came, however wrong its clock is.
    if let Some(ttl) = rules.ttl_override {
        return Some((Basis::Override, initial_age + ttl));
    }
    if let Some(seconds) = said.lifetime() {
        return Some((Basis::Said, Duration::from_secs(seconds.into())));
    }
    let since = |date: HttpSeconds, earlier: HttpSeconds| {
        Duration::from_secs(date.saturating_sub(earlier).max(0).cast_unsigned())
    };
    let date = date.unwrap_or(arrival.date);
    if !said.is_targeted
        && let Some(expires) = values(answer, "expires").next()
    {
        // RFC 9111 §5.3: what is no date lies in the past.
        let until = http_date(expires, arrival.date).filter(|_| !said.is_broken);
        return Some((Basis::Said, until.map_or(Duration::ZERO, |until| since(until, date))));
    }
    if said.no_cache || said.is_broken || has_pragma(answer) {
        return Some((Basis::Said, Duration::ZERO));
    }
    let status = answer.status;
    if rules.heuristic && (is_heuristically_cacheable(status) || said.public) {
        let modified = single(answer, "last-modified").and_then(|text| http_date(text, arrival.date));
        if let Some(modified) = modified {
            return Some((Basis::Guess, (since(date, modified) / 10).min(LONGEST_GUESS)));
        }
    }
    let ttl = if is_negative(status) { rules.negative_ttl } else { rules.ttl };
    let takes_ttl = is_heuristically_cacheable(status) || said.public;
    ttl.filter(|_| takes_ttl).map(|ttl| (Basis::Ttl, initial_age + ttl))
}

/// `Pragma: no-cache` in an answer means nothing (RFC 9111 §5.4), but who writes it does not mean to say nothing: it keeps the answer
/// from being fresh by our own wish, and by nothing else.
fn has_pragma(answer: &Head) -> bool {
    values(answer, "pragma").flat_map(items).any(|item| item.eq_ignore_ascii_case(b"no-cache"))
}

/// Whether an answer says how long it is fresh, or at least that others may have it or that it is asked for each time.
fn says_anything(answer: &Head, said: &AnswerDirectives) -> bool {
    said.lifetime().is_some() || said.public || said.no_cache || !said.is_targeted && has(answer, "expires")
}

/// Whether it lets others have it for a while. One whose route overrides that it is stale at once has not done so.
fn permits(said: &AnswerDirectives) -> bool {
    said.public || said.lifetime().is_some_and(|seconds| seconds > 0)
}

/// Statuses that may be stored though their answers say nothing (RFC 9110 §15.1), but for 206.
#[must_use]
pub(super) const fn is_heuristically_cacheable(status: u16) -> bool {
    matches!(status, 200 | 203 | 204 | 300 | 301 | 308) || is_negative(status)
}

/// Those of them that say that there is nothing.
const fn is_negative(status: u16) -> bool {
    matches!(status, 404 | 405 | 410 | 414 | 501)
}

/// The date by which an answer is compared with `If-Modified-Since`: when it was last modified, else its own, which every stored answer
/// has (RFC 9111 §4.3.2).
#[must_use]
pub(super) fn modified(stored: &Head, now: HttpSeconds) -> Option<HttpSeconds> {
    match single(stored, "last-modified").and_then(|text| http_date(text, now)) {
        Some(date) => Some(date),
        None => stored.value(HeaderField::Date).and_then(|text| http_date(text, now)),
    }
}
