//! What the tests share: a server, a raw client, and waiting for a condition.

pub mod acme;
pub mod agent;
pub mod around;
pub mod browser;
mod client;
pub mod dns;
pub mod etcd;
pub mod events;
pub mod grpc;
pub mod h2;
pub mod h2_backend;
pub mod port;
pub mod process;
pub mod terminal;
pub mod tls;
pub mod worker;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use evenkeel::config::model::{
    BackendAddress, BackendConfig, BackendState, Bind, ClientTimeouts, Config, EventFormat, Forwarded,
    HealthCheck, HostHeader, Limits, ListenerConfig, LogLevel, Normalize, Policy, Portion, Protocol,
    Resilience, RouteConfig, TargetConfig, Timeouts, WatchMode,
};
use evenkeel::reload::bound::Bound;
use evenkeel::reload::{Refused, Reloaded};
use evenkeel::server::{Options, Server};
use fake_backend::{Fake, Running};

pub use client::{Answer, Client};
pub use fuzz_cases::fixture;

/// Nothing in a test may take longer.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Polls until `condition` holds; fails the test when it does not in time.
pub fn eventually(what: &str, condition: impl FnMut() -> bool) {
    eventually_within(PATIENCE, what, condition);
}

/// The same of what takes most of the usual time by itself, on a machine that has nothing else to do.
pub fn eventually_within(patience: Duration, what: &str, condition: impl FnMut() -> bool) {
    assert!(comes_within(patience, condition), "not in time: {what}");
}

/// Whether `condition` comes to hold in this time, where a test can begin again.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that waits by polling; there is no runtime here"
)]
pub fn comes_within(patience: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    while !condition() {
        if start.elapsed() >= patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}

/// Sets a flag when it is dropped, also by a test that fails: whoever goes on until then ends.
pub struct Stop<'a>(pub &'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// So many HTTP backends, called `fake-1`, `fake-2`, ….
pub fn fakes(count: usize) -> Vec<Running> {
    (1..=count).map(|number| Fake::http(format!("fake-{number}")).start_in_thread().unwrap()).collect()
}

/// The next connection to `listener`, on which no read or write waits for ever either.
pub fn accept(listener: &TcpListener) -> TcpStream {
    listener.set_nonblocking(true).unwrap();
    let mut accepted = None;
    eventually("somebody connects", || {
        accepted = listener.accept().ok();
        accepted.is_some()
    });
    let (socket, _) = accepted.unwrap();
    socket.set_nonblocking(false).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_write_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// One HTTP backend that keeps what it receives.
pub fn recording() -> Running {
    Fake::http("fake-1").record().start_in_thread().unwrap()
}

/// Polls until `value` has not changed for a while, and gives it.
pub fn settled(what: &str, mut value: impl FnMut() -> u64) -> u64 {
    let (mut last, mut same) = (value(), 0);
    eventually(what, || {
        let now = value();
        same = if now == last { same + 1 } else { 0 };
        last = now;
        same >= 150
    });
    last
}

/// A body in chunks of these sizes in turn, with trailer lines.
pub fn chunked(body: &[u8], sizes: &[usize], trailers: &str) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), body);
    for &size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (chunk, more) = rest.split_at(size.min(rest.len()));
        out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
        rest = more;
    }
    out.extend_from_slice(format!("0\r\n{trailers}\r\n").as_bytes());
    out
}

/// A backend at an address.
pub fn backend(address: SocketAddr) -> BackendConfig {
    let (host, port) = (address.ip().to_string(), address.port());
    BackendConfig {
        name: address.to_string(),
        address: BackendAddress::Host { host, port },
        probe_path: None,
        tls: None,
        portion: Portion::default(),
        state: BackendState::Up,
        state_by: None,
        dialing: Default::default(),
        found: None,
    }
}

/// The config of this text.
pub fn load(text: &str) -> Config {
    let folder = std::path::Path::new("");
    match evenkeel::config::load_text(text, "t.yaml", folder, &Default::default(), &|_| None) {
        Ok(loaded) => loaded.config,
        Err(problems) => panic!("{problems}"),
    }
}

/// The route of a listener that sends everything to this target.
pub fn all_to(target: &str) -> Vec<Arc<RouteConfig>> {
    vec![Arc::new(RouteConfig::catch_all(target))]
}

