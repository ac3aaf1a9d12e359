//! The written form → the accepted form: defaults, what one key means to another, and what can't be together.
//!
//! Flags are merged into the written form first ([`flags`]), so nothing below knows whether a value came from
//! the file or the command line. Problems are collected; the result counts only when there are none.

mod admin;
mod backend;
mod balance;
mod bounds;
mod cache_store;
mod clashes;
mod datagrams;
mod discovery;
pub(super) mod flags;
mod folder;
mod gate;
mod health;
mod http2;
mod listener;
mod loops;
mod owner;
mod process;
mod resilience;
mod route;
mod show;
mod target;
mod telling;
mod tls;
mod top_level;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::effective::EffectiveRows;
use super::error::quoted;
use super::model::{
    AccessLog, Config, EventFormat, ListenerConfig, LogFormat, LogLevel, LogPath, Protocol, RouteConfig,
    RoutingTest, Share, TargetConfig, WatchMode,
};
use super::origin::{Field, Origin, Spot, Written};
use super::raw::{BindHost, Raw, RawListenerConfig, Spoken, WORKERS_MAX};
use super::report::Report;
use super::units::show_duration;
pub use backend::BackendRules;
use bounds::Serves;
pub(super) use clashes::identity;
use gate::auth::{self, AuthRules};
pub(super) use loops::leads_to;
use owner::KeyOwner;
pub(super) use process::instance::accept as instance;
use show::name_of;
use top_level::TopLevel;

/// Requests may finish for this long unless the file says otherwise.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

/// Cores that this process had when it was first asked for: what it may use of the machine can change while it runs, and the
/// config has not changed with that.
fn cores() -> u32 {
    static CORES: OnceLock<u32> = OnceLock::new();
    counted_once(&CORES, || std::thread::available_parallelism().map_or(1, |cores| cores.get()))
}

fn counted_once(known: &OnceLock<u32>, count: impl FnOnce() -> usize) -> u32 {
    *known.get_or_init(|| u32::try_from(count()).unwrap_or(WORKERS_MAX).clamp(1, WORKERS_MAX))
}

