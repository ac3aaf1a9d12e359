//! The keys of a target.

use std::time::Duration;

use super::acme::{ORDERED_CHALLENGE, ORDERED_KEY, ORDERED_NAMES};
use super::cache::{CACHE_OF_TARGET, COMPRESS_OF_TARGET};
use super::dialing::{BIND_SOURCE, KEEPALIVE};
use super::discovery::{FAMILY, FOUND_BY_NAME, FOUND_BY_SERVICE, FOUND_IN_FILE};
use super::gate::TARGET_ACCESS;
use super::http2::HTTP2_OF_TARGET;
use super::proxy_protocol::PROXY_OF_TARGET;
use super::resilience::{BREAKER, HEDGING, OUTLIER, QUEUE, RETRIES};
use crate::config::model::route::{DotSegments, EncodedSlash};
use crate::config::model::tls::offers::{CipherSuite, KeyGroup};
use crate::config::model::tls::{AlpnProtocol, ClientAuth, ExpiredList, TlsVersion, UnknownSni};
use crate::config::model::{
    BackendState, Balance, Forwarded, HashKey, OwnerMode, Portion, SendProxy, UpstreamProtocol,
};
use crate::config::raw::bounds::{
    BOUND, CONNECTIONS_MAX, COUNT_MAX, DAY, HOUR, IN_FLIGHT_MAX, INTERVAL_MIN, MILLISECOND, MONTH,
    PRIORITY_MAX,
};
use crate::config::raw::kind::Kind::{
    Choice, ChoiceAs, ChoiceOrGroup, Group, Items, List, Numeral, OneOrItems, OrOff, Percent, PercentOrWhole,
    Rules, Size, Switch, SwitchOr, SwitchOrText, Text, Time, Whole, WholeOr, Word,
};
use crate::config::raw::kind::{
    ADAPTIVE, BODY, FILE, HOST, HOST_HEADER, Kind, LISTENER, NAME, PARAMETER, PATH, PROTOCOL, SECRET,
    SERVICE, STATUSES, Shape, TOKEN, URL, VERSION, key, names,
};
use crate::config::raw::vocabulary::spoken::Spoken;

/// One target.
pub(in crate::config::raw) const TARGET: Shape = Shape {
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
        HTTP2_OF_TARGET,
        PROXY_OF_TARGET,
        key("auth", OrOff(&Word(NAME)), "How clients show who they are: a rule of `auth`. For `http` only.")
            .or("off"),
        key(
            "send_proxy",
            OrOff(&Choice(|| names(SendProxy::ALL))),
            "The PROXY protocol: the version in which backends are told whose connection they get.",
        )
        .or("off"),
        BIND_SOURCE,
        KEEPALIVE,
        key(
            "upstream_protocol",
            Choice(|| names(UpstreamProtocol::ALL)),
            "What backends are spoken to with: HTTP/1.1, or HTTP/2 on connections that requests share. For `http` only.",
        )
        .or("http"),
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
        key(
            "owner",
            Choice(|| names(OwnerMode::ALL)),
            "How nodes of a cluster share backends: `soft` has each prefer its own. With `max_in_flight`.",
        )
        .or("shared"),
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
            "access",
            Rules(&TARGET_ACCESS),
            "Who may come in at its listener: names of `access_lists`, or a list right here.",
        ),
        key(
            "rate_limit",
            OneOrItems(&Word(NAME)),
            "How often somebody may ask at its listener: names of `rate_limits`.",
        ),
        CACHE_OF_TARGET,
        COMPRESS_OF_TARGET,
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
pub(in crate::config::raw) const ALGORITHM: Kind =
    ChoiceAs(|| names(Balance::ALL), || names(Balance::ALIASES));

/// The `normalize` of a target in the short form.
pub(in crate::config::raw) const TARGET_NORMALIZE: Shape = Shape {
    title: "in `normalize`",
    path: "targets.<name>.normalize.",
    needs: &[],
    keys: &[
        key(
            "dot_segments",
            Choice(|| names(DotSegments::ALL)),
            "Segments `.` and `..` are resolved or refused.",
        )
        .or("resolve"),
        key("encoded_slash", Choice(|| names(EncodedSlash::ALL)), "`%2F` is kept as it is, or refused.")
            .or("keep"),
        key("merge_slashes", Switch, "`on`: several slashes in a row are one.").or("false"),
    ],
};

