//! The written form of a route.

mod access;
mod matches;
mod mirror;

use crate::config::error::{Wrong, quoted};
use crate::config::model::route::{InlineAccess, RouteMatch};
use crate::config::origin::{Field, Spot, Written};
use crate::config::raw::bounds::COUNT_MAX;
use crate::config::raw::costs::{self, RawLimits, RawTimeouts};
use crate::config::raw::reader::Reader;
use crate::config::raw::shape;
use crate::config::raw::vocabulary::words::name;
use crate::config::yaml::Node;
pub(in crate::config) use mirror::RawMirror;

/// One route.
#[derive(Debug)]
pub(in crate::config) struct RawRoute {
    pub(in crate::config) spot: Spot,
    pub(in crate::config) name: Option<Written<String>>,
    pub(in crate::config) order: Option<Written<u32>>,
    pub(in crate::config) matches: Field<RouteMatch>,
    pub(in crate::config) access: Field<InlineAccess>,
    pub(in crate::config) timeouts: RawTimeouts,
    pub(in crate::config) limits: RawLimits,
    pub(in crate::config) target: Field<String>,
    /// `None` inside: `off`.
    pub(in crate::config) mirror: Field<Option<RawMirror>>,
    /// Where keys stand that mean something to HTTP only.
    pub(in crate::config) http_only: Vec<(&'static str, Spot)>,
}

impl RawRoute {
    /// The targets that it names, copies too.
    pub(in crate::config) fn targets(&self) -> impl Iterator<Item = &Written<String>> {
        let target = match &self.target {
            Field::Given(target) => Some(target),
            Field::Absent | Field::Faulty => None,
        };
        let mirror = match &self.mirror {
            Field::Given(mirror) => mirror.value.as_ref().map(|mirror| &mirror.target),
            Field::Absent | Field::Faulty => None,
        };
        target.into_iter().chain(mirror)
    }
}

/// Walks one of `routes`.
pub(in crate::config::raw) fn walk(node: &Node, reader: &mut Reader<'_>) -> Option<RawRoute> {
    let spot = reader.spot_of(node);
    let section = reader.section("a route", node, &shape::ROUTE)?;
    let target = match section.find("target") {
        Some(entry) => Field::read(reader.word(entry, "the name of a target", name)),
        None if section.is_misspelt("target") => Field::Faulty,
        None => Field::Absent,
    };
    let matches = match section.find("match") {
        Some(entry) => {
            let place = reader.key_spot(entry);
            Field::read(matches::walk(entry, reader).map(|matches| Written::new(matches, place)))
        }
        None if section.is_misspelt("match") => Field::Faulty,
        None => Field::Absent,
    };
    let order = section.find("order").and_then(|entry| reader.whole(entry, 0..=COUNT_MAX));
    let name = section.find("name").and_then(|entry| reader.word(entry, NAME_FORM, route_name));
    let access = match section.find("access") {
        Some(entry) => Field::read(access::walk(entry, reader)),
        None if section.is_misspelt("access") => Field::Faulty,
        None => Field::Absent,
    };
    let mirror = match section.find("mirror") {
        Some(entry) => Field::read(mirror::walk(entry, reader)),
        None if section.is_misspelt("mirror") => Field::Faulty,
        None => Field::Absent,
    };
    let mut http_only = Vec::new();
    for key in ["match", "order", "access", "mirror", "timeouts", "limits"] {
        http_only.extend(section.find(key).map(|entry| (key, reader.key_spot(entry))));
    }
    // Whether they are for HTTP only is said of the whole.
    let mut inside = Vec::new();
    let timeouts = section.find("timeouts");
    let timeouts =
        timeouts.and_then(|entry| costs::timeouts(entry, &shape::ROUTE_TIMEOUTS, reader, &mut inside));
    let limits = section.find("limits");
    let limits = limits.and_then(|entry| costs::limits(entry, &shape::ROUTE_LIMITS, reader, &mut inside));
    Some(RawRoute {
        spot,
        name,
        order,
        matches,
        access,
        timeouts: timeouts.unwrap_or_default(),
        limits: limits.unwrap_or_default(),
        target,
        mirror,
        http_only,
    })
}

const NAME_FORM: &str = "a name such as `shop`";

/// Default names have slashes, so others may have them too.
fn route_name(text: &str) -> Result<String, Wrong> {
    if text.is_empty()
        || text.chars().count() > 200
        || text.chars().any(|c| c.is_whitespace() || c.is_control())
    {
        return Err(Wrong::new(
            format!("is {}", quoted(text)),
            "a name without blanks, of at most 200 characters",
        ));
    }
    Ok(text.to_owned())
}
