//! The written form: what the file says, value by value, before defaults, flags and cross-checks.
//!
//! [`walk`] goes over the tree once, reports every key that is unknown or not supported yet and every value of
//! the wrong type or out of its range, and goes on. What is left is typed; `validate` makes the accepted form.

mod address;
mod backend;
mod balance;
mod bounds;
mod costs;
mod gate;
mod group;
mod health;
mod kind;
mod listener;
mod misplaced;
mod reader;
mod resilience;
mod said;
mod servers;
mod shape;
mod statuses;
mod target;
mod tls;
mod top;
mod unfit;
mod unknown;
mod vocabulary;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;

pub(super) use address::{BindHost, RawListener, bind_host, network};
pub(super) use backend::{RawBackend, RawPlace, RawSource, backend_url};

pub(super) use balance::{RawPortion, RawSticky, Secret, algorithm_name, strong};
pub(super) use bounds::{COUNT_MAX, DAY, INTERVAL_MIN, PRIORITY_MAX, WORKERS_MAX, YEAR};
pub(super) use costs::{RawLimits, RawTimeouts};
pub(super) use gate::access::{ACCESS_LISTS, RawAccess, RawAccessList};
pub(super) use gate::auth::{AUTH, RawAuth, RawBasicAuth, RawForwardAuth};
pub(super) use gate::jwt::RawJwtAuth;
pub(super) use gate::named::{RawNamed, RuleKind};
pub(super) use gate::rate::{RATE_LIMITS, RawRateLimit};
pub(super) use health::{RawHealth, probe_path};
pub(super) use kind::{Key, Kind, NAME, Shape, TOKEN};
pub(super) use listener::http2::RawHttp2;
pub(super) use listener::proxy_protocol::RawSenders;
pub(super) use listener::route::{
    RawCache, RawCompress, RawEdits, RawHeaders, RawMirror, RawOwn, RawRespond, RawRoute, RawSplit,
};
pub(super) use listener::{RawListenerConfig, RawListenerKeys};
pub(super) use reader::{Reader, choose, out_of_range};
pub(super) use resilience::{RawBreaker, RawHedging, RawOutlier, RawRetries};
pub(super) use servers::default_target;
pub(super) use shape::ALL as SHAPES;
pub(super) use target::RawTarget;
pub(super) use tls::{
    FoundCertificate, RawCertificate, RawFolder, RawIdentity, RawOrdered, RawTls, server_name,
};
pub(super) use top::access_log::RawAccessLog;
pub(super) use top::acme::{
    AUTHORITIES as KNOWN_AUTHORITIES, KnownAuthority, RawAcme, RawDirectory, RawExternalAccount,
};
pub(super) use top::admin::RawAdmin;
pub(super) use top::cache_store::RawCacheStore;
pub(super) use top::cluster::{RawCluster, RawEtcd};
pub(super) use top::instance::RawInstance;
pub(super) use top::metrics::RawMetrics;
pub(super) use top::recorder::RawRecorder;
pub(super) use top::resolver::RawResolver;
pub(super) use top::scale::{RawScale, RawScaleIn, RawScaleOut};
pub(super) use top::statsd::RawStatsd;
pub(super) use top::tracing::RawTracing;
pub(super) use top::webhooks::RawWebhook;
pub(super) use unknown::is_extension;
pub(super) use vocabulary::spoken::{Condition, InFlight, Spoken};
pub(super) use vocabulary::words::name;

use super::edit::Fix;
use super::error::{Wrong, one_of, quoted};
use super::model::{Balance, EventFormat, LogLevel, RoutingTest, WatchMode};
use super::origin::{Field, Origin, Written};
use super::yaml::{Entry, Node, Typed, truth};
use bounds::{CONNECTIONS_MAX, HOUR, SECOND};
use group::{items, list};
use reader::Section;
use top::{
    access_log, acme, admin, cache_store, cluster, instance, metrics, recorder, resolver, routing_tests,
    scale, tracing, webhooks,
};

