//! What a target does about backends that fail, and about more requests than they can take.

use std::time::Duration;

use super::show::show_statuses;
use crate::config::edit::Fix;
use crate::config::effective::EffectiveRows;
use crate::config::error::quoted;
use crate::config::model::resilience::{BreakerConfig, Hedging, Outlier, Resilience, Retries};
use crate::config::model::{GrpcStatuses, Protocol};
use crate::config::origin::{Field, Spot, Written};
use crate::config::raw::{Condition, InFlight, RawBreaker, RawHedging, RawOutlier, RawRetries, RawTarget};
use crate::config::report::Report;
use crate::config::units::show_duration;

/// Makes the accepted form.
pub(super) fn accept(
    raw: &RawTarget,
    protocol: Option<Protocol>,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Resilience {
    let written = &raw.resilience;
    let is_http = protocol == Some(Protocol::Http);
    if protocol.is_some_and(|protocol| protocol != Protocol::Http) {
        refuse_http_conditions(raw, protocol.unwrap_or(Protocol::Tcp), report);
    } else {
        refuse_grpc_conditions(raw, report);
    }
    let default = Resilience::default();
    let mut rows = TargetRows { target: &raw.name.value, all: rows };
    let absent = (RawBreaker::default(), RawOutlier::default(), RawRetries::default());
    let breaker = rows.group("breaker", &written.breaker, &absent.0);
    let breaker = breaker.map(|raw| self::breaker(raw, is_http, &mut rows));
    let outlier = rows.group("outlier", &written.outlier, &absent.1);
    let outlier = outlier.map(|raw| self::outlier(raw, report, &mut rows));
    let retries = if protocol == Some(Protocol::Udp) {
        // Of what was sent nobody knows whether it has arrived.
        None
    } else {
        let retries = rows.group("retries", &written.retries, &absent.2);
        retries.map(|raw| self::retries(raw, is_http, &mut rows))
    };
    let hedging = if is_http { hedging(raw, &mut rows) } else { None };
    let in_flight = rows.settle("max_in_flight", written.max_in_flight.as_ref(), None, show_in_flight);
    Resilience {
        queue: queue(raw, in_flight.is_some(), default.queue, report, &mut rows),
        panic_threshold: panic_threshold(raw, outlier.is_some(), default.panic_threshold, report, &mut rows),
        breaker,
        outlier,
        retries,
        hedging,
        max_in_flight: match in_flight {
            Some(InFlight::Number(number)) => Some(number),
            Some(InFlight::Adaptive) | None => None,
        },
        adaptive: in_flight == Some(InFlight::Adaptive),
    }
}

fn show_in_flight(in_flight: &Option<InFlight>) -> String {
    match in_flight {
        None => "off".to_owned(),
        Some(InFlight::Number(number)) => number.to_string(),
        Some(InFlight::Adaptive) => "adaptive".to_owned(),
    }
}

/// The rows of one target.
struct TargetRows<'a> {
    target: &'a str,
    all: &'a mut EffectiveRows,
}

impl TargetRows<'_> {
    /// The written value, or the default; either is noted.
    fn settle<T: Clone>(
        &mut self,
        key: &str,
        written: Option<&Written<T>>,
        default: T,
        show: impl Fn(&T) -> String,
    ) -> T {
        self.all.settle(format!("targets.{}.{key}", self.target), written, default, show)
    }

    /// The same for a time.
    fn time(&mut self, key: &str, written: Option<&Written<Duration>>, default: Duration) -> Duration {
        self.settle(key, written, default, |time| show_duration(*time))
    }

    /// The same for a number that is `off` when it is 0, with something behind it.
    fn or_off(&mut self, key: &str, written: Option<&Written<u8>>, default: u8, unit: &str) -> u8 {
        self.settle(key, written, default, |number| match number {
            0 => "off".to_owned(),
            number => format!("{number}{unit}"),
        })
    }

    /// The same for a percentage.
    fn percent(&mut self, key: &str, written: Option<&Written<u8>>, default: u8) -> u8 {
        self.settle(key, written, default, |percent| format!("{percent}%"))
    }

    /// What is written in a group; `None`: it is `off`, which is noted.
    fn group<'r, T>(
        &mut self,
        key: &str,
        written: &'r Option<Written<Option<T>>>,
        absent: &'r T,
    ) -> Option<&'r T> {
        match written {
            None => Some(absent),
            Some(Written { value: Some(group), .. }) => Some(group),
            Some(Written { value: None, spot }) => {
                self.all.note(format!("targets.{}.{key}", self.target), "off", spot.origin.clone());
                None
            }
        }
    }
}