/// One target called `web` on a free port, two workers, health checks off.
pub fn config(protocol: Protocol, backends: &[SocketAddr]) -> Config {
    Config {
        acme: Default::default(),
        cluster: None,
        resolver: Default::default(),
        instance: Default::default(),
        admin: None,
        metrics: evenkeel::config::model::MetricsConfig::default(),
        webhooks: Vec::new(),
        scale: Default::default(),
        cache_store: Default::default(),
        recorder: Some(Default::default()),
        tracing: None,
        tests: Vec::new(),
        access_lists: Vec::new(),
        rate_limits: Vec::new(),
        listeners: vec![ListenerConfig {
            proxy_protocol: None,
            name: "web".into(),
            protocol,
            tls: None,
            http2: None,
            binds: vec![Bind::Tcp("127.0.0.1:0".parse().unwrap())],
            access: Vec::new(),
            auth: None,
            told: [].into(),
            rate_limits: Vec::new(),
            routes: all_to("web"),
            normalize: Normalize::default(),
            default_host: None,
            limits: Limits::default(),
            client_timeouts: ClientTimeouts::default(),
            forwarded: Forwarded::default(),
            x_real_ip: false,
        }],
        targets: vec![TargetConfig {
            send_proxy: None,
            name: "web".into(),
            protocol,
            host: HostHeader::Pass,
            balance: Policy::default(),
            sticky: None,
            health: None,
            timeouts: Timeouts::default(),
            drain_timeout: TargetConfig::DRAIN_TIMEOUT,
            resilience: Resilience::default(),
            upgrade: vec!["websocket".into()],
            upstream: evenkeel::config::model::UpstreamProtocol::Http,
            backends: backends.iter().copied().map(backend).collect(),
            sources: Vec::new(),
        }],
        watch: WatchMode::default(),
        workers: 2,
        max_connections: None,
        shutdown_delay: Duration::ZERO,
        shutdown_timeout: Duration::from_secs(10),
        access_log: None,
        log_level: LogLevel::Info,
        log_format: EventFormat::Text,
        trusted_proxies: Vec::new(),
    }
}

/// A health check that finds things out quickly.
pub fn quick_health() -> HealthCheck {
    HealthCheck {
        interval: Duration::from_millis(50),
        timeout: Duration::from_secs(10),
        rise: 2,
        fall: 2,
        ..HealthCheck::default()
    }
}

/// A running server.
pub struct Keel {
    pub server: Server,
}

impl Keel {
    pub fn start(config: &Config) -> Keel {
        // Before anything is logged: what is first logged while somebody begins to listen may be lost for good.
        events::listen();
        Keel { server: Server::start(config, Options::default()).unwrap() }
    }

    /// In front of these backends, HTTP, health checks off.
    pub fn http(backends: &[&Running]) -> Keel {
        Keel::with(backends, |_| ())
    }

    /// The same with changes.
    pub fn with(backends: &[&Running], change: impl FnOnce(&mut Config)) -> Keel {
        let addresses: Vec<_> = backends.iter().map(|running| running.addr()).collect();
        let mut config = config(Protocol::Http, &addresses);
        change(&mut config);
        Keel::start(&config)
    }

    /// The first TCP address it listens on.
    pub fn address(&self) -> SocketAddr {
        let found = self.server.bound().iter().find_map(|(_, bound)| match bound {
            Bound::Tcp(address) | Bound::Udp(address) => Some(*address),
            Bound::Unix(_) => None,
        });
        found.unwrap()
    }

    /// The addresses that a listener has.
    pub fn addresses(&self, listener: &str) -> Vec<SocketAddr> {
        let bound = self.server.bound().into_iter().filter(|(name, _)| name == listener);
        let tcp =
            bound.filter_map(|(_, bound)| if let Bound::Tcp(address) = bound { Some(address) } else { None });
        tcp.collect()
    }

    /// Puts another config into force.
    pub fn reload(&self, config: &Config) -> Result<Reloaded, Refused> {
        let (reloader, control) = (self.server.reloader(), self.server.control().unwrap());
        control.block_on(reloader.apply(config))
    }

    pub fn client(&self) -> Client {
        Client::connect(self.address())
    }
}
