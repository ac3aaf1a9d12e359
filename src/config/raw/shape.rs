//! Which keys exist where, and what each takes. The walker refuses every other key; `config::keys` hands the list
//! to the tests that keep the documentation complete, and the JSON Schema is made of it.

mod admin;
mod listener;
mod resilience;
mod route;
mod top;

use std::time::Duration;

use super::bounds::{
    BOUND, CONNECTIONS_MAX, COUNT_MAX, DAY, HOUR, IN_FLIGHT_MAX, INTERVAL_MIN, MILLISECOND, MONTH,
    PRIORITY_MAX, WORKERS_MAX,
};
use super::kind::Kind::{
    Choice, ChoiceAs, ChoiceOrGroup, Group, Items, List, Named, Numeral, OneOrItems, OrOff, Percent,
    PercentOrWhole, Seconds, Size, Switch, SwitchOr, SwitchOrChoice, Text, Time, Whole, WholeOr, Word,
};
use super::kind::{
    ADAPTIVE, ADDRESS, BODY, FILE, HOST, HOST_HEADER, INSTANCE, Kind, LISTENER, NAME, NETWORK, PARAMETER,
    PATH, PROTOCOL, RECEIVER, SECRET, STATUSES, Shape, TOKEN, URL, VERSION, key, names,
};
use super::vocabulary::foreign;
use super::vocabulary::nearest::nearest;
use super::vocabulary::spoken::Spoken;
use crate::config::model::tls::{ClientAuth, TlsVersion};
use crate::config::model::{
    BackendState, Balance, EventFormat, Forwarded, HashKey, LogLevel, Portion, WatchMode,
};
pub(super) use admin::{ADMIN, ADMIN_TLS};
pub(super) use listener::{
    LISTENER as LISTENER_SHAPE, LISTENER_CERTIFICATE, LISTENER_LIMITS, LISTENER_TIMEOUTS, LISTENER_TLS,
    NORMALIZE,
};
pub(super) use resilience::{BREAKER, HEDGING, OUTLIER, QUEUE, RETRIES};
pub(super) use route::{ACCESS, MATCH, MIRROR, ROUTE, ROUTE_LIMITS, ROUTE_TIMEOUTS};
pub(super) use top::{ACCESS_LOG, WEBHOOK};

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
        key("webhooks", List(&Group(&WEBHOOK)), "Who is told of events by HTTP."),
        key(
            "on_dead_server_webhook",
            Text(RECEIVER),
            "Who is told when a backend is down or up: a URL, under GoLoadBalance's name.",
        ),
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
        key("listeners", Named(&LISTENER_SHAPE), "Where clients connect, and which of their requests go where."),
        key("targets", Named(&TARGET), "What is balanced: names, each with backends, and often with a listener."),
    ],
};

