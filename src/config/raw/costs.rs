//! `timeouts` and `limits`: what a request may cost. Listeners, routes and targets have the keys that are theirs.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::bounds::{CONNECTIONS_MAX, COUNT_MAX, DAY, HOUR, MILLISECOND, MONTH};
use super::kind::Shape;
use super::reader::{Reader, is_off};
use crate::config::origin::{Spot, Written};
use crate::config::yaml::Entry;

/// `timeouts`.
#[derive(Debug, Default)]
pub(in crate::config) struct RawTimeouts {
    pub(in crate::config) connect: Option<Written<Duration>>,
    pub(in crate::config) tls: Option<Written<Duration>>,
    pub(in crate::config) first_byte: Option<Written<Duration>>,
    pub(in crate::config) idle: Option<Written<Duration>>,
    pub(in crate::config) tunnel: Option<Written<Duration>>,
    pub(in crate::config) flow: Option<Written<Duration>>,
    pub(in crate::config) head: Option<Written<Duration>>,
    pub(in crate::config) keep_alive: Option<Written<Duration>>,
    /// A value of `None`: `off`.
    pub(in crate::config) half_closed: Option<Written<Option<Duration>>>,
    pub(in crate::config) queue: Option<Written<Duration>>,
    /// A value of `None`: `off`.
    pub(in crate::config) attempt: Option<Written<Option<Duration>>>,
    /// A value of `None`: `off`.
    pub(in crate::config) total: Option<Written<Option<Duration>>>,
}

/// `limits`.
#[derive(Debug, Default)]
pub(in crate::config) struct RawLimits {
    pub(in crate::config) head_size: Option<Written<u64>>,
    pub(in crate::config) headers: Option<Written<u32>>,
    /// A value of `None`: `off`.
    pub(in crate::config) body: Option<Written<Option<u64>>>,
    /// A value of `None`: `off`.
    pub(in crate::config) body_rate: Option<Written<Option<u64>>>,
    /// A value of `None`: `off`.
    pub(in crate::config) connections: Option<Written<Option<u32>>>,
    /// A value of `None`: `off`.
    pub(in crate::config) connections_per_client: Option<Written<Option<u32>>>,
    /// A value of `None`: `off`.
    pub(in crate::config) reply_factor: Option<Written<Option<u32>>>,
    /// A value of `None`: `off`.
    pub(in crate::config) replies: Option<Written<Option<u32>>>,
}

/// Walks `timeouts` with those of its keys that `shape` has.
pub(super) fn timeouts(
    entry: &Entry,
    shape: &Shape,
    reader: &mut Reader<'_>,
    http_only: &mut Vec<(&'static str, Spot)>,
) -> Option<RawTimeouts> {
    let section = reader.section("`timeouts`", &entry.node, shape)?;
    let mut find = |key: &'static str, of_http: bool, reader: &Reader<'_>| {
        let entry = section.known(key)?;
        if of_http {
            http_only.push((key, reader.key_spot(entry)));
        }
        Some(entry)
    };
    let mut time = |key: &'static str, longest: Duration, of_http: bool| {
        find(key, of_http, reader).and_then(|entry| reader.limit(entry, MILLISECOND..=longest))
    };
    let (connect, tls) = (time("connect", HOUR, false), time("tls", HOUR, false));
    let (first_byte, idle) = (time("first_byte", DAY, true), time("idle", DAY, false));
    let (tunnel, queue) = (time("tunnel", MONTH, false), time("queue", HOUR, false));
    let flow = time("flow", DAY, false);
    let (head, keep_alive) = (time("head", HOUR, true), time("keep_alive", DAY, true));
    let mut or_off = |key: &'static str, range: RangeInclusive<Duration>, of_http: bool| {
        let entry = find(key, of_http, reader)?;
        if is_off(&entry.node) {
            return Some(Written::new(None, reader.spot(entry)));
        }
        let read = reader.duration_or_off(entry, range)?;
        Some(Written::new(Some(read.value), read.spot))
    };
    let (attempt, total) =
        (or_off("attempt", MILLISECOND..=DAY, true), or_off("total", MILLISECOND..=DAY, true));
    let half_closed = or_off("half_closed", Duration::ZERO..=HOUR, false);
    Some(RawTimeouts {
        connect,
        tls,
        first_byte,
        idle,
        tunnel,
        flow,
        head,
        keep_alive,
        half_closed,
        queue,
        attempt,
        total,
    })
}

/// Walks `limits` with those of its keys that `shape` has.
pub(super) fn limits(
    entry: &Entry,
    shape: &Shape,
    reader: &mut Reader<'_>,
    http_only: &mut Vec<(&'static str, Spot)>,
) -> Option<RawLimits> {
    let section = reader.section("`limits`", &entry.node, shape)?;
    for key in ["head_size", "headers", "body", "body_rate"] {
        http_only.extend(section.known(key).map(|entry| (key, reader.key_spot(entry))));
    }
    let mut or_off = |key: &'static str, largest: u64| {
        let entry = section.known(key)?;
        if is_off(&entry.node) {
            return Some(Written::new(None, reader.spot(entry)));
        }
        reader.size(entry, 1..=largest, true).map(|size| Written::new(Some(size.value), size.spot))
    };
    let (body, body_rate) = (or_off("body", 1 << 50), or_off("body_rate", 1 << 30));
    let mut connections = |key: &'static str| reader.whole_or_off(section.known(key)?, 1..=CONNECTIONS_MAX);
    let (all, per_client) = (connections("connections"), connections("connections_per_client"));
    let mut counts = |key: &'static str| reader.whole_or_off(section.known(key)?, 1..=COUNT_MAX);
    let (reply_factor, replies) = (counts("reply_factor"), counts("replies"));
    Some(RawLimits {
        head_size: section.known("head_size").and_then(|entry| reader.size(entry, 1_024..=65_536, false)),
        headers: section.known("headers").and_then(|entry| reader.whole(entry, 1..=1_000)),
        body,
        body_rate,
        connections: all,
        connections_per_client: per_client,
        reply_factor,
        replies,
    })
}
