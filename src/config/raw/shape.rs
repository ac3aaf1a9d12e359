//! Which keys exist where, and what each takes. The walker refuses every other key; `config::keys` hands the list
//! to the tests that keep the documentation complete, and the JSON Schema is made of it.

mod acme;
mod action;
mod admin;
mod auth;
mod cache;
mod cluster;
mod dialing;
mod discovery;
mod edits;
mod gate;
mod http2;
mod listener;
mod proxy_protocol;
mod resilience;
mod route;
mod routing_test;
mod target;
mod top;

use std::time::Duration;

use super::bounds::{CONNECTIONS_MAX, COUNT_MAX, DAY, HOUR, INTERVAL_MIN, SECOND, WORKERS_MAX, YEAR};
use super::kind::Kind::{
    Choice, Group, Items, List, Named, OneOrItems, OrOff, Seconds, Switch, SwitchOrChoice, Text, Time, Whole,
    Word,
};
use super::kind::{ADDRESS, FILE, INSTANCE, NAME, NETWORK, RECEIVER, Shape, URL, is_inside, key, names};
use super::vocabulary::foreign;
use super::vocabulary::nearest::nearest;
use crate::config::model::{EventFormat, LogLevel, WatchMode};
pub(super) use acme::{ACME, EAB};
pub(super) use action::{REDIRECT, RESPOND, ROUTE_HASH_KEY, ROUTE_RETRIES, SPLIT, SPLIT_BY};
pub(super) use admin::{ADMIN, ADMIN_TLS};
pub(super) use auth::{AUTH, BASIC, FORWARD, JWT};
pub(super) use cache::{
    CACHE_STORE, LISTENER_CODINGS, LISTENER_COMPRESS, ROUTE_CACHE, ROUTE_CODINGS, ROUTE_COMPRESS,
    TARGET_CACHE, TARGET_CODINGS, TARGET_COMPRESS,
};
pub(super) use cluster::{CLUSTER, ETCD};
pub(super) use dialing::TCP_KEEPALIVE;
pub(super) use discovery::RESOLVER;
pub(super) use edits::{
    LISTENER_HEADERS, LISTENER_LINES, LISTENER_REQUEST, LISTENER_RESPONSE, ROUTE_HEADERS, ROUTE_LINES,
    ROUTE_REQUEST, ROUTE_RESPONSE, ROUTE_REWRITE,
};
pub(super) use gate::{ACCESS, ACCESS_LIST, LISTENER_ACCESS, RATE_BY, RATE_LIMIT, TARGET_ACCESS};
pub(super) use http2::{LISTENER_HTTP2, TARGET_HTTP2};
pub(super) use listener::{
    LISTENER as LISTENER_SHAPE, LISTENER_CERTIFICATE, LISTENER_LIMITS, LISTENER_TIMEOUTS, LISTENER_TLS,
    NORMALIZE,
};
pub(super) use proxy_protocol::{LISTENER_PROXY, TARGET_PROXY};
pub(super) use resilience::{BREAKER, HEDGING, OUTLIER, QUEUE, RETRIES};
pub(super) use route::{CERTIFICATE_MATCH, MATCH, MIRROR, ROUTE, ROUTE_LIMITS, ROUTE_TIMEOUTS};
pub(super) use routing_test::{EXPECT, ROUTING_TEST, SAMPLE_CERTIFICATE};
pub(super) use target::{
    ALGORITHM, BACKEND, CERTIFICATE, HASH_KEY, HEALTH_CHECK, LIMITS, STICKY, TARGET, TARGET_NORMALIZE,
    TIMEOUTS, TLS, UPSTREAM_TLS,
};
pub(super) use top::{ACCESS_LOG, METRICS, RECORDER, SCALE, SCALE_IN, SCALE_OUT, STATSD, TRACING, WEBHOOK};