/// One target.
pub(super) const TARGET: Shape = Shape {
    title: "in a target",
    path: "targets.<name>.",
    needs: &[&["backends"]],
    keys: &[
        key("protocol", Choice(|| names(Spoken::ALL)), "What clients and backends speak.").or("tcp"),
        key(
            "listener",
            OneOrItems(&WholeOr(0, 65_535, LISTENER)),
            "Where clients connect: a port, `\"address:port\"`, `\"*:port\"` or `unix:/path`, or a list of them.",
        ),
        key("tls", Group(&TLS), "TLS towards clients: with `https`, or on a `tcp` target."),
        key("upstream_tls", Group(&UPSTREAM_TLS), "TLS towards all backends of the target."),
        key("balance", ALGORITHM, "How a backend is chosen.").or("round_robin"),
        key("algorithm", ALGORITHM, "The same as `balance`.").or("round_robin"),
        key(
            "hash_key",
            ChoiceOrGroup(|| names(HashKey::NAMED), &HASH_KEY),
            "What of a request is hashed. For `ring_hash` and `maglev` only.",
        )
        .or("client_ip"),
        key(
            "bounded_load",
            OrOff(&Percent(BOUND.0, BOUND.1)),
            "How much of the average load one backend may have. For `ring_hash` only.",
        )
        .or("125%"),
        key("slow_start", OrOff(&Time(MILLISECOND, HOUR)), "How long until a backend has its full share.")
            .or("off"),
        key("sticky", OrOff(&Group(&STICKY)), "A cookie keeps each client on one backend. For `http` only.")
            .or("off"),
        key(
            "health_check",
            OrOff(&Group(&HEALTH_CHECK)),
            "How backends are checked; `off` counts all as healthy.",
        ),
        key("breaker", OrOff(&Group(&BREAKER)), "When no requests go to a backend that keeps failing."),
        key(
            "outlier",
            OrOff(&Group(&OUTLIER)),
            "When a backend is left out that does worse than the others.",
        ),
        key("retries", OrOff(&Group(&RETRIES)), "Which failed attempts are repeated on another backend."),
        key("hedging", SwitchOr(&HEDGING), "When a slow attempt gets a competitor. For `http` only.")
            .or("off"),
        key(
            "max_in_flight",
            OrOff(&WholeOr(1, IN_FLIGHT_MAX, ADAPTIVE)),
            "Requests that one backend has at once; for `http` also `adaptive`.",
        )
        .or("off"),
        key("queue", OrOff(&Group(&QUEUE)), "Requests that wait while every backend has `max_in_flight`."),
        key(
            "panic_threshold",
            OrOff(&PercentOrWhole(0, 100)),
            "While fewer backends than this are left, outliers are not left out.",
        )
        .or("50%"),
        key("timeouts", Group(&TIMEOUTS), "How long backends and clients may take."),
        key(
            "drain_timeout",
            Time(Duration::ZERO, DAY),
            "Within which the tunnels to a backend end that is gone from the file.",
        )
        .or("30s"),
        key("limits", Group(&LIMITS), "What one request may cost, and connections."),
        key(
            "forwarded",
            OrOff(&Choice(|| names(Forwarded::ALL))),
            "Which headers tell the backend about the client. For `http` only.",
        )
        .or("x_forwarded"),
        key(
            "normalize",
            Group(&TARGET_NORMALIZE),
            "What is done about the different ways to write one path.",
        ),
        key("x_real_ip", Switch, "`true`: `X-Real-IP` tells it too. For `http` only.").or("false"),
        key(
            "host",
            Word(HOST_HEADER),
            "What backends get as Host: that of the client, their own address, or this. For `http` only.",
        )
        .or("pass"),
        key(
            "upgrade",
            OrOff(&List(&Word(PROTOCOL))),
            "Protocols that clients may upgrade to. For `http` only.",
        )
        .or("[websocket]"),
        key("backends", Items(&Group(&BACKEND)), "Where traffic goes."),
    ],
};

/// The names of algorithms.
const ALGORITHM: Kind = ChoiceAs(|| names(Balance::ALL), || names(Balance::ALIASES));

/// The `normalize` of a target in the short form.
pub(super) const TARGET_NORMALIZE: Shape = Shape { path: "targets.<name>.normalize.", ..NORMALIZE };

/// A target's `hash_key`.
pub(super) const HASH_KEY: Shape = Shape {
    title: "in `hash_key`",
    path: "targets.<name>.hash_key.",
    needs: &[&["header"], &["cookie"], &["query"]],
    keys: &[
        key("header", Word(TOKEN), "The first header line of this name."),
        key("cookie", Word(TOKEN), "The cookie of this name."),
        key("query", Word(PARAMETER), "The parameter of this name in the query."),
    ],
};

/// A target's `sticky`.
pub(super) const STICKY: Shape = Shape {
    title: "in `sticky`",
    path: "targets.<name>.sticky.",
    needs: &[],
    keys: &[
        key("cookie", Word(TOKEN), "The name of the cookie.").or("evenkeel"),
        key("key", Word(SECRET), "The secret that its values are made with, at least 16 bytes."),
        key("key_file", Word(FILE), "A file that is this secret."),
    ],
};

/// A target's `tls`.
pub(super) const TLS: Shape = Shape {
    title: "in `tls`",
    path: "targets.<name>.tls.",
    needs: &[],
    keys: &[
        key("cert_file", Word(FILE), "The certificate, and behind it those of its issuers: a PEM file."),
        key("cert_key", Word(FILE), "Its private key, unencrypted: a PEM file; by default in `cert_file`."),
        key("certificates", Items(&Group(&CERTIFICATE)), "More certificates, each for the names in it."),
        key("client_ca", Word(FILE), "Who issues the certificates that clients are asked for: a PEM file."),
        key("client_auth", Choice(|| names(ClientAuth::ALL)), "Whether clients need one.").or("required"),
        key("min_version", Numeral(|| names(TlsVersion::ALL), VERSION), "The oldest to speak.").or("1.2"),
    ],
};