/// The file as written.
#[derive(Debug, Default)]
pub(super) struct Raw {
    /// All files that are included, as it is written.
    pub(super) include: Vec<Written<String>>,
    pub(super) watch: Option<Written<WatchMode>>,
    pub(super) instance: RawInstance,
    pub(super) admin: RawAdmin,
    pub(super) metrics: RawMetrics,
    pub(super) acme: RawAcme,
    pub(super) cluster: Option<RawCluster>,
    pub(super) resolver: RawResolver,
    /// From all files, and behind them the one of `on_dead_server_webhook`.
    pub(super) webhooks: Vec<RawWebhook>,
    pub(super) scale: RawScale,
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
    /// GoLoadBalance's.
    pub(super) blacklisted: Field<Vec<IpNet>>,
    pub(super) cache_store: RawCacheStore,
    /// A value of `None`: `off`.
    pub(super) recorder: Option<Written<Option<RawRecorder>>>,
    pub(super) tracing: Option<Written<Option<RawTracing>>>,
    /// GoLoadBalance's.
    pub(super) cache_enabled: Option<Written<bool>>,
    /// From `cache_timeout_in_seconds`.
    pub(super) cache_ttl: Option<Written<Duration>>,
    /// From `health_check_interval` or `health_check_frequency_in_seconds`.
    pub(super) interval: Option<Written<Duration>>,
    /// From `health_check_max_retries`.
    pub(super) fall: Option<Written<u32>>,
    /// Where this process runs.
    pub(super) zone: Option<Written<Arc<str>>>,
    pub(super) algorithm: Field<Balance>,
    /// From all files.
    pub(super) access_lists: Vec<RawNamed<RawAccessList>>,
    /// From all files.
    pub(super) auth: Vec<RawNamed<RawAuth>>,
    pub(super) rate_limits: Vec<RawNamed<RawRateLimit>>,
    pub(super) listeners: Vec<RawListenerConfig>,
    /// `listeners` is there, if only with faults inside.
    pub(super) has_listeners: bool,
    pub(super) targets: Vec<RawTarget>,
    /// `targets` or `servers` is there, if only with faults inside: nothing is to be said about its absence.
    pub(super) has_targets: bool,
    /// From all files.
    pub(super) tests: Vec<Written<RoutingTest>>,
}

/// The top levels of all files.
struct Top<'n>(Vec<Section<'n>>);