fn breaker(raw: &RawBreaker, is_http: bool, rows: &mut TargetRows<'_>) -> BreakerConfig {
    let default = BreakerConfig::default();
    BreakerConfig {
        failures: rows.settle("breaker.failures", raw.failures.as_ref(), default.failures, u32::to_string),
        open: rows.time("breaker.open", raw.open.as_ref(), default.open),
        open_is_default: raw.open.is_none(),
        statuses: match is_http {
            false => default.statuses,
            true => rows.settle("breaker.statuses", raw.statuses.as_ref(), default.statuses, |statuses| {
                if statuses.is_empty() { "none".to_owned() } else { show_statuses(statuses) }
            }),
        },
    }
}

fn outlier(raw: &RawOutlier, report: &mut Report, rows: &mut TargetRows<'_>) -> Outlier {
    let default = Outlier::default();
    let written = match &raw.ejection {
        Field::Given(written) => Some(written),
        Field::Absent | Field::Faulty => None,
    };
    let failures = rows.or_off("outlier.failures", raw.failures.as_ref(), default.failures, "");
    let error_rate = rows.or_off("outlier.error_rate", raw.error_rate.as_ref(), default.error_rate, "%");
    let latency = rows.or_off("outlier.latency", raw.latency.as_ref(), default.latency, "");
    let window = rows.time("outlier.window", raw.window.as_ref(), default.window);
    let requests = rows.settle("outlier.requests", raw.requests.as_ref(), default.requests, u32::to_string);
    let ejection = rows.time("outlier.ejection", written, default.ejection);
    // Who asks for a long first time wants no shorter ones after it.
    let longest = default.ejection_max.max(ejection);
    let ejection_max = rows.time("outlier.ejection_max", raw.ejection_max.as_ref(), longest);
    let max_ejected = rows.percent("outlier.max_ejected", raw.max_ejected.as_ref(), default.max_ejected);
    if let (true, Some(written)) = (ejection_max < ejection, &raw.ejection_max)
        && !matches!(raw.ejection, Field::Faulty)
    {
        let (most, first) = (show_duration(ejection_max), show_duration(ejection));
        let by_default = if matches!(raw.ejection, Field::Absent) { ", the default" } else { "" };
        let message =
            format!("`ejection_max` is {most}, which is less than `ejection` ({first}{by_default})");
        report.spot(&written.spot, message).expected(format!("a time from {first} on")).hint(format!("write `{first}`"), Fix::Value(first)).note(
            "`ejection` is how long a backend is left out the first time, `ejection_max` how long at most",
        );
    }
    Outlier { failures, error_rate, latency, window, requests, ejection, ejection_max, max_ejected }
}

fn retries(raw: &RawRetries, is_http: bool, rows: &mut TargetRows<'_>) -> Retries {
    let mut default = Retries::default();
    if !is_http {
        // Once bytes went to a backend nobody knows what it did with them.
        default = Retries { on_reset: false, on_statuses: Vec::new(), ..default };
    }
    let attempts = rows.settle("retries.attempts", raw.attempts.as_ref(), default.attempts, u8::to_string);
    let on = raw.on.as_ref().map(|written| Written::new(chosen(&default, written), written.spot.clone()));
    let retries = rows.settle("retries.on", on.as_ref(), default, show_conditions);
    if !is_http {
        return Retries { attempts, ..retries };
    }
    let budget = rows.percent("retries.budget", raw.budget.as_ref(), retries.budget);
    let backoff = rows.settle("retries.backoff", raw.backoff.as_ref(), retries.backoff, |time| match *time {
        Duration::ZERO => "off".to_owned(),
        time => show_duration(time),
    });
    Retries { attempts, budget, backoff, ..retries }
}

/// The conditions that are written, and no others.
fn chosen(default: &Retries, written: &Written<Vec<Written<Condition>>>) -> Retries {
    let has = |condition| written.value.iter().any(|written| written.value == condition);
    let statuses = written.value.iter().filter_map(|written| match &written.value {
        Condition::Statuses(statuses) => Some(statuses.clone()),
        Condition::Connect | Condition::Reset | Condition::Timeout | Condition::Grpc(_) => None,
    });
    Retries {
        on_connect: has(Condition::Connect),
        on_reset: has(Condition::Reset),
        on_timeout: has(Condition::Timeout),
        on_statuses: statuses.collect(),
        on_grpc: GrpcStatuses::of(|status| has(Condition::Grpc(status))),
        ..default.clone()
    }
}