/// Makes the accepted form and notes every value in force.
pub(super) fn accept(
    raw: &Raw,
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> (Config, Arc<[BackendRules]>) {
    include(raw, rows);
    let watch = rows.settle("watch", raw.watch.as_ref(), WatchMode::default(), |watch| {
        name_of(WatchMode::ALL, *watch).to_owned()
    });
    let instance = process::instance::accept(&raw.instance, report, rows);
    let admin = admin::accept(&raw.admin, report, rows);
    let metrics = admin::accept_metrics(&raw.metrics, rows);
    let (acme, terms) = tls::acme::accept(raw, report, rows);
    let cluster = process::cluster::accept(raw.cluster.as_ref(), report, rows);
    let resolver = discovery::resolver(raw, report, rows);
    let webhooks = telling::webhooks::accept(&raw.webhooks, report, rows);
    let scale = telling::scale::accept(&raw.scale, rows);
    let host = BindHost::Ip(std::net::Ipv4Addr::LOCALHOST.into());
    let host = rows.settle("address", raw.address.as_ref(), host, ToString::to_string);
    let address = raw.address.clone().unwrap_or_else(|| Written::new(host, Spot::NOWHERE));
    let workers = rows.settle("workers", raw.workers.as_ref(), cores(), ToString::to_string);
    let max_connections = max_connections(raw, rows);
    let delay = raw.shutdown_delay.as_ref();
    let shutdown_delay = rows.settle("shutdown_delay", delay, Duration::ZERO, |time| show_duration(*time));
    let shutdown_timeout = shutdown_timeout(raw, rows);
    let log_level = rows.settle("logging", raw.logging.as_ref(), LogLevel::default(), |level| {
        name_of(LogLevel::ALL, *level).to_owned()
    });
    let log_format = rows.settle("log_format", raw.log_format.as_ref(), EventFormat::default(), |format| {
        name_of(EventFormat::ALL, *format).to_owned()
    });
    let access_log = access_log(raw, report, rows);
    let trusted_proxies =
        rows.settle("trusted_proxies", raw.trusted_proxies.as_ref(), Vec::new(), |networks| {
            let networks: Vec<String> = networks.iter().map(ToString::to_string).collect();
            format!("[{}]", networks.join(", "))
        });
    let blacklisted = gate::access::blacklisted(raw, report, rows);
    let cache_store = cache_store::accept(&raw.cache_store, report, rows);
    let recorder = telling::recorder::accept(raw.recorder.as_ref(), report, rows);
    let tracing = telling::tracing::accept(raw.tracing.as_ref(), report, rows);
    let top = TopLevel {
        acme: terms,
        cache: route::cache::of_short_forms(raw, report, rows),
        lists: gate::access::lists(&raw.access_lists, report, rows),
        blacklisted,
        rates: gate::rate::limits(&raw.rate_limits, rows),
        address,
        interval: raw.interval.clone(),
        fall: raw.fall.clone(),
        algorithm: raw.algorithm.clone(),
        zone: zone(raw, rows),
        sticky_key: cluster.as_ref().and_then(|cluster| cluster.key.as_ref()).map(|key| key.sticky()),
    };
    let auths = auth::rules(&raw.auth, report, rows);
    let reached = reached(raw, report);
    let mut listeners = Vec::with_capacity(raw.targets.len() + raw.listeners.len());
    let mut owners = Vec::with_capacity(listeners.capacity());
    let mut targets = Vec::with_capacity(raw.targets.len());
    let mut rules = Vec::with_capacity(raw.targets.len());
    for target in &raw.targets {
        let name = target.name.value.as_str();
        let (listener, accepted, of_backends) =
            target::accept(target, reached.get(name).copied(), &top, report, rows);
        targets.push(accepted);
        rules.push(of_backends);
        if let Some(mut listener) = listener {
            let owner = KeyOwner::target(target);
            let path = owner.path("");
            let path = path.trim_end_matches('.');
            listener.auth = auth::accept(&target.own.auth, path, None, &auths, report, rows);
            let protect = |route: Arc<RouteConfig>| match &listener.auth {
                Some(auth) => Arc::new(RouteConfig { auth: Some(Arc::clone(auth)), ..(*route).clone() }),
                None => route,
            };
            listener.routes = std::mem::take(&mut listener.routes).into_iter().map(protect).collect();
            listeners.push(listener);
            owners.push(owner);
        }
    }
    for raw in &raw.listeners {
        let owner = KeyOwner::listener(raw);
        listeners.push(long_form(raw, &owner, &targets, (&top, &auths), report, rows));
        owners.push(owner);
    }
    auth::refuse_targets(&raw.auth, &targets, report);
    telling::scale::warn(&raw.scale, &scale, &targets, report);
    let told = auth::told(auths.all());
    listeners.iter_mut().for_each(|listener| listener.told = Arc::clone(&told));
    clashes::names(&owners, report);
    let all: Vec<_> = owners.into_iter().zip(&listeners).collect();
    clashes::listeners(&all, top.address.value, report);
    loops::refuse(&raw.targets, &all, top.address.value, report);
    loops::refuse_questions((&raw.auth, &raw.targets), &all, top.address.value, report);
    let doors = [
        ("admin.listener", admin.as_deref().map_or(&[][..], |admin| &admin.binds), admin::spot(&raw.admin)),
        ("metrics.listener", &metrics.binds, admin::metrics_spot(&raw.metrics)),
    ];
    clashes::doors(&all, doors, report);
    let tests = tests(raw, rows);
    let access_lists = top.lists.in_order(&raw.access_lists);
    let rate_limits = top.rates.in_order(&raw.rate_limits);
    let config = Config {
        instance,
        admin,
        metrics,
        acme,
        cluster,
        resolver,
        webhooks,
        scale,
        access_lists,
        rate_limits,
        listeners,
        targets,
        watch,
        workers: workers as usize,
        max_connections,
        shutdown_delay,
        shutdown_timeout,
        access_log,
        log_level,
        log_format,
        trusted_proxies,
        cache_store,
        recorder,
        tracing,
        tests,
    };
    (config, rules.into())
}

/// What is spoken on the listeners whose routes lead to targets, by the names of those.
fn reached<'r>(raw: &'r Raw, report: &mut Report) -> HashMap<&'r str, Protocol> {
    let (mut reached, mut first) = (HashMap::new(), HashMap::new());
    for listener in &raw.listeners {
        let protocol = match &listener.protocol {
            Field::Given(written) => written.value.protocol,
            Field::Absent => Protocol::Http,
            Field::Faulty => continue,
        };
        let targets = listener.routes.iter().flat_map(|route| {
            let protocol = if route.is_passthrough() { Protocol::Tcp } else { protocol };
            route.targets().map(move |target| (target, protocol))
        });
        for (target, protocol) in targets {
            let name = target.value.as_str();
            let before = *reached.entry(name).or_insert(protocol);
            let of = *first.entry(name).or_insert(&listener.name.value);
            if before != protocol {
                let (name, other) = (quoted(name), quoted(&listener.name.value));
                let [one, two] = in_order([before, protocol]).map(|spoken| spoken.as_str().to_uppercase());
                let message = if of == &listener.name.value {
                    format!(
                        "the target {name} gets {one} from one route and {two} from another of the listener {other}"
                    )
                } else {
                    format!("the target {name} gets {one} from one listener and {two} from another, {other}")
                };
                report.spot(&target.spot, message).note("give each a target of its own");
            }
        }
    }
    for target in auth::asked(&raw.auth) {
        let before = *reached.entry(target.value.as_str()).or_insert(Protocol::Http);
        if before != Protocol::Http {
            let message = format!(
                "the target {} gets {} from a listener and is asked over HTTP",
                quoted(&target.value),
                before.as_str().to_uppercase()
            );
            report.spot(&target.spot, message).note("give each a target of its own");
        }
    }
    reached
}

