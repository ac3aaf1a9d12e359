//! Who may ask and tell the process things over TCP, and where metrics are given.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use super::{telling, tls};
use crate::config::effective::{EffectiveRows, number_of};
use crate::config::model::{AdminAccess, AdminToken, MetricsConfig};
use crate::config::origin::{Field, Origin, Place, SourceFile, Spot, Written};
use crate::config::raw::{BindHost, RawAdmin, RawListener, RawMetrics};
use crate::config::report::Report;
use crate::config::token_file;

/// Makes the accepted form; `None`: it does not listen.
pub(super) fn accept(
    raw: &RawAdmin,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Option<Arc<AdminAccess>> {
    let (listener, spot) = match &raw.listener {
        Field::Given(Written { value: Some(listener), spot }) => (listener, spot),
        Field::Given(Written { value: None, spot }) => {
            rows.note("admin.listener", "off", spot.origin.clone());
            refuse_idle(raw, report);
            return None;
        }
        Field::Absent => {
            rows.note("admin.listener", "off", Origin::Default);
            refuse_idle(raw, report);
            return None;
        }
        Field::Faulty => return None,
    };
    let (host, binds) = binds(listener);
    let port = binds.first().map_or(0, SocketAddr::port);
    rows.note("admin.listener", format!("{host}:{port}"), spot.origin.clone());
    let tokens = match &raw.token_file {
        Field::Given(written) => Some(tokens(written, report, rows)),
        Field::Faulty => Some(Vec::new()),
        Field::Absent => {
            rows.note("admin.token_file", "none: anybody on this machine may look", Origin::Default);
            None
        }
    };
    let hosts = rows.settle("admin.hosts", raw.hosts.as_ref(), Vec::new(), |hosts: &Vec<String>| {
        format!("[{}]", hosts.join(", "))
    });
    let configure_over_tcp =
        rows.settle("admin.configure_over_tcp", raw.configure_over_tcp.as_ref(), false, ToString::to_string);
    if let (Some(Written { value: true, spot }), Field::Absent) = (&raw.configure_over_tcp, &raw.token_file) {
        report
            .spot(spot, "`configure_over_tcp` has no effect without `token_file`")
            .note("without tokens the admin API can only be looked at over TCP");
    }
    let tls = match &raw.tls {
        Field::Given(written) => {
            let path = |key: &str| format!("admin.tls.{key}");
            Some(Arc::new(tls::served(
                written,
                "`admin`",
                &tls::acme::AcmeTerms::default(),
                &path,
                report,
                rows,
            )))
        }
        Field::Faulty | Field::Absent => None,
    };
    let is_public = !binds.iter().all(|address| address.ip().to_canonical().is_loopback());
    if is_public && tokens.is_none() {
        report
            .spot(
                spot,
                format!("`admin.listener` is `{host}:{port}`, which other machines reach, without tokens"),
            )
            .expected("`token_file`, a file with lines `name scope token`")
            .note("or let it listen on `127.0.0.1`: without tokens it can only be looked at there");
    }
    if is_public && matches!(raw.tls, Field::Absent) {
        report.warn(spot, "`admin.listener` has no `tls`, so tokens pass the network as they are");
    }
    Some(Arc::new(AdminAccess { binds, tokens, hosts, configure_over_tcp, tls }))
}

/// Where it is written that it listens.
pub(super) fn spot(raw: &RawAdmin) -> Option<&Spot> {
    if let Field::Given(written) = &raw.listener { Some(&written.spot) } else { None }
}

/// The accepted form of `metrics`.
pub(super) fn accept_metrics(raw: &RawMetrics, rows: &mut EffectiveRows) -> MetricsConfig {
    let binds = metrics_binds(raw, rows);
    MetricsConfig { binds, statsd: telling::statsd::accept(raw.statsd.as_ref(), rows) }
}

fn metrics_binds(raw: &RawMetrics, rows: &mut EffectiveRows) -> Vec<SocketAddr> {
    let (listener, origin) = match &raw.listener {
        Field::Given(written) => (written.value.as_ref(), written.spot.origin.clone()),
        Field::Absent => (None, Origin::Default),
        Field::Faulty => return Vec::new(),
    };
    let Some(listener) = listener else {
        rows.note("metrics.listener", "off", origin);
        return Vec::new();
    };
    let (host, binds) = binds(listener);
    let port = binds.first().map_or(0, SocketAddr::port);
    rows.note("metrics.listener", format!("{host}:{port}"), origin);
    binds
}

/// Where it is written that metrics are given.
pub(super) fn metrics_spot(raw: &RawMetrics) -> Option<&Spot> {
    if let Field::Given(written) = &raw.listener { Some(&written.spot) } else { None }
}

/// A key without effect is a misunderstanding, so it is refused.
fn refuse_idle(raw: &RawAdmin, report: &mut Report) {
    let Some((key, spot)) = &raw.idle else { return };
    report
        .spot(spot, format!("`{key}` has no effect without `listener`"))
        .note("add `listener: 127.0.0.1:9900`, or remove it: the unix socket needs none of this");
}

/// A port alone is one of this machine, whatever `address` says: nobody is to open this by the way.
fn binds(listener: &RawListener) -> (BindHost, Vec<SocketAddr>) {
    let (host, port) = match *listener {
        RawListener::Port(port) => (BindHost::Ip(Ipv4Addr::LOCALHOST.into()), port),
        RawListener::At(host, port) => (host, port),
        // Refused where it is read.
        RawListener::Unix(_) => (BindHost::Ip(Ipv4Addr::LOCALHOST.into()), 0),
    };
    let ips: Vec<IpAddr> = match host {
        BindHost::Ip(ip) => vec![ip],
        BindHost::Any => vec![Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()],
    };
    (host, ips.into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
}

fn tokens(written: &Written<PathBuf>, report: &mut Report, rows: &mut EffectiveRows) -> Vec<AdminToken> {
    let text = match token_file::read(&written.value) {
        Ok(text) => text,
        Err(wrong) => {
            report.wrong(&written.spot, "`token_file`", wrong);
            return Vec::new();
        }
    };
    let content = number_of([text.as_bytes()]);
    let origin = written.spot.origin.clone();
    rows.note_file("admin.token_file".to_owned(), &written.value, origin, Some(content));
    let (tokens, wrong) = token_file::parse(&text);
    if !wrong.is_empty() {
        // Which lines it has may be shown, and nothing of what is in them.
        let file = report.add(SourceFile::new(&written.value, &token_file::masked(&text)));
        if let Some(place) = written.spot.place {
            report.bring(file, place);
        }
        for one in wrong {
            let (column, width) = one.span;
            let place = Place { file, ..Place::new(one.line, column, width) };
            report.at(place, one.message).expected(one.expected);
        }
    }
    tokens
}
