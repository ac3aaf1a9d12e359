//! The keys of a listener.

use super::cache::COMPRESS_OF_LISTENER;
use super::http2::HTTP2_OF_LISTENER;
use super::proxy_protocol::PROXY_OF_LISTENER;
use super::{CERTIFICATE, LIMITS, LISTENER_ACCESS, LISTENER_LINES, TARGET, TARGET_NORMALIZE, TIMEOUTS, TLS};
use crate::config::raw::kind::Kind::{Group, Items, OneOrItems, Rules, WholeOr, Word};
use crate::config::raw::kind::{HOST, LISTENER as ADDRESS, NAME, Shape, key};
use crate::config::raw::shape::route::ROUTE;

/// One of `listeners`.
pub(in crate::config::raw) const LISTENER: Shape = Shape {
    title: "in a listener",
    path: "listeners.<name>.",
    needs: &[&["bind"]],
    keys: &[
        key(
            "bind",
            OneOrItems(&WholeOr(0, 65_535, ADDRESS)),
            "Where clients connect: a port, `\"address:port\"`, `\"*:port\"` or `unix:/path`, or a list of them.",
        ),
        key("protocol", TARGET.key("protocol").kind, "What clients speak.").or("http"),
        key("tls", Group(&LISTENER_TLS), "TLS towards clients: with `https`, or on a `tcp` listener."),
        HTTP2_OF_LISTENER,
        PROXY_OF_LISTENER,
        key(
            "access",
            Rules(&LISTENER_ACCESS),
            "Who may come in: names of `access_lists`, or a list right here.",
        ),
        key("rate_limit", OneOrItems(&Word(NAME)), "How often somebody may ask: names of `rate_limits`."),
        TARGET.key("forwarded"),
        TARGET.key("x_real_ip"),
        key("normalize", Group(&NORMALIZE), "What is done about the different ways to write one path."),
        key(
            "default_host",
            Word(HOST),
            "What requests are taken to ask for whose host no route names, or which name none.",
        ),
        TARGET.key("auth"),
        key("headers", Group(&LISTENER_LINES), "What is changed of headers on all of its routes."),
        COMPRESS_OF_LISTENER,
        key("limits", Group(&LISTENER_LIMITS), "What requests and connections may cost."),
        key("timeouts", Group(&LISTENER_TIMEOUTS), "How long clients may take."),
        key("routes", OneOrItems(&Group(&ROUTE)), "Which requests go where."),
    ],
};

/// A listener's `tls`.
pub(in crate::config::raw) const LISTENER_TLS: Shape = Shape {
    title: "in `tls`",
    path: "listeners.<name>.tls.",
    needs: &[],
    keys: &[
        TLS.key("cert_file"),
        TLS.key("cert_key"),
        TLS.key("ocsp_file"),
        key(
            "certificates",
            Items(&Group(&LISTENER_CERTIFICATE)),
            "More certificates, each for the names in it.",
        ),
        TLS.key("client_ca"),
        TLS.key("client_auth"),
        TLS.key("client_crl"),
        TLS.key("client_crl_expired"),
        TLS.key("min_version"),
        TLS.key("alpn"),
        TLS.key("unknown_sni"),
        TLS.key("cipher_suites"),
        TLS.key("groups"),
    ],
};

/// One of the certificates of a listener's `tls`.
pub(in crate::config::raw) const LISTENER_CERTIFICATE: Shape =
    Shape { path: "listeners.<name>.tls.certificates[].", ..CERTIFICATE };

/// A listener's `normalize`.
pub(in crate::config::raw) const NORMALIZE: Shape =
    Shape { path: "listeners.<name>.normalize.", ..TARGET_NORMALIZE };

/// A listener's `timeouts`.
pub(in crate::config::raw) const LISTENER_TIMEOUTS: Shape = Shape {
    title: "in the `timeouts` of a listener",
    path: "listeners.<name>.timeouts.",
    needs: &[],
    keys: &[
        TIMEOUTS.key("tls"),
        TIMEOUTS.key("head"),
        TIMEOUTS.key("keep_alive"),
        TIMEOUTS.key("half_closed"),
        key("idle", TIMEOUTS.key("idle").kind, "`idle` of the targets of its routes."),
        key("total", TIMEOUTS.key("total").kind, "`total` of the targets of its routes."),
    ],
};

/// A listener's `limits`.
pub(in crate::config::raw) const LISTENER_LIMITS: Shape = Shape {
    title: "in the `limits` of a listener",
    path: "listeners.<name>.limits.",
    needs: &[],
    keys: &[
        LIMITS.key("head_size"),
        LIMITS.key("headers"),
        LIMITS.key("body"),
        LIMITS.key("body_rate"),
        LIMITS.key("connections"),
        LIMITS.key("connections_per_client"),
        LIMITS.key("reply_factor"),
        LIMITS.key("replies"),
    ],
};
