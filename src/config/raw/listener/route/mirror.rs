//! `mirror`: who gets copies of a route's requests.

use crate::config::model::Share;
use crate::config::origin::Written;
use crate::config::raw::reader::{Reader, is_off};
use crate::config::raw::shape;
use crate::config::raw::vocabulary::words::name;
use crate::config::units;
use crate::config::yaml::Entry;

/// `mirror`.
#[derive(Debug)]
pub(in crate::config) struct RawMirror {
    pub(in crate::config) target: Written<String>,
    pub(in crate::config) share: Option<Written<Share>>,
}

/// Walks `mirror`; `None` inside: `off`.
pub(super) fn walk(entry: &Entry, reader: &mut Reader<'_>) -> Option<Written<Option<RawMirror>>> {
    let spot = reader.key_spot(entry);
    if is_off(&entry.node) {
        return Some(Written::new(None, spot));
    }
    let section = reader.section("`mirror`", &entry.node, &shape::MIRROR)?;
    let share = match section.find("share") {
        Some(entry) => Some(reader.parsed_with_numbers(entry, units::SHARE_FORM, units::share)?),
        None => None,
    };
    let Some(target) = section.find("target") else {
        if !section.is_misspelt("target") {
            let problem = reader.report.spot(&spot, "`mirror` does not say who gets the copies");
            problem.expected("`mirror: {target: shadow}`, with the name of a target");
        }
        return None;
    };
    let target = reader.word(target, "the name of a target", name)?;
    Some(Written::new(Some(RawMirror { target, share }), spot))
}
