//! What all workers have counted of each row at one moment.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::model::Protocol;
use crate::message::{Blame, Cause, RouteId, TargetId};
use crate::snapshot::{Listener, Route, Snapshot};
use crate::targets::Target;
use crate::telemetry::cells::{
    BUCKETS, COARSE, Cells, CoarseReading, Distribution, SpanReading, StatusClass, Sums, Traffic,
};
use crate::tick::{Tick, nanos};

/// How long attempts at backends took to the first byte of their answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum FirstByte {
    /// That is not counted.
    #[default]
    Uncounted,
    Fine(Distribution),
    Coarse(Box<CoarseReading>),
}

/// How many there were, and how long they took together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spent {
    count: u64,
    time: Duration,
}

impl Spent {
    fn since(self, before: Spent) -> Option<Duration> {
        let count = u32::try_from(self.count.checked_sub(before.count)?).ok().filter(|count| *count > 0)?;
        Some(self.time.checked_sub(before.time)? / count)
    }
}

/// What was counted of one row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::admin) struct RowTally {
    /// The number of what it is about: of another one nothing was counted before.
    id: u32,
    /// Requests, tunnels and TCP connections that ended; of a backend: attempts.
    pub(in crate::admin) requests: u64,
    /// Answers from 500 on; of a TCP target connections that failed; of a backend also attempts that ended in its fault and were made again elsewhere.
    pub(in crate::admin) errors: u64,
    /// Requests under way; of a listener: connections.
    pub(in crate::admin) active: u64,
    first_byte: FirstByte,
    /// What of a request no backend was waited for.
    own: Spent,
}

/// How long things took between two moments, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(in crate::admin) struct TimesLately {
    /// To the first byte of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::admin) p50_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::admin) p99_ms: Option<f64>,
    /// What of a request no backend was waited for: the mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::admin) own_ms: Option<f64>,
}

impl RowTally {
    /// That of `before` if that was about the same.
    pub(in crate::admin) fn earlier<'b>(&self, before: Option<&'b RowTally>) -> Option<&'b RowTally> {
        before.filter(|before| before.id == self.id && before.requests <= self.requests)
    }

    /// So many requests of the one with this number.
    #[cfg(test)]
    pub(super) fn some(id: u32, requests: u64) -> RowTally {
        RowTally { id, requests, ..RowTally::default() }
    }

    /// The bytes that it takes, with its name.
    pub(super) fn bytes(&self, name: &str) -> usize {
        let buckets = match &self.first_byte {
            FirstByte::Uncounted => 0,
            FirstByte::Fine(_) => BUCKETS,
            FirstByte::Coarse(_) => COARSE,
        };
        size_of::<(String, RowTally)>() + name.len() + buckets * size_of::<u64>()
    }

    /// Requests and errors since `before`; `None`: since there is anything.
    pub(in crate::admin) fn since(&self, before: Option<&RowTally>) -> (u64, u64) {
        match self.earlier(before) {
            Some(before) => (self.requests - before.requests, self.errors.saturating_sub(before.errors)),
            None => (self.requests, self.errors),
        }
    }

    /// What is under way at a target, and how long things took there, is so of everything too.
    fn take_in(&mut self, target: &RowTally) {
        self.active += target.active;
        if let (FirstByte::Fine(all), FirstByte::Fine(own)) = (&mut self.first_byte, &target.first_byte) {
            all.merge(own);
        }
        self.own.count += target.own.count;
        self.own.time += target.own.time;
    }

    /// How long things took since `before`; `None`: since there is anything.
    pub(in crate::admin) fn times(&self, before: Option<&RowTally>) -> TimesLately {
        let before = self.earlier(before);
        let [p50_ms, p99_ms] = match &self.first_byte {
            FirstByte::Uncounted => [None; 2],
            FirstByte::Fine(now) => {
                let latest = match before.map(|before| &before.first_byte) {
                    Some(FirstByte::Fine(then)) => now.since(then),
                    _ => now.clone(),
                };
                [0.5, 0.99].map(|share| latest.middle(share))
            }
            FirstByte::Coarse(now) => {
                let latest = match before.map(|before| &before.first_byte) {
                    Some(FirstByte::Coarse(then)) => now.since(then),
                    _ => (**now).clone(),
                };
                [50, 99].map(|percent| latest.middle(percent))
            }
        };
        let own = self.own.since(before.map(|before| before.own).unwrap_or_default());
        TimesLately { p50_ms: p50_ms.map(millis), p99_ms: p99_ms.map(millis), own_ms: own.map(millis) }
    }
}