fn show_conditions(retries: &Retries) -> String {
    let named = [retries.on_connect, retries.on_reset, retries.on_timeout];
    let named = Condition::NAMED.iter().zip(named).filter(|(_, on)| *on).map(|((name, _), _)| *name);
    let statuses = retries.on_statuses.iter().map(|range| show_statuses(std::slice::from_ref(range)));
    let calls = retries.on_grpc.iter().map(|status| status.name().to_owned());
    let shown: Vec<String> = named.map(str::to_owned).chain(statuses).chain(calls).collect();
    match shown.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

/// Only calls of gRPC end with one of its statuses.
fn refuse_grpc_conditions(raw: &RawTarget, report: &mut Report) {
    if raw.upstream_protocol.as_ref().is_some_and(|written| written.value.is_grpc()) {
        return;
    }
    let Some(Written { value: Some(RawRetries { on: Some(on), .. }), .. }) = &raw.resilience.retries else {
        return;
    };
    for condition in &on.value {
        if let Condition::Grpc(status) = &condition.value {
            let (name, target) = (status.name(), quoted(&raw.name.value));
            let message =
                format!("`{name}` in `on` is a status of gRPC, which the target {target} does not speak");
            report
                .spot(&condition.spot, message)
                .expected("`connect`, `reset`, `timeout` or statuses of HTTP")
                .note("set `upstream_protocol: grpc`, or remove it");
        }
    }
}

/// A TCP target can only repeat what was never sent.
fn refuse_http_conditions(raw: &RawTarget, protocol: Protocol, report: &mut Report) {
    let Some(Written { value: Some(RawRetries { on: Some(on), .. }), .. }) = &raw.resilience.retries else {
        return;
    };
    for condition in &on.value {
        let shown = match &condition.value {
            Condition::Connect => continue,
            Condition::Statuses(statuses) => show_statuses(std::slice::from_ref(statuses)),
            Condition::Reset => "reset".to_owned(),
            Condition::Timeout => "timeout".to_owned(),
            Condition::Grpc(status) => status.name().to_owned(),
        };
        let target = quoted(&raw.name.value);
        let spoken = protocol.as_str();
        let message = format!("`{shown}` in `on` belongs to HTTP, but the target {target} speaks {spoken}");
        report
            .spot(&condition.spot, message)
            .expected("`connect`")
            .note("set `protocol: http`, or remove it");
    }
}

fn hedging(raw: &RawTarget, rows: &mut TargetRows<'_>) -> Option<Hedging> {
    let Some(written) = &raw.resilience.hedging else {
        return rows.settle("hedging", None, None, |_| "off".to_owned());
    };
    let default = Hedging::default();
    let absent = RawHedging::default();
    let hedging = rows.group("hedging", &raw.resilience.hedging, &absent)?;
    // That it is on at all was said here, whatever is left to the defaults.
    rows.all.note(format!("targets.{}.hedging", rows.target), "on", written.spot.origin.clone());
    let percentile = hedging.percentile.as_ref();
    Some(Hedging {
        percentile: rows.settle("hedging.percentile", percentile, default.percentile, u8::to_string),
        budget: rows.percent("hedging.budget", hedging.budget.as_ref(), default.budget),
    })
}

/// How many requests may wait. `is_limited`: there is something to wait for.
fn queue(
    raw: &RawTarget,
    is_limited: bool,
    default: u32,
    report: &mut Report,
    rows: &mut TargetRows<'_>,
) -> u32 {
    let (size, is_off) = match &raw.resilience.queue {
        None => (None, false),
        Some(Written { value: Some(queue), spot }) => {
            warn_of_idle("queue", spot, is_limited, raw, report);
            (queue.size.clone(), false)
        }
        Some(Written { value: None, spot }) => (Some(Written::new(0, spot.clone())), true),
    };
    if let Some(written) = &raw.timeouts.queue {
        warn_of_idle("timeouts.queue", &written.spot, is_limited && !is_off, raw, report);
    }
    match size {
        None if !is_limited => default,
        Some(Written { value: 0, spot }) => {
            rows.all.note(format!("targets.{}.queue", rows.target), "off", spot.origin);
            0
        }
        size => rows.settle("queue.size", size.as_ref(), default, u32::to_string),
    }
}

/// A limit may be off for a while; what belongs to it may stay where it is.
fn warn_of_idle(key: &str, spot: &Spot, has_effect: bool, raw: &RawTarget, report: &mut Report) {
    if !has_effect {
        let target = quoted(&raw.name.value);
        report.warn(spot, &format!("`{key}` of the target {target} has no effect: no request waits without `max_in_flight` and `queue`"));
    }
}

/// `is_on`: there are ejections that can be set aside.
fn panic_threshold(
    raw: &RawTarget,
    is_on: bool,
    default: u8,
    report: &mut Report,
    rows: &mut TargetRows<'_>,
) -> u8 {
    let written = raw.resilience.panic_threshold.as_ref();
    if let Some(written) = written.filter(|written| !is_on && written.value > 0) {
        let target = quoted(&raw.name.value);
        let message = format!("`panic_threshold` of the target {target} has no effect: `outlier` is `off`");
        report.warn(&written.spot, &message);
    }
    if !is_on && written.is_none() {
        return default;
    }
    rows.or_off("panic_threshold", written, default, "%")
}
