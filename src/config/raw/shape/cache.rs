//! The keys of what is kept of answers, and of how they are compressed.

use std::time::Duration;

use crate::config::model::cache::Coding;
use crate::config::raw::bounds::{MILLISECOND, OBJECT, RATE_MAX, SHORTEST_MAX, STORE, YEAR};
use crate::config::raw::kind::Kind::{
    ChoicesOrGroup, OneOrList, OrOff, Size, Switch, SwitchOr, SwitchOrChoicesOrGroup, Time, Whole, WholeOr,
    Word,
};
use crate::config::raw::kind::{BODY, Key, Kind, PER_SECOND, Shape, TOKEN, key, names};

/// `cache_store`.
pub(in crate::config::raw) const CACHE_STORE: Shape = Shape {
    title: "in `cache_store`",
    path: "cache_store.",
    needs: &[],
    keys: &[
        key("memory", Size(STORE.0, STORE.1), "Bytes that are kept for all routes together.").or("256MiB"),
        key(
            "object",
            Size(OBJECT.0, OBJECT.1),
            "Bytes of the largest body that is kept, at most an eighth of `memory`.",
        )
        .or("16MiB"),
    ],
};

/// `cache` of a route.
pub(super) const CACHE: Key =
    key("cache", SwitchOr(&ROUTE_CACHE), "What is answered from what is stored, and for how long.").or("off");

/// `cache` of a target in the short form.
pub(super) const CACHE_OF_TARGET: Key = Key {
    kind: SwitchOr(&TARGET_CACHE),
    text: "What is answered from what is stored, and for how long. For `http` only.",
    ..CACHE
};

/// A route's `cache`.
pub(in crate::config::raw) const ROUTE_CACHE: Shape = Shape {
    title: "in `cache`",
    path: "listeners.<name>.routes[].cache.",
    needs: &[],
    keys: &[
        key(
            "ttl",
            OrOff(&Time(MILLISECOND, YEAR)),
            "How long answers are fresh that say nothing about it; `off`: those are not stored.",
        )
        .or("10s"),
        key(
            "ttl_override",
            OrOff(&Time(MILLISECOND, YEAR)),
            "How long all answers are fresh that may be stored, whatever they say.",
        )
        .or("off"),
        key(
            "negative_ttl",
            OrOff(&Time(MILLISECOND, YEAR)),
            "The same as `ttl` for the statuses 404, 405, 410, 414 and 501.",
        )
        .or("off"),
        key(
            "heuristic",
            Switch,
            "`true`: answers that only say when they were last modified are fresh for a tenth of their age.",
        )
        .or("false"),
        key(
            "stale_while_revalidate",
            OrOff(&Time(Duration::ZERO, YEAR)),
            "How long an answer that says nothing about it is sent stale while the backend is asked.",
        )
        .or("off"),
        key(
            "stale_if_error",
            OrOff(&Time(Duration::ZERO, YEAR)),
            "How long an answer that says nothing about it stands in for a backend that fails.",
        )
        .or("off"),
        key(
            "ignore_cookies",
            Switch,
            "`true`: answers that say nothing are shared also among requests with cookies.",
        )
        .or("false"),
        key(
            "query",
            OneOrList(&Word(BODY)),
            "The parameters that tell objects apart; others are not forwarded. `all`: the whole query.",
        )
        .or("all"),
        key(
            "headers",
            OneOrList(&Word(TOKEN)),
            "The header lines of requests that tell objects apart, beside those of `Vary`.",
        )
        .or("[]"),
        key(
            "reloads",
            OrOff(&WholeOr(1, RATE_MAX, PER_SECOND)),
            "How often a second clients may have an object asked for again that is fresh.",
        )
        .or("10/s"),
        key(
            "fill",
            Switch,
            "`true`: an answer is stored to its end though the client that asked for it has left.",
        )
        .or("false"),
    ],
};

