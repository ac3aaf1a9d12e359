//! What is inside of evenkeel: the process and its workers, the cache, limits, and what was changed by hand.

use std::collections::BTreeMap;

use serde::Serialize;

use super::sources::{RowSources, put};
use crate::admin::dashboard::frame::Rows;
use crate::admin::hand_routes::overlay_entries;
use crate::admin::status::report::{ConnectionReport, StatusReport, UpstreamReport};
use crate::overlay::{BlockedReport, EntryReport};
use crate::telemetry::cells::{Cells, DurationReading};

/// As many entries of a list are told of; how many there are is told in any case.
const LISTED: usize = 50;

#[derive(Serialize)]
struct ProcessRow<'r> {
    version: &'r str,
    name: &'r str,
    pid: u32,
    /// A number of this process, by which it is told from one before it.
    born: u32,
    config: Option<&'r str>,
    config_number: u64,
    workers: usize,
    started_ms: u64,
    connections: &'r ConnectionReport,
    upstream: &'r UpstreamReport,
    causes: &'r BTreeMap<String, u64>,
    trial: Option<TrialRow<'r>>,
}

#[derive(Serialize)]
struct TrialRow<'r> {
    who: &'r str,
    since_ms: u64,
    ends_ms: u64,
}

#[derive(Serialize)]
struct WorkerRow {
    requests: u64,
    connections: u64,
    /// How often its event loop was looked at.
    looks: u64,
    /// How late it was at these, together.
    late_us: u64,
}

/// Changes by hand, or networks that are kept out.
#[derive(Serialize)]
struct ListRow<T> {
    count: usize,
    entries: Vec<T>,
}

#[derive(Serialize)]
struct HandRow {
    object: String,
    field: &'static str,
    value: Option<String>,
    file_says: Option<String>,
    author: String,
    at_ms: u64,
    expires_ms: Option<u64>,
    aside: Option<String>,
}

#[derive(Serialize)]
struct BlockRow {
    network: String,
    author: String,
    at_ms: u64,
    expires_ms: Option<u64>,
}

#[derive(Serialize)]
struct ListRefusals {
    refused: u64,
}

pub(super) fn put_all(rows: &mut Rows, from: &RowSources<'_>) {
    let report = &from.seen.report;
    let reloader = &from.api.running.reloader;
    put(rows, "process".to_owned(), &process(report, from.api.frames.born()));
    put(rows, "cache".to_owned(), &report.cache);
    for (number, cells) in reloader.cells.iter().enumerate() {
        put(rows, format!("worker/{number}"), &worker(cells));
    }
    for limit in &report.rate_limits {
        put(rows, format!("limit/{}", limit.name), limit);
    }
    for list in &report.access_lists {
        put(rows, format!("list/{}", list.name), &ListRefusals { refused: list.refused });
    }
    for (number, webhook) in report.webhooks.iter().enumerate() {
        put(rows, format!("webhook/{number}"), webhook);
    }
    put(rows, "blocked".to_owned(), &blocked(from));
    put(rows, "overlay".to_owned(), &overlay(from));
}

fn process(report: &StatusReport, born: u32) -> ProcessRow<'_> {
    let own = &report.process;
    ProcessRow {
        version: &own.version,
        name: &own.name,
        pid: own.pid,
        born,
        config: own.config.as_deref(),
        config_number: own.config_number,
        workers: own.workers,
        started_ms: own.started_ms,
        connections: &report.connections,
        upstream: &report.upstream,
        causes: &report.causes,
        trial: own.trial.as_ref().map(|trial| TrialRow {
            who: &trial.who,
            since_ms: trial.since_ms,
            ends_ms: trial.since_ms.saturating_add(trial.window_ms),
        }),
    }
}

fn worker(cells: &Cells) -> WorkerRow {
    let mut late = DurationReading::default();
    late.add(&cells.lateness);
    WorkerRow {
        requests: cells.ended(),
        connections: u64::try_from(cells.connections.open.value()).unwrap_or(0),
        looks: late.count(),
        late_us: u64::try_from(late.sum().as_micros()).unwrap_or(u64::MAX),
    }
}

fn blocked(from: &RowSources<'_>) -> ListRow<BlockRow> {
    let all = from.api.running.blocked_reports();
    let row = |report: &BlockedReport| BlockRow {
        network: report.entry.network.to_string(),
        author: report.entry.author.to_string(),
        at_ms: report.entry.at_ms,
        expires_ms: report.entry.expires_ms,
    };
    ListRow { count: all.len(), entries: all.iter().take(LISTED).map(row).collect() }
}

fn overlay(from: &RowSources<'_>) -> ListRow<HandRow> {
    let all = overlay_entries(from.api);
    let row = |report: &EntryReport| HandRow {
        object: report.entry.object.to_string(),
        field: report.entry.change.field().as_str(),
        value: report.entry.change.value(),
        file_says: report.file_says.clone(),
        author: report.entry.author.to_string(),
        at_ms: report.entry.at_ms,
        expires_ms: report.entry.expires_ms,
        aside: report.aside.clone(),
    };
    ListRow { count: all.len(), entries: all.iter().take(LISTED).map(row).collect() }
}
