//! Rate limits under one config: what a request counts in, and the buckets, which outlive configs.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

use crate::access::rate::{ENTRIES, Pace, RateBuckets, RateKey, RateSecret, ToldBuckets};
use crate::config::model::{self, RateBy, RateLimit};
use crate::slots::{HeldSlot, Slots};
use crate::tick::Tick;

/// What a limit is under every config that names it.
#[derive(Debug)]
pub struct RateState {
    /// Its buckets.
    pub buckets: RateBuckets,
    /// What its keys are hashed with.
    pub secret: RateSecret,
    /// What this process may give out of it, in millionths: the rest is for others.
    part: AtomicU32,
    slot: HeldSlot,
}

/// All of a limit.
const WHOLE: u32 = 1_000_000;

impl RateState {
    /// Its number in metric cells.
    #[must_use]
    #[inline]
    pub fn number(&self) -> u32 {
        self.slot.number()
    }

    /// Which part of its limit this process gives out, 0 to 1.
    #[must_use]
    pub fn part(&self) -> f64 {
        f64::from(self.part.load(Ordering::Relaxed)) / f64::from(WHOLE)
    }

    /// This process gives out so much of `limit`, 0 to 1, from `now` on.
    pub fn give_part(&self, limit: &RateLimit, part: f64, now: Tick) {
        let part = ((part.clamp(0.0, 1.0) * f64::from(WHOLE)).round() as u32).max(1);
        let before = self.part.load(Ordering::Relaxed);
        // Another pace is carried over to every bucket: not for next to nothing.
        if part.abs_diff(before) > before / 100 {
            self.part.store(part, Ordering::Relaxed);
            // A larger part begins with what was left of the smaller one: what others have given out meanwhile is not given out again.
            self.buckets.set_pace_with_left(self.pace(limit), now);
        } else {
            self.set_pace(limit, now);
        }
    }

    fn set_pace(&self, limit: &RateLimit, now: Tick) {
        self.buckets.set_pace(self.pace(limit), now);
    }

    /// How fast its buckets fill here, and how much they hold: at least one request.
    fn pace(&self, limit: &RateLimit) -> Pace {
        let (Pace { interval, burst }, part) = (pace(limit), self.part.load(Ordering::Relaxed));
        // Another limit of its name may have been one for all.
        let part = if limit.is_for_all() { part } else { WHOLE };
        let slower = u128::from(interval) * u128::from(WHOLE) / u128::from(part);
        let less = u64::from(burst) * u64::from(part) / u64::from(WHOLE);
        Pace {
            interval: u64::try_from(slower).unwrap_or(u64::MAX),
            burst: u32::try_from(less).unwrap_or(burst).max(1),
        }
    }
}

/// The buckets of all limits as they are handed over to another process, with what their keys are hashed with.
#[derive(Clone, Default, Serialize, Deserialize)]
pub struct ToldRates {
    secret: Option<[u64; 3]>,
    limits: BTreeMap<String, ToldBuckets>,
}

/// Limits that outlive configs, as long as each config has a place that names them.
#[derive(Debug)]
pub(super) struct RateStock {
    secret: RateSecret,
    numbers: Slots,
}

impl Default for RateStock {
    fn default() -> RateStock {
        RateStock { secret: RateSecret::new(rand::random()), numbers: Slots::default() }
    }
}

impl RateStock {
    /// Hashes keys as the process before did, of which these are `told`, from the first limit on.
    pub(super) fn hash_as(&mut self, told: &ToldRates) {
        if let Some(drawn) = told.secret {
            self.secret = RateSecret::new(drawn);
        }
    }

