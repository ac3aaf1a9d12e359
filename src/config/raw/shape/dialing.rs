//! The keys of how connections to backends are made.

use crate::config::raw::bounds::{HOUR, PROBES_MAX, SECOND};
use crate::config::raw::kind::Kind::{Group, OneOrItems, OrOff, Time, Whole, Word};
use crate::config::raw::kind::{Key, SOURCE, Shape, key};

/// `bind_source` of a target.
pub(super) const BIND_SOURCE: Key = key(
    "bind_source",
    OneOrItems(&Word(SOURCE)),
    "The addresses of this machine that connections to backends come from; by default the system chooses.",
);
/// `tcp_keepalive` of a target.
pub(super) const KEEPALIVE: Key = key(
    "tcp_keepalive",
    OrOff(&Group(&TCP_KEEPALIVE)),
    "When a backend is noticed that has vanished without a word while nothing is sent.",
);

/// A target's `tcp_keepalive`.
pub(in crate::config::raw) const TCP_KEEPALIVE: Shape = Shape {
    title: "in `tcp_keepalive`",
    path: "targets.<name>.tcp_keepalive.",
    needs: &[],
    keys: &[
        key("idle", Time(SECOND, HOUR), "How long a connection is silent before the kernel asks.").or("1m"),
        key("interval", Time(SECOND, HOUR), "The pause between two questions.").or("20s"),
        key("count", Whole(1, PROBES_MAX), "Questions without an answer that end the connection.").or("3"),
    ],
};
