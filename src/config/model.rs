//! The accepted form of a configuration: checked, expanded, every default filled in.
//!
//! Nothing here knows YAML, files or flags, and no shorthand survives: a seed-style target is already a
//! listener, a catch-all route and a target. Anyone may import this file; it imports nothing of ours.

mod access;
mod admin;
pub mod auth;
pub mod balance;
pub mod cache;
pub mod discovery;
pub mod distinct_json;
mod expiring;
mod grpc;
mod http2;
pub mod jwt;
mod listener;
mod process;
mod proxy_protocol;
mod rate;
pub mod resilience;
pub mod route;
pub mod routing_test;
pub mod telling;
pub mod template;
pub mod text;
pub mod tls;
mod watch;
mod wildcard;

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;

pub use access::AccessList;
pub use admin::{AdminAccess, AdminToken, Scope};
pub use auth::{Auth, AuthKind, BasicAuth, ForwardAuth, PasswordHash, User};
pub use balance::{BackendState, Balance, HashKey, OwnerMode, Policy, Portion, Sticky};
pub use grpc::{GrpcStatus, GrpcStatuses};
pub use http2::Http2;
pub use listener::{Bind, ClientTimeouts, Forwarded, Limits, ListenerConfig, Protocol};
pub use process::cluster::{ClusterConfig, ClusterKey, EtcdConfig};
pub use process::instance::{AdminSocket, Instance};
pub use proxy_protocol::{ProxyFact, ProxySenders, SendProxy};
pub use rate::{RateBy, RateLimit, RatePeriod};
pub use resilience::Resilience;
pub use route::{Normalize, RouteConfig};
pub use routing_test::{Expectation, ExpectedAnswer, RoutingTest, SampleCertificate, SampleRequest};
pub use telling::log::{AccessLog, EventFormat, LogFormat, LogPath, Share};
pub use telling::metrics::MetricsConfig;
pub use telling::recorder::RecorderConfig;
pub use telling::scale::{ScaleConfig, ScaleIn, ScaleOut};
pub use telling::statsd::{StatsdAddress, StatsdConfig, StatsdFormat};
pub use telling::tracing::{TraceHeaders, TracingConfig};
pub use telling::webhook::{HttpUrl, Webhook, WebhookEvent, WebhookSecret};
pub use template::Template;
pub use text::Text;
pub use watch::WatchMode;
pub use wildcard::Wildcard;

use discovery::{BackendSource, FoundBy, ResolverConfig};
use tls::acme::AcmeConfig;
use tls::{AlpnProtocol, UpstreamTls};

/// One accepted configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// What tells this process from others.
    pub instance: Instance,
    /// The admin API over TCP; `None`: there is none.
    pub admin: Option<Arc<AdminAccess>>,
    /// Where metrics are given.
    pub metrics: MetricsConfig,
    /// Who issues certificates for us.
    pub acme: AcmeConfig,
    /// Which processes this one acts with; `None`: it stands alone.
    pub cluster: Option<Arc<ClusterConfig>>,
    /// How DNS is asked for backends.
    pub resolver: ResolverConfig,
    /// Who is told of events by HTTP, in the order of the file.
    pub webhooks: Vec<Webhook>,
    /// When a target is told to have too few backends, or more than it needs.
    pub scale: ScaleConfig,
    /// Lists that `access` names, in the order of the file.
    pub access_lists: Vec<Arc<AccessList>>,
    /// How often somebody may ask, by name, in the order of the files.
    pub rate_limits: Vec<Arc<RateLimit>>,
    /// Bound addresses, in the order of the file.
    pub listeners: Vec<ListenerConfig>,
    /// Pools of backends, in the order of the file.
    pub targets: Vec<TargetConfig>,
    /// Which of its files are watched.
    pub watch: WatchMode,
    /// Worker threads, 1 to 1,024.
    pub workers: usize,
    /// Client connections at once over all listeners; `None`: (descriptor limit − 200) ÷ 2.
    pub max_connections: Option<usize>,
    /// How long it goes on serving after SIGTERM before it drains. Default 0.
    pub shutdown_delay: Duration,
    /// How long requests and tunnels may finish after SIGTERM; zero: they are cut at once.
    pub shutdown_timeout: Duration,
    /// Where access records go; `None`: nowhere.
    pub access_log: Option<AccessLog>,
    /// Lowest level of events that are logged.
    pub log_level: LogLevel,
    /// The form of events.
    pub log_format: EventFormat,
    /// Peers whose forwarding headers are kept instead of replaced.
    pub trusted_proxies: Vec<IpNet>,
    /// How much of answers is kept.
    pub cache_store: cache::CacheStoreConfig,
    /// What is kept of requests that are over; `None`: nothing.
    pub recorder: Option<RecorderConfig>,
    /// Where traces are sent; `None`: nowhere.
    pub tracing: Option<TracingConfig>,
    /// What has to become of requests before any of this is taken, in the order of the files.
    pub tests: Vec<RoutingTest>,
}