/// Two protocols as they are told, whichever came first.
fn in_order([one, other]: [Protocol; 2]) -> [Protocol; 2] {
    let rank = |protocol: Protocol| match protocol {
        Protocol::Http => 0,
        Protocol::Tcp => 1,
        Protocol::Udp => 2,
    };
    if rank(one) <= rank(other) { [one, other] } else { [other, one] }
}

/// One entry of `listeners`, with its routes.
fn long_form(
    raw: &RawListenerConfig,
    owner: &KeyOwner<'_>,
    targets: &[TargetConfig],
    (top, rules): (&TopLevel<'_>, &AuthRules<'_>),
    report: &mut Report,
    rows: &mut EffectiveRows,
) -> ListenerConfig {
    let spoken = owner.spoken(Spoken::HTTP, rows);
    let is_http = spoken.is_some_and(|spoken| spoken.protocol == Protocol::Http);
    if spoken.is_some_and(|spoken| !is_http || spoken.is_https && owner.passes_all) {
        owner.refuse_http_keys(report);
    }
    if spoken == Some(Spoken::UDP) {
        datagrams::refuse_of_listener(owner, report);
    } else {
        datagrams::refuse_its_keys(owner, spoken, report);
    }
    let binds = listener::binds(owner, spoken, top, report, rows);
    let is_secured = owner.passes_all || !matches!(raw.tls, Field::Absent);
    let (_, client) = bounds::timeouts(owner, None, Serves::Clients, spoken, is_secured, report, rows);
    let mut accepted = listener::accept(owner, spoken, client, binds, top, report, rows);
    accepted.rate_limits =
        gate::rate::accept(&raw.own.rate_limit, &owner.path("rate_limit"), is_http, &top.rates, report, rows);
    if raw.routes.is_empty() && !raw.has_routes {
        let message = format!("the listener {} has no `routes`", quoted(&raw.name.value));
        report.spot(&raw.name.spot, message).expected("`routes: [{target: web}]`, with the name of a target");
    }
    let idle: HashMap<&str, Duration> =
        targets.iter().map(|target| (target.name.as_str(), target.timeouts.idle)).collect();
    let names = targets.iter().map(|target| (target.name.as_str(), target.protocol)).collect();
    route::edit_rows(&raw.headers, owner.path("").trim_end_matches('.'), rows);
    let path = owner.path("");
    accepted.auth = auth::accept(&raw.own.auth, path.trim_end_matches('.'), None, rules, report, rows);
    let compress = route::compress::accept(&raw.own.compress, &owner.path("compress"), None, rows);
    let of_all = (&raw.headers, accepted.auth.as_ref(), compress.as_ref());
    let of_clients = (&top.lists, &top.rates, rules);
    let routes = route::accept_all(&raw.routes, owner, &names, of_all, of_clients, report, rows).into_iter();
    // Of two levels the nearest says how long: the route's stands there already.
    let inherit = |mut route: RouteConfig| {
        let of_listener = raw.timeouts.idle.as_ref().map(|idle| idle.value);
        // Of a split each target has its own.
        let mut of_targets: Vec<Duration> =
            route.targets().filter_map(|name| idle.get(name).copied()).collect();
        of_targets.dedup();
        let of_target = if let [one] = of_targets[..] { Some(one) } else { None };
        route.own.idle = route.own.idle.or(of_listener).or(of_target);
        route.own.total = route.own.total.or(raw.timeouts.total.as_ref().map(|total| total.value));
        Arc::new(route)
    };
    accepted.routes = routes.map(inherit).collect();
    route::passthrough::refuse_two_sessions(&raw.routes, targets, report);
    // Of a connection nothing is known by which routes could differ.
    if spoken.is_some() && !is_http {
        let decrypted = || raw.routes.iter().filter(|route| !route.is_passthrough());
        let keys = decrypted().flat_map(|route| &route.http_only);
        for (key, spot) in keys.filter(|(key, _)| *key != "passthrough") {
            let name = owner.spoken_name();
            let message = format!("`{key}` belongs to HTTP, but {} speaks {name}", owner.told());
            report
                .spot(spot, message)
                .note(format!("a `{name}` listener has one route, with nothing but `target`"));
        }
        if decrypted().count() > 1 {
            let what = if decrypted().count() < raw.routes.len() {
                "routes without `passthrough`"
            } else {
                "routes"
            };
            let name = owner.spoken_name();
            let message = format!("{} speaks {name} and has {} {what}", owner.told(), decrypted().count());
            report.spot(&raw.name.spot, message).expected("one route, with nothing but `target`");
        }
    }
    accepted
}

