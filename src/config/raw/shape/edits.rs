//! The keys of header edits and of rewrites, which routes, listeners and targets have alike.

use crate::config::raw::kind::Kind::{Group, Lines, OneOrItems, Text, Word};
use crate::config::raw::kind::{Key, NEW_PATH, ROUTE_PATH, Shape, TOKEN, key};

const EDITS: &[Key] = &[
    key("remove", OneOrItems(&Word(TOKEN)), "Headers of which all lines go; first of all."),
    key("set", Lines(false), "Headers that have this one value, whatever was there."),
    key("add", Lines(true), "Lines beside those that are there."),
];

/// A route's `headers`, and those of both directions.
pub(in crate::config::raw) const ROUTE_HEADERS: [&Shape; 3] = [&ROUTE_LINES, &ROUTE_REQUEST, &ROUTE_RESPONSE];
/// A listener's.
pub(in crate::config::raw) const LISTENER_HEADERS: [&Shape; 3] =
    [&LISTENER_LINES, &LISTENER_REQUEST, &LISTENER_RESPONSE];

pub(in crate::config::raw) const ROUTE_LINES: Shape = Shape {
    title: "in `headers`",
    path: "listeners.<name>.routes[].headers.",
    needs: &[],
    keys: &[
        key("request", Group(&ROUTE_REQUEST), "Edits of requests, on their way to a backend."),
        key("response", Group(&ROUTE_RESPONSE), "Edits of answers, on their way to the client."),
    ],
};
pub(in crate::config::raw) const ROUTE_REQUEST: Shape = Shape {
    title: "in the `headers` of requests",
    path: "listeners.<name>.routes[].headers.request.",
    needs: &[],
    keys: EDITS,
};
pub(in crate::config::raw) const ROUTE_RESPONSE: Shape = Shape {
    title: "in the `headers` of answers",
    path: "listeners.<name>.routes[].headers.response.",
    ..ROUTE_REQUEST
};

pub(in crate::config::raw) const LISTENER_LINES: Shape = Shape {
    path: "listeners.<name>.headers.",
    keys: &[
        key(
            "request",
            Group(&LISTENER_REQUEST),
            "Edits of the requests of all routes, before those of a route.",
        ),
        key(
            "response",
            Group(&LISTENER_RESPONSE),
            "Edits of the answers of all routes, before those of a route.",
        ),
    ],
    ..ROUTE_LINES
};
pub(in crate::config::raw) const LISTENER_REQUEST: Shape =
    Shape { path: "listeners.<name>.headers.request.", ..ROUTE_REQUEST };
pub(in crate::config::raw) const LISTENER_RESPONSE: Shape =
    Shape { path: "listeners.<name>.headers.response.", ..ROUTE_RESPONSE };

/// A route's `rewrite`.
pub(in crate::config::raw) const ROUTE_REWRITE: Shape = Shape {
    title: "in `rewrite`",
    path: "listeners.<name>.routes[].rewrite.",
    needs: &[],
    keys: &[
        key("strip_prefix", Text(ROUTE_PATH), "A prefix that paths lose, segment by segment."),
        key("add_prefix", Text(ROUTE_PATH), "A prefix that paths get."),
        key(
            "path",
            Text(NEW_PATH),
            "What paths become, with variables; without a `?` in it the query stays.",
        ),
    ],
};
