//! What a reload deals with, each kind under the name that it has in docs/operations.md, which says what becomes of it.

/// Every kind, in the order of the table there.
pub const FATES: [&str; 22] = [
    "a request under way",
    "a connection of a client",
    "a tunnel or a TCP connection",
    "a listener that stays",
    "an address that another listener takes over",
    "an address that is in the way of another",
    "a listener that is gone",
    "a target or backend that stays",
    "a target whose keys differ",
    "a health check that asks otherwise",
    "a probe, an agent, a name that stay",
    "a backend with another address or TLS",
    "a backend that is gone",
    "a backend with another `state`",
    "a target that loses everybody who is up",
    "session tickets, sticky cookies",
    "`max_connections`, limits of listeners",
    "the access log",
    "webhooks",
    "level and form of events",
    "the times of the shutdown",
    "what needs a restart",
];
