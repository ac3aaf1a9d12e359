//! The keys of what lets clients in.

use crate::config::raw::kind::Kind::{OneOrItems, WholeOr, Word};
use crate::config::raw::kind::{DROP, FILE, NETWORK, Shape, key};

/// One of `access_lists`.
pub(in crate::config::raw) const ACCESS_LIST: Shape = Shape {
    title: "in an access list",
    path: "access_lists.<name>.",
    needs: &[],
    keys: &[
        key("allow", OneOrItems(&Word(NETWORK)), "Addresses and networks that may come in, and nobody else."),
        key("deny", OneOrItems(&Word(NETWORK)), "Addresses and networks that may not."),
        key("allow_file", Word(FILE), "A file with more of `allow`, one in a line."),
        key("deny_file", Word(FILE), "A file with more of `deny`, one in a line."),
        key(
            "status",
            WholeOr(400, 599, DROP),
            "What the others get; `drop`: nothing, the connection is closed.",
        )
        .or("403"),
    ],
};

/// A list that stands in the `access` of a route.
pub(in crate::config::raw) const ACCESS: Shape =
    Shape { title: "in `access`", path: "listeners.<name>.routes[].access.", ..ACCESS_LIST };
