//! What requests go through: listeners, routes, targets, backends.

use serde::Serialize;

use super::sources::{RowSources, put};
use crate::admin::dashboard::frame::Rows;
use crate::admin::history::{ALL, RowTally, TimesLately};
use crate::admin::status::report::{BackendReport, CertificateReport, ListenerReport, TargetReport};
use crate::config::model::route::Action;
use crate::snapshot::Route;

#[derive(Serialize)]
struct AllRow {
    active: u64,
    waiting: usize,
    requests: u64,
    errors: u64,
    times: TimesLately,
}

#[derive(Serialize)]
struct ListenerRow<'r> {
    protocol: &'r str,
    addresses: &'r [String],
    /// Names of its routes, in the order of the file.
    routes: Vec<&'r str>,
    targets: &'r [String],
    connections: usize,
    limit: Option<usize>,
    certificates: &'r [CertificateReport],
    requests: u64,
    errors: u64,
}

#[derive(Serialize)]
struct RouteRow<'r> {
    /// `forward`, `split`, `redirect` or `respond`.
    does: &'static str,
    targets: Vec<&'r str>,
    /// What each of them gets of its requests, in percent.
    parts: Vec<u32>,
    requests: u64,
    errors: u64,
    times: TimesLately,
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
    max_in_flight: Option<u32>,
    scale: Option<&'r str>,
    requests: u64,
    errors: u64,
    times: TimesLately,
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
    times: TimesLately,
}

pub(super) fn put_all(rows: &mut Rows, from: &RowSources<'_>) {
    let report = &from.seen.report;
    let ((requests, errors), times) = from.counted(ALL);
    let active = report.targets.iter().map(|target| target.active).sum();
    let waiting = report.targets.iter().map(|target| target.waiting).sum();
    put(rows, ALL.to_owned(), &AllRow { active, waiting, requests, errors, times });
    for (listener, own) in report.listeners.iter().zip(&from.seen.sources.snapshot.listeners) {
        let routes = own.routes();
        let name = format!("listener/{}", listener.name);
        let row = listener_row(listener, routes, from.counted(&name).0);
        put(rows, name, &row);
        for route in routes {
            let name = format!("route/{}/{}", listener.name, route.config.name);
            let row = route_row(route, from.counted(&name));
            put(rows, name, &row);
        }
    }
    for target in &report.targets {
        let name = format!("target/{}", target.name);
        let row = target_row(target, from.counted(&name));
        put(rows, name, &row);
        for backend in &target.backends {
            let name = format!("backend/{}/{}", target.name, backend.name);
            let row = backend_row(backend, from.counted(&name));
            put(rows, name, &row);
        }
    }
}

impl RowSources<'_> {
    /// Requests and errors of a row since the process began, and how long things took of late.
    fn counted(&self, name: &str) -> ((u64, u64), TimesLately) {
        let nothing = RowTally::default();
        let now = self.now.rows.get(name).unwrap_or(&nothing);
        let times = now.times(self.earlier.and_then(|earlier| earlier.rows.get(name)));
        ((now.requests, now.errors), times)
    }
}

fn listener_row<'r>(
    of: &'r ListenerReport,
    routes: &'r [Route],
    (requests, errors): (u64, u64),
) -> ListenerRow<'r> {
    ListenerRow {
        protocol: &of.protocol,
        addresses: &of.addresses,
        routes: routes.iter().map(|route| route.config.name.as_str()).collect(),
        targets: &of.targets,
        connections: of.connections,
        limit: of.connections_limit,
        certificates: &of.certificates,
        requests,
        errors,
    }
}

fn route_row(of: &Route, ((requests, errors), times): ((u64, u64), TimesLately)) -> RouteRow<'_> {
    let does = match &of.config.action {
        Action::Forward(_) => "forward",
        Action::Split(_) => "split",
        Action::Redirect(_) => "redirect",
        Action::Respond(_) => "respond",
    };
    let targets: Vec<&str> = of.destinations.iter().map(|way| &*way.target.name).collect();
    let parts = match &of.config.action {
        Action::Split(split) => {
            let all: u64 = split.sides.iter().map(|side| u64::from(side.weight)).sum();
            let part = |weight: u32| u32::try_from(u64::from(weight) * 100 / all.max(1)).unwrap_or(100);
            split.sides.iter().map(|side| part(side.weight)).collect()
        }
        _ => vec![100; targets.len()],
    };
    RouteRow { does, targets, parts, requests, errors, times }
}

fn target_row(of: &TargetReport, ((requests, errors), times): ((u64, u64), TimesLately)) -> TargetRow<'_> {
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
        max_in_flight: of.max_in_flight,
        scale: of.scale.as_deref(),
        requests,
        errors,
        times,
    }
}

fn backend_row(of: &BackendReport, ((requests, errors), times): ((u64, u64), TimesLately)) -> BackendRow<'_> {
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
        requests,
        errors,
        times,
    }
}