    /// The limits that a place in `config` names, with the buckets that they had before.
    pub(super) fn limits(&self, config: &model::Config, before: Option<&NamedRates>) -> NamedRates {
        let of_routes = config.listeners.iter().flat_map(|listener| &listener.routes);
        let of_routes = of_routes.flat_map(|route| &route.rate_limits);
        let of_listeners = config.listeners.iter().flat_map(|listener| &listener.rate_limits);
        let mut rates = NamedRates::default();
        for limit in of_listeners.chain(of_routes) {
            if rates.0.contains_key(&limit.name) {
                continue;
            }
            let state =
                before.and_then(|before| before.0.get(&limit.name)).map(|(_, state)| Arc::clone(state));
            let state = state.unwrap_or_else(|| {
                Arc::new(RateState {
                    buckets: RateBuckets::new(pace(limit), ENTRIES),
                    secret: self.secret.clone(),
                    part: AtomicU32::new(WHOLE),
                    slot: self.numbers.give(),
                })
            });
            rates.0.insert(limit.name.clone(), (Arc::clone(limit), state));
        }
        rates
    }
}

fn pace(limit: &RateLimit) -> Pace {
    Pace { interval: limit.interval(), burst: limit.burst }
}

/// The limits of one config, by name.
#[derive(Debug, Default)]
pub struct NamedRates(HashMap<String, (Arc<RateLimit>, Arc<RateState>)>);

impl NamedRates {
    /// Their buckets fill as this config says, from now on.
    pub(super) fn set_paces(&self, now: Tick) {
        self.0.values().for_each(|(limit, state)| state.set_pace(limit, now));
    }

    /// What is missing in their buckets, for another process.
    #[must_use]
    pub fn tell(&self, now: Tick) -> ToldRates {
        let told =
            |(limit, state): (&RateLimit, &RateState)| (limit.name.to_string(), state.buckets.tell(now));
        let all = self.by_name();
        // They all have the same.
        let secret = all.first().map(|(_, state)| state.secret.drawn());
        ToldRates { secret, limits: all.into_iter().map(told).collect() }
    }

    /// Takes out of their buckets what is missing in those of the process before.
    pub fn take_over(&self, told: &ToldRates, now: Tick) {
        for (limit, state) in self.by_name() {
            // Keys of another secret are nobody's.
            if told.secret == Some(state.secret.drawn())
                && let Some(buckets) = told.limits.get(&*limit.name)
            {
                state.buckets.take_over(buckets, now);
            }
        }
    }

    /// The numbers of those that were not there `before`.
    pub(super) fn given(&self, before: Option<&NamedRates>) -> Vec<u32> {
        let is_new = |name: &String| !before.is_some_and(|before| before.0.contains_key(name));
        self.0.iter().filter(|(name, _)| is_new(name)).map(|(_, (_, state))| state.number()).collect()
    }

    /// All of them, by name.
    #[must_use]
    pub fn by_name(&self) -> Vec<(&RateLimit, &RateState)> {
        let mut all: Vec<_> = self.0.values().map(|(limit, state)| (&**limit, &**state)).collect();
        all.sort_unstable_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        all
    }

    /// Names and numbers, by name.
    #[must_use]
    pub fn numbers(&self) -> Vec<(&str, u32)> {
        let mut all: Vec<_> = self.0.iter().map(|(name, (_, state))| (&**name, state.number())).collect();
        all.sort_unstable();
        all
    }
}

/// One bucket that a request counts in: an item of `by` of a limit.
#[derive(Debug)]
pub struct RateCheck {
    /// Its limit.
    pub limit: Arc<RateLimit>,
    /// The buckets of that.
    pub state: Arc<RateState>,
    /// Who counts together.
    pub by: RateBy,
    /// What keys of this item are hashed with, so that those of one are not those of another.
    pub kind: u64,
    /// The key where it is the same for all requests of the route.
    pub fixed: Option<RateKey>,
    /// What passes here has passed all items of its limit.
    pub is_last: bool,
}

/// What is asked at one moment.
#[derive(Debug, Default)]
pub struct RateSet {
    /// Each must let pass.
    pub real: Box<[RateCheck]>,
    /// Each only counts.
    pub dry: Box<[RateCheck]>,
}

