//! What the demo serves, and where.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use fake_backend::{Authority, Running};

use crate::cli::args::demo::DemoOptions;
use crate::config::model::tls::{AlpnProtocol, ListenerTls};
use crate::config::model::{AdminAccess, AdminToken, Bind, Config, Http2, ListenerConfig, Scope};
use crate::config::{self, Flags, Loaded};

/// How many ports behind the wanted one are tried.
const TRIES: u16 = 100;

/// A target's name, and who is behind it.
pub(super) type BackendPool = (&'static str, Vec<Running>);

/// Where the demo listens.
#[derive(Clone, Copy, Debug)]
pub(super) struct DemoPorts {
    pub(super) http: u16,
    pub(super) https: u16,
    pub(super) tcp: u16,
    pub(super) udp: u16,
    pub(super) admin: u16,
}

impl DemoPorts {
    /// Those that were asked for, or the next that are free.
    pub(super) fn find(options: &DemoOptions) -> anyhow::Result<DemoPorts> {
        let http = free_port(options.http_port, &[])?;
        let https = free_port(options.https_port, &[http])?;
        let tcp = free_port(options.tcp_port, &[http, https])?;
        let admin = free_port(options.admin_port, &[http, https, tcp])?;
        let udp = free_udp_port(options.udp_port)?;
        Ok(DemoPorts { http, https, tcp, udp, admin })
    }
}

/// `wanted`, or the first free port after it that is none of `others`.
fn free_port(wanted: u16, others: &[u16]) -> anyhow::Result<u16> {
    if wanted == 0 {
        // Any: one that the system has to give.
        let given = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
        return Ok(given.local_addr()?.port());
    }
    (wanted..=wanted.saturating_add(TRIES))
        .filter(|port| !others.contains(port))
        .find(|&port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
        .with_context(|| format!("no free port from {wanted} on"))
}

/// The same of UDP.
fn free_udp_port(wanted: u16) -> anyhow::Result<u16> {
    let bind = |port| UdpSocket::bind((Ipv4Addr::LOCALHOST, port));
    if wanted == 0 {
        return Ok(bind(0).context("no free port")?.local_addr()?.port());
    }
    (wanted..=wanted.saturating_add(TRIES))
        .find(|&port| bind(port).is_ok())
        .with_context(|| format!("no free port from {wanted} on"))
}

/// The demo's config, as it is put into force.
pub(super) fn load_own(
    ports: &DemoPorts,
    pools: &[BackendPool],
    authority: &Authority,
    token: &str,
) -> anyhow::Result<Loaded> {
    let text = yaml(ports, pools);
    let mut loaded = config::load_text(&text, "demo.yaml", Path::new(""), &Flags::default(), &|_| None)?;
    add_https(&mut loaded.config, ports.https, authority)?;
    loaded.config.admin = Some(Arc::new(admin(ports.admin, token)));
    Ok(loaded)
}

/// It is a config like any other.
fn yaml(ports: &DemoPorts, pools: &[BackendPool]) -> String {
    let mut text = format!(
        "health_check_interval: 1
logging: info
listeners:
  web:
    bind: {}
    routes:
      - {{name: api, match: {{path_prefix: /api}}, target: api}}
      - {{name: assets, match: {{path_prefix: /assets}}, target: web, cache: {{ttl: 10s}}}}
      - {{name: pages, target: web}}
targets:
",
        ports.http
    );
    for (name, backends) in pools {
        let (keys, more) = match *name {
            "tcp" => (format!("protocol: tcp, listener: {}, ", ports.tcp), ""),
            "udp" => (format!("protocol: udp, listener: {}, timeouts: {{flow: 5s}}, ", ports.udp), ""),
            _ => (String::new(), ", health_path: /health"),
        };
        let line =
            |fake: &Running| format!("{{name: {}, host: 127.0.0.1, port: {}{more}}}", fake.id(), fake.port());
        let backends: Vec<String> = backends.iter().map(line).collect();
        // A `String` takes everything.
        let _ = writeln!(text, "  {name}: {{{keys}backends: [{}]}}", backends.join(", "));
    }
    text
}

/// The routes over TLS too, with a certificate that nobody but this process has ever seen.
fn add_https(config: &mut Config, port: u16, authority: &Authority) -> anyhow::Result<()> {
    let issued = authority.issue(["localhost", "127.0.0.1", "::1"]);
    let identity = config::identity_of(&issued.cert_pem, &issued.key_pem).map_err(anyhow::Error::msg)?;
    let web = config.listeners.iter().find(|listener| listener.name == "web");
    let web = web.context("the demo has a listener for HTTP")?;
    let tls =
        ListenerTls { alpn: AlpnProtocol::usual(true), ..ListenerTls::showing(vec![Arc::new(identity)]) };
    let secured = ListenerConfig {
        name: "web-https".to_owned(),
        tls: Some(Arc::new(tls)),
        http2: Some(Http2::default()),
        binds: vec![Bind::Tcp((Ipv4Addr::LOCALHOST, port).into())],
        ..web.clone()
    };
    config.listeners.push(secured);
    Ok(())
}

/// A token of this run, which only the person at the terminal sees.
pub(super) fn token() -> anyhow::Result<String> {
    let mut bytes = [0; 16];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| anyhow::anyhow!("the system gives no random bytes"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The page and the admin API over TCP, for whoever has the token. Without one everybody on this machine could look, and nobody
/// could change anything.
fn admin(port: u16, token: &str) -> AdminAccess {
    AdminAccess {
        binds: vec![(Ipv4Addr::LOCALHOST, port).into()],
        tokens: Some(vec![AdminToken::new("demo", Scope::Configure, token.as_bytes())]),
        hosts: Vec::new(),
        configure_over_tcp: false,
        tls: None,
    }
}
