//! The written form of a route.

use crate::config::origin::{Field, Spot, Written};
use crate::config::raw::reader::Reader;
use crate::config::raw::shape;
use crate::config::raw::vocabulary::words::name;
use crate::config::yaml::Node;

/// One route.
#[derive(Debug)]
pub(in crate::config) struct RawRoute {
    pub(in crate::config) spot: Spot,
    pub(in crate::config) target: Field<String>,
}

impl RawRoute {
    /// The targets that it names, copies too.
    pub(in crate::config) fn targets(&self) -> impl Iterator<Item = &Written<String>> {
        match &self.target {
            Field::Given(target) => Some(target),
            Field::Absent | Field::Faulty => None,
        }
        .into_iter()
    }
}

/// Walks one of `routes`.
pub(in crate::config::raw) fn walk(node: &Node, reader: &mut Reader<'_>) -> Option<RawRoute> {
    let spot = reader.spot_of(node);
    let section = reader.section("a route", node, &shape::ROUTE)?;
    let target = match section.find("target") {
        Some(entry) => Field::read(reader.word(entry, "the name of a target", |text| {
            name(text)?;
            Ok(text.to_owned())
        })),
        None if section.is_misspelt("target") => Field::Faulty,
        None => Field::Absent,
    };
    Some(RawRoute { spot, target })
}
