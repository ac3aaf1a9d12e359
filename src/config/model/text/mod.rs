//! Texts with variables, as redirects, rewrites and header edits have them: taken apart once, when a config is accepted.
//!
//! `{name}` is a variable, `{header.name}` a header of the request, `{cookie.name}` a cookie,
//! `{proxy_tlv.234}` what a balancer in front tells behind that type, `$1` to `$9` what the groups of the
//! route's `path_regex` found; `{{` and `}}` are the braces themselves, and `$$1` is `$1`.

mod parse;

use super::proxy_protocol::ProxyFact;

pub use parse::{TextFault, TextFaultKind, TextPlace};

/// A text with variables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    source: Box<str>,
    pieces: Vec<TextPiece>,
}

/// A stretch of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextPiece {
    /// Stands as it is.
    Plain(Box<str>),
    /// Is filled in.
    Value(Variable),
}

/// What is filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Variable {
    /// The authority, as the client wrote it.
    Host,
    /// The same without the port.
    Hostname,
    /// Path and query, as the client sent them.
    Path,
    /// The path without the query.
    PathOnly,
    /// The query without the `?`.
    Query,
    /// `http` or `https`.
    Scheme,
    /// The method.
    Method,
    /// The client's address, as trusted proxies tell it.
    ClientIp,
    /// The request's number.
    Id,
    /// The target's name.
    Target,
    /// The backend's name; in answers only.
    Backend,
    /// The version of TLS with the client.
    Tls,
    /// The subject of the client's certificate.
    TlsClientSubject,
    /// Who the client has shown to be.
    User,
    /// What a balancer in front has told.
    Proxy(ProxyFact),
    /// The first request header of this name, in lower case.
    Header(Box<str>),
    /// The cookie of this name.
    Cookie(Box<str>),
    /// What a group of `path_regex` found, 1 to 9.
    Group(u8),
}

impl Variable {
    /// Those that have a name of their own.
    pub const NAMED: &'static [(&'static str, Variable)] = &[
        ("host", Variable::Host),
        ("hostname", Variable::Hostname),
        ("path", Variable::Path),
        ("path_only", Variable::PathOnly),
        ("query", Variable::Query),
        ("scheme", Variable::Scheme),
        ("method", Variable::Method),
        ("client_ip", Variable::ClientIp),
        ("id", Variable::Id),
        ("target", Variable::Target),
        ("backend", Variable::Backend),
        ("tls", Variable::Tls),
        ("tls.client_subject", Variable::TlsClientSubject),
        ("user", Variable::User),
        ("proxy_alpn", Variable::Proxy(ProxyFact::Alpn)),
        ("proxy_authority", Variable::Proxy(ProxyFact::Authority)),
        ("proxy_unique_id", Variable::Proxy(ProxyFact::UniqueId)),
        ("proxy_tls", Variable::Proxy(ProxyFact::Tls)),
        ("proxy_client_cn", Variable::Proxy(ProxyFact::ClientName)),
    ];
}

impl Text {
    /// One without variables.
    #[must_use]
    pub fn plain(text: &str) -> Text {
        let pieces = if text.is_empty() { Vec::new() } else { vec![TextPiece::Plain(text.into())] };
        Text { source: text.into(), pieces }
    }

    /// As it was written.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Its pieces in order.
    #[must_use]
    pub fn pieces(&self) -> &[TextPiece] {
        &self.pieces
    }

    /// All of it, where it has no variables.
    #[must_use]
    pub fn constant(&self) -> Option<&str> {
        match &*self.pieces {
            [] => Some(""),
            [TextPiece::Plain(text)] => Some(text),
            _ => None,
        }
    }
}
