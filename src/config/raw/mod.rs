//! The written form: what the file says, value by value, before defaults, flags and cross-checks.
//!
//! [`walk`] goes over the tree once, reports every key that is unknown or not supported yet and every value of
//! the wrong type or out of its range, and goes on. What is left is typed; `validate` makes the accepted form.

mod access_log;
mod address;
mod backend;
mod balance;
mod foreign;
mod health;
mod kind;
mod later;
mod reader;
mod resilience;
mod shape;
mod statuses;
mod target;
mod tls;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;

pub(super) use access_log::RawAccessLog;
pub(super) use address::{BindHost, RawListener, bind_host};
pub(super) use backend::{RawBackend, backend_url};
pub(super) use balance::{RawSticky, Secret, algorithm_name, strong};
pub(super) use health::{RawHealth, probe_path};
pub(super) use kind::{Key, Kind, NAME};
pub(super) use reader::{Reader, choose, out_of_range};
pub(super) use resilience::{Condition, InFlight, RawBreaker, RawHedging, RawOutlier, RawRetries};
pub(super) use shape::{ALL as SHAPES, Shape};
pub(super) use target::{RawTarget, Spoken};
pub(super) use tls::{RawIdentity, RawTls, RawUpstreamTls, server_name};

use super::error::Wrong;
use super::model::{Balance, EventFormat, LogLevel};
use super::origin::{Field, Spot, Written};
use super::yaml::{Entry, Node, Typed};
use reader::Section;

/// Most worker threads.
pub(super) const WORKERS_MAX: u32 = 1_024;
/// Most client connections that can be asked for.
const CONNECTIONS_MAX: u32 = 10_000_000;
const MILLISECOND: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);
pub(super) const DAY: Duration = Duration::from_secs(24 * 3600);
const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);
/// A probe every few milliseconds is for tests; less would be an attack.
pub(super) const INTERVAL_MIN: Duration = Duration::from_millis(10);
/// Most probes in a row that `rise` and `fall` can ask for.
pub(super) const COUNT_MAX: u32 = 1_000;

/// The file as written.
#[derive(Debug, Default)]
pub(super) struct Raw {
    pub(super) address: Option<Written<BindHost>>,
    pub(super) workers: Option<Written<u32>>,
    pub(super) max_connections: Option<Written<u32>>,
    pub(super) shutdown_delay: Option<Written<Duration>>,
    pub(super) shutdown_timeout: Option<Written<Duration>>,
    pub(super) graceful_shutdown: Option<Written<bool>>,
    pub(super) logging: Option<Written<LogLevel>>,
    pub(super) log_format: Option<Written<EventFormat>>,
    /// A value of `None`: `off`.
    pub(super) access_log: Option<Written<Option<RawAccessLog>>>,
    pub(super) trusted_proxies: Option<Written<Vec<IpNet>>>,
    /// From `health_check_interval` or `health_check_frequency_in_seconds`.
    pub(super) interval: Option<Written<Duration>>,
    /// From `health_check_max_retries`.
    pub(super) fall: Option<Written<u32>>,
    /// Where this process runs.
    pub(super) zone: Option<Written<Arc<str>>>,
    pub(super) algorithm: Field<Balance>,
    pub(super) targets: Vec<RawTarget>,
    /// `targets` or `servers` is there, if only with faults inside: nothing is to be said about its absence.
    pub(super) has_targets: bool,
}

/// Walks the whole tree.
pub(super) fn walk(root: &Node, reader: &mut Reader<'_>) -> Raw {
    let mut raw = Raw::default();
    let Some(top) = reader.section("the file", root, &shape::TOP) else {
        // The one fault has been reported; nothing is to be said about what is missing.
        raw.has_targets = true;
        return raw;
    };
    raw.address = top
        .find("address")
        .and_then(|entry| reader.parsed(entry, "an IP address such as `127.0.0.1`", bind_host));
    raw.workers = top.find("workers").and_then(|entry| reader.whole(entry, 1..=WORKERS_MAX));
    raw.max_connections =
        top.find("max_connections").and_then(|entry| reader.whole(entry, 1..=CONNECTIONS_MAX));
    raw.shutdown_delay =
        top.find("shutdown_delay").and_then(|entry| reader.duration(entry, Duration::ZERO..=HOUR));
    raw.shutdown_timeout =
        top.find("shutdown_timeout").and_then(|entry| reader.duration(entry, Duration::ZERO..=HOUR));
    raw.graceful_shutdown = top.find("graceful_shutdown").and_then(|entry| reader.switch(entry));
    raw.logging = top.find("logging").and_then(|entry| reader.choice(entry, LogLevel::ALL));
    raw.log_format = top.find("log_format").and_then(|entry| reader.choice(entry, EventFormat::ALL));
    raw.access_log = top.find("access_log").and_then(|entry| access_log::walk(entry, reader));
    raw.trusted_proxies = top.find("trusted_proxies").and_then(|entry| networks(entry, reader));
    raw.interval = seed_interval(&top, reader);
    raw.fall = top.find("health_check_max_retries").and_then(|entry| reader.whole(entry, 1..=COUNT_MAX));
    raw.zone = top.find("zone").and_then(|entry| balance::zone(entry, reader));
    raw.algorithm = match top.find("algorithm") {
        Some(entry) => Field::read(balance::algorithm(entry, reader)),
        None if top.is_misspelt("algorithm") => Field::Faulty,
        None => Field::Absent,
    };
    targets(&top, reader, &mut raw);
    raw
}

