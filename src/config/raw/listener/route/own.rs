//! What a route says instead of its target: `retries`, `hash_key`, `upgrade`.

use crate::config::model::HashKey;
use crate::config::origin::Written;
use crate::config::raw::balance::hash_key;
use crate::config::raw::bounds::ATTEMPTS_MAX;
use crate::config::raw::group::{section_or_off, upgrade};
use crate::config::raw::reader::{Reader, Section};
use crate::config::raw::resilience::{conditions, narrowed};
use crate::config::raw::shape;
use crate::config::raw::vocabulary::spoken::Condition;
use crate::config::yaml::Entry;

/// What a route says instead of its target.
#[derive(Debug, Default)]
pub(in crate::config) struct RawOwn {
    /// A value of `None`: `off`.
    pub(in crate::config) retries: Option<Written<Option<RawRouteRetries>>>,
    pub(in crate::config) hash_key: Option<Written<HashKey>>,
    /// `off` is an empty list.
    pub(in crate::config) upgrade: Option<Written<Vec<String>>>,
}

/// `retries` of a route when it is not `off`.
#[derive(Debug)]
pub(in crate::config) struct RawRouteRetries {
    pub(in crate::config) attempts: Option<Written<u8>>,
    pub(in crate::config) on: Option<Written<Vec<Written<Condition>>>>,
}

/// Walks them.
pub(super) fn walk(section: &Section<'_>, reader: &mut Reader<'_>) -> RawOwn {
    let key = section.find("hash_key");
    RawOwn {
        retries: section.find("retries").and_then(|entry| retries(entry, reader)),
        hash_key: key.and_then(|entry| hash_key(entry, &shape::ROUTE_HASH_KEY, reader)),
        upgrade: section.find("upgrade").and_then(|entry| upgrade(entry, reader)),
    }
}

fn retries(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Option<RawRouteRetries>>> {
    const FORM: &str = "`off`, or a mapping with `attempts` and `on`";
    let written = section_or_off(entry, reader, &shape::ROUTE_RETRIES, FORM, None)?;
    let Some(section) = written.value else { return Some(Written::new(None, written.spot)) };
    let attempts = section.find("attempts").and_then(|entry| reader.whole(entry, 1..=ATTEMPTS_MAX));
    let retries = RawRouteRetries {
        attempts: attempts.map(narrowed),
        on: section.find("on").and_then(|entry| conditions(entry, reader)),
    };
    Some(Written::new(Some(retries), written.spot))
}