/// The `cache` of a target, which is that of its only route.
pub(in crate::config::raw) const TARGET_CACHE: Shape = Shape { path: "targets.<name>.cache.", ..ROUTE_CACHE };

/// The names of codings.
fn codings() -> Vec<&'static str> {
    names(Coding::NAMED)
}

/// `compress` of a route.
pub(super) const COMPRESS: Key = key(
    "compress",
    SwitchOrChoicesOrGroup(codings, &ROUTE_COMPRESS),
    "How answers are compressed for clients that take it: codings, the preferred one first.",
);

/// `compress` of a listener.
pub(super) const COMPRESS_OF_LISTENER: Key = Key {
    kind: SwitchOrChoicesOrGroup(codings, &LISTENER_COMPRESS),
    text: "How answers are compressed on all of its routes that do not say otherwise.",
    default: Some("off"),
    ..COMPRESS
};

/// `compress` of a target in the short form.
pub(super) const COMPRESS_OF_TARGET: Key = Key {
    kind: SwitchOrChoicesOrGroup(codings, &TARGET_COMPRESS),
    text: "How answers are compressed: codings, the preferred one first. For `http` only.",
    default: Some("off"),
    ..COMPRESS
};

/// A route's `compress`.
pub(in crate::config::raw) const ROUTE_COMPRESS: Shape = Shape {
    title: "in `compress`",
    path: "listeners.<name>.routes[].compress.",
    needs: &[],
    keys: &[
        key(
            "codings",
            ChoicesOrGroup(codings, &ROUTE_CODINGS),
            "The codings that are offered, the preferred one first; as a mapping each with its level.",
        )
        .or("[zstd, br, gzip]"),
        key("at_least", Size(1, SHORTEST_MAX), "Shorter bodies are sent as they are.").or("1KiB"),
        key("cookies", Switch, "`true`: answers that set cookies are compressed too.").or("false"),
    ],
};

/// A listener's `compress`.
pub(in crate::config::raw) const LISTENER_COMPRESS: Shape = Shape {
    path: "listeners.<name>.compress.",
    keys: &[
        Key { kind: ChoicesOrGroup(codings, &LISTENER_CODINGS), ..ROUTE_COMPRESS.key("codings") },
        ROUTE_COMPRESS.key("at_least"),
        ROUTE_COMPRESS.key("cookies"),
    ],
    ..ROUTE_COMPRESS
};

/// A target's `compress`, which is that of its only route.
pub(in crate::config::raw) const TARGET_COMPRESS: Shape = Shape {
    path: "targets.<name>.compress.",
    keys: &[
        Key { kind: ChoicesOrGroup(codings, &TARGET_CODINGS), ..ROUTE_COMPRESS.key("codings") },
        ROUTE_COMPRESS.key("at_least"),
        ROUTE_COMPRESS.key("cookies"),
    ],
    ..ROUTE_COMPRESS
};

/// What a level is for a coding.
const fn level(coding: Coding) -> Kind {
    let levels = coding.levels();
    Whole(*levels.start(), *levels.end())
}

/// The `codings` of a route's `compress`, each with its level.
pub(in crate::config::raw) const ROUTE_CODINGS: Shape = Shape {
    title: "in `codings`",
    path: "listeners.<name>.routes[].compress.codings.",
    needs: &[],
    keys: &[
        key("zstd", level(Coding::Zstd), "Zstandard at this level; 3 is usual."),
        key("br", level(Coding::Brotli), "Brotli at this level; 4 is usual."),
        key("gzip", level(Coding::Gzip), "gzip at this level; 6 is usual."),
    ],
};

/// The same of a listener.
pub(in crate::config::raw) const LISTENER_CODINGS: Shape =
    Shape { path: "listeners.<name>.compress.codings.", ..ROUTE_CODINGS };

/// The same of a target.
pub(in crate::config::raw) const TARGET_CODINGS: Shape =
    Shape { path: "targets.<name>.compress.codings.", ..ROUTE_CODINGS };