/// One of the certificates of `tls`.
pub(super) const CERTIFICATE: Shape = Shape {
    title: "in a certificate",
    path: "targets.<name>.tls.certificates[].",
    needs: &[&["cert_file"]],
    keys: &[
        key("cert_file", Word(FILE), "The certificate, and behind it those of its issuers: a PEM file."),
        key("cert_key", Word(FILE), "Its private key, unencrypted: a PEM file; by default in `cert_file`."),
    ],
};

/// A target's `upstream_tls`.
pub(super) const UPSTREAM_TLS: Shape = Shape {
    title: "in `upstream_tls`",
    path: "targets.<name>.upstream_tls.",
    needs: &[],
    keys: &[
        key("ca_file", Word(FILE), "Who issues the certificates of backends: a PEM file."),
        key("server_name", Word(HOST), "The name in their certificates; by default the backend's host."),
        key("client_cert", Word(FILE), "Shown to backends that ask for a certificate: a PEM file."),
        key("client_key", Word(FILE), "Its private key: a PEM file; by default in `client_cert`."),
        key("insecure", Switch, "`true` takes any certificate: nobody knows who the backend is.").or("false"),
    ],
};

/// A target's `health_check`.
pub(super) const HEALTH_CHECK: Shape = Shape {
    title: "in `health_check`",
    path: "targets.<name>.health_check.",
    needs: &[],
    keys: &[
        key("interval", Time(INTERVAL_MIN, DAY), "The pause between two checks of a backend.").or("2s"),
        key("timeout", Time(MILLISECOND, HOUR), "A check that takes longer has failed.").or("1s"),
        key("rise", Whole(1, COUNT_MAX), "Good checks in a row that bring a backend back.").or("2"),
        key("fall", Whole(1, COUNT_MAX), "Failed checks in a row that take a backend out.").or("3"),
        key("path", Text(PATH), "What to GET; without a path a check is a TCP connect."),
        key("expect", OneOrItems(&WholeOr(100, 599, STATUSES)), "Statuses that count as good.").or("200-399"),
        key("host", Word(HOST_HEADER), "The Host header of the check; by default the backend's address."),
        key("body", Word(BODY), "A text that the body of a good answer contains."),
        key("port", Whole(1, 65_535), "The port that is checked; by default the one that requests go to."),
        key("send", Word(BODY), "What a check without a path sends, with escapes such as `\\r\\n`."),
        key("receive", Word(BODY), "What a good backend then sends, with the same escapes."),
        key("agent", Whole(1, 65_535), "The port of every backend's agent, which says how much it can take."),
    ],
};

/// A target's `timeouts`.
pub(super) const TIMEOUTS: Shape = Shape {
    title: "in `timeouts`",
    path: "targets.<name>.timeouts.",
    needs: &[],
    keys: &[
        key("connect", Time(MILLISECOND, HOUR), "For a backend to accept a connection.").or("3s"),
        key("tls", Time(MILLISECOND, HOUR), "For a TLS handshake with a client or a backend.").or("10s"),
        key(
            "first_byte",
            Time(MILLISECOND, DAY),
            "From a whole request to the answer's head. For `http` only.",
        )
        .or("1m"),
        key("idle", Time(MILLISECOND, DAY), "Silence between bytes of a body, in either direction.").or("1m"),
        key("tunnel", Time(MILLISECOND, MONTH), "Silence on a TCP connection or an upgraded one.").or("1h"),
        key("head", Time(MILLISECOND, HOUR), "For a client to send a request head. For `http` only.")
            .or("10s"),
        key("keep_alive", Time(MILLISECOND, DAY), "Silence between two requests. For `http` only.").or("1m"),
        key(
            "half_closed",
            OrOff(&Time(Duration::ZERO, HOUR)),
            "For a client that waits for a backend and has ended its side of the connection.",
        )
        .or("1s"),
        key("queue", Time(MILLISECOND, HOUR), "In the queue, while every backend has `max_in_flight`.")
            .or("5s"),
        key(
            "attempt",
            OrOff(&Time(MILLISECOND, DAY)),
            "For one attempt, to the answer's head. For `http` only.",
        )
        .or("off"),
        key(
            "total",
            OrOff(&Time(MILLISECOND, DAY)),
            "For all attempts, to the answer's head. For `http` only.",
        )
        .or("off"),
    ],
};

