//! `http2`: whether clients may speak it, and what that may cost.

use std::time::Duration;

use crate::config::origin::{Field, Written};
use crate::config::raw::bounds::{HTTP2_MEMORY, MONTH, SECOND, STREAMS_MAX, WINDOW_MAX};
use crate::config::raw::group::section_or_off;
use crate::config::raw::kind::Shape;
use crate::config::raw::reader::{Reader, is_off, is_on};
use crate::config::yaml::Entry;

/// `http2` when it is not `off`.
#[derive(Debug, Default)]
pub(in crate::config) struct RawHttp2 {
    pub(in crate::config) max_streams: Option<Written<u32>>,
    pub(in crate::config) window_max: Option<Written<u64>>,
    pub(in crate::config) memory: Option<Written<u64>>,
    /// A value of `None`: `off`.
    pub(in crate::config) max_age: Option<Written<Option<Duration>>>,
    /// There is a fault in `memory`, which has been reported.
    pub(in crate::config) is_faulty: bool,
}

/// Walks `http2` with the keys of `shape`; `None` inside: `off`.
pub(in crate::config::raw) fn walk(
    entry: &Entry,
    shape: &Shape,
    reader: &mut Reader<'_>,
) -> Field<Option<RawHttp2>> {
    if is_on(&entry.node) {
        return Field::Given(Written::new(Some(RawHttp2::default()), reader.spot(entry)));
    }
    let expected = "`on`, `off`, or a mapping such as `{max_streams: 128}`";
    let Some(written) = section_or_off(entry, reader, shape, expected, None) else { return Field::Faulty };
    let Some(section) = written.value else { return Field::Given(Written::new(None, written.spot)) };
    let streams = section.find("max_streams");
    let window = section.find("window_max");
    let written_memory = section.find("memory");
    let memory = written_memory.and_then(|entry| reader.size(entry, HTTP2_MEMORY.0..=HTTP2_MEMORY.1, false));
    let keys = RawHttp2 {
        max_streams: streams.and_then(|entry| reader.whole(entry, 1..=STREAMS_MAX)),
        window_max: window.and_then(|entry| reader.size(entry, WINDOW_MAX.0..=WINDOW_MAX.1, false)),
        is_faulty: written_memory.is_some() && memory.is_none() || section.is_misspelt("memory"),
        memory,
        max_age: section.find("max_age").and_then(|entry| max_age(entry, reader)),
    };
    Field::Given(Written::new(Some(keys), written.spot))
}

fn max_age(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Option<Duration>>> {
    if is_off(&entry.node) {
        return Some(Written::new(None, reader.spot(entry)));
    }
    let read = reader.duration_or_off(entry, SECOND..=MONTH)?;
    Some(Written::new(Some(read.value), read.spot))
}