/// A named pool of backends with one balancing policy.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetConfig {
    /// The key it was written under.
    pub name: String,
    /// What its clients speak.
    pub protocol: Protocol,
    /// What its backends speak, if that is HTTP.
    pub upstream: UpstreamProtocol,
    /// In which version backends are told whose connection they get, before anything else is said; `None`: they are not.
    pub send_proxy: Option<SendProxy>,
    /// What backends get as Host.
    pub host: HostHeader,
    /// How a backend is chosen.
    pub balance: Policy,
    /// The cookie that keeps a client on one backend; `None`: there is none.
    pub sticky: Option<Sticky>,
    /// How backends are probed; `None` (`health_check: off`): they count as healthy.
    pub health: Option<HealthCheck>,
    /// How long backends may take.
    pub timeouts: Timeouts,
    /// Within which the tunnels to a backend end that is not among them any more; zero: they are cut at once.
    pub drain_timeout: Duration,
    /// What is done about those that fail, and about too many requests.
    pub resilience: Resilience,
    /// Protocols that a client may upgrade to, in lower case. Default: `websocket`.
    pub upgrade: Vec<String>,
    /// In the order of the file; behind them those that were found.
    pub backends: Vec<BackendConfig>,
    /// Where more of them come from, in the order of the file.
    pub sources: Vec<BackendSource>,
}

impl TargetConfig {
    /// What `drain_timeout` is where nobody says.
    pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

    /// What its backends are asked to speak behind TLS; `None`: nothing, it is not HTTP.
    #[must_use]
    pub fn alpn(&self) -> Option<AlpnProtocol> {
        match (self.protocol, self.upstream) {
            (Protocol::Tcp | Protocol::Udp, _) => None,
            (Protocol::Http, UpstreamProtocol::Http) => Some(AlpnProtocol::Http1),
            (Protocol::Http, UpstreamProtocol::H2 | UpstreamProtocol::Grpc) => Some(AlpnProtocol::H2),
        }
    }
}

/// What backends are spoken to with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UpstreamProtocol {
    /// HTTP/1.1: each request has a connection to itself while it lasts.
    #[default]
    Http,
    /// HTTP/2, of which they are known to be able: requests share connections.
    H2,
    /// The same, where requests are calls of gRPC: they have their own deadlines, may be silent for long, and end with a status of their own.
    Grpc,
}

impl UpstreamProtocol {
    /// Every one with the name it has in a config file.
    pub const ALL: &'static [(&'static str, UpstreamProtocol)] =
        &[("http", UpstreamProtocol::Http), ("h2", UpstreamProtocol::H2), ("grpc", UpstreamProtocol::Grpc)];

    /// True where requests are streams.
    #[must_use]
    #[inline]
    pub fn is_http2(self) -> bool {
        self != UpstreamProtocol::Http
    }

    /// True where requests are calls of gRPC.
    #[must_use]
    #[inline]
    pub fn is_grpc(self) -> bool {
        self == UpstreamProtocol::Grpc
    }
}

/// What backends get as Host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HostHeader {
    /// What the client sent.
    #[default]
    Pass,
    /// The backend's own address, as written.
    Backend,
    /// This.
    Name(String),
}

