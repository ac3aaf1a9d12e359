//! The keys of the PROXY protocol with whoever is in front.

use crate::config::raw::kind::Kind::{Group, OneOrItems, OrOff, Switch, Word};
use crate::config::raw::kind::{Key, SENDER, Shape, key};

/// `proxy_protocol` of a listener.
pub(super) const PROXY_OF_LISTENER: Key = key(
    "proxy_protocol",
    OrOff(&Group(&LISTENER_PROXY)),
    "The PROXY protocol: balancers in front that tell whose connections they pass on.",
)
.or("off");

/// The same of a target in the short form.
pub(super) const PROXY_OF_TARGET: Key = Key { kind: OrOff(&Group(&TARGET_PROXY)), ..PROXY_OF_LISTENER };

/// A listener's `proxy_protocol`.
pub(in crate::config::raw) const LISTENER_PROXY: Shape = Shape {
    title: "in `proxy_protocol`",
    path: "listeners.<name>.proxy_protocol.",
    needs: &[&["from"]],
    keys: &[
        key("from", OneOrItems(&Word(SENDER)), "Who may tell: addresses, networks, or `unix` for whoever comes over a unix socket."),
        key("required", Switch, "`false`: who sends no header, or may send none, is a client like any other. Otherwise it is closed.")
            .or("true"),
    ],
};

/// A target's `proxy_protocol`, which is that of its listener.
pub(in crate::config::raw) const TARGET_PROXY: Shape =
    Shape { path: "targets.<name>.proxy_protocol.", ..LISTENER_PROXY };
