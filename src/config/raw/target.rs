//! The written form of one target, without its backends.

mod dialing;

use std::net::IpAddr;
use std::time::Duration;

use super::address::RawListener;
use super::backend::{self, RawBackend, RawSource};
use super::balance::{self, RawPolicy, RawSticky};
use super::bounds::DAY;
use super::costs::{self, RawLimits, RawTimeouts};
use super::group::upgrade;
use super::health::{self, RawHealth};
use super::listener::route::{RawCache, cache};
use super::listener::{self, InnerShapes, RawListenerKeys};
use super::reader::{Reader, is_off};
use super::resilience::{self, RawResilience};
use super::shape;
use super::tls::{self, RawTls, RawUpstreamTls};
use super::vocabulary::spoken::Spoken;
use super::vocabulary::words::name;
use crate::config::error::{Wrong, quoted};
use crate::config::model::{HostHeader, Protocol, SendProxy, UpstreamProtocol};
use crate::config::origin::{Field, Spot, Written};
use crate::config::yaml::Entry;
pub(in crate::config) use dialing::RawKeepalive;

/// One target.
#[derive(Debug)]
pub(in crate::config) struct RawTarget {
    pub(in crate::config) name: Written<String>,
    pub(in crate::config) protocol: Field<Spoken>,
    /// One address, or several.
    pub(in crate::config) listener: Field<Vec<Written<RawListener>>>,
    pub(in crate::config) tls: Field<RawTls>,
    pub(in crate::config) upstream_protocol: Option<Written<UpstreamProtocol>>,
    /// `None` inside: `off`.
    pub(in crate::config) send_proxy: Option<Written<Option<SendProxy>>>,
    pub(in crate::config) bind_source: Option<Written<Vec<IpAddr>>>,
    /// A value of `None`: `off`.
    pub(in crate::config) keepalive: Option<Written<Option<RawKeepalive>>>,
    pub(in crate::config) upstream_tls: Field<RawUpstreamTls>,
    pub(in crate::config) policy: RawPolicy,
    /// A value of `None`: `off`.
    pub(in crate::config) sticky: Option<Written<Option<RawSticky>>>,
    /// A value of `None`: `off`.
    pub(in crate::config) health_check: Option<Written<Option<RawHealth>>>,
    pub(in crate::config) resilience: RawResilience,
    pub(in crate::config) timeouts: RawTimeouts,
    pub(in crate::config) drain_timeout: Option<Written<Duration>>,
    pub(in crate::config) limits: RawLimits,
    pub(in crate::config) own: RawListenerKeys,
    /// `None` inside: `off`.
    pub(in crate::config) cache: Field<Option<RawCache>>,
    pub(in crate::config) host: Option<Written<HostHeader>>,
    pub(in crate::config) upgrade: Option<Written<Vec<String>>>,
    /// Those that are written one by one.
    pub(in crate::config) backends: Field<Vec<RawBackend>>,
    /// Where more of them come from.
    pub(in crate::config) sources: Vec<RawSource>,
    /// Files that some of them stand in, each with the number of the item that names it.
    pub(in crate::config) backend_files: Vec<(usize, Written<String>)>,
    /// Where keys stand that mean something to HTTP only.
    pub(in crate::config) http_only: Vec<(&'static str, Spot)>,
    /// Where keys stand that concern the connections of clients.
    pub(in crate::config) listener_only: Vec<(&'static str, Spot)>,
    /// There are `listeners`, so that it need not have one of its own.
    pub(in crate::config) may_be_pool: bool,
}

impl RawTarget {
    /// A target with nothing but a name.
    pub(in crate::config) fn empty(name: Written<String>) -> Self {
        RawTarget {
            name,
            protocol: Field::Absent,
            listener: Field::Absent,
            tls: Field::Absent,
            upstream_protocol: None,
            send_proxy: None,
            bind_source: None,
            keepalive: None,
            upstream_tls: Field::Absent,
            policy: RawPolicy::default(),
            sticky: None,
            health_check: None,
            resilience: RawResilience::default(),
            timeouts: RawTimeouts::default(),
            drain_timeout: None,
            limits: RawLimits::default(),
            own: RawListenerKeys::default(),
            cache: Field::Absent,
            host: None,
            upgrade: None,
            backends: Field::Absent,
            sources: Vec::new(),
            backend_files: Vec::new(),
            http_only: Vec::new(),
            listener_only: Vec::new(),
            may_be_pool: false,
        }
    }
}

/// Keys of a target in the short form that are those of its listener, or of its only route.
const LISTENER_ONLY: [&str; 13] = [
    "protocol",
    "tls",
    "http2",
    "proxy_protocol",
    "access",
    "auth",
    "rate_limit",
    "cache",
    "compress",
    "forwarded",
    "x_real_ip",
    "normalize",
    "limits",
];

/// Walks one entry of `targets`.
pub(super) fn walk(entry: &Entry, reader: &mut Reader<'_>) -> RawTarget {
    let spot = reader.key_spot(entry);
    if let Err(wrong) = name(&entry.key) {
        reader.report.wrong(&spot, "the name of a target", wrong);
    }
    let mut target = RawTarget::empty(Written::new(entry.key.clone(), spot));
    let title = format!("the target {}", quoted(&entry.key));
    let Some(section) = reader.section(&title, &entry.node, &shape::TARGET) else {
        (target.protocol, target.listener, target.backends) = (Field::Faulty, Field::Faulty, Field::Faulty);
        return target;
    };
    if section.is_misspelt("protocol") {
        target.protocol = Field::Faulty;
    }
    if section.is_misspelt("listener") {
        target.listener = Field::Faulty;
    }
    if section.is_misspelt("backends") {
        target.backends = Field::Faulty;
    }
    if let Some(entry) = section.find("protocol") {
        target.protocol = Field::read(listener::protocol(entry, reader));
    }
    reader.enter(!matches!(
        target.protocol,
        Field::Absent | Field::Given(Written { value: Spoken { protocol: Protocol::Tcp, .. }, .. })
    ));
    if let Some(entry) = section.find("listener") {
        target.listener = Field::read(listener::binds(entry, reader));
    }
    if let Some(entry) = section.find("tls") {
        target.tls = Field::read(tls::walk(entry, [&shape::TLS, &shape::CERTIFICATE], reader));
    } else if section.is_misspelt("tls") {
        target.tls = Field::Faulty;
    }
    if let Some(entry) = section.find("upstream_protocol") {
        target.http_only.push(("upstream_protocol", reader.key_spot(entry)));
        target.upstream_protocol = reader.choice(entry, UpstreamProtocol::ALL);
    }
    target.bind_source = section.find("bind_source").and_then(|entry| dialing::sources(entry, reader));
    target.keepalive = section.find("tcp_keepalive").and_then(|entry| dialing::keepalive(entry, reader));
    target.send_proxy = section.find("send_proxy").and_then(|entry| send_proxy(entry, reader));
    if let Some(entry) = section.find("upstream_tls") {
        target.upstream_tls = Field::read(tls::walk_upstream(entry, reader));
    } else if section.is_misspelt("upstream_tls") {
        target.upstream_tls = Field::Faulty;
    }
    for key in LISTENER_ONLY {
        target.listener_only.extend(section.find(key).map(|entry| (key, reader.key_spot(entry))));
    }
    target.policy = balance::policy(&section, reader);
    if let Some(entry) = section.find("sticky") {
        target.http_only.push(("sticky", reader.key_spot(entry)));
        target.sticky = balance::sticky(entry, reader);
    }
    target.health_check = section.find("health_check").and_then(|entry| health::walk(entry, reader));
    target.resilience = resilience::walk(&section, reader, &mut target.http_only);
    if let Some(entry) = section.find("timeouts") {
        target.timeouts =
            costs::timeouts(entry, &shape::TIMEOUTS, reader, &mut target.http_only).unwrap_or_default();
    }
    let drain_timeout = section.find("drain_timeout");
    target.drain_timeout = drain_timeout.and_then(|entry| reader.duration(entry, Duration::ZERO..=DAY));
    if let Some(entry) = section.find("limits") {
        target.limits =
            costs::limits(entry, &shape::LIMITS, reader, &mut target.http_only).unwrap_or_default();
    }
    const SHAPES: InnerShapes = InnerShapes {
        access: &shape::TARGET_ACCESS,
        compress: [&shape::TARGET_COMPRESS, &shape::TARGET_CODINGS],
        http2: &shape::TARGET_HTTP2,
        proxy: &shape::TARGET_PROXY,
    };
    target.own = listener::keys(&section, &SHAPES, reader, &mut target.http_only);
    if let Some(entry) = section.find("cache") {
        target.http_only.push(("cache", reader.key_spot(entry)));
        target.cache = cache::walk(entry, &shape::TARGET_CACHE, reader);
    } else if section.is_misspelt("cache") {
        target.cache = Field::Faulty;
    }
    if let Some(entry) = section.find("host") {
        target.http_only.push(("host", reader.key_spot(entry)));
        target.host = reader.word(entry, "`pass`, `backend` or a name such as `app.example`", host);
    }
    if let Some(entry) = section.find("upgrade") {
        target.http_only.push(("upgrade", reader.key_spot(entry)));
        target.upgrade = upgrade(entry, reader);
    }
    if let Some(entry) = section.find("backends") {
        let all = backend::walk(entry, reader);
        (target.backends, target.sources, target.backend_files) = (all.written, all.sources, all.files);
    }
    target
}

/// Whether backends are told whose connection they get.
fn send_proxy(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Option<SendProxy>>> {
    if is_off(&entry.node) {
        return Some(Written::new(None, reader.spot(entry)));
    }
    reader.choice(entry, SendProxy::ALL)
}

/// What backends get as Host.
fn host(text: &str) -> Result<HostHeader, Wrong> {
    let named = HostHeader::NAMED.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    if let Some((_, host)) = named {
        return Ok(host.clone());
    }
    let slip =
        HostHeader::NAMED.iter().find(|(name, _)| strsim::levenshtein(name, &text.to_lowercase()) == 1);
    if let Some((name, _)) = slip {
        return Err(Wrong::new(format!("is {}, which is nearly `{name}`", quoted(text)), HOST_KINDS)
            .hint(format!("write `{name}`"), *name));
    }
    health::host_header(text).map(HostHeader::Name).map_err(|wrong| {
        // What other programs have for the name that the client asked for.
        if text.contains(['$', '%', '{']) {
            wrong.hint("write `pass`: what the client asked for", "pass")
        } else {
            wrong
        }
    })
}

const HOST_KINDS: &str = "`pass` (what the client asked for), `backend` (the backend's address) or a name";
