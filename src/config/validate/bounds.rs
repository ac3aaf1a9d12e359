//! How long backends and clients may take, and what clients may cost.

use std::time::Duration;

use super::owner::KeyOwner;
use super::{clashes, datagrams};
use crate::config::effective::EffectiveRows;
use crate::config::model::{ClientTimeouts, Limits, Protocol, Timeouts};
use crate::config::origin::{Field, Written};
use crate::config::raw::{RawListener, RawTarget, RawTimeouts, Spoken};
use crate::config::report::Report;
use crate::config::units::{show_duration, show_size};

/// Whose times are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Serves {
    /// A target in the short form: clients and backends.
    Both,
    /// A listener.
    Clients,
    /// A target that others lead to.
    Backends,
}

/// How long backends and clients may take. `target`: that of `owner`, if it is one.
pub(super) fn timeouts(
    owner: &KeyOwner<'_>,
    target: Option<&RawTarget>,
    serves: Serves,
    spoken: Option<Spoken>,
    is_secured: bool,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> (Timeouts, ClientTimeouts) {
    let is_http = spoken.is_some_and(|spoken| spoken.protocol == Protocol::Http);
    let is_udp = spoken == Some(Spoken::UDP);
    let (mut timeouts, mut client) = (Timeouts::default(), ClientTimeouts::default());
    let raw = owner.timeouts;
    let (of_clients, of_backends) = (serves != Serves::Backends, serves != Serves::Clients);
    let path = |key: &str| owner.path(&format!("timeouts.{key}"));
    let mut settle = |key: &str, written: &Option<Written<Duration>>, value: &mut Duration| {
        *value = rows.settle(path(key), written.as_ref(), *value, |time| show_duration(*time));
    };
    if of_backends && is_udp {
        settle("flow", &raw.flow, &mut timeouts.flow);
    }
    if of_backends && !is_udp {
        settle("connect", &raw.connect, &mut timeouts.connect);
    }
    if is_secured {
        settle("tls", &raw.tls, &mut timeouts.tls);
    }
    if is_http && of_backends {
        settle("first_byte", &raw.first_byte, &mut timeouts.first_byte);
    }
    if (is_http && of_backends) || raw.idle.is_some() && !is_udp {
        settle("idle", &raw.idle, &mut timeouts.idle);
    }
    if of_backends && !is_udp {
        if !is_http && raw.idle.is_some() {
            // All that a TCP connection can be is a tunnel: both keys bound its silence, and the shorter one counts.
            timeouts.tunnel = timeouts.idle;
        }
        settle("tunnel", &raw.tunnel, &mut timeouts.tunnel);
        if !is_http && raw.idle.is_some() {
            timeouts.tunnel = timeouts.tunnel.min(timeouts.idle);
        }
    }
    if (is_http || owner.hears_senders()) && of_clients {
        settle("head", &raw.head, &mut client.head);
    }
    if is_http && of_clients {
        settle("keep_alive", &raw.keep_alive, &mut client.keep_alive);
    }
    if let Some(target) = target {
        let queue = queue(target, report);
        if queue.is_some() || matches!(target.resilience.max_in_flight, Some(Written { value: Some(_), .. }))
        {
            settle("queue", &queue, &mut timeouts.queue);
        }
    }
    let or_off = |time: &Option<Duration>| time.map_or_else(|| "off".to_owned(), show_duration);
    if of_clients && !is_udp {
        client.half_closed =
            rows.settle(path("half_closed"), raw.half_closed.as_ref(), client.half_closed, or_off);
    }
    if is_http {
        let mut settle = |key: &str, written: &Option<Written<Option<Duration>>>| {
            rows.settle(path(key), written.as_ref(), None, or_off)
        };
        if of_backends {
            timeouts.attempt = settle("attempt", &raw.attempt);
        }
        if of_backends || raw.total.is_some() {
            timeouts.total = settle("total", &raw.total);
        }
        refuse_idle_attempt(raw, report);
    }
    client.idle = timeouts.idle;
    client.tls = timeouts.tls;
    (timeouts, client)
}

/// The one setting behind `queue.timeout` and `timeouts.queue`.
fn queue(raw: &RawTarget, report: &mut Report) -> Option<Written<Duration>> {
    let here = raw.timeouts.queue.as_ref().map(|written| ("timeouts.queue", written));
    let there = match &raw.resilience.queue {
        Some(Written { value: Some(queue), .. }) => queue.timeout.as_ref(),
        Some(Written { value: None, .. }) | None => None,
    };
    let there = there.map(|written| ("queue.timeout", written));
    if let (Some(one), Some(other)) = (here, there)
        && one.1.value != other.1.value
    {
        let (first, later) = if one.1.spot.place < other.1.spot.place { (one, other) } else { (other, one) };
        let message = format!(
            "`{}` is {}, but `{}` is {}{}: they are one setting",
            later.0,
            show_duration(later.1.value),
            first.0,
            show_duration(first.1.value),
            clashes::line_of(&first.1.spot, &later.1.spot)
        );
        report.spot(&later.1.spot, message).note("keep one of them");
    }
    here.or(there).map(|(_, written)| written.clone())
}

/// An attempt that ends later than everything has no end of its own.
fn refuse_idle_attempt(raw: &RawTimeouts, report: &mut Report) {
    let of = |written: &Option<Written<Option<Duration>>>| {
        written.as_ref().and_then(|written| Some((written.value?, written.spot.clone())))
    };
    let (Some((attempt, spot)), Some((total, _))) = (of(&raw.attempt), of(&raw.total)) else {
        return;
    };
    if attempt > total {
        let (attempt, total) = (show_duration(attempt), show_duration(total));
        let message = format!("`attempt` is {attempt} and has no effect, because `total` is {total}");
        report.spot(&spot, message).expected("a time that is at most `total`");
    }
}

/// What requests and connections may cost.
pub(super) fn limits(
    raw: &KeyOwner<'_>,
    spoken: Option<Spoken>,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> Limits {
    let is_http = spoken.is_some_and(|spoken| spoken.protocol == Protocol::Http);
    let default = Limits::default();
    let path = |key: &str| raw.path(&format!("limits.{key}"));
    let mut count = |key: &str, written: &Option<Written<Option<u32>>>, more: &str| {
        let or_off =
            |count: &Option<u32>| count.map_or_else(|| "off".to_owned(), |count| count.to_string()) + more;
        rows.settle(path(key), written.as_ref(), None, or_off)
    };
    let needs = if spoken == Some(Spoken::UDP) {
        datagrams::warn_of_ports(&raw.limits.connections, report);
        datagrams::needs()
    } else {
        String::new()
    };
    let connections = count("connections", &raw.limits.connections, &needs);
    let connections_per_client = count("connections_per_client", &raw.limits.connections_per_client, "");
    refuse_idle_connections(raw, report);
    let (mut reply_factor, mut replies) = (default.reply_factor, default.replies);
    if spoken == Some(Spoken::UDP) {
        let or_off = |count: &Option<u32>| count.map_or_else(|| "off".to_owned(), |count| count.to_string());
        reply_factor =
            rows.settle(path("reply_factor"), raw.limits.reply_factor.as_ref(), reply_factor, or_off);
        replies = rows.settle(path("replies"), raw.limits.replies.as_ref(), replies, or_off);
    }
    let default = Limits { connections, connections_per_client, reply_factor, replies, ..default };
    if !is_http {
        return default;
    }
    let or_off = |size: &Option<u64>| size.map_or_else(|| "off".to_owned(), show_size);
    let head_size = raw.limits.head_size.as_ref();
    let head_size =
        rows.settle(path("head_size"), head_size, default.head_size as u64, |size| show_size(*size));
    let headers = default.headers.try_into().unwrap_or(u32::MAX);
    let headers = rows.settle(path("headers"), raw.limits.headers.as_ref(), headers, ToString::to_string);
    let body = rows.settle(path("body"), raw.limits.body.as_ref(), default.body, or_off);
    let rate = raw.limits.body_rate.as_ref();
    let rate = rows.settle(path("body_rate"), rate, Some(default.body_rate), or_off);
    Limits {
        head_size: usize::try_from(head_size).unwrap_or(default.head_size),
        headers: headers as usize,
        body,
        body_rate: rate.unwrap_or(0),
        ..default
    }
}

/// A limit of one client's connections that nobody can reach.
fn refuse_idle_connections(raw: &KeyOwner<'_>, report: &mut Report) {
    let Some(Written { value: Some(own), spot }) = &raw.limits.connections_per_client else { return };
    let is_unix = |written: &Written<RawListener>| matches!(written.value, RawListener::Unix(_));
    if matches!(raw.binds, Field::Given(written) if written.value.iter().all(is_unix)) {
        let message = "`connections_per_client` has no effect: clients of a unix socket have no address";
        report.spot(spot, message).note("set `connections`, or remove it");
    }
    if let Some(Written { value: Some(all), .. }) = &raw.limits.connections
        && own > all
    {
        let message =
            format!("`connections_per_client` is {own} and has no effect, because `connections` is {all}");
        report.spot(spot, message).expected("a number that is at most `connections`");
    }
}
