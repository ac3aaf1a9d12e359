//! The keys of what becomes of a route's requests, and of what it says instead of its target.

use super::resilience::RETRIES;
use super::target::HASH_KEY;
use crate::config::model::HashKey;
use crate::config::raw::bounds::SHARE_MAX;
use crate::config::raw::kind::Kind::{ChoiceOrGroup, Lines, Weights, Whole, Word};
use crate::config::raw::kind::{BODY, FILE, LOCATION, MEDIA_TYPE, Shape, key, names};

/// A route's `split`.
pub(in crate::config::raw) const SPLIT: Shape = Shape {
    title: "in `split`",
    path: "listeners.<name>.routes[].split.",
    needs: &[&["targets"]],
    keys: &[
        key("targets", Weights(0, SHARE_MAX), "Targets, and how much each gets beside the others."),
        key(
            "by",
            ChoiceOrGroup(|| names(HashKey::NAMED), &SPLIT_BY),
            "What of a request decides where it goes; without it chance does.",
        ),
    ],
};

/// What a `split` goes by.
pub(in crate::config::raw) const SPLIT_BY: Shape =
    Shape { title: "in `by`", path: "listeners.<name>.routes[].split.by.", ..HASH_KEY };

/// A route's `redirect`.
pub(in crate::config::raw) const REDIRECT: Shape = Shape {
    title: "in `redirect`",
    path: "listeners.<name>.routes[].redirect.",
    needs: &[&["to"]],
    keys: &[
        key("to", Word(LOCATION), "Where clients are sent: a URL or a path, with variables."),
        key("status", Whole(301, 308), "301, 302, 303, 307 or 308.").or("308"),
    ],
};

/// A route's `respond`.
pub(in crate::config::raw) const RESPOND: Shape = Shape {
    title: "in `respond`",
    path: "listeners.<name>.routes[].respond.",
    needs: &[],
    keys: &[
        key("status", Whole(200, 599), "The status of the answer.").or("200"),
        key("body", Word(BODY), "Its body, as it is written."),
        key("body_file", Word(FILE), "A file that is its body."),
        key("content_type", Word(MEDIA_TYPE), "The type of its body."),
        key("headers", Lines(true), "Its further headers, with variables."),
    ],
};

/// A route's `hash_key`.
pub(in crate::config::raw) const ROUTE_HASH_KEY: Shape =
    Shape { path: "listeners.<name>.routes[].hash_key.", ..HASH_KEY };

/// A route's `retries`.
pub(in crate::config::raw) const ROUTE_RETRIES: Shape = Shape {
    title: "in the `retries` of a route",
    path: "listeners.<name>.routes[].retries.",
    needs: &[],
    keys: &[
        key("attempts", RETRIES.key("attempts").kind, "`attempts` of its target."),
        key("on", RETRIES.key("on").kind, "`on` of its target."),
    ],
};