/// Milliseconds with three digits behind the point.
#[expect(clippy::cast_precision_loss, reason = "microseconds for people")]
fn millis(span: Duration) -> f64 {
    (nanos(span) / 1_000) as f64 / 1_000.0
}

/// The name of the row of everything.
pub(in crate::admin) const ALL: &str = "all";

/// All rows at one moment.
#[derive(Clone, Debug, Default)]
pub(in crate::admin) struct Shot {
    pub(in crate::admin) at: Tick,
    pub(in crate::admin) rows: BTreeMap<String, RowTally>,
}

impl Shot {
    /// What these workers have counted at `now`, by the names of this config. With many backends it takes a while.
    pub(in crate::admin) fn take(snapshot: &Snapshot, workers: &[Arc<Cells>], now: Tick) -> Shot {
        let sums = Sums::new(workers, snapshot.number, &snapshot.given.counted());
        let mut rows = BTreeMap::new();
        let mut ways: HashMap<TargetId, Vec<RouteId>> = HashMap::new();
        let mut all =
            RowTally { first_byte: FirstByte::Fine(Distribution::default()), ..RowTally::default() };
        for listener in &snapshot.listeners {
            let name = &listener.config.name;
            let counted = of_listener(&sums, listener);
            all.requests += counted.requests;
            all.errors += counted.errors;
            rows.insert(format!("listener/{name}"), counted);
            for route in listener.routes() {
                rows.insert(format!("route/{name}/{}", route.config.name), of_route(&sums, route));
                for way in &route.destinations {
                    ways.entry(way.target.id).or_default().push(way.id);
                }
            }
        }
        for target in &snapshot.targets {
            let name = &target.name;
            let ways = ways.remove(&target.id).unwrap_or_default();
            let mut active = 0;
            for backend in &target.backends {
                let reading = sums.backend(backend.id);
                let under_way = u64::from(backend.in_flight());
                active += under_way;
                let counted = RowTally {
                    id: backend.id.0,
                    requests: reading.attempts,
                    errors: reading.errors(),
                    active: under_way,
                    first_byte: FirstByte::Coarse(Box::new(reading.first_byte)),
                    own: Spent::default(),
                };
                rows.insert(format!("backend/{name}/{}", backend.name), counted);
            }
            let counted = of_target(&sums, target, &ways, active);
            all.take_in(&counted);
            if target.config.protocol != Protocol::Http {
                all.errors += counted.errors;
            }
            rows.insert(format!("target/{name}"), counted);
        }
        rows.insert(ALL.to_owned(), all);
        Shot { at: now, rows }
    }
}

fn errors(traffic: &Traffic) -> u64 {
    traffic.with(StatusClass::ServerError)
}

fn of_listener(sums: &Sums, listener: &Listener) -> RowTally {
    let traffic = sums.listener(listener.id);
    let active = listener.state.counts.taken() as u64;
    let (requests, errors) = (traffic.requests(), errors(&traffic));
    RowTally { id: listener.id.0.into(), requests, errors, active, ..RowTally::default() }
}

fn of_route(sums: &Sums, route: &Route) -> RowTally {
    let (mut requests, mut errors) = (0, 0);
    for id in route.ids() {
        let classes = sums.route(id);
        requests += classes.iter().sum::<u64>();
        errors += classes[StatusClass::ServerError as usize];
    }
    let own = own(sums, route.ids());
    RowTally { id: route.id.0.into(), requests, errors, own, ..RowTally::default() }
}

fn of_target(sums: &Sums, target: &Target, ways: &[RouteId], active: u64) -> RowTally {
    let traffic = sums.target(target.id);
    RowTally {
        id: target.id.0.into(),
        requests: traffic.requests(),
        errors: if target.config.protocol != Protocol::Http {
            failed(sums, target.id)
        } else {
            errors(&traffic)
        },
        active,
        first_byte: FirstByte::Fine(sums.first_byte(target.id)),
        own: own(sums, ways.iter().copied()),
    }
}

/// Connections of TCP that ended by the fault of a backend or of this machine: they have no status.
fn failed(sums: &Sums, target: TargetId) -> u64 {
    let is_client = |cause: Cause| matches!(cause.blame(), Blame::Client | Blame::Nobody);
    sums.faults(Some(target)).causes().filter(|(cause, _)| !is_client(*cause)).map(|(_, count)| count).sum()
}

fn own(sums: &Sums, routes: impl Iterator<Item = RouteId>) -> Spent {
    let mut sum = SpanReading::default();
    routes.for_each(|id| sum.merge(&sums.route_times(id)));
    Spent { count: sum.own.count(), time: sum.own.sum() }
}