/// A target's `hash_key`.
pub(in crate::config::raw) const HASH_KEY: Shape = Shape {
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
pub(in crate::config::raw) const STICKY: Shape = Shape {
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
pub(in crate::config::raw) const TLS: Shape = Shape {
    title: "in `tls`",
    path: "targets.<name>.tls.",
    needs: &[],
    keys: &[
        key("cert_file", Word(FILE), "The certificate, and behind it those of its issuers: a PEM file."),
        key("cert_key", Word(FILE), "Its private key, unencrypted: a PEM file; by default in `cert_file`."),
        key("ocsp_file", Word(FILE), "An answer of its authority that is shown with it: an OCSP response in DER."),
        key("certificates", Items(&Group(&CERTIFICATE)), "More certificates, each for the names in it."),
        key("client_ca", Word(FILE), "Who issues the certificates that clients are asked for: a PEM file."),
        key("client_auth", Choice(|| names(ClientAuth::ALL)), "Whether clients need one.").or("required"),
        key(
            "client_crl",
            OneOrItems(&Word(FILE)),
            "Which certificates of clients are revoked: files with revocation lists.",
        ),
        key(
            "client_crl_expired",
            Choice(|| names(ExpiredList::ALL)),
            "What a list is worth that should have been renewed; `refuse`: no certificate of its issuer is taken.",
        )
        .or("keep"),
        key("min_version", Numeral(|| names(TlsVersion::ALL), VERSION), "The oldest to speak.").or("1.2"),
        key(
            "alpn",
            OneOrItems(&Choice(|| names(AlpnProtocol::ALL))),
            "What clients may choose from, the preferred one first; without `h2` where `http2` is off. With `https` only.",
        )
        .or("[h2, http/1.1]"),
        key(
            "unknown_sni",
            Choice(|| names(UnknownSni::ALL)),
            "What becomes of clients that ask for a name which no certificate has, or for none.",
        )
        .or("default"),
        key(
            "cipher_suites",
            OneOrItems(&ChoiceAs(|| names(CipherSuite::ALL), || names(CipherSuite::ALIASES))),
            "Which cipher suites are taken; by default all that are safe. `check` says what a choice costs.",
        ),
        key(
            "groups",
            OneOrItems(&ChoiceAs(|| names(KeyGroup::ALL), || names(KeyGroup::ALIASES))),
            "In which groups keys are exchanged, the preferred one first. `check` says what a choice costs.",
        )
        .or("[X25519MLKEM768, x25519, secp256r1, secp384r1]"),
    ],
};

/// One of the certificates of `tls`.
pub(in crate::config::raw) const CERTIFICATE: Shape = Shape {
    title: "in a certificate",
    path: "targets.<name>.tls.certificates[].",
    needs: &[&["cert_file"], &["dir"], &["acme"]],
    keys: &[
        key("cert_file", Word(FILE), "The certificate, and behind it those of its issuers: a PEM file."),
        key("cert_key", Word(FILE), "Its private key, unencrypted: a PEM file; by default in `cert_file`."),
        key(
            "ocsp_file",
            Word(FILE),
            "An answer of its authority that is shown with it: an OCSP response in DER.",
        ),
        key("dir", Word(FILE), "All certificates of a folder, each with its key in it or beside it."),
        ORDERED_NAMES,
        ORDERED_CHALLENGE,
        ORDERED_KEY,
    ],
};

/// A target's `upstream_tls`.
pub(in crate::config::raw) const UPSTREAM_TLS: Shape = Shape {
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
pub(in crate::config::raw) const HEALTH_CHECK: Shape = Shape {
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
        key("dns", SwitchOrText(HOST), "`on`, or a name: a question of DNS is asked for it. For `udp` only.")
            .or("off"),
        key("grpc", SwitchOrText(SERVICE), "`on`, or a service: `grpc.health.v1` is asked for its health.")
            .or("off"),
        key("send", Word(BODY), "What a check without a path sends, with escapes such as `\\r\\n`."),
        key("receive", Word(BODY), "What a good backend then sends, with the same escapes."),
        key("agent", Whole(1, 65_535), "The port of every backend's agent, which says how much it can take."),
    ],
};

/// A target's `timeouts`.
pub(in crate::config::raw) const TIMEOUTS: Shape = Shape {
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
        key("flow", Time(MILLISECOND, DAY), "Silence of a flow of UDP, in both directions. For `udp` only.")
            .or("30s"),
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
pub(in crate::config::raw) const LIMITS: Shape = Shape {
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
        key(
            "reply_factor",
            OrOff(&Whole(1, COUNT_MAX)),
            "How many times its own bytes a client gets before it has sent something behind our first answer. For `udp` only.",
        )
        .or("30"),
        key(
            "replies",
            OrOff(&Whole(1, COUNT_MAX)),
            "How many datagrams a client gets for each of its own; then its flow is over. For `udp` only.",
        )
        .or("off"),
    ],
};

/// One backend.
pub(in crate::config::raw) const BACKEND: Shape = Shape {
    title: "in a backend",
    path: "targets.<name>.backends[].",
    needs: &[&["host", "port"], &["url"], &["dns", "port"], &["srv"], &["file"]],
    keys: &[
        key("host", Word(HOST), "An IP address or a host name."),
        key("port", Whole(1, 65_535), "Its port."),
        key(
            "url",
            Text(URL),
            "Host and port in one value: `http://host:port` (`https`, `tcp`, `tls`, `udp`) or `unix:/path`.",
        ),
        FOUND_BY_NAME,
        FOUND_BY_SERVICE,
        FOUND_IN_FILE,
        FAMILY,
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
