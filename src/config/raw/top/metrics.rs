//! `metrics`: how numbers get to those who collect them.

use crate::config::origin::{Field, Written};
use crate::config::raw::address::RawListener;
use crate::config::raw::reader::{Reader, is_off};
use crate::config::raw::shape;
use crate::config::raw::top::statsd::RawStatsd;
use crate::config::raw::top::{admin, statsd};
use crate::config::yaml::Entry;

const LISTENER_FORM: &str = "`off`, a port such as `9901`, or an address with port such as `0.0.0.0:9901`";
const NOTE: &str = "metrics are given at the unix socket `admin.socket` too";

/// As written.
#[derive(Debug, Default)]
pub(in crate::config) struct RawMetrics {
    pub(in crate::config) listener: Field<Option<RawListener>>,
    pub(in crate::config) statsd: Option<RawStatsd>,
}

/// Walks `metrics`.
pub(in crate::config::raw) fn walk(entry: &Entry, reader: &mut Reader<'_>) -> RawMetrics {
    let Some(section) = reader.section("`metrics`", &entry.node, &shape::METRICS) else {
        return RawMetrics::default();
    };
    let listener = match section.find("listener") {
        Some(entry) if is_off(&entry.node) => Field::Given(Written::new(None, reader.spot(entry))),
        Some(entry) => {
            let read = reader
                .parsed_with_numbers(entry, LISTENER_FORM, |text| admin::over_tcp(text, LISTENER_FORM, NOTE));
            Field::read(read.map(|read| Written::new(Some(read.value), read.spot)))
        }
        None if section.is_misspelt("listener") => Field::Faulty,
        None => Field::Absent,
    };
    RawMetrics { listener, statsd: section.find("statsd").and_then(|entry| statsd::walk(entry, reader)) }
}