impl RateSet {
    fn new(checks: Vec<RateCheck>) -> RateSet {
        let (dry, real): (Vec<_>, Vec<_>) = checks.into_iter().partition(|check| check.limit.dry_run);
        RateSet { real: real.into(), dry: dry.into() }
    }

    /// Whether nothing is asked.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.real.is_empty() && self.dry.is_empty()
    }

    /// All that is asked, in its order.
    pub fn iter(&self) -> impl Iterator<Item = &RateCheck> {
        self.real.iter().chain(&self.dry)
    }
}

/// What requests of one route count in: the limits of the listener, then those of the route.
#[derive(Debug, Default)]
pub struct RateChecks {
    /// What can be asked of who is not known yet.
    pub of_anybody: RateSet,
    /// What is asked when it is known who the user is.
    pub of_users: RateSet,
}

impl RateChecks {
    /// Those of these limits; one that is named at both levels counts once. `place`: listener and route.
    #[must_use]
    pub fn new(levels: [&[Arc<RateLimit>]; 2], rates: &NamedRates, place: [&str; 2]) -> RateChecks {
        let (mut of_anybody, mut of_users, mut seen) = (Vec::new(), Vec::new(), Vec::new());
        for limit in levels.into_iter().flatten() {
            let Some((limit, state)) = rates.0.get(&limit.name).filter(|_| !seen.contains(&&*limit.name))
            else {
                continue;
            };
            seen.push(&*limit.name);
            let has_user = limit.by.contains(&RateBy::User);
            let before_users = limit.by.iter().filter(|by| **by != RateBy::User).count();
            let mut left = before_users;
            for by in &limit.by {
                let secret = &state.secret;
                let kind = match by {
                    RateBy::ClientIp => 1,
                    RateBy::User => 2,
                    RateBy::Route => 3,
                    RateBy::Global => 4,
                    RateBy::Header(name) => secret.of_text(5, name.as_bytes()).bits(),
                    RateBy::Cookie(name) => secret.of_text(6, name.as_bytes()).bits(),
                };
                let fixed = match by {
                    RateBy::Route => Some(secret.of_text(kind, place.join("/").as_bytes())),
                    RateBy::Global => Some(secret.of_text(kind, b"")),
                    RateBy::ClientIp | RateBy::User | RateBy::Header(_) | RateBy::Cookie(_) => None,
                };
                let is_user = *by == RateBy::User;
                left -= usize::from(!is_user);
                let is_last = is_user || (left == 0 && !has_user);
                let (limit, state) = (Arc::clone(limit), Arc::clone(state));
                let check = RateCheck { limit, state, by: by.clone(), kind, fixed, is_last };
                if is_user { of_users.push(check) } else { of_anybody.push(check) }
            }
        }
        RateChecks { of_anybody: RateSet::new(of_anybody), of_users: RateSet::new(of_users) }
    }

    /// Those of whole connections, of which nothing is known but where they come from: whatever else would count together counts by that.
    #[must_use]
    pub fn of_connections(
        levels: [&[Arc<RateLimit>]; 2],
        rates: &NamedRates,
        place: [&str; 2],
    ) -> RateChecks {
        let RateChecks { of_anybody, of_users } = RateChecks::new(levels, rates, place);
        let all = |of_anybody: Box<[RateCheck]>, of_users: Box<[RateCheck]>| -> Box<[RateCheck]> {
            of_anybody.into_iter().chain(of_users).collect()
        };
        let (real, dry) = (all(of_anybody.real, of_users.real), all(of_anybody.dry, of_users.dry));
        RateChecks { of_anybody: RateSet { real, dry }, of_users: RateSet::default() }
    }

    /// Whether its requests count nowhere.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.of_anybody.is_empty() && self.of_users.is_empty()
    }

    /// All, in the order in which they are asked.
    pub fn iter(&self) -> impl Iterator<Item = &RateCheck> {
        self.of_anybody.iter().chain(self.of_users.iter())
    }
}
