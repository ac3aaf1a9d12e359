//! The keys of HTTP/2 with clients.

use crate::config::raw::bounds::{HTTP2_MEMORY, MONTH, SECOND, STREAMS_MAX, WINDOW_MAX};
use crate::config::raw::kind::Kind::{OrOff, Size, SwitchOr, Time, Whole};
use crate::config::raw::kind::{Key, Shape, key};

/// `http2` of a listener.
pub(super) const HTTP2_OF_LISTENER: Key = key(
    "http2",
    SwitchOr(&LISTENER_HTTP2),
    "HTTP/2 beside HTTP/1.1: on with TLS; without it `on` is for clients that begin with it.",
);

/// `http2` of a target in the short form.
pub(super) const HTTP2_OF_TARGET: Key = Key {
    kind: SwitchOr(&TARGET_HTTP2),
    text: "HTTP/2 with clients: on with TLS; without it `on` is for those that begin with it. For `http` only.",
    ..HTTP2_OF_LISTENER
};

/// A listener's `http2`.
pub(in crate::config::raw) const LISTENER_HTTP2: Shape = Shape {
    title: "in `http2`",
    path: "listeners.<name>.http2.",
    needs: &[],
    keys: &[
        key("max_streams", Whole(1, STREAMS_MAX), "Requests that one connection may have open at once.")
            .or("128"),
        key(
            "window_max",
            Size(WINDOW_MAX.0, WINDOW_MAX.1),
            "Bytes to which the window of an upload may grow, at most `memory`.",
        )
        .or("4MiB"),
        key(
            "memory",
            Size(HTTP2_MEMORY.0, HTTP2_MEMORY.1),
            "Bytes per worker that HTTP/2 connections hold together, those of other listeners too.",
        )
        .or("64MiB"),
        key(
            "max_age",
            OrOff(&Time(SECOND, MONTH)),
            "How long a connection lasts until its client is asked to make another one.",
        )
        .or("off"),
    ],
};

/// A target's `http2`, which is that of its listener.
pub(in crate::config::raw) const TARGET_HTTP2: Shape =
    Shape { path: "targets.<name>.http2.", ..LISTENER_HTTP2 };
