//! `resolver`: how DNS is asked for backends.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::config::error::{Wrong, quoted};
use crate::config::origin::Written;
use crate::config::raw::address::port;
use crate::config::raw::bounds::{ADDRESSES_MAX, COUNT_MAX, DAY, INTERVAL_MIN, MILLISECOND, MINUTE};
use crate::config::raw::group::{items, there_already};
use crate::config::raw::reader::{Reader, found, subject};
use crate::config::raw::shape;
use crate::config::yaml::{Entry, Typed};

/// `resolver`.
#[derive(Debug, Default)]
pub(in crate::config) struct RawResolver {
    pub(in crate::config) servers: Option<Written<Vec<SocketAddr>>>,
    pub(in crate::config) timeout: Option<Written<Duration>>,
    pub(in crate::config) attempts: Option<Written<u32>>,
    pub(in crate::config) ttl_min: Option<Written<Duration>>,
    pub(in crate::config) ttl_max: Option<Written<Duration>>,
    pub(in crate::config) hold: Option<Written<Duration>>,
    pub(in crate::config) addresses: Option<Written<u32>>,
}

/// Walks `resolver`.
pub(in crate::config::raw) fn walk(entry: &Entry, reader: &mut Reader<'_>) -> RawResolver {
    let Some(section) = reader.section("`resolver`", &entry.node, &shape::RESOLVER) else {
        return RawResolver::default();
    };
    RawResolver {
        servers: section.find("servers").and_then(|entry| servers(entry, reader)),
        timeout: section.find("timeout").and_then(|entry| reader.duration(entry, MILLISECOND..=MINUTE)),
        attempts: section.find("attempts").and_then(|entry| reader.whole(entry, 1..=COUNT_MAX)),
        ttl_min: section.find("ttl_min").and_then(|entry| reader.duration(entry, INTERVAL_MIN..=DAY)),
        ttl_max: section.find("ttl_max").and_then(|entry| reader.duration(entry, INTERVAL_MIN..=DAY)),
        hold: section.find("hold").and_then(|entry| reader.duration(entry, Duration::ZERO..=DAY)),
        addresses: section.find("addresses").and_then(|entry| reader.whole(entry, 1..=ADDRESSES_MAX)),
    }
}

const FORM: &str = "an address such as `10.0.0.53` or `\"[::1]:5353\"`, or a list of them";
/// The port that DNS is asked at.
const USUAL_PORT: u16 = 53;

fn servers(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Vec<SocketAddr>>> {
    let items = items(entry, reader, FORM)?;
    let mut all = Vec::with_capacity(items.len());
    for item in items {
        let read = match (item.typed(), item.text()) {
            (Typed::Text(_) | Typed::Float(_) | Typed::Integer(_), Some(text)) => server(text),
            _ => Err(Wrong::new(found(item), FORM)),
        };
        let (spot, wrong) = match read {
            Ok(server) if all.contains(&server) => {
                (reader.spot_of_use(item), there_already(item, item.text().unwrap_or_default()))
            }
            Ok(server) => {
                all.push(server);
                continue;
            }
            Err(wrong) if item.is_null() => (reader.spot(entry), wrong),
            Err(wrong) => (reader.spot_of(item), wrong),
        };
        reader.report.wrong(&spot, &subject(&entry.key), wrong);
    }
    (all.len() == items.len()).then(|| Written::new(all, reader.spot(entry)))
}

/// An address, with a port or without.
fn server(text: &str) -> Result<SocketAddr, Wrong> {
    let wrong = |why: &str| Wrong::new(format!("is {}, {why}", quoted(text)), FORM);
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let server = match (bare.parse::<IpAddr>(), text.parse::<SocketAddr>()) {
        (Ok(ip), _) => SocketAddr::new(ip, USUAL_PORT),
        (_, Ok(server)) if server.port() != 0 => server,
        _ => {
            let (host, number) = text.rsplit_once(':').unwrap_or((text, ""));
            let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
            if host.parse::<IpAddr>().is_ok() && port(number).is_none() {
                return Err(wrong("whose port is no number from 1 to 65535"));
            }
            return Err(
                wrong("which is no IP address").note("who is asked for names has to be known without asking")
            );
        }
    };
    if server.ip().is_unspecified() {
        return Err(wrong("which is no address to ask").instead(format!("127.0.0.1:{}", server.port())));
    }
    Ok(server)
}
