//! The keys of what lets clients in.

use crate::config::model::RateBy;
use crate::config::raw::bounds::RATE_MAX;
use crate::config::raw::kind::Kind::{ChoicesOrGroups, OneOrItems, Switch, Text, Whole, WholeOr, Word};
use crate::config::raw::kind::{DROP, FILE, NETWORK, RATE, Shape, TOKEN, key, names};

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

/// A list that stands in the `access` of a listener.
pub(in crate::config::raw) const LISTENER_ACCESS: Shape =
    Shape { path: "listeners.<name>.access.", ..ACCESS };

/// A list that stands in the `access` of a target, which is that of its listener.
pub(in crate::config::raw) const TARGET_ACCESS: Shape = Shape { path: "targets.<name>.access.", ..ACCESS };

/// One of `rate_limits`.
pub(in crate::config::raw) const RATE_LIMIT: Shape = Shape {
    title: "in a rate limit",
    path: "rate_limits.<name>.",
    needs: &[&["rate"]],
    keys: &[
        key("rate", Text(RATE), "How many may come in which time: `100/s`, `30/m` or `1000/h`."),
        key("burst", Whole(1, RATE_MAX), "How many may come at once; by default those of one second."),
        key(
            "by",
            ChoicesOrGroups(|| names(RateBy::NAMED), &RATE_BY),
            "Who counts together; of several each must pass.",
        )
        .or("[client_ip]"),
        key("dry_run", Switch, "Nobody is refused; who would be is counted.").or("false"),
    ],
};

/// An item of `by` that has a name.
pub(in crate::config::raw) const RATE_BY: Shape = Shape {
    title: "in `by`",
    path: "rate_limits.<name>.by.",
    needs: &[&["header"], &["cookie"]],
    keys: &[
        key("header", Word(TOKEN), "The first header line of this name."),
        key("cookie", Word(TOKEN), "The cookie of this name."),
    ],
};
