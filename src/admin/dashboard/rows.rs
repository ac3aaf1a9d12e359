//! The rows of the dashboard: the process, what is the matter, and each listener, target and backend.
//!
//! Counts are since the process began: whoever reads two frames knows what came between them, exactly. Times are of the latest seconds.
//! What says how long ago something was is left out: it would be another row each second.

use std::time::Duration;

use serde::Serialize;

use super::frame::Rows;
use super::verdict::troubles;
use crate::admin::status::report::{
    BackendReport, ConnectionReport, ListenerReport, StatusReport, TargetReport,
};
use crate::admin::status_routes::StatusSurvey;
use crate::telemetry::cells::{CoarseReading, Distribution, Readings};
use crate::tick::nanos;

#[derive(Serialize)]
struct ProcessRow<'r> {
    version: &'r str,
    name: &'r str,
    pid: u32,
    config: Option<&'r str>,
    config_number: u64,
    workers: usize,
    started_ms: u64,
    blocked: usize,
    connections: &'r ConnectionReport,
}

#[derive(Serialize)]
struct ListenerRow<'r> {
    protocol: &'r str,
    addresses: &'r [String],
    targets: &'r [String],
    connections: usize,
    requests: u64,
    errors: u64,
}

#[derive(Serialize)]
struct TargetRow<'r> {
    state: &'r str,
    reason: &'r str,
    since_ms: u64,
    protocol: &'r str,
    balance: &'r str,
    left: usize,
    of: usize,
    active: u64,
    waiting: usize,
    requests: u64,
    errors: u64,
    times: Option<Times>,
}

#[derive(Serialize)]
struct BackendRow<'r> {
    state: &'r str,
    source: &'r str,
    reason: &'r str,
    since_ms: u64,
    address: &'r str,
    zone: Option<&'r str>,
    weight: u16,
    share: f64,
    priority: u8,
    active: u32,
    requests: u64,
    errors: u64,
    times: Option<Times>,
}

/// Until the first byte of the answer, in milliseconds.
#[derive(Serialize)]
struct Times {
    p50_ms: f64,
    p99_ms: f64,
}

/// All rows. `before`: what was counted some seconds ago.
pub(super) fn rows(seen: &StatusSurvey, before: Option<&Readings>) -> Rows {
    let StatusSurvey { report, sources, not_ready } = seen;
    let mut rows = Rows::new();
    let process = process(report);
    put(&mut rows, "process".to_owned(), &process);
    put(&mut rows, "troubles".to_owned(), &troubles(report, not_ready));
    for listener in &report.listeners {
        put(&mut rows, format!("listener/{}", listener.name), &listener_row(listener));
    }
    for (target, own) in report.targets.iter().zip(&sources.snapshot.targets) {
        let reading = sources.readings.target(own.id).map(|reading| &reading.stages.first_byte);
        let earlier =
            before.and_then(|before| before.target(own.id)).map(|reading| &reading.stages.first_byte);
        let times = reading.and_then(|reading| latest(reading, earlier));
        put(&mut rows, format!("target/{}", target.name), &target_row(target, times));
        for (backend, own) in target.backends.iter().zip(&own.backends) {
            let reading = sources.readings.backend(own.id).map(|reading| &reading.first_byte);
            let earlier = before.and_then(|before| before.backend(own.id)).map(|reading| &reading.first_byte);
            let times = reading.and_then(|reading| latest_coarse(reading, earlier));
            let name = format!("backend/{}/{}", target.name, backend.name);
            put(&mut rows, name, &backend_row(backend, times));
        }
    }
    rows
}

fn put(rows: &mut Rows, name: String, row: &impl Serialize) {
    // None of our types fails: they have texts for keys.
    rows.insert(name, serde_json::to_string(row).unwrap_or_default());
}

fn process(report: &StatusReport) -> ProcessRow<'_> {
    let own = &report.process;
    ProcessRow {
        version: &own.version,
        name: &own.name,
        pid: own.pid,
        config: own.config.as_deref(),
        config_number: own.config_number,
        workers: own.workers,
        started_ms: own.started_ms,
        blocked: own.blocked,
        connections: &report.connections,
    }
}

fn listener_row(of: &ListenerReport) -> ListenerRow<'_> {
    ListenerRow {
        protocol: &of.protocol,
        addresses: &of.addresses,
        targets: &of.targets,
        connections: of.connections,
        requests: of.traffic.requests,
        errors: of.traffic.by_class.get("5xx").copied().unwrap_or_default(),
    }
}

fn target_row(of: &TargetReport, times: Option<Times>) -> TargetRow<'_> {
    TargetRow {
        state: &of.state,
        reason: &of.reason,
        since_ms: of.since_ms,
        protocol: &of.protocol,
        balance: &of.balance,
        left: of.left,
        of: of.of,
        active: of.active,
        waiting: of.waiting,
        requests: of.traffic.requests,
        errors: of.traffic.by_class.get("5xx").copied().unwrap_or_default(),
        times,
    }
}

fn backend_row(of: &BackendReport, times: Option<Times>) -> BackendRow<'_> {
    BackendRow {
        state: &of.state,
        source: &of.source,
        reason: &of.reason,
        since_ms: of.since_ms,
        address: &of.address,
        zone: of.zone.as_deref(),
        weight: of.weight,
        share: of.share,
        priority: of.priority,
        active: of.active,
        requests: of.attempts,
        errors: of.failures,
        times,
    }
}

fn latest(now: &Distribution, before: Option<&Distribution>) -> Option<Times> {
    let latest = before.map(|before| now.since(before));
    let of = latest.as_ref().unwrap_or(now);
    Some(Times { p50_ms: millis(of.quantile(0.5)?), p99_ms: millis(of.quantile(0.99)?) })
}

fn latest_coarse(now: &CoarseReading, before: Option<&CoarseReading>) -> Option<Times> {
    let latest = before.map(|before| now.since(before));
    let of = latest.as_ref().unwrap_or(now);
    Some(Times { p50_ms: millis(of.percentile(50)?), p99_ms: millis(of.percentile(99)?) })
}

/// Milliseconds with three digits behind the point.
#[expect(clippy::cast_precision_loss, reason = "microseconds for people")]
fn millis(span: Duration) -> f64 {
    (nanos(span) / 1_000) as f64 / 1_000.0
}
