//! The keys of a route.

use crate::config::raw::kind::Kind::Word;
use crate::config::raw::kind::{NAME, Shape, key};

/// One of `routes`.
pub(in crate::config::raw) const ROUTE: Shape = Shape {
    title: "in a route",
    path: "listeners.<name>.routes[].",
    needs: &[&["target"]],
    keys: &[key("target", Word(NAME), "Where its requests go.")],
};