impl HostHeader {
    /// Those that have a name in a config file.
    pub const NAMED: &'static [(&'static str, HostHeader)] =
        &[("pass", HostHeader::Pass), ("backend", HostHeader::Backend)];
}

/// One address inside a target.
#[derive(Clone, Debug, PartialEq)]
pub struct BackendConfig {
    /// Unique inside the target; defaults to the written `host:port`.
    pub name: String,
    /// Where it is.
    pub address: BackendAddress,
    /// What its probe asks for with GET; `None`: the probe is a TCP connect.
    pub probe_path: Option<String>,
    /// TLS towards it, for requests and probes; `None`: plain.
    pub tls: Option<Arc<UpstreamTls>>,
    /// How much it gets beside its siblings.
    pub portion: Portion,
    /// What the operator wants of it. Another state is the same backend.
    pub state: BackendState,
    /// Who has set the state by hand, as events say it after the word: `by hand (uid 0)`; `None`: the config.
    pub state_by: Option<Arc<str>>,
    /// How connections to it are made.
    pub dialing: Arc<Dialing>,
    /// How it was found; `None`: a config or somebody names it.
    pub found: Option<Arc<FoundBy>>,
}

impl BackendConfig {
    /// What it is called where it is asked as itself: its address as written, without the port where HTTP implies it; of one that was found
    /// the name that was asked for.
    #[must_use]
    pub fn authority(&self) -> String {
        let tls = self.tls.is_some();
        match (&self.found, &self.address) {
            (Some(found), BackendAddress::Host { port, .. }) => {
                BackendAddress::Host { host: found.asks.host().to_owned(), port: *port }.authority(tls)
            }
            _ => self.address.authority(tls),
        }
    }
}

/// How connections to backends are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialing {
    /// The addresses of this machine that they come from, each in its turn; empty: as the system chooses.
    pub sources: Vec<IpAddr>,
    /// When one whose other side has vanished is noticed; `None`: the kernel does not ask.
    pub keepalive: Option<KeepaliveTimes>,
}

impl Default for Dialing {
    fn default() -> Dialing {
        Dialing { sources: Vec::new(), keepalive: Some(KeepaliveTimes::default()) }
    }
}

/// When a kernel asks whether the other side of a silent connection is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepaliveTimes {
    /// Silence before it asks. Default 60 s.
    pub idle: Duration,
    /// From one question to the next. Default 20 s.
    pub interval: Duration,
    /// Questions without an answer that end the connection. Default 3.
    pub count: u32,
}

impl Default for KeepaliveTimes {
    fn default() -> KeepaliveTimes {
        KeepaliveTimes { idle: Duration::from_secs(60), interval: Duration::from_secs(20), count: 3 }
    }
}

/// Where a backend is, as written; names are resolved later and again and again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum BackendAddress {
    /// A literal address or a name, and a port from 1 to 65,535.
    Host {
        /// An IP address (v6 without brackets) or a DNS name.
        host: String,
        /// The port.
        port: u16,
    },
    /// A unix stream socket at this path.
    Unix(PathBuf),
}

impl BackendAddress {
    /// It as a Host: `host:port`, without the port where HTTP implies it (RFC 9110 §7.2). `tls`: it is spoken to over TLS.
    #[must_use]
    pub fn authority(&self, tls: bool) -> String {
        let implied = if tls { 443 } else { 80 };
        match self {
            BackendAddress::Host { host, port } if *port == implied && host.contains(':') => {
                format!("[{host}]")
            }
            BackendAddress::Host { host, port } if *port == implied => host.clone(),
            BackendAddress::Host { .. } => self.to_string(),
            // A path is no authority; servers on unix sockets rarely look at it.
            BackendAddress::Unix(_) => "localhost".to_owned(),
        }
    }
}

