//! The keys of a route.

use super::cache::{CACHE, COMPRESS};
use super::{
    ACCESS, LIMITS, REDIRECT, RESPOND, ROUTE_HASH_KEY, ROUTE_LINES, ROUTE_RETRIES, ROUTE_REWRITE, SPLIT,
    TARGET, TIMEOUTS,
};
use crate::config::model::HashKey;
use crate::config::raw::bounds::COUNT_MAX;
use crate::config::raw::kind::Kind::{
    ChoiceOrGroup, Conditions, Group, OneOrItems, OrOff, Rules, Switch, Text, Whole, Word,
};
use crate::config::raw::kind::{
    BODY, HOST_PATTERN, METHOD, NAME, NETWORK, PROTOCOL, ROUTE_NAME, ROUTE_PATH, SHARE, Shape, key, names,
};

/// One of `routes`.
pub(in crate::config::raw) const ROUTE: Shape = Shape {
    title: "in a route",
    path: "listeners.<name>.routes[].",
    needs: &[&["target"], &["split"], &["redirect"], &["respond"]],
    keys: &[
        key("name", Word(ROUTE_NAME), "What it is called in logs; by default its `match`, in one line."),
        key("match", Group(&MATCH), "Which requests are its own; by default all."),
        key(
            "order",
            Whole(0, COUNT_MAX),
            "Routes with a number are asked before all others, the lowest first.",
        ),
        key(
            "access",
            Rules(&ACCESS),
            "Whose clients may have it: names of `access_lists`, or a list right here.",
        ),
        key(
            "auth",
            OrOff(&Word(NAME)),
            "How its clients show who they are, instead of what its listener says.",
        ),
        key("rate_limit", OneOrItems(&Word(NAME)), "How often somebody may ask: names of `rate_limits`."),
        key("rewrite", Group(&ROUTE_REWRITE), "What backends get as path."),
        key("headers", Group(&ROUTE_LINES), "What is changed of headers, in both directions."),
        key("mirror", OrOff(&Group(&MIRROR)), "Who gets copies of its requests.").or("off"),
        CACHE,
        COMPRESS,
        key("timeouts", Group(&ROUTE_TIMEOUTS), "How long its requests may take."),
        key("limits", Group(&ROUTE_LIMITS), "What its requests may cost."),
        key("retries", OrOff(&Group(&ROUTE_RETRIES)), "`retries` of its target."),
        key(
            "hash_key",
            ChoiceOrGroup(|| names(HashKey::NAMED), &ROUTE_HASH_KEY),
            "`hash_key` of its target.",
        ),
        key("upgrade", TARGET.key("upgrade").kind, "`upgrade` of its target."),
        key(
            "passthrough",
            Switch,
            "`true`: TLS connections for its hosts go to its target as they are, not decrypted.",
        )
        .or("false"),
        key("target", Word(NAME), "Where its requests go."),
        key("split", Group(&SPLIT), "Targets that share its requests."),
        key("redirect", Group(&REDIRECT), "Where its clients are sent."),
        key("respond", Group(&RESPOND), "What its clients get as an answer."),
    ],
};

/// A route's `match`.
pub(in crate::config::raw) const MATCH: Shape = Shape {
    title: "in `match`",
    path: "listeners.<name>.routes[].match.",
    needs: &[],
    keys: &[
        key(
            "host",
            OneOrItems(&Word(HOST_PATTERN)),
            "Hosts: `shop.example`, `\"*.shop.example\"`, also with a port.",
        ),
        key("path", Text(ROUTE_PATH), "Just this path."),
        key("path_prefix", Text(ROUTE_PATH), "This path and all below, segment by segment."),
        key("path_regex", Word(BODY), "What a regular expression finds in the path; in single quotes."),
        key("method", OneOrItems(&Word(METHOD)), "The method is one of these."),
        key(
            "header",
            Conditions,
            "Headers: `{X-Beta: yes, X-Debug: {present: true}, User-Agent: {regex: bot}}`.",
        ),
        key("query", Conditions, "Parameters of the query, in the same form."),
        key("cookie", Conditions, "Cookies, in the same form."),
        key("client", OneOrItems(&Word(NETWORK)), "Addresses and networks of clients."),
        key("client_cert", Group(&CERTIFICATE_MATCH), "What the client's certificate is like."),
        key(
            "alpn",
            OneOrItems(&Word(PROTOCOL)),
            "With `passthrough`: the client offers one of these under TLS, such as `h2`.",
        ),
    ],
};

/// The `client_cert` of a `match`.
pub(in crate::config::raw) const CERTIFICATE_MATCH: Shape = Shape {
    title: "in `client_cert`",
    path: "listeners.<name>.routes[].match.client_cert.",
    needs: &[],
    keys: &[
        key("subject", OneOrItems(&Word(BODY)), "Its subject; `*` stands for anything: `\"*CN=robot*\"`."),
        key("san", OneOrItems(&Word(BODY)), "One of its other names, in the same form."),
    ],
};

/// A route's `mirror`.
pub(in crate::config::raw) const MIRROR: Shape = Shape {
    title: "in `mirror`",
    path: "listeners.<name>.routes[].mirror.",
    needs: &[&["target"]],
    keys: &[
        key("target", Word(NAME), "The target that gets the copies; nobody sees what it answers."),
        key("share", Text(SHARE), "The share of requests that is copied.").or("100%"),
    ],
};

/// A route's `timeouts`.
pub(in crate::config::raw) const ROUTE_TIMEOUTS: Shape = Shape {
    title: "in the `timeouts` of a route",
    path: "listeners.<name>.routes[].timeouts.",
    needs: &[],
    keys: &[
        key("idle", TIMEOUTS.key("idle").kind, "`idle` of its target."),
        key("tunnel", TIMEOUTS.key("tunnel").kind, "`tunnel` of its target."),
        key("total", TIMEOUTS.key("total").kind, "`total` of its target."),
    ],
};

/// A route's `limits`.
pub(in crate::config::raw) const ROUTE_LIMITS: Shape = Shape {
    title: "in the `limits` of a route",
    path: "listeners.<name>.routes[].limits.",
    needs: &[],
    keys: &[key("body", LIMITS.key("body").kind, "`body` of its listener.")],
};
