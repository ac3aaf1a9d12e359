//! How connections to backends are made: `bind_source` and `tcp_keepalive`.

use std::net::IpAddr;
use std::time::Duration;

use crate::config::error::{Wrong, quoted};
use crate::config::origin::Written;
use crate::config::raw::bounds::{HOUR, PROBES_MAX, SECOND};
use crate::config::raw::group::{items, section_or_off, there_already};
use crate::config::raw::reader::{Reader, found, subject};
use crate::config::raw::shape;
use crate::config::yaml::{Entry, Typed};

const FORM: &str = "an address of this machine such as `10.0.0.5`, or a list of them";

/// `tcp_keepalive` when it is not `off`.
#[derive(Debug, Default)]
pub(in crate::config) struct RawKeepalive {
    pub(in crate::config) idle: Option<Written<Duration>>,
    pub(in crate::config) interval: Option<Written<Duration>>,
    pub(in crate::config) count: Option<Written<u32>>,
}

/// Walks `bind_source`.
pub(super) fn sources(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Vec<IpAddr>>> {
    let items = items(entry, reader, FORM)?;
    let mut all = Vec::with_capacity(items.len());
    for item in items {
        let read = match (item.typed(), item.text()) {
            (Typed::Text(_) | Typed::Float(_) | Typed::Integer(_), Some(text)) => source(text),
            _ => Err(Wrong::new(found(item), FORM)),
        };
        let (spot, wrong) = match read {
            Ok(source) if all.contains(&source) => {
                (reader.spot_of_use(item), there_already(item, item.text().unwrap_or_default()))
            }
            Ok(source) => {
                all.push(source);
                continue;
            }
            Err(wrong) if item.is_null() => (reader.spot(entry), wrong),
            Err(wrong) => (reader.spot_of(item), wrong),
        };
        reader.report.wrong(&spot, &subject(&entry.key), wrong);
    }
    (all.len() == items.len()).then(|| Written::new(all, reader.spot(entry)))
}

fn source(text: &str) -> Result<IpAddr, Wrong> {
    let wrong = |why: &str| Wrong::new(format!("is {}, {why}", quoted(text)), FORM);
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    match bare.parse::<IpAddr>() {
        Ok(ip) if ip.is_unspecified() => {
            Err(wrong("which is any address").note("leave `bind_source` out: then the system chooses"))
        }
        Ok(ip) if ip.is_multicast() => Err(wrong("which is an address of many")),
        Ok(ip) => Ok(ip.to_canonical()),
        Err(_) if bare.contains('/') => Err(wrong("which is a network")),
        Err(_) => Err(wrong("which is no IP address")),
    }
}

/// Walks `tcp_keepalive`; `None` inside: `off`.
pub(super) fn keepalive(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Option<RawKeepalive>>> {
    const EXPECTED: &str = "`off`, or a mapping such as `{idle: 60s, interval: 20s, count: 3}`";
    let written = section_or_off(entry, reader, &shape::TCP_KEEPALIVE, EXPECTED, None)?;
    let Some(section) = written.value else { return Some(Written::new(None, written.spot)) };
    let mut time =
        |key: &'static str| section.find(key).and_then(|entry| reader.duration(entry, SECOND..=HOUR));
    let (idle, interval) = (time("idle"), time("interval"));
    let count = section.find("count").and_then(|entry| reader.whole(entry, 1..=PROBES_MAX));
    Some(Written::new(Some(RawKeepalive { idle, interval, count }), written.spot))
}
