//! `proxy_protocol`: who tells on a listener whose connections it passes on.

use ipnet::IpNet;

use crate::config::error::Wrong;
use crate::config::origin::{Field, Written};
use crate::config::raw::address;
use crate::config::raw::group::{items, section_or_off, there_already};
use crate::config::raw::kind::Shape;
use crate::config::raw::reader::{Reader, found, subject};
use crate::config::yaml::{Entry, Typed};

const FORM: &str = "addresses and networks of the balancers in front, such as `[10.0.0.0/8]`, or `unix`";

/// `proxy_protocol` when it is not `off`.
#[derive(Debug)]
pub(in crate::config) struct RawProxyProtocol {
    pub(in crate::config) from: Field<RawSenders>,
    pub(in crate::config) required: Option<Written<bool>>,
}

/// Those who may tell.
#[derive(Debug, Default)]
pub(in crate::config) struct RawSenders {
    pub(in crate::config) networks: Vec<IpNet>,
    pub(in crate::config) unix: bool,
}

/// Walks `proxy_protocol` with the keys of `shape`; `None` inside: `off`.
pub(in crate::config::raw) fn walk(
    entry: &Entry,
    shape: &Shape,
    reader: &mut Reader<'_>,
) -> Field<Option<RawProxyProtocol>> {
    let expected = "`off`, or a mapping such as `{from: [10.0.0.0/8]}`";
    let Some(written) = section_or_off(entry, reader, shape, expected, None) else { return Field::Faulty };
    let Some(section) = written.value else { return Field::Given(Written::new(None, written.spot)) };
    let from = match section.find("from") {
        Some(entry) => Field::read(senders(entry, reader)),
        None if section.is_misspelt("from") => Field::Faulty,
        None => {
            reader.report.at(entry.key_place, "`proxy_protocol` has no `from`".to_owned()).expected(FORM);
            Field::Faulty
        }
    };
    let required = section.find("required").and_then(|entry| reader.switch(entry));
    Field::Given(Written::new(Some(RawProxyProtocol { from, required }), written.spot))
}

fn senders(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<RawSenders>> {
    let items = items(entry, reader, FORM)?;
    let (mut all, mut faults) = (RawSenders::default(), 0);
    for item in items {
        let (subject, mut is_there) = (subject(&entry.key), false);
        let read = match (item.typed(), item.text()) {
            (Typed::Text(_), Some("unix")) => {
                is_there = std::mem::replace(&mut all.unix, true);
                Ok(())
            }
            (Typed::Text(_) | Typed::Integer(_) | Typed::Float(_), Some(text)) => {
                address::network(text).map(|network| {
                    is_there = all.networks.contains(&network);
                    all.networks.push(network);
                })
            }
            _ => Err(Wrong::new(found(item), FORM)),
        };
        if let Err(wrong) = read {
            reader.report.wrong(&reader.spot_of(item), &subject, wrong);
            faults += 1;
        } else if is_there {
            let spot = reader.spot_of_use(item);
            let wrong = there_already(item, item.text().unwrap_or_default());
            reader.report.wrong(&spot, &subject, wrong);
            faults += 1;
        }
    }
    (faults == 0).then(|| Written::new(all, reader.spot(entry)))
}
