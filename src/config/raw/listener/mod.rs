//! The written form of one entry of `listeners`, and of the keys that a target in the short form has for its listener.

pub(in crate::config::raw) mod http2;
pub(in crate::config::raw) mod proxy_protocol;
pub(in crate::config::raw) mod route;

use crate::config::error::{Wrong, quoted};
use crate::config::files::fence::PathUse;
use crate::config::model::Forwarded;
use crate::config::model::route::{DotSegments, EncodedSlash};
use crate::config::origin::{Field, Spot, Written};
use crate::config::raw::address::{self, RawListener};
use crate::config::raw::costs::{self, RawLimits, RawTimeouts};
use crate::config::raw::gate::access::{self, RawAccess};
use crate::config::raw::gate::auth;
use crate::config::raw::gate::rate;
use crate::config::raw::group::{items, there_already};
use crate::config::raw::health;
use crate::config::raw::kind::Shape;
use crate::config::raw::reader::{Reader, Section, choose, found, is_off};
use crate::config::raw::shape;
use crate::config::raw::tls::{self, RawTls};
use crate::config::raw::vocabulary::later;
use crate::config::raw::vocabulary::spoken::Spoken;
use crate::config::raw::vocabulary::words::name;
use crate::config::yaml::{Entry, Typed};
use http2::RawHttp2;
use proxy_protocol::RawProxyProtocol;
use route::{RawCompress, RawHeaders, RawRoute, compress, headers};