/// The file itself.
pub(super) const TOP: Shape = Shape {
    title: "at the top level",
    path: "",
    // Any of them may be in a file that this one includes, or that includes it.
    needs: &[],
    keys: &[
        key(
            "include",
            OneOrItems(&Word(FILE)),
            "Files or patterns such as `conf.d/*.yaml`: what is in them counts as if it stood here.",
        ),
        key(
            "watch",
            SwitchOrChoice(|| names(WatchMode::ALL)),
            "Whether the config and the files that it names are loaded when they change; `files`: only those that it names.",
        )
        .or("on"),
        key("name", Word(INSTANCE), "What this process is called beside others on the same machine."),
        key("state_dir", Word(FILE), "The folder of what outlives the process."),
        key("admin", Group(&ADMIN), "How the process is asked and told things while it serves."),
        key("metrics", Group(&METRICS), "How numbers get to those who collect them."),
        key("acme", Group(&ACME), "Who issues certificates for us, for `tls.certificates: [{acme: […]}]`."),
        key("cluster", Group(&CLUSTER), "Which processes act as one, and where they keep what they share."),
        key("resolver", Group(&RESOLVER), "How DNS is asked for backends with `dns` or `srv`."),
        key("webhooks", List(&Group(&WEBHOOK)), "Who is told of events by HTTP."),
        key(
            "on_dead_server_webhook",
            Text(RECEIVER),
            "Who is told when a backend is down or up: a URL, under GoLoadBalance's name.",
        ),
        key("scale", Group(&SCALE), "When it is told that a target has too few backends, or more than it needs."),
        key("address", Text(ADDRESS), "Where listeners are bound that are a port alone.").or("127.0.0.1"),
        key("workers", Whole(1, WORKERS_MAX), "Threads that carry traffic; by default one per core."),
        key("max_connections", Whole(1, CONNECTIONS_MAX), "Client connections at once, over all listeners."),
        key("shutdown_delay", Time(Duration::ZERO, HOUR), "How long it goes on serving after SIGTERM.")
            .or("0s"),
        key("shutdown_timeout", Time(Duration::ZERO, HOUR), "How long requests may finish after SIGTERM.")
            .or("30s"),
        key("graceful_shutdown", Switch, "`false` cuts everything at once on SIGTERM.").or("true"),
        key("logging", Choice(|| names(LogLevel::ALL)), "The lowest level of events to log.").or("info"),
        key("log_format", Choice(|| names(EventFormat::ALL)), "How events look.").or("text"),
        key("access_log", OrOff(&Group(&ACCESS_LOG)), "Records of requests and connections.").or("off"),
        key("trusted_proxies", List(&Text(NETWORK)), "Peers whose forwarding headers are kept.").or("[]"),
        key(
            "blacklisted_ips",
            List(&Text(NETWORK)),
            "Clients that get 401 on the listeners of targets, under GoLoadBalance's name.",
        )
        .or("[]"),
        key("cache_store", Group(&CACHE_STORE), "How much is kept of answers, for all routes together."),
        key("recorder", OrOff(&Group(&RECORDER)), "What is kept of requests that are over, for `evenkeel why`."),
        key("tracing", OrOff(&Group(&TRACING)), "Where traces of requests are sent, and of which.").or("off"),
        key(
            "cache_enabled",
            Switch,
            "`true`: `cache` with this `ttl` on the listeners of targets, under GoLoadBalance's name.",
        )
        .or("false"),
        key("cache_timeout_in_seconds", Seconds(SECOND, YEAR), "The `ttl` of `cache_enabled`.").or("10s"),
        key("health_check_interval", Seconds(INTERVAL_MIN, DAY), "`health_check.interval` of all targets.")
            .or("2s"),
        key(
            "health_check_frequency_in_seconds",
            Seconds(INTERVAL_MIN, DAY),
            "The same under GoLoadBalance's name.",
        )
        .or("2s"),
        key("health_check_max_retries", Whole(1, COUNT_MAX), "`health_check.fall` of all targets.").or("3"),
        key("zone", Word(NAME), "Where this process runs: backends of the same `zone` are preferred."),
        key("algorithm", ALGORITHM, "`balance` of all targets.").or("round_robin"),
        key("servers", Items(&Text(URL)), "Backends of one HTTP target on port 3030, instead of `targets`."),
        key("access_lists", Named(&ACCESS_LIST), "Who may come in by address: lists that `access` names."),
        key("auth", Named(&AUTH), "How clients show who they are: rules that the `auth` of listeners and routes names."),
        key("rate_limits", Named(&RATE_LIMIT), "How often somebody may ask: limits that `rate_limit` names."),
        key("listeners", Named(&LISTENER_SHAPE), "Where clients connect, and which of their requests go where."),
        key("targets", Named(&TARGET), "What is balanced: names, each with backends, and often with a listener."),
        key(
            "tests",
            List(&Group(&ROUTING_TEST)),
            "Requests, and what has to become of each before the config is taken.",
        ),
    ],
};