/// A target's `limits`.
pub(super) const LIMITS: Shape = Shape {
    title: "in `limits`",
    path: "targets.<name>.limits.",
    needs: &[],
    keys: &[
        key("head_size", Size(1 << 10, 64 << 10), "Bytes of a request head.").or("32KiB"),
        key("headers", Whole(1, 1_000), "Header lines of a request.").or("100"),
        key("body", OrOff(&Size(1, 1 << 50)), "Bytes of a request body.").or("off"),
        key("body_rate", OrOff(&Size(1, 1 << 30)), "Bytes per second that a request body must keep up.")
            .or("240B"),
        key("connections", OrOff(&Whole(1, CONNECTIONS_MAX)), "Client connections at once on this listener.")
            .or("off"),
        key(
            "connections_per_client",
            OrOff(&Whole(1, CONNECTIONS_MAX)),
            "The same from one client address (of IPv6: one /64).",
        )
        .or("off"),
    ],
};

/// One backend.
pub(super) const BACKEND: Shape = Shape {
    title: "in a backend",
    path: "targets.<name>.backends[].",
    needs: &[&["host", "port"], &["url"]],
    keys: &[
        key("host", Word(HOST), "An IP address or a host name."),
        key("port", Whole(1, 65_535), "Its port."),
        key(
            "url",
            Text(URL),
            "Host and port in one value: `http://host:port` (`https`, `tcp`, `tls`) or `unix:/path`.",
        ),
        key("name", Word(NAME), "What it is called in logs; by default the written `host:port`."),
        key("health_path", Text(PATH), "What its checks GET, instead of the target's `health_check.path`."),
        key("weight", Whole(0, Portion::WEIGHT_MAX as u32), "How much it gets beside its siblings.").or("1"),
        key("backup", Switch, "`true`: gets traffic when all others are out.").or("false"),
        key("priority", Whole(0, PRIORITY_MAX), "Gets traffic when all of a lower number are out.").or("0"),
        key("zone", Word(NAME), "Where it runs."),
        key(
            "state",
            Choice(|| names(BackendState::ALL)),
            "`drain`: only sticky clients get it; `down`: nobody does. `up` forces nothing.",
        )
        .or("up"),
    ],
};

/// Every shape, outermost first.
pub(in crate::config) const ALL: &[Shape] = &[
    TOP,
    ACCESS_LOG,
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
    LISTENER_SHAPE,
    LISTENER_TLS,
    LISTENER_CERTIFICATE,
    NORMALIZE,
    LISTENER_LIMITS,
    LISTENER_TIMEOUTS,
    ROUTE,
    MATCH,
    ACCESS,
    ROUTE_TIMEOUTS,
    MIRROR,
    ROUTE_LIMITS,
    // Behind those whose keys they have too: a key in the wrong place is more often one of a target.
    ADMIN,
    ADMIN_TLS,
    WEBHOOK,
];

/// The key of `shape` that somebody who wrote `key` probably meant.
pub(super) fn meant(shape: &Shape, key: &str) -> Option<&'static str> {
    let lower = key.to_lowercase().replace('-', "_");
    let foreign = foreign::ours(&lower).find(|ours| shape.has(first(ours)));
    foreign.or_else(|| nearest(&lower, shape.names()))
}

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

/// Where a key stands that is known, but not where it was written.
pub(super) fn home(key: &str) -> Option<Home> {
    let lower = key.to_lowercase().replace('-', "_");
    let of = |key: &str| ALL.iter().find(|shape| shape.has(key)).map(|shape| shape.path);
    if let Some(path) = of(&lower) {
        return Some(Home { path, key: lower, is_foreign: false });
    }
    let ours = foreign::ours(&lower).next()?;
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
        let at = |key: &str| home(key).map(|home| format!("{}{}", home.path, home.key));
        assert_eq!(at("backends").as_deref(), Some("targets.<name>.backends"));
        assert_eq!(at("max_fails").as_deref(), Some("targets.<name>.breaker.failures"));
        assert_eq!(meant(&TOP, "zebra"), None);
    }

    #[test]
    fn no_planned_key_hides_a_key_that_exists() {
        for shape in ALL {
            for name in shape.names() {
                let both = super::super::vocabulary::later::key(name).is_some();
                // `headers` is a limit here and a table of header edits there; known keys are looked up first.
                assert!(!both || matches!(name, "headers" | "access" | "allow" | "deny"), "{name}");
            }
        }
    }
}