/// One listener.
#[derive(Debug)]
pub(in crate::config) struct RawListenerConfig {
    pub(in crate::config) name: Written<String>,
    pub(in crate::config) protocol: Field<Spoken>,
    /// One address, or several.
    pub(in crate::config) bind: Field<Vec<Written<RawListener>>>,
    pub(in crate::config) tls: Field<RawTls>,
    pub(in crate::config) own: RawListenerKeys,
    /// On all of its routes.
    pub(in crate::config) headers: Field<RawHeaders>,
    pub(in crate::config) timeouts: RawTimeouts,
    pub(in crate::config) limits: RawLimits,
    /// From all files, in their order.
    pub(in crate::config) routes: Vec<RawRoute>,
    /// `routes` is there, if only with faults inside.
    pub(in crate::config) has_routes: bool,
    /// Where keys stand that mean something to HTTP only.
    pub(in crate::config) http_only: Vec<(&'static str, Spot)>,
}

/// What a listener and a target in the short form say alike about clients.
#[derive(Debug, Default)]
pub(in crate::config) struct RawListenerKeys {
    pub(in crate::config) access: Field<Vec<RawAccess>>,
    pub(in crate::config) rate_limit: Field<Vec<Written<String>>>,
    pub(in crate::config) forwarded: Option<Written<Forwarded>>,
    pub(in crate::config) x_real_ip: Option<Written<bool>>,
    pub(in crate::config) normalize: RawNormalize,
    pub(in crate::config) default_host: Option<Written<String>>,
    /// `None` inside: `off`.
    pub(in crate::config) auth: Field<Option<String>>,
    /// `None` inside: `off`.
    pub(in crate::config) compress: Field<Option<RawCompress>>,
    /// `None` inside: `off`.
    pub(in crate::config) http2: Field<Option<RawHttp2>>,
    /// `None` inside: `off`.
    pub(in crate::config) proxy_protocol: Field<Option<RawProxyProtocol>>,
}

/// `normalize`.
#[derive(Debug, Default)]
pub(in crate::config) struct RawNormalize {
    pub(in crate::config) dot_segments: Option<Written<DotSegments>>,
    pub(in crate::config) encoded_slash: Option<Written<EncodedSlash>>,
    pub(in crate::config) merge_slashes: Option<Written<bool>>,
}

/// Walks what `first` and the entries of the same name in other files say about a listener: their routes add up, and every
/// other key stands once.
pub(in crate::config::raw) fn walk(
    first: &Entry,
    others: &[&Entry],
    reader: &mut Reader<'_>,
) -> RawListenerConfig {
    let spot = reader.key_spot(first);
    if let Err(wrong) = name(&first.key) {
        reader.report.wrong(&spot, "the name of a listener", wrong);
    }
    let mut listener = RawListenerConfig::empty(Written::new(first.key.clone(), spot));
    let title = format!("the listener {}", quoted(&first.key));
    let mut whole: Option<Section<'_>> = None;
    for entry in std::iter::once(&first).chain(others) {
        match (reader.section(&title, &entry.node, &shape::LISTENER_SHAPE), &mut whole) {
            (Some(section), None) => whole = Some(section),
            (Some(section), Some(whole)) => whole.join(section, &["routes"], reader),
            (None, _) => {
                (listener.protocol, listener.bind, listener.has_routes) =
                    (Field::Faulty, Field::Faulty, true);
            }
        }
    }
    let Some(section) = whole else { return listener };
    listener.protocol = match section.find("protocol") {
        Some(entry) => Field::read(protocol(entry, reader)),
        None if section.is_misspelt("protocol") => Field::Faulty,
        None => Field::Absent,
    };
    listener.bind = match section.find("bind") {
        Some(entry) => Field::read(binds(entry, reader)),
        None if section.is_misspelt("bind") => Field::Faulty,
        None => Field::Absent,
    };
    listener.tls = match section.find("tls") {
        Some(entry) => {
            Field::read(tls::walk(entry, [&shape::LISTENER_TLS, &shape::LISTENER_CERTIFICATE], reader))
        }
        None if section.is_misspelt("tls") => Field::Faulty,
        None => Field::Absent,
    };
    const SHAPES: InnerShapes = InnerShapes {
        access: &shape::LISTENER_ACCESS,
        compress: [&shape::LISTENER_COMPRESS, &shape::LISTENER_CODINGS],
        http2: &shape::LISTENER_HTTP2,
        proxy: &shape::LISTENER_PROXY,
    };
    listener.own = keys(&section, &SHAPES, reader, &mut listener.http_only);
    if let Some(entry) = section.find("headers") {
        listener.http_only.push(("headers", reader.key_spot(entry)));
        listener.headers = headers::walk(entry, shape::LISTENER_HEADERS, None, reader);
    }
    if let Some(entry) = section.find("timeouts") {
        let read = costs::timeouts(entry, &shape::LISTENER_TIMEOUTS, reader, &mut listener.http_only);
        listener.timeouts = read.unwrap_or_default();
    }
    if let Some(entry) = section.find("limits") {
        let read = costs::limits(entry, &shape::LISTENER_LIMITS, reader, &mut listener.http_only);
        listener.limits = read.unwrap_or_default();
    }
    for entry in section.all("routes") {
        routes(entry, reader, &mut listener);
    }
    listener.has_routes |= section.is_misspelt("routes");
    listener
}

/// Which keys there are inside of those that a listener and a target in the short form have alike.
pub(in crate::config::raw) struct InnerShapes {
    /// Those of a list of `access` that stands right there.
    pub(in crate::config::raw) access: &'static Shape,
    /// Those of `compress`, and of its codings.
    pub(in crate::config::raw) compress: [&'static Shape; 2],
    pub(in crate::config::raw) http2: &'static Shape,
    pub(in crate::config::raw) proxy: &'static Shape,
}

/// What is said about clients beside binding, protocol and TLS.
pub(in crate::config::raw) fn keys(
    section: &Section<'_>,
    shapes: &InnerShapes,
    reader: &mut Reader<'_>,
    http_only: &mut Vec<(&'static str, Spot)>,
) -> RawListenerKeys {
    let access = match section.find("access") {
        Some(entry) => access::walk(entry, shapes.access, reader),
        None if section.is_misspelt("access") => Field::Faulty,
        None => Field::Absent,
    };
    let rate_limit = match section.find("rate_limit") {
        Some(entry) => rate::walk(entry, reader),
        None if section.is_misspelt("rate_limit") => Field::Faulty,
        None => Field::Absent,
    };
    let compress = match section.find("compress") {
        Some(entry) => {
            http_only.push(("compress", reader.key_spot(entry)));
            compress::walk(entry, shapes.compress, reader)
        }
        None if section.is_misspelt("compress") => Field::Faulty,
        None => Field::Absent,
    };
    let http2 = match section.find("http2") {
        Some(entry) => {
            http_only.push(("http2", reader.key_spot(entry)));
            http2::walk(entry, shapes.http2, reader)
        }
        None if section.is_misspelt("http2") => Field::Faulty,
        None => Field::Absent,
    };
    let proxy_protocol = match section.find("proxy_protocol") {
        Some(entry) => proxy_protocol::walk(entry, shapes.proxy, reader),
        None if section.is_misspelt("proxy_protocol") => Field::Faulty,
        None => Field::Absent,
    };
    let mut find = |key: &'static str| {
        let entry = section.known(key)?;
        http_only.push((key, reader.key_spot(entry)));
        Some(entry)
    };
    let [forward, real_ip, forms, host, rule] =
        ["forwarded", "x_real_ip", "normalize", "default_host", "auth"].map(&mut find);
    RawListenerKeys {
        access,
        rate_limit,
        forwarded: forward.and_then(|entry| forwarded(entry, reader)),
        x_real_ip: real_ip.and_then(|entry| reader.switch(entry)),
        normalize: forms.and_then(|entry| normalize(entry, reader)).unwrap_or_default(),
        default_host: host.and_then(|entry| reader.word(entry, HOST_FORM, default_host)),
        auth: match rule {
            Some(entry) => auth::uses(entry, reader),
            None if section.is_misspelt("auth") => Field::Faulty,
            None => Field::Absent,
        },
        compress,
        http2,
        proxy_protocol,
    }
}

const HOST_FORM: &str = "a host name such as `shop.example`";

fn default_host(text: &str) -> Result<String, Wrong> {
    let host = health::host_header(text)?;
    let has_port =
        host.rsplit_once(':').is_some_and(|(before, _)| !before.contains(':') || before.ends_with(']'));
    if has_port {
        return Err(Wrong::new(format!("is {}, with a port", quoted(text)), HOST_FORM));
    }
    Ok(host.trim_end_matches('.').to_ascii_lowercase())
}

fn normalize(entry: &Entry, reader: &mut Reader<'_>) -> Option<RawNormalize> {
    let section = reader.section("`normalize`", &entry.node, &shape::NORMALIZE)?;
    let dots = section.find("dot_segments");
    let slash = section.find("encoded_slash");
    let merge = section.find("merge_slashes");
    Some(RawNormalize {
        dot_segments: dots.and_then(|entry| reader.choice(entry, DotSegments::ALL)),
        encoded_slash: slash.and_then(|entry| reader.choice(entry, EncodedSlash::ALL)),
        merge_slashes: merge.and_then(|entry| reader.switch(entry)),
    })
}

/// Walks `routes`.
fn routes(entry: &Entry, reader: &mut Reader<'_>, listener: &mut RawListenerConfig) {
    listener.has_routes = true;
    let Some(items) = items(entry, reader, "a list of routes such as `- {target: web}`") else { return };
    listener.routes.extend(items.iter().filter_map(|item| route::walk(item, reader)));
}

impl RawListenerConfig {
    fn empty(name: Written<String>) -> RawListenerConfig {
        RawListenerConfig {
            name,
            protocol: Field::Absent,
            bind: Field::Absent,
            tls: Field::Absent,
            own: RawListenerKeys::default(),
            headers: Field::Absent,
            timeouts: RawTimeouts::default(),
            limits: RawLimits::default(),
            routes: Vec::new(),
            has_routes: false,
            http_only: Vec::new(),
        }
    }
}

/// One address to listen on, or a list of them: `listener` of a target, `bind` of a listener.
pub(in crate::config::raw) fn binds(
    entry: &Entry,
    reader: &mut Reader<'_>,
) -> Option<Written<Vec<Written<RawListener>>>> {
    const EXPECTED: &str = "a port such as `8080`, or an address with port";
    let placed = |listener: RawListener, spot: &Spot, reader: &mut Reader<'_>| match listener {
        RawListener::Unix(path) => {
            RawListener::Unix(reader.path(&path.to_string_lossy(), PathUse::Socket, spot))
        }
        RawListener::Port(_) | RawListener::At(..) => listener,
    };
    let Typed::List(items) = entry.node.typed() else {
        let read = reader.parsed_with_numbers(entry, EXPECTED, address::listener)?;
        let one = Written::new(placed(read.value, &read.spot, reader), read.spot.clone());
        return Some(Written::new(vec![one], read.spot));
    };
    if items.is_empty() {
        let problem = reader.report.at(entry.key_place, format!("`{}` is an empty list", entry.key));
        problem.expected("at least one port, or address with port");
        return None;
    }
    let subject = format!("an entry of `{}`", entry.key);
    let mut listeners = Vec::with_capacity(items.len());
    for item in items {
        let spot = reader.spot_of(item);
        let read = match (item.typed(), item.text()) {
            (Typed::Integer(_) | Typed::Text(_), Some(text)) => address::listener(text),
            _ => Err(Wrong::new(found(item), EXPECTED)),
        };
        let listener = match read {
            Ok(listener) => placed(listener, &spot, reader),
            Err(wrong) => {
                reader.report.wrong(&spot, &subject, wrong);
                continue;
            }
        };
        let spot = reader.spot_of_use(item);
        // The system gives another port each time.
        let is_any = matches!(listener, RawListener::Port(0) | RawListener::At(_, 0));
        if !is_any && listeners.iter().any(|other: &Written<_>| other.value == listener) {
            let wrong = there_already(item, item.text().unwrap_or_default());
            reader.report.wrong(&spot, &subject, wrong);
            continue;
        }
        listeners.push(Written::new(listener, spot));
    }
    (listeners.len() == items.len()).then(|| Written::new(listeners, reader.key_spot(entry)))
}

/// What clients speak.
pub(in crate::config::raw) fn protocol(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Spoken>> {
    reader.parsed(entry, "`tcp`, `http` or `https`", spoken)
}

fn spoken(text: &str) -> Result<Spoken, Wrong> {
    let lower = text.to_lowercase();
    if let Some(instead) = later::protocol(&lower) {
        return Err(Wrong::new(
            format!("is {}, which is not supported yet: {instead}", quoted(text)),
            "`tcp`, `http` or `https`",
        ));
    }
    choose(text, Spoken::ALL).map_err(|wrong| match lower.as_str() {
        "tls" | "ssl" => wrong.note("TLS over TCP is `protocol: tcp` with `tls`; HTTP over TLS is `https`"),
        "ws" | "wss" | "websocket" => wrong.note("WebSockets are a part of `http` and `https`"),
        "h2" | "h2c" | "http2" => Wrong { hint: None, fix: None, ..wrong }
            .note("HTTP/2 is a part of `https`; on `http` it comes with `http2: on`"),
        _ => wrong,
    })
}

/// Which headers tell backends about clients.
pub(in crate::config::raw) fn forwarded(
    entry: &Entry,
    reader: &mut Reader<'_>,
) -> Option<Written<Forwarded>> {
    if is_off(&entry.node) {
        return Some(Written::new(Forwarded::Off, reader.spot(entry)));
    }
    reader.choice(entry, Forwarded::ALL)
}
