//! `scale`: when it is told that a target has too few backends, or more than it needs.

use std::time::Duration;

use crate::config::origin::Written;
use crate::config::raw::bounds::{DAY, IN_FLIGHT_MAX, SECOND};
use crate::config::raw::reader::Reader;
use crate::config::raw::resilience::percent;
use crate::config::raw::shape;
use crate::config::yaml::Entry;

/// `scale`.
#[derive(Debug, Default)]
pub(in crate::config) struct RawScale {
    pub(in crate::config) out: Option<RawScaleOut>,
    pub(in crate::config) into: Option<RawScaleIn>,
}

/// `scale.out`.
#[derive(Debug)]
pub(in crate::config) struct RawScaleOut {
    pub(in crate::config) queued: Option<Written<u32>>,
    pub(in crate::config) hold: Option<Written<Duration>>,
}

/// `scale.in`.
#[derive(Debug)]
pub(in crate::config) struct RawScaleIn {
    pub(in crate::config) busy: Option<Written<u8>>,
    pub(in crate::config) hold: Option<Written<Duration>>,
    /// Where it stands.
    pub(in crate::config) whole: Written<()>,
}

/// Walks `scale`.
pub(in crate::config::raw) fn walk(entry: &Entry, reader: &mut Reader<'_>) -> RawScale {
    let Some(section) = reader.section("`scale`", &entry.node, &shape::SCALE) else {
        return RawScale::default();
    };
    RawScale {
        out: section.find("out").and_then(|entry| out(entry, reader)),
        into: section.find("in").and_then(|entry| into(entry, reader)),
    }
}

fn out(entry: &Entry, reader: &mut Reader<'_>) -> Option<RawScaleOut> {
    let section = reader.section("`scale.out`", &entry.node, &shape::SCALE_OUT)?;
    Some(RawScaleOut {
        queued: section.find("queued").and_then(|entry| reader.whole(entry, 1..=IN_FLIGHT_MAX)),
        hold: section.find("for").and_then(|entry| reader.duration(entry, SECOND..=DAY)),
    })
}

fn into(entry: &Entry, reader: &mut Reader<'_>) -> Option<RawScaleIn> {
    let section = reader.section("`scale.in`", &entry.node, &shape::SCALE_IN)?;
    Some(RawScaleIn {
        busy: section.find("busy").and_then(|entry| percent(entry, reader, 1..=99)),
        hold: section.find("for").and_then(|entry| reader.duration(entry, SECOND..=DAY)),
        whole: Written::new((), reader.spot(entry)),
    })
}