impl std::fmt::Display for BackendAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BackendAddress::Host { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            BackendAddress::Host { host, port } => write!(f, "{host}:{port}"),
            BackendAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// An active check.
#[derive(Clone, Debug, PartialEq)]
pub struct HealthCheck {
    /// From the end of one probe to the start of the next, before jitter; half of it from start to start while
    /// the latest probe contradicts the state in force. Default 2 s.
    pub interval: Duration,
    /// A probe that takes longer has failed. Default 1 s.
    pub timeout: Duration,
    /// Good probes in a row that bring a backend back. Default 2.
    pub rise: u32,
    /// Bad probes in a row that take a backend out. Default 3.
    pub fall: u32,
    /// Statuses that count as good. Default 200-399.
    pub expect: Vec<RangeInclusive<u16>>,
    /// The Host header of the probe; `None`: that of the target, or the backend's address.
    pub host: Option<String>,
    /// What the body of a good answer contains; `None`: it is not read.
    pub body: Option<String>,
    /// The port that is probed at every backend's address; `None`: the one that requests go to.
    pub port: Option<u16>,
    /// The service whose health is asked for by `grpc.health.v1.Health/Check`; empty: that of the whole server. `None`: that is not asked.
    pub grpc: Option<String>,
    /// The name that is asked for by DNS; the root's where it is empty. `None`: none is.
    pub dns: Option<String>,
    /// What a probe without a path sends; `None`: nothing.
    pub send: Option<Vec<u8>>,
    /// What a good backend sends to a probe without a path; `None`: it is not waited for.
    pub receive: Option<Vec<u8>>,
    /// The port of every backend's agent, which says how much it can take; `None`: there is none.
    pub agent: Option<u16>,
}

impl HealthCheck {
    /// Whether both ask the same and expect the same. How often, how long and how many in a row is another matter.
    #[must_use]
    pub fn asks_like(&self, other: &HealthCheck) -> bool {
        let question = |check: &HealthCheck| {
            let HealthCheck { expect, host, body, port, grpc, dns, send, receive, .. } = check.clone();
            (expect, host, body, port, grpc, dns, send, receive)
        };
        question(self) == question(other)
    }
}

impl Default for HealthCheck {
    fn default() -> Self {
        HealthCheck {
            interval: Duration::from_secs(2),
            timeout: Duration::from_secs(1),
            rise: 2,
            fall: 3,
            expect: vec![200..=399],
            host: None,
            body: None,
            port: None,
            grpc: None,
            dns: None,
            send: None,
            receive: None,
            agent: None,
        }
    }
}

/// How long a backend may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// To accept a connection. Default 3 s.
    pub connect: Duration,
    /// For the TLS handshake with a backend. Default 10 s.
    pub tls: Duration,
    /// From when the whole request has been sent to the end of the answer's head. Default 60 s.
    pub first_byte: Duration,
    /// Between bytes of a body, in either direction. Default 60 s.
    pub idle: Duration,
    /// Silence on a TCP connection or an upgraded one. Default 1 h.
    pub tunnel: Duration,
    /// Silence of a flow of UDP, in both directions, that ends it. Default 30 s.
    pub flow: Duration,
    /// In the queue, while every backend has `max_in_flight`. Default 5 s.
    pub queue: Duration,
    /// For one attempt, from the choice of a backend to the end of the answer's head; `None` (`off`, the default): any.
    pub attempt: Option<Duration>,
    /// For all attempts and pauses, from the end of the request's head to the end of the answer's head; `None` (`off`, the
    /// default): any.
    pub total: Option<Duration>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            connect: Duration::from_secs(3),
            tls: Duration::from_secs(10),
            first_byte: Duration::from_secs(60),
            idle: Duration::from_secs(60),
            tunnel: Duration::from_secs(3600),
            flow: Duration::from_secs(30),
            queue: Duration::from_secs(5),
            attempt: None,
            total: None,
        }
    }
}

/// Lowest level of events that are logged; the greater, the more of them are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum LogLevel {
    /// Only what needs someone to act.
    Error,
    /// What may need someone to act.
    Warn,
    /// Transitions: a backend went down, a listener was bound. The default.
    #[default]
    Info,
    /// Reasons behind single requests.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// Every level with the name it has in a config file.
    pub const ALL: &'static [(&'static str, LogLevel)] = &[
        ("error", LogLevel::Error),
        ("warn", LogLevel::Warn),
        ("info", LogLevel::Info),
        ("debug", LogLevel::Debug),
        ("trace", LogLevel::Trace),
    ];

    /// Its name in a config file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        LogLevel::ALL[self as usize].0
    }
}