/// What is tested before it is taken.
fn tests(raw: &Raw, rows: &mut EffectiveRows) -> Vec<RoutingTest> {
    for (index, test) in raw.tests.iter().enumerate() {
        rows.note(format!("tests[{index}]"), test.value.request.to_string(), test.spot.origin.clone());
    }
    raw.tests.iter().map(|test| test.value.clone()).collect()
}

/// What is included, item by item.
fn include(raw: &Raw, rows: &mut EffectiveRows) {
    if raw.include.is_empty() {
        rows.note("include", "none", Origin::Default);
    }
    for (index, item) in raw.include.iter().enumerate() {
        let place = if raw.include.len() > 1 { format!("[{index}]") } else { String::new() };
        rows.note(format!("include{place}"), item.value.clone(), item.spot.origin.clone());
    }
}

/// Where this process runs.
fn zone(raw: &Raw, rows: &mut EffectiveRows) -> Option<Arc<str>> {
    let Some(written) = &raw.zone else {
        rows.note("zone", "none", Origin::Default);
        return None;
    };
    rows.note("zone", written.value.to_string(), written.spot.origin.clone());
    Some(Arc::clone(&written.value))
}

fn max_connections(raw: &Raw, rows: &mut EffectiveRows) -> Option<usize> {
    let Some(written) = &raw.max_connections else {
        rows.note("max_connections", "(file descriptor limit - 200) / 2", Origin::Default);
        return None;
    };
    rows.note("max_connections", written.value.to_string(), written.spot.origin.clone());
    Some(written.value as usize)
}

/// `graceful_shutdown: false` says more than any `shutdown_timeout`.
fn shutdown_timeout(raw: &Raw, rows: &mut EffectiveRows) -> Duration {
    let graceful =
        rows.settle("graceful_shutdown", raw.graceful_shutdown.as_ref(), true, ToString::to_string);
    if let (false, Some(written)) = (graceful, &raw.graceful_shutdown) {
        rows.note("shutdown_timeout", "0s", written.spot.origin.clone());
        return Duration::ZERO;
    }
    let show = |time: &Duration| show_duration(*time);
    rows.settle("shutdown_timeout", raw.shutdown_timeout.as_ref(), SHUTDOWN_TIMEOUT, show)
}

fn access_log(raw: &Raw, report: &mut Report, rows: &mut EffectiveRows) -> Option<AccessLog> {
    let Some(written) = &raw.access_log else {
        rows.note("access_log", "off", Origin::Default);
        return None;
    };
    let Some(log) = &written.value else {
        rows.note("access_log", "off", written.spot.origin.clone());
        return None;
    };
    let shown = match &log.path.value {
        LogPath::Stdout => "stdout".to_owned(),
        LogPath::File(path) => path.display().to_string(),
    };
    rows.note("access_log.path", shown, log.path.spot.origin.clone());
    let format =
        rows.settle("access_log.format", log.format.as_ref(), LogFormat::default(), |format| match format {
            LogFormat::Template(template) => template.text().to_owned(),
            LogFormat::Text | LogFormat::Json | LogFormat::Common | LogFormat::Combined => {
                name_of(LogFormat::NAMED, format.clone()).to_owned()
            }
        });
    let sample = rows.settle("access_log.sample", log.sample.as_ref(), Share::ALL, Share::to_string);
    if let LogPath::File(path) = &log.path.value {
        if path.is_dir() {
            let message = format!("the access log `{}` is a folder", path.display());
            report.spot(&log.path.spot, message).expected("a file");
        } else {
            folder::check(path, "the access log", &log.path.spot, report);
        }
    }
    Some(AccessLog { path: log.path.value.clone(), format, sample })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A container that gets another share of the machine would refuse each reload until its restart.
    #[test]
    fn workers_that_nobody_has_written_do_not_follow_the_cores_of_the_machine() {
        let known = OnceLock::new();
        assert_eq!([4, 1, 8].map(|cores| counted_once(&known, || cores)), [4; 3]);
        assert_eq!(counted_once(&OnceLock::new(), || 1 << 20), WORKERS_MAX);
    }
}