/// One key with two names: gruglb's and GoLoadBalance's.
fn seed_interval(top: &Section<'_>, reader: &mut Reader<'_>) -> Option<Written<Duration>> {
    let first = top.find("health_check_interval");
    let second = top.find("health_check_frequency_in_seconds");
    if let (Some(first), Some(second)) = (first, second) {
        let message = format!("`{}` and `{}` mean the same", first.key, second.key);
        reader.report.at(first.key_place.max(second.key_place), message).hint("keep one of them");
    }
    let read = |entry: &Entry| reader.seconds(entry, INTERVAL_MIN..=DAY);
    first.or(second).and_then(read)
}

fn networks(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Vec<IpNet>>> {
    let items = list(entry, reader, "a list of addresses and networks such as `[127.0.0.1, 10.0.0.0/8]`")?;
    let mut networks = Vec::with_capacity(items.len());
    for item in items {
        let spot = reader.spot_of(item);
        match item.text() {
            Some(text) => match address::network(text) {
                Ok(network) => networks.push(network),
                Err(wrong) => reader.report.wrong(&spot, "an entry of `trusted_proxies`", wrong),
            },
            None => {
                let wrong =
                    Wrong::new(reader::found(item), "an IP address or a network such as `10.0.0.0/8`");
                reader.report.wrong(&spot, "an entry of `trusted_proxies`", wrong);
            }
        }
    }
    Some(Written::new(networks, reader.spot(entry)))
}

/// A token (RFC 9110 §5.6.2).
fn is_token(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !text.is_empty() && text.bytes().all(fits)
}

/// The items of a list; an empty value is an empty list.
fn list<'n>(entry: &'n Entry, reader: &mut Reader<'_>, expected: &str) -> Option<&'n [Node]> {
    match entry.node.typed() {
        Typed::List(items) => Some(items),
        Typed::Null => Some(&[]),
        Typed::Bool(_) | Typed::Integer(_) | Typed::Float(_) | Typed::Text(_) | Typed::Map(_) => {
            reader.refuse(entry, expected);
            None
        }
    }
}

/// The mapping behind a key that also takes `off`: a value of `None`. `hint` is for whoever wrote neither.
fn section_or_off<'n>(
    entry: &'n Entry,
    reader: &mut Reader<'_>,
    shape: &Shape,
    expected: &str,
    hint: Option<String>,
) -> Option<Written<Option<Section<'n>>>> {
    if reader::is_off(&entry.node) {
        return Some(Written::new(None, reader.spot(entry)));
    }
    if !matches!(entry.node.typed(), Typed::Map(_) | Typed::Null) {
        let (spot, wrong) = (reader.spot(entry), Wrong::new(reader::found(&entry.node), expected));
        reader.report.wrong(&spot, &reader::subject(&entry.key), Wrong { hint, ..wrong });
        return None;
    }
    let section = reader.section(&reader::subject(&entry.key), &entry.node, shape)?;
    Some(Written::new(Some(section), reader.key_spot(entry)))
}

fn targets(top: &Section<'_>, reader: &mut Reader<'_>, raw: &mut Raw) {
    let (targets, servers) = (top.find("targets"), top.find("servers"));
    raw.has_targets =
        targets.is_some() || servers.is_some() || top.is_misspelt("targets") || top.is_misspelt("servers");
    if let (Some(targets), Some(servers)) = (targets, servers) {
        reader
            .report
            .at(targets.key_place.max(servers.key_place), "`servers` and `targets` exclude each other")
            .hint("`servers` is short for one HTTP target named `default`; write it under `targets`");
    }
    if let Some(servers) = servers {
        raw.targets.push(backend::from_servers(servers, reader));
    }
    let Some(targets) = targets else { return };
    match targets.node.typed() {
        Typed::Map(entries) => {
            if entries.is_empty() {
                no_targets(targets, reader);
            }
            raw.targets.extend(entries.iter().map(|entry| target::walk(entry, reader)));
        }
        Typed::Null => no_targets(targets, reader),
        Typed::Bool(_) | Typed::Integer(_) | Typed::Float(_) | Typed::Text(_) | Typed::List(_) => {
            reader.refuse(
                targets,
                "a mapping from names to targets: `targets: {web: {listener: 8080, backends: […]}}`",
            );
        }
    }
}

fn no_targets(entry: &Entry, reader: &mut Reader<'_>) {
    let spot = reader.key_spot(entry);
    reader
        .report
        .spot(&spot, "`targets` is empty, so there is nothing to balance")
        .expected("at least one target with `listener` and `backends`");
}

/// The target that `servers` or `--backends` stand for.
pub(super) fn default_target(spot: Spot, backends: Field<Vec<RawBackend>>) -> RawTarget {
    let mut target = RawTarget::empty(Written::new("default".to_owned(), spot));
    target.protocol = Field::Given(Written::new(Spoken::HTTP, Spot::NOWHERE));
    target.listener = Field::Given(Written::new(RawListener::Port(DEFAULT_PORT), Spot::NOWHERE));
    target.backends = backends;
    target
}

/// Where the target `default` listens.
pub(super) const DEFAULT_PORT: u16 = 3030;

/// A unix path counted from the file's folder, and everything else as it is.
fn placed(listener: RawListener, reader: &Reader<'_>) -> RawListener {
    match listener {
        RawListener::Unix(path) => RawListener::Unix(rooted(&path, reader)),
        RawListener::Port(_) | RawListener::At(..) => listener,
    }
}

fn rooted(path: &std::path::Path, reader: &Reader<'_>) -> PathBuf {
    reader.path(&path.to_string_lossy())
}
