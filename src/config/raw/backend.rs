//! The written form of backends: those of a target, and GoLoadBalance's `servers`.

use super::address::{self, Url};
use super::balance::{self, RawPortion};
use super::health::probe_path;
use super::reader::{Reader, found, subject};
use super::target::{RawTarget, name};
use super::{list, rooted, shape};
use crate::config::error::Wrong;
use crate::config::model::{BackendAddress, Protocol};
use crate::config::origin::{Field, Written};
use crate::config::yaml::{Entry, Node, Typed};

/// One backend.
#[derive(Debug)]
pub(in crate::config) struct RawBackend {
    pub(in crate::config) name: Option<Written<String>>,
    pub(in crate::config) place: Written<RawPlace>,
    pub(in crate::config) health_path: Option<Written<String>>,
    pub(in crate::config) portion: RawPortion,
}

impl RawBackend {
    /// A backend of which nothing is known but where it is.
    pub(in crate::config) fn at(place: Written<RawPlace>) -> Self {
        RawBackend { name: None, place, health_path: None, portion: RawPortion::default() }
    }
}

/// Where a backend is, and what its URL said about the protocol.
#[derive(Clone, Debug)]
pub(in crate::config) struct RawPlace {
    pub(in crate::config) address: BackendAddress,
    /// `None` when it was written as `host` and `port`, or is a unix socket.
    pub(in crate::config) protocol: Option<Protocol>,
    /// Whether its URL asks for TLS; `None` as above.
    pub(in crate::config) tls: Option<bool>,
}

/// Walks a target's `backends`.
pub(super) fn walk(entry: &Entry, reader: &mut Reader<'_>) -> Field<Vec<RawBackend>> {
    const EXPECTED: &str = "a list, each item with `host` and `port` or with `url`";
    let Some(items) = list(entry, reader, EXPECTED) else { return Field::Faulty };
    let backends: Vec<RawBackend> = items.iter().filter_map(|item| backend(item, reader)).collect();
    // With a faulty backend left out, the others can still be compared; none at all is another matter.
    if backends.is_empty() && !items.is_empty() {
        return Field::Faulty;
    }
    Field::Given(Written::new(backends, reader.key_spot(entry)))
}

fn backend(item: &Node, reader: &mut Reader<'_>) -> Option<RawBackend> {
    if let Typed::Text(text) = item.typed() {
        let spot = reader.spot_of(item);
        let wrong = Wrong::new(found(item), "a mapping with `host` and `port`, or with `url`");
        let url = if text.contains(':') && !text.contains("://") && !text.starts_with("unix:") {
            format!("http://{text}")
        } else {
            text.to_owned()
        };
        reader.report.wrong(&spot, "a backend", wrong.hint(format!("write `- url: {url}`")));
        return None;
    }
    let section = reader.section("a backend", item, &shape::BACKEND)?;
    let name = section.find("name").and_then(|entry| reader.word(entry, "a word", name));
    let health_path = section
        .find("health_path")
        .and_then(|entry| reader.parsed(entry, "a path such as `/health`", probe_path));
    let portion = balance::portion(&section, reader);
    let (url, host, port) = (section.find("url"), section.find("host"), section.find("port"));
    let place = match (url, host, port) {
        (Some(url), None, None) => {
            let mut place = reader.parsed(url, "a URL such as `http://127.0.0.1:8001`", backend_url)?;
            if let BackendAddress::Unix(path) = &mut place.value.address {
                *path = rooted(path, reader);
            }
            place
        }
        (None, Some(host), Some(port)) => {
            let host = reader.word(host, "an IP address or a host name", address::host);
            let port = reader.whole(port, 1..=65_535);
            let (host, port) = (host?, port?);
            let port_number = u16::try_from(port.value).ok()?;
            let address = BackendAddress::Host { host: host.value, port: port_number };
            Written::new(RawPlace { address, protocol: None, tls: None }, host.spot)
        }
        (Some(url), Some(other), _) | (Some(url), None, Some(other)) => {
            let message = format!("{} and {} in one backend", subject(&url.key), subject(&other.key));
            reader
                .report
                .at(url.key_place.max(other.key_place), message)
                .expected("either `url`, or `host` and `port`");
            return None;
        }
        (None, ..) if ["url", "host", "port"].iter().any(|key| section.is_misspelt(key)) => return None,
        (None, Some(only), None) | (None, None, Some(only)) => {
            let missing = if only.key == "host" { "port" } else { "host" };
            reader
                .report
                .at(only.key_place, format!("this backend has a `{}` and no `{missing}`", only.key))
                .expected("`host` and `port`, or `url`");
            return None;
        }
        (None, None, None) => {
            reader
                .report
                .at(item.place, "this backend has no address")
                .expected("`host` and `port`, or `url`");
            return None;
        }
    };
    Some(RawBackend { name, place, health_path, portion })
}

/// Walks GoLoadBalance's `servers`: a list of URLs.
pub(super) fn from_servers(entry: &Entry, reader: &mut Reader<'_>) -> RawTarget {
    let spot = reader.key_spot(entry);
    let Some(items) = list(entry, reader, "a list of URLs such as `[http://127.0.0.1:8001]`") else {
        return super::default_target(spot, Field::Faulty);
    };
    let mut backends = Vec::with_capacity(items.len());
    for item in items {
        let spot = reader.spot_of(item);
        let Typed::Text(text) = item.typed() else {
            let wrong = Wrong::new(found(item), "a URL such as `http://127.0.0.1:8001`");
            reader.report.wrong(&spot, "an entry of `servers`", wrong);
            continue;
        };
        match backend_url(text) {
            Ok(place) => {
                let place = Written::new(place, spot);
                backends.push(RawBackend::at(place));
            }
            Err(wrong) => reader.report.wrong(&spot, "an entry of `servers`", wrong),
        }
    }
    let faulty = backends.len() < items.len();
    let backends = if faulty { Field::Faulty } else { Field::Given(Written::new(backends, spot.clone())) };
    super::default_target(spot, backends)
}

/// Reads a backend's URL; a unix path is left as written.
pub(in crate::config) fn backend_url(text: &str) -> Result<RawPlace, Wrong> {
    Ok(match address::url(text)? {
        Url::Host(scheme, host, port) => RawPlace {
            address: BackendAddress::Host { host, port },
            protocol: Some(scheme.protocol),
            tls: Some(scheme.tls),
        },
        Url::Unix(path) => RawPlace { address: BackendAddress::Unix(path), protocol: None, tls: None },
    })
}
