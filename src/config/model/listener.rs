//! Listeners: where clients connect, and what their connections and requests may cost, in the accepted form.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::access::AccessList;
use super::auth::Auth;
use super::http2::Http2;
use super::proxy_protocol::ProxySenders;
use super::rate::RateLimit;
use super::route::{Normalize, RouteConfig};
use super::tls::{AlpnProtocol, ListenerTls};

/// A set of bound addresses that speak one protocol.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerConfig {
    /// The name of the target it was written under.
    pub name: String,
    /// What is spoken on it.
    pub protocol: Protocol,
    /// TLS towards clients; `None`: plain.
    pub tls: Option<Arc<ListenerTls>>,
    /// HTTP/2 beside HTTP/1.1: where there is TLS for whom it is agreed on, else for whoever begins with it (prior knowledge, RFC
    /// 9113 §3.3); `None`: HTTP/1.1 alone.
    pub http2: Option<Http2>,
    /// Who tells on it whose connections it passes on (the PROXY protocol); `None`: nobody.
    pub proxy_protocol: Option<Arc<ProxySenders>>,
    /// Where it is bound; `"*:8080"` gives two entries, v6 then v4.
    pub binds: Vec<Bind>,
    /// Whose clients may come in at all: each of these lets them in.
    pub access: Vec<Arc<AccessList>>,
    /// How clients show who they are on all of its routes that do not say otherwise; `None`: they need not.
    pub auth: Option<Arc<Auth>>,
    /// Names of header lines by which backends of this config are told who a client is: what clients send of them goes, on every route.
    pub told: Arc<[String]>,
    /// How often somebody may ask on any of its routes, or how many connections may come.
    pub rate_limits: Vec<Arc<RateLimit>>,
    /// Which requests go where, in the order of the file.
    pub routes: Vec<Arc<RouteConfig>>,
    /// What is done about the different ways to write one path.
    pub normalize: Normalize,
    /// Requests for a host that no route names, or for none, are taken for ones for this.
    pub default_host: Option<String>,
    /// What one request may cost.
    pub limits: Limits,
    /// How long a client may take.
    pub client_timeouts: ClientTimeouts,
    /// Which headers tell the backend about the client.
    pub forwarded: Forwarded,
    /// `X-Real-IP` does so too.
    pub x_real_ip: bool,
}

impl ListenerConfig {
    /// Whether its clients begin with TLS, decrypted here or not.
    #[must_use]
    pub fn is_secured(&self) -> bool {
        self.tls.is_some() || self.routes.iter().any(|route| route.is_passthrough)
    }

    /// What clients with TLS may choose from (ALPN), the preferred one first; empty: what is spoken inside is theirs. HTTP/2 is
    /// among it only where it is spoken.
    #[must_use]
    pub fn alpn(&self) -> Vec<AlpnProtocol> {
        let written = match (self.protocol, &self.tls) {
            (Protocol::Http, Some(tls)) => &tls.alpn[..],
            (Protocol::Tcp | Protocol::Udp, _) | (_, None) => &[],
        };
        let is_spoken = |protocol: &AlpnProtocol| *protocol != AlpnProtocol::H2 || self.http2.is_some();
        written.iter().copied().filter(is_spoken).collect()
    }
}

/// One address to bind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Bind {
    /// A TCP address; port 0 lets the system choose.
    Tcp(SocketAddr),
    /// The same of UDP.
    Udp(SocketAddr),
    /// A unix stream socket at this path.
    Unix(PathBuf),
}

/// What a listener and its target speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Bytes are relayed as they come.
    Tcp,
    /// Datagrams are, each whole; those of one client's address and port are a flow.
    Udp,
    /// HTTP/1.1 and HTTP/1.0, and with clients HTTP/2 where a listener says so.
    Http,
}

impl Protocol {
    /// Every protocol with the name it has in a config file.
    pub const ALL: &'static [(&'static str, Protocol)] =
        &[("tcp", Protocol::Tcp), ("udp", Protocol::Udp), ("http", Protocol::Http)];

    /// Its name in a config file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
            Protocol::Http => "http",
        }
    }
}

/// What one request may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request head, 1 KiB to 64 KiB. Default 32 KiB.
    pub head_size: usize,
    /// Header lines of a request, 1 to 1,000. Default 100.
    pub headers: usize,
    /// Bytes of a request body; `None` (`off`, the default): any.
    pub body: Option<u64>,
    /// Bytes per second that a request body must keep up on average once it has had 20 s; 0: any. Default 240.
    pub body_rate: u64,
    /// Client connections at once on this listener; `None` (`off`, the default): any, within `max_connections`.
    pub connections: Option<u32>,
    /// The same from one client address (of v6: one /64); `None` (`off`, the default): any.
    pub connections_per_client: Option<u32>,
    /// How many times the bytes that a client of UDP has sent it may be answered with while it has not sent anything behind our first answer, and
    /// so has not shown that it is where it says; `None` (`off`): any. Default 30.
    pub reply_factor: Option<u32>,
    /// How many datagrams a client of UDP gets for each of its own, after which its flow is over; `None` (`off`, the default): only silence ends it.
    pub replies: Option<u32>,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            head_size: 32 * 1024,
            headers: 100,
            body: None,
            body_rate: 240,
            connections: None,
            connections_per_client: None,
            reply_factor: Some(30),
            replies: None,
        }
    }
}

/// How long a client may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientTimeouts {
    /// From the accept to the end of the TLS handshake. The target's `tls`. Default 10 s.
    pub tls: Duration,
    /// From the first byte of a request (or the accept) to the end of its head. Default 10 s.
    pub head: Duration,
    /// Silence between two requests. Default 60 s.
    pub keep_alive: Duration,
    /// Between bytes of a body, in either direction. The target's `idle`. Default 60 s.
    pub idle: Duration,
    /// From a client's end (FIN) while it waits until it counts as gone; `None` (`off`): never. Default 1 s.
    pub half_closed: Option<Duration>,
}

impl Default for ClientTimeouts {
    fn default() -> Self {
        ClientTimeouts {
            tls: Duration::from_secs(10),
            head: Duration::from_secs(10),
            keep_alive: Duration::from_secs(60),
            idle: Duration::from_secs(60),
            half_closed: Some(Duration::from_secs(1)),
        }
    }
}

/// Which headers tell the backend about the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Forwarded {
    /// `X-Forwarded-For`, `X-Forwarded-Proto`, `X-Forwarded-Host`. The default.
    #[default]
    XForwarded,
    /// `Forwarded` (RFC 7239).
    Rfc7239,
    /// None; what an untrusted client sent is still removed.
    Off,
}

impl Forwarded {
    /// Every way with the name it has in a config file.
    pub const ALL: &'static [(&'static str, Forwarded)] =
        &[("x_forwarded", Forwarded::XForwarded), ("rfc7239", Forwarded::Rfc7239), ("off", Forwarded::Off)];
}