/// Every shape, outermost first.
pub(in crate::config) const ALL: &[Shape] = &[
    TOP,
    ACME,
    EAB,
    CLUSTER,
    ETCD,
    RESOLVER,
    ACCESS_LOG,
    CACHE_STORE,
    RECORDER,
    TARGET,
    HASH_KEY,
    STICKY,
    TLS,
    CERTIFICATE,
    UPSTREAM_TLS,
    HEALTH_CHECK,
    BREAKER,
    OUTLIER,
    RETRIES,
    HEDGING,
    QUEUE,
    TIMEOUTS,
    LIMITS,
    BACKEND,
    TARGET_NORMALIZE,
    TARGET_ACCESS,
    TARGET_HTTP2,
    TARGET_PROXY,
    TCP_KEEPALIVE,
    TARGET_CACHE,
    TARGET_COMPRESS,
    TARGET_CODINGS,
    LISTENER_SHAPE,
    LISTENER_TLS,
    LISTENER_CERTIFICATE,
    NORMALIZE,
    LISTENER_ACCESS,
    LISTENER_HTTP2,
    LISTENER_PROXY,
    LISTENER_COMPRESS,
    LISTENER_CODINGS,
    LISTENER_LIMITS,
    LISTENER_TIMEOUTS,
    ROUTE,
    MATCH,
    CERTIFICATE_MATCH,
    ACCESS,
    ROUTE_CACHE,
    ROUTE_COMPRESS,
    ROUTE_CODINGS,
    ROUTE_TIMEOUTS,
    MIRROR,
    ROUTE_LIMITS,
    ROUTE_REWRITE,
    ROUTE_LINES,
    ROUTE_REQUEST,
    ROUTE_RESPONSE,
    ROUTE_RETRIES,
    ROUTE_HASH_KEY,
    SPLIT,
    SPLIT_BY,
    REDIRECT,
    RESPOND,
    LISTENER_LINES,
    LISTENER_REQUEST,
    LISTENER_RESPONSE,
    ACCESS_LIST,
    AUTH,
    BASIC,
    FORWARD,
    JWT,
    RATE_LIMIT,
    RATE_BY,
    // Behind those whose keys they have too: a key in the wrong place is more often one of a target.
    ADMIN,
    ADMIN_TLS,
    METRICS,
    STATSD,
    WEBHOOK,
    SCALE,
    SCALE_OUT,
    SCALE_IN,
    TRACING,
    ROUTING_TEST,
    SAMPLE_CERTIFICATE,
    EXPECT,
];

/// The key of `shape` that somebody who wrote `key` probably meant.
pub(super) fn meant(shape: &Shape, key: &str) -> Option<&'static str> {
    let lower = key.to_lowercase().replace('-', "_");
    let foreign = foreign::ours(&lower).find(|ours| shape.has(first(ours)));
    foreign.or_else(|| nearest(&lower, shape.names()))
}

/// Sections whose keys nobody looks for elsewhere.
const APART: &[&str] = &["cluster.", "metrics.", "recorder.", "scale.", "tracing."];

/// Where a key stands that is known, but not where it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Home {
    /// The path of its mapping, with a dot at the end.
    pub(super) path: &'static str,
    /// Its name.
    pub(super) key: String,
    /// It was written under another name.
    pub(super) is_foreign: bool,
}

/// Where a key stands that is known, but not where it was written, in a mapping of this shape: further inside of that, if it can.
pub(super) fn home(key: &str, written: &Shape) -> Option<Home> {
    // What is told to others has words of its own: what is written there is meant to be there.
    let is_apart = APART.iter().any(|path| written.path.starts_with(path));
    let lower = key.to_lowercase().replace('-', "_");
    let of = |key: &str| {
        let having = || ALL.iter().filter(|shape| shape.has(key));
        let inside = having().find(|shape| !written.path.is_empty() && is_inside(shape.path, written.path));
        inside.or_else(|| having().next().filter(|_| !is_apart)).map(|shape| shape.path)
    };
    if let Some(path) = of(&lower) {
        return Some(Home { path, key: lower, is_foreign: false });
    }
    let ours = foreign::ours(&lower).next().filter(|_| !is_apart)?;
    Some(Home { path: of(first(ours))?, key: ours.to_owned(), is_foreign: true })
}

/// The key that a path begins with.
fn first(path: &str) -> &str {
    path.split('.').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_and_foreign_words_are_understood() {
        let table = [
            (&TOP, "wokers", "workers"),
            (&TOP, "upstreams", "targets"),
            (&TARGET, "servers", "backends"),
            (&TARGET, "health-check", "health_check"),
            (&BACKEND, "prot", "port"),
            (&TOP, "maxconn", "max_connections"),
            (&TARGET, "maxconn", "max_in_flight"),
            (&TARGET, "maxqueue", "queue.size"),
            (&TARGET, "agent-check", "health_check.agent"),
            (&HEALTH_CHECK, "agent-check", "agent"),
            (&TARGET, "retry_on", "retries.on"),
            (&RETRIES, "retry_on", "on"),
        ];
        for (shape, key, ours) in table {
            assert_eq!(meant(shape, key), Some(ours), "{key}");
        }
        let at = |key: &str| home(key, &TOP).map(|home| format!("{}{}", home.path, home.key));
        assert_eq!(at("backends").as_deref(), Some("targets.<name>.backends"));
        assert_eq!(at("max_fails").as_deref(), Some("targets.<name>.breaker.failures"));
        let nearer = home("cache", &LISTENER_SHAPE).map(|home| home.path);
        assert_eq!(nearer, Some("listeners.<name>.routes[]."));
        assert_eq!(meant(&TOP, "zebra"), None);
    }

    #[test]
    fn no_planned_key_hides_a_key_that_exists() {
        for shape in ALL {
            for name in shape.names() {
                assert!(super::super::vocabulary::later::key(name, shape.path).is_none(), "{name}");
            }
        }
    }
}
