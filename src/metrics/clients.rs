//! What comes from clients: connections, requests, bytes, handshakes.

use super::family::{Family, each};
use super::sources::{RouteSubject, ScrapeSources};
use crate::telemetry::cells::{ByClass, StatusClass};
use crate::telemetry::exposition::{Labels, SampleSink};

pub(super) const FAMILIES: &[Family] = &[
    Family::counter(
        "evenkeel_requests_total",
        &["listener", "route", "class"],
        "Requests, tunnels and TCP connections that ended, by the class of the status that the client got.",
        requests,
    ),
    Family::counter(
        "evenkeel_request_body_bytes_total",
        &["listener"],
        "Bytes of bodies, tunnels and TCP connections from clients.",
        |sources, from, out| {
            each(&sources.listeners, from, out, |out, one| {
                out.count(&one.labels, sources.sums.listener(one.listener.id).bytes_in);
            })
        },
    ),
    Family::counter(
        "evenkeel_response_body_bytes_total",
        &["listener"],
        "Bytes of bodies, tunnels and TCP connections to clients.",
        |sources, from, out| {
            each(&sources.listeners, from, out, |out, one| {
                out.count(&one.labels, sources.sums.listener(one.listener.id).bytes_out);
            })
        },
    ),
    Family::gauge(
        "evenkeel_listener_connections",
        &["listener"],
        "Connections of clients that are open.",
        |sources, from, out| {
            each(&sources.listeners, from, out, |out, one| {
                out.count(&one.labels, one.listener.state.counts.taken() as u64);
            })
        },
    ),
    Family::counter(
        "evenkeel_connections_accepted_total",
        &[],
        "Connections that were accepted, also those that were turned away then.",
        |sources, _, out| one(out, sources.overall.connections.accepted),
    ),
    Family::counter(
        "evenkeel_connections_refused_total",
        &[],
        "Connections that were turned away because of a limit of connections.",
        |sources, _, out| one(out, sources.overall.connections.refused),
    ),
    Family::gauge(
        "evenkeel_connections",
        &[],
        "Connections of clients that are open, over all listeners.",
        |sources, _, out| one(out, sources.control.connections.0 as u64),
    ),
    Family::gauge("evenkeel_connections_limit", &[], "How many there may be.", |sources, _, out| {
        one(out, sources.control.connections.1 as u64)
    }),
    Family::counter(
        "evenkeel_accept_errors_total",
        &[],
        "Failed accepts, for want of descriptors most often.",
        |sources, _, out| one(out, sources.overall.accept_errors),
    ),
    Family::counter(
        "evenkeel_tls_handshakes_total",
        &["version", "resumed"],
        "TLS handshakes of clients that were completed.",
        handshakes,
    ),
    Family::gauge(
        "evenkeel_certificate_expires_timestamp_seconds",
        &["listener", "certificate"],
        "When a certificate ends that is shown to clients, in seconds since 1970.",
        |sources, from, out| {
            each(&sources.certificates, from, out, |out, one| out.number(&one.labels, seconds(one.expires)))
        },
    ),
    Family::gauge(
        "evenkeel_certificate_begins_timestamp_seconds",
        &["listener", "certificate"],
        "When it begins, in seconds since 1970.",
        |sources, from, out| {
            each(&sources.certificates, from, out, |out, one| out.number(&one.labels, seconds(one.begins)))
        },
    ),
    Family::gauge(
        "evenkeel_certificate_renewal_overdue",
        &["listener", "certificate"],
        "1 while a certificate that is ordered should have been renewed by now, or was never issued; otherwise 0.",
        |sources, from, out| {
            each(&sources.certificates, from, out, |out, one| {
                if let Some(is_overdue) = one.is_overdue {
                    out.number(&one.labels, f64::from(u8::from(is_overdue)));
                }
            })
        },
    ),
];

#[expect(clippy::cast_precision_loss, reason = "seconds, for some million years")]
fn seconds(seconds: i64) -> f64 {
    seconds as f64
}

/// One sample without labels.
pub(super) fn one(out: &mut dyn SampleSink, value: u64) -> Option<usize> {
    out.count(&Labels::none(), value);
    None
}

/// A sample for each class.
pub(super) fn classes(out: &mut dyn SampleSink, labels: &Labels, counts: &ByClass) {
    for (class, count) in StatusClass::ALL.into_iter().zip(counts) {
        out.count_of(labels, ("class", class.name()), *count);
    }
}

/// Of a route and all of its ways.
fn of_route(sources: &ScrapeSources, route: &RouteSubject) -> ByClass {
    let mut sum = ByClass::default();
    for id in &route.ids {
        sum.iter_mut().zip(sources.sums.route(*id)).for_each(|(total, more)| *total += more);
    }
    sum
}

/// Of routes that are there; then, for each listener, of what had none, and of those that are gone.
fn requests(sources: &ScrapeSources, from: usize, out: &mut dyn SampleSink) -> Option<usize> {
    let routes = sources.routes.len();
    if from < routes {
        let next =
            each(&sources.routes, from, out, |out, one| classes(out, &one.labels, &of_route(sources, one)));
        return next.or(Some(routes));
    }
    let next = each(&sources.listeners, from - routes, out, |out, one| {
        let id = one.listener.id;
        classes(out, &one.unrouted, &sources.sums.unrouted(id));
        let gone = sources.gone.of_listener(id);
        if gone.iter().any(|count| *count > 0) {
            classes(out, &one.gone, &gone);
        }
    });
    next.map(|next| routes + next)
}

fn handshakes(sources: &ScrapeSources, _: usize, out: &mut dyn SampleSink) -> Option<usize> {
    let mut sums = [0; 4];
    let mut what = [("", false); 4];
    for cells in sources.sums.workers() {
        for (place, (version, resumed, count)) in cells.handshakes.iter().enumerate() {
            sums[place] += count;
            what[place] = (version, resumed);
        }
    }
    for ((version, resumed), count) in what.into_iter().zip(sums) {
        let resumed = if resumed { "yes" } else { "no" };
        out.count(&Labels::of(&[("version", version), ("resumed", resumed)]), count);
    }
    None
}
