//! Words that evenkeel will know and does not know yet. They are refused by name: a key that is silently
//! ignored is worse than one that is unknown.

/// Keys whose feature comes later, with what this version does instead.
const KEYS: &[(&str, &str)] = &[
    (
        "basic_auth",
        "this version has it as a rule at the top level: `auth: {staff: {basic: {users_file: …}}}`",
    ),
    ("forward_auth", "this version has it as a rule at the top level: `auth: {sso: {forward: {target: …}}}`"),
    ("dashboard", "this version has no dashboard"),
    ("prometheus", "this version gives metrics to Prometheus with `metrics: {listener: 0.0.0.0:9901}`"),
    (
        "discovery",
        "this version has it in `backends`: `{dns: app.internal, port: 8000}`, `{srv: _http._tcp.app.internal}` or `{file: backends.yaml}`",
    ),
    ("overload", "this version has no overload control but `max_connections`"),
    ("udp", "this version has it as `protocol: udp` of a listener or a target"),
    ("http3", "this version speaks HTTP/1.1 and HTTP/2"),
];

/// Those that come at the top level only, and are keys elsewhere.
const TOP_KEYS: &[(&str, &str)] = &[
    ("memory", "this version has no memory limit but that of `cache_store`"),
    ("grpc", "this version has it as `upstream_protocol: grpc` of a target"),
];

/// Values of `protocol` that come later.
const PROTOCOLS: &[(&str, &str)] = &[
    ("http3", "this version speaks HTTP/1.1 and HTTP/2"),
    (
        "grpc",
        "this version speaks it where `upstream_protocol: grpc` stands beside `protocol: http` or `https`",
    ),
];

/// What this version does instead of the feature behind `key`, in the mapping at `path`.
pub(in crate::config::raw) fn key(key: &str, path: &str) -> Option<&'static str> {
    find(KEYS, key).or_else(|| find(TOP_KEYS, key).filter(|_| path.is_empty()))
}

/// What to do until then where removing the key is not all: without these words it would open what was protected.
const UNTIL_THEN: &[(&str, &str)] = &[
    (
        "basic_auth",
        "remove it, and write it as a rule of `auth`, which the `auth` of a listener or a route names",
    ),
    (
        "forward_auth",
        "remove it, and write it as a rule of `auth`, which the `auth` of a listener or a route names",
    ),
];

/// What to do to the line until then.
pub(in crate::config::raw) fn until_then(key: &str) -> &'static str {
    find(UNTIL_THEN, key).unwrap_or("remove it")
}

/// What this version does instead of speaking `protocol`.
pub(in crate::config::raw) fn protocol(protocol: &str) -> Option<&'static str> {
    find(PROTOCOLS, protocol)
}

fn find(table: &[(&str, &'static str)], word: &str) -> Option<&'static str> {
    table.iter().find(|(name, _)| *name == word).map(|(_, text)| *text)
}