impl<'n> Top<'n> {
    /// The first entry of a known key.
    fn find(&self, key: &'static str) -> Option<&'n Entry> {
        self.all(key).next()
    }

    /// The entries of a known key, one in each file at most.
    fn all(&self, key: &'static str) -> impl Iterator<Item = &'n Entry> {
        self.0.iter().filter_map(move |section| section.find(key))
    }

    fn is_misspelt(&self, key: &str) -> bool {
        self.0.iter().any(|section| section.is_misspelt(key))
    }

    /// Reports each key that stands in several files and does not add up.
    fn refuse_twice(&self, reader: &mut Reader<'_>) {
        let adds_up = |key: &&str| {
            matches!(
                *key,
                "targets"
                    | "listeners"
                    | "access_lists"
                    | "rate_limits"
                    | "auth"
                    | "include"
                    | "webhooks"
                    | "tests"
            )
        };
        for key in shape::TOP.names().filter(|key| !adds_up(key)) {
            let mut all = self.all(key);
            let Some(first) = all.next() else { continue };
            all.for_each(|other| reader.refuse_second(other, first));
        }
    }
}

/// What a file includes, as it is written there.
pub(super) fn includes(root: &Node, reader: &mut Reader<'_>) -> Vec<Written<String>> {
    const EXPECTED: &str = "a file or a pattern such as `conf.d/*.yaml`, or a list of them";
    let Typed::Map(entries) = root.typed() else { return Vec::new() };
    let Some(entry) = entries.iter().find(|entry| entry.key == "include") else { return Vec::new() };
    let mut included = Vec::new();
    for item in items(entry, reader, EXPECTED).unwrap_or_default() {
        let spot = if item.is_null() { reader.spot(entry) } else { reader.spot_of(item) };
        match (item.typed(), item.text()) {
            (Typed::Text(_) | Typed::Integer(_) | Typed::Float(_), Some(text)) if !text.is_empty() => {
                included.push(Written::new(text.to_owned(), spot));
            }
            _ => reader.report.wrong(&spot, "`include`", Wrong::new(reader::found(item), EXPECTED)),
        }
    }
    included
}

/// Walks the trees of all files.
pub(super) fn walk(roots: &[Node], include: Vec<Written<String>>, reader: &mut Reader<'_>) -> Raw {
    let mut raw = Raw { include, ..Raw::default() };
    let sections: Vec<Section<'_>> =
        roots.iter().filter_map(|root| reader.section("the file", root, &shape::TOP)).collect();
    // The one fault of a file that is no mapping has been reported; nothing is to be said about what is missing.
    raw.has_targets = sections.len() < roots.len();
    let top = Top(sections);
    top.refuse_twice(reader);
    raw.watch = top.find("watch").and_then(|entry| watch(entry, reader));
    let (socket, over_tcp) = admin::walk(top.find("admin"), reader);
    raw.admin = over_tcp;
    raw.metrics = top.find("metrics").map(|entry| metrics::walk(entry, reader)).unwrap_or_default();
    raw.instance = instance::walk(["name", "state_dir"].map(|key| top.find(key)), socket, reader);
    raw.acme = top.find("acme").map(|entry| acme::walk(entry, reader)).unwrap_or_default();
    raw.cluster = top.find("cluster").and_then(|entry| cluster::walk(entry, reader));
    raw.resolver = top.find("resolver").map(|entry| resolver::walk(entry, reader)).unwrap_or_default();
    raw.webhooks = top.all("webhooks").flat_map(|entry| webhooks::walk(entry, reader)).collect();
    let seed = top.find("on_dead_server_webhook").and_then(|entry| webhooks::walk_seed(entry, reader));
    raw.webhooks.extend(seed);
    raw.scale = top.find("scale").map(|entry| scale::walk(entry, reader)).unwrap_or_default();
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
    raw.logging = top.find("logging").and_then(|entry| logging(entry, reader));
    raw.log_format = top.find("log_format").and_then(|entry| reader.choice(entry, EventFormat::ALL));
    raw.access_log = top.find("access_log").and_then(|entry| access_log::walk(entry, reader));
    raw.trusted_proxies = top.find("trusted_proxies").and_then(|entry| networks(entry, reader));
    raw.blacklisted = match top.find("blacklisted_ips") {
        Some(entry) => Field::read(networks(entry, reader)),
        None if top.is_misspelt("blacklisted_ips") => Field::Faulty,
        None => Field::Absent,
    };
    let store = top.find("cache_store");
    raw.cache_store = store.map(|entry| cache_store::walk(entry, reader)).unwrap_or_default();
    raw.recorder = top.find("recorder").and_then(|entry| recorder::walk(entry, reader));
    raw.tracing = top.find("tracing").and_then(|entry| tracing::walk(entry, reader));
    raw.cache_enabled = top.find("cache_enabled").and_then(|entry| reader.switch(entry));
    raw.cache_ttl =
        top.find("cache_timeout_in_seconds").and_then(|entry| reader.seconds(entry, SECOND..=YEAR));
    raw.interval = seed_interval(&top, reader);
    raw.fall = top.find("health_check_max_retries").and_then(|entry| reader.whole(entry, 1..=COUNT_MAX));
    raw.zone = top.find("zone").and_then(|entry| balance::zone(entry, reader));
    raw.algorithm = match top.find("algorithm") {
        Some(entry) => Field::read(balance::algorithm(entry, reader)),
        None if top.is_misspelt("algorithm") => Field::Faulty,
        None => Field::Absent,
    };
    raw.tests = top.all("tests").flat_map(|entry| routing_tests::walk(entry, reader)).collect();
    raw.access_lists = gate::named::walk(ACCESS_LISTS, top.all(ACCESS_LISTS.key), reader, gate::access::list);
    raw.auth = gate::named::walk(AUTH, top.all(AUTH.key), reader, gate::auth::rule);
    raw.rate_limits = gate::named::walk(RATE_LIMITS, top.all(RATE_LIMITS.key), reader, gate::rate::limit);
    listeners(&top, reader, &mut raw);
    targets(&top, reader, &mut raw);
    raw
}

/// A switch with one more word.
fn watch(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<WatchMode>> {
    match entry.node.text().and_then(truth) {
        Some(on) => Some(Written::new(if on { WatchMode::On } else { WatchMode::Off }, reader.spot(entry))),
        None => reader.choice(entry, WatchMode::ALL),
    }
}

/// One key with two names: gruglb's and GoLoadBalance's.
fn seed_interval(top: &Top<'_>, reader: &mut Reader<'_>) -> Option<Written<Duration>> {
    let first = top.find("health_check_interval");
    let second = top.find("health_check_frequency_in_seconds");
    if let (Some(first), Some(second)) = (first, second) {
        let message = format!("`{}` and `{}` mean the same", first.key, second.key);
        let place = first.key_place.max(second.key_place);
        let problem = reader.report.at(place, message);
        problem.hint("keep one of them: remove this one", Fix::Remove(place));
    }
    let read = |entry: &Entry| reader.seconds(entry, INTERVAL_MIN..=DAY);
    first.or(second).and_then(read)
}

/// The level, also by the names that other programs have.
fn logging(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<LogLevel>> {
    let expected = one_of(LogLevel::ALL.iter().map(|(name, _)| *name));
    reader.parsed(entry, &expected, |text| {
        choose(text, LogLevel::ALL).map_err(|wrong| match text.to_lowercase().as_str() {
            "warning" => wrong.instead("warn"),
            "err" | "crit" | "critical" | "alert" | "emerg" | "fatal" | "quiet" | "none" => {
                wrong.instead("error")
            }
            "notice" | "information" | "default" => wrong.instead("info"),
            "verbose" | "all" => wrong.instead("debug"),
            _ => wrong,
        })
    })
}

fn networks(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Vec<IpNet>>> {
    let items = list(entry, reader, "a list of addresses and networks such as `[127.0.0.1, 10.0.0.0/8]`")?;
    let subject = format!("an entry of `{}`", entry.key);
    let mut networks = Vec::with_capacity(items.len());
    for item in items {
        let spot = reader.spot_of(item);
        match item.text() {
            Some(text) => match network(text) {
                Ok(network) => networks.push(network),
                Err(wrong) => reader.report.wrong(&spot, &subject, wrong),
            },
            None => {
                let wrong =
                    Wrong::new(reader::found(item), "an IP address or a network such as `10.0.0.0/8`");
                reader.report.wrong(&spot, &subject, wrong);
            }
        }
    }
    Some(Written::new(networks, reader.spot(entry)))
}

/// The listeners of all files. Routes of several files add up inside the same listener.
fn listeners(top: &Top<'_>, reader: &mut Reader<'_>, raw: &mut Raw) {
    let mut by_name: Vec<(&Entry, Vec<&Entry>)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for entry in top.all("listeners") {
        raw.has_listeners = true;
        match entry.node.typed() {
            Typed::Map(entries) if !entries.is_empty() => {
                for entry in entries {
                    match places.get(entry.key.as_str()) {
                        Some(place) => by_name[*place].1.push(entry),
                        None => {
                            places.insert(&entry.key, by_name.len());
                            by_name.push((entry, Vec::new()));
                        }
                    }
                }
            }
            _ => {
                let wrong = Wrong::new(
                    reader::found(&entry.node),
                    "a mapping from names to listeners: `listeners: {public: {bind: 8080, routes: […]}}`",
                );
                let spot = reader.spot(entry);
                reader.report.wrong(&spot, "`listeners`", wrong);
            }
        }
    }
    raw.listeners = by_name.iter().map(|(first, others)| listener::walk(first, others, reader)).collect();
    raw.has_listeners |= top.is_misspelt("listeners");
}

fn targets(top: &Top<'_>, reader: &mut Reader<'_>, raw: &mut Raw) {
    let (targets, servers) = (top.find("targets"), top.find("servers"));
    raw.has_targets |=
        targets.is_some() || servers.is_some() || top.is_misspelt("targets") || top.is_misspelt("servers");
    if let (Some(targets), Some(servers)) = (targets, servers) {
        reader
            .report
            .at(targets.key_place.max(servers.key_place), "`servers` and `targets` exclude each other")
            .note("`servers` is short for one HTTP target named `default`; write it under `targets`");
    }
    if let Some(servers) = servers {
        raw.targets.push(servers::walk(servers, reader));
    }
    let mut is_empty = true;
    for section in &top.0 {
        let Some(targets) = section.find("targets") else { continue };
        match targets.node.typed() {
            Typed::Map(entries) => {
                is_empty &= entries.is_empty();
                let before = raw.targets.len();
                misplaced::walk(targets, entries, reader, &mut raw.targets);
                if let Some(last) = raw.targets[before..].last_mut() {
                    section.entries().iter().for_each(|entry| misplaced::forgive(&entry.key, last));
                }
            }
            Typed::Null => {}
            Typed::Bool(_) | Typed::Integer(_) | Typed::Float(_) | Typed::Text(_) | Typed::List(_) => {
                is_empty = false;
                no_mapping(targets, reader);
            }
        }
    }
    if let (true, Some(targets)) = (is_empty, targets) {
        no_targets(targets, reader);
    }
    refuse_namesakes(&mut raw.targets, reader);
    raw.targets.iter_mut().for_each(|target| target.may_be_pool = raw.has_listeners);
}

/// Reports targets of one name in several files, and leaves out the later ones.
fn refuse_namesakes(targets: &mut Vec<RawTarget>, reader: &mut Reader<'_>) {
    let mut first: HashMap<String, Origin> = HashMap::with_capacity(targets.len());
    targets.retain(|target| {
        let name = &target.name;
        let Some(place) = first.get(&name.value) else {
            first.insert(name.value.clone(), name.spot.origin.clone());
            return true;
        };
        let message = format!("the target {} is there twice: first at {place}", quoted(&name.value));
        reader.report.spot(&name.spot, message).note("rename one of them, or remove it");
        false
    });
}

fn no_mapping(targets: &Entry, reader: &mut Reader<'_>) {
    let wrong = Wrong::new(
        reader::found(&targets.node),
        "a mapping from names to targets: `targets: {web: {listener: 8080, backends: […]}}`",
    );
    let wrong = match targets.node.typed() {
        Typed::List(_) => {
            wrong.note("in place of `- name: web` stands `web:`, and the other keys deeper below it")
        }
        _ => wrong,
    };
    let spot = reader.spot(targets);
    reader.report.wrong(&spot, "`targets`", wrong);
}

fn no_targets(entry: &Entry, reader: &mut Reader<'_>) {
    let spot = reader.key_spot(entry);
    reader
        .report
        .spot(&spot, "`targets` is empty, so there is nothing to balance")
        .expected("at least one target with `listener` and `backends`");
}
