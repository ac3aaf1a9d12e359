//! What is said about who was not let in: by rate limits and by access lists, those that have a name.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::config::model::RateLimit;
use crate::snapshot::{RateState, Snapshot};
use crate::telemetry::cells::{RateReading, Readings};

/// A rate limit that some place names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RateLimitReport {
    /// Its name.
    pub name: String,
    /// It only counts.
    pub dry_run: bool,
    /// Requests, or connections of TCP, that it let through. With `dry_run` those alone that it would have let through.
    pub admitted: u64,
    /// Those that it refused.
    pub refused: u64,
    /// Those that it would have refused.
    pub would_refuse: u64,
    /// Those for whose key there was no place, so that all of them shared one bucket.
    pub crowded: u64,
}

/// An access list with a name that some place names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessListReport {
    /// Its name.
    pub name: String,
    /// Requests and connections that it did not let in.
    pub refused: u64,
}

/// The rate limits of a config, by name.
pub(super) fn rate_limits(snapshot: &Snapshot, readings: &Readings) -> Vec<RateLimitReport> {
    let report = |(limit, state): (&RateLimit, &RateState)| {
        let RateReading { admitted, refused, would_refuse } = readings.rate(state.number());
        let (name, dry_run, crowded) = (limit.name.clone(), limit.dry_run, state.buckets.crowded());
        RateLimitReport { name, dry_run, admitted, refused, would_refuse, crowded }
    };
    snapshot.rates.by_name().into_iter().map(report).collect()
}

/// The access lists of a config that have a name, by that.
pub(super) fn access_lists(snapshot: &Snapshot) -> Vec<AccessListReport> {
    let listeners = snapshot.listeners.iter();
    let rules = listeners.flat_map(|listener| {
        let routes = listener.routes().iter();
        listener.access.iter().chain(routes.flat_map(|route| route.access.iter()))
    });
    let named = rules.filter_map(|rule| Some((rule.list.name.clone()?, rule.refused())));
    let by_name: BTreeMap<String, u64> = named.collect();
    by_name.into_iter().map(|(name, refused)| AccessListReport { name, refused }).collect()
}
